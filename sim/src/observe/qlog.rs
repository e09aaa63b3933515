//! A run as qlog: the JSON text sequence of the QUIC working group (draft-ietf-quic-qlog-main-schema), with event types of our own
//! (docs/qlog.md lists them).

use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::{Value, json};

use super::words;
use crate::observe::capture;
use crate::observe::trace::{Contents, Detail, Names, Observer, PacketView, Record, Side};

/// The byte with which every record of a JSON text sequence begins (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// The namespace of the event types.
const SCHEMA: &str = "urn:anabranch:qlog:events:transport";

/// Writes the events of one run into a file.
#[derive(Debug)]
pub struct QlogWriter<W: Write> {
    out: W,
    title: String,
    names: Names,
    failed: Option<io::Error>,
}

impl<W: Write> QlogWriter<W> {
    /// Writes to `out`, which should be buffered. `title` describes the file.
    pub fn new(out: W, title: &str) -> Self {
        QlogWriter { out, title: title.to_owned(), names: Names::default(), failed: None }
    }

    /// Writes the records that were held back. Fails if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self, record: &Value) {
        if self.failed.is_none() {
            let written =
                self.out.write_all(&[RECORD_SEPARATOR]).and_then(|()| writeln!(self.out, "{record}"));
            self.failed = written.err();
        }
    }

    fn event(&mut self, at: Time, name: &str, data: Value) {
        let time = at.as_nanos() as f64 / 1e6;
        self.write(&json!({ "time": time, "name": format!("anabranch:{name}"), "data": data }));
    }

    fn flow(&self, flow: usize) -> &str {
        self.names.flows.get(flow).map_or("", String::as_str)
    }

    fn link(&self, link: usize) -> [&str; 2] {
        let names = self.names.links.iter().chain(&self.names.hops).nth(link);
        names.map_or(["", ""], |(name, direction)| [name, direction])
    }

    fn detail(&mut self, at: Time, (flow, side, path): (usize, Side, Option<&str>), detail: &Detail) {
        let (name, own) = told(detail);
        let mut data = json!({ "flow": self.flow(flow), "side": word(side) });
        let entries = own.as_object().into_iter().flatten();
        let path = path.map(|path| ("path".to_owned(), path.into()));
        if let Some(data) = data.as_object_mut() {
            data.extend(path);
            data.extend(entries.map(|(key, value)| (key.clone(), value.clone())));
        }
        self.event(at, name, data);
    }
}

/// The event of a detail, and its data.
fn told(detail: &Detail) -> (&'static str, Value) {
    match detail {
        Detail::Window { cwnd, ssthresh, flight, marked, .. } => {
            let ssthresh = Some(ssthresh).filter(|bytes| **bytes != u64::MAX);
            let data = json!({ "cwnd": cwnd, "ssthresh": ssthresh, "in_flight": flight, "marked": marked });
            ("window_updated", data)
        }
        Detail::Rto { rto, srtt } => {
            let srtt = srtt.map(|srtt| srtt.as_secs_f64() * 1e3);
            ("rto_updated", json!({ "rto": rto.as_secs_f64() * 1e3, "smoothed_rtt": srtt }))
        }
        Detail::PeerWindow { bytes } => ("peer_window_updated", json!({ "bytes": bytes })),
        Detail::Sent { number, size, why } => {
            ("data_sent", json!({ "number": number, "size": size, "why": words::data(*why) }))
        }
        Detail::Marked { number, why } => {
            ("data_marked", json!({ "number": number, "why": words::data(*why) }))
        }
        Detail::Route { number, reason } => ("route_chosen", json!({ "number": number, "reason": reason })),
        Detail::Timeout => ("timer_expired", json!({ "timer": "T3-rtx" })),
        Detail::Timer { expires } => {
            let expires = expires.map(|at| at.as_nanos() as f64 / 1e6);
            ("timer_updated", json!({ "timer": "T3-rtx", "expires": expires }))
        }
        Detail::Acked { cumulative } => ("data_acked", json!({ "cumulative": cumulative })),
        Detail::Received { number, size, cumulative } => {
            ("data_received", json!({ "number": number, "size": size, "cumulative": cumulative }))
        }
        Detail::Blocked(by) => ("blocked_updated", json!({ "by": by.map(blocked) })),
        Detail::State(state) => ("path_state_updated", json!({ "state": words::path_state(*state) })),
    }
}

/// The name of a cause for which user data waits.
pub(super) fn blocked(by: Blocked) -> &'static str {
    match by {
        Blocked::PeerWindow => "peer window",
        Blocked::SendBuffer => "send buffer",
        Blocked::Window => "cwnd",
        Blocked::Turn => "turn of another path",
    }
}

fn word(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

/// The contents of a packet.
fn contents(packet: &PacketView<'_>) -> Value {
    match packet.contents {
        Contents::Sctp(sctp) => sctp.chunks.iter().map(capture::summary).collect(),
        Contents::Tcp(tcp) => json!([format!("bytes from {}, {} long", tcp.offset, tcp.segment.length)]),
        Contents::Datagram(datagram) => json!([format!("datagram of {} bytes", datagram.payload)]),
        Contents::Raw(_) => json!(["packet of a program"]),
        Contents::Foreign(carried) => json!([format!("packet of {} bytes", carried.packet.bytes.len())]),
    }
}

impl<W: Write> Observer for QlogWriter<W> {
    fn begin(&mut self, names: &Names) {
        self.names = names.clone();
        self.write(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": self.title,
            "trace": {
                "title": self.title,
                "vantage_point": { "name": "anabranch", "type": "network" },
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                },
                "event_schemas": [SCHEMA],
            },
        }));
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Detail { flow, side, path, detail } => self.detail(at, (*flow, *side, *path), detail),
            Record::Sent { flow, side, path, reason, packet } => {
                let data = json!({
                    "flow": self.flow(*flow), "side": word(*side), "path": path, "size": packet.size,
                    "why": words::purpose(reason.purpose), "contents": contents(packet),
                });
                self.event(at, "packet_sent", data);
            }
            Record::Read { flow, bytes } => {
                let data = json!({ "flow": self.flow(*flow), "bytes": bytes });
                self.event(at, "data_read", data);
            }
            Record::Dropped { link, flow, number, cause, packet } => {
                let ([link, direction], flow) = (self.link(*link), self.flow(*flow));
                let data = json!({
                    "link": link, "direction": direction, "flow": flow, "number": number,
                    "cause": words::drop_cause(*cause, false), "size": packet.size, "contents": contents(packet),
                });
                self.event(at, "packet_dropped", data);
            }
            Record::Delivered { link, flow, packet } => {
                let ([link, direction], flow) = (self.link(*link), self.flow(*flow));
                let data = json!({ "link": link, "direction": direction, "flow": flow, "size": packet.size });
                self.event(at, "packet_delivered", data);
            }
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                let [link, direction] = self.link(*link);
                let (packets, bytes) = (queue.packets, queue.bytes);
                let data =
                    json!({ "link": link, "direction": direction, "packets": packets, "bytes": bytes });
                self.event(at, "queue_updated", data);
            }
            Record::Started { .. } | Record::Air { .. } => {}
        }
    }
}
