//! A simulated packet as the bytes that a wire would carry: IP, UDP if any, SCTP.

use std::net::IpAddr;

use anabranch_proto::wire::{Address, Ecn, EncodeError, Packet};
use bytes::{BufMut, BytesMut};
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4Options, Ipv6Header, UdpHeader};

use crate::observe::trace::{Contents, Datagram};

/// What a sender puts into the TTL or hop limit.
const FIRST_TTL: u32 = 64;
/// An IPv4 option that says nothing.
const NO_OPERATION: u8 = 1;

/// Writes the datagram of `size` bytes with these `contents` after `hops` links.
///
/// A scenario may have IPv4 headers of any size. What goes beyond 20 bytes are options without operation; a size
/// that no IPv4 header can have is written as 20 bytes.
pub(super) fn put(
    contents: Contents<'_>,
    size: u32,
    hops: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    let Payload { from, to, ecn, udp, bytes } = Payload::new(contents)?;
    let udp_len = if udp { UdpHeader::LEN } else { 0 };
    let header = (size as usize).saturating_sub(udp_len + bytes.len());
    let ttl = FIRST_TTL.saturating_sub(hops).max(1) as u8;
    let protocol = if udp { IpNumber::UDP } else { IpNumber::SCTP };
    let udp_header = match (from.ip, to.ip) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = Ipv6Header {
                traffic_class: ecn_bits(ecn).value(),
                payload_length: length(udp_len + bytes.len()),
                next_header: protocol,
                hop_limit: ttl,
                source: source.octets(),
                destination: destination.octets(),
                ..Ipv6Header::default()
            };
            out.put_slice(&ip.to_bytes());
            udp.then(|| UdpHeader::with_ipv6_checksum(from.udp, to.udp, &ip, &bytes))
        }
        (source, destination) => {
            let addresses = [source, destination].map(octets);
            let ip = ipv4(ecn, ttl, header, udp_len + bytes.len(), protocol, addresses);
            out.put_slice(&ip.to_bytes());
            udp.then(|| UdpHeader::with_ipv4_checksum(from.udp, to.udp, &ip, &bytes))
        }
    };
    if let Some(udp) = udp_header {
        out.put_slice(&udp.expect("no MTU is beyond what UDP can say").to_bytes());
    }
    out.put_slice(&bytes);
    Ok(())
}

/// What IP carries.
struct Payload {
    from: Address,
    to: Address,
    ecn: Ecn,
    /// There is a header of UDP before the bytes.
    udp: bool,
    bytes: BytesMut,
}

impl Payload {
    fn new(contents: Contents<'_>) -> Result<Self, EncodeError> {
        match contents {
            Contents::Sctp(packet) => {
                let mut bytes = BytesMut::with_capacity(packet.size());
                packet.encode(&mut bytes)?;
                let Packet { from, to, ecn, .. } = *packet;
                Ok(Payload { from, to, ecn, udp: from.udp != 0, bytes })
            }
            Contents::Datagram(&Datagram { from, to, payload }) => {
                let bytes = BytesMut::zeroed(payload as usize);
                Ok(Payload { from, to, ecn: Ecn::NotEct, udp: true, bytes })
            }
        }
    }
}

fn ipv4(
    ecn: Ecn,
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
        ecn: ecn_bits(ecn),
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

/// An MTU may be so large that an IP header which is smaller in the scenario does not fit any more.
fn length(size: usize) -> u16 {
    u16::try_from(size).unwrap_or(u16::MAX)
}

fn octets(ip: IpAddr) -> [u8; 4] {
    match ip {
        IpAddr::V4(ip) => ip.octets(),
        IpAddr::V6(_) => [0; 4],
    }
}

fn ecn_bits(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::ZERO,
        Ecn::Ect0 => IpEcn::TWO,
        Ecn::Ect1 => IpEcn::ONE,
        Ecn::Ce => IpEcn::THREE,
    }
}
