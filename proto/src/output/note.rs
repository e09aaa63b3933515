//! Notes: details of what an association does, for series, marks and explanations.

use super::AssociationId;
use crate::path::PathId;
use crate::policy::Why;
use crate::{Duration, Time, Tsn};

/// A detail; see [`NoteKind`].
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// The association.
    pub association: AssociationId,
    /// The time.
    pub at: Time,
    /// The detail.
    pub kind: NoteKind,
}

/// The kinds of notes, from which series, marks and explanations are made. All sizes are in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum NoteKind {
    /// The window of a path or the bytes in flight on it have changed.
    Window {
        /// The path.
        path: PathId,
        /// Its congestion window.
        cwnd: u64,
        /// Its slow-start threshold.
        ssthresh: u64,
        /// Bytes in flight, without marked chunks.
        flight: u64,
        /// Bytes marked for retransmission.
        marked: u64,
    },
    /// A path's retransmission timeout has changed, or its round-trip time was measured.
    Rto {
        /// The path.
        path: PathId,
        /// The timeout.
        rto: Duration,
        /// Smoothed round-trip time, if measured.
        srtt: Option<Duration>,
        /// The round-trip time that was measured now.
        rtt: Option<Duration>,
    },
    /// The peer's window, as the sender sees it, has changed.
    PeerWindow {
        /// Bytes that may be sent in addition to those in flight.
        bytes: u64,
    },
    /// A DATA chunk is sent.
    Sent {
        /// The path.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Bytes of the chunk.
        size: u32,
        /// The reason.
        why: Why,
    },
    /// A new chunk is sent alone in a packet, and nothing is marked. It stands for `Sent`, `Window` and `PeerWindow`,
    /// and is made only if notes are [kept](crate::Noting::Kept).
    SentAlone {
        /// The path.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Bytes of the chunk.
        size: u32,
        /// The congestion window of the path.
        cwnd: u64,
        /// Its slow-start threshold.
        ssthresh: u64,
        /// Bytes in flight on it.
        flight: u64,
        /// Bytes that may be sent in addition to those in flight.
        peer_window: u64,
    },
    /// A SACK acknowledged chunks of one path in order, and nothing else was in it. It stands for `Acked`, `Window` and
    /// `PeerWindow`, and is made only if notes are [kept](crate::Noting::Kept).
    AckedAlone {
        /// The path.
        path: PathId,
        /// The Cumulative TSN Ack Point.
        cumulative: Tsn,
        /// The congestion window of the path.
        cwnd: u64,
        /// Its slow-start threshold.
        ssthresh: u64,
        /// Bytes in flight on it.
        flight: u64,
        /// Bytes marked for retransmission on it.
        marked: u64,
        /// Bytes that may be sent in addition to those in flight.
        peer_window: u64,
    },
    /// A chunk was found missing or timed out, and marked for retransmission.
    Marked {
        /// The path that carried it last.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// The reason.
        why: Why,
    },
    /// T3-rtx expired.
    T3 {
        /// The path.
        path: PathId,
    },
    /// The route of a chunk that is sent again says why it names this path.
    Route {
        /// The path.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// The reason, in words.
        reason: &'static str,
    },
    /// T3-rtx of a path was started, restarted or stopped.
    Timer {
        /// The path.
        path: PathId,
        /// When it expires; `None`: it is stopped.
        expires: Option<Time>,
    },
    /// A missing report was counted.
    MissingReport {
        /// The TSN of the chunk.
        tsn: Tsn,
        /// Its number of missing reports.
        count: u8,
    },
    /// The Cumulative TSN Ack Point has advanced.
    Acked {
        /// The new Cumulative TSN Ack Point.
        cumulative: Tsn,
    },
    /// A new DATA chunk was received.
    Received {
        /// The path on which it arrived.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Bytes of the chunk.
        size: u32,
        /// The Cumulative TSN after it.
        cumulative: Tsn,
    },
    /// The cause for which user data waits, or the path responsible for it, has changed.
    Blocked {
        /// The cause; `None`: user data does not wait.
        cause: Option<Blocked>,
        /// If a buffer at either end is full: the path that carried the lowest outstanding TSN last.
        by: Option<PathId>,
    },
}

/// Why user data waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// The peer's window.
    PeerWindow,
    /// The send buffer is full, and everything in it was sent.
    SendBuffer,
    /// The congestion window of every usable path.
    Window,
    /// Another cause: chunks marked for retransmission go first, the event allowed no more packets, or a route waits
    /// for a path.
    Turn,
}
