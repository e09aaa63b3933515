//! ECNE and CWR (RFC 4960 appendix A).

use bytes::{BufMut, BytesMut};

use super::content::{CHUNK_HEADER, Content};
use crate::Tsn;
use crate::wire::reader::Reader;
use crate::wire::{DecodeError, EncodeError};

/// ECNE reports a packet that arrived with a congestion mark. CWR confirms that the sender has reduced its window.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct EcnEcho {
    /// ECNE: the lowest TSN of the marked packet. CWR: the TSN of the ECNE that it answers.
    pub tsn: Tsn,
}

impl EcnEcho {
    /// Encoded length in bytes.
    pub const fn size(&self) -> usize {
        CHUNK_HEADER + 4
    }
}

//= rfc4960#appendix-A
impl Content for EcnEcho {
    fn put(&self, out: &mut BytesMut) -> Result<(), EncodeError> {
        out.put_u32(self.tsn.0);
        Ok(())
    }

    /// Some stacks append the number of marked packets, which says nothing more to us.
    fn take(_: u8, value: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let echo = EcnEcho { tsn: Tsn(value.u32()?) };
        value.skip();
        Ok(echo)
    }
}
