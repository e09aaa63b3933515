//! Stream reconfiguration (RFC 6525): SSNs, or TSNs and SSNs, begin anew; streams are added.
//!
//! What the user gave before it asked for a reset is sent before it; what it gives until the peer has answered waits
//! here. Requests go one at a time, one parameter a chunk; the peer may put two into one.

use std::collections::VecDeque;

use super::PacketOrigin;
use crate::association::Association;
use crate::output::{ChangeError, Direction, Event, Outcome, Purpose};
use crate::path::PathId;
use crate::shutdown::State;
use crate::wire::chunk::{
    AddStreams, IncomingReset, OutgoingReset, ReConfig, ReConfigParam as Param, Response,
};
use crate::wire::{Cause, Chunk};
use crate::{Message, Time, Tsn};

/// Requests that wait at most.
const MAX_WISHES: usize = 16;
/// Answers kept for a peer that asks again: as many as one chunk can ask for.
const MAX_ANSWERS: usize = 2;
/// Half of all TSNs: so far the peer's next TSN moves when TSNs begin anew.
const HALF: u32 = 1 << 31;
/// So far ours moves: one is left out, as usrsctp does too. The standard would have it go on, but new data that comes
/// before the answer would then be taken for old, and its SSNs for those of before. Now it is beyond a gap, where
/// nothing is taken while the answer is awaited, and comes again. usrsctp 0.9.5 takes no step beyond its window.
const STEP: u32 = 1;

/// What is asked, and what was answered.
#[derive(Clone, Debug)]
pub(crate) struct Reconfiguration {
    /// The number of our next request, and of the peer's.
    next: u32,
    expected: u32,
    wishes: VecDeque<PendingRequest>,
    request: Option<Request>,
    answers: VecDeque<Response>,
    /// A reset by the peer that waits for data sent before it.
    deferred: Option<OutgoingReset>,
    /// A reset of TSNs by the peer that waits until all of ours is acknowledged: its number.
    settling: Option<u32>,
    /// Messages that wait for an answer, and when they were given.
    held: VecDeque<(Message, Time)>,
    held_bytes: u64,
}

/// What shall be asked.
#[derive(Clone, PartialEq, Eq, Debug)]
enum PendingRequest {
    /// Streams that we send on; none: all. In answer to a request of the peer, its number.
    ResetOutgoing {
        streams: Vec<u16>,
        answers: Option<u32>,
    },
    ResetIncoming {
        streams: Vec<u16>,
    },
    ResetTsns,
    AddOutgoing(u16),
    AddIncoming(u16),
}

/// A request in flight.
#[derive(Clone, Debug)]
struct Request {
    number: u32,
    wish: PendingRequest,
    param: Param,
    path: PathId,
    timer: Time,
    due: bool,
    /// The peer has answered that it is under way: that it takes long is no error.
    heard: bool,
}

impl Reconfiguration {
    //= rfc6525#section-4.1
    pub(super) fn new(local: Tsn, peer: Tsn) -> Self {
        Reconfiguration {
            next: local.0,
            expected: peer.0,
            wishes: VecDeque::new(),
            request: None,
            answers: VecDeque::new(),
            deferred: None,
            settling: None,
            held: VecDeque::new(),
            held_bytes: 0,
        }
    }

    fn wished(&self) -> impl Iterator<Item = &PendingRequest> {
        self.request.iter().map(|request| &request.wish).chain(&self.wishes)
    }

    /// Whether a message on this stream has to wait.
    //= rfc6525#section-5.1.2
    pub(crate) fn holds(&self, stream: u16) -> bool {
        self.settling.is_some()
            || self.wished().any(|wish| match wish {
                PendingRequest::ResetOutgoing { streams, .. } => covers(streams, stream),
                PendingRequest::ResetTsns => true,
                _ => false,
            })
    }

    pub(crate) fn hold(&mut self, message: Message, now: Time) {
        self.held_bytes += message.payload.len() as u64;
        self.held.push_back((message, now));
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Takes out the messages that need not wait any more.
    fn released(&mut self) -> Vec<(Message, Time)> {
        let waiting = std::mem::take(&mut self.held);
        let (held, free): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(m, _)| self.holds(m.stream));
        self.held = held.into();
        self.held_bytes -= free.iter().map(|(m, _)| m.payload.len() as u64).sum::<u64>();
        free
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.held_bytes = 0;
        self.held.drain(..).map(|(message, _)| message)
    }

    pub(super) fn deadline(&self) -> Time {
        self.request.as_ref().map_or(Time::NEVER, |request| request.timer)
    }

    /// What was answered to the peer's request `number`.
    fn answered(&mut self, number: u32) -> Option<&mut Response> {
        self.answers.iter_mut().find(|answer| answer.request == number)
    }

    /// Changes an answer that was "in progress"; the new one.
    fn settle(&mut self, number: u32, result: u32, next: Option<(Tsn, Tsn)>) -> Option<Response> {
        let answer = self.answered(number)?;
        (answer.result, answer.next) = (result, next);
        Some(*answer)
    }
}

/// Whether a list of streams, empty for all, has this one.
fn covers(streams: &[u16], stream: u16) -> bool {
    streams.is_empty() || streams.contains(&stream)
}

impl Association {
    fn streams_state(&mut self) -> Option<&mut Reconfiguration> {
        self.extended.as_mut().and_then(|extended| extended.streams.as_mut())
    }

    /// The user wants streams to begin anew.
    pub(crate) fn reset_streams(&mut self, direction: Direction, streams: &[u16]) -> Result<(), ChangeError> {
        let limit = if direction == Direction::Outgoing { self.streams.0 } else { self.streams.1 };
        if streams.iter().any(|stream| *stream >= limit) {
            return Err(ChangeError::Invalid);
        }
        let streams = streams.to_vec();
        self.wish(match direction {
            Direction::Outgoing => PendingRequest::ResetOutgoing { streams, answers: None },
            Direction::Incoming => PendingRequest::ResetIncoming { streams },
        })
    }

    /// The user wants all TSNs and SSNs to begin anew.
    pub(crate) fn reset_tsns(&mut self) -> Result<(), ChangeError> {
        self.wish(PendingRequest::ResetTsns)
    }

    /// The user wants more streams.
    pub(crate) fn add_streams(&mut self, direction: Direction, count: u16) -> Result<(), ChangeError> {
        let present = if direction == Direction::Outgoing { self.streams.0 } else { self.streams.1 };
        if count == 0 || present.checked_add(count).is_none() {
            return Err(ChangeError::Invalid);
        }
        self.wish(match direction {
            Direction::Outgoing => PendingRequest::AddOutgoing(count),
            Direction::Incoming => PendingRequest::AddIncoming(count),
        })
    }

    fn wish(&mut self, wish: PendingRequest) -> Result<(), ChangeError> {
        let able = self.state == State::Established;
        let state = self.streams_state().filter(|_| able).ok_or(ChangeError::NotAgreed)?;
        if state.wishes.len() >= MAX_WISHES {
            return Err(ChangeError::Busy);
        }
        state.wishes.push_back(wish);
        Ok(())
    }

    /// What there is to ask, to answer, or to do now.
    pub(super) fn work_streams(&mut self, now: Time) {
        if self.streams_state().is_none() || !self.state.sends_data() {
            return;
        }
        self.perform_deferred();
        let answer = self.settle_tsns();
        self.answer(answer.into_iter());
        self.next_request();
        self.send_request(now);
    }

    /// A reset by the peer whose data has arrived by now.
    //= rfc6525#section-5.2.2
    fn perform_deferred(&mut self) {
        let cumulative = self.receiver.cumulative();
        let Some(state) = self.streams_state() else { return };
        let Some(reset) = state.deferred.take_if(|reset| !reset.last_tsn.after(cumulative)) else { return };
        let answer = state.settle(reset.request, Response::PERFORMED, None);
        self.reset_incoming(&reset);
        self.answer(answer.into_iter());
    }

    fn reset_incoming(&mut self, reset: &OutgoingReset) {
        self.receiver.reset_streams(&reset.streams, reset.last_tsn.next());
        self.announce_readable();
        let (direction, streams, outcome) = (Direction::Incoming, reset.streams.clone(), Outcome::Done);
        self.events.push_back(Event::StreamsReset { direction, streams, outcome });
    }

    fn answer(&mut self, answers: impl Iterator<Item = Response>) {
        let params: Vec<_> = answers.map(Param::Response).collect();
        if !params.is_empty() && self.may_reply() {
            let path = self.open_path(self.sender.in_use);
            self.control.push_back((path, Chunk::ReConfig(ReConfig { params }), Purpose::Streams));
        }
    }

    /// The oldest wish becomes the request, once what was given before it has its TSN.
    //= rfc6525#section-5.1.1
    fn next_request(&mut self) {
        let Some(state) = self.extended.as_ref().and_then(|extended| extended.streams.as_ref()) else {
            return;
        };
        let ready = state.request.is_none()
            && state.wishes.front().is_some_and(|wish| match wish {
                PendingRequest::ResetOutgoing { streams, .. } => {
                    !self.sender.queue.any(|stream| covers(streams, stream))
                }
                PendingRequest::ResetTsns => self.sender.is_empty(),
                _ => true,
            });
        if !ready {
            return;
        }
        let (last_tsn, path) = (self.sender.outstanding.highest(), self.sender.in_use);
        let Some(state) = self.streams_state() else { return };
        let Some(wish) = state.wishes.pop_front() else { return };
        let request = state.next;
        state.next = state.next.wrapping_add(1);
        let last_heard = state.expected.wrapping_sub(1);
        let param = match &wish {
            PendingRequest::ResetOutgoing { streams, answers } => Param::OutgoingReset(OutgoingReset {
                request,
                response: answers.unwrap_or(last_heard),
                last_tsn,
                streams: streams.clone(),
            }),
            PendingRequest::ResetIncoming { streams } => {
                Param::IncomingReset(IncomingReset { request, streams: streams.clone() })
            }
            PendingRequest::ResetTsns => Param::TsnReset(request),
            PendingRequest::AddOutgoing(count) => Param::AddOutgoing(AddStreams { request, count: *count }),
            PendingRequest::AddIncoming(count) => Param::AddIncoming(AddStreams { request, count: *count }),
        };
        let (timer, restarts) = (Time::NEVER, matches!(wish, PendingRequest::ResetTsns));
        state.request = Some(Request { number: request, wish, param, path, timer, due: true, heard: false });
        if restarts {
            self.receiver.expect_restart(true);
        }
    }

    fn send_request(&mut self, now: Time) {
        let path = self.open_path(self.sender.in_use);
        let rto = self.paths.view(path).rto;
        let Some(request) = self.streams_state().and_then(|state| state.request.as_mut()) else { return };
        if std::mem::take(&mut request.due) {
            (request.path, request.timer) = (path, now + rto);
            let params = vec![request.param.clone()];
            self.control.push_back((path, Chunk::ReConfig(ReConfig { params }), Purpose::Streams));
        }
    }

    /// The Re-configuration Timer.
    //= rfc6525#section-5.1.1
    pub(super) fn streams_timer(&mut self, now: Time) {
        let Some(request) = self.streams_state().and_then(|state| state.request.as_mut()) else { return };
        if request.timer > now {
            return;
        }
        (request.timer, request.due) = (Time::NEVER, true);
        //= rfc6525#section-5.2.7
        let (path, heard) = (request.path, std::mem::take(&mut request.heard));
        if !heard {
            self.control_unanswered(path, now);
        }
    }

    /// RE-CONFIG came.
    //= rfc6525#section-5.2.1
    pub(super) fn reconfig(&mut self, chunk: &ReConfig, came: PacketOrigin) {
        if !self.state.receives_data() {
            return;
        }
        if !allowed(&chunk.params) {
            let what = b"RE-CONFIG with parameters that do not go together".as_slice();
            return self.report(came.path, Cause::ProtocolViolation(what.into()));
        }
        let answers: Vec<Response> =
            chunk.params.iter().filter_map(|param| self.reconfig_param(param)).collect();
        // Where TSNs have begun anew, a SACK would speak of some that the peer, until it has the answer, does not know.
        let anew = answers.iter().any(|answer| answer.next.is_some());
        if !anew && chunk.params.iter().any(|param| !matches!(param, Param::Response(_))) {
            self.receiver.schedule.now = true;
        }
        self.answer(answers.into_iter());
    }

    /// Takes one parameter; what is to be answered.
    fn reconfig_param(&mut self, param: &Param) -> Option<Response> {
        let number = match param {
            Param::OutgoingReset(reset) => reset.request,
            Param::IncomingReset(reset) => reset.request,
            Param::TsnReset(request) => *request,
            Param::AddOutgoing(add) | Param::AddIncoming(add) => add.request,
            Param::Response(response) => {
                self.response(response);
                return None;
            }
            Param::Unknown { .. } => return None,
        };
        let answer = |result| Response { request: number, result, next: None };
        let able = self.state == State::Established;
        let state = self.streams_state()?;
        if number != state.expected {
            // Asked again: the same answer, whatever it is by now. Anything else is out of order.
            return Some(state.answered(number).map_or(answer(Response::BAD_NUMBER), |answer| *answer));
        }
        state.expected = number.wrapping_add(1);
        state.answers.truncate(MAX_ANSWERS - 1);
        state.answers.push_front(answer(Response::DENIED));
        let result = if able { self.request(param) } else { Response::DENIED };
        self.streams_state()?.answered(number).map(|answer| {
            answer.result = result;
            *answer
        })
    }

    /// The peer asks something new; the result.
    fn request(&mut self, param: &Param) -> u32 {
        match param {
            Param::OutgoingReset(reset) => self.peer_resets(reset),
            Param::IncomingReset(reset) => self.peer_asks_for_reset(reset),
            Param::TsnReset(number) => self.peer_resets_tsns(*number),
            Param::AddOutgoing(add) => self.peer_adds(add.count),
            Param::AddIncoming(add) => self.peer_asks_for_more(add.count),
            Param::Response(_) | Param::Unknown { .. } => Response::DENIED,
        }
    }

    //= rfc6525#section-5.2.2
    fn peer_resets(&mut self, reset: &OutgoingReset) -> u32 {
        let inbound = self.streams.1;
        let cumulative = self.receiver.cumulative();
        let Some(state) = self.streams_state() else { return Response::DENIED };
        if reset.streams.iter().any(|stream| *stream >= inbound) {
            return Response::WRONG_SSN;
        }
        if state.deferred.is_some() {
            return Response::BUSY;
        }
        state.request.take_if(|request| {
            request.number == reset.response && matches!(request.wish, PendingRequest::ResetIncoming { .. })
        });
        if reset.last_tsn.after(cumulative) {
            state.deferred = Some(reset.clone());
            return Response::IN_PROGRESS;
        }
        self.reset_incoming(reset);
        Response::PERFORMED
    }

    //= rfc6525#section-5.2.3
    fn peer_asks_for_reset(&mut self, reset: &IncomingReset) -> u32 {
        let outbound = self.streams.0;
        let begun = self.sender.queue.begun(&reset.streams);
        let Some(state) = self.streams_state() else { return Response::DENIED };
        if reset.streams.iter().any(|stream| *stream >= outbound) {
            return Response::WRONG_SSN;
        }
        let under_way = state.request.as_ref().is_some_and(|request| match &request.wish {
            PendingRequest::ResetOutgoing { streams, .. } => {
                streams.is_empty()
                    || !reset.streams.is_empty() && reset.streams.iter().all(|s| streams.contains(s))
            }
            _ => false,
        });
        if under_way || !begun {
            return Response::NOTHING_TO_DO;
        }
        if state.wishes.len() >= MAX_WISHES {
            return Response::DENIED;
        }
        let (streams, answers) = (reset.streams.clone(), Some(reset.request));
        state.wishes.push_back(PendingRequest::ResetOutgoing { streams, answers });
        Response::IN_PROGRESS
    }

    /// All of ours is acknowledged first: the standard would let us take it for acknowledged. If it is, there is one
    /// answer only: usrsctp 0.9.5 takes "in progress" for the last.
    //= rfc6525#section-5.2.4
    fn peer_resets_tsns(&mut self, number: u32) -> u32 {
        if let Some(state) = self.streams_state() {
            state.settling = Some(number);
        }
        self.settle_tsns().map_or(Response::IN_PROGRESS, |answer| answer.result)
    }

    /// Begins anew if the peer wants that and nothing of ours is under way; the answer.
    fn settle_tsns(&mut self) -> Option<Response> {
        let idle = self.sender.is_empty();
        let ours = self.sender.outstanding.next_tsn().plus(STEP);
        let theirs = self.receiver.cumulative().next().plus(HALF);
        let state = self.streams_state()?;
        let number = state.settling.take_if(|_| idle)?;
        let answer = state.settle(number, Response::PERFORMED, Some((ours, theirs)));
        self.begin_anew(ours, theirs);
        answer
    }

    /// Our next TSN, the peer's next TSN; all SSNs are 0.
    fn begin_anew(&mut self, ours: Tsn, theirs: Tsn) {
        self.sender.restart(ours);
        self.paths.forget_order();
        self.receiver.restart(theirs);
        self.announce_readable();
        self.release();
        self.events.push_back(Event::TsnsReset(Outcome::Done));
    }

    //= rfc6525#section-5.2.5
    fn peer_adds(&mut self, count: u16) -> u32 {
        let wanted = self.streams.1.saturating_add(count);
        if wanted > self.config.inbound_streams {
            return Response::DENIED;
        }
        self.streams.1 = wanted;
        if let Some(state) = self.streams_state() {
            // It may be what we have asked for.
            state.request.take_if(|request| matches!(request.wish, PendingRequest::AddIncoming(_)));
        }
        self.streams_added(Outcome::Done);
        Response::PERFORMED
    }

    fn streams_added(&mut self, outcome: Outcome) {
        let (outgoing, incoming) = self.streams;
        self.events.push_back(Event::StreamsAdded { outgoing, incoming, outcome });
    }

    //= rfc6525#section-5.2.6
    fn peer_asks_for_more(&mut self, count: u16) -> u32 {
        let possible = self.streams.0.checked_add(count).is_some();
        match self.streams_state() {
            Some(state) if possible && state.wishes.len() < MAX_WISHES => {
                state.wishes.push_back(PendingRequest::AddOutgoing(count));
                Response::PERFORMED
            }
            _ => Response::DENIED,
        }
    }

    /// The peer has answered our request.
    //= rfc6525#section-5.2.7
    fn response(&mut self, response: &Response) {
        let Some(state) = self.streams_state() else { return };
        let Some(request) = state.request.as_mut().filter(|request| request.number == response.request)
        else {
            return;
        };
        let path = request.path;
        if response.result == Response::IN_PROGRESS {
            request.heard = true;
            return self.control_answered(path);
        }
        let Some(Request { wish, .. }) = state.request.take() else { return };
        self.control_answered(path);
        let outcome = match response.result {
            Response::NOTHING_TO_DO | Response::PERFORMED => Outcome::Done,
            Response::DENIED => Outcome::Denied,
            _ => Outcome::Failed,
        };
        self.finish_request(wish, outcome, response);
        self.release();
    }

    fn finish_request(&mut self, wish: PendingRequest, outcome: Outcome, response: &Response) {
        let done = outcome == Outcome::Done;
        match wish {
            PendingRequest::ResetOutgoing { streams, answers } => {
                if done {
                    self.sender.queue.reset(&streams);
                }
                if let (Some(number), Some(state)) = (answers, self.streams_state()) {
                    state.settle(number, if done { Response::PERFORMED } else { Response::DENIED }, None);
                }
                self.events.push_back(Event::StreamsReset {
                    direction: Direction::Outgoing,
                    streams,
                    outcome,
                });
            }
            // The reset itself is a request of the peer, and is told when it is done.
            PendingRequest::ResetIncoming { .. } if response.result == Response::PERFORMED => {}
            PendingRequest::ResetIncoming { streams } => {
                self.events.push_back(Event::StreamsReset {
                    direction: Direction::Incoming,
                    streams,
                    outcome,
                });
            }
            PendingRequest::ResetTsns => {
                self.receiver.expect_restart(false);
                match response.next.filter(|_| response.result == Response::PERFORMED) {
                    Some((theirs, ours)) => self.begin_anew(ours, theirs),
                    None => self.events.push_back(Event::TsnsReset(outcome)),
                }
            }
            PendingRequest::AddOutgoing(count) => {
                if done {
                    self.streams.0 = self.streams.0.saturating_add(count);
                }
                self.streams_added(outcome);
            }
            PendingRequest::AddIncoming(_) if done => {}
            PendingRequest::AddIncoming(_) => self.streams_added(outcome),
        }
    }

    /// Messages that waited for an answer are sent.
    fn release(&mut self) {
        let Some(state) = self.streams_state() else { return };
        for (message, given) in state.released() {
            let was_empty = self.sender.queue.is_empty();
            self.sender.queue.push(message, given);
            self.sender.called(was_empty);
        }
    }
}

/// The combinations of the section.
//= rfc6525#section-3.1
fn allowed(params: &[Param]) -> bool {
    use Param::*;
    matches!(
        params,
        [OutgoingReset(_) | IncomingReset(_) | TsnReset(_) | AddOutgoing(_) | AddIncoming(_) | Response(_)]
            | [OutgoingReset(_), IncomingReset(_)]
            | [AddOutgoing(_), AddIncoming(_)]
            | [Response(_), OutgoingReset(_) | Response(_)]
    )
}
