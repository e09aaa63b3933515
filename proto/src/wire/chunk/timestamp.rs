//! TIMESTAMP, a chunk of this project (docs/extensions.md): when a packet left, and which packet a SACK answers.

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// The flag of [`Timestamp::sent`].
const SENT: u8 = 1;
/// The flag of [`Timestamp::echo`].
const ECHO: u8 = 2;

/// Two clock values, one of each end. Only the end that issued a value can interpret it.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Timestamp {
    /// When this packet left, by its sender's clock. Present in packets with DATA.
    pub sent: Option<u32>,
    /// The value from the first packet with DATA since the last SACK. Present in packets with a SACK.
    pub echo: Option<u32>,
}

impl Timestamp {
    /// Encoded length in bytes.
    pub const SIZE: usize = CHUNK_HEADER + 8;

    /// Encoded length in bytes.
    pub const fn size(&self) -> usize {
        Self::SIZE
    }
}

impl Content for Timestamp {
    fn flags(&self) -> u8 {
        let flag = |value: Option<u32>, flag| if value.is_some() { flag } else { 0 };
        flag(self.sent, SENT) | flag(self.echo, ECHO)
    }

    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.sent.unwrap_or(0));
        out.put_u32(self.echo.unwrap_or(0));
        Ok(())
    }

    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (sent, echo) = (value.u32()?, value.u32()?);
        let set = |flag: u8| flags & flag != 0;
        Ok(Timestamp { sent: set(SENT).then_some(sent), echo: set(ECHO).then_some(echo) })
    }
}
