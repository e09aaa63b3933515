//! Nothing that came from a peer reaches a terminal or a log as it is.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

mod support;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anabranch_net::service::CONTROL;
use anabranch_net::{Carrier, Endpoint, Message, Options, is_printable};
use support::command;

/// What writes to a terminal.
const WRITERS: [&str; 8] =
    ["println!", "print!(", "eprintln!", "eprint!", "dbg!(", "stdout()", "stderr()", "/dev/tty"];

/// Where it may stand: the module that makes all text printable, two bars that ask whether to be shown and draw
/// numbers and addresses only, the view of `--watch`, which makes every name printable, and the width of the
/// terminal, which is only asked.
const ALLOWED: [(&str, &str); 9] = [
    ("cli/src/output.rs", "stdout()"),
    ("cli/src/output.rs", "stderr()"),
    ("cli/src/progress.rs", "stderr().is_terminal()"),
    ("cli/src/progress.rs", "ProgressDrawTarget::stderr()"),
    ("cli/src/net/live.rs", "ProgressDrawTarget::stderr()"),
    ("cli/src/screen.rs", "Term::stdout()"),
    ("cli/src/watch/mod.rs", "execute!(stderr(), EnterAlternateScreen)"),
    ("cli/src/watch/mod.rs", "execute!(stderr(), LeaveAlternateScreen)"),
    ("cli/src/watch/mod.rs", "CrosstermBackend::new(stderr())"),
];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("the directory is there") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn one_module_writes_to_the_terminal() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for package in fs::read_dir(&root).expect("the workspace is there") {
        let source = package.expect("the entry can be read").path().join("src");
        // Programs that are not part of this one have no peer that they print.
        if source.is_dir()
            && ["cli", "lab", "net", "proto", "script", "sim"]
                .iter()
                .any(|p| source.ends_with(format!("{p}/src")))
        {
            sources(&source, &mut files);
        }
    }
    assert!(files.len() > 100, "{}", files.len());
    let mut used = [false; ALLOWED.len()];
    for file in files {
        let name = file.strip_prefix(&root).expect("below the workspace").display().to_string();
        let text = fs::read_to_string(&file).expect("source is text");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if name.ends_with("tests.rs") || name.contains("/tests/") {
            continue;
        }
        for (number, line) in
            code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
        {
            if WRITERS.iter().any(|writer| line.contains(writer)) {
                let allowed = ALLOWED.iter().position(|(file, what)| *file == name && line.contains(what));
                let allowed = allowed.unwrap_or_else(|| {
                    panic!("{name}:{}: use crate::output, which makes text printable: {line}", number + 1)
                });
                used[allowed] = true;
            }
        }
    }
    assert_eq!(used, [true; ALLOWED.len()], "an exception that nothing needs any more");
}

const NASTY: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{202e}\u{9b}31m\nforged: received";

fn as_json(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn clean(output: &[u8]) {
    let text = std::str::from_utf8(output).expect("it prints UTF-8");
    assert!(text.chars().all(|c| c == '\n' || is_printable(c)), "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("forged")), "{text:?}");
    assert!(text.contains("202e"), "what the peer said is told: {text:?}");
}

fn message(text: String) -> Message {
    Message { stream: 0, ppid: CONTROL, payload: text.into(), ..Message::default() }
}

/// A listener that answers whatever it hears with `answer`; the UDP port it has.
fn listener(answer: String) -> u16 {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let local = vec![IpAddr::from([127, 0, 0, 1])];
            let endpoint = Endpoint::bind(Options { local, carrier: Carrier::Udp(0), ..Options::default() });
            let endpoint = endpoint.expect("a socket");
            sender.send(endpoint.local()[0].0.port()).expect("somebody waits");
            loop {
                let association = endpoint.accept().await.expect("it is open");
                let _ = association.recv().await;
                let _ = association.send(message(answer.clone())).await;
                while let Ok(Some(_)) = association.recv().await {}
            }
        });
    });
    receiver.recv().expect("it listens")
}

#[test]
fn a_listener_cannot_write_to_the_terminal_of_a_client() {
    let nasty = as_json(NASTY);
    for answer in [
        format!(r#"{{"refused":{{"why":{nasty}}}}}"#),
        format!(r#"{{"verdict":{{"received":1,"failed":{nasty}}}}}"#),
        format!(r#"{{{nasty}:{{}}}}"#),
    ] {
        let port = listener(answer).to_string();
        for arguments in [&["send", "Cargo.toml"][..], &["send", "Cargo.toml", "--json"], &["perf"]] {
            let arguments = [arguments, &["--to", "127.0.0.1", "--udp", &port]].concat();
            let output = command(&arguments).output().expect("the binary runs");
            assert_eq!(output.status.code(), Some(1));
            clean(&[output.stdout, output.stderr].concat());
        }
    }
}

#[test]
fn a_client_cannot_write_to_the_log_of_a_listener() {
    let into = tempfile::tempdir().expect("a place");
    let directory = into.path().display().to_string();
    let mut process = command(&["serve", "--udp", "0", "--receive-into", &directory])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(process.stdout.take().expect("a pipe")));
    let first = lines.next().expect("it says where it listens").expect("text");
    let port: u16 = first.rsplit(':').next().expect("a port").parse().expect("a number");
    let nasty = as_json(NASTY);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for said in [format!(r#"{{"send-file":{{"name":{nasty},"size":1}}}}"#), format!(r#"{{{nasty}:{{}}}}"#)] {
        runtime.block_on(async {
            let local = [IpAddr::from([127, 0, 0, 1])];
            let endpoint = Endpoint::bind(Options::towards(&local).expect("a route")).expect("a socket");
            let association = endpoint.connect(&[(local[0], port).into()], 5000).await.expect("it comes up");
            association.send(message(said)).await.expect("it is up");
            let _ = association.recv().await;
            association.abort();
            endpoint.close().await;
        });
        let line = lines.next().expect("a line").expect("text");
        clean(line.as_bytes());
        assert!(!line.contains(r"\\u{"), "it is escaped once: {line}");
    }
    let _ = process.kill();
    let _ = process.wait();
}
