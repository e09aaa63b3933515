//! User messages waiting to be sent for the first time, in the order of the send calls.

use std::collections::VecDeque;

use bytes::Buf;

use crate::output::Message;
use crate::wire::chunk::{DATA_HEADER, Data, padded};
use crate::{Ssn, Tsn};

pub(crate) struct SendQueue {
    messages: VecDeque<Waiting>,
    /// The next SSN of each stream used so far.
    next: Vec<Ssn>,
    first_ssn: Ssn,
    user_bytes: u64,
}

struct Waiting {
    /// The message; its payload is what has not been sent.
    message: Message,
    /// Its SSN, once its first fragment was sent.
    begun: Option<Ssn>,
}

impl SendQueue {
    pub(crate) fn new(first_ssn: Ssn) -> Self {
        SendQueue { messages: VecDeque::new(), next: Vec::new(), first_ssn, user_bytes: 0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// User bytes waiting.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    pub(crate) fn push(&mut self, message: Message) {
        self.user_bytes += message.payload.len() as u64;
        self.messages.push_back(Waiting { message, begun: None });
    }

    /// The stream, and the bytes with padding, of the next chunk, of at most `limit` bytes.
    pub(crate) fn peek(&self, limit: u32) -> Option<(u16, u32)> {
        let message = &self.messages.front()?.message;
        let size = padded(DATA_HEADER + message.payload.len()) as u32;
        Some((message.stream, size.min(limit)))
    }

    /// Takes the next chunk, of at most `limit` bytes (a multiple of four). The I bit that the user asked for is on
    /// the last one of the message.
    //= rfc9260#section-6.1
    pub(crate) fn take(&mut self, limit: u32, tsn: Tsn) -> Option<Data> {
        let waiting = self.messages.front_mut()?;
        let room = limit as usize - DATA_HEADER;
        let Message { stream, ppid, unordered, immediate, ref mut payload } = waiting.message;
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
        if end {
            self.messages.pop_front();
        }
        Some(Data {
            tsn,
            stream,
            ssn,
            ppid,
            begin,
            end,
            unordered,
            immediate: immediate && end,
            payload: piece,
        })
    }

    /// Takes out the messages of this stream and those above it, of which nothing was sent yet.
    pub(crate) fn take_from(&mut self, stream: u16) -> Vec<Message> {
        let (out, kept): (VecDeque<_>, VecDeque<_>) =
            self.messages.drain(..).partition(|waiting| waiting.message.stream >= stream);
        self.messages = kept;
        let out: Vec<Message> = out.into_iter().map(|waiting| waiting.message).collect();
        self.user_bytes -= out.iter().map(|message| message.payload.len() as u64).sum::<u64>();
        out
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
    use bytes::Bytes;

    fn message(len: usize, unordered: bool) -> Message {
        Message { stream: 3, ppid: 7, unordered, immediate: len > 200, payload: Bytes::from(vec![1; len]) }
    }

    #[test]
    fn a_message_is_cut_into_fragments_that_share_an_ssn() {
        let mut queue = SendQueue::new(Ssn(65535));
        queue.push(message(250, false));
        queue.push(message(10, false));
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

    #[test]
    fn unordered_messages_take_no_ssn() {
        let mut queue = SendQueue::new(Ssn(0));
        queue.push(message(10, true));
        queue.push(message(10, false));
        queue.take(1000, Tsn(1));
        assert_eq!(queue.take(1000, Tsn(2)).unwrap().ssn, Ssn(0));
    }

    /// What was given for streams that the peer does not have comes out; the rest stays, in its order.
    //= rfc9260#section-5.1.1
    #[test]
    fn messages_of_streams_that_there_are_not() {
        let mut queue = SendQueue::new(Ssn(0));
        for stream in [4, 2, 3, 0] {
            queue.push(Message { stream, ..message(10 + usize::from(stream), false) });
        }
        let out: Vec<u16> = queue.take_from(3).iter().map(|message| message.stream).collect();
        assert_eq!((out, queue.user_bytes()), (vec![4, 3], 22));
        let left: Vec<u16> = (1..3).map(|n| queue.take(1000, Tsn(n)).unwrap().stream).collect();
        assert_eq!((left, queue.is_empty()), (vec![2, 0], true));
    }
}
