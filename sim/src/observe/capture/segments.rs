//! Datagrams that a capture shows as one packet although they are sent as several (GSO).
//!
//! With UDP segmentation offload (GSO) a sender hands the kernel many packets of one size in one datagram, and a
//! capture on that host sees it before it is cut. The size of the packets stands nowhere in it. But the first packet
//! ends where one of its chunks ends, and its checksum is right only for its own bytes.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, DecodeError, Ecn, HEADER, Packet};
use bytes::Bytes;

use super::line::chunk_ends;

/// The first packet has at most so many bytes: no Ethernet carries more.
const LONGEST: usize = 9216;

/// The packets in the bytes after a UDP header. There is one packet unless the checksums show several.
pub(super) fn segments(sctp: &[u8]) -> Vec<&[u8]> {
    let is_one = sctp.len() <= HEADER || checksum_is_right(sctp);
    let sizes = || chunk_ends(sctp).take_while(|end| *end <= LONGEST && *end < sctp.len());
    let size = if is_one { None } else { sizes().find(|size| sctp.chunks(*size).all(|one| fits(one, sctp))) };
    sctp.chunks(size.unwrap_or(sctp.len()).max(1)).collect()
}

/// Whether `one` is a packet that follows the first one. Without checksums (RFC 9653), ports and tag decide.
fn fits(one: &[u8], first: &[u8]) -> bool {
    let (Some(own), Some(firsts)) = (one.first_chunk::<HEADER>(), first.first_chunk::<HEADER>()) else {
        return false;
    };
    let unchecked = own[8..] == [0; 4] && own[..8] == firsts[..8];
    unchecked || checksum_is_right(one)
}

fn checksum_is_right(bytes: &[u8]) -> bool {
    let place = Address::ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let decoded = Packet::decode(place, place, Ecn::NotEct, Bytes::copy_from_slice(bytes));
    !matches!(decoded, Err(DecodeError::Checksum { .. }))
}
