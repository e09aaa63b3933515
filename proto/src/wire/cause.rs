//! Error causes (RFC 9260 §3.3.10), the content of ABORT and ERROR.

use std::fmt;

use bytes::Bytes;

use super::tlv::{Counted, Layout, Plain, ThenReserved, tlv};
use crate::{Tsn, printable};

tlv! {
    /// An error cause.
    enum Cause {
        //= rfc9260#section-3.3.10.1
        /// 1: DATA on a stream that does not exist.
        1 InvalidStream(u16) as ThenReserved,
        //= rfc9260#section-3.3.10.2
        /// 2: parameters of these types were missing.
        2 MissingParameter(Vec<u16>) as Counted,
        //= rfc9260#section-3.3.10.3
        /// 3: the cookie was too old by this number of microseconds.
        3 StaleCookie(u32) as Plain,
        //= rfc9260#section-3.3.10.5
        /// 5: this address parameter (with its header) cannot be resolved.
        5 UnresolvableAddress(Bytes) as Plain,
        //= rfc9260#section-3.3.10.6
        /// 6: this chunk (with its header) has an unknown type.
        6 UnrecognizedChunk(Bytes) as Plain,
        //= rfc9260#section-3.3.10.8
        /// 8: these parameters (with their headers) were not recognized.
        8 UnrecognizedParameters(Bytes) as Plain,
        //= rfc9260#section-3.3.10.9
        /// 9: a DATA chunk without user data.
        9 NoUserData(Tsn) as Plain,
        //= rfc9260#section-3.3.10.11
        /// 11: a restart added these addresses (parameters with their headers).
        11 RestartWithNewAddresses(Bytes) as Plain,
        //= rfc9260#section-3.3.10.12
        /// 12: the user aborted the association; the bytes are its reason.
        12 UserInitiated(Bytes) as Plain,
        //= rfc9260#section-3.3.10.13
        /// 13: the peer violated the protocol; the bytes describe how.
        13 ProtocolViolation(Bytes) as Plain,
        //= rfc5061#section-4.3.1
        /// 0x00A0: this request (with its header) would delete the last address.
        0x00a0 DeletesLastAddress(Bytes) as Plain,
        //= rfc5061#section-4.3.2
        /// 0x00A1: there are no resources for this request (with its header).
        0x00a1 ResourceShortage(Bytes) as Plain,
        //= rfc5061#section-4.3.3
        /// 0x00A2: this request (with its header) would delete the source address of its packet.
        0x00a2 DeletesSourceAddress(Bytes) as Plain,
        //= rfc5061#section-4.3.5
        /// 0x00A4: this request (with its header) is not allowed.
        0x00a4 NotAuthorized(Bytes) as Plain,
        //= rfc4895#section-4.1
        /// 0x0105: we did not offer this HMAC Identifier.
        0x0105 UnsupportedHmac(u16) as Plain,
    }
    bare {
        //= rfc9260#section-3.3.10.4
        /// 4: out of resource.
        4 OutOfResource,
        //= rfc9260#section-3.3.10.7
        /// 7: a mandatory parameter was invalid.
        7 InvalidMandatoryParameter,
        //= rfc9260#section-3.3.10.10
        /// 10: a COOKIE ECHO arrived in SHUTDOWN-ACK-SENT.
        10 CookieWhileShutdown,
        //= rfc5061#section-4.3.4
        /// 0x00A3: an ASCONF-ACK answers an ASCONF that was never sent.
        0x00a3 IllegalAsconfAck,
    }
    /// The cause code; it is none of the above.
    unknown code
    extensions None
}

/// In words. Text of the peer is made printable.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Cause::UserInitiated(why) if why.is_empty() => "its user ended the association",
            Cause::UserInitiated(why) => return f.write_str(&text(why)),
            Cause::ProtocolViolation(what) => {
                return write!(f, "this end violates the protocol: {}", text(what));
            }
            Cause::InvalidStream(stream) => return write!(f, "there is no stream {stream}"),
            Cause::MissingParameter(_) => "a parameter is missing",
            Cause::StaleCookie(_) => "the cookie is too old",
            Cause::OutOfResource => "it has no resources for the association",
            Cause::UnresolvableAddress(_) => "it does not understand an address",
            Cause::UnrecognizedChunk(_) => "it does not know a chunk",
            Cause::InvalidMandatoryParameter => "a parameter is invalid",
            Cause::UnrecognizedParameters(_) => "it does not know a parameter",
            Cause::NoUserData(_) => "a DATA chunk has no user data",
            Cause::CookieWhileShutdown => "it is shutting down",
            Cause::RestartWithNewAddresses(_) => "a restart adds addresses",
            Cause::UnsupportedHmac(id) => return write!(f, "it does not support the HMAC {id}"),
            Cause::DeletesLastAddress(_)
            | Cause::ResourceShortage(_)
            | Cause::DeletesSourceAddress(_)
            | Cause::IllegalAsconfAck
            | Cause::NotAuthorized(_) => "it does not agree to a change of addresses",
            Cause::Unknown { code, .. } => return write!(f, "error cause {code}"),
        };
        f.write_str(words)
    }
}

fn text(bytes: &[u8]) -> String {
    printable(&String::from_utf8_lossy(bytes)).into_owned()
}
