//! T3-rtx when a chunk is sent, and after a SACK.

use super::{Path, PathId, PathView, Paths, SackResult, Timer};
use crate::rules::T3Restart;
use crate::{Time, Tsn};

impl Paths {
    /// Restarts or stops T3-rtx of every path after a SACK, and with it the timer of tail loss probes.
    //= rfc9260#section-6.3.2
    pub(crate) fn restart_t3(&mut self, now: Time) {
        for id in self.ids() {
            let tally = self.get(id).tally;
            self.restart_t3_of(id, &tally, now);
        }
    }

    /// As `restart_t3`, for the paths beside the one that a plain SACK tells of. Where marked chunks count as in
    /// flight, T3-rtx of such a path has expired and does not run, although the path holds chunks: it starts again. Or
    /// it runs although the path holds none: it stops.
    #[inline(always)]
    pub(crate) fn settle_t3_beside(&mut self, told: PathId, now: Time) {
        let unsettled = |(view, path): (&PathView, &Path)| {
            view.id != told
                && (view.marked > 0 || (view.flight == 0 && path.timers[Timer::T3] != Time::NEVER))
        };
        if self.counts_marked() && self.views.iter().zip(&self.rest).any(unsettled) {
            self.settle_all_t3_beside(told, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_all_t3_beside(&mut self, told: PathId, now: Time) {
        for id in self.ids().filter(|id| *id != told) {
            self.restart_t3_of(id, &SackResult::default(), now);
        }
    }

    /// As `restart_t3`, for one path, of which the SACK says this.
    #[inline(always)]
    pub(crate) fn restart_t3_of(&mut self, id: PathId, tally: &SackResult, now: Time) {
        let (rule, held) = (self.t3_restart(), self.holds_t3(id));
        let (view, path) = self.both(id);
        if !held && !tally.passed && tally.gap == 0 && path.timers[Timer::T3] == Time::NEVER {
            // Nothing is in flight here, and the SACK says nothing about it.
            return;
        }
        let restart = tally.earliest
            || match rule {
                T3Restart::Earliest => false,
                T3Restart::AnyCumulative => tally.passed,
                T3Restart::ExpectedPoint => tally.passed_point,
            };
        let newly = tally.cumulative + tally.gap > 0 || tally.passed;
        if !held {
            path.timers.set(Timer::T3, Time::NEVER);
        } else if restart || path.timers[Timer::T3] == Time::NEVER {
            path.timers.set(Timer::T3, now + view.rto);
        }
        if newly {
            self.set_tail(id, now);
        }
    }

    /// A chunk was sent on this path: sets timers by §6.3.2 R1 and §6.1.
    #[inline(always)]
    pub(crate) fn chunk_sent(&mut self, id: PathId, tsn: Tsn, now: Time, new: bool) {
        let (view, path) = self.both(id);
        let expiry = now + view.rto;
        let lowest = path.earliest.is_none_or(|earliest| tsn.before(earliest) || tsn == earliest);
        if lowest {
            path.earliest = Some(tsn);
        }
        // A path without chunks has no T3-rtx, unless it goes on by the rule `t3_resent`.
        if (lowest && !new) || path.timers[Timer::T3] == Time::NEVER {
            path.timers.set(Timer::T3, expiry);
        }
        path.timers.set(Timer::Idle, expiry);
        path.idle_rtos = 0;
        if new {
            path.health.used = now;
            if path.timed.is_none() {
                path.timed = Some((tsn, now));
            }
        }
        self.set_tail(id, now);
    }

    /// A marked chunk of `size` bytes was sent again on this path.
    //= rfc9260#section-7.2.4
    pub(crate) fn chunk_resent(&mut self, id: PathId, tsn: Tsn, size: u64, now: Time) {
        let goes_on = self.t3_goes_on(id, tsn, size);
        let path = self.get_mut(id);
        let before = path.timers[Timer::T3];
        self.chunk_sent(id, tsn, now, false);
        if goes_on && before != Time::NEVER {
            self.get_mut(id).timers.set(Timer::T3, before);
        }
    }

    /// Whether T3-rtx, if it runs, goes on when this chunk is sent again (`t3_resent`): it is the earliest of its path,
    /// and alone in flight.
    fn t3_goes_on(&self, id: PathId, tsn: Tsn, size: u64) -> bool {
        let alone = self.get(id).earliest == Some(tsn) && self.view(id).flight <= size;
        alone && !self.restarts_t3_when_resent()
    }
}
