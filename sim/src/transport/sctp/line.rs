//! One association of a flow, at one end: its endpoint, addresses and routes.

use std::collections::VecDeque;

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Delivery, Discarded, Duration, Endpoint, Event, Incoming, Message, Note, PathId,
    PathState, PathView, Statistics, Time,
};
use smallvec::SmallVec;

use super::codec::through_the_codec;
use crate::engine::NO_ROUTE;
use crate::observe::trace::Detail;
use crate::traffic::constant;
use crate::transport::{Body, Frame, Hear, HearKept};

/// An association and its endpoint.
pub(crate) struct Line {
    pub(super) endpoint: Endpoint,
    /// The association, once it was started. It remains set after the association has ended.
    association: Option<AssociationId>,
    up: bool,
    /// Whether it was asked to shut down.
    closing: bool,
    ended: Option<Ended>,
    /// Whether it refused a message and has not yet announced room.
    full: bool,
    ways: PathTable,
    /// The address pairs of packets so far, and their routes.
    used: SmallVec<[(Address, Address, u32); 1]>,
    /// Bytes of headers before every packet: IP, and UDP if any.
    header: u32,
    /// Whether packets go through the codec.
    wire: bool,
    /// Notes that are being told, and those that the endpoint had kept; for their memory.
    notes: VecDeque<Note>,
    kept: Vec<Note>,
}

/// How an association ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Closed,
    Lost,
}

/// The addresses of both ends, and the routes between them.
#[derive(Debug)]
pub(crate) struct PathTable {
    /// This end's.
    pub(crate) local: Vec<Address>,
    /// The other end's addresses, in the order in which they are tried.
    pub(crate) remote: Vec<Address>,
    /// The SCTP port of both.
    pub(crate) port: u16,
    /// For each local address, one row: the beginning of the route to each remote address, or [`NO_ROUTE`].
    pub(crate) routes: Vec<u32>,
    /// For each local address, one row: the name of the path.
    pub(crate) names: Vec<String>,
    /// The pair that becomes the primary path once the association is established.
    pub(crate) primary: Option<(Address, Address)>,
}

impl Line {
    pub(crate) fn new(endpoint: Endpoint, ways: PathTable, header: u32, wire: bool) -> Self {
        Line {
            endpoint,
            association: None,
            up: false,
            closing: false,
            ended: None,
            full: false,
            ways,
            used: SmallVec::new(),
            header,
            wire,
            notes: VecDeque::new(),
            kept: Vec::new(),
        }
    }

    pub(super) fn begin(&mut self, now: Time) {
        if !self.is_idle() {
            return;
        }
        match self.endpoint.connect(now, self.ways.port, &self.ways.remote) {
            Ok(id) => self.association = Some(id),
            Err(_) => self.ended = Some(Ended::Lost),
        }
    }

    /// Whether nothing has started.
    pub(super) fn is_idle(&self) -> bool {
        self.association.is_none() && self.ended.is_none()
    }

    pub(super) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// Whether the next message may go to this association. If the flow has several associations, each takes only what
    /// it can send soon. Two packets always wait in it, so that a call never finds it empty (that would be a new event
    /// for Max.Burst). So no message waits for a slow path while another has room.
    pub(super) fn has_room(&self, beside_others: bool) -> bool {
        let (Some(id), None, false) = (self.association, self.ended, self.full) else { return false };
        !beside_others || self.endpoint.unsent(id) < 2 * u64::from(self.endpoint.config().mtu)
    }

    /// Gives it up to `count` messages like this one. Returns how many it accepted.
    pub(super) fn send(&mut self, now: Time, message: &Message, count: u64) -> u64 {
        let Some(id) = self.association else { return 0 };
        let taken = self.endpoint.send_copies(now, id, message, constant(message.payload.len()), count);
        self.full = taken < count;
        taken
    }

    /// All messages were sent. An association that is not yet established would end at once if it were shut down, and
    /// its queue would be lost.
    pub(super) fn close(&mut self, now: Time) {
        let (Some(id), None) = (self.association, self.ended) else { return };
        if self.up && !std::mem::replace(&mut self.closing, true) {
            self.endpoint.shutdown(now, id);
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.association.is_some_and(|id| self.endpoint.is_readable(id))
    }

    /// Reads the next message that has arrived, or a part of it; `look` sees it.
    #[inline]
    pub(super) fn read<T>(&mut self, now: Time, look: impl FnOnce(&Delivery) -> T) -> Option<T> {
        self.endpoint.read_with(now, self.association?, look)
    }

    /// The reader discards everything that arrives.
    pub(super) fn discard(&mut self) {
        if let Some(id) = self.association {
            self.endpoint.discard(id);
        }
    }

    /// What was discarded since the last call.
    #[inline]
    pub(super) fn take_discarded(&mut self) -> Option<Discarded> {
        self.endpoint.take_discarded(self.association?)
    }

    /// Processes a packet.
    pub(super) fn handle(&mut self, now: Time, packet: Box<Packet>) {
        self.endpoint.handle(now, Incoming::Packet(packet));
    }

    pub(super) fn take(&mut self, now: Time, id: AssociationId, event: &Event) {
        self.association.get_or_insert(id);
        match event {
            Event::Up => {
                self.up = true;
                self.prefer(now, id);
            }
            Event::Writable => self.full = false,
            Event::Closed => self.ended = Some(Ended::Closed),
            Event::Lost(_) => self.ended = Some(Ended::Lost),
            _ => {}
        }
    }

    /// Makes the path that the scenario names the primary path.
    fn prefer(&mut self, now: Time, id: AssociationId) {
        let Some(pair) = self.ways.primary else { return };
        let paths = self.endpoint.paths(id);
        if let Some(path) = paths.iter().find(|path| (path.local, path.remote) == pair && !path.primary) {
            let path = path.id;
            self.endpoint.set_primary(now, id, path);
        }
    }

    /// The frame of a packet.
    #[inline(always)]
    pub(super) fn frame(&mut self, packet: Box<Packet>) -> Frame {
        let size = packet.size() as u32 + self.header;
        let hop = self.known_route(&packet).unwrap_or_else(|| self.route(&packet));
        let packet = if self.wire { through_the_codec(packet) } else { packet };
        Frame::new(Body::Sctp(packet), size, hop)
    }

    /// The beginning of the route of a packet, if another one had the same addresses.
    #[inline(always)]
    fn known_route(&self, packet: &Packet) -> Option<u32> {
        // A loop is compiled in place. `find` would be a function of its own, called for every packet.
        for (from, to, hop) in &self.used {
            if *from == packet.from && *to == packet.to {
                return Some(*hop);
            }
        }
        None
    }

    /// The beginning of the route of the first packet between its addresses.
    #[cold]
    fn route(&mut self, packet: &Packet) -> u32 {
        let hop = self.ways.route(packet.from, packet.to);
        self.used.push((packet.from, packet.to, hop));
        hop
    }

    /// Whether packets between these addresses are its own.
    pub(super) fn joins(&self, local: Address, remote: Address) -> bool {
        self.ways.pair(local, remote).is_some()
    }

    /// The statistics of its association up to `now`.
    pub(super) fn statistics(&self, now: Time) -> Statistics {
        self.association.map_or_else(Statistics::default, |id| self.endpoint.statistics(now, id))
    }

    /// The path that keeps a buffer full, and for how long it has.
    pub(super) fn blocking(&self, now: Time) -> Option<(PathId, Duration)> {
        self.endpoint.blocking(now, self.association?)
    }

    /// Its paths with their names.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&str, &PathView)> {
        let paths = self.association.map_or(&[][..], |id| self.endpoint.paths(id));
        paths.iter().map(|path| (self.ways.name(path).unwrap_or("?"), path))
    }

    pub(super) fn path_name(&self, path: PathId) -> Option<&str> {
        self.ways.named(self.endpoint.paths(self.association?), path)
    }

    /// Tells the notes that the endpoint would return next.
    pub(super) fn tell_details(&mut self, hear: Hear<'_>) {
        self.endpoint.take_notes(&mut self.notes);
        if self.notes.is_empty() {
            return;
        }
        let paths = self.association.map_or(&[][..], |id| self.endpoint.paths(id));
        // Most notes concern the same path as the one before.
        let mut latest: Option<(PathId, Option<&str>)> = None;
        for note in &self.notes {
            if let Some((path, detail)) = Detail::of(&note.kind) {
                let named = |path| (path, self.ways.named(paths, path));
                let path = path
                    .map(|path| latest.filter(|(before, _)| *before == path).unwrap_or_else(|| named(path)));
                latest = path.or(latest);
                hear(note.at, path, &detail);
            }
        }
        self.notes.clear();
    }

    /// Tells the notes that the endpoint has kept.
    pub(super) fn tell_kept(&mut self, hear: HearKept<'_>) {
        self.endpoint.take_kept(&mut self.kept);
        if self.kept.is_empty() {
            return;
        }
        let paths = self.association.map_or(&[][..], |id| self.endpoint.paths(id));
        let named: SmallVec<[_; 4]> = paths.iter().map(|path| (path.id, self.ways.name(path))).collect();
        hear(&self.kept, &named);
        self.kept.clear();
    }

    /// Whether it takes the path whose route begins at `hop` for failed.
    pub(super) fn has_failed(&self, hop: u32) -> bool {
        let paths = self.association.map_or(&[][..], |id| self.endpoint.paths(id));
        let path = paths.iter().find(|path| self.ways.route(path.local, path.remote) == hop);
        path.is_some_and(|path| matches!(path.state, PathState::PotentiallyFailed | PathState::Inactive))
    }
}

impl PathTable {
    fn pair(&self, local: Address, remote: Address) -> Option<usize> {
        let row = self.local.iter().position(|address| *address == local)?;
        let column = self.remote.iter().position(|address| *address == remote)?;
        Some(row * self.remote.len() + column)
    }

    fn route(&self, from: Address, to: Address) -> u32 {
        self.pair(from, to).map_or(NO_ROUTE, |pair| self.routes[pair])
    }

    fn name(&self, path: &PathView) -> Option<&str> {
        self.pair(path.local, path.remote).map(|pair| self.names[pair].as_str())
    }

    /// The name of one of these paths.
    fn named(&self, paths: &[PathView], path: PathId) -> Option<&str> {
        // Most paths stand at the place of their number.
        let view = paths.get(usize::from(path.0)).filter(|view| view.id == path);
        self.name(view.or_else(|| paths.iter().find(|view| view.id == path))?)
    }
}
