//! Processes an arriving packet, chunk by chunk.

use std::hint::cold_path;

use super::Association;
use crate::output::{Event, LostReason, NoteKind, Purpose};
use crate::path::{PacketOrigin, PathId, PathState};
use crate::receive::{Arrival, DataOutcome, HeldBack};
use crate::send::{Answer, revived};
use crate::shutdown::{State, Step};
use crate::wire::chunk::{Abort, Data, Heartbeat, NrSack, OperationError, Sack, ShutdownComplete};
use crate::wire::{Cause, Chunk, Packet};
use crate::{Duration, Time, Tsn};

/// How much of an arrived packet is left for the association.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// What stood behind a COOKIE ECHO. `authentic`: an AUTH before that covers it. The keys that judged it may not be
    /// those of the association any more, so it is not judged again.
    BehindCookie {
        /// Whether it is covered.
        authentic: bool,
    },
}

impl Association {
    /// Processes a packet with the right tag that arrived on this path.
    #[inline(always)]
    pub(crate) fn incoming(&mut self, packet: &mut Packet, path: PathId, part: Part, now: Time) {
        self.statistics.packets_received += 1;
        if part == Part::Whole {
            self.replies = None;
        }
        let mut arrival = Arrival::default();
        self.heard_in_shutdown();
        if self.extended.is_some() {
            cold_path();
            self.look_at(packet, path, part);
        }
        // The usual packet holds one DATA chunk or one SACK. The packet's memory, and the SACK in it, go to the next
        // packet that leaves.
        match &packet.chunks[..] {
            [Chunk::Data(data)] if part == Part::Whole => {
                self.sender.uncouple();
                if self.takes(data, path, &mut arrival, now)
                    && !self.count_alone(data, path, &mut arrival, now)
                    && let Some(Chunk::Data(data)) = packet.chunks.pop()
                {
                    self.taken_in(data, path, &mut arrival, now);
                }
            }
            [Chunk::Sack(sack)] if part == Part::Whole => self.sack(sack, now),
            _ => {
                cold_path();
                self.sender.uncouple();
                self.chunks(packet, path, part, &mut arrival, now);
            }
        }
        if self.state != State::Closed {
            let answered = if arrival.any() { self.sack_path(path, now) } else { path };
            self.receiver.packet_done(&arrival, answered, now, &self.config);
            self.repeat_shutdown(&arrival);
            if self.extended.is_some() {
                cold_path();
                self.hear_marks(path, now);
                self.answer_if_idle(path);
            }
            self.announce_readable();
            self.announce_writable();
        }
    }

    /// Processes the chunks of a packet, until one of them makes the rest void or ends the association. If an ABORT is
    /// in the rest, nothing in the packet is answered.
    //= rfc9260#section-9.1
    //= rfc9260#section-12.4
    fn chunks(&mut self, packet: &mut Packet, path: PathId, part: Part, arrival: &mut Arrival, now: Time) {
        let alone = part == Part::Whole && packet.chunks.len() == 1;
        let origin = PacketOrigin { path, local: packet.to, source: packet.from };
        let answers_before = self.control.len();
        let mut chunks = packet.chunks.drain(..);
        let mut counts = true;
        while counts
            && self.state != State::Closed
            && let Some(chunk) = chunks.next()
        {
            counts = match chunk {
                Chunk::Data(data) => {
                    self.data(data, path, arrival, now);
                    true
                }
                Chunk::Sack(sack) => {
                    self.sack(&sack, now);
                    true
                }
                other if !alone && self.must_be_alone(&other, now) => false,
                other => self.control_chunk(other, origin, arrival, now),
            };
        }
        if chunks.any(|chunk| matches!(chunk, Chunk::Abort(_))) {
            self.control.truncate(if self.state == State::Closed { 0 } else { answers_before });
        }
    }

    /// INIT, INIT ACK and SHUTDOWN COMPLETE must stand alone. An INIT ACK with other chunks ends the set-up; otherwise
    /// the DATA behind it would count as data of an established association. Any other of them with other chunks is
    /// ignored, and so is what stands behind it.
    //= rfc9260#section-6.10
    //= rfc9260#section-12.3
    #[cold]
    fn must_be_alone(&mut self, chunk: &Chunk, now: Time) -> bool {
        match chunk {
            Chunk::InitAck(init) if self.state == State::CookieWait && init.tag != 0 => {
                self.peer_tag = init.tag;
                self.violated(Cause::ProtocolViolation(b"INIT ACK was bundled".as_slice().into()), now);
                true
            }
            other => matches!(other, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete(_)),
        }
    }

    /// Processes any chunk other than DATA and SACK. Returns whether the following chunks are processed.
    // These chunks are rare, so they are kept out of the data path.
    #[cold]
    fn control_chunk(&mut self, chunk: Chunk, came: PacketOrigin, arrival: &mut Arrival, now: Time) -> bool {
        let PacketOrigin { path, local, source } = came;
        self.receiver.control_came(path, &self.config);
        match chunk {
            Chunk::InitAck(init) => self.init_ack(&init, local, source, now),
            Chunk::CookieAck(_) => self.cookie_ack(now),
            Chunk::Heartbeat(heartbeat) => self.heartbeat(heartbeat, path),
            Chunk::HeartbeatAck(heartbeat) => self.heartbeat_ack(&heartbeat, now),
            Chunk::Shutdown(shutdown) => self.shutdown_came(shutdown.cumulative, path, now),
            Chunk::ShutdownAck(_) => self.shutdown_ack_came(path, now),
            Chunk::ShutdownComplete(_) => self.take(Step::Complete, now),
            Chunk::Abort(abort) => {
                self.abort_came(abort, now);
                return false;
            }
            Chunk::Error(error) => self.peer_error(error, now),
            Chunk::Data(_) | Chunk::Sack(_) | Chunk::Init(_) | Chunk::CookieEcho(_) => {}
            other => return self.extension_chunk(other, came, arrival, now),
        }
        true
    }

    /// The peer violated the protocol: it is told so, and the association ends.
    pub(crate) fn violated(&mut self, cause: Cause, now: Time) {
        self.send_abort(vec![cause]);
        self.close(Event::Lost(LostReason::ProtocolViolation), now);
    }

    /// A peer that sends packets without answering SHUTDOWN may have data left to send, so the count restarts. The
    /// standard says that T2 should restart too. It does for DATA only (see `repeat_shutdown`): a lost SHUTDOWN must
    /// not wait for a peer that keeps sending heartbeats.
    //= rfc9260#section-9.2
    fn heard_in_shutdown(&mut self) {
        if let Some(resend) = &mut self.resend
            && self.state == State::ShutdownSent
        {
            cold_path();
            resend.tries = 0;
        }
    }

    /// An ABORT ends the association, and nothing in its packet is answered. If only the SHUTDOWN COMPLETE is
    /// awaited, an ABORT from a peer that has forgotten the association counts as that.
    //= rfc9260#section-9.1
    fn abort_came(&mut self, abort: Abort, now: Time) {
        self.control.clear();
        let complete = self.state == State::ShutdownAckSent && abort.reflected;
        let lost = Event::Lost(LostReason::PeerAborted(abort.causes));
        self.close(if complete { Event::Closed } else { lost }, now);
    }

    fn data(&mut self, data: Data, path: PathId, arrival: &mut Arrival, now: Time) {
        if self.takes(&data, path, arrival, now) {
            self.taken_in(data, path, arrival, now);
        }
    }

    /// Whether a DATA chunk is for the receiving half. If not, it was dealt with.
    #[inline(always)]
    fn takes(&mut self, data: &Data, path: PathId, arrival: &mut Arrival, now: Time) -> bool {
        self.data_shows_cookie_ack(now);
        if !self.state.receives_data() {
            return false;
        }
        let unusual = self.extended.is_some() && self.extensions_concern(data);
        if unusual || data.payload.is_empty() || data.stream >= self.streams.1 {
            self.take_unusual(data, path, arrival, now);
            return false;
        }
        true
    }

    /// Whether an extension forbids this DATA chunk, or makes it wait.
    #[inline(never)]
    fn extensions_concern(&self, data: &Data) -> bool {
        self.agreed().interleaving || self.receiver.must_hold_back(data.stream, data.tsn)
    }

    /// A DATA chunk that is not allowed, or that waits for a reset of its stream.
    #[cold]
    fn take_unusual(&mut self, data: &Data, path: PathId, arrival: &mut Arrival, now: Time) {
        if self.agreed().interleaving {
            self.wrong_kind(now);
        } else if data.payload.is_empty() {
            self.violated(Cause::NoUserData(data.tsn), now);
        } else if data.stream >= self.streams.1 {
            self.invalid_stream(data.stream, data.tsn, path, arrival);
        } else {
            let chunk = HeldBack::Data(data.clone());
            let outcome = self.receiver.hold_back(chunk, &self.config.rules, arrival);
            self.taken(outcome, (data.tsn, data.size()), path, now);
        }
    }

    /// The receiving half takes a DATA chunk.
    #[inline(never)]
    fn taken_in(&mut self, data: Data, path: PathId, arrival: &mut Arrival, now: Time) {
        let (tsn, size) = (data.tsn, data.size());
        let outcome = self.receiver.data(data, &self.config.rules, arrival);
        self.taken(outcome, (tsn, size), path, now);
    }

    /// If the user only counts what arrives, and this chunk can be counted where it is: counts it, and returns true.
    #[inline(always)]
    fn count_alone(&mut self, data: &Data, path: PathId, arrival: &mut Arrival, now: Time) -> bool {
        let counted = self.receiver.count_alone(data, arrival);
        if counted {
            self.taken(DataOutcome::New, (data.tsn, data.size()), path, now);
        }
        counted
    }

    /// Counts the outcome of a chunk of `size` bytes that arrived on this path.
    #[inline]
    pub(crate) fn taken(&mut self, outcome: DataOutcome, (tsn, size): (Tsn, usize), path: PathId, now: Time) {
        match outcome {
            DataOutcome::New => {
                let (size, cumulative) = (size as u32, self.receiver.cumulative());
                self.notes.add(now, || NoteKind::Received { path, tsn, size, cumulative });
            }
            DataOutcome::Duplicate => self.statistics.duplicates += 1,
            DataOutcome::NoRoom => self.statistics.no_room += 1,
        }
    }

    /// The COOKIE ACK was lost: data can only come from a peer that has accepted our cookie.
    pub(crate) fn data_shows_cookie_ack(&mut self, now: Time) {
        if self.state == State::CookieEchoed {
            self.cookie_ack(now);
        }
    }

    /// DATA on a stream that does not exist is acknowledged, reported and dropped.
    //= rfc9260#section-6.5
    pub(crate) fn invalid_stream(&mut self, stream: u16, tsn: Tsn, path: PathId, arrival: &mut Arrival) {
        self.report(path, Cause::InvalidStream(stream));
        self.receiver.acknowledge_only(tsn, arrival);
    }

    /// A SACK that also tells which chunks the peer will not drop.
    pub(crate) fn nr_sack(&mut self, sack: &NrSack, now: Time) {
        self.sack(&sack.to_sack(), now);
        self.statistics.acknowledged += self.sender.outstanding.release(sack);
    }

    //= rfc9260#section-8.1
    fn sack(&mut self, sack: &Sack, now: Time) {
        if !self.state.sends_data() {
            return;
        }
        let (sender, mut around, _) = self.sending(now);
        match sender.sack(sack, &mut around) {
            Answer::Ignored => {}
            Answer::Impossible => {
                let what = b"a SACK for a TSN never sent".as_slice().into();
                self.violated(Cause::ProtocolViolation(what), now);
            }
            Answer::Processed { news } => {
                if news {
                    self.errors = 0;
                    self.revive();
                }
                self.drained();
            }
            Answer::Plain(path) => {
                self.errors = 0;
                if self.paths.view(path).has_failed() {
                    self.set_state(path, PathState::Active);
                }
                self.drained();
            }
        }
    }

    /// A failed or failing path has delivered data.
    //= rfc9260#section-8.2
    //= rfc7829#section-3.2
    #[inline]
    fn revive(&mut self) {
        while let Some(path) = revived(&self.paths, &self.config) {
            self.set_state(path, PathState::Active);
        }
    }

    pub(crate) fn set_state(&mut self, path: PathId, state: PathState) {
        self.paths.set_state(path, state);
        self.sender.uncouple();
        self.events.push_back(Event::Path(path, state));
    }

    //= rfc9260#section-8.3
    fn heartbeat(&mut self, heartbeat: Heartbeat, path: PathId) {
        self.reply(path, Chunk::HeartbeatAck(heartbeat), Purpose::Heartbeat);
    }

    /// A stale cookie ends a set-up attempt; after set-up it is ignored.
    //= rfc9260#section-5.2.6
    fn peer_error(&mut self, error: OperationError, now: Time) {
        let stale = error.causes.iter().find_map(|cause| match cause {
            Cause::StaleCookie(micros) => Some(Duration::from_micros(u64::from(*micros))),
            _ => None,
        });
        match (stale, self.state) {
            (Some(staleness), State::CookieEchoed) if self.preserve.is_none() => {
                self.begin_again(staleness, now)
            }
            (Some(_), State::CookieEchoed) => {
                self.close(Event::Lost(LostReason::PeerAborted(error.causes)), now)
            }
            (Some(_), _) => {}
            (None, _) => {
                self.not_understood(&error.causes, now);
                self.events.push_back(Event::PeerError(error.causes));
            }
        }
    }

    /// SHUTDOWN arrived on this path. If nothing is left to be acknowledged, SHUTDOWN ACK goes back to where it came
    /// from.
    //= rfc9260#section-9.2
    //= rfc9260#section-6.4
    fn shutdown_came(&mut self, cumulative: Tsn, path: PathId, now: Time) {
        let first = matches!(self.state, State::Established | State::ShutdownPending);
        match self.state.after(Step::Shutdown) {
            Some(State::ShutdownAckSent) => return self.enter(State::ShutdownAckSent, path),
            Some(next) => self.state = next,
            None if self.state == State::ShutdownReceived => {}
            None => return,
        }
        if first {
            self.events.push_back(Event::PeerShutdown);
        }
        let (sender, mut around, _) = self.sending(now);
        if let Answer::Impossible = sender.cumulative(cumulative, &mut around) {
            let what = b"a SHUTDOWN for a TSN never sent".as_slice().into();
            return self.violated(Cause::ProtocolViolation(what), now);
        }
        self.drained_on(path);
    }

    fn shutdown_ack_came(&mut self, path: PathId, now: Time) {
        if self.state.after(Step::ShutdownAck).is_some() {
            let complete = Chunk::ShutdownComplete(ShutdownComplete { reflected: false });
            // It must stand alone, and no other packet may answer.
            //= rfc9260#section-12.4
            self.control.clear();
            self.send_control(self.open_path(path), complete, Purpose::Shutdown);
        }
        self.take(Step::ShutdownAck, now);
    }

    /// A step that can only be the last.
    fn take(&mut self, step: Step, now: Time) {
        if self.state.after(step) == Some(State::Closed) {
            self.close(Event::Closed, now);
        }
    }

    /// DATA arrived after SHUTDOWN was sent: it is acknowledged, and SHUTDOWN is repeated at once.
    //= rfc9260#section-9.2
    fn repeat_shutdown(&mut self, arrival: &Arrival) {
        if self.state == State::ShutdownSent && arrival.any() {
            cold_path();
            self.receiver.schedule.now = true;
            self.resend_now();
        }
    }
}
