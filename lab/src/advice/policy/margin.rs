//! How much longer one policy takes than another with the same seeds, and whether these decide it.

use super::search::TOLERANCE;
use crate::statistics::{ratio_error, student_t};

/// How much longer a policy takes, as a part of the other's time, with its interval.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(super) struct Margin {
    /// The ratio of the mean times, less 1. A mean of the ratios of each seed would be larger than that: two policies
    /// that are equally fast would each seem slower than the other.
    pub(super) longer: f64,
    /// Half the width of the interval; 0 where nothing is random, infinite where one seed is all that is known.
    pub(super) half: f64,
}

impl Margin {
    /// How much longer `other` takes than `own`, by seed; `None` if a transfer was not complete.
    pub(super) fn of(own: &[f64], other: &[f64], chance: bool, level: f64) -> Option<Margin> {
        let longer = other.iter().sum::<f64>() / own.iter().sum::<f64>() - 1.0;
        let half = match ratio_error(other, own) {
            _ if !chance => 0.0,
            Some(error) => student_t(level, own.len() as u64 - 1) * error,
            None => f64::INFINITY,
        };
        (longer.is_finite() && !half.is_nan()).then_some(Margin { longer, half })
    }

    /// Whether one of the two is faster, or both take as long: the interval excludes 0, or includes nothing beyond the
    /// tolerance.
    pub(super) fn decides(&self) -> bool {
        self.longer.abs() > self.half || self.half == 0.0 || self.longer.abs() + self.half <= TOLERANCE
    }

    /// Whether the other takes longer by more than the tolerance, with all of the interval.
    pub(super) fn is_slower(&self) -> bool {
        self.longer - self.half > TOLERANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(own: &[f64], other: &[f64]) -> Margin {
        Margin::of(own, other, true, 0.95).expect("a margin")
    }

    /// Both have the same times, in another order. The mean of the quotients is 1.5, whichever comes first.
    #[test]
    fn policies_with_the_same_times_have_no_margin() {
        let (a, b) = ([1.0, 1.0, 1.0, 4.0], [1.0, 1.0, 4.0, 1.0]);
        for margin in [of(&a, &b), of(&b, &a)] {
            assert!(margin.longer.abs() < 1e-12 && !margin.decides() && !margin.is_slower(), "{margin:?}");
        }
    }

    #[test]
    fn seeds_decide_where_the_interval_excludes_0_or_stays_within_the_tolerance() {
        let slower = of(&[1.0, 1.1, 0.9], &[2.0, 2.1, 1.9]);
        assert!(slower.decides() && slower.is_slower(), "{slower:?}");
        let equal = of(&[1.0, 1.001, 0.999], &[1.001, 1.0, 0.999]);
        assert!(equal.decides() && !equal.is_slower(), "{equal:?}");
        let few = of(&[1.0, 1.5, 0.9], &[1.6, 1.0, 1.9]);
        assert!(!few.decides() && !few.is_slower(), "{few:?}");
        let one = of(&[1.0], &[2.0]);
        assert!(!one.decides() && !one.is_slower(), "one seed: {one:?}");
        let certain = Margin::of(&[1.0], &[2.0], false, 0.95).expect("a margin");
        assert!(certain.decides() && certain.is_slower(), "nothing is random: {certain:?}");
        assert_eq!(Margin::of(&[1.0], &[f64::INFINITY], true, 0.95), None);
    }
}
