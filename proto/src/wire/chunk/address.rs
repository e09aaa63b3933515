//! ASCONF and ASCONF-ACK (RFC 5061 §4): addresses come and go while the association lives.

use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::tlv::{Layout, Plain, list_size, put_list, take_list, take_one, tlv};
use crate::wire::{Cause, DecodeError, EncodeError, Param};

/// What the sender's addresses shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asconf {
    /// Counted from the sender's first TSN.
    pub sequence: u32,
    /// An address of the sender; it helps to find the association.
    pub address: IpAddr,
    /// What is asked, in order.
    pub requests: Vec<AsconfParam>,
}

/// The answer to an [`Asconf`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfAck {
    /// The number of the ASCONF.
    pub sequence: u32,
    /// What is not said was a success.
    pub responses: Vec<AsconfParam>,
}

tlv! {
    /// A request in an ASCONF, or a response in an ASCONF-ACK.
    enum AsconfParam {
        //= rfc5061#section-4.2.1
        /// 0xC001: this address is the sender's too; the unspecified one: that of the packet.
        0xc001 Add(AddressRequest) as Plain,
        //= rfc5061#section-4.2.2
        /// 0xC002: this address is the sender's no more; the unspecified one: all but that of the packet.
        0xc002 Delete(AddressRequest) as Plain,
        //= rfc5061#section-4.2.3
        /// 0xC003: a request failed.
        0xc003 Failed(Failed) as Plain,
        //= rfc5061#section-4.2.4
        /// 0xC004: please send here if possible.
        0xc004 SetPrimary(AddressRequest) as Plain,
        //= rfc5061#section-4.2.5
        /// 0xC005: the request of this correlation ID succeeded.
        0xc005 Succeeded(u32) as Plain,
    }
    bare {}
    /// The parameter type; none of the above.
    unknown kind
}

/// An address, and the sender's own name for this request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AddressRequest {
    /// ASCONF-Request Correlation ID.
    pub correlation: u32,
    /// The address.
    pub address: IpAddr,
}

/// Error Cause Indication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// ASCONF-Response Correlation ID.
    pub correlation: u32,
    /// Why.
    pub causes: Vec<Cause>,
}

impl Asconf {
    /// Encoded length in bytes; always a multiple of four unless a parameter is unknown.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + 4 + address_size(self.address) + list_size(&self.requests)
    }
}

//= rfc5061#section-4.1.1
impl Content for Box<Asconf> {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.sequence);
        put_address(self.address, out)?;
        put_list(&self.requests, out)
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (sequence, address) = (value.u32()?, take_address(value)?);
        Ok(Box::new(Asconf { sequence, address, requests: take_list(value)? }))
    }
}

impl AsconfAck {
    /// Encoded length in bytes, without the padding of the last response.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + 4 + list_size(&self.responses)
    }
}

//= rfc5061#section-4.1.2
impl Content for Box<AsconfAck> {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.sequence);
        put_list(&self.responses, out)
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Box::new(AsconfAck { sequence: value.u32()?, responses: take_list(value)? }))
    }
}

impl AsconfParam {
    /// This parameter as bytes, header and all: what stands inside a cause that refuses it.
    pub fn to_bytes(&self) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(self.size());
        put_list(std::slice::from_ref(self), &mut out)?;
        Ok(out.freeze())
    }
}

impl Layout<AddressRequest> for Plain {
    fn size(content: &AddressRequest) -> usize {
        4 + address_size(content.address)
    }
    fn put(content: &AddressRequest, out: &mut BytesMut) {
        out.put_u32(content.correlation);
        // An address always fits its length field.
        let _ = put_address(content.address, out);
    }
    fn take(value: &mut Reader<'_>) -> Result<AddressRequest, DecodeError> {
        Ok(AddressRequest { correlation: value.u32()?, address: take_address(value)? })
    }
}

impl Layout<Failed> for Plain {
    fn size(content: &Failed) -> usize {
        4 + list_size(&content.causes)
    }
    fn put(content: &Failed, out: &mut BytesMut) {
        out.put_u32(content.correlation);
        // A cause is shorter than what contains it, whose length was checked before.
        let _ = put_list(&content.causes, out);
    }
    fn take(value: &mut Reader<'_>) -> Result<Failed, DecodeError> {
        Ok(Failed { correlation: value.u32()?, causes: take_list(value)? })
    }
}

fn address_size(address: IpAddr) -> usize {
    Param::of_address(address).size()
}

fn put_address(address: IpAddr, out: &mut BytesMut) -> Result<(), EncodeError> {
    put_list(&[Param::of_address(address)], out)
}

/// The next parameter, which must be an address.
fn take_address(value: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    match take_one(value)? {
        Param::Ipv4(ip) => Ok(ip.into()),
        Param::Ipv6(ip) => Ok(ip.into()),
        _ => Err(value.wrong()),
    }
}
