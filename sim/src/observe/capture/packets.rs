//! The SCTP packets of a captured packet as values, for those who replay a capture.

use anabranch_proto::wire::{Chunk, Packet};
use bytes::Bytes;

use super::layers::{self, Found};
use super::line::{whole_chunks, without_user_data};
use super::read::CapturedPacket;
use super::segments::segments;
use crate::medium::wire::DropCause;
use crate::observe::words;

/// What stands for user data.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// An SCTP packet of a capture. Its user data is zeros of the same length, which take no memory.
#[derive(Clone, Debug)]
pub struct SctpPacket {
    /// The number of the captured packet, from 1.
    pub number: u64,
    /// Nanoseconds, as [`CapturedPacket::time`].
    pub time: i128,
    /// The interface, if the file names one.
    pub interface: Option<String>,
    /// Whether it came in there (`true`) or went out, if the file says so.
    pub inbound: Option<bool>,
    /// Its TTL or hop limit.
    pub hops_left: u8,
    /// Its size in bytes, IP header included.
    pub size: u32,
    /// Whether a simulated link dropped it when it was offered: it is recorded then, before those that waited in the
    /// queue.
    pub refused: bool,
    /// The packet.
    pub packet: Packet,
}

/// The SCTP packets in a captured packet, on IP or on the UDP ports `udp`: none if it is something else; several if the
/// kernel had not yet cut it. `None`: it is one, but it is malformed, has no time, or lacks more than user data at its
/// end; or it may be one, or a part of one: a fragment of IP, or a packet of a link that is not known.
pub fn sctp_packets(captured: &CapturedPacket, udp: &[u16]) -> Option<Vec<SctpPacket>> {
    let found = match layers::transport(captured.link_type, &captured.bytes, udp) {
        Ok(found) => found,
        Err(other) => return (!other.is_unread).then(Vec::new),
    };
    if found.is_tcp {
        return Some(Vec::new());
    }
    let time = captured.time?;
    let whole = found.from.udp != 0 && !found.cut;
    let refused = captured.comment.as_deref().is_some_and(is_refused);
    let parts = if whole { segments(found.bytes) } else { vec![found.bytes] };
    let packet = |bytes| {
        let packet = decode(&Found { bytes, ..found })?;
        let headers = if packet.to.ip.is_ipv4() { 20 } else { 40 } + if packet.to.udp == 0 { 0 } else { 8 };
        Some(SctpPacket {
            number: captured.number,
            time,
            interface: captured.interface.clone(),
            inbound: captured.inbound,
            hops_left: found.hops_left,
            size: packet.size() as u32 + headers,
            refused,
            packet,
        })
    };
    parts.into_iter().map(packet).collect()
}

/// Whether the comment is that of a packet which the link dropped when it was offered.
fn is_refused(comment: &str) -> bool {
    let cause = comment.strip_prefix("dropped: ").map(|rest| rest.split(';').next().unwrap_or(rest));
    [DropCause::Queue, DropCause::Early, DropCause::Down, DropCause::Loss, DropCause::Size]
        .iter()
        .any(|c| cause == Some(words::drop_cause(*c, false)))
}

/// The packet, with zeros for user data, also for user data that was not captured.
fn decode(found: &Found<'_>) -> Option<Packet> {
    let end = whole_chunks(found.bytes);
    let mut bytes = found.bytes.to_vec();
    if end < bytes.len() {
        bytes.resize(end + without_user_data(&found.bytes[end..])?, 0);
    }
    let mut packet = Packet::decode_unchecked(found.from, found.to, found.ecn, bytes.into()).ok()?;
    for chunk in &mut packet.chunks {
        match chunk {
            Chunk::Data(data) => data.payload = zeros(data.payload.len()),
            Chunk::IData(data) => data.payload = zeros(data.payload.len()),
            _ => {}
        }
    }
    Some(packet)
}

/// So many zeros, at most 65,536.
fn zeros(length: usize) -> Bytes {
    Bytes::from_static(&ZEROS[..length.min(ZEROS.len())])
}
