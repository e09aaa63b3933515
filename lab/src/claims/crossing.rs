//! Crossings: at which value of a key the order of two runs changes.

use rayon::prelude::*;

use super::text::Unit;
use crate::grid::Variation;

/// What is sought.
#[derive(Clone, PartialEq, Debug)]
pub struct Search {
    /// Which measure is compared, by its number.
    pub measure: usize,
    /// Under which two edits.
    pub over: Variation,
    /// The key whose value is sought.
    pub key: String,
    /// The unit of that value.
    pub unit: Unit,
    /// Where the search begins, in the smallest unit of its kind.
    pub from: u64,
    /// Where it ends.
    pub to: u64,
    /// How near, relatively, the two ends of the bisection come to each other.
    pub precision: f64,
    /// At how many values the order is looked at first.
    pub points: u32,
}

/// What was found.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// Where the order changes for the last time, in the key's unit.
    pub(super) crossing: Option<f64>,
    /// How often it changes between the values looked at first.
    pub(super) changes: usize,
}

impl Search {
    /// The edits of both sides of the comparison at a value of the key, in its smallest unit.
    pub(super) fn sides(&self, value: u64) -> [Vec<String>; 2] {
        let key = format!("{}={}", self.key, self.unit.write(value));
        let side = |i: usize| vec![key.clone(), format!("{}={}", self.over.key, self.over.values[i])];
        [side(0), side(1)]
    }

    /// How many comparisons it takes at most.
    pub(super) fn steps(&self) -> usize {
        let gap = (self.to - self.from) as f64 / f64::from(self.points - 1);
        let halvings = libm::ceil(libm::log2(gap / (self.from.max(1) as f64 * self.precision)));
        self.points as usize + halvings.max(0.0) as usize
    }

    /// Looks where the order changes. `exceeds` compares at one value of the key, in the smallest unit: whether
    /// the measure is larger under the first edit; `None` if a run has no value.
    pub(super) fn run<E: Send>(
        &self,
        exceeds: &(impl Fn(u64) -> Result<Option<bool>, E> + Sync),
    ) -> Result<Found, E> {
        let last = u64::from(self.points - 1);
        let at = |i: u64| {
            self.from + ((u128::from(self.to - self.from) * u128::from(i)) / u128::from(last)) as u64
        };
        let looks: Vec<(u64, Option<bool>)> =
            (0..=last).into_par_iter().map(|i| Ok((at(i), exceeds(at(i))?))).collect::<Result<_, E>>()?;
        let changes: Vec<_> = looks
            .windows(2)
            .filter(|pair| matches!((pair[0].1, pair[1].1), (Some(a), Some(b)) if a != b))
            .collect();
        let Some([(low, below), (high, _)]) = changes.last() else {
            return Ok(Found { crossing: None, changes: 0 });
        };
        let (mut low, mut high) = (*low, *high);
        while high - low > 1 && (high - low) as f64 > self.precision * low as f64 {
            let middle = low + (high - low) / 2;
            match exceeds(middle)? {
                side if side == *below => low = middle,
                _ => high = middle,
            }
        }
        let crossing = self.unit.whole(low + (high - low) / 2);
        Ok(Found { crossing: Some(crossing), changes: changes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(points: u32) -> Search {
        let over = "k=a,b".parse().unwrap();
        let unit = Unit::Rate;
        Search { measure: 0, over, key: "k".into(), unit, from: 1_000, to: 9_000, precision: 0.001, points }
    }

    #[test]
    fn the_order_changes_where_it_does() {
        let found = search(2).run(&|value| Ok::<_, ()>(Some(value > 3_333))).unwrap();
        assert_eq!(found.changes, 1);
        assert!((found.crossing.unwrap() / 3_333.0 - 1.0).abs() < 0.001);
        let never = search(5).run(&|_| Ok::<_, ()>(Some(true))).unwrap();
        assert_eq!(never, Found { crossing: None, changes: 0 });
    }

    #[test]
    fn of_several_changes_the_last_is_bisected_and_all_are_counted() {
        let odd = |value: u64| Ok::<_, ()>(Some(value > 7_000 || (2_500..3_500).contains(&value)));
        let found = search(9).run(&odd).unwrap();
        assert_eq!(found.changes, 3);
        assert!((found.crossing.unwrap() / 7_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(search(2).run(&|_| Err::<Option<bool>, _>("no")), Err("no"));
    }
}
