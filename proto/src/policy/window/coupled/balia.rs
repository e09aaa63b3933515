//! `balia`, balanced linked adaptation (Peng, Walid, Hwang and Low 2016): a window grows by
//! a·u · (w/rtt²)/(Σx)² · (1+α)/2 · (4+α)/5 for `a` acknowledged bytes, x = w/rtt, α = max(x)/x; a loss takes
//! w/2 · min(α, 3/2).

use super::{Coupling, Measured, make};
use crate::Config;
use crate::policy::window::{MakeWindow, Sibling};
use crate::policy::{PolicyError, PolicySpec};

pub(super) const COUPLING: Coupling = Coupling { growth, kept };

pub(in crate::policy) fn balia(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    make(COUPLING, spec, config)
}

/// max(x)/x, x being this path's rate.
fn alpha(own: &Measured, all: &[Sibling]) -> f64 {
    Measured::all(all).map(|path| path.rate()).fold(own.rate(), f64::max) / own.rate()
}

fn growth(own: &Measured, all: &[Sibling]) -> f64 {
    let (rates, alpha) = (Measured::rates(all), alpha(own, all));
    own.rate() / own.rtt / (rates * rates) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

fn kept(own: &Measured, all: &[Sibling]) -> f64 {
    1.0 - alpha(own, all).min(1.5) / 2.0
}

#[cfg(test)]
mod tests {
    use super::super::tests::{growth, lost, near, own, path};
    use super::*;
    use crate::policy::window::{Loss, Start};

    /// 10,000 B at 50 ms beside 30,000 B at 100 ms: Σx = 500,000 B/s, w/rtt² = 4·10⁶ B/s², α = 1.5.
    #[test]
    fn unequal_paths() {
        let both = [own(path(10_000, 50)), path(30_000, 100)];
        near(alpha(&Measured::own(&both).expect("the first"), &both), 1.5);
        near(growth(COUPLING, &both), 4e6 / 2.5e11 * 1.25 * 1.1);
    }

    /// With α = 1.5 or more a loss takes three quarters of the window; the fastest path loses half.
    #[test]
    fn what_a_loss_takes() {
        let start = Start { unit: 1468, window: 100_000, ssthresh: 50_000 };
        let make = balia(&PolicySpec::named("balia"), &Config::default()).expect("no settings");
        for (other, left) in [(path(1, 1000), 50_000), (path(1_500_000, 500), 25_000)] {
            let mut window = make(start);
            window.lost(&lost(Loss::Missing), &[own(path(100_000, 50)), other]);
            assert_eq!(window.window(), left);
        }
    }
}
