//! What stands in a packet: typed chunks inside, bytes only at the edge.
//!
//! Two rules shape the codec. What [`Packet::encode`] accepts, [`Packet::decode`] gives back equal; what it
//! cannot accept (a length beyond its 16 bits, a known number in an `Unknown`) it refuses, so that no packet
//! changes its meaning on the way. And a packet with one malformed element is refused whole: its checksum was
//! right, so its sender meant what it says, and nothing behind a wrong length is worth a guess.
//!
//! Each number is written once, in a table: chunks in [`chunk`], parameters and causes beside their types.
//! A table's row names the content, and the content knows its own bytes.

mod address;
mod cause;
pub mod chunk;
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
pub use error::{DecodeError, EncodeError};
pub use packet::{Ecn, HEADER, Packet, Ports};
pub use param::Param;
pub use quoted::Quoted;
