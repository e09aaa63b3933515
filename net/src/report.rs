//! What is told about paths and traffic.

use anabranch_proto::wire::Address;
use anabranch_proto::{PathId, PathState};
use std::time::Duration;

/// Whether a local address's packets leave by its own interface only.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// The system's routes decide: the address belongs to no interface, or it was not asked for.
    Any,
    /// The socket is bound to this interface.
    Bound(String),
    /// It was to be bound to this interface, and the system refused: why.
    Refused(String, String),
}

/// The facts of one path of an association, and of its socket.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReport {
    /// Which path.
    pub id: PathId,
    /// The local address, and UDP port if any.
    pub local: Address,
    /// The peer's address, and UDP port if any.
    pub remote: Address,
    /// Whether it can carry data.
    pub state: PathState,
    /// Whether the local address is up.
    pub up: bool,
    /// Whether new data prefers it.
    pub primary: bool,
    /// Which interface it is bound to.
    pub device: Device,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// Errors in a row.
    pub errors: u32,
    /// Bytes acknowledged here so far.
    pub delivered: u64,
    /// Bytes found lost here so far.
    pub lost: u64,
    /// The largest DATA chunk that fits a packet, in bytes.
    pub pmdcs: u32,
}

/// What an endpoint has sent and received, in packets and in system calls.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Packets handed to the kernel.
    pub packets_sent: u64,
    /// System calls that handed them over.
    pub sends: u64,
    /// Packets taken from the kernel.
    pub packets_received: u64,
    /// System calls that brought some.
    pub receives: u64,
    /// Packets that were no SCTP, or had a wrong checksum.
    pub malformed: u64,
}

impl Traffic {
    /// Mean number of packets a system call that sends.
    pub fn segments_a_send(&self) -> f64 {
        self.packets_sent as f64 / self.sends.max(1) as f64
    }
}
