//! The facts of a path, which policies and users see.

use super::estimate::{Estimates, LossRate};
use crate::control::rtt::{RtoLimits, RttEstimate};
use crate::wire::Address;
use crate::{Duration, Time};

/// Identifies a path of an association. The id of a removed path is used again only if the same pair of addresses
/// returns; its counters then start at zero.
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
    /// Not yet verified by a heartbeat (RFC 9260 §5.4): it carries no data.
    Unconfirmed,
    /// In order.
    Active,
    /// Potentially failed (RFC 7829): it has had errors in a row and carries no new data while another path is
    /// active.
    PotentiallyFailed,
    /// Failed: it has had too many errors in a row (RFC 9260 §8.2).
    Inactive,
    /// Removed from the association (RFC 5061).
    Removed,
}

/// The facts of one path. They are stored only here; policies read a slice of them at no cost.
#[derive(Clone, PartialEq, Debug)]
pub struct PathView {
    /// Which path.
    pub id: PathId,
    /// The local address.
    pub local: Address,
    /// The peer's address.
    pub remote: Address,
    /// The state of the path.
    pub state: PathState,
    /// Whether the local address is up: see [`Incoming::Up`](crate::Incoming::Up).
    pub up: bool,
    /// Whether this is the primary path.
    pub primary: bool,
    /// The largest DATA chunk that fits a packet, in bytes.
    pub pmdcs: u32,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow-start threshold, in bytes.
    pub ssthresh: u64,
    /// Bytes in flight on this path: sent, and neither acknowledged nor marked for retransmission.
    pub flight: u64,
    /// Bytes last sent on this path that are marked for retransmission.
    pub marked: u64,
    /// Bytes that may be sent on this path now, with all limits considered. Any value above zero admits one whole
    /// packet (RFC 9260 §6.1 B).
    pub room: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Its variation.
    pub rttvar: Duration,
    /// The smallest round-trip time measured.
    pub min_rtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The number of consecutive timeouts and lost heartbeats.
    pub errors: u32,
    /// Bytes acknowledged here so far. They become fewer when a SACK no longer reports a chunk that one before it
    /// reported (RFC 9260 §6.2.1), and begin at zero after a restart of the peer.
    pub delivered: u64,
    /// Bytes found lost here so far.
    pub lost: u64,
    /// Those of them that were acknowledged before they were sent again: they were only late.
    pub late: u64,
    /// DATA chunks sent on this path, retransmissions included.
    pub chunks: u64,
    /// Chunks fast-retransmitted on this path.
    pub fast_retransmissions: u64,
    /// Chunks retransmitted on this path after a timeout.
    pub timeout_retransmissions: u64,
    /// Copies, sent on this path, of chunks that were in flight on another path.
    pub reinjected: u64,
    /// How long this path has kept a buffer full: new data waited for the peer's window or a full send buffer while
    /// the lowest unacknowledged TSN was last sent on this path.
    pub blocks: Duration,
    /// Tail loss probes sent here (RFC 8985 §7).
    pub tail_probes: u64,
    /// Times that T3-rtx expired here.
    pub timeouts: u64,
    /// Heartbeats sent on this path, without probes of the MTU.
    pub heartbeats: u64,
    /// Heartbeats that were answered.
    pub heartbeats_answered: u64,
    /// The average of `rto` over time.
    pub rto_average: RtoAverage,
    /// What is estimated of the path; there if a policy needs it ([`Route::needs`](crate::policy::Route::needs)).
    pub estimates: Option<Box<Estimates>>,
}

/// The retransmission timeout of a path, averaged over time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RtoAverage {
    since: Time,
    /// The time up to which it is summed, and the value since then.
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

    /// The timeout has this value from now on.
    pub(super) fn set(&mut self, now: Time, rto: Duration) {
        (self.sum, self.until, self.rto) = (self.summed(now), now, rto);
    }

    /// The mean from the beginning of the path until now. If no time has passed, the current value.
    pub fn mean(&self, now: Time) -> Duration {
        let time = now.since(self.since).as_nanos();
        let mean = self.summed(now).checked_div(time);
        mean.map_or(self.rto, |mean| Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

impl PathView {
    /// The facts of a path between these addresses (local, remote) on which nothing was sent yet. It is not confirmed,
    /// and its windows are zero.
    pub fn unused(id: PathId, (local, remote): (Address, Address), now: Time, rto_initial: Duration) -> Self {
        PathView {
            id,
            local,
            remote,
            state: PathState::Unconfirmed,
            up: true,
            primary: false,
            pmdcs: 0,
            window: 0,
            ssthresh: 0,
            flight: 0,
            marked: 0,
            room: 0,
            srtt: None,
            rttvar: Duration::ZERO,
            min_rtt: None,
            rto: rto_initial,
            errors: 0,
            delivered: 0,
            lost: 0,
            late: 0,
            chunks: 0,
            fast_retransmissions: 0,
            timeout_retransmissions: 0,
            reinjected: 0,
            blocks: Duration::ZERO,
            tail_probes: 0,
            timeouts: 0,
            heartbeats: 0,
            heartbeats_answered: 0,
            rto_average: RtoAverage::new(now, rto_initial),
            estimates: None,
        }
    }

    /// The share of chunks that were lost here, as far as it is known what became of them.
    pub fn loss_rate(&self) -> Option<LossRate> {
        let lost = self.lost.saturating_sub(self.late);
        let known = self.delivered + lost;
        // Chunks differ in size: bytes over the mean size are chunks.
        let mean = (known + self.flight) as f64 / self.chunks.max(1) as f64;
        (known > 0).then(|| LossRate::of(lost as f64 / mean, known as f64 / mean))
    }

    /// Applies a measurement of the round-trip time. RTO.Alpha is 1/8, RTO.Beta 1/4.
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
    /// Whether data may take this path: it is active, and its local address is up.
    pub fn carries(&self) -> bool {
        self.state == PathState::Active && self.up
    }

    /// Whether the path has failed, potentially or for good, until something shows that it works.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.state, PathState::Inactive | PathState::PotentiallyFailed)
    }

    /// Whether the path has been verified and still belongs to the association.
    pub(crate) fn confirmed(&self) -> bool {
        !matches!(self.state, PathState::Unconfirmed | PathState::Removed)
    }
}
