//! Series as CSV files, written while the run goes on. `columns.rs` lists the files (docs/results.md).
//!
//! A file exists only if there is a row for it. Times are virtual seconds from the beginning of the run with nine
//! decimals, and sizes are bytes. SCTP counts in TSNs, TCP in bytes. Characters that are unsuitable for file names
//! become `_`.

use std::collections::BTreeSet;
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
use crate::observe::trace::{
    Detail, DropCause, Names, Observer, QueueLength, QueueRecord, Record, Side, Wants,
};
use Cell::{Fraction, Nothing, Number, Seconds, Text};

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
    /// The open files with the names of their series, by owner: flows, then links.
    files: Vec<Vec<(&'static str, BufWriter<File>)>>,
    /// The row that is being written.
    row: Vec<u8>,
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
            files: Vec::new(),
            row: Vec::new(),
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
            None => self.files.iter_mut().flatten().try_for_each(|(_, file)| file.flush()),
        }
    }

    fn detail(&mut self, at: Time, flow: usize, path: &str, detail: &Detail) {
        let (at, path) = (seconds(at), Text(path));
        let tcp = self.tcp.get(flow) == Some(&true);
        match detail {
            Detail::Window { cwnd, ssthresh, flight, marked, segments } => {
                let ssthresh = if *ssthresh == u64::MAX { Nothing } else { Number(*ssthresh) };
                let row = [at, path, Number(*cwnd), ssthresh, Number(*flight), Number(*marked)];
                match segments {
                    None => self.row(flow, &WINDOWS, &row),
                    Some(segments) => {
                        let [a, b, c, d, e, f] = row;
                        self.row(flow, &TCP_WINDOWS, &[a, b, c, d, e, f, Fraction(*segments)]);
                    }
                }
            }
            Detail::Rto { rto, srtt, .. } => {
                self.row(flow, &RTO, &[at, path, length(*rto), srtt.map_or(Nothing, length)]);
            }
            Detail::PeerWindow { bytes } => self.row(flow, &PEER_WINDOW, &[at, Number(*bytes)]),
            Detail::Sent { number, size, why } => {
                let row = [at, path, Number(*number), Number(u64::from(*size)), Text(reason(*why))];
                self.row(flow, if tcp { &TCP_SENT } else { &SENT }, &row);
            }
            Detail::Marked { number, why } => {
                let row = [at, path, Number(*number), Text(reason(*why))];
                self.row(flow, if tcp { &TCP_MARKED } else { &MARKED }, &row);
            }
            Detail::Acked { cumulative } => {
                self.row(flow, if tcp { &TCP_ACKED } else { &ACKED }, &[at, Number(*cumulative)]);
            }
            Detail::Blocked(by) => self.row(flow, &BLOCKED, &[at, Text(cause(*by)), path]),
            Detail::Route { .. }
            | Detail::Timeout
            | Detail::Timer { .. }
            | Detail::Received { .. }
            | Detail::State(_) => {}
        }
    }

    /// A chunk of `size` bytes arrived on `path`.
    fn received(&mut self, at: Time, flow: usize, path: &str, (tsn, size, cumulative): (u64, u32, u64)) {
        let at = seconds(at);
        let Change { depth, held } = self.held[flow].received(path, tsn, size, cumulative);
        if depth > 0 {
            self.row(flow, &REORDERING, &[at, Text(path), Number(tsn), Number(u64::from(depth))]);
        }
        for (path, bytes) in held {
            self.row(flow, &HELD, &[at, Text(&path), Number(bytes)]);
        }
    }

    fn length(&mut self, at: Time, link: usize, queue: QueueLength) {
        let row = [seconds(at), Number(u64::from(queue.packets)), Number(queue.bytes)];
        self.row(self.flows.len() + link, &QUEUE, &row);
    }

    /// The application of a flow has read this many bytes in total. Writes the rows of complete intervals.
    fn read(&mut self, at: Time, flow: usize, bytes: u64) {
        let now = at.as_nanos() / INTERVAL;
        let Some(reading) = self.reading.get(flow).copied() else { return };
        if now > reading.interval {
            self.close_interval(flow);
            // In between, nothing was read. The first and the last interval of a long silence are enough for a curve.
            let silence = (reading.interval + 1)..now;
            let length = silence.end - silence.start;
            let step = if length > LONGEST_SILENCE { length - 1 } else { 1 };
            for empty in silence.step_by(step as usize) {
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
        let rate = bytes * 8 * (1_000_000_000 / INTERVAL);
        self.row(flow, &THROUGHPUT, &[Seconds((interval + 1) * INTERVAL), Number(rate)]);
    }

    fn row(&mut self, owner: usize, series: &Series, cells: &[Cell<'_>]) {
        if self.failed.is_some() {
            return;
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        for cell in cells {
            cell.write(&mut row);
            row.push(b',');
        }
        *row.last_mut().expect("a row has cells") = b'\n';
        self.failed = self.file(owner, series).and_then(|file| file.write_all(&row)).err();
        self.row = row;
    }

    /// The file of a series; it begins with the names of its columns.
    fn file(&mut self, owner: usize, series: &Series) -> io::Result<&mut BufWriter<File>> {
        if self.files.len() <= owner {
            self.files.resize_with(owner + 1, Vec::new);
        }
        let files = &mut self.files[owner];
        let place = match files.iter().position(|(name, _)| *name == series.name) {
            Some(place) => place,
            None => {
                let name = self.flows.iter().chain(&self.links).nth(owner).map_or("unknown", String::as_str);
                let file = File::create(self.directory.join(format!("{name}.{}.csv", series.name)))?;
                let mut file = BufWriter::new(file);
                let columns: Vec<&str> = series.columns.iter().map(|(column, _)| *column).collect();
                writeln!(file, "{}", columns.join(","))?;
                files.push((series.name, file));
                files.len() - 1
            }
        };
        Ok(&mut files[place].1)
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

/// The most intervals in which nothing was read that have a row each.
const LONGEST_SILENCE: u64 = 1000;

impl Observer for CsvSeries {
    fn begin(&mut self, names: &Names) {
        let mut taken = BTreeSet::new();
        self.tcp = names.protocols.iter().map(|protocol| protocol.counts_bytes()).collect();
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
                self.length(at, *link, *queue);
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                let cause = match cause {
                    DropCause::Queue | DropCause::Early => "queue",
                    DropCause::Loss => "loss",
                    DropCause::Down => "down",
                    DropCause::Rts => "rts",
                    DropCause::Data => "data",
                    DropCause::Size => "size",
                };
                let tsns = packet.tsns().map(|tsn| tsn.0.to_string()).collect::<Vec<_>>().join(" ");
                let flow = self.flows.get(*flow).cloned().unwrap_or_default();
                let row = [seconds(at), Number(*number), Text(&flow), Text(cause), Text(&tsns)];
                self.row(link_owner(*link), &DROPS, &row);
            }
            Record::Read { flow, bytes } => self.read(at, *flow, *bytes),
            Record::Sent { .. } | Record::Started { .. } | Record::Air { .. } | Record::Delivered { .. } => {}
        }
    }

    fn queue(&mut self, record: &QueueRecord<'_>) {
        record.each(|change| self.length(change.at, change.link, change.queue));
    }

    fn wants(&self) -> Wants {
        Wants { receivers: true, reads: true, ..Wants::UNORDERED }
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

/// One value of a row. Rows are many: their numbers are written without the machinery of `format!`.
#[derive(Copy, Clone)]
enum Cell<'a> {
    /// Nanoseconds, shown as seconds with nine decimals.
    Seconds(u64),
    Number(u64),
    Fraction(f64),
    Text(&'a str),
    Nothing,
}

impl Cell<'_> {
    fn write(self, row: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        match self {
            Seconds(nanos) => {
                row.extend(digits.format(nanos / 1_000_000_000).as_bytes());
                // The 1 in front of the decimals keeps their zeros; the point takes its place.
                let decimals = digits.format(1_000_000_000 + nanos % 1_000_000_000);
                row.push(b'.');
                row.extend(&decimals.as_bytes()[1..]);
            }
            Number(number) => row.extend(digits.format(number).as_bytes()),
            Fraction(number) => row.extend(number.to_string().as_bytes()),
            Text(text) => row.extend(text.as_bytes()),
            Nothing => {}
        }
    }
}

fn seconds(at: Time) -> Cell<'static> {
    Seconds(at.as_nanos())
}

fn length(duration: Duration) -> Cell<'static> {
    Seconds(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_nine_decimals() {
        let written = |cell: Cell<'_>| {
            let mut row = Vec::new();
            cell.write(&mut row);
            String::from_utf8(row).expect("text")
        };
        assert_eq!(written(Seconds(5_000_000_001)), "5.000000001");
        assert_eq!(written(Seconds(999_999_999)), "0.999999999");
        assert_eq!(
            [Number(1200), Fraction(2.5), Text("wifi"), Nothing].map(written),
            ["1200", "2.5", "wifi", ""]
        );
    }

    #[test]
    fn file_names_are_safe_and_distinct() {
        let mut taken = BTreeSet::new();
        let names = ["a b", "a/b", "../x", "wifi.s-r"].map(|name| file_name(name, &mut taken));
        assert_eq!(names, ["a_b", "a_b~2", "_x", "wifi.s-r"]);
    }
}
