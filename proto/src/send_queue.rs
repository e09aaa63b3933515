//! User messages waiting to be sent for the first time, in the order of the send calls.

use std::collections::VecDeque;

use bytes::Buf;

use crate::extension::Ledger;
use crate::output::Message;
use crate::wire::chunk::{DATA_HEADER, Data, padded};
use crate::{Ssn, Time, Tsn};

pub(crate) struct SendQueue {
    messages: VecDeque<Waiting>,
    /// The next SSN of each stream used so far.
    next: Vec<Ssn>,
    first_ssn: Ssn,
    user_bytes: u64,
    /// Messages that may be given up; `None` unless partial reliability is offered.
    pub(crate) ledger: Option<Box<Ledger>>,
}

struct Waiting {
    /// The message; its payload is what has not been sent.
    message: Message,
    /// Its SSN, once its first fragment was sent.
    begun: Option<Ssn>,
    /// Its number in the ledger; 0: it has none.
    number: u64,
}

impl SendQueue {
    pub(crate) fn new(first_ssn: Ssn, ledger: Option<Box<Ledger>>) -> Self {
        SendQueue { messages: VecDeque::new(), next: Vec::new(), first_ssn, user_bytes: 0, ledger }
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
        self.messages.push_back(Waiting { message, begun: None, number });
    }

    /// The stream, and the bytes with padding, of the next chunk, of at most `limit` bytes.
    pub(crate) fn peek(&self, limit: u32) -> Option<(u16, u32)> {
        let message = &self.messages.front()?.message;
        let size = padded(DATA_HEADER + message.payload.len()) as u32;
        Some((message.stream, size.min(limit)))
    }

    /// Takes the next chunk, of at most `limit` bytes (a multiple of four).
    pub(crate) fn take(&mut self, limit: u32, tsn: Tsn) -> Option<Data> {
        let waiting = self.messages.front_mut()?;
        let room = limit as usize - DATA_HEADER;
        let Message { stream, ppid, unordered, ref mut payload, .. } = waiting.message;
        let begin = waiting.begun.is_none();
        let ssn = match waiting.begun {
            Some(ssn) => ssn,
            None if unordered => Ssn(0),
            None => next_ssn(&mut self.next, stream, self.first_ssn),
        };
        waiting.begun = Some(ssn);
        let end = payload.len() <= room;
        let piece = if end { std::mem::take(payload) } else { payload.slice(..room) };
        if !end {
            payload.advance(room);
        }
        self.user_bytes -= piece.len() as u64;
        if let Some(ledger) = &mut self.ledger
            && waiting.number != 0
        {
            ledger.sent(tsn, waiting.number, end);
        }
        if end {
            self.messages.pop_front();
        }
        Some(Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate: false, payload: piece })
    }

    /// Whether this message, or a part of it, waits.
    pub(crate) fn has(&self, number: u64) -> bool {
        // They wait in the order of their numbers.
        let first = self.messages.iter().map(|waiting| waiting.number).find(|number| *number != 0);
        first.is_some_and(|first| first <= number) && self.messages.iter().any(|w| w.number == number)
    }

    /// Takes out what of a message waits, and whether another part was sent.
    pub(crate) fn remove(&mut self, number: u64) -> Option<(Message, bool)> {
        let at = self.messages.iter().position(|waiting| waiting.number == number)?;
        let waiting = self.messages.remove(at)?;
        self.user_bytes -= waiting.message.payload.len() as u64;
        Some((waiting.message, waiting.begun.is_some()))
    }

    /// Messages with limits of which nothing was sent: number and bytes.
    pub(crate) fn untouched(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let untouched = self.messages.iter().filter(|waiting| waiting.number != 0 && waiting.begun.is_none());
        untouched.map(|waiting| (waiting.number, waiting.message.payload.len() as u64))
    }

    /// Whether a message on such a stream waits.
    pub(crate) fn any(&self, wanted: impl Fn(u16) -> bool) -> bool {
        self.messages.iter().any(|waiting| wanted(waiting.message.stream))
    }

    /// Whether anything was sent, or waits, on these streams (none: all) since their SSNs began.
    pub(crate) fn begun(&self, streams: &[u16]) -> bool {
        let listed = |stream: u16| streams.is_empty() || streams.contains(&stream);
        let used = |(stream, next): (usize, &Ssn)| *next != Ssn(0) && listed(stream as u16);
        self.next.iter().enumerate().any(used) || self.any(listed)
    }

    /// SSNs begin anew on these streams; none: all.
    pub(crate) fn reset(&mut self, streams: &[u16]) {
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

    /// Takes out all messages, and whether a part of each was sent.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Message, bool)> + '_ {
        self.user_bytes = 0;
        self.messages.drain(..).map(|w| (w.message, w.begun.is_some()))
    }
}

//= rfc9260#section-6.5
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
        Message { stream: 3, ppid: 7, unordered, payload: vec![1; len].into(), ..Message::default() }
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
        assert_eq!([a.ssn, b.ssn, c.ssn, d.ssn], [Ssn(65535), Ssn(65535), Ssn(65535), Ssn(0)]);
        assert!(queue.is_empty() && queue.user_bytes() == 0);
    }

    #[test]
    fn unordered_messages_take_no_ssn() {
        let mut queue = SendQueue::new(Ssn(0), None);
        queue.push(message(10, true), Time::ZERO);
        queue.push(message(10, false), Time::ZERO);
        queue.take(1000, Tsn(1));
        assert_eq!(queue.take(1000, Tsn(2)).unwrap().ssn, Ssn(0));
    }
}
