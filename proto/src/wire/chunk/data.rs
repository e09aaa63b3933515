//! DATA (RFC 9260 §3.3.1).

use bytes::{Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};
use crate::{Ssn, Tsn};

/// Bytes of a DATA chunk before the user data.
pub const DATA_HEADER: usize = 16;

pub(super) const END: u8 = 1;
pub(super) const BEGIN: u8 = 2;
pub(super) const UNORDERED: u8 = 4;
pub(super) const IMMEDIATE: u8 = 8;

/// A user message or a fragment of one.
///
/// The payload has at most 65,519 bytes. A sent chunk has at least one. A received chunk may be empty, because the
/// association must answer it with an ABORT ("No User Data").
#[derive(PartialEq, Eq, Debug)]
pub struct Data {
    /// Transmission Sequence Number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Stream Sequence Number. It has no meaning for unordered messages.
    pub ssn: Ssn,
    /// Payload protocol identifier. It belongs to the application and is passed on unchanged.
    pub ppid: u32,
    /// B: the first fragment of its message.
    pub begin: bool,
    /// E: the last fragment of its message.
    pub end: bool,
    /// U: the message is delivered without regard to order.
    pub unordered: bool,
    /// I: the sender asks for an immediate SACK.
    pub immediate: bool,
    /// User data.
    pub payload: Bytes,
}

impl Clone for Data {
    // The payload comes first: then the other fields, which are plain, are copied at once.
    #[inline]
    fn clone(&self) -> Self {
        let payload = self.payload.clone();
        Data { payload, ..*self }
    }
}

impl Data {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        DATA_HEADER + self.payload.len()
    }
}

/// B, E, U and I as chunk flags.
pub(super) fn flags([begin, end, unordered, immediate]: [bool; 4]) -> u8 {
    let flag = |set, bit| if set { bit } else { 0 };
    flag(end, END) | flag(begin, BEGIN) | flag(unordered, UNORDERED) | flag(immediate, IMMEDIATE)
}

//= rfc9260#section-3.3.1
impl Content for Data {
    fn flags(&self) -> u8 {
        flags([self.begin, self.end, self.unordered, self.immediate])
    }

    #[inline]
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut header = [0; DATA_HEADER - CHUNK_HEADER];
        header[..4].copy_from_slice(&self.tsn.0.to_be_bytes());
        header[4..6].copy_from_slice(&self.stream.to_be_bytes());
        header[6..8].copy_from_slice(&self.ssn.0.to_be_bytes());
        header[8..].copy_from_slice(&self.ppid.to_be_bytes());
        out.extend_from_slice(&header);
        out.extend_from_slice(&self.payload);
        Ok(())
    }

    #[inline(always)]
    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [t0, t1, t2, t3, s0, s1, n0, n1, p0, p1, p2, p3] = value.array()?;
        Ok(Data {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: u16::from_be_bytes([s0, s1]),
            ssn: Ssn(u16::from_be_bytes([n0, n1])),
            ppid: u32::from_be_bytes([p0, p1, p2, p3]),
            begin: flags & BEGIN != 0,
            end: flags & END != 0,
            unordered: flags & UNORDERED != 0,
            immediate: flags & IMMEDIATE != 0,
            payload: value.rest(),
        })
    }
}
