//! A run as a trace for Perfetto (ui.perfetto.dev), in the JSON format of Chrome's traces, which it opens.
//!
//! Each flow is a process: its paths are threads, with a slice of a microsecond for each packet that leaves; windows,
//! flights and timeouts are counters; the time in which user data waits is a slice named by the cause. Each link
//! direction is a process with its queue as counters and its drops as instants.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::json;

use super::json::{Json, Micros, Named, Ready, Word, object};
use super::qlog::blocked;
use super::words;
use crate::observe::trace::{Detail, Names, Observer, Record, Side, Wants};

/// The thread of a flow's blocked time; paths follow.
const BLOCKED: usize = 1;
/// The thread of what belongs to no path.
const WHOLE: usize = 2;
/// How long the slice of a packet is, in microseconds: sending it takes no time at its host.
const MOMENT: &[u8] = b"1.0";
/// So many bytes are written together.
const FULL: usize = 1 << 15;
/// Units of counters.
const BYTES: &[u8] = b"\"bytes\":";
const MILLIS: &[u8] = b"\"ms\":";
const PACKETS: &[u8] = b"\"packets\":";

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
    /// The events that are still to be written.
    rows: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> PerfettoWriter<W> {
    /// Writes to `out`, which should be buffered. `title` describes the file.
    pub fn new(mut out: W, title: &str) -> Self {
        let head = json!({ "title": title }).to_string();
        let failed = write!(out, "{{\"otherData\":{head},\"displayTimeUnit\":\"ms\",\"traceEvents\":[").err();
        let (paths, waits) = (Vec::new(), Vec::new());
        PerfettoWriter { out, flows: 0, paths, waits, now: Time::ZERO, rows: Vec::new(), failed }
    }

    /// Ends the file; says if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        for flow in 0..self.waits.len() {
            self.wait(self.now, flow, None);
        }
        self.write();
        // The last event has no comma after it.
        let end =
            json!({ "ph": "i", "name": "end", "s": "g", "ts": in_micros(self.now), "pid": 1, "tid": 0 });
        match self.failed {
            Some(error) => Err(error),
            None => writeln!(self.out, "\n{end}]}}").and_then(|()| self.out.flush()),
        }
    }

    /// Writes the event that `put` puts.
    #[inline]
    fn event(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        self.rows.push(b'\n');
        put(&mut self.rows);
        self.rows.push(b',');
        if self.rows.len() >= FULL {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.rows).err();
        }
        self.rows.clear();
    }

    fn name(&mut self, what: &'static str, (process, thread): (usize, usize), name: &str) {
        self.event(|out| {
            out.extend_from_slice(b"{\"args\":");
            object!(out; "name" => name);
            object!(@more out; "name" => Word(what), "ph" => Word("M"), "pid" => process, "tid" => thread);
            out.push(b'}');
        });
    }

    /// A counter of this unit, as `"bytes":`.
    fn counter(&mut self, at: Time, process: usize, name: impl Json, unit: &'static [u8], value: impl Json) {
        self.event(|out| {
            out.extend_from_slice(b"{\"args\":{");
            out.extend_from_slice(unit);
            value.put(out);
            out.push(b'}');
            object!(@more out; "name" => name, "ph" => Word("C"), "pid" => process, "ts" => Micros(at));
            out.push(b'}');
        });
    }

    /// A moment. `values` puts an object.
    fn instant(
        &mut self,
        at: Time,
        (process, thread): (usize, usize),
        name: &'static str,
        values: impl FnOnce(&mut Vec<u8>),
    ) {
        self.event(|out| {
            out.extend_from_slice(b"{\"args\":");
            values(out);
            object!(@more out; "name" => Word(name), "ph" => Word("i"), "pid" => process, "s" => Word("t"),
                "tid" => thread, "ts" => Micros(at));
            out.push(b'}');
        });
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
            self.event(|out| {
                object!(out; "cat" => Word("blocked"), "dur" => length, "name" => Word(blocked(cause)), "ph" => Word("X"),
                    "pid" => flow + 1, "tid" => BLOCKED, "ts" => Micros(since));
            });
        }
    }

    fn detail(&mut self, at: Time, flow: usize, path: Option<&str>, detail: &Detail) {
        let process = flow + 1;
        match detail {
            Detail::Window { cwnd, flight, .. } => {
                self.counter(at, process, Named(path, "cwnd"), BYTES, *cwnd);
                self.counter(at, process, Named(path, "in flight"), BYTES, *flight);
            }
            Detail::Rto { rto, srtt, .. } => {
                self.counter(at, process, Named(path, "RTO"), MILLIS, rto.as_secs_f64() * 1e3);
                if let Some(srtt) = srtt {
                    self.counter(at, process, Named(path, "SRTT"), MILLIS, srtt.as_secs_f64() * 1e3);
                }
            }
            Detail::PeerWindow { bytes } => {
                self.counter(at, process, Word("peer window"), BYTES, *bytes);
            }
            Detail::Timeout => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "T3-rtx expires", nothing);
            }
            Detail::Marked { number, why } => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "marked", |out| {
                    object!(out; "number" => *number, "why" => Word(words::data(*why)));
                });
            }
            Detail::Route { number, reason } => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), "route", |out| {
                    object!(out; "number" => *number, "reason" => *reason);
                });
            }
            Detail::State(state) => {
                let thread = self.thread(flow, path);
                self.instant(at, (process, thread), words::path_state(*state), nothing);
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
                self.event(|out| {
                    out.extend_from_slice(b"{\"args\":");
                    object!(out; "size" => packet.size);
                    object!(@more out; "cat" => Word("packet"), "dur" => Ready(MOMENT), "name" => Word(words::purpose(reason.purpose)),
                        "ph" => Word("X"), "pid" => flow + 1, "tid" => thread, "ts" => Micros(at));
                    out.push(b'}');
                });
            }
            Record::Read { flow, bytes } => {
                self.counter(at, flow + 1, Word("read by the application"), BYTES, *bytes);
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                let process = self.flows + 1 + link;
                self.counter(at, process, Word("queue"), PACKETS, queue.packets);
            }
            Record::Dropped { link, cause, packet, .. } => {
                let (process, cause) = (self.flows + 1 + link, words::drop_cause(*cause, false));
                self.instant(at, (process, 0), cause, |out| object!(out; "size" => packet.size));
            }
            Record::Detail { .. }
            | Record::Sent { .. }
            | Record::Started { .. }
            | Record::Air { .. }
            | Record::Delivered { .. } => {}
        }
    }

    fn wants(&self) -> Wants {
        Wants { reads: true, ..Wants::PACKETS }
    }
}

/// Microseconds, as Chrome's traces count.
fn in_micros(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e3
}

/// No values.
fn nothing(out: &mut Vec<u8>) {
    out.extend_from_slice(b"{}");
}
