//! Messages: what a user sends, and what is delivered.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// A user message to send.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Message {
    /// The stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether the message is unordered.
    pub unordered: bool,
    /// Whether the peer is asked to acknowledge the message without delay: the I bit of its last chunk (RFC 9260
    /// §6.1).
    pub immediate: bool,
    /// The user data; at least one byte.
    pub payload: Bytes,
    /// When the message is abandoned. Treated as `Full` unless both ends have agreed on partial reliability.
    pub reliability: Reliability,
}

/// How long a message is worth sending (RFC 3758 §4.1, RFC 7496 §3).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Reliability {
    /// The message is kept until it is acknowledged.
    #[default]
    Full,
    /// The message is abandoned this many milliseconds after the send call.
    Lifetime(u32),
    /// The message is abandoned when one of its chunks would need more than this many retransmissions.
    Retransmissions(u32),
    /// The message is abandoned when the send buffer has no room for a message of higher priority (a lower number, or
    /// another kind of reliability). Messages with the highest number are abandoned first, and only messages of which
    /// nothing was sent.
    Priority(u32),
}

/// Messages that arrived and were discarded: see [`Endpoint::discard`](crate::Endpoint::discard).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Discarded {
    /// How many messages.
    pub messages: u64,
    /// Bytes of user data.
    pub bytes: u64,
}

impl Discarded {
    /// Adds a message with this number of bytes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.messages += 1;
        self.bytes += bytes as u64;
    }
}

/// A user message received, or a part of one that does not fit the receive buffer.
///
/// Parts of one message are delivered in order. Messages and parts of other streams may come between them, and on the
/// same stream unordered messages and their parts: `message` tells to which message a part belongs. Two ordered
/// messages of one stream are never mixed: the second begins after the first is complete or abandoned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// The number of the message within its association. All parts of a message have the same number, and no other
    /// message has it.
    pub message: u64,
    /// Whether this is the end of the message; else more parts follow.
    pub complete: bool,
    /// Whether the sender abandoned the message after a part of it was delivered. Nothing more of it follows, and
    /// this delivery is empty.
    pub abandoned: bool,
    /// The user data in order, one piece for each chunk.
    pub pieces: SmallVec<[Bytes; 1]>,
}

impl Delivery {
    /// Bytes of user data.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there are none: only if the message was abandoned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The user data in one piece. It is copied only if it arrived in several chunks.
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() == 1 {
            return self.pieces.remove(0);
        }
        let mut whole = BytesMut::with_capacity(self.len());
        self.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        whole.freeze()
    }
}
