//! Where commands write: places that cannot be written are refused before the work, results are printed even where a
//! file cannot be written, and an interrupted run leaves no file that looks complete.

#![allow(clippy::disallowed_methods, reason = "Ctrl-C comes while a process works")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use support::{anabranch, command, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// The command is refused with this part of a message.
fn refused(arguments: &[&str], part: &str) {
    let output = anabranch(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(part), "{arguments:?}: expected {part}; got {}", stderr(&output));
    assert!(output.stdout.is_empty(), "{arguments:?}: nothing was done");
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Work that would take hours, so that a test that does not end shows that the place is looked at too late.
#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_work() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    fs::write(path("file"), "mine").expect("written");
    fs::create_dir(path("directory")).expect("made");
    let (file, directory, scenario) = (path("file"), path("directory"), example("headline"));
    let long = ["run", &scenario, "--seeds", "100000"];
    let (nowhere, picture) = (path("nowhere/x.html"), path("nowhere/x.svg"));
    for option in ["--csv", "--report", "--pcap", "--qlog", "--perfetto"] {
        refused(&[&long[..], &[option, &nowhere]].concat(), "there is no directory");
    }
    refused(&[&long[..], &["--msc", &picture, "--between", "0s,1s"]].concat(), "there is no directory");
    refused(&[&long[..], &["--csv", &directory, "--force"]].concat(), "this is a directory");
    refused(&[&long[..4 - 2], &["--report", &directory, "--force"]].concat(), "this is a directory");
    for option in ["--series", "--figures"] {
        refused(&[&long[..], &[option, &file, "--force"]].concat(), "file is a file");
    }
    let pair = example("advice/pair");
    refused(&["advise", "policy", &pair, "--report", &nowhere, "--seconds", "3600"], "there is no directory");
    refused(&["reproduce", "--report", &nowhere, "--seeds", "10000"], "there is no directory");
    let (sweep, out) = (example("sweeps/loss"), path("out"));
    refused(&["sweep", &sweep, "--out", &out, "--report", &nowhere], "there is no directory");
    assert_eq!(names(place.path()), ["directory", "file"], "nothing was left");
}

/// `/dev/full` can be opened, and every write to it fails.
#[test]
fn results_are_printed_even_where_a_file_cannot_be_written() {
    if !Path::new("/dev/full").exists() {
        return support::skip("results_are_printed_even_where_a_file_cannot_be_written", "no /dev/full");
    }
    for option in ["--csv", "--report", "--qlog", "--pcap"] {
        let output = anabranch(&["run", &example("one-path"), option, "/dev/full", "--force", "--json"]);
        assert_eq!(output.status.code(), Some(1), "{option}: {}", stderr(&output));
        assert!(stderr(&output).contains("cannot write"), "{option}: {}", stderr(&output));
        let runs: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the results");
        assert_eq!(runs[0]["scenario"], "one-path", "{option}");
    }
}

#[test]
fn two_results_never_go_to_one_place() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    let scenario = path("scenario.toml");
    fs::copy(example("one-path"), &scenario).expect("copied");
    let run = ["run", &scenario, "--force"];
    let (same, detour) = (path("same.x"), path("./same.x"));
    refused(&[&run[..], &["--report", &same, "--pcap", &same]].concat(), "--pcap and --report both name");
    refused(
        &[&run[..], &["--qlog", &same, "--perfetto", &detour]].concat(),
        "--qlog and --perfetto both name",
    );
    refused(
        &[&run[..], &["--series", &same, "--figures", &same]].concat(),
        "--series and --figures both name",
    );
    refused(&[&run[..], &["--csv", &scenario]].concat(), "--csv would overwrite");
    let (csv, json) = (path("a-run-2.x"), path("a.x"));
    let two = ["--seeds", "2", "--csv", &csv, "--perfetto", &json];
    refused(&[&run[..], &two].concat(), "choose another name");
    assert_eq!(names(place.path()), ["scenario.toml"]);
    assert_eq!(fs::read(&scenario).unwrap(), fs::read(example("one-path")).unwrap());
    // A device loses nothing.
    let output = anabranch(&[&run[..], &["--qlog", "/dev/null", "--perfetto", "/dev/null"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// The signals that end a command, and its exit status then.
const ENDS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

/// Sends a signal as soon as the work has begun, and returns what the command did.
fn ended(signal: Signal, command: &mut Command, has_begun: impl Fn(u32) -> bool) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    while !has_begun(child.id()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    kill_process(Pid::from_child(&child), signal).expect("it runs");
    child.wait_with_output().expect("it ends")
}

#[test]
fn an_interrupted_run_says_so_and_leaves_no_file_that_looks_complete() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    let (scenario, pcap, qlog, trace) =
        (example("one-path"), path("c.pcapng"), path("c.qlog"), path("c.json"));
    let endless = ["run", &scenario, "--set", "flow.transfer.send=900 TB"];
    let files = ["--pcap", &pcap, "--qlog", &qlog, "--perfetto", &trace];
    for (signal, status) in ENDS {
        let mut run = command(&[&endless[..], &files].concat());
        let output = ended(signal, &mut run, |_| place.path().join("c.json.partial").exists());
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        let message = stderr(&output);
        assert!(
            message.contains("interrupted: the run had come to ") && message.contains(" s of simulated time")
        );
        let left = ["c.json.partial", "c.pcapng.partial", "c.qlog.partial"];
        assert_eq!(names(place.path()), left);
        left.iter().for_each(|name| fs::remove_file(place.path().join(name)).expect("it is there"));
    }
    // A complete run has its files under their names, and nothing else is left.
    let output = anabranch(&[&["run", &scenario][..], &files].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(names(place.path()), ["c.json", "c.pcapng", "c.qlog"]);
}

/// Whether the process handles SIGINT, signal 2, and SIGTERM, signal 15, itself: the kernel shows them among those that
/// are caught.
fn catches_signals(id: u32) -> bool {
    const BOTH: u64 = 1 << 1 | 1 << 14;
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & BOTH == BOTH)
}

#[test]
fn an_interrupted_reproduction_says_what_is_kept() {
    let place = tempfile::tempdir().expect("a directory");
    let journal = place.path().join("runs.journal").display().to_string();
    let paper = concat!(env!("CARGO_MANIFEST_DIR"), "/../papers/receive-buffer-blocking");
    let long = ["reproduce", paper, "--seeds", "1000"];
    for (more, part) in [
        (&[][..], "interrupted: nothing is kept without --resume FILE"),
        (&["--resume", &journal], "interrupted: the finished runs are kept in"),
    ] {
        for (signal, status) in ENDS {
            let output = ended(signal, &mut command(&[&long[..], more].concat()), catches_signals);
            assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
            assert!(stderr(&output).contains(part), "{}", stderr(&output));
        }
    }
    let help = String::from_utf8(anabranch(&["reproduce", "--help"]).stdout).expect("text");
    assert!(help.contains("Ctrl-C, SIGTERM or SIGHUP keeps nothing without --resume"), "{help}");
}

/// Papers that are built into the program are unpacked to a temporary directory.
#[test]
fn an_interrupted_reproduction_leaves_no_unpacked_papers() {
    let place = tempfile::tempdir().expect("a directory");
    for (signal, status) in ENDS {
        let mut reproduce = command(&["reproduce", "receive-buffer-blocking", "--seeds", "1000"]);
        reproduce.current_dir(&place).env("TMPDIR", place.path());
        let output = ended(signal, &mut reproduce, catches_signals);
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(names(place.path()).is_empty(), "{:?}", names(place.path()));
    }
}

/// A table that cannot be written to its end has not its name: here no file may have more than a few hundred bytes.
#[test]
fn a_table_has_its_name_when_it_is_complete() {
    let place = tempfile::tempdir().expect("a directory");
    let limited = format!("ulimit -f 1; trap '' XFSZ; exec {} \"$@\"", env!("CARGO_BIN_EXE_anabranch"));
    let run = ["run", &example("one-path"), "--seeds", "20", "--csv", "results.csv"];
    let output = Command::new("sh").args(["-c", &limited, "sh"]).args(run).current_dir(&place).output();
    let output = output.expect("a shell");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot write results.csv"), "{}", stderr(&output));
    assert_eq!(names(place.path()), ["results.csv.partial"]);
    let charts = ["run", &example("one-path"), "--figures", "charts"];
    let output = Command::new("sh").args(["-c", &limited, "sh"]).args(charts).current_dir(&place).output();
    assert_eq!(output.expect("a shell").status.code(), Some(1));
    let left = names(&place.path().join("charts"));
    assert!(left.iter().all(|name| name.ends_with(".partial")) && left.len() == 1, "{left:?}");
}

/// Existing files are not lost by a transfer, even one that never begins.
#[test]
fn files_of_a_transfer_are_overwritten_only_by_force() {
    let place = tempfile::tempdir().expect("a directory");
    let mine = place.path().join("mine").display().to_string();
    fs::write(&mine, "mine").expect("written");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let nobody = ["--to", "127.0.0.1", "--udp", "9", "--timeout", "200 ms"];
    let there = "mine is there already; --force overwrites it";
    for option in ["--record", "--qlog", "--perfetto"] {
        refused(&[&["send", file, option, &mine][..], &nobody].concat(), there);
        refused(&[&["perf", option, &mine][..], &nobody].concat(), there);
    }
    refused(&[&["send", &mine, "--record", &mine, "--force"][..], &nobody].concat(), "would overwrite");
    refused(&["replay", file, "--qlog", &mine], there);
    let folder = place.path().display().to_string();
    refused(&["replay", file, "--series", &folder], "is there already; --force overwrites it");
    assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
    let forced = anabranch(&[&["send", file, "--record", &mine, "--force"][..], &nobody].concat());
    assert_eq!(forced.status.code(), Some(1), "{}", stderr(&forced));
    assert_ne!(fs::read_to_string(&mine).unwrap(), "mine");
}
