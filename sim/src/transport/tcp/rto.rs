//! The retransmission timeout of a connection: RFC 6298 with an exact clock, or ns-2's arithmetic with a coarse clock.

use anabranch_proto::control::rtt::{RtoLimits, RttEstimate};
use anabranch_proto::{Duration, Time};

use super::config::{RtoBound, TcpConfig};

/// After more back-off than this, the estimate is discarded: the next measurement starts a new one.
const DOUBTFUL: u32 = 8;

#[derive(Debug)]
pub(super) struct Rto {
    limits: RtoLimits,
    /// What is added to the smoothed round-trip time is at least this.
    least_added: Duration,
    clock: Clock,
    /// The timeout before back-off and bounds are applied.
    current: Duration,
    backoff: u32,
    /// The timeout with both.
    timeout: Duration,
    srtt: Option<Duration>,
    /// The smallest round-trip time measured.
    least: Option<Duration>,
}

/// The clock that measures round trips.
#[derive(Debug)]
enum Clock {
    Exact(Option<RttEstimate>),
    Ticks {
        tick: Duration,
        /// The offset within a tick at the start of the run.
        phase: Duration,
        /// The smoothed RTT in eighths of a tick, and its variation in quarters.
        estimate: Option<(i64, i64)>,
    },
}

impl Rto {
    /// `phase`: the offset within a tick at the start of the run, below one tick. It matters only for a clock with
    /// ticks.
    pub(super) fn new(config: &TcpConfig, phase: Duration) -> Self {
        let tick = config.rto_tick;
        let clock = match tick {
            Duration::ZERO => Clock::Exact(None),
            _ => Clock::Ticks { tick, phase, estimate: None },
        };
        let limits = RtoLimits { min: config.rto_min, max: config.rto_max };
        let least_added = match config.rto_min_bounds {
            RtoBound::Timeout => Duration::ZERO,
            RtoBound::Variation => config.rto_min,
        };
        let (current, timeout) = (config.rto_initial, Duration::ZERO);
        let mut rto =
            Rto { limits, least_added, clock, current, backoff: 1, timeout, srtt: None, least: None };
        rto.bound();
        rto
    }

    /// The smoothed round-trip time.
    pub(super) fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// The variation of the round-trip time; zero before any measurement.
    pub(super) fn rttvar(&self) -> Duration {
        match self.clock {
            Clock::Exact(estimate) => estimate.map_or(Duration::ZERO, |estimate| estimate.rttvar),
            Clock::Ticks { tick, estimate, .. } => {
                estimate.map_or(Duration::ZERO, |(_, variation)| times(tick, variation) / 4)
            }
        }
    }

    /// The smallest round-trip time measured.
    pub(super) fn least(&self) -> Option<Duration> {
        self.least
    }

    /// The current timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Applies back-off and bounds.
    fn bound(&mut self) {
        let least = match self.clock {
            Clock::Exact(_) => Duration::ZERO,
            Clock::Ticks { tick, .. } => 2 * tick,
        };
        self.timeout = (self.limits.bound(self.current) * self.backoff).min(self.limits.max).max(least);
    }

    /// A segment that was sent at `sent` has measured the round trip. This ends the back-off.
    //= rfc6298#section-5
    pub(super) fn measured(&mut self, sent: Time, now: Time) {
        self.backoff = 1;
        let rtt = now.since(sent);
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        match &mut self.clock {
            Clock::Exact(estimate) => {
                let next = estimate.map_or_else(|| RttEstimate::first(rtt), |before| before.with(rtt));
                *estimate = Some(next);
                self.current = next.timeout().max(next.srtt + self.least_added);
                self.srtt = Some(next.srtt);
            }
            Clock::Ticks { tick, phase, estimate } => {
                let started = (sent.as_nanos() + nanos(*phase)) % nanos(*tick);
                let ticks = ((nanos(rtt) + started) / nanos(*tick)).max(1) as i64;
                let (srtt, rttvar) = smoothed(*estimate, ticks);
                *estimate = Some((srtt, rttvar));
                self.current = times(*tick, ((rttvar << 3) + srtt) >> 3);
                self.srtt = Some(times(*tick, srtt) / 8);
            }
        }
        self.bound();
    }

    /// The timer has expired.
    //= rfc6298#section-5
    pub(super) fn back_off(&mut self) {
        if self.timeout() < self.limits.max {
            self.backoff *= 2;
            self.bound();
        }
        if self.backoff > DOUBTFUL {
            match &mut self.clock {
                Clock::Exact(estimate) => *estimate = None,
                Clock::Ticks { estimate, .. } => *estimate = None,
            }
        }
    }

    /// Ends the back-off without a measurement.
    pub(super) fn end_back_off(&mut self) {
        self.backoff = 1;
        self.bound();
    }

    /// The SYN was lost, so the timeout for data begins with three seconds.
    //= rfc6298#section-5
    pub(super) fn after_lost_syn(&mut self) {
        self.backoff = 1;
        self.current = self.current.max(Duration::from_secs(3));
        self.bound();
    }
}

/// ns-2's filter in integer arithmetic.
fn smoothed(before: Option<(i64, i64)>, ticks: i64) -> (i64, i64) {
    let Some((srtt, rttvar)) = before else { return (ticks << 3, ticks << 1) };
    let difference = ticks - (srtt >> 3);
    let change = difference.abs() - (rttvar >> 2);
    ((srtt + difference).max(1), (rttvar + change).max(1))
}

/// So many ticks.
fn times(tick: Duration, ticks: i64) -> Duration {
    Duration::from_nanos(nanos(tick).saturating_mul(ticks.unsigned_abs()))
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::config::Variant;
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn at(n: u64) -> Time {
        Time::ZERO + ms(n)
    }

    //= rfc6298#section-2
    #[test]
    fn the_first_measurement_gives_three_round_trips() {
        let mut rto = Rto::new(&Variant::Standard.defaults(1460), Duration::ZERO);
        assert_eq!(rto.timeout(), ms(1000), "(2.1) of today, one second");
        rto.measured(at(0), at(600));
        assert_eq!(rto.timeout(), ms(1800));
        rto.measured(at(700), at(710));
        assert_eq!(rto.srtt(), Some(ms(526) + Duration::from_micros(250)));
    }

    //= rfc6298#section-5
    #[test]
    fn the_timer_backs_off_until_a_measurement() {
        let mut rto = Rto::new(&Variant::Standard.defaults(1460), Duration::ZERO);
        let backed: Vec<_> = (0..8).map(|_| (rto.back_off(), rto.timeout().as_secs()).1).collect();
        assert_eq!(backed, [2, 4, 8, 16, 32, 60, 60, 60]);
        rto.measured(at(0), at(100));
        assert_eq!(rto.timeout(), ms(1000));
    }

    #[test]
    fn ticks_count_from_the_boot() {
        let mut rto = Rto::new(&Variant::Sack1.defaults(1000), ms(4));
        assert_eq!(rto.timeout(), ms(3000));
        // The segment leaves 4 ms into a tick; 52 ticks of 10 ms begin within 517 ms.
        rto.measured(at(0), at(517));
        assert_eq!(rto.timeout(), ms(10) * (52 + 4 * 26));
        rto.measured(at(0), at(517));
        assert_eq!(rto.timeout(), ms(10) * (((78 << 3) + 416) >> 3));
    }

    /// Two seconds are 2·10⁹ ticks, more than 32 bits hold when they are counted in eighths.
    #[test]
    fn ticks_may_be_short() {
        let config = TcpConfig { rto_tick: Duration::from_nanos(1), ..Variant::Sack1.defaults(1000) };
        let mut rto = Rto::new(&config, Duration::ZERO);
        rto.measured(at(0), at(2000));
        assert_eq!((rto.timeout(), rto.srtt(), rto.rttvar()), (ms(6000), Some(ms(2000)), ms(1000)));
    }
}
