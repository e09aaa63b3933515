//! Congestion windows: how many bytes may be in flight on a path.

mod cubic;
mod decay;
mod reno;

pub use cubic::{Alpha, Cubic};
pub(crate) use decay::{Decay, Decayed};
pub use reno::{Halving, Reno};

use std::fmt::Debug;
use std::sync::Arc;

use crate::{Duration, Time};

/// A congestion window. It counts bytes and uses no type of SCTP or TCP, so that both can use it. It sees the other
/// paths of its connection, so that windows can be coupled.
pub trait Congestion: CloneWindow + Debug + Send {
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// The slow-start threshold, in bytes.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    /// The bytes delivered between two losses, for windows that count them.
    fn loss_distance(&self) -> u64 {
        0
    }
    /// Whether it uses [`Congestion::estimated`]. SCTP then keeps estimators for every path; the simulator's TCP has
    /// none.
    fn wants_estimates(&self) -> bool {
        false
    }
    /// The estimates of this path after a SACK that acknowledged data of it. It follows [`Congestion::acked`].
    fn estimated(&mut self, _estimated: &Estimated) {}
    /// Whether acknowledgements and losses on this path concern the window alone. Then it is not told of other paths.
    fn stands_alone(&self) -> bool {
        false
    }
    /// Data of this path was acknowledged. `all`: this path and the other active paths of the connection; none if the
    /// window stands alone.
    fn acked(&mut self, _acked: &Acked, _all: &[Sibling]) {}
    /// Data of this path was lost. `all` as in [`Congestion::acked`].
    fn lost(&mut self, _lost: &Lost, _all: &[Sibling]) {}
    /// The last cut, or the last series of cuts, was needless because nothing was lost. Before it, the window and the
    /// threshold had these values, in bytes.
    fn undo(&mut self, _window: u64, _ssthresh: u64) {}
    /// The window becomes at most `most` bytes. TCP asks for this after a pause, for which SCTP has `idle`; SCTP asks
    /// for it when its packets become smaller before the first data, or after a timeout.
    fn restart(&mut self, _most: u64) {}
    /// The packets of the path have another size: the unit becomes this number of bytes. The window and the threshold
    /// keep their bytes. TCP never asks for this.
    fn set_unit(&mut self, _unit: u64) {}
    /// The path answers again after it was potentially failed: begin with this number of packets.
    fn reopen(&mut self, _packets: u32) {}
    /// Nothing was sent on this path for one RTO, for the `times`-th time in a row. Returns whether another RTO
    /// without sending could change anything if nothing is acknowledged before.
    fn idle(&mut self, _times: u32) -> bool {
        false
    }
}

/// Makes the window of one path.
pub type MakeWindow = Arc<dyn Fn(Start) -> Box<dyn Congestion> + Send + Sync>;

/// Clones a window behind `dyn`. Every window that is [`Clone`] implements it.
#[diagnostic::on_unimplemented(
    note = "derive `Clone` for the window: an endpoint can be copied with its windows"
)]
pub trait CloneWindow {
    /// The copy.
    fn clone_box(&self) -> Box<dyn Congestion>;
}

impl<W: Congestion + Clone + 'static> CloneWindow for W {
    fn clone_box(&self) -> Box<dyn Congestion> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Congestion> {
    fn clone(&self) -> Self {
        (**self).clone_box()
    }
}

/// What is estimated of a path. Each value is missing before its first sample.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Estimated {
    /// The bandwidth in bit/s on the wire, with the headers of IP.
    pub rate: Option<f64>,
    /// The round-trip time with empty queues.
    pub base_rtt: Option<Duration>,
    /// The queueing delay of the last round trip.
    pub queueing: Option<Duration>,
}

/// The initial values for the window of a path, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// The unit of growth and of floors: SCTP's path MTU or PMDCS, TCP's segment size.
    pub unit: u64,
    /// The initial window.
    pub window: u64,
    /// The initial slow-start threshold.
    pub ssthresh: u64,
}

/// What a window sees of one path of its connection, its own path included.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sibling {
    /// Whether this is the window's own path.
    pub own: bool,
    /// The congestion window, in bytes.
    pub window: u64,
    /// The slow-start threshold, in bytes.
    pub ssthresh: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The [`Congestion::loss_distance`] of its window.
    pub loss_distance: u64,
}

/// What one acknowledgement newly acknowledged on one path. Each byte counts once.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Acked {
    /// The time.
    pub now: Time,
    /// Bytes acknowledged cumulatively.
    pub cumulative: u64,
    /// Bytes acknowledged selectively (SCTP's Gap Ack Blocks, TCP's SACK blocks).
    pub gap: u64,
    /// The part of these bytes that was acknowledged when the point had moved. Each byte counts once in its life.
    pub gap_behind_point: u64,
    /// Whether the point that lets this window grow has moved: the cumulative acknowledgement, or the path's own
    /// point (SCTP's mechanism `cuc`).
    pub advanced: bool,
    /// Whether the path is in loss recovery.
    pub recovery: bool,
    /// Bytes in flight on the path before the acknowledgement, as counted for growth.
    pub flight_before: u64,
    /// Unacknowledged bytes on the path before it, as counted for partial_bytes_acked.
    pub unacknowledged_before: u64,
    /// Bytes in flight on the path after it; 0 if the sender pauses because it has no data. Where a sender of whole
    /// segments (TCP) has filled its window, it is at least 1.
    pub flight: u64,
    /// The round-trip time that it measured, if any.
    pub rtt: Option<Duration>,
}

impl Acked {
    /// All bytes newly acknowledged.
    pub fn all(&self) -> u64 {
        self.cumulative + self.gap
    }
}

/// A loss on one path.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The time at which it was detected.
    pub now: Time,
    /// The kind of loss.
    pub how: Loss,
    /// Bytes sent on the path and not acknowledged, including the lost ones (FlightSize of RFC 5681 §2).
    pub outstanding: u64,
}

/// How a loss was detected.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Missing reports (SCTP) or duplicate acknowledgements (TCP) started a fast retransmission.
    Missing,
    /// The retransmission timer expired.
    Timeout,
}
