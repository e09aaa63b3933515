//! DATA (RFC 9260 §3.3.1).

use bytes::Bytes;

use crate::{Ssn, Tsn};

/// Bytes of a DATA chunk before the user data.
pub const DATA_HEADER: usize = 16;

/// A user message or a fragment of one. The payload has at least one byte and at most 65,519.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Data {
    /// Transmission Sequence Number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Stream Sequence Number; without meaning for unordered messages.
    pub ssn: Ssn,
    /// Payload protocol identifier: the application's own, carried as it is.
    pub ppid: u32,
    /// B: the first fragment of its message.
    pub begin: bool,
    /// E: the last fragment of its message.
    pub end: bool,
    /// U: delivered without regard to order.
    pub unordered: bool,
    /// I: the sender wishes a SACK at once.
    pub immediate: bool,
    /// User data.
    pub payload: Bytes,
}

impl Data {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        DATA_HEADER + self.payload.len()
    }
}
