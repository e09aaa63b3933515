//! One end is killed (SIGKILL) in the middle of a file: the other notices by itself.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use support::{command, stderr};
use tempfile::{TempDir, tempdir};

/// Silence is noticed after three timeouts, and asked for ten times a second.
const SETTINGS: [&str; 6] = [
    "rto_initial=250ms",
    "rto_min=250ms",
    "rto_max=250ms",
    "path_max_retrans=2",
    "association_max_retrans=2",
    "heartbeat_interval=100ms",
];

/// Killed when a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn with_settings(command: &mut Command) -> &mut Command {
    command.args(SETTINGS.iter().flat_map(|setting| ["--set", setting]))
}

/// A listener that says as JSON what happens to it.
struct Listener {
    process: Process,
    events: Lines<BufReader<ChildStdout>>,
    port: String,
}

impl Listener {
    fn new(inbox: &TempDir) -> Listener {
        let mut serve = command(&["serve", "--udp", "0", "--json", "--max-size", "100 GB", "--receive-into"]);
        serve.arg(inbox.path()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = Process(with_settings(&mut serve).spawn().expect("the binary runs"));
        let mut events = BufReader::new(process.0.stdout.take().expect("a pipe")).lines();
        let place = event(&mut events)["address"].as_str().expect("text").to_owned();
        let port = place.rsplit(':').next().expect("a port").to_owned();
        Listener { process, events, port }
    }

    fn send(&self, file: &Path) -> Command {
        let mut send = command(&["send", "--to", "127.0.0.1", "--udp", &self.port, "--json"]);
        with_settings(&mut send).arg(file).stdout(Stdio::piped()).stderr(Stdio::piped());
        send
    }
}

fn event(lines: &mut Lines<BufReader<ChildStdout>>) -> Value {
    serde_json::from_str(&lines.next().expect("an event").expect("text")).expect("JSON")
}

/// A file that takes long enough.
fn endless(place: &TempDir) -> std::path::PathBuf {
    let path = place.path().join("endless");
    fs::File::create(&path).and_then(|file| file.set_len(8_000_000_000)).expect("a sparse file");
    path
}

fn arrives(inbox: &TempDir) {
    let some = || {
        let entries = fs::read_dir(inbox.path()).expect("it is there");
        entries.flatten().any(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 0))
    };
    for _ in 0..2000 {
        if some() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("nothing arrives");
}

/// The sender says that the peer answers no longer, and fails with 1.
#[test]
fn a_killed_listener_is_noticed() {
    let (from, inbox) = (tempdir().expect("a place"), tempdir().expect("a place"));
    let mut listener = Listener::new(&inbox);
    let client = listener.send(&endless(&from)).spawn().expect("the binary runs");
    arrives(&inbox);
    listener.process.0.kill().expect("it runs");
    let output = client.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["complete"], false, "{result}");
    let problem = result["problem"].as_str().expect("text");
    assert!(problem.contains("the peer answers no longer"), "{problem}");
}

/// The listener says so as well, keeps nothing of the file, and serves the next sender.
#[test]
fn a_killed_sender_is_noticed() {
    let (from, inbox) = (tempdir().expect("a place"), tempdir().expect("a place"));
    let mut listener = Listener::new(&inbox);
    let mut client = Process(listener.send(&endless(&from)).spawn().expect("the binary runs"));
    arrives(&inbox);
    client.0.kill().expect("it runs");
    let (connected, ended) = (event(&mut listener.events), event(&mut listener.events));
    assert_eq!(
        (&connected["event"], &ended["event"], &ended["id"]),
        (&"connected".into(), &"ended".into(), &connected["id"])
    );
    let why = ended["why"].as_str().expect("text");
    assert!(why.contains("the peer answers no longer"), "{ended}");
    assert!(ended["arrived"].as_u64() > Some(0) && ended["not_received"] == "endless", "{ended}");
    assert_eq!(fs::read_dir(inbox.path()).expect("it is there").count(), 0, "nothing is kept");
    let next = from.path().join("next");
    fs::write(&next, "the next one").expect("a file");
    let output = listener.send(&next).output().expect("the binary runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(inbox.path().join("next")).expect("it came"), "the next one");
}
