//! Values that hold until they change, as points of charts.

use super::points::Points;

/// Values that hold until they change, and are told together. A value that is told again makes no point. Of several at
/// one moment only the last holds for any time, so the others make none either.
#[derive(Debug)]
pub(super) struct Steps<const N: usize> {
    /// The latest values and their time. They make their points when that moment is over.
    at: u64,
    latest: [u64; N],
    /// The values of the last points.
    drawn: [u64; N],
    lines: [Points; N],
}

/// No value.
const NONE: u64 = u64::MAX;

impl<const N: usize> Steps<N> {
    /// At most `limit` points a line.
    pub(super) fn new(limit: usize) -> Self {
        let lines = std::array::from_fn(|_| Points::new(limit));
        Steps { at: 0, latest: [NONE; N], drawn: [NONE; N], lines }
    }

    /// These are the values from now on, where `u64::MAX` stands for none. `at`: nanoseconds, not before the last ones.
    #[inline(always)]
    pub(super) fn set(&mut self, at: u64, values: [u64; N]) {
        if at != self.at {
            self.end_moment();
            self.at = at;
        }
        self.latest = values;
    }

    /// The values that have changed make a point.
    #[inline(always)]
    fn end_moment(&mut self) {
        for (line, (latest, drawn)) in self.lines.iter_mut().zip(self.latest.iter().zip(&mut self.drawn)) {
            if latest != drawn {
                *drawn = *latest;
                if *latest != NONE {
                    line.push(self.at, value(*latest));
                }
            }
        }
    }

    /// When the values were told for the last time, in nanoseconds.
    pub(super) fn last(&self) -> u64 {
        self.at
    }

    /// The points of a line: nanoseconds and value. The last shows that the value holds until it was told for the last
    /// time.
    pub(super) fn line(&self, number: usize) -> impl Iterator<Item = (u64, f64)> + '_ {
        let last = Some(self.latest[number]).filter(|latest| *latest != NONE);
        self.lines[number].iter().chain(last.map(|latest| (self.at, value(latest))))
    }
}

/// A value of a chart. It is below 2^53, so that it is exact.
#[inline(always)]
pub(super) fn value(whole: u64) -> f64 {
    // The conversion of signed numbers is one instruction.
    whole as i64 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(steps: &Steps<2>, line: usize) -> Vec<(u64, f64)> {
        steps.line(line).collect()
    }

    #[test]
    fn a_line_has_a_point_where_its_value_changes_and_one_at_its_end() {
        let mut steps = Steps::new(100);
        assert_eq!(points(&steps, 0), []);
        for (at, values) in [(1, [10, NONE]), (2, [10, NONE]), (3, [20, 5]), (4, [20, 6]), (5, [20, 6])] {
            steps.set(at, values);
        }
        assert_eq!(points(&steps, 0), [(1, 10.0), (3, 20.0), (5, 20.0)]);
        assert_eq!(points(&steps, 1), [(3, 5.0), (4, 6.0), (5, 6.0)]);
    }

    #[test]
    fn of_several_values_at_one_moment_the_last_holds() {
        let mut steps = Steps::new(100);
        for (at, values) in [(1, [10, 1]), (2, [8, 2]), (2, [9, 3]), (2, [10, 4]), (3, [11, 4]), (3, [12, 4])]
        {
            steps.set(at, values);
        }
        assert_eq!(points(&steps, 0), [(1, 10.0), (3, 12.0)]);
        assert_eq!(points(&steps, 1), [(1, 1.0), (2, 4.0), (3, 4.0)]);
    }

    /// A value that holds between two equal ones is a peak, however short it is.
    #[test]
    fn peaks_of_many_values_stay() {
        let mut steps = Steps::new(1000);
        for at in 0..100_000_u64 {
            steps.set(at, [at % 10, if at == 77_777 { 1_000_000 } else { 7 }]);
        }
        assert!(points(&steps, 0).len() <= 1001);
        assert_eq!(points(&steps, 1), [(0, 7.0), (77_777, 1e6), (77_778, 7.0), (99_999, 7.0)]);
    }
}
