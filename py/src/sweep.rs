//! Sweeps: on the threads of this machine, or run by run for those who distribute them.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_lab::sweep::{self, FinishedRun, SweepError, Watch};
use anabranch_sim::scenario::Document;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray, UInt64Array};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;

use crate::document::{raise, read};
use crate::policies;
use crate::tables::Table;

/// A sweep whose cells have been checked.
#[pyclass(frozen, module = "anabranch._core")]
pub(crate) struct Sweep {
    sweep: sweep::Sweep,
}

/// Finished runs of a sweep, which Python only hands on.
#[pyclass(frozen, module = "anabranch._core")]
pub(crate) struct Runs {
    runs: Vec<FinishedRun>,
}

#[pymethods]
impl Runs {
    fn __len__(&self) -> usize {
        self.runs.len()
    }
}

#[pymethods]
impl Sweep {
    /// A sweep from the file at `path`.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Sweep> {
        made(py, py.detach(|| sweep::Sweep::open(&path)))
    }

    /// A sweep from the text `sweep` over the text `scenario`, each with its name in errors. `own`: policies by name.
    #[staticmethod]
    #[pyo3(signature = (sweep, scenario, set, own))]
    fn over(
        py: Python<'_>,
        sweep: (String, String),
        scenario: (String, String),
        set: Vec<String>,
        own: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Sweep> {
        let file = Document::parse(&sweep.0, &sweep.1).map_err(|fault| raise(py, &fault))?;
        let scenario = read(py, &scenario.0, &scenario.1, &set)?;
        let policies = policies::table(own)?;
        made(py, py.detach(|| sweep::Sweep::over(file, scenario, policies)))
    }

    /// A sweep from the result of [`Sweep::description`]. `own`: policies by name.
    #[staticmethod]
    #[pyo3(signature = (description, own))]
    fn described(py: Python<'_>, description: &str, own: Option<&Bound<'_, PyDict>>) -> PyResult<Sweep> {
        let policies = policies::table(own)?;
        made(py, py.detach(|| sweep::Sweep::described(description, policies)))
    }

    /// Both documents of the sweep, as one line.
    fn description(&self) -> String {
        self.sweep.description()
    }

    /// The content key of the sweep: of its cells, measures and the version of the program, not of how many seeds.
    fn identity(&self, py: Python<'_>) -> PyResult<String> {
        self.sweep.identity().map_err(|error| exception(py, error))
    }

    /// The keys that are varied.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.sweep.vary.iter().map(|axis| axis.key.as_str()).collect()
    }

    /// The names of the measures.
    #[getter]
    fn measures(&self) -> Vec<&str> {
        self.sweep.measures.iter().map(|measure| measure.name.as_str()).collect()
    }

    /// The names of the measures, each with its unit.
    #[getter]
    fn headings(&self) -> Vec<String> {
        self.sweep.measures.iter().map(|measure| measure.heading()).collect()
    }

    /// Cells of the grid.
    #[getter]
    fn cells(&self) -> usize {
        self.sweep.cells()
    }

    /// Seeds a cell, at most.
    #[getter]
    fn seeds(&self) -> u64 {
        self.sweep.seeds
    }

    /// Whether the measures decide how many seeds are enough (`until`).
    #[getter]
    fn judges(&self) -> bool {
        self.sweep.judges()
    }

    /// Runs the seeds from number `first` (counted from 0) up to but not `end` of cell number `cell`, one after the
    /// other. A signal ends it with its exception.
    fn runs_of(&self, py: Python<'_>, cell: usize, first: u64, end: u64) -> PyResult<Runs> {
        let ran = watched(py, None, |stop, _| self.sweep.runs_of(cell, Range { start: first, end }, stop))?;
        let runs = ran.map_err(|error| exception(py, error))?.unwrap_or_default();
        Ok(Runs { runs })
    }

    /// The run of seed number `n` of cell number `cell` as a failed one, and why it failed.
    fn failed(&self, cell: usize, n: u64, why: String) -> Runs {
        let values = vec![f64::NAN; self.sweep.measures.len()].into();
        Runs { runs: vec![FinishedRun { cell, n, values, failed: Some(why) }] }
    }

    /// The runs as a table: cell, seed, varied keys, measures, and the `error` of a failed run.
    fn table(&self, runs: &Runs) -> PyResult<Table> {
        let runs = &runs.runs;
        let mut columns: Vec<(String, ArrayRef)> = Vec::new();
        let mut add = |name: &str, column: ArrayRef| columns.push((name.to_owned(), column));
        add("cell", Arc::new(Int64Array::from_iter_values(runs.iter().map(|run| run.cell as i64))));
        let seeds = runs.iter().map(|run| self.sweep.seed(run.n));
        add("seed", Arc::new(UInt64Array::from_iter_values(seeds)));
        for (axis, varied) in self.sweep.vary.iter().enumerate() {
            add(&varied.key, self.varied(axis, runs));
        }
        for (number, measure) in self.sweep.measures.iter().enumerate() {
            let values = runs.iter().map(|run| Some(run.values[number]).filter(|value| !value.is_nan()));
            add(&measure.name, Arc::new(Float64Array::from_iter(values)));
        }
        add("error", Arc::new(StringArray::from_iter(runs.iter().map(|run| run.failed.as_deref()))));
        Table::of(columns)
    }

    /// The runs of a table that [`Sweep::table`] made and that may have been in a file since: those of cell number
    /// `cell`, from seed number `first` on.
    fn runs_from(&self, table: PyTable, cell: usize, first: u64) -> PyResult<Runs> {
        if cell >= self.sweep.cells() {
            return Err(PyValueError::new_err(format!("this sweep has no cell {cell}")));
        }
        let mut runs = Vec::new();
        for batch in table.into_inner().0 {
            let column = |name: &str| {
                let found = batch.column_by_name(name);
                found.ok_or_else(|| PyValueError::new_err(format!("a table of runs has no column `{name}`")))
            };
            let measures = self.sweep.measures.iter().map(|measure| numbers(column(&measure.name)?));
            let measures = measures.collect::<PyResult<Vec<_>>>()?;
            let errors = column("error")?;
            let errors = errors.as_any().downcast_ref::<StringArray>().ok_or_else(unlike)?;
            let cells = column("cell")?.as_any().downcast_ref::<Int64Array>().ok_or_else(unlike)?;
            let seeds = column("seed")?.as_any().downcast_ref::<UInt64Array>().ok_or_else(unlike)?;
            for row in 0..batch.num_rows() {
                let n = first + runs.len() as u64;
                let (found, wanted) =
                    ((cells.value(row), seeds.value(row)), (cell as i64, self.sweep.seed(n)));
                if found != wanted {
                    let why = format!("a row has cell and seed {found:?}, not {wanted:?}");
                    return Err(PyValueError::new_err(why));
                }
                let value =
                    |column: &&Float64Array| if column.is_valid(row) { column.value(row) } else { f64::NAN };
                let values = measures.iter().map(value).collect();
                let failed = errors.is_valid(row).then(|| errors.value(row).to_owned());
                runs.push(FinishedRun { cell, n, values, failed });
            }
        }
        Ok(Runs { runs })
    }

    /// Executes the missing runs of the directory `out` on `threads` threads (None: one per core), and writes the
    /// tables. Returns whether no run is missing. `progress` is called with the number of finished runs and of all
    /// runs.
    #[pyo3(signature = (out, threads, progress))]
    fn execute(
        &self,
        py: Python<'_>,
        out: PathBuf,
        threads: Option<usize>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<bool> {
        let done = watched(py, progress, |stop, tell| {
            sweep::execute(&self.sweep, &out, threads, &Watch { stop, progress: tell })
        })?;
        done.map(|executed| executed.is_complete()).map_err(|error| exception(py, error))
    }

    /// Adds `runs` to those of the directory `out`, and writes the tables if nothing is missing, which is returned.
    fn add(&self, py: Python<'_>, out: PathBuf, runs: Vec<Py<Runs>>) -> PyResult<bool> {
        let runs = runs.iter().flat_map(|runs| runs.get().runs.iter().cloned()).collect();
        let added = py.detach(|| sweep::add(&self.sweep, &out, runs));
        added.map(|executed| executed.is_complete()).map_err(|error| exception(py, error))
    }

    /// The finished runs in the directory `out`, by cell and seed; those that count, if the sweep is complete.
    fn runs_in(&self, py: Python<'_>, out: PathBuf) -> PyResult<Runs> {
        let runs = py.detach(|| sweep::finished_runs(&self.sweep, &out));
        runs.map(|runs| Runs { runs }).map_err(|error| exception(py, error))
    }
}

/// A sweep that was read, unless a measure has the name of another column of its runs.
fn made(py: Python<'_>, read: Result<sweep::Sweep, SweepError>) -> PyResult<Sweep> {
    let sweep = read.map_err(|error| exception(py, error))?;
    let names = sweep.measures.iter().map(|measure| measure.name.as_str());
    match names.into_iter().find(|name| ["cell", "error"].contains(name)) {
        Some(name) => Err(PyValueError::new_err(format!(
            "a measure cannot be called `{name}`: the table of runs has a column of this name; give the measure another"
        ))),
        None => Ok(Sweep { sweep }),
    }
}

/// A column of measures.
fn numbers(column: &ArrayRef) -> PyResult<&Float64Array> {
    column.as_any().downcast_ref().ok_or_else(unlike)
}

fn unlike() -> PyErr {
    PyValueError::new_err("the columns of a table of runs have other types than this sweep writes")
}

impl Sweep {
    /// The values of axis number `axis` in each row as written; numbers and booleans keep their type.
    fn varied(&self, axis: usize, runs: &[FinishedRun]) -> ArrayRef {
        let values = &self.sweep.vary[axis].values;
        let of = |run: &FinishedRun| self.sweep.varied(run.cell)[axis];
        if values.iter().all(serde_json::Value::is_i64) {
            Arc::new(Int64Array::from_iter(runs.iter().map(|run| of(run).as_i64())))
        } else if values.iter().all(serde_json::Value::is_number) {
            Arc::new(Float64Array::from_iter(runs.iter().map(|run| of(run).as_f64())))
        } else if values.iter().all(serde_json::Value::is_boolean) {
            Arc::new(BooleanArray::from_iter(runs.iter().map(|run| of(run).as_bool())))
        } else {
            Arc::new(StringArray::from_iter_values(runs.iter().map(|run| sweep::written(of(run)))))
        }
    }
}

/// Decides how many seeds each cell of a sweep needs, whatever the order in which its runs finish.
#[pyclass(module = "anabranch._core")]
pub(crate) struct Judge {
    sweep: Py<Sweep>,
    judge: sweep::Judge,
}

#[pymethods]
impl Judge {
    #[new]
    fn new(py: Python<'_>, sweep: Py<Sweep>) -> Judge {
        let judge = sweep::Judge::new(&sweep.get().sweep);
        let _ = py;
        Judge { sweep, judge }
    }

    /// These runs are finished.
    fn finish(&mut self, runs: &Runs) -> PyResult<()> {
        let sweep = &self.sweep.get().sweep;
        let mut finish = |run: &FinishedRun| self.judge.finish(sweep, run.clone());
        runs.runs.iter().try_for_each(&mut finish).map_err(PyValueError::new_err)
    }

    /// How many seeds of cell number `cell` count; None while that is not known.
    fn enough(&self, cell: usize) -> Option<u64> {
        self.judge.enough(cell)
    }
}

/// Runs `work` on a thread of its own, while this one looks for signals and calls `progress`. A signal, or an exception
/// of `progress`, sets `work`'s stop flag and is raised when `work` has ended.
pub(crate) fn watched<R: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&AtomicBool, &(dyn Fn(u64, u64) + Sync)) -> R + Send,
) -> PyResult<R> {
    let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    let latest = Mutex::new((0, 0));
    let tell = |done: u64, all: u64| {
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = (done, all);
        changes.fetch_add(1, Ordering::Relaxed);
    };
    let (ended, wait) = channel::<()>();
    py.detach(|| {
        let wait = wait;
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                // Dropped when the work has ended, also by a panic.
                let _ended = ended;
                work(&stop, &tell)
            });
            let (mut told, mut interrupted) = (0, None);
            while wait.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
                let count = changes.load(Ordering::Relaxed);
                let news = (count != told).then(|| *latest.lock().unwrap_or_else(PoisonError::into_inner));
                told = count;
                if interrupted.is_none() {
                    interrupted = Python::attach(|py| look(py, progress.as_ref(), news)).err();
                }
                stop.store(interrupted.is_some(), Ordering::Relaxed);
            }
            let result = worker.join();
            if let Some(error) = interrupted {
                return Err(error);
            }
            let last = *latest.lock().unwrap_or_else(PoisonError::into_inner);
            Python::attach(|py| look(py, progress.as_ref(), Some(last)))?;
            result.map_err(|_| PyRuntimeError::new_err("the work panicked"))
        })
    })
}

/// Handles signals, and tells the progress if there is news of it.
fn look(py: Python<'_>, progress: Option<&Py<PyAny>>, news: Option<(u64, u64)>) -> PyResult<()> {
    py.check_signals()?;
    match (progress, news) {
        (Some(progress), Some(news)) => progress.call1(py, news).map(drop),
        _ => Ok(()),
    }
}

fn exception(py: Python<'_>, error: SweepError) -> PyErr {
    match error {
        SweepError::Text(fault) => raise(py, &fault),
        SweepError::Input { error: ref cause, .. } if cause.kind() == ErrorKind::NotFound => {
            PyFileNotFoundError::new_err(error.to_string())
        }
        SweepError::Input { .. } | SweepError::Output { .. } => PyOSError::new_err(error.to_string()),
        SweepError::Directory { .. } => PyValueError::new_err(error.to_string()),
        SweepError::Run(why) => PyRuntimeError::new_err(why),
    }
}
