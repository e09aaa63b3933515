//! The facts of a path as a policy in Python gets them.

use anabranch_proto::Duration;
use anabranch_proto::policy::{PathState, PathView};
use pyo3::prelude::*;

/// The facts of a path: bytes, seconds and bit/s.
#[pyclass(frozen, module = "anabranch")]
pub(crate) struct Path(pub(crate) PathView);

fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}

#[pymethods]
impl Path {
    #[getter]
    fn id(&self) -> u16 {
        self.0.id.0
    }
    /// The local address.
    #[getter]
    fn local(&self) -> String {
        self.0.local.ip.to_string()
    }
    /// The peer's address.
    #[getter]
    fn remote(&self) -> String {
        self.0.remote.ip.to_string()
    }
    #[getter]
    fn state(&self) -> &'static str {
        match self.0.state {
            PathState::Unconfirmed => "unconfirmed",
            PathState::Active => "active",
            PathState::PotentiallyFailed => "potentially-failed",
            PathState::Inactive => "inactive",
            PathState::Removed => "removed",
        }
    }
    /// Whether it can carry data now: it is active and its local address is up.
    #[getter]
    fn carries(&self) -> bool {
        self.0.carries()
    }
    #[getter]
    fn up(&self) -> bool {
        self.0.up
    }
    #[getter]
    fn primary(&self) -> bool {
        self.0.primary
    }
    #[getter]
    fn pmdcs(&self) -> u32 {
        self.0.pmdcs
    }
    #[getter]
    fn window(&self) -> u64 {
        self.0.window
    }
    #[getter]
    fn ssthresh(&self) -> u64 {
        self.0.ssthresh
    }
    #[getter]
    fn flight(&self) -> u64 {
        self.0.flight
    }
    #[getter]
    fn marked(&self) -> u64 {
        self.0.marked
    }
    #[getter]
    fn room(&self) -> u64 {
        self.0.room
    }
    #[getter]
    fn srtt(&self) -> Option<f64> {
        seconds(self.0.srtt)
    }
    #[getter]
    fn rttvar(&self) -> f64 {
        self.0.rttvar.as_secs_f64()
    }
    #[getter]
    fn min_rtt(&self) -> Option<f64> {
        seconds(self.0.min_rtt)
    }
    #[getter]
    fn rto(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }
    #[getter]
    fn errors(&self) -> u32 {
        self.0.errors
    }
    #[getter]
    fn delivered(&self) -> u64 {
        self.0.delivered
    }
    #[getter]
    fn lost(&self) -> u64 {
        self.0.lost
    }
    /// Lost bytes that were acknowledged before they were sent again.
    #[getter]
    fn late(&self) -> u64 {
        self.0.late
    }
    #[getter]
    fn chunks(&self) -> u64 {
        self.0.chunks
    }
    #[getter]
    fn fast_retransmissions(&self) -> u64 {
        self.0.fast_retransmissions
    }
    #[getter]
    fn timeout_retransmissions(&self) -> u64 {
        self.0.timeout_retransmissions
    }
    #[getter]
    fn timeouts(&self) -> u64 {
        self.0.timeouts
    }
    /// The share of chunks that were lost, and the ends of its 95 % interval; None before it is known of any chunk what
    /// became of it.
    #[getter]
    fn loss_rate(&self) -> Option<(f64, f64, f64)> {
        self.0.loss_rate().map(|rate| (rate.rate, rate.low, rate.high))
    }
    /// Bit/s, from what SACKs acknowledge; None without `needs = ("bandwidth",)` and before the first sample.
    #[getter]
    fn bandwidth(&self) -> Option<f64> {
        self.0.estimates.as_ref()?.bandwidth?.rate()
    }
    /// Whether the bottleneck was ever busy for a whole sample of `bandwidth`, which is a lower bound otherwise.
    #[getter]
    fn saturated(&self) -> bool {
        self.0.estimates.as_ref().and_then(|all| all.bandwidth).is_some_and(|of| of.is_saturated())
    }
    /// Bit/s, from pairs of HEARTBEATs; None without `needs = ("packet_pair",)` and before the first pair was answered.
    #[getter]
    fn packet_pair(&self) -> Option<f64> {
        self.0.estimates.as_ref()?.packet_pair?.rate()
    }
    /// The round trip with empty queues; None without `needs = ("round_trip",)` and before the first measurement.
    #[getter]
    fn base_rtt(&self) -> Option<f64> {
        seconds(self.0.estimates.as_ref()?.round_trip?.base())
    }
    /// What queues added to the last round trip; None as with `base_rtt`.
    #[getter]
    fn queueing(&self) -> Option<f64> {
        seconds(self.0.estimates.as_ref()?.round_trip?.queueing())
    }
    /// The most that queues added in the last 10 to 20 s; None as with `base_rtt`.
    #[getter]
    fn most_queueing(&self) -> Option<f64> {
        seconds(self.0.estimates.as_ref()?.round_trip?.most_queueing())
    }
    fn __repr__(&self) -> String {
        let PathView { id, window, flight, room, .. } = &self.0;
        format!("Path(id={}, state='{}', window={window}, flight={flight}, room={room})", id.0, self.state())
    }
}
