//! One association of a capture, seen from the end that our endpoint plays.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_proto::wire::chunk::{FragmentPosition, Init};
use anabranch_proto::wire::{Address, Chunk, LocalAddress, Packet, Param, Ports};
use anabranch_proto::{Duration, Extensions, Message, Reliability, Time, Tsn};
use bytes::Bytes;

use super::entry::{Entry, Seen, entries};
use crate::capture::{CapturedPacket, ReadError, SctpPacket, sctp_packets};

/// So many SCTP packets of a capture are kept.
const MOST_PACKETS: usize = 1 << 20;
/// Packets later than this after the first are not compared: an idle endpoint's timers would run for ages.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);
/// A message may have so many bytes.
const MOST_MESSAGE: usize = 16 << 20;
/// User data: zeros, which take no memory.
static ZEROS: [u8; MOST_MESSAGE] = [0; MOST_MESSAGE];
/// Data that leaves so soon after a packet has arrived had waited for that packet.
const PROMPT: Duration = Duration::from_millis(1);
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
         begin the capture before the association (SCTP over UDP on another port than 9899: --udp PORT)"
    )]
    NoHandshake,
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

/// What the replay does at a time.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// A packet of the peer arrives.
    Arrives(Box<Packet>),
    /// The user begins the association.
    Connect,
    /// The user sends this message.
    Send(Message),
    /// The user asks for a HEARTBEAT to this address.
    Heartbeat(Address),
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
    pub(super) local: Vec<LocalAddress>,
    pub(super) peer: Address,
    pub(super) ports: Ports,
    /// The tag that the peer's packets have.
    pub(super) tag: u32,
    pub(super) first_tsn: Tsn,
    pub(super) a_rwnd: u32,
    pub(super) streams: (u16, u16),
    pub(super) extensions: Extensions,
    pub(super) mtu: u32,
    pub(super) acts: Vec<(Time, Act)>,
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
    /// Reads the first association of a capture that has a handshake, as its initiator met it; or as the end with the address `played`
    /// met it. SCTP is expected on IP and on the UDP ports `udp`.
    pub fn read(
        capture: impl Iterator<Item = Result<CapturedPacket, ReadError>>,
        udp: &[u16],
        played: Option<IpAddr>,
    ) -> Result<Conversation, NotReplayed> {
        let mut packets = Vec::new();
        for captured in capture {
            packets.extend(sctp_packets(&captured?, udp));
            if packets.len() > MOST_PACKETS {
                break;
            }
        }
        let cut = packets.len() > MOST_PACKETS;
        packets.truncate(MOST_PACKETS);
        let (first, second) = handshake(&packets, played)?;
        let initiates = played.is_none_or(|ip| first.has(ip));
        let (own, other) = if initiates { (&first, &second) } else { (&second, &first) };
        let mut conversation = Conversation::of(own, other, initiates);
        conversation.cut = cut;
        conversation.fill(&packets, own.init.tag, other.init.tag)?;
        Ok(conversation)
    }

    fn of(own: &Offer<'_>, other: &Offer<'_>, initiates: bool) -> Conversation {
        let addresses = own.addresses();
        let prefix = |address: &Address| if address.ip.is_ipv4() { 24 } else { 64 };
        Conversation {
            own: addresses.iter().map(|address| address.ip).collect(),
            initiates,
            packets: 0,
            cut: false,
            local: addresses
                .iter()
                .map(|address| LocalAddress { address: *address, prefix: prefix(address) })
                .collect(),
            peer: if initiates { own.packet.to } else { other.packet.from },
            ports: own.packet.ports,
            tag: own.init.tag,
            first_tsn: own.init.tsn,
            a_rwnd: own.init.a_rwnd,
            streams: (own.init.outbound, own.init.inbound),
            extensions: extensions(own.init),
            mtu: USUAL_MTU,
            acts: Vec::new(),
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
        let ours = |packet: &Packet| {
            packet.ports == self.ports && (packet.tag == peer_tag || begins(packet, own_tag))
        };
        let theirs = |packet: &Packet| {
            packet.ports == self.ports.reversed() && (packet.tag == own_tag || begins(packet, peer_tag))
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
        let mut met = Met::new(self.first_tsn, self.initiates);
        let Some(begun) = packets.iter().find(taken).map(|packet| packet.time) else {
            return Err(NotReplayed::NoHandshake);
        };
        for packet in packets.iter().filter(taken) {
            let nanos = u64::try_from(packet.time.saturating_sub(begun).max(0)).unwrap_or(u64::MAX);
            if u128::from(nanos) > LONGEST.as_nanos() {
                self.cut = true;
                break;
            }
            // A capture's times can go back by a little; the replay's do not.
            self.end = self.end.max(Time::from_nanos(nanos));
            self.packets += 1;
            if ours(&packet.packet) {
                met.sent(self.end, packet, &mut self.recorded);
                self.mtu = self.mtu.max(packet.size);
            } else {
                met.arrived(self.end, &packet.packet);
            }
        }
        if self.recorded.is_empty() {
            return Err(NotReplayed::OneSided(self.own[0]));
        }
        self.mtu = met.fragment.filter(|size| size.next_multiple_of(4) < self.mtu).unwrap_or(self.mtu);
        self.acts = met.acts()?;
        Ok(())
    }
}

/// The first handshake, of the end with the address `played` if there is one: the INIT and the INIT ACK whose cookie was
/// echoed.
fn handshake(packets: &[SctpPacket], played: Option<IpAddr>) -> Result<(Offer<'_>, Offer<'_>), NotReplayed> {
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
        _ => NotReplayed::NoHandshake,
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

/// The interfaces of the end whose packets are `ours`, if the capture says where packets go out. A capture of a simulation has
/// many interfaces; on those of the sender, a packet has passed no router yet.
fn interfaces(packets: &[SctpPacket], ours: impl Fn(&Packet) -> bool) -> BTreeSet<String> {
    let leaving = || packets.iter().filter(|one| one.inbound == Some(false) && ours(&one.packet));
    let most = leaving().map(|one| one.hops_left).max();
    leaving().filter(|one| Some(one.hops_left) == most).filter_map(|one| one.interface.clone()).collect()
}

/// A chunk of user data that was sent for the first time.
struct Sent {
    /// The place among the acts at which its message must be given at the latest.
    place: usize,
    at: Time,
    /// The stream, and whether it is unordered.
    stream: (u16, bool),
    /// I-DATA: the message identifier.
    mid: Option<u32>,
    ppid: Option<u32>,
    end: bool,
    immediate: bool,
    length: usize,
}

/// What one end met and did, in order.
struct Met {
    first_tsn: Tsn,
    initiates: bool,
    seen: Seen,
    acts: Vec<(Time, Act)>,
    /// The last packet that arrived, as a place among the acts.
    arrived: Option<usize>,
    /// By the distance of the TSN from the first.
    sent: BTreeMap<u32, Sent>,
    /// The size of the largest packet with a fragment that is not the last of its message.
    fragment: Option<u32>,
    connected: bool,
    closing: bool,
}

impl Met {
    fn new(first_tsn: Tsn, initiates: bool) -> Met {
        Met {
            first_tsn,
            initiates,
            seen: Seen::default(),
            acts: Vec::new(),
            arrived: None,
            sent: BTreeMap::new(),
            fragment: None,
            connected: false,
            closing: false,
        }
    }

    fn arrived(&mut self, at: Time, packet: &Packet) {
        self.closing |= packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Shutdown(_)));
        self.arrived = Some(self.acts.len());
        self.acts.push((at, Act::Arrives(Box::new(packet.clone()))));
    }

    fn sent(&mut self, at: Time, captured: &SctpPacket, recorded: &mut Vec<Entry>) {
        let packet = &captured.packet;
        let before = recorded.len();
        entries(at, Some(captured.number), packet, None, &mut self.seen, recorded);
        recorded[before..].iter_mut().for_each(|entry| entry.refused = captured.refused);
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Init(_) if self.initiates && !std::mem::replace(&mut self.connected, true) => {
                    self.acts.push((at, Act::Connect));
                }
                Chunk::Data(data) => self.data(
                    at,
                    data.tsn,
                    captured.size,
                    Sent {
                        place: 0,
                        at,
                        stream: (data.stream, data.unordered),
                        mid: None,
                        ppid: data.begin.then_some(data.ppid),
                        end: data.end,
                        immediate: data.immediate,
                        length: data.payload.len(),
                    },
                ),
                Chunk::IData(data) => self.data(
                    at,
                    data.tsn,
                    captured.size,
                    Sent {
                        place: 0,
                        at,
                        stream: (data.stream, data.unordered),
                        mid: Some(data.mid.0),
                        ppid: match data.place {
                            FragmentPosition::First { ppid } => Some(ppid),
                            FragmentPosition::Later { .. } => None,
                        },
                        end: data.end,
                        immediate: data.immediate,
                        length: data.payload.len(),
                    },
                ),
                Chunk::Heartbeat(_) => self.acts.push((at, Act::Heartbeat(packet.to))),
                Chunk::Shutdown(_) if !std::mem::replace(&mut self.closing, true) => {
                    let place = self.place(at);
                    self.acts.insert(place, (self.time(place, at), Act::Shutdown));
                    self.moved(place);
                }
                Chunk::Abort(_) => self.acts.push((at, Act::Abort)),
                _ => {}
            }
        }
    }

    /// Where the user did what shows at `at`: before the packet that arrived just then, if there is one.
    fn place(&self, at: Time) -> usize {
        let prompt = |place: &usize| at.since(self.acts[*place].0) <= PROMPT;
        self.arrived.filter(prompt).unwrap_or(self.acts.len())
    }

    fn time(&self, place: usize, at: Time) -> Time {
        self.acts.get(place).map_or(at, |(time, _)| *time)
    }

    /// An act was inserted at `place`.
    fn moved(&mut self, place: usize) {
        if let Some(arrived) = self.arrived.as_mut().filter(|arrived| **arrived >= place) {
            *arrived += 1;
        }
        self.sent.values_mut().filter(|sent| sent.place > place).for_each(|sent| sent.place += 1);
    }

    fn data(&mut self, at: Time, tsn: Tsn, size: u32, sent: Sent) {
        let distance = tsn.distance_from(self.first_tsn);
        // A capture that lacks packets has jumps; a TSN from elsewhere is none of this association's.
        if distance > 1 << 30 || self.sent.contains_key(&distance) {
            return;
        }
        if !sent.end {
            self.fragment = self.fragment.max(Some(size));
        }
        let place = self.place(at);
        self.sent.insert(distance, Sent { place, at: self.time(place, at), ..sent });
    }

    /// The acts, and among them the messages in the order of their TSNs, each given when its first chunk was sent.
    fn acts(self) -> Result<Vec<(Time, Act)>, NotReplayed> {
        let mut given: BTreeMap<usize, Vec<(Time, Message)>> = BTreeMap::new();
        let mut latest = (usize::MAX, None::<Time>);
        for (place, at, message) in messages(&self.sent)?.into_iter().rev() {
            // A message that is given later cannot be sent before.
            if place <= latest.0 {
                latest = (place, Some(latest.1.map_or(at, |time| time.min(at))));
            }
            given.entry(latest.0).or_default().push((latest.1.unwrap_or(at), message));
        }
        let mut acts = Vec::with_capacity(self.acts.len() + self.sent.len());
        let take = |given: &mut BTreeMap<usize, Vec<(Time, Message)>>, place| {
            let messages = given.remove(&place).unwrap_or_default();
            messages.into_iter().rev().map(|(at, message)| (at, Act::Send(message)))
        };
        let end = self.acts.len();
        for (place, act) in self.acts.into_iter().enumerate() {
            acts.extend(take(&mut given, place));
            acts.push(act);
        }
        acts.extend(take(&mut given, end));
        Ok(acts)
    }
}

/// The messages whose chunks were sent, in the order of their first TSNs: place, time, message.
fn messages(sent: &BTreeMap<u32, Sent>) -> Result<Vec<(usize, Time, Message)>, NotReplayed> {
    let mut messages: Vec<(usize, Time, Message)> = Vec::new();
    let mut lengths: Vec<usize> = Vec::new();
    // Unfinished messages. Fragments of DATA follow each other; those of I-DATA have a message identifier.
    let mut open = BTreeMap::new();
    for chunk in sent.values() {
        let key = chunk.mid.map(|mid| (chunk.stream, mid));
        let index = match (chunk.ppid, open.get(&key)) {
            (None, Some(index)) => *index,
            // Without its first fragment, a message begins with the first one that was captured.
            (ppid, _) => {
                let message = Message {
                    stream: chunk.stream.0,
                    ppid: ppid.unwrap_or(0),
                    unordered: chunk.stream.1,
                    immediate: false,
                    payload: Bytes::new(),
                    reliability: Reliability::Full,
                };
                messages.push((chunk.place, chunk.at, message));
                lengths.push(0);
                messages.len() - 1
            }
        };
        let (place, at, message) = &mut messages[index];
        (*place, *at) = (chunk.place.min(*place), chunk.at.min(*at));
        lengths[index] += chunk.length;
        if lengths[index] > MOST_MESSAGE {
            return Err(NotReplayed::LongMessage);
        }
        message.immediate |= chunk.immediate && chunk.end;
        message.payload = Bytes::from_static(&ZEROS[..lengths[index]]);
        if chunk.end {
            open.remove(&key);
        } else {
            open.insert(key, index);
        }
    }
    messages.retain(|(_, _, message)| !message.payload.is_empty());
    Ok(messages)
}
