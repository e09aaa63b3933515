//! The core of `anabranch-proto` on real networks, under tokio.
//!
//! An [`Endpoint`] has one socket for each local address: SCTP in UDP (RFC 6951), or SCTP directly on IP where
//! the user may open raw sockets. Its [`Association`]s send and receive messages; a reader that does not read
//! closes the window of the sender at the other end, and a sender waits when its buffer is full.
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
//! One task drives an endpoint: it takes what has arrived, one system call for up to hundreds of packets, has
//! the core handle each and say what it wants *after each* (every SACK is one missing report, and may let
//! packets go), gathers what is to be sent, and hands runs of it to the kernel, again many packets a call. User
//! calls go straight to the core under one lock; the task sends the packets that they release.
//!
//! What this API needs of the core is re-exported here: [`Config`], [`Policies`], [`Message`], [`Event`] and their parts.
//! The feature `service` adds the protocol of the command line's `serve`, `send` and `perf`.
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
mod printable;
mod report;
#[cfg(feature = "service")]
pub mod service;
mod socket;
mod source;

pub use anabranch_proto::wire::Address;
pub use anabranch_proto::{
    AddressChange, ChangeError, Config, ConfigError, Delivery, Direction, Duration, Event, Extensions,
    LostReason, Message, NewError, Outcome, PathId, PathState, Policies, PolicySpec, Refused, Reliability,
    SharedKey, Statistics,
};
pub use association::{Association, Ended};
pub use endpoint::{BindError, ConnectError, Endpoint};
pub use interface::{addresses, sources};
pub use options::{Carrier, Options, UDP_PORT};
pub use printable::{is_printable, printable};
pub use report::{Device, PathReport, Traffic};
pub use source::source;
