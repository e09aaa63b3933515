//! The runs that figures show.

use anabranch_proto::Policies;

use super::mark::{Moment, moments};
use super::plan::{PlanError, blamed};
use super::record::Recording;
use super::{ExchangeFigure, Figure, MapFigure, Paper, Runs};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::{Document, Flow, Scenario};
use anabranch_sim::trace::Observer;
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
        let own = format!("{}={value}", self.over.key);
        let (scenario, document) =
            scenario(paper, self.experiment, &format!("figure.{}.experiment", self.name), &[own])?;
        paper.check_figure(self, &scenario)?;
        let mut recording = Recording::default();
        let options = RunOptions { observer: Some(&mut recording), ..RunOptions::default() };
        let result = run(&scenario, options).map_err(|error| blamed(&document, &scenario, &error))?;
        let moments = moments(&paper.marks, &recording);
        Ok(FigureRun { value: value.to_owned(), recording, moments, result })
    }
}

impl MapFigure {
    /// The scenario that the map shows.
    pub fn scenario(&self, paper: &Paper) -> Result<Scenario, PlanError> {
        let key = format!("map.{}.experiment", self.name);
        Ok(scenario(paper, self.experiment, &key, &self.set)?.0)
    }

    /// An error about a node in `around`.
    pub fn no_such_node(&self, paper: &Paper, node: &str) -> PlanError {
        let key = format!("map.{}.around", self.name);
        paper.document.error(&key, format!("there is no node `{node}` that has a radio")).into()
    }
}

impl ExchangeFigure {
    /// The flow of the scenario that is drawn.
    pub fn flow<'s>(&self, paper: &Paper, scenario: &'s Scenario) -> Result<&'s Flow, PlanError> {
        let wanted = |flow: &&Flow| self.flow.as_ref().is_none_or(|name| *name == flow.name);
        scenario.flows.iter().find(wanted).ok_or_else(|| {
            let names: Vec<&str> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
            let named = self.flow.as_deref().unwrap_or_default();
            let error =
                paper.document.error(&format!("exchange.{}.flow", self.name), "there is no such flow");
            error.hint(did_you_mean(named, names)).into()
        })
    }

    /// An error about times between which no packet leaves.
    pub fn nothing_between(&self, paper: &Paper) -> PlanError {
        let key = format!("exchange.{}.from", self.name);
        paper.document.error(&key, "no packet of the flow leaves between `from` and `to`").into()
    }

    /// Executes the runs of the figure, one for each chart, each with the observer that `observer` makes for its
    /// scenario. Returns the observers with the headings of the charts.
    pub fn runs<O: Observer>(
        &self,
        paper: &Paper,
        observer: impl Fn(&Scenario) -> Result<O, PlanError>,
    ) -> Result<Vec<(String, O)>, PlanError> {
        let one = |(n, heading): (usize, &String)| {
            let all = std::iter::once(&self.over).chain(&self.along);
            let edits: Vec<String> = all.map(|edit| format!("{}={}", edit.key, edit.values[n])).collect();
            let key = format!("exchange.{}.experiment", self.name);
            let (scenario, document) = scenario(paper, self.experiment, &key, &edits)?;
            let mut observer = observer(&scenario)?;
            let options = RunOptions { observer: Some(&mut observer), ..RunOptions::default() };
            run(&scenario, options).map_err(|error| blamed(&document, &scenario, &error))?;
            Ok((heading.clone(), observer))
        };
        self.headings.iter().enumerate().map(one).collect()
    }
}

/// The scenario of an experiment with further edits under the paper's first variant. `key` names the experiment in
/// `paper.toml`.
fn scenario(
    paper: &Paper,
    experiment: usize,
    key: &str,
    edits: &[String],
) -> Result<(Scenario, Document), PlanError> {
    let experiment = &paper.experiments[experiment];
    let Runs::Scenario(name, document) = &experiment.runs else {
        return Err(paper.document.error(key, "a model has nothing to show").into());
    };
    let mut document = document.clone();
    let edits = experiment.set.iter().chain(&paper.variants[0].set).chain(edits);
    edits.into_iter().try_for_each(|edit| document.set(key, edit))?;
    Ok((document.scenario(name, &Policies::default())?, document))
}
