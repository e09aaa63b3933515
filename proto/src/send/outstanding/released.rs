//! What the peer will not take back (NR-SACK): chunks that are acknowledged by a gap for good leave the send buffer.

use super::{ChunkState, Outstanding};
use crate::control::ranges::Ranges;
use crate::wire::chunk::NrSack;

impl Outstanding {
    /// Forgets the data of chunks that this NR-SACK, which was taken in as a SACK, says are kept: so many user bytes.
    pub(crate) fn release(&mut self, sack: &NrSack) -> u64 {
        if sack.kept.is_empty() || sack.cumulative != self.point() {
            return 0;
        }
        let sound = sack.kept.iter().filter(|gap| gap.start >= 1 && gap.start <= gap.end);
        let kept = Ranges::of(sound.map(|gap| (u32::from(gap.start) - 1, u32::from(gap.end))));
        let (ring, mut bytes, mut released) = (&mut self.ring, 0, Vec::new());
        kept.without(&self.released, |start, end| {
            for offset in start..end {
                if let Some(sent) = ring.get_mut(offset as usize).filter(|s| s.standing == ChunkState::Acked)
                {
                    bytes += std::mem::take(&mut sent.data.payload).len() as u64;
                    released.push((offset, offset + 1));
                }
            }
        });
        self.user_bytes -= bytes;
        self.released = Ranges::of(self.released.iter().chain(released));
        bytes
    }

    /// The runs that a SACK acknowledges by gaps, and those that an earlier one acknowledged for good.
    pub(super) fn with_released(&self, said: Ranges) -> Ranges {
        match self.released.is_empty() {
            true => said,
            false => Ranges::of(said.iter().chain(self.released.iter())),
        }
    }
}
