//! The facts of a path, which policies and users see.

use super::estimate::{Estimates, LossRate};
use crate::control::rtt::{RtoLimits, RttEstimate};
use crate::wire::Address;
use crate::{Duration, Time};

/// A path of an association. Never used again within it, also after the path is gone.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathId(pub u16);

impl PathId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Whether a path can carry data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Not yet verified by a heartbeat (RFC 9260 §5.4): no data goes there.
    Unconfirmed,
    /// In order.
    Active,
    /// An error or more in a row (RFC 7829): no new data while another path is active.
    PotentiallyFailed,
    /// Too many errors in a row (RFC 9260 §8.2).
    Inactive,
    /// Its address was taken out of the association (RFC 5061).
    Removed,
}

/// The facts of one path, stored here only: policies read a slice of these at no cost.
#[derive(Clone, PartialEq, Debug)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// The local address.
    pub local: Address,
    /// The peer's address.
    pub remote: Address,
    /// Whether it can carry data.
    pub state: PathState,
    /// Whether the local address is up: see [`Incoming::Up`](crate::Incoming::Up).
    pub up: bool,
    /// Whether new data prefers it.
    pub primary: bool,
    /// The largest DATA chunk that fits a packet, in bytes.
    pub pmdcs: u32,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow-start threshold, in bytes.
    pub ssthresh: u64,
    /// Bytes in flight here: sent, neither acknowledged nor marked for retransmission.
    pub flight: u64,
    /// Bytes marked for retransmission that were last sent here.
    pub marked: u64,
    /// Bytes that may be sent here now, all limits considered; anything above zero admits a whole packet
    /// (RFC 9260 §6.1 B).
    pub room: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Its variation.
    pub rttvar: Duration,
    /// The smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Timeouts and lost heartbeats in a row.
    pub errors: u32,
    /// Bytes acknowledged here so far.
    pub delivered: u64,
    /// Bytes found lost here so far.
    pub lost: u64,
    /// Those of them that were acknowledged before they were sent again: they were only late.
    pub late: u64,
    /// DATA chunks sent here, retransmissions included.
    pub chunks: u64,
    /// Chunks fast-retransmitted on this path.
    pub fast_retransmissions: u64,
    /// Chunks retransmitted on this path after a timeout.
    pub timeout_retransmissions: u64,
    /// Copies sent here of chunks in flight on another path.
    pub reinjected: u64,
    /// How long this path has kept a buffer full: new data waited for the peer's window or a full send buffer while
    /// the lowest TSN not acknowledged was last sent here.
    pub blocks: Duration,
    /// Tail loss probes sent here (RFC 8985 §7).
    pub tail_probes: u64,
    /// Times that T3-rtx expired here.
    pub timeouts: u64,
    /// Heartbeats sent here, probes of the MTU not among them.
    pub heartbeats: u64,
    /// Those of them that were answered.
    pub heartbeats_answered: u64,
    /// What `rto` was on average.
    pub rto_average: RtoAverage,
    /// What is estimated of the path; there if a policy needs it ([`Route::needs`](crate::policy::Route::needs)).
    pub estimates: Option<Box<Estimates>>,
}

/// The retransmission timeout of a path, averaged over time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RtoAverage {
    since: Time,
    /// Up to when it is summed up, and what it has been since.
    until: Time,
    rto: Duration,
    /// Square nanoseconds.
    sum: u128,
}

impl RtoAverage {
    /// The average of a path that begins now with this timeout.
    pub fn new(now: Time, rto: Duration) -> Self {
        RtoAverage { since: now, until: now, rto, sum: 0 }
    }

    fn summed(&self, now: Time) -> u128 {
        self.sum + now.since(self.until).as_nanos() * self.rto.as_nanos()
    }

    /// It is this from now on.
    pub(super) fn set(&mut self, now: Time, rto: Duration) {
        (self.sum, self.until, self.rto) = (self.summed(now), now, rto);
    }

    /// The mean from the beginning of the path up to now; what it is, if that is no time.
    pub fn mean(&self, now: Time) -> Duration {
        let time = now.since(self.since).as_nanos();
        let mean = self.summed(now).checked_div(time);
        mean.map_or(self.rto, |mean| Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
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

    /// Takes a measurement of the round-trip time. RTO.Alpha is 1/8, RTO.Beta 1/4.
    //= rfc9260#section-6.3.1
    pub(crate) fn measure(&mut self, rtt: Duration, limits: RtoLimits) {
        let estimate = match self.srtt {
            None => RttEstimate::first(rtt),
            Some(srtt) => RttEstimate { srtt, rttvar: self.rttvar }.with(rtt),
        };
        (self.srtt, self.rttvar) = (Some(estimate.srtt), estimate.rttvar);
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.rto = limits.bound(estimate.timeout());
    }

    /// Doubles RTO after a timeout.
    //= rfc9260#section-6.3.3
    pub(crate) fn back_off(&mut self, limits: RtoLimits) {
        self.rto = limits.backed_off(self.rto);
    }
}

impl PathView {
    /// Whether data should take this path: it is active, and its local address is up.
    pub fn carries(&self) -> bool {
        self.state == PathState::Active && self.up
    }

    /// Whether the path has been verified, and still is one.
    pub(crate) fn confirmed(&self) -> bool {
        !matches!(self.state, PathState::Unconfirmed | PathState::Removed)
    }
}
