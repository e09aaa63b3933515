//! Sending of interleaved messages (RFC 8260): the numbers of I-DATA chunks, and the round-robin order of the streams.
//! `receive/interleaved.rs` reassembles the fragments.

use std::collections::{BTreeMap, VecDeque};

use super::stream_list::covers;
use crate::wire::chunk::{Data, FragmentPosition, IData};
use crate::{Mid, Tsn};

/// The numbers of the sending side. Streams with messages take turns, one chunk each.
//= rfc8260#section-3.2
#[derive(Clone, Default, Debug)]
pub(crate) struct Interleaving {
    /// The next Message Identifier of each stream, ordered and unordered.
    mids: BTreeMap<(u16, bool), Mid>,
    /// For each stream: the message that was partly sent, and its next fragment.
    under_way: BTreeMap<u16, (Mid, u32)>,
    /// Chunks that were sent and are not cumulatively acknowledged: TSN, message and fragment.
    places: VecDeque<(Tsn, Mid, u32)>,
    /// The number of queued messages, by stream.
    waiting: BTreeMap<u16, usize>,
}

impl Interleaving {
    pub(crate) fn enter(&mut self, stream: u16) {
        *self.waiting.entry(stream).or_default() += 1;
    }

    /// A message of this stream has left the queue.
    pub(crate) fn strike(&mut self, stream: u16) {
        if let Some(count) = self.waiting.get_mut(&stream) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&stream);
            }
        }
    }

    /// The next stream in turn after this one. `None`: no other stream has messages.
    pub(crate) fn after(&self, stream: u16) -> Option<u16> {
        let next = self.waiting.range(stream.saturating_add(1)..).next().or(self.waiting.first_key_value());
        next.map(|(next, _)| *next).filter(|next| *next != stream)
    }

    /// Assigns the numbers of a chunk that is being sent.
    //= rfc8260#section-2.2.2
    pub(crate) fn sent(&mut self, tsn: Tsn, (stream, unordered): (u16, bool), end: bool) {
        let (mid, fsn) = match self.under_way.remove(&stream) {
            Some(place) => place,
            None => {
                let next = self.mids.entry((stream, unordered)).or_default();
                let mid = *next;
                *next = mid.next();
                (mid, 0)
            }
        };
        if !end {
            self.under_way.insert(stream, (mid, fsn.wrapping_add(1)));
        }
        self.places.push_back((tsn, mid, fsn));
    }

    /// The message and fragment numbers of a chunk that was sent.
    pub(crate) fn place(&self, tsn: Tsn) -> (Mid, u32) {
        let first = self.places.front().map_or(tsn, |place| place.0);
        let place = self.places.get(tsn.distance_from(first) as usize);
        place.map_or((Mid(0), 0), |(_, mid, fsn)| (*mid, *fsn))
    }

    /// Converts a chunk to the I-DATA chunk that is sent.
    pub(crate) fn chunk(&self, data: Data) -> IData {
        let (mid, fsn) = self.place(data.tsn);
        let place = if data.begin {
            FragmentPosition::First { ppid: data.ppid }
        } else {
            FragmentPosition::Later { fsn }
        };
        let Data { tsn, stream, end, unordered, immediate, payload, .. } = data;
        IData { tsn, stream, mid, place, end, unordered, immediate, payload }
    }

    /// Forgets the chunks that are cumulatively acknowledged.
    pub(crate) fn trim(&mut self, point: Tsn) {
        while self.places.pop_front_if(|place| !place.0.after(point)).is_some() {}
    }

    /// Whether any message was numbered on these streams (none means all), which are in order.
    pub(crate) fn begun(&self, streams: &[u16]) -> bool {
        self.mids.iter().any(|((stream, _), mid)| *mid != Mid(0) && covers(streams, *stream))
    }

    /// Resets both sequences of these streams (none means all), which are in order.
    //= rfc8260#section-2.3.2
    pub(crate) fn reset(&mut self, streams: &[u16]) {
        self.mids.retain(|(stream, _), _| !covers(streams, *stream));
    }
}
