//! The SCTP agents of a flow, each with its application: one association, or with `stripe` one a path.

mod build;
mod codec;
mod collect;
mod line;

use std::hint::cold_path;

use anabranch_proto::wire::Spares;
use anabranch_proto::{AssociationId, Event, Noting, Output as CoreOutput, PathId, Reason, Time};

use crate::observe::trace::Detail;
use crate::traffic::{Sink, Source};
use crate::transport::{Agent, Body, Frame, Hear, HearKept, Output, Stage, earlier};
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
    /// When the application acts by itself, kept while nothing happens that could change it; `NEVER`: not.
    acts: Time,
    /// The stage that it has reached, kept as long.
    stage: Stage,
    /// Whether an observer hears of details.
    notes: bool,
}

/// The application at one end.
#[derive(Debug)]
pub(crate) enum Application {
    /// Begins the associations and sends.
    Sender(Source),
    /// Reads.
    Reader(Sink),
}

impl SctpAgent {
    pub(crate) fn new(lines: Vec<Line>, application: Application) -> Self {
        let mut agent =
            SctpAgent { lines, application, turn: 0, acts: Time::NEVER, stage: Stage::Idle, notes: false };
        agent.plan();
        agent
    }

    /// Notes of several associations need their common order: they are not kept but polled.
    pub(crate) fn set_noting(&mut self, noting: Noting) {
        self.notes = noting != Noting::Off;
        let kept = self.striped() && noting == Noting::Kept;
        let noting = if kept { Noting::Polled } else { noting };
        self.lines.iter_mut().for_each(|line| line.endpoint.set_noting(noting));
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

    /// As `numbered`, for the reason of a packet.
    fn renumbered(&self, line: usize, reason: Reason) -> Reason {
        Reason { path: reason.path.map(|path| self.numbered(line, path)), ..reason }
    }

    /// Lets the application act if it is due.
    #[inline(never)]
    fn act(&mut self, now: Time) {
        match &self.application {
            Application::Sender(source) if now >= source.pace.start() => {
                self.lines.iter_mut().for_each(|line| line.begin(now));
                self.send(now);
            }
            Application::Sender(_) => {}
            Application::Reader(_) => self.read(now),
        }
        self.plan();
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
            let count = if striped { 1 } else { source.equals() };
            let taken = line.send(now, &message, count);
            source.pace.taken_copies(message.payload.len(), taken);
        }
        if source.pace.exhausted() {
            self.lines.iter_mut().for_each(|line| line.close(now));
        }
    }

    fn read(&mut self, now: Time) {
        let Application::Reader(sink) = &mut self.application else { return };
        let count = self.lines.len();
        while sink.due(now) {
            let next = if count == 1 { 0 } else { next_readable(&self.lines, self.turn) };
            self.lines[next].read(now, |delivery| {
                sink.took(now, delivery.len());
                if delivery.complete {
                    sink.took_message();
                }
                if delivery.complete && !delivery.abandoned {
                    sink.completes(now, delivery.stream);
                }
            });
            self.turn = if next + 1 == count { 0 } else { next + 1 };
            sink.set_readable(self.lines.iter().any(Line::is_readable));
        }
    }

    /// There is something to read. A reader does not wait for the event that announces it.
    fn arrived(&mut self, now: Time) {
        if let Application::Reader(sink) = &mut self.application {
            sink.set_readable(true);
            self.read(now);
        }
        self.plan();
    }

    fn take(&mut self, now: Time, line: usize, id: AssociationId, event: Event) {
        self.lines[line].take(now, id, &event);
        if event == Event::Up && self.sink().is_some_and(Sink::only_counts) {
            self.lines[line].discard();
        }
        match (event, &self.application) {
            (Event::Up | Event::Writable, Application::Sender(_)) => self.send(now),
            (Event::Readable, Application::Reader(_)) => return self.arrived(now),
            _ => {}
        }
        self.plan();
    }

    /// The next output of several associations.
    #[cold]
    fn poll_striped(&mut self, now: Time) -> Output {
        if !self.lines.iter().any(Line::is_idle) {
            // Packets that have left since the last poll may have made room in an association that reports no event for
            // it.
            self.send(now);
            self.plan();
        }
        let (mut line, mut first) = (0, None);
        while line < self.lines.len() {
            match self.lines[line].endpoint.poll(now) {
                CoreOutput::Transmit(packet, reason) => {
                    return Output::Transmit(self.lines[line].frame(packet), self.renumbered(line, reason));
                }
                CoreOutput::Wait(until) => (line, first) = (line + 1, earlier(first, until)),
                said => {
                    if let Some(output) = self.hear(now, line, said) {
                        return output;
                    }
                    // The application may have acted on any association.
                    (line, first) = (0, None);
                }
            }
        }
        self.waits(first)
    }

    /// The associations wait until this time, and the application until its own.
    #[inline]
    fn waits(&self, until: Option<Time>) -> Output {
        Output::Wait(Some(until.unwrap_or(Time::NEVER).min(self.acts)))
    }

    /// The output of an association that is no packet. Returns what an observer is shown of it.
    // Packets are polled much more often, so this is kept out of their way.
    #[inline(never)]
    fn hear(&mut self, now: Time, line: usize, said: CoreOutput) -> Option<Output> {
        let (at, path, detail) = match said {
            CoreOutput::Event(id, event) => {
                let state = if let Event::Path(path, state) = event { Some((path, state)) } else { None };
                self.take(now, line, id, event);
                let (path, state) = state.filter(|_| self.notes)?;
                (now, Some(path), Detail::State(state))
            }
            CoreOutput::Note(note) => {
                let (path, detail) = Detail::of(&note.kind)?;
                // With several associations, each has one path, and its name identifies the association.
                (note.at, path.or_else(|| self.striped().then_some(PathId(0))), detail)
            }
            CoreOutput::Transmit(..) | CoreOutput::Wait(_) => return None,
        };
        let path = path.map(|path| self.numbered(line, path));
        Some(Output::Detail(at, path, detail))
    }

    /// Finds when the application acts by itself, and the stage.
    fn plan(&mut self) {
        let at = match &self.application {
            Application::Sender(source) if self.lines.iter().any(Line::is_idle) => Some(source.pace.start()),
            Application::Sender(source) if !self.lines.iter().all(Line::is_over) => source.pace.wakes(),
            Application::Sender(_) => None,
            Application::Reader(sink) => sink.wakes(),
        };
        self.acts = at.unwrap_or(Time::NEVER);
        self.stage = self.reached();
    }

    fn reached(&self) -> Stage {
        let reading = || matches!(&self.application, Application::Reader(sink) if sink.readable());
        match &self.application {
            _ if self.lines.iter().all(Line::is_over) && !reading() => Stage::Over,
            Application::Reader(_) if self.lines.iter().all(Line::is_idle) => Stage::Idle,
            _ => Stage::Busy,
        }
    }
}

impl Agent for SctpAgent {
    #[inline(always)]
    fn handle(&mut self, now: Time, frame: Frame) {
        let Body::Sctp(packet) = frame.body else { return };
        let line = match &mut self.lines[..] {
            [line] => line,
            lines => match lines.iter_mut().find(|line| line.joins(packet.to, packet.from)) {
                Some(line) => line,
                None => return,
            },
        };
        line.handle(now, packet);
        let Application::Reader(sink) = &mut self.application else { return };
        match line.take_discarded() {
            // A message is only counted while nothing waits to be read.
            Some(discarded) => sink.took(now, discarded.bytes as usize),
            None if line.is_readable() => {
                cold_path();
                self.arrived(now);
            }
            None => {}
        }
    }

    #[inline(always)]
    fn handle_with(&mut self, memory: &mut Spares, now: Time, frame: Frame) {
        self.handle(now, frame);
        if let [line] = &mut self.lines[..] {
            line.endpoint.exchange_memory(memory);
        }
    }

    // The engine polls in one place.
    #[inline(always)]
    fn poll(&mut self, now: Time) -> Output {
        if self.acts <= now {
            cold_path();
            self.act(now);
        }
        loop {
            let [line] = &mut self.lines[..] else { return self.poll_striped(now) };
            let said = line.endpoint.poll(now);
            match said {
                CoreOutput::Transmit(packet, reason) => return Output::Transmit(line.frame(packet), reason),
                CoreOutput::Wait(until) => {
                    // It owns nothing, which the compiler does not see.
                    std::mem::forget(said);
                    return self.waits(until);
                }
                said => {
                    cold_path();
                    if let Some(output) = self.hear(now, 0, said) {
                        return output;
                    }
                }
            }
        }
    }

    #[inline]
    fn stage(&self) -> Stage {
        self.stage
    }

    /// Of several associations each poll may begin with another one, and an application that acts comes first.
    fn tell_details(&mut self, now: Time, hear: Hear<'_>) {
        if !self.striped() && self.acts > now {
            self.lines[0].tell_details(hear);
        }
    }

    fn tell_kept(&mut self, hear: HearKept<'_>) {
        if let [line] = &mut self.lines[..] {
            line.tell_kept(hear);
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

/// The first association from `turn` on, in turn, that has something to read; `turn` if none has.
fn next_readable(lines: &[Line], turn: usize) -> usize {
    let mut in_turn = (turn..lines.len()).chain(0..turn);
    in_turn.find(|line| lines[*line].is_readable()).unwrap_or(turn)
}
