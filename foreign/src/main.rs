//! Other people's stacks as flows of the simulator: the same scenarios, links, losses and results as for Anabranch's
//! own.

#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "other stacks want instants of the system's clock"
)]

mod clock;
mod compare;
mod dcsctp;
mod noq;
mod sctp;
mod sctp_proto;

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anabranch_proto::Policies;
use anabranch_sim::RunOptions;
use anabranch_sim::capture::CaptureWriter;
use anabranch_sim::foreign::ForeignTransport;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, Scenario, read_text};
use anabranch_sim::trace::Observer;
use clap::{Parser, Subcommand};

/// Every foreign transport that a scenario can name.
const TRANSPORTS: [&dyn ForeignTransport; 3] = [&dcsctp::Dcsctp, &noq::Noq, &sctp_proto::SctpProto];

/// Other people's stacks as flows of the simulator: protocol = { foreign = "noq" }.
#[derive(Parser)]
#[command(after_help = "Examples:
  cargo run --release --manifest-path foreign/Cargo.toml -- list
  … -- run foreign/scenarios/two-paths.toml --set 'flow.transfer.protocol={ foreign = \"noq\" }'
  … -- run scenarios/outage.toml --set 'flow.signalling.protocol={ foreign = \"dcsctp\" }' --pcap dcsctp.pcapng
  … -- compare

Exit status: 0 done, 2 the input was wrong, 1 anything else.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario and print its results
    Run(Run),
    /// List the foreign transports: name, version, and whether their runs are repeatable
    List,
    /// Run the scenarios of foreign/scenarios with every stack, beside Anabranch's, and print the table of
    /// docs/foreign.md
    Compare {
        /// Write the table to this file, between its markers, instead
        #[arg(long, value_name = "FILE")]
        write: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct Run {
    /// The scenario: a TOML file (docs/scenario.md)
    file: PathBuf,
    /// Set a key before the file is read
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The random seed [default: the seed in the file]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Print the results as JSON (docs/results.md)
    #[arg(long)]
    json: bool,
    /// Write the packets to this file as pcapng
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

/// Why nothing was printed: the exit status, and the message.
type Fault = (u8, String);

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::List => Ok(list()),
        Command::Compare { write: None } => compare::table().map_err(failed),
        Command::Compare { write: Some(file) } => compare::write(&file).map_err(failed),
    };
    match done {
        Ok(text) => {
            // Who reads may have gone.
            let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
            ExitCode::SUCCESS
        }
        Err((status, message)) => {
            eprintln!("error: {message}");
            ExitCode::from(status)
        }
    }
}

fn failed(message: String) -> Fault {
    (1, message)
}

fn wrong(message: impl std::fmt::Display) -> Fault {
    (2, message.to_string())
}

fn list() -> String {
    let line = |transport: &&dyn ForeignTransport| {
        let repeatable =
            if transport.is_repeatable() { "repeatable" } else { "not repeatable: draws from the system" };
        format!("{:<12}{:<20}{repeatable}\n", transport.name(), transport.version())
    };
    TRANSPORTS.iter().map(line).collect()
}

fn run(arguments: &Run) -> Result<String, Fault> {
    let shown = arguments.file.display().to_string();
    let text = read_text(&arguments.file).map_err(|error| wrong(format!("{shown}: {error}")))?;
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    let (document, scenario) = read(&shown, &text, seed.iter().chain(&arguments.set)).map_err(wrong)?;
    let mut capture = match &arguments.pcap {
        Some(file) => {
            let out = File::create(file).map_err(|error| wrong(format!("{}: {error}", file.display())))?;
            Some(CaptureWriter::new(BufWriter::new(out), &scenario.name))
        }
        None => None,
    };
    let observer = capture.as_mut().map(|capture| capture as &mut dyn Observer);
    let result = simulate(&scenario, observer).map_err(|error| match document.blame(&scenario, &error) {
        Some(error) => wrong(error),
        None => failed(error.to_string()),
    })?;
    if let Some(capture) = capture {
        capture.finish().map_err(|error| failed(format!("cannot write the capture: {error}")))?;
    }
    match arguments.json {
        true => serde_json::to_string_pretty(&result).map_err(|error| failed(error.to_string())),
        false => Ok(show(&result)),
    }
}

/// The document in `text` with these keys set, and its scenario.
fn read<'a>(
    name: &str,
    text: &str,
    set: impl Iterator<Item = &'a String>,
) -> Result<(Document, Scenario), anabranch_sim::scenario::ScenarioError> {
    let mut document = Document::parse(name, text)?;
    for assignment in set {
        document.set("--set", assignment)?;
    }
    let scenario = document.scenario(name, &Policies::default())?;
    Ok((document, scenario))
}

fn simulate(
    scenario: &Scenario,
    observer: Option<&mut dyn Observer>,
) -> Result<RunResult, anabranch_sim::RunError> {
    anabranch_sim::run(scenario, RunOptions { foreign: &TRANSPORTS, observer, ..RunOptions::default() })
}

/// A line for each flow.
fn show(result: &RunResult) -> String {
    let mut text = String::new();
    for flow in &result.flows {
        let stack = flow.foreign.as_ref().map_or(flow.protocol.name(), |foreign| &foreign.version);
        let completion = flow.completion.map_or("-".to_owned(), |seconds| format!("{seconds:.3} s"));
        text += &format!(
            "{} ({stack}): {completion}, {} bytes delivered, {:.3} Mbit/s, {} packets, {}\n",
            flow.name,
            flow.delivered,
            flow.goodput / 1e6,
            flow.packets,
            flow.outcome
        );
    }
    text
}
