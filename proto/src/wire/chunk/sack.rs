//! SACK (RFC 9260 §3.3.4).

use smallvec::SmallVec;

use crate::Tsn;

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
