//! Why user data waits, and how long: accounted whenever the cause changes.

use super::{Sender, Surroundings};
use crate::notes::Notes;
use crate::output::{Blocked, NoteKind, Statistics};
use crate::path::{PathView, Paths};
use crate::policy::Choice;
use crate::rules::WindowProbe;
use crate::{Config, Duration, Time};

#[derive(Default)]
pub(super) struct BlockedClock {
    cause: Option<Blocked>,
    since: Time,
    /// What kept new data from leaving when it was tried last.
    found: Option<Blocked>,
}

/// What keeps a chunk from leaving by the path that its route chose, when nothing else does.
pub(super) fn in_the_way(choice: Choice, paths: &Paths) -> Blocked {
    let full = |path: &PathView| path.flight >= path.window;
    match choice {
        Choice::Send(path) if full(paths.view(path)) => Blocked::Window,
        _ => Blocked::Turn,
    }
}

impl BlockedClock {
    /// This kept the next new chunk from leaving when it was tried last.
    pub(super) fn found(&mut self, cause: Blocked) {
        self.found = Some(cause);
    }

    fn set(&mut self, cause: Option<Blocked>, now: Time, statistics: &mut Statistics, notes: &mut Notes) {
        if cause == self.cause {
            return;
        }
        self.charge(now, statistics);
        self.cause = cause;
        self.since = now;
        notes.add(now, || NoteKind::Blocked(cause));
    }

    /// Adds the time up to now to the present cause.
    pub(super) fn charge(&self, now: Time, statistics: &mut Statistics) {
        let passed = now.since(self.since);
        match self.cause {
            Some(Blocked::PeerWindow) => statistics.blocked_peer_window += passed,
            Some(Blocked::Window) => statistics.blocked_window += passed,
            Some(Blocked::Turn) => statistics.blocked_turn += passed,
            None => {}
        }
    }
}

impl Sender {
    /// What the statistics would say if the present cause ended now.
    pub(crate) fn charged(&self, now: Time, mut statistics: Statistics) -> Statistics {
        self.blocked.charge(now, &mut statistics);
        statistics
    }

    /// The association is over: nothing waits any more.
    pub(crate) fn stop_clock(&mut self, around: &mut Surroundings<'_>) {
        self.blocked.set(None, around.now, around.statistics, around.notes);
        self.probe_timer = Time::NEVER;
    }

    /// Records what keeps the next new chunk waiting, now that nothing more leaves.
    pub(super) fn settle_blocked(&mut self, around: &mut Surroundings<'_>) {
        let cause = match self.queue.is_empty() {
            true => None,
            false if !self.is_open() => Some(Blocked::Turn),
            false => self.blocked.found,
        };
        self.blocked.set(cause, around.now, around.statistics, around.notes);
    }

    /// Sets the probe timer when the window is found closed with nothing in flight, and stops it when it opens.
    //= rfc9260#section-6.1
    pub(super) fn watch_closed_window(&mut self, around: &mut Surroundings<'_>) {
        let closed = self.blocked.cause == Some(Blocked::PeerWindow) && self.outstanding.is_empty();
        if !closed || !self.probes_later(around.config) {
            self.probe_timer = Time::NEVER;
        } else if self.probe_timer == Time::NEVER {
            let rto: Duration = around.paths.view(self.in_use).rto;
            self.probe_timer = around.now + rto;
        }
    }

    pub(super) fn probes_later(&self, config: &Config) -> bool {
        config.rules.window_probe == WindowProbe::AfterRto
    }
}
