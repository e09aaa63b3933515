//! Messages that come back to their sender.

use std::collections::VecDeque;

use anabranch_proto::Message;

/// A message that will not be delivered, or of which it is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undelivered {
    /// The message, or the rest of it.
    pub message: Message,
    /// Whether any part of it was sent.
    pub sent: bool,
}

/// The messages of an association that came back and were not yet taken.
#[derive(Default)]
pub(crate) struct Returned {
    kept: VecDeque<Undelivered>,
    /// The bytes that they occupy.
    size: u64,
    /// All that ever came back.
    pub(crate) total: u64,
}

impl Returned {
    /// Keeps a message. The oldest are dropped as long as all together occupy more than `most` bytes.
    pub(crate) fn add(&mut self, undelivered: Undelivered, most: u64) {
        self.total += 1;
        self.size += size(&undelivered);
        self.kept.push_back(undelivered);
        while self.size > most
            && let Some(oldest) = self.kept.pop_front()
        {
            self.size -= size(&oldest);
        }
    }

    /// Those that are kept, the oldest first.
    pub(crate) fn take(&mut self) -> Vec<Undelivered> {
        self.size = 0;
        self.kept.drain(..).collect()
    }
}

fn size(undelivered: &Undelivered) -> u64 {
    (size_of::<Undelivered>() + undelivered.message.payload.len()) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_dropped_when_there_is_no_room() {
        let mut returned = Returned::default();
        let message = |byte| Message { payload: vec![byte; 1000].into(), ..Message::default() };
        let room = 2 * (1000 + size_of::<Undelivered>() as u64);
        (1..=3).for_each(|byte| returned.add(Undelivered { message: message(byte), sent: true }, room));
        let first: Vec<u8> = returned.take().iter().map(|back| back.message.payload[0]).collect();
        assert_eq!((first, returned.total), (vec![2, 3], 3));
        returned.add(Undelivered { message: message(4), sent: false }, room);
        assert_eq!(returned.take().len(), 1);
    }
}
