//! Shards: a sweep in equal parts, each run by a process of its own, and merged afterwards.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch_proto::Policies;

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

/// Collects the runs of the directories `parts` in the directory `out`, and writes the tables there. If no run is missing,
/// they have the same bytes as those of one process that ran the whole sweep; otherwise they are of the runs that exist.
pub fn merge(out: &Path, parts: &[PathBuf]) -> Result<(Sweep, Executed), SweepError> {
    let first = parts.first().map_or(out, PathBuf::as_path);
    let sweep = Sweep::described(&Journal::description(first)?, Policies::default())?;
    let mut runs = Vec::new();
    for part in parts {
        Journal::description(part)?;
        if same_place(part, out) {
            continue;
        }
        Journal::open(&sweep, part, |run| {
            runs.push(run);
            Ok(())
        })?;
    }
    let executed = execute::add(&sweep, out, runs)?;
    Ok((sweep, executed))
}

fn same_place(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

impl FinishedRun {
    /// Whether the run can belong to `sweep`.
    pub(super) fn belongs(&self, sweep: &Sweep) -> bool {
        self.cell < sweep.cells() && self.n < super::MOST_RUNS && self.values.len() == sweep.measures.len()
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
