//! What stands in a packet: typed chunks inside, bytes only at the edge.

pub mod chunk;
mod packet;
mod param;

pub use chunk::Chunk;
pub use packet::{Address, Ecn, Packet, Ports};
pub use param::{Cause, Param};
