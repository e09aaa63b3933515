//! `anabranch advise`: which parameters meet a budget, and which policy suits a pair of paths.

#![allow(clippy::disallowed_types, reason = "a search may take so many seconds")]

mod failover;
mod policy;
mod random;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_lab::advice::Watch;
use anabranch_lab::kind::Kind;
use anabranch_sim::scenario::{Document, ScenarioError, read_text};

use crate::kind;
use crate::output::{refuse, refuse_scenario};
use crate::place::unread;
use crate::progress::Count;

/// The arguments of `anabranch advise`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Find timeouts and thresholds with short outages and few needless failovers
    Failover(failover::Arguments),
    /// Find the retransmission policy and the receive buffer for a pair of paths, and where the answer changes
    Policy(policy::Arguments),
}

/// Answers the question, and returns the exit status.
pub(crate) fn advise(arguments: &Arguments) -> u8 {
    match &arguments.question {
        Question::Failover(asked) => failover::answer(asked),
        Question::Policy(asked) => policy::answer(asked),
    }
}

/// The question in a file of this kind, or the exit status of what is wrong with it.
fn read<T>(file: &Path, kind: Kind, read: impl Fn(&str, &str) -> Result<T, ScenarioError>) -> Result<T, u8> {
    let name = file.display().to_string();
    let text = read_text(file).map_err(|error| refuse(unread(file, &error)))?;
    read(&name, &text).map_err(|error| {
        let found = Document::parse(&name, &text).ok().and_then(|document| Kind::of(&document));
        match found.filter(|found| *found != kind) {
            Some(other) => refuse(kind::told(other, &name)),
            None => refuse_scenario(&error),
        }
    })
}

/// The longest time that `--seconds` takes: a day.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds, 0.1 to 86400".to_owned()),
    }
}

/// Works with progress, for so many seconds at most if there is a limit, or until it is stopped.
fn watched<T>(stop: &AtomicBool, seconds: Option<f64>, work: impl FnOnce(&Watch<'_>) -> T) -> T {
    let count = Mutex::new(Count::new());
    let progress = |done, all| count.lock().unwrap_or_else(PoisonError::into_inner).at(done, all);
    let (begin, allowed) = (Instant::now(), seconds.map(Duration::from_secs_f64));
    let spent = || allowed.map_or(0.0, |allowed| begin.elapsed().div_duration_f64(allowed));
    let answer = work(&Watch { stop, spent: &spent, progress: &progress });
    count.lock().unwrap_or_else(PoisonError::into_inner).finish();
    answer
}
