//! The other end, whatever stack it is: what can be asked of it, and what it says.

pub mod dcsctp;
pub mod foreign;
pub mod machine;

use std::net::IpAddr;

use anabranch_proto::wire::Address;
use anabranch_proto::{Duration, Extensions, Outcome, Reliability, Time};
use bytes::Bytes;

use crate::letter::{Arrived, Letter};

/// Streams of either end.
pub const STREAMS: u16 = 16;
/// SCTP ports: ours, theirs.
pub const PORTS: [u16; 2] = [5000, 5001];
/// The shared key where DATA is authenticated, and its number.
pub const KEY: (u16, &str) = (1, "a-key-that-both-ends-have");
/// The path MTU, IP header included.
pub const MTU: u32 = 1500;

/// A foreign stack with one SCTP endpoint.
pub trait Peer {
    /// Asks it for something.
    fn ask(&mut self, now: Time, ask: &Ask) -> Result<(), Refused>;
    /// Gives it a packet.
    fn take(&mut self, now: Time, packet: Bytes);
    /// Waits until something happens or `until` has come, and says what time it is then.
    fn wait(&mut self, now: Time, until: Time) -> Time;
    /// What it has said since, one thing a call.
    fn said(&mut self) -> Option<PeerOutput>;
    /// Where we are, and where it is.
    fn addresses(&self) -> [Address; 2];
    /// Whether it tells its user of every message that it has given up.
    fn tells_what_it_gave_up(&self) -> bool {
        true
    }
    /// The ticks of its clock.
    fn tick(&self) -> Duration {
        Duration::from_millis(1)
    }
    /// A timeout for tests, in its time.
    fn patience(&self) -> Duration;
}

/// A call that it did not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It may later.
    Busy,
    /// Why, in its own words.
    NotOffered(String),
    /// There is no peer any more, or none could be started: how that was seen.
    Gone(String),
}

/// What an association is to do at the peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ask {
    /// Wait for us.
    Listen,
    /// Come to us.
    Connect,
    Send(Letter, Reliability),
    /// Begin the SSNs of the streams on which it sends anew.
    ResetOutgoing(Vec<u16>),
    /// Ask us to do so.
    ResetIncoming(Vec<u16>),
    AddStreams {
        outgoing: u16,
        incoming: u16,
    },
    ResetTsns,
    Shutdown,
    Abort(&'static str),
    /// Lose its memory, and begin again.
    Restart,
}

/// What a peer says.
#[derive(Clone, PartialEq, Debug)]
pub enum PeerOutput {
    Packet(Bytes),
    PeerEvent(PeerEvent),
}

/// What it tells its user.
#[derive(Clone, PartialEq, Debug)]
pub enum PeerEvent {
    /// Streams out and in, and which extensions are used.
    Up {
        streams: [u16; 2],
        extensions: Vec<String>,
    },
    Arrived(Arrived),
    /// A message was given up.
    Failed(u32),
    /// We have asked it to end.
    PeerShutdown,
    Closed,
    /// We have aborted, for this reason.
    Aborted(String),
    /// It was lost for another reason.
    Lost(String),
    Restarted,
    StreamsReset {
        outgoing: bool,
        outcome: Outcome,
        streams: Vec<u16>,
    },
    /// Streams out and in.
    StreamsAdded {
        streams: [u16; 2],
        outcome: Outcome,
    },
    TsnsReset(Outcome),
    /// What became of one of our addresses, in its words.
    Address(IpAddr, String),
    /// Something that should not have happened.
    Error(String),
}

/// What kind of end is made.
#[derive(Clone, Debug)]
pub struct Make {
    pub extensions: Extensions,
    /// DATA is authenticated, by a shared key.
    pub authenticated: bool,
}

/// A part of an extension that the peer's interface does not have.
pub fn has_no(what: &str) -> Refused {
    Refused::NotOffered(format!("no such call in its interface: {what}"))
}
