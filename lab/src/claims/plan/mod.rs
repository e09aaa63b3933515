//! Converts claims to runs. Each distinct run is executed once, and all runs in parallel.

mod execute;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_proto::Policies;

use super::claim::{Case, Form};
use super::crossing::{Found, Search};
use super::finished::{FinishedRuns, FinishedRunsError};
use super::judge::{Outcome, VariantValues, judge};
use super::pool;
use super::read::PaperError;
use super::threshold::{Found as FoundThreshold, Threshold};
use super::{Measure, MeasureSource, Paper, Runs, Unit};
use crate::grid::{Variation, run_all};
use crate::models;
use crate::statistics::{self, Summary};
use anabranch_sim::RunError;
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};

/// The runs that a paper's claims need.
#[derive(Debug)]
pub struct Plan<'p> {
    paper: &'p Paper,
    /// Replaces the number of seeds of the experiments.
    seeds: Option<u64>,
    /// Runs that an earlier process finished, and where those of this one are added.
    finished: Option<&'p FinishedRuns>,
    cases: Vec<&'p Case>,
    runs: Vec<Planned>,
    /// The runs by the edits that make them.
    edited: BTreeMap<String, usize>,
    searches: Vec<(Search, Point<'p>)>,
    /// By case, then by variant (only the case's own if no others are shown): the source of the values.
    wanted: Vec<Vec<(usize, ValueSource)>>,
}

/// Why claims could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An error in the paper's folder.
    #[error(transparent)]
    Paper(#[from] PaperError),
    /// A run failed.
    #[error("{0}")]
    Run(String),
    /// A finished run cannot be kept.
    #[error(transparent)]
    Finished(#[from] FinishedRunsError),
}

impl From<ScenarioError> for PlanError {
    fn from(error: ScenarioError) -> Self {
        PlanError::Paper(PaperError::Text(error))
    }
}

/// Called with the number of finished runs and the number of all runs.
pub type Progress<'f> = &'f (dyn Fn(usize, usize) + Sync);

/// A run and its measures.
#[derive(Debug)]
struct Planned {
    what: JobKind,
    measures: Vec<Measure>,
}

#[derive(PartialEq, Debug)]
enum JobKind {
    Scenario { scenario: Box<Scenario>, seeds: u64, document: Box<Source> },
    Model(serde_json::Value),
}

/// The document of a run, for error messages. Two runs are equal whatever text they come from.
#[derive(Debug)]
struct Source(Document);

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The source of a claim's values.
#[derive(Debug)]
enum ValueSource {
    /// Measures of runs, by operand.
    Runs(Vec<Operand>),
    /// A search.
    Search(usize),
}

/// The runs from which a measure is taken.
type Operand = Vec<Part>;

/// One run with its seeds: one point of its experiment.
#[derive(Debug)]
struct Part {
    run: usize,
    /// The index of the measure in the run.
    measure: usize,
    /// Measures that must lie within bounds. Otherwise the seed does not count.
    conditions: Vec<(usize, [f64; 2])>,
}

impl Part {
    /// The values of the seeds that count.
    fn values(&self, runs: &[JobResult]) -> Vec<Option<f64>> {
        let JobResult::Sample(seeds) = &runs[self.run] else { return Vec::new() };
        let within = |values: &&Vec<Option<f64>>| {
            let holds = |(measure, [low, high]): &(usize, [f64; 2])| {
                values[*measure].is_some_and(|value| *low <= value && value < *high)
            };
            self.conditions.iter().all(holds)
        };
        seeds.iter().filter(within).map(|values| values[self.measure]).collect()
    }
}

/// A case under a variant.
#[derive(Copy, Clone, PartialEq, Debug)]
struct Point<'p> {
    case: &'p Case,
    variant: usize,
}

impl<'p> Plan<'p> {
    /// Plans the runs for the claims whose id `wants` accepts, with this number of `seeds` or with the experiments'
    /// own. Reads and checks every scenario.
    pub fn new(
        paper: &'p Paper,
        seeds: Option<u64>,
        wants: impl Fn(&str) -> bool,
    ) -> Result<Self, PlanError> {
        let cases: Vec<_> = paper.cases.iter().filter(|case| wants(&case.id)).collect();
        let mut plan = Plan {
            paper,
            seeds,
            finished: None,
            cases,
            runs: Vec::new(),
            edited: BTreeMap::new(),
            searches: Vec::new(),
            wanted: Vec::new(),
        };
        for case in plan.cases.clone() {
            let variants: Vec<usize> =
                if case.beside { (0..paper.variants.len()).collect() } else { vec![case.variant] };
            let wanted = |variant: usize| Ok((variant, plan.want(Point { case, variant })?));
            let wanted = variants.into_iter().map(wanted).collect::<Result<_, PlanError>>()?;
            plan.wanted.push(wanted);
        }
        Ok(plan)
    }

    /// Takes finished runs from here instead of executing them, and adds every run that this process finishes.
    pub fn resume(&mut self, finished: &'p FinishedRuns) {
        self.finished = Some(finished);
    }

    /// The number of claims to judge.
    pub fn claims(&self) -> usize {
        self.cases.len()
    }

    /// The number of runs. The runs of searches are estimated.
    pub fn size(&self) -> usize {
        self.runs.iter().map(|run| run.what.seeds() as usize).sum::<usize>()
            + self.searches.iter().map(|(search, _)| 2 * search.steps()).sum::<usize>()
    }

    fn want(&mut self, point: Point<'p>) -> Result<ValueSource, PlanError> {
        let measures = &self.paper.measures;
        let (over, measure) = match &point.case.form {
            Form::Value { measure } => {
                return Ok(ValueSource::Runs(vec![self.operand(point, &[], &measures[*measure])?]));
            }
            Form::Sequence { marks } => {
                let times = marks.iter().map(|mark| time(*mark, marks[0]));
                let times = times.map(|measure| self.operand(point, &[], &measure));
                return Ok(ValueSource::Runs(times.collect::<Result<_, _>>()?));
            }
            Form::Crossing(search) => return self.search(point, search),
            Form::Means { measure } | Form::Worse { measure, .. } => {
                let measure = &measures[*measure];
                return self.pooled(point, measure);
            }
            Form::Threshold(threshold) => {
                let [compared, by] = [threshold.measure, threshold.by].map(|measure| &measures[measure]);
                let (experiment, edits) = &threshold.against;
                let own = [self.operand(point, &[], by)?, self.operand(point, &[], compared)?];
                let other = self.operand_of((*experiment, edits), point, &[], compared)?;
                return Ok(ValueSource::Runs(own.into_iter().chain([other]).collect()));
            }
            Form::Ratio { over, measure } | Form::Order { over, measure, .. } => (over, &measures[*measure]),
        };
        let edits = |n: usize| -> Vec<String> {
            let all = std::iter::once(over).chain(&point.case.along);
            all.map(|edit| format!("{}={}", edit.key, edit.values[n])).collect()
        };
        let operand = |n: usize| self.operand(point, &edits(n), measure);
        Ok(ValueSource::Runs((0..over.values.len()).map(operand).collect::<Result<_, _>>()?))
    }

    /// The runs of all rows of a claim, each under every edit that is compared.
    fn pooled(&mut self, point: Point<'_>, measure: &Measure) -> Result<ValueSource, PlanError> {
        let mut operands = Vec::new();
        for row in &point.case.pool[..point.case.rows] {
            for value in &row.over.values {
                let compared = format!("{}={value}", row.over.key);
                let more = [&row.edits[1][..], &[compared]].concat();
                let experiment = (point.case.experiment, &row.edits[0][..]);
                operands.push(self.operand_of(experiment, point, &more, measure)?);
            }
        }
        Ok(ValueSource::Runs(operands))
    }

    /// The runs of `point` with further edits, and the index of `measure` in them.
    fn operand(
        &mut self,
        point: Point<'_>,
        more: &[String],
        measure: &Measure,
    ) -> Result<Operand, PlanError> {
        let case = point.case;
        self.operand_of((case.experiment, &case.edits[0]), point, more, measure)
    }

    /// As `operand`, for an experiment with its edits.
    fn operand_of(
        &mut self,
        experiment: (usize, &[String]),
        point: Point<'_>,
        more: &[String],
        measure: &Measure,
    ) -> Result<Operand, PlanError> {
        let mut operand = Operand::new();
        for varied in combinations(&self.paper.experiments[experiment.0].vary) {
            let run = self.run_of(experiment, point, &[&varied, more].concat())?;
            let number = self.measure_of(run, measure)?;
            let conditions = point.case.conditions.iter().map(|condition| {
                let measure = &self.paper.measures[condition.measure];
                Ok((self.measure_of(run, measure)?, condition.bounds))
            });
            let conditions = conditions.collect::<Result<_, PlanError>>()?;
            operand.push(Part { run, measure: number, conditions });
        }
        Ok(operand)
    }

    /// The index of the run of an experiment with these edits. Adds the run if it is new.
    fn run_of(
        &mut self,
        experiment: (usize, &[String]),
        point: Point<'_>,
        more: &[String],
    ) -> Result<usize, PlanError> {
        // Reading a scenario takes longer than looking up its edits.
        let edits = format!("{experiment:?} {} {:?} {more:?}", point.variant, point.case.edits[1]);
        if let Some(run) = self.edited.get(&edits) {
            return Ok(*run);
        }
        let what = self.what_of(experiment, point, more)?;
        let run = self.runs.iter().position(|run| run.what == what).unwrap_or_else(|| {
            self.runs.push(Planned { what, measures: Vec::new() });
            self.runs.len() - 1
        });
        self.edited.insert(edits, run);
        Ok(run)
    }

    /// The index of this measure in a run. Adds the measure if it is new.
    fn measure_of(&mut self, run: usize, measure: &Measure) -> Result<usize, PlanError> {
        if let Some(known) = self.runs[run].measures.iter().position(|known| known == measure) {
            return Ok(known);
        }
        self.check(measure, &self.runs[run].what)?;
        let measures = &mut self.runs[run].measures;
        measures.push(measure.clone());
        Ok(measures.len() - 1)
    }

    fn search(&mut self, point: Point<'p>, search: &Search) -> Result<ValueSource, PlanError> {
        // Both ends are read now, so that errors are reported before anything runs.
        for value in [search.from, search.to] {
            for side in search.sides(value) {
                let what = self.what(point, &side)?;
                self.check(&self.paper.measures[search.measure], &what)?;
            }
        }
        let same = |(known, other): &(Search, Point<'_>)| {
            let experiment = (other.variant, other.case.experiment, &other.case.edits);
            known == search && experiment == (point.variant, point.case.experiment, &point.case.edits)
        };
        let number = self.searches.iter().position(same).unwrap_or_else(|| {
            self.searches.push((search.clone(), point));
            self.searches.len() - 1
        });
        Ok(ValueSource::Search(number))
    }

    /// Rejects a measure that can never have a value in this run.
    fn check(&self, measure: &Measure, what: &JobKind) -> Result<(), PlanError> {
        match what {
            JobKind::Scenario { scenario, .. } => {
                self.paper.check_names(measure, scenario)?;
                Ok(self.paper.check_entries(measure, scenario)?)
            }
            JobKind::Model(_) if measure.needs_records() => {
                let key = format!("measure.{}", measure.name);
                Err(self.paper.document.error(&key, "a model has no moments, only a `result`").into())
            }
            JobKind::Model(_) => Ok(()),
        }
    }

    /// The job for `point` with further edits.
    fn what(&self, point: Point<'_>, more: &[String]) -> Result<JobKind, PlanError> {
        self.what_of((point.case.experiment, &point.case.edits[0]), point, more)
    }

    /// As `what`, for an experiment with its edits.
    fn what_of(
        &self,
        (experiment, before): (usize, &[String]),
        point: Point<'_>,
        more: &[String],
    ) -> Result<JobKind, PlanError> {
        let experiment = &self.paper.experiments[experiment];
        let after = &point.case.edits[1];
        let of_variant = &self.paper.variants[point.variant].set;
        let claim = format!("claim {}", point.case.id);
        match &experiment.runs {
            Runs::Model(name) => {
                let inputs: Vec<_> = before
                    .iter()
                    .chain(after)
                    .chain(more)
                    .map(|input| (claim.clone(), input.clone()))
                    .collect();
                Ok(JobKind::Model(models::object(&models::terms(name, &inputs)?)))
            }
            Runs::Scenario(name, document) => {
                let mut document = document.clone();
                let edits = before.iter().chain(of_variant).chain(after).chain(more);
                edits.into_iter().try_for_each(|edit| document.set(&claim, edit))?;
                let policies = Policies::default();
                let scenario = document.scenario(name, &policies)?;
                anabranch_sim::check(&scenario, &policies)
                    .map_err(|error| blamed(&document, &scenario, &error))?;
                let (scenario, document) = (Box::new(scenario), Box::new(Source(document)));
                Ok(JobKind::Scenario { scenario, seeds: self.seeds.unwrap_or(experiment.seeds), document })
            }
        }
    }

    /// Executes all runs on `threads` threads (`None`: one for each core) and judges every claim.
    pub fn run(&self, threads: Option<usize>, progress: Progress<'_>) -> Result<Vec<Outcome>, PlanError> {
        let done = Done { count: AtomicUsize::new(0), all: self.size(), progress };
        // Searches come first, because they take longest.
        let searches = (0..self.searches.len()).map(Job::Search);
        let seeded =
            |(run, planned): (usize, &Planned)| (0..planned.what.seeds()).map(move |n| Job::Run(run, n));
        let jobs: Vec<Job> = searches.chain(self.runs.iter().enumerate().flat_map(seeded)).collect();
        let results = run_all(&jobs, threads, |_, job| match job {
            Job::Search(number) => self.seek(&self.searches[*number], &done).map(JobResult::Found),
            Job::Run(run, n) => {
                let values = self.measured_once(&self.runs[*run], *n);
                done.add(1);
                values.map(JobResult::Values)
            }
        });
        let mut given = results.into_iter();
        let mut results: Vec<JobResult> =
            given.by_ref().take(self.searches.len()).collect::<Result<_, _>>()?;
        for run in &self.runs {
            let seeds = given.by_ref().take(run.what.seeds() as usize);
            let values =
                seeds.map(|seed| Ok(if let JobResult::Values(values) = seed? { values } else { Vec::new() }));
            results.push(JobResult::Sample(values.collect::<Result<_, PlanError>>()?));
        }
        let judged = self.cases.iter().zip(&self.wanted);
        Ok(judged.map(|(case, wanted)| self.judged(case, wanted, &results)).collect())
    }

    fn judged(&self, case: &Case, wanted: &[(usize, ValueSource)], results: &[JobResult]) -> Outcome {
        let (found, runs) = results.split_at(self.searches.len());
        let seen = |(variant, wanted): &(usize, ValueSource)| seen(*variant, wanted, case, found, runs);
        let values: Vec<_> = wanted.iter().map(seen).collect();
        let of = match &case.form {
            Form::Order { over, .. } => over.distinct(&case.along),
            Form::Sequence { marks } => {
                marks.iter().map(|mark| self.paper.marks[*mark].name.clone()).collect()
            }
            _ => Vec::new(),
        };
        judge(case, of, self.paper, &values)
    }

    fn seek(&self, (search, point): &(Search, Point<'p>), done: &Done<'_>) -> Result<Found, PlanError> {
        let measure = &self.paper.measures[search.measure];
        search.run(&|value| {
            let mut sides = [None, None];
            for (side, edits) in sides.iter_mut().zip(search.sides(value)) {
                let what = self.what(*point, &edits)?;
                let planned = Planned { what, measures: vec![measure.clone()] };
                let seeds = (0..planned.what.seeds()).map(|n| Ok(self.measured_once(&planned, n)?[0]));
                *side = mean(&seeds.collect::<Result<Vec<_>, PlanError>>()?);
            }
            done.add(2);
            Ok(sides[0].zip(sides[1]).map(|(first, second)| first > second))
        })
    }
}

impl JobKind {
    /// The number of runs, each with its own seed.
    fn seeds(&self) -> u64 {
        match self {
            JobKind::Scenario { seeds, .. } => *seeds,
            JobKind::Model(_) => 1,
        }
    }
}

/// A unit of work.
enum Job {
    Search(usize),
    /// A run with its n-th seed.
    Run(usize, u64),
}

/// The result of a unit of work.
enum JobResult {
    Found(Found),
    /// The values of one seed, by measure.
    Values(Vec<Option<f64>>),
    /// The values of all seeds.
    Sample(Vec<Vec<Option<f64>>>),
}

/// The mean, or `None` if a seed has no value.
pub(super) fn mean(values: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    Summary::of(&known).mean
}

/// The values of a claim under a variant.
fn seen(
    variant: usize,
    wanted: &ValueSource,
    case: &Case,
    found: &[JobResult],
    runs: &[JobResult],
) -> VariantValues {
    let operands = match wanted {
        ValueSource::Search(number) => {
            let none = VariantValues::none(variant);
            let JobResult::Found(found) = &found[*number] else { return none };
            let note = match found.unknown {
                Some(at) => Some(format!("at {at} {} a run has no value", case.unit.symbol())),
                None => (found.changes > 1).then(|| {
                    format!("the order changes {} times on the grid, and this is the last", found.changes)
                }),
            };
            let never = found.crossing.is_none() && found.unknown.is_none();
            return VariantValues { values: vec![found.crossing], note, never, ..none };
        }
        ValueSource::Runs(operands) => operands,
    };
    if let (Form::Threshold(threshold), [by, compared, other]) = (&case.form, operands.as_slice()) {
        return threshold_seen(variant, threshold, [by, compared, other], runs);
    }
    if case.form.is_pooled() {
        let value =
            |operand: &Operand| mean(&operand.iter().flat_map(|part| part.values(runs)).collect::<Vec<_>>());
        let values: Vec<Option<f64>> = operands.iter().map(value).collect();
        let rows: Vec<_> = values.chunks(case.pool[0].over.values.len()).map(<[_]>::to_vec).collect();
        return pool::seen(case, variant, &rows);
    }
    let sample = |operand: &Operand| operand.iter().flat_map(|part| part.values(runs)).collect();
    let samples: Vec<Vec<Option<f64>>> = operands.iter().map(sample).collect();
    let known =
        |sample: &Vec<Option<f64>>| Summary::of(&sample.iter().flatten().copied().collect::<Vec<_>>());
    let summaries: Vec<Summary> = samples.iter().map(known).collect();
    let means: Vec<Option<f64>> = samples.iter().map(|sample| mean(sample)).collect();
    let (values, error) = match (&case.form, samples.as_slice(), means.as_slice()) {
        (Form::Ratio { .. }, [a, b], [first, second]) => (vec![ratio(*first, *second)], ratio_error(a, b)),
        (_, [_], _) => (means, summaries[0].standard_error()),
        _ => (means, None),
    };
    let never = samples.iter().all(|sample| !sample.is_empty() && sample.iter().all(Option::is_none));
    let empty = samples.iter().any(Vec::is_empty).then(|| "no run meets the condition `where`".to_owned());
    let note = empty.or_else(|| unknown(samples.iter().flatten()));
    VariantValues { variant, values, samples: summaries, error, interval: None, curve: None, note, never }
}

/// A remark if some of the runs have a value and others have none.
pub(super) fn unknown<'v>(values: impl Iterator<Item = &'v Option<f64>>) -> Option<String> {
    let (all, without) =
        values.fold((0, 0), |(all, without), value| (all + 1, without + usize::from(value.is_none())));
    (0 < without && without < all).then(|| format!("{without} of {all} runs have no value"))
}

/// A quotient; none of nothing.
pub(super) fn ratio(first: Option<f64>, second: Option<f64>) -> Option<f64> {
    first.zip(second.filter(|second| *second != 0.0)).map(|(first, second)| first / second)
}

/// Computes the threshold from the runs of both experiments.
fn threshold_seen(
    variant: usize,
    threshold: &Threshold,
    [by, compared, other]: [&Operand; 3],
    runs: &[JobResult],
) -> VariantValues {
    let point = |(by, compared): (&Part, &Part)| {
        by.values(runs).into_iter().zip(compared.values(runs)).filter_map(|(x, y)| x.zip(y)).collect()
    };
    let points: Vec<Vec<(f64, f64)>> = by.iter().zip(compared).map(point).collect();
    let all: Vec<Option<f64>> = compared.iter().chain(other).flat_map(|part| part.values(runs)).collect();
    let other: Vec<f64> = other.iter().flat_map(|part| part.values(runs)).flatten().collect();
    let curve = threshold.curve(&points, &other);
    let first = curve.groups.first().map(|(x, _)| *x).filter(|_| !other.is_empty());
    let curve = Some(curve);
    // Without the runs that never end the others would seem fast.
    if let Some(note) = unknown(all.iter()) {
        return VariantValues { values: vec![None], curve, note: Some(note), ..VariantValues::none(variant) };
    }
    let found = threshold.find(&points, &other);
    let note = threshold_note(&found, first);
    let never = found.at.is_none() && first.is_some();
    let (values, samples, interval) = (vec![found.at], Vec::new(), found.interval);
    VariantValues { variant, values, samples, error: None, interval, curve, note, never }
}

/// A remark on a threshold: its interval, and whether the runs show that it is lower. `first` is the place of the first
/// group.
fn threshold_note(found: &FoundThreshold, first: Option<f64>) -> Option<String> {
    let [low, high] = found.interval?;
    let end = if high.is_finite() { format!("to {high:.4}") } else { "or more".to_owned() };
    let mut note = format!("90 % of the resamplings: {low:.4} {end}");
    if found.share < 1.0 {
        note += &format!("; {:.1} % have one", 100.0 * found.share);
    }
    if found.at.is_some() && found.at == first {
        note += "; the mean of the first group is larger already, so the threshold is here or lower";
    }
    Some(note)
}

/// All combinations of the values, as edits. One empty combination if nothing varies.
fn combinations(vary: &[Variation]) -> Vec<Vec<String>> {
    vary.iter().fold(vec![Vec::new()], |all, axis| {
        let with =
            |edits: &Vec<String>, value: &String| [&edits[..], &[format!("{}={value}", axis.key)]].concat();
        all.iter().flat_map(|edits| axis.values.iter().map(|value| with(edits, value))).collect()
    })
}

/// The standard error of the ratio of two means over the same seeds; `None` if a seed has no value.
pub(super) fn ratio_error(a: &[Option<f64>], b: &[Option<f64>]) -> Option<f64> {
    let known = |values: &[Option<f64>]| values.iter().copied().collect::<Option<Vec<f64>>>();
    statistics::ratio_error(&known(a)?, &known(b)?)
}

/// Counts finished runs and reports progress.
struct Done<'f> {
    count: AtomicUsize,
    all: usize,
    progress: Progress<'f>,
}

impl Done<'_> {
    fn add(&self, runs: usize) {
        let done = self.count.fetch_add(runs, Ordering::Relaxed) + runs;
        (self.progress)(done.min(self.all), self.all);
    }
}

/// A measure: the time of a mark since another mark.
fn time(mark: usize, since: usize) -> Measure {
    Measure { name: String::new(), unit: Unit::Seconds, of: MeasureSource::Time { mark, since: Some(since) } }
}

pub(super) fn blamed(document: &Document, scenario: &Scenario, error: &RunError) -> PlanError {
    document.blame(scenario, error).map_or_else(|| PlanError::Run(error.to_string()), Into::into)
}
