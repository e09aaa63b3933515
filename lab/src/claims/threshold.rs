//! Thresholds: the value of one measure above which another measure is larger than in a second experiment. Example:
//! "Above which loss of the alternate path is retransmission on that path slower than on the same path?"
//!
//! Runs are grouped by the first measure, or by the points of the experiment. The group means are made ascending by
//! isotonic regression (pooling adjacent violators, weighted by the number of runs; R. E. Barlow et al., "Statistical
//! Inference under Order Restrictions", 1972). The threshold is the point at which the line through these means crosses
//! the mean of the other experiment. Its interval is the percentile interval of 1,000 resamplings of the runs within
//! their points (B. Efron, "Bootstrap Methods", 1979).

use super::Paper;
use super::claim::{experiment_of, measure};
use super::conditions::level;
use super::text::{self, Fields, Unit};
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::stream_seed;

use crate::statistics::{Summary, quantile};

/// The number of resamplings.
const REPLICATES: u64 = 1000;

/// The parameters of a threshold.
#[derive(Clone, PartialEq, Debug)]
pub struct Threshold {
    /// The index of the compared measure.
    pub measure: usize,
    /// The index of the measure that groups the runs.
    pub by: usize,
    /// The width of a group. `None`: each point of the experiment is a group.
    pub width: Option<f64>,
    /// The smallest group that counts.
    pub least: usize,
    /// The experiment for comparison: its index in the paper, and its edits.
    pub against: (usize, Vec<String>),
}

/// A run: the value that groups it, and the compared value.
pub(super) type Run = (f64, f64);

/// The result of the search.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Found {
    /// The threshold, if there is one.
    pub(super) at: Option<f64>,
    /// The interval that contains the threshold in 90 % of the resamplings, and the fraction of resamplings that have a
    /// threshold. One without a threshold counts as infinitely large, and so may the upper end be.
    pub(super) interval: Option<[f64; 2]>,
    pub(super) share: f64,
}

/// The curve on which a threshold is searched for.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// The groups of runs in ascending order: the mean of the grouping measure, and a summary of the other.
    pub groups: Vec<(f64, Summary)>,
    /// The same measure in the other experiment.
    pub band: Summary,
}

impl Threshold {
    /// The groups that count, and the value for comparison.
    pub(super) fn curve(&self, points: &[Vec<Run>], other: &[f64]) -> Curve {
        let compared = |runs: &Vec<Run>| Summary::of(&runs.iter().map(|run| run.1).collect::<Vec<_>>());
        let groups = self.grouped(points).into_iter().map(|runs| (Group::of(&runs).x, compared(&runs)));
        Curve { groups: groups.collect(), band: Summary::of(other) }
    }

    /// Searches for the threshold in the runs of each point and the values of the other experiment.
    pub(super) fn find(&self, points: &[Vec<Run>], other: &[f64]) -> Found {
        let at = self.estimate(points, other);
        let mut draws = Draws::default();
        let replicate = |_| {
            let points: Vec<Vec<Run>> = points.iter().map(|point| draws.resample(point)).collect();
            self.estimate(&points, &draws.resample(other))
        };
        let mut all: Vec<f64> =
            (0..REPLICATES).map(replicate).map(|found| found.unwrap_or(f64::INFINITY)).collect();
        all.sort_unstable_by(f64::total_cmp);
        let interval = Some([0.05, 0.95].map(|share| quantile_or_more(&all, share)));
        let found = all.iter().filter(|at| at.is_finite()).count();
        Found {
            at,
            interval: interval.filter(|[low, _]| low.is_finite()),
            share: found as f64 / REPLICATES as f64,
        }
    }

    fn estimate(&self, points: &[Vec<Run>], other: &[f64]) -> Option<f64> {
        if other.is_empty() {
            return None;
        }
        let level = other.iter().sum::<f64>() / other.len() as f64;
        let groups = self.grouped(points).iter().map(|runs| Group::of(runs)).collect();
        crossing(&ascending(groups), level)
    }

    /// The runs by group, in ascending order, without groups that are too small.
    fn grouped(&self, points: &[Vec<Run>]) -> Vec<Vec<Run>> {
        let mut groups: Vec<Vec<Run>> = match self.width {
            None => points.to_vec(),
            Some(width) => {
                let place = |x: f64| libm::round(x / width) as i64;
                let mut runs: Vec<Run> = points.iter().flatten().copied().collect();
                runs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
                runs.chunk_by(|a, b| place(a.0) == place(b.0)).map(<[Run]>::to_vec).collect()
            }
        };
        groups.retain(|runs| runs.len() >= self.least);
        groups.sort_by(|a, b| Group::of(a).x.total_cmp(&Group::of(b).x));
        groups
    }
}

/// Reads a threshold from a claim, and the unit of its value.
pub(super) fn read(
    at: &At<'_>,
    compared: usize,
    fields: &Fields,
    paper: &Paper,
) -> Result<(Threshold, Unit)> {
    let needed = |key: &str| at.get(key).ok_or_else(|| at.error_below(key, "a threshold needs this key"));
    let by = measure(&needed("by")?, fields, paper)?;
    let unit = paper.measures[by].unit;
    let width = at.get("width").map(|at| level(&at, unit, fields)).transpose()?;
    if width.is_some_and(|width| width <= 0.0) {
        return Err(at.error_below("width", "a group has a width"));
    }
    let against_at = needed("against")?;
    let against = experiment_of(&against_at, fields, paper)?;
    let refuse = |(message, hint): (String, String)| against_at.error(message).hint(hint);
    let edits = paper.experiments[against].set.iter().map(|text| text::fill(text, fields).map_err(refuse));
    let edits = edits.collect::<Result<_>>()?;
    let least = at.get("least").map_or(Ok(5), |at| at.count(1_u32..=1_000_000))? as usize;
    Ok((Threshold { measure: compared, by, width, least, against: (against, edits) }, unit))
}

/// A group of runs: their number, and the means of both measures.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Group {
    runs: f64,
    x: f64,
    y: f64,
}

impl Group {
    fn of(runs: &[Run]) -> Group {
        let n = runs.len() as f64;
        let mean = |of: fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / n.max(1.0);
        Group { runs: n, x: mean(|run| run.0), y: mean(|run| run.1) }
    }
}

/// Makes the means ascending: adjacent groups that descend get their common mean.
fn ascending(groups: Vec<Group>) -> Vec<(f64, f64)> {
    let mut pools: Vec<(Group, Vec<f64>)> = Vec::new();
    for group in groups {
        let mut pool = (group, vec![group.x]);
        while let Some((below, xs)) = pools.pop_if(|(below, _)| below.y > pool.0.y) {
            let runs = below.runs + pool.0.runs;
            pool.0.y = (below.y * below.runs + pool.0.y * pool.0.runs) / runs;
            pool.0.runs = runs;
            pool.1.splice(0..0, xs);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(pool, xs)| xs.into_iter().map(move |x| (x, pool.y))).collect()
}

/// The point at which the line through these ascending points first exceeds the level. Its beginning, if it does so
/// there.
fn crossing(line: &[(f64, f64)], level: f64) -> Option<f64> {
    let above = line.iter().position(|(_, y)| *y > level)?;
    let Some(below) = above.checked_sub(1) else { return Some(line[0].0) };
    let ((x0, y0), (x1, y1)) = (line[below], line[above]);
    Some(x0 + (x1 - x0) * (level - y0) / (y1 - y0))
}

/// The quantile of sorted values; infinite if a neighbouring value is.
fn quantile_or_more(sorted: &[f64], share: f64) -> f64 {
    quantile(sorted, share).filter(|at| at.is_finite()).unwrap_or(f64::INFINITY)
}

/// Random draws that are the same on every machine.
#[derive(Default)]
struct Draws {
    next: u64,
    ready: Vec<u64>,
}

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        let draw = loop {
            if let Some(draw) = self.ready.pop() {
                break draw;
            }
            let seed = stream_seed(self.next, "threshold");
            let (words, _) = seed.as_chunks::<8>();
            self.ready.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
            self.next += 1;
        };
        ((u128::from(draw) * n as u128) >> 64) as usize
    }

    /// Draws the same number of values with replacement.
    fn resample<T: Copy>(&mut self, values: &[T]) -> Vec<T> {
        values.iter().map(|_| values[self.below(values.len())]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(width: Option<f64>) -> Threshold {
        Threshold { measure: 0, by: 1, width, least: 2, against: (0, Vec::new()) }
    }

    /// y = 10 x with noise that cancels out. The other experiment has 35.
    #[test]
    fn the_threshold_is_where_the_line_through_the_groups_crosses() {
        let point = |x: f64| vec![(x, 10.0 * x - 1.0), (x, 10.0 * x + 1.0)];
        let points: Vec<_> = (0..10).map(|x| point(f64::from(x))).collect();
        for width in [None, Some(1.0)] {
            let found = threshold(width).find(&points, &[34.0, 36.0]);
            assert!((found.at.unwrap() - 3.5).abs() < 1e-12, "{found:?}");
            let [low, high] = found.interval.unwrap();
            assert!(
                (3.2..3.5).contains(&low) && (3.5..3.8).contains(&high) && found.share == 1.0,
                "{found:?}"
            );
        }
        assert_eq!(threshold(None).find(&points, &[1000.0]).at, None);
        assert_eq!(threshold(None).find(&points, &[-50.0]).at, Some(0.0), "from the first group on");
        assert_eq!(threshold(None).find(&points, &[]).at, None);
    }

    /// The curve reaches the level only if the one large value of its last group is drawn often enough.
    #[test]
    fn a_resampling_without_a_threshold_counts_as_more() {
        let points = vec![vec![(0.0, 0.0); 4], vec![(1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (1.0, 4.0)]];
        let found = threshold(None).find(&points, &[0.5]);
        assert!(found.share > 0.5 && found.share < 0.9, "{found:?}");
        let [low, high] = found.interval.expect("an interval");
        assert!(low < 1.0 && high.is_infinite(), "{found:?}");
        assert_eq!(serde_json::json!(found.interval)[1], serde_json::Value::Null, "an open end in JSON");
    }

    #[test]
    fn groups_of_few_runs_do_not_count() {
        let lone = vec![vec![(0.0, 1.0); 2], vec![(1.0, 99.0)], vec![(2.0, 3.0); 2]];
        assert!((threshold(None).find(&lone, &[2.0]).at.unwrap() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn means_that_fall_are_pooled() {
        let group = |x, y, runs| Group { runs, x, y };
        let groups =
            vec![group(0.0, 1.0, 1.0), group(1.0, 5.0, 1.0), group(2.0, 2.0, 2.0), group(3.0, 6.0, 1.0)];
        assert_eq!(ascending(groups), [(0.0, 1.0), (1.0, 3.0), (2.0, 3.0), (3.0, 6.0)]);
    }
}
