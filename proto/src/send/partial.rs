//! Partial reliability in the sender: which messages are given up, and FORWARD TSN (RFC 3758). The limits of messages
//! are kept in `extension/partial.rs`.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

use super::outstanding::Outstanding;
use super::{SendContext, Sender};
use crate::path::{PathId, Paths};
use crate::wire::Chunk;
use crate::wire::chunk::{Data, FORWARD_HEADER, ForwardTsn, IForwardTsn, SkippedMessage};
use crate::{Message, Mid, Reliability, Ssn, Time, Tsn};

impl Sender {
    /// After a SACK or a timeout: gives up the messages that may not be sent again, and makes sure that the peer is
    /// told.
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
        let terms = ledger.reliability(number);
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
        ledger.give_up(message, sent);
    }

    /// Assigns a TSN that is never sent to the unsent part of a message. Otherwise a peer that has received everything
    /// sent would wait for the rest.
    //= rfc3758#section-3.5
    fn close_message(&mut self, message: &Message, ssn: Ssn, number: u64) {
        let Message { stream, ppid, unordered, immediate, .. } = *message;
        let (tsn, begin, end, payload) = (self.outstanding.next_tsn(), false, true, Bytes::new());
        let data = Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload };
        if let Some(ledger) = &mut self.queue.ledger {
            ledger.sent(tsn, number, true);
        }
        if let Some(interleaving) = &mut self.queue.interleaving {
            interleaving.sent(data.tsn, (data.stream, data.unordered), data.end);
        }
        self.outstanding.push_abandoned(data, self.in_use);
    }

    /// Works out the Advanced.Peer.Ack.Point.
    //= rfc3758#section-3.5
    fn advance(&mut self, around: &mut SendContext<'_>) {
        let point = abandoned_point(&self.outstanding);
        let view = around.paths.view(self.in_use);
        if let Some(ledger) = &mut self.queue.ledger {
            let cumulative = self.outstanding.point();
            ledger.advance(point, cumulative, around.now, view.srtt.unwrap_or(view.rto));
        }
    }

    /// Whether FORWARD TSN is to be sent: how many bytes it takes; else 0.
    pub(crate) fn forward_size(&self, limit: u32) -> u32 {
        match &self.queue.ledger {
            Some(ledger) if ledger.forward_is_due() => {
                self.forward_chunk(limit).map_or(0, |c| c.0.padded_size() as u32)
            }
            _ => 0,
        }
    }

    /// FORWARD TSN, which leaves now on this path.
    pub(crate) fn take_forward(
        &mut self,
        path: PathId,
        limit: u32,
        around: &mut SendContext<'_>,
    ) -> Option<Chunk> {
        let (chunk, said) = self.forward_chunk(limit)?;
        let point = abandoned_point(&self.outstanding)?;
        let ledger = self.queue.ledger.as_mut()?;
        ledger.forward_sent(said, point, path, around.now, around.paths.view(path).rto);
        Some(chunk)
    }

    /// A SACK was read. If it answers FORWARD TSN, the path of that works: no data had to be acknowledged for it.
    //= rfc9260#section-8.2
    #[cold]
    pub(super) fn hear_forward_answered(&self, around: &mut SendContext<'_>) {
        let ledger = self.queue.ledger.as_ref();
        if let Some(path) = ledger.and_then(|ledger| ledger.forward_answered(self.outstanding.point())) {
            around.paths.view_mut(path).errors = 0;
        }
    }

    /// The numbers of these streams (in order; none: all) have restarted behind this TSN, which the peer has passed.
    pub(crate) fn restart_streams(&mut self, streams: &[u16], last: Tsn) {
        self.queue.reset(streams);
        if let Some(ledger) = self.queue.ledger.as_mut().filter(|_| last.after(self.outstanding.point())) {
            ledger.restarted(streams, last);
        }
    }

    /// Whether FORWARD TSN names the message of a chunk of this stream.
    fn is_named(&self, stream: u16, tsn: Tsn) -> bool {
        self.queue.ledger.as_ref().is_none_or(|ledger| ledger.is_named(stream, tsn))
    }

    /// FORWARD TSN up to the Advanced.Peer.Ack.Point, or as far as its streams fit into `limit` bytes; and the TSN that
    /// it says.
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
            if !sent.data.unordered && self.is_named(sent.data.stream, point.next()) {
                if !skipped.contains_key(&sent.data.stream) && skipped.len() == room {
                    break;
                }
                skipped.insert(sent.data.stream, sent.data.ssn);
            }
            point = point.next();
        }
        let chunk = ForwardTsn { cumulative: point, skipped: skipped.into_iter().collect() };
        Some((Chunk::ForwardTsn(chunk), point))
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
            if self.is_named(lane.0, cumulative.next()) {
                if !skipped.contains_key(&lane) && skipped.len() == room {
                    break;
                }
                skipped.insert(lane, interleaving.place(cumulative.next()).0);
            }
            cumulative = cumulative.next();
        }
        let message = |((stream, unordered), mid)| SkippedMessage { stream, unordered, mid };
        let skipped = skipped.into_iter().map(message).collect();
        Some((Chunk::IForwardTsn(IForwardTsn { cumulative, skipped }), cumulative))
    }

    /// When a lifetime ends, or FORWARD TSN is to be said again.
    pub(crate) fn partial_deadline(&self) -> Time {
        self.queue.ledger.as_ref().map_or(Time::NEVER, |ledger| ledger.deadline())
    }

    /// Lifetimes end now. Gives up the messages of which nothing was sent, and those of which a chunk would have to be
    /// sent again.
    //= rfc3758#section-4.1
    pub(crate) fn expire(&mut self, around: &mut SendContext<'_>) {
        while let Some(ledger) = &mut self.queue.ledger
            && let Some(number) = ledger.next_expired(around.now)
        {
            self.outstanding.look_at(ledger.chunks_of(number));
            if self.queue.has_untouched(number) {
                self.abandon(number, around.paths);
            }
        }
        self.review(around);
    }

    /// If FORWARD TSN was not answered within an RTO: the path on which it left.
    pub(crate) fn forward_unanswered(&mut self, now: Time) -> Option<PathId> {
        self.queue.ledger.as_mut().and_then(|ledger| ledger.forward_unanswered(now))
    }

    /// Makes room for `bytes` more by giving up messages of lower priority that wait, the lowest first; nothing if
    /// these are not enough.
    //= rfc7496#section-3.2
    pub(crate) fn displace(&mut self, message: &Message, bytes: u64, paths: &mut Paths) -> bool {
        let Some(ledger) = self.queue.ledger.as_ref().filter(|ledger| ledger.has_ranks()) else {
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
    pub(crate) fn take_failed(&mut self) -> Vec<(Message, bool)> {
        self.queue.ledger.as_mut().map_or(Vec::new(), |ledger| ledger.take_failed())
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
