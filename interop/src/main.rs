//! Anabranch against other people's stacks: a matrix of what is tried, with the peer in both roles, and a table of
//! what passed.
//!
//! `dcsctp` runs in process and in virtual time, between two endpoints nothing but a small network that delays and
//! loses. usrsctp is `peer.c`, a process of its own on usrsctp's public interface, in UDP on loopback; the Linux kernel
//! is `kernel.c` in a user-mode kernel, in UDP over a tap interface. What leaves and arrives goes through the same
//! small network. Rows with several paths run on `anabranch-net`, in network namespaces, for root.

#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "real peers have real clocks")]

mod addresses;
mod bench;
mod cuts;
mod letter;
mod matrix;
#[path = "../../net/tests/support/network.rs"]
mod network;
mod paths;
mod peer;
mod rows;
mod table;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use matrix::Entry;

/// Anabranch against usrsctp, the Linux kernel and dcsctp: what was tried, and what passed.
#[derive(Parser)]
#[command(after_help = "Examples:
  make interop                              the whole matrix; writes docs/interop.md
  interop --only abort                      the rows whose name contains this
  interop --only usrsctp/reset-us/server    one of them: PEER/ROW/ROLE OF THE PEER
  interop --list                            the names
  interop --json > interop.json             with what each row took, in seconds
  interop --cuts 10                         a series of cuts, as `make cuts`
  interop --cuts 1 --only itself/raw        some of its lines, once

Exit status: 0 if no row failed, 1 if one did, 2 if the command line is wrong. What cannot run here (no usrsctp, no
user-mode kernel, no C compiler, not root) is skipped with one line, and the table is then left as it is; with ANABRANCH_REQUIRE=all that
is a failure.")]
struct Arguments {
    /// Run only what has this in its name, and write no table.
    #[arg(long, value_name = "PATTERN")]
    only: Option<String>,
    /// Print names, run nothing.
    #[arg(long)]
    list: bool,
    /// Results as JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Print every packet, and what the peer says, on standard error.
    #[arg(long)]
    trace: bool,
    /// Instead of the matrix: cut the link in use of two, so often for each carrier, link, sender and role, with
    /// usrsctp and with ourselves at the other end; print a table.
    #[arg(long, value_name = "TRIES", value_parser = clap::value_parser!(u16).range(1..))]
    cuts: Option<u16>,
    /// Where the table is written if everything ran.
    #[arg(long, value_name = "FILE", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/interop.md"))]
    table: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let wanted = |name: &str| arguments.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    if let Some(tries) = arguments.cuts {
        return play_cuts(tries.into(), &arguments);
    }
    let plan = matrix::plan(wanted);
    if plan.is_empty() {
        eprintln!("error: no row has this in its name; `interop --list` prints all");
        return ExitCode::from(2);
    }
    if arguments.list {
        plan.iter().for_each(|case| say(&case.name()));
        return ExitCode::SUCCESS;
    }
    let entries = matrix::run(&plan, !arguments.json, arguments.trace);
    say(&if arguments.json { table::json(&entries) } else { table::summary(&entries) });
    let skipped = entries.iter().any(Entry::skipped);
    let failed = entries.iter().any(Entry::failed);
    if arguments.only.is_none()
        && !skipped
        && let Err(error) = std::fs::write(&arguments.table, table::markdown(&entries))
    {
        eprintln!("error: {}: {error}", arguments.table.display());
        return ExitCode::from(2);
    }
    let required = std::env::var("ANABRANCH_REQUIRE").as_deref() == Ok("all");
    if failed || skipped && required { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Plays the series, and keeps its table if all of it was played.
fn play_cuts(tries: usize, arguments: &Arguments) -> ExitCode {
    let mut table = String::new();
    let only = arguments.only.as_deref();
    let played = cuts::run(
        tries,
        |name| only.is_none_or(|only| name.contains(only)),
        |line| {
            say(line);
            table += &format!("{line}\n");
        },
    );
    match played {
        Ok(good) => {
            if only.is_none()
                && let Err(error) = std::fs::write(table::CUTS, table)
            {
                eprintln!("error: {}: {error}", table::CUTS);
                return ExitCode::from(2);
            }
            if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) if why == cuts::NO_LINE => {
            eprintln!("error: {why}; `interop --cuts 1` plays all");
            ExitCode::from(2)
        }
        Err(why) => {
            eprintln!("skipped: cuts: {why}");
            let required = std::env::var("ANABRANCH_REQUIRE").as_deref() == Ok("all");
            if required { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
    }
}

fn say(what: &str) {
    // Who reads may have gone.
    let _ = writeln!(std::io::stdout(), "{what}");
}
