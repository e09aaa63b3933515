//! Parameters of INIT and INIT ACK (RFC 9260 §3.3.2.1, §3.3.3.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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
        //= rfc9653#section-4
        /// 0x8001: packets with a checksum of zero are taken if this method finds their errors: 1 is DTLS.
        0x8001 ZeroChecksum(u32) as Plain,
        //= rfc4895#section-3.1
        /// 0x8002: the sender's random number, part of the keys.
        0x8002 Random(Bytes) as Plain,
        //= rfc4895#section-3.2
        /// 0x8003: the chunk types that the sender accepts only authenticated.
        0x8003 ChunkList(Bytes) as Plain,
        //= rfc4895#section-3.3
        /// 0x8004: the HMAC Identifiers that the sender accepts, the preferred first.
        0x8004 HmacAlgorithms(Vec<u16>) as Plain,
        //= rfc4820#section-4
        /// 0x8005: bytes that mean nothing.
        0x8005 Padding(Bytes) as Plain,
        //= rfc5061#section-4.2.7
        /// 0x8008: the chunk types of the extensions that the sender knows.
        0x8008 SupportedExtensions(Bytes) as Plain,
    }
    bare {
        //= rfc4960#appendix-A
        /// 0x8000: the sender is capable of ECN.
        0x8000 EcnCapable,
        //= rfc3758#section-3.1
        /// 0xC000: the sender understands FORWARD TSN.
        0xc000 ForwardTsnSupported,
    }
    /// The parameter type; none of the above.
    unknown kind
}

impl Param {
    /// An address as a parameter.
    pub const fn of_address(ip: IpAddr) -> Param {
        match ip {
            IpAddr::V4(ip) => Param::Ipv4(ip),
            IpAddr::V6(ip) => Param::Ipv6(ip),
        }
    }

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
