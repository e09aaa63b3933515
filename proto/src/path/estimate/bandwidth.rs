//! Bandwidth from the bytes that SACKs acknowledge, filtered as in TCP Westwood.
//!
//! Source: S. Mascolo, C. Casetti, M. Gerla, M. Y. Sanadidi, R. Wang, "TCP Westwood: Bandwidth Estimation for Enhanced
//! Transport over Wireless Links" (MobiCom 2001), with the sampling of Westwood+ (L. A. Grieco, S. Mascolo,
//! "Performance Evaluation and Comparison of Westwood+, New Reno, and Vegas TCP Congestion Control", CCR 2004): one
//! sample a round trip, at least 50 ms long, so that ACK compression does not show, and a low-pass filter b ← 7/8·b +
//! 1/8·sample.
//!
//! Westwood wants the rate that a connection reaches; a model of a path wants the rate that the path allows. They are
//! the same only while the bottleneck has a queue. So only a sample that began and ended with a queue goes through the
//! filter. Any other sample is a lower bound: it replaces a lower estimate, and is ignored otherwise.

use crate::{Duration, Time};

/// The shortest time that a sample takes.
const SHORTEST: Duration = Duration::from_millis(50);
/// The weight of a new sample in the filter.
const GAIN: f64 = 1.0 / 8.0;
/// A round trip longer than the smallest by this part of it means a queue.
const QUEUE: u32 = 16;

/// The bandwidth of a path that carries data.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Bandwidth {
    /// When the sample began that is being taken; none is before the first acknowledgement.
    since: Option<Time>,
    /// Bytes on the wire acknowledged since.
    acked: f64,
    /// Whether the last round trip showed a queue.
    queue: bool,
    /// Whether that was so when the sample began.
    queue_before: bool,
    /// The filtered samples, bit/s.
    estimate: f64,
    /// Whether the estimate comes from samples that began and ended with a queue.
    saturated: bool,
    samples: u32,
}

impl Bandwidth {
    /// Bit/s on the wire, IP headers included; none before the first sample.
    pub fn rate(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.estimate)
    }

    /// Whether the bottleneck was busy for a whole sample. Otherwise the rate is a lower bound of the bandwidth.
    pub fn is_saturated(&self) -> bool {
        self.saturated
    }

    /// How many samples were taken.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// The last acknowledgement measured this round trip, if any.
    pub(super) fn measured(&mut self, rtt: Option<Duration>, min_rtt: Duration) {
        if let Some(rtt) = rtt {
            self.queue = rtt > min_rtt + min_rtt / QUEUE;
        }
    }

    /// `bytes` bytes on the wire were acknowledged.
    pub(super) fn acknowledged(&mut self, bytes: f64, srtt: Duration, now: Time) {
        let Some(since) = self.since else { return self.begin(now) };
        self.acked += bytes;
        let time = now.since(since);
        if time >= srtt.max(SHORTEST) {
            self.sample(self.acked * 8.0 / time.as_secs_f64());
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Time) {
        (self.since, self.acked, self.queue_before) = (Some(now), 0.0, self.queue);
    }

    fn sample(&mut self, rate: f64) {
        let saturated = self.queue && self.queue_before;
        if saturated && self.saturated {
            self.estimate += GAIN * (rate - self.estimate);
        } else if saturated || rate > self.estimate {
            self.estimate = rate;
        }
        self.saturated |= saturated;
        self.samples = self.samples.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// `packets` of 1,500 bytes per round trip, for `count` round trips of this duration.
    fn rounds(estimate: &mut Bandwidth, begin: u64, count: u64, packets: u64, rtt: Duration) {
        for round in begin..begin + count {
            for packet in 1..=packets {
                let at = Duration::from_millis(100 * round) + RTT * packet as u32 / packets as u32;
                estimate.measured(Some(rtt), RTT);
                estimate.acknowledged(1500.0, RTT, Time::ZERO + at);
            }
        }
    }

    #[test]
    fn a_queue_makes_the_rate_the_bandwidth() {
        let mut estimate = Bandwidth::default();
        rounds(&mut estimate, 0, 3, 50, RTT);
        assert!(!estimate.is_saturated());
        rounds(&mut estimate, 3, 5, 100, RTT * 3 / 2);
        let rate = estimate.rate().unwrap();
        assert!(estimate.is_saturated() && (rate - 12e6).abs() < 0.2e6, "{rate}");
    }

    #[test]
    fn a_sample_without_a_queue_never_lowers_the_estimate() {
        let mut estimate = Bandwidth::default();
        rounds(&mut estimate, 0, 5, 100, RTT * 3 / 2);
        let before = estimate.rate();
        rounds(&mut estimate, 5, 20, 10, RTT);
        assert_eq!(estimate.rate(), before);
        rounds(&mut estimate, 25, 2, 200, RTT);
        assert!(estimate.rate() > before, "it raises it");
    }

    #[test]
    fn a_slower_link_is_noticed_through_the_filter() {
        let mut estimate = Bandwidth::default();
        rounds(&mut estimate, 0, 5, 100, RTT * 3 / 2);
        rounds(&mut estimate, 5, 40, 25, RTT * 3 / 2);
        let rate = estimate.rate().unwrap();
        assert!((rate - 3e6).abs() < 0.2e6, "{rate}");
    }
}
