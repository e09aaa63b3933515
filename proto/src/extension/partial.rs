//! Partial reliability (RFC 3758, RFC 7496): messages are given up, and FORWARD TSN reports that to the peer.
//!
//! Only messages with a limit are recorded here, under a number of their own; a reliable message has the number 0 in
//! the queue. A message is given up in two cases only: before its first fragment was sent, or when one of its chunks
//! was *found lost* and may not be sent again (the window was then reduced as for any loss). A message that is partly
//! sent when its lifetime ends is sent completely. Giving it up would waste what was already sent, without growth of
//! the window. A sender that has more messages than it can send in time would waste nearly everything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::path::PathId;
use crate::{Duration, Message, Reliability, Time, Tsn};

/// The unacknowledged messages that have limits.
#[derive(Clone, Default, Debug)]
pub(crate) struct LimitedMessages {
    last: u64,
    terms: BTreeMap<u64, Terms>,
    /// The number of them that have a priority.
    ranked: usize,
    /// The ends of lifetimes, with the numbers of the messages.
    expiries: BTreeSet<(Time, u64)>,
    /// Chunks of such messages that were sent, in order.
    chunks: VecDeque<LimitedChunk>,
    forward: ForwardState,
    restarts: Restarts,
    /// Messages that were given up and not yet reported to the user, and whether a part of each was sent.
    failed: Vec<(Message, bool)>,
}

/// The limits of a message.
#[derive(Clone, Debug)]
struct Terms {
    reliability: Reliability,
    until: Time,
    expired: bool,
    /// The first and the last of its chunks that were sent.
    sent: Option<(Tsn, Tsn)>,
}

/// A chunk of a message with limits.
#[derive(Clone, Debug)]
struct LimitedChunk {
    tsn: Tsn,
    message: u64,
    end: bool,
}

/// The state of FORWARD TSN.
#[derive(Clone, Debug)]
struct ForwardState {
    /// Whether one must be sent.
    due: bool,
    /// The last FORWARD TSN.
    said: Option<SentForward>,
    /// When it is sent again if nothing arrives. This replaces T3-rtx for chunks that are no longer in flight.
    timer: Time,
}

/// A FORWARD TSN that was sent.
#[derive(Copy, Clone, Debug)]
struct SentForward {
    /// The Advanced.Peer.Ack.Point when it left.
    point: Tsn,
    /// The TSN in it: a lower one if its streams did not fit.
    said: Tsn,
    at: Time,
    path: PathId,
}

/// Where the numbers of streams restarted (RFC 6525) while earlier chunks of them were not acknowledged. The peer has
/// passed these chunks, and their numbers mean other messages to it now.
#[derive(Clone, Default, Debug)]
struct Restarts {
    /// The last TSN before all streams restarted.
    all: Option<Tsn>,
    /// The last TSN before a single stream restarted.
    one: BTreeMap<u16, Tsn>,
}

impl Default for ForwardState {
    fn default() -> Self {
        ForwardState { due: false, said: None, timer: Time::NEVER }
    }
}

impl LimitedMessages {
    /// Records a message that the user sends. Returns its number, or 0 if it has no limits.
    pub(crate) fn enter(&mut self, message: &Message, now: Time) -> u64 {
        if message.reliability == Reliability::Full {
            return 0;
        }
        self.last += 1;
        let until = match message.reliability {
            Reliability::Lifetime(millis) => now + Duration::from_millis(millis.into()),
            _ => Time::NEVER,
        };
        if until != Time::NEVER {
            self.expiries.insert((until, self.last));
        }
        let terms = Terms { reliability: message.reliability, until, expired: false, sent: None };
        self.terms.insert(self.last, terms);
        self.ranked += usize::from(matches!(message.reliability, Reliability::Priority(_)));
        self.last
    }

    /// A chunk of a message has got its TSN.
    pub(crate) fn sent(&mut self, tsn: Tsn, message: u64, end: bool) {
        self.chunks.push_back(LimitedChunk { tsn, message, end });
        if let Some(terms) = self.terms.get_mut(&message) {
            terms.sent = Some((terms.sent.map_or(tsn, |(first, _)| first), tsn));
        }
    }

    /// The chunks of a message that were sent and are not acknowledged.
    pub(crate) fn chunks_of(&self, message: u64) -> impl Iterator<Item = Tsn> + use<> {
        let sent = self.terms.get(&message).and_then(|terms| terms.sent);
        let range = sent.map(|(first, last)| {
            let from = self.chunks.partition_point(|piece| piece.tsn.before(first));
            from..self.chunks.partition_point(|piece| !piece.tsn.after(last))
        });
        let pieces = self.chunks.range(range.unwrap_or(0..0));
        let own: Vec<_> = pieces.filter(|piece| piece.message == message).map(|piece| piece.tsn).collect();
        own.into_iter()
    }

    /// Removes a message.
    pub(crate) fn strike(&mut self, message: u64) {
        if let Some(terms) = self.terms.remove(&message) {
            self.expiries.remove(&(terms.until, message));
            self.ranked -= usize::from(matches!(terms.reliability, Reliability::Priority(_)));
        }
    }

    /// The numbers of these streams (none: all) have restarted behind this TSN.
    //= rfc6525#section-5.2.7
    pub(crate) fn restarted(&mut self, streams: &[u16], last: Tsn) {
        if streams.is_empty() {
            self.restarts = Restarts { all: Some(last), one: BTreeMap::new() };
        }
        self.restarts.one.extend(streams.iter().map(|stream| (*stream, last)));
    }

    /// Whether FORWARD TSN names the message of this chunk: its number still means this message.
    pub(crate) fn is_named(&self, stream: u16, tsn: Tsn) -> bool {
        let behind = |last: &Tsn| tsn.after(*last);
        self.restarts.all.as_ref().is_none_or(behind) && self.restarts.one.get(&stream).is_none_or(behind)
    }

    /// Forgets the chunks that are cumulatively acknowledged.
    pub(crate) fn trim(&mut self, point: Tsn) {
        self.restarts.all.take_if(|last| !last.after(point));
        self.restarts.one.retain(|_, last| last.after(point));
        while let Some(piece) = self.chunks.pop_front_if(|piece| !piece.tsn.after(point)) {
            if piece.end {
                self.strike(piece.message);
            }
        }
    }

    /// The message of this chunk, if it has limits.
    pub(crate) fn message_of(&self, tsn: Tsn) -> Option<u64> {
        let at = self.chunks.partition_point(|piece| piece.tsn.before(tsn));
        self.chunks.get(at).filter(|piece| piece.tsn == tsn).map(|piece| piece.message)
    }

    /// Whether a chunk of this message may not be sent again after this number of transmissions.
    //= rfc7496#section-3.1
    //= rfc3758#section-4.1
    pub(crate) fn exhausted(&self, message: u64, transmissions: u32) -> bool {
        self.terms.get(&message).is_some_and(|terms| match terms.reliability {
            Reliability::Retransmissions(most) => transmissions > most,
            _ => terms.expired,
        })
    }

    pub(crate) fn rank(&self, message: u64) -> Option<u32> {
        match self.terms.get(&message)?.reliability {
            Reliability::Priority(rank) => Some(rank),
            _ => None,
        }
    }

    /// Whether any message has a priority.
    pub(crate) fn has_ranks(&self) -> bool {
        self.ranked > 0
    }

    /// The limits of a message; full reliability if it is not recorded.
    pub(crate) fn reliability(&self, message: u64) -> Reliability {
        self.terms.get(&message).map_or(Reliability::Full, |terms| terms.reliability)
    }

    /// Takes a message whose lifetime has ended by now.
    //= rfc3758#section-4.1
    pub(crate) fn next_expired(&mut self, now: Time) -> Option<u64> {
        let &(_, number) = self.expiries.first().filter(|(at, _)| *at <= now)?;
        self.expiries.pop_first();
        if let Some(terms) = self.terms.get_mut(&number) {
            terms.expired = true;
        }
        Some(number)
    }

    /// Records a message that was given up, to be reported to the user. `sent`: whether a part of it was sent.
    pub(crate) fn give_up(&mut self, message: Message, sent: bool) {
        self.failed.push((message, sent));
    }

    /// Takes the messages that were given up since the last call.
    pub(crate) fn take_failed(&mut self) -> Vec<(Message, bool)> {
        std::mem::take(&mut self.failed)
    }

    /// Sets the Advanced.Peer.Ack.Point, and decides whether the peer must be told. It is told again when an RTT has
    /// passed and a SACK shows that it does not know the point. If one FORWARD TSN could not name all streams, the next
    /// one follows as soon as the peer knows the first, and not before: a peer that lost the first would never hear of
    /// its streams.
    //= rfc3758#section-3.5
    pub(crate) fn advance(&mut self, point: Option<Tsn>, cumulative: Tsn, now: Time, rtt: Duration) {
        let forward = &mut self.forward;
        match point {
            None => *forward = ForwardState::default(),
            Some(point) => {
                forward.due |= forward.said.is_none_or(|last| {
                    last.point != point || !last.said.after(cumulative) || now >= last.at + rtt
                });
            }
        }
    }

    /// Whether a FORWARD TSN must be sent.
    pub(crate) fn forward_is_due(&self) -> bool {
        self.forward.due
    }

    /// A FORWARD TSN leaves now on this path. It says `said`; the Advanced.Peer.Ack.Point is `point`.
    pub(crate) fn forward_sent(&mut self, said: Tsn, point: Tsn, path: PathId, now: Time, rto: Duration) {
        let last = SentForward { point, said, at: now, path };
        self.forward = ForwardState { due: false, said: Some(last), timer: now + rto };
    }

    /// If FORWARD TSN was not answered within an RTO and must be sent again: the path on which it left.
    pub(crate) fn forward_unanswered(&mut self, now: Time) -> Option<PathId> {
        let late = self.forward.said.filter(|_| self.forward.timer <= now)?;
        self.forward.timer = Time::NEVER;
        self.forward.due = true;
        Some(late.path)
    }

    /// If a SACK with this Cumulative TSN Ack answers the last FORWARD TSN: the path on which it left.
    pub(crate) fn forward_answered(&self, cumulative: Tsn) -> Option<PathId> {
        self.forward.said.filter(|last| !last.said.after(cumulative)).map(|last| last.path)
    }

    /// When the next lifetime ends or FORWARD TSN must be repeated.
    pub(crate) fn deadline(&self) -> Time {
        self.expiries.first().map_or(Time::NEVER, |(at, _)| *at).min(self.forward.timer)
    }
}
