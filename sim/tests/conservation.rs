//! Nothing appears or vanishes: the counts of a result agree with each other, in every scenario of the repository and
//! in those of the publications, of which the first seconds are run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_proto::{Duration, Policies};
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::{Document, Flow, Scenario, Traffic};
use anabranch_sim::{Protocol, RunOptions, run};

mod scenarios;

/// The publications' scenarios are run for so many seconds at most.
const SECONDS: u64 = 20;

/// What does not agree in a run.
struct Complaints(Vec<String>);

impl Complaints {
    fn equal(&mut self, what: &str, a: u64, b: u64) {
        if a != b {
            self.0.push(format!("{what}: {a} and {b}"));
        }
    }

    fn at_most(&mut self, what: &str, a: f64, b: f64) {
        if a > b * (1.0 + 1e-9) + 1e-9 {
            self.0.push(format!("{what}: {a} exceeds {b}"));
        }
    }

    fn near(&mut self, what: &str, a: f64, b: f64) {
        if (a - b).abs() > 1e-6 * b.abs().max(1.0) {
            self.0.push(format!("{what}: {a} and {b}"));
        }
    }
}

fn publications() -> Vec<Scenario> {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../papers");
    let list = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut all: Vec<_> = entries.collect();
        all.sort();
        all
    };
    let files = list(&papers).into_iter().filter(|path| path.is_dir()).flat_map(|folder| list(&folder));
    let other = ["claims.toml", "paper.toml", "items.toml"];
    let is_scenario = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".toml") && !other.contains(&name)
    };
    files.filter(is_scenario).filter_map(|path| read(&path)).collect()
}

/// `None`: it only changes another one.
fn read(path: &Path) -> Option<Scenario> {
    let text = std::fs::read_to_string(path).expect("the file can be read");
    if text.contains("\nscenario = ") {
        return None;
    }
    let document = Document::parse(&path.display().to_string(), &text)
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    let name = format!("{}", path.display());
    let scenario = document
        .scenario(&name, &Policies::default())
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    let most = Duration::from_secs(SECONDS);
    let stop = Some(scenario.stop.map_or(most, |stop| stop.min(most)));
    let measure = scenario.measure.filter(|[_, to]| *to <= most);
    Some(Scenario { stop, measure, ..scenario })
}

fn check(scenario: &Scenario, result: &RunResult) -> Vec<String> {
    let mut complaints = Complaints(Vec::new());
    for flow in &result.flows {
        let given = scenario.flows.iter().find(|given| given.name == flow.name).expect("the scenario has it");
        of_user_data(&mut complaints, given, flow, result.ended);
        of_paths(&mut complaints, flow);
        of_packets(&mut complaints, given, flow);
    }
    of_links(&mut complaints, scenario, result);
    for station in &result.stations {
        let air = &station.airtime;
        let span = result.measured.as_ref().map_or(result.ended, |part| part.between[1] - part.between[0]);
        complaints.near(
            &format!("{}: airtime and the run", station.node),
            air.data + air.control + air.collision + air.idle,
            span,
        );
        complaints.at_most(
            &format!("{}: answers", station.node),
            station.data.answered as f64,
            station.data.sent as f64,
        );
        complaints.at_most(
            &format!("{}: CTS", station.node),
            station.rts.answered as f64,
            station.rts.sent as f64,
        );
    }
    complaints.0
}

fn of_user_data(complaints: &mut Complaints, given: &Flow, flow: &FlowResult, ended: f64) {
    let name = &flow.name;
    if let Some(amount) = amount(&given.traffic) {
        complaints.equal(
            &format!("{name}: delivered and missing, amount"),
            flow.delivered + flow.missing.unwrap_or(0),
            amount,
        );
        complaints.equal(
            &format!("{name}: complete"),
            u64::from(flow.completion.is_some()),
            u64::from(flow.missing.is_none()),
        );
    }
    let until = flow.completion.unwrap_or(ended - given.start.as_secs_f64());
    if until > 0.0 && given.random_start.is_none() {
        complaints.near(&format!("{name}: goodput"), flow.goodput, flow.delivered as f64 * 8.0 / until);
    }
    if flow.completion.is_some() {
        complaints.at_most(&format!("{name}: goodput, throughput"), flow.goodput, flow.throughput);
    }
    if let Some(part) = &flow.measured {
        complaints.at_most(&format!("{name}: measured"), part.delivered as f64, flow.delivered as f64);
    }
    if let (Some(latency), Some(size)) = (&flow.latency, given.message_size) {
        let whole = flow.delivered.div_ceil(u64::from(size));
        complaints.at_most(&format!("{name}: messages"), latency.messages as f64, whole as f64);
    }
    complaints.at_most(
        &format!("{name}: blocked"),
        flow.blocked.peer_window + flow.blocked.send_buffer + flow.blocked.cwnd + flow.blocked.turn,
        ended * flow.paths.len().max(1) as f64,
    );
}

fn amount(traffic: &Traffic) -> Option<u64> {
    match traffic {
        Traffic::Bulk(bytes) => *bytes,
        Traffic::Constant { bytes, .. } | Traffic::Poisson { bytes, .. } | Traffic::Bursts { bytes, .. } => {
            *bytes
        }
    }
}

fn of_paths(complaints: &mut Complaints, flow: &FlowResult) {
    let name = &flow.name;
    let sum =
        |of: &dyn Fn(&anabranch_sim::results::PathResult) -> f64| flow.paths.iter().map(of).sum::<f64>();
    if flow.paths.is_empty() {
        return;
    }
    let full = flow.blocked.peer_window + flow.blocked.send_buffer;
    complaints.near(&format!("{name}: blocks of paths"), sum(&|path| path.blocks), full);
    complaints.equal(
        &format!("{name}: timeouts of paths"),
        sum(&|path| path.timeouts as f64) as u64,
        flow.timeouts,
    );
    let mut again: BTreeMap<&str, u64> = BTreeMap::new();
    for (path, count) in flow.retransmissions.fast.iter().chain(&flow.retransmissions.timeout) {
        *again.entry(path).or_default() += count;
    }
    let mut chunks: BTreeMap<&str, u64> = BTreeMap::new();
    for path in &flow.paths {
        *chunks.entry(&path.name).or_default() += path.chunks;
    }
    for (path, count) in again {
        let all = chunks.get(path).copied().unwrap_or(0);
        complaints.at_most(&format!("{name}: retransmissions on {path}"), count as f64, all as f64);
    }
    if flow.outcome == "closed" && flow.missing.is_none() {
        of_acknowledged(complaints, flow);
    }
}

/// Each byte is acknowledged once, on one path. SCTP counts its chunks with their headers and padding.
fn of_acknowledged(complaints: &mut Complaints, flow: &FlowResult) {
    const HEADER: u64 = 20 + 3;
    let acked: u64 = flow.paths.iter().map(|path| path.delivered).sum();
    let what = format!("{}: acknowledged", flow.name);
    match flow.protocol {
        Protocol::Tcp => complaints.equal(&what, acked, flow.delivered),
        Protocol::Sctp => {
            let chunks: u64 = flow.paths.iter().map(|path| path.chunks).sum();
            complaints.at_most(&what, acked as f64, (flow.delivered + HEADER * chunks) as f64);
            complaints.at_most(&what, flow.delivered as f64, acked as f64);
        }
        _ => {}
    }
}

/// What its sender sends is what is offered to the links at it.
fn of_packets(complaints: &mut Complaints, given: &Flow, flow: &FlowResult) {
    let leaves = |direction: &str| direction.split_once('>').is_some_and(|(from, _)| from == given.from);
    let first: u64 = flow.links.iter().filter(|link| leaves(&link.direction)).map(|link| link.packets).sum();
    let name = &flow.name;
    match flow.protocol {
        Protocol::Tcp | Protocol::Mptcp => {
            complaints.at_most(&format!("{name}: packets"), flow.packets as f64, first as f64)
        }
        _ => complaints.equal(&format!("{name}: packets"), flow.packets, first),
    }
    for link in &flow.links {
        complaints.at_most(&format!("{name}: dropped"), link.dropped as f64, link.packets as f64);
    }
}

fn of_links(complaints: &mut Complaints, scenario: &Scenario, result: &RunResult) {
    for link in &result.links {
        let name = format!("{} {}", link.name, link.direction);
        let drops = &link.drops;
        complaints.equal(
            &format!("{name}: drops"),
            drops.queue + drops.loss + drops.down + drops.size,
            link.dropped,
        );
        let here = |flow: &FlowResult| -> (u64, u64) {
            let here =
                flow.links.iter().filter(|of| (&of.name, &of.direction) == (&link.name, &link.direction));
            here.fold((0, 0), |sum, of| (sum.0 + of.packets, sum.1 + of.dropped))
        };
        let sum = result.flows.iter().map(here).fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        if scenario.traffic.is_empty() {
            complaints.equal(&format!("{name}: packets of flows"), sum.0, link.packets);
            complaints.equal(&format!("{name}: drops of flows"), sum.1, link.dropped);
        }
        if let Some(part) = &link.measured {
            complaints.at_most(&format!("{name}: measured"), part.packets as f64, link.packets as f64);
        }
    }
}

fn complaints(all: Vec<Scenario>) -> Vec<String> {
    let mut found = Vec::new();
    for scenario in all {
        let result = run(&scenario, RunOptions::default())
            .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
        let complaints = check(&scenario, &result).into_iter();
        found.extend(complaints.map(|complaint| format!("{}: {complaint}", scenario.name)));
    }
    found
}

#[test]
fn the_counts_of_every_scenario_agree() {
    let found = complaints(scenarios::all());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn the_counts_of_every_publication_agree() {
    let found = complaints(publications());
    assert!(found.is_empty(), "{}", found.join("\n"));
}
