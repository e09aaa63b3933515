//! Transport addresses, and the local ones with the prefixes of their links.

use std::net::IpAddr;

/// A transport address: where a packet comes from or goes to, SCTP ports aside.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Address {
    /// The IP address.
    pub ip: IpAddr,
    /// The UDP port of the encapsulation (RFC 6951); zero where SCTP stands directly on IP.
    pub udp: u16,
}

impl Address {
    /// Whether an association can be with this address.
    pub(crate) fn is_unicast(&self) -> bool {
        let reserved = match self.ip {
            // 240.0.0.0/4, the limited broadcast among them, and 0.0.0.0/8, "this network".
            IpAddr::V4(ip) => ip.octets()[0] >= 240 || ip.octets()[0] == 0,
            // An IPv4 address in another guise would pass by what is asked of those.
            IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
        };
        !self.ip.is_multicast() && !self.ip.is_unspecified() && !reserved
    }

    /// Whether a peer whose packet came from `source` may call this address its own. Heartbeats go to every address that
    /// a peer names: none may go to many hosts at once, to this host, or to a place that is another one here than there.
    //= rfc9260#section-5.4
    pub(crate) fn may_be_named_by(&self, source: Address, own: &[LocalAddress]) -> bool {
        let ours = |ip: IpAddr| ip.is_loopback() || own.iter().any(|local| local.address.ip == ip);
        let broadcast = own.iter().any(|local| local.is_broadcast(self.ip));
        let local_only = is_link_local(self.ip) && !is_link_local(source.ip);
        // Two endpoints on one host have the same addresses, and their packets come from them.
        let not_here = !ours(self.ip) || ours(source.ip);
        self.is_unicast() && !broadcast && !local_only && not_here
    }

    /// An address without encapsulation.
    pub const fn ip(ip: IpAddr) -> Self {
        Address { ip, udp: 0 }
    }
}

fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

/// A local address and the prefix of its link.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LocalAddress {
    /// The address itself.
    pub address: Address,
    /// Length of the prefix shared by the hosts of its link, in bits.
    pub prefix: u8,
}

impl LocalAddress {
    /// Whether this is the broadcast address of the link.
    pub(crate) fn is_broadcast(&self, ip: IpAddr) -> bool {
        match (self.address.ip, ip) {
            (IpAddr::V4(own), IpAddr::V4(ip)) if self.prefix < 31 => {
                ip.to_bits() == own.to_bits() | (u32::MAX >> self.prefix)
            }
            _ => false,
        }
    }

    /// Whether `peer` is on the same link.
    pub(crate) fn on_link(&self, peer: IpAddr) -> bool {
        match (self.address.ip, peer) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let shift = 32 - u32::from(self.prefix.min(32));
                (a.to_bits() ^ b.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let shift = 128 - u32::from(self.prefix.min(128));
                (a.to_bits() ^ b.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}
