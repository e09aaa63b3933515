//! The SCTP agents of a flow, each with its application: one association, or with `stripe` one a path.

mod build;
mod codec;
mod collect;
mod line;

use anabranch_proto::{AssociationId, Event, NoteKind, Output as Said, PathId, Reason, Time, Tsn};

use crate::observe::trace::Detail;
use crate::traffic::{Sink, Source};
use crate::transport::{Agent, Body, Frame, Output, Stage};
use line::Line;

pub(crate) use build::{agents, check};
pub(crate) use collect::complete;

/// One end of an SCTP flow.
pub(crate) struct SctpAgent {
    /// Its associations: one, or one a path.
    lines: Vec<Line>,
    application: Application,
    /// Which association a reader with several reads from next.
    turn: usize,
    /// Whether an observer hears of details.
    notes: bool,
}

/// What drives an end.
#[derive(Debug)]
pub(crate) enum Application {
    /// Begins the associations and sends.
    Sender(Source),
    /// Reads.
    Reader(Sink),
}

/// What came of polling an association.
enum Polled {
    Says(Output),
    /// Something happened that only the application hears.
    Heard,
    Waits(Option<Time>),
}

impl SctpAgent {
    pub(crate) fn new(lines: Vec<Line>, application: Application) -> Self {
        SctpAgent { lines, application, turn: 0, notes: false }
    }

    pub(crate) fn set_notes(&mut self, on: bool) {
        self.notes = on;
        self.lines.iter_mut().for_each(|line| line.endpoint.set_notes(on));
    }

    pub(crate) fn set_listening(&mut self, on: bool) {
        self.lines.iter_mut().for_each(|line| line.endpoint.set_listening(on));
    }

    /// The reading application, at the server.
    pub(crate) fn sink(&self) -> Option<&Sink> {
        match &self.application {
            Application::Reader(sink) => Some(sink),
            Application::Sender(_) => None,
        }
    }

    fn striped(&self) -> bool {
        self.lines.len() > 1
    }

    /// By how much the numbers of an association's paths are moved, so that those of all associations differ: each
    /// association of several has one path.
    fn numbered(&self, line: usize, path: PathId) -> PathId {
        if self.striped() { PathId(line as u16) } else { path }
    }

    /// What the application does by itself.
    fn act(&mut self, now: Time) {
        match &self.application {
            Application::Sender(source) if now >= source.pace.start() => {
                self.lines.iter_mut().for_each(|line| line.begin(now));
                self.send(now);
            }
            Application::Sender(_) => {}
            Application::Reader(_) => self.read(now),
        }
    }

    /// Gives messages to the associations that have room, the first of them first.
    fn send(&mut self, now: Time) {
        let striped = self.striped();
        let Application::Sender(source) = &mut self.application else { return };
        source.pace.set_refused(false);
        let mut open = 0;
        while let Some(message) = source.due(now) {
            while self.lines.get(open).is_some_and(|line| !line.has_room(striped)) {
                open += 1;
            }
            let Some(line) = self.lines.get_mut(open) else {
                source.pace.set_refused(true);
                break;
            };
            let bytes = message.payload.len();
            if line.send(now, message) {
                source.pace.taken(bytes);
            }
        }
        if source.pace.exhausted() {
            self.lines.iter_mut().for_each(|line| line.close(now));
        }
    }

    fn read(&mut self, now: Time) {
        let Application::Reader(sink) = &mut self.application else { return };
        let count = self.lines.len();
        while sink.due(now) {
            let mut in_turn = (0..count).map(|step| (self.turn + step) % count);
            let next = in_turn.find(|line| self.lines[*line].is_readable()).unwrap_or(self.turn);
            if let Some(delivery) = self.lines[next].read(now) {
                sink.took(now, delivery.len());
                if delivery.complete {
                    sink.took_message();
                }
                if delivery.complete && !delivery.abandoned {
                    sink.completes(now, delivery.stream);
                }
            }
            self.turn = (next + 1) % count;
            sink.set_readable(self.lines.iter().any(Line::is_readable));
        }
    }

    fn take(&mut self, now: Time, line: usize, id: AssociationId, event: Event) {
        self.lines[line].take(now, id, &event);
        match (event, &mut self.application) {
            (Event::Up | Event::Writable, Application::Sender(_)) => self.send(now),
            (Event::Readable, Application::Reader(sink)) => {
                sink.set_readable(true);
                self.read(now);
            }
            _ => {}
        }
    }

    fn poll_line(&mut self, now: Time, line: usize) -> Polled {
        match self.lines[line].endpoint.poll(now) {
            Said::Transmit(packet, reason) => {
                let path = reason.path.map(|path| self.numbered(line, path));
                let frame = self.lines[line].frame(packet);
                Polled::Says(Output::Transmit(frame, Reason { path, ..reason }))
            }
            Said::Event(id, event) => {
                let state = if let Event::Path(path, state) = event { Some((path, state)) } else { None };
                self.take(now, line, id, event);
                match state.filter(|_| self.notes) {
                    Some((path, state)) => {
                        let path = Some(self.numbered(line, path));
                        Polled::Says(Output::Detail(now, path, Detail::State(state)))
                    }
                    None => Polled::Heard,
                }
            }
            Said::Note(note) => match detail(&note.kind) {
                Some((path, detail)) => {
                    // Of several associations each has one path, whose name tells them apart.
                    let path = path.or_else(|| self.striped().then_some(PathId(0)));
                    let path = path.map(|path| self.numbered(line, path));
                    Polled::Says(Output::Detail(note.at, path, detail))
                }
                None => Polled::Heard,
            },
            Said::Wait(until) => Polled::Waits(until),
        }
    }

    /// When the application acts by itself.
    fn wakes(&self) -> Option<Time> {
        match &self.application {
            Application::Sender(source) if self.lines.iter().any(Line::is_idle) => Some(source.pace.start()),
            Application::Sender(source) if !self.lines.iter().all(Line::is_over) => source.pace.wakes(),
            Application::Sender(_) => None,
            Application::Reader(sink) => sink.wakes(),
        }
    }
}

impl Agent for SctpAgent {
    fn handle(&mut self, now: Time, frame: Frame) {
        let Body::Sctp(packet) = frame.body else { return };
        let striped = self.striped();
        let mut lines = self.lines.iter_mut();
        if let Some(line) = lines.find(|line| !striped || line.joins(packet.to, packet.from)) {
            line.handle(now, packet);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if self.wakes().is_some_and(|time| time <= now) {
            self.act(now);
        }
        if self.striped() && !self.lines.iter().any(Line::is_idle) {
            // What has left since the last poll may have made room in an association that tells nobody of it.
            self.send(now);
        }
        let (mut line, mut first) = (0, None);
        while line < self.lines.len() {
            match self.poll_line(now, line) {
                Polled::Says(output) => return output,
                // The application may have acted on any association.
                Polled::Heard => (line, first) = (0, None),
                Polled::Waits(until) => (line, first) = (line + 1, earlier(first, until)),
            }
        }
        Output::Wait(earlier(first, self.wakes()))
    }

    fn stage(&self) -> Stage {
        let reading = matches!(&self.application, Application::Reader(sink) if sink.readable());
        match &self.application {
            _ if self.lines.iter().all(Line::is_over) && !reading => Stage::Over,
            Application::Reader(_) if self.lines.iter().all(Line::is_idle) => Stage::Idle,
            _ => Stage::Busy,
        }
    }

    fn path_name(&self, path: PathId) -> Option<&str> {
        match self.striped() {
            true => self.lines.get(path.0 as usize)?.path_name(PathId(0)),
            false => self.lines[0].path_name(path),
        }
    }

    fn has_failed(&self, hop: u32) -> bool {
        self.lines.iter().any(|line| line.has_failed(hop))
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
        NoteKind::Route { path, ref tsn, reason } => {
            (Some(path), Detail::Route { number: number(tsn), reason })
        }
        NoteKind::T3 { path } => (Some(path), Detail::Timeout),
        NoteKind::Acked { ref cumulative } => (None, Detail::Acked { cumulative: number(cumulative) }),
        NoteKind::Received { path, ref tsn, size, ref cumulative } => {
            (Some(path), Detail::Received { number: number(tsn), size, cumulative: number(cumulative) })
        }
        NoteKind::Blocked { cause, by } => (by, Detail::Blocked(cause)),
        NoteKind::MissingReport { .. } => return None,
    })
}

fn earlier(a: Option<Time>, b: Option<Time>) -> Option<Time> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
