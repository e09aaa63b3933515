//! The message whose fragments arrive in order while nothing else waits. That is the usual one, and it needs no tree.

use crate::wire::chunk::Data;

/// The number of chunks whose memory is kept for the next message.
const KEPT: usize = 64;

/// The fragments of an ordered message from its first one on, without a gap and without the last one.
#[derive(Clone, Default, Debug)]
pub(super) struct Growing {
    /// The position of the first.
    at: u64,
    /// None: there is no such message.
    chunks: Vec<Data>,
}

impl Growing {
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether this chunk is the next one of the message.
    #[inline]
    pub(super) fn continues(&self, at: u64, data: &Data) -> bool {
        let Some(first) = self.chunks.first() else { return false };
        let next = at == self.at + self.chunks.len() as u64;
        next && !data.begin && !data.unordered && (data.stream, data.ssn) == (first.stream, first.ssn)
    }

    /// Adds the next chunk, or the first of a message.
    #[inline]
    pub(super) fn push(&mut self, at: u64, data: Data) {
        if self.chunks.is_empty() {
            self.at = at;
        }
        self.chunks.push(data);
    }

    /// The payload protocol identifier of the message.
    pub(super) fn ppid(&self) -> u32 {
        self.chunks.first().map_or(0, |first| first.ppid)
    }

    /// Takes all chunks, and the position of the first.
    pub(super) fn take(&mut self) -> (u64, impl ExactSizeIterator<Item = Data>) {
        (self.at, self.chunks.drain(..))
    }

    /// Returns the memory of an unusually long message.
    pub(super) fn shrink(&mut self) {
        if self.chunks.capacity() > KEPT {
            self.chunks = Vec::new();
        }
    }
}
