//! Data that waits for a reset of its stream (RFC 6525 §5.2.2): it was sent after the reset, and the reset itself waits
//! for data sent before it.

use super::ready::Held;
use super::{Arrival, DataOutcome, Receiver};
use crate::wire::chunk::{Data, IData};
use crate::{Rules, Tsn};

/// A reset that waits until all TSNs up to `last` have arrived, and the chunks of its streams beyond that TSN.
#[derive(Clone, Debug)]
pub(super) struct DeferredReset {
    /// In order; an empty list means all.
    streams: Vec<u16>,
    last: Tsn,
    chunks: Vec<HeldBack>,
}

/// A chunk that is acknowledged and not looked at yet.
#[derive(Clone, Debug)]
pub(crate) enum HeldBack {
    Data(Data),
    IData(IData),
}

impl HeldBack {
    pub(super) fn tsn(&self) -> Tsn {
        match self {
            HeldBack::Data(data) => data.tsn,
            HeldBack::IData(data) => data.tsn,
        }
    }

    fn size(&self) -> usize {
        match self {
            HeldBack::Data(data) => data.size(),
            HeldBack::IData(data) => data.size(),
        }
    }

    fn immediate(&self) -> bool {
        match self {
            HeldBack::Data(data) => data.immediate,
            HeldBack::IData(data) => data.immediate,
        }
    }
}

impl DeferredReset {
    /// Whether a chunk of this stream with this TSN was sent after the reset.
    fn precedes(&self, stream: u16, tsn: Tsn) -> bool {
        tsn.after(self.last) && (self.streams.is_empty() || self.streams.binary_search(&stream).is_ok())
    }
}

impl Receiver {
    /// The SSNs of these streams (in order; none: all) will restart when all TSNs up to `last` have arrived.
    //= rfc6525#section-5.2.2
    pub(crate) fn defer_reset(&mut self, streams: Vec<u16>, last: Tsn) {
        self.deferred = Some(Box::new(DeferredReset { streams, last, chunks: Vec::new() }));
    }

    /// Whether a chunk must wait for a reset of its stream.
    pub(crate) fn must_hold_back(&self, stream: u16, tsn: Tsn) -> bool {
        self.deferred.as_ref().is_some_and(|reset| reset.precedes(stream, tsn))
    }

    /// Accepts such a chunk. It occupies its room in the buffer.
    //= rfc6525#section-5.2.2
    pub(crate) fn hold_back(&mut self, chunk: HeldBack, rules: &Rules, arrival: &mut Arrival) -> DataOutcome {
        let taken = self.admit(chunk.tsn(), chunk.size(), chunk.immediate(), rules, arrival);
        if taken == DataOutcome::New
            && let Some(reset) = &mut self.deferred
        {
            reset.chunks.push(chunk);
            self.deliver_parts();
        }
        taken
    }

    /// The reset was carried out: what waited for it is looked at, in the order of the TSNs.
    pub(super) fn release_held_back(&mut self) {
        let Some(mut reset) = self.deferred.take() else { return };
        reset.chunks.sort_by_key(|chunk| chunk.tsn().distance_from(reset.last));
        reset.chunks.into_iter().for_each(|chunk| self.insert(chunk));
        self.deliver_parts();
    }

    /// TSNs restart, which makes void what waits.
    pub(super) fn drop_held_back(&mut self) {
        let reset = self.deferred.take();
        for chunk in reset.into_iter().flat_map(|reset| reset.chunks) {
            self.held -= Held::one(chunk.size());
        }
    }
}
