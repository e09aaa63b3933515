//! From I-DATA to messages: by stream, order, Message Identifier and Fragment Sequence Number, whatever the TSNs (RFC 8260).
//!
//! Fragments that wait are kept by their names, which begin with the name of their message; every step is a search in a tree.

use std::collections::{BTreeMap, BTreeSet};

use super::ready::{Held, PartialMessage, Ready};
use crate::Mid;
use crate::wire::chunk::{FragmentPosition, IData, SkippedMessage};

/// A message: its stream, whether it is unordered, its Message Identifier.
type Name = (u16, bool, u32);

/// The messages that are not complete, or not due.
#[derive(Clone, Default, Debug)]
pub(super) struct Interleaved {
    messages: BTreeMap<Name, Progress>,
    /// By message and Fragment Sequence Number; each with the position of its TSN.
    fragments: BTreeMap<(Name, u64), (u64, IData)>,
    /// The same fragments by position.
    positions: BTreeMap<u64, (Name, u64)>,
    /// Incomplete messages of which a part could be delivered: those that are due and whose next fragment is here.
    startable: BTreeSet<Name>,
    /// The ordered message that is due, by stream, as far as used.
    due: Vec<Mid>,
}

/// How far a message has come.
#[derive(Clone, Default, Debug)]
struct Progress {
    /// The fragment where what was not delivered begins; counted on if Fragment Sequence Numbers wrap.
    start: u64,
    /// So many fragments from there on follow each other.
    run: u64,
    /// Fragments that are here.
    count: u64,
    /// The last fragment of all, if it is here.
    end: Option<u64>,
    /// A part was delivered.
    begun: Option<PartialMessage>,
}

impl Progress {
    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| end + 1 == self.start + self.run)
    }
}

impl Interleaved {
    /// Takes a chunk that has not been here before; what it occupies if it is thrown away.
    //= rfc8260#section-2.2.3
    pub(super) fn insert(&mut self, at: u64, data: IData, ready: &mut Ready) -> Held {
        self.open(data.stream);
        let (stream, unordered, mid) = (data.stream, data.unordered, data.mid);
        let name = (stream, unordered, mid.0);
        let held = Held::one(data.size());
        if !unordered && mid.before(self.due(stream)) {
            return held;
        }
        let in_turn = unordered || mid == self.due(stream);
        if let FragmentPosition::First { ppid } = data.place
            && (data.end && in_turn && !self.messages.contains_key(&name))
        {
            ready.whole((stream, unordered), ppid, data.size(), data.payload);
            if !unordered {
                self.advance(stream);
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

    /// Takes out the highest chunk above this position that was not delivered; where it stood.
    pub(super) fn discard_above(&mut self, at: u64) -> Option<(u64, Held)> {
        let entry = self.positions.last_entry().filter(|entry| *entry.key() > at)?;
        let (highest, (name, own)) = entry.remove_entry();
        let (_, data) = self.fragments.remove(&(name, own))?;
        if let Some(progress) = self.messages.get_mut(&name) {
            progress.count -= 1;
            progress.run = progress.run.min(own - progress.start);
            progress.end = progress.end.filter(|end| *end != own);
            if progress.count == 0 && progress.begun.is_none() {
                self.messages.remove(&name);
            }
        }
        self.note_startable(name);
        Some((highest, Held::one(data.size())))
    }

    /// Delivers the beginning of a message that is due, the first that has one.
    pub(super) fn deliver_part(&mut self, ready: &mut Ready) {
        let Some(name) = self.startable.pop_first() else { return };
        let Some(progress) = self.messages.get_mut(&name) else { return };
        let (start, run) = (progress.start, std::mem::take(&mut progress.run));
        progress.start += run;
        progress.count -= run;
        let known = progress.begun;
        let begun = self.take(name, start..start + run, known, false, ready);
        if let Some(progress) = self.messages.get_mut(&name) {
            progress.begun = Some(begun);
        }
    }

    /// Nothing more comes of this message and those before it. What is dropped.
    //= rfc8260#section-2.3.1
    pub(super) fn skip(&mut self, skipped: SkippedMessage, ready: &mut Ready) -> Held {
        let SkippedMessage { stream, unordered, mid } = skipped;
        self.open(stream);
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
        if !unordered && !mid.before(self.due(stream)) {
            self.due[usize::from(stream)] = mid.next();
        }
        self.deliver_in_turn(stream, ready);
        freed
    }

    /// Both numbers of these streams (none: all) begin anew; messages all of whose chunks stand before this position go. What is
    /// dropped.
    //= rfc8260#section-2.3.2
    pub(super) fn reset(&mut self, streams: &[u16], before: u64, ready: &mut Ready) -> Held {
        let all: Vec<u16> = if streams.is_empty() {
            (0..self.due.len()).map(|stream| stream as u16).collect()
        } else {
            streams.to_vec()
        };
        let mut freed = Held::default();
        for stream in all {
            self.open(stream);
            let names = self.messages.range((stream, false, 0)..=(stream, true, u32::MAX));
            let names: Vec<Name> = names.map(|(name, _)| *name).collect();
            for name in names {
                self.startable.remove(&name);
                let mut fragments = self.fragments.range((name, 0)..=(name, u64::MAX));
                if fragments.all(|(_, (at, _))| *at < before) {
                    freed += self.finish(name, ready);
                } else if name.1 {
                    self.note_startable(name);
                }
            }
            self.due[usize::from(stream)] = Mid(0);
            self.deliver_in_turn(stream, ready);
        }
        freed
    }

    /// A message of which nothing more comes: delivered if complete, else dropped. What is dropped.
    fn finish(&mut self, name: Name, ready: &mut Ready) -> Held {
        self.startable.remove(&name);
        let Some(progress) = self.messages.get(&name) else { return Held::default() };
        if progress.is_complete() {
            self.deliver(name, ready);
            return Held::default();
        }
        if let Some(begun) = progress.begun {
            ready.given_up((name.0, name.1), begun);
        }
        self.messages.remove(&name);
        let mut freed = Held::default();
        while let Some((&key, _)) = self.fragments.range((name, 0)..=(name, u64::MAX)).next() {
            if let Some((at, data)) = self.fragments.remove(&key) {
                self.positions.remove(&at);
                freed += Held::one(data.size());
            }
        }
        freed
    }

    /// Ordered messages in their turn.
    fn deliver_in_turn(&mut self, stream: u16, ready: &mut Ready) {
        loop {
            let name = (stream, false, self.due(stream).0);
            if !self.messages.get(&name).is_some_and(Progress::is_complete) {
                return self.note_startable(name);
            }
            self.deliver(name, ready);
            self.advance(stream);
        }
    }

    /// Delivers a message that is complete.
    fn deliver(&mut self, name: Name, ready: &mut Ready) {
        self.startable.remove(&name);
        if let Some(Progress { start, run, begun, .. }) = self.messages.remove(&name) {
            self.take(name, start..start + run, begun, true, ready);
        }
    }

    /// Delivers these fragments, which are here.
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

    /// Counts the fragments that follow those known to follow each other.
    fn extend(&mut self, name: Name) {
        let Some(progress) = self.messages.get_mut(&name) else { return };
        while self.fragments.contains_key(&(name, progress.start + progress.run)) {
            progress.run += 1;
        }
        self.note_startable(name);
    }

    /// Keeps account of whether a part of this message could be delivered.
    fn note_startable(&mut self, name: Name) {
        let due = name.1 || name.2 == self.due(name.0).0;
        let begins =
            self.messages.get(&name).is_some_and(|message| message.run > 0 && !message.is_complete());
        if due && begins {
            self.startable.insert(name);
        } else if !self.startable.is_empty() {
            self.startable.remove(&name);
        }
    }

    /// The ordered message that is due on a stream that is open.
    fn due(&self, stream: u16) -> Mid {
        self.due[usize::from(stream)]
    }

    fn advance(&mut self, stream: u16) {
        let due = &mut self.due[usize::from(stream)];
        *due = due.next();
    }

    /// Makes a place for a stream.
    fn open(&mut self, stream: u16) {
        if self.due.len() <= usize::from(stream) {
            self.due.resize(usize::from(stream) + 1, Mid(0));
        }
    }
}

/// Whether a message can have this fragment: not if it is there, was delivered, or contradicts the others.
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
