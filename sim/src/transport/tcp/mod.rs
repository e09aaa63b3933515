//! TCP: SACK (RFC 2018, 6675), NewReno (RFC 6582), timeouts (RFC 6298), congestion control (RFC 5681), limited
//! transmit (RFC 3042), and ns-2's `Agent/TCP/Sack1`.
//!
//! A `Connection` is sans-I/O: it has no clock and no network. Segments and user calls go in with the time; what it has
//! to say is drained from `poll`. A [`TcpAgent`] is a connection with its application at the end of a route. User data
//! are zeros; only their number is kept.

mod agent;
mod build;
mod codec;
mod config;
mod connection;
mod flight;
mod outstanding;
mod receiver;
mod recovery;
mod rto;
mod sack1;
mod segment;
mod sender;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use agent::TcpAgent;
pub(super) use agent::complete;
pub use anabranch_proto::control::window::Halving;
pub(super) use build::{agents, check};
pub(crate) use codec::header;
pub use config::{TcpConfig, Variant};
pub use segment::{Segment, Sequence, TcpPacket};
