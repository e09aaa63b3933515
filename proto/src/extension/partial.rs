//! Partial reliability (RFC 3758, RFC 7496): messages are given up, and FORWARD TSN tells the peer so.
//!
//! Only messages with a limit are kept account of here, by a number of their own: a reliable message costs a zero
//! in the queue. What a chunk in flight may still become is nobody's guess, so a message is given up when one of
//! its chunks was *found lost* and may not be sent again (then the window was cut as for any other), or before its
//! first fragment was sent. One that is under way when its lifetime ends is sent to its end: were it given up, what
//! was sent would be wasted and grow no window, and a sender with more messages than time would waste nearly all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{Duration, Message, Reliability, Time, Tsn};

/// The messages that have limits, as far as they are not acknowledged.
#[derive(Clone, Default, Debug)]
pub(crate) struct LimitedMessages {
    last: u64,
    terms: BTreeMap<u64, Terms>,
    /// How many of them have a priority.
    ranked: usize,
    /// When lifetimes end, with the number of the message.
    expiries: BTreeSet<(Time, u64)>,
    /// Chunks of such messages that were sent, in order.
    chunks: VecDeque<LimitedChunk>,
    forward: ForwardState,
    /// Messages given up that the user has not been told of, and whether a part of each was sent.
    failed: Vec<(Message, bool)>,
}

/// What limits a message.
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

/// The last FORWARD TSN and the next.
#[derive(Clone, Debug)]
struct ForwardState {
    /// One is to be sent.
    due: bool,
    /// The Advanced.Peer.Ack.Point that was said last, and when.
    said: Option<(Tsn, Time)>,
    /// When it is said again if nothing is heard; this is the T3-rtx of chunks that are no longer in flight.
    timer: Time,
}

impl Default for ForwardState {
    fn default() -> Self {
        ForwardState { due: false, said: None, timer: Time::NEVER }
    }
}

impl LimitedMessages {
    /// Enters a message given to be sent; its number, or 0 if it has no limits.
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

    /// A chunk of a message gets its TSN.
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

    /// The message is no longer here.
    pub(crate) fn strike(&mut self, message: u64) {
        if let Some(terms) = self.terms.remove(&message) {
            self.expiries.remove(&(terms.until, message));
            self.ranked -= usize::from(matches!(terms.reliability, Reliability::Priority(_)));
        }
    }

    /// Forgets the chunks that are cumulatively acknowledged.
    pub(crate) fn trim(&mut self, point: Tsn) {
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

    /// Whether a chunk of this message may not be sent once more after `transmissions`.
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

    /// The limits of a message; full reliability if it is not here.
    pub(crate) fn reliability(&self, message: u64) -> Reliability {
        self.terms.get(&message).map_or(Reliability::Full, |terms| terms.reliability)
    }

    /// A message whose lifetime has ended by now, once.
    //= rfc3758#section-4.1
    pub(crate) fn next_expired(&mut self, now: Time) -> Option<u64> {
        let &(_, number) = self.expiries.first().filter(|(at, _)| *at <= now)?;
        self.expiries.pop_first();
        if let Some(terms) = self.terms.get_mut(&number) {
            terms.expired = true;
        }
        Some(number)
    }

    /// A message was given up, of which a part was sent or none: the user has to be told.
    pub(crate) fn give_up(&mut self, message: Message, sent: bool) {
        self.failed.push((message, sent));
    }

    /// The messages given up that the user was not told of.
    pub(crate) fn take_failed(&mut self) -> Vec<(Message, bool)> {
        std::mem::take(&mut self.failed)
    }

    /// The Advanced.Peer.Ack.Point is this, or none: decides whether the peer has to be told. It is told again when an RTT has
    /// passed and a SACK shows that it does not know.
    //= rfc3758#section-3.5
    pub(crate) fn advance(&mut self, point: Option<Tsn>, now: Time, rtt: Duration) {
        let forward = &mut self.forward;
        match point {
            None => *forward = ForwardState::default(),
            Some(point) => {
                forward.due |= forward.said.is_none_or(|(said, when)| said != point || now >= when + rtt);
            }
        }
    }

    /// Whether FORWARD TSN is to be sent.
    pub(crate) fn forward_is_due(&self) -> bool {
        self.forward.due
    }

    /// FORWARD TSN up to this point leaves now.
    pub(crate) fn forward_sent(&mut self, point: Tsn, now: Time, rto: Duration) {
        self.forward = ForwardState { due: false, said: Some((point, now)), timer: now + rto };
    }

    /// Whether FORWARD TSN was not answered within an RTO: then it is sent again.
    pub(crate) fn forward_unanswered(&mut self, now: Time) -> bool {
        let late = self.forward.timer <= now;
        if late {
            self.forward.timer = Time::NEVER;
            self.forward.due = true;
        }
        late
    }

    /// When a lifetime ends, or FORWARD TSN is to be said again.
    pub(crate) fn deadline(&self) -> Time {
        self.expiries.first().map_or(Time::NEVER, |(at, _)| *at).min(self.forward.timer)
    }
}
