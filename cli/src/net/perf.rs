//! `anabranch perf`: measures throughput and delay to and from a listener.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_net::service::{Failure, Measured, PerfDirections, PerfProgress, Plan, measure};
use anabranch_net::{Association, Endpoint};
use anabranch_sim::scenario::rate;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::live::Live;
use super::perf_report::{Run, report};
use super::record::{Carried, Changes, Intervals, trace};
use super::setup::{Client, NoAssociation, waiting};
use super::traced::{Recorded, Traces};
use super::{FAREWELL, leave, read_away};
use crate::FAILED;
use crate::output::{fail, note, print, refuse};
use crate::place::{Places, write_whole};
use crate::runtime::{Interrupts, in_runtime};

/// The arguments of `anabranch perf`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(super) client: Client,
    /// How long each direction sends
    #[arg(long, value_name = "S", allow_negative_numbers = true, default_value_t = 10.0)]
    pub(super) seconds: f64,
    /// The number of streams; messages use them in turn
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) streams: u16,
    /// Bytes per message; messages of at least 8 bytes carry their sending time, so that delays can be measured
    #[arg(long, value_name = "B", allow_negative_numbers = true, default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(super) message_size: u32,
    /// The rate of user data of each association in each direction, such as `10 Mbit/s` [default: unlimited]
    #[arg(long, value_name = "RATE", allow_hyphen_values = true, value_parser = offered)]
    pub(super) rate: Option<u64>,
    /// Measure only server→client
    #[arg(long)]
    reverse: bool,
    /// Measure both directions at once instead of one after the other
    #[arg(long, conflicts_with = "reverse")]
    both: bool,
    /// The number of parallel associations, each with its own UDP port
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub(super) parallel: u16,
    /// Print a line per interval, in seconds or with a unit; --json always includes the intervals
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = waiting)]
    interval: Option<Duration>,
    /// Write the measured rates of this end's sending (with --reverse, of the other end's) to this file as a trace,
    /// which a scenario reads: rate = { trace = "FILE" }. It has one row per interval (100 ms unless --interval is
    /// given)
    #[arg(long, value_name = "FILE", conflicts_with = "both")]
    record: Option<PathBuf>,
    /// Show state, bytes and share, rate and round-trip time of each path while this end sends (for the first
    /// association); if standard error is not a terminal, print a line per second
    #[arg(long)]
    progress: bool,
    #[command(flatten)]
    traces: Traces,
}

/// A rate that something can be sent at.
fn offered(text: &str) -> Result<u64, String> {
    match rate(text)? {
        0 => Err("nothing would be sent; leave out --rate for no limit".to_owned()),
        bits => Ok(bits),
    }
}

/// The interval of a recorded trace.
const RECORDED: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "\
Examples:
  anabranch serve &  anabranch perf --to 127.0.0.1
  anabranch perf --to 192.0.2.1,198.51.100.1 --seconds 5 --streams 4 --json
  anabranch perf --to 192.0.2.1 --both --rate '2 Mbit/s' --message-size 200 --interval 1
  anabranch perf --to 192.0.2.1 --reverse --parallel 4
  anabranch perf --to 192.0.2.1,198.51.100.1 --cmt --progress
  anabranch perf --to 192.0.2.1 --seconds 2 --qlog perf.sqlog --perfetto perf.json
  anabranch perf --to 192.0.2.1 --seconds 60 --record uplink.csv  &&  anabranch trace uplink.csv

The delay of a message is the time from handing it to the association until the other end reads it. The clocks of the two
hosts are compared first; the remaining error is printed. Jitter is the difference of successive delays and needs no clock.
With --cmt this end sends on all paths. The listener does so only if it was started with --cmt too.
CPU seconds are those of both processes per gigabyte of user data. Ctrl-C prints the results so far.

Exit status: 0 done, 2 the input was wrong, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP, 1 anything else.";

/// One association of a measurement.
pub(super) struct Stream {
    pub(super) endpoint: Endpoint,
    pub(super) association: Association,
    pub(super) tally: PerfProgress,
}

/// Measures and returns the exit status.
pub(crate) fn perf(arguments: &Arguments) -> u8 {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 3600.0) {
        return refuse("--seconds: more than 0 and at most 3600 seconds");
    }
    // Before anything is measured, so that no measurement is lost.
    let places = Places::default().file("--record", arguments.record.as_ref());
    if let Err(status) = arguments.traces.check(places) {
        return status;
    }
    if arguments.traces.asked() && arguments.parallel > 1 {
        return refuse("--qlog and --perfetto show one association: leave out --parallel");
    }
    let recorded = match Recorded::begin(None, &arguments.traces, &arguments.client.transport, false) {
        Ok(recorded) => recorded,
        Err(status) => return status,
    };
    in_runtime(async |interrupts: &mut Interrupts| {
        let status = match connect(arguments, &recorded, interrupts).await {
            Ok(streams) => run(arguments, &streams, interrupts).await,
            Err(status) => status,
        };
        Recorded::end(recorded, &arguments.traces, interrupts, status).await
    })
}

impl Arguments {
    fn plan(&self) -> Plan {
        let way = match self {
            _ if self.reverse => PerfDirections::Back,
            _ if self.both => PerfDirections::Both,
            _ => PerfDirections::ThereAndBack,
        };
        let Arguments { seconds, message_size, streams, rate, .. } = *self;
        Plan { seconds, message_size, streams, way, rate }
    }
}

/// The associations; the exit status, if one of them does not come up.
async fn connect(
    arguments: &Arguments,
    recorded: &Option<Recorded>,
    interrupts: &mut Interrupts,
) -> Result<Vec<Arc<Stream>>, u8> {
    let mut streams = Vec::new();
    for _ in 0..arguments.parallel {
        match arguments.client.connect(recorded.as_ref().map(Recorded::tape), interrupts).await {
            Ok((endpoint, association)) => {
                streams.push(Arc::new(Stream { endpoint, association, tally: PerfProgress::default() }));
            }
            Err(none) => {
                let status = unmeasured(arguments, &streams, none);
                // The listener would keep those that are up for minutes.
                end_all(&streams, Some(FAREWELL), interrupts).await;
                return Err(status);
            }
        }
    }
    Ok(streams)
}

/// Reports a measurement that did not begin; the exit status.
fn unmeasured(arguments: &Arguments, streams: &[Arc<Stream>], none: NoAssociation) -> u8 {
    let NoAssociation { status, problem: Some(problem), traffic } = none else { return none.status };
    match status {
        FAILED => drop(fail(&problem)),
        _ => note(format!("{problem}: nothing was measured")),
    }
    if arguments.client.json {
        let traffic = streams.first().map_or(traffic, |first| first.endpoint.traffic());
        let (intervals, changes) = (Vec::new(), Vec::new());
        report(arguments, &Run { streams, intervals, changes, problem: Some(problem), traffic });
    }
    status
}

/// Ends all associations at once: gracefully until the next signal, or for so long, then by an abort. Waits until the
/// last packets have left.
async fn end_all(streams: &[Arc<Stream>], within: Option<Duration>, interrupts: &mut Interrupts) {
    let mut ending = JoinSet::new();
    for stream in streams.iter().cloned() {
        ending.spawn(async move {
            tokio::select! {
                _ = stream.association.close() => {}
                never = read_away(&stream.association) => match never {},
            }
        });
    }
    let abort = || streams.iter().for_each(|stream| stream.association.abort());
    tokio::select! {
        () = async { while ending.join_next().await.is_some() {} } => {}
        _ = interrupts.next() => abort(),
        () = sleep(within.unwrap_or_default()), if within.is_some() => abort(),
    }
    for stream in streams {
        leave(&stream.endpoint).await;
    }
}

async fn run(arguments: &Arguments, streams: &[Arc<Stream>], interrupts: &mut Interrupts) -> u8 {
    let (plan, begun) = (arguments.plan(), Instant::now());
    let usual = if arguments.record.is_some() { RECORDED } else { Duration::from_secs(1) };
    let mut intervals = Intervals::new(arguments.interval.unwrap_or(usual), begun);
    let mut changes = Changes::new(begun);
    let mut live = Live::new(None, arguments.progress);
    let told = |line: &str| {
        if arguments.interval.is_some() && !arguments.client.json {
            print(line);
        }
    };
    let ended = tokio::select! {
        measured = measure_all(streams, plan) => measured.map_err(|error| (fail(&error), error.to_string())),
        never = intervals.watch(|| carried(streams), told) => match never {},
        never = changes.watch(&streams[0].association) => match never {},
        never = live.watch(&streams[0].association) => match never {},
        signal = interrupts.next() => {
            note("interrupted");
            Err((signal, "interrupted".to_owned()))
        }
    };
    live.finish();
    // The last interval is shorter.
    let tiny = intervals.is_tiny();
    let line = intervals.close(&carried(streams));
    if !tiny {
        told(&line);
    }
    let way = usize::from(arguments.reverse);
    let first = streams.iter().filter_map(|stream| stream.tally.begun()[way]).min();
    let sent_since = first.map(|first| first.duration_since(begun).as_secs_f64());
    let trace = sent_since.map(|since| trace(&intervals.list, arguments.reverse, since, arguments.seconds));
    let problem = ended.as_ref().err().map(|(_, problem)| problem.clone());
    let traffic = streams[0].endpoint.traffic();
    let run = Run { streams, intervals: intervals.list, changes: changes.list, problem, traffic };
    let printed = report(arguments, &run);
    end_all(streams, ended.is_err().then_some(FAREWELL), interrupts).await;
    if let (Some(file), Some(trace)) = (&arguments.record, trace)
        && let Err(error) = write_whole(file, trace)
    {
        return fail(format!("{}: {error}", file.display()));
    }
    match ended {
        Ok(()) => printed,
        Err((status, _)) => status,
    }
}

/// Measures with all associations at once. The results are in their tallies.
async fn measure_all(streams: &[Arc<Stream>], plan: Plan) -> Result<(), Failure> {
    let mut all: JoinSet<Result<Measured, Failure>> = JoinSet::new();
    for stream in streams.iter().cloned() {
        all.spawn(async move { measure(&stream.association, &plan, &stream.tally).await });
    }
    while let Some(measured) = all.join_next().await {
        measured.unwrap_or(Err(Failure::Stopped))?;
    }
    Ok(())
}

fn carried(streams: &[Arc<Stream>]) -> Carried {
    let acknowledged = |stream: &Arc<Stream>| stream.association.statistics().acknowledged;
    Carried {
        there: streams.iter().map(acknowledged).sum(),
        back: Some(streams.iter().map(|stream| stream.tally.received()).sum()),
        paths: streams[0].association.paths(),
    }
}
