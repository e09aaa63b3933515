//! Coupled windows: all paths together are no more aggressive than one, where they share a bottleneck.
//!
//! In slow start, after a timeout and while idle each window is `standard`. What a coupling changes is the growth in
//! congestion avoidance and, for some, what a loss leaves. One file a coupling; `u` is the unit of growth, `w` a
//! window in bytes, `rtt` a smoothed round-trip time in seconds. With one path each grows as `standard` does: by one
//! unit a window.

pub(in crate::policy) mod balia;
pub(in crate::policy) mod lia;
pub(in crate::policy) mod olia;

use std::sync::Arc;

use super::standard::Standard;
use super::{Acked, Congestion, Loss, Lost, MakeWindow, Sibling};
use crate::Config;
use crate::policy::{PolicyError, PolicySpec, no_settings};

/// How a coupling changes a window in congestion avoidance.
#[derive(Copy, Clone, Debug)]
struct Coupling {
    /// Growth in units per acknowledged byte; below zero it shrinks.
    growth: fn(&Measured, &[Sibling]) -> f64,
    /// The part of the window that a fast retransmission leaves.
    kept: fn(&Measured, &[Sibling]) -> f64,
}

/// A path whose round-trip time is known.
#[derive(Copy, Clone)]
struct Measured {
    /// The window, in bytes.
    window: f64,
    /// The smoothed round-trip time, in seconds.
    rtt: f64,
    /// Bytes delivered from one loss to the next.
    loss_distance: f64,
}

impl Measured {
    /// Bytes a second.
    fn rate(&self) -> f64 {
        self.window / self.rtt
    }

    fn of(path: &Sibling) -> Option<Measured> {
        let rtt = path.srtt?.as_secs_f64().max(1e-9);
        Some(Measured { window: path.window as f64, rtt, loss_distance: path.loss_distance as f64 })
    }

    fn own(all: &[Sibling]) -> Option<Measured> {
        all.iter().find(|path| path.own).and_then(Measured::of)
    }

    /// Those of `all` whose round-trip time is known.
    fn all(all: &[Sibling]) -> impl Iterator<Item = Measured> + Clone + '_ {
        all.iter().filter_map(Measured::of)
    }

    /// The sum of all rates, in bytes a second.
    fn rates(all: &[Sibling]) -> f64 {
        Measured::all(all).map(|path| path.rate()).sum()
    }
}

#[derive(Clone, Debug)]
struct Coupled {
    coupling: Coupling,
    standard: Standard,
    distance: LossDistance,
    /// Growth of less than a byte.
    fraction: f64,
}

/// Bytes delivered from one loss to the next: the more of those since the last loss and those between the last two
/// (Khalili and others 2012).
#[derive(Copy, Clone, Default, Debug)]
struct LossDistance {
    since: u64,
    between: u64,
}

impl LossDistance {
    fn acked(&mut self, bytes: u64) {
        self.since += bytes;
    }

    /// A loss with nothing delivered since the one before is the same.
    fn lost(&mut self) {
        if self.since > 0 {
            *self = LossDistance { since: 0, between: self.since };
        }
    }

    fn bytes(self) -> u64 {
        self.since.max(self.between)
    }
}

fn make(coupling: Coupling, spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    no_settings(spec)?;
    let (rules, mechanisms) = (config.rules, config.mechanisms);
    Ok(Arc::new(move |start| {
        let standard = Standard::new(rules, &mechanisms, start);
        Box::new(Coupled { coupling, standard, distance: LossDistance::default(), fraction: 0.0 })
    }))
}

impl Coupled {
    /// Grows in congestion avoidance for this number of acknowledged bytes.
    fn grow(&mut self, bytes: u64, all: &[Sibling]) {
        let alone = 1.0 / self.standard.window as f64;
        let growth = Measured::own(all).map_or(alone, |own| (self.coupling.growth)(&own, all));
        let unit = self.standard.unit as f64;
        let grown = (growth * bytes as f64 * unit + self.fraction).min(bytes as f64);
        let whole = grown.floor();
        self.fraction = grown - whole;
        self.standard.window =
            self.standard.window.saturating_add_signed(whole as i64).max(self.standard.unit);
    }
}

impl Congestion for Coupled {
    fn window(&self) -> u64 {
        self.standard.window
    }

    fn ssthresh(&self) -> u64 {
        self.standard.ssthresh
    }

    fn loss_distance(&self) -> u64 {
        self.distance.bytes()
    }

    fn acked(&mut self, acked: &Acked, all: &[Sibling]) {
        self.distance.acked(acked.all());
        if self.standard.is_in_slow_start() {
            self.standard.acked(acked, all);
        } else if self.standard.may_grow(acked) {
            self.grow(acked.all(), all);
        }
    }

    fn lost(&mut self, lost: &Lost, all: &[Sibling]) {
        self.distance.lost();
        match (lost.how, Measured::own(all)) {
            (Loss::Missing, Some(own)) => {
                let left = self.standard.window as f64 * (self.coupling.kept)(&own, all);
                self.standard.cut(lost.how, (left as u64).max(self.standard.floor()));
            }
            _ => self.standard.lost(lost, all),
        }
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

/// A fast retransmission leaves half of the window, as without a coupling.
fn half(_: &Measured, _: &[Sibling]) -> f64 {
    0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duration, Time};

    /// A path with this window in bytes and this SRTT in milliseconds. The first of a list is the window's own.
    pub(super) fn path(window: u64, ms: u64) -> Sibling {
        let srtt = Some(Duration::from_millis(ms));
        Sibling { own: false, window, ssthresh: 0, flight: window, srtt, loss_distance: 0 }
    }

    pub(super) fn own(path: Sibling) -> Sibling {
        Sibling { own: true, ..path }
    }

    #[track_caller]
    pub(super) fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-9 * b.abs(), "{a} is not {b}");
    }

    /// The growth of the first path.
    pub(super) fn growth(coupling: Coupling, all: &[Sibling]) -> f64 {
        (coupling.growth)(&Measured::own(all).expect("one is the window's own"), all)
    }

    const COUPLINGS: [Coupling; 3] = [lia::COUPLING, balia::COUPLING, olia::COUPLING];

    /// Alone, each grows by one unit a window and keeps half of it.
    #[test]
    fn one_path_is_as_standard() {
        let alone = [own(path(20_000, 100))];
        for coupling in COUPLINGS {
            near(growth(coupling, &alone), 1.0 / 20_000.0);
            near((coupling.kept)(&Measured::own(&alone).expect("it is known"), &alone), 0.5);
        }
    }

    /// Two equal paths: each grows by a quarter of what it would alone, so that for both together Σw = √(2/p) units,
    /// as for one.
    #[test]
    fn two_equal_paths_grow_as_one() {
        let both = [own(path(20_000, 100)), path(20_000, 100)];
        for coupling in COUPLINGS {
            near(growth(coupling, &both), 1.0 / 80_000.0);
        }
    }

    pub(super) fn acked(bytes: u64) -> Acked {
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

    pub(super) fn lost(how: Loss) -> Lost {
        Lost { now: Time::ZERO, how, outstanding: 0 }
    }

    /// A window of 20,000 B in congestion avoidance that grows by a quarter of 1,000 B a window: after 8,000 B
    /// acknowledged by 100 B, whose steps are 1.25 B, it has grown by 100 B, no part of a byte lost.
    #[test]
    fn growth_below_a_byte_is_kept() {
        let start = super::super::Start { unit: 1000, window: 20_000, ssthresh: 10_000 };
        let make = make(lia::COUPLING, &PolicySpec::named("lia"), &Config::default()).expect("no settings");
        let mut window = make(start);
        let both = [own(path(20_000, 100)), path(20_000, 100)];
        for _ in 0..80 {
            window.acked(&acked(100), &both);
        }
        assert_eq!(window.window(), 20_100);
    }

    /// The distance is the greater of the present one and the last; timeouts in a row count once.
    #[test]
    fn distances_between_losses() {
        let mut distance = LossDistance::default();
        distance.acked(5000);
        assert_eq!(distance.bytes(), 5000);
        distance.lost();
        distance.acked(2000);
        assert_eq!(distance.bytes(), 5000, "the last distance is longer");
        distance.lost();
        assert_eq!(distance.bytes(), 2000);
        distance.lost();
        assert_eq!(distance.bytes(), 2000, "the same loss");
    }
}
