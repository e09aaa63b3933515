//! Scenarios as literals, all files of the repository's scenarios, and those in this folder.

#![allow(dead_code, reason = "each test file uses its own part")]

use std::path::{Path, PathBuf};

use anabranch_proto::{Config, Duration, Policies};
use anabranch_sim::scenario::{
    Change, Document, Flow, Link, Loss, Queue, Scenario, Sctp, Traffic, Transport,
};

/// All of them.
pub(crate) fn all() -> Vec<Scenario> {
    let mut all = literals();
    all.extend(files());
    all
}

fn literals() -> Vec<Scenario> {
    vec![
        one_path(),
        two_links(),
        paper("rfc9260"),
        paper("ns2"),
        lossy(),
        outage(),
        slow_reader(),
        all_pairs(),
        many(),
    ]
}

fn files() -> Vec<Scenario> {
    let folders = ["../scenarios", "tests/scenarios"];
    let folders = folders.map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let entries = folders.map(|folder| std::fs::read_dir(folder).expect("the folder can be read"));
    let mut paths: Vec<PathBuf> =
        entries.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Scenario {
    let name = path.file_stem().expect("a name").to_string_lossy();
    let text = std::fs::read_to_string(path).expect("the file can be read");
    let document = Document::parse(&path.display().to_string(), &text)
        .unwrap_or_else(|error| panic!("{}", error.render(false)));
    document.scenario(&name, &Policies::default()).unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn named(name: &str, links: Vec<Link>, flows: Vec<Flow>) -> Scenario {
    Scenario { name: name.to_owned(), links, flows, ..Scenario::default() }
}

fn link(name: &str, a: &str, b: &str, rate: u64, delay: u64) -> Link {
    Link {
        name: name.to_owned(),
        between: [a.to_owned(), b.to_owned()],
        rate: [rate; 2],
        delay: [Duration::from_millis(delay); 2],
        traced: [None, None],
        random_delay: None,
        jitter: [Duration::ZERO; 2],
        reorder: false,
        queue: [Queue::Packets(50); 2],
        mark: [None; 2],
        loss: [Loss::None, Loss::None],
        mtu: 1500,
        up: true,
    }
}

fn flow(name: &str, from: &str, to: &str, bytes: u64) -> Flow {
    let (start, traffic) = (Duration::from_millis(100), Traffic::Bulk(Some(bytes)));
    Flow {
        name: name.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        start,
        traffic,
        ..Flow::default()
    }
}

fn over(sctp: Sctp) -> Transport {
    Transport::Sctp(Box::new(sctp))
}

/// The SCTP part of a flow that has one.
pub(crate) fn sctp(flow: &mut Flow) -> &mut Sctp {
    flow.sctp_mut().expect("SCTP")
}

/// One link.
pub(crate) fn one_path() -> Scenario {
    named("one path", vec![link("l", "s", "r", 10_000_000, 20)], vec![flow("f", "s", "r", 2_000_000)])
}

/// A fast link and a slow one, overrun at the start.
pub(crate) fn two_links() -> Scenario {
    let links = vec![link("wifi", "s", "r", 10_000_000, 50), link("gprs", "s", "r", 36_000, 300)];
    let config = Config { fast: anabranch_proto::PolicySpec::named("alternate"), ..Config::default() };
    let sctp = Sctp { config, primary: Some("wifi".to_owned()), ..Sctp::default() };
    named("two links", links, vec![Flow { transport: over(sctp), ..flow("f", "s", "r", 2_000_000) }])
}

/// The topology of the paper on receive buffer blocking: two disjoint paths of three links.
pub(crate) fn paper(era: &str) -> Scenario {
    let links = vec![
        link("1-in", "s", "a", 1_000_000_000, 0),
        link("1", "a", "b", 10_000_000, 50),
        link("1-out", "b", "r", 1_000_000_000, 0),
        link("2-in", "s", "c", 1_000_000_000, 0),
        link("2", "c", "d", 36_000, 300),
        link("2-out", "d", "r", 1_000_000_000, 0),
    ];
    let links = links.into_iter().map(|l| match l.rate[0] {
        1_000_000_000 => Link { queue: [Queue::Packets(10_000); 2], ..l },
        _ => l,
    });
    let mut config = Config::era(era).expect("a known era");
    config.rules.missing_reports = 4;
    config.initial_ssthresh = Some(350_000);
    config.receive_buffer = 1_000_000;
    let flow = Flow {
        start: Duration::from_secs(5),
        transport: over(Sctp { config, primary: Some("1-in".to_owned()), ..Sctp::default() }),
        ..flow("f", "s", "r", 20_000_000)
    };
    Scenario { era: era.to_owned(), ..named("paper", links.collect(), vec![flow]) }
}

/// Random losses both ways, short queues in bytes.
fn lossy() -> Scenario {
    let lossy = |name, rate, delay, p| Link {
        loss: [Loss::Random(p), Loss::Random(p / 4.0)],
        queue: [Queue::Bytes(30_000), Queue::Bytes(3_000)],
        ..link(name, "s", "r", rate, delay)
    };
    let links = vec![lossy("a", 2_000_000, 30, 0.02), lossy("b", 1_000_000, 60, 0.05)];
    let transport = over(Sctp { streams: 3, unordered: true, ..Sctp::default() });
    let flow = Flow { transport, message_size: Some(4000), ..flow("f", "s", "r", 500_000) };
    named("lossy", links, vec![flow])
}

/// The primary goes down, changes while it is, and returns.
fn outage() -> Scenario {
    let mut outage = two_links();
    outage.name = "outage".to_owned();
    outage.links[1].rate = [2_000_000; 2];
    let nothing = Change {
        at: Duration::ZERO,
        link: "wifi".to_owned(),
        up: None,
        rate: None,
        delay: None,
        loss: None,
        queue: None,
        mark: None,
        jitter: None,
        mtu: None,
    };
    outage.changes = vec![
        Change { at: Duration::from_millis(800), up: Some(false), ..nothing.clone() },
        Change { at: Duration::from_secs(2), rate: Some([5_000_000; 2]), ..nothing.clone() },
        Change { at: Duration::from_secs(40), up: Some(true), ..nothing.clone() },
        Change { at: Duration::from_secs(41), delay: Some([Duration::from_millis(5); 2]), ..nothing },
    ];
    outage.flows[0].traffic = Traffic::Constant { rate: 800_000, bytes: Some(10_000_000) };
    outage.stop = Some(Duration::from_secs(200));
    outage
}

/// A reader ten times slower than the link.
fn slow_reader() -> Scenario {
    let config = Config { receive_buffer: 64 * 1024, ..Config::default() };
    let transport = over(Sctp { config, ..Sctp::default() });
    let flow = Flow { read_rate: Some(1_000_000), transport, ..flow("f", "s", "r", 1_000_000) };
    named("slow reader", vec![link("l", "s", "r", 10_000_000, 20)], vec![flow])
}

/// Four paths through one router, in UDP.
fn all_pairs() -> Scenario {
    let links = vec![
        link("s1", "s", "x", 3_000_000, 10),
        link("s2", "s", "x", 2_000_000, 20),
        link("r1", "x", "r", 3_000_000, 10),
        link("r2", "x", "r", 2_000_000, 30),
    ];
    let primary = Some("s2/r1".to_owned());
    let transport = over(Sctp { all_pairs: true, udp: true, primary, ..Sctp::default() });
    let flow = Flow { transport, ..flow("f", "s", "r", 500_000) };
    named("all pairs", links, vec![flow])
}

/// Flows that meet, one of them without end, one of them UDP.
fn many() -> Scenario {
    let links = vec![
        link("a", "a", "x", 10_000_000, 5),
        link("b", "b", "x", 10_000_000, 5),
        link("c", "c", "x", 10_000_000, 5),
        link("neck", "x", "y", 4_000_000, 20),
        link("d", "y", "d", 10_000_000, 5),
        link("e", "y", "e", 10_000_000, 5),
    ];
    let endless = Flow { traffic: Traffic::Bulk(None), ..flow("2", "b", "d", 1) };
    let constant = Traffic::Constant { rate: 1_000_000, bytes: None };
    let constant = Flow { traffic: constant, message_size: Some(500), ..flow("3", "c", "e", 1) };
    let datagrams = Traffic::Constant { rate: 700_000, bytes: Some(100_001) };
    let datagrams = Flow { traffic: datagrams, transport: Transport::Datagram, ..flow("5", "b", "e", 1) };
    let flows =
        vec![flow("1", "a", "d", 1_000_000), endless, constant, flow("4", "a", "e", 300_000), datagrams];
    Scenario { stop: Some(Duration::from_secs(20)), ..named("many", links, flows) }
}
