//! The common header (RFC 9260 §3.1) and the whole packet.

use std::hint::cold_path;
use std::net::{IpAddr, Ipv4Addr};

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use super::checksum::{CHECKSUM, checksum};
use super::chunk::{Covered, padded};
use super::reader::Reader;
use super::{Address, Chunk, Copies, DecodeError, EncodeError};

/// Bytes of the common header.
pub const HEADER: usize = 12;

/// The SCTP ports of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ports {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
}

impl Ports {
    /// The ports of a reply.
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

/// An SCTP packet as a value.
///
/// Every value can be encoded and is decoded to an equal value. [`encode`](Packet::encode) rejects two exceptions: a
/// chunk longer than 65,535 bytes, and an `Unknown` chunk, parameter or cause that would be decoded as a known one.
/// Addresses and ECN bits belong to IP and are not encoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Source address.
    pub from: Address,
    /// Destination address.
    pub to: Address,
    /// SCTP ports.
    pub ports: Ports,
    /// The verification tag.
    pub tag: u32,
    /// The ECN bits of the IP header.
    pub ecn: Ecn,
    /// The chunks, in order.
    pub chunks: SmallVec<[Chunk; 2]>,
}

/// Packets that are needed no longer; further packets use their memory.
#[allow(clippy::vec_box, reason = "a packet keeps its box from one end to the other")]
pub type Spares = Vec<Box<Packet>>;

impl Default for Packet {
    /// A packet without chunks from nowhere to nowhere, to be decoded into.
    fn default() -> Self {
        let nowhere = Address::ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let ports = Ports { source: 0, destination: 0 };
        Packet { from: nowhere, to: nowhere, ports, tag: 0, ecn: Ecn::NotEct, chunks: SmallVec::new() }
    }
}

impl Packet {
    /// Drops the chunks.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if let Some(last) = self.chunks.pop() {
            dispose(last);
        }
        if !self.chunks.is_empty() {
            cold_path();
            self.chunks.clear();
        }
    }

    /// Makes the packet ready to be filled anew, in the same memory.
    pub fn recycle(&mut self) {
        self.chunks.clear();
        self.free_excess();
    }

    /// Drops the chunks with their memory if that is for unusually many: a peer that sends packets of the smallest
    /// chunks would otherwise occupy it for as long as packets are used again.
    #[inline(always)]
    pub(crate) fn free_excess(&mut self) {
        if self.chunks.capacity() > MOST_KEPT {
            self.free_chunks();
        }
    }

    #[cold]
    #[inline(never)]
    fn free_chunks(&mut self) {
        self.chunks = SmallVec::new();
    }

    /// Holds this chunk and no other from now on.
    #[inline(always)]
    pub(crate) fn hold(&mut self, chunk: Chunk) {
        if let [only] = &mut self.chunks[..] {
            return dispose(std::mem::replace(only, chunk));
        }
        self.clear();
        self.chunks.push(chunk);
    }

    /// Encoded length in bytes: the common header and every chunk with its padding, without IP.
    #[inline]
    pub fn size(&self) -> usize {
        // The usual packet holds one of these two.
        match &self.chunks[..] {
            [Chunk::Data(data)] => HEADER + padded(data.size()),
            [Chunk::Sack(sack)] => HEADER + sack.size(),
            all => HEADER + padded_sizes(all),
        }
    }

    /// Like [`encode`](Packet::encode), with a checksum of zero. It is for a lower layer that detects errors itself,
    /// and only for packets that [`Endpoint::omits_checksum`](crate::Endpoint::omits_checksum) allows.
    //= rfc9653#section-5.2
    pub fn encode_without_checksum(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        let encoded = self.put(out);
        if encoded.is_err() {
            out.truncate(start);
        }
        encoded
    }

    /// Appends the packet to `out`, with its checksum. On an error `out` is unchanged.
    pub fn encode(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        self.encode_without_checksum(out)?;
        // The CRC is sent with its lowest byte first, unlike all other fields.
        let packet = &mut out[start..];
        let checksum = checksum(packet);
        packet[CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    /// Appends the header with a checksum of zero, and the chunks.
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.reserve(self.size());
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&self.ports.source.to_be_bytes());
        header[2..4].copy_from_slice(&self.ports.destination.to_be_bytes());
        header[4..8].copy_from_slice(&self.tag.to_be_bytes());
        out.extend_from_slice(&header);
        self.chunks.iter().try_for_each(|chunk| chunk.put(out))
    }

    /// Decodes a packet. Parts that are kept (payloads, cookies) share the memory of `bytes` and are not copied.
    ///
    /// One wrong length rejects the whole packet, except inside a chunk or parameter of an extension: that becomes
    /// `Unknown`, and whoever knows whether the extension is used judges it. A partial chunk at its end is dropped alone. Reserved bits and
    /// padding are ignored; the last chunk may lack its padding. Of the unknown chunks that are to be skipped, the
    /// first 32 are kept. The result takes at most 64 times the memory of `bytes`; only empty chunks reach that.
    pub fn decode(from: Address, to: Address, ecn: Ecn, bytes: Bytes) -> Result<Packet, DecodeError> {
        verify(&bytes)?;
        Self::decode_unchecked(from, to, ecn, bytes)
    }

    /// Like [`decode`](Packet::decode), into a packet that is needed no longer. `bytes` is a part of `memory`, which
    /// the parts that are kept share. On an error the content of the packet means nothing.
    ///
    /// # Panics
    ///
    /// If `bytes` does not lie in `memory`.
    pub fn decode_into(
        &mut self,
        from: Address,
        to: Address,
        ecn: Ecn,
        bytes: &[u8],
        memory: &Bytes,
    ) -> Result<(), DecodeError> {
        verify(bytes)?;
        (self.from, self.to, self.ecn) = (from, to, ecn);
        self.read(Reader::new(bytes, memory))
    }

    /// Like [`decode_into`](Packet::decode_into), from a buffer that is used again: the parts that are kept are copied,
    /// after the checksum was verified.
    pub fn decode_copied(
        &mut self,
        from: Address,
        to: Address,
        ecn: Ecn,
        bytes: &[u8],
        copies: &Copies,
    ) -> Result<(), DecodeError> {
        verify(bytes)?;
        (self.from, self.to, self.ecn) = (from, to, ecn);
        self.read(Reader::copying(bytes, copies))
    }

    /// Like [`decode`](Packet::decode), without verifying the checksum: for bytes that a lower layer has verified.
    pub fn decode_unchecked(
        from: Address,
        to: Address,
        ecn: Ecn,
        bytes: Bytes,
    ) -> Result<Packet, DecodeError> {
        let mut packet = Packet { from, to, ecn, ..Packet::default() };
        packet.read(Reader::new(&bytes, &bytes))?;
        Ok(packet)
    }

    /// Reads the header and the chunks.
    fn read(&mut self, mut reader: Reader<'_>) -> Result<(), DecodeError> {
        let size = reader.remaining();
        let [s0, s1, d0, d1, t0, t1, t2, t3, ..] =
            reader.array::<HEADER>().map_err(|_| DecodeError::TooShort { size })?;
        self.ports =
            Ports { source: u16::from_be_bytes([s0, s1]), destination: u16::from_be_bytes([d0, d1]) };
        self.tag = u32::from_be_bytes([t0, t1, t2, t3]);
        self.chunks.clear();
        let (mut skipped, mut has_auth) = (0, false);
        //= rfc9260#section-6.10
        while reader.remaining() > 0 && !reader.is_at_a_partial_chunk() {
            let before = reader.remaining();
            let (header, value) = reader.element()?;
            if self.chunks.len() == self.chunks.capacity() {
                cold_path();
                // A packet of small chunks has many of them, usually of about the same size.
                let size = before - reader.remaining();
                self.chunks.reserve(1 + reader.remaining() / size);
            }
            Chunk::take(header, value, &mut self.chunks)?;
            match self.chunks.last_mut() {
                Some(Chunk::Auth(auth)) if !std::mem::replace(&mut has_auth, true) => {
                    auth.covered = Covered(Some(reader.ahead()));
                }
                Some(Chunk::Unknown(unknown)) if unknown.number & 0x80 != 0 => {
                    cold_path();
                    skipped += 1;
                    if skipped > MOST_SKIPPED {
                        self.chunks.pop();
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The most chunks for which a packet that is used again keeps memory. In a packet of 1500 bytes, 73 chunks with one
/// byte of user data fit.
const MOST_KEPT: usize = 128;
/// How many unknown chunks of a packet are kept to be reported although they are to be skipped.
const MOST_SKIPPED: u32 = 32;

//= rfc9260#section-6.8
fn verify(bytes: &[u8]) -> Result<(), DecodeError> {
    let Some(&[.., a, b, c, d]) = bytes.first_chunk::<HEADER>() else {
        return Err(DecodeError::TooShort { size: bytes.len() });
    };
    let found = u32::from_le_bytes([a, b, c, d]);
    let computed = checksum(bytes);
    if found == computed { Ok(()) } else { Err(DecodeError::Checksum { found, computed }) }
}

/// Drops a chunk.
// The usual packet holds one of these two. To drop any chunk takes longer.
#[inline(always)]
fn dispose(chunk: Chunk) {
    match chunk {
        Chunk::Data(data) => drop(data),
        Chunk::Sack(sack) => drop(sack),
        other => drop(other),
    }
}

/// The sum of the encoded lengths of chunks with their padding.
#[inline(never)]
fn padded_sizes(chunks: &[Chunk]) -> usize {
    chunks.iter().map(Chunk::padded_size).sum()
}
