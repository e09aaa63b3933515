//! The same scenarios through Anabranch's transports and the foreign ones.

use std::fmt::Write;
use std::path::Path;

use crate::{read, simulate};

/// The scenarios, with the number of seeds: one where nothing is random.
const SCENARIOS: [(&str, &str, u64); 5] = [
    ("one-path", include_str!("../scenarios/one-path.toml"), 1),
    ("loss", include_str!("../scenarios/loss.toml"), 10),
    ("reordering", include_str!("../scenarios/reordering.toml"), 10),
    ("two-paths", include_str!("../scenarios/two-paths.toml"), 1),
    ("failure", include_str!("../scenarios/failure.toml"), 1),
];

/// The stacks: what the table calls them, and the keys that choose them. The first is what the others are compared
/// with.
const STACKS: [(&str, &[&str]); 6] = [
    ("Anabranch", &[]),
    ("Anabranch, CMT", &["flow.transfer.sctp.cmt=true"]),
    ("Anabranch, TCP", &["flow.transfer.protocol='tcp'"]),
    ("noq", &["flow.transfer.protocol={ foreign = 'noq' }"]),
    ("dcsctp", &["flow.transfer.protocol={ foreign = 'dcsctp' }"]),
    ("sctp-proto", &["flow.transfer.protocol={ foreign = 'sctp-proto' }"]),
];

/// A stack is expected to take as long as its counterpart here, and to put as many bytes on the links, within these
/// factors.
#[cfg(test)]
const TIME: [f64; 2] = [0.8, 1.25];
const WIRE: [f64; 2] = [0.9, 1.1];

/// What differs by more, and why: scenario, stack, the factors for time and for bytes on the links.
const DIFFERENCES: [(&str, &str, [f64; 2], [f64; 2], &str); 10] = [
    ("one-path", "dcsctp", [1.2, 1.32], [1.1, 1.2], REPEATS),
    ("one-path", "sctp-proto", [1.35, 1.5], WIRE, TIMEOUTS),
    (
        "reordering",
        "noq",
        [0.7, 0.85],
        WIRE,
        "noq's window is CUBIC's, which a packet taken for lost reduces by less",
    ),
    ("reordering", "sctp-proto", [1.25, 1.55], WIRE, TIMEOUTS),
    (
        "two-paths",
        "noq",
        [0.7, 0.85],
        WIRE,
        "noq fills each path by a CUBIC window; `cmt` by the window of RFC 9260",
    ),
    (
        "two-paths",
        "dcsctp",
        [1.3, 1.55],
        [1.1, 1.2],
        "dcsctp has one path, and repeats chunks as in one-path",
    ),
    ("two-paths", "sctp-proto", [1.5, 1.75], WIRE, "sctp-proto has one path, and waits as in one-path"),
    (
        "failure",
        "noq",
        [1.3, 1.5],
        WIRE,
        "noq declares packets of a path lost when later ones of this path are acknowledged: what was sent on the dead path waits until it works again, and the stream's window fills behind it",
    ),
    ("failure", "sctp-proto", [1.9, 2.3], WIRE, "sctp-proto has one path, and waits until it works again"),
    ("failure", "dcsctp", [1.6, 2.0], [1.1, 1.2], "dcsctp has one path, and waits until it works again"),
];

const REPEATS: &str = "after the losses at the end of slow start dcsctp repeats some chunks up to 35 times, and it has two chunks in most packets, because a message begins where the packet has room";
const TIMEOUTS: &str = "sctp-proto needs timeouts, of 1 s and more, to repair the losses of slow start";

/// The counterpart of a stack: with two paths, that of noq and of those that might have been used is CMT.
#[cfg(test)]
fn counterpart(scenario: &str) -> &'static str {
    if ["two-paths", "failure"].contains(&scenario) { "Anabranch, CMT" } else { "Anabranch" }
}

/// Around the table in the document.
const MARKERS: [&str; 2] = ["<!-- begin: make foreign -->", "<!-- end: make foreign -->"];

/// What came out of a scenario with a stack, as the mean over the seeds.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub scenario: &'static str,
    pub stack: &'static str,
    /// Seconds until the last byte was read, by seed; of a transfer that did not end, infinite.
    pub seconds: Vec<f64>,
    /// User data that was read, of all that was to be.
    pub delivered: f64,
    /// Bytes that links delivered in both directions, for each byte of user data.
    pub wire: f64,
    /// Packets that links dropped, of all that they were offered.
    pub dropped: f64,
    /// By seed.
    pub outcomes: Vec<&'static str>,
}

impl Outcome {
    pub fn mean(&self) -> f64 {
        self.seconds.iter().sum::<f64>() / self.seconds.len() as f64
    }

    /// Half of the range in which 95 % of such means lie; `None` for one run.
    fn interval(&self) -> Option<f64> {
        let n = self.seconds.len() as f64;
        let squares: f64 = self.seconds.iter().map(|seconds| (seconds - self.mean()).powi(2)).sum();
        // Student's t for nine degrees of freedom.
        (n == 10.0).then(|| 2.262 * (squares / (n - 1.0) / n).sqrt())
    }
}

/// Runs one scenario with one stack.
fn outcome(
    (scenario, text, seeds): (&'static str, &str, u64),
    (stack, keys): (&'static str, &[&str]),
) -> Result<Outcome, String> {
    let (mut delivered, mut user, mut wire, mut dropped, mut offered) = (0, 0, 0, 0, 0);
    let (mut seconds, mut outcomes) = (Vec::new(), Vec::new());
    for seed in 1..=seeds {
        let set: Vec<_> = keys.iter().map(|key| (*key).to_owned()).chain([format!("seed={seed}")]).collect();
        let (_, scenario) = read(scenario, text, set.iter()).map_err(|error| error.to_string())?;
        let result = simulate(&scenario, None).map_err(|error| error.to_string())?;
        let flow = &result.flows[0];
        delivered += flow.delivered;
        user += flow.delivered + flow.missing.unwrap_or(0);
        wire += result.links.iter().map(|link| link.bytes).sum::<u64>();
        dropped += result.links.iter().map(|link| link.dropped).sum::<u64>();
        offered += result.links.iter().map(|link| link.packets).sum::<u64>();
        seconds.push(flow.completion.unwrap_or(f64::INFINITY));
        outcomes.push(flow.outcome);
    }
    Ok(Outcome {
        scenario,
        stack,
        seconds,
        delivered: delivered as f64 / user as f64,
        wire: wire as f64 / delivered as f64,
        dropped: dropped as f64 / offered as f64,
        outcomes,
    })
}

/// Every scenario with every stack.
pub fn outcomes() -> Result<Vec<Outcome>, String> {
    let all = SCENARIOS.into_iter().flat_map(|scenario| STACKS.map(|stack| (scenario, stack)));
    all.map(|(scenario, stack)| outcome(scenario, stack)).collect()
}

/// The table, in Markdown.
pub fn table() -> Result<String, String> {
    let mut text = String::from(
        "| scenario | stack | delivered | time, s | bytes on the links for a byte of user data | packets dropped | ended |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for outcome in outcomes()? {
        let time = match outcome.interval() {
            Some(half) => format!("{:.2} ± {half:.2}", outcome.mean()),
            None => format!("{:.2}", outcome.mean()),
        };
        let closed = outcome.outcomes.iter().all(|ended| *ended == outcome.outcomes[0]);
        let ended = if closed { outcome.outcomes[0].to_owned() } else { format!("{:?}", outcome.outcomes) };
        let Outcome { scenario, stack, delivered, wire, dropped, .. } = &outcome;
        let (delivered, dropped) = (delivered * 100.0, dropped * 100.0);
        writeln!(
            text,
            "| {scenario} | {stack} | {delivered:.0} % | {time} | {wire:.3} | {dropped:.2} % | {ended} |"
        )
        .expect("a string takes everything");
    }
    text += "\nWhere a foreign stack takes less than 0.8 or more than 1.25 times as long as its counterpart, or puts less than 0.9 or \
             more than 1.1 times as many bytes on the links:\n\n";
    for (scenario, stack, .., why) in DIFFERENCES {
        writeln!(text, "- {scenario}, {stack}: {why}.").expect("a string takes everything");
    }
    Ok(text)
}

/// Writes the table into the document, between its markers.
pub fn write(file: &Path) -> Result<String, String> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let [begin, end] = MARKERS;
    let parts = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let (before, after) = parts.ok_or_else(|| format!("{name} has no lines `{begin}` and `{end}`"))?;
    let text = format!("{before}{begin}\n{}{end}{after}", table()?);
    std::fs::write(file, text).map_err(|error| format!("{name}: {error}"))?;
    Ok(format!("wrote {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(value: f64, [low, high]: [f64; 2]) -> bool {
        (low..=high).contains(&value)
    }

    /// Everything arrives with every stack, and time and bytes are as with its counterpart here, or differ as written
    /// down.
    #[test]
    fn foreign_stacks_do_as_ours_or_differ_as_written_down() {
        let outcomes = outcomes().expect("every scenario runs");
        for outcome in &outcomes {
            let name = format!("{}, {}", outcome.scenario, outcome.stack);
            assert_eq!(outcome.delivered, 1.0, "{name}: everything is delivered");
            assert!(
                outcome.outcomes.iter().all(|ended| *ended == "closed"),
                "{name}: {:?}",
                outcome.outcomes
            );
            if outcome.stack.starts_with("Anabranch") {
                continue;
            }
            let ours = outcomes
                .iter()
                .find(|ours| ours.scenario == outcome.scenario && ours.stack == counterpart(ours.scenario))
                .expect("it was run");
            let (time, wire) = (outcome.mean() / ours.mean(), outcome.wire / ours.wire);
            let row = DIFFERENCES.iter().find(|row| (row.0, row.1) == (outcome.scenario, outcome.stack));
            let (times, wires) = row.map_or((TIME, WIRE), |row| (row.2, row.3));
            assert!(within(time, times), "{name}: {time:.3} times as long as ours, expected {times:?}");
            assert!(
                within(wire, wires),
                "{name}: {wire:.3} times our bytes on the links, expected {wires:?}"
            );
            let usual = within(time, TIME) && within(wire, WIRE);
            assert_eq!(
                row.is_some(),
                !usual,
                "{name}: {time:.3} and {wire:.3}: a difference is written down, and only then"
            );
        }
    }

    #[test]
    fn what_is_called_repeatable_is() {
        for transport in crate::TRANSPORTS.iter().filter(|transport| transport.is_repeatable()) {
            let key = format!("flow.transfer.protocol={{ foreign = '{}' }}", transport.name());
            let set = [key, "flow.transfer.send='1 MB'".to_owned()];
            let runs = [(); 3].map(|()| {
                let (_, scenario) = read("loss", SCENARIOS[1].1, set.iter()).expect("it can be read");
                simulate(&scenario, None).expect("it runs")
            });
            assert!(runs.iter().all(|run| *run == runs[0]), "{}", transport.name());
        }
    }

    /// A transfer that ends at any moment is closed with all its data delivered.
    #[test]
    fn nothing_is_lost_at_the_end() {
        for transport in crate::TRANSPORTS {
            for size in ["1 kB", "200 kB", "2 MB", "3 MB"] {
                let key = format!("flow.transfer.protocol={{ foreign = '{}' }}", transport.name());
                let set = [key, format!("flow.transfer.send='{size}'")];
                let (_, scenario) = read("one-path", SCENARIOS[0].1, set.iter()).expect("it can be read");
                let flow = &simulate(&scenario, None).expect("it runs").flows[0];
                let end = (flow.outcome, flow.missing);
                assert_eq!(end, ("closed", None), "{}, {size}: {} bytes", transport.name(), flow.delivered);
            }
        }
    }

    /// What is locked is what runs.
    #[test]
    fn versions_are_those_that_run() {
        let lock = include_str!("../Cargo.lock");
        for transport in crate::TRANSPORTS {
            let (name, version) = transport.version().split_once(' ').expect("a crate and its version");
            assert!(
                lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"")),
                "{name} {version}"
            );
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_those_there_are() {
        let set = ["flow.transfer.protocol={ foreign = 'nog' }".to_owned()];
        let (document, scenario) = read("one-path", SCENARIOS[0].1, set.iter()).expect("it can be read");
        let error = simulate(&scenario, None).expect_err("there is no such stack");
        let told = document.blame(&scenario, &error).expect("the scenario is at fault").to_string();
        assert!(told.contains("there is no foreign transport `nog`") && told.contains("noq"), "{told}");
    }
}
