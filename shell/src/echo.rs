//! Answers to pings: hosts of the network without a program answer nothing else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const ICMP: u8 = 1;
const ICMP_V6: u8 = 58;

/// The destination of an IP packet; `None` if it is none.
pub(crate) fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(16..20)?).ok()?).into()),
        6 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(24..40)?).ok()?).into()),
        _ => None,
    }
}

/// Makes the answer of an echo request (RFC 792, RFC 4443) and returns where it goes; `None` if the packet is none.
pub(crate) fn answer(packet: &mut [u8]) -> Option<IpAddr> {
    let version = packet.first()? >> 4;
    let (header, protocol, addresses, size, request, reply) = match version {
        4 => (usize::from(packet[0] & 15) * 4, *packet.get(9)?, 12, 4, 8, 0),
        6 => (40, *packet.get(6)?, 8, 16, 128, 129),
        _ => return None,
    };
    let is_ping = protocol == if version == 4 { ICMP } else { ICMP_V6 };
    let whole = packet.len() >= (header + 8).max(addresses + 2 * size);
    // A fragment other than the first has no header of ICMP.
    let fragment = version == 4 && u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff != 0;
    if !is_ping || !whole || fragment || packet[header] != request {
        return None;
    }
    let (source, destination) = packet[addresses..addresses + 2 * size].split_at_mut(size);
    source.swap_with_slice(destination);
    packet[header] = reply;
    // RFC 1624: the sums of both headers are unchanged by the swap; that of ICMP follows the type.
    let sum = u16::from_be_bytes([packet[header + 2], packet[header + 3]]);
    let [old, new] = [request, reply].map(|kind| u32::from(kind) << 8);
    let mut next = u32::from(!sum) + (0xffff - old) + new;
    while next > 0xffff {
        next = (next & 0xffff) + (next >> 16);
    }
    packet[header + 2..header + 4].copy_from_slice(&(!(next as u16)).to_be_bytes());
    self::destination(packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u16 {
        let words =
            bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn ping(kind: u8) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 32, 0, 1, 0, 0, 64, ICMP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([kind, 0, 0, 0, 0x12, 0x34, 0, 1, 0xde, 0xad, 0xbe, 0xef]);
        let check = !sum(&packet[20..]);
        packet[22..24].copy_from_slice(&check.to_be_bytes());
        packet
    }

    #[test]
    fn a_request_becomes_a_reply_with_a_right_checksum() {
        let mut packet = ping(8);
        assert_eq!(answer(&mut packet), Some("10.0.0.1".parse().unwrap()));
        assert_eq!((packet[20], sum(&packet[20..])), (0, 0xffff));
        assert_eq!(packet[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
    }

    #[test]
    fn nothing_else_is_answered_and_no_length_panics() {
        assert_eq!(answer(&mut ping(0)), None);
        let packet = ping(8);
        for length in 0..packet.len() {
            let mut part = packet[..length].to_vec();
            assert!(answer(&mut part).is_none() || length >= 28);
        }
        let mut options = vec![0x4f; 60];
        options[9] = ICMP;
        assert_eq!(answer(&mut options), None);
    }
}
