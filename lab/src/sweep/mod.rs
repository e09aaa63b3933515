//! Sweeps: a file lists the keys of a scenario to vary, the number of seeds, and the measures.
//!
//! `read` makes a [`Sweep`] of the file and checks every cell before anything runs. `journal` keeps each finished run
//! in the output directory, so that an interrupted sweep can resume. `execute` runs what is missing on all cores and
//! decides, in the order of the seeds, when a cell has enough of them. `shard` divides a sweep among processes and
//! merges their runs. `tables` writes `runs.csv`, `summary.csv` and `summary.json`; their bytes depend only on the
//! sweep.
//!
//! A program with a policy of its own compares it with those built in:
//!
//! ```
//! use std::error::Error;
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//!
//! use anabranch_lab::sweep::{Sweep, Watch, execute, summaries};
//! use anabranch_proto::Policies;
//! use anabranch_proto::policy::{Ask, Choice, PathView, Route};
//! use anabranch_sim::scenario::Document;
//!
//! /// The last path that carries data.
//! #[derive(Clone, Debug)]
//! struct Last;
//!
//! impl Route for Last {
//!     fn choose(&self, _: &Ask, paths: &[PathView]) -> Choice {
//!         paths.iter().rfind(|path| path.carries()).map_or(Choice::Wait, |path| Choice::Send(path.id))
//!     }
//! }
//!
//! fn study(scenario: &str, results: &Path) -> Result<(), Box<dyn Error>> {
//!     let mut policies = Policies::default();
//!     policies.add_route("last", |spec, _| {
//!         spec.allow(&[])?;
//!         Ok(Box::new(Last))
//!     });
//!     let plan = Document::parse(
//!         "study.toml",
//!         r#"
//!             scenario = "given below"
//!             seeds = 3
//!             compare = "flow.upload.sctp.retransmit"
//!             [vary]
//!             "flow.upload.sctp.retransmit" = ["same", "last"]
//!             [measure]
//!             time = "flows.upload.completion"
//!         "#,
//!     )?;
//!     let sweep = Sweep::over(plan, Document::parse("scenario.toml", scenario)?, policies)?;
//!     let watch = Watch { stop: &AtomicBool::new(false), progress: &|_done, _all| {} };
//!     let executed = execute(&sweep, results, None, &watch)?;
//!     for cell in summaries(&sweep, &executed) {
//!         let (name, time) = &cell.measures.0[0];
//!         println!("{:?}: {name} {:?}", cell.varied, time.mean);
//!     }
//!     Ok(())
//! }
//! # let loss = include_str!("../../../scenarios/loss.toml");
//! # let directory = tempfile::tempdir().unwrap();
//! # study(loss, &directory.path().join("results")).unwrap();
//! # assert!(directory.path().join("results/summary.csv").exists());
//! ```

mod execute;
pub(crate) mod journal;
mod read;
mod shard;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anabranch_proto::Policies;
use anabranch_sim::scenario::at::At;
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};
use anabranch_sim::{RunError, RunOptions};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::command::quoted;
use crate::entry::unit;

pub use execute::{Executed, Judge, Watch, add, execute, finished_runs};
pub use journal::FinishedRun;
pub use read::sections;
pub use shard::{BadShard, Shard, merge};
pub use tables::{CellSummary, Measures, Row, rows, summaries, written};

/// A sweep as described by its file.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The document of the file; the varied values are taken from it.
    file: Document,
    /// The scenario's document, and the scenario's name.
    scenario: Document,
    name: String,
    /// The largest number of seeds per cell: the scenario's own seed and the following ones.
    pub seeds: u64,
    /// The varied keys, the first slowest.
    pub vary: Vec<Axis>,
    /// The measured entries of the result.
    pub measures: Vec<Measured>,
    /// For each measure: the relative half-width of its 95 % interval at which a cell has enough seeds.
    until: Vec<(usize, f64)>,
    /// The axis that is compared: the cells of its later values with the cell of its first value, seed by seed.
    compare: Option<usize>,
    /// The part of the sweep to run; `None`: all of it.
    shard: Option<Shard>,
    /// The policies that the scenario can name.
    policies: Policies,
    /// What [`Sweep::identity`] found: it reads every cell, and a merge asks for each part.
    identity: OnceLock<String>,
}

/// A varied key.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// The key in the spelling of `--set`.
    pub key: String,
    /// The values as written.
    pub values: Vec<Value>,
}

/// A measure: an entry of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// Its name in the tables.
    pub name: String,
    /// The entry, such as `flows.download.completion`.
    pub entry: String,
}

impl Measured {
    /// The unit of its values; nothing of what is counted or a share.
    pub fn unit(&self) -> &'static str {
        unit(&self.entry)
    }

    /// Its name, with its unit: what stands on an axis or above a column.
    pub fn heading(&self) -> String {
        let unit = self.unit();
        if unit.is_empty() { self.name.clone() } else { format!("{}, {unit}", self.name) }
    }
}

/// Why a sweep failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A file of the input cannot be read.
    #[error("{}: {error}", file.display())]
    Input {
        /// Which.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// Something in the sweep's file, or in the scenario, is wrong.
    #[error(transparent)]
    Text(#[from] ScenarioError),
    /// The output directory holds something else, or is damaged.
    #[error("{}: {why}", directory.display())]
    Directory {
        /// Which.
        directory: PathBuf,
        /// Why it is refused, and what to do.
        why: String,
    },
    /// The output cannot be written.
    #[error("cannot write {}: {error}", file.display())]
    Output {
        /// Which file.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A run failed.
    #[error("{0}")]
    Run(String),
}

/// The number of seeds that a cell has before `until` is checked. Of fewer the intervals are too narrow where values are
/// skewed, as those of transfers with few losses are (docs/sweeps.md).
const LEAST_SEEDS: u64 = 30;
/// The number of equal values that suffice, whatever the precision: what none of them met has a probability of 1 % at most
/// (at a level of 95 %, three in so many). Zeros never do, because they have no relative precision.
const LEAST_EQUAL: u64 = 300;
/// The largest number of runs of a sweep; each is kept in memory.
const MOST_RUNS: u64 = 10_000_000;

/// A cell of the grid, ready to be run.
struct Cell {
    document: Document,
    scenario: Scenario,
}

impl Sweep {
    /// Reads the sweep in `file` and checks all its cells. Runs nothing.
    pub fn open(file: &Path) -> Result<Sweep, SweepError> {
        let sweep = read::sweep(file)?;
        read::check(&sweep)?;
        Ok(sweep)
    }

    /// The sweep that `file` describes over this scenario, whatever its key `scenario` says. All its cells are
    /// checked. The scenario can name these policies.
    pub fn over(file: Document, scenario: Document, policies: Policies) -> Result<Sweep, SweepError> {
        let sweep = Sweep { policies, ..read::over(file, scenario)? };
        read::check(&sweep)?;
        Ok(sweep)
    }

    /// Both documents of the sweep with their names, texts and edits, as one line of JSON.
    pub fn description(&self) -> String {
        let document = |document: &Document| {
            let edits: Vec<_> = document.edits().map(str::to_owned).collect();
            (document.file().to_owned(), document.text().to_owned(), edits)
        };
        serde_json::json!([document(&self.file), document(&self.scenario)]).to_string()
    }

    /// The sweep from a [`Sweep::description`]; its scenario can name these policies.
    pub fn described(line: &str, policies: Policies) -> Result<Sweep, SweepError> {
        let [file, scenario] = documents(line)?;
        Sweep::over(file, scenario, policies)
    }

    /// The keys of the sweep's file in a [`Sweep::description`].
    fn plan_of(line: &str) -> Result<Map<String, Value>, SweepError> {
        let [file, _] = documents(line)?;
        match file.json() {
            Value::Object(plan) => Ok(plan),
            _ => Err(SweepError::Run("the file of a sweep is a table".to_owned())),
        }
    }

    /// This part of the sweep.
    #[must_use]
    pub fn shard(self, shard: Option<Shard>) -> Sweep {
        Sweep { shard, ..self }
    }

    /// Whether run `n` of this cell belongs to this part.
    fn has(&self, cell: usize, n: u64) -> bool {
        self.shard.is_none_or(|shard| shard.has(self, cell, n))
    }

    /// The number of cells of the grid.
    pub fn cells(&self) -> usize {
        self.vary.iter().map(|axis| axis.values.len()).product()
    }

    /// The largest number of runs of the sweep.
    pub fn runs(&self) -> u64 {
        self.cells() as u64 * self.seeds
    }

    /// Whether the measures decide how many seeds are enough (`until`).
    pub fn judges(&self) -> bool {
        !self.until.is_empty()
    }

    /// The axis that is compared.
    pub fn compared(&self) -> Option<&Axis> {
        self.compare.map(|axis| &self.vary[axis])
    }

    /// By axis: the index of its value in this cell.
    fn place(&self, mut cell: usize) -> Vec<usize> {
        let mut place = vec![0; self.vary.len()];
        for (slot, axis) in place.iter_mut().zip(&self.vary).rev() {
            (*slot, cell) = (cell % axis.values.len(), cell / axis.values.len());
        }
        place
    }

    /// The number of the cell at `place`.
    fn number(&self, place: &[usize]) -> usize {
        place.iter().zip(&self.vary).fold(0, |number, (value, axis)| number * axis.values.len() + value)
    }

    /// By axis: its value in this cell, as written.
    pub fn varied(&self, cell: usize) -> Vec<&Value> {
        self.place(cell).iter().zip(&self.vary).map(|(value, axis)| &axis.values[*value]).collect()
    }

    /// The seed of run `n` of every cell: the scenario's own seed and the following ones.
    pub fn seed(&self, n: u64) -> u64 {
        let own = self.scenario.get("seed").and_then(|seed| seed.as_u64());
        own.unwrap_or(Scenario::default().seed).saturating_add(n)
    }

    /// The file of its scenario.
    pub fn scenario_file(&self) -> &str {
        self.scenario.file()
    }

    /// The command that repeats the run of this cell with this seed.
    pub fn command(&self, cell: usize, seed: u64) -> String {
        let varied = self.vary.iter().zip(self.varied(cell));
        let set = varied.map(|(axis, value)| format!("{}={}", axis.key, toml(value)));
        let set: String = set.map(|edit| format!(" --set {}", quoted(&edit))).collect();
        format!("anabranch run {} --seed {seed}{set}", quoted(self.scenario_file()))
    }

    /// The scenario of cell number `number`.
    fn cell(&self, number: usize) -> Result<Cell, ScenarioError> {
        let mut document = self.scenario.clone();
        let axes = At::root(&self.file).get("vary").map_or(Ok(Vec::new()), |at| read::axes(&at))?;
        for ((key, values), place) in axes.iter().zip(self.place(number)) {
            document.graft(key, &values[place])?;
        }
        let scenario = document.scenario(&self.name, &self.policies)?;
        Ok(Cell { document, scenario })
    }

    /// Identifies the runs of this sweep: the cells as canonical scenarios, the measures, and the program's version.
    /// The number of seeds is not part of it, because a run is the same in every sweep that asks for it.
    pub fn identity(&self) -> Result<String, SweepError> {
        if let Some(known) = self.identity.get() {
            return Ok(known.clone());
        }
        let mut digest = Sha256::new();
        for number in 0..self.cells() {
            let scenario = self.cell(number)?.scenario;
            let key = scenario.content_key(env!("CARGO_PKG_VERSION"), &self.policies);
            digest.update(key.map_err(|error| SweepError::Run(error.to_string()))?);
        }
        for measure in &self.measures {
            digest.update(format!(" {}", measure.entry));
        }
        let found = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(self.identity.get_or_init(|| found).clone())
    }
}

/// The documents of a [`Sweep::description`]: the sweep's file and the scenario.
fn documents(line: &str) -> Result<[Document; 2], SweepError> {
    let documents: [(String, String, Vec<String>); 2] =
        serde_json::from_str(line).map_err(|error| SweepError::Run(error.to_string()))?;
    let [file, scenario] = documents.map(|(name, text, edits)| {
        let mut document = Document::parse(&name, &text)?;
        edits.iter().try_for_each(|edit| document.set("set", edit))?;
        Ok::<_, SweepError>(document)
    });
    Ok([file?, scenario?])
}

/// A value of the sweep's file as TOML on one line, as `--set` takes it.
fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entry =
                |(key, value): (&String, &Value)| format!("{} = {}", Value::from(key.as_str()), toml(value));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        // JSON writes strings, numbers and booleans as TOML does.
        plain => plain.to_string(),
    }
}

impl Cell {
    /// The result of the cell with its own seed and these options, as JSON; `None` if it was interrupted.
    fn result(&self, scenario: &Scenario, options: RunOptions<'_>) -> Result<Option<Value>, SweepError> {
        match anabranch_sim::run(scenario, options) {
            Ok(result) => {
                serde_json::to_value(result).map(Some).map_err(|error| SweepError::Run(error.to_string()))
            }
            Err(RunError::Interrupted { .. }) => Ok(None),
            Err(error) => Err(match self.document.blame(scenario, &error) {
                Some(blamed) => blamed.into(),
                None => SweepError::Run(error.to_string()),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep of two seeds over one short transfer, with more keys.
    pub(super) fn sweep(keys: &str) -> Sweep {
        let scenario = "[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '1 Mbit/s'\n\
                        [[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nsend = '1 kB'\n";
        let file =
            format!("scenario = 's.toml'\nmeasure = {{ time = 'flows.f.completion' }}\nseeds = 2\n{keys}");
        let [file, scenario] =
            [&file, scenario].map(|text| Document::parse("test.toml", text).expect("TOML"));
        Sweep::over(file, scenario, Policies::default()).expect("a sweep")
    }

    #[test]
    fn a_run_belongs_to_a_sweep_only_if_the_sweep_can_have_it() {
        let sweep = sweep("vary = { 'link.l.delay' = ['1 ms', '2 ms', '3 ms', '4 ms'] }\n");
        let belongs = |cell, n| FinishedRun { cell, n, values: [1.0].into(), failed: None }.belongs(&sweep);
        assert!(belongs(3, MOST_RUNS / 4 - 1) && !belongs(3, MOST_RUNS / 4) && !belongs(4, 0));
    }

    #[test]
    fn a_value_is_written_as_toml() {
        let value = serde_json::json!({ "name": "a \"b\"", "rates": [10e6, 1, true], "x y": { "z": "1 %" } });
        let text = toml(&value);
        let document = Document::parse("test.toml", &format!("key = {text}")).expect("it is TOML");
        assert_eq!(document.get("key"), Some(value), "{text}");
    }
}
