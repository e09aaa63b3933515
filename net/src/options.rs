//! What an endpoint is made of.

use std::io;
use std::net::IpAddr;

use anabranch_proto::mechanisms::FillPackets;
use anabranch_proto::{Config, Mechanisms, Policies};

use crate::interface::sources;

/// The UDP port that is registered for SCTP in UDP (RFC 6951).
pub const UDP_PORT: u16 = 9899;

/// What carries SCTP packets.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// UDP, from this local port; zero: one that is free on all local addresses.
    Udp(u16),
    /// IP itself, protocol 132: needs the right to open raw sockets.
    Raw,
}

/// What an endpoint is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rules and parameters. Addresses are filled in, `port` if it is zero; `mtu` is lowered to what the
    /// interfaces carry.
    pub config: Config,
    /// The policies that `config` names.
    pub policies: Policies,
    /// The local addresses, in order: the first is the first to be used.
    pub local: Vec<IpAddr>,
    /// What carries the packets.
    pub carrier: Carrier,
    /// Whether peers may begin associations.
    pub listen: bool,
    /// Associations that peers of one source ([`source`](crate::source)) may have at the same time; more are aborted.
    /// `None`: as many as `config.max_associations`.
    pub max_per_source: Option<u32>,
    /// Whether the kernel is handed several packets at once and cuts them (UDP segmentation offload). Captures on this
    /// host show them uncut.
    pub gso: bool,
    /// Whether sockets are bound to the interface of their address, so that each path's packets leave there.
    /// A socket that is bound to an interface does not hear this host's own packets.
    pub bind_devices: bool,
}

impl Default for Options {
    /// A listener on no address yet, with RFC 9260's parameters; failed paths are asked from other local addresses.
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

/// Packets of one size leave in one system call, so that they are filled.
fn mechanisms() -> Mechanisms {
    Mechanisms { fill_packets: FillPackets::On, ..Mechanisms::default() }
}

impl Options {
    /// For associations with the peer at these addresses: from the addresses that the system's routes choose,
    /// from any port.
    pub fn towards(peer: &[IpAddr]) -> io::Result<Options> {
        let config = Config {
            port: 0,
            mtu_discovery: true,
            rehome: true,
            mechanisms: mechanisms(),
            ..Config::default()
        };
        let local = sources(peer)?;
        // What goes to an address of this host comes back by the loopback interface.
        let bind_devices = !local.iter().any(|own| peer.contains(own));
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
