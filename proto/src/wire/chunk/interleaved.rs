//! I-DATA (RFC 8260 §2.1).

use bytes::{BufMut, Bytes, BytesMut};

use super::content::Content;
use super::data::{BEGIN, END, IMMEDIATE, UNORDERED, flags};
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};
use crate::{Mid, Tsn};

/// Bytes of an I-DATA chunk before the user data.
pub const IDATA_HEADER: usize = 20;

/// A user message or a fragment of one. Fragments of messages on other streams may arrive between its fragments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IData {
    /// Transmission Sequence Number.
    pub tsn: Tsn,
    /// Stream identifier.
    pub stream: u16,
    /// Message Identifier. Ordered and unordered messages of a stream have separate sequences.
    pub mid: Mid,
    /// Which fragment of its message this is.
    pub place: FragmentPosition,
    /// E: the last fragment of its message.
    pub end: bool,
    /// U: the message is delivered without regard to order.
    pub unordered: bool,
    /// I: the sender asks for an immediate SACK.
    pub immediate: bool,
    /// User data.
    pub payload: Bytes,
}

/// The field that DATA uses for its PPID. The B bit decides what it contains.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum FragmentPosition {
    /// B: the first fragment, which carries the payload protocol identifier.
    First {
        /// Payload protocol identifier.
        ppid: u32,
    },
    /// A later fragment.
    Later {
        /// The Fragment Sequence Number, counted from 0 for the first fragment.
        fsn: u32,
    },
}

impl IData {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        IDATA_HEADER + self.payload.len()
    }
}

//= rfc8260#section-2.1
impl Content for IData {
    fn flags(&self) -> u8 {
        let begin = matches!(self.place, FragmentPosition::First { .. });
        flags([begin, self.end, self.unordered, self.immediate])
    }

    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.tsn.0);
        out.put_u16(self.stream);
        out.put_u16(0);
        out.put_u32(self.mid.0);
        out.put_u32(match self.place {
            FragmentPosition::First { ppid } => ppid,
            FragmentPosition::Later { fsn } => fsn,
        });
        out.put_slice(&self.payload);
        Ok(())
    }

    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (tsn, stream) = (Tsn(value.u32()?), value.u16()?);
        value.u16()?;
        let (mid, number) = (Mid(value.u32()?), value.u32()?);
        let place = if flags & BEGIN != 0 {
            FragmentPosition::First { ppid: number }
        } else {
            FragmentPosition::Later { fsn: number }
        };
        Ok(IData {
            tsn,
            stream,
            mid,
            place,
            end: flags & END != 0,
            unordered: flags & UNORDERED != 0,
            immediate: flags & IMMEDIATE != 0,
            payload: value.rest(),
        })
    }
}
