//! `reno`: the window of TCP (RFC 5681), in bytes.

use super::{Acked, Congestion, Decay, Decayed, Loss, Lost, Sibling, Start};

/// How half of a window is computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Halving {
    /// Half of it, to the byte.
    Fraction,
    /// Half of its whole segments, rounded down to whole segments.
    Whole,
}

/// The window of RFC 5681, which counts bytes (RFC 3465).
#[derive(Clone, Debug)]
pub struct Reno {
    segment: u64,
    halving: Halving,
    decay: Decay,
    window: u64,
    ssthresh: u64,
    /// Bytes acknowledged towards the next step of congestion avoidance.
    counted: u64,
    /// Nothing was acknowledged since the last timeout.
    timed_out: bool,
}

impl Reno {
    /// The window of a path with this start.
    pub fn new(start: Start, halving: Halving) -> Self {
        let Start { unit: segment, window, ssthresh } = start;
        Reno { segment, halving, decay: Decay::OFF, window, ssthresh, counted: 0, timed_out: false }
    }

    /// The same, which decays while nothing is sent.
    pub(crate) fn decaying(self, decay: Decay) -> Self {
        Reno { decay, ..self }
    }

    /// The ssthresh that a loss leaves, of what was outstanding. With SACK more than the window can be outstanding,
    /// since data that was reported leaves room for new data while a retransmission is missing; the window bounds it,
    /// so that each further loss lowers it again.
    //= rfc5681#section-3.1
    //= rfc5681#section-4.3
    fn halved(&self, outstanding: u64) -> u64 {
        let flight = outstanding.min(self.window);
        let half = match self.halving {
            Halving::Fraction => flight / 2,
            Halving::Whole => flight / self.segment / 2 * self.segment,
        };
        half.max(2 * self.segment)
    }
}

impl Congestion for Reno {
    fn window(&self) -> u64 {
        self.window
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    //= rfc5681#section-3.1
    fn acked(&mut self, acked: &Acked, _: &[Sibling]) {
        self.timed_out &= !acked.advanced;
        // If the window did not limit the sender, the acknowledgement says nothing about the network.
        let full = acked.flight_before + self.segment > self.window;
        if acked.recovery || acked.all() == 0 || !full {
            return;
        }
        if self.window < self.ssthresh {
            self.window += acked.all().min(self.segment);
            return;
        }
        self.counted += acked.all();
        if self.counted >= self.window {
            self.counted -= self.window;
            self.window += self.segment;
        }
    }

    //= rfc5681#section-4.1
    fn restart(&mut self, most: u64) {
        self.window = self.window.min(most);
    }

    fn set_unit(&mut self, unit: u64) {
        self.segment = unit;
    }

    fn undo(&mut self, window: u64, ssthresh: u64) {
        self.window = self.window.max(window);
        self.ssthresh = self.ssthresh.max(ssthresh);
    }

    fn reopen(&mut self, packets: u32) {
        self.window = u64::from(packets) * self.segment;
    }

    fn idle(&mut self, times: u32) -> bool {
        let Decayed { window, ssthresh, goes_on } =
            self.decay.after(times, self.segment, self.window, self.ssthresh);
        (self.window, self.ssthresh) = (window, ssthresh);
        goes_on
    }

    fn lost(&mut self, lost: &Lost, _: &[Sibling]) {
        self.counted = 0;
        match lost.how {
            Loss::Missing => {
                self.ssthresh = self.halved(lost.outstanding);
                self.window = self.ssthresh;
            }
            Loss::Timeout => {
                // A further timeout of the same segment leaves the threshold unchanged.
                if !std::mem::replace(&mut self.timed_out, true) {
                    self.ssthresh = self.halved(lost.outstanding);
                }
                self.window = self.segment;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;

    fn reno(window: u64, ssthresh: u64) -> Reno {
        Reno::new(Start { unit: 1000, window, ssthresh }, Halving::Fraction)
    }

    fn ack(bytes: u64, flight_before: u64) -> Acked {
        Acked {
            now: Time::ZERO,
            cumulative: bytes,
            gap: 0,
            gap_behind_point: 0,
            advanced: true,
            recovery: false,
            flight_before,
            unacknowledged_before: flight_before,
            flight: flight_before - bytes,
            rtt: None,
        }
    }

    fn lost(how: Loss, outstanding: u64) -> Lost {
        Lost { now: Time::ZERO, how, outstanding }
    }

    //= rfc5681#section-3.1
    #[test]
    fn slow_start_adds_what_is_acknowledged_but_a_segment_at_most() {
        let mut window = reno(4000, 64_000);
        window.acked(&ack(2000, 4000), &[]);
        assert_eq!(window.window(), 5000);
        window.acked(&ack(300, 5000), &[]);
        assert_eq!(window.window(), 5300);
        window.acked(&ack(1000, 3000), &[]);
        assert_eq!(window.window(), 5300, "it did not limit the sender");
    }

    //= rfc5681#section-3.1
    #[test]
    fn congestion_avoidance_adds_a_segment_a_window() {
        let mut window = reno(4000, 4000);
        for _ in 0..3 {
            window.acked(&ack(1000, 4000), &[]);
        }
        assert_eq!(window.window(), 4000);
        window.acked(&ack(1000, 4000), &[]);
        assert_eq!(window.window(), 5000);
    }

    //= rfc5681#section-3.1
    #[test]
    fn a_loss_leaves_half_of_what_was_in_flight() {
        let mut window = reno(20_000, 64_000);
        window.lost(&lost(Loss::Missing, 15_000), &[]);
        assert_eq!((window.window(), window.ssthresh()), (7500, 7500));
        window.lost(&lost(Loss::Timeout, 3000), &[]);
        assert_eq!((window.window(), window.ssthresh()), (1000, 2000));
        window.lost(&lost(Loss::Timeout, 9000), &[]);
        assert_eq!(window.ssthresh(), 2000, "the same segment again leaves the threshold");
    }

    /// While a lost retransmission is missing, much more than the window can be outstanding, nearly all of it reported
    /// by SACKs.
    //= rfc5681#section-4.3
    #[test]
    fn the_loss_of_a_retransmission_lowers_the_threshold_a_second_time() {
        let mut window = reno(40_000, 64_000);
        window.lost(&lost(Loss::Missing, 40_000), &[]);
        window.lost(&lost(Loss::Timeout, 200_000), &[]);
        assert_eq!((window.window(), window.ssthresh()), (1000, 10_000));
    }
}
