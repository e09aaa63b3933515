//! Partial reliability (RFC 3758, RFC 7496): messages are given up, and FORWARD TSN tells the peer so.
//!
//! Only messages with a limit are kept account of here, by a number of their own: a reliable message costs a zero
//! in the queue. What a chunk in flight may still become is nobody's guess, so a message is given up when one of
//! its chunks was *found lost* and may not be sent again (then the window was cut as for any other), or before its
//! first fragment was sent. One that is under way when its lifetime ends is sent to its end: were it given up, what
//! was sent would be wasted and grow no window, and a sender with more messages than time would waste nearly all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{Bytes, BytesMut};

use crate::association::Association;
use crate::output::{Event, Purpose, Reason};
use crate::path::Paths;
use crate::receive::Arrival;
use crate::send::outstanding::Outstanding;
use crate::send::{SendContext, Sender};
use crate::wire::chunk::{Data, FORWARD_HEADER, ForwardTsn, IForwardTsn, SkippedMessage};
use crate::wire::{Cause, Chunk, Packet};
use crate::{Duration, Limit, Message, Mid, Reliability, Ssn, Time, Tsn};

/// FORWARD TSNs of one packet that are looked at: each may look at every stream.
const MOST_IN_A_PACKET: u32 = 4;

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
    fn chunks_of(&self, message: u64) -> impl Iterator<Item = Tsn> + use<> {
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
    fn trim(&mut self, point: Tsn) {
        while let Some(piece) = self.chunks.pop_front_if(|piece| !piece.tsn.after(point)) {
            if piece.end {
                self.strike(piece.message);
            }
        }
    }

    /// The message of this chunk, if it has limits.
    fn message_of(&self, tsn: Tsn) -> Option<u64> {
        let at = self.chunks.partition_point(|piece| piece.tsn.before(tsn));
        self.chunks.get(at).filter(|piece| piece.tsn == tsn).map(|piece| piece.message)
    }

    /// Whether a chunk of this message may not be sent once more after `transmissions`.
    //= rfc7496#section-3.1
    //= rfc3758#section-4.1
    fn exhausted(&self, message: u64, transmissions: u32) -> bool {
        self.terms.get(&message).is_some_and(|terms| match terms.reliability {
            Reliability::Retransmissions(most) => transmissions > most,
            _ => terms.expired,
        })
    }

    fn rank(&self, message: u64) -> Option<u32> {
        match self.terms.get(&message)?.reliability {
            Reliability::Priority(rank) => Some(rank),
            _ => None,
        }
    }
}

impl Sender {
    /// After a SACK or a timeout: what may not be sent again is given up, and the peer has to know.
    pub(crate) fn review(&mut self, around: &mut SendContext<'_>) {
        let point = self.outstanding.point();
        if let Some(interleaving) = &mut self.queue.interleaving {
            interleaving.trim(point);
        }
        let Some(ledger) = &mut self.queue.ledger else { return };
        ledger.trim(point);
        for (tsn, transmissions) in self.outstanding.take_newly_marked() {
            let Some(ledger) = &self.queue.ledger else { return };
            if let Some(message) = ledger.message_of(tsn)
                && ledger.exhausted(message, transmissions)
            {
                self.abandon(message, around.paths);
            }
        }
        self.advance(around);
    }

    /// Gives up every chunk of a message, and what of it was not sent.
    //= rfc3758#section-3.5
    fn abandon(&mut self, number: u64, paths: &mut Paths) {
        let waiting = self.queue.remove(number);
        let Some(ledger) = &mut self.queue.ledger else { return };
        let terms = ledger.terms.get(&number).map_or(Reliability::Full, |terms| terms.reliability);
        let chunks = ledger.chunks_of(number);
        ledger.strike(number);
        let mut message = Message { reliability: terms, ..Message::default() };
        let mut pieces: Vec<Bytes> = Vec::new();
        for tsn in chunks {
            if let Some(data) = self.outstanding.abandon(tsn, paths) {
                (message.stream, message.ppid, message.unordered) = (data.stream, data.ppid, data.unordered);
                pieces.push(data.payload);
            }
        }
        let mut sent = !pieces.is_empty();
        if let Some((rest, begun)) = waiting {
            pieces.push(rest.payload.clone());
            message = rest;
            if let Some(ssn) = begun {
                sent = true;
                self.close_message(&message, ssn, number);
            }
        }
        let Some(ledger) = &mut self.queue.ledger else { return };
        message.payload = joined(pieces);
        ledger.failed.push((message, sent));
    }

    /// A TSN that is never sent stands for what of a message was not: else the peer, if it has all that was sent, would
    /// wait for the rest.
    //= rfc3758#section-3.5
    fn close_message(&mut self, message: &Message, ssn: Ssn, number: u64) {
        let Message { stream, ppid, unordered, immediate, .. } = *message;
        let (tsn, begin, end, payload) = (self.outstanding.next_tsn(), false, true, Bytes::new());
        let data = Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload };
        if let Some(ledger) = &mut self.queue.ledger {
            ledger.sent(tsn, number, true);
        }
        if let Some(interleaving) = &mut self.queue.interleaving {
            interleaving.sent(&data);
        }
        self.outstanding.push_abandoned(data, self.in_use);
    }

    /// Works out the Advanced.Peer.Ack.Point, and whether the peer has to be told. It is told again when an RTT
    /// has passed and a SACK shows that it does not know.
    //= rfc3758#section-3.5
    fn advance(&mut self, around: &mut SendContext<'_>) {
        let point = abandoned_point(&self.outstanding);
        let Some(ledger) = &mut self.queue.ledger else { return };
        let forward = &mut ledger.forward;
        let Some(point) = point else {
            *forward = ForwardState::default();
            return;
        };
        let view = around.paths.view(self.in_use);
        let rtt = view.srtt.unwrap_or(view.rto);
        forward.due |= forward.said.is_none_or(|(said, when)| said != point || around.now >= when + rtt);
    }

    /// Whether FORWARD TSN is to be sent: how many bytes it takes; else 0.
    pub(crate) fn forward_size(&self, limit: u32) -> u32 {
        match &self.queue.ledger {
            Some(ledger) if ledger.forward.due => {
                self.forward_chunk(limit).map_or(0, |c| c.0.padded_size() as u32)
            }
            _ => 0,
        }
    }

    /// FORWARD TSN, which leaves now.
    pub(crate) fn take_forward(&mut self, limit: u32, around: &mut SendContext<'_>) -> Option<Chunk> {
        let (chunk, point) = self.forward_chunk(limit)?;
        let ledger = self.queue.ledger.as_mut()?;
        let rto = around.paths.view(self.in_use).rto;
        ledger.forward =
            ForwardState { due: false, said: Some((point, around.now)), timer: around.now + rto };
        Some(chunk)
    }

    /// FORWARD TSN up to the Advanced.Peer.Ack.Point, or as far as its streams fit into `limit` bytes.
    //= rfc3758#section-3.5
    fn forward_chunk(&self, limit: u32) -> Option<(Chunk, Tsn)> {
        if self.queue.interleaving.is_some() {
            return self.interleaved_chunk(limit);
        }
        let end = abandoned_point(&self.outstanding)?;
        let room = room_for_streams(limit)? / 4;
        let mut skipped: BTreeMap<u16, Ssn> = BTreeMap::new();
        let mut point = self.outstanding.point();
        while point != end {
            let Some(sent) = self.outstanding.get(point.next()) else { break };
            if !sent.data.unordered {
                if !skipped.contains_key(&sent.data.stream) && skipped.len() == room {
                    break;
                }
                skipped.insert(sent.data.stream, sent.data.ssn);
            }
            point = point.next();
        }
        let chunk = ForwardTsn { cumulative: point, skipped: skipped.into_iter().collect() };
        Some((Chunk::ForwardTsn(chunk), end))
    }

    /// The same as I-FORWARD-TSN.
    //= rfc8260#section-2.3.1
    fn interleaved_chunk(&self, limit: u32) -> Option<(Chunk, Tsn)> {
        let interleaving = self.queue.interleaving.as_ref()?;
        let end = abandoned_point(&self.outstanding)?;
        let room = room_for_streams(limit)? / 8;
        let mut skipped: BTreeMap<(u16, bool), Mid> = BTreeMap::new();
        let mut cumulative = self.outstanding.point();
        while cumulative != end {
            let Some(sent) = self.outstanding.get(cumulative.next()) else { break };
            let lane = (sent.data.stream, sent.data.unordered);
            if !skipped.contains_key(&lane) && skipped.len() == room {
                break;
            }
            cumulative = cumulative.next();
            skipped.insert(lane, interleaving.place(cumulative).0);
        }
        let message = |((stream, unordered), mid)| SkippedMessage { stream, unordered, mid };
        let skipped = skipped.into_iter().map(message).collect();
        Some((Chunk::IForwardTsn(IForwardTsn { cumulative, skipped }), end))
    }

    /// When a lifetime ends, or FORWARD TSN is to be said again.
    pub(crate) fn partial_deadline(&self) -> Time {
        self.queue.ledger.as_ref().map_or(Time::NEVER, |ledger| {
            ledger.expiries.first().map_or(Time::NEVER, |(at, _)| *at).min(ledger.forward.timer)
        })
    }

    /// Lifetimes that end now: a message of which nothing was sent is given up, and one that has to be sent again.
    //= rfc3758#section-4.1
    pub(crate) fn expire(&mut self, around: &mut SendContext<'_>) {
        while let Some(ledger) = &mut self.queue.ledger
            && let Some(&(at, number)) = ledger.expiries.first()
            && at <= around.now
        {
            ledger.expiries.pop_first();
            if let Some(terms) = ledger.terms.get_mut(&number) {
                terms.expired = true;
            }
            self.outstanding.look_at(ledger.chunks_of(number));
            if self.queue.has_untouched(number) {
                self.abandon(number, around.paths);
            }
        }
        self.review(around);
    }

    /// FORWARD TSN was not answered within an RTO; whether it was.
    fn forward_unanswered(&mut self, now: Time) -> bool {
        let Some(ledger) = &mut self.queue.ledger else { return false };
        let late = ledger.forward.timer <= now;
        if late {
            ledger.forward.timer = Time::NEVER;
            ledger.forward.due = true;
        }
        late
    }

    /// Makes room for `bytes` more by giving up messages of lower priority that wait, the lowest first; nothing if
    /// these are not enough.
    //= rfc7496#section-3.2
    pub(crate) fn displace(&mut self, message: &Message, bytes: u64, paths: &mut Paths) -> bool {
        let Some(ledger) = self.queue.ledger.as_ref().filter(|ledger| ledger.ranked > 0) else {
            return false;
        };
        let own = match message.reliability {
            Reliability::Priority(rank) => Some(rank),
            _ => None,
        };
        let lower = |&(number, size): &(u64, u64)| Some((ledger.rank(number)?, number, size));
        let mut lower: Vec<_> = self.queue.untouched().filter_map(|w| lower(&w)).collect();
        lower.retain(|(rank, ..)| own.is_none_or(|own| *rank > own));
        if lower.iter().map(|(.., size)| size).sum::<u64>() < bytes {
            return false;
        }
        lower.sort_unstable_by_key(|(rank, number, _)| (*rank, *number));
        let mut freed = 0;
        while let Some((_, number, size)) = lower.pop().filter(|_| freed < bytes) {
            freed += size;
            self.abandon(number, paths);
        }
        true
    }

    /// Messages given up that the user was not told of.
    fn take_failed(&mut self) -> Vec<(Message, bool)> {
        self.queue.ledger.as_mut().map_or(Vec::new(), |ledger| std::mem::take(&mut ledger.failed))
    }
}

/// Bytes for the streams of a FORWARD TSN of at most `limit` bytes; `None` if not even one fits: a large SACK that
/// goes first may leave nothing.
fn room_for_streams(limit: u32) -> Option<usize> {
    (limit as usize).checked_sub(FORWARD_HEADER).filter(|room| *room >= 8)
}

/// The last of the chunks given up that follow the Cumulative TSN Ack Point without a gap.
fn abandoned_point(outstanding: &Outstanding) -> Option<Tsn> {
    let count = outstanding.abandoned();
    (count > 0).then(|| outstanding.point().plus(count))
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    if pieces.len() == 1 {
        return pieces.remove(0);
    }
    let mut whole = BytesMut::new();
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.freeze()
}

impl Association {
    /// Timers of messages with limits.
    pub(super) fn partial_timers(&mut self, now: Time) {
        let (sender, mut around, _) = self.sending(now);
        sender.expire(&mut around);
        if sender.forward_unanswered(now) {
            let path = sender.in_use;
            self.control_unanswered(path, now);
        }
        self.drained();
        self.announce_writable();
    }

    /// Tells the user what was given up.
    pub(super) fn tell_failed(&mut self) {
        let failed = self.sender.take_failed();
        self.events.extend(failed.into_iter().map(|(message, sent)| Event::SendFailed { message, sent }));
    }

    /// FORWARD TSN in front of the data of a packet.
    pub(crate) fn bundle_forward(&mut self, limit: u32, packet: &mut Packet, now: Time) {
        let (sender, mut around, _) = self.sending(now);
        if let Some(chunk) = sender.take_forward(limit, &mut around) {
            packet.chunks.insert(0, chunk);
        }
    }

    /// FORWARD TSN in a packet of its own.
    pub(crate) fn forward_alone(&mut self, limit: u32, now: Time) -> (Box<Packet>, Reason) {
        let path = self.open_path(self.sender.in_use);
        let (mut packet, reason) = self.packet(path, Default::default(), Purpose::Forward, Limit::Control);
        self.bundle_forward(limit, &mut packet, now);
        (packet, reason)
    }

    /// FORWARD TSN came. It is acknowledged like DATA; one that is out of date, at once.
    //= rfc3758#section-3.6
    pub(super) fn forward_tsn(&mut self, forward: &ForwardTsn, arrival: &mut Arrival, now: Time) {
        if !self.may_skip_to(forward.cumulative, arrival, now) {
            return;
        }
        let inbound = self.streams.1;
        let skipped = forward.skipped.iter().copied().filter(|(stream, _)| *stream < inbound);
        self.receiver.forward(forward.cumulative, skipped, arrival);
    }

    /// Whether a FORWARD TSN, of either kind, is looked at. One for TSNs that the peer cannot have sent ends the association.
    pub(super) fn may_skip_to(&mut self, cumulative: Tsn, arrival: &mut Arrival, now: Time) -> bool {
        if !self.state.receives_data() || !arrival.admits_forward(MOST_IN_A_PACKET) {
            return false;
        }
        let possible = self.receiver.can_skip_to(cumulative);
        if !possible {
            let what = b"a FORWARD TSN far beyond what can have been sent".as_slice().into();
            self.violated(Cause::ProtocolViolation(what), now);
        }
        possible
    }
}
