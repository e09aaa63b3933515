//! The examples do what they say.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// An example that was built beside this test.
fn example(name: &str) -> Command {
    let test = std::env::current_exe().expect("this test has a path");
    let target: PathBuf =
        test.parent().and_then(|deps| deps.parent()).expect("below a target directory").to_owned();
    Command::new(target.join("examples").join(name))
}

fn output(name: &str, arguments: &[&str]) -> String {
    let output = example(name).args(arguments).output().expect("it is built");
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn endpoint_in_memory() {
    let text = output("endpoint_in_memory", &[]);
    // One message, and one answer.
    let messages: Vec<&str> = text.lines().map(str::trim).filter(|line| line.starts_with("b\"")).collect();
    assert_eq!(messages, ["b\"hello\"", "b\"welcome\""], "{text}");
}

#[test]
fn own_socket() {
    let text = output("own_socket", &[]);
    assert!(text.lines().any(|line| line == "b\"hello\"") && text.ends_with("client: Closed\n"), "{text}");
}

#[test]
fn own_route() {
    let text = output("own_route", &[]);
    let seconds = |rule: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(rule)).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    };
    // The primary has the shorter round trip: the rule does what `same` does.
    assert!(
        (seconds("shortest") - seconds("same")).abs() < 0.01 && seconds("shortest") < seconds("alternate"),
        "{text}"
    );
}

#[test]
fn own_window() {
    let text = output("own_window", &[]);
    let drops: Vec<u64> = text
        .lines()
        .map(|line| {
            line.split_whitespace().rev().nth(2).and_then(|number| number.parse().ok()).expect("a number")
        })
        .collect();
    // 20 packets fit the path and its queue; 80 do not.
    assert!(drops[1] == 0 && drops[2] > 0, "{text}");
}

#[test]
fn echo() {
    let mut server =
        example("echo_server").args(["127.0.0.1", "0"]).stdout(Stdio::piped()).spawn().expect("it is built");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("it says where it listens").expect("text");
    let place = first.strip_prefix("listening at ").expect("a place");
    let answer = output("echo_client", &[place, "there and back"]);
    server.kill().and_then(|()| server.wait()).expect("it ran");
    assert_eq!(answer.trim_end(), "there and back");
}

#[test]
fn file_over_two_paths() {
    let text = output("file_over_two_paths", &[]);
    let carried: Vec<u64> = text
        .lines()
        .filter(|line| line.contains('→'))
        .map(|line| {
            line.split_whitespace().rev().nth(1).and_then(|number| number.parse().ok()).expect("a number")
        })
        .collect();
    assert!(carried.len() == 2 && carried.iter().all(|bytes| *bytes > 1_000_000), "{text}");
    assert!(text.contains("20000000 bytes, SHA-256 "), "{text}");
}
