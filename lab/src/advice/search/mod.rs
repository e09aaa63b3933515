//! The search: every candidate of the grid gets a few outages, the better half of them four times as many, and so on; those that
//! are left are checked with seeds that the search has not used.

use std::collections::BTreeMap;
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

/// What watches a search.
pub struct Watch<'a> {
    /// Set: the search ends with what it has.
    pub stop: &'a AtomicBool,
    /// Called with how many trials are done, and how many there will be about.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
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
    /// The time that the budget's share of outages took at most, seconds; `None`: it was longer than four budgets.
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
    /// Whether the budget holds: the share of outages, and the false failovers.
    pub holds: bool,
}

/// What a search found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The advice: of those that hold the budget the one with the fewest false failovers; `None`: none holds it.
    pub advice: Option<Judged>,
    /// The same, with seeds that the search has not used.
    pub checked: Option<Judged>,
    /// Candidates that no other beats both in time and in false failovers, the fastest first.
    pub front: Vec<Judged>,
    /// Candidates tried.
    pub candidates: usize,
    /// Whether the search was stopped before its end.
    pub stopped: bool,
}

/// Looks for parameters that meet the budget.
pub fn search(task: &Task, watch: &Watch<'_>) -> Answer {
    let grid = Candidate::grid(task);
    let checks = ((4.0 / (1.0 - task.budget.outages)).ceil() as u64).clamp(100, MOST_CHECKS);
    let expected = expected(grid.len() as u64, checks);
    let done = AtomicU64::new(0);
    let quiet = quiet_times(task, &grid, 1, watch.stop);
    let trial = |judge: &(dyn Fn() -> Judged + Sync), trials: u64| {
        if watch.stop.load(Ordering::Relaxed) {
            return None;
        }
        let judged = judge();
        (watch.progress)(done.fetch_add(trials, Ordering::Relaxed) + trials, expected);
        Some(judged)
    };
    let round = |candidates: &[Candidate], first: u64, outages: u64| -> Vec<Judged> {
        let one = |candidate: &Candidate| trial(&|| judged(task, candidate, first, outages, &quiet), outages);
        candidates.par_iter().filter_map(one).collect()
    };
    let (mut left, mut outages, mut known) = (grid.clone(), FIRST, Vec::new());
    while !left.is_empty() {
        let tried = round(&left, 1, outages);
        let complete = tried.len() == left.len();
        if complete || known.is_empty() {
            known = ranked(tried, task.budget.new_data.as_secs_f64());
        }
        if !complete || (known.len() <= CHECKED && outages >= checks) {
            break;
        }
        let kept = (known.len() / 2).max(CHECKED).min(known.len());
        left = known[..kept].iter().map(|judged| judged.parameters).collect();
        outages = (outages * MORE).min(checks);
    }
    let advice = known.iter().find(|judged| judged.holds).cloned();
    let check = |advice: &Judged| {
        let quiet = quiet_times(task, &[advice.parameters], UNSEEN, watch.stop);
        trial(&|| judged(task, &advice.parameters, UNSEEN, checks, &quiet), checks)
    };
    let checked = advice.as_ref().and_then(check);
    let stopped = watch.stop.load(Ordering::Relaxed);
    Answer { advice, checked, front: front(known), candidates: grid.len(), stopped }
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

/// Those that hold the budget first: of these first those with a tenth of the time to spare, then the fewest false failovers,
/// then the largest RTO.Min, which forgives most. Of the others those that come nearest.
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

/// Those that no other beats both in time and in false failovers.
fn front(mut all: Vec<Judged>) -> Vec<Judged> {
    all.retain(|judged| judged.new_data.is_some());
    all.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let mut least = f64::INFINITY;
    all.retain(|judged| {
        let better = judged.false_failovers < least;
        least = least.min(judged.false_failovers);
        better
    });
    all
}

/// How often T3-rtx expired without an outage, and in how many seconds, by RTO.Min and SACK delay: the other parameters only
/// matter once it has.
type Quiet = BTreeMap<(u64, u64), (u64, f64)>;

fn quiet_times(task: &Task, candidates: &[Candidate], seed: u64, stop: &AtomicBool) -> Quiet {
    let one = |candidate: &Candidate| {
        let stopped = stop.load(Ordering::Relaxed);
        let found = if stopped { None } else { quiet(task, candidate, seed) };
        ((candidate.rto_min, candidate.sack_delay), found)
    };
    let distinct: BTreeMap<_, _> = candidates.iter().map(|c| ((c.rto_min, c.sack_delay), *c)).collect();
    let found: Vec<_> = distinct.into_values().collect::<Vec<_>>().par_iter().map(one).collect();
    found.into_iter().filter_map(|(key, found)| Some((key, found?))).collect()
}

/// Tries one candidate with `outages` seeds from `first` on.
fn judged(task: &Task, candidate: &Candidate, first: u64, outages: u64, quiet: &Quiet) -> Judged {
    let mut times: Vec<f64> =
        (first..first + outages).map(|seed| outage(task, candidate, seed).unwrap_or(f64::INFINITY)).collect();
    times.sort_by(f64::total_cmp);
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
/// probability that a packet or its answer is lost: errors in a row are a path without an outage losing one attempt after the other.
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

/// The upper end of the 95 % interval of a count (a quantile of the chi-squared distribution, by Wilson and Hilferty 1931).
fn most(count: u64) -> f64 {
    let n = count as f64 + 1.0;
    let root = 1.0 - 1.0 / (9.0 * n) + 1.959_964 / (3.0 * n.sqrt());
    n * root * root * root
}

#[cfg(test)]
mod tests;
