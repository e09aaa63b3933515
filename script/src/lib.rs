//! Packet scripts. A script drives one endpoint in virtual time and states, packet by packet, what it must send.
//! `docs/packet-scripts.md` describes the language.
//!
//! `lex`, `parse` and `check` convert the text to a program. `form` is the table of the forms of chunks, parameters and
//! causes; `element` is one of them. `world` owns the clock, the endpoint and the packets in flight. `wire` encodes
//! elements, and `live` translates between the script's numbers and the stack's. `socket`, `sending`, `receiving`,
//! `notice`, `sockopt` and `view` implement the calls. Packets enter and leave the endpoint as bytes.

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

/// Reads assignments `KEY=VALUE` of parameters of the stack, as in a script's option `--sctp`. The reader of scenarios
/// provides such a function; this crate has none.
pub type ReadParameters = fn(&[String]) -> Result<Config, BadParameter>;

/// A parameter that cannot be set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadParameter {
    /// Its key.
    pub key: String,
    /// What is wrong with the key or the value.
    pub message: String,
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names that enable `#ifdef` sections.
    pub defines: BTreeSet<String>,
    /// Whether packets must leave at the exact nanosecond, without tolerance.
    pub exact: bool,
    /// Whether to skip checks of values that the script does not state: tags, checksums, padding, sizes.
    pub lax: bool,
    /// Whether it is a failure if the stack has sent unexpected packets by the end of the script.
    pub nothing_left: bool,
    /// Parameters of the stack, as `KEY=VALUE` of `[flow.sctp]`. A script may override them.
    pub sctp: Vec<String>,
    /// Reads the parameters in `sctp` and those that scripts set.
    pub read: ReadParameters,
}

impl Options {
    /// The default options.
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

/// The result of running a script.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// Every event passed.
    Pass,
    /// An event failed.
    Fail(Box<Failure>),
    /// The script uses a feature that the runner or the stack lacks.
    Skip(ParseError),
    /// The text is not a valid script.
    Error(ParseError),
}

/// Why a script failed.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The line of the event.
    pub line: u32,
    /// The virtual time.
    pub at: Time,
    /// One line: what was expected and what happened.
    pub what: String,
    /// The fields of both packets side by side, with the differences marked. Empty if no packets were compared.
    pub fields: Vec<String>,
    /// The last packets in both directions in script notation, oldest first.
    pub log: Vec<String>,
}

/// What is wrong with a script, or not supported.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    /// The line.
    pub line: u32,
    /// The description.
    pub message: String,
    unsupported: bool,
}

impl ParseError {
    fn new(line: u32, message: impl Into<String>) -> ParseError {
        ParseError { line, message: message.into(), unsupported: false }
    }

    /// The script is valid but cannot be run here.
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
        Ok(program) if program.events.is_empty() => nothing(text).verdict(),
        Ok(program) => run::run(&program, options),
        Err(error) => error.verdict(),
    }
}

/// The error of a script that has no event; with `#ifdef` it may have some on another platform.
fn nothing(text: &str) -> ParseError {
    let line = text.lines().count().max(1) as u32;
    match text.lines().any(|line| line.trim_start().starts_with("#if")) {
        true => ParseError::new(line, "a script without an event on this platform").unsupported(),
        false => ParseError::new(line, "the script has no event: nothing would be checked"),
    }
}

/// Reads the script `text` without running it. Never panics.
pub fn check(text: &str, options: &Options) -> Result<(), ParseError> {
    let program = parse::program(text, &options.defines)?;
    setup::setup(&program.options, options).map(drop)
}
