//! Publications and models.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_lab::claims::{Outcome, Paper, PaperError, Plan, PlanError, selects};
use anabranch_lab::models;
use anabranch_sim::scenario::error::did_you_mean;
use include_dir::{Dir, include_dir};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use serde::Serialize;

use crate::document::raise;
use crate::objects::{object, rows};
use crate::sweep::watched;
use crate::tables::Table;

/// The publications that the package was built with.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../papers");

/// The names of the publications that the package has.
#[pyfunction]
pub(crate) fn papers() -> Vec<String> {
    let folders =
        BUILT_IN.dirs().filter(|folder| folder.get_file(folder.path().join("paper.toml")).is_some());
    folders.map(|folder| folder.path().display().to_string()).collect()
}

/// A publication with its claims judged.
#[pyclass(frozen, module = "anabranch._core")]
#[derive(Serialize)]
pub(crate) struct Reproduction {
    paper: String,
    title: String,
    claims: Vec<Outcome>,
}

#[pymethods]
impl Reproduction {
    /// Runs what the claims of `paper` need and judges them. `paper`: a folder, or the name of one of [`papers`].
    /// `progress` is called with the number of runs that are finished and of all.
    #[new]
    #[pyo3(signature = (paper, claims, seeds, threads, progress))]
    fn new(
        py: Python<'_>,
        paper: PathBuf,
        claims: Option<Vec<String>>,
        seeds: Option<u64>,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let place = tempfile::tempdir()?;
        let folder = if paper.is_dir() { paper } else { unpacked(&paper, place.path())? };
        let paper = Paper::open(&folder).map_err(|error| paper_error(py, &error))?;
        if seeds == Some(0) {
            return Err(PyValueError::new_err("seeds: 0 is out of range; it must be 1 or more"));
        }
        let unknown = |name: &&String| !paper.has_claim(name);
        if let Some(name) = claims.iter().flatten().find(unknown) {
            let groups = paper.cases.iter().map(|case| case.id.split('/').next().unwrap_or(&case.id));
            let groups: BTreeSet<&str> = groups.collect();
            let why = format!("`{}` has no claim `{name}`: {}", paper.name, did_you_mean(name, groups));
            return Err(PyValueError::new_err(why));
        }
        let wants =
            |id: &str| claims.as_ref().is_none_or(|claims| claims.iter().any(|name| selects(name, id)));
        let plan = Plan::new(&paper, seeds, wants).map_err(|error| plan_error(py, error))?;
        let judged = watched(py, progress, |stop, tell| judge(&plan, threads, stop, tell))?;
        let claims = judged.map_err(|error| plan_error(py, error))?;
        Ok(Reproduction { paper: paper.name.clone(), title: paper.title.clone(), claims })
    }

    /// The verdicts as JSON text, as `anabranch reproduce --json` prints them.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(self).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// One row a claim.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let claims = rows(&object(py, &self.claims)?)?;
        Table::of_rows(&claims.iter().map(row).collect::<PyResult<Vec<_>>>()?)
    }
}

/// The row of a claim. Lists become text, so that a table shows what a claim compares: those of names in their place,
/// and others in columns `NAME.list`, because the column `NAME` has the numbers of claims about one value.
fn row<'py>(claim: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
    let py = claim.py();
    let row = PyDict::new(py);
    for (key, value) in claim.iter() {
        let Ok(items) = value.cast::<PyList>() else {
            row.set_item(key, &value)?;
            continue;
        };
        let names = items.iter().all(|item| item.is_instance_of::<PyString>());
        match items.len() {
            0 => row.set_item(key, py.None())?,
            1 if !items.get_item(0)?.is_instance_of::<PyDict>() => row.set_item(key, items.get_item(0)?)?,
            _ if names => row.set_item(key, json_text(items)?)?,
            _ => row.set_item(format!("{key}.list"), json_text(items)?)?,
        }
    }
    Ok(row)
}

/// A list as JSON.
fn json_text<'py>(items: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyAny>> {
    let options = PyDict::new(items.py());
    options.set_item("ensure_ascii", false)?;
    items.py().import("json")?.getattr("dumps")?.call((items,), Some(&options))
}

/// Unwinds from within the plan when the user stops it: the runs under way are finished, no other is begun.
fn judge(
    plan: &Plan<'_>,
    threads: Option<usize>,
    stop: &AtomicBool,
    tell: &(dyn Fn(u64, u64) + Sync),
) -> Result<Vec<Outcome>, PlanError> {
    let size = plan.size() as u64;
    let done = |done: usize, _: usize| {
        if stop.load(Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("interrupted"));
        }
        tell(done as u64, size.max(done as u64));
    };
    plan.run(threads, &done)
}

/// The publication `paper` of those that are built in, as a folder below `place`.
fn unpacked(paper: &Path, place: &Path) -> PyResult<PathBuf> {
    if BUILT_IN.get_dir(paper).is_none() {
        let known = papers().join("`, `");
        let why = format!("there is no folder and no publication `{}`; there are `{known}`", paper.display());
        return Err(PyValueError::new_err(why));
    }
    BUILT_IN.extract(place)?;
    Ok(place.join(paper))
}

fn paper_error(py: Python<'_>, error: &PaperError) -> PyErr {
    match error {
        PaperError::Text(fault) => raise(py, fault),
        PaperError::File { .. } => PyOSError::new_err(error.to_string()),
    }
}

fn plan_error(py: Python<'_>, error: PlanError) -> PyErr {
    match error {
        PlanError::Paper(error) => paper_error(py, &error),
        PlanError::Run(why) => PyRuntimeError::new_err(why),
        PlanError::Finished(error) => PyOSError::new_err(error.to_string()),
    }
}

/// The results of the model `name` for these inputs: the terms by name as JSON text, and as a table.
#[pyfunction]
pub(crate) fn model(py: Python<'_>, name: &str, inputs: Vec<(String, String)>) -> PyResult<(String, Table)> {
    if !models::NAMES.contains(&name) {
        let known = models::NAMES.join("`, `");
        return Err(PyValueError::new_err(format!("there is no model `{name}`; there are `{known}`")));
    }
    let terms = models::terms(name, &inputs).map_err(|fault| raise(py, &fault))?;
    let row = |term: &models::Term| {
        let row = PyDict::new(py);
        row.set_item("term", term.name)?;
        row.set_item("symbol", term.symbol)?;
        row.set_item("value", term.value.filter(|value| value.is_finite()))?;
        row.set_item("unit", term.unit)?;
        row.set_item("meaning", term.meaning)?;
        Ok(row)
    };
    let table = Table::of_rows(&terms.iter().map(row).collect::<PyResult<Vec<_>>>()?)?;
    Ok((models::object(&terms).to_string(), table))
}
