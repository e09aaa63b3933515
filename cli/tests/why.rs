//! `--why` from outside: its text, its JSON, and what it refuses.

mod support;

use serde_json::Value;
use support::{anabranch, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_moment_and_a_packet_are_explained() {
    let output = anabranch(&["run", &example("slow-reader"), "--why", "--at", "2s", "--packet", "1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("it is text");
    assert!(text.starts_with("Packet 1 at 0.000000 s, flow transfer"), "{text}");
    assert!(
        text.contains("At 2.000000 s\n  Flow transfer: blocked by the peer's window since 0.330134 s"),
        "{text}"
    );
}

#[test]
fn the_json_names_what_blocks() {
    let output = anabranch(&["run", &example("slow-reader"), "--why", "--at", "2 s", "--json"]);
    let answers: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let flow = &answers[0]["flows"][0];
    assert_eq!(
        (answers[0]["at"].as_f64(), flow["waiting"]["for"].as_str()),
        (Some(2.0), Some("peer_window"))
    );
    assert_eq!(flow["paths"][0]["blocked_by"], "peer_window");
    assert_eq!(flow["waiting"]["rules"][0]["key"], "window_probe");
}

#[test]
fn a_running_timer_tells_when_it_expires() {
    let outage = example("outage");
    let at = |moment: &str| -> Value {
        let output = anabranch(&["run", &outage, "--why", "--json", "--at", moment]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
    };
    let answers = at("10.5 s");
    let paths = answers[0]["flows"][0]["paths"].as_array().expect("paths");
    let timers: Vec<f64> = paths.iter().filter_map(|path| path["t3_expires"].as_f64()).collect();
    let expires = timers.iter().copied().find(|expires| *expires > 10.5).expect("a timer runs");
    // The path is down, so the timer does expire, and its path has another RTO afterwards.
    let before = at(&format!("{:.6} s", expires - 1e-5));
    let after = at(&format!("{:.6} s", expires + 1e-5));
    assert_ne!(before[0]["flows"][0]["paths"], after[0]["flows"][0]["paths"]);
    assert_eq!(before[0]["flows"][0]["paths"][0]["t3_expires"].as_f64(), Some(expires));
    let text = anabranch(&["run", &outage, "--why", "--at", "10.5s"]).stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.contains(&format!("(at {expires:.6} s)")), "{text}");
}

#[test]
fn without_a_moment_the_longest_waits_are_explained() {
    let output = anabranch(&["run", &example("outage"), "--why", "--json"]);
    let answers: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let times: Vec<f64> =
        answers.as_array().expect("a list").iter().filter_map(|a| a["at"].as_f64()).collect();
    assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
    assert!(answers.as_array().into_iter().flatten().all(|answer| answer["flows"][0]["waiting"].is_object()));
}

/// Its SCTP is blocked by its window until the run ends.
#[test]
fn a_wait_that_lasts_until_the_end_is_explained() {
    let output = anabranch(&["run", &example("tcp-beside-sctp"), "--why", "--flow", "sctp", "--json"]);
    let answers: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(answers[0]["flows"][0]["waiting"]["endless"], true, "{answers}");
    assert_eq!(stderr(&output), "");
}

#[test]
fn what_cannot_be_explained_is_refused() {
    let one_path = example("one-path");
    for (more, says) in [
        (&["--seeds", "2"][..], "--why explains one run"),
        (&["--flow", "nobody"], "there is no such flow; flows: "),
        (&["--packet", "100000000"], "packets were sent"),
        (&["--at", "soon"], "invalid value 'soon'"),
    ] {
        let output = anabranch(&[&["run", &one_path, "--why"], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
