//! RE-CONFIG (RFC 6525 §3, §4).

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::tlv::{Layout, Plain, list_size, put_list, take_list, tlv};
use crate::wire::{DecodeError, EncodeError};

/// Streams are reset or added: one or two requests or responses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReConfig {
    /// The association decides which combinations are allowed.
    pub params: Vec<ReConfigParam>,
}

impl ReConfig {
    /// Encoded length in bytes, without the padding of the last parameter.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + list_size(&self.params)
    }
}

//= rfc6525#section-3.1
impl Content for ReConfig {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        put_list(&self.params, out)
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ReConfig { params: take_list(value)? })
    }
}

tlv! {
    /// A request, or a response to one.
    enum ReConfigParam {
        //= rfc6525#section-4.1
        /// 13: the sender resets streams that it sends on.
        13 OutgoingReset(OutgoingReset) as Plain,
        //= rfc6525#section-4.2
        /// 14: asks the receiver to reset streams on which it sends.
        14 IncomingReset(IncomingReset) as Plain,
        //= rfc6525#section-4.3
        /// 15: resets all TSNs and SSNs; carries the request's number.
        15 TsnReset(u32) as Plain,
        //= rfc6525#section-4.4
        /// 16: the result of a request.
        16 Response(Response) as Plain,
        //= rfc6525#section-4.5
        /// 17: the sender wants to send on more streams.
        17 AddOutgoing(AddStreams) as Plain,
        //= rfc6525#section-4.6
        /// 18: asks the receiver to send on more streams.
        18 AddIncoming(AddStreams) as Plain,
    }
    bare {}
    /// The parameter type; it is none of the above.
    unknown kind
    extensions None
}

/// Outgoing SSN Reset Request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingReset {
    /// The number of this request.
    pub request: u32,
    /// The number of the request that this one answers, or else of the last request received.
    pub response: u32,
    /// The last TSN that was assigned.
    pub last_tsn: Tsn,
    /// The streams. An empty list means all.
    pub streams: Vec<u16>,
}

/// Incoming SSN Reset Request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IncomingReset {
    /// The number of this request.
    pub request: u32,
    /// The streams. An empty list means all.
    pub streams: Vec<u16>,
}

/// Add Outgoing Streams Request, or Add Incoming Streams Request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct AddStreams {
    /// The number of this request.
    pub request: u32,
    /// The number of additional streams.
    pub count: u16,
}

/// Re-configuration Response.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Response {
    /// The number of the request.
    pub request: u32,
    /// The result: [`Response::PERFORMED`] and so on.
    pub result: u32,
    /// After a reset of TSNs: the next TSN of the sender of this response, and the next TSN of its receiver.
    pub next: Option<(Tsn, Tsn)>,
}

//= rfc6525#section-4.4
impl Response {
    /// Success, nothing to do.
    pub const NOTHING_TO_DO: u32 = 0;
    /// Success, performed.
    pub const PERFORMED: u32 = 1;
    /// Denied.
    pub const DENIED: u32 = 2;
    /// Error, wrong SSN.
    pub const WRONG_SSN: u32 = 3;
    /// Error, a request is in progress already.
    pub const BUSY: u32 = 4;
    /// Error, bad sequence number.
    pub const BAD_NUMBER: u32 = 5;
    /// In progress: ask again.
    pub const IN_PROGRESS: u32 = 6;
}

impl Layout<OutgoingReset> for Plain {
    fn size(content: &OutgoingReset) -> usize {
        12 + Plain::size(&content.streams)
    }
    fn put(content: &OutgoingReset, out: &mut BytesMut) {
        out.put_u32(content.request);
        out.put_u32(content.response);
        out.put_u32(content.last_tsn.0);
        Plain::put(&content.streams, out);
    }
    fn take(value: &mut Reader<'_>) -> Result<OutgoingReset, DecodeError> {
        let (request, response, last_tsn) = (value.u32()?, value.u32()?, Tsn(value.u32()?));
        Ok(OutgoingReset { request, response, last_tsn, streams: Plain::take(value)? })
    }
}

impl Layout<IncomingReset> for Plain {
    fn size(content: &IncomingReset) -> usize {
        4 + Plain::size(&content.streams)
    }
    fn put(content: &IncomingReset, out: &mut BytesMut) {
        out.put_u32(content.request);
        Plain::put(&content.streams, out);
    }
    fn take(value: &mut Reader<'_>) -> Result<IncomingReset, DecodeError> {
        Ok(IncomingReset { request: value.u32()?, streams: Plain::take(value)? })
    }
}

impl Layout<AddStreams> for Plain {
    fn size(_: &AddStreams) -> usize {
        8
    }
    fn put(content: &AddStreams, out: &mut BytesMut) {
        out.put_u32(content.request);
        out.put_u16(content.count);
        out.put_u16(0);
    }
    fn take(value: &mut Reader<'_>) -> Result<AddStreams, DecodeError> {
        let content = AddStreams { request: value.u32()?, count: value.u16()? };
        value.u16()?;
        Ok(content)
    }
}

impl Layout<Response> for Plain {
    fn size(content: &Response) -> usize {
        if content.next.is_some() { 16 } else { 8 }
    }
    fn put(content: &Response, out: &mut BytesMut) {
        out.put_u32(content.request);
        out.put_u32(content.result);
        if let Some((sender, receiver)) = content.next {
            out.put_u32(sender.0);
            out.put_u32(receiver.0);
        }
    }
    fn take(value: &mut Reader<'_>) -> Result<Response, DecodeError> {
        let (request, result) = (value.u32()?, value.u32()?);
        let next = match value.remaining() {
            0 => None,
            _ => Some((Tsn(value.u32()?), Tsn(value.u32()?))),
        };
        Ok(Response { request, result, next })
    }
}
