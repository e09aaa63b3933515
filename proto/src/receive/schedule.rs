//! When the next SACK is due (RFC 9260 §6.2).

use super::Receiver;
use crate::Time;
use crate::config::Config;
use crate::mechanisms::Dac;
use crate::path::PathId;

/// When the next SACK is due.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// When it is due at the latest; [`Time::NEVER`] while none is owed.
    pub(crate) deadline: Time,
    /// It is due now.
    pub(crate) now: bool,
}

impl Schedule {
    /// Nothing is owed.
    pub(super) fn idle() -> Self {
        Schedule { packets: 0, deadline: Time::NEVER, now: false }
    }

    /// Packets with DATA since the last SACK.
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }
}

/// The outcome of the DATA chunks of one packet.
#[derive(Default)]
pub(crate) struct Arrival {
    pub(super) chunks: u32,
    pub(super) at_once: bool,
    /// FORWARD TSNs among them.
    forwards: u32,
}

impl Arrival {
    /// Counts a FORWARD TSN; whether it is looked at, being one of the first `most` of its packet.
    pub(crate) fn admits_forward(&mut self, most: u32) -> bool {
        self.forwards += 1;
        self.forwards <= most
    }

    /// Whether the packet had DATA at all.
    pub(crate) fn any(&self) -> bool {
        self.chunks > 0
    }
}

impl Receiver {
    /// All chunks of a packet are taken: is a SACK due, now or later?
    //= rfc9260#section-6.2
    pub(crate) fn packet_done(&mut self, arrival: &Arrival, from: PathId, now: Time, config: &Config) {
        if arrival.chunks == 0 {
            return;
        }
        self.from = from;
        self.schedule.packets += 1;
        let gap = self.has_gap() && self.dac == Dac::Off;
        if arrival.at_once || gap || self.schedule.packets >= config.sack_every {
            self.schedule.now = true;
        }
        if self.schedule.deadline == Time::NEVER {
            self.schedule.deadline = now + config.sack_delay;
        }
    }

    /// The SACK that is owed has been delayed for long enough.
    pub(crate) fn sack_timer_expired(&mut self) {
        self.schedule.now = true;
        self.schedule.deadline = Time::NEVER;
        if self.dac == Dac::Literal {
            self.schedule.packets = 0;
        }
    }
}
