//! What one end of a captured association met, and what its user did.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_proto::wire::chunk::{Data, FragmentPosition, IData, Sack};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Duration, Time, Tsn};
use bytes::Bytes;

use super::conversation::Act;
use super::entry::{Entry, entries};
use super::messages::Sent;
use super::queue::Rate;
use crate::capture::SctpPacket;

/// Data that leaves so soon after a packet has arrived had waited for that packet, if it also leaves soon after the
/// data before it.
pub(super) const PROMPT: Duration = Duration::from_millis(1);
/// So soon an endpoint sends the next packet, if it can.
const NEXT: Duration = Duration::from_micros(300);

/// BASE_PLPMTU (RFC 8899 §5.1.2): a search for the path MTU begins here.
const SMALLEST: u32 = 1200;

/// Earlier than this no end sends a packet of the handshake again.
const TWICE: Duration = Duration::from_millis(100);

/// A place among the acts, and a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) at: Time,
}

impl Place {
    /// Before everything.
    pub(super) const BEGIN: Place = Place { index: 0, at: Time::ZERO };
}

/// An interface from which packets leave.
struct Interface {
    rate: Option<Rate>,
    last: Option<(Time, u32)>,
    /// Where the first packet was sent of those that left without a pause.
    busy: Place,
}

/// What one end met and did, in order.
pub(super) struct Met {
    first_tsn: Tsn,
    initiates: bool,
    pub(super) acts: Vec<(Time, Act)>,
    /// The last packet that arrived, as a place among the acts.
    arrived: Option<usize>,
    /// When the last packet arrived or left, and whether it left.
    last: (Time, bool),
    /// By the distance of the TSN from the first.
    pub(super) sent: BTreeMap<u32, Sent>,
    /// The chunks that the link refused: the distance of the TSN, and how often it had been sent before.
    pub(super) refused: BTreeSet<(u32, u32)>,
    interfaces: BTreeMap<IpAddr, Interface>,
    /// The first TIMESTAMP of this end.
    pub(super) stamp: Option<u32>,
    /// The last SACK that arrived.
    acknowledged: Option<Sack>,
    /// Whether a packet of the handshake was met twice.
    pub(super) doubled: bool,
    /// The time in which the end answers a packet that must be answered at once, at the soonest.
    pub(super) answers_after: Option<Duration>,
    /// When the last such packet arrived.
    asked: Option<Time>,
    /// When the end sent its last packet of the handshake, and its chunk.
    shaken: Option<(Time, u8)>,
    /// The size of the largest packet with a fragment that is not the last of its message.
    pub(super) fragment: Option<u32>,
    /// The contents of the HEARTBEATs that probe for the path MTU.
    pub(super) probes: BTreeSet<Bytes>,
    /// The size of the largest packet with new data so far. Every path carries [`SMALLEST`] bytes.
    largest: u32,
    /// If the last packet with data has new data: the bytes that it had left.
    room: Option<u32>,
    connected: bool,
    closing: bool,
}

impl Met {
    pub(super) fn new(first_tsn: Tsn, initiates: bool, rates: &BTreeMap<IpAddr, Rate>) -> Met {
        let interface = |rate: &Rate| Interface { rate: Some(*rate), last: None, busy: Place::BEGIN };
        Met {
            first_tsn,
            initiates,
            acts: Vec::new(),
            arrived: None,
            last: (Time::ZERO, false),
            sent: BTreeMap::new(),
            refused: BTreeSet::new(),
            interfaces: rates.iter().map(|(from, rate)| (*from, interface(rate))).collect(),
            stamp: None,
            acknowledged: None,
            doubled: false,
            answers_after: None,
            asked: None,
            shaken: None,
            fragment: None,
            probes: BTreeSet::new(),
            largest: SMALLEST,
            room: None,
            connected: false,
            closing: false,
        }
    }

    pub(super) fn arrived(&mut self, at: Time, packet: &SctpPacket) {
        // A timer that expired just when the packet arrived came first.
        if std::mem::replace(&mut self.last, (at, false)) == (at, true) {
            self.acts.push((at, Act::Due));
        }
        for chunk in &packet.packet.chunks {
            if matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::CookieEcho(_)) {
                self.asked = Some(at);
            }
            match chunk {
                Chunk::Shutdown(_) => self.closing = true,
                Chunk::Sack(sack) => self.acknowledged = Some(sack.clone()),
                Chunk::NrSack(sack) => self.acknowledged = Some(sack.to_sack()),
                _ => {}
            }
        }
        self.arrived = Some(self.acts.len());
        self.acts.push((at, Act::Arrives(Box::new(packet.packet.clone()))));
    }

    pub(super) fn sent(&mut self, at: Time, captured: &SctpPacket, recorded: &mut Vec<Entry>) {
        let packet = &captured.packet;
        let before = recorded.len();
        entries(at, Some(captured.number), packet, None, recorded);
        recorded[before..].iter_mut().for_each(|entry| entry.refused = captured.refused);
        let place = self.place(at);
        let answers = self.answers_data(packet);
        self.last = (at, true);
        let waiting = self.left(captured, at, place);
        let probes = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Pad(_)));
        let mut room = self.room;
        for chunk in &packet.chunks {
            self.shakes(chunk, at);
            match chunk {
                Chunk::Init(_) if self.initiates && !std::mem::replace(&mut self.connected, true) => {
                    self.acts.push((at, Act::Connect));
                }
                Chunk::Data(data) => {
                    self.data(
                        captured,
                        data.tsn,
                        Sent { room: room.take(), ..of_data(data, place, waiting) },
                    );
                }
                Chunk::IData(data) => {
                    self.data(
                        captured,
                        data.tsn,
                        Sent { room: room.take(), ..of_idata(data, place, waiting) },
                    );
                }
                Chunk::ForwardTsn(forward) => self.gave_up(forward.cumulative, at),
                Chunk::IForwardTsn(forward) => self.gave_up(forward.cumulative, at),
                Chunk::Heartbeat(heartbeat) => {
                    self.acts.push((at, Act::Heartbeat { to: packet.to, probes }));
                    self.probes.extend(probes.then(|| heartbeat.info.clone()));
                }
                Chunk::Shutdown(_) if !std::mem::replace(&mut self.closing, true) => {
                    self.shut_down(if answers { self.now(at) } else { place });
                }
                Chunk::Timestamp(stamp) => self.stamp = self.stamp.or(stamp.sent),
                Chunk::Abort(_) => self.acts.push((at, Act::Abort)),
                _ => {}
            }
        }
    }

    /// A chunk leaves that may belong to the handshake.
    fn shakes(&mut self, chunk: &Chunk, at: Time) {
        let is_first = matches!(chunk, Chunk::Init(_));
        if !is_first && !matches!(chunk, Chunk::InitAck(_) | Chunk::CookieEcho(_) | Chunk::CookieAck(_)) {
            return;
        }
        if let Some(asked) = self.asked.take().filter(|_| !is_first) {
            let after = at.since(asked);
            self.answers_after = Some(self.answers_after.map_or(after, |known| known.min(after)));
        }
        let again = self.shaken.replace((at, chunk.number()));
        self.doubled |=
            again.is_some_and(|(time, number)| number == chunk.number() && at.since(time) < TWICE);
    }

    /// Where the user did what shows at `at`: before the packet that arrived just then, if there is one.
    fn place(&self, at: Time) -> Place {
        let follows = at.since(self.last.0) <= NEXT;
        let prompt = |index: &usize| follows && at.since(self.acts[*index].0) <= PROMPT;
        let index = self.arrived.filter(prompt).unwrap_or(self.acts.len());
        Place { index, at: self.acts.get(index).map_or(at, |(time, _)| *time) }
    }

    /// Whether this packet leaves without a SACK, and the one before it arrived with data: the user has read that data, and
    /// what the packet has is its answer.
    fn answers_data(&self, packet: &Packet) -> bool {
        let is_data = |chunk: &Chunk| matches!(chunk, Chunk::Data(_) | Chunk::IData(_));
        let is_sack = |chunk: &Chunk| matches!(chunk, Chunk::Sack(_) | Chunk::NrSack(_));
        let (_, has_left) = self.last;
        let before = self.acts.last().filter(|_| !has_left);
        let brought = before.is_some_and(
            |(_, act)| matches!(act, Act::Arrives(arrived) if arrived.chunks.iter().any(is_data)),
        );
        brought && !packet.chunks.iter().any(is_sack)
    }

    /// Behind all acts.
    fn now(&self, at: Time) -> Place {
        Place { index: self.acts.len(), at }
    }

    fn shut_down(&mut self, place: Place) {
        self.acts.insert(place.index, (place.at, Act::Shutdown));
        self.moved(place.index);
    }

    /// A packet left. Returns where it was sent at the earliest, if it waited for its interface.
    fn left(&mut self, captured: &SctpPacket, at: Time, place: Place) -> Place {
        let Some(interface) = self.interfaces.get_mut(&captured.packet.from.ip) else { return place };
        if captured.refused {
            return place;
        }
        let last = interface.last.replace((at, captured.size));
        let waited = interface.rate.zip(last).is_some_and(|(rate, (time, size))| rate.waited(time, size, at));
        if !waited {
            interface.busy = place;
        }
        interface.busy
    }

    /// An act was inserted at `index`.
    fn moved(&mut self, index: usize) {
        if let Some(arrived) = self.arrived.as_mut().filter(|arrived| **arrived >= index) {
            *arrived += 1;
        }
        let busy = self.interfaces.values_mut().map(|interface| &mut interface.busy);
        let given = self.sent.values_mut().flat_map(|sent| [&mut sent.seen, &mut sent.waiting]);
        given.chain(busy).filter(|place| place.index > index).for_each(|place| place.index += 1);
    }

    fn data(&mut self, captured: &SctpPacket, tsn: Tsn, sent: Sent) {
        let distance = tsn.distance_from(self.first_tsn);
        // A capture that lacks packets has jumps; a TSN from elsewhere is none of this association's.
        if distance > 1 << 30 {
            return;
        }
        let sent = self.sent.entry(distance).or_insert(sent);
        if captured.refused {
            self.refused.insert((distance, sent.times));
        }
        sent.times += 1;
        self.room = None;
        if sent.times == 1 {
            self.largest = self.largest.max(captured.size);
            self.room = Some(self.largest - captured.size);
            self.fragment = self.fragment.max((!sent.end).then_some(captured.size));
        }
    }

    /// A FORWARD TSN skips what was not acknowledged up to this TSN.
    fn gave_up(&mut self, point: Tsn, at: Time) {
        let distance = point.distance_from(self.first_tsn);
        let known = self.acknowledged.as_ref();
        let from = known.map_or(0, |sack| sack.cumulative.next().distance_from(self.first_tsn));
        if distance > 1 << 30 || from > distance {
            return;
        }
        let arrived = |distance: u32| {
            let Some(sack) = known else { return false };
            let offset = distance - from + 1;
            sack.gaps.iter().any(|gap| (u32::from(gap.start)..=u32::from(gap.end)).contains(&offset))
        };
        for (_, sent) in self.sent.range_mut(from..=distance).filter(|(distance, _)| !arrived(**distance)) {
            sent.given_up.get_or_insert(at);
        }
    }
}

fn of_data(data: &Data, seen: Place, waiting: Place) -> Sent {
    Sent {
        seen,
        waiting,
        stream: (data.stream, data.unordered),
        mid: None,
        ppid: data.begin.then_some(data.ppid),
        end: data.end,
        immediate: data.immediate,
        length: data.payload.len(),
        room: None,
        times: 0,
        given_up: None,
    }
}

fn of_idata(data: &IData, seen: Place, waiting: Place) -> Sent {
    let first = if let FragmentPosition::First { ppid } = data.place { Some(ppid) } else { None };
    Sent {
        seen,
        waiting,
        stream: (data.stream, data.unordered),
        mid: Some(data.mid.0),
        ppid: first,
        end: data.end,
        immediate: data.immediate,
        length: data.payload.len(),
        room: None,
        times: 0,
        given_up: None,
    }
}
