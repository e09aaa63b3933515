//! One trial of a candidate: an outage of the primary at a random moment, or a long time without one, in the simulator.

use std::time::Duration;

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

use super::{Candidate, PathTask, Task};

/// Round trips and messages after which RTO and windows have settled, before an outage begins.
const SETTLED: f64 = 40.0;
/// A trial without outages simulates this long, at most.
const QUIET: f64 = 3_600.0;
/// Packets that a trial without outages sends, about.
const PACKETS: f64 = 30_000.0;

/// How long new data took to leave by another path, in seconds, counted from the first message that the outage
/// could lose; `None`: it did not within twice the budget.
pub(super) fn outage(task: &Task, candidate: &Candidate, seed: u64) -> Option<f64> {
    let gap = task.gap().as_secs_f64();
    let settled = (SETTLED * gap.max(task.round_trip().as_secs_f64())).clamp(1.0, 600.0);
    let down = settled + (1.0 + 2.0 * gap) * unit(seed);
    let stop = down + 2.0 * task.budget.new_data.as_secs_f64() + gap;
    let up = down + task.paths[0].outage.as_secs_f64();
    let result = simulated(
        task,
        candidate,
        seed,
        stop,
        &format!("down = [[\"{}\", \"{}\"]]\n", text(down), text(up)),
    )?;
    let outage = result.outages.first()?;
    // Where messages are rare, the next one shows only late that the path has been left.
    let rare = gap > task.budget.new_data.as_secs_f64() / 4.0;
    let left = if rare { outage.detected } else { outage.new_data }?;
    let first = result.first_data.unwrap_or(0.0);
    let wait = if gap > 0.0 { gap - (down - first).max(0.0) % gap } else { 0.0 };
    Some((left - wait).max(0.0))
}

/// How often T3-rtx of the primary expired without an outage, and in how many seconds.
pub(super) fn quiet(task: &Task, candidate: &Candidate, seed: u64) -> Option<(u64, f64)> {
    let packets = match task.traffic.rate {
        Some(rate) => rate as f64 / (task.traffic.message_size.min(1452) * 8) as f64,
        None => task.paths[0].rate as f64 / 12_000.0,
    };
    let time = (PACKETS / packets.max(1.0)).clamp(20.0, QUIET);
    let result = simulated(task, candidate, seed, time, "")?;
    Some((result.paths.first()?.timeouts, time))
}

fn simulated(
    task: &Task,
    candidate: &Candidate,
    seed: u64,
    stop: f64,
    down: &str,
) -> Option<anabranch_sim::results::FlowResult> {
    let trial = scenario(task, candidate, seed, stop, down);
    let document = Document::parse("trial.toml", &trial).expect("a trial is TOML");
    let scenario = document.scenario("trial", &Policies::default()).expect("a task that was read can be run");
    let mut result = run(&scenario, RunOptions::default()).ok()?;
    Some(result.flows.swap_remove(0))
}

/// The scenario of a trial; `down` is a key of the primary's link.
pub(super) fn scenario(task: &Task, candidate: &Candidate, seed: u64, stop: f64, down: &str) -> String {
    let links = task.paths.iter().enumerate().map(|(i, path)| link(path, if i == 0 { down } else { "" }));
    let size = task.traffic.message_size;
    let traffic = match task.traffic.rate {
        Some(rate) => format!("rate = \"{rate} bit/s\"\nmessage_size = \"{size} B\"\n"),
        None => "send = \"100 GB\"\n".to_owned(),
    };
    format!(
        "seed = {seed}\nstop = \"{}\"\n{}[[flow]]\nname = \"traffic\"\nfrom = \"s\"\nto = \"r\"\n{traffic}[flow.sctp]\nprimary = \"{}\"\n{}",
        text(stop),
        links.collect::<String>(),
        task.paths[0].name,
        candidate.keys()
    )
}

fn link(path: &PathTask, down: &str) -> String {
    let nanoseconds = |time: Duration| time.as_nanos();
    format!(
        "[[link]]\nname = \"{}\"\nbetween = [\"s\", \"r\"]\nrate = \"{} bit/s\"\ndelay = \"{} ns\"\njitter = \"{} ns\"\nloss = \"{} %\"\n{down}",
        path.name,
        path.rate,
        nanoseconds(path.delay),
        nanoseconds(path.jitter),
        path.loss * 100.0
    )
}

/// A time in seconds as a scenario takes it: a whole number of nanoseconds.
fn text(seconds: f64) -> String {
    format!("{} ns", Duration::from_secs_f64(seconds).as_nanos())
}

/// A number from 0 to 1 that depends on the seed (SplitMix64).
fn unit(seed: u64) -> f64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as f64 / u64::MAX as f64
}
