//! What both foreign implementations of SCTP need.

use std::net::SocketAddr;

use anabranch_sim::foreign::{ForeignOutput, ForeignPacket, Setup};
use bytes::Bytes;

/// Bytes of the common header and of the header of one DATA chunk.
pub const HEADERS: u32 = COMMON as u32 + 16;
/// The largest message that a flow may have, in bytes.
pub const LARGEST_MESSAGE: usize = 1 << 20;
/// The size of the common header.
const COMMON: usize = 12;

/// Where the packets of one end go. Both implementations have one path.
#[derive(Clone)]
pub struct Wire {
    pub from: SocketAddr,
    pub to: SocketAddr,
    /// Whether this end connects.
    pub connects: bool,
    /// The largest packet.
    pub packet: u32,
}

impl Wire {
    /// Those of the client and the server, on the primary path.
    pub fn pair(setup: &Setup) -> Result<[Wire; 2], String> {
        let (client, server) = *setup.paths.first().ok_or("there is no path")?;
        let [client, server] = [setup.addresses[0][client], setup.addresses[1][server]];
        if setup.packet <= HEADERS {
            return Err("the MTU has no room for a DATA chunk".to_owned());
        }
        let wire = |from, to, connects| Wire { from, to, connects, packet: setup.packet };
        Ok([wire(client, server, true), wire(server, client, false)])
    }

    pub fn transmit(&self, bytes: Bytes) -> ForeignOutput {
        let has_data = has_data(&bytes);
        ForeignOutput::Transmit(ForeignPacket { from: self.from, to: self.to, bytes, has_data })
    }
}

/// Whether a packet has a DATA or I-DATA chunk.
fn has_data(packet: &[u8]) -> bool {
    chunks(packet).any(|kind| kind == 0 || kind == 64)
}

/// The types of the chunks in a packet.
pub fn chunks(packet: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = packet.get(COMMON..).unwrap_or_default();
    std::iter::from_fn(move || {
        let [kind, _, high, low, ..] = *rest else { return None };
        let length = usize::from(u16::from_be_bytes([high, low])).next_multiple_of(4);
        rest = rest.get(length.max(4)..).unwrap_or_default();
        Some(kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_found_behind_other_chunks() {
        let header = [0; COMMON];
        let sack = [3, 0, 0, 6, 0, 0, 0, 0];
        let data = [0, 3, 0, 17];
        assert!(!has_data(&[&header[..], &sack].concat()));
        assert!(has_data(&[&header[..], &sack, &data].concat()));
        assert!(!has_data(&[&header[..], &[3, 0, 0, 0]].concat()));
        assert!(!has_data(&[]));
    }
}
