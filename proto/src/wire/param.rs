//! Parameters of INIT and INIT ACK (RFC 9260 §3.3.2.1, §3.3.3.1).

use std::net::{Ipv4Addr, Ipv6Addr};

use bytes::{Bytes, BytesMut};

use super::reader::Reader;
use super::tlv::{Layout, Plain, list_size, put_list, take_list, tlv};
use super::{DecodeError, EncodeError};

tlv! {
    /// A parameter.
    enum Param {
        //= rfc9260#section-3.3.2.1.1
        /// 5: a further address of the sender.
        5 Ipv4(Ipv4Addr) as Plain,
        //= rfc9260#section-3.3.2.1.2
        /// 6: a further address of the sender.
        6 Ipv6(Ipv6Addr) as Plain,
        //= rfc9260#section-3.3.3.1.1
        /// 7: the state cookie.
        7 Cookie(Bytes) as Plain,
        //= rfc9260#section-3.3.3.1.2
        /// 8: a parameter of the INIT that was not understood, header and all.
        8 Unrecognized(Bytes) as Plain,
        //= rfc9260#section-3.3.2.1.3
        /// 9: please make the cookie live longer by so many milliseconds.
        9 CookiePreservative(u32) as Plain,
        //= rfc9260#section-3.3.2.1.4
        /// 11: a host name (deprecated, answered with an ABORT), with its final NUL.
        11 HostName(Bytes) as Plain,
        //= rfc9260#section-3.3.2.1.5
        /// 12: the kinds of address that the sender understands, as parameter types.
        12 SupportedAddressTypes(Vec<u16>) as Plain,
    }
    bare {}
    /// The parameter type; none of the above.
    unknown kind
}

impl Param {
    /// These parameters as bytes, headers and all, each but the last padded: what stands inside
    /// [`Param::Unrecognized`], [`Cause::UnrecognizedParameters`](super::Cause::UnrecognizedParameters)
    /// and [`Cause::RestartWithNewAddresses`](super::Cause::RestartWithNewAddresses).
    pub fn encode_list(params: &[Param]) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(list_size(params));
        put_list(params, &mut out)?;
        Ok(out.freeze())
    }

    /// The parameters that stand in such bytes; the offset in an error counts from their start.
    pub fn decode_list(bytes: &Bytes) -> Result<Vec<Param>, DecodeError> {
        take_list(&mut Reader::new(bytes))
    }
}
