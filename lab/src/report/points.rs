//! Points of a chart, in bounded memory.

/// A point: nanoseconds and value.
type Point = (u64, f32);

/// Points in order of time. Beyond `limit` points the time axis is divided into intervals, and each keeps its first,
/// lowest, highest and last point: peaks stay visible, and no point is dropped at random.
#[derive(Debug)]
pub(super) struct Points {
    limit: usize,
    /// The length of an interval in nanoseconds; 0 while every point is kept.
    interval: u64,
    kept: Vec<Point>,
    /// The interval that is not over; empty while every point is kept.
    pub(super) open: Interval,
}

/// The corners of an interval. Of points of equal value the first is the lowest and the last the highest.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Interval {
    /// Where the next one begins.
    pub(super) end: u64,
    /// The number of its points.
    pub(super) count: u32,
    /// Whether `low` and `high` are kept. As long as no point is lower than the one before, they are the first and the last.
    compared: bool,
    first: Point,
    pub(super) last: Point,
    /// The lowest and the highest, each with its number among the points of the interval.
    pub(super) low: (u32, Point),
    pub(super) high: (u32, Point),
}

impl Interval {
    /// Begins with this point.
    fn new(point: Point, length: u64) -> Self {
        let end = (point.0 / length + 1) * length;
        Interval { end, count: 1, first: point, last: point, ..Interval::default() }
    }

    #[inline(always)]
    fn add(&mut self, point: Point) {
        if self.compared || point.1 < self.last.1 {
            self.compare_all();
            if point.1 < self.low.1.1 {
                self.low = (self.count, point);
            }
            if point.1 >= self.high.1.1 {
                self.high = (self.count, point);
            }
        }
        self.last = point;
        self.count += 1;
    }

    /// The lowest and the highest point are kept from now on.
    #[inline(always)]
    pub(super) fn compare_all(&mut self) {
        if !self.compared {
            self.compared = true;
            (self.low, self.high) = ((0, self.first), (self.count.saturating_sub(1), self.last));
        }
    }

    /// Calls `keep` with its corners in order, each once.
    #[inline(always)]
    fn corners(&self, mut keep: impl FnMut(Point)) {
        let Some(last) = self.count.checked_sub(1) else { return };
        keep(self.first);
        if self.compared {
            let (low, high) = (self.low, self.high);
            let between = if low.0 < high.0 { [low, high] } else { [high, low] };
            if between[0].0 != 0 && between[0].0 != last {
                keep(between[0].1);
            }
            if between[1].0 != between[0].0 && between[1].0 != last {
                keep(between[1].1);
            }
        }
        if last > 0 {
            keep(self.last);
        }
    }
}

impl Points {
    /// At most `limit` points, 16 at least.
    pub(super) fn new(limit: usize) -> Self {
        Points { limit: limit.max(16), interval: 0, kept: Vec::new(), open: Interval::default() }
    }

    /// Adds a point at `at` nanoseconds, which is not before the last one.
    #[inline(always)]
    pub(super) fn push(&mut self, at: u64, value: f32) {
        if at < self.open.end {
            self.open.add((at, value));
        } else {
            self.begin((at, value));
        }
    }

    /// Adds a point that is not in the open interval.
    #[inline(never)]
    pub(super) fn begin(&mut self, point: Point) {
        self.open.corners(|point| self.kept.push(point));
        if self.kept.len() >= self.limit - CORNERS {
            self.thin();
        }
        match self.interval {
            0 => self.kept.push(point),
            length => self.open = Interval::new(point, length),
        }
    }

    /// The points: nanoseconds and value.
    pub(super) fn iter(&self) -> impl Iterator<Item = Point> + '_ {
        let mut last = Vec::with_capacity(CORNERS);
        self.open.corners(|point| last.push(point));
        self.kept.iter().copied().chain(last)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.open.count == 0
    }

    /// Makes the intervals so long that half of the places are free.
    #[inline(never)]
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) else { return };
        let intervals = (self.limit / (2 * CORNERS)).max(1) as u64;
        self.interval = self.interval.max((last.0 - first.0) / intervals + 1);
        let kept = &mut self.kept;
        // No interval has more corners than points, so the corners take the places of points that were read.
        let (mut from, mut to) = (0, 0);
        while from < kept.len() {
            let Extremes { count, low, high } = Extremes::of(&kept[from..], self.interval);
            let (one, other, last) = (low.min(high), low.max(high), count - 1);
            let mut keep = |corner: usize| {
                kept[to] = kept[from + corner];
                to += 1;
            };
            keep(0);
            if one != 0 && one != last {
                keep(one);
            }
            if other != one && other != last {
                keep(other);
            }
            if last > 0 {
                keep(last);
            }
            from += count;
        }
        kept.truncate(to);
    }
}

/// Points of the first of the intervals into which points fall.
struct Extremes {
    /// How many they are.
    count: usize,
    /// The places of the lowest and the highest.
    low: usize,
    high: usize,
}

impl Extremes {
    #[inline(always)]
    fn of(points: &[Point], length: u64) -> Self {
        let first = points[0];
        let end = (first.0 / length + 1) * length;
        let mut extremes = Extremes { count: points.len(), low: 0, high: 0 };
        let (mut lowest, mut highest) = (first.1, first.1);
        for (place, &(at, value)) in points.iter().enumerate().skip(1) {
            if at >= end {
                extremes.count = place;
                break;
            }
            if value >= highest {
                (extremes.high, highest) = (place, value);
            } else if value < lowest {
                (extremes.low, lowest) = (place, value);
            }
        }
        extremes
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
        (0..96).for_each(|i| points.push(i, i as f32));
        assert_eq!(points.iter().count(), 96);
        assert_eq!(points.interval, 0);
    }

    #[test]
    fn many_points_keep_their_peaks_and_their_ends() {
        let mut points = Points::new(1000);
        for i in 0..100_000_u64 {
            points.push(i, if i == 77_777 { 1e6 } else { (i % 10) as f32 });
        }
        let kept: Vec<_> = points.iter().collect();
        assert!(kept.len() <= 1000, "{}", kept.len());
        assert!(kept.len() > 250, "{}", kept.len());
        assert!(kept.contains(&(77_777, 1e6)));
        assert_eq!((kept[0].0, kept[kept.len() - 1].0), (0, 99_999));
        assert!(kept.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn points_of_one_moment_are_bounded_too() {
        let mut points = Points::new(64);
        (0..10_000).for_each(|i| points.push(5, i as f32));
        assert!(points.iter().count() <= 64);
    }
}
