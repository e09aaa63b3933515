//! The part that all chunks have in common: a header, and a content that encodes its own flags and value.

use bytes::BytesMut;

use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// Bytes of a chunk header: type, flags, length.
pub const CHUNK_HEADER: usize = 4;

/// What follows a chunk's header.
pub(super) trait Content: Sized {
    /// The chunk flags. Reserved bits are sent as zero and ignored when received.
    fn flags(&self) -> u8 {
        0
    }

    /// Appends the value without the final padding. The caller has checked that the length fits.
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError>;

    /// Reads the value. The caller rejects the chunk if bytes remain unread.
    ///
    /// DATA and SACK, which nearly every packet has, are read inline and directly into the packet's list. Returning
    /// them through three functions would copy the chunk three times, and decoding would take 50 ns instead of 36.
    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError>;
}
