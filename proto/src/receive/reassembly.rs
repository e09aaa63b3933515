//! From chunks to messages: fragments joined, ordered messages in order (RFC 9260 §6.5, §6.6, §6.9).

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::interleaved::Interleaved;
use crate::wire::chunk::{Data, IData, SkippedMessage, padded};
use crate::{Delivery, Ssn, Tsn};

pub(crate) struct Reassembly {
    /// By stream identifier, as far as used.
    streams: Vec<Stream>,
    first_ssn: Ssn,
    /// Complete messages, or parts, and the bytes that each occupies.
    ready: VecDeque<(Delivery, u64)>,
    /// In place of the streams, where messages come as I-DATA.
    interleaved: Option<Box<Interleaved>>,
}

/// One stream's chunks that wait.
struct Stream {
    next: Ssn,
    ordered: Pile,
    unordered: Pile,
}

/// Chunks in order: unordered ones by TSN, ordered ones by SSN first, as a peer may number messages of a stream
/// otherwise than it sends them.
#[derive(Default)]
struct Pile {
    chunks: VecDeque<Data>,
    /// A message whose beginning was delivered as a part: the TSN that must come next.
    resumes: Option<Tsn>,
    /// How many chunks at the front are known to follow each other within one message.
    contiguous: usize,
}

impl Reassembly {
    pub(crate) fn new(first_ssn: Ssn) -> Self {
        Reassembly { streams: Vec::new(), first_ssn, ready: VecDeque::new(), interleaved: None }
    }

    /// Messages come as I-DATA.
    pub(crate) fn interleave(&mut self) {
        self.interleaved = Some(Box::default());
    }

    /// Takes an I-DATA chunk that has not been here before; its bytes if it is thrown away.
    pub(crate) fn insert_interleaved(&mut self, data: IData) -> u64 {
        self.interleaved.as_mut().map_or(0, |interleaved| interleaved.insert(data, &mut self.ready))
    }

    /// Nothing more comes of this message and those before it. Bytes dropped.
    pub(crate) fn skip_interleaved(&mut self, message: SkippedMessage) -> u64 {
        self.interleaved.as_mut().map_or(0, |interleaved| interleaved.skip(message, &mut self.ready))
    }

    /// Messages, or parts of one, that can be read.
    pub(crate) fn ready(&self) -> usize {
        self.ready.len()
    }

    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<(Delivery, u64)> {
        self.ready.pop_front()
    }

    /// Takes a chunk that has not been here before; its stream was checked.
    pub(crate) fn insert(&mut self, data: Data) {
        self.open(data.stream);
        let stream = &mut self.streams[usize::from(data.stream)];
        if data.unordered {
            stream.insert_unordered(data, &mut self.ready);
        } else {
            stream.insert_ordered(data, &mut self.ready);
        }
    }

    /// Makes a place for a stream.
    fn open(&mut self, stream: u16) {
        let index = usize::from(stream);
        if self.streams.len() <= index {
            let first = self.first_ssn;
            self.streams.resize_with(index + 1, || Stream::new(first));
        }
    }

    /// The SSNs of these streams (none: all) begin anew. Bytes dropped: of what came before this TSN.
    pub(crate) fn reset(&mut self, streams: &[u16], before: Tsn) -> u64 {
        if let Some(interleaved) = &mut self.interleaved {
            return interleaved.reset(streams, Some(before), &mut self.ready);
        }
        if streams.is_empty() {
            self.first_ssn = Ssn(0);
            let (all, ready) = (self.streams.iter_mut().enumerate(), &mut self.ready);
            return all.map(|(id, stream)| stream.reset(id as u16, before, ready)).sum();
        }
        let mut freed = 0;
        for &id in streams {
            self.open(id);
            freed += self.streams[usize::from(id)].reset(id, before, &mut self.ready);
        }
        freed
    }

    /// All streams begin anew, and so do TSNs. Bytes dropped.
    pub(crate) fn restart(&mut self) -> u64 {
        self.first_ssn = Ssn(0);
        let ready = &mut self.ready;
        if let Some(interleaved) = &mut self.interleaved {
            return interleaved.reset(&[], None, ready);
        }
        let clear = |(id, mut stream): (usize, Stream)| stream.clear(id as u16, ready);
        self.streams.drain(..).enumerate().map(clear).sum()
    }

    /// Nothing more comes on a stream up to `ssn`: what is complete is delivered, the rest dropped. Bytes dropped.
    //= rfc3758#section-3.6
    pub(crate) fn skip(&mut self, stream: u16, ssn: Ssn) -> u64 {
        self.open(stream);
        self.streams[usize::from(stream)].skip(stream, ssn, &mut self.ready)
    }

    /// Unordered messages of which a part up to `cumulative` is missing will not be complete. Bytes dropped.
    //= rfc3758#section-3.6
    pub(crate) fn drop_unordered(&mut self, cumulative: Tsn) -> u64 {
        let (streams, ready) = (self.streams.iter_mut().enumerate(), &mut self.ready);
        streams.map(|(stream, s)| s.drop_unordered(stream as u16, cumulative, ready)).sum()
    }

    /// Takes out the highest chunk above `tsn` that was not delivered; its TSN and bytes.
    pub(crate) fn discard_above(&mut self, tsn: Tsn) -> Option<(Tsn, u64)> {
        if let Some(interleaved) = &mut self.interleaved {
            return interleaved.discard_above(tsn);
        }
        let piles = || self.streams.iter().flat_map(|s| [&s.ordered, &s.unordered]);
        let above = piles().flat_map(|pile| &pile.chunks).map(|data| data.tsn).filter(|t| t.after(tsn));
        let highest = above.max_by_key(|t| t.distance_from(tsn))?;
        let mut piles = self.streams.iter_mut().flat_map(|s| [&mut s.ordered, &mut s.unordered]);
        piles.find_map(|pile| pile.discard(highest)).map(|bytes| (highest, bytes))
    }

    /// Delivers the beginning of a message, of the first stream that has one of which nothing before is
    /// missing: then whatever fills the buffer lies behind it, and can be dropped for its sake.
    pub(crate) fn deliver_part(&mut self, cumulative: Tsn) {
        if let Some(interleaved) = &mut self.interleaved {
            return interleaved.deliver_part(&mut self.ready);
        }
        for stream in &mut self.streams {
            let next = stream.next;
            let in_turn = |data: &Data| data.ssn == next && !data.tsn.after(cumulative);
            let arrived = |data: &Data| !data.tsn.after(cumulative);
            if stream.ordered.deliver_part(in_turn, &mut self.ready)
                || stream.unordered.deliver_part(arrived, &mut self.ready)
            {
                return;
            }
        }
    }
}

impl Stream {
    fn new(next: Ssn) -> Self {
        Stream { next, ordered: Pile::default(), unordered: Pile::default() }
    }

    fn reset(&mut self, stream: u16, before: Tsn, ready: &mut VecDeque<(Delivery, u64)>) -> u64 {
        let freed = self.ordered.drop_while(|data| data.tsn.before(before));
        if self.ordered.resumes.take().is_some() {
            ready.push_back((Delivery::given_up(stream, false), 0));
        }
        self.next = Ssn(0);
        self.deliver_ordered(ready);
        freed
    }

    fn clear(&mut self, stream: u16, ready: &mut VecDeque<(Delivery, u64)>) -> u64 {
        let mut freed = 0;
        for (pile, unordered) in [(&mut self.ordered, false), (&mut self.unordered, true)] {
            freed += pile.drop_while(|_| true);
            if pile.resumes.take().is_some() {
                ready.push_back((Delivery::given_up(stream, unordered), 0));
            }
        }
        freed
    }

    fn skip(&mut self, stream: u16, ssn: Ssn, ready: &mut VecDeque<(Delivery, u64)>) -> u64 {
        if ssn.before(self.next) {
            return 0;
        }
        let mut freed = 0;
        while let Some(front) = self.ordered.chunks.front().filter(|front| !front.ssn.after(ssn)) {
            let message = front.ssn;
            let due = self.ordered.front_starts(|_| true);
            if due && let Some(count) = self.ordered.complete() {
                ready.push_back(self.ordered.take(count));
            } else {
                freed += self.ordered.drop_while(|data| data.ssn == message);
            }
        }
        if self.ordered.resumes.take().is_some() {
            ready.push_back((Delivery::given_up(stream, false), 0));
        }
        self.next = ssn.next();
        self.deliver_ordered(ready);
        freed
    }

    fn drop_unordered(&mut self, stream: u16, last: Tsn, ready: &mut VecDeque<(Delivery, u64)>) -> u64 {
        let pile = &mut self.unordered;
        if pile.resumes.is_some_and(|tsn| !tsn.after(last)) {
            pile.resumes = None;
            ready.push_back((Delivery::given_up(stream, true), 0));
        }
        pile.drop_while(|data| !data.tsn.after(last))
    }

    //= rfc9260#section-6.6
    fn insert_ordered(&mut self, data: Data, ready: &mut VecDeque<(Delivery, u64)>) {
        let whole = data.begin && data.end && data.ssn == self.next;
        if whole && self.ordered.chunks.is_empty() && self.ordered.resumes.is_none() {
            self.next = self.next.next();
            return ready.push_back(whole_message(data));
        }
        let next = self.next;
        let turn = |data: &Data| data.ssn.distance_from(next);
        self.ordered.insert(data, |a, b| turn(a) < turn(b) || (a.ssn == b.ssn && a.tsn.before(b.tsn)));
        self.deliver_ordered(ready);
    }

    fn deliver_ordered(&mut self, ready: &mut VecDeque<(Delivery, u64)>) {
        while self.ordered.front_starts(|front| front.ssn == self.next) {
            let Some(count) = self.ordered.complete() else { break };
            ready.push_back(self.ordered.take(count));
            self.next = self.next.next();
        }
    }

    /// While a message is delivered in parts, those behind it on its stream wait: nothing else says where
    /// its next part belongs.
    fn insert_unordered(&mut self, data: Data, ready: &mut VecDeque<(Delivery, u64)>) {
        let pile = &mut self.unordered;
        if data.begin && data.end && pile.resumes.is_none() {
            return ready.push_back(whole_message(data));
        }
        let at = pile.insert(data, |a, b| a.tsn.before(b.tsn));
        match (pile.message_around(at), pile.resumes) {
            (Some((start, end)), None) => ready.push_back(pile.take_between(start, end)),
            (Some((start, end)), Some(tsn)) if pile.chunks[start].tsn == tsn => {
                ready.push_back(pile.take_between(start, end));
                while let Some((start, end)) = pile.any_message() {
                    ready.push_back(pile.take_between(start, end));
                }
            }
            _ => {}
        }
    }
}

impl Pile {
    /// Puts a chunk in its place; where that is.
    fn insert(&mut self, data: Data, before: impl Fn(&Data, &Data) -> bool) -> usize {
        let at = match self.chunks.back() {
            Some(last) if before(&data, last) => self.chunks.partition_point(|d| before(d, &data)),
            _ => self.chunks.len(),
        };
        if at < self.contiguous || at == 0 {
            self.contiguous = 0;
        }
        self.chunks.insert(at, data);
        at
    }

    fn discard(&mut self, tsn: Tsn) -> Option<u64> {
        let at = self.chunks.iter().rposition(|d| d.tsn == tsn)?;
        self.contiguous = self.contiguous.min(at);
        self.chunks.remove(at).map(|data| padded(data.size()) as u64)
    }

    /// Drops chunks from the front; their bytes.
    fn drop_while(&mut self, unwanted: impl Fn(&Data) -> bool) -> u64 {
        self.contiguous = 0;
        let count = self.chunks.iter().take_while(|data| unwanted(data)).count();
        self.chunks.drain(..count).map(|data| padded(data.size()) as u64).sum()
    }

    /// Whether the chunk in front can be delivered next: it begins a message that is due, or resumes one.
    fn front_starts(&self, due: impl Fn(&Data) -> bool) -> bool {
        let Some(front) = self.chunks.front() else { return false };
        match self.resumes {
            Some(tsn) => front.tsn == tsn,
            None => front.begin && due(front),
        }
    }

    /// How many chunks at the front make up the rest of a message, if it is all here.
    fn complete(&mut self) -> Option<usize> {
        self.contiguous = self.contiguous.max(1);
        while !self.chunks[self.contiguous - 1].end {
            let last = self.chunks[self.contiguous - 1].tsn;
            match self.chunks.get(self.contiguous) {
                Some(next) if next.tsn == last.next() && !next.begin => self.contiguous += 1,
                _ => return None,
            }
        }
        Some(self.contiguous)
    }

    /// Takes the first `count` chunks as the end of a message.
    fn take(&mut self, count: usize) -> (Delivery, u64) {
        self.contiguous = 0;
        self.resumes = None;
        joined(self.chunks.drain(..count))
    }

    /// The bounds of the message that the chunk at `at` belongs to, if it is all here.
    fn message_around(&self, at: usize) -> Option<(usize, usize)> {
        let follows = |a: usize, b: usize| self.chunks[a].tsn.next() == self.chunks[b].tsn;
        let mut start = at;
        while !self.starts(start) {
            if start == 0 || !follows(start - 1, start) {
                return None;
            }
            start -= 1;
        }
        let mut end = at;
        while !self.chunks[end].end {
            if end + 1 == self.chunks.len() || !follows(end, end + 1) {
                return None;
            }
            end += 1;
        }
        Some((start, end + 1))
    }

    /// The bounds of any message that is all here.
    fn any_message(&self) -> Option<(usize, usize)> {
        (0..self.chunks.len()).filter(|&at| self.chunks[at].end).find_map(|at| self.message_around(at))
    }

    fn starts(&self, at: usize) -> bool {
        self.chunks[at].begin || self.resumes == Some(self.chunks[at].tsn)
    }

    fn take_between(&mut self, start: usize, end: usize) -> (Delivery, u64) {
        if self.resumes == Some(self.chunks[start].tsn) {
            self.resumes = None;
        }
        self.contiguous = 0;
        joined(self.chunks.drain(start..end))
    }

    /// Delivers what is contiguous at the front as a part.
    fn deliver_part(&mut self, due: impl Fn(&Data) -> bool, ready: &mut VecDeque<(Delivery, u64)>) -> bool {
        if !self.front_starts(due) || self.complete().is_some() {
            return false;
        }
        let count = self.contiguous;
        let resumes = self.chunks[count - 1].tsn.next();
        ready.push_back(self.take(count));
        self.resumes = Some(resumes);
        true
    }
}

/// The message of one chunk, and the bytes that it occupied.
fn whole_message(data: Data) -> (Delivery, u64) {
    let bytes = padded(data.size()) as u64;
    let Data { stream, ppid, unordered, payload, .. } = data;
    let pieces = SmallVec::from_buf([payload]);
    (Delivery { stream, ppid, unordered, complete: true, abandoned: false, pieces }, bytes)
}

impl Delivery {
    /// The end of a message of which a part was delivered, and the rest is given up.
    pub(crate) fn given_up(stream: u16, unordered: bool) -> Self {
        Delivery { complete: true, abandoned: true, ..empty(stream, unordered) }
    }
}

fn empty(stream: u16, unordered: bool) -> Delivery {
    Delivery { stream, ppid: 0, unordered, complete: false, abandoned: false, pieces: SmallVec::new() }
}

/// The message, or part, made of these chunks, and the bytes that they occupied.
fn joined(chunks: impl Iterator<Item = Data>) -> (Delivery, u64) {
    let mut joined = empty(0, false);
    let mut bytes = 0;
    for data in chunks {
        bytes += padded(data.size()) as u64;
        joined.stream = data.stream;
        joined.unordered = data.unordered;
        joined.complete = data.end;
        if joined.pieces.is_empty() {
            joined.ppid = data.ppid;
        }
        joined.pieces.push(data.payload);
    }
    (joined, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn piece(tsn: u32, ssn: u16, flags: &str) -> Data {
        Data {
            tsn: Tsn(tsn),
            stream: 1,
            ssn: Ssn(ssn),
            ppid: 9,
            begin: flags.contains('B'),
            end: flags.contains('E'),
            unordered: flags.contains('U'),
            immediate: false,
            payload: Bytes::from(vec![tsn as u8; 4]),
        }
    }

    fn delivered(r: &mut Reassembly) -> Vec<(Vec<u8>, bool)> {
        let tell = |(d, bytes): (Delivery, u64)| {
            assert_eq!(bytes as usize, d.len() + 16 * d.pieces.len());
            (d.pieces.iter().map(|p| p[0]).collect(), d.complete)
        };
        std::iter::from_fn(|| r.pop()).map(tell).collect()
    }

    #[test]
    fn ordered_messages_wait_for_their_turn() {
        let mut r = Reassembly::new(Ssn(0));
        r.insert(piece(3, 2, "BE"));
        r.insert(piece(2, 1, "E"));
        assert!(!r.has_ready());
        r.insert(piece(0, 0, "BE"));
        assert_eq!(delivered(&mut r), [(vec![0], true)]);
        r.insert(piece(1, 1, "B"));
        assert_eq!(delivered(&mut r), [(vec![1, 2], true), (vec![3], true)]);
    }

    /// TSN 1 has SSN 2, TSN 2 and 3 have SSN 1, TSN 4 has SSN 0.
    //= rfc9260#section-6.6
    #[test]
    fn the_turn_is_that_of_the_ssn() {
        let mut r = Reassembly::new(Ssn(0));
        for (tsn, ssn, flags) in [(1, 2, "BE"), (3, 1, "E"), (2, 1, "B")] {
            r.insert(piece(tsn, ssn, flags));
        }
        assert!(!r.has_ready());
        r.insert(piece(4, 0, "BE"));
        assert_eq!(delivered(&mut r), [(vec![4], true), (vec![2, 3], true), (vec![1], true)]);
    }

    #[test]
    fn unordered_messages_do_not() {
        let mut r = Reassembly::new(Ssn(0));
        r.insert(piece(7, 0, "UE"));
        r.insert(piece(9, 0, "UBE"));
        r.insert(piece(5, 0, "UB"));
        assert_eq!(delivered(&mut r), [(vec![9], true)]);
        r.insert(piece(6, 0, "U"));
        assert_eq!(delivered(&mut r), [(vec![5, 6, 7], true)]);
    }

    #[test]
    fn a_part_is_resumed_where_it_ended() {
        let mut r = Reassembly::new(Ssn(0));
        r.insert(piece(1, 0, "B"));
        r.insert(piece(2, 0, ""));
        r.insert(piece(4, 0, "E"));
        r.deliver_part(Tsn(2));
        assert_eq!(delivered(&mut r), [(vec![1, 2], false)]);
        r.insert(piece(3, 0, ""));
        assert_eq!(delivered(&mut r), [(vec![3, 4], true)]);
        r.insert(piece(5, 1, "BE"));
        assert_eq!(delivered(&mut r), [(vec![5], true)]);
    }

    #[test]
    fn a_discarded_chunk_can_come_again() {
        let mut r = Reassembly::new(Ssn(0));
        r.insert(piece(2, 0, ""));
        r.insert(piece(3, 0, "E"));
        assert_eq!(r.discard_above(Tsn(1)), Some((Tsn(3), 20)));
        assert_eq!(r.discard_above(Tsn(2)), None);
        r.insert(piece(1, 0, "B"));
        assert!(!r.has_ready());
        r.insert(piece(3, 0, "E"));
        assert_eq!(delivered(&mut r), [(vec![1, 2, 3], true)]);
    }
}
