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
    /// The interval that is not over.
    open: Option<Interval>,
}

/// The corners of an interval, each with its number among the points of the interval.
#[derive(Copy, Clone, Debug)]
struct Interval {
    /// Where the next one begins.
    end: u64,
    count: u32,
    first: Point,
    low: (u32, Point),
    high: (u32, Point),
    last: Point,
}

impl Interval {
    /// Begins with this point.
    fn new(point: Point, length: u64) -> Self {
        let end = (point.0 / length + 1) * length;
        Interval { end, count: 1, first: point, low: (0, point), high: (0, point), last: point }
    }

    #[inline]
    fn add(&mut self, point: Point) {
        if point.1 < self.low.1.1 {
            self.low = (self.count, point);
        }
        if point.1 >= self.high.1.1 {
            self.high = (self.count, point);
        }
        self.last = point;
        self.count += 1;
    }

    /// Calls `keep` with its corners in order, each once.
    #[inline]
    fn corners(&self, mut keep: impl FnMut(Point)) {
        let (low, high, last) = (self.low, self.high, self.count - 1);
        let between = if low.0 < high.0 { [low, high] } else { [high, low] };
        keep(self.first);
        if between[0].0 != 0 && between[0].0 != last {
            keep(between[0].1);
        }
        if between[1].0 != between[0].0 && between[1].0 != last {
            keep(between[1].1);
        }
        if last > 0 {
            keep(self.last);
        }
    }
}

impl Points {
    /// At most `limit` points, 16 at least.
    pub(super) fn new(limit: usize) -> Self {
        Points { limit: limit.max(16), interval: 0, kept: Vec::new(), open: None }
    }

    /// Adds a point at `at` nanoseconds, which is not before the last one.
    #[inline]
    pub(super) fn push(&mut self, at: u64, value: f64) {
        let point = (at, value as f32);
        match &mut self.open {
            Some(open) if at < open.end => open.add(point),
            _ => self.begin(point),
        }
    }

    /// Adds a point that is not in the open interval.
    fn begin(&mut self, point: Point) {
        if let Some(open) = &self.open {
            open.corners(|point| self.kept.push(point));
        }
        if self.kept.len() >= self.limit - CORNERS {
            self.thin();
        }
        match self.interval {
            0 => self.kept.push(point),
            length => self.open = Some(Interval::new(point, length)),
        }
    }

    /// The points: nanoseconds and value.
    pub(super) fn iter(&self) -> impl Iterator<Item = Point> + '_ {
        let mut last = Vec::with_capacity(CORNERS);
        if let Some(open) = &self.open {
            open.corners(|point| last.push(point));
        }
        self.kept.iter().copied().chain(last)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty() && self.open.is_none()
    }

    /// Makes the intervals so long that half of the places are free.
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.kept.first(), self.kept.last()) else { return };
        let intervals = (self.limit / (2 * CORNERS)).max(1) as u64;
        self.interval = self.interval.max((last.0 - first.0) / intervals + 1);
        let all = std::mem::take(&mut self.kept);
        let mut points = all.into_iter();
        let Some(mut open) = points.next().map(|first| Interval::new(first, self.interval)) else { return };
        for point in points {
            if point.0 < open.end {
                open.add(point);
            } else {
                open.corners(|point| self.kept.push(point));
                open = Interval::new(point, self.interval);
            }
        }
        open.corners(|point| self.kept.push(point));
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

    #[test]
    fn points_of_one_moment_are_bounded_too() {
        let mut points = Points::new(64);
        (0..10_000).for_each(|i| points.push(5, f64::from(i)));
        assert!(points.iter().count() <= 64);
    }
}
