//! The frames of a radio as bars over time, in bounded memory.

/// The frames of one kind that a station sends, in order of time. Beyond `limit` frames the time is divided into
/// intervals. Each has one bar, which begins with the first frame of the interval and is as long as all its frames
/// together: how much of the time the station sends stays right.
#[derive(Debug)]
pub(super) struct Frames {
    limit: usize,
    /// The length of an interval in nanoseconds; 0 while every frame has a bar of its own.
    interval: u64,
    /// When each bar begins, and how long it is, in nanoseconds.
    bars: Vec<(u64, u64)>,
}

impl Frames {
    /// At most `limit` bars, four at least.
    pub(super) fn new(limit: usize) -> Self {
        Frames { limit: limit.max(4), interval: 0, bars: Vec::new() }
    }

    /// Adds a frame that begins at `at` nanoseconds, not before the end of the one before.
    pub(super) fn push(&mut self, at: u64, airtime: u64) {
        if self.bars.len() >= self.limit {
            self.thin();
        }
        match self.bars.last_mut() {
            Some((begin, length)) if shared(self.interval, *begin, at) => *length += airtime,
            _ => self.bars.push((at, airtime)),
        }
    }

    /// When each bar begins, and how long it is, in nanoseconds.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bars.iter().copied()
    }

    /// Makes the intervals so long that half of the bars are enough.
    fn thin(&mut self) {
        let (Some(first), Some(last)) = (self.bars.first(), self.bars.last()) else { return };
        self.interval = self.interval.max((last.0 - first.0) / (self.limit as u64 / 2 - 1) + 1);
        let interval = self.interval;
        self.bars.dedup_by(|next, kept| {
            let one = shared(interval, kept.0, next.0);
            kept.1 += if one { next.1 } else { 0 };
            one
        });
    }
}

/// Whether frames that begin at these times have one bar.
fn shared(interval: u64, first: u64, next: u64) -> bool {
    interval > 0 && first / interval == next / interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_frames_have_bars_of_their_own() {
        let mut frames = Frames::new(10);
        (0..10).for_each(|i| frames.push(i * 100, 30));
        assert_eq!(frames.iter().collect::<Vec<_>>(), (0..10).map(|i| (i * 100, 30)).collect::<Vec<_>>());
    }

    /// A quarter of the time, then three quarters of it: the bars cover as much, in each part of the run.
    #[test]
    fn many_frames_cover_as_much_time_as_they_take() {
        let (mut frames, count) = (Frames::new(1_000), 100_000);
        for i in 0..count {
            frames.push(i * 100, if i < count / 2 { 25 } else { 75 });
        }
        let bars: Vec<_> = frames.iter().collect();
        assert!(bars.len() <= 1_000 && bars.len() >= 400, "{}", bars.len());
        assert!(bars.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let covered = |from: u64, to: u64| -> u64 {
            bars.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, length)| length).sum()
        };
        assert_eq!(covered(0, count * 100), count / 2 * 100);
        for tenth in 0..10 {
            let (share, expected) = (covered(tenth * 1_000_000, (tenth + 1) * 1_000_000), [250_000, 750_000]);
            let expected = expected[usize::from(tenth >= 5)];
            assert!(share.abs_diff(expected) < 20_000, "{tenth}: {share}");
        }
    }
}
