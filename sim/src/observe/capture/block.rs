//! The three blocks of pcapng that a capture of a run consists of, in bytes.

use bytes::BufMut;

use super::option::{
    BYTE_ORDER, COMMENT, DESCRIPTION, END, FLAGS, INBOUND, INTERFACE, NAME, OUTBOUND, PACKET, PROGRAM,
    RESOLUTION, SECTION,
};

/// The section header block, which begins a file.
pub(super) fn section(out: &mut Vec<u8>, program: &str, comment: &str) {
    block(out, SECTION, |out| {
        out.put_u32_le(BYTE_ORDER);
        out.put_u16_le(1);
        out.put_u16_le(0);
        // The section's length: not known yet.
        out.put_i64_le(-1);
        option(out, PROGRAM, program.as_bytes());
        option(out, COMMENT, comment.as_bytes());
        option(out, END, &[]);
    });
}

/// The description of an interface with this link type and times in nanoseconds.
pub(super) fn interface(out: &mut Vec<u8>, link_type: u16, name: &str, description: &str) {
    block(out, INTERFACE, |out| {
        out.put_u16_le(link_type);
        out.put_u16_le(0);
        // No limit on the size of packets.
        out.put_u32_le(0);
        option(out, NAME, name.as_bytes());
        option(out, DESCRIPTION, description.as_bytes());
        option(out, RESOLUTION, &[9]);
        option(out, END, &[]);
    });
}

/// A packet of `size` bytes, or its beginning.
pub(super) fn packet(
    out: &mut Vec<u8>,
    interface: u32,
    nanos: u64,
    inbound: bool,
    (bytes, size): (&[u8], usize),
    comment: &str,
) {
    block(out, PACKET, |out| {
        out.put_u32_le(interface);
        out.put_u32_le((nanos >> 32) as u32);
        out.put_u32_le(nanos as u32);
        out.put_u32_le(bytes.len() as u32);
        out.put_u32_le(size as u32);
        padded(out, bytes);
        option(out, COMMENT, comment.as_bytes());
        option(out, FLAGS, &(if inbound { INBOUND } else { OUTBOUND }).to_le_bytes());
        option(out, END, &[]);
    });
}

/// A block: type, length, body, and the length again.
fn block(out: &mut Vec<u8>, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.put_u32_le(kind);
    out.put_u32_le(0);
    body(out);
    let length = (out.len() - start + 4) as u32;
    out.put_u32_le(length);
    out[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
}

/// An option, truncated if its length field cannot express its length.
fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.put_u16_le(code);
    out.put_u16_le(value.len() as u16);
    padded(out, value);
}

/// Bytes, and zeros up to a multiple of four.
fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_slice(bytes);
    out.put_bytes(0, bytes.len().next_multiple_of(4) - bytes.len());
}
