//! What an association tells the estimators of its paths.

use super::{Bandwidth, Needs, RoundTrip};
use crate::control::window::Estimated;
use crate::path::{PathId, Paths};
use crate::wire::Address;
use crate::{Config, Duration, Time};

/// Bytes of the headers before the chunks of a packet: IP, UDP if SCTP is encapsulated, and the SCTP common header.
pub(super) fn headers(config: &Config, remote: Address) -> u32 {
    let udp = if remote.udp == 0 { 0 } else { 8 };
    config.ip_header + udp + crate::wire::HEADER as u32
}

impl Paths {
    /// What the policies of the association need is estimated from now on.
    pub(crate) fn estimate(&mut self, needs: Needs) {
        self.needs = needs;
    }

    /// A SACK has acknowledged `bytes` of chunks of this path, and measured this round trip.
    pub(crate) fn estimate_from_sack(
        &mut self,
        id: PathId,
        bytes: u64,
        rtt: Option<Duration>,
        now: Time,
        config: &Config,
    ) {
        let (view, path) = self.both(id);
        let overhead = f64::from(headers(config, view.remote)) / f64::from(view.pmdcs);
        let (srtt, min_rtt) = (view.srtt, view.min_rtt);
        let Some(estimates) = &mut view.estimates else { return };
        if let (Some(round_trip), Some(rtt)) = (&mut estimates.round_trip, rtt) {
            round_trip.sample(rtt, now);
        }
        if let (Some(bandwidth), Some(srtt), Some(min_rtt)) = (&mut estimates.bandwidth, srtt, min_rtt) {
            bandwidth.measured(rtt, min_rtt);
            bandwidth.acknowledged(bytes as f64 * (1.0 + overhead), srtt, now);
        }
        path.congestion.estimated(&Estimated {
            rate: estimates.bandwidth.as_ref().and_then(Bandwidth::rate),
            base_rtt: estimates.round_trip.as_ref().and_then(RoundTrip::base),
            queueing: estimates.round_trip.as_ref().and_then(RoundTrip::queueing),
        });
    }

    /// A HEARTBEAT has measured this round trip.
    pub(crate) fn estimate_from_heartbeat(&mut self, id: PathId, rtt: Duration, now: Time) {
        let estimates = self.view_mut(id).estimates.as_mut();
        if let Some(round_trip) = estimates.and_then(|estimates| estimates.round_trip.as_mut()) {
            round_trip.sample(rtt, now);
        }
    }
}
