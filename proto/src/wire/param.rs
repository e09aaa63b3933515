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
        /// 5: an additional address of the sender.
        5 Ipv4(Ipv4Addr) as Plain,
        //= rfc9260#section-3.3.2.1.2
        /// 6: an additional address of the sender.
        6 Ipv6(Ipv6Addr) as Plain,
        //= rfc9260#section-3.3.3.1.1
        /// 7: the state cookie.
        7 Cookie(Bytes) as Plain,
        //= rfc9260#section-3.3.3.1.2
        /// 8: a parameter of the INIT that was not recognized, with its header.
        8 Unrecognized(Bytes) as Plain,
        //= rfc9260#section-3.3.2.1.3
        /// 9: asks for a longer lifetime of the cookie, by this number of milliseconds.
        9 CookiePreservative(u32) as Plain,
        //= rfc9260#section-3.3.2.1.4
        /// 11: a host name (deprecated, answered with an ABORT), with its final NUL.
        11 HostName(Bytes) as Plain,
        //= rfc9260#section-3.3.2.1.5
        /// 12: the address types that the sender supports, as parameter types.
        12 SupportedAddressTypes(Vec<u16>) as Plain,
        //= rfc9653#section-4
        /// 0x8001: the sender accepts packets with a checksum of zero if this method detects their errors; 1 is DTLS.
        0x8001 ZeroChecksum(u32) as Plain,
        //= rfc4895#section-3.1
        /// 0x8002: the sender's random number, which becomes part of the keys.
        0x8002 Random(Bytes) as Plain,
        //= rfc4895#section-3.2
        /// 0x8003: the chunk types that the sender accepts only with authentication.
        0x8003 ChunkList(Bytes) as Plain,
        //= rfc4895#section-3.3
        /// 0x8004: the HMAC Identifiers that the sender accepts, in order of preference.
        0x8004 HmacAlgorithms(Vec<u16>) as Plain,
        //= rfc4820#section-4
        /// 0x8005: padding.
        0x8005 Padding(Bytes) as Plain,
        //= rfc5061#section-4.2.7
        /// 0x8008: the chunk types of the extensions that the sender supports.
        0x8008 SupportedExtensions(Bytes) as Plain,
    }
    bare {
        //= rfc4960#appendix-A
        /// 0x8000: the sender supports ECN.
        0x8000 EcnCapable,
        //= rfc3758#section-3.1
        /// 0xC000: the sender supports FORWARD TSN.
        0xc000 ForwardTsnSupported,
    }
    /// The parameter type; it is none of the above, or the value cannot be read.
    unknown kind
    extensions Some(0x8000)
}

impl Param {
    /// An address as a parameter.
    pub const fn of_address(ip: IpAddr) -> Param {
        match ip {
            IpAddr::V4(ip) => Param::Ipv4(ip),
            IpAddr::V6(ip) => Param::Ipv6(ip),
        }
    }

    /// Encodes these parameters with their headers; each but the last is padded. [`Param::Unrecognized`],
    /// [`Cause::UnrecognizedParameters`](super::Cause::UnrecognizedParameters) and
    /// [`Cause::RestartWithNewAddresses`](super::Cause::RestartWithNewAddresses) contain such bytes.
    pub fn encode_list(params: &[Param]) -> Result<Bytes, EncodeError> {
        let mut out = BytesMut::with_capacity(list_size(params));
        put_list(params, &mut out)?;
        Ok(out.freeze())
    }

    /// Decodes such bytes. The offset in an error counts from their start.
    pub fn decode_list(bytes: &Bytes) -> Result<Vec<Param>, DecodeError> {
        take_list(&mut Reader::new(bytes, bytes))
    }
}
