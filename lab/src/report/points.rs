//! Points of a chart, in bounded memory.

/// A point: nanoseconds and value.
type Point<V> = (u64, V);

/// Points in order of time. Beyond `limit` points the time axis is divided into intervals. Each keeps its first and its
/// last point, the lowest if it is below both, and the highest if it is above both: peaks stay visible, and no point is
/// dropped at random.
#[derive(Debug)]
pub(super) struct Points<V = f64> {
    limit: usize,
    /// The length of an interval in nanoseconds; 0 while every point is kept.
    interval: u64,
    /// The number of intervals. They are never so many that they could have more corners than `limit`.
    intervals: usize,
    kept: Vec<Point<V>>,
    /// The interval that is not over; empty while every point is kept.
    pub(super) open: Interval<V>,
}

/// The corners of an interval. Of points of equal value the first is the lowest or the highest.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Interval<V> {
    /// Where the next one begins; 0 if it is empty.
    pub(super) end: u64,
    /// Whether `low` and `high` are kept. As long as no point is lower than the one before, they are the first and the
    /// last.
    compared: bool,
    first: Point<V>,
    pub(super) last: Point<V>,
    pub(super) low: Point<V>,
    pub(super) high: Point<V>,
}

impl<V: Copy + PartialOrd + Default> Interval<V> {
    /// Begins with this point.
    fn new(point: Point<V>, length: u64) -> Self {
        let end = (point.0 / length + 1) * length;
        Interval { end, compared: false, first: point, last: point, low: point, high: point }
    }

    #[inline(always)]
    fn add(&mut self, point: Point<V>) {
        if self.compared || point.1 < self.last.1 {
            self.compare_all();
            if point.1 < self.low.1 {
                self.low = point;
            }
            if point.1 > self.high.1 {
                self.high = point;
            }
        }
        self.last = point;
    }

    /// The lowest and the highest point are kept from now on.
    #[inline(always)]
    pub(super) fn compare_all(&mut self) {
        if !self.compared {
            self.compared = true;
            (self.low, self.high) = (self.first, self.last);
        }
    }

    /// Calls `keep` with its corners in order, each once.
    #[inline(always)]
    fn corners(&self, mut keep: impl FnMut(Point<V>)) {
        let Interval { end, compared, first, last, low, high } = *self;
        if end == 0 {
            return;
        }
        keep(first);
        if compared {
            let lower = low.1 < first.1 && low.1 < last.1;
            let higher = high.1 > first.1 && high.1 > last.1;
            let rises = low.0 <= high.0;
            if lower && rises {
                keep(low);
            }
            if higher {
                keep(high);
            }
            if lower && !rises {
                keep(low);
            }
        }
        if last != first {
            keep(last);
        }
    }
}

impl<V: Copy + PartialOrd + Default> Points<V> {
    /// At most `limit` points, 16 at least.
    pub(super) fn new(limit: usize) -> Self {
        Points {
            limit: limit.max(16),
            interval: 0,
            intervals: 0,
            kept: Vec::new(),
            open: Interval::default(),
        }
    }

    /// Adds a point at `at` nanoseconds, which is not before the last one.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, value: V) {
        if at < self.open.end {
            self.open.add((at, value));
        } else {
            self.begin((at, value));
        }
    }

    /// Adds a point that is not in the open interval.
    #[inline(never)]
    pub(super) fn begin(&mut self, point: Point<V>) {
        self.open.corners(|point| self.kept.push(point));
        if self.kept.len() >= self.limit - CORNERS || self.intervals >= self.limit / CORNERS {
            self.thin();
        }
        match self.interval {
            0 => self.kept.push(point),
            length => {
                self.open = Interval::new(point, length);
                self.intervals += 1;
            }
        }
    }

    /// The points: nanoseconds and value.
    pub(super) fn iter(&self) -> impl Iterator<Item = Point<V>> + '_ {
        let mut last = Vec::with_capacity(CORNERS);
        self.open.corners(|point| last.push(point));
        self.kept.iter().copied().chain(last)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.open.end == 0
    }

    /// Makes the intervals so long that half of the places would be free if each had all its corners.
    #[inline(never)]
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) else { return };
        let intervals = (self.limit / (2 * CORNERS)).max(1) as u64;
        self.interval = self.interval.max((last.0 - first.0) / intervals + 1);
        let kept = &mut self.kept;
        // No interval has more corners than points, so the corners take the places of points that were read.
        let (mut from, mut to) = (0, 0);
        self.intervals = 0;
        while let Some(&first) = kept.get(from) {
            let mut interval = Interval::new(first, self.interval);
            self.intervals += 1;
            from += 1;
            while let Some(&point) = kept.get(from).filter(|(at, _)| *at < interval.end) {
                interval.add(point);
                from += 1;
            }
            interval.corners(|point| {
                kept[to] = point;
                to += 1;
            });
        }
        kept.truncate(to);
    }
}

/// The largest number of points of an interval.
const CORNERS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_points_are_kept_as_they_are() {
        let mut points = Points::new(100);
        (0..96).for_each(|i| points.push(i, i as f64));
        assert_eq!(points.iter().count(), 96);
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
        assert!(kept.len() > 250, "{}", kept.len());
        assert!(kept.contains(&(77_777, 1e6)));
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0, 99_999));
        assert!(kept.is_sorted_by_key(|(at, _)| *at));
    }

    /// Two points an interval show a value that goes to and fro between two values.
    #[test]
    fn an_interval_keeps_no_corner_that_its_ends_show() {
        let mut points = Points::new(1000);
        (0..100_000_u64).for_each(|i| points.push(i, (i % 2) as f64));
        let kept: Vec<_> = points.iter().collect();
        assert!(kept.len() > 200 && kept.len() <= 500, "{}", kept.len());
        assert!(kept.windows(2).all(|pair| pair[0].1 != pair[1].1));
    }

    #[test]
    fn points_of_one_moment_are_bounded_too() {
        let mut points = Points::new(64);
        (0..10_000).for_each(|i| points.push(5, i as f64));
        assert!(points.iter().count() <= 64);
    }
}
