//! `olia`, opportunistic linked increases (Khalili, Gast, Popovic and Le Boudec 2012;
//! draft-khalili-mptcp-congestion-control): a window grows by a·u · ((w/rtt²)/(Σ w/rtt)² + α/w) for `a`
//! acknowledged bytes.
//!
//! α moves traffic to good paths with small windows. With `n` paths, B those with the largest l/rtt² (l: bytes
//! between losses; √l/rtt is what one connection would reach there) and M those with the largest window: a path of
//! B outside M has 1/(n·|B∖M|), a path of M has −1/(n·|M|), any other 0; all have 0 if B lies within M.
//! (§2 of the draft prints l²/rtt for the best paths, but means those of the highest rate, √l/rtt; the authors' module
//! for Linux compares l/rtt².)
//!
//! A loss halves the window, down to the least threshold of the transport, as in that module; §3 of the draft has one
//! segment instead while there are several paths.

use super::{Coupling, Measured, half, make};
use crate::Config;
use crate::policy::window::{MakeWindow, Sibling};
use crate::policy::{PolicyError, PolicySpec};

pub(super) const COUPLING: Coupling = Coupling { growth, kept: half };

pub(in crate::policy) fn olia(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    make(COUPLING, spec, config)
}

fn growth(own: &Measured, all: &[Sibling]) -> f64 {
    let rates = Measured::rates(all);
    own.rate() / own.rtt / (rates * rates) + alpha(own, all) / own.window
}

/// How good a path is: l/rtt².
fn quality(path: &Measured) -> f64 {
    path.loss_distance / (path.rtt * path.rtt)
}

fn alpha(own: &Measured, all: &[Sibling]) -> f64 {
    let largest = Measured::all(all).map(|path| path.window).fold(0.0, f64::max);
    let best = Measured::all(all).map(|path| quality(&path)).fold(0.0, f64::max);
    let is_largest = |path: &Measured| path.window >= largest;
    let is_collected = |path: &Measured| !is_largest(path) && quality(path) >= best;
    let count = |which: &dyn Fn(&Measured) -> bool| Measured::all(all).filter(which).count() as f64;
    let (paths, collected) = (count(&|_| true), count(&is_collected));
    match () {
        () if collected == 0.0 => 0.0,
        () if is_collected(own) => 1.0 / (paths * collected),
        () if is_largest(own) => -1.0 / (paths * count(&is_largest)),
        () => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{acked, growth, lost, near, own, path};
    use super::*;
    use crate::policy::window::{Loss, Start};

    fn with_distance(path: Sibling, loss_distance: u64) -> Sibling {
        Sibling { loss_distance, ..path }
    }

    /// Three paths of 100 ms: the third has the largest window, the first two lose least and equally often.
    /// Σ w/rtt = 10⁶ B/s; α = 1/6, 1/6 and −1/3.
    #[test]
    fn the_best_paths_gain_what_the_largest_gives_up() {
        let paths = [(20_000, 900_000), (30_000, 900_000), (50_000, 100_000)]
            .map(|(window, distance)| with_distance(path(window, 100), distance));
        let grown = |which: usize| {
            let mut all = paths;
            all[which].own = true;
            growth(COUPLING, &all)
        };
        near(grown(0), 2e6 / 1e12 + 1.0 / 6.0 / 20_000.0);
        near(grown(1), 3e6 / 1e12 + 1.0 / 6.0 / 30_000.0);
        near(grown(2), 5e6 / 1e12 - 1.0 / 3.0 / 50_000.0);
    }

    /// The round-trip time counts twice: 400,000 B at 200 ms are worth as much as 100,000 B at 100 ms.
    #[test]
    fn the_best_paths_are_those_where_one_connection_would_be_fastest() {
        let other = with_distance(path(30_000, 100), 100_000);
        for (distance, alpha) in [(399_000, 0.0), (401_000, 0.5)] {
            let both = [own(with_distance(path(20_000, 200), distance)), other];
            near(growth(COUPLING, &both), 20_000.0 / 0.04 / (400_000.0 * 400_000.0) + alpha / 20_000.0);
        }
    }

    /// The largest window shrinks while another path is better: 50,000 B and 2,000 B at 100 ms, α = −1/2. 10,000 B
    /// acknowledged change it by 1000 · 10,000 · (5·10⁶/520,000² − 1/100,000) B = +84.9 B; with 50,000 B beside
    /// 40,000 B by 1000 · 10,000 · (5·10⁶/900,000² − 1/100,000) B = −38.3 B.
    #[test]
    fn a_window_can_shrink() {
        let make = olia(&PolicySpec::named("olia"), &Config::default()).expect("no settings");
        for (other, left) in [(2000, 50_084), (40_000, 49_961)] {
            let mut window = make(Start { unit: 1000, window: 50_000, ssthresh: 10_000 });
            let both = [own(path(50_000, 100)), with_distance(path(other, 100), 1)];
            window.acked(&acked(10_000), &both);
            assert_eq!(window.window(), left);
        }
    }

    #[test]
    fn a_loss_halves_the_window_and_ends_a_distance() {
        let make = olia(&PolicySpec::named("olia"), &Config::default()).expect("no settings");
        let mut window = make(Start { unit: 1000, window: 50_000, ssthresh: 10_000 });
        window.acked(&acked(7000), &[]);
        window.lost(&lost(Loss::Missing), &[own(path(50_000, 100)), path(50_000, 100)]);
        assert_eq!((window.window(), window.loss_distance()), (25_070, 7000));
    }
}
