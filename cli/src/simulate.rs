//! One run: from a point of the grid to its result and its files.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use anabranch_proto::Policies;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::ScenarioError;
use anabranch_sim::sweep::Point;
use anabranch_sim::{CsvSeries, Progress, RunError, RunOptions};

/// Why a run has no result.
pub(crate) enum NoResult {
    /// Its scenario is wrong.
    Scenario(ScenarioError),
    /// Something else.
    Other(String),
}

/// Whether the point can be run; what is wrong with its scenario if not.
pub(crate) fn check(point: &Point) -> Result<(), NoResult> {
    anabranch_sim::check(&point.scenario, &Policies::default()).map_err(|error| no_result(point, &error))
}

/// Runs the point. Its series go to the directory `series`, with its result beside them; `watch` is told how
/// much of it is done, 0 to 1.
pub(crate) fn simulate(
    point: &Point,
    series: Option<&Path>,
    watch: &dyn Fn(f64),
) -> Result<RunResult, NoResult> {
    let failed = |directory: &Path, error: io::Error| {
        NoResult::Other(format!("cannot write the series to {}: {error}", directory.display()))
    };
    let Some(directory) = series else { return run(point, None, watch) };
    let mut files = CsvSeries::new(directory).map_err(|error| failed(directory, error))?;
    let result = run(point, Some(&mut files), watch)?;
    files.finish().map_err(|error| failed(directory, error))?;
    let text = serde_json::to_string_pretty(&result).map_err(|error| NoResult::Other(error.to_string()))?;
    std::fs::write(directory.join("result.json"), text + "\n").map_err(|error| failed(directory, error))?;
    Ok(result)
}

fn run(point: &Point, series: Option<&mut CsvSeries>, watch: &dyn Fn(f64)) -> Result<RunResult, NoResult> {
    let mut progress = |progress: Progress| {
        watch(share(&progress));
        ControlFlow::Continue(())
    };
    let options = RunOptions {
        observer: series.map(|series| series as _),
        progress: Some(&mut progress),
        ..RunOptions::default()
    };
    let result = anabranch_sim::run(&point.scenario, options);
    let result = result.map_err(|error| no_result(point, &error))?;
    Ok(RunResult { varied: point.varied.clone(), ..result })
}

/// How much is done: of the bytes, or of the time, whatever is nearer to its end. Less than 1.
fn share(progress: &Progress) -> f64 {
    let part = |done: u64, all: u64| if all == 0 { 0.0 } else { done as f64 / all as f64 };
    let bytes = progress.expected.map_or(0.0, |all| part(progress.delivered, all));
    let time = progress.stop.map_or(0.0, |stop| part(progress.now.as_nanos(), stop.as_nanos()));
    bytes.max(time).min(0.999)
}

fn no_result(point: &Point, error: &RunError) -> NoResult {
    match point.document.blame(&point.scenario, error) {
        Some(blamed) => NoResult::Scenario(blamed),
        None => NoResult::Other(error.to_string()),
    }
}
