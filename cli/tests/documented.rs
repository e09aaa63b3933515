//! The entries of what commands print as JSON are on the pages that describe them. Those of `run` are compared in
//! `sim/tests/documentation`.

mod support;

use serde_json::Value;
use support::{anabranch, missing_on, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Every entry that the command prints is on the page, as code.
fn documented(page: &str, own: &[&str], arguments: &[&str]) {
    let output = anabranch(&[arguments, &["--json"]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}", stderr(&output));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let missing = missing_on(page, own, &printed);
    assert!(missing.is_empty(), "docs/{page}.md says nothing of {missing:?}: {arguments:?}");
}

#[test]
fn lists_traces_and_models() {
    documented("results", &["eras", "cmt", "meanings"], &["rules"]);
    documented("results", &["summaries"], &["policies"]);
    documented("results", &[], &["keys"]);
    documented("results", &["quantiles"], &["trace", &format!("{ROOT}/scenarios/traces/walk.up")]);
    let model = ["--primary", "10 Mbit/s", "--secondary", "36 kbit/s", "--receive-buffer", "1 MB"];
    let model = [&["model", "receive-buffer-blocking"], &model[..]].concat();
    documented("results", &["inputs", "results"], &model);
}

#[test]
fn advice() {
    let [signalling, pair] =
        ["signalling", "pair"].map(|name| format!("{ROOT}/scenarios/advice/{name}.toml"));
    documented("advice", &["configurations"], &["advise", "failover", &signalling, "--seconds", "2"]);
    documented("advice", &[], &["advise", "policy", &pair, "--seconds", "2"]);
}

#[test]
fn claims() {
    let paper = format!("{ROOT}/papers/receive-buffer-blocking");
    documented("papers", &["beside", "sample"], &["reproduce", &paper, "--claim", "case-study"]);
}

#[test]
fn reasons() {
    let outage = format!("{ROOT}/scenarios/outage.toml");
    documented("report", &[], &["run", &outage, "--why", "--at", "10.5s", "--packet", "1200"]);
    documented("report", &[], &["diff", &outage, "--set-b", "era=rfc4960"]);
}
