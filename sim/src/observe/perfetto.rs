//! A run as a trace for Perfetto (ui.perfetto.dev), in the JSON format of Chrome's traces, which it opens.
//!
//! Each flow is a process: its paths are threads, with a slice of a microsecond for each packet that leaves; windows, flights and timeouts are
//! counters; the time in which user data waits is a slice named by the cause. Each link direction is a process with its queue as
//! counters and its drops as instants.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::{Value, json};

use super::qlog::blocked;
use super::words;
use crate::observe::trace::{Detail, Names, Observer, Record, Side, Wants};

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
    failed: Option<io::Error>,
}

impl<W: Write> PerfettoWriter<W> {
    /// Writes to `out`, which should be buffered. `title` describes the file.
    pub fn new(mut out: W, title: &str) -> Self {
        let head = json!({ "title": title }).to_string();
        let failed = write!(out, "{{\"otherData\":{head},\"displayTimeUnit\":\"ms\",\"traceEvents\":[").err();
        let (paths, waits) = (Vec::new(), Vec::new());
        PerfettoWriter { out, flows: 0, paths, waits, now: Time::ZERO, failed }
    }

    /// Ends the file; says if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        for flow in 0..self.waits.len() {
            self.wait(self.now, flow, None);
        }
        // The last event has no comma after it.
        let end = json!({ "ph": "i", "name": "end", "s": "g", "ts": micros(self.now), "pid": 1, "tid": 0 });
        match self.failed {
            Some(error) => Err(error),
            None => writeln!(self.out, "\n{end}]}}").and_then(|()| self.out.flush()),
        }
    }

    fn write(&mut self, event: &Value) {
        if self.failed.is_none() {
            self.failed = write!(self.out, "\n{event},").err();
        }
    }

    fn name(&mut self, what: &str, (process, thread): (usize, usize), name: &str) {
        let arguments = json!({ "name": name });
        self.write(&json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments }));
    }

    fn counter(&mut self, at: Time, process: usize, name: &str, values: &Value) {
        self.write(&json!({ "ph": "C", "name": name, "ts": micros(at), "pid": process, "args": values }));
    }

    fn instant(&mut self, at: Time, (process, thread): (usize, usize), name: &str, values: &Value) {
        let (at, scope) = (micros(at), "t");
        self.write(&json!({
            "ph": "i", "name": name, "s": scope, "ts": at, "pid": process, "tid": thread, "args": values,
        }));
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
            let length = micros(at) - micros(since);
            self.write(&json!({
                "ph": "X", "name": blocked(cause), "cat": "blocked", "ts": micros(since), "dur": length,
                "pid": flow + 1, "tid": BLOCKED,
            }));
        }
    }

    fn detail(&mut self, at: Time, flow: usize, path: Option<&str>, detail: &Detail) {
        let process = flow + 1;
        let of = |what: &str| path.map_or_else(|| what.to_owned(), |path| format!("{path} {what}"));
        match detail {
            Detail::Window { cwnd, flight, .. } => {
                self.counter(at, process, &of("cwnd"), &json!({ "bytes": cwnd }));
                self.counter(at, process, &of("in flight"), &json!({ "bytes": flight }));
            }
            Detail::Rto { rto, srtt } => {
                self.counter(at, process, &of("RTO"), &json!({ "ms": rto.as_secs_f64() * 1e3 }));
                if let Some(srtt) = srtt {
                    self.counter(at, process, &of("SRTT"), &json!({ "ms": srtt.as_secs_f64() * 1e3 }));
                }
            }
            Detail::PeerWindow { bytes } => {
                self.counter(at, process, "peer window", &json!({ "bytes": bytes }));
            }
            Detail::Timeout => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "T3-rtx expires", &json!({}));
            }
            Detail::Marked { number, why } => {
                let thread = self.thread(flow, path);
                let why = words::data(*why);
                self.instant(at, (process, thread), "marked", &json!({ "number": number, "why": why }));
            }
            Detail::Route { number, reason } => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "route", &json!({ "number": number, "reason": reason }));
            }
            Detail::State(state) => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), words::path_state(*state), &json!({}));
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
                let name = words::purpose(reason.purpose);
                self.write(&json!({
                    "ph": "X", "name": name, "cat": "packet", "ts": micros(at), "dur": MOMENT,
                    "pid": flow + 1, "tid": thread, "args": { "size": packet.size },
                }));
            }
            Record::Read { flow, bytes } => {
                self.counter(at, flow + 1, "read by the application", &json!({ "bytes": bytes }));
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                let process = self.flows + 1 + link;
                self.counter(at, process, "queue", &json!({ "packets": queue.packets }));
            }
            Record::Dropped { link, cause, packet, .. } => {
                let (process, cause) = (self.flows + 1 + link, words::drop_cause(*cause, false));
                self.instant(at, (process, 0), cause, &json!({ "size": packet.size }));
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

fn micros(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e3
}
