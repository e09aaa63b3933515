//! A run as qlog: the JSON text sequence of the QUIC working group (draft-ietf-quic-qlog-main-schema), with event types of our own
//! (docs/qlog.md lists them).

use std::io::{self, Write};

use anabranch_proto::{Blocked, Time};
use serde_json::json;
use smallvec::{SmallVec, smallvec};

use super::json::{Field, Json};
use super::words;
use crate::observe::capture;
use crate::observe::trace::{Contents, Detail, Names, Observer, PacketView, Record, Side};
use Json::{Decimal, Null, Number, Object, Text, Texts};

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
    /// The record that is being written.
    row: Vec<u8>,
    failed: Option<io::Error>,
}

impl<W: Write> QlogWriter<W> {
    /// Writes to `out`, which should be buffered. `title` describes the file.
    pub fn new(out: W, title: &str) -> Self {
        QlogWriter { out, title: title.to_owned(), names: Names::default(), row: Vec::new(), failed: None }
    }

    /// Writes the records that were held back. Fails if anything could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    /// Writes the record that `fill` appends.
    fn write(&mut self, fill: impl FnOnce(&Names, &mut Vec<u8>)) {
        if self.failed.is_none() {
            self.row.clear();
            self.row.push(RECORD_SEPARATOR);
            fill(&self.names, &mut self.row);
            self.row.push(b'\n');
            self.failed = self.out.write_all(&self.row).err();
        }
    }

    fn event(&mut self, at: Time, name: &str, data: impl FnOnce(&Names, &mut dyn FnMut(&[Field<'_>]))) {
        let time = Decimal(millis(at));
        self.write(|names, row| {
            row.extend(b"{\"data\":");
            data(names, &mut |fields| Object(fields).write(row));
            row.extend(b",\"name\":\"anabranch:");
            row.extend(name.as_bytes());
            row.extend(b"\",\"time\":");
            time.write(row);
            row.push(b'}');
        });
    }

    fn detail(&mut self, at: Time, (flow, side, path): (usize, Side, Option<&str>), detail: &Detail) {
        self.event(at, event_of(detail), |names, put| {
            let common =
                [("flow", flow_name(names, flow)), ("path", Json::or_absent(path)), ("side", word(side))];
            put_detail(detail, common, put);
        });
    }
}

/// Milliseconds, as qlog counts.
fn millis(at: Time) -> f64 {
    at.as_nanos() as f64 / 1e6
}

fn flow_name(names: &Names, flow: usize) -> Json<'_> {
    Text(names.flows.get(flow).map_or("", String::as_str))
}

/// The name of a link or channel, and the direction.
fn link_name(names: &Names, link: usize) -> [Json<'_>; 2] {
    let names = names.links.iter().chain(&names.hops).nth(link);
    names.map_or(["", ""], |(name, direction)| [name, direction]).map(Text)
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

/// Puts the data of a detail's event: its own, and what all have in common.
fn put_detail(detail: &Detail, [flow, path, side]: [Field<'_>; 3], put: &mut dyn FnMut(&[Field<'_>])) {
    let timer = ("timer", Text("T3-rtx"));
    match *detail {
        Detail::Window { cwnd, ssthresh, flight, marked, .. } => {
            let ssthresh = if ssthresh == u64::MAX { Null } else { Number(ssthresh) };
            let (in_flight, marked) = (("in_flight", Number(flight)), ("marked", Number(marked)));
            put(&[("cwnd", Number(cwnd)), flow, in_flight, marked, path, side, ("ssthresh", ssthresh)]);
        }
        Detail::Rto { rto, srtt } => {
            let srtt = srtt.map_or(Null, |srtt| Decimal(srtt.as_secs_f64() * 1e3));
            let rto = Decimal(rto.as_secs_f64() * 1e3);
            put(&[flow, path, ("rto", rto), side, ("smoothed_rtt", srtt)]);
        }
        Detail::PeerWindow { bytes } => put(&[("bytes", Number(bytes)), flow, path, side]),
        Detail::Sent { number, size, why } => {
            let (size, why) = (("size", Number(size.into())), ("why", Text(words::data(why))));
            put(&[flow, ("number", Number(number)), path, side, size, why]);
        }
        Detail::Marked { number, why } => {
            put(&[flow, ("number", Number(number)), path, side, ("why", Text(words::data(why)))]);
        }
        Detail::Route { number, reason } => {
            put(&[flow, ("number", Number(number)), path, ("reason", Text(reason)), side]);
        }
        Detail::Timeout => put(&[flow, path, side, timer]),
        Detail::Timer { expires } => {
            let expires = expires.map_or(Null, |at| Decimal(millis(at)));
            put(&[("expires", expires), flow, path, side, timer]);
        }
        Detail::Acked { cumulative } => put(&[("cumulative", Number(cumulative)), flow, path, side]),
        Detail::Received { number, size, cumulative } => {
            let (number, size) = (("number", Number(number)), ("size", Number(size.into())));
            put(&[("cumulative", Number(cumulative)), flow, number, path, side, size]);
        }
        Detail::Blocked(by) => put(&[("by", Json::or_null(by.map(blocked))), flow, path, side]),
        Detail::State(state) => put(&[flow, path, side, ("state", Text(words::path_state(state)))]),
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

fn word(side: Side) -> Json<'static> {
    match side {
        Side::Client => Text("client"),
        Side::Server => Text("server"),
    }
}

/// The contents of a packet.
fn contents(packet: &PacketView<'_>) -> SmallVec<[String; 2]> {
    match packet.contents {
        Contents::Sctp(sctp) => sctp.chunks.iter().map(capture::summary).collect(),
        Contents::Tcp(tcp) => {
            smallvec![format!("bytes from {}, {} long", tcp.offset, tcp.segment.length)]
        }
        Contents::Datagram(datagram) => smallvec![format!("datagram of {} bytes", datagram.payload)],
        Contents::Raw(_) => smallvec!["packet of a program".to_owned()],
        Contents::Foreign(carried) => {
            smallvec![format!("packet of {} bytes", carried.packet.bytes.len())]
        }
    }
}

impl<W: Write> Observer for QlogWriter<W> {
    fn begin(&mut self, names: &Names) {
        self.names = names.clone();
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
        self.write(|_, row| row.extend(head.to_string().as_bytes()));
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Detail { flow, side, path, detail } => self.detail(at, (*flow, *side, *path), detail),
            Record::Sent { flow, side, path, reason, packet } => {
                let contents = contents(packet);
                self.event(at, "packet_sent", |names, put| {
                    put(&[
                        ("contents", Texts(&contents)),
                        ("flow", flow_name(names, *flow)),
                        ("path", Json::or_null(*path)),
                        ("side", word(*side)),
                        ("size", Number(packet.size.into())),
                        ("why", Text(words::purpose(reason.purpose))),
                    ]);
                });
            }
            Record::Read { flow, bytes } => self.event(at, "data_read", |names, put| {
                put(&[("bytes", Number(*bytes)), ("flow", flow_name(names, *flow))]);
            }),
            Record::Dropped { link, flow, number, cause, packet } => {
                let contents = contents(packet);
                self.event(at, "packet_dropped", |names, put| {
                    let [link, direction] = link_name(names, *link);
                    put(&[
                        ("cause", Text(words::drop_cause(*cause, false))),
                        ("contents", Texts(&contents)),
                        ("direction", direction),
                        ("flow", flow_name(names, *flow)),
                        ("link", link),
                        ("number", Number(*number)),
                        ("size", Number(packet.size.into())),
                    ]);
                });
            }
            Record::Delivered { link, flow, packet } => self.event(at, "packet_delivered", |names, put| {
                let [link, direction] = link_name(names, *link);
                let (flow, size) = (flow_name(names, *flow), Number(packet.size.into()));
                put(&[("direction", direction), ("flow", flow), ("link", link), ("size", size)]);
            }),
            Record::Queued { link, queue, .. } | Record::Departed { link, queue } => {
                self.event(at, "queue_updated", |names, put| {
                    let [link, direction] = link_name(names, *link);
                    let (packets, bytes) = (Number(queue.packets.into()), Number(queue.bytes));
                    put(&[("bytes", bytes), ("direction", direction), ("link", link), ("packets", packets)]);
                });
            }
            Record::Started { .. } | Record::Air { .. } => {}
        }
    }
}
