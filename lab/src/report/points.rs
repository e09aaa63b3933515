//! Points of a chart, in bounded memory.

/// Points in order of time. Beyond `limit` points the time axis is divided into intervals, and each keeps its first,
/// lowest, highest and last point: peaks stay visible, and no point is dropped at random.
#[derive(Debug)]
pub(super) struct Points {
    limit: usize,
    /// The length of an interval in nanoseconds; 0 while every point is kept.
    interval: u64,
    kept: Vec<(u64, f32)>,
}

impl Points {
    /// At most `limit` points, 16 at least.
    pub(super) fn new(limit: usize) -> Self {
        Points { limit: limit.max(16), interval: 0, kept: Vec::new() }
    }

    /// Adds a point at `at` nanoseconds, which is not before the last one.
    pub(super) fn push(&mut self, at: u64, value: f64) {
        self.kept.push((at, value as f32));
        if self.kept.len() > self.limit {
            self.thin();
        }
    }

    /// The points: nanoseconds and value.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, f32)> + '_ {
        self.kept.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Doubles the length of the intervals until half of the places are free.
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) else { return };
        let intervals = (self.limit / 8).max(1) as u64;
        self.interval = self.interval.max((last.0 - first.0) / intervals + 1);
        let interval = self.interval;
        let (mut written, mut from) = (0, 0);
        while from < self.kept.len() {
            let group = Corners::of(&self.kept, from, interval);
            let corners = group.places();
            for (i, place) in corners.into_iter().enumerate() {
                // Each point once; the places ascend, so that none is overwritten before it is read.
                if i == 0 || corners[i - 1] != place {
                    self.kept[written] = self.kept[place];
                    written += 1;
                }
            }
            from = group.last + 1;
        }
        self.kept.truncate(written);
    }
}

/// The places of the first, lowest, highest and last point of an interval.
struct Corners {
    first: usize,
    low: usize,
    high: usize,
    last: usize,
}

impl Corners {
    /// Of the interval of the point at `first`.
    fn of(points: &[(u64, f32)], first: usize, interval: u64) -> Self {
        let (at, value) = points[first];
        let end = (at / interval + 1) * interval;
        let (mut low, mut high) = (value, value);
        let mut corners = Corners { first, low: first, high: first, last: first };
        for (place, &(at, value)) in points.iter().enumerate().skip(first + 1) {
            if at >= end {
                break;
            }
            if value < low {
                (low, corners.low) = (value, place);
            }
            if value >= high {
                (high, corners.high) = (value, place);
            }
            corners.last = place;
        }
        corners
    }

    /// In order.
    fn places(&self) -> [usize; 4] {
        [self.first, self.low.min(self.high), self.low.max(self.high), self.last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_are_kept_as_they_are() {
        let mut points = Points::new(100);
        (0..100).for_each(|i| points.push(i, i as f64));
        assert_eq!(points.iter().count(), 100);
        assert_eq!(points.interval, 0);
    }

    #[test]
    fn many_points_keep_their_peaks_and_their_ends() {
        let mut points = Points::new(1000);
        for i in 0..100_000_u64 {
            points.push(i, if i == 77_777 { 1e6 } else { (i % 10) as f64 });
        }
        let kept: Vec<_> = points.iter().collect();
        assert!(kept.len() <= 1000, "{}", kept.len());
        assert!(kept.contains(&(77_777, 1e6)));
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0, 99_999));
        assert!(kept.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn points_of_one_moment_are_bounded_too() {
        let mut points = Points::new(64);
        (0..10_000).for_each(|i| points.push(5, f64::from(i)));
        assert!(points.iter().count() <= 64);
    }
}
