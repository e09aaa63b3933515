//! What an endpoint gives and takes besides packets: events, reasons, notes, messages.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::path::{PathId, PathState};
use crate::policy::Why;
use crate::wire::{Address, Cause, Packet, Quoted};
use crate::{Duration, Time, Tsn};

/// An association of an endpoint. The endpoint gives no two associations the same id: the low 32 bits say where it keeps
/// the association, and the high 32 bits how many that have ended it kept there before.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(pub u64);

impl AssociationId {
    /// Where the endpoint keeps it.
    pub(crate) fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    /// The id of the next association in the same place.
    pub(crate) fn successor(self) -> Self {
        AssociationId(self.0 + (1 << 32))
    }
}

/// What arrives from the network.
#[derive(Debug)]
pub enum Incoming {
    /// A packet whose checksum was right.
    Packet(Box<Packet>),
    /// The socket of a local address takes no packets for now (`false`), or does again (`true`). Its paths
    /// have no room, and what would take them waits.
    Writable(Address, bool),
    /// A local address is down (`false`), or up again (`true`): its interface is, or the system says that
    /// nothing can leave there. Other paths carry what would take its paths, and silence there is no error;
    /// when none is left, the paths go from another address that is up.
    Up(Address, bool),
    /// Packets to this peer address may have at most so many bytes, IP header included: a router said so.
    TooBig(Address, u32),
    /// An ICMP error from this peer address: nothing takes SCTP there (port unreachable for UDP, protocol unreachable), and
    /// the packet of ours that it quotes. If the tag is right, set-up ends on that address at once.
    Unreachable(Address, Quoted),
}

/// The output of an endpoint: one item per [`poll`](crate::Endpoint::poll).
#[derive(Debug)]
pub enum Output {
    /// Send this packet.
    Transmit(Box<Packet>, Reason),
    /// Tell the user.
    Event(AssociationId, Event),
    /// A detail, only while notes are switched on.
    Note(Note),
    /// Nothing more now. Poll again after the next call, and not later than this time. It may be early,
    /// never late.
    Wait(Option<Time>),
}

/// Why a packet leaves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    /// What it is for.
    pub purpose: Purpose,
    /// The path that it takes; `None` for answers outside any association.
    pub path: Option<PathId>,
    /// What let it go.
    pub limit: Limit,
    /// Whether it is larger than the path carries, as chunks from before the path MTU fell are: IP must be
    /// allowed to fragment it.
    pub oversize: bool,
}

/// What a packet is for; if for several things, the first of these.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// User data.
    Data(Why),
    /// An acknowledgement.
    Sack,
    /// FORWARD TSN: data was given up.
    Forward,
    /// RE-CONFIG: streams are reset or added.
    Streams,
    /// ASCONF or its answer: addresses change.
    Addresses,
    /// INIT, INIT ACK, COOKIE ECHO or COOKIE ACK.
    Setup,
    /// HEARTBEAT or its answer.
    Heartbeat,
    /// SHUTDOWN and what follows it.
    Shutdown,
    /// ABORT.
    Abort,
    /// ERROR.
    Error,
}

impl Purpose {
    /// The document that asks for such a packet.
    pub const fn document(self) -> &'static str {
        match self {
            Purpose::Forward => "RFC 3758",
            Purpose::Streams => "RFC 6525",
            Purpose::Addresses => "RFC 5061",
            Purpose::Data(Why::TailProbe) => "RFC 8985",
            _ => "RFC 9260",
        }
    }

    /// The section of it.
    pub const fn section(self) -> &'static str {
        match self {
            Purpose::Data(Why::New) => "6.1",
            Purpose::Data(Why::Missing) => "7.2.4",
            Purpose::Data(Why::Timeout) => "6.3.3",
            Purpose::Data(Why::WindowProbe) => "6.1 A",
            Purpose::Data(Why::TailProbe) => "7.3",
            Purpose::Data(Why::Reinjected) => "6.1",
            Purpose::Sack => "6.2",
            Purpose::Forward => "3.5",
            Purpose::Streams => "5.1",
            Purpose::Addresses => "5.1",
            Purpose::Setup => "5.1",
            Purpose::Heartbeat => "8.3",
            Purpose::Shutdown => "9.2",
            Purpose::Abort => "9.1",
            Purpose::Error => "3.3.10",
        }
    }
}

/// What let a packet go.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// It is control: no window applies.
    Control,
    /// The path's window had room for it.
    Window,
    /// A right to one packet regardless of the window: a fast retransmission, a timeout, a probe.
    Granted,
}

/// What the user is told (RFC 9260 §11.2). Events announce, they do not deliver.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// COMMUNICATION UP: the association is established.
    Up,
    /// COMMUNICATION LOST, or it never came up: the association is gone.
    Lost(LostReason),
    /// RESTART: the peer started over; what was under way is lost.
    Restart,
    /// A message, or a part of one, can be read.
    Readable,
    /// A send call that was refused would be accepted now.
    Writable,
    /// NETWORK STATUS CHANGE: a path is in this state now.
    Path(PathId, PathState),
    /// SEND FAILURE: this message was not delivered.
    SendFailed {
        /// The message, or what is left of it.
        message: Message,
        /// Whether any part of it was sent.
        sent: bool,
    },
    /// The SSNs of these streams (none: all) begin anew, asked for by either end; or they do not.
    StreamsReset {
        /// Seen from here.
        direction: Direction,
        /// The streams.
        streams: Vec<u16>,
        /// The outcome.
        outcome: Outcome,
    },
    /// All TSNs and SSNs begin anew, asked for by either end; or they do not.
    TsnsReset(Outcome),
    /// There are so many streams now, after either end has asked for more.
    StreamsAdded {
        /// Streams to send on.
        outgoing: u16,
        /// Streams that the peer can send on.
        incoming: u16,
        /// The outcome of the request.
        outcome: Outcome,
    },
    /// The peer has agreed to a change of our addresses, or has not.
    LocalAddress {
        /// Which.
        address: Address,
        /// What was asked.
        change: AddressChange,
        /// The outcome.
        outcome: Outcome,
    },
    /// The peer has changed its addresses.
    PeerAddress {
        /// Which.
        address: Address,
        /// How.
        change: AddressChange,
    },
    /// The peer reported an error; the association lives.
    PeerError(Vec<Cause>),
    /// The peer will send no more: SHUTDOWN arrived.
    PeerShutdown,
    /// SHUTDOWN COMPLETE: gracefully closed.
    Closed,
}

/// Which way streams go, seen from here.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Direction {
    /// We send on them.
    Outgoing,
    /// The peer does.
    Incoming,
}

/// What happens to an address of an association (RFC 5061).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AddressChange {
    /// It is one now.
    Added,
    /// It is none any more.
    Removed,
    /// It is where its owner would like to be sent to.
    Primary,
}

/// The outcome of a request to the other end.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It was done.
    Done,
    /// The peer did not want to.
    Denied,
    /// The peer could not.
    Failed,
}

/// Why a change of streams or addresses was not even asked.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// There is no such association, it is not established, or its ends did not agree on the extension.
    #[error("the association cannot do this: not established, or the extension was not agreed")]
    NotAgreed,
    /// Too many changes wait already.
    #[error("too many changes are waiting for an answer")]
    Busy,
    /// There are no such streams or addresses, or no room for more.
    #[error("no such stream or address, or too many")]
    Invalid,
}

/// Why an association was lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LostReason {
    /// The peer never answered INIT or COOKIE ECHO.
    NoAnswer,
    /// Nothing takes SCTP at any of the peer's addresses: ICMP said so, and the tag was right.
    Unreachable,
    /// Association.Max.Retrans exceeded.
    TooManyErrors,
    /// The peer aborted, and said why.
    PeerAborted(Vec<Cause>),
    /// The user aborted.
    UserAborted,
    /// The peer broke the protocol; it was told so.
    ProtocolViolation,
    /// There is a shared key, and the peer offers no authentication (RFC 4895); it was told so.
    NotAuthenticated,
}

/// A user message to send.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Message {
    /// The stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether order does not matter.
    pub unordered: bool,
    /// Whether the peer shall acknowledge it without delay: the I bit of its last chunk (RFC 9260 §6.1).
    pub immediate: bool,
    /// At least one byte.
    pub payload: Bytes,
    /// When it is given up; as if `Full` unless both ends have agreed on partial reliability.
    pub reliability: Reliability,
}

/// How long a message is worth sending (RFC 3758 §4.1, RFC 7496 §3).
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Reliability {
    /// Until it is acknowledged.
    #[default]
    Full,
    /// For so many milliseconds after the send call.
    Lifetime(u32),
    /// Until a chunk of it would have to be sent again after so many retransmissions.
    Retransmissions(u32),
    /// Until the send buffer has no room for a message of a higher priority: a lower number, or another kind. The
    /// messages of the highest number go first, and only such of which nothing was sent.
    Priority(u32),
}

/// A user message received, or a part of one that does not fit the receive buffer.
///
/// Parts of one message are delivered in order. Between them there may be messages and parts of other streams, and on the same stream
/// unordered messages and parts of those: `message` tells which message a part belongs to. Two ordered messages of one stream are
/// never mixed: the second begins when the first is complete, or abandoned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// The stream.
    pub stream: u16,
    /// Payload protocol identifier.
    pub ppid: u32,
    /// Whether it was sent unordered.
    pub unordered: bool,
    /// Which message of its association this is, or is a part of: the same number for all its parts, and for no other
    /// message.
    pub message: u64,
    /// Whether this is the end of the message; else more parts follow.
    pub complete: bool,
    /// Whether the message was given up by its sender after a part of it was delivered: nothing more of it comes,
    /// and this delivery is empty.
    pub abandoned: bool,
    /// The user data, as it came in chunks, in order.
    pub pieces: SmallVec<[Bytes; 1]>,
}

impl Delivery {
    /// Bytes of user data.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there are none: only if the message was abandoned.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The user data in one piece; copies only if it came in several.
    pub fn into_bytes(mut self) -> Bytes {
        if self.pieces.len() == 1 {
            return self.pieces.remove(0);
        }
        let mut whole = BytesMut::with_capacity(self.len());
        self.pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
        whole.freeze()
    }
}

/// Why a send call was refused; the message is given back.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full: wait for [`Event::Writable`].
    #[error("the send buffer is full")]
    Full(Message),
    /// There is no such association, or it is closing.
    #[error("the association cannot send")]
    Closed(Message),
    /// The message is empty, or its stream was not agreed.
    #[error("the message is empty or its stream was not agreed")]
    Invalid(Message),
}

/// Why a connect call was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// No pair of a local and a peer address can be a path.
    #[error("no local address reaches any of the peer's addresses")]
    NoPath,
    /// There is an association with this peer already.
    #[error("there is an association with this peer already")]
    Exists,
}

/// A detail of what goes on: see [`NoteKind`].
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// In which association.
    pub association: AssociationId,
    /// When.
    pub at: Time,
    /// What.
    pub kind: NoteKind,
}

/// What series, marks and explanations are made of. All sizes in bytes.
#[derive(Clone, PartialEq, Debug)]
pub enum NoteKind {
    /// A path's window or what is in flight there has changed.
    Window {
        /// The path.
        path: PathId,
        /// Its congestion window.
        cwnd: u64,
        /// Its slow-start threshold.
        ssthresh: u64,
        /// In flight, marked chunks not counted.
        flight: u64,
        /// Marked for retransmission.
        marked: u64,
    },
    /// A path's retransmission timeout has changed.
    Rto {
        /// The path.
        path: PathId,
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
    /// A DATA chunk leaves.
    Sent {
        /// The path.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Bytes of the chunk.
        size: u32,
        /// Why.
        why: Why,
    },
    /// A chunk was found missing or timed out, and marked for retransmission.
    Marked {
        /// The path that carried it last.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Why.
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
    /// A missing report was counted.
    MissingReport {
        /// The chunk.
        tsn: Tsn,
        /// How many there are now.
        count: u8,
    },
    /// The Cumulative TSN Ack Point has advanced.
    Acked {
        /// To this TSN.
        cumulative: Tsn,
    },
    /// A new DATA chunk was taken.
    Received {
        /// The path that it came by.
        path: PathId,
        /// Its TSN.
        tsn: Tsn,
        /// Bytes of the chunk.
        size: u32,
        /// The Cumulative TSN with it.
        cumulative: Tsn,
    },
    /// The cause for which user data waits has changed, or the path to blame.
    Blocked {
        /// The cause; `None`: it does not wait.
        cause: Option<Blocked>,
        /// Of a buffer that is full, at either end: the path that carried the lowest outstanding TSN last.
        by: Option<PathId>,
    },
}

/// Why user data waits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Blocked {
    /// The peer's window.
    PeerWindow,
    /// The send buffer is full, and all that it holds was sent.
    SendBuffer,
    /// The congestion window of every usable path.
    Window,
    /// Neither: chunks marked for retransmission go first, the event allowed no more, or a path is awaited.
    Turn,
}

/// What an association has done so far.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Packets sent.
    pub packets: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of user data acknowledged by the peer.
    pub acknowledged: u64,
    /// DATA chunks received again.
    pub duplicates: u64,
    /// DATA chunks dropped for want of room in the receive buffer.
    pub no_room: u64,
    /// Window probes sent.
    pub probes: u64,
    /// T3-rtx expirations.
    pub timeouts: u64,
    /// Fast Recovery entered, or the window cut by missing reports.
    pub fast_recoveries: u64,
    /// Window cuts taken back because nothing was lost (mechanism `spurious_losses`).
    pub spurious_losses: u64,
    /// Time with user data waiting and nothing sendable because of the peer's window.
    pub blocked_peer_window: Duration,
    /// Time in which the user was refused though all that the send buffer holds was sent.
    pub blocked_send_buffer: Duration,
    /// Time with user data waiting and nothing sendable because of the congestion window of every usable path.
    pub blocked_window: Duration,
    /// The same for another cause.
    pub blocked_turn: Duration,
}
