//! The runs that a figure shows.

use anabranch_proto::Policies;

use super::mark::{Moment, moments};
use super::plan::{PlanError, blamed};
use super::record::Recording;
use super::{Figure, Paper, Runs};
use anabranch_sim::results::RunResult;
use anabranch_sim::{RunOptions, run};

/// A run that a figure shows.
#[derive(Debug)]
pub struct FigureRun {
    /// The value of the figure's varied edit.
    pub value: String,
    /// The recording.
    pub recording: Recording,
    /// The moments of the paper's marks, in their order.
    pub moments: Vec<Option<Moment>>,
    /// The result.
    pub result: RunResult,
}

impl Figure {
    /// Executes the runs of the figure: its experiment under the paper's first variant, once for each column.
    pub fn runs(&self, paper: &Paper) -> Result<Vec<FigureRun>, PlanError> {
        self.over.values.iter().map(|value| self.run(paper, value)).collect()
    }

    fn run(&self, paper: &Paper, value: &str) -> Result<FigureRun, PlanError> {
        let experiment = &paper.experiments[self.experiment];
        let label = format!("figure {}", self.name);
        let Runs::Scenario(name, document) = &experiment.runs else {
            let key = format!("figure.{}.experiment", self.name);
            return Err(paper.document.error(&key, "a model has nothing to show").into());
        };
        let mut document = document.clone();
        let own = format!("{}={value}", self.over.key);
        let edits = experiment.set.iter().chain(&paper.variants[0].set).chain([&own]);
        edits.into_iter().try_for_each(|edit| document.set(&label, edit))?;
        let scenario = document.scenario(name, &Policies::default())?;
        let mut recording = Recording::default();
        let options = RunOptions { observer: Some(&mut recording), ..RunOptions::default() };
        let result = run(&scenario, options).map_err(|error| blamed(&document, &scenario, &error))?;
        let moments = moments(&paper.marks, &recording);
        Ok(FigureRun { value: value.to_owned(), recording, moments, result })
    }
}
