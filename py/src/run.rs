//! One run.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_lab::kind::Kind;
use anabranch_proto::Policies;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{CsvSeries, RunError, RunOptions};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::document::{raise, read};
use crate::objects::{object, rows};
use crate::policies;
use crate::tables::Table;

/// The results of a run.
#[pyclass(frozen, module = "anabranch._core")]
pub(crate) struct Run {
    result: RunResult,
    series: Vec<(String, Vec<u8>)>,
    scenario: Scenario,
    policies: Policies,
}

/// The columns of series that are texts, whatever links and flows are called.
const TEXTS: [&str; 6] = ["path", "why", "by", "flow", "cause", "tsns"];

#[pymethods]
impl Run {
    /// The result as a dict, with the entries that `anabranch run --json` prints.
    fn entries<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.result)
    }

    /// The result as JSON.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.result).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The table of the result's list `name`: "flows", "links", "traffic" or "stations"; "paths": those of all flows.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let result = &self.result;
        let rows = match name {
            "flows" => rows(&object(py, &result.flows)?)?,
            "links" => rows(&object(py, &result.links)?)?,
            "traffic" => rows(&object(py, &result.traffic)?)?,
            "stations" => rows(&object(py, &result.stations)?)?,
            "paths" => {
                let mut all = Vec::new();
                for flow in &result.flows {
                    for path in rows(&object(py, &flow.paths)?)? {
                        let row = PyDict::new(py);
                        row.set_item("flow", &flow.name)?;
                        row.update(path.as_mapping())?;
                        all.push(row);
                    }
                }
                all
            }
            _ => Vec::new(),
        };
        Table::of_rows(&rows)
    }

    /// The names of the series.
    fn series_names(&self) -> Vec<&str> {
        self.series.iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The series `name` as a table.
    fn series(&self, name: &str) -> PyResult<Option<Table>> {
        let found = self.series.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| Table::of_csv(text, &TEXTS)).transpose()
    }

    /// The scenario that was run as canonical TOML, if a document can say it.
    fn scenario(&self) -> Option<String> {
        self.scenario.to_toml(&self.policies).ok()
    }
}

/// Runs the scenario `text`; `file` is its name in errors and, without its ending, in the result. `own`: policies by
/// name. `watch` is called now and then with virtual seconds, bytes delivered, and bytes expected.
#[pyfunction]
#[pyo3(signature = (file, text, set, seed, series, own, watch))]
#[expect(clippy::too_many_arguments, reason = "called from one place in Python, which names them")]
pub(crate) fn run(
    py: Python<'_>,
    file: &str,
    text: &str,
    set: Vec<String>,
    seed: Option<u64>,
    series: bool,
    own: Option<&Bound<'_, PyDict>>,
    watch: Option<Py<PyAny>>,
) -> PyResult<Run> {
    let document = read(py, file, text, &set)?;
    refuse_others(py, &document)?;
    let policies = policies::table(own)?;
    let name = std::path::Path::new(file).file_stem().unwrap_or_default().to_string_lossy();
    let mut scenario = document.scenario(&name, &policies).map_err(|fault| raise(py, &fault))?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let folder = series.then(tempfile::tempdir).transpose()?;
    let mut files = folder.as_ref().map(|folder| CsvSeries::new(folder.path())).transpose()?;
    let result = simulate(py, &document, &scenario, &policies, files.as_mut(), watch)?;
    files.map_or(Ok(()), CsvSeries::finish)?;
    let series = folder.map_or(Ok(Vec::new()), |folder| written(folder.path()))?;
    Ok(Run { result, series, scenario, policies })
}

/// Refuses what is no scenario: the file of a sweep, or a question to `advise`.
fn refuse_others(py: Python<'_>, document: &Document) -> PyResult<()> {
    let (key, says) = match Kind::of(document) {
        Some(Kind::Sweep) => ("scenario", "this is a sweep; `anabranch.sweep` runs it"),
        Some(Kind::Failover) => {
            ("budget", "this is a question, not a scenario; `anabranch advise failover` answers it")
        }
        Some(Kind::Policy) => {
            ("transfer", "this is a question, not a scenario; `anabranch advise policy` answers it")
        }
        Some(Kind::Scenario) | None => return Ok(()),
    };
    Err(raise(py, &document.error(key, says)))
}

/// The files of `folder` by name, without ".csv".
fn written(folder: &std::path::Path) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let mut series = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        series.push((name, std::fs::read(path)?));
    }
    series.sort();
    Ok(series)
}

fn simulate(
    py: Python<'_>,
    document: &Document,
    scenario: &Scenario,
    policies: &Policies,
    series: Option<&mut CsvSeries>,
    watch: Option<Py<PyAny>>,
) -> PyResult<RunResult> {
    let mut stopped = None;
    let mut ask = |progress: anabranch_sim::Progress| {
        let asked = Python::attach(|py| {
            py.check_signals()?;
            let at = (progress.now.as_secs_f64(), progress.delivered, progress.expected);
            watch.as_ref().map_or(Ok(()), |watch| watch.call1(py, at).map(drop))
        });
        match asked {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                stopped = Some(error);
                ControlFlow::Break(())
            }
        }
    };
    let ended = py.detach(|| {
        let options = RunOptions {
            policies: policies.clone(),
            observer: series.map(|series| series as _),
            progress: Some(&mut ask),
            ..RunOptions::default()
        };
        catch_unwind(AssertUnwindSafe(|| anabranch_sim::run(scenario, options)))
    });
    match ended {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(RunError::Interrupted { at })) => {
            let why = format!("interrupted after {} virtual seconds", at.as_secs_f64());
            Err(stopped.unwrap_or_else(|| PyRuntimeError::new_err(why)))
        }
        Ok(Err(error)) => Err(match document.blame(scenario, &error) {
            Some(fault) => raise(py, &fault),
            None => PyRuntimeError::new_err(error.to_string()),
        }),
        Err(panic) => Err(policies::error_of(panic.as_ref())),
    }
}

/// The content key of a run of the scenario `text` with this seed: 64 hexadecimal digits.
#[pyfunction]
#[pyo3(signature = (file, text, set, seed))]
pub(crate) fn content_key(
    py: Python<'_>,
    file: &str,
    text: &str,
    set: Vec<String>,
    seed: Option<u64>,
) -> PyResult<String> {
    let policies = Policies::default();
    let document = read(py, file, text, &set)?;
    refuse_others(py, &document)?;
    let mut scenario = document.scenario("", &policies).map_err(|fault| raise(py, &fault))?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    let key = scenario.content_key(env!("CARGO_PKG_VERSION"), &policies);
    key.map_err(|error| PyRuntimeError::new_err(error.to_string()))
}
