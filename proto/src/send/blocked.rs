//! Why user data waits, and how long. The time is added up whenever the cause changes.

use super::{SendContext, Sender};
use crate::output::{Blocked, NoteKind, Statistics};
use crate::path::{PathId, PathView, Paths};
use crate::policy::{Choice, Why};
use crate::rules::WindowProbe;
use crate::{Config, Duration, Time};

/// The largest number of ordered messages of a stream that are outstanding: with one more, two would have the same SSN.
pub(super) const MOST_OF_A_STREAM: usize = u16::MAX as usize;

#[derive(Clone, Default, Debug)]
pub(super) struct BlockedClock {
    cause: Option<Blocked>,
    /// The path that blocks. If a buffer at either end is full: the path that carried the lowest outstanding TSN
    /// last.
    by: Option<PathId>,
    since: Time,
    /// What kept new data from leaving at the last attempt.
    found: Option<Blocked>,
}

/// The cause that keeps a chunk from leaving on the path that its route chose.
pub(super) fn in_the_way(choice: Choice, paths: &Paths) -> Blocked {
    let full = |path: &PathView| path.flight >= path.window;
    match choice {
        Choice::Send(path) if full(paths.view(path)) => Blocked::Window,
        _ => Blocked::Turn,
    }
}

impl BlockedClock {
    /// The obstacle of the next new chunk at the last attempt.
    pub(super) fn found(&mut self, cause: Blocked) {
        self.found = Some(cause);
    }

    /// The obstacle found last.
    pub(super) fn last_found(&self) -> Option<Blocked> {
        self.found
    }

    /// Whether nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        (self.cause, self.by) == (None, None)
    }

    /// What was found last keeps new data from leaving, and no buffer is full.
    pub(super) fn stays_found(&mut self, around: &mut SendContext<'_>) {
        self.set(self.found, None, around);
    }

    #[inline(always)]
    fn set(&mut self, cause: Option<Blocked>, by: Option<PathId>, around: &mut SendContext<'_>) {
        if (cause, by) != (self.cause, self.by) {
            self.change(cause, by, around);
        }
    }

    #[inline(never)]
    fn change(&mut self, cause: Option<Blocked>, by: Option<PathId>, around: &mut SendContext<'_>) {
        self.charge(around.now, around.statistics);
        if let Some(by) = self.by {
            around.paths.view_mut(by).blocks += around.now.since(self.since);
        }
        around.notes.add(around.now, || NoteKind::Blocked { cause, by });
        (self.cause, self.by, self.since) = (cause, by, around.now);
    }

    /// Adds the time up to now to the current cause.
    fn charge(&self, now: Time, statistics: &mut Statistics) {
        let passed = now.since(self.since);
        match self.cause {
            Some(Blocked::PeerWindow) => statistics.blocked_peer_window += passed,
            Some(Blocked::SendBuffer) => statistics.blocked_send_buffer += passed,
            Some(Blocked::Window) => statistics.blocked_window += passed,
            Some(Blocked::Turn) => statistics.blocked_turn += passed,
            None => {}
        }
    }
}

impl Sender {
    /// The statistics as if the current cause ended now.
    pub(crate) fn charged(&self, now: Time, mut statistics: Statistics) -> Statistics {
        self.blocked.charge(now, &mut statistics);
        statistics
    }

    /// The path whose lowest outstanding chunk keeps a buffer full now, and for how long.
    pub(crate) fn blocking(&self, now: Time) -> Option<(PathId, Duration)> {
        self.blocked.by.map(|path| (path, now.since(self.blocked.since)))
    }

    /// The association has ended: nothing waits any more.
    pub(crate) fn stop_clock(&mut self, around: &mut SendContext<'_>) {
        self.blocked.set(None, None, around);
        self.probe_timer = Time::NEVER;
    }

    /// Records what keeps the next new chunk waiting after the last packet that may leave has left.
    pub(super) fn settle_blocked(&mut self, around: &mut SendContext<'_>) {
        let cause = match self.queue.is_empty() {
            true => self.refused.then_some(Blocked::SendBuffer),
            false if !self.is_open() => Some(Blocked::Turn),
            false => self.blocked.found,
        };
        let buffer = matches!(cause, Some(Blocked::PeerWindow | Blocked::SendBuffer));
        let by = || self.outstanding.first_path().unwrap_or(self.in_use);
        let by = buffer.then(by);
        self.blocked.set(cause, by, around);
    }

    /// Whether the next message must wait because of its SSN: as many ordered messages of its stream are outstanding as
    /// SSNs can tell apart.
    //= rfc9260#section-6.1
    #[inline(always)]
    pub(super) fn lacks_ssn(&self) -> bool {
        self.outstanding.len() >= MOST_OF_A_STREAM && self.repeats_ssn()
    }

    /// Whether the SSN of the next message would repeat one that is outstanding. Each of that many messages has a chunk
    /// at least, so the search costs no more than the chunks outstanding beyond [`MOST_OF_A_STREAM`].
    #[cold]
    fn repeats_ssn(&self) -> bool {
        let Some((stream, next)) = self.queue.next_of_stream() else { return false };
        let lowest = self.outstanding.lowest_ssn(stream, MOST_OF_A_STREAM);
        lowest.is_some_and(|lowest| usize::from(next.distance_from(lowest)) >= MOST_OF_A_STREAM)
    }

    /// Sets the probe timer when the window is found closed with nothing in flight. Stops the timer when the window
    /// opens.
    //= rfc9260#section-6.1
    pub(super) fn watch_closed_window(&mut self, around: &mut SendContext<'_>) {
        let closed = self.blocked.cause == Some(Blocked::PeerWindow) && self.outstanding.is_empty();
        if !closed || !self.probes_later(around.config) {
            self.probe_timer = Time::NEVER;
        } else if self.probe_timer == Time::NEVER {
            let rto: Duration = around.paths.view(self.in_use).rto;
            self.probe_timer = around.now + rto;
        }
    }

    /// A closed window admits one chunk while nothing is in flight: at once, or when the probe timer has expired.
    //= rfc9260#section-6.1
    pub(super) fn may_probe(&self, config: &Config) -> bool {
        let allowed = if self.probes_later(config) {
            self.rights.granted() == Some(Why::WindowProbe)
        } else {
            self.rights.may_send()
        };
        allowed && self.outstanding.is_empty()
    }

    /// The chunk that a closed window admits was sent.
    pub(super) fn probe_sent(&mut self, around: &mut SendContext<'_>) {
        self.probe_timer = Time::NEVER;
        self.probing = true;
        self.heard_since_probe = false;
        around.statistics.probes += 1;
    }

    fn probes_later(&self, config: &Config) -> bool {
        config.rules.window_probe == WindowProbe::AfterRto
    }
}
