//! Makes messages of I-DATA (RFC 8260). Fragments belong together by stream, order, Message Identifier and Fragment
//! Sequence Number; their TSNs do not matter.
//!
//! Waiting fragments have keys that begin with the key of their message, so every step is a search in a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::due::Due;
use super::ready::{Held, PartialMessage, Ready};
use crate::Mid;
use crate::wire::chunk::{FragmentPosition, IData, SkippedMessage};

/// The key of a message: its stream, whether it is unordered, and its Message Identifier.
type Name = (u16, bool, u32);

/// The messages that are not complete or not due.
#[derive(Clone, Default, Debug)]
pub(super) struct Interleaved {
    messages: BTreeMap<Name, Progress>,
    /// The fragments by message and Fragment Sequence Number, each with the position of its TSN.
    fragments: BTreeMap<(Name, u64), (u64, IData)>,
    /// The same fragments by position.
    positions: BTreeMap<u64, (Name, u64)>,
    /// The messages by the highest position at which a fragment arrived.
    ends: BTreeSet<(u64, Name)>,
    /// Incomplete messages of which a part can be delivered: they are due, and their next fragment has arrived.
    /// Unordered messages of which nothing was delivered yet are in `untouched`.
    startable: BTreeSet<Name>,
    untouched: BTreeSet<Name>,
    /// The number of incomplete unordered messages of which a part was delivered.
    open: usize,
    due: Due<Mid>,
}

/// How much of a message has arrived and was delivered.
#[derive(Clone, Default, Debug)]
struct Progress {
    /// The first fragment that was not delivered. The count continues if Fragment Sequence Numbers wrap.
    start: u64,
    /// The number of consecutive fragments from there on.
    run: u64,
    /// The number of fragments that are held.
    count: u64,
    /// The highest position at which a fragment arrived.
    latest: u64,
    /// The last fragment of the message, if it has arrived.
    end: Option<u64>,
    /// Set if a part was delivered.
    begun: Option<PartialMessage>,
}

impl Progress {
    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end + 1 == self.start + self.run)
    }
}

impl Interleaved {
    /// Accepts a chunk that was not here before. Returns its size if it is dropped.
    //= rfc8260#section-2.2.3
    pub(super) fn insert(&mut self, at: u64, data: IData, ready: &mut Ready) -> Held {
        self.due.open(data.stream);
        let (stream, unordered, mid) = (data.stream, data.unordered, data.mid);
        let name = (stream, unordered, mid.0);
        let held = Held::one(data.size());
        if !unordered && mid.before(self.due.on(stream)) {
            return held;
        }
        let in_turn = unordered || mid == self.due.on(stream);
        if let FragmentPosition::First { ppid } = data.place
            && (data.end && in_turn && !self.messages.contains_key(&name))
        {
            ready.whole((stream, unordered), ppid, data.size(), data.payload);
            if !unordered {
                self.due.set(stream, self.due.on(stream).next());
                self.deliver_in_turn(stream, ready);
            }
            return Held::default();
        }
        let progress = self.messages.entry(name).or_default();
        let own = progress.start + u64::from(fsn(&data).wrapping_sub(progress.start as u32));
        if !fits(progress, &self.fragments, (name, own), &data) {
            if progress.count == 0 && progress.begun.is_none() {
                self.messages.remove(&name);
            }
            return held;
        }
        progress.count += 1;
        progress.end = progress.end.or(data.end.then_some(own));
        if at > progress.latest {
            self.ends.remove(&(progress.latest, name));
            progress.latest = at;
            self.ends.insert((at, name));
        }
        self.fragments.insert((name, own), (at, data));
        self.positions.insert(at, (name, own));
        self.extend(name);
        if unordered && self.messages[&name].is_complete() {
            self.deliver(name, ready);
        }
        if !unordered {
            self.deliver_in_turn(stream, ready);
        }
        Held::default()
    }

    /// Removes the highest undelivered chunk above this position, and returns its position.
    pub(super) fn discard_above(&mut self, at: u64) -> Option<(u64, Held)> {
        let entry = self.positions.last_entry().filter(|entry| *entry.key() > at)?;
        let (highest, (name, own)) = entry.remove_entry();
        let (_, data) = self.fragments.remove(&(name, own))?;
        if let Some(progress) = self.messages.get_mut(&name) {
            progress.count -= 1;
            progress.run = progress.run.min(own - progress.start);
            progress.end = progress.end.filter(|end| *end != own);
            if progress.count == 0 && progress.begun.is_none() {
                self.remove(name);
            }
        }
        self.note_startable(name);
        Some((highest, Held::one(data.size())))
    }

    /// Delivers the beginning of the first message that is due and has arrived in part.
    pub(super) fn deliver_part(&mut self, ready: &mut Ready) {
        let Some(name) = self.next_startable() else { return };
        let Some(progress) = self.messages.get_mut(&name) else { return };
        self.open += usize::from(name.1 && progress.begun.is_none());
        let (start, run) = (progress.start, std::mem::take(&mut progress.run));
        progress.start += run;
        progress.count -= run;
        let known = progress.begun;
        let begun = self.take(name, start..start + run, known, false, ready);
        if let Some(progress) = self.messages.get_mut(&name) {
            progress.begun = Some(begun);
        }
    }

    /// Takes the first message of which a part can be delivered.
    ///
    /// A sender has one message of a stream under way at a time. So a further unordered message is begun only while
    /// fewer are open than streams are in use: open messages take memory and no room in the buffer, and a peer could
    /// begin messages without end.
    //= rfc8260#section-2.2.2
    fn next_startable(&mut self) -> Option<Name> {
        let untouched = self.untouched.first().filter(|_| self.open < self.due.in_use());
        match (self.startable.first(), untouched) {
            (None, None) => None,
            (Some(first), Some(other)) if other < first => self.untouched.pop_first(),
            (None, Some(_)) => self.untouched.pop_first(),
            (Some(_), _) => self.startable.pop_first(),
        }
    }

    /// Nothing more arrives of this message and earlier ones of its kind. Returns the size of what is dropped.
    //= rfc8260#section-2.3.1
    pub(super) fn skip(&mut self, skipped: SkippedMessage, ready: &mut Ready) -> Held {
        let SkippedMessage { stream, unordered, mid } = skipped;
        self.due.open(stream);
        let mut freed = Held::default();
        let oldest = mid.0.wrapping_sub((1 << 31) - 1);
        let halves =
            if oldest > mid.0 { [(oldest, u32::MAX), (0, mid.0)] } else { [(oldest, mid.0), (1, 0)] };
        for (first, last) in halves.into_iter().filter(|(first, last)| first <= last) {
            let names = (stream, unordered, first)..=(stream, unordered, last);
            while let Some((&name, _)) = self.messages.range(names.clone()).next() {
                freed += self.finish(name, ready);
            }
        }
        if !unordered && !mid.before(self.due.on(stream)) {
            self.due.set(stream, mid.next());
        }
        self.deliver_in_turn(stream, ready);
        freed
    }

    /// Both sequences of these streams (in order; none: all) restart. Drops messages all of whose chunks lie before
    /// this position. Returns the size of what is dropped.
    //= rfc8260#section-2.3.2
    pub(super) fn reset(&mut self, streams: &[u16], before: u64, ready: &mut Ready) -> Held {
        let named: BTreeSet<u16> = streams.iter().copied().collect();
        let ended = self.ends.range(..(before, Name::default())).map(|(_, name)| *name);
        let ended: BTreeSet<Name> =
            ended.filter(|name| named.is_empty() || named.contains(&name.0)).collect();
        let mut freed = Held::default();
        for stream in self.due.restarting(streams, ended.iter().map(|name| name.0)) {
            self.due.open(stream);
            self.forget_startable((stream, false, self.due.on(stream).0));
            for name in ended.range((stream, false, 0)..=(stream, true, u32::MAX)) {
                freed += self.finish(*name, ready);
            }
            self.due.set(stream, Mid(0));
            self.deliver_in_turn(stream, ready);
        }
        freed
    }

    /// Nothing more arrives of a message: delivers it if it is complete, and drops it otherwise. Returns the size of
    /// what is dropped.
    fn finish(&mut self, name: Name, ready: &mut Ready) -> Held {
        self.forget_startable(name);
        let Some(progress) = self.messages.get(&name) else { return Held::default() };
        if progress.is_complete() {
            self.deliver(name, ready);
            return Held::default();
        }
        if let Some(begun) = progress.begun {
            ready.given_up((name.0, name.1), begun);
        }
        self.remove(name);
        let mut freed = Held::default();
        while let Some((&key, _)) = self.fragments.range((name, 0)..=(name, u64::MAX)).next() {
            if let Some((at, data)) = self.fragments.remove(&key) {
                self.positions.remove(&at);
                freed += Held::one(data.size());
            }
        }
        freed
    }

    /// Delivers the complete ordered messages of a stream, beginning with the one that is due.
    fn deliver_in_turn(&mut self, stream: u16, ready: &mut Ready) {
        loop {
            let name = (stream, false, self.due.on(stream).0);
            if !self.messages.get(&name).is_some_and(Progress::is_complete) {
                return self.note_startable(name);
            }
            self.deliver(name, ready);
            self.due.set(stream, self.due.on(stream).next());
        }
    }

    /// Delivers a complete message.
    fn deliver(&mut self, name: Name, ready: &mut Ready) {
        self.forget_startable(name);
        if let Some(Progress { start, run, begun, .. }) = self.remove(name) {
            self.take(name, start..start + run, begun, true, ready);
        }
    }

    /// Removes what is known of a message.
    fn remove(&mut self, name: Name) -> Option<Progress> {
        let progress = self.messages.remove(&name)?;
        self.ends.remove(&(progress.latest, name));
        self.open -= usize::from(name.1 && progress.begun.is_some());
        Some(progress)
    }

    /// Delivers these fragments, which have all arrived.
    fn take(
        &mut self,
        name: Name,
        fragments: std::ops::Range<u64>,
        begun: Option<PartialMessage>,
        complete: bool,
        ready: &mut Ready,
    ) -> PartialMessage {
        let ppid = match self.fragments.get(&(name, fragments.start)).map(|(_, data)| data.place) {
            Some(FragmentPosition::First { ppid }) => ppid,
            _ => 0,
        };
        let begun = begun.unwrap_or_else(|| PartialMessage { message: ready.number(), ppid });
        let chunks = fragments.filter_map(|own| {
            let (at, data) = self.fragments.remove(&(name, own))?;
            self.positions.remove(&at);
            Some((data.size(), data.payload))
        });
        ready.joined((name.0, name.1), begun, complete, chunks);
        begun
    }

    /// Extends the run of consecutive fragments.
    fn extend(&mut self, name: Name) {
        let Some(progress) = self.messages.get_mut(&name) else { return };
        while self.fragments.contains_key(&(name, progress.start + progress.run)) {
            progress.run += 1;
        }
        self.note_startable(name);
    }

    /// Records whether a part of this message can be delivered.
    fn note_startable(&mut self, name: Name) {
        let due = name.1 || name.2 == self.due.on(name.0).0;
        let begins = |message: &&Progress| due && message.run > 0 && !message.is_complete();
        match self.messages.get(&name).filter(begins) {
            Some(message) if name.1 && message.begun.is_none() => {
                self.untouched.insert(name);
            }
            Some(_) => {
                self.startable.insert(name);
            }
            None => self.forget_startable(name),
        }
    }

    /// No part of this message can be delivered.
    fn forget_startable(&mut self, name: Name) {
        for set in [&mut self.startable, &mut self.untouched] {
            if !set.is_empty() {
                set.remove(&name);
            }
        }
    }
}

/// Whether a fragment can belong to this message: it was not held or delivered before, and does not contradict the
/// others.
fn fits(
    progress: &Progress,
    fragments: &BTreeMap<(Name, u64), (u64, IData)>,
    (name, own): (Name, u64),
    data: &IData,
) -> bool {
    let first = matches!(data.place, FragmentPosition::First { .. });
    let headless = own == progress.start && progress.begun.is_none() && !first;
    let beyond = progress.end.is_some_and(|end| end < own);
    let taken = fragments.contains_key(&(name, own));
    let short = data.end && fragments.range((name, own + 1)..=(name, u64::MAX)).next().is_some();
    own - progress.start < 1 << 31 && !(headless || beyond || taken || short)
}

fn fsn(fragment: &IData) -> u32 {
    match fragment.place {
        FragmentPosition::First { .. } => 0,
        FragmentPosition::Later { fsn } => fsn,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Tsn;

    /// A fragment of an unordered message of the first stream.
    fn fragment(tsn: u32, mid: u32, fsn: u32, end: bool) -> IData {
        let place =
            if fsn == 0 { FragmentPosition::First { ppid: 0 } } else { FragmentPosition::Later { fsn } };
        let payload = Bytes::from_static(b"x");
        let (stream, unordered, immediate) = (0, true, false);
        IData { tsn: Tsn(tsn), stream, mid: Mid(mid), place, end, unordered, immediate, payload }
    }

    /// A peer begins messages without end. The user reads every part at once, but of one message only: the others stay
    /// in the buffer, which limits them. When the first is complete, the next one has its turn.
    //= rfc8260#section-2.2.2
    #[test]
    fn no_more_messages_are_open_than_streams() {
        let (mut interleaved, mut ready) = (Interleaved::default(), Ready::default());
        let mut read = |interleaved: &mut Interleaved| {
            interleaved.deliver_part(&mut ready);
            ready.pop().map(|(delivery, _)| (delivery.message, delivery.complete))
        };
        let insert = |interleaved: &mut Interleaved, tsn, mid, fsn, end| {
            interleaved.insert(u64::from(tsn), fragment(tsn, mid, fsn, end), &mut Ready::default())
        };
        for mid in 0..100 {
            assert_eq!(insert(&mut interleaved, mid, mid, 0, false), Held::default());
            assert_eq!(read(&mut interleaved), (mid == 0).then_some((1, false)), "{mid}");
        }
        insert(&mut interleaved, 100, 0, 1, false);
        assert_eq!(read(&mut interleaved), Some((1, false)), "the first goes on");
        insert(&mut interleaved, 101, 0, 2, true);
        assert_eq!((interleaved.open, interleaved.messages.len()), (0, 99));
        assert_eq!(read(&mut interleaved), Some((2, false)), "the next begins");
        assert_eq!(read(&mut interleaved), None);
        let skipped = SkippedMessage { stream: 0, unordered: true, mid: Mid(98) };
        interleaved.skip(skipped, &mut Ready::default());
        assert_eq!((interleaved.open, interleaved.untouched.len()), (0, 1), "nothing more comes of it");
    }

    /// A reset ends what lies before its position; the rest belongs to the new numbers. That holds for a message whose
    /// fragments were all delivered, too.
    //= rfc8260#section-2.3.2
    #[test]
    fn a_reset_ends_only_messages_before_its_position() {
        let (mut interleaved, mut ready) = (Interleaved::default(), Ready::default());
        for (at, mid) in [(10, 1), (11, 2), (20, 3)] {
            interleaved.insert(at, fragment(at as u32, mid, 0, false), &mut ready);
        }
        interleaved.insert(21, fragment(21, 2, 1, false), &mut ready);
        interleaved.reset(&[0], 20, &mut ready);
        let waiting =
            |interleaved: &Interleaved| interleaved.messages.keys().map(|name| name.2).collect::<Vec<_>>();
        assert_eq!(waiting(&interleaved), [2, 3], "only the first lies before it as a whole");
        interleaved.deliver_part(&mut ready);
        assert_eq!(
            ready.pop().map(|(delivery, _)| delivery.complete),
            Some(false),
            "both fragments of the second"
        );
        interleaved.reset(&[], 21, &mut ready);
        assert_eq!(waiting(&interleaved), [2], "the second goes on after the reset");
        assert_eq!((interleaved.open, interleaved.ends.len()), (1, 1));
        interleaved.reset(&[], 22, &mut ready);
        assert_eq!((interleaved.open, interleaved.ends.len(), waiting(&interleaved).len()), (0, 0, 0));
    }
}
