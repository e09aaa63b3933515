//! Parameters of INIT and INIT ACK (RFC 9260 §3.3.2.1) and error causes (§3.3.10).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use super::chunk::padded;
use crate::Tsn;

/// Bytes of the header of a parameter or cause: type or code, length.
pub const PARAM_HEADER: usize = 4;

/// A parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Param {
    /// 5: a further address of the sender.
    Ipv4(Ipv4Addr),
    /// 6: a further address of the sender.
    Ipv6(Ipv6Addr),
    /// 7: the state cookie.
    Cookie(Bytes),
    /// 8: a parameter of the INIT that was not understood, header and all, padded.
    Unrecognized(Bytes),
    /// 9: please make the cookie live longer by so many milliseconds.
    CookiePreservative(u32),
    /// 11: a host name (deprecated, answered with an ABORT), with its final NUL.
    HostName(Bytes),
    /// 12: the kinds of address that the sender understands, as parameter types.
    SupportedAddressTypes(Vec<u16>),
    /// Any other.
    Unknown {
        /// The parameter type; none of the above.
        kind: u16,
        /// What follows the header, without padding.
        value: Bytes,
    },
}

impl Param {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        PARAM_HEADER
            + match self {
                Param::Ipv4(_) | Param::CookiePreservative(_) => 4,
                Param::Ipv6(_) => 16,
                Param::Cookie(bytes) | Param::Unrecognized(bytes) | Param::HostName(bytes) => bytes.len(),
                Param::SupportedAddressTypes(types) => 2 * types.len(),
                Param::Unknown { value, .. } => value.len(),
            }
    }
}

/// An error cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// 1: DATA on a stream that was never agreed.
    InvalidStream(u16),
    /// 2: parameters of these types were missing.
    MissingParameter(Vec<u16>),
    /// 3: the cookie was too old, by so many microseconds.
    StaleCookie(u32),
    /// 4: out of resource.
    OutOfResource,
    /// 5: this address parameter (header and all) cannot be resolved.
    UnresolvableAddress(Bytes),
    /// 6: this chunk (header and all, padded) is of an unknown type.
    UnrecognizedChunk(Bytes),
    /// 7: a mandatory parameter was invalid.
    InvalidMandatoryParameter,
    /// 8: these parameters (headers and all) were not understood.
    UnrecognizedParameters(Bytes),
    /// 9: a DATA chunk without user data.
    NoUserData(Tsn),
    /// 10: a COOKIE ECHO came in SHUTDOWN-ACK-SENT.
    CookieWhileShutdown,
    /// 11: a restart with these new addresses (parameters, headers and all).
    RestartWithNewAddresses(Bytes),
    /// 12: the user ended the association, and says why.
    UserInitiated(Bytes),
    /// 13: the peer broke the protocol, and how.
    ProtocolViolation(Bytes),
    /// Any other.
    Unknown {
        /// The cause code; none of the above.
        code: u16,
        /// What follows the header, without padding.
        value: Bytes,
    },
}

impl Cause {
    /// Encoded length in bytes, without padding.
    pub fn size(&self) -> usize {
        PARAM_HEADER
            + match self {
                Cause::InvalidStream(_) | Cause::StaleCookie(_) | Cause::NoUserData(_) => 4,
                Cause::MissingParameter(types) => 4 + 2 * types.len(),
                Cause::OutOfResource | Cause::InvalidMandatoryParameter | Cause::CookieWhileShutdown => 0,
                Cause::UnrecognizedChunk(bytes) => padded(bytes.len()),
                Cause::UnresolvableAddress(bytes)
                | Cause::UnrecognizedParameters(bytes)
                | Cause::RestartWithNewAddresses(bytes)
                | Cause::UserInitiated(bytes)
                | Cause::ProtocolViolation(bytes)
                | Cause::Unknown { value: bytes, .. } => bytes.len(),
            }
    }
}
