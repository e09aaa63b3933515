//! Typed records of a run for its observer, while it runs. Without an observer they cost one branch.

use anabranch_proto::policy::Why;
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Blocked, Duration, PathState, Reason, Time, Tsn};

pub use crate::medium::wire::DropCause;
pub use crate::transport::{
    AddAddress, DataAck, Datagram, Dss, Handshake, Mapping, MptcpOptions, Segment, Sequence, TcpPacket,
};

/// Takes the records of a run in order of time.
pub trait Observer {
    /// The run begins; records name flows and link directions by their place here.
    fn begin(&mut self, names: &Names);
    /// Something happened.
    fn record(&mut self, at: Time, record: &Record<'_>);
}

/// What flows, link directions and channels are called.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// Flows, sorted, then cross traffic, sorted.
    pub flows: Vec<String>,
    /// The protocol of each flow, as a scenario spells it.
    pub protocols: Vec<&'static str>,
    /// Link directions: name, then direction ("a>b"), sorted.
    pub links: Vec<(String, String)>,
    /// Hops between radios, numbered behind the link directions: channel, then direction, sorted.
    pub hops: Vec<(String, String)>,
    /// Channels, sorted, each with the nodes of its radios, sorted.
    pub channels: Vec<(String, Vec<String>)>,
}

/// Something that happened.
#[derive(Debug)]
pub enum Record<'a> {
    /// An endpoint tells a detail.
    Detail {
        /// Of which flow.
        flow: usize,
        /// At which of its ends.
        side: Side,
        /// The path it concerns, if any.
        path: Option<&'a str>,
        /// What.
        detail: &'a Detail,
    },
    /// An endpoint sends a packet.
    Sent {
        /// Of which flow.
        flow: usize,
        /// At which of its ends.
        side: Side,
        /// The path it takes; `None` outside any association.
        path: Option<&'a str>,
        /// Why.
        reason: Reason,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// A receiving application has read user data.
    Read {
        /// Of which flow.
        flow: usize,
        /// Bytes in all.
        bytes: u64,
    },
    /// A packet enters a link direction.
    Queued {
        /// Which.
        link: usize,
        /// Of which flow.
        flow: usize,
        /// The packet.
        packet: PacketView<'a>,
        /// The queue, with it.
        queue: QueueLength,
    },
    /// The first bit of a packet leaves: it has its turn.
    Started {
        /// In which link direction.
        link: usize,
        /// Of which flow.
        flow: usize,
        /// How many packets had been offered to the link direction, this one included.
        number: u64,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// A packet has left the queue: its last bit is on the way.
    Departed {
        /// Of which link direction.
        link: usize,
        /// The queue without it.
        queue: QueueLength,
    },
    /// A packet is dropped: when it is offered, or later, when the link that it is on goes down or its radio gives up.
    Dropped {
        /// By which link direction, or hop between radios.
        link: usize,
        /// Of which flow.
        flow: usize,
        /// How many packets had been offered to the link direction, this one included; between radios the number of the
        /// packet in the run.
        number: u64,
        /// Why.
        cause: DropCause,
        /// The packet.
        packet: PacketView<'a>,
    },
    /// A frame of a radio goes on the air.
    Air {
        /// On which channel.
        channel: usize,
        /// The frame.
        frame: RadioFrame,
        /// Of a frame of data: the flow and the packet, unless its addressee has that already.
        packet: Option<(usize, PacketView<'a>)>,
    },
    /// A packet arrives at the far end of a link, or at the next radio.
    Delivered {
        /// Of which link direction, or hop between radios.
        link: usize,
        /// Of which flow.
        flow: usize,
        /// The packet.
        packet: PacketView<'a>,
    },
}

/// What the sender of a flow tells of itself, whatever its transport. Sizes are bytes. A number is that of a piece of
/// data: with SCTP the TSN of a chunk, with TCP the first byte of a segment, counted from 0.
#[derive(Clone, PartialEq, Debug)]
pub enum Detail {
    /// A path's window or what is in flight there has changed.
    Window {
        /// Its congestion window.
        cwnd: u64,
        /// Its slow-start threshold; `u64::MAX`: none.
        ssthresh: u64,
        /// In flight, what is marked not counted.
        flight: u64,
        /// Marked for retransmission.
        marked: u64,
        /// The congestion window in segments with its fraction, where the transport counts in segments.
        segments: Option<f64>,
    },
    /// A path's retransmission timeout has changed.
    Rto {
        /// The timeout.
        rto: Duration,
        /// Smoothed round-trip time, if measured.
        srtt: Option<Duration>,
    },
    /// The peer's window, as the sender sees it, has changed.
    PeerWindow {
        /// Bytes that may be sent beyond those in flight.
        bytes: u64,
    },
    /// A piece of data leaves.
    Sent {
        /// Its number.
        number: u64,
        /// Its size.
        size: u32,
        /// Why.
        why: Why,
    },
    /// A piece of data was found missing or timed out, and marked for retransmission.
    Marked {
        /// Its number.
        number: u64,
        /// Why.
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
    /// Everything up to here is acknowledged.
    Acked {
        /// With SCTP the highest TSN that nothing is missing below, with TCP the number of bytes.
        cumulative: u64,
    },
    /// A new piece of data was taken by the receiver; only SCTP tells it.
    Received {
        /// Its number.
        number: u64,
        /// Its size.
        size: u32,
        /// The highest TSN that nothing is missing below, with this one.
        cumulative: u64,
    },
    /// The cause for which user data waits has changed, `None`: it does not wait; or the path whose data keeps a buffer
    /// full.
    Blocked(Option<Blocked>),
    /// A path can carry data again, or cannot.
    State(PathState),
}

/// A frame of IEEE 802.11.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RadioFrame {
    /// What kind.
    pub kind: FrameKind,
    /// Its sender, by the number of its radio on the channel.
    pub from: u32,
    /// Its addressee.
    pub to: u32,
    /// Bytes with the frame check sequence.
    pub size: u32,
    /// Bit/s.
    pub rate: u64,
    /// How long it is on the air with its preamble, nanoseconds.
    pub airtime: u64,
    /// How long its exchange goes on after it, nanoseconds.
    pub duration: u64,
    /// The number of its packet among those of its sender.
    pub sequence: u16,
    /// It was sent before.
    pub retry: bool,
    /// At 5 GHz, not at 2.4 GHz.
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
    /// The one that begins it and sends.
    Client,
    /// The one that receives.
    Server,
}

/// What is in a queue, the packet being sent included.
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
    /// What is in it.
    pub contents: Contents<'a>,
    /// Links that it has passed.
    pub hops: u32,
    /// Its sender, and the reason.
    pub origin: Option<Origin<'a>>,
}

/// What is in a packet.
#[derive(Copy, Clone, Debug)]
pub enum Contents<'a> {
    /// SCTP.
    Sctp(&'a Packet),
    /// TCP, with zeros for user data.
    Tcp(&'a TcpPacket),
    /// UDP, with zeros for user data.
    Datagram(&'a Datagram),
}

/// Where a packet comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Origin<'a> {
    /// The end of its flow.
    pub side: Side,
    /// The path it takes; `None` outside any association.
    pub path: Option<&'a str>,
    /// Why it was sent.
    pub reason: Reason,
    /// What kept new data from leaving until then, if that was a full buffer.
    pub wait: Option<Wait<'a>>,
}

/// New data waits for a buffer, at either end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Wait<'a> {
    /// Which buffer.
    pub cause: Blocked,
    /// The path that carried the lowest outstanding TSN last: it blocks.
    pub path: &'a str,
    /// How long it has.
    pub time: Duration,
}

impl<'a> PacketView<'a> {
    /// What is in it, if it is SCTP.
    pub fn sctp(&self) -> Option<&'a Packet> {
        match self.contents {
            Contents::Sctp(packet) => Some(packet),
            Contents::Tcp(_) | Contents::Datagram(_) => None,
        }
    }

    /// The numbers of its pieces of data, as [`Detail::Sent`] has them: TSNs, or the first byte of a TCP segment.
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

/// Two observers of the same run; what is `None` is not told.
impl<A: Observer, B: Observer> Observer for (Option<A>, Option<B>) {
    fn begin(&mut self, names: &Names) {
        self.0.iter_mut().for_each(|first| first.begin(names));
        self.1.iter_mut().for_each(|second| second.begin(names));
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        self.0.iter_mut().for_each(|first| first.record(at, record));
        self.1.iter_mut().for_each(|second| second.record(at, record));
    }
}
