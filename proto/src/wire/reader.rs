//! A cursor over the bytes of a received packet.

use bytes::Bytes;

use super::{Copies, DecodeError};

/// The unread rest of a packet or of one of its elements.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    packet: &'a [u8],
    memory: Memory<'a>,
    /// Where the element begins, header included. Errors name this offset.
    element: usize,
    at: usize,
    end: usize,
}

/// Where the parts that are kept lie.
#[derive(Copy, Clone)]
enum Memory<'a> {
    /// In this memory, of which the packet is a part.
    Shared(&'a Bytes),
    /// In memory of their own: each is copied.
    Copied(&'a Copies),
}

impl<'a> Reader<'a> {
    /// Starts reading at the first byte. Large parts that are kept share `memory`, of which the packet is a part.
    pub(super) fn new(packet: &'a [u8], memory: &'a Bytes) -> Self {
        Reader { packet, memory: Memory::Shared(memory), element: 0, at: 0, end: packet.len() }
    }

    /// As `new`, but every part that is kept is copied.
    pub(super) fn copying(packet: &'a [u8], copies: &'a Copies) -> Self {
        Reader { packet, memory: Memory::Copied(copies), element: 0, at: 0, end: packet.len() }
    }

    /// Bytes left.
    #[inline]
    pub(super) fn remaining(&self) -> usize {
        self.end - self.at
    }

    /// The next `N` bytes.
    #[inline(always)]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let array = *self.left().first_chunk().ok_or(self.wrong())?;
        self.at += N;
        Ok(array)
    }

    /// The next sixteen bits.
    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next thirty-two bits.
    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next `count` groups of `N` bytes. It fails before it allocates memory if there are fewer.
    pub(super) fn arrays<const N: usize>(
        &mut self,
        count: usize,
    ) -> Result<impl ExactSizeIterator<Item = [u8; N]> + use<'a, N>, DecodeError> {
        let (groups, _) = self.left().as_chunks();
        let groups = groups.get(..count).ok_or(self.wrong())?;
        self.at += count * N;
        Ok(groups.iter().copied())
    }

    /// The unread rest. If parts share the packet's memory, it is still copied if it is less than half of the packet,
    /// so that a few kept bytes do not keep the whole packet in memory.
    pub(super) fn rest(&mut self) -> Bytes {
        let rest = match self.memory {
            _ if self.remaining() == 0 => Bytes::new(),
            Memory::Shared(memory) if self.remaining() * 2 >= self.packet.len() => {
                memory.slice_ref(self.left())
            }
            Memory::Shared(_) => Bytes::copy_from_slice(self.left()),
            Memory::Copied(copies) => copies.copy(self.left()),
        };
        self.at = self.end;
        rest
    }

    /// Skips the unread rest.
    pub(super) fn skip(&mut self) {
        self.at = self.end;
    }

    /// The unread rest, which is kept whole although it will be read.
    pub(super) fn ahead(&self) -> Bytes {
        match self.memory {
            Memory::Shared(memory) => memory.slice_ref(self.left()),
            Memory::Copied(copies) => copies.copy(self.left()),
        }
    }

    /// The next chunk, parameter or cause: the first two bytes of its header, and the value that its length encloses.
    //= rfc9260#section-3.2
    //= rfc9260#section-3.2.1
    // Padding is skipped whatever its value. It may be missing at the end of a list, because the last parameter's
    // padding belongs to the chunk. It may also lie inside a chunk's length, because it is skipped here.
    pub(super) fn element(&mut self) -> Result<([u8; 2], Reader<'a>), DecodeError> {
        let at = self.at;
        let &[first, second, high, low] = self.left().first_chunk().ok_or(DecodeError::Remainder { at })?;
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length < 4 || length > self.remaining() {
            return Err(DecodeError::Length { at, length });
        }
        self.at = self.end.min(at + padded(length));
        Ok(([first, second], Reader { element: at, at: at + 4, end: at + length, ..*self }))
    }

    /// Whether the packet ends inside the next chunk, be it in its header.
    pub(super) fn is_at_a_partial_chunk(&self) -> bool {
        let length = |&[_, _, high, low]: &[u8; 4]| usize::from(u16::from_be_bytes([high, low]));
        self.left().first_chunk().is_none_or(|header| length(header) > self.remaining())
    }

    /// Fails if bytes of the element remain.
    pub(super) fn finish(&self) -> Result<(), DecodeError> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.wrong()) }
    }

    /// The error for content that contradicts its length.
    pub(super) fn wrong(&self) -> DecodeError {
        DecodeError::Content { at: self.element }
    }

    #[inline]
    fn left(&self) -> &'a [u8] {
        &self.packet[self.at..self.end]
    }
}

/// `size` rounded up to a multiple of four.
pub const fn padded(size: usize) -> usize {
    (size + 3) & !3
}
