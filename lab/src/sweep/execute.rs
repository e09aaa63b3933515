//! Runs the missing runs of a sweep on all cores.
//!
//! Runs are started in the order of cells and seeds and finish in any order. Whether a cell has enough seeds is
//! decided only over its finished seeds from the first one without a gap, so that the decision is the same on any
//! number of threads. The few runs that were started beyond that point are kept but not counted.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_sim::RunOptions;
use anabranch_sim::scenario::Scenario;

use super::journal::{FinishedRun, Journal};
use super::{Cell, LEAST_EQUAL, LEAST_SEEDS, Sweep, SweepError, tables};
use crate::entry::entry;
use crate::statistics::{Moments, is_spread};

/// Observes a sweep and can stop it.
pub struct Watch<'a> {
    /// Ends the sweep: running runs are abandoned, finished runs are kept.
    pub stop: &'a AtomicBool,
    /// Receives the number of finished runs and of all runs.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("stop", &self.stop).finish_non_exhaustive()
    }
}

/// The results of a sweep.
#[derive(Debug)]
pub struct Executed {
    /// By cell.
    pub(super) cells: Vec<Runs>,
    /// Runs that are finished.
    pub done: u64,
    /// The number of runs of the sweep, or of this shard of it.
    pub all: u64,
    /// Whether this is a shard; a shard has no tables.
    shard: bool,
}

impl Executed {
    /// The counted runs of a cell that have this measure: the number of each, and its value.
    pub fn values(&self, cell: usize, measure: usize) -> Vec<(u64, f64)> {
        let values = self.cells[cell].counted().map(|(n, values)| (n, values[measure]));
        values.filter(|(_, value)| !value.is_nan()).collect()
    }

    /// The number of counted runs of a cell, also of those without a value and of those that failed.
    pub fn counted(&self, cell: usize) -> usize {
        self.cells[cell].counted().count()
    }

    /// The number of counted runs that failed.
    pub fn failed(&self) -> usize {
        self.cells.iter().map(|cell| cell.failed().count()).sum()
    }

    /// Whether no run is missing. Then the tables have been written, unless this is a shard. [`super::merge`] writes
    /// them in any case.
    pub fn is_complete(&self) -> bool {
        self.done == self.all
    }
}

/// The runs of a cell.
#[derive(Default, Debug)]
pub(super) struct Runs {
    /// By seed; `None`: not finished.
    runs: Vec<Option<Box<[f64]>>>,
    /// By seed: why the run failed. All its values are NaN.
    failed: BTreeMap<u64, String>,
    /// The number of finished runs from the first seed without a gap, and the moments of the measures over them.
    gapless: u64,
    moments: Vec<Moments>,
    /// The number of runs wanted here: all seeds, or those of the shard.
    own: u64,
    /// The number of these runs that are finished.
    finished: u64,
    /// The next seed to start.
    next: u64,
    /// The number of seeds that count, once it is known.
    enough: Option<u64>,
}

impl Runs {
    fn new(sweep: &Sweep, cell: usize) -> Runs {
        let own = match sweep.shard {
            None => sweep.seeds,
            Some(_) => (0..sweep.seeds).filter(|n| sweep.has(cell, *n)).count() as u64,
        };
        Runs { own, ..Runs::default() }
    }

    /// The runs that count, each with the number of its seed and its values by measure.
    pub(super) fn counted(&self) -> impl Iterator<Item = (u64, &[f64])> {
        let counting = (0..).zip(&self.runs).take(self.enough.unwrap_or(0) as usize);
        counting.filter_map(|(n, values)| Some((n, values.as_deref()?)))
    }

    /// The values of the run with this number, if it counts.
    pub(super) fn values_of(&self, n: u64) -> Option<&[f64]> {
        let values = self.runs.get(usize::try_from(n).ok()?)?.as_deref();
        values.filter(|_| n < self.enough.unwrap_or(0))
    }

    /// The counted runs that failed, and why.
    pub(super) fn failed(&self) -> impl Iterator<Item = (u64, &str)> {
        self.failed.range(..self.enough.unwrap_or(0)).map(|(n, why)| (*n, why.as_str()))
    }

    /// Records a finished run; `Err` if a different result of it is known.
    fn finish(&mut self, sweep: &Sweep, run: FinishedRun) -> Result<(), String> {
        let FinishedRun { cell, n, values, failed } = run;
        let own = n < sweep.seeds && sweep.has(cell, n);
        let place = n as usize;
        if self.runs.len() <= place {
            self.runs.resize(place + 1, None);
        }
        match &self.runs[place] {
            Some(known) if same(known, &values) => return Ok(()),
            Some(_) => return Err("this run has two results".to_owned()),
            None => self.runs[place] = Some(values),
        }
        self.finished += u64::from(own);
        self.failed.extend(failed.map(|why| (n, why)));
        self.moments.resize(sweep.measures.len(), Moments::default());
        while let Some(Some(values)) = self.runs.get(self.gapless as usize) {
            let known = self.moments.iter_mut().zip(values).filter(|(_, value)| !value.is_nan());
            known.for_each(|(moments, value)| moments.add(*value));
            self.gapless += 1;
            if self.enough.is_none() && self.suffices(sweep) {
                self.enough = Some(self.gapless);
            }
        }
        Ok(())
    }

    fn suffices(&self, sweep: &Sweep) -> bool {
        let narrow = |(measure, share): &(usize, f64)| {
            let moments = &self.moments[*measure];
            // Of few values the interval can be narrow by chance, or because two are equal.
            let many = moments.count() >= LEAST_SEEDS;
            let width = moments.half_width(0.95).zip(moments.mean());
            let narrow = |(half, mean): (f64, f64)| match is_spread(mean, half) {
                true => half <= share * mean.abs(),
                false => mean != 0.0 && moments.count() >= LEAST_EQUAL,
            };
            many && width.is_some_and(narrow)
        };
        let judged = !sweep.until.is_empty() && self.gapless >= LEAST_SEEDS;
        self.gapless == sweep.seeds || judged && sweep.until.iter().all(narrow)
    }
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.iter().map(|value| value.to_bits()).eq(b.iter().map(|value| value.to_bits()))
}

/// Runs what is missing in `directory` on `threads` threads (`None`: one per core), and writes the tables when no run
/// is missing.
///
/// The directory knows policies of your own by their names only. After a change of their code, choose another one: this
/// one would be continued, and its tables would have results of both.
pub fn execute(
    sweep: &Sweep,
    directory: &Path,
    threads: Option<usize>,
    watch: &Watch<'_>,
) -> Result<Executed, SweepError> {
    let state = Mutex::new(State::open(sweep, directory)?);
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let crew = Crew { sweep, watch, state };
    crew.tell();
    std::thread::scope(|scope| {
        for _ in 0..threads.unwrap_or_else(cores).max(1) {
            scope.spawn(|| crew.work());
        }
    });
    let mut state = crew.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(failed) = state.failed.take() {
        return Err(failed);
    }
    state.conclude(sweep)
}

/// Adds `runs` to those in `directory`, and writes the tables. If runs are missing, these are tables of those that
/// exist.
pub fn add(sweep: &Sweep, directory: &Path, runs: Vec<FinishedRun>) -> Result<Executed, SweepError> {
    let mut state = State::open(sweep, directory)?;
    for run in runs {
        state.add(sweep, run)?;
    }
    let (done, all) = state.count();
    for cell in &mut state.cells {
        cell.enough.get_or_insert(cell.runs.len() as u64);
    }
    let executed = Executed { cells: state.cells, done, all, shard: false };
    tables::write(sweep, &executed, &mut state.journal)?;
    Ok(executed)
}

/// The finished runs in `directory`, by cell and then by seed; for cells that have enough seeds, the counted ones.
pub fn finished_runs(sweep: &Sweep, directory: &Path) -> Result<Vec<FinishedRun>, SweepError> {
    let state = State::open(sweep, directory)?;
    let mut all = Vec::new();
    for (cell, of) in state.cells.into_iter().enumerate() {
        let most = of.enough.unwrap_or(sweep.seeds);
        let runs = (0..most).zip(of.runs);
        all.extend(runs.filter_map(|(n, values)| {
            Some(FinishedRun { cell, n, values: values?, failed: of.failed.get(&n).cloned() })
        }));
    }
    Ok(all)
}

impl Sweep {
    /// Runs these seeds (from 0) of this cell in sequence. `Ok(None)` if `stop` ended them.
    pub fn runs_of(
        &self,
        cell: usize,
        seeds: Range<u64>,
        stop: &AtomicBool,
    ) -> Result<Option<Vec<FinishedRun>>, SweepError> {
        let made = self.cell(cell)?;
        Ok(seeds.map(|n| self.run(&made, cell, n, stop)).collect())
    }

    /// Runs once; `None` if the run was ended. A run that fails, or panics where panics unwind, is kept as failed.
    fn run(&self, cell: &Cell, number: usize, n: u64, stop: &AtomicBool) -> Option<FinishedRun> {
        let scenario = Scenario { seed: self.seed(n), ..cell.scenario.clone() };
        let mut ask = |_| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let policies = self.policies.clone();
        let options = RunOptions { policies, progress: Some(&mut ask), ..RunOptions::default() };
        let ended = catch_unwind(AssertUnwindSafe(|| cell.result(&scenario, options)));
        let ended = ended.unwrap_or_else(|panic| Err(SweepError::Run(panic_message(panic.as_ref()))));
        let finished = |values, failed| FinishedRun { cell: number, n, values, failed };
        match ended {
            Ok(result) => result.map(|result| finished(self.measured(&result), None)),
            Err(error) => {
                let none = vec![f64::NAN; self.measures.len()].into();
                Some(finished(none, Some(error.to_string())))
            }
        }
    }

    /// The measures of a result.
    fn measured(&self, result: &serde_json::Value) -> Box<[f64]> {
        let value = |name: &str| match entry(result, name) {
            Ok(serde_json::Value::Bool(holds)) => f64::from(u8::from(*holds)),
            Ok(value) => value.as_f64().unwrap_or(f64::NAN),
            Err(_) => f64::NAN,
        };
        self.measures.iter().map(|measure| value(&measure.entry)).collect()
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("the run panicked").to_owned()
}

/// Decides how many seeds each cell needs while runs finish in any order. Writes nothing.
#[derive(Debug)]
pub struct Judge {
    cells: Vec<Runs>,
}

impl Judge {
    /// A sweep without a finished run.
    pub fn new(sweep: &Sweep) -> Judge {
        Judge { cells: (0..sweep.cells()).map(|cell| Runs::new(sweep, cell)).collect() }
    }

    /// Records a finished run; `Err` if it does not belong to the sweep or already has a different result.
    pub fn finish(&mut self, sweep: &Sweep, run: FinishedRun) -> Result<(), String> {
        match run.belongs(sweep) {
            true => self.cells[run.cell].finish(sweep, run),
            false => Err("no such run".to_owned()),
        }
    }

    /// The number of seeds that count for this cell, once it is known.
    pub fn enough(&self, cell: usize) -> Option<u64> {
        self.cells.get(cell)?.enough
    }
}

struct Crew<'a> {
    sweep: &'a Sweep,
    watch: &'a Watch<'a>,
    state: Mutex<State>,
}

struct State {
    cells: Vec<Runs>,
    journal: Journal,
    /// No cell before this one has a run left to start.
    first: usize,
    failed: Option<SweepError>,
}

impl Crew<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut current: Option<(usize, Cell)> = None;
        while !self.watch.stop.load(Ordering::Relaxed) {
            let Some((number, n)) = self.lock().hand_out(self.sweep) else { return };
            let done =
                self.cell(&mut current, number).map(|cell| self.sweep.run(cell, number, n, self.watch.stop));
            match done {
                Ok(Some(run)) => self.finish(run),
                Ok(None) => return,
                Err(error) => return self.lock().fail(error),
            }
        }
    }

    /// The cell with this number, which a thread keeps while its runs belong to the same cell.
    fn cell<'c>(
        &self,
        current: &'c mut Option<(usize, Cell)>,
        number: usize,
    ) -> Result<&'c Cell, SweepError> {
        let known = current.take().filter(|(known, _)| *known == number);
        let cell = match known {
            Some((_, cell)) => cell,
            None => self.sweep.cell(number)?,
        };
        Ok(&current.insert((number, cell)).1)
    }

    fn finish(&self, run: FinishedRun) {
        let mut state = self.lock();
        // If a line could be written only in part, another would follow on it.
        if state.failed.is_some() {
            return;
        }
        if let Err(error) = state.add(self.sweep, run) {
            return state.fail(error);
        }
        drop(state);
        self.tell();
    }

    fn tell(&self) {
        let (done, all) = self.lock().count();
        (self.watch.progress)(done, all);
    }
}

impl State {
    /// The contents of `directory`.
    fn open(sweep: &Sweep, directory: &Path) -> Result<State, SweepError> {
        let mut cells: Vec<Runs> = (0..sweep.cells()).map(|cell| Runs::new(sweep, cell)).collect();
        let journal = Journal::open(sweep, directory, |run| match run.belongs(sweep) {
            true => cells[run.cell].finish(sweep, run),
            false => Err("no such run".to_owned()),
        })?;
        Ok(State { cells, journal, first: 0, failed: None })
    }

    /// Keeps a finished run.
    fn add(&mut self, sweep: &Sweep, run: FinishedRun) -> Result<(), SweepError> {
        if !run.belongs(sweep) {
            return Err(SweepError::Run("no such run".to_owned()));
        }
        let known = self.cells[run.cell].runs.get(run.n as usize).is_some_and(Option::is_some);
        if !known {
            self.journal.append(&run)?;
        }
        self.cells[run.cell].finish(sweep, run).map_err(SweepError::Run)
    }

    /// Writes the tables if nothing is missing and this is no shard.
    fn conclude(mut self, sweep: &Sweep) -> Result<Executed, SweepError> {
        let (done, all) = self.count();
        let executed = Executed { cells: self.cells, done, all, shard: sweep.shard.is_some() };
        if executed.is_complete() && !executed.shard {
            tables::write(sweep, &executed, &mut self.journal)?;
        }
        Ok(executed)
    }

    /// The next run that was not started.
    fn hand_out(&mut self, sweep: &Sweep) -> Option<(usize, u64)> {
        if self.failed.is_some() {
            return None;
        }
        while let Some(cell) = self.cells.get_mut(self.first) {
            while cell.enough.is_none() && cell.next < sweep.seeds {
                let n = cell.next;
                cell.next += 1;
                let finished = cell.runs.get(n as usize).is_some_and(Option::is_some);
                if !finished && sweep.has(self.first, n) {
                    return Some((self.first, n));
                }
            }
            self.first += 1;
        }
        None
    }

    /// The first failure is reported.
    fn fail(&mut self, error: SweepError) {
        self.failed.get_or_insert(error);
    }

    /// The numbers of finished counted runs and of all runs.
    fn count(&self) -> (u64, u64) {
        let of = |cell: &Runs| match cell.enough.map(|enough| enough.min(cell.own)) {
            Some(enough) => (enough, enough),
            None => (cell.finished, cell.own),
        };
        self.cells.iter().map(of).fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENT: &(dyn Fn(u64, u64) + Sync) = &|_, _| {};

    #[test]
    fn after_a_failure_nothing_more_is_written() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        let stop = AtomicBool::new(false);
        let watch = Watch { stop: &stop, progress: SILENT };
        let state = State::open(&sweep, place.path()).expect("it begins");
        let crew = Crew { sweep: &sweep, watch: &watch, state: Mutex::new(state) };
        let journal = || std::fs::read(place.path().join("runs.journal")).expect("the journal");
        let run = |n| FinishedRun { cell: 0, n, values: [1.0].into(), failed: None };
        crew.finish(run(0));
        let before = journal();
        crew.lock().fail(SweepError::Run("a line was written in part".to_owned()));
        crew.finish(run(1));
        assert_eq!(journal(), before);
    }

    /// Of rare events the first thirty seeds may have none: an interval of 0 is no precision.
    #[test]
    fn equal_values_do_not_suffice() {
        let mut sweep = super::super::tests::sweep("");
        sweep.seeds = 400;
        sweep.until = vec![(0, 0.05)];
        let enough = |value: &dyn Fn(u64) -> f64| {
            let mut judge = Judge::new(&sweep);
            for n in 0..400 {
                let run = FinishedRun { cell: 0, n, values: [value(n)].into(), failed: None };
                judge.finish(&sweep, run).expect("a run of the sweep");
            }
            judge.enough(0)
        };
        assert_eq!(enough(&|_| 0.0), Some(400));
        assert_eq!(enough(&|_| 1.7), Some(LEAST_EQUAL));
        assert_eq!(enough(&|n| 1.0 + 0.001 * n as f64), Some(LEAST_SEEDS));
    }

    #[test]
    fn failures_of_seeds_that_no_longer_count_are_not_told() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        let run = |n, value, failed| FinishedRun { cell: 0, n, values: [value].into(), failed };
        let runs = vec![run(0, 1.0, None), run(1, f64::NAN, Some("it failed".to_owned()))];
        assert_eq!(add(&sweep, place.path(), runs).expect("tables").failed(), 1);
        assert!(place.path().join("failed.json").exists());
        let fewer = Sweep { seeds: 1, ..sweep };
        let watch = Watch { stop: &AtomicBool::new(false), progress: SILENT };
        let executed = execute(&fewer, place.path(), Some(1), &watch).expect("tables");
        assert!(executed.is_complete() && executed.failed() == 0);
        assert!(!place.path().join("failed.json").exists(), "the failed run is none of this sweep");
    }
}
