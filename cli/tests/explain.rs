//! `explain` from outside.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{anabranch, explain, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Captures a run of an example.
fn captured(name: &str, arguments: &[&str], capture: &Path) {
    let (scenario, capture) = (example(name), capture.display().to_string());
    let output = anabranch(&[&["run", &scenario, "--pcap", &capture], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_capture_is_explained_packet_by_packet() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("outage.pcapng");
    captured("outage", &[], &capture);
    let lines = explain(&capture, &[]);
    assert!(
        lines[0].starts_with(
            "0.000000000  first:s out  10.0.0.2:5000 > 10.0.0.1:5000  tag=0x00000000  INIT tag="
        )
    );
    assert!(lines[0].ends_with("  # flow signalling, path first: setup, control, RFC 9260 section 5.1"));
    assert!(lines[1].starts_with("0.020272000  first:r in   10.0.0.2:5000 > "), "{}", lines[1]);
    for part in [
        "SACK cum=",
        "HEARTBEAT ACK info=",
        "COOKIE ECHO cookie=",
        "path second: retransmission after T3-rtx",
        "# dropped: link down; ",
        "# dropped: link went down meanwhile; ",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}");
    }
    let json = explain(&capture, &["--json"]);
    assert_eq!(json.len(), lines.len());
    let first: Value = serde_json::from_str(&json[0]).unwrap();
    assert_eq!(
        (&first["number"], &first["interface"], &first["ports"][1]),
        (&1.into(), &"first:s".into(), &5000.into())
    );
    assert_eq!(
        (&first["chunks"][0]["type"], &first["chunks"][0]["a_rwnd"]),
        (&"INIT".into(), &1_048_576.into())
    );
}

/// A slow reader keeps its buffer full all the time, and lets a packet out with each SACK. Such a packet has waited
/// since the one before it, not since the buffer was full for the first time.
#[test]
fn new_data_has_waited_since_new_data_left() {
    let directory = tempfile::tempdir().unwrap();
    let capture = directory.path().join("slow-reader.pcapng");
    captured("slow-reader", &["--set", "flow.transfer.send=500 kB"], &capture);
    let lines = explain(&capture, &["--json"]);
    let packets: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let comments = packets.iter().filter_map(|packet| packet["comment"].as_str());
    let waits = comments.filter_map(|comment| comment.split_once("new data waited ")?.1.split_once(" s"));
    let waits: Vec<f64> = waits.map(|(seconds, _)| seconds.parse().expect("a number")).collect();
    assert!(waits.len() > 100, "{} waits", waits.len());
    let longest = waits.iter().copied().fold(0.0, f64::max);
    assert!((0.001..0.5).contains(&longest), "{longest} s");
}

#[test]
fn files_that_are_no_captures_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("text"), "[[link]]").unwrap();
    let refused = anabranch(&["explain", &path("text").display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).ends_with("text: this is neither pcapng nor pcap\n"), "{}", stderr(&refused));
    assert_eq!(anabranch(&["explain", &path("nothing").display().to_string()]).status.code(), Some(2));
    let capture = path("cut.pcapng");
    captured("listed-loss", &[], &capture);
    let bytes = std::fs::read(&capture).unwrap();
    std::fs::write(&capture, &bytes[..bytes.len() - 1]).unwrap();
    let cut = anabranch(&["explain", &capture.display().to_string()]);
    assert_eq!(cut.status.code(), Some(2));
    assert!(stderr(&cut).contains("the file ends within a block"), "{}", stderr(&cut));
    assert!(cut.stdout.iter().filter(|byte| **byte == b'\n').count() > 1000, "what is whole is printed");
    let nowhere = path("text").join("below.pcapng").display().to_string();
    let unwritten = anabranch(&["run", &example("listed-loss"), "--pcap", &nowhere]);
    assert_eq!(unwritten.status.code(), Some(2));
    assert!(stderr(&unwritten).contains("there is no directory"), "{}", stderr(&unwritten));
}

#[test]
fn help_has_examples() {
    let help = String::from_utf8(anabranch(&["explain", "--help"]).stdout).unwrap();
    assert!(help.contains("Examples:") && help.contains("anabranch explain outage.pcapng --json"));
}
