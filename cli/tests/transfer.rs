//! What a listener needs, and what a refused file costs.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use serde_json::Value;
use support::{command, stderr};

/// A listener on loopback that receives files into a directory; ended when it is dropped.
struct Listener {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: String,
}

impl Listener {
    fn new(inbox: &Path) -> Listener {
        let mut serve = command(&["serve", "--udp", "0", "--receive-into"]);
        let mut process = serve.arg(inbox).stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("it says where it listens").expect("text");
        let port = first.rsplit(':').next().expect("a port").to_owned();
        Listener { process, lines, port }
    }

    fn send(&self, file: &Path, more: &[&str]) -> std::process::Output {
        let mut client = command(&["send", "--to", "127.0.0.1", "--udp", &self.port]);
        client.arg(file).args(more).output().expect("the binary runs")
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The directory is created; a file of a name that it has is refused, and then nothing more is sent.
#[test]
fn a_refused_file_stays_here() {
    let place = tempfile::tempdir().expect("a directory");
    let (inbox, file) = (place.path().join("new/inbox"), place.path().join("file"));
    fs::write(&file, vec![7; 20_000_000]).expect("a file");
    let mut listener = Listener::new(&inbox);
    assert!(inbox.is_dir(), "it was created");
    fs::write(inbox.join("file"), "mine").expect("a file");
    let refused = listener.send(&file, &["--json"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let told: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!((&told["arrived"], &told["complete"]), (&0.into(), &false.into()), "{told}");
    let line = listener.lines.next().expect("it says so").expect("text");
    assert!(line.contains("not received \"file\", 0 of 20000000 bytes"), "{line}");
    let told = stderr(&listener.send(&file, &[]));
    assert!(told.contains("; 0 of 20000000 bytes had arrived"), "{told}");
    assert_eq!(fs::read_to_string(inbox.join("file")).expect("it is there"), "mine");
}
