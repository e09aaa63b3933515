//! User messages waiting to be sent for the first time, in the order of the send calls.

use std::collections::VecDeque;

use bytes::Bytes;

use super::streams::WaitingStreams;
use crate::extension::{Interleaving, LimitedMessages, covers};
use crate::output::Message;
use crate::wire::Chunk;
use crate::wire::chunk::{DATA_HEADER, Data, IDATA_HEADER, padded};
use crate::{Ssn, Time, Tsn};

// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct SendQueue {
    messages: VecDeque<Waiting>,
    user_bytes: u64,
    /// The size of a chunk's header.
    header: usize,
    /// Messages that may be abandoned; `None` unless partial reliability is offered.
    pub(crate) ledger: Option<Box<LimitedMessages>>,
    /// The streams on which messages wait, if an extension must know: interleaving, stream reconfiguration.
    streams: Option<Box<WaitingStreams>>,
    /// Numbers for I-DATA; `None`: messages leave as DATA, in the order of the send calls.
    pub(crate) interleaving: Option<Box<Interleaving>>,
    /// The next SSN of each stream that was used.
    next: Vec<Ssn>,
    first_ssn: Ssn,
}

#[derive(Clone, Debug)]
struct Waiting {
    /// The message. Its payload is the part that was not sent.
    message: Message,
    /// Its SSN, once its first fragment was sent.
    begun: Option<Ssn>,
    /// Its number in the ledger; 0: it has none.
    number: u64,
    /// How many equal messages follow it. Then nothing of it was sent, and it has no number.
    again: u64,
    /// The payload of it and of those that follow, if that is a constant.
    constant: Option<&'static [u8]>,
}

impl SendQueue {
    pub(crate) fn new(first_ssn: Ssn, ledger: Option<Box<LimitedMessages>>) -> Self {
        SendQueue {
            messages: VecDeque::new(),
            next: Vec::new(),
            first_ssn,
            user_bytes: 0,
            ledger,
            streams: None,
            interleaving: None,
            header: DATA_HEADER,
        }
    }

    /// Both ends have agreed whether messages leave as I-DATA, and whether streams are reconfigured. No message has
    /// left yet.
    pub(crate) fn agree(&mut self, interleaving: bool, reconfiguration: bool) {
        self.header = if interleaving { IDATA_HEADER } else { DATA_HEADER };
        self.interleaving = interleaving.then(Box::default);
        self.streams = None;
        if interleaving || reconfiguration {
            self.part_all();
            let mut streams = Box::<WaitingStreams>::default();
            self.messages.iter().for_each(|waiting| streams.enter(waiting.message.stream));
            self.streams = Some(streams);
        }
    }

    /// The size of a chunk's header, in bytes.
    pub(crate) fn header(&self) -> usize {
        self.header
    }

    /// The chunk as it leaves.
    #[inline]
    pub(crate) fn chunk(&self, data: Data) -> Chunk {
        match &self.interleaving {
            None => Chunk::Data(data),
            Some(interleaving) => Chunk::IData(interleaving.chunk(data)),
        }
    }

    /// A chunk of this stream was taken: counts the message if it was the last of it, numbers the chunk for I-DATA, and
    /// gives the turn to the next stream. Most associations need none of this, so it is kept out of their way.
    #[cold]
    fn taken(&mut self, tsn: Tsn, stream: (u16, bool), end: bool) {
        if let Some(streams) = self.streams.as_mut().filter(|_| end) {
            streams.strike(stream.0);
        }
        if let Some(interleaving) = &mut self.interleaving {
            interleaving.sent(tsn, stream, end);
            self.turn(stream.0);
        }
    }

    /// The next message comes from the stream whose turn follows this stream's: streams with messages take turns, one
    /// chunk each.
    //= rfc8260#section-3.2
    fn turn(&mut self, stream: u16) {
        let Some(next) = self.streams.as_ref().and_then(|streams| streams.after(stream)) else { return };
        let at = self.messages.iter().position(|waiting| waiting.message.stream == next);
        if let Some(waiting) = at.and_then(|at| self.messages.remove(at)) {
            self.messages.push_front(waiting);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// User bytes waiting.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    pub(crate) fn push(&mut self, message: Message, now: Time) {
        self.user_bytes += message.payload.len() as u64;
        let number = self.ledger.as_mut().map_or(0, |ledger| ledger.enter(&message, now));
        if let Some(streams) = &mut self.streams {
            streams.enter(message.stream);
        }
        self.messages.push_back(Waiting { message, begun: None, number, again: 0, constant: None });
    }

    /// Whether equal messages may wait in one place, because nothing numbers each of them.
    #[inline]
    pub(crate) fn joins_equals(&self) -> bool {
        self.ledger.is_none() && self.streams.is_none()
    }

    /// `count` more messages wait behind the last one, which was just pushed, and are equal to it. `constant`: their
    /// payload, if that is one.
    pub(crate) fn repeat_last(&mut self, count: u64, constant: Option<&'static [u8]>) {
        debug_assert!(self.joins_equals());
        if let Some(last) = self.messages.back_mut() {
            self.user_bytes += count * last.message.payload.len() as u64;
            last.again += count;
            last.constant = constant;
        }
    }

    /// The first of several equal messages gets a place of its own.
    fn part_first(&mut self) {
        let Some(equals) = self.messages.front_mut() else { return };
        equals.again -= 1;
        let first = Waiting { again: 0, ..equals.clone() };
        self.messages.push_front(first);
    }

    /// Every message gets a place of its own.
    fn part_all(&mut self) {
        if self.messages.iter().any(|waiting| waiting.again > 0) {
            let each = |waiting: Waiting| {
                let count = 1 + waiting.again as usize;
                std::iter::repeat_n(Waiting { again: 0, ..waiting }, count)
            };
            self.messages = self.messages.drain(..).flat_map(each).collect();
        }
    }

    /// The stream of the next chunk, and its bytes with padding, at most `limit`.
    pub(crate) fn peek(&self, limit: u32) -> Option<(u16, u32)> {
        let message = &self.messages.front()?.message;
        let size = padded(self.header + message.payload.len()) as u32;
        Some((message.stream, size.min(limit)))
    }

    /// The stream and the SSN of the next message, if it takes a new SSN.
    pub(crate) fn next_of_stream(&self) -> Option<(u16, Ssn)> {
        let next = self.messages.front()?;
        let Message { stream, unordered, .. } = next.message;
        let ssn = self.next.get(usize::from(stream)).copied().unwrap_or(self.first_ssn);
        (next.begun.is_none() && !unordered && self.interleaving.is_none()).then_some((stream, ssn))
    }

    /// Whether the next message does not fit a chunk of `limit` bytes, or was cut already.
    pub(crate) fn is_cut(&self, limit: u32) -> bool {
        let too_large = |w: &Waiting| self.header + w.message.payload.len() > limit as usize;
        self.messages.front().is_some_and(|w| w.begun.is_some() || too_large(w))
    }

    /// How many equal messages come next, if each fits a chunk of `limit` bytes and nothing of them was sent; else 0.
    pub(crate) fn equals_whole(&self, limit: u32) -> u64 {
        let fits =
            |w: &&Waiting| w.begun.is_none() && self.header + w.message.payload.len() <= limit as usize;
        self.messages.front().filter(fits).map_or(0, |waiting| 1 + waiting.again)
    }

    /// Takes the next message as one chunk, if its payload is constant, if the chunk has exactly `limit` bytes with
    /// padding, and if nothing of the message was sent. Returns what makes the chunk. For any other message see
    /// [`take_whole`](Self::take_whole).
    // A handle to constant bytes is made without the call that a copy of any other handle needs: 3 % of the time of a
    // simulated transfer.
    #[inline(always)]
    pub(crate) fn take_constant(&mut self, limit: u32, tsn: Tsn) -> Option<impl Fn() -> Data + use<>> {
        debug_assert!(self.joins_equals());
        let waiting = self.messages.front_mut()?;
        let content = waiting.constant?;
        if waiting.begun.is_some() || padded(self.header + content.len()) != limit as usize {
            return None;
        }
        let Message { stream, ppid, unordered, immediate, .. } = waiting.message;
        let ssn = if unordered { Ssn(0) } else { next_ssn(&mut self.next, stream, self.first_ssn) };
        self.user_bytes -= content.len() as u64;
        match waiting.again {
            0 => drop(self.messages.pop_front()),
            _ => waiting.again -= 1,
        }
        let (begin, end) = (true, true);
        Some(move || {
            let payload = Bytes::from_static(content);
            Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload }
        })
    }

    /// Takes the next message as one chunk, if that has exactly `limit` bytes with padding and nothing of the message
    /// was sent. No message has a number. For any other message see [`take`](Self::take). Returns the chunk twice: to
    /// send it, and to keep it.
    #[inline(always)]
    pub(crate) fn take_whole(&mut self, limit: u32, tsn: Tsn) -> Option<[Data; 2]> {
        debug_assert!(self.joins_equals());
        let waiting = self.messages.front_mut()?;
        let Message { stream, ppid, unordered, immediate, ref mut payload, .. } = waiting.message;
        if waiting.begun.is_some() || padded(self.header + payload.len()) != limit as usize {
            return None;
        }
        let ssn = if unordered { Ssn(0) } else { next_ssn(&mut self.next, stream, self.first_ssn) };
        self.user_bytes -= payload.len() as u64;
        let payload = match waiting.again {
            0 => {
                let last = std::mem::take(payload);
                self.messages.pop_front();
                last
            }
            _ => {
                waiting.again -= 1;
                payload.clone()
            }
        };
        let (begin, end) = (true, true);
        let chunk = |payload| Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload };
        Some([chunk(payload.clone()), chunk(payload)])
    }

    /// Takes the next chunk, of at most `limit` bytes (a multiple of four). If the user asked for the I bit, the last
    /// chunk of the message has it.
    //= rfc9260#section-6.1
    #[inline(always)]
    pub(crate) fn take(&mut self, limit: u32, tsn: Tsn) -> Option<Data> {
        let room = limit as usize - self.header;
        let mut waiting = self.messages.front_mut()?;
        if waiting.again > 0 && waiting.message.payload.len() > room {
            self.part_first();
            waiting = self.messages.front_mut()?;
        }
        let Message { stream, ppid, unordered, immediate, ref mut payload, .. } = waiting.message;
        let begin = waiting.begun.is_none();
        let ssn = match waiting.begun {
            Some(ssn) => ssn,
            None if unordered => Ssn(0),
            None => next_ssn(&mut self.next, stream, self.first_ssn),
        };
        let end = payload.len() <= room;
        let last = end && waiting.again == 0;
        let piece = match end {
            true if last => std::mem::take(payload),
            true => {
                waiting.again -= 1;
                payload.clone()
            }
            false => {
                waiting.begun = Some(ssn);
                payload.split_to(room)
            }
        };
        self.user_bytes -= piece.len() as u64;
        if let Some(ledger) = &mut self.ledger
            && waiting.number != 0
        {
            ledger.sent(tsn, waiting.number, end);
        }
        if last {
            self.messages.pop_front();
        }
        if self.streams.is_some() {
            self.taken(tsn, (stream, unordered), end);
        }
        let immediate = immediate && end;
        Some(Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload: piece })
    }

    /// Whether this message waits and nothing of it was sent.
    pub(crate) fn has_untouched(&self, number: u64) -> bool {
        self.may_have(number) && self.messages.iter().any(|w| w.number == number && w.begun.is_none())
    }

    /// Whether this message may be waiting. Messages wait in the order of their numbers, unless streams take turns.
    fn may_have(&self, number: u64) -> bool {
        let first = self.messages.iter().map(|waiting| waiting.number).find(|number| *number != 0);
        self.interleaving.is_some() || first.is_some_and(|first| first <= number)
    }

    /// Removes the waiting part of a message. Returns it, and the SSN if another part was sent.
    pub(crate) fn remove(&mut self, number: u64) -> Option<(Message, Option<Ssn>)> {
        if !self.may_have(number) {
            return None;
        }
        let at = self.messages.iter().position(|waiting| waiting.number == number)?;
        let waiting = self.messages.remove(at)?;
        self.user_bytes -= waiting.message.payload.len() as u64;
        if let Some(streams) = &mut self.streams {
            streams.strike(waiting.message.stream);
        }
        Some((waiting.message, waiting.begun))
    }

    /// Messages with limits of which nothing was sent: number and bytes.
    pub(crate) fn untouched(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let untouched = self.messages.iter().filter(|waiting| waiting.number != 0 && waiting.begun.is_none());
        untouched.map(|waiting| (waiting.number, waiting.message.payload.len() as u64))
    }

    /// The first of these streams (none: all), which are in order, that is not below `from` and on which a message
    /// waits. Only for associations that agreed on stream reconfiguration.
    pub(crate) fn first_waiting(&self, streams: &[u16], from: u16) -> Option<u16> {
        self.streams.as_ref().and_then(|waiting| waiting.first_of(streams, from))
    }

    /// Whether anything was sent or waits on these streams (none: all), which are in order, since their SSNs restarted.
    pub(crate) fn begun(&self, streams: &[u16]) -> bool {
        let listed = |stream: u16| covers(streams, stream);
        let used = |(stream, next): (usize, &Ssn)| *next != Ssn(0) && listed(stream as u16);
        let numbered = self.interleaving.as_ref().is_some_and(|interleaving| interleaving.begun(streams));
        self.next.iter().enumerate().any(used) || numbered || self.first_waiting(streams, 0).is_some()
    }

    /// Restarts the SSNs of these streams; an empty list means all.
    pub(crate) fn reset(&mut self, streams: &[u16]) {
        if let Some(interleaving) = &mut self.interleaving {
            interleaving.reset(streams);
        }
        if streams.is_empty() {
            (self.first_ssn, self.next) = (Ssn(0), Vec::new());
        }
        for stream in streams.iter().copied().map(usize::from) {
            if self.next.len() <= stream {
                self.next.resize(stream + 1, self.first_ssn);
            }
            self.next[stream] = Ssn(0);
        }
    }

    /// Removes the messages on this stream and on higher streams of which nothing was sent, before
    /// [`agree`](Self::agree).
    pub(crate) fn take_from(&mut self, stream: u16) -> Vec<Message> {
        if self.messages.iter().all(|waiting| waiting.message.stream < stream) {
            return Vec::new();
        }
        self.part_all();
        let (out, kept): (VecDeque<_>, VecDeque<_>) =
            self.messages.drain(..).partition(|waiting| waiting.message.stream >= stream);
        self.messages = kept;
        if let Some(ledger) = &mut self.ledger {
            out.iter().for_each(|waiting| ledger.strike(waiting.number));
        }
        let out: Vec<Message> = out.into_iter().map(|waiting| waiting.message).collect();
        self.user_bytes -= out.iter().map(|message| message.payload.len() as u64).sum::<u64>();
        out
    }

    /// Removes all messages. Returns them, and whether a part of each was sent.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Message, bool)> + '_ {
        self.part_all();
        self.user_bytes = 0;
        self.messages.drain(..).map(|w| (w.message, w.begun.is_some()))
    }
}

//= rfc9260#section-6.5
#[inline(always)]
fn next_ssn(next: &mut Vec<Ssn>, stream: u16, first: Ssn) -> Ssn {
    let stream = usize::from(stream);
    if next.len() <= stream {
        next.resize(stream + 1, first);
    }
    let ssn = next[stream];
    next[stream] = ssn.next();
    ssn
}

#[cfg(test)]
mod tests {
    use super::*;
    fn message(len: usize, unordered: bool) -> Message {
        Message {
            stream: 3,
            ppid: 7,
            unordered,
            immediate: len > 200,
            payload: vec![1; len].into(),
            ..Message::default()
        }
    }

    #[test]
    fn a_message_is_cut_into_fragments_that_share_an_ssn() {
        let mut queue = SendQueue::new(Ssn(65535), None);
        queue.push(message(250, false), Time::ZERO);
        queue.push(message(10, false), Time::ZERO);
        let a = queue.take(116, Tsn(1)).unwrap();
        let b = queue.take(116, Tsn(2)).unwrap();
        let c = queue.take(116, Tsn(3)).unwrap();
        let d = queue.take(116, Tsn(4)).unwrap();
        assert_eq!([a.payload.len(), b.payload.len(), c.payload.len(), d.payload.len()], [100, 100, 50, 10]);
        assert_eq!([a.begin, b.begin, c.begin, d.begin], [true, false, false, true]);
        assert_eq!([a.end, b.end, c.end, d.end], [false, false, true, true]);
        assert_eq!([a.immediate, b.immediate, c.immediate, d.immediate], [false, false, true, false]);
        assert_eq!([a.ssn, b.ssn, c.ssn, d.ssn], [Ssn(65535), Ssn(65535), Ssn(65535), Ssn(0)]);
        assert!(queue.is_empty() && queue.user_bytes() == 0);
    }

    /// Equal messages in one place leave as if each had a place of its own, cut or whole.
    #[test]
    fn equal_messages_wait_in_one_place() {
        for (len, limit) in [(250, 116), (100, 116), (50, 116)] {
            let (mut together, mut apart) = (SendQueue::new(Ssn(7), None), SendQueue::new(Ssn(7), None));
            together.push(message(10, false), Time::ZERO);
            together.push(message(len, false), Time::ZERO);
            together.repeat_last(3, None);
            apart.push(message(10, false), Time::ZERO);
            (0..4).for_each(|_| apart.push(message(len, false), Time::ZERO));
            assert!(together.take_from(4).is_empty());
            assert_eq!((together.messages.len(), apart.messages.len()), (2, 5));
            for n in 0..20 {
                assert_eq!(together.user_bytes(), apart.user_bytes());
                let drained = |queue: &SendQueue| queue.clone().drain().collect::<Vec<_>>();
                assert_eq!(drained(&together), drained(&apart));
                assert_eq!(together.is_cut(limit), apart.is_cut(limit));
                assert_eq!(together.peek(limit), apart.peek(limit));
                assert_eq!(together.take(limit, Tsn(n)), apart.take(limit, Tsn(n)));
            }
            assert!(together.is_empty());
        }
    }

    /// A constant message leaves as the same chunk as any other, unless something of it was sent.
    #[test]
    fn constant_messages_leave_as_the_same_chunks() {
        static CONSTANT: [u8; 100] = [0; 100];
        let message = || Message { payload: Bytes::from_static(&CONSTANT), ..message(1, true) };
        let (mut constant, mut other) = (SendQueue::new(Ssn(7), None), SendQueue::new(Ssn(7), None));
        constant.push(message(), Time::ZERO);
        constant.repeat_last(2, Some(&CONSTANT));
        (0..3).for_each(|_| other.push(message(), Time::ZERO));
        for n in 0..3 {
            assert!(constant.take_constant(120, Tsn(n)).is_none(), "it does not fill the chunk");
            let chunk = constant.take_constant(116, Tsn(n)).unwrap();
            let of_other = other.take(116, Tsn(n)).unwrap();
            assert_eq!([chunk(), chunk()], [of_other.clone(), of_other]);
            assert_eq!(constant.user_bytes(), other.user_bytes());
        }
        assert!(constant.is_empty() && constant.take_constant(116, Tsn(3)).is_none());
        constant.push(message(), Time::ZERO);
        constant.repeat_last(0, Some(&CONSTANT));
        constant.take(56, Tsn(3)).unwrap();
        assert!(
            constant.take_constant(76, Tsn(4)).is_none() && constant.take_constant(116, Tsn(4)).is_none()
        );
    }

    #[test]
    fn unordered_messages_take_no_ssn() {
        let mut queue = SendQueue::new(Ssn(0), None);
        queue.push(message(10, true), Time::ZERO);
        queue.push(message(10, false), Time::ZERO);
        queue.take(1000, Tsn(1));
        assert_eq!(queue.take(1000, Tsn(2)).unwrap().ssn, Ssn(0));
    }

    /// Removes messages for streams that the peer does not have. The others keep their order.
    //= rfc9260#section-5.1.1
    #[test]
    fn messages_of_streams_that_there_are_not() {
        let mut queue = SendQueue::new(Ssn(0), None);
        for stream in [4, 2, 3, 0] {
            queue.push(Message { stream, ..message(10 + usize::from(stream), false) }, Time::ZERO);
        }
        let out: Vec<u16> = queue.take_from(3).iter().map(|message| message.stream).collect();
        assert_eq!((out, queue.user_bytes()), (vec![4, 3], 22));
        let left: Vec<u16> = (1..3).map(|n| queue.take(1000, Tsn(n)).unwrap().stream).collect();
        assert_eq!((left, queue.is_empty()), (vec![2, 0], true));
    }

    /// A second INIT ACK may agree on something else than the first.
    //= rfc8260#section-2.2.1
    #[test]
    fn what_was_agreed_last_holds() {
        let mut queue = SendQueue::new(Ssn(0), None);
        queue.push(message(10, false), Time::ZERO);
        queue.repeat_last(1, None);
        queue.agree(true, false);
        assert_eq!((queue.messages.len(), queue.peek(1000)), (2, Some((3, 32))));
        queue.agree(false, true);
        assert_eq!((queue.first_waiting(&[3], 0), queue.peek(1000)), (Some(3), Some((3, 28))));
        for _ in 0..2 {
            let data = queue.take(1000, Tsn(1)).unwrap();
            assert!(matches!(queue.chunk(data), Chunk::Data(_)));
        }
        assert_eq!(queue.first_waiting(&[], 0), None);
    }
}
