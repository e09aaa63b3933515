//! ASCONF and ASCONF-ACK (RFC 5061 §4): adding and deleting addresses during an association.

use std::net::IpAddr;

use bytes::{BufMut, Bytes, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::wire::reader::Reader;
use crate::wire::tlv::{Layout, Plain, list_size, put_list, take_list, take_one, tlv};
use crate::wire::{Cause, DecodeError, EncodeError, Param};

/// A list of requests to change the sender's addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asconf {
    /// The sequence number. The first is the sender's initial TSN.
    pub sequence: u32,
    /// An address of the sender. The receiver may need it to find the association.
    pub address: IpAddr,
    /// The requests, in order.
    pub requests: Vec<AsconfParam>,
}

/// The answer to an [`Asconf`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsconfAck {
    /// The sequence number of the ASCONF.
    pub sequence: u32,
    /// A request without a response has succeeded.
    pub responses: Vec<AsconfParam>,
}

tlv! {
    /// A request in an ASCONF, or a response in an ASCONF-ACK.
    enum AsconfParam {
        //= rfc5061#section-4.2.1
        /// 0xC001: adds an address of the sender. The unspecified address means the packet's source address.
        0xc001 Add(AddressRequest) as Plain,
        //= rfc5061#section-4.2.2
        /// 0xC002: deletes an address of the sender. The unspecified address deletes all but the packet's source
        /// address.
        0xc002 Delete(AddressRequest) as Plain,
        //= rfc5061#section-4.2.3
        /// 0xC003: a request failed.
        0xc003 Failed(Failed) as Plain,
        //= rfc5061#section-4.2.4
        /// 0xC004: asks the receiver to use this address as its primary destination.
        0xc004 SetPrimary(AddressRequest) as Plain,
        //= rfc5061#section-4.2.5
        /// 0xC005: the request with this correlation ID succeeded.
        0xc005 Succeeded(u32) as Plain,
    }
    bare {}
    /// The parameter type; it is none of the above.
    unknown kind
    extensions None
}

/// An address, and the sender's identifier of the request.
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
    /// Why the request failed.
    pub causes: Vec<Cause>,
}

impl Asconf {
    /// Encoded length in bytes. It is a multiple of four unless a parameter is unknown.
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
    /// This parameter as bytes, with its header. A cause that rejects the parameter contains them.
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
        // An address always fits the length field.
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
        // A cause is shorter than the parameter around it, whose length was checked before.
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

/// Reads the next parameter, which must be an address.
fn take_address(value: &mut Reader<'_>) -> Result<IpAddr, DecodeError> {
    match take_one(value)? {
        Param::Ipv4(ip) => Ok(ip.into()),
        Param::Ipv6(ip) => Ok(ip.into()),
        _ => Err(value.wrong()),
    }
}
