//! The core of `anabranch-proto` on real networks, under tokio.
//!
//! An [`Endpoint`] has one socket for each local address: SCTP in UDP (RFC 6951), or SCTP directly on IP if the user
//! may open raw sockets. Its [`Association`]s send and receive messages. If an application does not read, the window
//! of the sender closes; a sender waits while its send buffer is full.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use anabranch_net::{Endpoint, Message, Options};
//!
//! let endpoint = Endpoint::bind(Options::towards(&["192.0.2.1".parse()?])?)?;
//! let association = endpoint.connect(&["192.0.2.1:9899".parse()?], 5000).await?;
//! let payload = b"a message".as_slice().into();
//! association.send(Message { payload, ..Message::default() }).await?;
//! association.close().await?;
//! endpoint.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! One task drives an endpoint. It receives up to hundreds of packets with one system call, gives each to the core
//! and drains the core *after each* (every SACK is one missing report and may release packets). It gathers the
//! packets to be sent and hands them to the kernel, again many with one call. User calls go straight to the core
//! under one lock. Of the packets that they release, complete runs leave at once; the task sends the rest.
//!
//! The parts of the core that most programs need are re-exported here: [`Config`], [`Policies`], [`Message`], [`Event`]
//! and others. The whole core is [`proto`], and [`bytes`] has the type of payloads. The feature `service` adds the protocol of the commands `serve`, `send` and `perf`.
//!
//! Nothing here is encrypted. Linux only.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

mod association;
mod core;
mod driver;
mod endpoint;
mod errors;
mod gather;
mod interface;
mod options;
mod outbound;
mod report;
#[cfg(feature = "service")]
pub mod service;
mod socket;
mod source;
mod tape;
mod undelivered;

pub use anabranch_proto as proto;
pub use anabranch_proto::wire::{Address, UDP_PORT};
pub use anabranch_proto::{
    AddressChange, ChangeError, Config, ConfigError, Delivery, Direction, Duration, Event, Extensions,
    LostReason, Message, NewError, Outcome, PathId, PathState, Policies, PolicySpec, Refused, Reliability,
    SharedKey, Statistics, is_printable, printable,
};
pub use bytes;

pub use association::{Association, Ended};
pub use endpoint::{BindError, ConnectError, Endpoint};
pub use interface::{addresses, local_addresses_towards};
pub use options::{Carrier, Options};
pub use report::{Device, PathReport, Traffic};
pub use source::source;
pub use tape::{Call, Tape};
pub use undelivered::Undelivered;
