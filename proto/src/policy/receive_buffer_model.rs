//! Predicts whether fast retransmissions on an alternate path fill the receive buffer and so block the sender.
//!
//! The model comes from section 5 of the paper in `papers/receive-buffer-blocking`. The sender loses packets at the
//! end of slow start on a fast primary path and retransmits them on a slow secondary path. Until these
//! retransmissions arrive, new data from the primary accumulates in the receive buffer. Equation (1) compares the
//! time until the buffer is released with the time until it is full; equation (8) solves it for the bandwidth of the
//! secondary path. A route policy may use the model with measured values; this file holds only the arithmetic.
//!
//! Bandwidths are bit/s, sizes bytes, times seconds, all as floating-point numbers.

/// The inputs of the model.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Conditions {
    /// B1: bandwidth of the primary path, bit/s.
    pub primary_rate: f64,
    /// R1: its round-trip time with empty queues, seconds.
    pub primary_rtt: f64,
    /// Q1: its queue at the bottleneck, bytes.
    pub queue: f64,
    /// B2: bandwidth of the secondary path, bit/s.
    pub secondary_rate: f64,
    /// R2: its round-trip time with empty queues, seconds.
    pub secondary_rtt: f64,
    /// A: the receive buffer, bytes.
    pub receive_buffer: f64,
    /// The largest packet, bytes.
    pub mtu: f64,
}

/// The terms of equations (1) to (7). Every inequality is taken at its limit.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Terms {
    /// (3) cwnd1_Previous = B1·R1 + Q1, bytes: what the primary path and its queue hold.
    pub last_window: f64,
    /// (2) cwnd1_Final = 3/2·cwnd1_Previous, bytes: with delayed SACKs a window grows by half a round.
    pub final_window: f64,
    /// (4) W = cwnd1_Final + 3·MTU, bytes: three more leave for the first three missing reports.
    pub sent: f64,
    /// (5) V2 = 3·B2, bit/s: every third packet was lost, so one that arrives releases three.
    pub release_rate: f64,
    /// (6) V1 = min(cwnd1_Final / (2·R1), B1), bit/s: the halved window once a round-trip time.
    pub arrival_rate: f64,
    /// (7) D1 = R1/2, seconds: the sender waits at least this long before it sends new data.
    pub pause: f64,
    /// The left side of (1), R2/2 + W/V2, seconds: until W is released.
    pub release_time: f64,
    /// The right side of (1), R1/2 + D1 + A/V1, seconds: until the buffer is full.
    pub fill_time: f64,
}

/// Bits in a byte.
const BITS: f64 = 8.0;

impl Conditions {
    /// The case study of the paper (sections 3 and 4).
    pub const PAPER: Conditions = Conditions {
        primary_rate: 10e6,
        primary_rtt: 0.1,
        queue: 75_000.0,
        secondary_rate: 36e3,
        secondary_rtt: 0.6,
        receive_buffer: 1e6,
        mtu: 1_500.0,
    };

    /// The terms of equations (1) to (7).
    pub fn terms(&self) -> Terms {
        let last_window = self.primary_rate * self.primary_rtt / BITS + self.queue;
        let final_window = 1.5 * last_window;
        let sent = final_window + 3.0 * self.mtu;
        let release_rate = 3.0 * self.secondary_rate;
        let arrival_rate = (final_window * BITS / (2.0 * self.primary_rtt)).min(self.primary_rate);
        let pause = self.primary_rtt / 2.0;
        Terms {
            last_window,
            final_window,
            sent,
            release_rate,
            arrival_rate,
            pause,
            release_time: self.secondary_rtt / 2.0 + sent * BITS / release_rate,
            fill_time: self.primary_rtt / 2.0 + pause + self.receive_buffer * BITS / arrival_rate,
        }
    }

    /// Equation (8): the bandwidth, bit/s, above which a secondary path does not block beside this primary;
    /// `None` if none is large enough, because the first retransmission comes too late whatever its bandwidth.
    ///
    /// B2 = (B1·R1 + Q1 + 2·MTU) / (2A/B1 + 2·R1 − R2), which is (1) with (4), (5), (7) and V1 = B1.
    pub fn least_secondary(&self) -> Option<f64> {
        let time = 2.0 * self.receive_buffer * BITS / self.primary_rate + self.slack();
        (time > 0.0).then(|| (self.primary_rate * self.primary_rtt + self.fixed()) / time)
    }

    /// Equation (8) solved for B1: the bandwidth, bit/s, below which a primary path does not block beside this
    /// secondary; `None` without a round-trip time, where the equation is not one for B1.
    ///
    /// It is the positive root of R1·B1² + (Q1 + 2·MTU − B2·(2·R1 − R2))·B1 − 2A·B2 = 0.
    pub fn most_primary(&self) -> Option<f64> {
        let (a, b) = (self.primary_rtt, self.fixed() - self.secondary_rate * self.slack());
        let c = 2.0 * self.receive_buffer * BITS * self.secondary_rate;
        let distance = (b * b + 4.0 * a * c).sqrt();
        // Of two nearly equal numbers the difference would lose its digits.
        let root = if b > 0.0 { 2.0 * c / (distance + b) } else { (distance - b) / (2.0 * a) };
        (a > 0.0 && root.is_finite()).then_some(root)
    }

    /// Whether the buffer fills before it is released, by equation (8).
    pub fn blocks(&self) -> bool {
        self.least_secondary().is_none_or(|least| self.secondary_rate <= least)
    }

    /// Q1 + 2·MTU, bits.
    fn fixed(&self) -> f64 {
        (self.queue + 2.0 * self.mtu) * BITS
    }

    /// 2·R1 − R2, seconds.
    fn slack(&self) -> f64 {
        2.0 * self.primary_rtt - self.secondary_rtt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(value: Option<f64>, expected: f64) -> bool {
        value.is_some_and(|value| (value / expected - 1.0).abs() < 5e-4)
    }

    #[test]
    fn the_thresholds_are_the_papers_to_three_digits() {
        for (secondary_rate, most_primary) in [(36e3, 801.6e3), (384e3, 4.86e6)] {
            let conditions = Conditions { secondary_rate, ..Conditions::PAPER };
            assert!(close(conditions.most_primary(), most_primary), "{:?}", conditions.most_primary());
        }
    }

    /// With b² far above 4ac the root is c/b: 2A·B2 / (Q1 + 2·MTU).
    #[test]
    fn a_small_root_keeps_its_digits() {
        let (queue, mtu) = (150e6, 1_500.0);
        let conditions = Conditions { primary_rtt: 1e-9, queue, receive_buffer: 1.0, ..Conditions::PAPER };
        let expected = 2.0 * conditions.secondary_rate / (queue + 2.0 * mtu);
        assert!(close(conditions.most_primary(), expected), "{:?}", conditions.most_primary());
    }

    #[test]
    fn both_solutions_of_equation_8_agree() {
        for primary_rate in [1e5, 801.6e3, 4.86e6, 3e7] {
            let conditions = Conditions { primary_rate, ..Conditions::PAPER };
            let secondary_rate = conditions.least_secondary().unwrap();
            assert!(close(Conditions { secondary_rate, ..conditions }.most_primary(), primary_rate));
        }
    }

    #[test]
    fn equation_8_is_equation_1_where_the_primary_fills_the_buffer_at_its_full_rate() {
        let secondary_rate = Conditions::PAPER.least_secondary().unwrap();
        let terms = Conditions { secondary_rate, ..Conditions::PAPER }.terms();
        assert_eq!(terms.arrival_rate, 10e6);
        assert!((terms.release_time - terms.fill_time).abs() < 1e-9);
        assert!(Conditions::PAPER.blocks());
        assert!(!Conditions { primary_rate: 500e3, ..Conditions::PAPER }.blocks());
    }

    #[test]
    fn above_some_primary_no_secondary_is_fast_enough() {
        assert_eq!(Conditions { primary_rate: 50e6, ..Conditions::PAPER }.least_secondary(), None);
        assert!(Conditions { primary_rate: 50e6, ..Conditions::PAPER }.blocks());
    }
}
