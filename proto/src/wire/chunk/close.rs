//! ABORT, ERROR, SHUTDOWN and SHUTDOWN COMPLETE (RFC 9260 §3.3.7 to §3.3.10, §3.3.13).

use super::{CHUNK_HEADER, padded};
use crate::Tsn;
use crate::wire::Cause;

/// Length of a list of causes: each but the last is padded.
fn causes_size(causes: &[Cause]) -> usize {
    match causes.split_last() {
        Some((last, rest)) => rest.iter().map(|c| padded(c.size())).sum::<usize>() + last.size(),
        None => 0,
    }
}

/// The association ends at once.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Abort {
    /// T: the verification tag is the one of the packet answered, not the receiver's own.
    pub reflected: bool,
    /// Why.
    pub causes: Vec<Cause>,
}

impl Abort {
    /// Encoded length in bytes, without the padding of the last cause.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + causes_size(&self.causes)
    }
}

/// ERROR: something was wrong, the association lives. At least one cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OperationError {
    /// What was wrong.
    pub causes: Vec<Cause>,
}

impl OperationError {
    /// Encoded length in bytes, without the padding of the last cause.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + causes_size(&self.causes)
    }
}

/// No more data will come from here.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// All up to this TSN have arrived.
    pub cumulative: Tsn,
}

impl Shutdown {
    /// Encoded length in bytes.
    pub const fn size(&self) -> usize {
        CHUNK_HEADER + 4
    }
}

/// The association is over.
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
