//! Reports on paths and traffic.

use anabranch_proto::wire::Address;
use anabranch_proto::{PathId, PathState};
use std::time::Duration;

/// Whether the packets of a local address leave only through its own interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Device {
    /// The system's routes decide: the address belongs to no interface, or binding was not requested.
    Any,
    /// The socket is bound to this interface.
    Bound(String),
    /// Binding to this interface was requested, and the system refused it with this error.
    Refused(String, String),
}

/// The facts of one path of an association, and of its socket.
#[derive(Clone, PartialEq, Debug)]
pub struct PathReport {
    /// The id of the path.
    pub id: PathId,
    /// The local address, and UDP port if any.
    pub local: Address,
    /// The peer's address, and UDP port if any.
    pub remote: Address,
    /// The state of the path.
    pub state: PathState,
    /// Whether the local address is up.
    pub up: bool,
    /// Whether this is the primary path.
    pub primary: bool,
    /// The interface to which it is bound.
    pub device: Device,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub flight: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The retransmission timeout.
    pub rto: Duration,
    /// The number of consecutive errors.
    pub errors: u32,
    /// Bytes acknowledged on this path so far: those of chunks, whose headers are part of them (16 bytes of each DATA
    /// chunk).
    pub delivered: u64,
    /// Bytes of chunks found lost on this path so far.
    pub lost: u64,
    /// The largest DATA chunk that fits a packet, in bytes.
    pub pmdcs: u32,
}

/// The traffic of an endpoint, in packets and in system calls.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Packets handed to the kernel.
    pub packets_sent: u64,
    /// System calls that sent them.
    pub sends: u64,
    /// Packets taken from the kernel that were sent to this endpoint's SCTP port. A raw socket also hears those for
    /// other ports of this host.
    pub packets_received: u64,
    /// System calls that received at least one.
    pub receives: u64,
    /// Packets that were not SCTP or had a wrong checksum.
    pub malformed: u64,
}

impl Traffic {
    /// The mean number of packets per sending system call.
    pub fn segments_a_send(&self) -> f64 {
        self.packets_sent as f64 / self.sends.max(1) as f64
    }
}
