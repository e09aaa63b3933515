//! Recorded rates: `rate = { trace = "lte.up" }`.
//!
//! A trace is either a list of delivery opportunities, as Mahimahi records them, or samples of rate, delay and loss
//! over time. Both repeat when they end.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_proto::Time;

use super::at::{At, Result};
use super::error::ScenarioError;
use super::file::text_of;
use crate::medium::wire::{Traced, carried, segment_count};

/// Bytes of IP packets that one delivery opportunity carries: a packet of 1500 bytes, as in Mahimahi.
pub const OPPORTUNITY: u32 = 1500;

/// The largest size of a trace file.
const LARGEST_FILE: u64 = 256 << 20;

/// The most spans of one rate that a trace has. A span takes 48 bytes.
const MOST_STEPS: u64 = 10_000_000;

const TOO_LONG: &str =
    "the trace has more than 10,000,000 steps: linear interpolation makes one of every 10 ms";
const TOO_SLOW: &str = "the rates are so low that the whole trace carries less than one bit";

/// A bit, as [`carried`] counts it.
const BIT: u128 = 1_000_000_000;

/// The rate of one link direction, as recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct TracedRate {
    /// The recording.
    pub trace: Arc<Trace>,
    /// The time in the trace at which the run begins.
    pub offset: Offset,
}

/// The time in a trace at which a run begins.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Offset {
    /// This time.
    Fixed(Duration),
    /// Uniform within the trace, drawn from the run's seed.
    Random,
}

/// A recording of a link direction. It repeats when it ends.
#[derive(Clone, PartialEq, Debug)]
pub enum Trace {
    /// Times in milliseconds, ascending, at each of which the link delivers [`OPPORTUNITY`] bytes. The last time is the
    /// period.
    Opportunities(Vec<u32>),
    /// Samples in order of time. The time of the last sample is the period.
    Samples {
        /// The samples; the first is at time zero.
        rows: Vec<Sample>,
        /// How values change from one sample to the next.
        interpolation: Interpolation,
    },
}

/// One row of a recorded link.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sample {
    /// The time since the beginning of the trace.
    pub time: Duration,
    /// Bit/s.
    pub rate: u64,
    /// Propagation delay; `None`: the link's own.
    pub delay: Option<Duration>,
    /// The probability that a packet is lost; `None`: the link's own loss.
    pub loss: Option<f64>,
}

/// How values change from one sample to the next.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Interpolation {
    /// Each value holds until the next sample.
    Step,
    /// Values change linearly, in steps of 10 ms.
    Linear,
}

/// A fault in a trace, and its line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}{message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct BadTrace {
    /// Counted from 1; `None`: the fault is one of the whole trace.
    pub line: Option<usize>,
    /// The error.
    pub message: &'static str,
}

fn bad<T>(line: usize, message: &'static str) -> std::result::Result<T, BadTrace> {
    Err(BadTrace { line: Some(line), message })
}

fn bad_as_a_whole<T>(message: &'static str) -> std::result::Result<T, BadTrace> {
    Err(BadTrace { line: None, message })
}

impl Trace {
    /// Parses the text of a trace: samples if its first line, comments apart, has commas or begins with `time`,
    /// otherwise opportunities.
    pub fn parse(text: &str) -> std::result::Result<Trace, BadTrace> {
        Trace::read(text)?.judge()
    }

    /// As `parse`, before it is known whether the trace can be used.
    fn read(text: &str) -> std::result::Result<Trace, BadTrace> {
        let columns = |line: &str| line.contains(',') || line.trim_start().starts_with("time");
        let first = rows(text).next();
        if first.is_some_and(|(_, line)| columns(line)) { samples(text) } else { opportunities(text) }
    }

    /// The same trace with another interpolation. Opportunities have none.
    #[must_use]
    pub fn interpolated(self, interpolation: Interpolation) -> Trace {
        match self {
            Trace::Samples { rows, .. } => Trace::Samples { rows, interpolation },
            opportunities => opportunities,
        }
    }

    /// The period after which it repeats.
    pub fn period(&self) -> Duration {
        match self {
            Trace::Opportunities(times) => {
                Duration::from_millis(times.last().copied().unwrap_or_default().into())
            }
            Trace::Samples { rows, .. } => rows.last().map_or(Duration::ZERO, |row| row.time),
        }
    }

    /// The mean rate over a period, bit/s; at least 1.
    pub fn mean_rate(&self) -> u64 {
        let bits = match self {
            Trace::Opportunities(times) => times.len() as f64 * f64::from(OPPORTUNITY) * 8.0,
            Trace::Samples { rows, interpolation } => rows
                .windows(2)
                .map(|pair| {
                    let end = match interpolation {
                        Interpolation::Step => pair[0].rate,
                        Interpolation::Linear => pair[1].rate,
                    };
                    (pair[0].rate as f64 + end as f64) / 2.0 * (pair[1].time - pair[0].time).as_secs_f64()
                })
                .sum(),
        };
        ((bits / self.period().as_secs_f64()) as u64).max(1)
    }

    /// The mean rate in each window of this length, bit/s; the last window may be shorter.
    pub fn rates(&self, window: Duration) -> Vec<f64> {
        let (window, period) = (window.as_nanos().max(1) as u64, self.period().as_nanos() as u64);
        let traced = Traced::new(&Arc::new(self.clone()), Duration::ZERO);
        let at = |nanos: u64| Time::from_nanos(nanos.min(period));
        (0..period.div_ceil(window)).map(|i| traced.mean_rate(at(i * window), at((i + 1) * window))).collect()
    }

    /// The times without delivery that last at least so long: beginning and end of each.
    pub fn outages(&self, least: Duration) -> Vec<[Duration; 2]> {
        let quiet: Vec<[Duration; 2]> = match self {
            Trace::Opportunities(times) => {
                let starts = std::iter::once(0).chain(times.iter().copied());
                let ends = starts.zip(times).map(|(from, until)| [from, *until]);
                ends.map(|ends| ends.map(|at| Duration::from_millis(at.into()))).collect()
            }
            Trace::Samples { rows, .. } => {
                let silent = rows.windows(2).filter(|pair| pair[0].rate == 0);
                silent.map(|pair| [pair[0].time, pair[1].time]).fold(Vec::new(), joined)
            }
        };
        quiet.into_iter().filter(|[from, until]| *until - *from >= least).collect()
    }

    /// Whether it has a column of losses.
    pub fn has_loss(&self) -> bool {
        matches!(self, Trace::Samples { rows, .. } if rows.iter().any(|row| row.loss.is_some()))
    }

    /// Whether it has a column of delays.
    pub fn has_delay(&self) -> bool {
        matches!(self, Trace::Samples { rows, .. } if rows.iter().any(|row| row.delay.is_some()))
    }

    /// Why a trace cannot be used with its interpolation, if so.
    fn judge(self) -> std::result::Result<Trace, BadTrace> {
        match &self {
            Trace::Opportunities(times) if times.is_empty() => {
                let message =
                    "the trace has no delivery opportunity: each line is the time of one in milliseconds";
                bad_as_a_whole(message)
            }
            Trace::Samples { rows, .. } if rows.len() < 2 => {
                bad_as_a_whole("a trace has two samples at least: the last one ends it")
            }
            _ if self.period() == Duration::ZERO => bad_as_a_whole("the trace ends at time zero"),
            Trace::Samples { rows, interpolation } => match judge_samples(rows, *interpolation) {
                Some(message) => bad_as_a_whole(message),
                None => Ok(self),
            },
            Trace::Opportunities(_) => Ok(self),
        }
    }
}

/// Why two or more samples cannot be used, if so.
fn judge_samples(rows: &[Sample], interpolation: Interpolation) -> Option<&'static str> {
    let of_use = rows.len() - usize::from(interpolation == Interpolation::Step);
    match () {
        _ if rows[..of_use].iter().all(|row| row.rate == 0) => Some("the rate is never above zero"),
        _ if segment_count(rows, interpolation) > MOST_STEPS => Some(TOO_LONG),
        _ if carried(rows, interpolation) < BIT => Some(TOO_SLOW),
        _ => None,
    }
}

/// Adds an interval, merged with the previous one if that ends where it begins.
fn joined(mut stretches: Vec<[Duration; 2]>, next: [Duration; 2]) -> Vec<[Duration; 2]> {
    match stretches.last_mut() {
        Some(last) if last[1] == next[0] => last[1] = next[1],
        _ => stretches.push(next),
    }
    stretches
}

/// The lines of a trace that are no comments, with their numbers. A reader of CSV passes over the same ones, but does
/// not count them.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

fn opportunities(text: &str) -> std::result::Result<Trace, BadTrace> {
    let mut times: Vec<u32> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Ok(time) = line.parse() else {
            return bad(number, "this is not a time in whole milliseconds");
        };
        if times.last().is_some_and(|before| *before > time) {
            return bad(number, "times must not go back: sort the lines by time");
        }
        times.push(time);
    }
    Ok(Trace::Opportunities(times))
}

/// `time,rate,delay,loss`: seconds, bit/s, seconds, a fraction; the last two may be left out.
fn samples(text: &str) -> std::result::Result<Trace, BadTrace> {
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(text.as_bytes());
    let columns: Vec<String> =
        reader.headers().map(|row| row.iter().map(str::to_owned).collect()).unwrap_or_default();
    let mut lines = self::rows(text).map(|(line, _)| line);
    let header = lines.next().unwrap_or(1);
    if columns.iter().take(2).ne(["time", "rate"])
        || columns.iter().skip(2).any(|name| name != "delay" && name != "loss")
    {
        return bad(header, "the columns are time, rate and perhaps delay, loss");
    }
    let place = |name| columns.iter().position(|column| column == name);
    let (delay, loss) = (place("delay"), place("loss"));
    let mut rows: Vec<Sample> = Vec::new();
    for record in reader.records() {
        let line = lines.next().unwrap_or(header);
        let Ok(record) = record else {
            return bad(line, "this line has not as many values as columns");
        };
        let value = |column: usize| record.get(column).and_then(|text| text.parse::<f64>().ok());
        let row = sample(line, value(0), value(1), delay.map(value), loss.map(value))?;
        match rows.last() {
            None if row.time != Duration::ZERO => return bad(line, "the first sample is not at time zero"),
            Some(before) if before.time >= row.time => return bad(line, "times must ascend"),
            _ => rows.push(row),
        }
    }
    Ok(Trace::Samples { rows, interpolation: Interpolation::Step })
}

/// One row. A missing column is `None`; a value that is not a number is `Some(None)`.
fn sample(
    line: usize,
    time: Option<f64>,
    rate: Option<f64>,
    delay: Option<Option<f64>>,
    loss: Option<Option<f64>>,
) -> std::result::Result<Sample, BadTrace> {
    let seconds = |value: Option<f64>| {
        value.filter(|seconds| (0.0..=1e9).contains(seconds)).map(|seconds| {
            // Computed in nanoseconds, so that decimal fractions of a second are exact.
            Duration::from_nanos(libm::round(seconds * 1e9) as u64)
        })
    };
    let Some(time) = seconds(time) else { return bad(line, "`time` is not a number of seconds") };
    let Some(rate) = rate.filter(|rate| (0.0..=1e15).contains(rate)) else {
        return bad(line, "`rate` is not a number of bit/s");
    };
    let delay = match delay {
        None => None,
        Some(value) => match seconds(value).filter(|delay| *delay <= Duration::from_secs(3600)) {
            None => return bad(line, "`delay` is not a number of seconds up to 3600"),
            delay => delay,
        },
    };
    let loss = match loss {
        None => None,
        Some(Some(loss)) if (0.0..=1.0).contains(&loss) => Some(loss),
        Some(_) => return bad(line, "`loss` is not a fraction from 0 to 1"),
    };
    Ok(Sample { time, rate: rate as u64, delay, loss })
}

const FORMS: &str = "write \"10 Mbit/s\", { trace = \"lte.up\" } or { trace = \"walk.csv\", interpolation = \"linear\", offset = \"random\" }";

/// A rate, or a trace and its mean rate.
pub(super) fn rate(at: &At<'_>) -> Result<(u64, Option<TracedRate>)> {
    let Ok(entries) = at.entries() else { return Ok((at.link_rate()?, None)) };
    const KEYS: [&str; 5] = ["trace", "opportunities", "samples", "interpolation", "offset"];
    if let Some(entry) = entries.iter().find(|entry| !KEYS.contains(&entry.key.as_str())) {
        return Err(at.no_such_key(entry).hint(FORMS));
    }
    let (trace, source) = match (at.get("trace"), at.get("opportunities"), at.get("samples")) {
        (Some(file), None, None) => (load(&file)?, file),
        (None, Some(times), None) => (listed(&times)?, times),
        (None, None, Some(rows)) => (tabled(&rows)?, rows),
        _ => return Err(at.error("a recorded rate is one trace").hint(FORMS)),
    };
    let interpolation = match at.get("interpolation") {
        None => Interpolation::Step,
        Some(found) if matches!(trace, Trace::Opportunities(_)) => {
            return Err(found.error("delivery opportunities are not interpolated").hint("leave it out"));
        }
        Some(found) => match found.one_of("interpolation", &["step", "linear"])? {
            "linear" => Interpolation::Linear,
            _ => Interpolation::Step,
        },
    };
    let trace = trace.interpolated(interpolation).judge().map_err(|bad| match source.string() {
        Ok(file) => at_fault(&source, &beside(&source, file), &bad),
        Err(_) => source.error(bad.message),
    })?;
    let offset = match at.get("offset") {
        None => Offset::Fixed(Duration::ZERO),
        Some(found) if found.string() == Ok("random") => Offset::Random,
        Some(found) => Offset::Fixed(found.duration()?),
    };
    Ok((trace.mean_rate(), Some(TracedRate { trace: Arc::new(trace), offset })))
}

/// The path of a file, relative to the file of the scenario.
fn beside(at: &At<'_>, name: &str) -> PathBuf {
    Path::new(at.file()).parent().unwrap_or_else(|| Path::new("")).join(name)
}

/// The trace in a file cannot be used.
fn at_fault(at: &At<'_>, path: &Path, bad: &BadTrace) -> ScenarioError {
    let hint = match bad.message {
        TOO_LONG => "let it be shorter, or leave out `interpolation`",
        TOO_SLOW => "rates are in bit/s: 10000000 is 10 Mbit/s",
        _ => "a trace has one time in milliseconds per line, or the columns time,rate,delay,loss",
    };
    let separator = if bad.line.is_some() { ", " } else { ": " };
    at.error(format!("{}{separator}{bad}", path.display())).hint(hint)
}

/// The trace in a file.
fn load(at: &At<'_>) -> Result<Trace> {
    let path = beside(at, at.string()?);
    let unreadable = |why: String| {
        at.error(format!("cannot read the trace {}: {why}", path.display()))
            .hint("the path is relative to the scenario: trace = \"traces/lte.up\"")
    };
    let size = std::fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.len();
    if size > LARGEST_FILE {
        return Err(unreadable(format!("it has {size} bytes, at most {LARGEST_FILE} are read")));
    }
    // Not every file says how large it is.
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(LARGEST_FILE).read_to_end(&mut bytes));
    read.map_err(|error| unreadable(error.to_string()))?;
    let text = text_of(bytes).map_err(|error| unreadable(error.to_string()))?;
    Trace::read(&text).map_err(|bad| at_fault(at, &path, &bad))
}

fn listed(at: &At<'_>) -> Result<Trace> {
    let times = at.array("an array of times in milliseconds")?;
    let times: Vec<u32> = times.iter().map(|time| time.count(0..=u32::MAX)).collect::<Result<_>>()?;
    if !times.is_sorted() {
        return Err(at.error("times must not go back"));
    }
    Ok(Trace::Opportunities(times))
}

/// `[["0 s", "10 Mbit/s", "20 ms", "1 %"], …]`. Delay and loss may be "link": the link's own value.
fn tabled(at: &At<'_>) -> Result<Trace> {
    let row = |at: &At<'_>| {
        let own = |at: &At<'_>| at.string() == Ok("link");
        match at.array("an array of time, rate, delay and loss")?.as_slice() {
            [time, rate, delay, loss] => Ok(Sample {
                time: time.duration()?,
                rate: rate.rate_or_zero()?,
                delay: if own(delay) { None } else { Some(delay.duration()?) },
                loss: if own(loss) { None } else { Some(loss.probability()?) },
            }),
            _ => Err(at
                .error("a sample is time, rate, delay and loss")
                .hint("\"link\" for the link's own delay or loss")),
        }
    };
    let rows: Vec<Sample> = at.array("an array of samples")?.iter().map(row).collect::<Result<_>>()?;
    let ascend = rows.is_sorted_by(|a, b| a.time < b.time);
    if !ascend || rows.first().is_some_and(|first| first.time != Duration::ZERO) {
        return Err(at.error("times must ascend from zero"));
    }
    Ok(Trace::Samples { rows, interpolation: Interpolation::Step })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_are_times_that_never_go_back() {
        assert_eq!(Trace::parse("0\n5\n5\n10\n"), Ok(Trace::Opportunities(vec![0, 5, 5, 10])));
        let error = |text| Trace::parse(text).unwrap_err();
        assert_eq!(
            error("5\n4\n"),
            BadTrace { line: Some(2), message: "times must not go back: sort the lines by time" }
        );
        assert!(error("").message.starts_with("the trace has no delivery opportunity: "));
        assert_eq!(error("0\n").message, "the trace ends at time zero");
        assert_eq!(error("1\nx\n").line, Some(2));
    }

    #[test]
    fn samples_have_named_columns() {
        let read = Trace::parse("time,rate,loss\n0,1e6,0\n1.5,2e6,0.01\n3,0,0\n").unwrap();
        let Trace::Samples { rows, .. } = &read else { panic!("{read:?}") };
        assert_eq!(rows[1].time, Duration::from_millis(1500));
        assert_eq!((rows[1].rate, rows[1].delay, rows[1].loss), (2_000_000, None, Some(0.01)));
        assert_eq!(read.mean_rate(), 1_500_000);
        assert_eq!(read.interpolated(Interpolation::Linear).mean_rate(), 1_250_000);
        let error = |text| Trace::parse(text).unwrap_err();
        assert_eq!(error("time,rate\n0,1\n0,1\n"), BadTrace { line: Some(3), message: "times must ascend" });
        for text in ["time,speed\n0,1\n", "rate,time\n1,0\n", "0,1\n1,1\n"] {
            let message = "the columns are time, rate and perhaps delay, loss";
            assert_eq!(error(text), BadTrace { line: Some(1), message });
        }
        assert_eq!(error("time,rate\n0,-1\n").message, "`rate` is not a number of bit/s");
        assert_eq!(error("time,rate\n0,0\n1,5\n").message, "the rate is never above zero");
    }

    /// Comments and empty lines count, and may come before the header.
    #[test]
    fn a_fault_is_at_its_line() {
        let error = |text| Trace::parse(text).unwrap_err();
        for (text, line) in [
            ("# cell\n\ntime,rate\n0,1\n# a gap\n\n1,x\n", Some(7)),
            ("# cell\ntime,rate\n0,1\n# a gap\n1\n", Some(5)),
            ("# cell\ntime,rate\n0,1\n# a gap\n0,1\n", Some(5)),
            ("# cell\ntime,speed\n0,1\n", Some(2)),
            ("# cell\n5\n# back\n4\n", Some(4)),
            ("# cell\ntime,rate\n0,0\n1,0\n", None),
        ] {
            let bad = error(text);
            assert_eq!(bad.line, line, "{text:?}: {bad}");
            assert_eq!(bad.to_string().starts_with("line "), line.is_some(), "{bad}");
        }
        assert!(Trace::parse("# cell\n\ntime,rate\n0,1\n# a gap\n1,0\n").is_ok());
    }

    #[test]
    fn the_highest_rate_has_a_mean() {
        let row =
            |seconds| Sample { time: Duration::from_secs(seconds), rate: u64::MAX, delay: None, loss: None };
        let rows = vec![row(0), row(1)];
        let trace = Trace::Samples { rows, interpolation: Interpolation::Step };
        assert_eq!(trace.mean_rate(), u64::MAX);
    }

    #[test]
    fn samples_are_judged_with_their_interpolation() {
        let judged = |text: &str, interpolation| {
            let trace = Trace::read(text).unwrap().interpolated(interpolation);
            trace.judge().map(|trace| trace.mean_rate()).map_err(|bad| bad.message)
        };
        let (step, linear) = (Interpolation::Step, Interpolation::Linear);
        assert_eq!(judged("time,rate\n0,0\n10,1000000\n", linear), Ok(500_000));
        assert_eq!(judged("time,rate\n0,0\n10,1000000\n", step), Err("the rate is never above zero"));
        assert_eq!(judged("time,rate\n0,0\n10,0\n", linear), Err("the rate is never above zero"));
        let low = Err(TOO_SLOW);
        assert_eq!(
            judged("time,rate\n0,1\n10,0\n", linear),
            low,
            "between the samples, rates are rounded down"
        );
        assert_eq!(judged("time,rate\n0,1\n10,0\n", step), Ok(1));
        assert_eq!(judged("time,rate\n0,0\n1e-9,1\n2e-9,0\n", step), low);
        let long = "time,rate\n0,1000000\n100000.001,1000000\n";
        assert_eq!(judged(long, step), Ok(1_000_000));
        assert!(
            judged(long, linear)
                .is_err_and(|message| message.starts_with("the trace has more than 10,000,000"))
        );
    }

    #[test]
    fn the_mean_of_opportunities_is_their_bytes_over_the_period() {
        assert_eq!(Trace::Opportunities(vec![1, 2, 3, 4]).mean_rate(), 12_000_000);
    }
}
