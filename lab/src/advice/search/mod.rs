//! The search: every candidate of the grid gets a few outages, the better half of them four times as many, and so on;
//! those that are left are checked with seeds that the search has not used.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anabranch_proto::path::estimate::LossRate;
use rayon::prelude::*;
use serde::Serialize;

use super::trial::{outage, quiet};
use super::{Candidate, Task};

/// Outages that each candidate gets first.
const FIRST: u64 = 12;
/// How many times as many it gets in the next round.
const MORE: u64 = 4;
/// Candidates that reach the check.
const CHECKED: usize = 6;
/// Outages of the check, at most.
const MOST_CHECKS: u64 = 4_000;
/// Seeds of the check begin here; those of the search are below.
const UNSEEN: u64 = 1 << 32;

/// The share of the time that the tries take; the rest is for the check.
const SEARCHING: f64 = 0.75;

/// What watches a search.
#[derive(Copy, Clone)]
pub struct Watch<'a> {
    /// Set: the search ends with what it has.
    pub stop: &'a AtomicBool,
    /// The share of the time allowed that has passed; the search ends before 1.
    pub spent: &'a (dyn Fn() -> f64 + Sync),
    /// Called with how many trials are done, and how many there will be about.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Watch<'_> {
    /// Whether the work that may take this share of the time has to end.
    pub(super) fn ends(&self, share: f64) -> bool {
        self.stop.load(Ordering::Relaxed) || (self.spent)() >= share
    }
}

/// Why a search ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every candidate was tried as often as it deserved.
    Complete,
    /// The time allowed was over.
    TimeOver,
    /// The outages allowed were tried.
    TrialsOver,
    /// It was stopped.
    Stopped,
}

/// A share with its 95 % interval (Wilson 1927).
#[derive(Copy, Clone, PartialEq, Debug, Serialize)]
pub struct Share {
    /// The share found.
    pub share: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// A candidate and what was found of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// Its parameters.
    pub parameters: Candidate,
    /// The sum of RTO doublings, seconds.
    pub classical: f64,
    /// The time that the budget's share of outages took at most, seconds; `None`: it was longer than two budgets.
    pub new_data: Option<f64>,
    /// The longest time of any outage, seconds.
    pub longest: Option<f64>,
    /// The share of outages within the budget.
    pub within: Share,
    /// Outages tried.
    pub outages: u64,
    /// Failovers without an outage in the budget's period: the mean.
    pub false_failovers: f64,
    /// The upper end of its 95 % interval.
    pub false_failovers_high: f64,
    /// Whether the budget holds by what was found: the share of outages, and the false failovers.
    pub holds: bool,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The advice: of those that hold the budget the one with the fewest false failovers; `None`: none holds it.
    pub advice: Option<Judged>,
    /// The same, with seeds that the search has not used.
    pub checked: Option<Judged>,
    /// Candidates that no other beats both in time and in `false_failovers_high`, the fastest first.
    pub front: Vec<Judged>,
    /// Candidates tried.
    pub candidates: usize,
    /// Why the search ended.
    pub ended: Ended,
}

/// Looks for parameters that meet the budget, with so many outages at most (`None`: as many as the search needs); those
/// of the check are not among them. Within the time allowed the answer is the same on every machine.
pub fn search(task: &Task, most: Option<u64>, watch: &Watch<'_>) -> Answer {
    let grid = Candidate::grid(task);
    let (checks, most) = (checks(task), most.unwrap_or(u64::MAX));
    let expected = expected(grid.len() as u64, checks).min(most.saturating_add(checks));
    let trials = Trials { task, watch, done: AtomicU64::new(0), expected };
    let Halved { best, all, ended } = trials.halve(&grid, checks, most);
    let advice = best.iter().find(|judged| judged.holds).cloned();
    let checked = advice.as_ref().and_then(|advice| trials.check(&advice.parameters, checks));
    let whole = advice.is_none() || checked.as_ref().is_some_and(|c| c.outages == checks);
    let ended = match (watch.stop.load(Ordering::Relaxed), whole) {
        (true, _) => Ended::Stopped,
        (false, true) => ended,
        (false, false) => Ended::TimeOver,
    };
    Answer { advice, checked, front: front(all), candidates: grid.len(), ended }
}

/// Tries parameters with seeds that no search has used; none if the watch allows no trial.
pub fn check(task: &Task, candidate: &Candidate, watch: &Watch<'_>) -> Option<Judged> {
    let checks = checks(task);
    Trials { task, watch, done: AtomicU64::new(0), expected: checks }.check(candidate, checks)
}

/// Outages of a check: enough that four of them may take longer than the budget allows.
fn checks(task: &Task) -> u64 {
    ((4.0 / (1.0 - task.budget.outages)).ceil() as u64).clamp(100, MOST_CHECKS)
}

/// What successive halving found.
struct Halved {
    /// Those that are left at the end, or when the time is over, the best first.
    best: Vec<Judged>,
    /// Every candidate as it was judged last.
    all: Vec<Judged>,
    /// Why it ended; a stop counts as the end of its time.
    ended: Ended,
}

/// Tries candidates, and counts what it does.
struct Trials<'a> {
    task: &'a Task,
    watch: &'a Watch<'a>,
    done: AtomicU64,
    expected: u64,
}

impl Trials<'_> {
    /// Halves the candidates until few are left, with so many outages at most.
    fn halve(&self, grid: &[Candidate], checks: u64, mut most: u64) -> Halved {
        let quiet = quiet_times(self.task, grid, 1, &|| self.watch.ends(SEARCHING));
        let (mut left, mut outages) = (thinned(grid, most / 4 / FIRST), FIRST);
        let (mut best, mut all) = (Vec::new(), Vec::<Judged>::new());
        let mut ended = if left.len() < grid.len() { Ended::TrialsOver } else { Ended::Complete };
        while !left.is_empty() {
            most = most.saturating_sub(left.len() as u64 * outages);
            let one = |candidate: &Candidate| self.judged(candidate, 1..1 + outages, &quiet, SEARCHING);
            let tried: Vec<Judged> = left.par_iter().filter_map(one).collect();
            let complete = tried.len() == left.len();
            all.retain(|known| tried.iter().all(|judged| judged.parameters != known.parameters));
            all.extend_from_slice(&tried);
            // Of a round that was cut short, what holds has been tried more often than anything before.
            if complete || best.is_empty() || tried.iter().any(|judged| judged.holds) {
                best = ranked(tried, self.task.budget.new_data.as_secs_f64());
            }
            if !complete {
                return Halved { best, all, ended: Ended::TimeOver };
            }
            if best.len() <= CHECKED && outages >= checks {
                break;
            }
            outages = (outages * MORE).min(checks);
            let (kept, allowed) = ((best.len() / 2).max(CHECKED).min(best.len()), most / outages);
            if allowed < kept as u64 {
                ended = Ended::TrialsOver;
            }
            left = best[..kept.min(allowed as usize)].iter().map(|judged| judged.parameters).collect();
        }
        Halved { best, all, ended }
    }

    /// The candidate with every seed of `seeds`; none if the work had to end before.
    fn judged(&self, candidate: &Candidate, seeds: Range<u64>, quiet: &Quiet, share: f64) -> Option<Judged> {
        let all = seeds.end - seeds.start;
        let times = self.times(candidate, seeds, share);
        (times.len() as u64 == all).then(|| judge(self.task, candidate, times, quiet))
    }

    /// The time of each outage, as many as the time allows.
    fn times(&self, candidate: &Candidate, seeds: Range<u64>, share: f64) -> Vec<f64> {
        let one = |seed: u64| {
            if self.watch.ends(share) {
                return None;
            }
            let time = outage(self.task, candidate, seed).unwrap_or(f64::INFINITY);
            (self.watch.progress)(self.done.fetch_add(1, Ordering::Relaxed) + 1, self.expected);
            Some(time)
        };
        seeds.into_par_iter().map(one).while_some().collect()
    }

    /// The advice with seeds that the search has not used, as many as the time allows; none if it allows none.
    fn check(&self, candidate: &Candidate, checks: u64) -> Option<Judged> {
        let quiet = quiet_times(self.task, &[*candidate], UNSEEN, &|| self.watch.ends(1.0));
        let times = self.times(candidate, UNSEEN..UNSEEN + checks, 1.0);
        (!times.is_empty() && !quiet.is_empty()).then(|| judge(self.task, candidate, times, &quiet))
    }
}

/// So many of the grid at most, and one at least, evenly spread.
fn thinned(grid: &[Candidate], most: u64) -> Vec<Candidate> {
    let kept = grid.len().min(most.max(1) as usize);
    (1..=kept).map(|i| grid[i * grid.len() / kept - 1]).collect()
}

/// Trials of a whole search, about.
fn expected(mut candidates: u64, checks: u64) -> u64 {
    let (mut outages, mut sum) = (FIRST, 0);
    loop {
        sum += candidates * outages;
        if candidates <= CHECKED as u64 && outages >= checks {
            return sum + checks;
        }
        candidates = (candidates / 2).max(CHECKED as u64).min(candidates);
        outages = (outages * MORE).min(checks);
    }
}

/// Those that hold the budget first: of these first those with a tenth of the time to spare, then the fewest false
/// failovers, then the largest RTO.Min, which forgives most. Of the others those that come nearest.
fn ranked(mut all: Vec<Judged>, budget: f64) -> Vec<Judged> {
    let tight = |judged: &Judged| time(judged) > 0.9 * budget;
    let missed = |judged: &Judged| if judged.holds { 0.0 } else { 1.0 - judged.within.share };
    all.sort_by(|a, b| {
        (!a.holds, tight(a))
            .cmp(&(!b.holds, tight(b)))
            .then(missed(a).total_cmp(&missed(b)))
            .then(a.false_failovers_high.total_cmp(&b.false_failovers_high))
            .then(b.parameters.rto_min.cmp(&a.parameters.rto_min))
    });
    all
}

fn time(judged: &Judged) -> f64 {
    judged.new_data.unwrap_or(f64::INFINITY)
}

/// Those that no other beats both in time and in the upper end of the interval of false failovers. A budget holds by that
/// end, because the mean says little where few timeouts were counted. Candidates that ended after the first round are
/// left out if others went on: that round is too short for such a judgement.
fn front(mut all: Vec<Judged>) -> Vec<Judged> {
    let further = all.iter().any(|judged| judged.outages > FIRST);
    all.retain(|judged| judged.new_data.is_some() && (judged.outages > FIRST || !further));
    all.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut least = f64::INFINITY;
    all.retain(|judged| {
        let better = judged.false_failovers_high < least;
        least = least.min(judged.false_failovers_high);
        better
    });
    all
}

/// How often T3-rtx expired without an outage, and in how many seconds, by RTO.Min and SACK delay: the other parameters
/// only matter once it has.
type Quiet = BTreeMap<(u64, u64), (u64, f64)>;

fn quiet_times(task: &Task, candidates: &[Candidate], seed: u64, ends: &(dyn Fn() -> bool + Sync)) -> Quiet {
    let one = |candidate: &Candidate| {
        let found = if ends() { None } else { quiet(task, candidate, seed) };
        ((candidate.rto_min, candidate.sack_delay), found)
    };
    let distinct: BTreeMap<_, _> = candidates.iter().map(|c| ((c.rto_min, c.sack_delay), *c)).collect();
    let found: Vec<_> = distinct.into_values().collect::<Vec<_>>().par_iter().map(one).collect();
    found.into_iter().filter_map(|(key, found)| Some((key, found?))).collect()
}

/// What the times of these outages say of a candidate.
fn judge(task: &Task, candidate: &Candidate, mut times: Vec<f64>, quiet: &Quiet) -> Judged {
    times.sort_by(f64::total_cmp);
    let outages = times.len() as u64;
    let budget = task.budget.new_data.as_secs_f64();
    let within = times.iter().filter(|time| **time <= budget).count() as f64;
    let rate = LossRate::of(within, outages as f64);
    let place = ((task.budget.outages * outages as f64).ceil() as usize).clamp(1, times.len()) - 1;
    let finite = |time: f64| time.is_finite().then_some(time);
    let (false_failovers, high) = false_failovers(task, candidate, quiet);
    Judged {
        parameters: *candidate,
        classical: candidate.classical() as f64 / 1000.0,
        new_data: finite(times[place]),
        longest: times.last().copied().and_then(finite),
        within: Share { share: rate.rate, low: rate.low, high: rate.high },
        outages,
        false_failovers,
        false_failovers_high: high,
        holds: rate.rate >= task.budget.outages && high <= task.budget.false_failovers,
    }
}

/// Failovers without an outage in the budget's period: mean, and upper end of the 95 % interval.
///
/// Months are too long to simulate. So the rate of a first timeout is counted, and each further error in a row has the
/// probability that a packet or its answer is lost: errors in a row are a path without an outage losing one attempt
/// after the other.
fn false_failovers(task: &Task, candidate: &Candidate, quiet: &Quiet) -> (f64, f64) {
    let Some(&(timeouts, seconds)) = quiet.get(&(candidate.rto_min, candidate.sack_delay)) else {
        return (0.0, f64::INFINITY);
    };
    let loss = task.paths[0].loss;
    let fails = 1.0 - (1.0 - loss) * (1.0 - loss);
    let again: f64 = (1..candidate.errors()).map(|_| fails).product();
    let periods = task.budget.per.as_secs_f64() / seconds;
    (timeouts as f64 * periods * again, most(timeouts) * periods * again)
}

/// The upper end of the 95 % interval of a count (a quantile of the chi-squared distribution, by Wilson and Hilferty
/// 1931).
fn most(count: u64) -> f64 {
    let n = count as f64 + 1.0;
    let root = 1.0 - 1.0 / (9.0 * n) + 1.959_964 / (3.0 * n.sqrt());
    n * root * root * root
}

#[cfg(test)]
mod tests;
