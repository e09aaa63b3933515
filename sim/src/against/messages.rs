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
    Given { message, seen: chunk.seen, waiting: chunk.waiting, given_up: None, fragment: chunk.length }
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

    /// Whether it was sent until this time.
    pub(super) fn is_sent(&self, until: Time) -> bool {
        self.seen.at <= until
    }

    /// Whether it waited for its interface so long that the time of its sending is unknown.
    pub(super) fn waited(&self) -> bool {
        self.seen.at.since(self.waiting.at.min(self.seen.at)) > PROMPT
    }

    /// Whether it was given until this time, and given up later.
    pub(super) fn is_given_up(&self, until: Time) -> bool {
        self.given_up.is_some() && self.is_sent(until)
    }
}

/// The messages as they are given in this manner, each with its place: in the order of their TSNs.
pub(super) fn given(all: &[Given], manner: Manner) -> Vec<(Place, Message)> {
    let mut latest: Option<Place> = None;
    let mut messages = Vec::with_capacity(all.len());
    for given in all.iter().rev() {
        let place = match manner.user {
            User::AsSeen => given.seen,
            User::BeforeWaiting => given.waiting,
            User::AtOnce => Place { index: 0, at: Time::ZERO },
        };
        // A message that is given later cannot be sent before.
        let place = latest.map_or(place, |latest| earlier(latest, place));
        latest = Some(place);
        let mut message = given.message.clone();
        message.reliability = match (given.given_up, manner.giving_up) {
            (None, _) => Reliability::Full,
            (Some((times, _)), GivingUp::Transmissions) => {
                Reliability::Retransmissions(times.saturating_sub(1))
            }
            (Some((_, at)), GivingUp::Time) => {
                let lifetime = at.since(place.at.min(at)).as_millis();
                Reliability::Lifetime(u32::try_from(lifetime).unwrap_or(u32::MAX))
            }
        };
        messages.push((place, message));
    }
    messages.reverse();
    messages
}

fn earlier(one: Place, other: Place) -> Place {
    Place { index: one.index.min(other.index), at: one.at.min(other.at) }
}
