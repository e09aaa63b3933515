//! Which chunks of a path are being timed, when a loss interferes (rule `rtt_on_cut`).

use super::Path;
use crate::rules::RttOnCut;
use crate::{Time, Tsn};

/// The largest number of chunks of a path that are timed in addition to the latest one.
const ALSO_TIMED: usize = 16;

impl Path {
    /// Whether chunks are timed in addition to the latest one.
    #[inline(always)]
    pub(crate) fn times_several(&self) -> bool {
        !self.also_timed.is_empty()
    }

    /// As `times_several`, for chunks before this one.
    #[inline(always)]
    pub(super) fn also_times_before(&self, end: Tsn) -> bool {
        self.also_timed.iter().any(|(timed, _)| timed.before(end))
    }

    fn suspends(&self) -> bool {
        self.rtt_on_cut == RttOnCut::Suspend
    }

    /// The window is cut.
    pub(crate) fn cut_timing(&mut self) {
        match self.rtt_on_cut {
            RttOnCut::Keep => {}
            RttOnCut::Cancel => self.timed = None,
            RttOnCut::Another | RttOnCut::Suspend => self.time_another(),
        }
    }

    /// T3-rtx expired.
    pub(crate) fn end_timing(&mut self) {
        match self.suspends() {
            true => self.time_another(),
            false => {
                self.timed = None;
                self.also_timed.clear();
            }
        }
    }

    /// No chunk is timed or suspected any more.
    pub(super) fn forget_chunks(&mut self) {
        (self.timed, self.suspect) = (None, None);
        self.also_timed.clear();
    }

    /// The next new chunk is timed too, in addition to the running measurements.
    fn time_another(&mut self) {
        if let Some(timed) = self.timed.take() {
            self.also_time(timed);
        }
    }

    fn also_time(&mut self, timed: (Tsn, Time)) {
        if self.also_timed.len() == ALSO_TIMED {
            self.also_timed.remove(0);
        }
        self.also_timed.push(timed);
    }

    /// The chunk that is being timed was acknowledged. Returns when it was sent. With `suspend` it counts again if a
    /// Gap Ack Block that acknowledged it is taken back, and comes again.
    #[inline]
    pub(crate) fn end_timing_of(&mut self, by_gap: bool) -> Option<Time> {
        let timed = self.timed.take()?;
        if by_gap && self.suspends() {
            self.also_time(timed);
        }
        Some(timed.1)
    }

    /// A chunk was acknowledged. If it was timed in addition to another one, and counts, returns when it was sent.
    pub(crate) fn end_timing_beside(&mut self, tsn: Tsn, by_gap: bool) -> Option<Time> {
        let at = self.also_timed.iter().position(|(timed, _)| *timed == tsn)?;
        let (_, since) = self.also_timed[at];
        let counts = !self.suspends() || self.timed.is_some();
        if !(self.suspends() && by_gap) {
            self.also_timed.remove(at);
        }
        if counts {
            self.time_another();
        }
        counts.then_some(since)
    }

    /// A chunk is sent again, or given up: it is no longer timed in addition to another one. With `suspend`, the
    /// measurement that runs is suspended.
    pub(crate) fn forget_also_timed(&mut self, tsn: Tsn) {
        let before = self.also_timed.len();
        self.also_timed.retain(|(timed, _)| *timed != tsn);
        if self.also_timed.len() < before && self.suspends() {
            self.time_another();
        }
    }

    /// All chunks below this one are acknowledged for good.
    pub(crate) fn forget_timed_below(&mut self, first: Tsn) {
        self.also_timed.retain(|(timed, _)| !timed.before(first));
    }
}
