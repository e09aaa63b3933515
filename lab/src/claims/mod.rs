//! Publications as data: what a paper says, held against what a run does.
//!
//! A folder below `papers/` holds scenarios, `paper.toml`, `claims.toml` and tables of published values as CSV;
//! `docs/papers.md` says what can be written there. Nothing of it is code, and there is no expression language:
//! what a claim needs is named. An *experiment* is a scenario with edits (or a model with inputs), a *variant*
//! a set of edits under which everything is looked at again (another era), a *mark* a moment of a run, a
//! *measure* a number of a run, and a *claim* says in one of six forms what the measures must be.
//!
//! One claim is one row of the table that is printed; a claim over the rows of a CSV is expanded here, when it
//! is read, so that whatever is wrong in it is told with its line before anything runs.

mod claim;
mod claim_keys;
mod conditions;
mod crossing;
mod documentation;
mod figures;
mod judge;
mod mark;
mod measure;
mod names;
mod plan;
mod pool;
mod published;
mod read;
pub mod record;
mod rows;
mod show;
mod text;
mod threshold;

#[cfg(test)]
mod tests;

pub use claim::{Bounds, Case, Form, Tolerance};
pub use conditions::Condition;
pub use documentation::sections;
pub use judge::Outcome;
pub use mark::{Mark, Moment, moments};
pub use plan::{Plan, PlanError, Progress};
pub use pool::PoolRow;
pub use published::{Cell, Published};
pub use read::PaperError;
pub(crate) use read::fill;
pub use record::Quantity;
pub use show::FigureRun;
pub use text::Unit;
pub use threshold::{Curve, Threshold};

use std::path::PathBuf;
use std::time::Duration;

use anabranch_sim::scenario::Document;

/// A publication, as its folder describes it.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The folder's name.
    pub name: String,
    /// Where it is.
    pub folder: PathBuf,
    /// What it is about, in a line.
    pub title: String,
    /// Its authors, and where it was published.
    pub citation: String,
    /// What everything is looked at under; the first is what is held against the paper. At least one.
    pub variants: Vec<Variant>,
    /// Where published values come from: the paper, a reference simulator, others.
    pub references: Vec<Reference>,
    /// What is run.
    pub experiments: Vec<Experiment>,
    /// The moments that have names.
    pub marks: Vec<Mark>,
    /// The numbers that have names.
    pub measures: Vec<Measure>,
    /// The claims, expanded: one for each row.
    pub cases: Vec<Case>,
    /// The pictures of runs.
    pub figures: Vec<Figure>,
    /// The pictures of groups of runs.
    pub curves: Vec<CurveFigure>,
    /// `paper.toml`, for whatever a run may find wrong with it.
    pub(crate) document: Document,
}

/// A set of edits under which every claim is looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name; the heading of its column.
    pub name: String,
    /// The edits, each `KEY=VALUE`.
    pub set: Vec<String>,
}

/// A source of published values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// What claims and the results as JSON call it.
    pub name: String,
    /// The heading of its column.
    pub title: String,
}

/// What is run: a scenario, or a model.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// What it runs.
    pub runs: Runs,
    /// Edits, each `KEY=VALUE`; `{COLUMN}` in them stands for the claim's field of this name.
    pub set: Vec<String>,
    /// Edits whose combinations are all run, each with every seed: their runs are one sample.
    pub vary: Vec<crate::grid::Variation>,
    /// How many seeds; a measure is a sample with a value for each, and its mean is what claims compare.
    pub seeds: u64,
}

/// What an experiment runs.
#[derive(Clone, Debug)]
pub enum Runs {
    /// A scenario: its name, and the document.
    Scenario(String, Document),
    /// A model of this name; its inputs are the experiment's edits.
    Model(String),
}

/// A number of a run, by name.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// What it is a number of.
    pub unit: Unit,
    /// How it comes about.
    pub of: MeasureSource,
}

/// How a measure comes about. Marks are numbers in the paper's list.
#[derive(Clone, PartialEq, Debug)]
pub enum MeasureSource {
    /// An entry of the run's result.
    Result {
        /// Its keys: `flows.transfer.completion`; of several entries, the sum.
        of: Vec<String>,
        /// Entries that are subtracted.
        minus: Vec<String>,
        /// Entries whose sum divides it.
        per: Vec<String>,
    },
    /// The time of a mark, since another or since the beginning of the run.
    Time {
        /// The mark.
        mark: usize,
        /// Since when.
        since: Option<usize>,
    },
    /// A quantity at a mark.
    At {
        /// Which.
        quantity: Noted,
        /// When.
        mark: usize,
    },
    /// The lowest or highest value of a quantity between two marks.
    Extreme {
        /// Which.
        quantity: Noted,
        /// The highest, not the lowest.
        highest: bool,
        /// Between which marks: the beginning and the end of the run if there is none.
        between: [Option<usize>; 2],
    },
    /// How many events there are between two marks, both included.
    Count {
        /// Of which kind.
        event: mark::Event,
        /// Between which marks.
        between: [Option<usize>; 2],
    },
}

/// A quantity that the sender of a flow notes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noted {
    /// Which.
    pub quantity: Quantity,
    /// Of which flow; if none is named, of the only one.
    pub flow: Option<String>,
    /// Of which path, if it belongs to a path.
    pub path: Option<String>,
}

/// What is drawn below the sequence numbers of a figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Below {
    /// A quantity.
    Noted(Noted),
    /// What the figure's link carries, as the mean of each interval of this length.
    Throughput(Duration),
}

/// A picture of the groups of runs that a threshold is found from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CurveFigure {
    /// Its name; that of its file.
    pub name: String,
    /// A line above it.
    pub title: String,
    /// The claim about the threshold.
    pub claim: String,
}

/// A picture of runs: for each value of an edit a column, with the sequence numbers above and another chart below.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name; that of its file.
    pub name: String,
    /// A line above it.
    pub title: String,
    /// Which experiment it shows.
    pub experiment: usize,
    /// What differs between its columns.
    pub over: crate::grid::Variation,
    /// The flow whose sequence numbers are drawn; if none is named, the first.
    pub flow: Option<String>,
    /// The chart below.
    pub below: Below,
    /// The level of it that matters, if one does.
    pub level: Option<u64>,
    /// Sequence numbers are drawn modulo this.
    pub modulo: Option<u32>,
    /// Which link's drops are shown.
    pub link: String,
    /// Times are counted from this mark.
    pub since: usize,
    /// From when on, before `since`.
    pub before: Duration,
    /// From when on, after `since`; then `before` is zero.
    pub from: Duration,
    /// Until when, after `since`.
    pub after: Duration,
    /// The marks shown.
    pub marks: Vec<usize>,
}

impl CurveFigure {
    /// The measure by which runs are grouped, and the one that is compared.
    pub fn measures<'p>(&self, paper: &'p Paper) -> Option<[&'p Measure; 2]> {
        let case = paper.cases.iter().find(|case| case.id == self.claim)?;
        let Form::Threshold(threshold) = &case.form else { return None };
        Some([threshold.by, threshold.measure].map(|measure| &paper.measures[measure]))
    }
}

impl Paper {
    /// Keeps only the claims that are judged under this variant, and shows no values under others beside them; `false` if there
    /// is no such variant.
    pub fn keep_variant(&mut self, name: &str) -> bool {
        let Some(kept) = self.variants.iter().position(|variant| variant.name == name) else { return false };
        self.cases.retain(|case| case.variant == kept);
        self.cases.iter_mut().for_each(|case| case.beside = false);
        true
    }

    /// Claims about all rows of a table together run so many of them, if there are as many.
    pub fn keep_rows(&mut self, rows: usize) {
        for case in &mut self.cases {
            case.rows = rows.min(case.pool.len());
        }
    }

    fn mark(&self, name: &str) -> Option<usize> {
        self.marks.iter().position(|mark| mark.name == name)
    }
}
