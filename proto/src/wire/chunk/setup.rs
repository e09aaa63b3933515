//! INIT, INIT ACK and COOKIE ECHO (RFC 9260 §3.3.2, §3.3.3, §3.3.11).

use bytes::Bytes;

use super::{CHUNK_HEADER, padded};
use crate::Tsn;
use crate::wire::Param;

/// Bytes of INIT and INIT ACK before the parameters.
pub const INIT_HEADER: usize = 20;

/// What both ends tell each other first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Init {
    /// The tag that the receiver of this chunk shall put into its packets; not zero.
    pub tag: u32,
    /// Size of the receive buffer, in bytes.
    pub a_rwnd: u32,
    /// Streams that the sender wants to send on.
    pub outbound: u16,
    /// Streams that the sender can receive.
    pub inbound: u16,
    /// The sender's first TSN.
    pub tsn: Tsn,
    /// Addresses, cookie and the rest.
    pub params: Vec<Param>,
}

impl Init {
    /// Encoded length in bytes, without the padding of the last parameter.
    pub fn size(&self) -> usize {
        INIT_HEADER + params_size(&self.params)
    }
}

/// Length of a list of parameters: each but the last is padded.
fn params_size(params: &[Param]) -> usize {
    match params.split_last() {
        Some((last, rest)) => rest.iter().map(|p| padded(p.size())).sum::<usize>() + last.size(),
        None => 0,
    }
}

/// The state cookie on its way back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CookieEcho {
    /// The cookie, byte for byte as it came in the INIT ACK.
    pub cookie: Bytes,
}

impl CookieEcho {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        CHUNK_HEADER + self.cookie.len()
    }
}
