//! A listener in a process of its own, for tests of real transfers.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use crate::support::command;

/// A listener on loopback, on a UDP port of its own.
pub(crate) struct Listener {
    pub(crate) process: Child,
    pub(crate) lines: Lines<BufReader<ChildStdout>>,
    pub(crate) port: String,
}

impl Listener {
    pub(crate) fn new(arguments: &[&str]) -> Listener {
        Listener::started(command(&["serve", "--udp", "0"]).args(arguments))
    }

    /// The listener that a command starts.
    pub(crate) fn started(serve: &mut Command) -> Listener {
        let mut process = serve.stdout(Stdio::piped()).spawn().expect("the binary runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let first = lines.next().expect("it says where it listens").expect("text");
        let port = first.rsplit(':').next().expect("a port").to_owned();
        Listener { process, lines, port }
    }

    pub(crate) fn into(directory: &Path, arguments: &[&str]) -> Listener {
        let directory = directory.display().to_string();
        Listener::new(&[&["--receive-into", &directory][..], arguments].concat())
    }

    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("it says something").expect("text")
    }

    pub(crate) fn send(&self, file: &Path, arguments: &[&str]) -> Output {
        self.client("send", arguments).arg(file).output().expect("the binary runs")
    }

    pub(crate) fn client(&self, what: &str, arguments: &[&str]) -> Command {
        let mut client = command(&[what, "--to", "127.0.0.1", "--udp", &self.port]);
        client.args(arguments);
        client
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.process.kill();
    }
}
