//! `anabranch`: run, compare and explain transport over several paths.

#![cfg_attr(
    not(target_os = "linux"),
    allow(dead_code, unused_imports, reason = "some parts serve only the commands that need Linux")
)]

mod address;
mod advise;
mod against;
mod answers;
mod catalogue;
mod diff;
mod earlier;
mod explain;
mod flat;
mod kind;
mod lab;
#[cfg(not(target_os = "linux"))]
mod linux_only;
mod merge;
mod model;
mod msc;
#[cfg(target_os = "linux")]
mod net;
mod new_policy;
mod output;
#[cfg(feature = "parquet")]
mod parquet;
mod place;
mod progress;
mod reproduce;
mod run;
mod runtime;
mod screen;
mod script;
#[cfg(target_os = "linux")]
mod shell;
mod simulate;
mod summary;
mod sweep;
mod table;
mod trace;
mod warnings;
mod watch;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
#[cfg(not(target_os = "linux"))]
use linux_only::{net, shell};

/// Everything went well.
const DONE: u8 = 0;
/// Something failed that is not the input's fault.
const FAILED: u8 = 1;
/// The input was wrong.
const WRONG_INPUT: u8 = 2;
/// Ended by Ctrl-C, as a shell reports it.
const INTERRUPTED: u8 = 130;
/// Ended by SIGHUP (the terminal was closed), as a shell reports it.
const HUNG_UP: u8 = 129;
/// Ended by SIGTERM, as a shell reports it.
const TERMINATED: u8 = 143;

/// Multipath transport: simulate it, compare its policies, and use it on real networks.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Print tables as wide as their contents, not as narrow as the terminal
    #[arg(long, global = true)]
    wide: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Run a scenario, or a grid of its variations
    Run(Box<run::Arguments>),
    /// Compare two runs: find the first packet at which they differ, and why
    Diff(diff::Arguments),
    /// Run every cell of a grid with many seeds and summarise them; an interrupted sweep resumes
    Sweep(sweep::Arguments),
    /// Merge the shards of a sweep into its tables
    Merge(merge::Arguments),
    /// Print a capture file, one line per packet
    Explain(explain::Arguments),
    /// Reproduce publications: run their experiments and judge their claims
    Reproduce(reproduce::Arguments),
    /// Open a playground in the browser: edit scenarios, run, compare and explain them
    Lab(lab::Arguments),
    /// Run packet scripts against the stack
    Script(script::Arguments),
    /// Evaluate a published model
    Model(model::Arguments),
    /// Find the parameters that meet a budget
    Advise(advise::Arguments),
    /// Summarise a recorded link: mean rate, quantiles, outages, plot
    Trace(trace::Arguments),
    /// Run programs over the links of a scenario, in real time
    Shell(shell::Arguments),
    /// Listen on a real network: receive files and take part in measurements
    Serve(net::serve::Arguments),
    /// Send a file over a real network with several paths
    Send(net::send::Arguments),
    /// Repeat a recorded transfer through the core, and explain it
    Replay(net::replay::Arguments),
    /// Measure throughput and delay to and from a listener
    Perf(net::perf::Arguments),
    /// Create a crate with a policy of your own that builds and is tested
    NewPolicy(new_policy::Arguments),
    /// List the rules in which the editions of SCTP differ
    Rules(catalogue::Format),
    /// List the policies that a scenario can name
    Policies(catalogue::Format),
    /// List every key of a scenario file
    Keys(catalogue::Format),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    screen::decide(arguments.wide);
    let status = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::Sweep(arguments) => sweep::sweep(&arguments),
        Command::Merge(arguments) => merge::merge(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Lab(arguments) => lab::lab(&arguments),
        Command::Script(arguments) => script::script(&arguments),
        Command::Model(arguments) => model::model(&arguments),
        Command::Advise(arguments) => advise::advise(&arguments),
        Command::Trace(arguments) => trace::trace(&arguments),
        Command::Shell(arguments) => shell::shell(&arguments),
        Command::Serve(arguments) => net::serve::serve(&arguments),
        Command::Send(arguments) => net::send::send(&arguments),
        Command::Replay(arguments) => net::replay::replay(&arguments),
        Command::Perf(arguments) => net::perf::perf(&arguments),
        Command::NewPolicy(arguments) => new_policy::new_policy(&arguments),
        Command::Rules(format) => catalogue::rules(&format),
        Command::Policies(format) => catalogue::policies(&format),
        Command::Keys(format) => catalogue::keys(&format),
    };
    ExitCode::from(status)
}
