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

/// How long new data took to leave by another path, in seconds, counted from the moment at which the first message left
/// that the outage could lose; `None`: it did not within twice the budget.
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
    Some((down + left - first_lost(task, down)).max(0.0))
}

/// When the first message leaves that an outage from `down` on can lose: it is still on the link then. Messages leave
/// at multiples of their gap; data that always waits has no gap, and is counted from the outage on.
fn first_lost(task: &Task, down: f64) -> f64 {
    let (gap, path) = (task.gap().as_secs_f64(), &task.paths[0]);
    if gap == 0.0 {
        return down;
    }
    let bits = (task.traffic.message_size + 48) * 8;
    let on_link = (path.delay + path.jitter).as_secs_f64() + bits as f64 / path.rate as f64;
    ((down - on_link) / gap + 1.0).floor() * gap
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

#[cfg(test)]
mod tests {
    use super::super::read::tests::SIGNALLING;
    use super::*;

    /// A message a second over 100 ms one way, without chance. The message that is lost times out, and so does the next
    /// one, a second later and after the doubled timeout. If the SACK before was lost too, the first timeout is that of
    /// the message before.
    #[test]
    fn an_outage_counts_from_the_message_that_it_loses() {
        let text = SIGNALLING
            .replace("15 ms", "100 ms")
            .replace("jitter = \"2 ms\"", "")
            .replace("loss = \"0.01 %\"", "")
            .replace("40 kbit/s", "1600 bit/s")
            .replace("800 ms", "2 s");
        let task = Task::read("t", &text).expect("a task");
        let candidate = Candidate {
            rto_min: 250,
            rto_max: 1_000,
            rto_initial: 500,
            path_max_retrans: 5,
            pf_max_retrans: Some(1),
            heartbeat_interval: 30_000,
            sack_delay: 20,
        };
        let times: Vec<f64> = (1..=40).filter_map(|seed| outage(&task, &candidate, seed)).collect();
        let near = |time: &f64, wanted: f64| (time - wanted).abs() < 1e-6;
        assert_eq!(times.len(), 40);
        assert!(times.iter().all(|time| near(time, 1.5) || near(time, 0.5)), "{times:?}");
        assert!(times.iter().filter(|time| near(time, 1.5)).count() >= 30, "{times:?}");
    }

    #[test]
    fn a_message_can_be_lost_while_it_is_on_the_link() {
        // 15 ms and 2 ms of jitter, and 248 bytes at 2 Mbit/s; a message leaves every 40 ms.
        let task = Task::read("t", SIGNALLING).expect("a task");
        for (down, lost) in [(2.0, 2.0), (2.017, 2.0), (2.019, 2.04), (2.04, 2.04)] {
            assert!((first_lost(&task, down) - lost).abs() < 1e-9, "{down}");
        }
    }
}
