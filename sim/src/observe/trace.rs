//! Typed records of a run for its observer. Without an observer they cost one branch.

use anabranch_proto::policy::Why;
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Blocked, Duration, Note, NoteKind, PathId, PathState, Reason, Time, Tsn};

pub use super::queues::{QueueChange, QueueRecord, Stay};
pub use crate::medium::wire::DropCause;
use crate::transport::Protocol;
use crate::transport::foreign::Carried;
pub use crate::transport::{
    AddAddress, DataAck, Datagram, Dss, Handshake, Mapping, MptcpOptions, RareOptions, Segment, Sequence,
    TcpPacket,
};

/// Receives the records of a run in order of time.
pub trait Observer {
    /// The run begins. Records refer to flows and link directions by their index in `names`.
    fn begin(&mut self, names: &Names);
    /// An event.
    fn record(&mut self, at: Time, record: &Record<'_>);
    /// Details of one end of a flow, for an observer that does without [order](Wants::order). Those that come alone are
    /// records also then.
    fn details(&mut self, details: &Details<'_>) {
        let Details { flow, side, .. } = *details;
        details.each(|at, path, detail| self.record(at, &Record::Detail { flow, side, path, detail }));
    }
    /// What happened to queues, for an observer that does without [order](Wants::order), in place of [`Record::Queued`]
    /// and [`Record::Departed`]. [`QueueRecord::each`] computes the lengths.
    fn queue(&mut self, _: &QueueRecord<'_>) {}
    /// The records that it uses; others may be left out.
    fn wants(&self) -> Wants {
        Wants { receivers: true, reads: true, ..Wants::PACKETS }
    }
}

/// The records that an observer uses, beside those that every observer gets. What nobody uses is not computed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Wants {
    /// [`Record::Sent`], [`Record::Started`] and [`Record::Delivered`], and the origins of packets in other records.
    pub packets: bool,
    /// [`Record::Detail`] with all details. Without it, only [`Detail::Blocked`] is certain.
    pub details: bool,
    /// [`Record::Detail`] of receivers.
    pub receivers: bool,
    /// [`Record::Queued`] and [`Record::Departed`], or [what replaces them](Observer::queue).
    pub queues: bool,
    /// [`Record::Read`].
    pub reads: bool,
    /// All records in order of time. Without it, and without packets, many come together, which costs less: only those
    /// of one flow, and those of one link direction, are in order among themselves.
    pub order: bool,
}

impl Wants {
    /// All but the details of receivers, and what applications read.
    pub const PACKETS: Wants = Wants { packets: true, ..Wants::LITTLE };
    /// No packets and no receivers.
    pub const LITTLE: Wants = Wants { order: true, ..Wants::UNORDERED };
    /// Nor order.
    pub const UNORDERED: Wants = Wants { details: true, queues: true, ..Wants::LEAST };
    /// Nothing but what every observer gets.
    pub const LEAST: Wants =
        Wants { packets: false, details: false, receivers: false, queues: false, reads: false, order: false };

    /// What either of two observers uses.
    #[must_use]
    pub fn or(self, other: Wants) -> Wants {
        Wants {
            packets: self.packets || other.packets,
            details: self.details || other.details,
            queues: self.queues || other.queues,
            receivers: self.receivers || other.receivers,
            reads: self.reads || other.reads,
            order: self.order || other.order,
        }
    }

    /// Whether records may come together.
    pub(crate) fn allows_batches(self) -> bool {
        !self.packets && !self.order
    }
}

/// Details of one end of a flow, in order of time.
#[derive(Copy, Clone, Debug)]
pub struct Details<'a> {
    /// The flow.
    pub flow: usize,
    /// The end of the flow.
    pub side: Side,
    /// The notes of its core.
    pub notes: &'a [Note],
    /// The paths with their names.
    pub(crate) paths: &'a [(PathId, Option<&'a str>)],
}

impl<'a> Details<'a> {
    /// Calls `tell` for each, with its time and the path that it concerns, if any.
    #[inline(always)]
    pub fn each(&self, mut tell: impl FnMut(Time, Option<&'a str>, &Detail)) {
        // Most concern the same path as the one before.
        let mut latest: Option<(PathId, Option<&str>)> = None;
        for note in self.notes {
            for (path, detail) in details(&note.kind).into_iter().flatten() {
                let named = |path| {
                    latest.filter(|(before, _)| *before == path).unwrap_or_else(|| (path, self.name(path)))
                };
                let path = path.map(named);
                latest = path.or(latest);
                tell(note.at, path.and_then(|(_, name)| name), &detail);
            }
        }
    }

    /// The name of a path.
    pub fn name(&self, path: PathId) -> Option<&'a str> {
        self.paths.iter().find(|(known, _)| *known == path)?.1
    }
}

/// The details of a note that was kept.
#[inline(always)]
fn details(note: &NoteKind) -> [Option<(Option<PathId>, Detail)>; 3] {
    match *note {
        NoteKind::SentAlone { path, tsn, size, cwnd, ssthresh, flight, peer_window } => {
            let sent = Detail::Sent { number: u64::from(tsn.0), size, why: Why::New };
            let window = Detail::Window { cwnd, ssthresh, flight, marked: 0, segments: None };
            let peer_window = Detail::PeerWindow { bytes: peer_window };
            [Some((Some(path), sent)), Some((Some(path), window)), Some((None, peer_window))]
        }
        NoteKind::AckedAlone { path, cumulative, cwnd, ssthresh, flight, marked, peer_window } => {
            let acked = Detail::Acked { cumulative: u64::from(cumulative.0) };
            let window = Detail::Window { cwnd, ssthresh, flight, marked, segments: None };
            let peer_window = Detail::PeerWindow { bytes: peer_window };
            [Some((None, acked)), Some((Some(path), window)), Some((None, peer_window))]
        }
        ref kind => [Detail::of(kind), None, None],
    }
}

/// The names of flows, link directions and channels.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// Flows, sorted, then cross traffic, sorted.
    pub flows: Vec<String>,
    /// The protocol of each flow.
    pub protocols: Vec<Protocol>,
    /// The flows with `stripe`: an association on each path, which numbers its chunks by itself.
    pub striped: Vec<String>,
    /// Link directions: name, then direction ("a>b"), sorted.
    pub links: Vec<(String, String)>,
    /// Hops between radios, numbered after the link directions: channel, then direction, sorted.
    pub hops: Vec<(String, String)>,
    /// Channels, sorted, each with the nodes of its radios, sorted.
    pub channels: Vec<(String, Vec<String>)>,
}

/// An event of a run.
#[derive(Debug)]
pub enum Record<'a> {
    /// An endpoint reports a detail.
    Detail {
        /// The flow.
        flow: usize,
        /// The end of the flow.
        side: Side,
        /// The path, if the detail concerns one.
        path: Option<&'a str>,
        /// The detail.
        detail: &'a Detail,
    },
    /// An endpoint sends a packet.
    Sent {
        /// The flow.
        flow: usize,
        /// The end of the flow.
        side: Side,
        /// The path; `None` if the packet belongs to no association.
        path: Option<&'a str>,
        /// The reason.
        reason: Reason,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// A receiving application has read user data.
    Read {
        /// The flow.
        flow: usize,
        /// Bytes read in total.
        bytes: u64,
    },
    /// A packet enters a link direction.
    Queued {
        /// The direction.
        link: usize,
        /// The flow.
        flow: usize,
        /// The packet.
        packet: PacketView<'a>,
        /// The queue, including the packet.
        queue: QueueLength,
    },
    /// The transmission of a packet begins.
    Started {
        /// The link direction.
        link: usize,
        /// The flow.
        flow: usize,
        /// The number of the packet among those offered to the link direction, from 1.
        number: u64,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// The transmission of a packet ends: it has left the queue. Or the link has gone down: all packets have left it.
    Departed {
        /// The link direction.
        link: usize,
        /// The queue, without what has left it.
        queue: QueueLength,
    },
    /// A packet is dropped: when it is offered, or later, when its link goes down or its radio gives up.
    Dropped {
        /// The link direction, or the hop between radios.
        link: usize,
        /// The flow.
        flow: usize,
        /// The number of the packet among those offered to the link direction, from 1; between radios, the number of
        /// the packet in the run.
        number: u64,
        /// The cause.
        cause: DropCause,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// A radio sends a frame.
    Air {
        /// The channel.
        channel: usize,
        /// The frame.
        frame: RadioFrame,
        /// For a data frame: the flow and the packet, unless the receiver has it already.
        packet: Option<(usize, PacketView<'a>)>,
    },
    /// A packet arrives at the far end of a link, or at the next radio.
    Delivered {
        /// The link direction, or the hop between radios.
        link: usize,
        /// The flow.
        flow: usize,
        /// The packet.
        packet: PacketView<'a>,
    },
}

/// A detail that the sender of a flow reports, for every transport. Sizes are in bytes. A number identifies a piece
/// of data: the TSN of a chunk for SCTP, the first byte of a segment (from 0) for TCP.
#[derive(Clone, PartialEq, Debug)]
pub enum Detail {
    /// The window of a path or the bytes in flight on it have changed.
    Window {
        /// Its congestion window.
        cwnd: u64,
        /// Its slow-start threshold; `u64::MAX`: none.
        ssthresh: u64,
        /// Bytes in flight, without marked data.
        flight: u64,
        /// Marked for retransmission.
        marked: u64,
        /// The congestion window in segments, with its fraction, if the transport counts in segments.
        segments: Option<f64>,
    },
    /// A path's retransmission timeout has changed, or its round-trip time was measured.
    Rto {
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
    /// A piece of data is sent.
    Sent {
        /// Its number.
        number: u64,
        /// Its size.
        size: u32,
        /// The reason.
        why: Why,
    },
    /// A piece of data was found missing or timed out, and marked for retransmission.
    Marked {
        /// Its number.
        number: u64,
        /// The reason.
        why: Why,
    },
    /// The route of a piece of data that is sent again says why it names this path; only SCTP tells it.
    Route {
        /// The number of the piece.
        number: u64,
        /// The reason, in words.
        reason: &'static str,
    },
    /// A path's retransmission timer expired.
    Timeout,
    /// A path's retransmission timer was started, restarted or stopped; only SCTP reports this.
    Timer {
        /// When it expires; `None`: it is stopped.
        expires: Option<Time>,
    },
    /// Everything up to this number is acknowledged.
    Acked {
        /// For SCTP the highest TSN below which nothing is missing, for TCP the number of bytes.
        cumulative: u64,
    },
    /// The receiver got a new piece of data; SCTP and Multipath TCP report this.
    Received {
        /// Its TSN; of Multipath TCP the number of its last byte.
        number: u64,
        /// Its size.
        size: u32,
        /// The highest such number below which nothing is missing, including this piece.
        cumulative: u64,
    },
    /// The cause for which user data waits has changed (`None`: it does not wait), or the path that keeps a buffer
    /// full.
    Blocked(Option<Blocked>),
    /// A path can carry data again, or can no longer.
    State(PathState),
}

impl Detail {
    /// A note of SCTP's core, with its path; chunks by their TSNs. `None` for notes that observers are not told, and
    /// for [`NoteKind::SentAlone`] and [`NoteKind::AckedAlone`], which stand for several.
    #[inline(always)]
    pub fn of(note: &NoteKind) -> Option<(Option<PathId>, Detail)> {
        let number = |tsn: &Tsn| u64::from(tsn.0);
        Some(match *note {
            NoteKind::Window { path, cwnd, ssthresh, flight, marked } => {
                (Some(path), Detail::Window { cwnd, ssthresh, flight, marked, segments: None })
            }
            NoteKind::Rto { path, rto, srtt, rtt } => (Some(path), Detail::Rto { rto, srtt, rtt }),
            NoteKind::PeerWindow { bytes } => (None, Detail::PeerWindow { bytes }),
            NoteKind::Sent { path, ref tsn, size, why } => {
                (Some(path), Detail::Sent { number: number(tsn), size, why })
            }
            NoteKind::Marked { path, ref tsn, why } => {
                (Some(path), Detail::Marked { number: number(tsn), why })
            }
            NoteKind::Route { path, ref tsn, reason } => {
                (Some(path), Detail::Route { number: number(tsn), reason })
            }
            NoteKind::T3 { path } => (Some(path), Detail::Timeout),
            NoteKind::Timer { path, expires } => (Some(path), Detail::Timer { expires }),
            NoteKind::Acked { ref cumulative } => (None, Detail::Acked { cumulative: number(cumulative) }),
            NoteKind::Received { path, ref tsn, size, ref cumulative } => {
                (Some(path), Detail::Received { number: number(tsn), size, cumulative: number(cumulative) })
            }
            NoteKind::Blocked { cause, by } => (by, Detail::Blocked(cause)),
            NoteKind::MissingReport { .. } | NoteKind::SentAlone { .. } | NoteKind::AckedAlone { .. } => {
                return None;
            }
        })
    }
}

/// A frame of IEEE 802.11.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RadioFrame {
    /// The kind of frame.
    pub kind: FrameKind,
    /// The sender: the number of its radio on the channel.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Bytes with the frame check sequence.
    pub size: u32,
    /// Bit/s.
    pub rate: u64,
    /// The duration of its transmission with its preamble, nanoseconds.
    pub airtime: u64,
    /// The duration of the rest of its exchange, nanoseconds.
    pub duration: u64,
    /// The number of its packet among those of its sender.
    pub sequence: u16,
    /// Whether it is a repetition.
    pub retry: bool,
    /// Whether it is sent at 5 GHz instead of 2.4 GHz.
    pub five_gigahertz: bool,
}

/// Kinds of frames.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Data.
    Data,
    /// Acknowledgement.
    Ack,
}

/// An end of a flow.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Side {
    /// The end that initiates the flow and sends.
    Client,
    /// The one that receives.
    Server,
}

/// The contents of a queue, including the packet being sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueLength {
    /// Packets.
    pub packets: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A packet as observers see it.
#[derive(Copy, Clone, Debug)]
pub struct PacketView<'a> {
    /// Bytes, IP header included.
    pub size: u32,
    /// The contents.
    pub contents: Contents<'a>,
    /// Its number in the run, from 1, if that is known.
    pub number: Option<u64>,
    /// The number of links that it has passed.
    pub hops: u32,
    /// Its sender, and the reason. `None` if no observer of the run wants packets.
    pub origin: Option<Origin<'a>>,
}

/// The contents of a packet.
#[derive(Copy, Clone, Debug)]
pub enum Contents<'a> {
    /// SCTP.
    Sctp(&'a Packet),
    /// TCP, with zeros for user data.
    Tcp(&'a TcpPacket),
    /// UDP, with zeros for user data.
    Datagram(&'a Datagram),
    /// An IP packet of a program outside the simulator, from its IP header on.
    Raw(&'a [u8]),
    /// A packet of a foreign transport.
    Foreign(&'a Carried),
}

/// The origin of a packet.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Origin<'a> {
    /// The end of its flow.
    pub side: Side,
    /// The path; `None` if the packet belongs to no association.
    pub path: Option<&'a str>,
    /// The reason for which it was sent.
    pub reason: Reason,
    /// If new data had waited for a full buffer until then: for which.
    pub wait: Option<Wait<'a>>,
}

/// New data waits for a buffer, at either end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Wait<'a> {
    /// The buffer.
    pub cause: Blocked,
    /// The path that carried the lowest outstanding TSN last: the path that blocks.
    pub path: &'a str,
    /// How long: since the buffer became full, or since new data last left if that was later.
    pub time: Duration,
}

impl<'a> PacketView<'a> {
    /// The contents, if they are SCTP.
    pub fn sctp(&self) -> Option<&'a Packet> {
        match self.contents {
            Contents::Sctp(packet) => Some(packet),
            Contents::Tcp(_) | Contents::Datagram(_) | Contents::Raw(_) | Contents::Foreign(_) => None,
        }
    }

    /// The numbers of its pieces of data, as in [`Detail::Sent`]: TSNs, or the first byte of a TCP segment.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<'a> {
        let segment = match self.contents {
            Contents::Tcp(packet) if packet.segment.length > 0 => Some(packet.offset),
            _ => None,
        };
        self.tsns().map(|tsn| u64::from(tsn.0)).chain(segment)
    }

    /// The TSNs of its DATA chunks.
    pub fn tsns(&self) -> impl Iterator<Item = Tsn> + use<'a> {
        let chunks = self.sctp().map_or(&[][..], |packet| &packet.chunks[..]);
        chunks.iter().filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            Chunk::IData(data) => Some(data.tsn),
            _ => None,
        })
    }
}

/// Several observers of the same run.
impl Observer for Vec<&mut dyn Observer> {
    fn begin(&mut self, names: &Names) {
        self.iter_mut().for_each(|observer| observer.begin(names));
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        self.iter_mut().for_each(|observer| observer.record(at, record));
    }

    fn details(&mut self, details: &Details<'_>) {
        self.iter_mut().for_each(|observer| observer.details(details));
    }

    fn queue(&mut self, record: &QueueRecord<'_>) {
        self.iter_mut().for_each(|observer| observer.queue(record));
    }

    fn wants(&self) -> Wants {
        self.iter().fold(Wants::LEAST, |wants, observer| wants.or(observer.wants()))
    }
}
