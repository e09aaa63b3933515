//! One association of a capture, seen from the end that our endpoint plays.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_proto::wire::chunk::Init;
use anabranch_proto::wire::{Address, Chunk, LocalAddress, Packet, Param, Ports};
use anabranch_proto::{Duration, Extensions, Time, Tsn};
use bytes::Bytes;

use super::entry::{Entry, mark_repeated};
use super::messages::{Given, MOST_MESSAGE, messages};
use super::met::Met;
use super::queue::{Departures, Rate};
use crate::capture::{CapturedPacket, ReadError, SctpPacket, sctp_packets};

/// So many SCTP packets of a capture are kept.
const MOST_PACKETS: usize = 1 << 20;
/// Packets later than this after the first are not compared: an idle endpoint's timers would run for ages.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// The MTU, unless larger packets or fragments show another.
const USUAL_MTU: u32 = 1500;

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum NotReplayed {
    /// The capture cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no handshake.
    #[error(
        "no handshake of SCTP in the capture: the replay needs an INIT and its INIT ACK, which tell tags, TSNs and addresses; \
         begin the capture before the association (SCTP over UDP on another port than 9899: --udp PORT){}",
        unread_packets(*.unread)
    )]
    NoHandshake {
        /// The number of packets that cannot be read, as [`Conversation::unread`].
        unread: usize,
    },
    /// No association has this address.
    #[error("no handshake in the capture has the address {0}; the first one is between {1} and {2}")]
    NoAddress(IpAddr, IpAddr, IpAddr),
    /// One end has sent nothing.
    #[error("the capture has no packet that {0} sent after the handshake")]
    OneSided(IpAddr),
    /// A message is too long.
    #[error("a message has more than {MOST_MESSAGE} bytes, which a replay does not hold")]
    LongMessage,
}

fn unread_packets(unread: usize) -> String {
    match unread {
        0 => String::new(),
        1 => "; 1 packet cannot be read".to_owned(),
        _ => format!("; {unread} packets cannot be read"),
    }
}

/// What the replay does at a time.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// A packet of the peer arrives.
    Arrives(Box<Packet>),
    /// Timers that expire now come before what follows.
    Due,
    /// The user begins the association.
    Connect,
    /// The user asks for a HEARTBEAT to an address; or one left there that probes for the path MTU.
    Heartbeat { to: Address, probes: bool },
    /// The user ends the association.
    Shutdown,
    /// The user aborts the association.
    Abort,
}

/// An association of a capture: what one end met, what its user did, and what it sent.
#[derive(Clone, Debug)]
pub struct Conversation {
    /// The addresses of the end that our endpoint plays.
    pub own: Vec<IpAddr>,
    /// Whether that end sent the INIT.
    pub initiates: bool,
    /// The number of packets of both ends.
    pub packets: usize,
    /// Whether the capture has more packets than are compared.
    pub cut: bool,
    /// The number of packets of the capture that may belong to an association of SCTP and cannot be read: malformed
    /// ones, fragments of IP, and those of which the capture lacks too much.
    pub unread: usize,
    /// Whether the capture shows packets of the handshake twice: it was made at several places, or on several
    /// interfaces.
    pub doubled: bool,
    /// How soon the end that is played answers at the soonest: if not at once, the capture was made elsewhere.
    pub answers_after: Option<Duration>,
    pub(super) local: Vec<LocalAddress>,
    /// The addresses of the peer. The first one is that to which the INIT went, or from which the INIT ACK came.
    pub(super) peer: Vec<Address>,
    pub(super) ports: Ports,
    /// The tag that the peer's packets have.
    pub(super) tag: u32,
    pub(super) first_tsn: Tsn,
    pub(super) a_rwnd: u32,
    pub(super) streams: (u16, u16),
    pub(super) extensions: Extensions,
    pub(super) mtu: u32,
    /// The size of the largest packet, with probes for the path MTU.
    pub(super) largest: u32,
    /// The contents of the HEARTBEATs that probe for the path MTU.
    pub(super) probes: BTreeSet<Bytes>,
    pub(super) acts: Vec<(Time, Act)>,
    pub(super) messages: Vec<Given>,
    /// By source address: the rate of an interface that is slow.
    pub(super) rates: BTreeMap<IpAddr, Rate>,
    /// The chunks that the link refused: the distance of the TSN from the first, and how often it had been sent before.
    pub(super) refused: BTreeSet<(u32, u32)>,
    /// The first TIMESTAMP of the end that is played.
    pub(super) stamp: Option<u32>,
    pub(super) recorded: Vec<Entry>,
    pub(super) end: Time,
}

/// An INIT or INIT ACK, and the packet that carried it.
struct Offer<'a> {
    packet: &'a Packet,
    init: &'a Init,
}

impl Offer<'_> {
    /// The addresses of its sender: the source, then those in the parameters.
    fn addresses(&self) -> Vec<Address> {
        let udp = self.packet.from.udp;
        let mut found = vec![self.packet.from];
        let listed = self.init.params.iter().filter_map(|param| match param {
            Param::Ipv4(ip) => Some(IpAddr::V4(*ip)),
            Param::Ipv6(ip) => Some(IpAddr::V6(*ip)),
            _ => None,
        });
        for ip in listed.filter(|ip| !ip.is_unspecified() && !ip.is_multicast()) {
            let address = Address { ip, udp };
            if !found.contains(&address) {
                found.push(address);
            }
        }
        found
    }

    fn has(&self, ip: IpAddr) -> bool {
        self.addresses().iter().any(|address| address.ip == ip)
    }
}

impl Conversation {
    /// Reads the first association of a capture that has a handshake, as its initiator met it; or as the end with the
    /// address `played` met it. SCTP is expected on IP and on the UDP ports `udp`.
    pub fn read(
        capture: impl Iterator<Item = Result<CapturedPacket, ReadError>>,
        udp: &[u16],
        played: Option<IpAddr>,
    ) -> Result<Conversation, NotReplayed> {
        let mut packets = Vec::new();
        let mut unread = 0;
        for captured in capture {
            match sctp_packets(&captured?, udp) {
                Some(found) => packets.extend(found),
                None => unread += 1,
            }
            if packets.len() > MOST_PACKETS {
                break;
            }
        }
        let cut = packets.len() > MOST_PACKETS;
        packets.truncate(MOST_PACKETS);
        let (first, second) = handshake(&packets, played, unread)?;
        let initiates = played.is_none_or(|ip| first.has(ip));
        let (own, other) = if initiates { (&first, &second) } else { (&second, &first) };
        let mut conversation = Conversation::of(own, other, initiates);
        (conversation.cut, conversation.unread) = (cut, unread);
        conversation.fill(&packets, own.init.tag, other.init.tag)?;
        Ok(conversation)
    }

    fn of(own: &Offer<'_>, other: &Offer<'_>, initiates: bool) -> Conversation {
        let addresses = own.addresses();
        let mut peer = vec![if initiates { own.packet.to } else { other.packet.from }];
        let further = other.addresses().into_iter().filter(|address| *address != peer[0]).collect::<Vec<_>>();
        peer.extend(further);
        Conversation {
            own: addresses.iter().map(|address| address.ip).collect(),
            initiates,
            packets: 0,
            cut: false,
            unread: 0,
            doubled: false,
            answers_after: None,
            local: local(&addresses),
            peer,
            ports: own.packet.ports,
            tag: own.init.tag,
            first_tsn: own.init.tsn,
            a_rwnd: own.init.a_rwnd,
            streams: (own.init.outbound, own.init.inbound),
            extensions: extensions(own.init),
            mtu: USUAL_MTU,
            largest: USUAL_MTU,
            probes: BTreeSet::new(),
            acts: Vec::new(),
            messages: Vec::new(),
            rates: BTreeMap::new(),
            refused: BTreeSet::new(),
            stamp: None,
            recorded: Vec::new(),
            end: Time::ZERO,
        }
    }

    /// Takes the association's packets out of those of the capture.
    fn fill(&mut self, packets: &[SctpPacket], own_tag: u32, peer_tag: u32) -> Result<(), NotReplayed> {
        let begins = |packet: &Packet, tag: u32| {
            packet.tag == 0
                && packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Init(init) if init.tag == tag))
        };
        let ports = self.ports;
        // If it is reflected, the tag is that of the packets which its sender received.
        let has = |packet: &Packet, tag: u32, reflected: u32| {
            packet.tag == if is_reflected(packet) { reflected } else { tag }
        };
        let ours = |packet: &Packet| {
            packet.ports == ports && (has(packet, peer_tag, own_tag) || begins(packet, own_tag))
        };
        let theirs = |packet: &Packet| {
            packet.ports == ports.reversed() && (has(packet, own_tag, peer_tag) || begins(packet, peer_tag))
        };
        let interfaces = interfaces(packets, ours);
        let here = |packet: &SctpPacket, inbound| match (packet.inbound, &packet.interface) {
            (Some(way), Some(interface)) if !interfaces.is_empty() => {
                way == inbound && interfaces.contains(interface)
            }
            _ => true,
        };
        let taken = |packet: &&SctpPacket| {
            ours(&packet.packet) && here(packet, false) || theirs(&packet.packet) && here(packet, true)
        };
        let Some(begun) = packets.iter().find(taken).map(|packet| packet.time) else {
            return Err(NotReplayed::NoHandshake { unread: self.unread });
        };
        let since = |packet: &SctpPacket| {
            let nanos = u64::try_from(packet.time.saturating_sub(begun).max(0)).unwrap_or(u64::MAX);
            (u128::from(nanos) <= LONGEST.as_nanos()).then(|| Time::from_nanos(nanos))
        };
        let left = packets.iter().filter(|packet| taken(packet) && ours(&packet.packet) && !packet.refused);
        self.rates = rates(left.filter_map(|packet| Some((since(packet)?, packet))));
        let mut met = Met::new(self.first_tsn, self.initiates, &self.rates);
        for packet in packets.iter().filter(taken) {
            let Some(at) = since(packet) else {
                self.cut = true;
                break;
            };
            // A capture's times can go back by a little; the replay's do not.
            self.end = self.end.max(at);
            self.packets += 1;
            if ours(&packet.packet) {
                met.sent(self.end, packet, &mut self.recorded);
                self.largest = self.largest.max(packet.size);
            } else {
                met.arrived(self.end, packet);
            }
        }
        if self.recorded.is_empty() {
            return Err(NotReplayed::OneSided(self.own[0]));
        }
        mark_repeated(&mut self.recorded);
        self.mtu =
            met.fragment.filter(|size| size.next_multiple_of(4) < self.largest).unwrap_or(self.largest);
        self.messages = messages(&met.sent)?;
        (self.doubled, self.answers_after) = (met.doubled, met.answers_after);
        (self.acts, self.refused, self.stamp) = (met.acts, met.refused, met.stamp);
        self.probes = met.probes;
        Ok(())
    }
}

/// The first handshake, of the end with the address `played` if there is one: the INIT and the INIT ACK whose cookie
/// was echoed.
fn handshake(
    packets: &[SctpPacket],
    played: Option<IpAddr>,
    unread: usize,
) -> Result<(Offer<'_>, Offer<'_>), NotReplayed> {
    let cookies: BTreeSet<&Bytes> = chunks(packets).filter_map(|(_, chunk)| cookie_echo(chunk)).collect();
    // By ports and tag of the INIT: a capture can have many.
    let mut begun = BTreeMap::new();
    let mut first = None;
    for (packet, chunk) in chunks(packets) {
        let ports = packet.ports;
        match chunk {
            Chunk::Init(init) => {
                let offer = begun.entry((ports.source, ports.destination, init.tag));
                offer.or_insert((packet, init));
            }
            Chunk::InitAck(init) => {
                let Some((asked, first_init)) = begun.get(&(ports.destination, ports.source, packet.tag))
                else {
                    continue;
                };
                let echoed = cookie(init).is_some_and(|cookie| cookies.contains(cookie));
                let (offer, answer) = (Offer { packet: asked, init: first_init }, Offer { packet, init });
                if !echoed && !cookies.is_empty() {
                    continue;
                }
                if played.is_none_or(|ip| offer.has(ip) || answer.has(ip)) {
                    return Ok((offer, answer));
                }
                first.get_or_insert((packet.to.ip, packet.from.ip));
            }
            _ => {}
        }
    }
    Err(match (played, first) {
        (Some(ip), Some((from, to))) => NotReplayed::NoAddress(ip, from, to),
        _ => NotReplayed::NoHandshake { unread },
    })
}

fn chunks(packets: &[SctpPacket]) -> impl Iterator<Item = (&Packet, &Chunk)> {
    packets.iter().flat_map(|packet| packet.packet.chunks.iter().map(|chunk| (&packet.packet, chunk)))
}

fn cookie_echo(chunk: &Chunk) -> Option<&Bytes> {
    if let Chunk::CookieEcho(echo) = chunk { Some(&echo.cookie) } else { None }
}

pub(super) fn cookie(init: &Init) -> Option<&Bytes> {
    init.params.iter().find_map(|param| if let Param::Cookie(cookie) = param { Some(cookie) } else { None })
}

/// The extensions that the replay can use among those that an INIT offers.
fn extensions(init: &Init) -> Extensions {
    let listed = |number: u8| {
        let has = |param: &Param| matches!(param, Param::SupportedExtensions(list) if list.contains(&number));
        init.params.iter().any(has)
    };
    Extensions {
        partial_reliability: init.params.contains(&Param::ForwardTsnSupported) || listed(192),
        reconfiguration: listed(130),
        interleaving: listed(64),
        ecn: init.params.contains(&Param::EcnCapable),
        nr_sack: listed(16),
        timestamps: listed(144),
        ..Extensions::default()
    }
}

/// The interfaces of the end whose packets are `ours`, if the capture says where packets go out. A capture of a
/// simulation has many interfaces; on those of the sender, a packet has passed no router yet.
fn interfaces(packets: &[SctpPacket], ours: impl Fn(&Packet) -> bool) -> BTreeSet<String> {
    let leaving = || packets.iter().filter(|one| one.inbound == Some(false) && ours(&one.packet));
    let most = leaving().map(|one| one.hops_left).max();
    leaving().filter(|one| Some(one.hops_left) == most).filter_map(|one| one.interface.clone()).collect()
}

/// The addresses with the usual lengths of their networks. If several are in one network, only the routes of the
/// captured host tell from which one it sends; then the position of an address says to which one of the peer's it
/// belongs.
fn local(addresses: &[Address]) -> Vec<LocalAddress> {
    let network = |address: &Address| match address.ip {
        IpAddr::V4(ip) => (true, u64::from(ip.to_bits() >> 8)),
        IpAddr::V6(ip) => (false, (ip.to_bits() >> 64) as u64),
    };
    let known = |address: &Address| {
        let (usual, whole) = if address.ip.is_ipv4() { (24, 32) } else { (64, 128) };
        let shared = addresses.iter().filter(|other| network(other) == network(address)).count() > 1;
        LocalAddress { address: *address, prefix: if shared { whole } else { usual } }
    };
    addresses.iter().map(known).collect()
}

/// Whether a packet has the tag of its sender: ABORT and SHUTDOWN COMPLETE can have it (RFC 9260 §8.4).
fn is_reflected(packet: &Packet) -> bool {
    packet.chunks.iter().any(|chunk| match chunk {
        Chunk::Abort(abort) => abort.reflected,
        Chunk::ShutdownComplete(complete) => complete.reflected,
        _ => false,
    })
}

/// By source address: the rates at which these packets left.
fn rates<'a>(left: impl Iterator<Item = (Time, &'a SctpPacket)>) -> BTreeMap<IpAddr, Rate> {
    let mut departures: BTreeMap<IpAddr, Departures> = BTreeMap::new();
    let mut latest = Time::ZERO;
    for (at, packet) in left {
        latest = latest.max(at);
        departures.entry(packet.packet.from.ip).or_default().push(latest, packet.size);
    }
    let known = departures.into_iter().filter_map(|(from, departures)| Some((from, departures.rate()?)));
    known.collect()
}
