//! The options of an endpoint.

use std::io;
use std::net::IpAddr;

use anabranch_proto::mechanisms::FillPackets;
use anabranch_proto::wire::UDP_PORT;
use anabranch_proto::{Config, Mechanisms, Policies};

use crate::interface::local_addresses_towards;

/// The carrier of SCTP packets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// UDP, from this local port; zero: a port that is free on all local addresses.
    Udp(u16),
    /// IP itself, protocol 132. This requires the permission to open raw sockets. The system does not notice that two
    /// programs have one address and one SCTP port; each aborts the associations of the other.
    Raw,
}

/// The options of an endpoint.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rules and parameters. Addresses are filled in, and `port` if it is zero. `mtu` is lowered to the MTU of the
    /// interfaces.
    pub config: Config,
    /// The policies that `config` can name.
    pub policies: Policies,
    /// The local addresses, in order: the first is the first to be used. Name each ([`addresses`](crate::addresses)
    /// lists them): 0.0.0.0 and :: make one path, of which the system chooses the source. An IPv4 address in the form
    /// of an IPv6 address is that IPv4 address. Link-local addresses cannot be used.
    pub local: Vec<IpAddr>,
    /// The carrier of the packets.
    pub carrier: Carrier,
    /// Whether peers may initiate associations.
    pub listen: bool,
    /// The largest number of simultaneous associations of one source ([`source`](crate::source)); further ones are
    /// aborted. `None`: as many as `config.max_associations`.
    pub max_per_source: Option<u32>,
    /// Whether several packets are handed to the kernel at once and the kernel cuts them (UDP segmentation offload).
    /// Captures on this host then show them uncut.
    pub gso: bool,
    /// Whether sockets are bound to the interface of their address, so that the packets of each path leave through
    /// its interface. A bound socket does not receive packets of this host itself.
    pub bind_devices: bool,
}

impl Default for Options {
    /// A listener without addresses, with RFC 9260's parameters. Failed paths are also probed from other local
    /// addresses.
    fn default() -> Self {
        Options {
            config: Config { rehome: true, mechanisms: mechanisms(), ..Config::default() },
            policies: Policies::default(),
            local: Vec::new(),
            carrier: Carrier::Udp(UDP_PORT),
            listen: true,
            max_per_source: None,
            gso: true,
            bind_devices: true,
        }
    }
}

/// Packets of one size leave with one system call, so packets are filled.
fn mechanisms() -> Mechanisms {
    Mechanisms { fill_packets: FillPackets::On, ..Mechanisms::default() }
}

impl Options {
    /// For associations with the peer at these addresses, from the local addresses that the system's routes choose
    /// and from any port.
    pub fn towards(peer: &[IpAddr]) -> io::Result<Options> {
        let config = Config {
            port: 0,
            mtu_discovery: true,
            rehome: true,
            mechanisms: mechanisms(),
            ..Config::default()
        };
        let local = local_addresses_towards(peer)?;
        // Packets to an address of this host return by the loopback interface.
        let bind_devices = !peer.iter().any(|peer| local.contains(&peer.to_canonical()));
        Ok(Options {
            config,
            local,
            carrier: Carrier::Udp(0),
            listen: false,
            bind_devices,
            ..Options::default()
        })
    }
}
