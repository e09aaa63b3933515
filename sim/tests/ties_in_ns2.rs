//! A tie that ns-2 decides by the rounding of its clock (papers/receive-buffer-blocking/README.md): packets reach a
//! full queue at the very moment at which another leaves it. ns-2's results then depend on when the transfer begins;
//! ours do not, and are those that ns-2 has where the departure comes first. Needs `ns`.

mod support;

use std::path::Path;
use std::process::Command;

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};
use support::has_ns2;

/// bit/s of the secondary, bytes of the receive buffer.
const SETTINGS: [(u64, u64); 3] = [(2_000_000, 256_000), (1_000_000, 1_000_000), (384_000, 512_000)];
/// bit/s of the primary.
const PRIMARY: u64 = 20_000_000;

/// Seconds that ns-2 takes for a transfer that begins at `start` seconds.
fn theirs(start: u64, (secondary, buffer): (u64, u64)) -> f64 {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ties_in_ns2.tcl");
    let numbers = [start, PRIMARY, secondary, buffer].map(|number| number.to_string());
    let output = Command::new("ns").arg(script).args(numbers).output().expect("ns runs");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("ns printed a time")
}

/// Seconds that the transfer takes here.
fn ours(start: u64, (secondary, buffer): (u64, u64)) -> f64 {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../papers/receive-buffer-blocking/case-study.toml");
    let text = std::fs::read_to_string(&file).expect("the case study");
    let mut document = Document::parse("case-study.toml", &text).expect("well-formed");
    let links = ["primary-access", "primary-exit", "secondary-access", "secondary-exit"];
    let access = links.map(|link| format!("link.{link}.rate=100 Mbit/s"));
    let others = [
        "flow.transfer.sctp.initial_ssthresh=1 MB".to_owned(),
        format!("link.primary.rate={PRIMARY} bit/s"),
        format!("link.secondary.rate={secondary} bit/s"),
        format!("flow.transfer.sctp.receive_buffer={buffer} B"),
        format!("flow.transfer.start={start} s"),
    ];
    for edit in access.iter().chain(&others) {
        document.set("--set", edit).expect("a key of it");
    }
    let scenario = document.scenario("case-study", &Policies::default()).expect("a scenario");
    let result = run(&scenario, RunOptions::default()).expect("it runs");
    result.flows[0].completion.expect("it completes")
}

#[test]
fn the_start_of_a_transfer_decides_in_ns2_and_not_here() {
    if !has_ns2("the_start_of_a_transfer_decides_in_ns2_and_not_here") {
        return;
    }
    for setting in SETTINGS {
        let here = ours(5, setting);
        assert!((ours(7, setting) - here).abs() < 1e-6, "{setting:?}: our result depends on the start");
        let [departure_first, arrival_first] = [theirs(7, setting), theirs(5, setting)];
        assert!(
            (here / departure_first - 1.0).abs() < 2e-5,
            "{setting:?}: {departure_first} s there, {here} s here"
        );
        assert!((arrival_first / departure_first - 1.0).abs() > 0.015, "{setting:?}: ns-2 no longer differs");
    }
}
