//! INIT, INIT ACK and COOKIE ECHO (RFC 9260 §3.3.2, §3.3.3, §3.3.11).

use bytes::{BufMut, Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::tlv::{list_size, put_list, take_list};
use crate::wire::{DecodeError, EncodeError, Param};

/// Bytes of INIT and INIT ACK before the parameters.
pub const INIT_HEADER: usize = 20;

/// The content of INIT and INIT ACK.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Init {
    /// The verification tag that the receiver of this chunk must use; not zero.
    pub tag: u32,
    /// Size of the receive buffer, in bytes.
    pub a_rwnd: u32,
    /// Streams that the sender wants to send on.
    pub outbound: u16,
    /// Streams that the sender can receive.
    pub inbound: u16,
    /// The sender's initial TSN.
    pub tsn: Tsn,
    /// Addresses, the cookie and other parameters.
    pub params: Vec<Param>,
}

impl Init {
    /// Encoded length in bytes, without the padding of the last parameter.
    pub fn size(&self) -> usize {
        INIT_HEADER + list_size(&self.params)
    }
}

//= rfc9260#section-3.3.2
//= rfc9260#section-3.3.3
// The codec accepts a zero tag and zero streams. The association must answer them.
impl Content for Box<Init> {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.tag);
        out.put_u32(self.a_rwnd);
        out.put_u16(self.outbound);
        out.put_u16(self.inbound);
        out.put_u32(self.tsn.0);
        put_list(&self.params, out)
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Box::new(Init {
            tag: value.u32()?,
            a_rwnd: value.u32()?,
            outbound: value.u16()?,
            inbound: value.u16()?,
            tsn: Tsn(value.u32()?),
            params: take_list(value)?,
        }))
    }
}

/// COOKIE ECHO: returns the state cookie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CookieEcho {
    /// The cookie, byte for byte as received in the INIT ACK.
    pub cookie: Bytes,
}

impl CookieEcho {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + self.cookie.len()
    }
}

//= rfc9260#section-3.3.11
impl Content for CookieEcho {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_slice(&self.cookie);
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(CookieEcho { cookie: value.rest() })
    }
}
