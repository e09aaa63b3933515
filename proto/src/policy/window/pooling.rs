//! `rpv1` and `rpv2`, resource pooling (CMT/RP: Dreibholz, Becke, Adhari and Rathgeb 2011; version 2: Dreibholz 2012):
//! a path takes a share of what `standard` would, and a loss takes half of the window of all paths from its own.
//!
//! With `u` the unit, `c` a window, `s` a slow-start threshold and `rtt` a smoothed round-trip time, the share is
//!
//! - `rpv1`: s/Σs;
//! - `rpv2`: (c/rtt)/Σ(c/rtt).
//!
//! Each step of slow start and of congestion avoidance is the share of `standard`'s, a byte at least. A loss leaves
//! s = max(c − Σc/2, 4·u·share, u) and c = s, a timeout the same s and c = u. usrsctp computes both versions like this
//! (the thesis weighs Σc/2 of version 2 by round-trip times). A threshold that no loss has set yet, arbitrarily
//! high, counts as the path's window: usrsctp begins with the peer's window instead.

use std::sync::Arc;

use super::standard::Standard;
use super::{Acked, Congestion, Lost, MakeWindow, Sibling};
use crate::Config;
use crate::policy::{PolicyError, PolicySpec, no_settings};

/// The weight of a path in the pool.
type Weight = fn(&Sibling) -> Option<f64>;

#[derive(Clone, Debug)]
struct Pooled {
    weight: Weight,
    standard: Standard,
}

pub(in crate::policy) fn rpv1(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    make(by_threshold, spec, config)
}

pub(in crate::policy) fn rpv2(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    make(by_rate, spec, config)
}

fn make(weight: Weight, spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    no_settings(spec)?;
    let (rules, mechanisms) = (config.rules, config.mechanisms);
    Ok(Arc::new(move |start| Box::new(Pooled { weight, standard: Standard::new(rules, &mechanisms, start) })))
}

fn by_threshold(path: &Sibling) -> Option<f64> {
    let unset = path.ssthresh == u64::MAX;
    Some(if unset { path.window as f64 } else { path.ssthresh as f64 })
}

/// Bytes a second, once the round-trip time is known.
fn by_rate(path: &Sibling) -> Option<f64> {
    Some(path.window as f64 / path.srtt?.as_secs_f64().max(1e-9))
}

/// The window's share of the pool; all of it while the share is unknown.
fn share(weight: Weight, all: &[Sibling]) -> f64 {
    let total: f64 = all.iter().filter_map(weight).sum();
    let own = all.iter().find(|path| path.own).and_then(weight);
    own.map_or(1.0, |own| own / total)
}

impl Pooled {
    /// The threshold after a loss.
    fn threshold(&self, all: &[Sibling]) -> u64 {
        let Standard { window, unit, .. } = self.standard;
        let total: u64 = all.iter().map(|path| path.window).sum();
        let least = (4.0 * unit as f64 * share(self.weight, all)).ceil() as u64;
        window.saturating_sub(total.max(window) / 2).max(least).max(unit)
    }
}

impl Congestion for Pooled {
    fn window(&self) -> u64 {
        self.standard.window
    }

    fn ssthresh(&self) -> u64 {
        self.standard.ssthresh
    }

    fn acked(&mut self, acked: &Acked, all: &[Sibling]) {
        let share = share(self.weight, all);
        self.standard.step(acked, |bytes| ((bytes as f64 * share).ceil() as u64).max(1));
    }

    fn lost(&mut self, lost: &Lost, all: &[Sibling]) {
        self.standard.cut(lost.how, self.threshold(all));
    }

    fn undo(&mut self, window: u64, ssthresh: u64) {
        self.standard.undo(window, ssthresh);
    }

    fn restart(&mut self, most: u64) {
        self.standard.restart(most);
    }

    fn set_unit(&mut self, unit: u64) {
        self.standard.set_unit(unit);
    }

    fn reopen(&mut self, packets: u32) {
        self.standard.reopen(packets);
    }

    fn idle(&mut self, times: u32) -> bool {
        self.standard.idle(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::window::{Loss, Start};
    use crate::{Duration, Time};

    fn path(window: u64, ssthresh: u64, ms: u64) -> Sibling {
        let srtt = Some(Duration::from_millis(ms));
        Sibling { own: false, window, ssthresh, flight: window, srtt, loss_distance: 0 }
    }

    fn pooled(name: &str, window: u64, ssthresh: u64) -> Box<dyn Congestion> {
        let policies = crate::Policies::default();
        let make = policies.window(&PolicySpec::named(name), &Config::default()).expect("no settings");
        make(Start { unit: 1000, window, ssthresh })
    }

    fn acked(bytes: u64) -> Acked {
        Acked {
            now: Time::ZERO,
            cumulative: bytes,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before: u64::MAX,
            unacknowledged_before: u64::MAX,
            flight: 1,
            rtt: None,
        }
    }

    fn lost(how: Loss) -> Lost {
        Lost { now: Time::ZERO, how, outstanding: 0 }
    }

    /// 30,000 B (threshold 20,000 B, 100 ms) beside 20,000 B (threshold 60,000 B, 200 ms): the shares are 20/80 = 1/4
    /// and 300/400 = 3/4.
    fn both() -> [Sibling; 2] {
        [Sibling { own: true, ..path(30_000, 20_000, 100) }, path(20_000, 60_000, 200)]
    }

    #[test]
    fn congestion_avoidance_takes_its_share_of_a_unit_a_window() {
        for (name, grown) in [("rpv1", 250), ("rpv2", 750)] {
            let mut window = pooled(name, 30_000, 20_000);
            window.acked(&acked(29_000), &both());
            assert_eq!(window.window(), 30_000);
            window.acked(&acked(1000), &both());
            assert_eq!(window.window(), 30_000 + grown, "{name}");
        }
    }

    /// A step is at most a unit before it is shared; ⌈1000/4⌉ and ⌈3·333/4⌉.
    #[test]
    fn slow_start_takes_its_share() {
        for (name, bytes, grown) in [("rpv1", 1500, 250), ("rpv2", 333, 250), ("rpv2", 1500, 750)] {
            let mut window = pooled(name, 30_000, 40_000);
            window.acked(&acked(bytes), &both());
            assert_eq!(window.window(), 30_000 + grown, "{name}");
        }
    }

    /// Half of 50,000 B is taken from 30,000 B: 5000 B are left. Of 22,000 B beside the same, half of 42,000 B leaves
    /// 1000 B, below 4 units times the share.
    #[test]
    fn a_loss_takes_half_of_all_windows_down_to_a_share_of_four_units() {
        let mut window = pooled("rpv1", 30_000, 20_000);
        window.lost(&lost(Loss::Missing), &both());
        assert_eq!((window.window(), window.ssthresh()), (5000, 5000));
        let mut small = both();
        small[0].window = 22_000;
        // Rates of 220,000 and 100,000 B/s: ⌈4000 · 0.6875⌉.
        for (name, left) in [("rpv1", 1000), ("rpv2", 2750)] {
            let mut window = pooled(name, 22_000, 20_000);
            window.lost(&lost(Loss::Missing), &small);
            assert_eq!(window.window(), left, "{name}");
        }
    }

    #[test]
    fn a_timeout_leaves_a_unit() {
        let mut window = pooled("rpv2", 30_000, 20_000);
        window.lost(&lost(Loss::Timeout), &both());
        assert_eq!((window.window(), window.ssthresh()), (1000, 5000));
    }

    /// One path grows by a unit a window and loses half of it, or keeps four units.
    #[test]
    fn one_path_is_as_standard() {
        for name in ["rpv1", "rpv2"] {
            let alone = [Sibling { own: true, ..path(30_000, 20_000, 100) }];
            let mut window = pooled(name, 30_000, 20_000);
            window.acked(&acked(30_000), &alone);
            assert_eq!(window.window(), 31_000);
            window.lost(&lost(Loss::Missing), &alone);
            assert_eq!(window.window(), 15_500);
        }
    }

    /// While no loss has set the other path's threshold its window counts.
    #[test]
    fn thresholds_that_nothing_has_set() {
        let all = [Sibling { own: true, ..path(30_000, 20_000, 100) }, path(60_000, u64::MAX, 100)];
        let mut window = pooled("rpv1", 30_000, 20_000);
        window.acked(&acked(30_000), &all);
        assert_eq!(window.window(), 30_250);
    }
}
