//! T3-rtx after a SACK.

use super::{Paths, Timer};
use crate::Time;
use crate::rules::T3Restart;

impl Paths {
    /// Restarts or stops T3-rtx of every path after a SACK, and with it the timer of tail loss probes.
    //= rfc9260#section-6.3.2
    pub(crate) fn restart_t3(&mut self, now: Time) {
        let rule = self.t3_restart();
        for id in self.ids() {
            let held = self.holds_t3(id);
            let (view, path) = self.both(id);
            let tally = &path.tally;
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
    }
}
