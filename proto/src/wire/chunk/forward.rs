//! FORWARD TSN (RFC 3758 §3.2) and I-FORWARD-TSN (RFC 8260 §2.3.1).

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};
use crate::{Mid, Ssn, Tsn};

/// Bytes of FORWARD TSN and I-FORWARD-TSN before the streams.
pub const FORWARD_HEADER: usize = CHUNK_HEADER + 4;

/// FORWARD TSN: the receiver treats all TSNs up to this one as received. The sender has given up those that are
/// missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardTsn {
    /// The new Cumulative TSN.
    pub cumulative: Tsn,
    /// The streams of the ordered messages that were given up, each with the highest SSN given up.
    pub skipped: Vec<(u16, Ssn)>,
}

impl ForwardTsn {
    /// Encoded length in bytes; always a multiple of four.
    pub fn size(&self) -> usize {
        FORWARD_HEADER + 4 * self.skipped.len()
    }
}

//= rfc3758#section-3.2
impl Content for ForwardTsn {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.cumulative.0);
        for (stream, ssn) in &self.skipped {
            out.put_u16(*stream);
            out.put_u16(ssn.0);
        }
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let cumulative = Tsn(value.u32()?);
        let skipped = value.arrays(value.remaining() / 4)?;
        let skipped =
            skipped.map(|[a, b, c, d]| (u16::from_be_bytes([a, b]), Ssn(u16::from_be_bytes([c, d]))));
        Ok(ForwardTsn { cumulative, skipped: skipped.collect() })
    }
}

/// The last message given up of one stream, ordered or unordered. All earlier messages of that kind are given up too.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct SkippedMessage {
    /// The stream.
    pub stream: u16,
    /// U: the message is unordered.
    pub unordered: bool,
    /// The highest Message Identifier given up.
    pub mid: Mid,
}

/// I-FORWARD-TSN: [`ForwardTsn`] for associations that use I-DATA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IForwardTsn {
    /// The new Cumulative TSN.
    pub cumulative: Tsn,
    /// The messages that were given up.
    pub skipped: Vec<SkippedMessage>,
}

impl IForwardTsn {
    /// Encoded length in bytes; always a multiple of four.
    pub fn size(&self) -> usize {
        FORWARD_HEADER + 8 * self.skipped.len()
    }
}

//= rfc8260#section-2.3.1
impl Content for IForwardTsn {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.cumulative.0);
        for skipped in &self.skipped {
            out.put_u16(skipped.stream);
            out.put_u16(skipped.unordered.into());
            out.put_u32(skipped.mid.0);
        }
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let cumulative = Tsn(value.u32()?);
        let skipped = value.arrays(value.remaining() / 8)?;
        let skipped = skipped.map(|[a, b, _, flags, e, f, g, h]| SkippedMessage {
            stream: u16::from_be_bytes([a, b]),
            unordered: flags & 1 != 0,
            mid: Mid(u32::from_be_bytes([e, f, g, h])),
        });
        Ok(IForwardTsn { cumulative, skipped: skipped.collect() })
    }
}
