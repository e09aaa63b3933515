//! Runs what a sweep lacks, on all cores.
//!
//! Runs are handed out in the order of cells and seeds and finish in any order. Whether a cell has enough seeds is
//! decided only over its seeds from the first without a gap, so that the answer is the same on any number of
//! threads; the few runs that were handed out beyond it are kept and not counted.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_sim::RunOptions;
use anabranch_sim::scenario::Scenario;

use super::journal::{Journal, Kept};
use super::{Cell, LEAST_SEEDS, Sweep, SweepError, tables};
use crate::entry::entry;
use crate::statistics::Moments;

/// Who watches a sweep, and can end it.
pub struct Watch<'a> {
    /// Ends it: runs that are under way are given up, finished ones are kept.
    pub stop: &'a AtomicBool,
    /// Gets the runs that are finished, and all that will be.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// What has been run.
pub struct Executed {
    /// By cell.
    pub(super) cells: Vec<Runs>,
    /// Runs that are finished.
    pub done: u64,
    /// Runs that the sweep has in all.
    pub all: u64,
}

impl Executed {
    /// Whether the sweep is complete, and its tables are written.
    pub fn is_complete(&self) -> bool {
        self.cells.iter().all(|cell| cell.enough.is_some())
    }
}

/// The runs of a cell.
#[derive(Default)]
pub(super) struct Runs {
    /// By seed; `None`: not finished.
    runs: Vec<Option<Box<[f64]>>>,
    /// Finished ones from the first seed without a gap, and the moments of the measures over them.
    gapless: u64,
    moments: Vec<Moments>,
    /// Finished ones in all.
    finished: u64,
    /// The next seed to hand out.
    next: u64,
    /// How many seeds count, once that is known.
    enough: Option<u64>,
}

impl Runs {
    /// By seed, the values by measure of the runs that count.
    pub(super) fn counted(&self) -> impl Iterator<Item = &[f64]> {
        self.runs.iter().flatten().take(self.enough.unwrap_or(0) as usize).map(|values| &**values)
    }

    /// A run is finished; `Err` if another result of it is known.
    fn finish(&mut self, sweep: &Sweep, n: u64, values: Box<[f64]>) -> Result<(), String> {
        let place = n as usize;
        if self.runs.len() <= place {
            self.runs.resize(place + 1, None);
        }
        match &self.runs[place] {
            Some(known) if same(known, &values) => return Ok(()),
            Some(_) => return Err("this run has two results".to_owned()),
            None => self.runs[place] = Some(values),
        }
        self.finished += 1;
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
            let width = moments.half_width(0.95).zip(moments.mean());
            width.is_some_and(|(half_width, mean)| half_width <= share * mean.abs())
        };
        let judged = !sweep.until.is_empty() && self.gapless >= LEAST_SEEDS;
        self.gapless == sweep.seeds || judged && sweep.until.iter().all(narrow)
    }
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.iter().map(|value| value.to_bits()).eq(b.iter().map(|value| value.to_bits()))
}

/// Runs what `directory` lacks of the sweep on `threads` threads (`None`: one a core), and writes the tables when
/// nothing is missing.
pub fn execute(
    sweep: &Sweep,
    directory: &Path,
    threads: Option<usize>,
    watch: &Watch<'_>,
) -> Result<Executed, SweepError> {
    let mut cells: Vec<Runs> = (0..sweep.cells()).map(|_| Runs::default()).collect();
    let journal = Journal::open(sweep, directory, |kept| {
        let belongs = kept.values.len() == sweep.measures.len() && kept.n < super::MOST_RUNS;
        match cells.get_mut(kept.cell) {
            Some(cell) if belongs => cell.finish(sweep, kept.n, kept.values),
            _ => Err("no such run".to_owned()),
        }
    })?;
    let state = Mutex::new(State { cells, journal, first: 0, failed: None });
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
    let (done, all) = state.count(sweep);
    let executed = Executed { cells: state.cells, done, all };
    if executed.is_complete() {
        tables::write(sweep, &executed, &mut state.journal)?;
    }
    Ok(executed)
}

struct Crew<'a> {
    sweep: &'a Sweep,
    watch: &'a Watch<'a>,
    state: Mutex<State>,
}

struct State {
    cells: Vec<Runs>,
    journal: Journal,
    /// Before this cell nothing is left to be handed out.
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
            let done = self.cell(&mut current, number).and_then(|cell| self.run(cell, n));
            match done {
                Ok(Some(values)) => self.finish(Kept { cell: number, n, values }),
                Ok(None) => return,
                Err(error) => return self.lock().fail(error),
            }
        }
    }

    /// The cell `number`, which a thread keeps while its runs are of the same cell.
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

    /// The measures of one run; `None` if it was ended.
    fn run(&self, cell: &Cell, n: u64) -> Result<Option<Box<[f64]>>, SweepError> {
        let scenario = Scenario { seed: self.sweep.seed(n), ..cell.scenario.clone() };
        let mut ask = |_| match self.watch.stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let options = RunOptions { progress: Some(&mut ask), ..RunOptions::default() };
        let Some(result) = cell.result(&scenario, options)? else { return Ok(None) };
        let value = |name: &str| match entry(&result, name) {
            Ok(serde_json::Value::Bool(holds)) => f64::from(u8::from(*holds)),
            Ok(value) => value.as_f64().unwrap_or(f64::NAN),
            Err(_) => f64::NAN,
        };
        Ok(Some(self.sweep.measures.iter().map(|measure| value(&measure.entry)).collect()))
    }

    fn finish(&self, run: Kept) {
        let mut state = self.lock();
        if let Err(error) = state.journal.append(&run) {
            return state.fail(error);
        }
        let Kept { cell, n, values } = run;
        if let Err(why) = state.cells[cell].finish(self.sweep, n, values) {
            return state.fail(SweepError::Run(why));
        }
        drop(state);
        self.tell();
    }

    fn tell(&self) {
        let (done, all) = self.lock().count(self.sweep);
        (self.watch.progress)(done, all);
    }
}

impl State {
    /// The next run that nobody has begun.
    fn hand_out(&mut self, sweep: &Sweep) -> Option<(usize, u64)> {
        if self.failed.is_some() {
            return None;
        }
        while let Some(cell) = self.cells.get_mut(self.first) {
            while cell.enough.is_none() && cell.next < sweep.seeds {
                let n = cell.next;
                cell.next += 1;
                if cell.runs.get(n as usize).is_none_or(Option::is_none) {
                    return Some((self.first, n));
                }
            }
            self.first += 1;
        }
        None
    }

    /// The first failure is the one that is told.
    fn fail(&mut self, error: SweepError) {
        self.failed.get_or_insert(error);
    }

    /// Finished runs that count, and all that will.
    fn count(&self, sweep: &Sweep) -> (u64, u64) {
        let of = |cell: &Runs| match cell.enough {
            Some(enough) => (enough, enough),
            None => (cell.finished.min(sweep.seeds), sweep.seeds),
        };
        self.cells.iter().map(of).fold((0, 0), |sum, cell| (sum.0 + cell.0, sum.1 + cell.1))
    }
}
