//! How the runs behind a figure are made.

use std::sync::Mutex;

use anabranch_lab::claims::{FinishedRuns, Outcome, Paper, Plan};

use super::refusals::refuse_plan;
use crate::progress::Progress;

/// How a figure's runs are made: with so many seeds, on so many threads, and where finished ones are kept.
#[derive(Copy, Clone)]
pub(super) struct Means<'f> {
    pub(super) seeds: Option<u64>,
    pub(super) threads: Option<usize>,
    pub(super) finished: Option<&'f FinishedRuns>,
}

impl Means<'_> {
    /// The outcomes of these claims of the paper, or the exit status of what went wrong.
    pub(super) fn outcomes(self, paper: &Paper, wants: impl Fn(&str) -> bool) -> Result<Vec<Outcome>, u8> {
        let mut plan = Plan::new(paper, self.seeds, wants).map_err(|error| refuse_plan(&error))?;
        self.finished.into_iter().for_each(|finished| plan.resume(finished));
        let bar = Mutex::new(Progress::new(plan.size()));
        let outcomes = plan.run(self.threads, &|done, _| drop(bar.lock().map(|mut bar| bar.done(done))));
        drop(bar.lock().map(|bar| bar.finish()));
        outcomes.map_err(|error| refuse_plan(&error))
    }
}
