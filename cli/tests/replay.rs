//! Recordings of transfers and their replay, on the loopback interface.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::Value;
use support::{anabranch, command, stderr};
use tempfile::TempDir;

/// A directory with the recording of a transfer of 2 MB, and its listener.
struct Recorded {
    directory: TempDir,
    listener: Child,
}

impl Recorded {
    fn new(settings: &[&str]) -> Recorded {
        let directory = tempfile::tempdir().expect("a place");
        let place = |name: &str| directory.path().join(name).display().to_string();
        fs::create_dir(place("in")).expect("a directory");
        fs::write(place("file"), vec![7; 2_000_000]).expect("a file");
        let mut serve = command(&["serve", "--udp", "0", "--receive-into", &place("in")]);
        let mut listener = serve.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut first = String::new();
        BufReader::new(listener.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
        let port = first.trim().rsplit(':').next().expect("a port");
        let (file, recording) = (place("file"), place("recording"));
        let send = ["send", &file, "--to", "127.0.0.1", "--udp", port, "--record", &recording];
        let output = anabranch(&[&send[..], settings].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        Recorded { directory, listener }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("recording")
    }

    fn replay(&self, more: &[&str]) -> std::process::Output {
        anabranch(&[&["replay", &self.file().display().to_string()][..], more].concat())
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let _ = self.listener.kill();
    }
}

#[test]
fn a_transfer_is_repeated_bit_for_bit_and_explained() {
    let recorded = Recorded::new(&["--set", "path_max_retrans=3"]);
    let output = recorded.replay(&["--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(told["same"] == true && told["packets"].as_u64() > Some(1300), "{told}");
    // The hundredth packet has data; its answer names the path and the window.
    let output = recorded.replay(&["--why", "--packet", "100", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let answers: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let packet = &answers[0]["packet"];
    assert_eq!((&packet["flow"], &packet["sender"]), (&"transfer".into(), &"client".into()), "{answers}");
    assert_eq!(packet["path"], "127.0.0.1 → 127.0.0.1");
    assert!(packet["before"]["cwnd"].as_u64() > Some(0), "{answers}");
    let output = recorded.replay(&["--why", "--at", "60s"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("Path 127.0.0.1 → 127.0.0.1"), "{text}");
    let series = recorded.directory.path().join("series");
    let output = recorded.replay(&["--series", &series.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let windows = fs::read_to_string(series.join("transfer.windows.csv")).expect("the windows");
    assert!(windows.lines().count() > 100);
}

/// A transfer as a trace for other programs: all its packets, and the same file from the transfer and from its
/// recording.
#[test]
fn a_transfer_is_written_as_qlog_and_for_perfetto() {
    let directory = tempfile::tempdir().expect("a place");
    let place = |name: &str| directory.path().join(name).display().to_string();
    let recorded = Recorded::new(&["--qlog", &place("sent.sqlog"), "--perfetto", &place("sent.json")]);
    let output =
        recorded.replay(&["--qlog", &place("again.sqlog"), "--perfetto", &place("again.json"), "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let told: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let read = |name: &str| fs::read_to_string(place(name)).expect("it was written");
    let qlog = read("sent.sqlog");
    assert!(qlog == read("again.sqlog") && read("sent.json") == read("again.json"));
    let events = qlog.split('\u{1e}').skip(2).map(|event| serde_json::from_str(event).expect("it is JSON"));
    let sent = events.filter(|event: &Value| {
        event["name"] == "anabranch:packet_sent" && event["data"]["side"] == "client"
    });
    assert_eq!(Some(sent.count() as u64), told["packets"].as_u64());
    let trace: Value = serde_json::from_str(&read("sent.json")).expect("it is JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 1300));
    assert!(fs::read_dir(directory.path()).expect("a directory").count() == 4, "no recording is left over");
}

/// A listener's trace is written when it ends: each association is a flow with the number that the log gives it.
#[test]
fn a_listener_writes_its_associations_as_qlog() {
    let directory = tempfile::tempdir().expect("a place");
    let place = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(place("in")).expect("a directory");
    let mut serve =
        command(&["serve", "--udp", "0", "--receive-into", &place("in"), "--qlog", &place("qlog")]);
    let mut listener = serve.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let mut first = String::new();
    BufReader::new(listener.stdout.take().expect("a pipe")).read_line(&mut first).expect("a line");
    let port = first.trim().rsplit(':').next().expect("a port");
    for (name, size) in [("one", 300_000), ("two", 100_000)] {
        fs::write(place(name), vec![0x5a; size]).expect("a file");
        let output = anabranch(&["send", &place(name), "--to", "127.0.0.1", "--udp", port]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let mut entries =
        fs::read_dir(directory.path()).expect("a directory").flatten().map(|entry| entry.path());
    let recording = entries.find(|path| path.extension().is_some_and(|is| is == "recording"));
    let pid = rustix::process::Pid::from_child(&listener);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    assert_eq!(listener.wait().expect("it ends").code(), Some(130));
    assert!(recording.is_some_and(|path| !path.exists()), "no recording is left over");
    let qlog = fs::read_to_string(place("qlog")).expect("it was written");
    assert!(!qlog.contains(".recording"), "the title is the name of the file that was asked for");
    let events = qlog.split('\u{1e}').skip(2).map(|event| serde_json::from_str(event).expect("it is JSON"));
    let events: Vec<Value> = events.collect();
    let count = |name: &str, flow: &str, side: &str| {
        let data = |event: &&Value| event["data"]["flow"] == flow && event["data"]["side"] == side;
        events.iter().filter(|event| event["name"] == name).filter(data).count()
    };
    let received = |flow| count("anabranch:data_received", flow, "server");
    assert!(received("transfer-1") > 2 * received("transfer-2") && received("transfer-2") > 50);
    assert!(count("anabranch:packet_sent", "transfer-2", "server") > 10);
    assert_eq!(count("anabranch:packet_sent", "transfer-1", "client"), 0);
    assert!(events.iter().all(|event| event["data"]["flow"] != "transfer-3"));
}

/// A packet that is left out changes what the core sends; a recording without an end says so.
#[test]
fn another_course_is_noticed() {
    let recorded = Recorded::new(&[]);
    let text = fs::read_to_string(recorded.file()).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    let packet = lines.iter().position(|line| line.contains("\"packet\"")).expect("a packet came");
    let without: Vec<&str> = [&lines[..packet], &lines[packet + 1..]].concat();
    fs::write(recorded.file(), without.join("\n")).expect("it can be written");
    let output = recorded.replay(&[]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    fs::write(recorded.file(), lines[..lines.len() - 1].join("\n")).expect("it can be written");
    let output = recorded.replay(&[]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("no end"), "{}", stderr(&output));
    fs::write(recorded.file(), "time,rate\n").expect("it can be written");
    let output = recorded.replay(&[]);
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains("no recording"),
        "{}",
        stderr(&output)
    );
}

/// A recording holds no key, and a replay could not do without it.
#[test]
fn a_recording_needs_an_association_without_key() {
    let output = anabranch(&["send", "file", "--to", "127.0.0.1", "--key", "key", "--record", "recording"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("--key"), "{}", stderr(&output));
}

/// Authentication covers user data, and a recording holds none: one authenticated chunk of a stranger would make a
/// recording of all associations useless.
#[test]
fn a_recording_needs_associations_without_authentication() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("trace").display().to_string();
    let client = ["--to", "127.0.0.1", "--timeout", "1"];
    for (command, option) in [
        (&["serve", "--udp", "0"][..], "--qlog"),
        (&["serve", "--udp", "0"], "--perfetto"),
        (&[&["send", "Cargo.toml"][..], &client].concat(), "--record"),
        (&[&["perf"][..], &client].concat(), "--qlog"),
    ] {
        let command = [command, &["--set", "authentication=true", option, &file]].concat();
        let output = anabranch(&command);
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("--set authentication=true"), "{command:?}: {}", stderr(&output));
    }
    assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 0, "no file is left");
}
