//! Transport addresses, and local addresses with the prefix of their link.

use std::net::IpAddr;

/// A transport address: the source or destination of a packet, without SCTP ports.
#[allow(clippy::derived_hash_with_manual_eq, reason = "both compare all fields")]
#[derive(Copy, Clone, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Address {
    /// The IP address.
    pub ip: IpAddr,
    /// The UDP port of the encapsulation (RFC 6951). It is zero if SCTP runs directly on IP.
    pub udp: u16,
}

impl PartialEq for Address {
    // The addresses of every packet are compared, so the comparison of IPv6 is kept out of the way of IPv4.
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        match (self.ip, other.ip) {
            (IpAddr::V4(own), IpAddr::V4(others)) => {
                own.to_bits() == others.to_bits() && self.udp == other.udp
            }
            _ => self.is_same(other),
        }
    }
}

impl Address {
    #[cold]
    fn is_same(&self, other: &Self) -> bool {
        (self.ip, self.udp) == (other.ip, other.udp)
    }

    /// Whether this can be the address of a peer.
    pub(crate) fn is_unicast(&self) -> bool {
        let reserved = match self.ip {
            // 240.0.0.0/4 includes the limited broadcast address; 0.0.0.0/8 means "this network".
            IpAddr::V4(ip) => ip.octets()[0] >= 240 || ip.octets()[0] == 0,
            // An IPv4-mapped address would bypass the checks of IPv4 addresses.
            IpAddr::V6(ip) => ip.to_ipv4_mapped().is_some(),
        };
        !self.ip.is_multicast() && !self.ip.is_unspecified() && !reserved
    }

    /// Whether a peer that sent a packet from `source` may list this address as its own. We send heartbeats to every
    /// address that a peer lists. So none may reach many hosts, or this host, or mean different hosts here and at the
    /// peer.
    //= rfc9260#section-5.4
    pub(crate) fn may_be_named_by(&self, source: Address, own: &[LocalAddress]) -> bool {
        let ours = |ip: IpAddr| ip.is_loopback() || own.iter().any(|local| local.address.ip == ip);
        let broadcast = own.iter().any(|local| local.is_broadcast(self.ip));
        let local_only = is_link_local(self.ip) && !is_link_local(source.ip);
        // Two endpoints on one host share its addresses, and their packets arrive from them.
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
    /// Length in bits of the prefix that all hosts of the link share.
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
