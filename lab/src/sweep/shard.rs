//! Shards: a sweep in equal parts, each run by a process of its own, and merged afterwards.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch_proto::Policies;
use serde_json::{Map, Value};

use super::execute::{self, Executed};
use super::journal::{FinishedRun, Journal};
use super::{Sweep, SweepError};

/// One of the equal parts of a sweep.
///
/// Runs are dealt to the shards in turn. With `until`, whole cells are dealt, because all seeds of a cell decide
/// whether it has enough of them.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shard {
    number: u64,
    of: u64,
}

/// Why a text is no [`Shard`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a shard i/n with i from 1 to n; for example 1/4, or 0/4 to 3/4 if you count from zero")]
pub struct BadShard(String);

impl FromStr for Shard {
    type Err = BadShard;

    /// Reads `i/n`. Shards `0/n` and `n/n` are the same, so that both ways to count name all of them.
    fn from_str(text: &str) -> Result<Self, BadShard> {
        let bad = || BadShard(text.to_owned());
        let (number, of) = text.split_once('/').ok_or_else(bad)?;
        let number: u64 = number.parse().map_err(|_| bad())?;
        let of: u64 = of.parse().map_err(|_| bad())?;
        match of > 0 && number <= of {
            true => Ok(Shard { number: number % of, of }),
            false => Err(bad()),
        }
    }
}

impl Shard {
    /// Whether run number `n` of cell number `cell` belongs to this shard.
    pub(super) fn has(self, sweep: &Sweep, cell: usize, n: u64) -> bool {
        let turn = if sweep.until.is_empty() { cell as u64 + n } else { cell as u64 };
        turn % self.of == self.number
    }
}

/// Collects the runs of the directories `parts` in the directory `out`, and writes the tables there. If no run is
/// missing, they have the same bytes as those of one process that ran the whole sweep; otherwise they are of the runs
/// that exist.
pub fn merge(out: &Path, parts: &[PathBuf]) -> Result<(Sweep, Executed), SweepError> {
    let sweep = Sweep::described(&common(out, parts)?, Policies::default())?;
    let mut runs = Vec::new();
    for part in parts {
        if same_place(part, out) {
            continue;
        }
        Journal::read(&sweep, part, |run| {
            runs.push(run);
            Ok(())
        })?;
    }
    let executed = execute::add(&sweep, out, runs)?;
    Ok((sweep, executed))
}

/// The description of the sweep of all parts: the one with the most seeds, as a part whose run has gone on with more of
/// them. Parts whose files differ in anything else are refused, because the tables would be of one of them.
fn common(out: &Path, parts: &[PathBuf]) -> Result<String, SweepError> {
    let places: Vec<&Path> = match parts {
        [] => vec![out],
        parts => parts.iter().map(PathBuf::as_path).collect(),
    };
    let mut best: Option<(Map<String, Value>, String)> = None;
    for place in &places {
        let description = Journal::description(place)?;
        let plan = Sweep::plan_of(&description)?;
        let Some((known, _)) = &best else {
            best = Some((plan, description));
            continue;
        };
        let keys = plan.keys().chain(known.keys()).filter(|key| *key != "seeds" && *key != "scenario");
        if let Some(key) = keys.into_iter().find(|key| plan.get(*key) != known.get(*key)) {
            let why = format!(
                "the part was run with another `{key}` than {}; run both with the same file, which repeats no run",
                places[0].display()
            );
            return Err(SweepError::Directory { directory: place.to_path_buf(), why });
        }
        let seeds = |plan: &Map<String, Value>| plan.get("seeds").and_then(Value::as_u64);
        if seeds(&plan) > seeds(known) {
            best = Some((plan, description));
        }
    }
    Ok(best.map(|(_, description)| description).unwrap_or_default())
}

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl FinishedRun {
    /// Whether the run can belong to `sweep`, which has had at most `MOST_RUNS`, however many seeds it has now. What a
    /// journal says of another seed would take memory for all seeds before.
    pub(super) fn belongs(&self, sweep: &Sweep) -> bool {
        let cells = sweep.cells();
        let most = super::MOST_RUNS / cells.max(1) as u64;
        self.cell < cells && self.n < most && self.values.len() == sweep.measures.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_count_name_the_same_shards() {
        let shard = |text: &str| text.parse::<Shard>();
        assert_eq!(shard("0/4"), shard("4/4"));
        assert_eq!(shard("1/1"), shard("0/1"));
        assert!(
            shard("5/4").is_err() && shard("1/0").is_err() && shard("1").is_err() && shard("-1/2").is_err()
        );
    }
}
