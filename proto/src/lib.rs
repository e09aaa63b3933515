//! SCTP over several paths, sans-I/O.
//!
//! An [`Endpoint`] owns associations. It has no socket, clock, thread or global random number. The caller passes
//! packets and user calls together with the time, and then drains the outputs with one method, `poll`:
//!
//! ```text
//! endpoint.handle(now, incoming);            // or a user call
//! loop { match endpoint.poll(now) {
//!     Output::Transmit(packet, reason) => …,
//!     Output::Event(association, event) => …,
//!     Output::Note(note)               => …,  // only while switched on
//!     Output::Wait(until)              => break,
//! }}
//! ```
//!
//! A packet is a value. [`Packet::encode`](wire::Packet::encode) makes the bytes that a socket sends, and
//! [`Packet::decode`](wire::Packet::decode) makes a packet of those that arrived; the addresses stand beside them. The
//! example `own_socket` does both.
//!
//! A packet is built when it is polled and never queued. An extra call of `poll` changes nothing.

mod association;
mod chance;
mod config;
pub mod control;
mod digest;
mod endpoint;
mod extension;
mod handshake;
pub mod mechanisms;
mod notes;
mod output;
mod parameters;
pub mod path;
pub mod policy;
mod printable;
mod receive;
pub mod rules;
mod send;
mod serial;
mod shutdown;
mod time;
pub mod wire;

pub use bytes;
pub use smallvec;

pub use config::{Config, ConfigError, ConfigWarning, Pairs, SharedKey};
pub use endpoint::{Endpoint, NewError, Status};
pub use extension::Extensions;
pub use mechanisms::Mechanisms;
pub use notes::Noting;
pub use output::{
    AddressChange, AssociationId, Blocked, ChangeError, Delivery, Direction, Discarded, Event, Incoming,
    Limit, LostReason, Message, Note, NoteKind, Outcome, Output, Purpose, Reason, Refused, Reliability,
    SendError, Statistics,
};
pub use parameters::Parameters;
pub use path::{Heartbeats, PathId, PathParameters, PathState, PathView, RtoAverage};
pub use policy::{Policies, PolicySpec, Setting};
pub use printable::{is_printable, printable};
pub use rules::Rules;
pub use serial::{Mid, Ssn, Tsn};
pub use shutdown::State;
pub use time::{Duration, Time, written};
pub use wire::LocalAddress;
