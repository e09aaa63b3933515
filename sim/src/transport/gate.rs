//! The gate to programs outside: packets that come from them enter the network here, and leave it here again.
//!
//! One agent holds all interfaces of a live run ([`crate::live`]). It is no transport: nobody counts, answers or
//! repeats anything.

use std::collections::VecDeque;

use anabranch_proto::{PathId, Time};

use super::datagram::REASON;
use super::{Agent, Body, Frame, Output, Stage};

/// An IP packet of a program outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RawPacket {
    /// The packet, from its IP header on.
    pub(crate) bytes: Vec<u8>,
    /// The interface at which it leaves the network, as a number that the gate's user chose.
    pub(crate) to: usize,
}

/// The agent at which packets from outside enter and leave the network.
#[derive(Default)]
pub(crate) struct Gate {
    entering: Option<Frame>,
    arrived: VecDeque<(Time, RawPacket)>,
}

impl Gate {
    /// A packet that is sent at the next poll, on the route that begins at `hop`.
    pub(crate) fn enter(&mut self, packet: RawPacket, hop: u32) {
        let size = packet.bytes.len() as u32;
        self.entering = Some(Frame::new(Body::Raw(Box::new(packet)), size, hop));
    }

    /// The next packet that has arrived, and when.
    pub(crate) fn leave(&mut self) -> Option<(Time, RawPacket)> {
        self.arrived.pop_front()
    }
}

impl Agent for Gate {
    fn handle(&mut self, now: Time, frame: Frame) {
        if let Body::Raw(packet) = frame.body {
            self.arrived.push_back((now, *packet));
        }
    }

    fn poll(&mut self, _: Time) -> Output {
        match self.entering.take() {
            Some(frame) => Output::Transmit(frame, REASON),
            None => Output::Wait(None),
        }
    }

    /// It is never awaited.
    fn stage(&self) -> Stage {
        Stage::Idle
    }

    fn path_name(&self, _: PathId) -> Option<&str> {
        None
    }
}
