//! An SCTP endpoint with its application, as an agent.

mod build;
mod codec;
mod collect;

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Duration, Endpoint, Event, Incoming, NoteKind, Output as Said, PathId, PathState,
    PathView, SendError, Statistics, Time, Tsn,
};

use crate::engine::NO_ROUTE;
use crate::observe::trace::Detail;
use crate::traffic::{Sink, Source};
use crate::transport::{Agent, Body, Frame, Output, Stage};
use codec::through_the_codec;

pub(crate) use build::{agents, check};
pub(crate) use collect::complete;

/// One end of an SCTP flow.
pub(crate) struct SctpAgent {
    endpoint: Endpoint,
    /// The association, from its beginning; it stays when it is over.
    association: Option<AssociationId>,
    up: bool,
    /// It has been asked to shut down.
    closing: bool,
    ended: Option<Ended>,
    application: Application,
    ways: PathTable,
    /// The pair of the packet sent last, and its route: those of most others.
    last: Option<(Address, Address, u32)>,
    /// Bytes before every packet: IP, and UDP if any.
    header: u32,
    /// Through the codec?
    wire: bool,
}

/// How an association ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Closed,
    Lost,
}

/// What drives an end.
#[derive(Debug)]
pub(crate) enum Application {
    /// Begins the association and sends.
    Sender(Source),
    /// Reads.
    Reader(Sink),
}

/// The addresses of both ends, and what is between them.
#[derive(Debug)]
pub(crate) struct PathTable {
    /// This end's.
    pub(crate) local: Vec<Address>,
    /// The other end's, in the order in which they are tried.
    pub(crate) remote: Vec<Address>,
    /// The SCTP port of both.
    pub(crate) port: u16,
    /// Row by row of the local addresses: where the route begins, or [`NO_ROUTE`].
    pub(crate) routes: Vec<u32>,
    /// Row by row of the local addresses: what a path is called.
    pub(crate) names: Vec<String>,
    /// The pair that is made the primary path once the association is up.
    pub(crate) primary: Option<(Address, Address)>,
}

impl SctpAgent {
    pub(crate) fn new(
        endpoint: Endpoint,
        application: Application,
        ways: PathTable,
        header: u32,
        wire: bool,
    ) -> Self {
        SctpAgent {
            endpoint,
            association: None,
            up: false,
            closing: false,
            ended: None,
            application,
            ways,
            last: None,
            header,
            wire,
        }
    }

    pub(crate) fn set_notes(&mut self, on: bool) {
        self.endpoint.set_notes(on);
    }

    pub(crate) fn set_listening(&mut self, on: bool) {
        self.endpoint.set_listening(on);
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.ended
    }

    /// The reading application, at the server.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match &self.application {
            Application::Reader(sink) => Some(sink),
            Application::Sender(_) => None,
        }
    }

    /// What its association has done up to `now`.
    pub(crate) fn statistics(&self, now: Time) -> Statistics {
        self.association.map_or_else(Statistics::default, |id| self.endpoint.statistics(now, id))
    }

    /// The path that keeps a buffer full, and for how long it has.
    pub(crate) fn blocking(&self, now: Time) -> Option<(PathId, Duration)> {
        self.endpoint.blocking(now, self.association?)
    }

    /// Its paths with their names.
    pub(crate) fn paths(&self) -> impl Iterator<Item = (&str, &PathView)> {
        let paths = self.association.map_or(&[][..], |id| self.endpoint.paths(id));
        paths.iter().map(|path| (self.ways.name(path).unwrap_or("?"), path))
    }

    /// What the application does by itself.
    fn act(&mut self, now: Time) {
        match &mut self.application {
            Application::Sender(source) if self.association.is_none() && now >= source.pace.start() => {
                self.begin(now)
            }
            Application::Sender(_) => self.send(now),
            Application::Reader(_) => self.read(now),
        }
    }

    fn begin(&mut self, now: Time) {
        match self.endpoint.connect(now, self.ways.port, &self.ways.remote) {
            Ok(id) => self.association = Some(id),
            Err(_) => self.ended = Some(Ended::Lost),
        }
        self.send(now);
    }

    fn send(&mut self, now: Time) {
        let Application::Sender(source) = &mut self.application else { return };
        let (Some(id), None) = (self.association, self.ended) else { return };
        while let Some(message) = source.due(now) {
            let bytes = message.payload.len();
            match self.endpoint.send(now, id, message) {
                Ok(()) => source.pace.taken(bytes),
                Err(SendError::Full(_) | SendError::Closed(_) | SendError::Invalid(_)) => {
                    source.pace.set_refused(true)
                }
            }
        }
        // Before it is up, an association that is shut down ends at once: what is queued would be lost.
        if source.pace.exhausted() && self.up && !std::mem::replace(&mut self.closing, true) {
            self.endpoint.shutdown(now, id);
        }
    }

    fn read(&mut self, now: Time) {
        let (Application::Reader(sink), Some(id)) = (&mut self.application, self.association) else { return };
        while sink.due(now) {
            if let Some(delivery) = self.endpoint.read(now, id) {
                sink.took(now, delivery.len());
                if delivery.complete && !delivery.abandoned {
                    sink.completes(now, delivery.stream);
                }
            }
            sink.set_readable(self.endpoint.is_readable(id));
        }
    }

    fn take(&mut self, now: Time, id: AssociationId, event: Event) {
        self.association.get_or_insert(id);
        match (event, &mut self.application) {
            (Event::Up, Application::Sender(_)) => {
                self.up = true;
                self.prefer(now, id);
                self.send(now);
            }
            (Event::Writable, Application::Sender(source)) => {
                source.pace.set_refused(false);
                self.send(now);
            }
            (Event::Readable, Application::Reader(sink)) => {
                sink.set_readable(true);
                self.read(now);
            }
            (Event::Closed, _) => self.ended = Some(Ended::Closed),
            (Event::Lost(_), _) => self.ended = Some(Ended::Lost),
            _ => {}
        }
    }

    /// Makes the path that the scenario names the primary.
    fn prefer(&mut self, now: Time, id: AssociationId) {
        let Some(pair) = self.ways.primary else { return };
        let paths = self.endpoint.paths(id);
        if let Some(path) = paths.iter().find(|path| (path.local, path.remote) == pair && !path.primary) {
            let path = path.id;
            self.endpoint.set_primary(now, id, path);
        }
    }

    fn frame(&mut self, packet: Box<Packet>) -> Frame {
        let size = packet.size() as u32 + self.header;
        let hop = self.route(packet.from, packet.to);
        let packet = if self.wire { through_the_codec(packet) } else { packet };
        Frame::new(Body::Sctp(packet), size, hop)
    }

    fn route(&mut self, from: Address, to: Address) -> u32 {
        match self.last {
            Some((before, towards, hop)) if (before, towards) == (from, to) => hop,
            _ => {
                let hop = self.ways.route(from, to);
                self.last = Some((from, to, hop));
                hop
            }
        }
    }

    /// When the application acts by itself.
    fn wakes(&self) -> Option<Time> {
        match &self.application {
            Application::Sender(source) if self.association.is_none() && self.ended.is_none() => {
                Some(source.pace.start())
            }
            Application::Sender(source) if self.ended.is_none() => source.pace.wakes(),
            Application::Sender(_) => None,
            Application::Reader(sink) => sink.wakes(),
        }
    }
}

impl Agent for SctpAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        if let Body::Sctp(packet) = frame.body {
            self.endpoint.handle(now, Incoming::Packet(packet));
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if self.wakes().is_some_and(|time| time <= now) {
            self.act(now);
        }
        loop {
            match self.endpoint.poll(now) {
                Said::Transmit(packet, reason) => return Output::Transmit(self.frame(packet), reason),
                Said::Event(id, event) => self.take(now, id, event),
                Said::Note(note) => {
                    if let Some((path, detail)) = detail(&note.kind) {
                        return Output::Detail(note.at, path, detail);
                    }
                }
                Said::Wait(until) => return Output::Wait(earlier(until, self.wakes())),
            }
        }
    }

    fn stage(&self) -> Stage {
        let reading = matches!(&self.application, Application::Reader(sink) if sink.readable());
        match (self.ended, &self.application) {
            (Some(_), _) if !reading => Stage::Over,
            (None, Application::Reader(_)) if self.association.is_none() => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    fn path_name(&self, path: PathId) -> Option<&str> {
        let paths = self.endpoint.paths(self.association?);
        self.ways.name(paths.iter().find(|view| view.id == path)?)
    }

    fn has_failed(&self, hop: u32) -> bool {
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
}

/// A note of the core as all transports tell it; chunks by their TSNs.
fn detail(kind: &NoteKind) -> Option<(Option<PathId>, Detail)> {
    let number = |tsn: &Tsn| u64::from(tsn.0);
    Some(match *kind {
        NoteKind::Window { path, cwnd, ssthresh, flight, marked } => {
            (Some(path), Detail::Window { cwnd, ssthresh, flight, marked, segments: None })
        }
        NoteKind::Rto { path, rto, srtt } => (Some(path), Detail::Rto { rto, srtt }),
        NoteKind::PeerWindow { bytes } => (None, Detail::PeerWindow { bytes }),
        NoteKind::Sent { path, ref tsn, size, why } => {
            (Some(path), Detail::Sent { number: number(tsn), size, why })
        }
        NoteKind::Marked { path, ref tsn, why } => (Some(path), Detail::Marked { number: number(tsn), why }),
        NoteKind::T3 { path } => (Some(path), Detail::Timeout),
        NoteKind::Acked { ref cumulative } => (None, Detail::Acked { cumulative: number(cumulative) }),
        NoteKind::Blocked(by) => (None, Detail::Blocked(by)),
        NoteKind::MissingReport { .. } => return None,
    })
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
