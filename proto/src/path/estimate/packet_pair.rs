//! Bandwidth of a path without traffic, from pairs of packets that leave back to back.
//!
//! Source: S. Keshav, "A Control-Theoretic Approach to Flow Control" (SIGCOMM 1991). The bottleneck spreads two packets
//! that arrive together by the time that it takes to send the second: bandwidth = size / spread. The packets are
//! HEARTBEATs that a PAD chunk (RFC 4820) makes larger; their answers are small, and keep the spread on the way back.
//! The estimate is the median of the last pairs, since a packet of someone else between the two doubles the spread of
//! one pair.

use crate::{Duration, Time};

/// Pairs that the median is taken of.
const KEPT: usize = 5;

/// The bandwidth of a path as pairs of packets show it.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct PacketPair {
    /// The last samples, bit/s.
    samples: [f64; KEPT],
    taken: u32,
    /// When the answer to the first packet of the pair under way came.
    first: Option<Time>,
    /// When a pair left last.
    pub(super) sent: Option<Time>,
    /// Packets of the next pair that have to be sent.
    pub(super) wanted: u8,
    /// Bytes of all pairs sent, with their headers.
    pub(super) bytes: u64,
}

impl PacketPair {
    /// Bit/s on the wire, IP headers included; none before the first pair was answered.
    pub fn rate(&self) -> Option<f64> {
        let count = (self.taken as usize).min(KEPT);
        let mut sorted = self.samples;
        sorted[..count].sort_by(f64::total_cmp);
        (count > 0).then(|| sorted[(count - 1) / 2])
    }

    /// How many pairs were answered.
    pub fn samples(&self) -> u32 {
        self.taken
    }

    /// Bytes of all pairs sent on this path, with their headers.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes
    }

    /// A pair begins to leave.
    pub(super) fn begin(&mut self, now: Time) {
        (self.sent, self.first) = (Some(now), None);
    }

    /// The first packet of the pair was answered, or the second, which has `bytes` bytes.
    pub(super) fn answered(&mut self, second: bool, bytes: u32, now: Time) {
        match self.first.take() {
            _ if !second => self.first = Some(now),
            Some(first) if now > first => {
                self.sample(f64::from(bytes) * 8.0 / now.since(first).as_secs_f64())
            }
            _ => {}
        }
    }

    fn sample(&mut self, rate: f64) {
        self.samples[self.taken as usize % KEPT] = rate;
        self.taken = self.taken.wrapping_add(1).max(1);
    }

    /// When the next pair may leave: soon while the median has too few samples.
    pub(super) fn next(&self, srtt: Duration) -> Option<Time> {
        let pause = if (self.taken as usize) < KEPT { srtt * 2 } else { (srtt * 2).max(PAUSE) };
        self.sent.map(|sent| sent + pause)
    }
}

/// Between two pairs once there is a median.
const PAUSE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(estimate: &mut PacketPair, at: u64, spread: u64) {
        let at = Time::ZERO + Duration::from_millis(at);
        estimate.begin(at);
        estimate.answered(false, 600, at + Duration::from_millis(50));
        estimate.answered(true, 600, at + Duration::from_millis(50 + spread));
    }

    #[test]
    fn the_median_leaves_out_a_pair_that_was_torn_apart() {
        let mut estimate = PacketPair::default();
        for (at, spread) in [(0, 10), (1000, 27), (2000, 10)] {
            pair(&mut estimate, at, spread);
        }
        assert_eq!(estimate.rate(), Some(480e3));
        assert_eq!(estimate.samples(), 3);
    }

    #[test]
    fn an_answer_without_its_pair_says_nothing() {
        let mut estimate = PacketPair::default();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        estimate.begin(at(0));
        estimate.answered(true, 600, at(60));
        assert_eq!(estimate.rate(), None, "the first was lost");
        estimate.begin(at(100));
        estimate.answered(false, 600, at(150));
        estimate.begin(at(200));
        estimate.answered(true, 600, at(260));
        assert_eq!(estimate.rate(), None, "the answers are of two pairs");
    }
}
