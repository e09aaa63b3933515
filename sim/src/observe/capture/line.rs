//! A captured packet as one line of text.

use std::fmt::{self, Display, Write};
use std::net::{IpAddr, SocketAddr};

use anabranch_proto::wire::chunk::CHUNK_HEADER;
use anabranch_proto::wire::{DecodeError, Ecn, HEADER, Packet};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::chunks::Short;
use super::layers::{self, Found, Other};
use super::option::RADIOTAP;
use super::radio;
use super::read::CapturedPacket;
use super::segments::segments;
use super::tcp;

/// The description of a packet. `Display` gives a line of text, serialization an object. Control characters in the
/// file are made printable.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The number of the packet, from 1.
    pub number: u64,
    /// Seconds, with nine decimals.
    pub time: Option<Box<RawValue>>,
    /// The name of the interface in the file.
    pub interface: Option<String>,
    /// The direction at the interface, if the file has it.
    pub direction: Option<Direction>,
    /// Bytes on the link.
    pub size: u32,
    /// Source address.
    pub from: Option<IpAddr>,
    /// Destination address.
    pub to: Option<IpAddr>,
    /// UDP ports of the encapsulation: source, destination.
    pub udp: Option<(u16, u16)>,
    /// Ports of SCTP or TCP: source, destination.
    pub ports: Option<(u16, u16)>,
    /// The verification tag.
    pub tag: Option<u32>,
    /// The part of a datagram that the capture recorded before the kernel cut it into packets.
    pub segment: Option<Segment>,
    /// The chunks of SCTP; or a TCP segment, and its options of Multipath TCP.
    chunks: Vec<Short>,
    /// A fault in the packet, or why it is not shown.
    pub remark: Option<String>,
    /// The comment in the file.
    pub comment: Option<String>,
}

/// A place among the packets of a datagram.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Segment {
    /// Counted from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

/// The direction of a packet at an interface.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Inbound.
    In,
    /// Outbound.
    Out,
}

/// Describes a captured packet. SCTP is expected on IP and on the UDP ports `udp`, TCP on IP. A datagram that the
/// kernel had not yet cut into packets gives several lines.
pub fn explain(packet: &CapturedPacket, udp: &[u16]) -> Vec<Line> {
    let mut line = Line {
        number: packet.number,
        time: packet.time.and_then(|nanos| RawValue::from_string(seconds(nanos)).ok()),
        interface: packet.interface.as_deref().map(printable),
        direction: packet.inbound.map(|inbound| if inbound { Direction::In } else { Direction::Out }),
        size: packet.size,
        from: None,
        to: None,
        udp: None,
        ports: None,
        tag: None,
        segment: None,
        chunks: Vec::new(),
        remark: None,
        comment: packet.comment.as_deref().map(printable),
    };
    match layers::transport(packet.link_type, &packet.bytes, udp) {
        Ok(found) => {
            let missing = (packet.size as usize).saturating_sub(packet.bytes.len());
            // The check sequence of a truncated frame is missing too.
            let check = if packet.link_type == RADIOTAP { radio::CHECK } else { 0 };
            let missing = missing.saturating_sub(check);
            if found.is_tcp {
                line.show_segment(&found, missing);
                return vec![line];
            }
            show(line, &found, missing)
        }
        Err(Other { ends, why, .. }) => {
            (line.from, line.to) = ends.unzip();
            line.remark = Some(why);
            vec![line]
        }
    }
}

/// The lines for the packet. `missing` bytes at its end were not captured.
fn show(line: Line, found: &Found<'_>, missing: usize) -> Vec<Line> {
    // Only UDP datagrams are cut into packets with checksums of their own, and all bytes are needed to find the cuts.
    let whole = found.from.udp != 0 && !found.cut && missing == 0;
    let parts = if whole { segments(found.bytes) } else { vec![found.bytes] };
    let of = parts.len();
    let shown = parts.into_iter().enumerate().map(|(place, bytes)| {
        let mut line = line.clone();
        if of > 1 {
            line.size = line.size.saturating_sub((found.bytes.len() - bytes.len()) as u32);
            line.segment = Some(Segment { number: place + 1, of });
        }
        line.show(&Found { bytes, ..*found }, missing);
        line
    });
    shown.collect()
}

impl Line {
    fn show(&mut self, found: &Found<'_>, missing: usize) {
        (self.from, self.to) = (Some(found.from.ip), Some(found.to.ip));
        self.udp = (found.to.udp != 0 || found.from.udp != 0).then_some((found.from.udp, found.to.udp));
        if let Some(header) = found.bytes.first_chunk::<HEADER>() {
            let [a, b, c, d, e, f, g, h, ..] = *header;
            self.ports = Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])));
            self.tag = Some(u32::from_be_bytes([e, f, g, h]));
        }
        if found.cut || missing > 0 {
            self.show_beginning(found, missing);
        } else {
            self.show_whole(found);
        }
    }

    fn show_segment(&mut self, found: &Found<'_>, missing: usize) {
        (self.from, self.to) = (Some(found.from.ip), Some(found.to.ip));
        match tcp::segment(found.bytes, missing) {
            Ok(shown) => (self.ports, self.chunks) = (Some(shown.ports), shown.parts),
            Err(why) => self.remark = Some(why),
        }
    }

    fn show_whole(&mut self, found: &Found<'_>) {
        let bytes = Bytes::copy_from_slice(found.bytes);
        let decoded = match Packet::decode(found.from, found.to, Ecn::NotEct, bytes.clone()) {
            Err(error @ DecodeError::Checksum { .. }) => {
                self.remark = Some(format!("wrong checksum: {error}"));
                Packet::decode_unchecked(found.from, found.to, Ecn::NotEct, bytes)
            }
            decoded => decoded,
        };
        let end = whole_chunks(found.bytes);
        match decoded {
            Ok(packet) => {
                self.chunks = packet.chunks.iter().map(Short::new).collect();
                if end < found.bytes.len() {
                    self.malformed(format!("the chunk at byte {end} is not all here"));
                }
            }
            Err(error) => self.malformed(error.to_string()),
        }
    }

    fn malformed(&mut self, why: String) {
        let before = self.remark.take().map_or(String::new(), |before| format!("{before}; "));
        self.remark = Some(format!("{before}malformed: {why}"));
    }

    /// The capture does not have all of the packet: its whole chunks, and what the next one is. If all that is missing
    /// is user data at the end, nothing that a line shows is missing.
    fn show_beginning(&mut self, found: &Found<'_>, missing: usize) {
        let end = whole_chunks(found.bytes);
        let last = without_user_data(&found.bytes[end..]);
        let shown = last.map_or(end, |length| end + length);
        let mut bytes = found.bytes.to_vec();
        bytes.resize(shown, 0);
        if let Ok(packet) = Packet::decode_unchecked(found.from, found.to, Ecn::NotEct, bytes.into()) {
            self.chunks = packet.chunks.iter().map(Short::new).collect();
            self.chunks.extend(found.bytes.get(shown).map(|number| Short::cut(*number)));
        }
        if last.is_none() || missing == 0 || shown < found.bytes.len() + missing {
            self.remark = Some(format!("cut: {} bytes of SCTP were captured", found.bytes.len()));
        }
    }
}

/// The length with padding of a chunk of user data of which the header at least is there, and not all of the rest.
pub(super) fn without_user_data(bytes: &[u8]) -> Option<usize> {
    let header = match bytes.first()? {
        0 => 16,
        64 => 20,
        _ => return None,
    };
    let length = usize::from(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
    (bytes.len() >= header && length > header).then(|| length.next_multiple_of(4))
}

/// How far the bytes are whole chunks, the common header before them.
pub(super) fn whole_chunks(bytes: &[u8]) -> usize {
    chunk_ends(bytes).last().unwrap_or(HEADER.min(bytes.len()))
}

/// The end of each whole chunk, in order.
pub(super) fn chunk_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut end = HEADER.min(bytes.len());
    std::iter::from_fn(move || {
        let &[_, _, high, low] = bytes[end..].first_chunk()?;
        let length = usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4);
        if length < CHUNK_HEADER || length > bytes.len() - end {
            return None;
        }
        end += length;
        Some(end)
    })
}

/// "5.000000000  wifi:s out  10.0.0.1:5000 > 10.0.0.2:5000  tag=0x00000000  INIT …  # comment".
impl Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.time.as_deref().map_or("-", RawValue::get))?;
        if let Some(interface) = &self.interface {
            // The width is the caller's: names of interfaces stand below each other.
            write!(f, "  {interface:width$}", width = f.width().unwrap_or(0))?;
        }
        if let Some(direction) = self.direction {
            f.write_str(if direction == Direction::In { " in " } else { " out" })?;
        }
        if let (Some(from), Some(to)) = (self.from, self.to) {
            let end = |ip: IpAddr, port: Option<u16>| match port {
                Some(port) => SocketAddr::new(ip, port).to_string(),
                None => ip.to_string(),
            };
            let (source, destination) = self.ports.unzip();
            write!(f, "  {} > {}", end(from, source), end(to, destination))?;
        }
        if let Some((source, destination)) = self.udp {
            write!(f, "  udp {source} > {destination}")?;
        }
        if let Some(tag) = self.tag {
            write!(f, "  tag={tag:#010x}")?;
        }
        if let Some(Segment { number, of }) = self.segment {
            write!(f, "  segment {number} of {of}")?;
        }
        for (place, chunk) in self.chunks.iter().enumerate() {
            write!(f, "{} {chunk}", if place == 0 { " " } else { ";" })?;
        }
        if let Some(remark) = &self.remark {
            write!(f, "  [{remark}]")?;
        }
        self.comment.as_ref().map_or(Ok(()), |comment| write!(f, "  # {comment}"))
    }
}

/// Seconds with nine decimals.
fn seconds(nanos: i128) -> String {
    let (sign, nanos) = (if nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
    format!("{sign}{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A text of the file that no terminal takes for a command.
fn printable(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        // Writing to a string does not fail.
        let _ = if c.is_control() { write!(out, "{}", c.escape_default()) } else { out.write_char(c) };
        out
    })
}
