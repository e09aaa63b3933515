//! Crossings: the value of a key at which the order of two runs changes.

use rayon::prelude::*;

use super::text::Unit;
use crate::grid::Variation;

/// The parameters of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Search {
    /// The index of the compared measure.
    pub measure: usize,
    /// The two edits.
    pub over: Variation,
    /// The key that varies.
    pub key: String,
    /// The unit of that key.
    pub unit: Unit,
    /// The beginning of the interval, in the smallest unit.
    pub from: u64,
    /// The end of the interval.
    pub to: u64,
    /// The relative distance of the two ends at which the bisection stops.
    pub precision: f64,
    /// The number of values at which the order is compared first.
    pub points: u32,
}

/// The result of a search.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// The value at which the order changes for the last time, in the key's unit.
    pub(super) crossing: Option<f64>,
    /// The number of changes of order among the values compared first.
    pub(super) changes: usize,
    /// The value of the key for which a run has no value of the measure, if it is not known for that reason whether and
    /// where the order changes.
    pub(super) unknown: Option<f64>,
}

impl Search {
    /// The edits of both sides of the comparison for a value of the key in the smallest unit.
    pub(super) fn sides(&self, value: u64) -> [Vec<String>; 2] {
        let key = format!("{}={}", self.key, self.unit.write(value));
        let side = |i: usize| vec![key.clone(), format!("{}={}", self.over.key, self.over.values[i])];
        [side(0), side(1)]
    }

    /// The largest number of comparisons.
    pub(super) fn steps(&self) -> usize {
        let gap = (self.to - self.from) as f64 / f64::from(self.points - 1);
        let halvings = libm::ceil(libm::log2(gap / (self.from.max(1) as f64 * self.precision)));
        self.points as usize + halvings.max(0.0) as usize
    }

    /// Searches for the change of order. `exceeds` compares at one value of the key, in the smallest unit, and returns
    /// whether the measure is larger under the first edit, or `None` if a run has no value.
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
            let unknown = looks.iter().find(|look| look.1.is_none()).map(|look| self.unit.whole(look.0));
            return Ok(Found { crossing: None, changes: 0, unknown });
        };
        let (mut low, mut high) = (*low, *high);
        while high - low > 1 && (high - low) as f64 > self.precision * low as f64 {
            let middle = low + (high - low) / 2;
            match exceeds(middle)? {
                None => {
                    let unknown = Some(self.unit.whole(middle));
                    return Ok(Found { crossing: None, changes: changes.len(), unknown });
                }
                side if side == *below => low = middle,
                _ => high = middle,
            }
        }
        let crossing = self.unit.whole(low + (high - low) / 2);
        Ok(Found { crossing: Some(crossing), changes: changes.len(), unknown: None })
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
        assert_eq!(never, Found { crossing: None, changes: 0, unknown: None });
    }

    #[test]
    fn of_several_changes_the_last_is_bisected_and_all_are_counted() {
        let odd = |value: u64| Ok::<_, ()>(Some(value > 7_000 || (2_500..3_500).contains(&value)));
        let found = search(9).run(&odd).unwrap();
        assert_eq!(found.changes, 3);
        assert!((found.crossing.unwrap() / 7_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn a_run_without_a_value_is_not_a_change_of_order() {
        let gap = |value: u64| Ok::<_, ()>((!(3_000..=6_000).contains(&value)).then_some(value > 3_333));
        let found = search(2).run(&gap).unwrap();
        assert_eq!((found.crossing, found.unknown), (None, Some(5_000.0)));
        let nothing = search(3).run(&|value| Ok::<_, ()>((value < 6_000).then_some(true))).unwrap();
        assert_eq!(nothing, Found { crossing: None, changes: 0, unknown: Some(9_000.0) });
    }

    #[test]
    fn an_error_ends_the_search() {
        assert_eq!(search(2).run(&|_| Err::<Option<bool>, _>("no")), Err("no"));
    }
}
