//! Setting up: INIT, INIT ACK with a cookie and no state kept, COOKIE ECHO, COOKIE ACK; collisions and
//! restarts (RFC 9260 §5.1, §5.2).

pub(crate) mod cookie;

use std::net::IpAddr;

use bytes::Bytes;
use cookie::{Cookie, MAX_ADDRESSES};

use crate::wire::chunk::Init;
use crate::wire::{Address, Param};
use crate::{Config, Tsn};

/// What an INIT or INIT ACK told us of the peer.
pub(crate) struct Peer {
    pub(crate) tag: u32,
    pub(crate) tsn: Tsn,
    pub(crate) buffer: u32,
    /// Where it came from, then the other addresses that it named.
    pub(crate) addresses: Vec<Address>,
    /// Streams that we may send on, and the peer may.
    pub(crate) streams: (u16, u16),
    pub(crate) cookie: Option<Bytes>,
}

impl Peer {
    /// What `init`, which came from `source`, says; `None` if a mandatory value is invalid.
    //= rfc9260#section-3.3.2
    pub(crate) fn of(init: &Init, source: Address, config: &Config) -> Option<Peer> {
        if init.tag == 0 || init.outbound == 0 || init.inbound == 0 {
            return None;
        }
        let mut addresses = vec![source];
        let mut cookie = None;
        for param in &init.params {
            match param {
                Param::Ipv4(ip) => add(&mut addresses, IpAddr::V4(*ip), source.udp),
                Param::Ipv6(ip) => add(&mut addresses, IpAddr::V6(*ip), source.udp),
                Param::Cookie(bytes) => cookie = Some(bytes.clone()),
                _ => {}
            }
        }
        let streams = (config.outbound_streams.min(init.inbound), config.inbound_streams.min(init.outbound));
        Some(Peer { tag: init.tag, tsn: init.tsn, buffer: init.a_rwnd, addresses, streams, cookie })
    }

    /// The addresses in the order in which the peer listed them: pairs are made by position.
    pub(crate) fn listed(init: &Init, source: Address) -> Vec<Address> {
        let mut listed = Vec::new();
        for param in &init.params {
            match param {
                Param::Ipv4(ip) => add(&mut listed, IpAddr::V4(*ip), source.udp),
                Param::Ipv6(ip) => add(&mut listed, IpAddr::V6(*ip), source.udp),
                _ => {}
            }
        }
        if !listed.contains(&source) {
            listed.insert(0, source);
        }
        listed
    }
}

fn add(addresses: &mut Vec<Address>, ip: IpAddr, udp: u16) {
    let address = Address { ip, udp };
    if addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
        addresses.push(address);
    }
}

/// An INIT, or with a cookie an INIT ACK.
pub(crate) fn init(tag: u32, tsn: Tsn, config: &Config, cookie: Option<Bytes>) -> Init {
    let mut params = Vec::new();
    if config.addresses.len() > 1 {
        params.extend(config.addresses.iter().map(|local| match local.address.ip {
            IpAddr::V4(ip) => Param::Ipv4(ip),
            IpAddr::V6(ip) => Param::Ipv6(ip),
        }));
    }
    params.extend(cookie.map(Param::Cookie));
    Init {
        tag,
        a_rwnd: config.receive_buffer,
        outbound: config.outbound_streams,
        inbound: config.inbound_streams,
        tsn,
        params,
    }
}

/// What a COOKIE ECHO means for an association that exists already (RFC 9260 §5.2.4, table 12).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Collision {
    /// A: the peer has restarted.
    Restart,
    /// B: both ends set up at the same time.
    Simultaneous,
    /// C: a cookie that came too late; it is dropped.
    Late,
    /// D: the cookie of this very association, again.
    Duplicate,
    /// None of these: it is dropped.
    Foreign,
}

/// Compares the tags of an association (ours, the peer's) with those of a cookie.
//= rfc9260#section-5.2.4
pub(crate) fn collision(local: u32, peer: u32, cookie: &Cookie) -> Collision {
    match (cookie.local_tag == local, cookie.peer_tag == peer) {
        (true, true) => Collision::Duplicate,
        (true, false) => Collision::Simultaneous,
        (false, true) if cookie.ties == (0, 0) => Collision::Late,
        (false, false) if cookie.ties == (local, peer) => Collision::Restart,
        _ => Collision::Foreign,
    }
}
