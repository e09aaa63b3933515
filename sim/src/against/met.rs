//! What one end of a captured association met, and what its user did.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::{Data, FragmentPosition, IData, Sack};
use anabranch_proto::{Duration, Time, Tsn};

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

/// Earlier than this no end sends a packet of the handshake again.
const TWICE: Duration = Duration::from_millis(100);

/// A place among the acts, and a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) index: usize,
    pub(super) at: Time,
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
    connected: bool,
    closing: bool,
}

impl Met {
    pub(super) fn new(first_tsn: Tsn, initiates: bool, rates: &BTreeMap<IpAddr, Rate>) -> Met {
        let busy = Place { index: 0, at: Time::ZERO };
        let interface = |rate: &Rate| Interface { rate: Some(*rate), last: None, busy };
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
        self.last = (at, true);
        let waiting = self.left(captured, at, place);
        for chunk in &packet.chunks {
            self.shakes(chunk, at);
            match chunk {
                Chunk::Init(_) if self.initiates && !std::mem::replace(&mut self.connected, true) => {
                    self.acts.push((at, Act::Connect));
                }
                Chunk::Data(data) => self.data(captured, data.tsn, || of_data(data, place, waiting)),
                Chunk::IData(data) => self.data(captured, data.tsn, || of_idata(data, place, waiting)),
                Chunk::ForwardTsn(forward) => self.gave_up(forward.cumulative, at),
                Chunk::IForwardTsn(forward) => self.gave_up(forward.cumulative, at),
                Chunk::Heartbeat(_) => self.acts.push((at, Act::Heartbeat(packet.to))),
                Chunk::Shutdown(_) if !std::mem::replace(&mut self.closing, true) => {
                    self.acts.insert(place.index, (place.at, Act::Shutdown));
                    self.moved(place.index);
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

    fn data(&mut self, captured: &SctpPacket, tsn: Tsn, sent: impl FnOnce() -> Sent) {
        let distance = tsn.distance_from(self.first_tsn);
        // A capture that lacks packets has jumps; a TSN from elsewhere is none of this association's.
        if distance > 1 << 30 {
            return;
        }
        let sent = self.sent.entry(distance).or_insert_with(sent);
        if captured.refused {
            self.refused.insert((distance, sent.times));
        }
        sent.times += 1;
        if sent.times == 1 && !sent.end {
            self.fragment = self.fragment.max(Some(captured.size));
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
        times: 0,
        given_up: None,
    }
}
