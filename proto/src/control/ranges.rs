//! Sorted runs of offsets, and the difference between two lists of them.

use smallvec::SmallVec;

/// Runs of offsets: ascending, separate, half open.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ranges {
    runs: SmallVec<[(u32, u32); 4]>,
}

impl Ranges {
    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs in ascending order: first offset, and one past the last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u32, u32)> + '_ {
        self.runs.iter().copied()
    }

    /// One past the highest offset; 0 if there is none.
    pub fn end(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.1)
    }

    /// The union of these runs. They may be unordered and may overlap; the cost is one sort. With one insertion per
    /// run, a packet full of Gap Ack Blocks would cost its receiver half a millisecond.
    pub fn of(runs: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut runs: SmallVec<[(u32, u32); 4]> = runs.collect();
        if !runs.is_sorted_by(|a, b| a.1 < b.0) {
            runs.sort_unstable();
            runs.dedup_by(|next, kept| {
                let joined = next.0 <= kept.1;
                if joined {
                    kept.1 = kept.1.max(next.1);
                }
                joined
            });
        }
        Ranges { runs }
    }

    /// Moves the origin forward by `n` and drops what lies before it.
    pub fn advance(&mut self, n: u32) {
        if n == 0 {
            return;
        }
        self.runs.retain(|run| run.1 > n);
        for run in &mut self.runs {
            *run = (run.0.saturating_sub(n), run.1 - n);
        }
    }

    /// Adds the offsets `from..to`, and calls `each` with every run of offsets that was not there before.
    pub fn insert(&mut self, from: u32, to: u32, mut each: impl FnMut(u32, u32)) {
        if from >= to {
            return;
        }
        // The new run and all runs that it touches or overlaps become one.
        let first = self.runs.partition_point(|run| run.1 < from);
        let last = self.runs.partition_point(|run| run.0 <= to);
        let (mut at, mut joined) = (from, (from, to));
        for &(start, end) in &self.runs[first..last] {
            if at < start {
                each(at, start);
            }
            at = at.max(end);
            joined = (joined.0.min(start), joined.1.max(end));
        }
        if at < to {
            each(at, to);
        }
        match self.runs[first..last].first_mut() {
            Some(run) => *run = joined,
            None => self.runs.insert(first, joined),
        }
        self.runs.drain((first + 1).min(last)..last);
    }

    /// Calls `each` with every run that is in `self` and not in `other`.
    pub fn without(&self, other: &Ranges, mut each: impl FnMut(u32, u32)) {
        let mut others = other.runs.iter().copied().peekable();
        for (mut start, end) in self.iter() {
            while start < end {
                while others.next_if(|o| o.1 <= start).is_some() {}
                match others.peek() {
                    Some(&(from, to)) if from <= start => start = to.min(end),
                    Some(&(from, _)) if from < end => {
                        each(start, from);
                        start = from;
                    }
                    _ => {
                        each(start, end);
                        start = end;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(runs: &[(u32, u32)]) -> Ranges {
        Ranges::of(runs.iter().copied())
    }

    fn difference(a: &[(u32, u32)], b: &[(u32, u32)]) -> Vec<(u32, u32)> {
        let mut out = Vec::new();
        ranges(a).without(&ranges(b), |s, e| out.push((s, e)));
        out
    }

    #[test]
    fn what_is_new_is_found_run_by_run() {
        assert_eq!(difference(&[(2, 5)], &[]), [(2, 5)]);
        assert_eq!(difference(&[(2, 5)], &[(2, 5)]), []);
        assert_eq!(difference(&[(2, 9)], &[(4, 6)]), [(2, 4), (6, 9)]);
        assert_eq!(difference(&[(2, 9), (12, 14)], &[(1, 3), (8, 13)]), [(3, 8), (13, 14)]);
        assert_eq!(difference(&[(5, 6), (8, 9)], &[(1, 2)]), [(5, 6), (8, 9)]);
    }

    #[test]
    fn runs_out_of_order_are_sorted_and_joined() {
        assert_eq!(ranges(&[(8, 9), (2, 4), (4, 5), (3, 8)]).runs[..], [(2, 9)]);
        assert_eq!(ranges(&[(2, 9), (3, 4), (9, 10), (12, 13), (1, 2)]).runs[..], [(1, 10), (12, 13)]);
    }

    #[test]
    fn what_is_added_is_new_once() {
        let mut all = ranges(&[(2, 4), (6, 8), (12, 13)]);
        let mut add = |from, to| {
            let mut new = Vec::new();
            all.insert(from, to, |start, end| new.push((start, end)));
            (new, all.runs.to_vec())
        };
        assert_eq!(add(2, 4), (vec![], vec![(2, 4), (6, 8), (12, 13)]));
        assert_eq!(add(4, 5), (vec![(4, 5)], vec![(2, 5), (6, 8), (12, 13)]));
        assert_eq!(add(3, 10), (vec![(5, 6), (8, 10)], vec![(2, 10), (12, 13)]));
        assert_eq!(add(0, 1), (vec![(0, 1)], vec![(0, 1), (2, 10), (12, 13)]));
        assert_eq!(add(20, 20).0, []);
        assert_eq!(add(0, 30), (vec![(1, 2), (10, 12), (13, 30)], vec![(0, 30)]));
    }

    #[test]
    fn the_origin_moves() {
        let mut r = ranges(&[(2, 5), (7, 9)]);
        r.advance(3);
        assert_eq!(r.runs[..], [(0, 2), (4, 6)]);
        r.advance(4);
        assert_eq!(r.runs[..], [(0, 2)]);
        r.advance(2);
        assert!(r.is_empty());
    }
}
