//! `anabranch run --qlog` and `--perfetto`.

mod support;

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use support::{anabranch, stderr};

#[test]
fn a_qlog_is_a_json_sequence_that_has_what_the_run_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("outage.sqlog").display().to_string();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/outage.toml");
    let output = anabranch(&["run", scenario, "--json", "--qlog", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    let results: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = fs::read_to_string(&file).expect("the qlog");
    let records = text.split('\u{1e}').skip(1);
    let records: Vec<Value> = records.map(|record| serde_json::from_str(record).expect("a record")).collect();
    assert_eq!(records[0]["file_schema"], "urn:ietf:params:qlog:file:sequential");
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let mut before = 0.0;
    for event in &records[1..] {
        *counts.entry(event["name"].as_str().expect("a name")).or_default() += 1;
        let time = event["time"].as_f64().expect("a time");
        assert!(time >= before && event["data"].is_object(), "{event}");
        before = time;
    }
    let links = results[0]["links"].as_array().expect("links");
    let dropped: u64 = links.iter().filter_map(|link| link["dropped"].as_u64()).sum();
    assert!(dropped > 0);
    assert_eq!(counts["anabranch:packet_dropped"], dropped);
    let client =
        |event: &&Value| event["name"] == "anabranch:packet_sent" && event["data"]["side"] == "client";
    assert_eq!(records.iter().filter(client).count() as u64, results[0]["flows"][0]["packets"]);
    let documented = include_str!("../../docs/qlog.md");
    for name in counts.keys() {
        let name = name.strip_prefix("anabranch:").expect("our namespace");
        assert!(documented.contains(&format!("| `{name}` |")), "docs/qlog.md lacks {name}");
    }
}

#[test]
fn a_perfetto_trace_has_tracks_slices_and_counters() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("trace.json").display().to_string();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/slow-reader.toml");
    let output = anabranch(&["run", scenario, "--perfetto", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    let trace: Value = serde_json::from_slice(&fs::read(&file).expect("the trace")).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let has = |phase: &str, name: &str| {
        events.iter().any(|event| event["ph"] == phase && event["name"].as_str().unwrap_or("").contains(name))
    };
    assert!(has("M", "process_name") && has("M", "thread_name"));
    assert!(has("X", "peer_window"), "blocked time is a slice");
    assert!(has("X", "new data") && has("C", "cwnd") && has("C", "queue"));
    let slices = events.iter().filter(|event| event["ph"] == "X");
    assert!(slices.clone().all(|slice| slice["dur"].as_f64().is_some_and(|length| length >= 0.0)));
    let again = anabranch(&["run", scenario, "--perfetto", &file]);
    assert_eq!(again.status.code(), Some(2), "a file that is there is not overwritten");
}
