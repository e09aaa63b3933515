//! The comparison: completion times of every policy with every receive buffer, then where another policy becomes
//! faster.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_proto::Policies;
use anabranch_proto::policy::receive_buffer_model::Conditions;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};
use rayon::prelude::*;
use serde::Serialize;

use super::super::search::{Ended, Watch};
use super::PairTask;
use super::margin::Margin;
use crate::statistics::Summary;

/// Policies are equally fast within this part of the time.
pub const TOLERANCE: f64 = 0.02;
/// The advised receive buffer is the smallest that costs at most this part of the time.
const BUFFER_TOLERANCE: f64 = 0.05;
/// How many times a quantity is doubled and halved to find where the answer changes.
const OCTAVES: i32 = 4;
/// Bisections of the step in which it changes: a value that was doubled or halved is then known to 9 %, a loss to 16 %.
const BISECTIONS: u32 = 3;
/// Where something is random: the seeds of the advised receive buffer, and of an edge, at least.
const LEAST_SEEDS: u64 = 30;
/// The seeds of the advised receive buffer if those do not decide which policy is faster.
const MORE_SEEDS: u64 = 120;
/// The level of the intervals of edges. Dozens of changes are tried, and at 95 % one in forty would seem to be an edge.
const EDGE_LEVEL: f64 = 0.99;
/// The share of the time after which no more seeds are added to the advised buffer, and after which edges end: the rest
/// is for the map.
const DECIDING: f64 = 0.4;
const EDGES: f64 = 0.75;
/// Losses that are tried where a path has none, or above those that it has.
const LOSSES: [f64; 7] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1];

/// What the comparison found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyAnswer {
    /// The advice; `None`: the comparison ended before the first receive buffer was done, or nothing was ever complete.
    pub advice: Option<PolicyAdvice>,
    /// Every receive buffer with the times of every policy.
    pub buffers: Vec<BufferRow>,
    /// For each quantity, where another policy becomes faster.
    pub edges: Vec<Edge>,
    /// The rates of both paths together.
    pub map: Option<Map>,
    /// The bandwidth of the second path, bit/s, below which equation (8) says that retransmissions there fill the
    /// advised buffer.
    pub model_least_secondary: Option<f64>,
    /// Why the comparison ended.
    pub ended: Ended,
}

/// The advice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyAdvice {
    /// The policy of retransmissions.
    pub policy: String,
    /// The receive buffer, bytes.
    pub receive_buffer: u64,
    /// Seconds for the transfer, the mean of the seeds.
    pub completion: f64,
    /// The policy that comes next.
    pub next: String,
    /// By how much longer that takes, as a part of the advised time: the ratio of the means, less 1. `None`: it was not
    /// complete with every seed.
    pub margin: Option<f64>,
    /// Half the width of its 95 % interval, by Student's t; `None` with one seed, or without a margin.
    pub margin_ci95: Option<f64>,
    /// How many seeds the two were compared with.
    pub seeds: u64,
    /// Whether these decide which of the two is faster, or that both take as long.
    pub decided: bool,
}

/// A receive buffer, and the times of every policy with it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BufferRow {
    /// Bytes.
    pub receive_buffer: u64,
    /// The times, in the order of the task.
    pub policies: Vec<PolicyTime>,
}

/// A policy, and its times.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyTime {
    /// Its name.
    pub policy: String,
    /// Seconds, the mean of the seeds; `None`: a transfer was not complete after 20 times what the first path alone
    /// needs.
    pub completion: Option<f64>,
    /// Half the width of the 95 % interval.
    pub ci95: Option<f64>,
    /// By seed.
    #[serde(skip)]
    times: Vec<f64>,
}

/// Where another policy becomes faster than the advised one by more than [`TOLERANCE`] if one quantity changes alone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Edge {
    /// The quantity.
    #[serde(flatten)]
    pub quantity: Quantity,
    /// Its value in the task.
    pub now: f64,
    /// The nearest smaller value at which it does, and that policy.
    pub below: Option<(f64, String)>,
    /// The nearest larger one.
    pub above: Option<(f64, String)>,
    /// The smallest and the largest value that were looked at.
    pub between: [f64; 2],
}

/// A quantity of a task that can be changed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Quantity {
    /// Which.
    pub what: &'static str,
    /// Of which path; `None`: the receive buffer.
    pub path: Option<String>,
    /// Its unit: "bit/s", "s", "packets", "B", or "1" for a share.
    pub unit: &'static str,
    #[serde(skip)]
    of: Of,
}

#[derive(Copy, Clone, PartialEq, Debug)]
enum Of {
    Rate(usize),
    Delay(usize),
    Loss(usize),
    Queue(usize),
    Buffer,
}

/// The time of the advised policy, divided by that of the fastest other, for the rates of both paths.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Map {
    /// Rates of the second path, bit/s: the columns.
    pub second: Vec<f64>,
    /// Rates of the first path, bit/s: the rows.
    pub first: Vec<f64>,
    /// By row: the ratio. `None` where the time was over before, or nothing was complete.
    pub ratio: Vec<Vec<Option<f64>>>,
    /// By row: the fastest policy, the first of those that are equally fast.
    pub fastest: Vec<Vec<Option<String>>>,
}

/// A pair of paths, as it is tried: the task with one or two quantities changed.
#[derive(Clone, Debug)]
struct Setting {
    task: PairTask,
    receive_buffer: u64,
}

/// Compares the policies for a pair of paths.
pub fn advise_policy(task: &PairTask, watch: &Watch<'_>) -> PolicyAnswer {
    let more = if task.has_chance() { LEAST_SEEDS + MORE_SEEDS } else { 0 };
    let expected = (expected_runs(task) * seeds(task) + more) * task.transfer.policies.len() as u64;
    let compared = Compared { watch, done: AtomicU64::new(0), expected, cut: AtomicBool::new(false) };
    let row = |receive_buffer: &u64| {
        let setting = Setting { task: task.clone(), receive_buffer: *receive_buffer };
        Some(BufferRow { receive_buffer: *receive_buffer, policies: compared.times(&setting, 1.0)? })
    };
    // The largest first: it is never the worst answer if the work is stopped.
    let mut buffers: Vec<BufferRow> = task.transfer.receive_buffers.iter().rev().filter_map(row).collect();
    buffers.reverse();
    let advice = compared.advice(task, &mut buffers);
    let mut answer = PolicyAnswer {
        model_least_secondary: advice.as_ref().and_then(|advice| model(task, advice.receive_buffer)),
        advice,
        buffers,
        edges: Vec::new(),
        map: None,
        ended: Ended::Complete,
    };
    if let Some(advice) = &answer.advice {
        let setting = Setting { task: task.clone(), receive_buffer: advice.receive_buffer };
        answer.edges = compared.edges(&setting, &advice.policy);
        answer.map = Some(compared.map(&setting, &advice.policy));
    }
    if watch.stop.load(Ordering::Relaxed) {
        answer.ended = Ended::Stopped;
    } else if compared.cut.load(Ordering::Relaxed) {
        answer.ended = Ended::TimeOver;
    }
    answer
}

/// The smallest buffer that costs little.
fn cheap(buffers: &mut [BufferRow]) -> Option<&mut BufferRow> {
    let best = |row: &BufferRow| fastest(&row.policies).and_then(|policy| policy.completion);
    let least = buffers.iter().filter_map(best).reduce(f64::min)?;
    let near = |row: &&mut BufferRow| best(row).is_some_and(|time| time <= least * (1.0 + BUFFER_TOLERANCE));
    buffers.iter_mut().find(near)
}

/// The policy that is fastest with this buffer, and its margin.
fn advised(row: &BufferRow, chance: bool) -> Option<PolicyAdvice> {
    let policy = fastest(&row.policies)?;
    let others = row.policies.iter().filter(|other| other.policy != policy.policy);
    let next = others.min_by(|a, b| time(a).total_cmp(&time(b)))?;
    let margin = Margin::of(&policy.times, &next.times, chance, 0.95);
    let several = policy.times.len() > 1;
    Some(PolicyAdvice {
        policy: policy.policy.clone(),
        receive_buffer: row.receive_buffer,
        completion: policy.completion?,
        next: next.policy.clone(),
        margin: margin.map(|margin| margin.longer),
        margin_ci95: margin.map(|margin| margin.half).filter(|_| several),
        seeds: policy.times.len() as u64,
        decided: margin.is_none_or(|margin| margin.decides()),
    })
}

fn time(policy: &PolicyTime) -> f64 {
    policy.completion.unwrap_or(f64::INFINITY)
}

/// The first policy of those that are equally fast and that none beats.
fn fastest(policies: &[PolicyTime]) -> Option<&PolicyTime> {
    let least = policies.iter().map(time).reduce(f64::min).filter(|least| least.is_finite())?;
    policies.iter().find(|policy| time(policy) <= least * (1.0 + TOLERANCE))
}

/// Equation (8) for the advised buffer.
fn model(task: &PairTask, receive_buffer: u64) -> Option<f64> {
    let [first, second] = task.paths.as_slice() else { return None };
    let conditions = Conditions {
        primary_rate: first.rate as f64,
        primary_rtt: 2.0 * first.delay.as_secs_f64(),
        queue: f64::from(first.queue) * 1_500.0,
        secondary_rate: second.rate as f64,
        secondary_rtt: 2.0 * second.delay.as_secs_f64(),
        receive_buffer: receive_buffer as f64,
        mtu: 1_500.0,
    };
    conditions.least_secondary()
}

/// Settings that a whole comparison tries, about.
fn expected_runs(task: &PairTask) -> u64 {
    let side = 2 * OCTAVES as u64 + 1;
    task.transfer.receive_buffers.len() as u64 + 9 * 2 * (OCTAVES as u64 - 1) + side * side
}

/// Runs of each policy: where nothing is random, they are all the same. A task without losses has them when a loss is
/// tried.
fn seeds(task: &PairTask) -> u64 {
    if task.has_chance() { task.transfer.seeds } else { 1 }
}

/// Runs transfers, and counts them.
struct Compared<'a> {
    watch: &'a Watch<'a>,
    done: AtomicU64,
    expected: u64,
    /// Whether runs were left out because the time was over.
    cut: AtomicBool,
}

impl Compared<'_> {
    /// The times of every policy; none if the work had to end before this share of the time was over.
    fn times(&self, setting: &Setting, share: f64) -> Option<Vec<PolicyTime>> {
        let policies = setting.task.transfer.policies.iter().map(String::as_str);
        self.times_of(setting, &policies.collect::<Vec<_>>(), seeds(&setting.task), share)
    }

    /// The times of these policies with so many seeds.
    fn times_of(&self, setting: &Setting, of: &[&str], seeds: u64, share: f64) -> Option<Vec<PolicyTime>> {
        let runs: Vec<(&str, u64)> =
            of.iter().flat_map(|policy| (0..seeds).map(move |seed| (*policy, seed))).collect();
        let one = |(policy, seed): &(&str, u64)| {
            if self.watch.ends(share) {
                self.cut.store(true, Ordering::Relaxed);
                return None;
            }
            let time = completion(setting, policy, seed + 1).unwrap_or(f64::INFINITY);
            (self.watch.progress)(self.done.fetch_add(1, Ordering::Relaxed) + 1, self.expected);
            Some(time)
        };
        let all: Vec<f64> = runs.par_iter().map(one).while_some().collect();
        if all.len() < runs.len() {
            return None;
        }
        let summed = |(policy, times): (&&str, &[f64])| {
            let summary = Summary::of(times);
            let completion = summary.mean.filter(|mean| mean.is_finite());
            let ci95 = summary.ci95.filter(|half| half.is_finite());
            PolicyTime { policy: (*policy).to_owned(), completion, ci95, times: times.to_vec() }
        };
        Some(of.iter().zip(all.chunks(seeds as usize)).map(summed).collect())
    }

    /// The smallest buffer that costs little, and the policy that is fastest with it. Where something is random, this
    /// buffer gets more seeds, and again more if these do not decide.
    fn advice(&self, task: &PairTask, buffers: &mut [BufferRow]) -> Option<PolicyAdvice> {
        let chance = task.has_chance();
        let row = cheap(buffers)?;
        let setting = Setting { task: task.clone(), receive_buffer: row.receive_buffer };
        let policies: Vec<&str> = task.transfer.policies.iter().map(String::as_str).collect();
        let mut advice = advised(row, chance)?;
        for seeds in [LEAST_SEEDS, MORE_SEEDS] {
            let enough = advice.seeds >= seeds || (advice.decided && seeds > LEAST_SEEDS);
            if !chance || enough {
                continue;
            }
            let Some(policies) = self.times_of(&setting, &policies, seeds, DECIDING) else { break };
            let more = BufferRow { policies, ..row.clone() };
            if let Some(better) = advised(&more, chance) {
                (advice, *row) = (better, more);
            }
        }
        Some(advice)
    }

    /// The policy that beats the advised one here, if one does; `None` also if the work had to end. Where something is
    /// random, what a few seeds show must be confirmed by more.
    fn beaten(&self, setting: &Setting, advised: &str) -> Option<String> {
        let beats = |times: &[PolicyTime]| {
            let own = times.iter().find(|policy| policy.policy == advised)?;
            let best = fastest(times).filter(|best| time(own) > time(best) * (1.0 + TOLERANCE))?;
            let margin = Margin::of(&best.times, &own.times, setting.task.has_chance(), EDGE_LEVEL);
            Some((best.policy.clone(), margin.is_none_or(|margin| margin.is_slower())))
        };
        let (policy, sure) = beats(&self.times(setting, EDGES)?)?;
        let seeds = seeds(&setting.task);
        if !setting.task.has_chance() || seeds >= LEAST_SEEDS {
            return sure.then_some(policy);
        }
        let more = self.times_of(setting, &[advised, &policy], LEAST_SEEDS, EDGES)?;
        beats(&more).filter(|(_, sure)| *sure).map(|(policy, _)| policy)
    }

    fn edges(&self, setting: &Setting, advised: &str) -> Vec<Edge> {
        let edge = |quantity: &Quantity| {
            let now = quantity.value(setting);
            let [down, up] = quantity.steps(now);
            let ends = [&down, &up].map(|steps| steps.last().copied().unwrap_or(now));
            let (below, above) = rayon::join(
                || self.first_change(setting, quantity, &down, advised),
                || self.first_change(setting, quantity, &up, advised),
            );
            Edge { quantity: quantity.clone(), now, below, above, between: ends }
        };
        quantities(setting).par_iter().map(edge).collect()
    }

    /// The first of these values at which another policy is faster, made more precise by bisection.
    fn first_change(
        &self,
        setting: &Setting,
        quantity: &Quantity,
        steps: &[f64],
        advised: &str,
    ) -> Option<(f64, String)> {
        let at = |value: f64| self.beaten(&quantity.set(setting, value), advised);
        let mut before = quantity.value(setting);
        for step in steps {
            let Some(mut faster) = at(*step) else {
                before = *step;
                continue;
            };
            let mut after = *step;
            for _ in 0..BISECTIONS {
                let middle = if before > 0.0 { (before * after).sqrt() } else { after / 2.0 };
                match at(middle) {
                    Some(policy) => (after, faster) = (middle, policy),
                    None => before = middle,
                }
            }
            return Some((after, faster));
        }
        None
    }

    fn map(&self, setting: &Setting, advised: &str) -> Map {
        let rates = |path: usize| -> Vec<f64> {
            let now = setting.task.paths[path].rate as f64;
            (-OCTAVES..=OCTAVES).map(|octave| octaves(now, octave).max(1.0)).collect()
        };
        let (first, second) = (rates(0), rates(1));
        let cell = |(row, column): &(usize, usize)| {
            let mut setting = setting.clone();
            setting.task.paths[0].rate = first[*row] as u64;
            setting.task.paths[1].rate = second[*column] as u64;
            let times = self.times(&setting, 1.0)?;
            let own = times.iter().find(|policy| policy.policy == advised).map(time)?;
            let others = times.iter().filter(|policy| policy.policy != advised).map(time);
            let ratio = own / others.fold(f64::INFINITY, f64::min);
            Some((Some(ratio).filter(|ratio| ratio.is_finite()), fastest(&times).map(|p| p.policy.clone())))
        };
        let cells: Vec<(usize, usize)> =
            (0..first.len()).flat_map(|row| (0..second.len()).map(move |column| (row, column))).collect();
        let found: Vec<_> = cells.par_iter().map(cell).map(Option::unwrap_or_default).collect();
        let rows = || found.chunks(second.len());
        Map {
            ratio: rows().map(|row| row.iter().map(|cell| cell.0).collect()).collect(),
            fastest: rows().map(|row| row.iter().map(|cell| cell.1.clone()).collect()).collect(),
            first,
            second,
        }
    }
}

/// So many octaves higher.
fn octaves(value: f64, octave: i32) -> f64 {
    let factor = f64::from(1_u32 << octave.unsigned_abs());
    if octave < 0 { value / factor } else { value * factor }
}

fn quantities(setting: &Setting) -> Vec<Quantity> {
    let paths = &setting.task.paths;
    let of_path = |path: usize| {
        [
            ("rate", "bit/s", Of::Rate(path)),
            ("delay", "s", Of::Delay(path)),
            ("loss", "1", Of::Loss(path)),
            ("queue", "packets", Of::Queue(path)),
        ]
        .map(|(what, unit, of)| Quantity { what, unit, of, path: Some(paths[path].name.clone()) })
    };
    let buffer = Quantity { what: "receive_buffer", unit: "B", of: Of::Buffer, path: None };
    (0..2).flat_map(of_path).chain([buffer]).collect()
}

impl Quantity {
    fn value(&self, setting: &Setting) -> f64 {
        let paths = &setting.task.paths;
        match self.of {
            Of::Rate(path) => paths[path].rate as f64,
            Of::Delay(path) => paths[path].delay.as_secs_f64(),
            Of::Loss(path) => paths[path].loss,
            Of::Queue(path) => f64::from(paths[path].queue),
            Of::Buffer => setting.receive_buffer as f64,
        }
    }

    fn set(&self, setting: &Setting, value: f64) -> Setting {
        let mut setting = setting.clone();
        let paths = &mut setting.task.paths;
        match self.of {
            Of::Rate(path) => paths[path].rate = value as u64,
            Of::Delay(path) => paths[path].delay = Duration::from_secs_f64(value),
            Of::Loss(path) => paths[path].loss = value,
            Of::Queue(path) => paths[path].queue = value as u32,
            Of::Buffer => setting.receive_buffer = value as u64,
        }
        setting
    }

    /// The values to try, going down and going up.
    fn steps(&self, now: f64) -> [Vec<f64>; 2] {
        let least = match self.of {
            Of::Rate(_) => 1_000.0,
            Of::Delay(_) => 0.0005,
            Of::Queue(_) => 2.0,
            // What RFC 9260 asks for at least is 1,500 B; below three packets nothing can be said of policies.
            Of::Buffer => 4_500.0,
            Of::Loss(_) => {
                let down = LOSSES.iter().rev().filter(|loss| **loss < now).copied().chain([0.0]);
                let down = if now > 0.0 { down.collect() } else { Vec::new() };
                return [down, LOSSES.iter().filter(|loss| **loss > now).copied().collect()];
            }
        };
        let down = (1..=OCTAVES).map(|octave| octaves(now, -octave)).filter(|value| *value >= least);
        [down.collect(), (1..=OCTAVES).map(|octave| octaves(now, octave)).collect()]
    }
}

/// Seconds that the transfer takes; `None`: it was not complete after 20 times what the first path alone needs.
fn completion(setting: &Setting, policy: &str, seed: u64) -> Option<f64> {
    let document = Document::parse("trial.toml", &scenario(setting, policy, seed)).expect("a trial is TOML");
    let scenario = document.scenario("trial", &Policies::default()).expect("a task that was read can be run");
    let result = run(&scenario, RunOptions::default()).ok()?;
    result.flows.first()?.completion
}

/// The scenario of one run.
fn scenario(setting: &Setting, policy: &str, seed: u64) -> String {
    let Setting { task, receive_buffer } = setting;
    let link = |path: &super::PairPath| {
        format!(
            "[[link]]\nname = \"{}\"\nbetween = [\"s\", \"r\"]\nrate = \"{} bit/s\"\ndelay = \"{} ns\"\njitter = \"{} ns\"\nloss = \"{} %\"\nqueue = \"{} packets\"\n",
            path.name,
            path.rate.max(1),
            path.delay.as_nanos(),
            path.jitter.as_nanos(),
            path.loss * 100.0,
            path.queue
        )
    };
    let alone = task.transfer.send as f64 * 8.0 / task.paths[0].rate.max(1) as f64;
    let stop = 20.0 * alone + 600.0;
    format!(
        "seed = {seed}\nstop = \"{} ms\"\n{}[[flow]]\nname = \"transfer\"\nfrom = \"s\"\nto = \"r\"\nsend = \"{} B\"\n[flow.sctp]\nprimary = \"{}\"\nretransmit = \"{policy}\"\nreceive_buffer = \"{receive_buffer} B\"\n",
        (stop * 1000.0) as u64,
        task.paths.iter().map(link).collect::<String>(),
        task.transfer.send,
        task.paths[0].name,
    )
}

#[cfg(test)]
mod tests;
