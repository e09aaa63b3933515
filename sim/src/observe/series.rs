//! Series as CSV files, written while the run goes on. `columns.rs` lists the files (docs/results.md).
//!
//! A file exists only if there is a row for it. Times are virtual seconds from the beginning of the run with nine
//! decimals, and sizes are bytes. SCTP counts in TSNs, TCP in bytes. Characters that are unsuitable for file names
//! become `_`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anabranch_proto::policy::Why;
use anabranch_proto::{Blocked, Duration, Time};

use super::columns::{
    ACKED, BLOCKED, DROPS, HELD, MARKED, PEER_WINDOW, QUEUE, REORDERING, RTO, SENT, Series, TCP_ACKED,
    TCP_MARKED, TCP_SENT, TCP_WINDOWS, THROUGHPUT, WINDOWS,
};
use super::held::{Change, HeldData};
use crate::observe::trace::{Detail, DropCause, Names, Observer, Record, Side};

/// Writes the series of one run into a directory.
#[derive(Debug)]
pub struct CsvSeries {
    directory: PathBuf,
    /// By flow, then by link direction: the beginnings of their file names.
    flows: Vec<String>,
    links: Vec<String>,
    /// By flow: whether it is TCP, over one path or several.
    tcp: Vec<bool>,
    /// By flow: the bytes that its receiving application has read.
    reading: Vec<Reading>,
    /// By flow: the chunks that its receiver holds.
    held: Vec<HeldData>,
    /// The open files, by owner (flows, then links) and name of the series.
    files: BTreeMap<(usize, &'static str), BufWriter<File>>,
    /// The first error. Nothing is written after it.
    failed: Option<io::Error>,
}

impl CsvSeries {
    /// Writes into `directory`, which is created if necessary. Files with the same names are replaced.
    pub fn new(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Ok(CsvSeries {
            directory: directory.to_owned(),
            flows: Vec::new(),
            links: Vec::new(),
            tcp: Vec::new(),
            reading: Vec::new(),
            held: Vec::new(),
            files: BTreeMap::new(),
            failed: None,
        })
    }

    /// Writes the remaining rows. Reports whether anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        for flow in 0..self.reading.len() {
            self.close_interval(flow);
        }
        match self.failed {
            Some(error) => Err(error),
            None => self.files.values_mut().try_for_each(|file| file.flush()),
        }
    }

    fn detail(&mut self, at: Time, flow: usize, path: &str, detail: &Detail) {
        let (at, tcp) = (Seconds(at.as_nanos()), self.tcp.get(flow) == Some(&true));
        match detail {
            Detail::Window { cwnd, ssthresh, flight, marked, segments } => {
                let ssthresh = Known((*ssthresh != u64::MAX).then_some(ssthresh));
                let row = format_args!("{at},{path},{cwnd},{ssthresh},{flight},{marked}");
                match segments {
                    None => self.row(flow, &WINDOWS, row),
                    Some(segments) => self.row(flow, &TCP_WINDOWS, format_args!("{row},{segments}")),
                }
            }
            Detail::Rto { rto, srtt } => {
                let (rto, srtt) = (Seconds::from(*rto), Known(srtt.map(Seconds::from)));
                self.row(flow, &RTO, format_args!("{at},{path},{rto},{srtt}"));
            }
            Detail::PeerWindow { bytes } => self.row(flow, &PEER_WINDOW, format_args!("{at},{bytes}")),
            Detail::Sent { number, size, why } => {
                self.row(
                    flow,
                    if tcp { &TCP_SENT } else { &SENT },
                    format_args!("{at},{path},{number},{size},{}", reason(*why)),
                );
            }
            Detail::Marked { number, why } => {
                self.row(
                    flow,
                    if tcp { &TCP_MARKED } else { &MARKED },
                    format_args!("{at},{path},{number},{}", reason(*why)),
                );
            }
            Detail::Acked { cumulative } => {
                self.row(flow, if tcp { &TCP_ACKED } else { &ACKED }, format_args!("{at},{cumulative}"));
            }
            Detail::Blocked(by) => self.row(flow, &BLOCKED, format_args!("{at},{},{path}", cause(*by))),
            Detail::Route { .. }
            | Detail::Timeout
            | Detail::Timer { .. }
            | Detail::Received { .. }
            | Detail::State(_) => {}
        }
    }

    /// A chunk of `size` bytes arrived on `path`.
    fn received(&mut self, at: Time, flow: usize, path: &str, (tsn, size, cumulative): (u64, u32, u64)) {
        let at = Seconds(at.as_nanos());
        let Change { depth, held } = self.held[flow].received(path, tsn, size, cumulative);
        if depth > 0 {
            self.row(flow, &REORDERING, format_args!("{at},{path},{tsn},{depth}"));
        }
        for (path, bytes) in held {
            self.row(flow, &HELD, format_args!("{at},{path},{bytes}"));
        }
    }

    /// The application of a flow has read this many bytes in total. Writes the rows of complete intervals.
    fn read(&mut self, at: Time, flow: usize, bytes: u64) {
        let now = at.as_nanos() / INTERVAL;
        let Some(reading) = self.reading.get(flow).copied() else { return };
        if now > reading.interval {
            self.close_interval(flow);
            // In between, nothing was read.
            for empty in (reading.interval + 1)..now {
                self.throughput(flow, empty, 0);
            }
            self.reading[flow] = Reading { interval: now, before: reading.bytes, bytes };
        } else {
            self.reading[flow].bytes = bytes;
        }
    }

    fn close_interval(&mut self, flow: usize) {
        let Reading { interval, before, bytes } = self.reading[flow];
        if bytes > 0 {
            self.throughput(flow, interval, bytes - before);
        }
    }

    fn throughput(&mut self, flow: usize, interval: u64, bytes: u64) {
        let (end, rate) = (Seconds((interval + 1) * INTERVAL), bytes * 8 * (1_000_000_000 / INTERVAL));
        self.row(flow, &THROUGHPUT, format_args!("{end},{rate}"));
    }

    fn row(&mut self, owner: usize, series: &Series, row: fmt::Arguments<'_>) {
        if self.failed.is_some() {
            return;
        }
        self.failed = self.file(owner, series).and_then(|file| writeln!(file, "{row}")).err();
    }

    /// The file of a series; it begins with the names of its columns.
    fn file(&mut self, owner: usize, series: &Series) -> io::Result<&mut BufWriter<File>> {
        use std::collections::btree_map::Entry;
        match self.files.entry((owner, series.name)) {
            Entry::Occupied(file) => Ok(file.into_mut()),
            Entry::Vacant(place) => {
                let name = self.flows.iter().chain(&self.links).nth(owner).map_or("unknown", String::as_str);
                let mut file =
                    BufWriter::new(File::create(self.directory.join(format!("{name}.{}.csv", series.name)))?);
                let columns: Vec<&str> = series.columns.iter().map(|(column, _)| *column).collect();
                writeln!(file, "{}", columns.join(","))?;
                Ok(place.insert(file))
            }
        }
    }
}

/// The bytes read in an interval of [`INTERVAL`]; intervals are numbered from 0.
#[derive(Copy, Clone, Default, Debug)]
struct Reading {
    interval: u64,
    /// Bytes before the interval, and bytes so far.
    before: u64,
    bytes: u64,
}

/// The length of an interval of the throughput, in nanoseconds.
const INTERVAL: u64 = 100_000_000;

impl Observer for CsvSeries {
    fn begin(&mut self, names: &Names) {
        let mut taken = BTreeSet::new();
        self.tcp = names.protocols.iter().map(|protocol| matches!(*protocol, "tcp" | "mptcp")).collect();
        self.reading = vec![Reading::default(); names.flows.len()];
        self.held = names.flows.iter().map(|_| HeldData::default()).collect();
        self.flows = names.flows.iter().map(|name| file_name(name, &mut taken)).collect();
        let links = names
            .links
            .iter()
            .chain(&names.hops)
            .map(|(name, direction)| format!("{name}.{}", direction.replace('>', "-")));
        self.links = links.map(|name| file_name(&name, &mut taken)).collect();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let link_owner = |link: usize| self.flows.len() + link;
        match record {
            Record::Detail { flow, side: Side::Client, path, detail } => {
                self.detail(at, *flow, path.unwrap_or(""), detail)
            }
            Record::Detail { flow, side: Side::Server, path, detail } => {
                if let Detail::Received { number, size, cumulative } = detail {
                    self.received(at, *flow, path.unwrap_or(""), (*number, *size, *cumulative));
                }
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                let (owner, at) = (link_owner(*link), Seconds(at.as_nanos()));
                self.row(owner, &QUEUE, format_args!("{at},{},{}", queue.packets, queue.bytes));
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                let (owner, at) = (link_owner(*link), Seconds(at.as_nanos()));
                let cause = match cause {
                    DropCause::Queue => "queue",
                    DropCause::Loss => "loss",
                    DropCause::Down => "down",
                    DropCause::Rts => "rts",
                    DropCause::Data => "data",
                    DropCause::Size => "size",
                };
                let tsns = packet.tsns().map(|tsn| tsn.0.to_string()).collect::<Vec<_>>().join(" ");
                let flow = self.flows.get(*flow).cloned().unwrap_or_default();
                self.row(owner, &DROPS, format_args!("{at},{number},{flow},{cause},{tsns}"));
            }
            Record::Read { flow, bytes } => self.read(at, *flow, *bytes),
            Record::Sent { .. } | Record::Started { .. } | Record::Air { .. } | Record::Delivered { .. } => {}
        }
    }
}

/// A name that is a safe file name and differs from all others.
fn file_name(name: &str, taken: &mut BTreeSet<String>) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let fitting: String = name.chars().map(fit).collect();
    let fitting = fitting.trim_start_matches('.').to_owned();
    let numbered = (2..).map(|n| format!("{fitting}~{n}"));
    let free = std::iter::once(fitting.clone()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.expect("numbers do not end");
    taken.insert(name.clone());
    name
}

fn reason(why: Why) -> &'static str {
    match why {
        Why::New => "new",
        Why::Missing => "missing",
        Why::Timeout => "timeout",
        Why::WindowProbe => "window-probe",
        Why::TailProbe => "tail-probe",
        Why::Reinjected => "reinjected",
    }
}

fn cause(by: Option<Blocked>) -> &'static str {
    match by {
        None => "",
        Some(Blocked::PeerWindow) => "peer_window",
        Some(Blocked::SendBuffer) => "send_buffer",
        Some(Blocked::Window) => "cwnd",
        Some(Blocked::Turn) => "turn",
    }
}

/// Nanoseconds, shown as seconds with nine decimals.
struct Seconds(u64);

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Self {
        Seconds(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

/// Empty if there is no value.
struct Known<T>(Option<T>);

impl<T: Display> Display for Known<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |value| value.fmt(f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_nine_decimals() {
        assert_eq!(Seconds(5_000_000_001).to_string(), "5.000000001");
        assert_eq!(Known(None::<u64>).to_string(), "");
    }

    #[test]
    fn file_names_are_safe_and_distinct() {
        let mut taken = BTreeSet::new();
        let names = ["a b", "a/b", "../x", "wifi.s-r"].map(|name| file_name(name, &mut taken));
        assert_eq!(names, ["a_b", "a_b~2", "_x", "wifi.s-r"]);
    }
}
