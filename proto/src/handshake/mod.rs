//! Set-up: INIT, stateless INIT ACK with a cookie, COOKIE ECHO, COOKIE ACK; collisions and restarts (RFC 9260 §5.1,
//! §5.2).

pub(crate) mod cookie;

use std::net::IpAddr;

use bytes::Bytes;
use cookie::MAX_ADDRESSES;
use smallvec::{SmallVec, smallvec};

use crate::extension::{self, Offer};
use crate::wire::chunk::Init;
use crate::wire::{Address, Cause, Param};
use crate::{Config, Duration, Tsn};

/// Addresses of a peer.
pub(crate) type Addresses = SmallVec<[Address; 2]>;

/// The contents of the peer's INIT or INIT ACK.
pub(crate) struct Peer {
    pub(crate) tag: u32,
    pub(crate) tsn: Tsn,
    pub(crate) buffer: u32,
    /// Its source address, then the other addresses that it named.
    pub(crate) addresses: Addresses,
    /// The numbers of outbound and inbound streams.
    pub(crate) streams: (u16, u16),
    pub(crate) cookie: Option<Bytes>,
    /// How much longer than usual the cookie should live.
    pub(crate) preserve: Duration,
    /// Parameters that were not understood and must be reported.
    pub(crate) unrecognized: Vec<Bytes>,
    /// The extensions that the peer offers.
    pub(crate) offer: Offer,
}

impl Peer {
    /// The contents of `init` from `source`, or why it cannot be accepted.
    //= rfc9260#section-3.3.2
    pub(crate) fn of(init: &Init, source: Address, config: &Config) -> Result<Peer, Cause> {
        if init.tag == 0 || init.outbound == 0 || init.inbound == 0 || init.a_rwnd < LEAST_WINDOW {
            return Err(Cause::InvalidMandatoryParameter);
        }
        let mut peer = Peer {
            tag: init.tag,
            tsn: init.tsn,
            buffer: init.a_rwnd,
            addresses: smallvec![source],
            streams: streams(init, config),
            cookie: None,
            preserve: Duration::ZERO,
            unrecognized: Vec::new(),
            offer: Offer::default(),
        };
        for param in &init.params {
            if !peer.take(param, source, config)? {
                break;
            }
        }
        Ok(peer)
    }

    /// Reads one parameter. Returns whether the following parameters are read.
    fn take(&mut self, param: &Param, source: Address, config: &Config) -> Result<bool, Cause> {
        match param {
            Param::Ipv4(ip) => add(&mut self.addresses, IpAddr::V4(*ip), source, config),
            Param::Ipv6(ip) => add(&mut self.addresses, IpAddr::V6(*ip), source, config),
            Param::Cookie(bytes) => self.cookie = Some(bytes.clone()),
            Param::CookiePreservative(ms) => self.preserve = Duration::from_millis(u64::from(*ms)),
            Param::HostName(_) => return Err(Cause::UnresolvableAddress(encoded(param))),
            Param::Unrecognized(_) | Param::SupportedAddressTypes(_) => {}
            _ => {
                let strange = self.offer.take(param, config)?;
                return Ok(strange.is_none_or(|param| self.unknown(param)));
            }
        }
        Ok(true)
    }

    /// The two high bits of an unknown type say what to do with it.
    //= rfc9260#section-3.2.1
    fn unknown(&mut self, param: &Param) -> bool {
        let kind = param.number();
        if kind & 0x4000 != 0 && self.unrecognized.len() < MAX_UNRECOGNIZED {
            self.unrecognized.push(encoded(param));
        }
        !stops(kind)
    }

    /// The addresses in the order in which the peer listed them. Pairs are formed by position.
    pub(crate) fn listed(init: &Init, source: Address, config: &Config) -> Addresses {
        let mut listed = Addresses::new();
        for param in &init.params {
            match param {
                Param::Ipv4(ip) => add(&mut listed, IpAddr::V4(*ip), source, config),
                Param::Ipv6(ip) => add(&mut listed, IpAddr::V6(*ip), source, config),
                Param::Unknown { kind, .. } if stops(*kind) => break,
                _ => {}
            }
        }
        if !listed.contains(&source) {
            listed.insert(0, source);
        }
        listed
    }
}

/// Whether an unknown parameter of this type ends the list.
fn stops(kind: u16) -> bool {
    kind & 0x8000 == 0
}

/// The numbers of outbound and inbound streams: what one end wants and the other accepts.
//= rfc9260#section-5.1.1
pub(crate) fn streams(init: &Init, config: &Config) -> (u16, u16) {
    (config.outbound_streams.min(init.inbound), config.inbound_streams.min(init.outbound))
}

/// The smallest window that an INIT or INIT ACK may announce, in bytes.
pub(crate) const LEAST_WINDOW: u32 = 1500;

/// The largest number of unknown parameters that are reported.
const MAX_UNRECOGNIZED: usize = 16;

fn encoded(param: &Param) -> Bytes {
    Param::encode_list(std::slice::from_ref(param)).unwrap_or_default()
}

/// Parameters for these addresses.
pub(crate) fn address_list(addresses: &[Address]) -> Bytes {
    let params: Vec<Param> = addresses.iter().map(|a| Param::of_address(a.ip)).collect();
    Param::encode_list(&params).unwrap_or_default()
}

/// Adds an address named in a packet from `source`, unless it cannot be the peer's.
fn add(addresses: &mut Addresses, ip: IpAddr, source: Address, config: &Config) {
    let address = Address { ip, udp: source.udp };
    let right = address.may_be_named_by(source, &config.addresses);
    if right && addresses.len() < MAX_ADDRESSES && !addresses.contains(&address) {
        addresses.push(address);
    }
}

/// An INIT, or an INIT ACK without its cookie. `preserve` asks for a cookie that lives longer by this time; `random` is
/// our part of the keys.
pub(crate) fn init(
    tag: u32,
    tsn: Tsn,
    config: &Config,
    preserve: Option<Duration>,
    random: &[u8; 32],
) -> Init {
    let mut params = Vec::with_capacity(8);
    if config.addresses.len() > 1 {
        params.extend(config.addresses.iter().map(|local| Param::of_address(local.address.ip)));
    }
    let millis = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    params.extend(preserve.map(|time| Param::CookiePreservative(millis(time))));
    extension::offer(config, random, &mut params);
    Init {
        tag,
        a_rwnd: config.receive_buffer,
        outbound: config.outbound_streams,
        inbound: config.inbound_streams,
        tsn,
        params,
    }
}

/// The meaning of a COOKIE ECHO for an existing association (RFC 9260 §5.2.4, table 12).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Collision {
    /// A: the peer has restarted. Or B, but the association is up.
    Restart,
    /// B: both ends have begun at the same time, and we are still setting up.
    Simultaneous,
    /// D: the cookie of this association, again.
    Duplicate,
    /// C, a late cookie, or none of these cases: it is dropped.
    Foreign,
}
