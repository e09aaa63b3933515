//! The tables of a complete sweep: `runs.csv`, `summary.csv`, `summary.json`, and `failed.json` if runs failed.

use std::io::{self, Write};

use anabranch_sim::scenario::Scenario;
use serde::Serialize;
use serde_json::{Map, Value};

use super::journal::Journal;
use super::{Executed, Sweep, SweepError};
use crate::statistics::Summary;

/// The files that [`write`] makes.
pub(super) const NAMES: [&str; 4] = ["runs.csv", "summary.csv", "summary.json", "failed.json"];

/// A cell of a sweep in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CellSummary {
    /// The keys that are varied, with their values as written.
    pub varied: Map<String, Value>,
    /// The measures over the seeds of the cell.
    pub measures: Measures,
    /// The cell that this one is compared with: the value of the compared key there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Map<String, Value>>,
    /// The measures minus those of that cell, seed by seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub differences: Option<Measures>,
}

/// Summaries by the name of their measure, in the order of the sweep's file.
#[derive(Clone, PartialEq, Debug)]
pub struct Measures(pub Vec<(String, Summary)>);

impl Serialize for Measures {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, summary)| (name, summary)))
    }
}

/// The summaries of all cells, in their order.
pub fn summaries(sweep: &Sweep, executed: &Executed) -> Vec<CellSummary> {
    (0..sweep.cells()).map(|cell| summary(sweep, executed, cell)).collect()
}

fn summary(sweep: &Sweep, executed: &Executed, cell: usize) -> CellSummary {
    let keys = sweep.vary.iter().map(|axis| axis.key.clone());
    let varied = keys.zip(sweep.varied(cell).into_iter().cloned()).collect();
    let runs = &executed.cells[cell];
    let measures = each(sweep, |measure| {
        runs.counted().map(|(_, values)| values[measure]).filter(|value| !value.is_nan()).collect()
    });
    let base = sweep.compare.and_then(|axis| base(sweep, axis, cell));
    let differences = base.as_ref().map(|(base, _)| {
        let pair = |(n, here)| Some((here, executed.cells[*base].values_of(n)?));
        let pairs = || runs.counted().filter_map(pair);
        each(sweep, |measure| {
            let differences = pairs().map(|(here, there)| here[measure] - there[measure]);
            differences.filter(|difference| !difference.is_nan()).collect()
        })
    });
    CellSummary { varied, measures, against: base.map(|(_, against)| against), differences }
}

fn each(sweep: &Sweep, values: impl Fn(usize) -> Vec<f64>) -> Measures {
    let summary = |(i, measure): (usize, &super::Measured)| (measure.name.clone(), Summary::of(&values(i)));
    Measures(sweep.measures.iter().enumerate().map(summary).collect())
}

/// The cell that `cell` is compared with, which differs in `axis` only, and what holds there; `None` of that cell
/// itself.
fn base(sweep: &Sweep, axis: usize, cell: usize) -> Option<(usize, Map<String, Value>)> {
    let mut place = sweep.place(cell);
    if place[axis] == 0 {
        return None;
    }
    place[axis] = 0;
    let compared = &sweep.vary[axis];
    let against = Map::from_iter([(compared.key.clone(), compared.values[0].clone())]);
    Some((sweep.number(&place), against))
}

/// Writes the tables.
pub(super) fn write(sweep: &Sweep, executed: &Executed, journal: &mut Journal) -> Result<(), SweepError> {
    let summaries = summaries(sweep, executed);
    let [first, second, third, failed] = NAMES;
    journal.write_table(first, |file| runs(sweep, executed, file))?;
    journal.write_table(second, |file| summary_rows(sweep, &summaries, file))?;
    journal.write_table(third, |file| {
        serde_json::to_writer_pretty(&mut *file, &summaries)?;
        file.write_all(b"\n")
    })?;
    let failures = failures(sweep, executed)?;
    if failures.is_empty() {
        return journal.remove_table(failed);
    }
    journal.write_table(failed, |file| {
        serde_json::to_writer_pretty(&mut *file, &failures)?;
        file.write_all(b"\n")
    })
}

/// A run that has no result, with all that it takes to repeat it.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct Failure {
    varied: Map<String, Value>,
    seed: u64,
    error: String,
    /// The scenario with this seed, as TOML.
    scenario: String,
}

fn failures(sweep: &Sweep, executed: &Executed) -> Result<Vec<Failure>, SweepError> {
    let mut failures = Vec::new();
    for (cell, of) in executed.cells.iter().enumerate() {
        for (n, error) in of.failed() {
            let seed = sweep.seed(n);
            let scenario = Scenario { seed, ..sweep.cell(cell)?.scenario };
            let keys = sweep.vary.iter().map(|axis| axis.key.clone());
            let varied = keys.zip(sweep.varied(cell).into_iter().cloned()).collect();
            let text =
                scenario.to_toml(&sweep.policies).map_err(|error| SweepError::Run(error.to_string()))?;
            failures.push(Failure { varied, seed, error: error.to_owned(), scenario: text });
        }
    }
    Ok(failures)
}

fn runs(sweep: &Sweep, executed: &Executed, file: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    let keys = sweep.vary.iter().map(|axis| axis.key.as_str());
    let measures = sweep.measures.iter().map(|measure| measure.name.as_str());
    writer.write_record(keys.chain(["seed"]).chain(measures))?;
    for row in rows(sweep, executed) {
        let numbers = row.values().map(number);
        writer.write_record(row.varied.iter().cloned().chain([row.seed.to_string()]).chain(numbers))?;
    }
    writer.flush()
}

/// A row of `runs.csv`: a run that counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Row<'e> {
    /// The values of the keys that are varied, as written.
    pub varied: Vec<String>,
    /// Its seed.
    pub seed: u64,
    values: &'e [f64],
}

impl Row<'_> {
    /// The measures, in the order of the sweep's file; `None` where the run has no such number.
    pub fn values(&self) -> impl Iterator<Item = Option<f64>> {
        self.values.iter().map(|value| (!value.is_nan()).then_some(*value))
    }
}

/// The runs that count, by cell and then by seed.
pub fn rows<'e>(sweep: &Sweep, executed: &'e Executed) -> impl Iterator<Item = Row<'e>> {
    executed.cells.iter().enumerate().flat_map(move |(cell, of)| {
        let varied: Vec<_> = sweep.varied(cell).into_iter().map(written).collect();
        let row = move |(n, values)| Row { varied: varied.clone(), seed: sweep.seed(n), values };
        of.counted().map(row)
    })
}

fn summary_rows(sweep: &Sweep, summaries: &[CellSummary], file: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(file);
    let keys = sweep.vary.iter().map(|axis| axis.key.as_str());
    let against = sweep.compare.map(|_| "against");
    let columns = ["n", "mean", "sd", "ci90", "ci95", "q5", "q50", "q95"];
    writer.write_record(keys.chain(["measure"]).chain(against).chain(columns))?;
    for summary in summaries {
        let varied: Vec<_> = sweep.vary.iter().map(|axis| written(&summary.varied[&axis.key])).collect();
        let base = summary.against.as_ref().and_then(|against| against.values().next()).map(written);
        let plain = summary.measures.0.iter().map(|measure| (measure, String::new()));
        let differences = summary.differences.iter().flat_map(|measures| &measures.0);
        let compared = differences.map(|measure| (measure, base.clone().unwrap_or_default()));
        for ((name, summary), against) in plain.chain(compared) {
            let against = sweep.compare.map(|_| against);
            let leading = varied.iter().cloned().chain([name.clone()]).chain(against);
            writer.write_record(leading.chain(numbers(summary)))?;
        }
    }
    writer.flush()
}

fn numbers(summary: &Summary) -> Vec<String> {
    let Summary { n, mean, sd, ci90, ci95, quantiles } = summary;
    let all = [*mean, *sd, *ci90, *ci95, quantiles.q5, quantiles.q50, quantiles.q95];
    std::iter::once(n.to_string()).chain(all.map(number)).collect()
}

/// A value of the sweep's file as a field of a table: strings without quotes, anything else as JSON.
pub fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A number, in as many digits as it takes to read the same number back; nothing where there is none.
fn number(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
