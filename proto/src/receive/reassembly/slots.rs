//! Whole messages that wait, one in each slot. Messages that arrive one after the other lie side by side, whatever
//! their SSNs are.

use std::num::NonZeroU32;

use crate::wire::chunk::Data;

/// Where a message lies: its index, plus one.
pub(super) type Slot = NonZeroU32;

/// The number of slots whose memory is kept.
const SLOTS_KEPT: usize = 8;

/// Chunks with their positions.
#[derive(Clone, Default, Debug)]
pub(super) struct Slots {
    held: Vec<Option<(u64, Data)>>,
    /// Empty slots, to be used again.
    empty: Vec<Slot>,
}

impl Slots {
    pub(super) fn put(&mut self, position: u64, data: Data) -> Slot {
        let message = Some((position, data));
        if let Some(slot) = self.empty.pop() {
            self.held[index(slot)] = message;
            return slot;
        }
        self.held.push(message);
        // A receiver holds far fewer chunks: its buffer bounds them.
        u32::try_from(self.held.len()).ok().and_then(Slot::new).expect("fewer than 2³² chunks are held")
    }

    /// Takes the chunk out of a slot that is in use. When nothing waits, the memory is returned, unless it is that of a
    /// few slots.
    pub(super) fn take(&mut self, slot: Slot) -> (u64, Data) {
        let message = self.held[index(slot)].take().expect("a slot in use");
        self.empty.push(slot);
        if self.empty.len() == self.held.len() {
            if self.held.capacity() > SLOTS_KEPT {
                *self = Slots::default();
            }
            self.held.clear();
            self.empty.clear();
        }
        message
    }
}

fn index(slot: Slot) -> usize {
    slot.get() as usize - 1
}
