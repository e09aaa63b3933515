//! What blocks data, and for how long. The times are updated whenever the cause changes.

use anabranch_proto::{Blocked, Duration, Time};

/// The present cause, and the time that each cause has held.
#[derive(Debug, Default)]
pub(super) struct BlockedClock {
    cause: Option<Blocked>,
    /// If a buffer is full: the subflow that last carried the lowest outstanding data.
    by: Option<usize>,
    since: Time,
    totals: Totals,
}

/// How long data has waited, by cause.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Totals {
    pub(super) peer_window: Duration,
    pub(super) send_buffer: Duration,
    pub(super) window: Duration,
    pub(super) turn: Duration,
}

/// A change of the cause: the subflow that no longer blocks, and how long it did.
pub(super) struct Changed {
    pub(super) before: Option<(usize, Duration)>,
}

impl BlockedClock {
    /// From now on data waits for this cause. `by`: the subflow that keeps a buffer full.
    pub(super) fn set(&mut self, now: Time, cause: Option<Blocked>, by: Option<usize>) -> Option<Changed> {
        if (cause, by) == (self.cause, self.by) {
            return None;
        }
        self.totals = self.charged(now);
        let before = self.by.map(|by| (by, now.since(self.since)));
        (self.cause, self.by, self.since) = (cause, by, now);
        Some(Changed { before })
    }

    /// The totals if the present cause ended now.
    pub(super) fn charged(&self, now: Time) -> Totals {
        let mut totals = self.totals;
        let passed = now.since(self.since);
        match self.cause {
            Some(Blocked::PeerWindow) => totals.peer_window += passed,
            Some(Blocked::SendBuffer) => totals.send_buffer += passed,
            Some(Blocked::Window) => totals.window += passed,
            Some(Blocked::Turn) => totals.turn += passed,
            None => {}
        }
        totals
    }

    /// The subflow that keeps a buffer full now, and for how long it has done so.
    pub(super) fn blocking(&self, now: Time) -> Option<(usize, Duration)> {
        self.by.map(|by| (by, now.since(self.since)))
    }
}
