//! The sources that share limits.

use std::net::{IpAddr, Ipv6Addr};

/// What counts as one source: an IPv4 address, or the IPv6 network of 64 bits, in which a host can take any address.
pub fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}
