//! Converts a simulated packet to the bytes that a wire would carry: IP and its contents.

use std::net::IpAddr;

use anabranch_proto::wire::{Ecn, EncodeError, Packet};
use bytes::{BufMut, BytesMut};
use etherparse::err::ValueTooBigError;
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4Options, Ipv6Header, TcpHeader, UdpHeader};

use crate::observe::trace::{Contents, Datagram, TcpPacket};
use crate::transport::foreign::{Carried, ForeignPacket};
use crate::transport::tcp;

/// The initial TTL or hop limit.
const FIRST_TTL: u32 = 64;
/// The place of the checksum in a TCP header.
const TCP_CHECKSUM: std::ops::Range<usize> = 16..18;
/// An IPv4 option without operation.
const NO_OPERATION: u8 = 1;

/// Writes the datagram of `size` bytes with these `contents`, after `hops` links.
///
/// A scenario may have IPv4 headers of any size. Bytes beyond 20 are options without operation. A size that no IPv4
/// header can have is written as 20 bytes.
pub(super) fn put(
    contents: Contents<'_>,
    size: u32,
    hops: u32,
    out: &mut BytesMut,
) -> Result<(), EncodeError> {
    if let Contents::Raw(packet) = contents {
        out.put_slice(packet);
        return Ok(());
    }
    let Payload { from, to, ecn, ports, mut bytes } = Payload::new(contents)?;
    let udp_len = if ports.is_some() { UdpHeader::LEN } else { 0 };
    let header = (size as usize).saturating_sub(udp_len + bytes.len());
    let ttl = FIRST_TTL.saturating_sub(hops).max(1) as u8;
    let protocol = match contents {
        _ if ports.is_some() => IpNumber::UDP,
        Contents::Tcp(_) => IpNumber::TCP,
        _ => IpNumber::SCTP,
    };
    let tcp = protocol == IpNumber::TCP;
    let udp_header = match (from, to) {
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
            if tcp {
                sign(&mut bytes, |tcp, data| tcp.calc_checksum_ipv6_raw(ip.source, ip.destination, data));
            }
            ports.map(|(source, destination)| UdpHeader::with_ipv6_checksum(source, destination, &ip, &bytes))
        }
        (source, destination) => {
            let addresses = [source, destination].map(octets);
            let ip = ipv4(ecn, ttl, header, udp_len + bytes.len(), protocol, addresses);
            out.put_slice(&ip.to_bytes());
            if tcp {
                sign(&mut bytes, |tcp, data| tcp.calc_checksum_ipv4_raw(ip.source, ip.destination, data));
            }
            ports.map(|(source, destination)| UdpHeader::with_ipv4_checksum(source, destination, &ip, &bytes))
        }
    };
    if let Some(udp) = udp_header {
        out.put_slice(&udp.expect("no MTU is beyond what UDP can say").to_bytes());
    }
    out.put_slice(&bytes);
    Ok(())
}

/// Fills in the checksum of a TCP segment.
fn sign(bytes: &mut BytesMut, checksum: impl Fn(&TcpHeader, &[u8]) -> Result<u16, ValueTooBigError<usize>>) {
    let (header, data) = TcpHeader::from_slice(bytes).expect("it was just written");
    let sum = checksum(&header, data).expect("no MTU is beyond what a checksum can cover");
    bytes[TCP_CHECKSUM].copy_from_slice(&sum.to_be_bytes());
}

/// The payload of IP.
struct Payload {
    from: IpAddr,
    to: IpAddr,
    ecn: Ecn,
    /// A UDP header with these ports precedes the bytes.
    ports: Option<(u16, u16)>,
    bytes: BytesMut,
}

impl Payload {
    fn new(contents: Contents<'_>) -> Result<Self, EncodeError> {
        match contents {
            Contents::Sctp(packet) => {
                let mut bytes = BytesMut::with_capacity(packet.size());
                packet.encode(&mut bytes)?;
                let Packet { from, to, ecn, .. } = *packet;
                let ports = (from.udp != 0).then_some((from.udp, to.udp));
                Ok(Payload { from: from.ip, to: to.ip, ecn, ports, bytes })
            }
            Contents::Tcp(&TcpPacket { from, to, ref segment, .. }) => {
                let mut bytes = BytesMut::from(&tcp::header(segment).to_bytes()[..]);
                bytes.put_bytes(0, segment.length as usize);
                Ok(Payload { from, to, ecn: Ecn::NotEct, ports: None, bytes })
            }
            Contents::Datagram(&Datagram { from, to, payload, .. }) => {
                let bytes = BytesMut::zeroed(payload as usize);
                let ports = Some((from.udp, to.udp));
                Ok(Payload { from: from.ip, to: to.ip, ecn: Ecn::NotEct, ports, bytes })
            }
            Contents::Foreign(Carried { packet: ForeignPacket { from, to, bytes, .. }, udp }) => {
                Ok(Payload {
                    from: from.ip(),
                    to: to.ip(),
                    ecn: Ecn::NotEct,
                    ports: udp.then_some((from.port(), to.port())),
                    bytes: BytesMut::from(&bytes[..]),
                })
            }
            Contents::Raw(_) => unreachable!("it is a whole packet"),
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
