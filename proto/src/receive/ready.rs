//! Messages, and parts of messages, that the user can read.

use std::collections::VecDeque;
use std::hint::cold_path;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::Delivery;
use crate::wire::chunk::padded;

/// The room that held chunks occupy.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Held {
    /// Bytes of the chunks, padding included.
    pub(super) bytes: u64,
    pub(super) chunks: u64,
}

impl Held {
    pub(super) fn one(chunk: usize) -> Self {
        Held { bytes: padded(chunk) as u64, chunks: 1 }
    }
}

impl std::ops::AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.chunks += other.chunks;
    }
}

impl std::ops::SubAssign for Held {
    fn sub_assign(&mut self, other: Self) {
        self.bytes -= other.bytes;
        self.chunks -= other.chunks;
    }
}

/// A message that was delivered in part.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct PartialMessage {
    /// Its number.
    pub(super) message: u64,
    pub(super) ppid: u32,
}

#[derive(Clone, Default, Debug)]
pub(super) struct Ready {
    queue: VecDeque<(Delivery, Held)>,
    /// The messages of which the user has read a part: the stream, whether it is unordered, and the message.
    begun: Vec<((u16, bool), PartialMessage)>,
    /// The number of the last message.
    messages: u64,
}

impl Ready {
    /// Deliveries that wait.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The next delivery for the user, and the room that its chunks occupied.
    pub(super) fn pop(&mut self) -> Option<(Delivery, Held)> {
        let next = self.queue.pop_front();
        if let Some((delivery, _)) = &next {
            note_begun(&mut self.begun, delivery);
        }
        next
    }

    /// Drops the next delivery after `look` has seen it.
    #[inline]
    pub(super) fn pop_with<T>(&mut self, look: impl FnOnce(&Delivery) -> T) -> Option<(T, Held)> {
        let (delivery, held) = self.queue.front()?;
        let seen = (look(delivery), *held);
        note_begun(&mut self.begun, delivery);
        self.queue.pop_front();
        Some(seen)
    }

    /// What can be read when the association begins anew: the ends of messages that the user has read in part.
    pub(super) fn begun_anew(&self) -> Self {
        let mut ready = Ready { messages: self.messages, ..Ready::default() };
        self.begun.iter().for_each(|(of, begun)| ready.given_up(*of, *begun));
        ready
    }

    /// Adds a message of one chunk of this size, and returns its number.
    pub(super) fn whole(
        &mut self,
        (stream, unordered): (u16, bool),
        ppid: u32,
        size: usize,
        payload: Bytes,
    ) -> u64 {
        let (message, pieces) = (self.number(), SmallVec::from_buf([payload]));
        let (complete, abandoned) = (true, false);
        let delivery = Delivery { stream, ppid, unordered, message, complete, abandoned, pieces };
        self.queue.push_back((delivery, Held::one(size)));
        message
    }

    /// Adds a message or a part of one, made of these chunks with their sizes. `begun`: its number, if a part was
    /// delivered before.
    pub(super) fn joined(
        &mut self,
        (stream, unordered): (u16, bool),
        begun: PartialMessage,
        complete: bool,
        chunks: impl Iterator<Item = (usize, Bytes)>,
    ) {
        let PartialMessage { message, ppid } = begun;
        let (mut pieces, mut held) = (SmallVec::with_capacity(chunks.size_hint().0), Held::default());
        for (size, payload) in chunks {
            held += Held::one(size);
            pieces.push(payload);
        }
        let abandoned = false;
        self.queue
            .push_back((Delivery { stream, ppid, unordered, message, complete, abandoned, pieces }, held));
    }

    /// Adds the end of a message of which a part was delivered and the rest was abandoned.
    pub(super) fn given_up(&mut self, (stream, unordered): (u16, bool), begun: PartialMessage) {
        let PartialMessage { message, ppid } = begun;
        let (complete, abandoned, pieces) = (true, true, SmallVec::new());
        let delivery = Delivery { stream, ppid, unordered, message, complete, abandoned, pieces };
        self.queue.push_back((delivery, Held::default()));
    }

    /// A number that no other message has.
    pub(super) fn number(&mut self) -> u64 {
        self.messages += 1;
        self.messages
    }
}

/// The user reads this.
#[inline]
fn note_begun(begun: &mut Vec<((u16, bool), PartialMessage)>, read: &Delivery) {
    let &Delivery { stream, unordered, message, ppid, complete, .. } = read;
    if !complete || !begun.is_empty() {
        cold_path();
        begun.retain(|(_, partial)| partial.message != message);
        if !complete {
            begun.push(((stream, unordered), PartialMessage { message, ppid }));
        }
    }
}
