//! The round trip of a path with empty queues and with full ones.
//!
//! As section 5.2 of the paper in `papers/receive-buffer-blocking` suggests: the smallest round trip is that of the
//! empty path, the largest that of the path with a full queue, and bandwidth times their difference is the length of
//! the queue. The smallest is that of the path's life: a shorter route shows at once, a longer one looks like a queue.
//! The largest is that of the last ten to twenty seconds, so that one delay spike does not count for ever.

use crate::{Duration, Time};

/// The largest round trip is kept for at least this time, and at most for twice this time.
const KEPT: Duration = Duration::from_secs(10);

/// The smallest and the largest round-trip time of a path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RoundTrip {
    base: Option<Duration>,
    /// The largest since `since`, and in the period before.
    largest: Duration,
    before: Duration,
    since: Time,
    latest: Duration,
}

impl RoundTrip {
    /// The round trip with empty queues; none before the first sample.
    pub fn base(&self) -> Option<Duration> {
        self.base
    }

    /// What queues added to the last round trip.
    pub fn queueing(&self) -> Option<Duration> {
        self.base.map(|base| self.latest - base)
    }

    /// The most that queues added to any round trip of the last ten to twenty seconds.
    pub fn most_queueing(&self) -> Option<Duration> {
        self.base.map(|base| self.largest.max(self.before) - base)
    }

    pub(super) fn sample(&mut self, rtt: Duration, now: Time) {
        self.base = Some(self.base.map_or(rtt, |base| base.min(rtt)));
        self.latest = rtt;
        if now.since(self.since) >= KEPT {
            let stale = now.since(self.since) >= KEPT * 2;
            (self.before, self.largest) = (if stale { rtt } else { self.largest }, rtt);
            self.since = now;
        }
        self.largest = self.largest.max(rtt);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_stays_and_the_largest_is_forgotten() {
        let mut estimate = RoundTrip::default();
        let ms = Duration::from_millis;
        assert_eq!(estimate.base(), None);
        for (at, rtt) in [(0, 100), (1, 300), (2, 120)] {
            estimate.sample(ms(rtt), Time::ZERO + Duration::from_secs(at));
        }
        assert_eq!(estimate.base(), Some(ms(100)));
        assert_eq!((estimate.queueing(), estimate.most_queueing()), (Some(ms(20)), Some(ms(200))));
        for at in 3..40 {
            estimate.sample(ms(140), Time::ZERO + Duration::from_secs(at));
        }
        assert_eq!((estimate.base(), estimate.most_queueing()), (Some(ms(100)), Some(ms(40))));
    }
}
