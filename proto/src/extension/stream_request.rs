//! The requests of this end about streams (RFC 6525 §4): as they wait, and as they were sent.

use crate::output::{Direction, Event, Outcome};
use crate::path::{PathId, Paths};
use crate::wire::chunk::{
    AddStreams, IncomingReset, OutgoingReset, ReConfig, ReConfigParam as Param, padded,
};
use crate::{Duration, Time, Tsn};

/// A request of this end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PendingRequest {
    /// Resets streams on which we send; an empty list means all. If this answers a request of the peer, it has that
    /// request's number.
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

impl PendingRequest {
    /// The parameter that makes this request under the number `request`. `last_heard`: the number of the peer's last
    /// request. `last_tsn`: the last TSN that was assigned.
    //= rfc6525#section-5.1.2
    pub(super) fn param(&self, request: u32, last_heard: u32, last_tsn: Tsn) -> Param {
        match self {
            PendingRequest::ResetOutgoing { streams, answers } => {
                let (response, streams) = (answers.unwrap_or(last_heard), streams.clone());
                Param::OutgoingReset(OutgoingReset { request, response, last_tsn, streams })
            }
            PendingRequest::ResetIncoming { streams } => {
                Param::IncomingReset(IncomingReset { request, streams: streams.clone() })
            }
            PendingRequest::ResetTsns => Param::TsnReset(request),
            PendingRequest::AddOutgoing(count) => Param::AddOutgoing(AddStreams { request, count: *count }),
            PendingRequest::AddIncoming(count) => Param::AddIncoming(AddStreams { request, count: *count }),
        }
    }

    /// What the user is told if this is not carried out; nothing if it is for a request of the peer. `streams`: the
    /// numbers of streams on which we, and the peer, may send.
    pub(super) fn failed(self, (outgoing, incoming): (u16, u16)) -> Option<Event> {
        let outcome = Outcome::Failed;
        let reset = |direction, streams| Event::StreamsReset { direction, streams, outcome };
        Some(match self {
            PendingRequest::ResetOutgoing { answers: Some(_), .. } => return None,
            PendingRequest::ResetOutgoing { streams, .. } => reset(Direction::Outgoing, streams),
            PendingRequest::ResetIncoming { streams } => reset(Direction::Incoming, streams),
            PendingRequest::ResetTsns => Event::TsnsReset(outcome),
            PendingRequest::AddOutgoing(_) | PendingRequest::AddIncoming(_) => {
                Event::StreamsAdded { outgoing, incoming, outcome }
            }
        })
    }
}

/// A request that was sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) number: u32,
    pub(super) wish: PendingRequest,
    pub(super) param: Param,
    pub(super) path: PathId,
    /// The Re-configuration Timer.
    pub(super) timer: Time,
    pub(super) due: bool,
    /// The peer has answered that the request is in progress, so waiting for it is no error.
    pub(super) heard: bool,
    /// How often the timer has expired after such an answer. Each time doubles the next wait; after an error, the RTO
    /// of the path doubles.
    pub(super) waits_in_progress: u32,
}

impl Request {
    pub(super) fn new(number: u32, wish: PendingRequest, param: Param, path: PathId) -> Self {
        let (timer, due, heard, waits_in_progress) = (Time::NEVER, true, false, 0);
        Request { number, wish, param, path, timer, due, heard, waits_in_progress }
    }

    /// Starts the timer.
    //= rfc6525#section-5.1.1
    pub(super) fn start_timer(&mut self, now: Time, paths: &Paths) {
        let rto: Duration = paths.view(self.path).rto;
        self.timer = now + rto.saturating_mul(1 << self.waits_in_progress.min(16)).min(paths.limits.max);
    }

    /// Whether the timer has expired. If so, the request is sent again.
    pub(super) fn expires(&mut self, now: Time) -> bool {
        let expires = self.timer <= now;
        if expires {
            (self.timer, self.due) = (Time::NEVER, true);
        }
        expires
    }
}

/// Whether a RE-CONFIG that resets these streams fits a packet with `room` bytes for chunks.
//= rfc9260#section-6.10
pub(super) fn fits(streams: &[u16], room: u32) -> bool {
    let reset = OutgoingReset { request: 0, response: 0, last_tsn: Tsn(0), streams: streams.to_vec() };
    padded(ReConfig { params: vec![Param::OutgoingReset(reset)] }.size()) <= room as usize
}

/// Whether this section allows these parameters together. It does not say in which order they stand.
//= rfc6525#section-3.1
pub(super) fn allowed(params: &[Param]) -> bool {
    use Param::*;
    match params {
        [
            OutgoingReset(_) | IncomingReset(_) | TsnReset(_) | AddOutgoing(_) | AddIncoming(_) | Response(_),
        ] => true,
        [one, other] => [(one, other), (other, one)].into_iter().any(|pair| {
            matches!(
                pair,
                (OutgoingReset(_), IncomingReset(_))
                    | (AddOutgoing(_), AddIncoming(_))
                    | (Response(_), OutgoingReset(_) | Response(_))
            )
        }),
        _ => false,
    }
}
