//! ABORT, ERROR, SHUTDOWN and SHUTDOWN COMPLETE (RFC 9260 §3.3.7 to §3.3.10, §3.3.13).

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::tlv::{list_size, put_list, take_list};
use crate::wire::{Cause, DecodeError, EncodeError};

/// The T flag of ABORT and SHUTDOWN COMPLETE.
const REFLECTED: u8 = 1;

/// ABORT: the association ends at once.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Abort {
    /// T: the verification tag is copied from the packet that this one answers. It is not the receiver's own.
    pub reflected: bool,
    /// The error causes.
    pub causes: Vec<Cause>,
}

impl Abort {
    /// Encoded length in bytes, without the padding of the last cause.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + list_size(&self.causes)
    }
}

//= rfc9260#section-3.3.7
impl Content for Abort {
    fn flags(&self) -> u8 {
        if self.reflected { REFLECTED } else { 0 }
    }

    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        put_list(&self.causes, out)
    }

    fn take(flags: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Abort { reflected: flags & REFLECTED != 0, causes: take_list(value)? })
    }
}

/// ERROR: reports an error; the association continues. It has at least one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationError {
    /// The error causes.
    pub causes: Vec<Cause>,
}

impl OperationError {
    /// Encoded length in bytes, without the padding of the last cause.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + list_size(&self.causes)
    }
}

//= rfc9260#section-3.3.10
// An ERROR without a cause is accepted. It does no harm.
impl Content for OperationError {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        put_list(&self.causes, out)
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(OperationError { causes: take_list(value)? })
    }
}

/// SHUTDOWN: the sender will send no more data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// The Cumulative TSN Ack: all TSNs up to this one have arrived.
    pub cumulative: Tsn,
}

impl Shutdown {
    /// Encoded length in bytes.
    pub const fn size(&self) -> usize {
        CHUNK_HEADER + 4
    }
}

//= rfc9260#section-3.3.8
impl Content for Shutdown {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.cumulative.0);
        Ok(())
    }

    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Shutdown { cumulative: Tsn(value.u32()?) })
    }
}

/// SHUTDOWN COMPLETE: the association has ended.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ShutdownComplete {
    /// T: as in [`Abort`].
    pub reflected: bool,
}

impl ShutdownComplete {
    /// Encoded length in bytes.
    pub const fn size(&self) -> usize {
        CHUNK_HEADER
    }
}

//= rfc9260#section-3.3.13
impl Content for ShutdownComplete {
    fn flags(&self) -> u8 {
        if self.reflected { REFLECTED } else { 0 }
    }

    fn put(&self, _: &mut BytesMut) -> Result<(), EncodeError> {
        Ok(())
    }

    fn take(flags: u8, _: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(ShutdownComplete { reflected: flags & REFLECTED != 0 })
    }
}
