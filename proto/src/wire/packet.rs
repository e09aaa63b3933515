//! The common header (RFC 9260 §3.1) and the packet behind it.

use bytes::{BufMut, Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};
use smallvec::SmallVec;

use super::reader::Reader;
use super::{Address, Chunk, DecodeError, EncodeError};

/// Bytes of the common header.
pub const HEADER: usize = 12;

/// Where the checksum stands in it.
const CHECKSUM: std::ops::Range<usize> = 8..HEADER;

/// The SCTP ports of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// The sender's.
    pub source: u16,
    /// The receiver's.
    pub destination: u16,
}

impl Ports {
    /// The ports of an answer.
    pub const fn reversed(self) -> Self {
        Ports { source: self.destination, destination: self.source }
    }
}

/// The two ECN bits of the IP header.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Ecn {
    /// Not capable of ECN.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// An SCTP packet, typed.
///
/// Whatever can be constructed can be encoded, and comes back equal, with two exceptions that
/// [`encode`](Packet::encode) refuses: a chunk longer than 65,535 bytes, and an `Unknown` chunk, parameter or
/// cause with a number that has a variant of its own. Addresses and ECN bits belong to IP and are no part of
/// the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Where it was sent from.
    pub from: Address,
    /// Where it is going.
    pub to: Address,
    /// SCTP ports.
    pub ports: Ports,
    /// The verification tag.
    pub tag: u32,
    /// The ECN bits of the IP header that carries it.
    pub ecn: Ecn,
    /// The chunks, in order.
    pub chunks: SmallVec<[Chunk; 2]>,
}

impl Packet {
    /// Encoded length in bytes: the common header and every chunk with its padding, without IP.
    pub fn size(&self) -> usize {
        HEADER + self.chunks.iter().map(Chunk::padded_size).sum::<usize>()
    }

    /// As [`encode`](Packet::encode), with a checksum of zero: for a lower layer that finds errors itself, and only
    /// if [`Endpoint::omits_checksum`](crate::Endpoint::omits_checksum) says so of this packet.
    //= rfc9653#section-5.2
    pub fn encode_without_checksum(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        let encoded = self.put(out);
        if encoded.is_err() {
            out.truncate(start);
        }
        encoded
    }

    /// Appends the packet to `out`, checksum included. On an error `out` is as it was.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        self.encode_without_checksum(out)?;
        //= rfc9260#section-6.8
        //= rfc9260#appendix-A
        // The reflected CRC goes out with its lowest byte first, against the network order of all else.
        let packet = &mut out[start..];
        let checksum = crc32_iscsi(packet);
        packet[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// Header with a zero checksum, and chunks.
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.reserve(self.size());
        out.put_u16(self.ports.source);
        out.put_u16(self.ports.destination);
        out.put_u32(self.tag);
        out.put_u32(0);
        self.chunks.iter().try_for_each(|chunk| chunk.put(out))
    }

    /// The packet that these bytes are. What it keeps of them (payloads, cookies) is shared, not copied.
    ///
    /// One wrong length anywhere and the packet is refused whole; but of a partial chunk at its end only that is
    /// dropped. Reserved bits and padding are not looked at; the padding of the last chunk may be missing.
    /// Of the chunks that are not understood and are to be skipped, the first 32 are kept.
    /// The memory it takes is at most 64 times the size of `bytes`, reached by nothing but empty chunks.
    pub fn decode(from: Address, to: Address, ecn: Ecn, bytes: Bytes) -> Result<Packet, DecodeError> {
        //= rfc9260#section-6.8
        let computed = received_checksum(&bytes)?;
        let packet = &bytes[CHECKSUM];
        let found = u32::from_le_bytes([packet[0], packet[1], packet[2], packet[3]]);
        if found != computed {
            return Err(DecodeError::Checksum { found, computed });
        }
        Self::decode_unchecked(from, to, ecn, bytes)
    }

    /// As [`decode`](Packet::decode), without looking at the checksum: for bytes that somebody else has checked.
    pub fn decode_unchecked(
        from: Address,
        to: Address,
        ecn: Ecn,
        bytes: Bytes,
    ) -> Result<Packet, DecodeError> {
        let size = bytes.len();
        if size < HEADER {
            return Err(DecodeError::TooShort { size });
        }
        let mut reader = Reader::new(&bytes);
        let ports = Ports { source: reader.u16()?, destination: reader.u16()? };
        let tag = reader.u32()?;
        reader.u32()?;
        let (mut chunks, mut skipped) = (SmallVec::new(), 0);
        //= rfc9260#section-6.10
        while reader.remaining() > 0 && !reader.is_at_a_partial_chunk() {
            let chunk = Chunk::take(&mut reader)?;
            if let Chunk::Unknown(unknown) = &chunk
                && unknown.number & 0x80 != 0
            {
                skipped += 1;
                if skipped > MOST_SKIPPED {
                    continue;
                }
            }
            if chunks.len() == chunks.capacity() {
                // A packet of small chunks has many of them, likely of about one size.
                chunks.reserve(1 + reader.remaining() / chunk.padded_size());
            }
            chunks.push(chunk);
        }
        Ok(Packet { from, to, ports, tag, ecn, chunks })
    }
}

/// Chunks of a packet that are not understood and only to be skipped, and are kept nevertheless to be reported.
const MOST_SKIPPED: u32 = 32;

/// The CRC32c that these bytes should carry: that of all of them, but with a checksum of zero.
fn received_checksum(bytes: &[u8]) -> Result<u32, DecodeError> {
    let (header, chunks) =
        bytes.split_first_chunk::<HEADER>().ok_or(DecodeError::TooShort { size: bytes.len() })?;
    let mut header = *header;
    header[CHECKSUM].fill(0);
    // The digest's register is the complement of the checksum so far.
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc32_iscsi(&header)));
    digest.update(chunks);
    Ok(digest.finalize() as u32)
}
