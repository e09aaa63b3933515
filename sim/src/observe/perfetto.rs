//! A run as a trace for Perfetto (ui.perfetto.dev), in the JSON format of Chrome's traces, which it opens.
//!
//! Each flow is a process: its paths are threads, with a slice of a microsecond for each packet that leaves; windows, flights and timeouts are
//! counters; the time in which user data waits is a slice named by the cause. Each link direction is a process with its queue as
//! counters and its drops as instants.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::json;

use super::json::{Field, Json};
use super::qlog::blocked;
use super::words;
use crate::observe::trace::{Detail, Names, Observer, Record, Side, Wants};
use Json::{Decimal, Number, Object, Text};

/// The thread of a flow's blocked time; paths follow.
const BLOCKED: usize = 1;
/// The thread of what belongs to no path.
const WHOLE: usize = 2;
/// How long the slice of a packet is, in microseconds: sending it takes no time at its host.
const MOMENT: f64 = 1.0;

/// Writes the trace of one run into a file.
#[derive(Debug)]
pub struct PerfettoWriter<W: Write> {
    out: W,
    flows: usize,
    /// By flow: the threads of its paths.
    paths: Vec<BTreeMap<String, usize>>,
    /// By flow: since when user data waits, and for what.
    waits: Vec<Option<(Time, Blocked)>>,
    now: Time,
    /// The event that is being written.
    row: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> PerfettoWriter<W> {
    /// Writes to `out`, which should be buffered. `title` describes the file.
    pub fn new(mut out: W, title: &str) -> Self {
        let head = json!({ "title": title }).to_string();
        let failed = write!(out, "{{\"otherData\":{head},\"displayTimeUnit\":\"ms\",\"traceEvents\":[").err();
        let (paths, waits) = (Vec::new(), Vec::new());
        PerfettoWriter { out, flows: 0, paths, waits, now: Time::ZERO, row: Vec::new(), failed }
    }

    /// Ends the file; says if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        for flow in 0..self.waits.len() {
            self.wait(self.now, flow, None);
        }
        // The last event has no comma after it.
        let end =
            json!({ "ph": "i", "name": "end", "s": "g", "ts": in_micros(self.now), "pid": 1, "tid": 0 });
        match self.failed {
            Some(error) => Err(error),
            None => writeln!(self.out, "\n{end}]}}").and_then(|()| self.out.flush()),
        }
    }

    fn write(&mut self, event: &[Field<'_>]) {
        if self.failed.is_none() {
            self.row.clear();
            self.row.push(b'\n');
            Object(event).write(&mut self.row);
            self.row.push(b',');
            self.failed = self.out.write_all(&self.row).err();
        }
    }

    fn name(&mut self, what: &str, (process, thread): (usize, usize), name: &str) {
        let arguments = [("name", Text(name))];
        let (process, thread) = (number(process), number(thread));
        let (name, phase) = (("name", Text(what)), ("ph", Text("M")));
        self.write(&[("args", Object(&arguments)), name, phase, ("pid", process), ("tid", thread)]);
    }

    fn counter(&mut self, at: Time, process: usize, name: &str, value: Field<'_>) {
        let (name, phase) = (("name", Text(name)), ("ph", Text("C")));
        self.write(&[("args", Object(&[value])), name, phase, ("pid", number(process)), ("ts", micros(at))]);
    }

    fn instant(&mut self, at: Time, (process, thread): (usize, usize), name: &str, values: &[Field<'_>]) {
        self.write(&[
            ("args", Object(values)),
            ("name", Text(name)),
            ("ph", Text("i")),
            ("pid", number(process)),
            ("s", Text("t")),
            ("tid", number(thread)),
            ("ts", micros(at)),
        ]);
    }

    /// The thread of a path.
    fn thread(&mut self, flow: usize, path: Option<&str>) -> usize {
        let Some(path) = path else { return WHOLE };
        let Some(paths) = self.paths.get_mut(flow) else { return WHOLE };
        if let Some(thread) = paths.get(path) {
            return *thread;
        }
        let thread = WHOLE + 1 + paths.len();
        paths.insert(path.to_owned(), thread);
        self.name("thread_name", (flow + 1, thread), &format!("path {path}"));
        thread
    }

    /// The cause for which a sender waits has changed. The previous wait becomes a slice.
    fn wait(&mut self, at: Time, flow: usize, by: Option<Blocked>) {
        let Some(wait) = self.waits.get_mut(flow) else { return };
        let before = *wait;
        if before.map(|(_, cause)| cause) == by {
            return;
        }
        *wait = by.map(|by| (at, by));
        if let Some((since, cause)) = before {
            let length = in_micros(at) - in_micros(since);
            self.write(&[
                ("cat", Text("blocked")),
                ("dur", Decimal(length)),
                ("name", Text(blocked(cause))),
                ("ph", Text("X")),
                ("pid", number(flow + 1)),
                ("tid", number(BLOCKED)),
                ("ts", micros(since)),
            ]);
        }
    }

    fn detail(&mut self, at: Time, flow: usize, path: Option<&str>, detail: &Detail) {
        let process = flow + 1;
        let of = |what: &str| path.map_or_else(|| what.to_owned(), |path| format!("{path} {what}"));
        match detail {
            Detail::Window { cwnd, flight, .. } => {
                self.counter(at, process, &of("cwnd"), ("bytes", Number(*cwnd)));
                self.counter(at, process, &of("in flight"), ("bytes", Number(*flight)));
            }
            Detail::Rto { rto, srtt } => {
                self.counter(at, process, &of("RTO"), ("ms", Decimal(rto.as_secs_f64() * 1e3)));
                if let Some(srtt) = srtt {
                    self.counter(at, process, &of("SRTT"), ("ms", Decimal(srtt.as_secs_f64() * 1e3)));
                }
            }
            Detail::PeerWindow { bytes } => {
                self.counter(at, process, "peer window", ("bytes", Number(*bytes)));
            }
            Detail::Timeout => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "T3-rtx expires", &[]);
            }
            Detail::Marked { number, why } => {
                let thread = self.thread(flow, path);
                let values = [("number", Number(*number)), ("why", Text(words::data(*why)))];
                self.instant(at, (process, thread), "marked", &values);
            }
            Detail::Route { number, reason } => {
                let thread = self.thread(flow, path);
                let values = [("number", Number(*number)), ("reason", Text(reason))];
                self.instant(at, (process, thread), "route", &values);
            }
            Detail::State(state) => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), words::path_state(*state), &[]);
            }
            Detail::Blocked(by) => self.wait(at, flow, *by),
            Detail::Sent { .. } | Detail::Acked { .. } | Detail::Timer { .. } | Detail::Received { .. } => {}
        }
    }
}

impl<W: Write> Observer for PerfettoWriter<W> {
    fn begin(&mut self, names: &Names) {
        self.flows = names.flows.len();
        self.paths = vec![BTreeMap::new(); self.flows];
        self.waits = vec![None; self.flows];
        for (flow, name) in names.flows.iter().enumerate() {
            self.name("process_name", (flow + 1, 0), &format!("flow {name}"));
            self.name("thread_name", (flow + 1, BLOCKED), "blocked");
            self.name("thread_name", (flow + 1, WHOLE), "association");
        }
        for (link, (name, direction)) in names.links.iter().chain(&names.hops).enumerate() {
            self.name("process_name", (self.flows + 1 + link, 0), &format!("link {name} {direction}"));
        }
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        self.now = at;
        match record {
            Record::Detail { flow, side: Side::Client, path, detail } => {
                self.detail(at, *flow, *path, detail)
            }
            Record::Sent { flow, side: Side::Client, path, reason, packet } => {
                let thread = self.thread(*flow, *path);
                self.write(&[
                    ("args", Object(&[("size", Number(packet.size.into()))])),
                    ("cat", Text("packet")),
                    ("dur", Decimal(MOMENT)),
                    ("name", Text(words::purpose(reason.purpose))),
                    ("ph", Text("X")),
                    ("pid", number(flow + 1)),
                    ("tid", number(thread)),
                    ("ts", micros(at)),
                ]);
            }
            Record::Read { flow, bytes } => {
                self.counter(at, flow + 1, "read by the application", ("bytes", Number(*bytes)));
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                let process = self.flows + 1 + link;
                self.counter(at, process, "queue", ("packets", Number(queue.packets.into())));
            }
            Record::Dropped { link, cause, packet, .. } => {
                let (process, cause) = (self.flows + 1 + link, words::drop_cause(*cause, false));
                self.instant(at, (process, 0), cause, &[("size", Number(packet.size.into()))]);
            }
            Record::Detail { .. }
            | Record::Sent { .. }
            | Record::Started { .. }
            | Record::Air { .. }
            | Record::Delivered { .. } => {}
        }
    }

    fn wants(&self) -> Wants {
        Wants { packets: true, receivers: false }
    }
}

/// Microseconds, as Chrome's traces count.
fn in_micros(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e3
}

fn micros(at: Time) -> Json<'static> {
    Decimal(in_micros(at))
}

fn number(number: usize) -> Json<'static> {
    Number(number as u64)
}
