//! Executes one run of a plan and takes its measures, unless they are known from an earlier process.

use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{RunOptions, run};

use super::{JobKind, Plan, PlanError, Planned, blamed};
use crate::claims::mark::{Moment, moments};
use crate::claims::record::Recording;
use crate::claims::{Measure, finished};

impl Plan<'_> {
    /// The measures of a run with its n-th seed.
    pub(super) fn measured_once(&self, planned: &Planned, n: u64) -> Result<Vec<Option<f64>>, PlanError> {
        let measures = &planned.measures;
        let (scenario, document) = match &planned.what {
            JobKind::Model(terms) => {
                let none = Recording::default();
                return measures.iter().map(|measure| self.value(measure, terms, &none, &[])).collect();
            }
            JobKind::Scenario { scenario, document, .. } => (scenario, &document.0),
        };
        let scenario = Scenario { seed: scenario.seed.wrapping_add(n), ..(**scenario).clone() };
        let key = self.finished.and_then(|_| finished::key(&scenario, measures, &self.paper.marks));
        let kept = self.finished.zip(key);
        if let Some(values) = kept.as_ref().and_then(|(finished, key)| finished.values(key)) {
            return Ok(values.clone());
        }
        let values = self.executed(&scenario, document, measures)?;
        if let Some((finished, key)) = kept {
            finished.add(&key, &values)?;
        }
        Ok(values)
    }

    /// The measures of a run that is executed now.
    fn executed(
        &self,
        scenario: &Scenario,
        document: &Document,
        measures: &[Measure],
    ) -> Result<Vec<Option<f64>>, PlanError> {
        let mut recording = Recording::default();
        let records = measures.iter().any(Measure::needs_records);
        let observer = records.then_some(&mut recording as _);
        let result = run(scenario, RunOptions { observer, ..RunOptions::default() });
        let result = result.map_err(|error| blamed(document, scenario, &error))?;
        let result = serde_json::to_value(result).map_err(|error| PlanError::Run(error.to_string()))?;
        let moments = if records { moments(&self.paper.marks, &recording) } else { Vec::new() };
        measures.iter().map(|measure| self.value(measure, &result, &recording, &moments)).collect()
    }

    fn value(
        &self,
        measure: &Measure,
        result: &serde_json::Value,
        recording: &Recording,
        moments: &[Option<Moment>],
    ) -> Result<Option<f64>, PlanError> {
        measure.value(result, recording, moments).map_err(|step| {
            let key = format!("measure.{}.result", measure.name);
            self.paper.document.error(&key, format!("a result has no `{step}` here")).into()
        })
    }
}
