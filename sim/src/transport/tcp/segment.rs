//! TCP segments as types.

use std::net::IpAddr;

use anabranch_proto::{Blocked, Duration};
use smallvec::SmallVec;

use crate::transport::mptcp::{Handshake, MptcpOptions};

/// Bytes of a TCP header without options.
pub(crate) const HEADER: u32 = 20;

/// A sequence number on the wire. Deliberately without `Ord`: numbers wrap (RFC 9293 §3.4).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Sequence(pub u32);

impl Sequence {
    /// The number of the byte at `offset` in a stream whose first byte has this number.
    pub(crate) fn at(self, offset: u64) -> Sequence {
        Sequence(self.0.wrapping_add(offset as u32))
    }

    /// The offset of this number in a stream that begins at `first`. Of all possible offsets it is the one nearest to
    /// `near`. `None` if that lies before the beginning.
    pub(crate) fn offset(self, first: Sequence, near: u64) -> Option<u64> {
        let difference = self.0.wrapping_sub(first.at(near).0) as i32;
        near.checked_add_signed(i64::from(difference))
    }
}

/// A TCP segment. Its user data are zeros; only their length is kept.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Segment {
    /// The source port.
    pub source: u16,
    /// The destination port.
    pub destination: u16,
    /// The sequence number of its first byte, or of SYN or FIN.
    pub sequence: Sequence,
    /// The next number that the sender of this segment expects. `None`: the ACK bit is not set.
    pub acknowledgement: Option<Sequence>,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// Bytes of user data.
    pub length: u32,
    /// The window field, to be shifted by the window scale.
    pub window: u16,
    /// Maximum segment size, on a SYN.
    pub mss: Option<u16>,
    /// Window scale, on a SYN.
    pub window_scale: Option<u8>,
    /// SACK-permitted, on a SYN.
    pub sack_permitted: bool,
    /// SACK blocks: runs of bytes that have arrived, each with its first number and one past its last.
    pub sack: SmallVec<[(Sequence, Sequence); 4]>,
    /// Its Multipath TCP options.
    pub mptcp: Option<MptcpOptions>,
    /// Whether its header is counted as in ns-2.
    pub plain_header: bool,
}

impl Segment {
    /// Whether its options begin a further subflow of Multipath TCP (MP_JOIN).
    pub fn joins(&self) -> bool {
        let handshake = self.mptcp.as_ref().and_then(MptcpOptions::handshake);
        matches!(
            handshake,
            Some(Handshake::Join { .. } | Handshake::JoinAnswer { .. } | Handshake::JoinProof(_))
        )
    }

    /// The number of sequence numbers that it occupies.
    pub fn sequence_length(&self) -> u32 {
        self.length + u32::from(self.syn) + u32::from(self.fin)
    }

    /// Bytes of its options without those of Multipath TCP, padded to a multiple of four.
    pub fn option_bytes(&self) -> u32 {
        let mss = if self.mss.is_some() { 4 } else { 0 };
        let scale = if self.window_scale.is_some() { 4 } else { 0 };
        let permitted = if self.sack_permitted { 4 } else { 0 };
        let blocks = if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.len() as u32 };
        mss + scale + permitted + blocks
    }

    /// Bytes after the IP header. ns-2 counts 8 bytes for each SACK block and no other option.
    pub fn size(&self) -> u32 {
        let options = if self.plain_header { 8 * self.sack.len() as u32 } else { self.option_bytes() };
        let multipath = self.mptcp.as_ref().map_or(0, |options| options.size());
        HEADER + options + multipath + self.length
    }
}

/// A segment on its way between two hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TcpPacket {
    /// The sender's address.
    pub from: IpAddr,
    /// The receiver's address.
    pub to: IpAddr,
    /// The position of its first byte in the sender's data, from 0.
    pub offset: u64,
    /// The segment.
    pub segment: Segment,
}

/// Why a segment leaves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// SYN or SYN-ACK.
    Setup,
    /// User data for the first time.
    New,
    /// User data again, because duplicate acknowledgements indicated a loss.
    Missing,
    /// User data again, after a timeout.
    Timeout,
    /// A byte beyond a closed window.
    WindowProbe,
    /// An acknowledgement.
    Acknowledgement,
    /// FIN without data.
    Close,
}

/// A detail of a sender, for observers.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum TcpNote {
    /// Its window has changed.
    Window {
        /// Congestion window, bytes.
        cwnd: u64,
        /// The same in segments, with its fraction.
        cwnd_segments: f64,
        /// Slow-start threshold, bytes.
        ssthresh: u64,
        /// Bytes in flight, as the sender estimates them.
        flight: u64,
        /// Bytes to be sent again.
        marked: u64,
    },
    /// Its retransmission timeout has changed, or its round-trip time was measured.
    Rto {
        /// The timeout.
        rto: Duration,
        /// Smoothed round-trip time.
        srtt: Option<Duration>,
        /// The round-trip time that was measured now.
        rtt: Option<Duration>,
    },
    /// The receiver's window.
    PeerWindow {
        /// Bytes.
        bytes: u64,
    },
    /// The cause for which user data waits has changed. `None`: it does not wait.
    Blocked(Option<Blocked>),
    /// It has sent data.
    Sent {
        /// The first byte, from 0.
        sequence: u64,
        /// Bytes.
        size: u32,
        /// Why.
        why: Why,
    },
    /// It has declared data lost.
    Marked {
        /// The first byte, from 0.
        sequence: u64,
        /// The reason for which it will be sent again.
        why: Why,
    },
    /// Its retransmission timer expired.
    Timeout,
    /// Bytes acknowledged cumulatively.
    Acked {
        /// The total from the beginning.
        bytes: u64,
    },
}
