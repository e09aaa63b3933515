//! Counters of a station. They only grow: the difference of two readings covers the time between them.

use anabranch_proto::Time;

use super::frames::{Air, Kind};

/// The counts of one radio.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Statistics {
    pub(crate) rts: Exchanges,
    pub(crate) data: Exchanges,
    pub(crate) collisions: Collisions,
    pub(crate) drops: Drops,
    /// Times in nanoseconds.
    pub(crate) airtime: Airtime,
}

/// Frames that require an answer.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Exchanges {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
}

/// RTS and DATA of this station that overlapped another frame at their receiver.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Collisions {
    /// Spoiled by a station that does not sense this one.
    pub(crate) hidden: u64,
    /// Spoiled by a station that senses this one, but could not yet when it began.
    pub(crate) slot: u64,
    /// Read in spite of an overlap.
    pub(crate) capture: u64,
}

/// Packets that were dropped.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Drops {
    /// The queue was full.
    pub(crate) queue: u64,
    /// The last RTS got no CTS.
    pub(crate) rts_retries: u64,
    /// The last DATA frame got no ACK.
    pub(crate) data_retries: u64,
}

/// The use of the channel at a radio's position, its own frames included.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Airtime {
    /// One DATA frame.
    pub(crate) data: u64,
    /// One RTS, CTS or ACK.
    pub(crate) control: u64,
    /// More than one frame at once.
    pub(crate) collision: u64,
    /// No sensed frame.
    pub(crate) idle: u64,
}

impl Statistics {
    /// The difference between these counters and `earlier` ones.
    pub(crate) fn since(&self, earlier: &Statistics) -> Statistics {
        let frames = |now: Exchanges, then: Exchanges| Exchanges {
            sent: now.sent - then.sent,
            answered: now.answered - then.answered,
        };
        Statistics {
            rts: frames(self.rts, earlier.rts),
            data: frames(self.data, earlier.data),
            collisions: Collisions {
                hidden: self.collisions.hidden - earlier.collisions.hidden,
                slot: self.collisions.slot - earlier.collisions.slot,
                capture: self.collisions.capture - earlier.collisions.capture,
            },
            drops: Drops {
                queue: self.drops.queue - earlier.drops.queue,
                rts_retries: self.drops.rts_retries - earlier.drops.rts_retries,
                data_retries: self.drops.data_retries - earlier.drops.data_retries,
            },
            airtime: Airtime {
                data: self.airtime.data - earlier.airtime.data,
                control: self.airtime.control - earlier.airtime.control,
                collision: self.airtime.collision - earlier.airtime.collision,
                idle: self.airtime.idle - earlier.airtime.idle,
            },
        }
    }
}

/// The use of the channel at a position, the number of frames on the air, and the time of the last change.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Occupation {
    pub(super) airtime: Airtime,
    data: u32,
    control: u32,
    since: Time,
}

impl Occupation {
    /// A frame begins.
    pub(super) fn enter(&mut self, now: Time, air: &Air) {
        self.settle(now);
        *self.count(air) += 1;
    }

    /// A frame ends.
    pub(super) fn leave(&mut self, now: Time, air: &Air) {
        self.settle(now);
        *self.count(air) -= 1;
    }

    /// Accounts for the time up to now.
    pub(super) fn settle(&mut self, now: Time) {
        let share = match (self.data, self.control) {
            (0, 0) => &mut self.airtime.idle,
            (1, 0) => &mut self.airtime.data,
            (0, 1) => &mut self.airtime.control,
            _ => &mut self.airtime.collision,
        };
        *share += now.as_nanos() - self.since.as_nanos();
        self.since = now;
    }

    fn count(&mut self, air: &Air) -> &mut u32 {
        if air.kind == Kind::Data { &mut self.data } else { &mut self.control }
    }
}
