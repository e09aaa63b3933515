//! TSNs that restart (RFC 6525 §5.2.4), and those that lie too far ahead.

use super::Receiver;
use super::tracker::REACH;
use crate::serial::LATE;
use crate::{Config, Tsn};

impl Receiver {
    /// The receiver of the same association that begins anew with this TSN. What can be read is gone; messages that the
    /// user has read in part end.
    pub(crate) fn begun_anew(&self, first: Tsn, config: &Config) -> Self {
        let mut receiver = Receiver::new(first, config);
        if self.discards() {
            receiver.discard();
        }
        receiver.ready = self.ready.begun_anew();
        receiver
    }

    /// The peer may restart its TSNs before we learn of it; until then no data beyond a gap is accepted.
    pub(crate) fn expect_restart(&mut self, expected: bool) {
        self.reach = if expected { 1 } else { REACH };
    }

    /// TSNs restart with this one, and so do all SSNs. Data that has already arrived with the next TSNs stays.
    /// `defers`: whether the deferred reset, if there is one, counts in the new TSNs, so that it still waits.
    //= rfc6525#section-5.2.4
    pub(crate) fn restart(&mut self, next: Tsn, defers: bool) {
        let deferred = self.deferred.take_if(|_| defers);
        if next.prev().before(self.cumulative()) {
            self.reset_streams(&[], next);
        } else {
            self.held -= match &mut self.interleaved {
                Some(interleaved) => interleaved.reset(&[], u64::MAX, &mut self.ready),
                None => self.reassembly.restart(&mut self.ready),
            };
            self.drop_held_back();
            self.before_restart = Some(self.cumulative());
            self.tracker.restart(next);
            self.duplicates.clear();
        }
        self.deferred = deferred;
    }

    /// Whether a peer can have abandoned everything up to this TSN: it cannot have more outstanding than our window
    /// has bytes, or than we accept.
    pub(crate) fn can_skip_to(&self, cumulative: Tsn) -> bool {
        self.is_past(cumulative) || !self.is_far(cumulative)
    }

    /// Whether everything up to this TSN has arrived. A chunk from before a reset of the TSNs may be late: its TSN lies
    /// up to half the number space ahead.
    pub(super) fn is_past(&self, tsn: Tsn) -> bool {
        let late = || self.before_restart.is_some_and(|last| last.distance_from(tsn) <= LATE);
        !tsn.after(self.cumulative()) || self.is_far(tsn) && late()
    }

    /// Whether this TSN is further ahead than a peer can have sent.
    fn is_far(&self, tsn: Tsn) -> bool {
        let most = u64::from(REACH).max(self.buffer.bytes);
        u64::from(tsn.distance_from(self.cumulative())) > most
    }
}
