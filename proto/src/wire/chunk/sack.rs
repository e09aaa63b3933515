//! SACK (RFC 9260 §3.3.4), and NR-SACK (draft-tuexen-tsvwg-sctp-multipath).

use bytes::{BufMut, BytesMut};
use smallvec::SmallVec;

use super::content::{CHUNK_HEADER, Content};
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// Bytes of a SACK chunk before its blocks.
pub const SACK_HEADER: usize = 16;

/// Bytes of an NR-SACK chunk before its blocks.
pub const NR_SACK_HEADER: usize = 20;

/// Position of the packet count in the flags. usrsctp uses the same.
const PACKETS_SHIFT: u32 = 6;

/// A run of TSNs received beyond a gap. Both ends are included, as offsets from the Cumulative TSN Ack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct GapBlock {
    /// Offset of the first.
    pub start: u16,
    /// Offset of the last.
    pub end: u16,
}

/// Which data the receiver has, and how much room its buffer has left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sack {
    /// The chunk flags. RFC 9260 defines none. With DAC, the two highest bits count the packets with DATA that the SACK
    /// acknowledges.
    pub flags: u8,
    /// The Cumulative TSN Ack: all TSNs up to this one have arrived.
    pub cumulative: Tsn,
    /// Room left in the receive buffer, in bytes.
    pub a_rwnd: u32,
    /// The Gap Ack Blocks, in ascending order.
    pub gaps: SmallVec<[GapBlock; 4]>,
    /// TSNs that arrived more than once since the last SACK.
    pub duplicates: SmallVec<[Tsn; 4]>,
}

impl Sack {
    /// Encoded length in bytes; always a multiple of four.
    pub fn size(&self) -> usize {
        SACK_HEADER + 4 * (self.gaps.len() + self.duplicates.len())
    }

    /// The flags for a SACK that acknowledges this number of packets with DATA; 3 means three or more.
    pub fn flags_of(packets: u32) -> u8 {
        (packets.min(3) as u8) << PACKETS_SHIFT
    }

    /// The number of packets with DATA that the SACK acknowledges according to its flags. It is 0 if the peer does not
    /// use DAC.
    pub fn packets(&self) -> u8 {
        self.flags >> PACKETS_SHIFT
    }
}

//= rfc9260#section-3.3.4
// Blocks and duplicates are returned as received. The association checks that they ascend and lie within the TSNs sent.
impl Content for Sack {
    fn flags(&self) -> u8 {
        self.flags
    }

    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut header = [0; SACK_HEADER - CHUNK_HEADER];
        header[..4].copy_from_slice(&self.cumulative.0.to_be_bytes());
        header[4..8].copy_from_slice(&self.a_rwnd.to_be_bytes());
        // Neither count can overflow: the chunk's length was checked before, and each entry has four bytes.
        header[8..10].copy_from_slice(&(self.gaps.len() as u16).to_be_bytes());
        header[10..].copy_from_slice(&(self.duplicates.len() as u16).to_be_bytes());
        out.extend_from_slice(&header);
        self.gaps.iter().for_each(|gap| out.put_u32(gap.word()));
        self.duplicates.iter().for_each(|tsn| out.put_u32(tsn.0));
        Ok(())
    }

    #[inline(always)]
    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [c0, c1, c2, c3, w0, w1, w2, w3, g0, g1, d0, d1] = value.array()?;
        let (mut gaps, mut duplicates) = (SmallVec::new(), SmallVec::new());
        // Most SACKs have neither.
        if [g0, g1, d0, d1] != [0; 4] {
            let (n, more) = (u16::from_be_bytes([g0, g1]), u16::from_be_bytes([d0, d1]));
            gaps = value.arrays(n.into())?.map(GapBlock::from_bytes).collect();
            duplicates = value.arrays(more.into())?.map(|tsn| Tsn(u32::from_be_bytes(tsn))).collect();
        }
        Ok(Sack {
            flags: flags & (3 << PACKETS_SHIFT),
            cumulative: Tsn(u32::from_be_bytes([c0, c1, c2, c3])),
            a_rwnd: u32::from_be_bytes([w0, w1, w2, w3]),
            gaps,
            duplicates,
        })
    }
}

/// A SACK that also lists data which the receiver will not discard (NR-SACK). The sender can then free that data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NrSack {
    /// The chunk flags, as in [`Sack`].
    pub flags: u8,
    /// The Cumulative TSN Ack: all TSNs up to this one have arrived.
    pub cumulative: Tsn,
    /// Room left in the receive buffer, in bytes.
    pub a_rwnd: u32,
    /// Data that has arrived beyond gaps and might still be discarded, in ascending order.
    pub gaps: SmallVec<[GapBlock; 4]>,
    /// Data that has arrived beyond gaps and will not be discarded, in ascending order. No TSN is in both lists.
    pub kept: SmallVec<[GapBlock; 4]>,
    /// TSNs that arrived more than once since the last SACK.
    pub duplicates: SmallVec<[Tsn; 4]>,
}

impl NrSack {
    /// Encoded length in bytes; always a multiple of four.
    pub fn size(&self) -> usize {
        NR_SACK_HEADER + 4 * (self.gaps.len() + self.kept.len() + self.duplicates.len())
    }

    /// The same as a SACK. It does not distinguish the two kinds of blocks.
    pub fn to_sack(&self) -> Sack {
        let NrSack { flags, cumulative, a_rwnd, ref gaps, ref kept, ref duplicates } = *self;
        let gaps = gaps.iter().chain(kept).copied().collect();
        Sack { flags, cumulative, a_rwnd, gaps, duplicates: duplicates.clone() }
    }
}

// The layout of the draft, which usrsctp also uses: three counts, two reserved bytes, then the three lists.
impl Content for Box<NrSack> {
    fn flags(&self) -> u8 {
        self.flags
    }

    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.cumulative.0);
        out.put_u32(self.a_rwnd);
        out.put_u16(self.gaps.len() as u16);
        out.put_u16(self.kept.len() as u16);
        out.put_u16(self.duplicates.len() as u16);
        out.put_u16(0);
        self.gaps.iter().chain(&self.kept).for_each(|gap| out.put_u32(gap.word()));
        self.duplicates.iter().for_each(|tsn| out.put_u32(tsn.0));
        Ok(())
    }

    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let cumulative = Tsn(value.u32()?);
        let a_rwnd = value.u32()?;
        let (gaps, kept, duplicates) = (value.u16()?, value.u16()?, value.u16()?);
        value.u16()?;
        Ok(Box::new(NrSack {
            flags: flags & (3 << PACKETS_SHIFT),
            cumulative,
            a_rwnd,
            gaps: value.arrays(gaps.into())?.map(GapBlock::from_bytes).collect(),
            kept: value.arrays(kept.into())?.map(GapBlock::from_bytes).collect(),
            duplicates: value.arrays(duplicates.into())?.map(|tsn| Tsn(u32::from_be_bytes(tsn))).collect(),
        }))
    }
}

impl GapBlock {
    /// Start and end as one number.
    fn word(self) -> u32 {
        u32::from(self.start) << 16 | u32::from(self.end)
    }

    fn from_bytes([a, b, c, d]: [u8; 4]) -> Self {
        GapBlock { start: u16::from_be_bytes([a, b]), end: u16::from_be_bytes([c, d]) }
    }
}
