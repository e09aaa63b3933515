//! What a run shows, kept: marks and pictures look into it afterwards.

use anabranch_proto::policy::Why;
use anabranch_proto::{Time, Tsn};
use smallvec::SmallVec;

use super::Unit;
use anabranch_sim::trace::{Contents, Detail, Names, Observer, PacketView, Record, Side};

/// The records of a run that marks, measures and pictures ask for, in the order in which things happened.
#[derive(Default, Debug)]
pub struct Recording {
    /// What the numbers of flows and links mean.
    pub names: Names,
    /// What the numbers of paths mean.
    pub paths: Vec<String>,
    /// The records.
    pub entries: Vec<Entry>,
}

/// Something that happened, and when.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What.
    pub what: EventKind,
}

/// What happened. Flows, links and paths are numbers in the recording's lists.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A packet was dropped by a link direction.
    Dropped {
        /// Which.
        link: usize,
        /// The flow that the packet belonged to.
        flow: usize,
        /// The TSNs of its DATA chunks; with TCP the number of its first byte, if it has user data.
        tsns: SmallVec<[Tsn; 2]>,
    },
    /// A packet arrived at the end of a link direction.
    Arrived {
        /// Which.
        link: usize,
        /// Its bytes.
        size: u32,
    },
    /// The sender of a flow sent a DATA chunk.
    Sent {
        /// Which flow.
        flow: usize,
        /// On which path.
        path: usize,
        /// The chunk.
        tsn: Tsn,
        /// Why.
        why: Why,
    },
    /// T3-rtx expired at the sender of a flow.
    Timeout {
        /// Which flow.
        flow: usize,
        /// For which path.
        path: usize,
    },
    /// The sender of a flow sees another window of its peer.
    PeerWindow {
        /// Which flow.
        flow: usize,
        /// Bytes.
        bytes: u64,
    },
    /// A window of the sender of a flow, or what is in flight in it, has changed.
    Window {
        /// Which flow.
        flow: usize,
        /// Which path's.
        path: usize,
        /// Congestion window, slow-start threshold, in flight: bytes.
        sizes: [u64; 3],
        /// The congestion window in segments, where the transport counts in segments.
        segments: Option<f64>,
    },
    /// The Cumulative TSN Ack Point of the sender of a flow has advanced.
    Acked {
        /// Which flow.
        flow: usize,
        /// To this TSN.
        cumulative: Tsn,
    },
}

/// A quantity that senders note.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// The peer's window, as the sender sees it.
    PeerWindow,
    /// The congestion window of a path.
    Cwnd,
    /// The congestion window of a path in segments with its fraction: of TCP only.
    CwndSegments,
    /// The slow-start threshold of a path.
    Ssthresh,
    /// What is in flight on a path, chunks marked for retransmission not counted.
    Flight,
}

impl Quantity {
    pub(super) const NAMES: &'static [(&'static str, Quantity)] = &[
        ("peer_window", Quantity::PeerWindow),
        ("cwnd", Quantity::Cwnd),
        ("cwnd_segments", Quantity::CwndSegments),
        ("ssthresh", Quantity::Ssthresh),
        ("flight", Quantity::Flight),
    ];

    /// What it is a number of.
    pub fn unit(self) -> Unit {
        match self {
            Quantity::CwndSegments => Unit::Count,
            _ => Unit::Bytes,
        }
    }

    /// Whether each path has its own.
    pub fn by_path(self) -> bool {
        self != Quantity::PeerWindow
    }
}

impl Recording {
    /// The number of the path of this name, which is new if nothing happened on it before.
    fn path(&mut self, name: Option<&str>) -> usize {
        let name = name.unwrap_or_default();
        self.paths.iter().position(|path| path == name).unwrap_or_else(|| {
            self.paths.push(name.to_owned());
            self.paths.len() - 1
        })
    }

    fn what(&mut self, record: &Record<'_>) -> Option<EventKind> {
        match *record {
            Record::Dropped { link, flow, packet, .. } => {
                Some(EventKind::Dropped { link, flow, tsns: numbers(&packet) })
            }
            Record::Delivered { link, packet, .. } => Some(EventKind::Arrived { link, size: packet.size }),
            Record::Detail { flow, side: Side::Client, path, detail } => match *detail {
                Detail::Sent { number, why, .. } => {
                    Some(EventKind::Sent { flow, path: self.path(path), tsn: Tsn(number as u32), why })
                }
                Detail::Timeout => Some(EventKind::Timeout { flow, path: self.path(path) }),
                Detail::PeerWindow { bytes } => Some(EventKind::PeerWindow { flow, bytes }),
                Detail::Window { cwnd, ssthresh, flight, segments, .. } => Some(EventKind::Window {
                    flow,
                    path: self.path(path),
                    sizes: [cwnd, ssthresh, flight],
                    segments,
                }),
                Detail::Acked { cumulative } => {
                    Some(EventKind::Acked { flow, cumulative: Tsn(cumulative as u32) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The value of a quantity of this flow and path that `entry` notes, if it does.
    pub fn value(&self, entry: &Entry, quantity: Quantity, of: usize, path: Option<usize>) -> Option<f64> {
        match (&entry.what, quantity) {
            (EventKind::PeerWindow { flow, bytes }, Quantity::PeerWindow) if *flow == of => {
                Some(*bytes as f64)
            }
            (EventKind::Window { flow, path: on, sizes, segments }, _)
                if *flow == of && Some(*on) == path =>
            {
                match quantity {
                    Quantity::PeerWindow => None,
                    Quantity::Cwnd => Some(sizes[0] as f64),
                    Quantity::CwndSegments => *segments,
                    Quantity::Ssthresh => Some(sizes[1] as f64),
                    Quantity::Flight => Some(sizes[2] as f64),
                }
            }
            _ => None,
        }
    }

    /// The number of the flow of this name; without a name, of the first.
    pub fn flow(&self, name: Option<&str>) -> Option<usize> {
        name.map_or(Some(0), |name| self.names.flows.iter().position(|flow| flow == name))
    }

    /// Whether the link direction of this number is one of the link `name`, or, if that is one, "link a>b".
    pub fn is_link(&self, number: usize, name: &str) -> bool {
        self.names.links.get(number).is_some_and(|(link, direction)| {
            link == name
                || name.strip_prefix(link.as_str()).and_then(|rest| rest.strip_prefix(' ')) == Some(direction)
        })
    }
}

/// The numbers of the pieces of user data in a packet, as the sender's details say them.
fn numbers(packet: &PacketView<'_>) -> SmallVec<[Tsn; 2]> {
    match packet.contents {
        Contents::Tcp(tcp) if tcp.segment.length > 0 => smallvec::smallvec![Tsn(tcp.offset as u32)],
        _ => packet.tsns().collect(),
    }
}

impl Observer for Recording {
    fn begin(&mut self, names: &Names) {
        *self = Recording { names: names.clone(), ..Recording::default() };
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Some(what) = self.what(record) {
            self.entries.push(Entry { at, what });
        }
    }
}
