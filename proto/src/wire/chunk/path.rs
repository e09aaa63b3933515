//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6).

use bytes::{BufMut, Bytes, BytesMut};

use super::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::tlv::length;
use crate::wire::{DecodeError, EncodeError};

/// The parameter type of Heartbeat Info.
const INFO: u16 = 1;

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

//= rfc9260#section-3.3.5
//= rfc9260#section-3.3.6
// Exactly one Heartbeat Info: what the answer must return is then the value of that one, nothing beside it.
impl Content for Heartbeat {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u16(INFO);
        out.put_u16(length(INFO_HEADER + self.info.len())?);
        out.put_slice(&self.info);
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match value.element()? {
            (number, mut info) if u16::from_be_bytes(number) == INFO => Ok(Heartbeat { info: info.rest() }),
            (_, other) => Err(other.wrong()),
        }
    }
}
