//! How much may be in flight on a path.

pub mod standard;

use crate::path::PathView;
use crate::{Duration, Time};

/// A congestion window: bytes in, bytes out. It knows no SCTP type, so that TCP shares it; it sees its
/// siblings, so that windows can be coupled.
pub trait Congestion: Send {
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// The slow-start threshold, in bytes.
    fn ssthresh(&self) -> u64 {
        u64::MAX
    }
    /// A SACK acknowledged data of this path.
    fn acked(&mut self, _acked: &Acked, _all: &[PathView]) {}
    /// Data of this path was lost.
    fn lost(&mut self, _loss: Loss, _all: &[PathView]) {}
    /// The path answers again after it had failed potentially: begin with so many packets.
    fn reopen(&mut self, _packets: u32) {}
    /// Nothing was sent here for one RTO, for the `times`-th time in a row. Returns whether another RTO
    /// could change anything.
    fn idle(&mut self, _times: u32) -> bool {
        false
    }
}

/// Makes the window of one path.
pub type MakePath = Box<dyn Fn(Units) -> Box<dyn Congestion> + Send>;

/// The sizes that a path's window is counted in, in bytes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Units {
    /// The path MTU, IP header included.
    pub mtu: u32,
    /// The largest DATA chunk that fits a packet of the path.
    pub pmdcs: u32,
    /// Whether the peer's address is one of IPv6.
    pub ipv6: bool,
}

/// What one SACK newly acknowledged on one path, each byte once.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Acked {
    /// When.
    pub now: Time,
    /// Bytes acknowledged by the Cumulative TSN Ack.
    pub cumulative: u64,
    /// Bytes acknowledged by Gap Ack Blocks.
    pub gap: u64,
    /// Those of them that count towards partial_bytes_acked where it counts only behind the point: acknowledged when
    /// it had moved, each once.
    pub gap_behind_point: u64,
    /// Whether the point moved that lets this window grow: the Cumulative TSN Ack Point, or the path's own
    /// (mechanism `cuc`).
    pub advanced: bool,
    /// Whether the losses of this path are being recovered from.
    pub recovery: bool,
    /// Bytes in flight on the path before the SACK, as they count for growth.
    pub flight_before: u64,
    /// Bytes in flight on the path before the SACK, as they count for partial_bytes_acked.
    pub unacknowledged_before: u64,
    /// Bytes in flight on the path after it.
    pub flight: u64,
    /// Bytes acknowledged on the path so far.
    pub delivered: u64,
    /// Bytes found lost on the path so far.
    pub lost: u64,
    /// The round-trip time that it measured, if it did.
    pub rtt: Option<Duration>,
}

impl Acked {
    /// All bytes newly acknowledged.
    pub fn all(&self) -> u64 {
        self.cumulative + self.gap
    }
}

/// How data was lost.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Missing reports started a fast retransmission.
    Missing,
    /// T3-rtx expired.
    Timeout,
}
