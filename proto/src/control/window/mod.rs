//! Congestion windows: how much may be in flight on a path.

mod cubic;
mod reno;

pub use cubic::Cubic;
pub use reno::{Halving, Reno};

use std::fmt::Debug;
use std::sync::Arc;

use crate::{Duration, Time};

/// A congestion window: bytes in, bytes out. It knows no type of SCTP or TCP, so that both share it; it sees its
/// siblings, so that windows can be coupled.
pub trait Congestion: CloneWindow + Debug + Send {
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// The slow-start threshold, in bytes.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    /// Bytes delivered from one loss to the next, of windows that count them.
    fn loss_distance(&self) -> u64 {
        0
    }
    /// Data of this path was acknowledged. `all`: this window and those of the connection's other active
    /// paths.
    fn acked(&mut self, _acked: &Acked, _all: &[Sibling]) {}
    /// Data of this path was lost. `all` as in [`Congestion::acked`].
    fn lost(&mut self, _lost: &Lost, _all: &[Sibling]) {}
    /// The last cut, or several in a row, was for a loss that was none: before, the window and the threshold were these,
    /// in bytes.
    fn undo(&mut self, _window: u64, _ssthresh: u64) {}
    /// The path answers again after it had failed potentially: begin with so many packets.
    fn reopen(&mut self, _packets: u32) {}
    /// Nothing was sent here for one RTO, for the `times`-th time in a row. Returns whether another RTO
    /// could change anything.
    fn idle(&mut self, _times: u32) -> bool {
        false
    }
}

/// Makes the window of one path.
pub type MakePath = Arc<dyn Fn(Start) -> Box<dyn Congestion> + Send + Sync>;

/// A copy of a window behind `dyn`; every window that is [`Clone`] has it.
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

/// What the window of a path begins with, all in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// The unit of growth and of floors: SCTP's path MTU or PMDCS, TCP's segment size.
    pub unit: u64,
    /// The initial window.
    pub window: u64,
    /// The initial slow-start threshold.
    pub ssthresh: u64,
}

/// What a window sees of a path of its connection, its own included.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Sibling {
    /// Whether it is the window's own path.
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

/// What one acknowledgement newly acknowledged on one path, each byte once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Acked {
    /// When.
    pub now: Time,
    /// Bytes acknowledged cumulatively.
    pub cumulative: u64,
    /// Bytes acknowledged selectively (SCTP's Gap Ack Blocks, TCP's SACK blocks).
    pub gap: u64,
    /// Those of them that were acknowledged when the point had moved, each once in its life.
    pub gap_behind_point: u64,
    /// Whether the point moved that lets this window grow: the cumulative acknowledgement, or the path's own point
    /// (SCTP's mechanism `cuc`).
    pub advanced: bool,
    /// Whether the losses of this path are being recovered from.
    pub recovery: bool,
    /// Bytes in flight on the path before the acknowledgement, as they count for growth.
    pub flight_before: u64,
    /// Bytes not acknowledged on the path before it, as they count for partial_bytes_acked.
    pub unacknowledged_before: u64,
    /// Bytes in flight on the path after it.
    pub flight: u64,
    /// The round-trip time that it measured, if it did.
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
    /// When it was found.
    pub now: Time,
    /// How.
    pub how: Loss,
    /// Bytes sent on the path and not acknowledged, the lost ones included (FlightSize of RFC 5681 §2).
    pub outstanding: u64,
}

/// How data was lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Missing reports (SCTP) or duplicate acknowledgements (TCP) started a fast retransmission.
    Missing,
    /// The retransmission timer expired.
    Timeout,
}
