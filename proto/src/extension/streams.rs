//! Stream reconfiguration (RFC 6525): resetting SSNs or all TSNs and SSNs, and adding streams.
//!
//! Messages that the user gave before it requested a reset are sent before the reset. Messages that it gives afterwards
//! wait here until the peer has answered. Requests are sent one at a time, with one parameter in a chunk. The peer may
//! put two parameters into one chunk.

use std::collections::VecDeque;

use super::Congestion;
use super::actions::{Action, Actions};
use super::stream_list::{covers, listed};
use super::stream_request::{PendingRequest, Request, allowed, fits};
use crate::output::{ChangeError, Direction, Event, Outcome, Purpose};
use crate::path::{PathId, Paths};
use crate::receive::Receiver;
use crate::send::Sender;
use crate::shutdown::State;
use crate::wire::chunk::{IncomingReset, OutgoingReset, ReConfig, ReConfigParam as Param, Response};
use crate::wire::{Cause, Chunk};
use crate::{Message, Time, Tsn};

/// The largest number of waiting requests.
const MAX_WISHES: usize = 16;
/// Answers kept in case the peer repeats a request: as many as one chunk can ask for.
const MAX_ANSWERS: usize = 2;
/// Half of all TSNs: the distance by which the peer's next TSN moves when TSNs are reset.
const HALF: u32 = 1 << 31;
/// The distance by which our next TSN moves: one TSN is skipped, as in usrsctp. The standard would not skip any. Then
/// new data that arrives before the answer would be mistaken for old data, with SSNs from before the reset. With one
/// TSN skipped, that data is beyond a gap, where nothing is accepted while the answer is expected, and is sent again.
/// usrsctp 0.9.5 accepts no step beyond its window.
const STEP: u32 = 1;

/// The requests and answers.
#[derive(Clone, Debug)]
pub(crate) struct Reconfiguration {
    /// The sequence numbers of our next request and of the peer's next.
    next: u32,
    expected: u32,
    wishes: VecDeque<PendingRequest>,
    /// No message waits on a stream below this one that the first of them resets.
    passed: u16,
    request: Option<Request>,
    answers: VecDeque<Response>,
    /// A reset requested by the peer that waits for data sent before it.
    deferred: Option<OutgoingReset>,
    /// The number of a TSN reset requested by the peer that waits until all our data is acknowledged.
    settling: Option<u32>,
    /// Messages that wait for an answer, and the time at which the user gave each.
    held: VecDeque<(Message, Time)>,
    held_bytes: u64,
}

/// The parts of an association that stream requests read and change.
pub(crate) struct StreamParts<'a> {
    pub(crate) now: Time,
    pub(crate) state: State,
    /// The largest number of streams of the peer.
    pub(crate) most: u16,
    /// The numbers of streams on which we, and the peer, may send.
    pub(crate) streams: &'a mut (u16, u16),
    pub(crate) paths: &'a mut Paths,
    pub(crate) sender: &'a mut Sender,
    pub(crate) receiver: &'a mut Receiver,
    /// Explicit congestion notification, if both ends use it.
    pub(crate) congestion: Option<&'a mut Congestion>,
    pub(crate) actions: &'a mut Actions,
}

impl StreamParts<'_> {
    fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    fn tell(&mut self, event: Event) {
        self.act(Action::Tell(event));
    }

    /// Messages may have become complete.
    fn announce_readable(&mut self) {
        if self.receiver.has_ready() {
            self.act(Action::Readable);
        }
    }

    /// Sends answers on this path.
    fn answer(&mut self, path: PathId, answers: impl Iterator<Item = Response>) {
        let params: Vec<_> = answers.map(Param::Response).collect();
        if !params.is_empty() {
            let chunk = Chunk::ReConfig(ReConfig { params });
            self.act(Action::Reply(path, chunk, Purpose::Streams));
        }
    }

    fn streams_added(&mut self, outcome: Outcome) {
        let (outgoing, incoming) = *self.streams;
        self.tell(Event::StreamsAdded { outgoing, incoming, outcome });
    }

    fn reset_incoming(&mut self, reset: &OutgoingReset) {
        self.receiver.reset_streams(&listed(&reset.streams), reset.last_tsn.next());
        self.announce_readable();
        let (direction, streams, outcome) = (Direction::Incoming, reset.streams.clone(), Outcome::Done);
        self.tell(Event::StreamsReset { direction, streams, outcome });
    }
}

impl Reconfiguration {
    //= rfc6525#section-4.1
    pub(super) fn new(local: Tsn, peer: Tsn) -> Self {
        Reconfiguration {
            next: local.0,
            expected: peer.0,
            wishes: VecDeque::new(),
            passed: 0,
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

    /// Whether a message on this stream must wait.
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

    /// Takes the messages that need not wait any longer.
    fn released(&mut self) -> Vec<(Message, Time)> {
        let waiting = std::mem::take(&mut self.held);
        let (held, free): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|(m, _)| self.holds(m.stream));
        self.held = held.into();
        self.held_bytes -= free.iter().map(|(m, _)| m.payload.len() as u64).sum::<u64>();
        free
    }

    /// The streams for which this end has asked and that the peer has not granted yet.
    pub(crate) fn incoming_asked(&self) -> u32 {
        let count = |wish: &PendingRequest| match wish {
            PendingRequest::AddIncoming(count) => u32::from(*count),
            _ => 0,
        };
        self.wished().map(count).sum()
    }

    /// The association begins anew with these numbers of streams, and no request is carried out any more: what the user
    /// is told.
    pub(crate) fn give_up(&mut self, streams: (u16, u16)) -> Vec<Event> {
        let sent = self.request.take().map(|request| request.wish);
        sent.into_iter().chain(self.wishes.drain(..)).filter_map(|wish| wish.failed(streams)).collect()
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Message> + '_ {
        self.held_bytes = 0;
        self.held.drain(..).map(|(message, _)| message)
    }

    pub(super) fn deadline(&self) -> Time {
        self.request.as_ref().map_or(Time::NEVER, |request| request.timer)
    }

    /// The answer to the peer's last request, if that was to reset all TSNs. The peer may not have heard it.
    pub(crate) fn restart_answer(&self) -> Option<Chunk> {
        let answer = *self.answers.front().filter(|answer| answer.next.is_some())?;
        Some(Chunk::ReConfig(ReConfig { params: vec![Param::Response(answer)] }))
    }

    /// The answer that was given to the peer's request `number`.
    fn answered(&mut self, number: u32) -> Option<&mut Response> {
        self.answers.iter_mut().find(|answer| answer.request == number)
    }

    /// Changes an answer that was "in progress", and returns the new one.
    fn settle(&mut self, number: u32, result: u32, next: Option<(Tsn, Tsn)>) -> Option<Response> {
        let answer = self.answered(number)?;
        (answer.result, answer.next) = (result, next);
        Some(*answer)
    }
}

impl Reconfiguration {
    /// The user requests a reset of streams. The request must fit a packet with `room` bytes.
    pub(crate) fn reset_streams(
        &mut self,
        direction: Direction,
        streams: &[u16],
        room: u32,
    ) -> Result<(), ChangeError> {
        let streams = listed(streams);
        if !fits(&streams, room) {
            return Err(ChangeError::Invalid);
        }
        self.wish(match direction {
            Direction::Outgoing => PendingRequest::ResetOutgoing { streams, answers: None },
            Direction::Incoming => PendingRequest::ResetIncoming { streams },
        })
    }

    /// The user requests a reset of all TSNs and SSNs.
    pub(crate) fn reset_tsns(&mut self) -> Result<(), ChangeError> {
        self.wish(PendingRequest::ResetTsns)
    }

    /// The user requests additional streams.
    pub(crate) fn add_streams(&mut self, direction: Direction, count: u16) -> Result<(), ChangeError> {
        self.wish(match direction {
            Direction::Outgoing => PendingRequest::AddOutgoing(count),
            Direction::Incoming => PendingRequest::AddIncoming(count),
        })
    }

    fn wish(&mut self, wish: PendingRequest) -> Result<(), ChangeError> {
        if self.wishes.len() >= MAX_WISHES {
            return Err(ChangeError::Busy);
        }
        self.wishes.push_back(wish);
        Ok(())
    }

    /// Carries out whatever is due: requests, answers and resets.
    pub(crate) fn work(&mut self, at: &mut StreamParts<'_>) {
        self.perform_deferred(at);
        let answer = self.settle_tsns(at);
        at.answer(at.sender.in_use, answer.into_iter());
        self.next_request(at);
        self.send_request(at);
    }

    /// As `work`, when the end has come so far that no data is sent: a reset of streams that waits for data of the peer
    /// is carried out when that has arrived, and a reset of TSNs that still waits is denied.
    //= rfc6525#section-5.2.2
    pub(crate) fn work_at_the_end(&mut self, at: &mut StreamParts<'_>) {
        self.perform_deferred(at);
        let number = self.settling.take();
        let answer = number.and_then(|number| self.settle(number, Response::DENIED, None));
        at.answer(at.sender.in_use, answer.into_iter());
    }

    /// Carries out a reset requested by the peer when all data before it has arrived.
    //= rfc6525#section-5.2.2
    fn perform_deferred(&mut self, at: &mut StreamParts<'_>) {
        let cumulative = at.receiver.cumulative();
        let Some(reset) = self.deferred.take_if(|reset| !reset.last_tsn.after(cumulative)) else { return };
        let answer = self.settle(reset.request, Response::PERFORMED, None);
        at.reset_incoming(&reset);
        at.answer(at.sender.in_use, answer.into_iter());
    }

    /// Sends the oldest waiting request when all messages given before it have their TSNs.
    //= rfc6525#section-5.1.1
    fn next_request(&mut self, at: &mut StreamParts<'_>) {
        if self.request.is_some() || !self.may_request(at.sender) {
            return;
        }
        let Some(wish) = self.wishes.pop_front() else { return };
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let param = wish.param(number, self.expected.wrapping_sub(1), at.sender.outstanding.highest());
        if wish == PendingRequest::ResetTsns {
            at.receiver.expect_restart(true);
        }
        self.request = Some(Request::new(number, wish, param, at.sender.in_use));
    }

    /// Whether the oldest waiting request, if there is one, need not wait for messages. Later messages of its streams
    /// are held, so a stream on which none waits is not looked at again.
    fn may_request(&mut self, sender: &Sender) -> bool {
        match self.wishes.front() {
            None => false,
            Some(PendingRequest::ResetOutgoing { streams, .. }) => {
                let waits = sender.queue.first_waiting(streams, self.passed);
                self.passed = waits.unwrap_or(0);
                waits.is_none()
            }
            Some(PendingRequest::ResetTsns) => sender.is_empty(),
            Some(_) => true,
        }
    }

    fn send_request(&mut self, at: &mut StreamParts<'_>) {
        let Some(request) = &mut self.request else { return };
        if std::mem::take(&mut request.due) {
            request.path = at.paths.open(at.sender.in_use, at.sender.in_use);
            request.start_timer(at.now, at.paths);
            let (path, params) = (request.path, vec![request.param.clone()]);
            at.act(Action::Send(path, Chunk::ReConfig(ReConfig { params }), Purpose::Streams));
        }
    }

    /// If the Re-configuration Timer has expired: the path on which the request was not answered.
    //= rfc6525#section-5.1.1
    pub(crate) fn expired(&mut self, now: Time) -> Option<PathId> {
        let request = self.request.as_mut()?;
        if !request.expires(now) {
            return None;
        }
        //= rfc6525#section-5.2.7
        let heard = std::mem::take(&mut request.heard);
        request.waits_in_progress += u32::from(heard);
        (!heard).then_some(request.path)
    }

    /// A RE-CONFIG chunk has arrived on this path. Its answer goes to where it came from. A peer that has sent SHUTDOWN
    /// still answers our requests, for which messages may wait.
    //= rfc6525#section-5.2.1
    //= rfc9260#section-6.4
    pub(crate) fn reconfig(&mut self, chunk: &ReConfig, came: PathId, at: &mut StreamParts<'_>) {
        if !at.state.receives_data() && !at.state.sends_data() {
            return;
        }
        if !allowed(&chunk.params) {
            let what = b"RE-CONFIG with parameters that do not go together".as_slice();
            return at.act(Action::Report(came, Cause::ProtocolViolation(what.into())));
        }
        let answers: Vec<Response> =
            chunk.params.iter().filter_map(|param| self.reconfig_param(param, at)).collect();
        // After a reset of TSNs, a SACK would contain TSNs that the peer does not know until it has the answer.
        let anew = answers.iter().any(|answer| answer.next.is_some());
        if !anew && chunk.params.iter().any(|param| !matches!(param, Param::Response(_))) {
            at.receiver.schedule.now = true;
        }
        at.answer(came, answers.into_iter());
    }

    /// Processes one parameter. Returns the answer to it.
    fn reconfig_param(&mut self, param: &Param, at: &mut StreamParts<'_>) -> Option<Response> {
        let number = match param {
            Param::OutgoingReset(reset) => reset.request,
            Param::IncomingReset(reset) => reset.request,
            Param::TsnReset(request) => *request,
            Param::AddOutgoing(add) | Param::AddIncoming(add) => add.request,
            Param::Response(response) => {
                self.response(response, at);
                return None;
            }
            Param::Unknown { .. } => return None,
        };
        let answer = |result| Response { request: number, result, next: None };
        if number != self.expected {
            // A repeated request gets the present answer. Any other number is out of order.
            return Some(self.answered(number).map_or(answer(Response::BAD_NUMBER), |answer| *answer));
        }
        self.expected = number.wrapping_add(1);
        self.answers.truncate(MAX_ANSWERS - 1);
        self.answers.push_front(answer(Response::DENIED));
        let able = at.state == State::Established;
        let result = if able { self.request(param, at) } else { Response::DENIED };
        self.answered(number).map(|answer| {
            answer.result = result;
            *answer
        })
    }

    /// Processes a new request of the peer. Returns the result.
    fn request(&mut self, param: &Param, at: &mut StreamParts<'_>) -> u32 {
        match param {
            Param::OutgoingReset(reset) => self.peer_resets(reset, at),
            Param::IncomingReset(reset) => self.peer_asks_for_reset(reset, at),
            Param::TsnReset(number) => self.peer_resets_tsns(*number, at),
            Param::AddOutgoing(add) => self.peer_adds(add.count, at),
            Param::AddIncoming(add) => self.peer_asks_for_more(add.count, at),
            Param::Response(_) | Param::Unknown { .. } => Response::DENIED,
        }
    }

    //= rfc6525#section-5.2.2
    fn peer_resets(&mut self, reset: &OutgoingReset, at: &mut StreamParts<'_>) -> u32 {
        if reset.streams.iter().any(|stream| *stream >= at.streams.1) {
            return Response::WRONG_SSN;
        }
        if self.deferred.is_some() {
            return Response::BUSY;
        }
        self.request.take_if(|request| {
            request.number == reset.response && matches!(request.wish, PendingRequest::ResetIncoming { .. })
        });
        if reset.last_tsn.after(at.receiver.cumulative()) {
            at.receiver.defer_reset(listed(&reset.streams), reset.last_tsn);
            self.deferred = Some(reset.clone());
            return Response::IN_PROGRESS;
        }
        at.reset_incoming(reset);
        Response::PERFORMED
    }

    //= rfc6525#section-5.2.3
    fn peer_asks_for_reset(&mut self, reset: &IncomingReset, at: &mut StreamParts<'_>) -> u32 {
        if reset.streams.iter().any(|stream| *stream >= at.streams.0) {
            return Response::WRONG_SSN;
        }
        let asked = listed(&reset.streams);
        let begun = at.sender.queue.begun(&asked);
        let under_way = self.request.as_ref().is_some_and(|request| match &request.wish {
            PendingRequest::ResetOutgoing { streams, .. } => {
                streams.is_empty() || !asked.is_empty() && asked.iter().all(|s| covers(streams, *s))
            }
            _ => false,
        });
        if under_way || !begun {
            return Response::NOTHING_TO_DO;
        }
        // Both ends ask at once. Each would wait for the other: there is one request at a time, and ours ends with the
        // reset of the peer.
        if self.request.as_ref().is_some_and(|own| matches!(own.wish, PendingRequest::ResetIncoming { .. })) {
            return Response::BUSY;
        }
        if !fits(&asked, at.paths.smallest_pmdcs()) || self.wishes.len() >= MAX_WISHES {
            return Response::DENIED;
        }
        let (streams, answers) = (asked, Some(reset.request));
        self.wishes.push_back(PendingRequest::ResetOutgoing { streams, answers });
        Response::IN_PROGRESS
    }

    /// All our data must be acknowledged before the answer. The standard would allow treating it as acknowledged. If
    /// all is acknowledged, there is only one answer, because usrsctp 0.9.5 takes "in progress" for the final one.
    //= rfc6525#section-5.2.4
    fn peer_resets_tsns(&mut self, number: u32, at: &mut StreamParts<'_>) -> u32 {
        // Both ends ask at once. If both carried it out, each would begin with the numbers that the other has already
        // left.
        if self.request.as_ref().is_some_and(|request| request.wish == PendingRequest::ResetTsns) {
            return Response::BUSY;
        }
        self.settling = Some(number);
        self.settle_tsns(at).map_or(Response::IN_PROGRESS, |answer| answer.result)
    }

    /// Carries out a TSN reset if the peer has requested one and none of our data is unacknowledged. Returns the
    /// answer.
    fn settle_tsns(&mut self, at: &mut StreamParts<'_>) -> Option<Response> {
        let number = self.settling.take_if(|_| at.sender.is_empty())?;
        let ours = at.sender.outstanding.next_tsn().plus(STEP);
        let theirs = at.receiver.cumulative().next().plus(HALF);
        let answer = self.settle(number, Response::PERFORMED, Some((ours, theirs)));
        // The peer sends nothing between its request and our answer.
        let deferred = self.deferred.take();
        self.begin_anew(ours, theirs, deferred, at);
        answer
    }

    /// Sets our next TSN and the peer's next TSN, and all SSNs to 0. That includes what this deferred reset would do.
    fn begin_anew(
        &mut self,
        ours: Tsn,
        theirs: Tsn,
        deferred: Option<OutgoingReset>,
        at: &mut StreamParts<'_>,
    ) {
        if let Some(reset) = deferred {
            self.settle(reset.request, Response::PERFORMED, None);
        }
        at.sender.restart(ours);
        at.paths.restart();
        at.receiver.restart(theirs, self.deferred.is_some());
        if let Some(congestion) = &mut at.congestion {
            **congestion = Congestion::default();
        }
        at.announce_readable();
        self.release(at);
        at.tell(Event::TsnsReset(Outcome::Done));
    }

    //= rfc6525#section-5.2.5
    fn peer_adds(&mut self, count: u16, at: &mut StreamParts<'_>) -> u32 {
        let Some(wanted) = at.streams.1.checked_add(count).filter(|wanted| *wanted <= at.most) else {
            return Response::DENIED;
        };
        at.streams.1 = wanted;
        // This may be all that the peer answers at first, so its silence is no error. But our request ends with its own
        // answer: if it was lost, the peer still expects its number.
        if let Some(own) =
            self.request.as_mut().filter(|own| matches!(own.wish, PendingRequest::AddIncoming(_)))
        {
            own.heard = true;
        }
        at.streams_added(Outcome::Done);
        Response::PERFORMED
    }

    //= rfc6525#section-5.2.6
    fn peer_asks_for_more(&mut self, count: u16, at: &StreamParts<'_>) -> u32 {
        if at.streams.0.checked_add(count).is_none() || self.wishes.len() >= MAX_WISHES {
            return Response::DENIED;
        }
        self.wishes.push_back(PendingRequest::AddOutgoing(count));
        Response::PERFORMED
    }

    /// The peer has answered our request.
    //= rfc6525#section-5.2.7
    fn response(&mut self, response: &Response, at: &mut StreamParts<'_>) {
        let Some(request) = self.request.as_mut().filter(|request| request.number == response.request) else {
            return;
        };
        let path = request.path;
        if response.result == Response::IN_PROGRESS {
            request.heard = true;
            request.start_timer(at.now, at.paths);
            return at.act(Action::Answered(path));
        }
        let Some(Request { wish, param, .. }) = self.request.take() else { return };
        at.act(Action::Answered(path));
        let outcome = match response.result {
            Response::NOTHING_TO_DO | Response::PERFORMED => Outcome::Done,
            Response::DENIED => Outcome::Denied,
            _ => Outcome::Failed,
        };
        if let (Outcome::Done, Param::OutgoingReset(reset)) = (outcome, &param) {
            at.sender.restart_streams(&reset.streams, reset.last_tsn);
        }
        self.finish_request(wish, outcome, response, at);
        self.release(at);
    }

    fn finish_request(
        &mut self,
        wish: PendingRequest,
        outcome: Outcome,
        response: &Response,
        at: &mut StreamParts<'_>,
    ) {
        let done = outcome == Outcome::Done;
        match wish {
            PendingRequest::ResetOutgoing { streams, answers } => {
                if let Some(number) = answers {
                    self.settle(number, if done { Response::PERFORMED } else { Response::DENIED }, None);
                }
                at.tell(Event::StreamsReset { direction: Direction::Outgoing, streams, outcome });
            }
            // The reset itself arrives as a request of the peer, and is reported when it is done.
            PendingRequest::ResetIncoming { .. } if response.result == Response::PERFORMED => {}
            PendingRequest::ResetIncoming { streams } => {
                at.tell(Event::StreamsReset { direction: Direction::Incoming, streams, outcome });
            }
            PendingRequest::ResetTsns => {
                at.receiver.expect_restart(false);
                match response.next.filter(|_| response.result == Response::PERFORMED) {
                    Some((theirs, ours)) => {
                        // A reset that overtook the answer counts in the new TSNs.
                        let deferred = self.deferred.take_if(|reset| reset.last_tsn.before(theirs));
                        self.begin_anew(ours, theirs, deferred, at);
                    }
                    None => at.tell(Event::TsnsReset(outcome)),
                }
            }
            PendingRequest::AddOutgoing(count) => {
                if done {
                    at.streams.0 = at.streams.0.saturating_add(count);
                }
                at.streams_added(outcome);
            }
            PendingRequest::AddIncoming(_) if done => {}
            PendingRequest::AddIncoming(_) => at.streams_added(outcome),
        }
    }

    /// Sends messages that waited for an answer.
    fn release(&mut self, at: &mut StreamParts<'_>) {
        for (message, given) in self.released() {
            let was_empty = at.sender.queue.is_empty();
            at.sender.queue.push(message, given);
            at.sender.called(was_empty);
        }
    }
}
