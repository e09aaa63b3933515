//! PAD (RFC 4820 §3): makes a packet as large as a path MTU probe must be.

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// Padding, which the receiver ignores.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pad {
    /// Bytes of padding. They are sent as zeros and ignored when received.
    pub bytes: u16,
}

impl Pad {
    /// Encoded length in bytes, without the chunk's own final padding.
    pub const fn size(&self) -> usize {
        CHUNK_HEADER + self.bytes as usize
    }
}

//= rfc4820#section-3
impl Content for Pad {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_bytes(0, usize::from(self.bytes));
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // A chunk has at most 65,535 bytes, four of them in its header.
        let bytes = value.remaining() as u16;
        value.skip();
        Ok(Pad { bytes })
    }
}
