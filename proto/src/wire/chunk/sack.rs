//! SACK (RFC 9260 §3.3.4).

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;

use super::Content;
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// Bytes of a SACK chunk before its blocks.
pub const SACK_HEADER: usize = 16;

/// A run of TSNs received beyond a gap, as offsets from the Cumulative TSN Ack, both ends included.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// Offset of the first.
    pub start: u16,
    /// Offset of the last.
    pub end: u16,
}

/// What the receiver has, and what room it has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sack {
    /// All up to this TSN have arrived.
    pub cumulative: Tsn,
    /// Room left in the receive buffer, in bytes.
    pub a_rwnd: u32,
    /// What has arrived beyond gaps, ascending.
    pub gaps: SmallVec<[GapBlock; 4]>,
    /// TSNs that arrived again since the last SACK.
    pub duplicates: SmallVec<[Tsn; 4]>,
}

impl Sack {
    /// Encoded length in bytes; always a multiple of four.
    pub fn size(&self) -> usize {
        SACK_HEADER + 4 * (self.gaps.len() + self.duplicates.len())
    }
}

//= rfc9260#section-3.3.4
// Blocks and duplicates are given as they came. Whether they ascend and lie within what was sent is for the
// association to judge.
impl Content for Sack {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.cumulative.0);
        out.put_u32(self.a_rwnd);
        // Neither count can be cut short: the chunk's length, at four bytes for each, was checked before.
        out.put_u16(self.gaps.len() as u16);
        out.put_u16(self.duplicates.len() as u16);
        for gap in &self.gaps {
            out.put_u16(gap.start);
            out.put_u16(gap.end);
        }
        self.duplicates.iter().for_each(|tsn| out.put_u32(tsn.0));
        Ok(())
    }

    #[inline(always)]
    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let cumulative = Tsn(value.u32()?);
        let a_rwnd = value.u32()?;
        let (gaps, duplicates) = (value.u16()?, value.u16()?);
        Ok(Sack {
            cumulative,
            a_rwnd,
            gaps: value.arrays(gaps.into())?.map(GapBlock::from_bytes).collect(),
            duplicates: value.arrays(duplicates.into())?.map(|tsn| Tsn(u32::from_be_bytes(tsn))).collect(),
        })
    }
}

impl GapBlock {
    fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        GapBlock { start: u16::from_be_bytes([a, b]), end: u16::from_be_bytes([c, d]) }
    }
}
