//! Publications as data: compares the statements of a paper with the results of runs.
//!
//! A folder below `papers/` holds scenarios, `paper.toml`, `claims.toml` and tables of published values as CSV.
//! `docs/papers.md` describes them. A folder contains no code, and there is no expression language: a claim refers to
//! named items. An *experiment* is a scenario with edits (or a model with inputs). A *variant* is a set of edits under
//! which all claims are evaluated again (for example another era). A
//! *mark* is a moment of a run, a *measure* is a number of a run, and a *claim* states in one of eight forms what the
//! measures must be.
//!
//! Each claim is one row of the printed table. A claim over the rows of a CSV is expanded when it is read, so that
//! every error is reported with its line before anything runs.

mod claim;
mod claim_keys;
mod conditions;
mod crossing;
mod documentation;
mod figures;
mod finished;
mod judge;
mod mark;
mod measure;
mod names;
mod pictures;
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
pub use finished::{FinishedRuns, FinishedRunsError};
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

/// A publication, as described in its folder.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The folder's name.
    pub name: String,
    /// The path of the folder.
    pub folder: PathBuf,
    /// Its title in one line.
    pub title: String,
    /// Its authors, and the place of publication.
    pub citation: String,
    /// The variants under which claims are evaluated, at least one. The first is compared with the paper.
    pub variants: Vec<Variant>,
    /// The sources of published values: the paper, a reference simulator, others.
    pub references: Vec<Reference>,
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// The named moments.
    pub marks: Vec<Mark>,
    /// The named numbers.
    pub measures: Vec<Measure>,
    /// The claims, expanded to one for each row.
    pub cases: Vec<Case>,
    /// The figures that show runs.
    pub figures: Vec<Figure>,
    /// The figures that show groups of runs.
    pub curves: Vec<CurveFigure>,
    /// The figures that show radios at their places.
    pub maps: Vec<MapFigure>,
    /// The figures that show packets between the ends of a flow.
    pub exchanges: Vec<ExchangeFigure>,
    /// The figures that show a measure in many settings.
    pub bars: Vec<Bars>,
    /// `paper.toml`, for errors that are found while running.
    pub(crate) document: Document,
}

/// A set of edits under which every claim is evaluated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variant {
    /// Its name, which is also the heading of its column.
    pub name: String,
    /// The edits, each `KEY=VALUE`.
    pub set: Vec<String>,
}

/// A source of published values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    /// Its name in claims and in results as JSON.
    pub name: String,
    /// The heading of its column.
    pub title: String,
}

/// An experiment: a scenario or a model.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// The scenario or model.
    pub runs: Runs,
    /// Edits, each `KEY=VALUE`. `{COLUMN}` is replaced by the claim's field with this name.
    pub set: Vec<String>,
    /// Edits whose combinations are all run with every seed. The runs form one sample.
    pub vary: Vec<crate::grid::Variation>,
    /// The number of seeds. A measure has one value for each seed, and claims compare the mean.
    pub seeds: u64,
}

/// The scenario or model of an experiment.
#[derive(Clone, Debug)]
pub enum Runs {
    /// A scenario: its name and its document.
    Scenario(String, Document),
    /// The name of a model. Its inputs are the experiment's edits.
    Model(String),
}

/// A named number of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Its source.
    pub of: MeasureSource,
}

/// The source of a measure. Marks are indices in the paper's list.
#[derive(Clone, PartialEq, Debug)]
pub enum MeasureSource {
    /// An entry of the run's result.
    Result {
        /// Its keys, such as `flows.transfer.completion`. The values of several entries are added.
        of: Vec<String>,
        /// Entries that are subtracted.
        minus: Vec<String>,
        /// Entries by whose sum the value is divided.
        per: Vec<String>,
    },
    /// The time of a mark, counted from another mark or from the beginning of the run.
    Time {
        /// The mark.
        mark: usize,
        /// The mark from which the time is counted.
        since: Option<usize>,
    },
    /// The value of a quantity at a mark.
    At {
        /// The quantity.
        quantity: Noted,
        /// The mark.
        mark: usize,
    },
    /// The lowest or highest value of a quantity between two marks.
    Extreme {
        /// The quantity.
        quantity: Noted,
        /// Whether the highest value is meant instead of the lowest.
        highest: bool,
        /// The two marks. `None`: the beginning or the end of the run.
        between: [Option<usize>; 2],
    },
    /// The number of events between two marks, including the marks.
    Count {
        /// The event.
        event: mark::Event,
        /// The two marks.
        between: [Option<usize>; 2],
    },
}

/// A quantity that the sender of a flow records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Noted {
    /// The quantity.
    pub quantity: Quantity,
    /// The flow. `None`: the only flow.
    pub flow: Option<String>,
    /// The path, if the quantity belongs to a path.
    pub path: Option<String>,
}

/// The chart below the sequence numbers of a figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Below {
    /// A quantity.
    Noted(Noted),
    /// The throughput of the figure's link, as the mean of each interval of this length.
    Throughput(Duration),
}

/// A figure of the groups of runs from which a threshold is computed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CurveFigure {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The claim about the threshold.
    pub claim: String,
}

/// A figure of radios at their places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapFigure {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The index of its experiment.
    pub experiment: usize,
    /// Further edits.
    pub set: Vec<String>,
    /// The nodes around which ranges are drawn.
    pub around: Vec<String>,
}

/// A figure of the packets between the ends of a flow: one chart for each value of an edit.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeFigure {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The index of its experiment.
    pub experiment: usize,
    /// The edit that differs between its charts.
    pub over: crate::grid::Variation,
    /// Edits that change together with it.
    pub along: Vec<crate::grid::Variation>,
    /// The headings of its charts.
    pub headings: Vec<String>,
    /// The flow. `None`: the first.
    pub flow: Option<String>,
    /// The times between which packets leave, from the beginning of the run.
    pub between: [Duration; 2],
}

/// A figure of a measure in many settings: groups of bars.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The names of its groups.
    pub groups: Vec<String>,
    /// The names of the bars of each group.
    pub series: Vec<String>,
    /// The unit of all bars.
    pub unit: Unit,
    /// The runs of each bar, group by group.
    pub(crate) cases: Vec<Case>,
}

/// A figure of runs. It has one column for each value of an edit, with the sequence numbers above and another chart
/// below.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, which is also the name of its file.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The index of its experiment.
    pub experiment: usize,
    /// The edit that differs between its columns.
    pub over: crate::grid::Variation,
    /// The flow whose sequence numbers are drawn. `None`: the first.
    pub flow: Option<String>,
    /// The chart below.
    pub below: Below,
    /// A level that is drawn in the chart below.
    pub level: Option<u64>,
    /// Sequence numbers are drawn modulo this number.
    pub modulo: Option<u32>,
    /// The link whose drops are shown.
    pub link: String,
    /// The mark from which times are counted.
    pub since: usize,
    /// How long before `since` the figure begins.
    pub before: Duration,
    /// How long after `since` the figure begins. If it is set, `before` is zero.
    pub from: Duration,
    /// How long after `since` the figure ends.
    pub after: Duration,
    /// The marks shown.
    pub marks: Vec<usize>,
}

impl CurveFigure {
    /// The measure that groups the runs, and the measure that is compared.
    pub fn measures<'p>(&self, paper: &'p Paper) -> Option<[&'p Measure; 2]> {
        let case = paper.cases.iter().find(|case| case.id == self.claim)?;
        let Form::Threshold(threshold) = &case.form else { return None };
        Some([threshold.by, threshold.measure].map(|measure| &paper.measures[measure]))
    }
}

/// Whether `name` asks for the claim `id`: it is the id, or what that begins with before a `/`.
pub fn selects(name: &str, id: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Paper {
    /// Whether `name` asks for any claim of this publication.
    pub fn has_claim(&self, name: &str) -> bool {
        self.cases.iter().any(|case| selects(name, &case.id))
    }

    /// Keeps only the claims that are judged under this variant, and hides values under other variants. Returns `false`
    /// if there is no such variant.
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

    /// The paper with the bars of a figure in the place of its claims: the outcome of each is the height of a bar.
    pub fn of_bars(&self, bars: &Bars) -> Paper {
        Paper { cases: bars.cases.clone(), ..self.clone() }
    }

    fn mark(&self, name: &str) -> Option<usize> {
        self.marks.iter().position(|mark| mark.name == name)
    }
}
