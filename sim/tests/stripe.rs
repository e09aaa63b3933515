//! Flows with an association of its own on each path, and readers that stop.

use anabranch_proto::Policies;
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{RunOptions, run};

/// Two links whose queues hold every window, and a flow over both.
const WIRES: &str = "\
[[link]]
name = 'fast'
between = ['s', 'r']
rate = '20 Mbit/s'
delay = '10 ms'
queue = '2000 packets'
[[link]]
name = 'slow'
between = ['s', 'r']
rate = '2 Mbit/s'
delay = '30 ms'
queue = '2000 packets'
[[flow]]
name = 'f'
from = 's'
to = 'r'
send = '20 MB'
stripe = true
[flow.sctp]
receive_buffer = '64 KiB'
";

/// A chain of two hops with two radios at each node, on channels of their own.
const RADIOS: &str = "\
stop = '60 s'
[[channel]]
name = 'freq1'
reception = { name = 'range', decode = '370 m', sense = '520 m', interfere = '520 m', capture = '10 dB' }
[[channel]]
name = 'freq2'
reception = { name = 'range', decode = '370 m', sense = '520 m', interfere = '520 m', capture = '10 dB' }
[[chain]]
name = 'a'
hops = 2
spacing = '300 m'
channels = ['freq1', 'freq2']
[[flow]]
name = 'f'
from = 'a0'
to = 'a2'
send = '2 MB'
stripe = true
";

fn scenario(text: &str, edits: &[&str]) -> Scenario {
    let read = || {
        let mut document = Document::parse("test.toml", text)?;
        edits.iter().try_for_each(|edit| document.set("--set", edit))?;
        document.scenario("test", &Policies::default())
    };
    read().unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn result(text: &str, edits: &[&str]) -> RunResult {
    run(&scenario(text, edits), RunOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn flow(text: &str, edits: &[&str]) -> FlowResult {
    result(text, edits).flows.remove(0)
}

/// A buffer of 64 KiB fills the product of each path (50 kB and 15 kB), so both are full: 22 Mbit/s, of which 1452 of
/// each 1500 bytes are user data, less the beginning and the end. One association with the same buffer is blocked by
/// its slow path.
#[test]
fn each_association_has_the_whole_buffer() {
    let striped = flow(WIRES, &[]);
    assert_eq!((striped.delivered, striped.outcome), (20_000_000, "closed"));
    let expected = 22e6 * 1452.0 / 1500.0;
    assert!((striped.goodput / expected - 1.0).abs() < 0.05, "{} bit/s", striped.goodput);
    let one = flow(WIRES, &["flow.f.stripe=false", "flow.f.sctp.cmt=true"]);
    assert!(one.goodput < 0.8 * striped.goodput, "{} bit/s", one.goodput);
}

#[test]
fn paths_are_associations_and_totals_are_sums() {
    let striped = flow(WIRES, &["link.slow.loss=1 %"]);
    let names: Vec<_> = striped.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["fast", "slow"]);
    assert!(striped.paths.iter().all(|path| path.chunks > 0 && path.delivered > 0));
    assert_eq!(striped.retransmissions.fast["fast"], 0);
    assert!(striped.retransmissions.fast["slow"] > 0);
    // Nothing goes from one path to another: each sends its own losses again.
    let blocks: f64 = striped.paths.iter().map(|path| path.blocks).sum();
    assert!((blocks - striped.blocked.peer_window - striped.blocked.send_buffer).abs() < 1e-6);
    let sent: u64 = striped.paths.iter().map(|path| path.chunks).sum();
    let again: u64 =
        striped.retransmissions.fast.values().chain(striped.retransmissions.timeout.values()).sum();
    assert_eq!(sent - again, 20_000_000_u64.div_ceil(1452));
}

/// Send buffers that hold everything do not give all of it to the first association: what is unsent stays with the
/// application until a path can carry it.
#[test]
fn no_message_waits_for_a_path_while_another_has_room() {
    let edits = ["flow.f.sctp.send_buffer=64 MiB"];
    let (plain, roomy) = (flow(WIRES, &[]), flow(WIRES, &edits));
    assert_eq!(plain.paths, roomy.paths);
    assert_eq!(plain.completion, roomy.completion);
}

#[test]
fn an_association_that_dies_leaves_the_flow_lost() {
    let edits = ["stop='400 s'", "flow.f.sctp.association_max_retrans=3", "flow.f.sctp.path_max_retrans=3"];
    let mut text = WIRES.to_owned();
    text.insert_str(0, "stop = '1 s'\n");
    text.push_str("[[change]]\nat = '1 s'\nlink = 'slow'\nup = false\n");
    let flow = flow(&text, &edits);
    assert_eq!(flow.outcome, "lost");
    assert!(flow.delivered > 15_000_000, "the other goes on: {}", flow.delivered);
}

#[test]
fn over_radios_too() {
    let one = flow(RADIOS, &["flow.f.stripe=false"]);
    let both = flow(RADIOS, &[]);
    assert_eq!((both.delivered, both.outcome), (2_000_000, "closed"));
    assert!(both.paths.iter().all(|path| path.delivered > 500_000), "{:?}", both.paths);
    assert!(both.goodput > 1.6 * one.goodput, "{} beside {} bit/s", both.goodput, one.goodput);
}

#[test]
fn a_paced_reader_serves_all_associations() {
    let both = flow(WIRES, &["flow.f.read=5 Mbit/s", "flow.f.send=5 MB"]);
    assert!((both.goodput / 5e6 - 1.0).abs() < 0.02, "{} bit/s", both.goodput);
    assert!(both.paths.iter().all(|path| path.delivered > 1_000_000), "{:?}", both.paths);
}

/// The receive buffer fills behind the messages that are read: so much is delivered, and no more.
#[test]
fn a_reader_that_stops_fills_the_buffer() {
    let edits = ["stop='60 s'", "flow.f.stop_reading_after=1000", "flow.f.message_size=1000 B"];
    for stripe in ["flow.f.stripe=true", "flow.f.stripe=false"] {
        let mut text = WIRES.to_owned();
        text.insert_str(0, "stop = '1 s'\n");
        let stopped = flow(&text, &[&edits[..], &[stripe]].concat());
        assert_eq!((stopped.delivered, stopped.completion, stopped.outcome), (1_000_000, None, "open"));
        assert!(stopped.blocked.peer_window + stopped.blocked.send_buffer > 50.0, "{:?}", stopped.blocked);
    }
    let none = flow(&format!("stop = '5 s'\n{WIRES}"), &["flow.f.stop_reading_after=0"]);
    assert_eq!((none.delivered, none.first_data), (0, None));
}

#[test]
fn a_reader_that_stops_needs_an_end_of_the_run() {
    let stopping = scenario(WIRES, &["flow.f.stop_reading_after=1000"]);
    let error = run(&stopping, RunOptions::default()).unwrap_err().to_string();
    assert!(error.contains("stop_reading_after") && error.contains("`stop`"), "{error}");
}
