//! TCP: SACK (RFC 2018, 6675), NewReno (RFC 6582), timeouts (RFC 6298), congestion control (RFC 5681), limited
//! transmit (RFC 3042), and ns-2's `Agent/TCP/Sack1`.
//!
//! A `Connection` is sans-I/O: it has no clock and no network. It takes segments and user calls together with the time,
//! and returns its output from `poll`. A [`TcpAgent`] is a connection with its application at the end of a route. User
//! data are zeros; only their number is kept. A connection may be a subflow of Multipath TCP ([`super::mptcp`]).

mod agent;
mod application;
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
mod standards;
#[cfg(test)]
mod tests;
mod window;

pub(crate) use agent::TcpAgent;
pub(super) use agent::complete;
pub(crate) use agent::{data, reason, told};
pub use anabranch_proto::control::window::Halving;
pub(crate) use application::{Application, Place, Stream};
pub(crate) use build::{MOST_WINDOW, TOO_LARGE, largest_segment, window as window_policy};
pub(super) use build::{agents, check};
pub(crate) use codec::header;
pub use config::{RtoBound, TcpConfig, Variant};
pub(crate) use connection::{Connection, DATA_TRIES, Identity, Output, SYN_TRIES, State};
pub use segment::{Segment, Sequence, TcpPacket};
pub(crate) use segment::{TcpNote, Why};
