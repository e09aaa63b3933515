//! Round-trip times and the retransmission timeout (RFC 6298 §2; the same formulas as RFC 9260 §6.3.1).

use crate::Duration;

/// The granularity of the clock. The variation is never smaller: a timeout equal to the round-trip time would expire as
/// the answer arrives.
const GRANULARITY: Duration = Duration::from_nanos(1);

/// The smoothed round-trip time and its variation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RttEstimate {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
}

impl RttEstimate {
    /// The estimate after the first measurement.
    //= rfc6298#section-2
    pub fn first(rtt: Duration) -> Self {
        RttEstimate { srtt: rtt, rttvar: (rtt / 2).max(GRANULARITY) }
    }

    /// The estimate after another measurement, with the gains 1/8 and 1/4.
    //= rfc6298#section-2
    #[must_use]
    pub fn with(self, rtt: Duration) -> Self {
        RttEstimate {
            srtt: (self.srtt * 7 + rtt) / 8,
            rttvar: ((self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4).max(GRANULARITY),
        }
    }

    /// The timeout before any bound is applied.
    pub fn timeout(&self) -> Duration {
        self.srtt + self.rttvar * 4
    }
}

/// The bounds of the retransmission timeout.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RtoLimits {
    /// RTO.Min.
    pub min: Duration,
    /// RTO.Max.
    pub max: Duration,
}

impl RtoLimits {
    /// The timeout within the bounds.
    pub fn bound(self, rto: Duration) -> Duration {
        rto.max(self.min).min(self.max)
    }

    /// The timeout after one expiry: doubled, within the upper bound.
    //= rfc6298#section-5
    pub fn backed_off(self, rto: Duration) -> Duration {
        (rto * 2).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    //= rfc6298#section-2
    #[test]
    fn the_variation_is_updated_with_the_srtt_before_the_measurement() {
        let first = RttEstimate::first(ms(100));
        assert_eq!((first.srtt, first.rttvar, first.timeout()), (ms(100), ms(50), ms(300)));
        let second = first.with(ms(180));
        assert_eq!((second.srtt, second.rttvar), (ms(110), (ms(150) + ms(80)) / 4));
    }

    /// Round trips that take the same time for ever: the timeout stays above them.
    //= rfc6298#section-2
    #[test]
    fn the_variation_never_vanishes() {
        let steady = (0..1000).fold(RttEstimate::first(ms(100)), |estimate, _| estimate.with(ms(100)));
        assert_eq!((steady.srtt, steady.timeout()), (ms(100), ms(100) + Duration::from_nanos(4)));
        assert!(RttEstimate::first(Duration::ZERO).timeout() > Duration::ZERO);
    }

    //= rfc6298#section-5
    #[test]
    fn bounds_and_back_off() {
        let limits = RtoLimits { min: ms(200), max: ms(1000) };
        assert_eq!(limits.bound(ms(100)), ms(200));
        assert_eq!(limits.bound(ms(5000)), ms(1000));
        assert_eq!(limits.backed_off(ms(300)), ms(600));
        assert_eq!(limits.backed_off(ms(600)), ms(1000));
    }
}
