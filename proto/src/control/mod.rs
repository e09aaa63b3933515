//! Control that every transport shares: retransmission timeouts, congestion windows, ranges of numbers.
//!
//! Nothing here depends on SCTP or TCP. A transport converts its own sequence numbers and sizes into bytes and
//! offsets.

pub mod ranges;
pub mod rtt;
pub mod window;
