//! Control that every transport shares: retransmission timeouts, congestion windows, ranges of numbers.
//!
//! Nothing here knows SCTP or TCP. A transport turns its own sequence numbers and sizes into bytes and offsets, and asks.

pub mod ranges;
pub mod rtt;
pub mod window;
