//! Outputs of an endpoint other than packets (events, reasons, notes, messages), and its inputs.

mod message;
mod note;

use std::net::IpAddr;

pub use message::{Delivery, Discarded, Message, Reliability};
pub use note::{Blocked, Note, NoteKind};

use crate::path::{PathId, PathState};
use crate::policy::Why;
use crate::wire::{Address, Cause, Packet, Quoted};
use crate::{Duration, Time};

/// Identifies an association of an endpoint. The endpoint never gives two associations the same id: the low 32 bits
/// are the place where it keeps the association, and the high 32 bits count the earlier associations in that place.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub u64);

impl AssociationId {
    /// The place where the endpoint keeps it.
    pub(crate) fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    /// The id of the next association in the same place.
    pub(crate) fn successor(self) -> Self {
        AssociationId(self.0 + (1 << 32))
    }
}

/// An input from the network.
#[derive(Debug)]
pub enum Incoming {
    /// A packet whose checksum is correct.
    Packet(Box<Packet>),
    /// The socket of a local address is full (`false`), or accepts packets again (`true`). While it is full, its
    /// paths have no room, and chunks for these paths wait.
    Writable(Address, bool),
    /// A local address is down (`false`), or up again (`true`): its interface is down, or the system reports that
    /// nothing can be sent from it. Other paths then carry the data of its paths, and a missing answer there is no
    /// error. If no such path is left, the paths use another local address that is up.
    Up(Address, bool),
    /// A router reported that packets to this peer address may have at most this many bytes, IP header included.
    /// Packets never grow by this. The caller has verified that the report quotes a packet of ours, by its verification
    /// tag or as the system does for a socket (RFC 9260 §10).
    TooBig(Address, u32),
    /// An ICMP error from this peer address (port unreachable for UDP, protocol unreachable), and the packet of ours
    /// that it quotes. If the quoted tag is right, set-up on that address ends at once.
    Unreachable(Address, Quoted),
}

/// The output of an endpoint: one item per [`poll`](crate::Endpoint::poll).
#[derive(Debug)]
pub enum Output {
    /// Send this packet.
    Transmit(Box<Packet>, Reason),
    /// Report this event to the user.
    Event(AssociationId, Event),
    /// A detail; only while notes are switched on.
    Note(Note),
    /// There is nothing more to do now. Poll again after the next call, and not later than this time. The time may be
    /// too early, never too late.
    Wait(Option<Time>),
}

/// Why a packet is sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// The purpose of the packet.
    pub purpose: Purpose,
    /// The path of the packet; `None` for replies that belong to no association.
    pub path: Option<PathId>,
    /// Which limit allowed the packet.
    pub limit: Limit,
    /// Whether the packet is larger than the path MTU: IP must be allowed to fragment it. This happens to chunks from
    /// before the path MTU fell, and in set-up to an INIT ACK with many addresses and to a COOKIE ECHO with a large
    /// cookie.
    pub oversize: bool,
}

impl Reason {
    /// The reason of a packet with nothing but a SACK.
    #[inline(always)]
    pub(crate) fn of_sack(path: PathId) -> Self {
        Reason { purpose: Purpose::Sack, path: Some(path), limit: Limit::Control, oversize: false }
    }
}

/// The purpose of a packet; of several purposes, the first in this list.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// User data.
    Data(Why),
    /// An acknowledgement.
    Sack,
    /// FORWARD TSN: data was abandoned.
    Forward,
    /// RE-CONFIG: streams are reset or added.
    Streams,
    /// ASCONF or its answer: addresses change.
    Addresses,
    /// INIT, INIT ACK, COOKIE ECHO or COOKIE ACK.
    Setup,
    /// HEARTBEAT or its answer.
    Heartbeat,
    /// SHUTDOWN, SHUTDOWN ACK or SHUTDOWN COMPLETE.
    Shutdown,
    /// ABORT.
    Abort,
    /// ERROR.
    Error,
}

impl Purpose {
    /// The document that specifies such a packet.
    pub const fn document(self) -> &'static str {
        match self {
            Purpose::Forward => "RFC 3758",
            Purpose::Streams => "RFC 6525",
            Purpose::Addresses => "RFC 5061",
            Purpose::Data(Why::TailProbe) => "RFC 8985",
            _ => "RFC 9260",
        }
    }

    /// The section in that document.
    pub const fn section(self) -> &'static str {
        match self {
            Purpose::Data(Why::New) => "6.1",
            Purpose::Data(Why::Missing) => "7.2.4",
            Purpose::Data(Why::Timeout) => "6.3.3",
            Purpose::Data(Why::WindowProbe) => "6.1 A",
            Purpose::Data(Why::TailProbe) => "7.3",
            Purpose::Data(Why::Reinjected) => "6.1",
            Purpose::Sack => "6.2",
            Purpose::Forward => "3.5",
            Purpose::Streams => "5.1",
            Purpose::Addresses => "5.1",
            Purpose::Setup => "5.1",
            Purpose::Heartbeat => "8.3",
            Purpose::Shutdown => "9.2",
            Purpose::Abort => "9.1",
            Purpose::Error => "3.3.10",
        }
    }
}

/// Which limit allowed a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// None: a control packet is not subject to a window.
    Control,
    /// The path's window had room for it.
    Window,
    /// A right to one packet regardless of the window: a fast retransmission, a timeout, a probe.
    Granted,
}

/// A notification to the user (RFC 9260 §11.2). Events announce; they carry no data.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// COMMUNICATION UP: the association is established.
    Up,
    /// COMMUNICATION LOST, or it never came up: the association is gone.
    Lost(LostReason),
    /// RESTART: the peer has restarted; data in flight is lost.
    Restart,
    /// A message, or a part of one, can be read.
    Readable,
    /// A send call that was refused would now be accepted.
    Writable,
    /// NETWORK STATUS CHANGE: a path is in this state now.
    Path(PathId, PathState),
    /// SEND FAILURE: this message was not delivered.
    SendFailed {
        /// The message, or the rest of it.
        message: Message,
        /// Whether any part of it was sent.
        sent: bool,
    },
    /// The SSNs of these streams (none: all) restart, as either end requested; or the request failed.
    StreamsReset {
        /// The direction of the streams, seen from this end.
        direction: Direction,
        /// The streams.
        streams: Vec<u16>,
        /// The outcome.
        outcome: Outcome,
    },
    /// All TSNs and SSNs restart, as either end requested; or the request failed.
    TsnsReset(Outcome),
    /// The numbers of streams after a request of either end for more.
    StreamsAdded {
        /// Outbound streams.
        outgoing: u16,
        /// Inbound streams.
        incoming: u16,
        /// The outcome of the request.
        outcome: Outcome,
    },
    /// The peer has answered our request to change our addresses; or it has restarted, and the request failed.
    LocalAddress {
        /// The address.
        address: Address,
        /// The requested change.
        change: AddressChange,
        /// The outcome.
        outcome: Outcome,
    },
    /// The peer has changed its addresses.
    PeerAddress {
        /// The address.
        address: Address,
        /// The change.
        change: AddressChange,
    },
    /// The peer reported an error; the association continues.
    PeerError(Vec<Cause>),
    /// SHUTDOWN arrived: the peer will send no more data.
    PeerShutdown,
    /// SHUTDOWN COMPLETE: the association was closed gracefully.
    Closed,
}

/// The direction of streams, seen from this end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Direction {
    /// Outbound.
    Outgoing,
    /// Inbound.
    Incoming,
}

/// A change of an address of an association (RFC 5061).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AddressChange {
    /// The address was added.
    Added,
    /// The address was removed.
    Removed,
    /// The owner of the address asks the peer to send there.
    Primary,
}

/// The outcome of a request to the other end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The peer has carried it out.
    Done,
    /// The peer has refused.
    Denied,
    /// The peer failed to carry it out.
    Failed,
}

/// Why a change of streams or addresses was not requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such association, it is not established, or its ends did not agree on the extension.
    #[error("the association cannot do this: not established, or the extension was not agreed")]
    NotAgreed,
    /// Too many changes are waiting.
    #[error("too many changes are waiting for an answer")]
    Busy,
    /// There are no such streams or addresses, there is no room for more, or no path would be left.
    #[error("no such stream or address, too many, or no path would be left")]
    Invalid,
}

/// Why an association was lost. Its words are printable, whatever the peer wrote.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LostReason {
    /// The peer never answered INIT or COOKIE ECHO.
    #[error("the peer does not answer")]
    NoAnswer,
    /// ICMP reported with the right tag that SCTP is not reachable at any of the peer's addresses.
    #[error("nothing listens there (ICMP: port or protocol unreachable)")]
    Unreachable,
    /// Association.Max.Retrans exceeded.
    #[error("the peer answers no longer")]
    TooManyErrors,
    /// The peer aborted with these causes.
    #[error("{}", aborted(.0))]
    PeerAborted(Vec<Cause>),
    /// The user aborted.
    #[error("it was aborted at this end")]
    UserAborted,
    /// The peer violated the protocol; it was told so.
    #[error("the peer broke the protocol")]
    ProtocolViolation,
    /// This end has a shared key, and the peer offers no authentication (RFC 4895); the peer was told so.
    #[error("only this end has a shared key (RFC 4895)")]
    NotAuthenticated,
}

fn aborted(causes: &[Cause]) -> String {
    let causes: Vec<String> = causes.iter().map(Cause::to_string).collect();
    match causes[..] {
        [] => "the peer refused or aborted".to_owned(),
        _ => format!("the peer aborted: {}", causes.join(", ")),
    }
}

/// Why a send call was refused. The message is returned.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full: wait for [`Event::Writable`].
    #[error("the send buffer is full")]
    Full(Message),
    /// There is no such association, or it is closing.
    #[error("the association cannot send")]
    Closed(Message),
    /// The message is empty, or its stream does not exist.
    #[error("the message is empty or its stream was not agreed")]
    Invalid(Message),
}

/// Why a connect call was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// No pair of a local and a peer address can be a path.
    #[error("no local address reaches any of the peer's addresses")]
    NoPath,
    /// No peer can have the SCTP port 0 (RFC 9260 §3.1).
    #[error("no peer can have the SCTP port 0")]
    Port,
    /// No peer can have this address: it is unspecified, a multicast or the broadcast address.
    #[error("no peer can have the address {0}")]
    Address(IpAddr),
    /// The address and the port are those of this endpoint.
    #[error("{0} is this endpoint itself")]
    Itself(IpAddr),
    /// An association with this peer already exists.
    #[error("there is an association with this peer already")]
    Exists,
}

/// The statistics of an association.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Packets sent.
    pub packets: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of user data acknowledged by the peer.
    pub acknowledged: u64,
    /// DATA chunks that were received more than once.
    pub duplicates: u64,
    /// DATA chunks dropped because the receive buffer was full.
    pub no_room: u64,
    /// Window probes sent.
    pub probes: u64,
    /// T3-rtx expirations.
    pub timeouts: u64,
    /// The number of times that Fast Recovery was entered, or that missing reports cut the window.
    pub fast_recoveries: u64,
    /// Window cuts taken back because nothing was lost (mechanism `spurious_losses`).
    pub spurious_losses: u64,
    /// Time with user data waiting and nothing sendable because of the peer's window.
    pub blocked_peer_window: Duration,
    /// Time in which the user was refused although everything in the send buffer was sent.
    pub blocked_send_buffer: Duration,
    /// Time with user data waiting and nothing sendable because of the congestion window of every usable path.
    pub blocked_window: Duration,
    /// Time with user data waiting for another cause.
    pub blocked_turn: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_aborts_is_quoted_in_words() {
        let told = |causes| LostReason::PeerAborted(causes).to_string();
        let many = Cause::UserInitiated("too many\u{1b}[2J".into());
        assert_eq!(told(vec![many]), "the peer aborted: too many\\u{1b}[2J");
        let two = vec![Cause::OutOfResource, Cause::Unknown { code: 999, value: "".into() }];
        let words = "it has no resources for the association, error cause 999";
        assert_eq!(told(two), format!("the peer aborted: {words}"));
        assert_eq!(told(Vec::new()), "the peer refused or aborted");
    }
}
