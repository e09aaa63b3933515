//! Checks the names of links, flows and paths in marks, measures and figures against the scenario, and entries of
//! results. An unknown name would silently mean "never", and an unknown entry would end a reproduction in its middle.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use super::mark::{Event, Sent};
use super::{Below, Figure, Measure, MeasureSource, Noted, Paper};
use crate::entry::{entry, missing, shape};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::{Scenario, ScenarioError};
use anabranch_sim::{RunOptions, run};

/// A name, its kind, and the key that contains it.
type Named<'a> = (String, &'static str, &'a str);

impl Paper {
    /// Rejects `measure` if it is an entry that no result of `scenario` has.
    pub(super) fn check_entries(&self, measure: &Measure, scenario: &Scenario) -> Result<(), ScenarioError> {
        let MeasureSource::Result { of, minus, per } = &measure.of else { return Ok(()) };
        // A run that ends when it begins has a result of the right shape, and nothing has been run.
        let begun = Scenario { stop: Some(Duration::ZERO), ..scenario.clone() };
        // If it cannot be run, the run itself says why.
        let Ok(result) = run(&begun, RunOptions::default()) else { return Ok(()) };
        let shape = shape(serde_json::to_value(result).unwrap_or_default());
        let lists = [("result", of), ("minus", minus), ("per", per)];
        for (key, path) in lists.iter().flat_map(|(key, paths)| paths.iter().map(move |path| (key, path))) {
            let place = format!("measure.{}.{key}", measure.name);
            if matches!(
                entry(&shape, path),
                Ok(Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_))
            ) {
                return Err(self.document.error(&place, format!("`{path}` of a result is no number")));
            }
            let Some((step, names)) = missing(&shape, path) else { continue };
            let error = self.document.error(&place, format!("a result has no `{step}` in `{path}`"));
            return Err(error.hint(did_you_mean(&step, names.iter().map(String::as_str))));
        }
        Ok(())
    }

    /// Rejects `measure`, or a mark that it needs, if it names something that `scenario` lacks.
    pub(super) fn check_names(&self, measure: &Measure, scenario: &Scenario) -> Result<(), ScenarioError> {
        let mut marks = BTreeSet::new();
        let key = format!("measure.{}", measure.name);
        let mut names = match &measure.of {
            MeasureSource::Result { .. } => Vec::new(),
            MeasureSource::Time { mark, since } => {
                marks.extend([Some(*mark), *since].into_iter().flatten());
                Vec::new()
            }
            MeasureSource::At { quantity, mark } => {
                marks.insert(*mark);
                noted(quantity, &key)
            }
            MeasureSource::Extreme { quantity, between, .. } => {
                marks.extend(between.iter().flatten());
                noted(quantity, &key)
            }
            MeasureSource::Count { event, between } => {
                marks.extend(between.iter().flatten());
                of_event(event, &format!("{key}.count"))
            }
        };
        names.extend(self.in_marks(marks));
        names.iter().try_for_each(|name| self.check_name(name, scenario))
    }

    /// Rejects `figure`, or a mark that it needs, if it names something that `scenario` lacks.
    pub(super) fn check_figure(&self, figure: &Figure, scenario: &Scenario) -> Result<(), ScenarioError> {
        let key = format!("figure.{}", figure.name);
        let mut names = vec![(format!("{key}.link"), "link or channel", figure.link.as_str())];
        names.extend(flow_and_path(figure.flow.as_ref(), None, &key));
        if let Below::Noted(quantity) = &figure.below {
            names.extend(noted(quantity, &key));
        }
        names.extend(self.in_marks(figure.marks.iter().copied().chain([figure.since]).collect()));
        names.iter().try_for_each(|name| self.check_name(name, scenario))
    }

    /// The names in these marks, and in the marks that they need.
    fn in_marks(&self, mut marks: BTreeSet<usize>) -> Vec<Named<'_>> {
        let mut names = Vec::new();
        // A mark stands after the marks that it needs. So this visits each mark after all marks that need it.
        while let Some(number) = marks.pop_last() {
            let mark = &self.marks[number];
            marks.extend(mark.after);
            if let Event::Sent(Sent { dropped: Some((_, between)), .. }) = &mark.event {
                marks.extend(between);
            }
            names.extend(of_event(&mark.event, &format!("mark.{}.event", mark.name)));
        }
        names
    }

    fn check_name(&self, (key, what, name): &Named<'_>, scenario: &Scenario) -> Result<(), ScenarioError> {
        let mut known: Vec<&str> = match *what {
            "flow" => scenario.flows.iter().map(|flow| flow.name.as_str()).collect(),
            _ => scenario.links.iter().map(|link| link.name.as_str()).collect(),
        };
        // A path that begins at a radio has the name of its channel.
        if matches!(*what, "path" | "link or channel") {
            known.extend(scenario.channels.iter().map(|channel| channel.name.as_str()));
        }
        // The direction of a link; the first link of a path.
        let name = name.split([' ', '/']).next().unwrap_or(name);
        if known.contains(&name) {
            return Ok(());
        }
        let hint = did_you_mean(name, known.iter().copied());
        Err(self.document.error(key, format!("the scenario has no {what} `{name}`")).hint(hint))
    }
}

fn of_event<'a>(event: &'a Event, key: &str) -> Vec<Named<'a>> {
    match event {
        Event::Drop(link) => vec![(format!("{key}.drop"), "link", link)],
        Event::Arrives(link) => vec![(format!("{key}.arrives"), "link", link)],
        Event::Timeout { flow } | Event::Acked { flow } => flow_and_path(flow.as_ref(), None, key),
        Event::Passes { quantity, .. } | Event::Grows(quantity) => noted(quantity, key),
        Event::Sent(sent) => {
            let mut names = flow_and_path(sent.flow.as_ref(), sent.path.as_ref(), key);
            names.extend(
                sent.dropped.as_ref().map(|(by, _)| (format!("{key}.dropped.by"), "link", by.as_str())),
            );
            names
        }
    }
}

fn noted<'a>(quantity: &'a Noted, key: &str) -> Vec<Named<'a>> {
    flow_and_path(quantity.flow.as_ref(), quantity.path.as_ref(), key)
}

fn flow_and_path<'a>(flow: Option<&'a String>, path: Option<&'a String>, key: &str) -> Vec<Named<'a>> {
    let flow = flow.map(|flow| (format!("{key}.flow"), "flow", flow.as_str()));
    flow.into_iter().chain(path.map(|path| (format!("{key}.path"), "path", path.as_str()))).collect()
}
