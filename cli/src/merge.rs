//! `anabranch merge`: merges the shards of a sweep into its tables.

use std::path::PathBuf;

use anabranch_lab::sweep;

use crate::output::fail;
use crate::sweep::{show, tell};

/// The arguments of `anabranch merge`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The directory for runs.csv, summary.csv and summary.json
    out: PathBuf,
    /// The directories of the shards; OUT may be one of them
    #[arg(required = true, value_name = "DIR")]
    parts: Vec<PathBuf>,
    /// Print summary.json instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch sweep scenarios/sweeps/loss.toml --out part-1/ --shard 1/2
  anabranch sweep scenarios/sweeps/loss.toml --out part-2/ --shard 2/2
  anabranch merge results/ part-1/ part-2/

As a SLURM array:
  sbatch --array=1-64 --wrap 'anabranch sweep s.toml --out part-$SLURM_ARRAY_TASK_ID \\
      --shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT --threads 1'

The tables have the same bytes as those of one process.

Exit status: 0 done, 1 runs are missing (OUT has the tables of the others), 2 the input was wrong (also a DIR that holds
another sweep or is damaged).";

/// Merges the shards, and returns the exit status.
pub(crate) fn merge(arguments: &Arguments) -> u8 {
    let (sweep, executed) = match sweep::merge(&arguments.out, &arguments.parts) {
        Ok(merged) => merged,
        Err(error) => return tell(&error),
    };
    let shown = show(&sweep, &executed, &arguments.out, arguments.json);
    if executed.is_complete() {
        return shown;
    }
    fail(format!(
        "{} of {} runs are missing; run the shards that lack them, and merge again",
        executed.all - executed.done,
        executed.all
    ))
}
