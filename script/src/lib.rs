//! Packet scripts: one script drives one endpoint in virtual time and says, packet by packet, what it must
//! send. The language is described in `docs/packet-scripts.md`.
//!
//! `lex`, `parse` and `check` make a program of the text; `form` is the table of how chunks, parameters and
//! causes are written, `element` what one is. `world` owns the clock, the endpoint and the packets on their
//! way, `wire` and `live` make bytes of elements and the stack's numbers of the script's; `socket`,
//! `sending`, `receiving`, `notice`, `sockopt` and `view` are the calls. Packets reach the endpoint, and leave it, as bytes.

mod ast;
mod check;
mod element;
mod form;
mod lex;
mod live;
mod message;
mod names;
mod notice;
mod options;
mod parse;
mod receiving;
mod run;
mod sending;
mod setup;
mod socket;
mod sockopt;
#[cfg(test)]
mod tests;
mod view;
mod wire;
mod world;

use std::collections::BTreeSet;

use anabranch_proto::{Config, Time};

/// Reads assignments `KEY=VALUE` of parameters of the stack, as `--sctp` of a script gives them. The reader of scenarios is such a
/// function; this crate has none of its own.
pub type ReadParameters = fn(&[String]) -> Result<Config, BadParameter>;

/// A parameter that cannot be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadParameter {
    /// Its key.
    pub key: String,
    /// What is wrong with the key or the value.
    pub message: String,
}

/// How scripts are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names that open `#ifdef`s.
    pub defines: BTreeSet<String>,
    /// No tolerance: packets must leave to the nanosecond.
    pub exact: bool,
    /// Without the checks of what a script does not say: tags, checksums, padding, sizes.
    pub lax: bool,
    /// A packet that was sent and not expected when the script ends is a failure.
    pub nothing_left: bool,
    /// Parameters of the stack, `KEY=VALUE` of `[flow.sctp]`, unless a script sets them itself.
    pub sctp: Vec<String>,
    /// Reads `sctp`, and what scripts set.
    pub read: ReadParameters,
}

impl Options {
    /// The usual options.
    pub fn new(read: ReadParameters) -> Self {
        Options {
            defines: BTreeSet::new(),
            exact: false,
            lax: false,
            nothing_left: false,
            sctp: Vec::new(),
            read,
        }
    }
}

/// The verdict on a script.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Every event passed.
    Pass,
    /// An event did not.
    Fail(Box<Failure>),
    /// It uses what the runner or the stack does not have.
    Skip(ParseError),
    /// It is no script.
    Error(ParseError),
}

/// Why a script failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The line of the event.
    pub line: u32,
    /// When, in virtual time.
    pub at: Time,
    /// What was expected and what came, in one line.
    pub what: String,
    /// The fields of the packets side by side, the differences marked; empty if no packets were compared.
    pub fields: Vec<String>,
    /// The last packets in script notation, both directions, oldest first.
    pub log: Vec<String>,
}

/// What is wrong with a script, or not supported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The line.
    pub line: u32,
    /// What it is.
    pub message: String,
    unsupported: bool,
}

impl ParseError {
    fn new(line: u32, message: impl Into<String>) -> ParseError {
        ParseError { line, message: message.into(), unsupported: false }
    }

    /// It is a script, but not one that can be run here.
    fn unsupported(self) -> ParseError {
        let message = format!("{} is not supported", self.message);
        ParseError { message, unsupported: true, ..self }
    }

    fn verdict(self) -> Verdict {
        if self.unsupported { Verdict::Skip(self) } else { Verdict::Error(self) }
    }
}

/// Reads the script `text` and runs it.
pub fn run(text: &str, options: &Options) -> Verdict {
    match parse::program(text, &options.defines) {
        Ok(program) => run::run(&program, options),
        Err(error) => error.verdict(),
    }
}

/// Reads the script `text`, and does not run it. Never panics, whatever the text is.
pub fn check(text: &str, options: &Options) -> Result<(), ParseError> {
    let program = parse::program(text, &options.defines)?;
    setup::setup(&program.options, options).map(drop)
}
