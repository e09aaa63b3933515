//! `lia`, linked increases (RFC 6356 §3): a window grows by min(α·a·u/Σw, a·u/w) for `a` acknowledged bytes,
//! α = Σw · max(w/rtt²) / (Σ w/rtt)².

use super::{Coupling, Measured, half, make};
use crate::Config;
use crate::policy::window::{MakeWindow, Sibling};
use crate::policy::{PolicyError, PolicySpec};

pub(super) const COUPLING: Coupling = Coupling { growth, kept: half };

pub(in crate::policy) fn lia(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    make(COUPLING, spec, config)
}

//= rfc6356#section-3
fn growth(own: &Measured, all: &[Sibling]) -> f64 {
    let total: f64 = Measured::all(all).map(|path| path.window).sum();
    let rates = Measured::rates(all);
    let best = Measured::all(all).map(|path| path.rate() / path.rtt).fold(0.0, f64::max);
    let alpha = total * best / (rates * rates);
    (alpha / total).min(1.0 / own.window)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{growth, near, own, path};
    use super::COUPLING;

    /// 30,000 B at 100 ms and 10,000 B at 50 ms: Σw/rtt = 500,000 B/s, the best w/rtt² is 4·10⁶ B/s² (the second).
    //= rfc6356#section-3
    #[test]
    fn unequal_paths() {
        let both = [own(path(30_000, 100)), path(10_000, 50)];
        near(growth(COUPLING, &both), 4e6 / 2.5e11);
    }

    #[test]
    fn it_never_grows_faster_than_a_window_alone() {
        let both = [own(path(1_000_000, 10)), path(3000, 1)];
        assert!(growth(COUPLING, &both) <= 1.0 / 1_000_000.0);
    }
}
