//! AUTH (RFC 4895 §5.1).

use bytes::{BufMut, Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// Bytes of an AUTH chunk before the HMAC.
pub const AUTH_HEADER: usize = CHUNK_HEADER + 4;

/// Authenticates the chunks that follow it in the packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Auth {
    /// Shared Key Identifier.
    pub key: u16,
    /// HMAC Identifier: 1 is SHA-1, 3 is SHA-256.
    pub algorithm: u16,
    /// The HMAC.
    pub hmac: Bytes,
    /// The bytes that the HMAC covers, as received.
    pub covered: Covered,
}

/// The bytes that follow the first AUTH chunk of a received packet. The HMAC covers these bytes. Encoding the chunks again
/// could give other bytes, because a peer may set reserved bits. The field is empty in further AUTH chunks, which nobody
/// verifies, and if the packet was never decoded from bytes. It repeats the packet's other chunks, so it is no part of this chunk's value: any two are equal.
#[derive(Clone, Default, Eq, Debug)]
pub struct Covered(pub Option<Bytes>);

impl PartialEq for Covered {
    fn eq(&self, _: &Covered) -> bool {
        true
    }
}

impl Auth {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        AUTH_HEADER + self.hmac.len()
    }
}

//= rfc4895#section-5.1
impl Content for Box<Auth> {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u16(self.key);
        out.put_u16(self.algorithm);
        out.put_slice(&self.hmac);
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (key, algorithm) = (value.u16()?, value.u16()?);
        Ok(Box::new(Auth { key, algorithm, hmac: value.rest(), covered: Covered(None) }))
    }
}
