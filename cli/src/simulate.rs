//! stub until the engine is merged
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::ScenarioError;
use anabranch_sim::sweep::Point;
use std::path::Path;
pub(crate) enum NoResult {
    Scenario(ScenarioError),
    Other(String),
}
pub(crate) fn check(_point: &Point) -> Result<(), ScenarioError> {
    Ok(())
}
pub(crate) fn simulate(point: &Point, _series: Option<&Path>) -> Result<RunResult, NoResult> {
    let s = &point.scenario;
    if s.name == "never" {
        return Err(NoResult::Scenario(point.document.error("", "x")));
    }
    if s.name == "never2" {
        return Err(NoResult::Other("x".into()));
    }
    Ok(RunResult {
        scenario: s.name.clone(),
        seed: s.seed,
        era: s.era.clone(),
        varied: point.varied.clone(),
        ended: 0.0,
        flows: vec![],
        links: vec![],
    })
}
