//! Packets as types, and their encoding as bytes.
//!
//! Two rules shape the codec. First, [`Packet::decode`] returns every packet that [`Packet::encode`] accepts as an
//! equal value. Encoding fails for a packet that would change its meaning (a length beyond 16 bits, an `Unknown` with a
//! known number). Second, a packet with one malformed element is rejected as a whole. Its checksum was right, so the
//! sender built it like this, and nothing after a wrong length can be trusted. Only the content of an extension may
//! mean something else to a peer that does not use it: what cannot be read there is unknown.
//!
//! Each number is written once, in a table: chunks in [`chunk`], parameters and causes beside their types. A row of a
//! table names the content, and the content encodes itself.

mod address;
mod cause;
mod checksum;
pub mod chunk;
mod copies;
mod error;
mod packet;
mod param;
mod quoted;
mod reader;
#[cfg(test)]
mod tests;
mod tlv;

pub use address::{Address, LocalAddress};
pub use cause::Cause;
pub use chunk::Chunk;
pub use copies::Copies;
pub use error::{DecodeError, EncodeError};
pub use packet::{Ecn, HEADER, Packet, Ports, Spares};
pub use param::Param;
pub use quoted::Quoted;

/// The UDP port that is registered for SCTP in UDP.
//= rfc6951#section-5.1
pub const UDP_PORT: u16 = 9899;
