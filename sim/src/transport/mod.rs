//! Who sends and receives at a host: the same shape as `anabranch_proto::Endpoint`, so that a flow's two ends
//! may be any protocol.

pub(crate) mod ends;
pub(crate) mod sctp;

use anabranch_proto::wire::{Ecn, Packet};
use anabranch_proto::{Note, PathId, Reason, Time};

/// One end of a flow.
///
/// The agents of flow `f` are number 2f, which begins it, and 2f + 1.
pub(crate) trait Agent {
    /// A packet arrived. It will be polled.
    fn handle(&mut self, now: Time, body: Body);
    /// What it has to say; polled until it waits. Polling it more often changes nothing.
    fn poll(&mut self, now: Time) -> Output;
    /// How far it is.
    fn stage(&self) -> Stage;
    /// What a path is called, for observers.
    fn path_name(&mut self, path: PathId) -> Option<&str>;
}

/// What an agent has to say.
#[derive(Debug)]
pub(crate) enum Output {
    /// Into the first link of the frame's route.
    Transmit(Frame, Reason),
    /// A detail for observers.
    Note(Note),
    /// Nothing more now; poll it after the next packet and not later than this. May be early, never late.
    Wait(Option<Time>),
}

/// How far an agent is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// Nothing has begun.
    Idle,
    /// Something is under way.
    Busy,
    /// Everything is done, or lost.
    Over,
}

/// What a link carries. It looks only at the size. Where it goes, and so its flow, stands at the end of its route.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) body: Body,
    /// Bytes, IP header included.
    pub(crate) size: u32,
    /// Where in the table of routes it is: at the link direction that it is on.
    pub(crate) hop: u32,
}

impl Frame {
    /// It has met congestion, if it can say so.
    pub(crate) fn mark(&mut self) {
        if let Body::Sctp(packet) = &mut self.body
            && packet.ecn != Ecn::NotEct
        {
            packet.ecn = Ecn::Ce;
        }
    }
}

/// What is in a frame.
#[derive(Debug)]
pub(crate) enum Body {
    /// An SCTP packet.
    Sctp(Box<Packet>),
    /// Nothing but its size.
    #[cfg(test)]
    Plain,
}
