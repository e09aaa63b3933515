//! The recording of a run, from which marks and figures are computed.

use anabranch_proto::policy::Why;
use anabranch_proto::{Time, Tsn};
use smallvec::SmallVec;

use super::Unit;
use anabranch_sim::trace::{Contents, Detail, Names, Observer, PacketView, Record, Side};

/// The records of a run that marks, measures and figures need, in order of time.
#[derive(Default, Debug)]
pub struct Recording {
    /// The names of flows and links, by index.
    pub names: Names,
    /// The names of paths, by index.
    pub paths: Vec<String>,
    /// The records.
    pub entries: Vec<Entry>,
}

/// A record with its time.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The time.
    pub at: Time,
    /// The event.
    pub what: EventKind,
}

/// An event. Flows, links and paths are indices in the recording's lists.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// A packet was dropped by a link direction.
    Dropped {
        /// The link direction.
        link: usize,
        /// The flow of the packet.
        flow: usize,
        /// The TSNs of its DATA chunks. With TCP, the number of the first byte if it has user data.
        tsns: SmallVec<[Tsn; 2]>,
    },
    /// A packet arrived at the end of a link direction.
    Arrived {
        /// The link direction.
        link: usize,
        /// Its size in bytes.
        size: u32,
    },
    /// The sender of a flow sent a DATA chunk.
    Sent {
        /// The flow.
        flow: usize,
        /// The path.
        path: usize,
        /// The TSN.
        tsn: Tsn,
        /// The reason.
        why: Why,
    },
    /// T3-rtx expired at the sender of a flow.
    Timeout {
        /// The flow.
        flow: usize,
        /// The path.
        path: usize,
    },
    /// The sender of a flow has learned a new window of its peer.
    PeerWindow {
        /// The flow.
        flow: usize,
        /// The window in bytes.
        bytes: u64,
    },
    /// The congestion window of a path at the sender of a flow, or the flight in it, has changed.
    Window {
        /// The flow.
        flow: usize,
        /// The path.
        path: usize,
        /// Congestion window, slow-start threshold and flight in bytes.
        sizes: [u64; 3],
        /// The congestion window in segments, if the transport counts in segments.
        segments: Option<f64>,
    },
    /// The Cumulative TSN Ack Point of the sender of a flow has advanced.
    Acked {
        /// The flow.
        flow: usize,
        /// The new point.
        cumulative: Tsn,
    },
}

/// A quantity that senders record.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// The peer's window as the sender knows it.
    PeerWindow,
    /// The congestion window of a path.
    Cwnd,
    /// The congestion window of a path in segments, with its fraction. TCP only.
    CwndSegments,
    /// The slow-start threshold of a path.
    Ssthresh,
    /// The bytes in flight on a path, without chunks marked for retransmission.
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

    /// The unit of the quantity.
    pub fn unit(self) -> Unit {
        match self {
            Quantity::CwndSegments => Unit::Count,
            _ => Unit::Bytes,
        }
    }

    /// Whether each path has its own value.
    pub fn by_path(self) -> bool {
        self != Quantity::PeerWindow
    }
}

impl Recording {
    /// The index of the path with this name. Adds the path if it is new.
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

    /// The value of a quantity of this flow and path, if `entry` contains it.
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

    /// The index of the flow with this name. `None`: the first flow.
    pub fn flow(&self, name: Option<&str>) -> Option<usize> {
        name.map_or(Some(0), |name| self.names.flows.iter().position(|flow| flow == name))
    }

    /// Whether the link direction with this index belongs to the link `name`, or is the direction "link a>b".
    pub fn is_link(&self, number: usize, name: &str) -> bool {
        self.names.links.get(number).is_some_and(|(link, direction)| {
            link == name
                || name.strip_prefix(link.as_str()).and_then(|rest| rest.strip_prefix(' ')) == Some(direction)
        })
    }
}

/// The numbers of the user data in a packet, in the form that the sender records.
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
