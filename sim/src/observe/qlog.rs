//! A run as qlog: the JSON text sequence of the QUIC working group (draft-ietf-quic-qlog-main-schema), with event types
//! of our own (docs/qlog.md lists them).

use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::json;

use super::json::{Json, Millis, Ready, Word, object, quoted};
use super::words;
use crate::observe::capture;
use crate::observe::trace::{Contents, Detail, Names, Observer, PacketView, QueueLength, Record, Side};

/// The byte with which every record of a JSON text sequence begins (RFC 7464).
const RECORD_SEPARATOR: u8 = 0x1e;
/// The namespace of the event types.
const SCHEMA: &str = "urn:anabranch:qlog:events:transport";
/// So many bytes are written together.
const FULL: usize = 1 << 15;

/// Writes the events of one run into a file.
#[derive(Debug)]
pub struct QlogWriter<W: Write> {
    out: W,
    title: String,
    /// The names of flows, and of links and their directions, as JSON.
    flows: Vec<Vec<u8>>,
    links: Vec<[Vec<u8>; 2]>,
    /// The records that are still to be written.
    rows: Vec<u8>,
    /// The contents of a packet as JSON.
    contents: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> QlogWriter<W> {
    /// Writes to `out`. `title` describes the file.
    pub fn new(out: W, title: &str) -> Self {
        let (flows, links, rows, contents) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        QlogWriter { out, title: title.to_owned(), flows, links, rows, contents, failed: None }
    }

    /// Writes the records that were held back. Fails if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.write();
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn write(&mut self) {
        if self.failed.is_none() {
            self.failed = self.out.write_all(&self.rows).err();
        }
        self.rows.clear();
    }

    /// Writes an event of this type. `data` puts its data.
    #[inline]
    fn event(&mut self, at: Time, name: &'static str, data: impl FnOnce(&Self, &mut Vec<u8>)) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend_from_slice(b"\x1e{\"data\":");
        data(self, &mut rows);
        rows.extend_from_slice(b",\"name\":\"anabranch:");
        rows.extend_from_slice(name.as_bytes());
        rows.extend_from_slice(b"\",\"time\":");
        Millis(at).put(&mut rows);
        rows.extend_from_slice(b"}\n");
        self.rows = rows;
        if self.rows.len() >= FULL {
            self.write();
        }
    }

    /// The name of a flow.
    fn flow(&self, flow: usize) -> Ready<'_> {
        Ready(self.flows.get(flow).map_or(b"\"\"", Vec::as_slice))
    }

    /// The name of a link or channel, and the direction.
    fn link(&self, link: usize) -> [Ready<'_>; 2] {
        match self.links.get(link) {
            Some([name, direction]) => [Ready(name), Ready(direction)],
            None => [Ready(b"\"\""); 2],
        }
    }

    fn queue(&mut self, at: Time, link: usize, queue: QueueLength) {
        self.event(at, "queue_updated", |this, out| {
            let [link, direction] = this.link(link);
            object!(out; "bytes" => queue.bytes, "direction" => direction, "link" => link, "packets" => queue.packets);
        });
    }

    /// Puts the contents of a packet into `contents`: a list of texts.
    fn describe(&mut self, packet: &PacketView<'_>) {
        let out = &mut self.contents;
        out.clear();
        out.push(b'[');
        match packet.contents {
            Contents::Sctp(sctp) => {
                for (i, chunk) in sctp.chunks.iter().enumerate() {
                    out.extend_from_slice(if i > 0 { b",\"" } else { b"\"" });
                    // Names and numbers need no escapes.
                    if capture::put_summary(chunk, out) {
                        out.push(b'"');
                    } else {
                        out.pop();
                        capture::summary(chunk).put(out);
                    }
                }
            }
            Contents::Tcp(tcp) => {
                format!("bytes from {}, {} long", tcp.offset, tcp.segment.length).put(out);
            }
            Contents::Datagram(datagram) => format!("datagram of {} bytes", datagram.payload).put(out),
            Contents::Raw(_) => Word("packet of a program").put(out),
            Contents::Foreign(carried) => {
                format!("packet of {} bytes", carried.packet.bytes.len()).put(out);
            }
        }
        out.push(b']');
    }
}

/// The type of the event of a detail.
fn event_of(detail: &Detail) -> &'static str {
    match detail {
        Detail::Window { .. } => "window_updated",
        Detail::Rto { .. } => "rto_updated",
        Detail::PeerWindow { .. } => "peer_window_updated",
        Detail::Sent { .. } => "data_sent",
        Detail::Marked { .. } => "data_marked",
        Detail::Route { .. } => "route_chosen",
        Detail::Timeout => "timer_expired",
        Detail::Timer { .. } => "timer_updated",
        Detail::Acked { .. } => "data_acked",
        Detail::Received { .. } => "data_received",
        Detail::Blocked(_) => "blocked_updated",
        Detail::State(_) => "path_state_updated",
    }
}

/// Puts the data of a detail's event.
fn put_detail(detail: &Detail, flow: Ready<'_>, path: Option<&str>, side: Word, out: &mut Vec<u8>) {
    let timer = Word("T3-rtx");
    match *detail {
        Detail::Window { cwnd, ssthresh, flight, marked, .. } => {
            let ssthresh = (ssthresh != u64::MAX).then_some(ssthresh);
            object!(out; "cwnd" => cwnd, "flow" => flow, "in_flight" => flight, "marked" => marked, "path"? => path,
                "side" => side, "ssthresh" => ssthresh);
        }
        Detail::Rto { rto, srtt, .. } => {
            let srtt = srtt.map(|srtt| srtt.as_secs_f64() * 1e3);
            let rto = rto.as_secs_f64() * 1e3;
            object!(out; "flow" => flow, "path"? => path, "rto" => rto, "side" => side, "smoothed_rtt" => srtt);
        }
        Detail::PeerWindow { bytes } => {
            object!(out; "bytes" => bytes, "flow" => flow, "path"? => path, "side" => side);
        }
        Detail::Sent { number, size, why } => {
            object!(out; "flow" => flow, "number" => number, "path"? => path, "side" => side, "size" => size,
                "why" => Word(words::data(why)));
        }
        Detail::Marked { number, why } => {
            object!(out; "flow" => flow, "number" => number, "path"? => path, "side" => side,
                "why" => Word(words::data(why)));
        }
        Detail::Route { number, reason } => {
            object!(out; "flow" => flow, "number" => number, "path"? => path, "reason" => reason, "side" => side);
        }
        Detail::Timeout => object!(out; "flow" => flow, "path"? => path, "side" => side, "timer" => timer),
        Detail::Timer { expires } => {
            object!(out; "expires" => expires.map(Millis), "flow" => flow, "path"? => path, "side" => side,
                "timer" => timer);
        }
        Detail::Acked { cumulative } => {
            object!(out; "cumulative" => cumulative, "flow" => flow, "path"? => path, "side" => side);
        }
        Detail::Received { number, size, cumulative } => {
            object!(out; "cumulative" => cumulative, "flow" => flow, "number" => number, "path"? => path,
                "side" => side, "size" => size);
        }
        Detail::Blocked(by) => {
            object!(out; "by" => by.map(|by| Word(blocked(by))), "flow" => flow, "path"? => path, "side" => side);
        }
        Detail::State(state) => {
            object!(out; "flow" => flow, "path"? => path, "side" => side, "state" => Word(words::path_state(state)));
        }
    }
}

/// The name of a cause for which user data waits, as in the results (`flows[].blocked`).
pub(super) fn blocked(by: Blocked) -> &'static str {
    match by {
        Blocked::PeerWindow => "peer_window",
        Blocked::SendBuffer => "send_buffer",
        Blocked::Window => "cwnd",
        Blocked::Turn => "turn",
    }
}

fn word(side: Side) -> Word {
    match side {
        Side::Client => Word("client"),
        Side::Server => Word("server"),
    }
}

impl<W: Write> Observer for QlogWriter<W> {
    fn begin(&mut self, names: &Names) {
        self.flows = names.flows.iter().map(|name| quoted(name)).collect();
        let link = |(name, direction): &(String, String)| [quoted(name), quoted(direction)];
        self.links = names.links.iter().chain(&names.hops).map(link).collect();
        let head = json!({
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
        });
        self.rows.push(RECORD_SEPARATOR);
        self.rows.extend(head.to_string().as_bytes());
        self.rows.push(b'\n');
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Detail { flow, side, path, detail } => {
                self.event(at, event_of(detail), |this, out| {
                    put_detail(detail, this.flow(*flow), *path, word(*side), out);
                });
            }
            Record::Sent { flow, side, path, reason, packet } => {
                self.describe(packet);
                self.event(at, "packet_sent", |this, out| {
                    object!(out; "contents" => Ready(&this.contents), "flow" => this.flow(*flow), "path" => *path,
                        "side" => word(*side), "size" => packet.size, "why" => Word(words::purpose(reason.purpose)));
                });
            }
            Record::Read { flow, bytes } => self.event(at, "data_read", |this, out| {
                object!(out; "bytes" => *bytes, "flow" => this.flow(*flow));
            }),
            Record::Dropped { link, flow, number, cause, packet } => {
                self.describe(packet);
                self.event(at, "packet_dropped", |this, out| {
                    let [link, direction] = this.link(*link);
                    object!(out; "cause" => Word(words::drop_cause(*cause, false)), "contents" => Ready(&this.contents),
                        "direction" => direction, "flow" => this.flow(*flow), "link" => link, "number" => *number,
                        "size" => packet.size);
                });
            }
            Record::Delivered { link, flow, packet } => self.event(at, "packet_delivered", |this, out| {
                let [link, direction] = this.link(*link);
                object!(out; "direction" => direction, "flow" => this.flow(*flow), "link" => link, "size" => packet.size);
            }),
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                self.queue(at, *link, *queue);
            }
            Record::Started { .. } | Record::Air { .. } => {}
        }
    }
}
