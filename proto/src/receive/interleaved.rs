//! From I-DATA to messages: by stream, order, Message Identifier and Fragment Sequence Number, whatever the TSNs.

use std::collections::{BTreeMap, VecDeque};

use smallvec::SmallVec;

use crate::wire::chunk::{IData, Place, SkippedMessage, padded};
use crate::{Delivery, Mid, Tsn};

type Ready = VecDeque<(Delivery, u64)>;

/// The messages that are not complete, or not due.
#[derive(Default)]
pub(crate) struct Interleaved {
    /// By stream, and whether unordered.
    lanes: BTreeMap<(u16, bool), Lane>,
}

/// The messages of one stream and order.
#[derive(Default)]
struct Lane {
    /// The message that is due; of ordered ones only.
    next: Mid,
    /// In the order of their identifiers.
    messages: VecDeque<Message>,
}

struct Message {
    mid: Mid,
    /// In the order of their places.
    fragments: VecDeque<IData>,
    /// How many from the first on follow each other.
    run: usize,
    /// The fragment that must come next, after those delivered as a part, and the payload protocol identifier.
    resumes: Option<(u32, u32)>,
}

impl Interleaved {
    /// Takes a chunk that has not been here before; the bytes of it if it is thrown away.
    //= rfc8260#section-2.2.3
    pub(crate) fn insert(&mut self, data: IData, ready: &mut Ready) -> u64 {
        let (stream, unordered, mid) = (data.stream, data.unordered, data.mid);
        let lane = self.lanes.entry((stream, unordered)).or_default();
        if !unordered && mid.before(lane.next) {
            return size(&data);
        }
        let at = lane.messages.partition_point(|message| message.mid.before(mid));
        if lane.messages.get(at).is_none_or(|message| message.mid != mid) {
            lane.messages.insert(at, Message::new(mid));
        }
        if let Some(refused) = lane.messages[at].insert(data) {
            return refused;
        }
        if unordered && lane.messages[at].is_complete() {
            ready.extend(lane.messages.remove(at).map(Message::joined));
        }
        lane.deliver(unordered, ready);
        0
    }

    /// Takes out the highest chunk above `tsn` that was not delivered; its TSN and bytes.
    pub(crate) fn discard_above(&mut self, tsn: Tsn) -> Option<(Tsn, u64)> {
        let messages = || self.lanes.values().flat_map(|lane| &lane.messages);
        let above = messages().flat_map(|message| &message.fragments).map(|fragment| fragment.tsn);
        let highest = above.filter(|t| t.after(tsn)).max_by_key(|t| t.distance_from(tsn))?;
        self.discard(highest).map(|bytes| (highest, bytes))
    }

    fn discard(&mut self, tsn: Tsn) -> Option<u64> {
        let mut messages = self.lanes.values_mut().flat_map(|lane| &mut lane.messages);
        messages.find_map(|message| {
            let at = message.fragments.iter().position(|fragment| fragment.tsn == tsn)?;
            message.run = message.run.min(at);
            message.fragments.remove(at).map(|fragment| size(&fragment))
        })
    }

    /// Delivers the beginning of a message that is due, the first that has one.
    pub(crate) fn deliver_part(&mut self, ready: &mut Ready) {
        for ((_, unordered), lane) in &mut self.lanes {
            let next = lane.next;
            let due = |message: &&mut Message| message.run > 0 && (*unordered || message.mid == next);
            if let Some(message) = lane.messages.iter_mut().find(due) {
                ready.push_back(message.part());
                return;
            }
        }
    }

    /// Nothing more comes of this message and those before it. Bytes dropped.
    //= rfc8260#section-2.3.1
    pub(crate) fn skip(&mut self, skipped: SkippedMessage, ready: &mut Ready) -> u64 {
        let SkippedMessage { stream, unordered, mid } = skipped;
        let lane = self.lanes.entry((stream, unordered)).or_default();
        let mut freed = 0;
        while let Some(message) = lane.messages.pop_front_if(|message| !message.mid.after(mid)) {
            freed += finish(message, stream, unordered, ready);
        }
        if !unordered && !mid.before(lane.next) {
            lane.next = mid.next();
        }
        lane.deliver(unordered, ready);
        freed
    }

    /// Both numbers of these streams (none: all) begin anew; what is not complete of before goes. Bytes dropped.
    //= rfc8260#section-2.3.2
    pub(crate) fn reset(&mut self, streams: &[u16], before: Option<Tsn>, ready: &mut Ready) -> u64 {
        let mut freed = 0;
        let listed = streams.iter().flat_map(|stream| [(*stream, false), (*stream, true)]);
        let keys: Vec<(u16, bool)> = match streams {
            [] => self.lanes.keys().copied().collect(),
            _ => listed.collect(),
        };
        for (stream, unordered) in keys {
            let Some(lane) = self.lanes.get_mut(&(stream, unordered)) else { continue };
            let old = |message: &Message| {
                before.is_none_or(|tsn| message.fragments.iter().all(|f| f.tsn.before(tsn)))
            };
            let (gone, kept): (VecDeque<_>, VecDeque<_>) =
                std::mem::take(&mut lane.messages).into_iter().partition(old);
            freed += gone.into_iter().map(|message| finish(message, stream, unordered, ready)).sum::<u64>();
            (lane.next, lane.messages) = (Mid(0), kept);
            lane.deliver(unordered, ready);
        }
        freed
    }
}

impl Lane {
    /// Ordered messages in their turn.
    fn deliver(&mut self, unordered: bool, ready: &mut Ready) {
        let due =
            |message: &mut Message, next: Mid| !unordered && message.mid == next && message.is_complete();
        let mut next = self.next;
        while let Some(message) = self.messages.pop_front_if(|message| due(message, next)) {
            ready.push_back(message.joined());
            next = next.next();
        }
        self.next = next;
    }
}

impl Message {
    fn new(mid: Mid) -> Self {
        Message { mid, fragments: VecDeque::new(), run: 0, resumes: None }
    }

    /// The place where what was not delivered begins.
    fn start(&self) -> u32 {
        self.resumes.map_or(0, |(fsn, _)| fsn)
    }

    /// Puts a fragment in its place; its bytes if that is taken, was delivered, or is none.
    fn insert(&mut self, data: IData) -> Option<u64> {
        let start = self.start();
        let offset = |fragment: &IData| fsn(fragment).wrapping_sub(start);
        let own = offset(&data);
        let at = self.fragments.partition_point(|fragment| offset(fragment) < own);
        let taken = self.fragments.get(at).is_some_and(|fragment| offset(fragment) == own);
        let beyond = at.checked_sub(1).is_some_and(|before| self.fragments[before].end);
        let short = data.end && at < self.fragments.len();
        let headless = own == 0 && self.resumes.is_none() && !matches!(data.place, Place::First { .. });
        if own >= 1 << 31 || taken || beyond || short || headless {
            return Some(size(&data));
        }
        self.fragments.insert(at, data);
        while self.fragments.get(self.run).is_some_and(|fragment| offset(fragment) == self.run as u32) {
            self.run += 1;
        }
        None
    }

    fn is_complete(&self) -> bool {
        self.run > 0 && self.fragments[self.run - 1].end
    }

    /// What follows each other at the beginning.
    fn part(&mut self) -> (Delivery, u64) {
        let ppid = self.ppid();
        let run = std::mem::take(&mut self.run);
        self.resumes = Some((self.start().wrapping_add(run as u32), ppid));
        joined(self.fragments.drain(..run), ppid)
    }

    fn joined(mut self) -> (Delivery, u64) {
        let ppid = self.ppid();
        joined(self.fragments.drain(..), ppid)
    }

    fn ppid(&self) -> u32 {
        match (self.resumes, self.fragments.front().map(|fragment| fragment.place)) {
            (Some((_, ppid)), _) | (None, Some(Place::First { ppid })) => ppid,
            _ => 0,
        }
    }
}

/// A message of which nothing more comes: delivered if complete, else dropped. Bytes dropped.
fn finish(message: Message, stream: u16, unordered: bool, ready: &mut Ready) -> u64 {
    if message.is_complete() {
        ready.push_back(message.joined());
        return 0;
    }
    if message.resumes.is_some() {
        ready.push_back((Delivery::given_up(stream, unordered), 0));
    }
    message.fragments.iter().map(size).sum()
}

fn fsn(fragment: &IData) -> u32 {
    match fragment.place {
        Place::First { .. } => 0,
        Place::Later { fsn } => fsn,
    }
}

fn size(data: &IData) -> u64 {
    padded(data.size()) as u64
}

/// The message, or part, made of these chunks, and the bytes that they occupied.
fn joined(chunks: impl Iterator<Item = IData>, ppid: u32) -> (Delivery, u64) {
    let (stream, unordered, complete, abandoned) = (0, false, false, false);
    let mut joined = Delivery { stream, ppid, unordered, complete, abandoned, pieces: SmallVec::new() };
    let mut bytes = 0;
    for data in chunks {
        bytes += size(&data);
        (joined.stream, joined.unordered, joined.complete) = (data.stream, data.unordered, data.end);
        joined.pieces.push(data.payload);
    }
    (joined, bytes)
}
