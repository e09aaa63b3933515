//! `ecf`, earliest completion first (Lim, Nahum, Towsley and Gibbens 2017): new data takes the path with the lowest
//! smoothed round-trip time while it has room. When it has none, the fastest other path `s` with room carries the
//! data, unless waiting for the first path `f` ends sooner. With `k` bytes waiting and δ the greater variation of
//! both round-trip times, data waits if
//!
//! - (1 + k/cwnd_f) · rtt_f < (1 + β·waiting) · (rtt_s + δ), β = 1/4, and
//! - k/cwnd_s · rtt_s ≥ 2·rtt_f + δ.
//!
//! `waiting` is 1 from then on until the first condition fails, so that the choice does not swing.

use std::cell::Cell;

use super::open::{fallback, fastest};
use super::{Ask, Choice, Route};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

/// β: while data waits, waiting may take this share longer before the slow path is used.
const BETA: f64 = 0.25;

#[derive(Clone, Default, Debug)]
struct Ecf {
    /// Whether data waited at the last choice. The same question gets the same answer: an answer moves the bound
    /// away from itself.
    waiting: Cell<bool>,
}

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Ecf::default()))
}

impl Ecf {
    /// Whether `queued` bytes are delivered sooner if they wait for `fast` than if `slow` carries some now.
    fn waits(&self, queued: u64, fast: &PathView, slow: &PathView) -> bool {
        let (Some(rtt_f), Some(rtt_s)) = (fast.srtt, slow.srtt) else { return false };
        let (rtt_f, rtt_s) = (rtt_f.as_secs_f64(), rtt_s.as_secs_f64());
        let delta = fast.rttvar.max(slow.rttvar).as_secs_f64();
        let rounds = |path: &PathView| queued as f64 / path.window.max(1) as f64;
        let patience = if self.waiting.get() { 1.0 + BETA } else { 1.0 };
        if (1.0 + rounds(fast)) * rtt_f >= patience * (rtt_s + delta) {
            self.waiting.set(false);
            return false;
        }
        let waits = rounds(slow) * rtt_s >= 2.0 * rtt_f + delta;
        self.waiting.set(self.waiting.get() || waits);
        waits
    }
}

impl Route for Ecf {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let active = || paths.iter().filter(|path| path.carries());
        let open = fastest(ask.tie, active().filter(|path| path.room > 0));
        match (fastest(ask.tie, active()), open) {
            (None, _) => fallback(paths),
            (Some(fast), None) => Choice::Send(fast.id),
            (Some(fast), Some(_)) if fast.room > 0 => Choice::Send(fast.id),
            (Some(fast), Some(slow)) if self.waits(ask.queued, fast, slow) => Choice::Wait,
            (Some(_), Some(slow)) => Choice::Send(slow.id),
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Duration;
    use crate::policy::route::tests::{ask, path};

    /// 10 ms and a window of 10,000 B, full; 100 ms, a window of 5000 B, open. No variation.
    fn paths() -> [PathView; 2] {
        let ms = Duration::from_millis;
        [
            PathView { srtt: Some(ms(10)), window: 10_000, flight: 10_000, room: 0, ..path(0) },
            PathView { srtt: Some(ms(100)), window: 5000, room: 5000, ..path(1) },
        ]
    }

    fn choice(route: &Ecf, queued: u64, paths: &[PathView]) -> Choice {
        let first = route.choose(&Ask { queued, ..ask() }, paths);
        assert_eq!(first, route.choose(&Ask { queued, ..ask() }, paths), "it may be asked twice");
        first
    }

    #[test]
    fn the_fastest_path_while_it_has_room() {
        let [fast, slow] = paths();
        let open = [slow, PathView { room: 1, ..fast }];
        assert_eq!(choice(&Ecf::default(), 1, &open), Choice::Send(open[1].id));
    }

    /// Waiting takes (1 + 50,000/10,000) · 10 ms = 60 ms, the slow path 100 ms, and has 50,000/5000 · 100 ms ≥ 20 ms to
    /// carry: wait. With 500 B waiting it would carry 10 ms of work: send.
    #[test]
    fn data_waits_when_the_fast_path_delivers_it_sooner() {
        assert_eq!(choice(&Ecf::default(), 50_000, &paths()), Choice::Wait);
        assert_eq!(choice(&Ecf::default(), 500, &paths()), Choice::Send(paths()[1].id));
    }

    /// 95,000 B: 105 ms ≥ 100 ms, so the slow path helps; but below 125 ms when data waits already.
    #[test]
    fn waiting_goes_on_by_a_quarter() {
        let (fresh, route, slow) = (Ecf::default(), Ecf::default(), paths()[1].id);
        assert_eq!(choice(&fresh, 95_000, &paths()), Choice::Send(slow));
        assert_eq!(choice(&route, 50_000, &paths()), Choice::Wait);
        assert_eq!(choice(&route, 95_000, &paths()), Choice::Wait);
        assert_eq!(choice(&route, 115_000, &paths()), Choice::Send(slow), "(1 + 11.5) · 10 ms ≥ 125 ms");
        assert_eq!(choice(&route, 95_000, &paths()), Choice::Send(slow), "it no longer waits");
    }

    /// With a variation of 10 ms waiting may take 110 ms.
    #[test]
    fn variation_makes_the_slow_path_slower() {
        let [fast, slow] = paths();
        let varied = [fast, PathView { rttvar: Duration::from_millis(10), ..slow }];
        assert_eq!(choice(&Ecf::default(), 95_000, &varied), Choice::Wait);
    }

    #[test]
    fn a_path_not_measured_yet_is_used() {
        let [fast, slow] = paths();
        let new = [fast, PathView { srtt: None, ..slow }];
        assert_eq!(choice(&Ecf::default(), 50_000, &new), Choice::Send(new[1].id));
    }
}
