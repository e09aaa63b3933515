//! The files of `--series` and their columns.

/// A kind of file: one per flow, or one per link direction.
#[derive(Debug)]
pub struct Series {
    /// The part of the file name between the name of the flow or link and `.csv`.
    pub name: &'static str,
    /// The meaning of a row.
    pub doc: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

/// A column: its name and its meaning.
pub type Column = (&'static str, &'static str);

/// Every kind of file: those of flows, then those of link directions.
pub const SERIES: [&Series; 16] = [
    &WINDOWS,
    &TCP_WINDOWS,
    &RTO,
    &PEER_WINDOW,
    &SENT,
    &TCP_SENT,
    &MARKED,
    &TCP_MARKED,
    &ACKED,
    &TCP_ACKED,
    &BLOCKED,
    &HELD,
    &REORDERING,
    &THROUGHPUT,
    &QUEUE,
    &DROPS,
];

const TIME: Column = ("time", "seconds from the beginning of the run");
const PATH: Column = ("path", "the path, as in `flows[].paths[].name`");
const TSN: Column = ("tsn", "the TSN of the chunk");
const CWND: Column = ("cwnd", "the congestion window, bytes");
const SSTHRESH: Column = ("ssthresh", "the slow-start threshold, bytes; empty while there is none");
const FLIGHT: Column = ("flight", "bytes in flight on the path");
const MARKED_BYTES: Column = ("marked", "bytes marked for retransmission that were last sent on the path");
const BYTE: Column = ("sequence", "the number of the first byte of the segment, counted from 0");
const SIZE: Column = ("size", "bytes of user data");
const WHY: Column = (
    "why",
    "`new`, `missing` (missing reports), `timeout`, `window-probe`, `tail-probe` or `reinjected` (a copy)",
);
const MARK: Column = ("why", "`missing` (missing reports) or `timeout`");

pub(super) const WINDOWS: Series = Series {
    name: "windows",
    doc: "The windows of an SCTP sender: a row whenever one of the values changes.",
    columns: &[TIME, PATH, CWND, SSTHRESH, FLIGHT, MARKED_BYTES],
};
pub(super) const TCP_WINDOWS: Series = Series {
    name: "windows",
    doc: "The window of a TCP sender: a row whenever one of the values changes.",
    columns: &[
        TIME,
        PATH,
        CWND,
        SSTHRESH,
        FLIGHT,
        MARKED_BYTES,
        ("cwnd_segments", "the congestion window in segments, as the variant counts it"),
    ],
};
pub(super) const RTO: Series = Series {
    name: "rto",
    doc: "The retransmission timeout of each path: a row whenever it changes.",
    columns: &[
        TIME,
        PATH,
        ("rto", "the retransmission timeout, seconds"),
        ("srtt", "the smoothed round-trip time, seconds; empty before the first measurement"),
    ],
};
pub(super) const PEER_WINDOW: Series = Series {
    name: "peer_window",
    doc: "The receiver's window as the sender knows it.",
    columns: &[TIME, ("bytes", "room for user data at the receiver, bytes")],
};
pub(super) const SENT: Series =
    Series { name: "sent", doc: "Chunks that an SCTP sender sent.", columns: &[TIME, PATH, TSN, SIZE, WHY] };
pub(super) const TCP_SENT: Series =
    Series { name: "sent", doc: "Segments that a TCP sender sent.", columns: &[TIME, PATH, BYTE, SIZE, WHY] };
pub(super) const MARKED: Series = Series {
    name: "marked",
    doc: "Chunks that an SCTP sender marked for retransmission.",
    columns: &[TIME, PATH, TSN, MARK],
};
pub(super) const TCP_MARKED: Series = Series {
    name: "marked",
    doc: "Segments that a TCP sender regarded as lost.",
    columns: &[TIME, PATH, BYTE, MARK],
};
pub(super) const ACKED: Series = Series {
    name: "acked",
    doc: "The Cumulative TSN Ack Point of an SCTP sender.",
    columns: &[TIME, ("cumulative_tsn", "the highest TSN up to which everything is acknowledged")],
};
pub(super) const TCP_ACKED: Series = Series {
    name: "acked",
    doc: "The cumulative acknowledgement of a TCP sender.",
    columns: &[TIME, ("acknowledged", "bytes of user data acknowledged without a gap")],
};
pub(super) const BLOCKED: Series = Series {
    name: "blocked",
    doc: "What keeps a sender with data from sending: a row whenever the cause changes.",
    columns: &[
        TIME,
        (
            "by",
            "`peer_window`, `send_buffer`, `cwnd`, `turn` (see `flows[].blocked`); empty: nothing any more",
        ),
        ("path", "the path that carries the lowest TSN not acknowledged, if a full buffer is the cause"),
    ],
};
pub(super) const HELD: Series = Series {
    name: "held",
    doc: "What a receiver of SCTP or Multipath TCP holds beyond the first gap, by the path on which it arrived.",
    columns: &[TIME, PATH, ("bytes", "bytes of user data held from this path")],
};
pub(super) const REORDERING: Series = Series {
    name: "reordering",
    doc: "Chunks (Multipath TCP: pieces of data) that arrived at a receiver after a higher one.",
    columns: &[
        TIME,
        PATH,
        ("tsn", "the TSN of the chunk; of Multipath TCP the number of the last byte, counted from 0"),
        ("depth", "how many TSNs, or bytes, below the highest one received"),
    ],
};
pub(super) const THROUGHPUT: Series = Series {
    name: "throughput",
    doc: "What the receiving application read: a row for each tenth of a second. If it read nothing for more than 100 s, only the first and the last tenth of that time have a row.",
    columns: &[
        ("time", "the end of the interval, seconds from the beginning of the run"),
        ("throughput", "user data read, bit/s"),
    ],
};
pub(super) const QUEUE: Series = Series {
    name: "queue",
    doc: "The queue of a link direction, with the packet being sent: a row whenever a packet joins or leaves.",
    columns: &[
        TIME,
        ("packets", "packets in the queue"),
        ("bytes", "bytes in the queue, IP headers included"),
    ],
};
pub(super) const DROPS: Series = Series {
    name: "drops",
    doc: "Packets that a link direction or a radio dropped.",
    columns: &[
        TIME,
        (
            "packet",
            "the number of the packet among those offered to the link direction, counted from 1; of a radio its number in the \
             run",
        ),
        ("flow", "the flow"),
        (
            "cause",
            "`queue` (full, or by its management), `loss`, `down`, `size` (larger than the MTU); of radios `rts` and `data` (no answer to the last \
             attempt)",
        ),
        ("tsns", "the TSNs in the packet, separated by spaces; empty with other transports than SCTP"),
    ],
};
