//! Makes messages of DATA: joins fragments and orders messages (RFC 9260 §6.5, §6.6, §6.9).
//!
//! Waiting fragments form runs: consecutive TSNs of one message. An arriving chunk extends a run, joins two runs, or
//! begins one. A message is complete when its run has both ends. Chunks are never searched one by one. They are
//! identified by positions, which are TSNs that do not wrap.
//!
//! Ordered messages of a single chunk that wait for earlier messages lie in slots, which pages list by stream and SSN.
//! This costs less than a run for each. When the buffer is full, or streams are reset or skip messages, they become
//! runs like all others.

mod growing;
mod slots;

use std::collections::{BTreeMap, VecDeque};

use growing::Growing;
use slots::{Slot, Slots};

use super::due::Due;
use super::ready::{Held, PartialMessage, Ready};
use crate::Ssn;
use crate::wire::chunk::Data;

/// The fragments of messages that are not complete or not due.
#[derive(Clone, Default, Debug)]
pub(super) struct Reassembly {
    /// If a message grows here, there is no ordered run and no page. It becomes a run when anything else arrives.
    growing: Growing,
    ordered: BTreeMap<Name, Run>,
    unordered: BTreeMap<Name, Run>,
    /// Waiting ordered messages of one chunk, and where each lies, by stream and SSN.
    whole: Slots,
    pages: BTreeMap<u32, Box<Page>>,
    /// The memory of a page that became empty.
    spare_page: Option<Box<Page>>,
    /// The ordered runs by position; computed when they are needed, which is when the buffer is full.
    positions: Option<BTreeMap<u64, Name>>,
    due: Due<Ssn>,
    resumes: Option<Resumes>,
}

/// Stream, SSN (both zero for unordered chunks) and position of a run's first chunk, in this order, as one number.
type Name = u128;

fn name(stream: u16, ssn: u16, position: u64) -> Name {
    u128::from(stream) << 80 | u128::from(ssn) << 64 | u128::from(position)
}

fn stream(name: Name) -> u16 {
    (name >> 80) as u16
}

fn ssn(name: Name) -> u16 {
    (name >> 64) as u16
}

fn position(name: Name) -> u64 {
    name as u64
}

/// Chunks with consecutive TSNs of one message. Rare fields are boxed, because runs move within their tree.
#[derive(Clone, Debug)]
struct Run {
    first: Data,
    #[allow(clippy::box_collection, reason = "most runs have none, and runs move in their tree")]
    others: Option<Box<VecDeque<Data>>>,
    /// Whether it continues a message of which a part was delivered.
    begun: Option<Box<PartialMessage>>,
}

/// Where messages with neighbouring SSNs of a stream lie. With larger pages, a single SSN on its page would cost too
/// much memory.
#[derive(Clone, Default, Debug)]
struct Page {
    count: u32,
    places: [Option<Slot>; PLACES],
}

/// The number of SSNs on a page.
const PLACES: usize = 32;

fn page_of(stream: u16, ssn: Ssn) -> u32 {
    (u32::from(stream) << 16) | (u32::from(ssn.0) / PLACES as u32)
}

fn place_of(ssn: Ssn) -> usize {
    usize::from(ssn.0) % PLACES
}

/// The message of which a part was delivered last. There is at most one, because everything before `at` has arrived.
#[derive(Clone, Debug)]
struct Resumes {
    /// The position of its next chunk.
    at: u64,
    stream: u16,
    /// `None`: it is unordered.
    ssn: Option<Ssn>,
    begun: PartialMessage,
}

impl Reassembly {
    pub(super) fn new(first_ssn: Ssn) -> Self {
        Reassembly { due: Due::new(first_ssn), ..Reassembly::default() }
    }

    /// Whether nothing waits and the message of this chunk is due.
    #[inline]
    pub(super) fn passes(&self, data: &Data) -> bool {
        let empty = self.growing.is_empty() && self.ordered.is_empty() && self.pages.is_empty();
        let idle = empty && self.resumes.is_none();
        idle && self.due.is_open(data.stream) && (data.unordered || data.ssn == self.due.on(data.stream))
    }

    /// Delivers a message that [`passes`](Self::passes).
    #[inline]
    pub(super) fn pass(&mut self, data: Data, ready: &mut Ready) {
        self.pass_by(&data);
        ready.whole((data.stream, data.unordered), data.ppid, data.size(), data.payload);
    }

    /// A message that [`passes`](Self::passes) is not delivered.
    #[inline]
    pub(super) fn pass_by(&mut self, data: &Data) {
        if !data.unordered {
            self.due.set(data.stream, data.ssn.next());
        }
    }

    /// Accepts a chunk that was not here before. Its stream was checked.
    #[inline]
    pub(super) fn insert(&mut self, at: u64, data: Data, ready: &mut Ready) {
        let begins = data.begin && !data.end && !data.unordered;
        if self.growing.continues(at, &data) || begins && self.positions.is_none() && self.passes(&data) {
            self.grow(at, data, ready);
        } else {
            self.insert_any(at, data, ready);
        }
    }

    /// Adds a chunk to the message that grows, and delivers the message if it is complete.
    fn grow(&mut self, at: u64, data: Data, ready: &mut Ready) {
        let (stream, ssn, ended) = (data.stream, data.ssn, data.end);
        self.growing.push(at, data);
        if ended {
            self.due.set(stream, ssn.next());
            let begun = PartialMessage { message: ready.number(), ppid: self.growing.ppid() };
            let chunks = self.growing.take().1.map(|data| (data.size(), data.payload));
            ready.joined((stream, false), begun, true, chunks);
            self.growing.shrink();
        }
    }

    /// Makes a run of the message that grows.
    fn end_growth(&mut self) {
        let (at, mut chunks) = self.growing.take();
        let Some(first) = chunks.next() else { return };
        let others: VecDeque<Data> = chunks.collect();
        let own = name(first.stream, first.ssn.0, at);
        let others = (!others.is_empty()).then(|| Box::new(others));
        self.put(false, own, Run { first, others, begun: None });
    }

    /// Accepts a chunk that does not belong to the message that grows.
    //= rfc9260#section-6.6
    fn insert_any(&mut self, at: u64, data: Data, ready: &mut Ready) {
        self.end_growth();
        self.due.open(data.stream);
        let (stream, in_turn) = (data.stream, data.unordered || data.ssn == self.due.on(data.stream));
        let begun = self.resume(at, &data, ready);
        if data.begin && data.end && in_turn {
            let unordered = data.unordered;
            ready.whole((stream, unordered), data.ppid, data.size(), data.payload);
            if !unordered {
                self.due.set(stream, self.due.on(stream).next());
                self.deliver_in_turn(stream, ready);
            }
            return;
        }
        let whole = data.begin && data.end && !data.unordered;
        let data = if whole && self.positions.is_none() { self.put_in_page(at, data) } else { Some(data) };
        let Some(data) = data else { return };
        let unordered = data.unordered;
        let joined = self.join(at, data, begun);
        if !self.map(unordered)[&joined].is_complete() {
            return;
        }
        if unordered {
            self.remove(true, joined).deliver(true, ready);
        } else if in_turn {
            self.deliver_in_turn(stream, ready);
        }
    }

    /// The SSNs of these streams (in order; none: all) restart. Drops what arrived before this position, and returns
    /// its size. The cost depends on what is dropped, not on how many streams there are or how much waits: a peer can
    /// reset streams often.
    //= rfc6525#section-5.2.2
    pub(super) fn reset(&mut self, streams: &[u16], before: u64, ready: &mut Ready) -> Held {
        self.break_pages();
        let mut old = self.ordered_before(before);
        old.retain(|name| streams.is_empty() || streams.binary_search(&stream(*name)).is_ok());
        old.sort_unstable();
        let resumes = self.resumes.as_ref().map(|resumes| resumes.stream);
        let touched = old.iter().copied().map(stream).chain(resumes);
        let mut freed = Held::default();
        let mut old = old.iter().copied().peekable();
        for stream in self.due.restarting(streams, touched) {
            self.due.open(stream);
            while let Some(name) = old.next_if(|name| self::stream(*name) == stream) {
                freed += self.drop_front(false, name, before, ready);
            }
            self.give_up(|resumes| resumes.stream == stream && resumes.ssn.is_some(), ready);
            self.due.set(stream, Ssn(0));
            self.deliver_in_turn(stream, ready);
        }
        if streams.is_empty() {
            self.due.begin_with(Ssn(0));
        }
        self.positions.take_if(|_| self.ordered.is_empty());
        freed
    }

    /// All streams and TSNs restart. Returns the size of what is dropped.
    pub(super) fn restart(&mut self, ready: &mut Ready) -> Held {
        self.break_pages();
        let mut freed = Held::default();
        for unordered in [false, true] {
            while let Some((&name, _)) = self.map(unordered).first_key_value() {
                freed += self.drop_front(unordered, name, u64::MAX, ready);
            }
        }
        self.give_up(|_| true, ready);
        *self = Reassembly::default();
        freed
    }

    /// Nothing more arrives on a stream up to `ssn`: complete messages are delivered, the rest is dropped.
    //= rfc3758#section-3.6
    pub(super) fn skip(&mut self, stream: u16, ssn: Ssn, ready: &mut Ready) -> Held {
        self.due.open(stream);
        let mut freed = Held::default();
        let due = self.due.on(stream);
        if ssn.before(due) {
            return freed;
        }
        self.break_pages();
        let wraps = ssn.0 < due.0;
        let halves = if wraps { [(due.0, u16::MAX), (0, ssn.0)] } else { [(due.0, ssn.0), (1, 0)] };
        for (first, last) in halves.into_iter().filter(|(first, last)| first <= last) {
            let names = name(stream, first, 0)..=name(stream, last, u64::MAX);
            while let Some((&name, run)) = self.ordered.range(names.clone()).next() {
                if run.is_complete() {
                    self.remove(false, name).deliver(false, ready);
                } else {
                    freed += self.drop_front(false, name, u64::MAX, ready);
                }
            }
        }
        self.give_up(|resumes| resumes.stream == stream && resumes.ssn.is_some(), ready);
        self.due.set(stream, ssn.next());
        self.deliver_in_turn(stream, ready);
        freed
    }

    /// Unordered messages with a missing chunk up to this position will never be complete. Returns the size of what
    /// is dropped.
    //= rfc3758#section-3.6
    pub(super) fn drop_unordered(&mut self, last: u64, ready: &mut Ready) -> Held {
        self.give_up(|resumes| resumes.ssn.is_none() && resumes.at <= last, ready);
        let mut freed = Held::default();
        while let Some((&name, _)) =
            self.unordered.first_key_value().filter(|(name, _)| position(**name) <= last)
        {
            freed += self.drop_front(true, name, last + 1, ready);
        }
        freed
    }

    /// Removes the highest undelivered chunk above this position, and returns its position.
    pub(super) fn discard_above(&mut self, at: u64) -> Option<(u64, Held)> {
        let ordered = self.last_ordered(u64::MAX);
        let unordered = self.unordered.last_key_value().map(|(name, _)| *name);
        let kind = ordered.map(position) < unordered.map(position);
        let name = if kind { unordered } else { ordered }?;
        let run = self.map(kind).get_mut(&name)?;
        let highest = run.end(name) - 1;
        if highest <= at {
            return None;
        }
        let dropped = match run.others.as_mut().and_then(|others| others.pop_back()) {
            Some(data) => data,
            None => self.remove(kind, name).first,
        };
        Some((highest, Held::one(dropped.size())))
    }

    /// Delivers the beginning of the message that contains the Cumulative TSN. Everything else in the buffer then
    /// lies behind it and can be dropped for it.
    //= rfc9260#section-6.9
    pub(super) fn deliver_part(&mut self, cumulative: u64, ready: &mut Ready) {
        let ordered = self.last_ordered(cumulative);
        let unordered = self.unordered.range(..=name(0, 0, cumulative)).next_back().map(|(name, _)| *name);
        for (unordered, name) in [(false, ordered), (true, unordered)] {
            let Some((name, run)) = name.and_then(|name| Some((name, self.map(unordered).get(&name)?)))
            else {
                continue;
            };
            let (at, stream, ssn) = (run.end(name), run.first.stream, run.first.ssn);
            let cut = at > cumulative && run.has_beginning() && !run.is_complete();
            if cut && (unordered || ssn == self.due.on(stream)) {
                self.give_up(|_| true, ready);
                let begun = self.remove(unordered, name).deliver(unordered, ready);
                self.resumes = Some(Resumes { at, stream, ssn: (!unordered).then_some(ssn), begun });
                return;
            }
        }
    }

    /// The last ordered run that begins at or before this position.
    fn last_ordered(&mut self, at: u64) -> Option<Name> {
        self.break_pages();
        if self.ordered.is_empty() {
            return None;
        }
        self.positions().range(..=at).next_back().map(|(_, name)| *name)
    }

    /// The ordered runs that begin before this position. There are no pages.
    fn ordered_before(&mut self, at: u64) -> Vec<Name> {
        if self.ordered.is_empty() {
            return Vec::new();
        }
        self.positions().range(..at).map(|(_, name)| *name).collect()
    }

    /// The ordered runs by position.
    fn positions(&mut self) -> &BTreeMap<u64, Name> {
        let all = || self.ordered.keys().map(|name| (position(*name), *name)).collect();
        self.positions.get_or_insert_with(all)
    }

    /// Puts a complete message in its place, or returns it if another message has its SSN.
    fn put_in_page(&mut self, at: u64, data: Data) -> Option<Data> {
        let spare = &mut self.spare_page;
        let page = self.pages.entry(page_of(data.stream, data.ssn));
        let page = page.or_insert_with(|| spare.take().unwrap_or_default());
        let place = &mut page.places[place_of(data.ssn)];
        if place.is_some() {
            return Some(data);
        }
        *place = Some(self.whole.put(at, data));
        page.count += 1;
        None
    }

    /// Makes runs of the messages in pages, and of the one that grows.
    fn break_pages(&mut self) {
        self.end_growth();
        for slot in std::mem::take(&mut self.pages).into_values().flat_map(|page| page.places).flatten() {
            let (at, first) = self.whole.take(slot);
            let own = name(first.stream, first.ssn.0, at);
            self.put(false, own, Run { first, others: None, begun: None });
        }
    }

    /// The messages of a stream in pages, beginning with the one that is due.
    fn deliver_pages(&mut self, stream: u16, ready: &mut Ready) {
        let mut due = self.due.on(stream);
        while let Some(page) = self.pages.get_mut(&page_of(stream, due)) {
            let number = page_of(stream, due);
            while page_of(stream, due) == number
                && let Some(slot) = page.places[place_of(due)].take()
            {
                let (_, data) = self.whole.take(slot);
                ready.whole((stream, false), data.ppid, data.size(), data.payload);
                page.count -= 1;
                due = due.next();
            }
            let stays = page_of(stream, due) == number;
            if page.count == 0 {
                self.spare_page = self.pages.remove(&number);
            }
            if stays {
                break;
            }
        }
        self.due.set(stream, due);
    }

    /// Joins a chunk with the runs that it touches. Returns the key of its run.
    fn join(&mut self, at: u64, data: Data, begun: Option<PartialMessage>) -> Name {
        let unordered = data.unordered;
        let own = if unordered { name(0, 0, at) } else { name(data.stream, data.ssn.0, at) };
        let continued =
            !data.end && self.map(unordered).get(&(own + 1)).is_some_and(|run| run.follows(&data));
        let behind = continued.then(|| self.remove(unordered, own + 1));
        if !data.begin
            && begun.is_none()
            && let Some((&name, run)) = self.map(unordered).range_mut(..own).next_back()
            && (run.end(name) == at && run.precedes(&data))
        {
            run.others.get_or_insert_default().push_back(data);
            behind.into_iter().for_each(|behind| run.append(behind));
            return name;
        }
        let mut run = Run { first: data, others: None, begun: begun.map(Box::new) };
        behind.into_iter().for_each(|behind| run.append(behind));
        self.put(unordered, own, run);
        own
    }

    /// The record of the message that continues with this chunk, if a part of it was delivered.
    fn resume(&mut self, at: u64, data: &Data, ready: &mut Ready) -> Option<PartialMessage> {
        let resumes = self.resumes.take_if(|resumes| resumes.at == at)?;
        let ssn = (!data.unordered).then_some(data.ssn);
        if !data.begin && data.stream == resumes.stream && ssn == resumes.ssn {
            return Some(resumes.begun);
        }
        ready.given_up((resumes.stream, resumes.ssn.is_none()), resumes.begun);
        None
    }

    /// The rest of a message of which a part was delivered was abandoned.
    fn give_up(&mut self, which: impl Fn(&Resumes) -> bool, ready: &mut Ready) {
        if let Some(resumes) = self.resumes.take_if(|resumes| which(resumes)) {
            ready.given_up((resumes.stream, resumes.ssn.is_none()), resumes.begun);
        }
    }

    /// The complete ordered messages of a stream, beginning with the one that is due.
    fn deliver_in_turn(&mut self, stream: u16, ready: &mut Ready) {
        loop {
            self.deliver_pages(stream, ready);
            let (mut due, first) = (self.due.on(stream), name(stream, self.due.on(stream).0, 0));
            let mut last = None;
            for (name, run) in self.ordered.range(first..=name(stream, u16::MAX, u64::MAX)) {
                if ssn(*name) != due.0 || !run.is_complete() {
                    break;
                }
                (last, due) = (Some(*name), due.next());
            }
            let Some(last) = last else { return };
            let mut deliver = |(name, run): (Name, Run)| {
                run.deliver(false, ready);
                self.positions.as_mut().map(|positions| positions.remove(&position(name)));
            };
            let lowest = self.ordered.first_key_value().map(|(name, _)| *name);
            let highest = self.ordered.last_key_value().map(|(name, _)| *name);
            if lowest >= Some(first) && highest == Some(last) {
                // Splitting the tree costs less than removing the runs one by one.
                std::mem::take(&mut self.ordered).into_iter().for_each(&mut deliver);
            } else {
                self.ordered.extract_if(first..=last, |_, _| true).for_each(&mut deliver);
            }
            self.due.set(stream, due);
            self.positions.take_if(|_| self.ordered.is_empty());
            // The greatest SSN is followed by the smallest; a run that was due may be followed by a message in a
            // page.
            if due != Ssn(0) && !self.pages.contains_key(&page_of(stream, due)) {
                return;
            }
        }
    }

    /// Drops the chunks of a run before this position, and with them the message. Returns their size.
    fn drop_front(&mut self, unordered: bool, name: Name, before: u64, ready: &mut Ready) -> Held {
        let mut run = self.remove(unordered, name);
        if let Some(begun) = run.begun.take() {
            ready.given_up((run.first.stream, unordered), *begun);
        }
        let count = before.saturating_sub(position(name)).min(run.end(0));
        let mut freed = Held::default();
        let mut chunks = run.chunks();
        chunks.by_ref().take(count as usize).for_each(|data| freed += Held::one(data.size()));
        if let Some(first) = chunks.next() {
            let rest = Run { first, others: Some(Box::new(chunks.collect())), begun: None };
            self.put(unordered, name + u128::from(count), rest);
        }
        freed
    }

    fn put(&mut self, unordered: bool, name: Name, run: Run) {
        self.map(unordered).insert(name, run);
        if !unordered && let Some(positions) = &mut self.positions {
            positions.insert(position(name), name);
        }
    }

    fn remove(&mut self, unordered: bool, name: Name) -> Run {
        if !unordered && let Some(positions) = &mut self.positions {
            positions.remove(&position(name));
        }
        self.map(unordered).remove(&name).expect("a run that was just found")
    }

    fn map(&mut self, unordered: bool) -> &mut BTreeMap<Name, Run> {
        if unordered { &mut self.unordered } else { &mut self.ordered }
    }
}

impl Run {
    /// The position of the chunk after it.
    fn end(&self, name: Name) -> u64 {
        position(name) + 1 + self.others.as_ref().map_or(0, |others| others.len()) as u64
    }

    fn last(&self) -> &Data {
        self.others.as_ref().and_then(|others| others.back()).unwrap_or(&self.first)
    }

    fn chunks(self) -> impl Iterator<Item = Data> {
        std::iter::once(self.first).chain(self.others.map(|others| *others).unwrap_or_default())
    }

    fn has_beginning(&self) -> bool {
        self.begun.is_some() || self.first.begin
    }

    fn is_complete(&self) -> bool {
        self.has_beginning() && self.last().end
    }

    /// Whether the next chunk belongs to its message.
    fn precedes(&self, data: &Data) -> bool {
        !data.begin && !self.last().end && same_message(self.last(), data)
    }

    /// Whether the chunk before it belongs to its message.
    fn follows(&self, data: &Data) -> bool {
        !data.end && !self.has_beginning() && same_message(&self.first, data)
    }

    /// Appends the run that follows it. The shorter of both is moved.
    fn append(&mut self, behind: Run) {
        let others = self.others.get_or_insert_default();
        let mut more = behind.others.unwrap_or_default();
        if more.len() > others.len() {
            more.push_front(behind.first);
            while let Some(data) = others.pop_back() {
                more.push_front(data);
            }
            *others = more;
        } else {
            others.push_back(behind.first);
            others.append(&mut more);
        }
    }

    /// Delivers it as a message or as a part of one.
    fn deliver(self, unordered: bool, ready: &mut Ready) -> PartialMessage {
        let (complete, stream, ppid) = (self.is_complete(), self.first.stream, self.first.ppid);
        if complete && self.others.is_none() && self.begun.is_none() {
            let size = self.first.size();
            let message = ready.whole((stream, unordered), ppid, size, self.first.payload);
            return PartialMessage { message, ppid };
        }
        let begun = self.begun.as_deref().copied();
        let begun = begun.unwrap_or_else(|| PartialMessage { message: ready.number(), ppid });
        let chunks = self.chunks().map(|data| (data.size(), data.payload));
        ready.joined((stream, unordered), begun, complete, chunks);
        begun
    }
}

fn same_message(a: &Data, b: &Data) -> bool {
    a.stream == b.stream && (a.unordered || a.ssn == b.ssn)
}

#[cfg(test)]
mod tests;
