//! PAD (RFC 4820 §3): bytes that mean nothing, to make a packet as large as a path is to be probed with.

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// A chunk that the receiver throws away.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pad {
    /// Bytes of padding data; sent as zeros and not looked at.
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
        // A chunk has at most 65,535 bytes, four of them its header.
        let bytes = value.remaining() as u16;
        value.skip();
        Ok(Pad { bytes })
    }
}
