//! Which TSNs have arrived: the Cumulative TSN, and one bit for each TSN beyond it.
//!
//! The cost of a bit does not depend on where the gaps are: nothing is searched or moved when a TSN arrives.

use smallvec::SmallVec;

use crate::Tsn;
use crate::wire::chunk::GapBlock;

/// The farthest that a Gap Ack Block can reach.
pub(super) const REACH: u32 = u16::MAX as u32;
/// The size of the ring, in bits, when the first gap appears.
const SMALLEST: u32 = 1024;

#[derive(Clone, Debug)]
pub(super) struct Tracker {
    /// All TSNs up to this one have arrived.
    cumulative: Tsn,
    /// The position of the Cumulative TSN in the association's whole sequence of TSNs, wraps included.
    position: u64,
    /// One bit for each TSN beyond the Cumulative TSN, at the TSN modulo the number of bits (a power of two). Empty
    /// until there is a gap.
    bits: Vec<u64>,
    /// The number of set bits.
    set: u32,
    /// The number of runs that they form.
    runs: usize,
}

impl Tracker {
    pub(super) fn new(first: Tsn) -> Self {
        Tracker { cumulative: first.prev(), position: 1 << 32, bits: Vec::new(), set: 0, runs: 0 }
    }

    pub(super) fn cumulative(&self) -> Tsn {
        self.cumulative
    }

    /// A number for this TSN that does not wrap; it is greater for later TSNs.
    pub(super) fn position(&self, tsn: Tsn) -> u64 {
        let ahead = tsn.distance_from(self.cumulative).cast_signed();
        self.position.wrapping_add_signed(ahead.into())
    }

    /// The TSN at a position.
    pub(super) fn tsn_at(&self, position: u64) -> Tsn {
        self.cumulative.plus(position.wrapping_sub(self.position) as u32)
    }

    /// Runs of TSNs beyond gaps.
    pub(super) fn runs(&self) -> usize {
        self.runs
    }

    /// Whether this TSN has arrived.
    pub(super) fn has(&self, tsn: Tsn) -> bool {
        let ahead = tsn.distance_from(self.cumulative);
        !tsn.after(self.cumulative) || self.is_set(ahead)
    }

    /// Records the TSN after the Cumulative TSN, while there is no gap.
    #[inline]
    pub(super) fn record_next(&mut self) {
        (self.cumulative, self.position) = (self.cumulative.next(), self.position + 1);
    }

    /// Records a TSN that has not arrived, at most [`REACH`] beyond the Cumulative TSN.
    #[inline(always)]
    pub(super) fn record(&mut self, tsn: Tsn) {
        let ahead = tsn.distance_from(self.cumulative);
        if ahead == 1 {
            (self.cumulative, self.position) = (tsn, self.position + 1);
            return self.absorb();
        }
        while ahead >= self.capacity() {
            self.grow();
        }
        let joins = usize::from(self.is_set(ahead - 1)) + usize::from(self.is_set(ahead + 1));
        self.runs = self.runs + 1 - joins;
        self.set += 1;
        self.flip(ahead, ahead + 1);
    }

    /// This TSN, which is beyond a gap, counts as not arrived any more.
    pub(super) fn forget(&mut self, tsn: Tsn) {
        let ahead = tsn.distance_from(self.cumulative);
        let joins = usize::from(self.is_set(ahead - 1)) + usize::from(self.is_set(ahead + 1));
        self.runs = self.runs + joins - 1;
        self.set -= 1;
        self.flip(ahead, ahead + 1);
    }

    /// All TSNs up to this one, which is beyond the Cumulative TSN, count as arrived.
    pub(super) fn jump(&mut self, cumulative: Tsn) {
        let ahead = cumulative.distance_from(self.cumulative);
        let mut from = 1;
        while let Some(start) = self.next_set(from).filter(|start| *start <= ahead) {
            let end = self.next_clear(start);
            let stop = end.min(ahead + 1);
            self.flip(start, stop);
            self.set -= stop - start;
            self.runs -= usize::from(stop == end);
            from = stop;
        }
        self.position += u64::from(ahead);
        self.cumulative = cumulative;
        self.absorb();
    }

    /// TSNs restart with this one. Its position is greater than all before.
    pub(super) fn restart(&mut self, next: Tsn) {
        *self = Tracker { position: self.position + (1 << 33), ..Tracker::new(next) };
    }

    /// The first runs beyond gaps, up to this number, in the form of a SACK.
    #[inline]
    pub(super) fn gaps(&self, most: usize) -> SmallVec<[GapBlock; 4]> {
        match most.min(self.runs) {
            0 => SmallVec::new(),
            most => self.first_runs(most),
        }
    }

    /// As `gaps`, for a number that is not zero, of runs that there are.
    fn first_runs(&self, most: usize) -> SmallVec<[GapBlock; 4]> {
        let mut gaps = SmallVec::with_capacity(most);
        let (mut start, mut inside) = (0, false);
        let mut at = 1;
        while gaps.len() < most {
            let (word, bit) = self.place(at);
            let count = (64 - bit).min(self.capacity() - at);
            let bits = self.bits[word] >> bit;
            // A bit that differs from its predecessor begins or ends a run.
            let mut edges = (bits ^ (bits << 1 | u64::from(inside))) & u64::MAX >> (64 - count);
            while edges != 0 && gaps.len() < most {
                let edge = at + edges.trailing_zeros();
                edges &= edges - 1;
                match inside {
                    true => gaps.push(GapBlock { start, end: (edge - 1) as u16 }),
                    false => start = edge as u16,
                }
                inside = !inside;
            }
            at += count;
            if at == self.capacity() {
                let rest = inside && gaps.len() < most;
                gaps.extend(rest.then(|| GapBlock { start, end: (at - 1) as u16 }));
                break;
            }
        }
        gaps
    }

    /// The Cumulative TSN reaches the run just beyond it.
    fn absorb(&mut self) {
        if self.set == 0 || !self.is_set(1) {
            return;
        }
        let end = self.next_clear(1);
        self.flip(1, end);
        self.set -= end - 1;
        self.runs -= 1;
        self.cumulative = self.cumulative.plus(end - 1);
        self.position += u64::from(end - 1);
    }

    /// The number of bits in the ring. A TSN at this distance or farther has no bit.
    fn capacity(&self) -> u32 {
        64 * self.bits.len() as u32
    }

    /// The word of a bit, and its index in the word.
    fn place(&self, ahead: u32) -> (usize, u32) {
        let index = self.cumulative.0.wrapping_add(ahead) & (self.capacity() - 1);
        ((index / 64) as usize, index % 64)
    }

    fn is_set(&self, ahead: u32) -> bool {
        if ahead == 0 || ahead >= self.capacity() {
            return false;
        }
        let (word, bit) = self.place(ahead);
        self.bits[word] >> bit & 1 == 1
    }

    /// Changes the bits from `start` to before `end`.
    fn flip(&mut self, start: u32, end: u32) {
        let mut at = start;
        while at < end {
            let (word, bit) = self.place(at);
            let count = (64 - bit).min(end - at);
            self.bits[word] ^= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }

    fn next_set(&self, from: u32) -> Option<u32> {
        if self.set == 0 {
            return None;
        }
        let found = self.search(from, 0);
        (found < self.capacity()).then_some(found)
    }

    fn next_clear(&self, from: u32) -> u32 {
        self.search(from, u64::MAX).min(self.capacity())
    }

    /// The first place from `from` on whose bit differs from those of `from_word`; beyond the ring if there is none.
    fn search(&self, from: u32, from_word: u64) -> u32 {
        let mut at = from;
        while at < self.capacity() {
            let (word, bit) = self.place(at);
            let rest = (self.bits[word] ^ from_word) >> bit;
            if rest != 0 {
                return at + rest.trailing_zeros();
            }
            at += 64 - bit;
        }
        at
    }

    /// Doubles the ring.
    fn grow(&mut self) {
        let blocks = self.gaps(usize::MAX);
        let bits = (2 * self.capacity()).max(SMALLEST);
        self.bits = vec![0; (bits / 64) as usize];
        for block in blocks {
            self.flip(block.start.into(), u32::from(block.end) + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn gaps(tracker: &Tracker) -> Vec<(u16, u16)> {
        tracker.gaps(usize::MAX).iter().map(|gap| (gap.start, gap.end)).collect()
    }

    #[test]
    fn runs_grow_join_and_vanish_across_the_wrap() {
        let first = Tsn(u32::MAX - 1);
        let mut tracker = Tracker::new(first);
        let record = |tracker: &mut Tracker, offset| tracker.record(first.plus(offset));
        for offset in [1, 3, 4, 6] {
            record(&mut tracker, offset);
        }
        assert_eq!(gaps(&tracker), [(2, 2), (4, 5), (7, 7)]);
        record(&mut tracker, 5);
        assert_eq!(gaps(&tracker), [(2, 2), (4, 7)]);
        record(&mut tracker, 0);
        assert_eq!(tracker.cumulative(), Tsn(u32::MAX));
        record(&mut tracker, 2);
        assert_eq!((tracker.cumulative(), tracker.runs()), (Tsn(4), 0));
        assert!(tracker.has(Tsn(u32::MAX)) && tracker.has(Tsn(4)) && !tracker.has(Tsn(5)));
    }

    #[test]
    fn a_run_is_cut_where_a_tsn_is_forgotten() {
        let mut tracker = Tracker::new(Tsn(10));
        (12..=16).for_each(|tsn| tracker.record(Tsn(tsn)));
        tracker.forget(Tsn(14));
        assert_eq!((gaps(&tracker), tracker.runs()), (vec![(3, 4), (6, 7)], 2));
        tracker.forget(Tsn(16));
        tracker.forget(Tsn(12));
        assert_eq!((gaps(&tracker), tracker.runs()), (vec![(4, 4), (6, 6)], 2));
    }

    /// Against a set of numbers: random TSNs at all distances, forgotten, jumped over, the ring as large as it gets.
    #[test]
    fn it_agrees_with_a_set() {
        let mut state = 7u64;
        let mut below = |n: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32 % n
        };
        for _ in 0..60 {
            let (mut tracker, mut set, mut done) = (Tracker::new(Tsn(u32::MAX - 500)), BTreeSet::new(), 0u64);
            let origin = tracker.position(tracker.cumulative());
            let reach = [5, 70, 3000, REACH][below(4) as usize];
            for _ in 0..400 {
                let ahead = 1 + below(reach);
                let tsn = tracker.cumulative().plus(ahead);
                let at = done + u64::from(ahead);
                assert_eq!(tracker.position(tsn), origin + at);
                assert_eq!(tracker.tsn_at(origin + at), tsn);
                match below(20) {
                    0 => {
                        tracker.jump(tsn);
                        done = at;
                    }
                    1..4 if set.remove(&at) => tracker.forget(tsn),
                    _ if !tracker.has(tsn) => {
                        tracker.record(tsn);
                        set.insert(at);
                    }
                    _ => assert!(set.contains(&at)),
                }
                set.retain(|at| *at > done);
                while set.remove(&(done + 1)) {
                    done += 1;
                }
                let told: BTreeSet<u64> = tracker
                    .gaps(usize::MAX)
                    .iter()
                    .flat_map(|gap| done + u64::from(gap.start)..=done + u64::from(gap.end))
                    .collect();
                assert_eq!(told, set);
                assert_eq!(tracker.gaps(usize::MAX).len(), tracker.runs());
                assert_eq!(tracker.position(tracker.cumulative()), origin + done);
            }
        }
    }
}
