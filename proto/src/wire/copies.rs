//! Memory for what is kept of packets that are decoded from a buffer that is used again.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};

/// Bytes of a block.
const BLOCK: usize = 1 << 13;
/// Fewer bytes than these get memory of their own. A few bytes that are kept for long then do not keep a block, and
/// what is kept takes at most `BLOCK / LEAST` times its memory.
const LEAST: usize = 1 << 10;

/// Memory for the payloads of [`Packet::decode_copied`](super::Packet::decode_copied). Payloads of several packets
/// share a block of 8 KiB, so that they need one allocation. A block is freed with the last of its payloads.
#[derive(Default, Debug)]
pub struct Copies {
    /// The unused rest of the last block.
    block: RefCell<BytesMut>,
}

impl Copies {
    pub(super) fn copy(&self, bytes: &[u8]) -> Bytes {
        if bytes.len() < LEAST {
            return Bytes::copy_from_slice(bytes);
        }
        let mut block = self.block.borrow_mut();
        if block.capacity() < bytes.len() {
            *block = BytesMut::with_capacity(BLOCK.max(bytes.len()));
        }
        block.extend_from_slice(bytes);
        block.split().freeze()
    }
}
