//! The retransmission timeout of a path (RFC 9260 §6.3.1).

use super::PathView;
use crate::{Config, Duration};

/// The bounds that RTO is kept in.
#[derive(Copy, Clone, Debug)]
pub(crate) struct RttLimits {
    min: Duration,
    max: Duration,
}

impl RttLimits {
    pub(crate) fn new(config: &Config) -> Self {
        RttLimits { min: config.rto_min, max: config.rto_max }
    }
}

impl PathView {
    /// Takes a measurement. RTO.Alpha is 1/8, RTO.Beta 1/4.
    //= rfc9260#section-6.3.1
    pub(crate) fn measure(&mut self, rtt: Duration, limits: RttLimits) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        let rto = self.srtt.unwrap_or(rtt) + self.rttvar * 4;
        self.rto = rto.clamp(limits.min, limits.max);
    }

    /// Doubles RTO after a timeout.
    //= rfc9260#section-6.3.3
    pub(crate) fn back_off(&mut self, limits: RttLimits) {
        self.rto = (self.rto * 2).min(limits.max);
    }
}
