//! HEARTBEAT and HEARTBEAT ACK (RFC 9260 §3.3.5, §3.3.6).

use bytes::{BufMut, Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::{Reader, padded};
use crate::wire::tlv::{length, pad};
use crate::wire::{DecodeError, EncodeError};

/// The parameter type of Heartbeat Info.
const INFO: u16 = 1;

/// Bytes of the header of the Heartbeat Info parameter.
const INFO_HEADER: usize = 4;

/// The content of a HEARTBEAT. A HEARTBEAT ACK returns it unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// The value of the Heartbeat Info parameter. Only its sender interprets it.
    pub info: Bytes,
    /// Further parameters as received, with their headers. The answer returns them too. They are rare.
    pub others: Option<Box<Bytes>>,
}

impl Heartbeat {
    /// A heartbeat with this information and no further parameter.
    pub fn new(info: impl Into<Bytes>) -> Self {
        Heartbeat { info: info.into(), others: None }
    }

    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        let info = INFO_HEADER + self.info.len();
        CHUNK_HEADER + self.others.as_ref().map_or(info, |others| padded(info) + others.len())
    }
}

//= rfc9260#section-3.3.5
//= rfc9260#section-3.3.6
impl Content for Heartbeat {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        let start = out.len();
        out.put_u16(INFO);
        out.put_u16(length(INFO_HEADER + self.info.len())?);
        out.put_slice(&self.info);
        if let Some(others) = &self.others {
            pad(out, start);
            out.put_slice(others);
        }
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let info = match value.element()? {
            (number, mut info) if u16::from_be_bytes(number) == INFO => info.rest(),
            (_, other) => return Err(other.wrong()),
        };
        let mut others = value.clone();
        while others.remaining() > 0 {
            others.element()?;
        }
        Ok(Heartbeat { info, others: (value.remaining() > 0).then(|| Box::new(value.rest())) })
    }
}
