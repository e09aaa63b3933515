//! What events allow to be sent: kept as state, so that polling more often changes nothing.

use crate::Config;
use crate::policy::Why;
use crate::rules::{Burst, SendOn};

/// The rights in force.
pub(super) struct Rights {
    /// New data may leave at all: the paths that must be confirmed first are.
    open: bool,
    /// One packet whatever the window, for this reason.
    granted: Option<Why>,
    /// Data may leave now: always, or while a SACK is being answered.
    answering: bool,
    /// Whether data leaves only in answer to a SACK.
    only_answers: bool,
    /// No retransmission beyond the one granted before the next SACK.
    barred: bool,
    burst: BurstCount,
}

/// Max.Burst: packets of one event.
struct BurstCount {
    scope: Burst,
    limit: u32,
    /// The next events are counted.
    armed: bool,
    /// This event is counted.
    counting: bool,
    packets: u32,
}

impl Rights {
    pub(super) fn new(config: &Config) -> Self {
        let only_answers = config.rules.send_on == SendOn::Sack;
        Rights {
            open: false,
            granted: None,
            answering: !only_answers,
            only_answers,
            barred: false,
            burst: BurstCount {
                scope: config.rules.burst,
                limit: config.max_burst,
                armed: false,
                counting: false,
                packets: 0,
            },
        }
    }

    pub(super) fn open(&mut self) {
        self.open = true;
        self.answering = true;
    }

    pub(super) fn close(&mut self) {
        self.open = false;
    }

    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// A new event: its burst begins.
    pub(super) fn event(&mut self) {
        self.burst.begin();
    }

    /// A SACK came.
    pub(super) fn sack(&mut self) {
        self.burst.begin();
        self.answering = true;
        self.barred = false;
    }

    /// A message was given: an event of its own if nothing waited, an answer if nothing was in flight.
    pub(super) fn called(&mut self, was_empty: bool, nothing_in_flight: bool) {
        if was_empty {
            self.burst.begin();
        }
        if nothing_in_flight {
            self.answering = true;
        }
    }

    pub(super) fn grant(&mut self, why: Why) {
        self.granted = Some(why);
    }

    pub(super) fn granted(&self) -> Option<Why> {
        self.granted
    }

    /// No retransmission beyond the one granted before the next SACK.
    pub(super) fn bar(&mut self) {
        self.barred = true;
    }

    /// A cumulative acknowledgement covered a fast-retransmitted chunk.
    pub(super) fn arm(&mut self) {
        self.burst.armed = true;
        self.burst.counting |= self.burst.scope == Burst::WhenArmed;
    }

    /// Whether marked chunks may leave, room provided.
    pub(super) fn may_retransmit(&self) -> bool {
        self.answering && !self.barred && self.burst.admits_marked()
    }

    /// Whether new chunks may leave, room provided.
    pub(super) fn may_send(&self) -> bool {
        self.open && self.answering && self.burst.admits_new()
    }

    /// A packet of marked chunks has left.
    pub(super) fn retransmitted(&mut self) {
        self.granted = None;
        if self.burst.scope == Burst::WhenArmed {
            self.burst.packets += 1;
            self.burst.armed &= self.burst.admits_marked();
        }
    }

    /// A packet of new chunks has left.
    pub(super) fn sent_new(&mut self) {
        self.granted = None;
        self.burst.packets += 1;
        self.burst.armed &= self.burst.admits_new();
    }

    /// The answer is complete. A right to one packet outlasts it only while there are marked chunks; that to
    /// send at all does while nothing is in flight, because then no SACK will come to renew it.
    pub(super) fn settle(&mut self, marked: bool, nothing_in_flight: bool) {
        self.answering &= !self.only_answers || nothing_in_flight;
        if !marked {
            self.granted = None;
        }
    }
}

impl BurstCount {
    fn begin(&mut self) {
        self.packets = 0;
        self.counting = match self.scope {
            Burst::Off => false,
            Burst::Always => true,
            Burst::WhenArmed => self.armed,
        };
    }

    //= rfc9260#section-6.1
    fn admits_new(&self) -> bool {
        !self.counting || self.packets < self.limit
    }

    /// ns-2 asks after it has counted: one packet more than for new data. The RFCs limit new data only.
    fn admits_marked(&self) -> bool {
        !self.counting || self.scope != Burst::WhenArmed || self.packets <= self.limit
    }
}
