//! `lia` and `balia`: the windows of all paths together are no more aggressive than one, where they share a bottleneck.
//!
//! In slow start, after a timeout and while idle each window is `standard`. In congestion avoidance it grows by
//!
//! - `lia` (RFC 6356 §3): min(α·a·u/Σw, a·u/w) for `a` acknowledged bytes, α = Σw · max(w/rtt²) / (Σ w/rtt)²;
//! - `balia` (Peng, Walid, Hwang and Low 2016): a·u · (w/rtt²)/(Σx)² · (1+α)/2 · (4+α)/5, x = w/rtt, α = max(x)/x, and a
//!   loss takes w/2 · min(α, 3/2),
//!
//! `u` being the unit. With one path both grow as `standard` does: by one unit a window.

use super::standard::Standard;
use super::{Acked, Congestion, Loss, Lost, MakePath, Sibling};
use crate::policy::{PolicyError, PolicySpec, no_settings};
use crate::{Config, Duration};

#[derive(Copy, Clone, PartialEq, Eq)]
enum Coupling {
    Lia,
    Balia,
}

struct Coupled {
    coupling: Coupling,
    standard: Standard,
    /// Smoothed round-trip time of this path, in seconds, once measured.
    rtt: Option<f64>,
    /// Growth of less than a byte.
    fraction: f64,
}

pub(in crate::policy) fn lia(spec: &PolicySpec, config: &Config) -> Result<MakePath, PolicyError> {
    make(Coupling::Lia, spec, config)
}

pub(in crate::policy) fn balia(spec: &PolicySpec, config: &Config) -> Result<MakePath, PolicyError> {
    make(Coupling::Balia, spec, config)
}

fn make(coupling: Coupling, spec: &PolicySpec, config: &Config) -> Result<MakePath, PolicyError> {
    no_settings(spec)?;
    let rules = config.rules;
    Ok(Box::new(move |start| {
        Box::new(Coupled { coupling, standard: Standard::new(rules, start), rtt: None, fraction: 0.0 })
    }))
}

/// Windows and round-trip times (seconds) of the paths whose round-trip time is known.
fn measured(all: &[Sibling]) -> impl Iterator<Item = (f64, f64)> + '_ {
    let rtt = |srtt: Duration| srtt.as_secs_f64().max(1e-9);
    all.iter().filter_map(move |path| Some((path.window as f64, rtt(path.srtt?))))
}

/// Growth of `lia` per acknowledged byte and unit: at most that of a window alone.
fn lia_growth(window: f64, all: &[Sibling]) -> f64 {
    let total: f64 = measured(all).map(|(w, _)| w).sum();
    let rates: f64 = measured(all).map(|(w, rtt)| w / rtt).sum();
    let best = measured(all).map(|(w, rtt)| w / (rtt * rtt)).fold(0.0, f64::max);
    let alpha = total * best / (rates * rates);
    (alpha / total).min(1.0 / window)
}

/// max(x)/x of `balia`, x being this path's rate.
fn balia_alpha(window: f64, rtt: f64, all: &[Sibling]) -> f64 {
    let rate = window / rtt;
    measured(all).map(|(w, rtt)| w / rtt).fold(rate, f64::max) / rate
}

fn balia_growth(window: f64, rtt: f64, all: &[Sibling]) -> f64 {
    let rates: f64 = measured(all).map(|(w, rtt)| w / rtt).sum();
    let alpha = balia_alpha(window, rtt, all);
    window / (rtt * rtt) / (rates * rates) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

impl Coupled {
    /// Grows in congestion avoidance for so many acknowledged bytes.
    fn grow(&mut self, bytes: u64, all: &[Sibling]) {
        let window = self.standard.window as f64;
        let growth = match (self.coupling, self.rtt) {
            (_, None) => 1.0 / window,
            (Coupling::Lia, _) if measured(all).next().is_none() => 1.0 / window,
            (Coupling::Lia, Some(_)) => lia_growth(window, all),
            (Coupling::Balia, Some(_)) if measured(all).next().is_none() => 1.0 / window,
            (Coupling::Balia, Some(rtt)) => balia_growth(window, rtt, all),
        };
        let unit = self.standard.unit as f64;
        let grown = (growth * bytes as f64 * unit + self.fraction).min(bytes as f64);
        self.standard.window += grown as u64;
        self.fraction = grown.fract();
    }
}

impl Congestion for Coupled {
    fn window(&self) -> u64 {
        self.standard.window
    }

    fn ssthresh(&self) -> u64 {
        self.standard.ssthresh
    }

    fn acked(&mut self, acked: &Acked, all: &[Sibling]) {
        if let Some(sample) = acked.rtt.map(|rtt| rtt.as_secs_f64().max(1e-9)) {
            self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt + (sample - rtt) / 8.0));
        }
        if self.standard.window <= self.standard.ssthresh {
            self.standard.acked(acked, all);
        } else if self.standard.may_grow(acked) {
            self.grow(acked.all(), all);
        }
    }

    fn lost(&mut self, lost: &Lost, all: &[Sibling]) {
        let window = self.standard.window;
        self.standard.lost(lost, all);
        if let (Coupling::Balia, Loss::Missing, Some(rtt)) = (self.coupling, lost.how, self.rtt) {
            let share = balia_alpha(window as f64, rtt, all).min(1.5) / 2.0;
            let left = window - (window as f64 * share) as u64;
            self.standard.ssthresh = left.max(self.standard.floor());
            self.standard.window = self.standard.ssthresh;
        }
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

    fn path(window: u64, ms: u64) -> Sibling {
        Sibling { window, ssthresh: 0, flight: window, srtt: Some(Duration::from_millis(ms)) }
    }

    #[track_caller]
    fn near(a: f64, b: f64) {
        assert!((a / b - 1.0).abs() < 1e-9, "{a} is not {b}");
    }

    /// Alone, each grows by one unit a window.
    #[test]
    fn one_path_grows_as_standard() {
        let alone = [path(20_000, 100)];
        near(lia_growth(20_000.0, &alone), 1.0 / 20_000.0);
        near(balia_growth(20_000.0, 0.1, &alone), 1.0 / 20_000.0);
    }

    /// Two equal paths, α = 1/2: each grows by a quarter of what it would alone, so that for both together
    /// Σw = √(2/p) units, as for one.
    #[test]
    fn two_equal_paths_grow_as_one() {
        let both = [path(20_000, 100), path(20_000, 100)];
        near(lia_growth(20_000.0, &both), 1.0 / 80_000.0);
        near(balia_growth(20_000.0, 0.1, &both), 1.0 / 80_000.0);
    }

    /// 30,000 B at 100 ms and 10,000 B at 50 ms: Σx = 500,000 B/s, the best w/rtt² is 4·10⁶ B/s² (the second).
    #[test]
    fn unequal_paths() {
        let both = [path(30_000, 100), path(10_000, 50)];
        near(lia_growth(30_000.0, &both), 4e6 / 2.5e11);
        near(balia_alpha(10_000.0, 0.05, &both), 1.5);
        near(balia_growth(10_000.0, 0.05, &both), 4e6 / 2.5e11 * 1.25 * 1.1);
    }

    #[test]
    fn lia_never_grows_faster_than_a_window_alone() {
        let both = [path(1_000_000, 10), path(3_000, 1)];
        assert!(lia_growth(1_000_000.0, &both) <= 1.0 / 1_000_000.0);
    }

    /// With α = 1.5 a loss takes three quarters of the window; alone it takes half.
    #[test]
    fn what_a_loss_takes_of_balia() {
        let start = super::super::Start { unit: 1468, window: 100_000, ssthresh: 50_000 };
        let make = balia(&PolicySpec::named("balia"), &Config::default()).expect("no settings");
        let lost = Lost { now: crate::Time::ZERO, how: Loss::Missing, outstanding: 0 };
        for (other, left) in [(path(1, 1000), 50_000), (path(1_500_000, 500), 25_000)] {
            let mut window = make(start);
            let first = Acked {
                now: crate::Time::ZERO,
                cumulative: 0,
                gap: 0,
                gap_behind_point: 0,
                advanced: false,
                recovery: false,
                flight_before: 0,
                unacknowledged_before: 0,
                flight: 0,
                rtt: Some(Duration::from_millis(50)),
            };
            let all = [path(100_000, 50), other];
            window.acked(&first, &all);
            window.lost(&lost, &all);
            assert_eq!(window.window(), left);
        }
    }
}
