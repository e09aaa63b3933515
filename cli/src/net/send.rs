//! `anabranch send`: sends a file to a listener.

use std::convert::Infallible;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anabranch_net::service::{Failure, SendError, SentFile, announcement, send_file};
use anabranch_net::{Association, Endpoint, PathReport, Traffic};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::live::Live;
use super::record::{Carried, Changes, Intervals};
use super::setup::{Client, NoAssociation, waiting};
use super::traced::{Recorded, Traces};
use super::watched::Watched;
use super::{end, end_soon, leave, paths};
use crate::output::{fail, print, print_json, refuse};
use crate::place::Places;
use crate::runtime::{Interrupts, in_runtime};
use crate::{DONE, FAILED};

/// The arguments of `anabranch send`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The file to send
    file: PathBuf,
    #[command(flatten)]
    client: Client,
    /// Show state, bytes and share, rate and round-trip time of each path during the transfer; if standard error is
    /// not a terminal, print a line per second
    #[arg(long)]
    progress: bool,
    /// Show paths, windows and rates on the whole terminal during the transfer
    #[arg(long, conflicts_with = "progress")]
    watch: bool,
    /// Record what the core is told, for `anabranch replay`; the recording holds no user data
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    record: Option<PathBuf>,
    #[command(flatten)]
    traces: Traces,
    /// The length of the intervals in --json, in seconds or with a unit
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "1 s", value_parser = waiting, requires = "json")]
    interval: Duration,
}

const EXAMPLES: &str = "\
Examples:
  anabranch send video.mkv --to 192.0.2.1
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --progress
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --cmt --progress
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --cmt --watch
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --record transfer.jsonl  &&  anabranch replay transfer.jsonl --why
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --qlog transfer.sqlog --perfetto transfer.json
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --from 192.0.2.7,198.51.100.7 --retransmit alternate
  anabranch send video.mkv --to 192.0.2.1,198.51.100.1 --set path_max_retrans=2 --set pf_max_retrans=0 --json

Ctrl-C ends the association gracefully; a second Ctrl-C, or five seconds later, at once. Both print how much had arrived.
Nothing is encrypted.

Exit status: 0 the other end has the file and its hash is right, 2 the input was wrong, 130 interrupted, 143
ended by SIGTERM, 129 by SIGHUP, 1 anything else.";

/// The result of a transfer.
enum Outcome {
    Sent(SentFile),
    Failed(SendError),
    /// The message and the exit status.
    Interrupted(u8),
}

/// Sends the file and returns the exit status.
pub(crate) fn send(arguments: &Arguments) -> u8 {
    let size = match size(&arguments.file) {
        Ok(size) => size,
        Err(why) => return refuse(format!("{}: {why}", arguments.file.display())),
    };
    let record = arguments.record.as_ref();
    if let Err(status) =
        arguments.traces.check(Places::default().reads(&arguments.file).file("--record", record))
    {
        return status;
    }
    let recorded = match Recorded::begin(record, &arguments.traces, &arguments.client.transport, false) {
        Ok(recorded) => recorded,
        Err(status) => return status,
    };
    let tape = recorded.as_ref().map(Recorded::tape);
    in_runtime(async |interrupts: &mut Interrupts| {
        let begun = Instant::now();
        let status = match arguments.client.connect(tape, interrupts).await {
            Ok((endpoint, association)) => {
                transfer(arguments, size, &endpoint, &association, interrupts).await
            }
            Err(none) => unsent(arguments, size, begun.elapsed().as_secs_f64(), none),
        };
        Recorded::end(recorded, &arguments.traces, interrupts, status).await
    })
}

/// Bytes of a file that can be sent, or why it cannot.
fn size(file: &Path) -> Result<u64, String> {
    let metadata = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    if file.file_name().is_none_or(|name| name.to_str().is_none()) {
        return Err("its name is not UTF-8, so the other end cannot give it that name; rename it".to_owned());
    }
    // Whether it may be read.
    File::open(file).map_err(|error| error.to_string())?;
    Ok(metadata.len())
}

async fn transfer(
    arguments: &Arguments,
    size: u64,
    endpoint: &Endpoint,
    association: &Association,
    interrupts: &mut Interrupts,
) -> u8 {
    let begun = Instant::now();
    let mut live = match Shown::begin(arguments, size) {
        Ok(live) => live,
        Err(status) => {
            end(association, interrupts).await;
            leave(endpoint).await;
            return status;
        }
    };
    let bar = live.bar();
    let told = |given, _| bar.set_position(given);
    let mut intervals = Intervals::new(arguments.interval, begun);
    let mut changes = Changes::new(begun);
    let carried = || {
        let there = association.statistics().acknowledged;
        Carried { there, back: None, paths: association.paths() }
    };
    let outcome = tokio::select! {
        sent = send_file(association, &arguments.file, &told) => match sent {
            Ok(file) => Outcome::Sent(file),
            Err(error) => Outcome::Failed(error),
        },
        never = live.watch(association) => match never {},
        never = intervals.watch(carried, |_| {}) => match never {},
        never = changes.watch(association) => match never {},
        signal = interrupts.next() => Outcome::Interrupted(signal),
    };
    let seconds = begun.elapsed().as_secs_f64();
    intervals.close(&carried());
    // The view has to be gone before the end: while it reads the keys, a second Ctrl-C is no signal.
    live.finish();
    match &outcome {
        // What has not left yet would be sent for nothing.
        Outcome::Failed(SendError::Failure(Failure::Refused(_)) | SendError::Verdict { .. }) => {
            association.abort()
        }
        Outcome::Sent(_) => end(association, interrupts).await,
        Outcome::Failed(_) | Outcome::Interrupted(_) => end_soon(association, interrupts).await,
    }
    let told = TransferRecord { seconds, size, intervals: intervals.list, changes: changes.list };
    let status = report(arguments, &told, &End::of(arguments, outcome, size, endpoint, association));
    leave(endpoint).await;
    status
}

/// Reports a transfer for which there was no association; the exit status.
fn unsent(arguments: &Arguments, size: u64, seconds: f64, none: NoAssociation) -> u8 {
    let NoAssociation { status, problem: Some(problem), traffic } = none else { return none.status };
    if status == FAILED {
        fail(&problem);
        if !arguments.client.json {
            return status;
        }
    }
    let told = TransferRecord { seconds, size, intervals: Vec::new(), changes: Vec::new() };
    let end = End { status, problem: Some(problem), arrived: 0, sha256: None, paths: Vec::new(), traffic };
    report(arguments, &told, &end)
}

/// How a transfer is shown while it goes on.
enum Shown {
    Lines(Live),
    Screen(Watched),
}

impl Shown {
    /// A view of a transfer that has not begun, or the exit status if it cannot be shown.
    fn begin(arguments: &Arguments, size: u64) -> Result<Shown, u8> {
        match arguments.watch {
            true => Watched::begin(&arguments.file.display().to_string(), size).map(Shown::Screen),
            false => Ok(Shown::Lines(Live::new(Some(size), arguments.progress))),
        }
    }

    fn bar(&self) -> ProgressBar {
        match self {
            Shown::Lines(live) => live.bar(),
            Shown::Screen(_) => ProgressBar::hidden(),
        }
    }

    async fn watch(&mut self, association: &Association) -> Infallible {
        match self {
            Shown::Lines(live) => live.watch(association).await,
            Shown::Screen(watched) => watched.watch(association).await,
        }
    }

    fn finish(self) {
        if let Shown::Lines(live) = self {
            live.finish();
        }
    }
}

/// The records of a transfer.
struct TransferRecord {
    seconds: f64,
    /// Bytes of the file.
    size: u64,
    intervals: Vec<Value>,
    changes: Vec<Value>,
}

/// How a transfer ended.
struct End {
    status: u8,
    problem: Option<String>,
    /// Bytes of the file that the other end has acknowledged.
    arrived: u64,
    sha256: Option<String>,
    paths: Vec<PathReport>,
    traffic: Traffic,
}

impl End {
    fn of(
        arguments: &Arguments,
        outcome: Outcome,
        size: u64,
        endpoint: &Endpoint,
        association: &Association,
    ) -> End {
        let arrived = match &outcome {
            Outcome::Sent(_) => size,
            Outcome::Failed(SendError::Verdict { received, .. }) => *received,
            Outcome::Failed(SendError::Failure(Failure::Refused(_))) => 0,
            // The bytes acknowledged include the announcement of the file.
            _ => association
                .statistics()
                .acknowledged
                .saturating_sub(announcement(&arguments.file, size))
                .min(size),
        };
        let (status, problem, sha256) = match outcome {
            Outcome::Sent(file) => (DONE, None, Some(file.sha256)),
            Outcome::Failed(error) => (FAILED, Some(error.to_string()), None),
            Outcome::Interrupted(signal) => (signal, Some("interrupted".to_owned()), None),
        };
        let (paths, traffic) = (association.paths(), endpoint.traffic());
        End { status, problem, arrived, sha256, paths, traffic }
    }
}

fn report(arguments: &Arguments, told: &TransferRecord, end: &End) -> u8 {
    let TransferRecord { seconds, size, .. } = *told;
    let End { status, arrived, .. } = *end;
    let file = arguments.file.display();
    let rate = arrived as f64 * 8.0 / seconds.max(f64::MIN_POSITIVE);
    if arguments.client.json {
        let printed = print_json(&json!({
            "file": file.to_string(),
            "bytes": size,
            "arrived": arrived,
            "complete": end.problem.is_none(),
            "problem": end.problem,
            "seconds": seconds,
            "rate": rate,
            "sha256": end.sha256,
            "intervals": told.intervals,
            "events": told.changes,
            "paths": paths::json(&end.paths),
            "traffic": paths::traffic(&end.traffic),
        }));
        return if status == DONE { printed } else { status };
    }
    let table = paths::table(&end.paths);
    match &end.problem {
        None => print(&format!("{file}: {size} bytes in {seconds:.3} s, {:.2} Mbit/s\n{table}", rate / 1e6)),
        Some(problem) => {
            if !end.paths.is_empty() {
                print(&table);
            }
            fail(format!(
                "{file}: {problem}; {arrived} of {size} bytes had arrived, the other end keeps none"
            ));
            status
        }
    }
}
