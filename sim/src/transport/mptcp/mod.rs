//! Multipath TCP (RFC 8684): one stream of bytes over several TCP subflows.
//!
//! A subflow is the TCP of [`super::tcp`], with its own sequence numbers, window and loss recovery. A [`Connection`]
//! gives it one segment of data at a time, exactly when it would send one. So a segment never crosses the border of a
//! mapping. Received data is stored by data sequence number in one buffer, whichever subflow carried it. Every segment
//! advertises the free part of that buffer. The scheduler and the coupled windows are those of SCTP.
//!
//! Data can be on two subflows at once. Each subflow counts its own copy in flight, times it by its own rules, and
//! sends it again until the copy is acknowledged. DATA_ACK frees the buffers when the first copy has arrived.
//!
//! Not implemented: checksums of data, MP_FASTCLOSE, MP_FAIL and MP_TCPRST, ports in ADD_ADDR, REMOVE_ADDR. When both
//! ends have seen DATA_FIN, working subflows are closed by FIN and others are dropped silently, except one that must
//! acknowledge the last DATA_FIN.

mod agent;
mod assembly;
mod blocked;
mod build;
mod config;
mod connection;
mod fallback;
mod keys;
mod option;
mod pieces;
mod schedule;
mod setup;
mod subflow;

pub(crate) use agent::MptcpAgent;
pub(super) use agent::complete;
pub(super) use build::{agents, check};
pub use config::{MptcpConfig, PathManager, Priority, Reinjection};
pub use option::{AddAddress, DataAck, Dss, Handshake, Mapping, MptcpOptions, RareOptions};
pub(crate) use option::{long, short, word};
