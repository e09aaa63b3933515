//! Sending of interleaved messages (RFC 8260): the numbers of I-DATA chunks. `send/queue.rs` lets streams take turns,
//! and `receive/interleaved.rs` reassembles the fragments.

use std::collections::{BTreeMap, VecDeque};

use super::stream_list::covers;
use crate::wire::chunk::{Data, FragmentPosition, IData};
use crate::{Mid, Tsn};

/// The numbers of the sending side.
#[derive(Clone, Default, Debug)]
pub(crate) struct Interleaving {
    /// The next Message Identifier of each stream, ordered and unordered.
    mids: BTreeMap<(u16, bool), Mid>,
    /// For each stream: the message that was partly sent, and its next fragment.
    under_way: BTreeMap<u16, (Mid, u32)>,
    /// Chunks that were sent and are not cumulatively acknowledged: TSN, message and fragment.
    places: VecDeque<(Tsn, Mid, u32)>,
}

impl Interleaving {
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
