//! `anabranch shell`: programs over the links of a scenario, in real time.

use std::path::PathBuf;

use anabranch_proto::Policies;
use anabranch_shell::{Ending, FailedProgram, Place, Report, ShellError};
use anabranch_sim::results::Drops;
use anabranch_sim::scenario::{Document, Scenario};
use comfy_table::Table;

use crate::output::{fail, note, refuse, refuse_scenario, warn};
use crate::place::{Places, write_whole};
use crate::run::{edited, seed};
use crate::table::{rate, style, table, text};

/// The arguments of `anabranch shell`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The scenario: a TOML file (docs/scenario.md; `anabranch keys`). It needs no flows
    file: PathBuf,
    /// The node at which COMMAND runs. Repeat it as NODE=PROGRAM to run PROGRAM, a shell command, at another node until
    /// COMMAND ends
    #[arg(long, value_name = "NODE[=PROGRAM]", required = true)]
    at: Vec<String>,
    /// The random seed, instead of that of the file
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// Set a key before the file is read, as in `anabranch run`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Leave out this flow of the scenario: the programs take its place. `all` leaves out every flow
    #[arg(long, value_name = "FLOW")]
    without: Vec<String>,
    /// Write a summary of the carried packets and their lateness to this file as JSON
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Overwrite the file of --summary
    #[arg(long, requires = "summary")]
    force: bool,
    /// Print no summary when the session ends
    #[arg(long)]
    quiet: bool,
    /// The program and its arguments; without it the shell of $SHELL
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "\
COMMAND runs in a network namespace that has one TUN device for each interface of the node. Its packets cross the links of
the scenario as simulated packets do; the scenario's flows and cross traffic run beside them. Hosts without a program answer
pings, and nothing else. Needs root, or user namespaces (docs/shell.md).

Examples:
  anabranch shell scenarios/outage.toml --at s --without all -- ping -c 5 10.0.0.1
  anabranch shell scenarios/one-path.toml --at s --at 'r=iperf3 -s -1' --without all -- iperf3 -c 10.0.0.1
  anabranch shell scenarios/traces.toml --at s --without all \\
      --at 'r=anabranch serve --listen 10.0.0.1,10.0.0.5 --public --receive-into inbox' -- \\
      sh -c 'sleep 1; anabranch send --cmt file --to 10.0.0.1,10.0.0.5'
  anabranch shell scenarios/cross-traffic.toml --at s --summary summary.json          # opens a shell

Exit status: that of COMMAND; 2 wrong input (nothing was run), 1 the machine cannot do it, 130 or 143 after a signal.";

/// Runs the session, and returns the exit status.
pub(crate) fn shell(arguments: &Arguments) -> u8 {
    match prepared(arguments) {
        Ok(prepared) => session(arguments, &prepared),
        Err(status) => status,
    }
}

/// The parameters of a session.
struct Session {
    document: Document,
    scenario: Scenario,
    places: Vec<Place>,
    left_out: Vec<String>,
}

fn session(arguments: &Arguments, prepared: &Session) -> u8 {
    let Session { document, scenario, places, left_out } = prepared;
    let (first, beside) = places.split_first().expect("--at is required");
    let default = || vec![std::env::var("SHELL").unwrap_or_else(|_| "sh".to_owned())];
    let command = if arguments.command.is_empty() { default() } else { arguments.command.clone() };
    let policies = Policies::default();
    match anabranch_shell::run(scenario, (&first.node, &command), beside, left_out, policies) {
        Ok(report) => finish(arguments, &report),
        Err(ShellError::Scenario(error)) => match document.blame(scenario, &error) {
            Some(error) => refuse_scenario(&error),
            None => refuse(error),
        },
        Err(error) if error.is_input() => refuse(error),
        Err(error) => fail(error),
    }
}

/// The scenario and the nodes; or the exit status of what was wrong.
fn prepared(arguments: &Arguments) -> Result<Session, u8> {
    let files = Places::default().reads(&arguments.file).file("--summary", arguments.summary.as_ref());
    files.check().and_then(|()| files.keep(arguments.force))?;
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    let (document, name) = edited(&arguments.file, seed.iter().chain(&arguments.set))?;
    let scenario = document.network(&name, &Policies::default()).map_err(|error| refuse_scenario(&error))?;
    let places: Vec<Place> = arguments.at.iter().map(|at| place(at)).collect();
    if places[0].command.is_some() {
        return Err(refuse(format!(
            "--at {}: the program of the first node stands behind `--`: --at {} -- PROGRAM",
            arguments.at[0], places[0].node
        )));
    }
    for (number, place) in places.iter().enumerate() {
        if places[..number].iter().any(|other| other.node == place.node) {
            return Err(refuse(format!("--at names node `{}` twice", place.node)));
        }
    }
    let left_out = left_out(&scenario, &arguments.without)?;
    Ok(Session { document, scenario, places, left_out })
}

/// The flows that do not run.
fn left_out(scenario: &Scenario, names: &[String]) -> Result<Vec<String>, u8> {
    let known: Vec<String> = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    match names.iter().find(|name| *name != "all" && !known.contains(name)) {
        Some(name) if known.is_empty() => {
            Err(refuse(format!("--without {name}: there is no such flow; the scenario has none")))
        }
        Some(name) => {
            let known = known.join(", ");
            Err(refuse(format!("--without {name}: there is no such flow; the flows are: {known}")))
        }
        None if names.iter().any(|name| name == "all") => Ok(known),
        None => Ok(names.to_vec()),
    }
}

/// `NODE`, or `NODE=PROGRAM` for a program that a shell reads.
fn place(at: &str) -> Place {
    match at.split_once('=') {
        None => Place { node: at.to_owned(), command: None },
        Some((node, program)) => {
            // Signals of the end go to all that the shell has started.
            let command = ["sh", "-c", program].map(str::to_owned).to_vec();
            Place { node: node.to_owned(), command: Some(command) }
        }
    }
}

fn finish(arguments: &Arguments, report: &Report) -> u8 {
    if !arguments.quiet {
        note(summary(report));
    }
    for FailedProgram { node, status } in &report.failed {
        warn(format!(
            "--at {node}=…: the program failed before the end of the session, exit status {status}"
        ));
    }
    if let Some(why) = report.could_not_keep_up() {
        warn(format!("this machine could not keep up: {why}; the links were slower than the scenario says"));
    }
    if let Some(file) = &arguments.summary {
        let text = serde_json::to_string_pretty(report).map_err(std::io::Error::other);
        if let Err(error) = text.and_then(|text| write_whole(file, text + "\n")) {
            return fail(format!("{}: {error}", file.display()));
        }
    }
    match report.ending {
        Ending::Exit(status) => status,
        Ending::Signal(signal) => 128 + signal,
    }
}

fn summary(report: &Report) -> String {
    let mut interfaces = Table::new();
    style(&mut interfaces);
    interfaces.set_header([
        "node",
        "link",
        "address",
        "packets sent",
        "received",
        "mean rate sent",
        "received",
    ]);
    let bits = |bytes: u64| rate(bytes as f64 * 8.0 / report.run.ended.max(1e-9));
    for port in &report.interfaces {
        let counts = [port.sent.to_string(), port.received.to_string()];
        let rates = [bits(port.sent_bytes), bits(port.received_bytes)];
        let names = [port.node.clone(), port.link.clone(), port.address.to_string()];
        interfaces.add_row(names.into_iter().chain(counts).chain(rates));
    }
    let late = report.lateness;
    let [p50, p99, max] = [late.p50, late.p99, late.max].map(|seconds| format!("{:.3} ms", seconds * 1e3));
    let mut lines = vec![
        text(interfaces),
        format!(
            "{:.1} s; packets reached programs late by {p50} (p50), {p99} (p99), {max} (most)",
            report.run.ended
        ),
    ];
    lines.extend(report.run.links.iter().filter(|link| link.packets > 0).map(|link| {
        let Drops { queue, loss, down, .. } = link.drops;
        let (name, direction) = (&link.name, &link.direction);
        format!(
            "link {name} {direction}: {} packets, dropped {queue} by the queue, {loss} lost, {down} while it was down",
            link.packets
        )
    }));
    if !report.run.flows.is_empty() {
        lines.push(table(std::slice::from_ref(&report.run), &[]));
    }
    if report.unroutable > 0 {
        lines.push(format!(
            "{} packets had no route: no host of the scenario has their destination",
            report.unroutable
        ));
    }
    if report.unanswered > 0 {
        lines.push(format!(
            "{} packets reached hosts without a program, which answer only pings: give these hosts programs with --at",
            report.unanswered
        ));
    }
    lines.join("\n")
}
