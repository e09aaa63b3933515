//! `anabranch diff` from outside.

mod support;

use serde_json::Value;
use support::{anabranch, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn diff(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = anabranch(&[&["diff", "--json"], arguments].concat());
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output))),
    )
}

#[test]
fn a_run_is_the_same_as_itself() {
    let (status, said) = diff(&[&example("outage")]);
    assert_eq!((status, &said["same"]), (Some(0), &Value::Bool(true)));
}

#[test]
fn the_first_retransmission_goes_another_way() {
    let key = "flow.signalling.sctp.timeout";
    let (status, said) = diff(&[&example("outage"), "--set-b", &format!("{key}=same")]);
    assert_eq!(status, Some(1));
    // The first timeout of the outage: its retransmission goes to the other path, or stays.
    let [a, b] = [0, 1].map(|run| said["packets"][run]["what"].as_str().expect("a packet").to_owned());
    assert!(a.contains("path second: DATA") && a.contains("retransmission after T3-rtx"), "{a}");
    assert!(b.contains("path first: DATA") && b.contains("retransmission after T3-rtx"), "{b}");
    assert_eq!(said["packets"][0]["at"], 10.177184);
    assert_eq!(said["why"][0]["packet"]["policy"], serde_json::json!(["timeout", "alternate"]));
    assert_eq!(said["why"][1]["packet"]["policy"], serde_json::json!(["timeout", "same"]));
    let setting = &said["settings"].as_array().expect("a list")[..];
    assert!(
        setting.iter().any(|setting| setting["key"].as_str().is_some_and(|key| key.contains(".timeout"))
            && setting["alone"] == said["packet"])
    );
}

#[test]
fn values_are_shown_in_units_that_fit() {
    let set = ["--set-b", "flow.signalling.rate=120 kbit/s", "--set-b", "stop=30 s"];
    let (_, said) = diff(&[&[example("outage").as_str()], &set[..]].concat());
    for (key, values) in [("flow.signalling.rate", ["100 kbit/s", "120 kbit/s"]), ("stop", ["60 s", "30 s"])]
    {
        let settings = said["settings"].as_array().expect("a list");
        let setting = settings.iter().find(|setting| setting["key"] == key).expect("it differs");
        assert_eq!(setting["values"], serde_json::json!(values), "{settings:?}");
    }
}

#[test]
fn runs_of_two_seeds_part_at_a_loss() {
    let (status, said) = diff(&[&example("loss"), "--seed-b", "2"]);
    assert_eq!(status, Some(1));
    let events = [0, 1].map(|run| said["event"][run]["what"].as_str().unwrap_or_default().to_owned());
    assert!(events.iter().any(|what| what.contains("drops (lost on the link)")), "{events:?}");
}

#[test]
fn a_wrong_key_is_refused() {
    let output = anabranch(&["diff", &example("loss"), "--set-b", "sede=2"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_warning_about_both_runs_is_said_once() {
    let output = anabranch(&["diff", &example("outage"), "--set", "flow.signalling.rate=8 kbit/s"]);
    assert_eq!(stderr(&output).matches("does not exceed sack_delay").count(), 1, "{}", stderr(&output));
}
