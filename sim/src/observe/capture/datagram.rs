//! A simulated packet as the bytes that a wire would carry: IP, UDP if any, SCTP.

use std::net::IpAddr;

use anabranch_proto::wire::{Ecn, EncodeError, Packet};
use bytes::{BufMut, BytesMut};
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4Options, Ipv6Header, UdpHeader};

/// What a sender puts into the TTL or hop limit.
const FIRST_TTL: u32 = 64;
/// An IPv4 option that says nothing.
const NO_OPERATION: u8 = 1;

/// Writes the datagram of `size` bytes that carries `packet` after `hops` links.
///
/// A scenario may have IPv4 headers of any size. What goes beyond 20 bytes are options without operation; a size
/// that no IPv4 header can have is written as 20 bytes.
pub(super) fn put(packet: &Packet, size: u32, hops: u32, out: &mut BytesMut) -> Result<(), EncodeError> {
    let mut sctp = BytesMut::with_capacity(packet.size());
    packet.encode(&mut sctp)?;
    let udp = if packet.from.udp == 0 { 0 } else { UdpHeader::LEN };
    let header = (size as usize).saturating_sub(udp + sctp.len());
    let ttl = FIRST_TTL.saturating_sub(hops).max(1) as u8;
    match (packet.from.ip, packet.to.ip) {
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let ip = Ipv6Header {
                traffic_class: ecn(packet.ecn).value(),
                payload_length: length(udp + sctp.len()),
                next_header: carried(udp),
                hop_limit: ttl,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv6Header::default()
            };
            out.put_slice(&ip.to_bytes());
            put_udp(packet, out, |from, to| UdpHeader::with_ipv6_checksum(from, to, &ip, &sctp));
        }
        (from, to) => {
            let ip = ipv4(packet.ecn, ttl, header, udp + sctp.len(), carried(udp), [from, to].map(octets));
            out.put_slice(&ip.to_bytes());
            put_udp(packet, out, |from, to| UdpHeader::with_ipv4_checksum(from, to, &ip, &sctp));
        }
    }
    out.put_slice(&sctp);
    Ok(())
}

fn ipv4(
    ecn_bits: Ecn,
    ttl: u8,
    header: usize,
    payload: usize,
    protocol: IpNumber,
    addresses: [[u8; 4]; 2],
) -> Ipv4Header {
    let [source, destination] = addresses;
    let options = [NO_OPERATION; 40];
    let options = header.checked_sub(Ipv4Header::MIN_LEN).and_then(|size| options.get(..size));
    let mut ip = Ipv4Header {
        ecn: ecn(ecn_bits),
        time_to_live: ttl,
        protocol,
        dont_fragment: true,
        source,
        destination,
        options: options.and_then(|options| Ipv4Options::try_from(options).ok()).unwrap_or_default(),
        ..Ipv4Header::default()
    };
    ip.total_len = length(ip.header_len() + payload);
    ip.header_checksum = ip.calc_header_checksum();
    ip
}

fn put_udp<E: std::fmt::Debug>(
    packet: &Packet,
    out: &mut BytesMut,
    header: impl Fn(u16, u16) -> Result<UdpHeader, E>,
) {
    if packet.from.udp != 0 {
        let udp = header(packet.from.udp, packet.to.udp).expect("no MTU is beyond what UDP can say");
        out.put_slice(&udp.to_bytes());
    }
}

/// An MTU may be so large that an IP header which is smaller in the scenario does not fit any more.
fn length(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

fn carried(udp: usize) -> IpNumber {
    if udp == 0 { IpNumber::SCTP } else { IpNumber::UDP }
}

fn octets(ip: IpAddr) -> [u8; 4] {
    match ip {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

fn ecn(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::ZERO,
        Ecn::Ect0 => IpEcn::TWO,
        Ecn::Ect1 => IpEcn::ONE,
        Ecn::Ce => IpEcn::THREE,
    }
}
