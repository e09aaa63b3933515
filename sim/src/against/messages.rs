//! The messages that the user of a captured end gave.

use std::collections::BTreeMap;

use anabranch_proto::{Message, Reliability, Time};
use bytes::Bytes;

use super::conversation::NotReplayed;
use super::manner::{GivingUp, Manner, User};
use super::met::{PROMPT, Place};

/// A message may have so many bytes.
pub(super) const MOST_MESSAGE: usize = 16 << 20;
/// User data: zeros, which take no memory.
static ZEROS: [u8; MOST_MESSAGE] = [0; MOST_MESSAGE];

/// Headers of chunks with user data, in bytes.
const DATA_HEADER: usize = 16;
const IDATA_HEADER: usize = 20;
/// Our endpoint puts no smaller part of a message into the rest of a packet.
const SMALLEST_CUT: u32 = 64;

/// A chunk of user data.
pub(super) struct Sent {
    /// Where its message must be given at the latest.
    pub(super) seen: Place,
    /// The same, if it waited for its interface.
    pub(super) waiting: Place,
    /// The stream, and whether it is unordered.
    pub(super) stream: (u16, bool),
    /// I-DATA: the message identifier.
    pub(super) mid: Option<u32>,
    pub(super) ppid: Option<u32>,
    pub(super) end: bool,
    pub(super) immediate: bool,
    pub(super) length: usize,
    /// If it begins its packet, and the packet with data before has new data: the bytes that this one had left.
    pub(super) room: Option<u32>,
    /// How often it was sent.
    pub(super) times: u32,
    /// When a FORWARD TSN skipped it.
    pub(super) given_up: Option<Time>,
}

/// A message, and where the user gave it.
#[derive(Clone, Debug)]
pub(super) struct Given {
    message: Message,
    seen: Place,
    waiting: Place,
    /// If it was given up: how often its chunks were sent at most, and when.
    given_up: Option<(u32, Time)>,
    /// The length of the last fragment.
    fragment: usize,
    /// As of its first chunk.
    room: Option<u32>,
    /// Bytes that its first chunk takes in a packet.
    first: u32,
    /// Whether it has several chunks.
    is_fragmented: bool,
}

/// The messages whose chunks were sent, in the order of their first TSNs.
pub(super) fn messages(sent: &BTreeMap<u32, Sent>) -> Result<Vec<Given>, NotReplayed> {
    let mut messages: Vec<Given> = Vec::new();
    // Unfinished messages. Fragments of DATA follow each other; those of I-DATA have a message identifier.
    let mut open: BTreeMap<_, usize> = BTreeMap::new();
    let mut before = 0;
    for (distance, chunk) in sent {
        let missing = distance.saturating_sub(std::mem::replace(&mut before, distance + 1));
        let key = chunk.mid.map(|mid| (chunk.stream, mid));
        let index = match (chunk.ppid, open.get(&key)) {
            (None, Some(index)) => *index,
            // Without its first fragment, a message begins with the first one that was captured.
            (ppid, unfinished) => {
                if let Some(index) = unfinished {
                    messages[*index].goes_on(missing)?;
                }
                messages.push(begun(chunk, ppid.unwrap_or(0)));
                messages.len() - 1
            }
        };
        messages[index].take(chunk)?;
        if chunk.end {
            open.remove(&key);
        } else {
            open.insert(key, index);
        }
    }
    for index in open.into_values() {
        messages[index].goes_on(1)?;
    }
    messages.retain(|given| !given.message.payload.is_empty());
    Ok(messages)
}

fn begun(chunk: &Sent, ppid: u32) -> Given {
    let message = Message {
        stream: chunk.stream.0,
        ppid,
        unordered: chunk.stream.1,
        immediate: false,
        payload: Bytes::new(),
        reliability: Reliability::Full,
    };
    let header = if chunk.mid.is_some() { IDATA_HEADER } else { DATA_HEADER };
    Given {
        message,
        seen: chunk.seen,
        waiting: chunk.waiting,
        given_up: None,
        fragment: chunk.length,
        room: chunk.room,
        first: (header + chunk.length).next_multiple_of(4) as u32,
        is_fragmented: !chunk.end,
    }
}

impl Given {
    fn take(&mut self, chunk: &Sent) -> Result<(), NotReplayed> {
        self.seen = earlier(self.seen, chunk.seen);
        self.waiting = earlier(self.waiting, chunk.waiting);
        self.fragment = chunk.length;
        self.lengthen(chunk.length)?;
        self.message.immediate |= chunk.immediate && chunk.end;
        if let Some(at) = chunk.given_up {
            let (times, before) = self.given_up.unwrap_or((0, at));
            self.given_up = Some((times.max(chunk.times), before.min(at)));
        }
        Ok(())
    }

    fn lengthen(&mut self, by: usize) -> Result<(), NotReplayed> {
        let payload = ZEROS.get(..self.message.payload.len() + by).ok_or(NotReplayed::LongMessage)?;
        self.message.payload = Bytes::from_static(payload);
        Ok(())
    }

    /// The message was given up before its last fragments were sent, which may have got TSNs.
    fn goes_on(&mut self, fragments: u32) -> Result<(), NotReplayed> {
        if self.given_up.is_none() {
            return Ok(());
        }
        let most = MOST_MESSAGE.saturating_sub(self.message.payload.len());
        self.lengthen((self.fragment * fragments.max(1) as usize).min(most))
    }

    /// The message, given at a place.
    fn message_at(&self, place: Place, giving_up: GivingUp) -> Message {
        let reliability = match (self.given_up, giving_up) {
            (None, _) => Reliability::Full,
            (Some((times, _)), GivingUp::Transmissions) => {
                Reliability::Retransmissions(times.saturating_sub(1))
            }
            (Some((_, at)), GivingUp::Time) => {
                let lifetime = at.since(place.at.min(at)).as_millis();
                Reliability::Lifetime(u32::try_from(lifetime).unwrap_or(u32::MAX))
            }
        };
        Message { reliability, ..self.message.clone() }
    }

    /// Whether it was sent until this time.
    pub(super) fn is_sent(&self, until: Time) -> bool {
        self.seen.at <= until
    }

    /// Whether it waited for its interface so long that the time of its sending is unknown.
    pub(super) fn waited(&self) -> bool {
        self.seen.at.since(self.waiting.at.min(self.seen.at)) > PROMPT
    }

    /// Whether the packet before it had room for it, or for a part of it if our endpoint `fills` packets. Then it was
    /// given after that packet left.
    fn was_late(&self, fills: bool) -> bool {
        match self.is_fragmented {
            true => fills && self.room.is_some_and(|room| room >= SMALLEST_CUT),
            false => self.room.is_some_and(|room| room >= self.first),
        }
    }

    /// Whether it was given until this time, and given up later.
    pub(super) fn is_given_up(&self, until: Time) -> bool {
        self.given_up.is_some() && self.is_sent(until)
    }
}

/// The messages as they are given in this manner, each with its place: in the order of their TSNs. `fills`: whether our
/// endpoint fills packets with the beginning of the next message.
pub(super) fn given(all: &[Given], manner: Manner, fills: bool) -> Vec<(Place, Message)> {
    let places = match manner.user {
        User::AsSeen => before_later_ones(all.iter().map(|given| given.seen)),
        User::BeforeWaiting => before_later_ones(all.iter().map(|given| given.waiting)),
        User::Ahead => ahead(all, fills),
        User::AtOnce => vec![Place::BEGIN; all.len()],
    };
    let message = |(place, given): (Place, &Given)| (place, given.message_at(place, manner.giving_up));
    places.into_iter().zip(all).map(message).collect()
}

/// A message that is given later cannot be sent before.
fn before_later_ones(places: impl DoubleEndedIterator<Item = Place>) -> Vec<Place> {
    let mut latest: Option<Place> = None;
    let one = |place| *latest.insert(latest.map_or(place, |latest| earlier(latest, place)));
    let mut all: Vec<Place> = places.rev().map(one).collect();
    all.reverse();
    all
}

/// Each message as early as the capture permits: with the one before it, unless a packet had room for it.
fn ahead(all: &[Given], fills: bool) -> Vec<Place> {
    let mut latest = Place::BEGIN;
    let place = |given: &Given| {
        if given.was_late(fills) && given.seen.index >= latest.index {
            latest = given.seen;
        }
        latest
    };
    all.iter().map(place).collect()
}

fn earlier(one: Place, other: Place) -> Place {
    Place { index: one.index.min(other.index), at: one.at.min(other.at) }
}
