//! What is estimated of a path while data goes there, for policies that ask for it: [`Needs`].
//!
//! One file an estimator. Each is pure: it gets times and bytes, and has no clock of its own. An estimator that no policy needs does
//! not exist, and costs nothing. The loss rate needs no state: it follows from the counters that every path keeps
//! ([`PathView::loss_rate`]).

mod bandwidth;
mod loss;
mod packet_pair;
mod probes;
mod round_trip;

pub use bandwidth::Bandwidth;
pub use loss::LossRate;
pub use packet_pair::PacketPair;
pub use round_trip::RoundTrip;

use super::{PathId, PathView, Paths};
use crate::wire::Address;
use crate::{Config, Duration, Time};

/// What a policy wants to know of every path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Needs {
    /// The bandwidth, from the bytes that SACKs acknowledge.
    pub bandwidth: bool,
    /// The bandwidth of paths without traffic, from pairs of padded HEARTBEATs.
    pub packet_pair: bool,
    /// The smallest and the largest round-trip time, and the queueing delay between them.
    pub round_trip: bool,
}

impl Needs {
    /// Nothing.
    pub const NONE: Needs = Needs { bandwidth: false, packet_pair: false, round_trip: false };
    /// Everything.
    pub const ALL: Needs = Needs { bandwidth: true, packet_pair: true, round_trip: true };

    /// What either of two policies needs.
    pub fn and(self, other: Needs) -> Needs {
        Needs {
            bandwidth: self.bandwidth || other.bandwidth,
            packet_pair: self.packet_pair || other.packet_pair,
            round_trip: self.round_trip || other.round_trip,
        }
    }

    /// The estimators of a new path.
    fn estimators(self) -> Option<Box<Estimates>> {
        (self != Needs::NONE).then(|| {
            Box::new(Estimates {
                bandwidth: self.bandwidth.then(Bandwidth::default),
                packet_pair: self.packet_pair.then(PacketPair::default),
                round_trip: self.round_trip.then(RoundTrip::default),
            })
        })
    }
}

/// The estimators of a path. Each is there if a policy needs it.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Estimates {
    /// Its bandwidth, from the bytes that SACKs acknowledge.
    pub bandwidth: Option<Bandwidth>,
    /// Its bandwidth, from pairs of padded HEARTBEATs.
    pub packet_pair: Option<PacketPair>,
    /// Its smallest and largest round-trip time.
    pub round_trip: Option<RoundTrip>,
}

/// Bytes of the headers before the chunks of a packet: IP, UDP if SCTP is encapsulated, and the SCTP common header.
fn headers(config: &Config, remote: Address) -> u32 {
    let udp = if remote.udp == 0 { 0 } else { 8 };
    config.ip_header + udp + crate::wire::HEADER as u32
}

impl Paths {
    /// What the policies of the association need is estimated from now on.
    pub(crate) fn estimate(&mut self, needs: Needs) {
        self.needs = needs;
    }

    /// The estimators of a path that is added.
    pub(super) fn estimators(&self) -> Option<Box<Estimates>> {
        self.needs.estimators()
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
        let view = self.view_mut(id);
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
    }

    /// A HEARTBEAT has measured this round trip.
    pub(crate) fn estimate_from_heartbeat(&mut self, id: PathId, rtt: Duration, now: Time) {
        let estimates = self.view_mut(id).estimates.as_mut();
        if let Some(round_trip) = estimates.and_then(|estimates| estimates.round_trip.as_mut()) {
            round_trip.sample(rtt, now);
        }
    }
}

impl PathView {
    /// The share of chunks that were lost here, as far as it is known what became of them.
    pub fn loss_rate(&self) -> Option<LossRate> {
        let lost = self.lost.saturating_sub(self.late);
        let known = self.delivered + lost;
        // Chunks differ in size: bytes over the mean size are chunks.
        let mean = (known + self.flight) as f64 / self.chunks.max(1) as f64;
        (known > 0).then(|| LossRate::of(lost as f64 / mean, known as f64 / mean))
    }
}
