//! Builds the bytes of the peer's packets, and checks and reads those of the stack.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crc_fast::crc32_iscsi;

use super::ast::{Body, Checksum, Packet};
use super::element::{Bytes, Element, Value, split};
use super::form::Family;

/// Bytes of the common header.
pub(super) const HEADER: usize = 12;
/// The largest packet that IP carries, in bytes.
const LARGEST: usize = 65_535;

pub(super) const INIT: u16 = 1;
pub(super) const INIT_ACK: u16 = 2;
pub(super) const HEARTBEAT: u16 = 4;
pub(super) const ABORT: u16 = 6;
pub(super) const SHUTDOWN_COMPLETE: u16 = 14;

/// Values that the peer must return unchanged.
#[derive(Default)]
pub(super) struct EchoedValues {
    /// The cookie of the last INIT ACK.
    cookie: Option<Vec<u8>>,
    /// The information of the last HEARTBEAT, and of the last one to each address.
    heartbeat: Option<Vec<u8>>,
    heartbeats: BTreeMap<IpAddr, Vec<u8>>,
}

impl EchoedValues {
    /// Stores the values of a packet that the stack sent to `to`.
    pub(super) fn keep(&mut self, chunks: &[Bytes<'_>], to: IpAddr) {
        for chunk in chunks {
            match chunk.number {
                INIT_ACK => {
                    let params = chunk.value.get(16..).and_then(|params| split(Family::Param, params));
                    let cookie = params.iter().flatten().find(|param| param.number == 7);
                    self.cookie = cookie.map(|param| param.value.to_vec()).or(self.cookie.take());
                }
                HEARTBEAT => {
                    let info = super::element::first(Family::Param, chunk.value);
                    if let Some((info, _)) = info {
                        self.heartbeat = Some(info.value.to_vec());
                        self.heartbeats.insert(to, info.value.to_vec());
                    }
                }
                _ => {}
            }
        }
    }

    /// Replaces every `...` of a packet from `source`.
    fn fill(&self, element: &Element, within: &str, source: IpAddr) -> Result<Element, String> {
        let mut filled = element.clone();
        filled.flags = Some(element.flags.unwrap_or(0));
        for field in &mut filled.fields {
            match field {
                Some(Value::Elements(elements)) => {
                    for inner in elements {
                        *inner = self.fill(inner, element.form.name, source)?;
                    }
                }
                Some(_) => {}
                None => *field = Some(Value::Bytes(self.filling(element, within, source)?)),
            }
        }
        let goes_back = element.form.name == "COOKIE_ECHO" && element.fields == [None];
        if let (true, None, Some(Some(Value::Bytes(bytes)))) =
            (element.form.has_length(), element.length.filter(|_| !goes_back), filled.fields.last())
        {
            filled.length = Some((bytes.len() + 4) as u16);
        }
        Ok(filled)
    }

    /// The bytes that replace an open value.
    fn filling(&self, element: &Element, within: &str, source: IpAddr) -> Result<Vec<u8>, String> {
        let written = element.length.filter(|_| element.form.name != "COOKIE_ECHO");
        let length = written.map(|length| usize::from(length) - 4);
        let kept = match (element.form.name, within) {
            ("COOKIE_ECHO", _) => self.cookie.clone().ok_or("no INIT ACK has brought a cookie yet")?,
            ("HEARTBEAT_INFORMATION", "HEARTBEAT_ACK") => {
                let of_path = self.heartbeats.get(&source).or(self.heartbeat.as_ref());
                of_path.cloned().ok_or("no HEARTBEAT has come yet")?
            }
            ("HEARTBEAT_INFORMATION", _) => vec![0; length.unwrap_or(0)],
            // A cookie that the peer invents.
            _ => vec![0x5a; length.unwrap_or(0)],
        };
        match length {
            Some(length) if length != kept.len() => Err(format!(
                "len={} was written, but there are {} bytes to send back",
                length + 4,
                kept.len()
            )),
            _ => Ok(kept),
        }
    }
}

/// Encodes a packet of the peer with a tag and a checksum of zero.
pub(super) fn build(
    packet: &Packet,
    ports: (u16, u16),
    source: IpAddr,
    seen: &EchoedValues,
) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    out.extend(ports.0.to_be_bytes());
    out.extend(ports.1.to_be_bytes());
    out.extend([0; 8]);
    match &packet.body {
        Body::Raw(bytes) => out.extend(bytes),
        Body::Chunks(chunks) => {
            for chunk in chunks {
                seen.fill(chunk, "", source)?.put(&mut out);
                out.resize(out.len().next_multiple_of(4), 0);
                if out.len() > LARGEST {
                    break;
                }
            }
        }
    }
    match out.len() > LARGEST {
        true => Err(format!("a packet has at most {LARGEST} bytes: IP carries no larger one")),
        false => Ok(out),
    }
}

pub(super) fn set_tag(packet: &mut [u8], tag: u32) {
    packet[4..8].copy_from_slice(&tag.to_be_bytes());
}

/// Sets the checksum, or one that differs by one.
pub(super) fn set_checksum(packet: &mut [u8], checksum: Checksum) {
    packet[8..HEADER].fill(0);
    let right = crc32_iscsi(packet);
    let checksum = match checksum {
        Checksum::Right => right,
        Checksum::Wrong => right.wrapping_add(1),
        Checksum::Zero => 0,
    };
    packet[8..HEADER].copy_from_slice(&checksum.to_le_bytes());
}

pub(super) fn tag(packet: &[u8]) -> u32 {
    number(packet, 4).unwrap_or(0)
}

pub(super) fn ports(packet: &[u8]) -> (u16, u16) {
    let ports = number(packet, 0).unwrap_or(0);
    ((ports >> 16) as u16, ports as u16)
}

/// The 32-bit number at `at`.
pub(super) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// The chunks of a packet; `None` if a length is wrong.
pub(super) fn chunks(packet: &[u8]) -> Option<Vec<Bytes<'_>>> {
    split(Family::Chunk, packet.get(HEADER..)?)
}

/// Checks a packet of the stack for errors that no script allows: a wrong checksum, padding that is not zero, a wrong
/// length, more bytes than the path MTU.
pub(super) fn fault(packet: &[u8], checksum: Checksum, room: usize) -> Option<String> {
    let mut right = packet.to_vec();
    set_checksum(&mut right, checksum);
    let Some(chunks) = chunks(packet) else { return Some("a chunk's length is wrong".to_owned()) };
    if right != packet {
        return Some("the checksum is wrong".to_owned());
    }
    if packet.len() > room {
        return Some(format!("{} bytes are more than the {room} that the path MTU leaves", packet.len()));
    }
    if chunks.iter().any(|chunk| chunk.padding.iter().any(|byte| *byte != 0)) {
        return Some("the padding is not zero".to_owned());
    }
    (!packet.len().is_multiple_of(4)).then(|| "the last chunk is not padded".to_owned())
}

/// Prints a packet in script notation as far as it can be decoded, and the rest as bytes.
pub(super) fn show(packet: &[u8]) -> String {
    let raw = || format!("{:?}", packet.get(HEADER..).unwrap_or_default());
    let Some(chunks) = chunks(packet) else { return raw() };
    let shown =
        chunks.iter().map(|chunk| Element::of(Family::Chunk, chunk).map_or_else(raw, |e| e.to_string()));
    shown.collect::<Vec<_>>().join("; ")
}
