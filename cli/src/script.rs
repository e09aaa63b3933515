//! `anabranch script`: runs packet scripts against the stack and reports which of them pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anabranch_proto::Config;
use anabranch_script::{BadParameter, Failure, Options, Verdict};
use anabranch_sim::scenario;
use rayon::prelude::*;
use serde::Serialize;

use crate::output::{print, print_json, refuse};
use crate::{DONE, FAILED, WRONG_INPUT};

/// The arguments of `anabranch script`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Scripts or directories; a directory means every *.pkt file below it
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// `platform=NAME` defines NAME for #ifdef
    #[arg(long, value_name = "platform=NAME", value_parser = platform)]
    set: Vec<String>,
    /// Define NAME for #ifdef
    #[arg(short = 'D', value_name = "NAME")]
    define: Vec<String>,
    /// Set a parameter of the stack that the scripts do not set: a key of [flow.sctp] in docs/scenario.md
    #[arg(long, value_name = "KEY=VALUE")]
    sctp: Vec<String>,
    /// The tolerance for packet times: that of each script, or none
    #[arg(long, value_enum, default_value = "script")]
    tolerance: Tolerance,
    /// Check only what the scripts state, not tags, checksums, padding and sizes
    #[arg(long)]
    lax: bool,
    /// Fail if the stack has sent a packet that the script does not expect before the script ends
    #[arg(long)]
    nothing_left: bool,
    /// A file that lists scripts known to fail, one per line: the end of the script's path, and a reason
    #[arg(long, value_name = "FILE")]
    xfail: Option<PathBuf>,
    /// Print a JSON list with one object per script
    #[arg(long)]
    json: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, clap::ValueEnum)]
enum Tolerance {
    Script,
    Strict,
}

const EXAMPLES: &str = "\
The language is described in docs/packet-scripts.md.

Examples:
  anabranch script tests/scripts
  anabranch script tests/scripts/5.1-association/active.pkt --tolerance strict
  anabranch script suite/ --set platform=FreeBSD --json
  anabranch script suite/ --sctp window_probe=at-once --sctp rto_initial='3 s'

Exit status: 0 every script passed or was skipped as unsupported, 1 a script failed or passed
unexpectedly, 2 a script could not be read.";

fn platform(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some(("platform", name)) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err("only platform=NAME can be set".to_owned()),
    }
}

/// A script that is known to fail.
struct Known {
    /// Its line in the list.
    line: usize,
    reason: String,
}

/// One script and its verdict.
#[derive(Serialize)]
struct Report {
    file: String,
    verdict: &'static str,
    /// The line of the event or of the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Virtual time of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// The fields of the expected and the actual packet side by side.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    /// The last packets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    log: Vec<String>,
}

/// Runs the scripts and returns the exit status.
pub(crate) fn script(arguments: &Arguments) -> u8 {
    let (files, known) = match (scripts(&arguments.files), known_failures(arguments.xfail.as_deref())) {
        (Ok(files), Ok(known)) => (files, known),
        (Err(why), _) | (_, Err(why)) => return refuse(why),
    };
    let options = Options {
        defines: arguments.set.iter().chain(&arguments.define).cloned().collect::<BTreeSet<_>>(),
        exact: arguments.tolerance == Tolerance::Strict,
        lax: arguments.lax,
        nothing_left: arguments.nothing_left,
        sctp: arguments.sctp.clone(),
        read: parameters,
    };
    if let Err(bad) = parameters(&options.sctp) {
        return refuse(format!("--sctp {}: {}", bad.key, bad.message));
    }
    let unmatched = known.iter().find(|(end, _)| !files.iter().any(|file| file.ends_with(end)));
    if let (Some((end, known)), Some(list)) = (unmatched, &arguments.xfail) {
        let (list, line) = (list.display(), known.line);
        return refuse(format!(
            "{list}:{line}: no script given ends in `{end}`; correct the path or remove the line"
        ));
    }
    let reports: Vec<Report> = files.par_iter().map(|file| run(file, &options, &known)).collect();
    let printed = if arguments.json { print_json(&reports) } else { print(&text(&reports)) };
    let any = |verdicts: &[&str]| reports.iter().any(|report| verdicts.contains(&report.verdict));
    match printed {
        DONE if any(&["error"]) => WRONG_INPUT,
        DONE if any(&["fail", "xpass"]) => FAILED,
        printed => printed,
    }
}

/// Reads parameters of the stack with the reader of scenarios: scripts use the keys of `[flow.sctp]`.
fn parameters(assignments: &[String]) -> Result<Config, BadParameter> {
    let read = scenario::protocol("--sctp", assignments);
    read.map_err(|error| BadParameter { key: error.key().to_owned(), message: error.advice() })
}

/// The scripts among `places`: files as given, and every `*.pkt` below a directory, sorted.
fn scripts(places: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for place in places {
        if !place.is_dir() {
            files.push(place.clone());
            continue;
        }
        let mut below = Vec::new();
        collect(place, &mut below).map_err(|error| format!("{}: {error}", place.display()))?;
        if below.is_empty() {
            return Err(format!("{}: there is no *.pkt below", place.display()));
        }
        below.sort();
        files.extend(below);
    }
    Ok(files)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            files.push(path);
        }
    }
    Ok(())
}

/// The listed ends of paths with their reasons.
fn known_failures(file: Option<&Path>) -> Result<BTreeMap<String, Known>, String> {
    let Some(file) = file else { return Ok(BTreeMap::new()) };
    let text = scenario::read_text(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut known = BTreeMap::new();
    for (i, line) in
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
    {
        match line.trim().split_once(char::is_whitespace) {
            Some((path, reason)) => {
                known.insert(path.to_owned(), Known { line: i + 1, reason: reason.trim().to_owned() })
            }
            None => return Err(format!("{}:{}: a path and a reason are needed", file.display(), i + 1)),
        };
    }
    Ok(known)
}

fn run(file: &Path, options: &Options, known: &BTreeMap<String, Known>) -> Report {
    let name = file.display().to_string();
    let report = |verdict, line, message| {
        let file = name.clone();
        Report { file, verdict, line, seconds: None, message, fields: Vec::new(), log: Vec::new() }
    };
    let text = match scenario::read_text(file) {
        Ok(text) => text,
        Err(error) => return report("error", None, Some(error.to_string())),
    };
    let reason = known.iter().find(|(end, _)| file.ends_with(end)).map(|(_, known)| known.reason.clone());
    match (anabranch_script::run(&text, options), reason) {
        (Verdict::Pass, None) => report("pass", None, None),
        (Verdict::Pass, reason) => report("xpass", None, reason),
        (Verdict::Skip(what), _) => report("skip", Some(what.line), Some(what.message)),
        (Verdict::Error(what), _) => report("error", Some(what.line), Some(what.message)),
        (Verdict::Fail(failure), Some(reason)) => report("xfail", Some(failure.line), Some(reason)),
        (Verdict::Fail(failure), None) => {
            let Failure { line, at, what, fields, log } = *failure;
            Report { seconds: Some(at.as_secs_f64()), fields, log, ..report("fail", Some(line), Some(what)) }
        }
    }
}

/// The verdicts as text for people.
fn text(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        let word = match report.verdict {
            "pass" => "ok",
            "fail" => "FAIL",
            "error" => "ERROR",
            "xpass" => "XPASS",
            other => other,
        };
        let line = report.line.map(|line| format!(":{line}")).unwrap_or_default();
        let message = report.message.as_ref().map(|message| format!(" {message}")).unwrap_or_default();
        let _ = writeln!(text, "{word:5} {}{line}{message}", report.file);
        for field in &report.fields {
            let _ = writeln!(text, "        {field}");
        }
        if !report.log.is_empty() {
            let at = report.seconds.unwrap_or(0.0);
            let _ = writeln!(text, "        the last packets, at {at} s of virtual time:");
        }
        for packet in &report.log {
            let _ = writeln!(text, "          {packet}");
        }
    }
    text + &summary(reports)
}

fn summary(reports: &[Report]) -> String {
    let count = |verdict: &str| reports.iter().filter(|report| report.verdict == verdict).count();
    let kinds = [
        ("fail", "failed"),
        ("xpass", "passed unexpectedly"),
        ("xfail", "failed as expected"),
        ("skip", "skipped"),
        ("error", "could not be read"),
    ];
    let rest = kinds.iter().map(|(verdict, words)| (count(verdict), words)).filter(|(n, _)| *n > 0);
    let rest: String = rest.map(|(n, words)| format!(", {n} {words}")).collect();
    let scripts = if reports.len() == 1 { "script" } else { "scripts" };
    format!("{} {scripts}: {} passed{rest}", reports.len(), count("pass"))
}
