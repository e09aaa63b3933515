//! NR-SACK: chunks that the peer has promised to keep leave the send buffer.

use super::{ChunkState, Outstanding};
use crate::control::ranges::Ranges;
use crate::wire::chunk::NrSack;

impl Outstanding {
    /// Frees the data of the chunks that this NR-SACK says are kept. It was already taken in as a SACK. Returns the
    /// user bytes freed.
    pub(crate) fn release(&mut self, sack: &NrSack) -> u64 {
        if sack.kept.is_empty() || sack.cumulative != self.point() {
            return 0;
        }
        let sound = sack.kept.iter().filter(|gap| gap.start >= 1 && gap.start <= gap.end);
        let kept = Ranges::of(sound.map(|gap| (u32::from(gap.start) - 1, u32::from(gap.end))));
        let (ring, mut bytes, mut released) = (&mut self.ring, 0, Vec::new());
        kept.without(&self.released, |start, end| {
            for offset in start..end {
                if let Some(sent) = ring.get_mut(offset as usize).filter(|s| s.state == ChunkState::Acked) {
                    bytes += std::mem::take(&mut sent.data.payload).len() as u64;
                    released.push((offset, offset + 1));
                }
            }
        });
        self.user_bytes -= bytes;
        self.released = Ranges::of(self.released.iter().chain(released));
        bytes
    }

    /// The runs that a SACK acknowledges by Gap Ack Blocks, together with those that the peer has promised to keep.
    pub(super) fn with_released(&self, said: Ranges) -> Ranges {
        match self.released.is_empty() {
            true => said,
            false => Ranges::of(said.iter().chain(self.released.iter())),
        }
    }
}
