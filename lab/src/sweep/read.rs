//! Reads the file of a sweep, and checks its cells against the scenario.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anabranch_proto::Policies;
use anabranch_sim::RunOptions;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::keys::{Default, Key, Section, docs};
use anabranch_sim::scenario::{Document, Scenario, read_text};
use rayon::prelude::*;
use serde_json::Value;

use super::{Axis, MOST_RUNS, Measured, Sweep, SweepError};
use crate::claims::fill;
use crate::entry::{entry, missing, shape};
use crate::grid::{common_key, repeated};

/// A sweep as it is being read.
#[derive(std::default::Default)]
struct Draft {
    scenario: String,
    seeds: u64,
    vary: Vec<Axis>,
    measures: Vec<Measured>,
    until: Vec<(usize, f64)>,
    compare: Option<usize>,
}

const KEYS: &[Key<Draft>] = &[
    Key {
        name: "scenario",
        takes: "file",
        default: Default::Required,
        doc: "The scenario, beside the file of the sweep.",
        read: |draft, at| at.string().map(|file| draft.scenario = file.to_owned()),
    },
    Key {
        name: "seeds",
        takes: "count",
        default: Default::Required,
        doc: "The largest number of seeds of each cell. They are consecutive and begin with the scenario's seed.",
        read: |draft, at| at.count(1..=1_000_000).map(|seeds| draft.seeds = seeds),
    },
    Key {
        name: "vary",
        takes: "table",
        default: Default::Text("one cell"),
        doc: "Keys of the scenario, each with an array of its values: `\"link.sat.loss\" = [\"1 %\", \"2 %\"]`. Every combination is a cell; the first key varies slowest. `\"link.wifi.loss, link.sat.loss\"` gives both the same value. A key stands in one entry.",
        read: |draft, at| {
            draft.vary = axes(at)?.iter().map(|(key, values)| axis(key, values)).collect::<Result<_>>()?;
            each_key_once(at, &draft.vary)
        },
    },
    Key {
        name: "measure",
        takes: "table",
        default: Default::Required,
        doc: "The measures: a name for the tables and an entry of the result each, such as `time = \"flows.download.completion\"`. True counts as 1, false as 0.",
        read: |draft, at| measures(at).map(|measures| draft.measures = measures),
    },
    Key {
        name: "until",
        takes: "table",
        default: Default::Text("all seeds"),
        doc: "The precision at which a cell has enough seeds. With `{ time = \"2 %\" }`, half the width of the 95 % interval of the mean must be at most 2 % of the mean. Judged in the order of the seeds, from 30 seeds with a value on; from 300 on if all values are equal; never if all are 0.",
        read: |draft, at| until(at, &draft.measures).map(|until| draft.until = until),
    },
    Key {
        name: "compare",
        takes: "one of the keys varied",
        default: Default::Text("no comparison"),
        doc: "The cells with the second and later values of this key are compared with the cell of the first value, by paired differences of the same seeds.",
        read: |draft, at| {
            let key = at.string()?;
            let keys: Vec<&str> = draft.vary.iter().map(|axis| axis.key.as_str()).collect();
            draft.compare = keys.iter().position(|known| *known == key);
            let hint = || match keys.is_empty() {
                true => format!("vary it: vary = {{ \"{key}\" = [\"one value\", \"another\"] }}"),
                false => did_you_mean(key, keys.iter().copied()),
            };
            draft.compare.map(drop).ok_or_else(|| at.error(format!("`{key}` is not varied")).hint(hint()))
        },
    },
];

/// The keys of a sweep's file.
pub fn sections() -> Vec<Section> {
    vec![Section { header: "", keys: docs(KEYS) }]
}

/// Reads `file` and the scenario that it names.
pub(super) fn sweep(file: &Path) -> std::result::Result<Sweep, SweepError> {
    let text = read_text(file).map_err(|error| SweepError::Input { file: file.to_owned(), error })?;
    let document = Document::parse(&file.display().to_string(), &text)?;
    let draft = draft(&document)?;
    let path = file.parent().unwrap_or(Path::new("")).join(&draft.scenario);
    let scenario = read_text(&path).map_err(|error| {
        At::root(&document).error_below("scenario", format!("{}: {error}", path.display()))
    })?;
    let scenario = Document::parse(&path.display().to_string(), &scenario)?;
    Ok(finished(draft, document, scenario))
}

/// The sweep that `file` describes, over `scenario`.
pub(super) fn over(file: Document, scenario: Document) -> std::result::Result<Sweep, SweepError> {
    Ok(finished(draft(&file)?, file, scenario))
}

fn draft(document: &Document) -> std::result::Result<Draft, SweepError> {
    let root = At::root(document);
    let mut draft = Draft::default();
    fill(&mut draft, &root, KEYS)?;
    if let Some(name) =
        draft.measures.iter().map(|measure| &measure.name).find(|name| is_varied(&draft, name))
    {
        let at = root.get("measure").and_then(|at| at.get(name)).unwrap_or(root);
        let error = at.error(format!(
            "a measure cannot be called `{name}`: that column has the values of the varied key"
        ));
        return Err(error.hint("give the measure another name").into());
    }
    let cells = draft.vary.iter().try_fold(1, |cells: u64, axis| cells.checked_mul(axis.values.len() as u64));
    if cells.and_then(|cells| cells.checked_mul(draft.seeds)).is_none_or(|runs| runs > MOST_RUNS) {
        return Err(root.error_below("vary", format!("these are more than {MOST_RUNS} runs")).into());
    }
    Ok(draft)
}

fn is_varied(draft: &Draft, name: &str) -> bool {
    draft.vary.iter().any(|axis| axis.key == name)
}

fn finished(draft: Draft, file: Document, scenario: Document) -> Sweep {
    let stem = Path::new(scenario.file()).file_stem();
    let name = stem.map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let Draft { seeds, vary, measures, until, compare, .. } = draft;
    Sweep {
        file,
        scenario,
        name,
        seeds,
        vary,
        measures,
        until,
        compare,
        shard: None,
        policies: Policies::default(),
        identity: OnceLock::new(),
    }
}

/// The keys that are varied, and their values where they stand.
pub(super) fn axes<'d>(at: &At<'d>) -> Result<Vec<(String, Vec<At<'d>>)>> {
    let mut axes = Vec::new();
    for entry in at.entries()? {
        let Some(values) = at.get(&entry.key) else { continue };
        if !values.is_array() {
            let error = values.error(format!("`{}` takes an array of values", entry.key));
            return Err(
                error.hint("a key with dots stands between quotes: \"link.sat.loss\" = [\"1 %\", \"2 %\"]")
            );
        }
        axes.push((entry.key.clone(), values.array("an array")?));
    }
    Ok(axes)
}

fn axis(key: &str, values: &[At<'_>]) -> Result<Axis> {
    let Some(first) = values.first() else { return Ok(Axis { key: key.to_owned(), values: Vec::new() }) };
    if common_key(key, "seed").is_some() {
        return Err(first.error("seeds are not varied").hint("`seeds` says how many there are"));
    }
    let mut seen = BTreeSet::new();
    for value in values {
        if !seen.insert(value.json().to_string()) {
            return Err(value.error("this value is listed twice"));
        }
    }
    Ok(Axis { key: key.to_owned(), values: values.iter().map(At::json).collect() })
}

/// A key is varied by one entry: of two, the later one alone would count.
fn each_key_once(at: &At<'_>, vary: &[Axis]) -> Result<()> {
    let keys: Vec<&str> = vary.iter().map(|axis| axis.key.as_str()).collect();
    repeated(&keys).map_or(Ok(()), |(place, key)| {
        let error = at.error_below(keys[place], format!("`{key}` is varied above already"));
        Err(error.hint("list all values of a key in one array"))
    })
}

fn measures(at: &At<'_>) -> Result<Vec<Measured>> {
    let entries = at.entries()?;
    if entries.is_empty() {
        return Err(at.error("nothing is measured").hint("for example time = \"flows.download.completion\""));
    }
    let measure = |name: &str| {
        let value = at.get(name).ok_or_else(|| at.error("a measure is missing"))?;
        if name == "seed" {
            return Err(value.error("a measure cannot be called `seed`: that column has the seeds"));
        }
        Ok(Measured { name: name.to_owned(), entry: value.string()?.to_owned() })
    };
    entries.iter().map(|entry| measure(&entry.key)).collect()
}

fn until(at: &At<'_>, measures: &[Measured]) -> Result<Vec<(usize, f64)>> {
    let mut until = Vec::new();
    for entry in at.entries()? {
        let names = measures.iter().map(|measure| measure.name.as_str());
        let Some(number) = names.clone().position(|name| name == entry.key) else {
            return Err(at.no_such_key(entry).hint(did_you_mean(&entry.key, names)));
        };
        let Some(value) = at.get(&entry.key) else { continue };
        let share = value.percent()?;
        if share == 0.0 {
            return Err(value.error("no interval has a width of zero").hint("for example \"2 %\""));
        }
        until.push((number, share));
    }
    Ok(until)
}

/// Checks that every cell can be run, and that its result has the measures.
pub(super) fn check(sweep: &Sweep) -> std::result::Result<(), SweepError> {
    let root = At::root(&sweep.file);
    if let Some(axis) = sweep.vary.iter().find(|axis| axis.values.is_empty()) {
        let at = root.get("vary").unwrap_or_else(|| root.clone());
        let error = at.error_below(&axis.key, "there is no value");
        return Err(error.hint("give at least one value, or leave out this key").into());
    }
    if sweep.seed(0).checked_add(sweep.seeds - 1).is_none() {
        let error = root.error_below(
            "seeds",
            format!("the scenario's seed and the following ones go beyond {}", u64::MAX),
        );
        return Err(error.hint("begin with a smaller seed in the scenario").into());
    }
    // In the order of the grid, so that of several faults the same one is told every time.
    let faults: Vec<_> = (0..sweep.cells()).into_par_iter().map(|cell| check_cell(sweep, cell)).collect();
    faults.into_iter().collect()
}

fn check_cell(sweep: &Sweep, number: usize) -> std::result::Result<(), SweepError> {
    let cell = sweep.cell(number)?;
    // A run that ends when it begins has a result of the right shape, and nothing has been run.
    let begun = Scenario { stop: Some(Duration::ZERO), ..cell.scenario.clone() };
    let options = RunOptions { policies: sweep.policies.clone(), ..RunOptions::default() };
    let shape = shape(cell.result(&begun, options)?.unwrap_or_default());
    for measure in &sweep.measures {
        let root = At::root(&sweep.file);
        let at = root.get("measure").and_then(|at| at.get(&measure.name)).unwrap_or(root);
        if let Some((step, names)) = missing(&shape, &measure.entry) {
            let error = at.error(format!("a result has no `{step}` in `{}`", measure.entry));
            return Err(error.hint(did_you_mean(&step, names.iter().map(String::as_str))).into());
        }
        if let Ok(value @ (Value::String(_) | Value::Array(_) | Value::Object(_))) =
            entry(&shape, &measure.entry)
        {
            // What is empty before the run begins is a list or table also afterwards.
            let kind = if value.is_string() { "a text" } else { "not a number" };
            let error = at.error(format!("`{}` is {kind}", measure.entry));
            return Err(error.hint("measure an entry that is a number").into());
        }
    }
    Ok(())
}
