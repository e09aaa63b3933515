//! Multipath TCP (RFC 8684): one stream of bytes over several TCP subflows.
//!
//! A subflow is the TCP of [`super::tcp`], with its own sequence numbers, window and recovery of losses. A
//! [`Connection`] gives it data a segment at a time, exactly when it would send one, so that a segment never crosses the
//! border of a mapping. What arrived is kept by data sequence number, whichever subflow brought it, in one buffer; every
//! segment announces its free part. The scheduler and the coupled windows are those of SCTP.
//!
//! What a piece of data on two subflows means: each subflow counts its own copy in flight, times it by its own rules and
//! sends it again until it has acknowledged it; DATA_ACK frees the buffers, whichever copy came first.
//!
//! Left out: checksums of data, MP_FASTCLOSE, MP_FAIL and MP_TCPRST, ports in ADD_ADDR, REMOVE_ADDR. When both ends have
//! seen DATA_FIN, subflows that work are closed by FIN; others are given up without a word.

mod agent;
mod assembly;
mod blocked;
mod build;
mod config;
mod connection;
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
pub use option::{AddAddress, DataAck, Dss, Handshake, Mapping, MptcpOptions};
