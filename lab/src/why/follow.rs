//! Follows the state of every sender by its notes and packets.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_proto::policy::Why;
use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Sack;
use anabranch_proto::{Blocked, Duration, PathState, Purpose, Time, Tsn};
use anabranch_sim::Protocol;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::trace::{Detail, DropCause, Names, PacketView, Record, Side};
use smallvec::SmallVec;

use super::packet::Window;
use super::sacks::Unheard;

/// The number of transmissions of a chunk that are remembered: the first and the latest ones.
pub(super) const COPIES: usize = 16;

/// All senders of a run.
#[derive(Default, Debug)]
pub(super) struct Follower {
    flows: Vec<Senders>,
    links: Vec<Line>,
}

/// The senders of a flow: one association, or with `stripe` one per path.
#[derive(Debug)]
struct Senders {
    /// If there are several, the first is a placeholder for associations that have not begun.
    all: Vec<Followed>,
    striped: bool,
}

/// A link direction, or a hop between radios.
#[derive(Debug)]
struct Line {
    name: Arc<str>,
    /// The node at its end.
    end: Arc<str>,
}

/// One sender.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) name: String,
    /// With `stripe`: the only path of this association.
    pub(super) association: Option<String>,
    pub(super) protocol: Protocol,
    /// The nodes of its sender and its receiver.
    ends: [String; 2],
    /// The number of the first piece of data.
    first: Option<u64>,
    /// Sorted by name.
    pub(super) paths: Vec<(Arc<str>, Facts)>,
    /// The place in `paths` of the latest record: most concern the same path as the one before.
    latest: usize,
    /// The peer's window, as the sender sees it: bytes.
    pub(super) peer_window: Option<u64>,
    /// Why data waits, and since when.
    pub(super) blocked: (Option<Blocked>, Time),
    /// The data that is not cumulatively acknowledged, by its distance from the first piece.
    pub(super) pieces: BTreeMap<u64, Piece>,
    /// The last SACK that the receiver sent.
    pub(super) receiver: Option<Held>,
    /// The last SACK that arrived.
    pub(super) heard: Option<Held>,
    /// The SACKs sent since then.
    pub(super) unheard: Unheard,
    /// When the peer last reported congestion (ECN).
    warned: Option<Time>,
}

/// The contents of the receive buffer, as reported by the receiver.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) at: Time,
    pub(super) sack: Sack,
}

impl Held {
    /// TSNs beyond the cumulative point.
    pub(super) fn beyond(&self) -> u64 {
        self.sack.gaps.iter().map(|gap| u64::from(gap.end.saturating_sub(gap.start)) + 1).sum()
    }

    /// The lowest TSN that is missing.
    pub(super) fn missing(&self) -> u64 {
        u64::from(self.sack.cumulative.0.wrapping_add(1))
    }

    /// Whether it reports the arrival of this TSN.
    pub(super) fn covers(&self, number: u64) -> bool {
        !Tsn(number as u32).after(self.sack.cumulative) || self.has(number)
    }

    /// Whether this TSN is in a gap block.
    fn has(&self, number: u64) -> bool {
        let offset = (number as u32).wrapping_sub(self.sack.cumulative.0);
        self.sack.gaps.iter().any(|gap| (u32::from(gap.start)..=u32::from(gap.end)).contains(&offset))
    }
}

/// One path of a sender.
#[derive(Default, Debug)]
pub(super) struct Facts {
    pub(super) window: Option<Window>,
    /// Since when the bytes in flight fill the window.
    pub(super) full: Option<Time>,
    pub(super) rto: Option<Duration>,
    /// When T3-rtx expires, if it runs.
    pub(super) expires: Option<Time>,
    /// When T3-rtx last expired, and the RTO that had run.
    pub(super) expired: Option<(Time, Option<Duration>)>,
    /// When a chunk was last found missing.
    pub(super) missed: Option<Time>,
    /// The last cut of the window: from which size to which.
    pub(super) cut: Option<Cut>,
    pub(super) state: Option<(PathState, Time)>,
}

/// A reduction of a window.
#[derive(Copy, Clone, Debug)]
pub(super) struct Cut {
    pub(super) at: Time,
    pub(super) from: u64,
    pub(super) to: u64,
    /// The reason, if it was a loss.
    pub(super) why: Option<Why>,
    /// Nothing was in flight: the path was idle.
    pub(super) idle: bool,
    /// The peer has reported congestion (ECN) at this time.
    pub(super) ecn: bool,
}

/// A piece of data: a DATA chunk of SCTP, a segment of TCP.
#[derive(Debug)]
pub(super) struct Piece {
    /// Its number in the protocol.
    pub(super) number: u64,
    pub(super) copies: SmallVec<[Copied; 1]>,
    /// When it was last marked for retransmission, and why.
    pub(super) marked: Option<(Time, Why)>,
    /// The reason that its route gave for the last retransmission, and when.
    pub(super) route: Option<(Time, &'static str)>,
}

/// One transmission of a piece.
#[derive(Debug)]
pub(super) struct Copied {
    pub(super) at: Time,
    pub(super) path: Arc<str>,
    pub(super) why: Why,
    pub(super) place: Place,
}

/// The place of a transmission: where it is, or was last seen.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Sender,
    Queued { on: Arc<str>, since: Time, ahead: u32 },
    Sending { on: Arc<str>, since: Time },
    Passed { by: Arc<str>, at: Time },
    Dropped { by: Arc<str>, at: Time, cause: DropCause, left: bool },
    Arrived { at: Time },
}

impl Follower {
    pub(super) fn begin(&mut self, names: &Names, scenario: &Scenario) {
        let line = |(name, direction): &(String, String)| Line {
            name: format!("{name} {direction}").into(),
            end: direction.rsplit('>').next().unwrap_or_default().into(),
        };
        self.links = names.links.iter().chain(&names.hops).map(line).collect();
        let flow = |(i, name): (usize, &String)| {
            let known = scenario.flows.iter().find(|flow| flow.name == *name);
            let ends = known.map_or_else(Default::default, |flow| [flow.from.clone(), flow.to.clone()]);
            let protocol = names.protocols.get(i).copied().unwrap_or_default();
            Senders {
                all: vec![Followed::new(name.clone(), None, protocol, ends)],
                striped: known.and_then(|flow| flow.sctp()).is_some_and(|sctp| sctp.stripe),
            }
        };
        self.flows = names.flows.iter().enumerate().map(flow).collect();
    }

    /// The associations of a flow.
    pub(super) fn associations(&self, flow: usize) -> &[Followed] {
        let senders = &self.flows[flow];
        if senders.striped && senders.all.len() > 1 { &senders.all[1..] } else { &senders.all }
    }

    /// The association of this name.
    pub(super) fn named(&self, flow: &str, association: Option<&str>) -> Option<&Followed> {
        let mut all = self.flows.iter().flat_map(|senders| &senders.all);
        all.find(|followed| followed.name == flow && followed.association.as_deref() == association)
    }

    /// The association of a flow that uses this path.
    pub(super) fn association(&self, flow: usize, path: Option<&str>) -> &Followed {
        let all = &self.flows[flow].all;
        let has_it = |followed: &&Followed| followed.association.as_deref() == path;
        all.iter().skip(1).find(has_it).unwrap_or(&all[0])
    }

    fn association_mut(&mut self, flow: usize, path: Option<&str>) -> &mut Followed {
        let Senders { all, striped } = &mut self.flows[flow];
        let path = path.filter(|path| *striped && !path.is_empty());
        let Some(path) = path else { return &mut all[0] };
        let known = all.iter().position(|followed| followed.association.as_deref() == Some(path));
        let place = known.unwrap_or_else(|| {
            all.push(all[0].another(path));
            all.len() - 1
        });
        &mut all[place]
    }

    pub(super) fn flow_name(&self, flow: usize) -> &str {
        &self.flows[flow].all[0].name
    }

    pub(super) fn window(&self, flow: &str, path: &str) -> Option<Window> {
        let senders = self.flows.iter().find(|senders| senders.all[0].name == flow)?;
        senders.all.iter().find_map(|followed| followed.facts(path)?.window)
    }

    pub(super) fn record(&mut self, at: Time, record: &Record<'_>) {
        match record {
            Record::Detail { flow, side: Side::Client, path, detail } => {
                self.association_mut(*flow, *path).note(at, path.unwrap_or(""), detail)
            }
            Record::Sent { flow, side: Side::Server, path, packet, .. } => {
                if let Some(held) = held(at, packet) {
                    let followed = self.association_mut(*flow, *path);
                    followed.unheard.sent(path.unwrap_or(""), held.clone());
                    followed.receiver = Some(held);
                }
            }
            Record::Sent { flow, side: Side::Client, path, packet, reason } => {
                let why = if let Purpose::Data(why) = reason.purpose { why } else { Why::New };
                let followed = self.association_mut(*flow, *path);
                packet.numbers().for_each(|number| followed.sent(at, path.unwrap_or(""), number, why));
            }
            Record::Queued { link, flow, packet, queue } => {
                let (on, ahead) = (self.links[*link].name.clone(), queue.packets - 1);
                self.place(*flow, packet, &Place::Queued { on, since: at, ahead });
            }
            Record::Started { link, flow, packet, .. } => {
                let on = self.links[*link].name.clone();
                self.place(*flow, packet, &Place::Sending { on, since: at });
            }
            Record::Dropped { link, flow, cause, packet, .. } => {
                let (by, cause) = (self.links[*link].name.clone(), *cause);
                self.place(*flow, packet, &Place::Dropped { by, at, cause, left: false });
            }
            Record::Delivered { link, flow, packet } => {
                let Line { name, end } = &self.links[*link];
                let (by, end) = (name.clone(), Arc::clone(end));
                let followed = self.association_mut(*flow, packet.origin.and_then(|origin| origin.path));
                let from_receiver = packet.origin.is_some_and(|origin| origin.side == Side::Server);
                if from_receiver && *end == *followed.ends[0] {
                    followed.heard = held(at, packet).or(followed.heard.take());
                    if chunks(packet).iter().any(|chunk| matches!(chunk, Chunk::Ecne(_))) {
                        followed.warned = Some(at);
                    }
                }
                let last = &followed.ends[usize::from(!from_receiver)];
                let place = match *end == **last {
                    true => Place::Arrived { at },
                    false => Place::Passed { by, at },
                };
                self.place(*flow, packet, &place);
            }
            _ => {}
        }
    }

    /// The data or the SACK in `packet` is at `place` now.
    fn place(&mut self, flow: usize, packet: &PacketView<'_>, place: &Place) {
        let Some(origin) = packet.origin else { return };
        let flow = self.association_mut(flow, origin.path);
        if origin.side == Side::Server {
            let path = origin.path.unwrap_or("");
            return sack(packet).into_iter().for_each(|sack| flow.unheard.moved(path, sack, place));
        }
        for number in packet.numbers() {
            let distance = flow.distance(number);
            let Some(piece) = flow.pieces.get_mut(&distance) else { continue };
            let on_way = |copy: &&mut Copied| {
                origin.path == Some(&*copy.path)
                    && !matches!(copy.place, Place::Arrived { .. } | Place::Dropped { .. })
            };
            // The oldest transmission on this path that is still in flight, because a path delivers in order.
            if let Some(copy) = piece.copies.iter_mut().find(on_way) {
                copy.place.moved(place);
            }
        }
    }
}

impl Place {
    pub(super) fn moved(&mut self, to: &Place) {
        let mut to = to.clone();
        if let Place::Dropped { left, .. } = &mut to {
            *left = matches!(self, Place::Sending { .. });
        }
        *self = to;
    }
}

impl Followed {
    /// A sender of which nothing is known yet.
    fn new(name: String, association: Option<String>, protocol: Protocol, ends: [String; 2]) -> Followed {
        Followed {
            name,
            association,
            protocol,
            ends,
            first: None,
            paths: Vec::new(),
            latest: 0,
            peer_window: None,
            blocked: (None, Time::ZERO),
            pieces: BTreeMap::new(),
            receiver: None,
            heard: None,
            unheard: Unheard::default(),
            warned: None,
        }
    }

    /// Another association of the same flow, with this path.
    fn another(&self, path: &str) -> Followed {
        Followed::new(self.name.clone(), Some(path.to_owned()), self.protocol, self.ends.clone())
    }

    /// The distance of a number from the first one. TSNs wrap after 2^32.
    fn distance(&mut self, number: u64) -> u64 {
        let first = *self.first.get_or_insert(number);
        self.distance_from(first, number)
    }

    fn distance_from(&self, first: u64, number: u64) -> u64 {
        if self.is_tcp() {
            number.saturating_sub(first)
        } else {
            u64::from((number as u32).wrapping_sub(first as u32))
        }
    }

    /// What is known of a path.
    pub(super) fn facts(&self, path: &str) -> Option<&Facts> {
        self.paths.iter().find(|(name, _)| **name == *path).map(|(_, facts)| facts)
    }

    fn path(&mut self, path: &str) -> &mut Facts {
        if self.paths.get(self.latest).is_none_or(|(name, _)| **name != *path) {
            let place = self.paths.partition_point(|(name, _)| **name < *path);
            if self.paths.get(place).is_none_or(|(name, _)| **name != *path) {
                self.paths.insert(place, (path.into(), Facts::default()));
            }
            self.latest = place;
        }
        &mut self.paths[self.latest].1
    }

    fn note(&mut self, at: Time, path: &str, detail: &Detail) {
        match *detail {
            Detail::Window { cwnd, ssthresh, flight, marked, .. } => {
                let ssthresh = (ssthresh != u64::MAX).then_some(ssthresh);
                let ecn = self.warned == Some(at);
                self.path(path).set_window(at, Window { cwnd, ssthresh, flight, marked }, ecn);
            }
            Detail::Rto { rto, .. } => self.path(path).rto = Some(rto),
            Detail::PeerWindow { bytes } => self.peer_window = Some(bytes),
            Detail::Sent { number, why, .. } => {
                let distance = self.distance(number);
                let copy = self.pieces.get_mut(&distance).and_then(|piece| piece.copies.last_mut());
                if let Some(copy) = copy.filter(|copy| copy.at == at) {
                    copy.why = why;
                }
            }
            Detail::Marked { number, why } => {
                let distance = self.distance(number);
                if let Some(piece) = self.pieces.get_mut(&distance) {
                    piece.marked = Some((at, why));
                }
                if why == Why::Missing {
                    self.path(path).happened(at, why);
                }
            }
            Detail::Route { number, reason } => {
                let distance = self.distance(number);
                if let Some(piece) = self.pieces.get_mut(&distance) {
                    piece.route = Some((at, reason));
                }
            }
            Detail::Timeout => self.path(path).happened(at, Why::Timeout),
            Detail::Timer { expires } => self.path(path).expires = expires,
            Detail::Acked { cumulative } => self.acknowledged(cumulative),
            // Told again when another path comes to be in the way.
            Detail::Blocked(by) if by == self.blocked.0 => {}
            Detail::Blocked(by) => self.blocked = (by, at),
            Detail::Received { .. } => {}
            Detail::State(state) => self.path(path).state = Some((state, at)),
        }
    }

    fn sent(&mut self, at: Time, path: &str, number: u64, why: Why) {
        let distance = self.distance(number);
        let known = self.paths.iter().find(|(name, _)| **name == *path);
        let path = known.map_or_else(|| path.into(), |(name, _)| name.clone());
        let new = || Piece { number, copies: SmallVec::new(), marked: None, route: None };
        let piece = self.pieces.entry(distance).or_insert_with(new);
        piece.marked = None;
        if piece.copies.len() == COPIES {
            piece.copies.remove(1);
        }
        piece.copies.push(Copied { at, path, why, place: Place::Sender });
    }

    fn acknowledged(&mut self, cumulative: u64) {
        if self.first.is_none() {
            return;
        }
        let distance = self.distance(cumulative);
        // Before the first chunk is sent, the point is one below it.
        if !self.is_tcp() && distance > u64::from(u32::MAX / 2) {
            return;
        }
        let rest = if self.is_tcp() { distance } else { distance + 1 };
        while let Some(first) = self.pieces.first_entry().filter(|first| *first.key() < rest) {
            first.remove();
        }
    }

    /// The bytes that the peer's window admits now. TCP reports the window from the last acknowledgement on, SCTP the
    /// rest of it.
    pub(super) fn room_at_peer(&self) -> u64 {
        let window = self.peer_window.unwrap_or(0);
        let flight = || self.paths.iter().filter_map(|(_, facts)| Some(facts.window?.flight)).sum();
        if self.is_tcp() { window.saturating_sub(flight()) } else { window }
    }

    /// The lowest unacknowledged piece. All later data waits for it.
    pub(super) fn hole(&self) -> Option<&Piece> {
        self.pieces.values().next()
    }

    /// The oldest unmarked piece that this path carried last.
    pub(super) fn oldest_on(&self, path: &str) -> Option<&Piece> {
        self.pieces.values().find(|piece| {
            let gap = || self.heard.as_ref().is_some_and(|held| held.has(piece.number));
            piece.marked.is_none() && piece.copies.last().is_some_and(|copy| *copy.path == *path) && !gap()
        })
    }

    /// The piece of this number, if it is not acknowledged cumulatively.
    pub(super) fn piece(&self, number: u64) -> Option<&Piece> {
        self.pieces.get(&self.distance_from(self.first?, number))
    }

    /// Whether its data is a stream of bytes, of which numbers count.
    pub(super) fn is_tcp(&self) -> bool {
        self.protocol.counts_bytes()
    }

    /// The name of a piece of data.
    pub(super) fn noun(&self) -> &'static str {
        if self.is_tcp() { "byte" } else { "TSN" }
    }
}

fn chunks<'a>(packet: &PacketView<'a>) -> &'a [Chunk] {
    packet.sctp().map_or(&[][..], |packet| &packet.chunks[..])
}

/// The last SACK in a packet.
fn sack<'a>(packet: &PacketView<'a>) -> Option<&'a Sack> {
    let sack = |chunk: &'a Chunk| if let Chunk::Sack(sack) = chunk { Some(sack) } else { None };
    chunks(packet).iter().filter_map(sack).next_back()
}

/// The contents of the SACK in a packet.
fn held(at: Time, packet: &PacketView<'_>) -> Option<Held> {
    sack(packet).map(|sack| Held { at, sack: sack.clone() })
}

impl Facts {
    /// A cause of a window cut. It is reported at the same time as the cut, before or after it.
    fn happened(&mut self, at: Time, why: Why) {
        match why {
            Why::Timeout => self.expired = Some((at, self.rto)),
            _ => self.missed = Some(at),
        }
        if let Some(cut) = self.cut.as_mut().filter(|cut| cut.at == at && cut.why.is_none()) {
            cut.why = Some(why);
        }
    }

    fn reason(&self, at: Time) -> Option<Why> {
        let expired = self.expired.is_some_and(|(expired, _)| expired == at).then_some(Why::Timeout);
        expired.or((self.missed == Some(at)).then_some(Why::Missing))
    }

    /// Whether the path may carry only one packet after a timeout: the flight is below the window, and no
    /// acknowledgement has arrived since.
    pub(super) fn one_packet(&self) -> bool {
        let window = self.window.filter(|window| window.flight > 0 && window.flight < window.cwnd);
        let cut = self.cut.filter(|cut| cut.why == Some(Why::Timeout));
        window.zip(cut).is_some_and(|(window, cut)| window.cwnd == cut.to)
    }

    fn set_window(&mut self, at: Time, window: Window, ecn: bool) {
        if let Some(before) = self.window.filter(|before| window.cwnd < before.cwnd) {
            self.cut = Some(Cut {
                at,
                from: before.cwnd,
                to: window.cwnd,
                why: self.reason(at),
                idle: window.flight == 0,
                ecn,
            });
        }
        let full = window.flight >= window.cwnd;
        self.full = if full { self.full.or(Some(at)) } else { None };
        self.window = Some(window);
    }
}
