//! Means over time of the values that senders report as details.

use std::collections::BTreeMap;

use anabranch_proto::{PathId, Time};

use crate::observe::trace::Detail;

/// The integral over time of the congestion window of every path.
#[derive(Clone, Default, Debug)]
pub(crate) struct Means {
    /// By agent and path.
    windows: BTreeMap<(usize, PathId), Sum>,
}

/// A quantity and its integral since it became known.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sum {
    value: u64,
    since: Time,
    /// The quantity times nanoseconds.
    product: u128,
    /// The nanoseconds for which it was known.
    known: u64,
}

impl Sum {
    /// The same, extended to `now`.
    fn until(self, now: Time) -> Sum {
        let nanos = now.as_nanos() - self.since.as_nanos();
        let product = self.product + u128::from(self.value) * u128::from(nanos);
        Sum { since: now, product, known: self.known + nanos, ..self }
    }

    /// The mean since `earlier`, if it was known for some time.
    pub(crate) fn mean_since(&self, earlier: Option<&Sum>) -> Option<f64> {
        let (product, known) = earlier.map_or((0, 0), |earlier| (earlier.product, earlier.known));
        let nanos = self.known - known;
        (nanos > 0).then(|| (self.product - product) as f64 / nanos as f64)
    }
}

impl Means {
    pub(super) fn detail(&mut self, now: Time, agent: usize, path: Option<PathId>, detail: &Detail) {
        let (Some(path), Detail::Window { cwnd, .. }) = (path, detail) else { return };
        let new = Sum { value: 0, since: now, product: 0, known: 0 };
        let sum = self.windows.entry((agent, path)).or_insert(new);
        *sum = Sum { value: *cwnd, ..sum.until(now) };
    }

    /// All integrals up to `now`.
    pub(super) fn until(&self, now: Time) -> BTreeMap<(usize, PathId), Sum> {
        self.windows.iter().map(|(key, sum)| (*key, sum.until(now))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_weighted_by_time() {
        let at = Time::from_nanos;
        let window = |cwnd| Detail::Window { cwnd, ssthresh: 0, flight: 0, marked: 0, segments: None };
        let mut means = Means::default();
        means.detail(at(10), 0, Some(PathId(0)), &window(100));
        means.detail(at(30), 0, Some(PathId(0)), &window(400));
        let key = (0, PathId(0));
        let (early, late) = (means.until(at(30))[&key], means.until(at(40))[&key]);
        assert_eq!((early.mean_since(None), late.mean_since(None)), (Some(100.0), Some(200.0)));
        assert_eq!((late.mean_since(Some(&early)), late.mean_since(Some(&late))), (Some(400.0), None));
    }
}
