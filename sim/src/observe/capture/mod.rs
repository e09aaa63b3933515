//! Captures: a run as a pcapng file, and any capture of SCTP or TCP as one line a packet.
//!
//! Writing and reading stand on nothing but the file format's few blocks. Two libraries were looked at. Of
//! `pcap-file`, 2.0 gives times that are wrong by a factor and loops on a malformed record, and its 3.0 exists as
//! a pre-release only; `pcap-parser` 0.17 computes `length - 12` of a block before it checks that there are
//! twelve, cannot say what is wrong with a block, and its writing is marked experimental. IP, UDP and link
//! headers are `etherparse`'s.

mod block;
mod chunks;
mod comment;
mod datagram;
mod layers;
mod line;
mod option;
mod packets;
mod radio;
mod read;
mod segments;
mod tcp;
#[cfg(test)]
mod tests;
mod write;

pub use chunks::{chunk_name, summary};
pub(crate) use chunks::{name, put_summary};
pub use line::{Direction, Line, Segment, explain};
pub use packets::{SctpPacket, sctp_packets};
pub use read::{CaptureReader, CapturedPacket, ReadError};
pub use tcp::segment_summary;
pub use write::{CaptureWriter, Snap};
