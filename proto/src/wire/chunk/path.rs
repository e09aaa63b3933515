//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6).

use bytes::Bytes;

use super::CHUNK_HEADER;

/// Bytes of the header of the Heartbeat Info parameter.
const INFO_HEADER: usize = 4;

/// A question to a path, and the same as its answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The value of the Heartbeat Info parameter: the sender's own, returned as it was.
    pub info: Bytes,
}

impl Heartbeat {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + INFO_HEADER + self.info.len()
    }
}
