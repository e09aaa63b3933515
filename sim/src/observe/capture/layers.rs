//! Finds the SCTP packet or the TCP segment in a captured frame.

use std::net::IpAddr;

use anabranch_proto::wire::{Address, Ecn};
use etherparse::{
    EtherType, IpNumber, LaxIpPayloadSlice, LaxNetSlice, LaxSlicedPacket, UdpSlice, ether_type,
};

use super::option::{RADIOTAP, RAW};
use super::radio;

/// An SCTP packet or a TCP segment, and the layers around it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Found<'a> {
    pub(super) from: Address,
    pub(super) to: Address,
    /// It is TCP, not SCTP.
    pub(super) is_tcp: bool,
    pub(super) bytes: &'a [u8],
    /// The capture does not have all of it.
    pub(super) cut: bool,
    /// The TTL or hop limit.
    pub(super) hops_left: u8,
    pub(super) ecn: Ecn,
}

/// Why there is neither.
#[derive(Debug)]
pub(super) struct Other {
    /// The IP addresses, if it got so far.
    pub(super) ends: Option<(IpAddr, IpAddr)>,
    pub(super) why: String,
    /// Whether it may be an SCTP packet, or a part of one, that is not read.
    pub(super) is_unread: bool,
}

fn other(why: impl Into<String>) -> Other {
    Other { ends: None, why: why.into(), is_unread: false }
}

/// Finds the packet. `udp` lists the UDP ports that may carry SCTP.
pub(super) fn transport<'a>(link_type: u16, bytes: &'a [u8], udp: &[u16]) -> Result<Found<'a>, Other> {
    let sliced = network(link_type, bytes)?;
    type Layer<'a, 'b> = (IpAddr, IpAddr, u8, u8, &'b LaxIpPayloadSlice<'a>);
    let (from, to, hops_left, ecn, payload): Layer<'a, '_> = match &sliced.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, header.ttl(), header.ecn().value(), ip.payload())
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let header = ip.header();
            let (from, to) = (header.source_addr().into(), header.destination_addr().into());
            (from, to, header.hop_limit(), header.traffic_class() & 3, ip.payload())
        }
        Some(LaxNetSlice::Arp(_)) => return Err(other("not SCTP: ARP")),
        None => return Err(other(stopped(&sliced))),
    };
    let wrong = |why: String| Other { ends: Some((from, to)), why, is_unread: false };
    if payload.fragmented {
        let is_unread = matches!(payload.ip_number, IpNumber::SCTP | IpNumber::UDP);
        let why = "a fragment of an IP packet, not put together here".to_owned();
        return Err(Other { ends: Some((from, to)), why, is_unread });
    }
    let ecn = ecn_of(ecn);
    let (from, to, cut) = (Address::ip(from), Address::ip(to), payload.incomplete);
    match payload.ip_number {
        IpNumber::SCTP => Ok(Found { from, to, is_tcp: false, bytes: payload.payload, cut, hops_left, ecn }),
        IpNumber::TCP => Ok(Found { from, to, is_tcp: true, bytes: payload.payload, cut, hops_left, ecn }),
        IpNumber::UDP => {
            let datagram = UdpSlice::from_slice_lax(payload.payload)
                .map_err(|_| wrong("malformed: less than a UDP header".to_owned()))?;
            let ports = [datagram.source_port(), datagram.destination_port()];
            if !ports.iter().any(|port| udp.contains(port)) {
                return Err(wrong(format!("not SCTP: UDP {} > {}", ports[0], ports[1])));
            }
            let (from, to) = (Address { udp: ports[0], ..from }, Address { udp: ports[1], ..to });
            Ok(Found { from, to, is_tcp: false, bytes: datagram.payload(), cut, hops_left, ecn })
        }
        number => Err(wrong(match number.keyword_str() {
            Some(name) => format!("not SCTP: {name}"),
            None => format!("not SCTP: IP protocol {}", number.0),
        })),
    }
}

fn ecn_of(bits: u8) -> Ecn {
    match bits {
        1 => Ecn::Ect1,
        2 => Ecn::Ect0,
        3 => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}

/// The layers above the link's own header.
fn network(link_type: u16, bytes: &[u8]) -> Result<LaxSlicedPacket<'_>, Other> {
    let behind = |size: usize| bytes.get(size..).ok_or_else(|| other("malformed: less than a link header"));
    let ip = |bytes| LaxSlicedPacket::from_ip(bytes).map_err(|error| other(format!("malformed: {error}")));
    // The type stands at this place of the header, and the header has this size.
    let typed = |at: usize, size: usize| {
        let rest = behind(size)?;
        let number = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Ok(LaxSlicedPacket::from_ether_type(EtherType(number), rest))
    };
    match link_type {
        // BSD loopback: an address family whose number and byte order differ between systems.
        0 | 108 => ip(behind(4)?),
        1 => LaxSlicedPacket::from_ethernet(bytes).map_err(|error| other(format!("malformed: {error}"))),
        RAW | 12 | 14 | 228 | 229 => ip(bytes),
        RADIOTAP => {
            let datagram = radio::datagram(bytes).map_err(other)?;
            typed(bytes.len() - datagram.len() - 2, bytes.len() - datagram.len())
        }
        // Linux cooked, versions 1 and 2.
        113 => typed(14, 16),
        276 => typed(0, 20),
        _ => Err(Other { is_unread: true, ..other(format!("not read: link type {link_type}")) }),
    }
}

/// Why no IP header was found.
fn stopped(sliced: &LaxSlicedPacket<'_>) -> String {
    match (&sliced.stop_err, sliced.ether_payload()) {
        (Some((error, _)), _) => format!("malformed: {error}"),
        (None, Some(payload)) => match payload.ether_type {
            ether_type::IPV4 | ether_type::IPV6 => "malformed: no IP header".to_owned(),
            EtherType(number) => format!("not SCTP: EtherType {number:#06x}"),
        },
        (None, None) => "not SCTP: no IP header".to_owned(),
    }
}
