//! Scenarios: the description of a simulation as plain data. A TOML document, a Rust literal and a Python dict are
//! three spellings of the same [`Scenario`].
//!
//! A document is read in three steps. The TOML text becomes a tree in which every value knows its place (`document`).
//! The rows of [`keys`] read its tables into these types (`link`, `flow`, `sctp`). Then `read` checks what depends on
//! several tables. Every fault becomes one [`ScenarioError`].

mod air;
pub mod at;
mod blame;
mod canonical;
mod channel;
mod cross;
pub mod document;
pub mod error;
mod file;
mod flow;
mod joined;
pub mod keys;
mod link;
mod mptcp;
mod read;
mod sctp;
mod station;
mod tcp;
pub mod trace;
pub mod units;
mod wire;

pub use canonical::Unwritable;
pub use channel::{Channel, Dcf, Powers, Propagation, Ranges, Reception, Timing};
pub use document::Document;
pub use error::ScenarioError;
pub use file::{read_bytes, read_text, text_of};
pub use mptcp::Mptcp;
pub use station::{Route, Station};
pub use tcp::{Phase, Tcp, WindowSize};
pub use trace::{BadTrace, Interpolation, OPPORTUNITY, Offset, Sample, Trace, TracedRate};

pub use crate::transport::mptcp::{MptcpConfig, PathManager, Priority, Reinjection};
pub use crate::transport::tcp::{Halving, RtoBound, TcpConfig, Variant};

use crate::transport::Protocol;
use anabranch_proto::{Config, Duration, Policies, Reliability};

/// The number of bytes of a size with a unit, such as `"64 KiB"`. The error describes what is wrong.
pub fn size(text: &str) -> Result<u64, String> {
    units::SIZE.read(text).map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The time of a duration with a unit, such as `"50 ms"`. The error describes what is wrong.
pub fn duration(text: &str) -> Result<Duration, String> {
    units::DURATION
        .read(text)
        .map(Duration::from_nanos)
        .map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The bit/s of a rate with a unit, such as `"10 Mbit/s"`. The error describes what is wrong.
pub fn rate(text: &str) -> Result<u64, String> {
    units::RATE.read(text).map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The parameters of the protocol after assignments `KEY=VALUE` to keys of `[flow.sctp]`, given by `option`.
pub fn protocol(option: &str, assignments: &[String]) -> Result<Config, ScenarioError> {
    let mut document = Document::parse("", "")?;
    let example = "rto_min=\"300 ms\", or retransmit=same";
    assignments.iter().try_for_each(|assignment| document.set_like(example, option, assignment))?;
    let newest = Config::era("rfc9260").unwrap_or_default();
    let root = at::At::root(&document);
    let read = sctp::sctp(&root, &newest, &Policies::default())?;
    match read.primary {
        Some(_) => Err(root.error_below("primary", "a primary path is named by a scenario's links only")),
        None => Ok(read.config),
    }
}

/// A network, the flows on it, and changes during the run.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// The name of the scenario: its file name without the extension.
    pub name: String,
    /// The era of every flow that names none: the reader of documents makes the parameters of such a flow from it. A
    /// flow built in Rust has the parameters that it was given, so begin with those of its era
    /// ([`Config::era`](anabranch_proto::Config::era)).
    pub era: String,
    /// The random seed.
    pub seed: u64,
    /// Whether every packet goes through the byte codec.
    pub wire: bool,
    /// The latest end of the run, counted from its beginning.
    pub stop: Option<Duration>,
    /// Bytes of IP header before every packet.
    pub ip_header: u32,
    /// The part of the run that is also measured separately, from its beginning.
    pub measure: Option<[Duration; 2]>,
    /// The links, in any order.
    pub links: Vec<Link>,
    /// The flows, in any order.
    pub flows: Vec<Flow>,
    /// Cross traffic, in any order.
    pub traffic: Vec<CrossTraffic>,
    /// The changes during the run, in any order.
    pub changes: Vec<Change>,
    /// The radio channels, in any order.
    pub channels: Vec<Channel>,
    /// The nodes with radios, in any order.
    pub stations: Vec<Station>,
    /// Routes between radios that are prescribed; all others are the shortest.
    pub routes: Vec<Route>,
}

impl Default for Scenario {
    /// An empty scenario of the newest era.
    fn default() -> Self {
        Scenario {
            name: String::new(),
            era: "rfc9260".to_owned(),
            seed: 1,
            wire: false,
            stop: None,
            ip_header: 20,
            measure: None,
            links: Vec::new(),
            flows: Vec::new(),
            traffic: Vec::new(),
            changes: Vec::new(),
            channels: Vec::new(),
            stations: Vec::new(),
            routes: Vec::new(),
        }
    }
}

/// A link between two nodes: two directions, `[0]` from the first node to the second, `[1]` back.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Its name, unique.
    pub name: String,
    /// The nodes at its ends.
    pub between: [String; 2],
    /// Bit/s, for each direction; for a recorded rate its mean.
    pub rate: [u64; 2],
    /// The recorded rate, for each direction that has a trace.
    pub traced: [Option<TracedRate>; 2],
    /// Propagation delay, for each direction.
    pub delay: [Duration; 2],
    /// A range from which the delay of both directions is drawn instead, by the run's seed.
    pub random_delay: Option<[Duration; 2]>,
    /// The largest additional delay of a packet, in each direction: drawn uniformly for each packet.
    pub jitter: [Duration; 2],
    /// Whether jitter may change the order of packets.
    pub reorder: bool,
    /// The queue before each direction.
    pub queue: [Queue; 2],
    /// In each direction, packets that can be marked (ECN) are marked while the queue holds at least so many bytes;
    /// `None`: never.
    pub mark: [Option<u64>; 2],
    /// The losses in each direction.
    pub loss: [Loss; 2],
    /// The largest packet, in bytes with the IP header.
    pub mtu: u32,
    /// Whether the link is up at the beginning.
    pub up: bool,
}

/// The queue before a link direction. Its limit includes the packet being sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Queue {
    /// Drop-tail: at most so many packets.
    Packets(u32),
    /// Drop-tail: at most so many bytes.
    Bytes(u64),
    /// Drop-tail: the limit in thousandths of the direction's bandwidth-delay product (rate times delay), in packets
    /// of the link's MTU, rounded up.
    BandwidthDelay(u32),
    /// Random Early Detection.
    Red(Red),
    /// Controlled Delay (RFC 8289).
    Codel(Codel),
}

impl Queue {
    /// The limit of the queue. For a multiple of the bandwidth-delay product it is 0 packets, since only a link makes
    /// it a number.
    pub fn limit(&self) -> Amount {
        match *self {
            Queue::Packets(packets) => Amount::Packets(packets),
            Queue::Bytes(bytes) => Amount::Bytes(bytes),
            Queue::BandwidthDelay(_) => Amount::Packets(0),
            Queue::Red(Red { limit, .. }) | Queue::Codel(Codel { limit, .. }) => limit,
        }
    }
}

/// An amount in a queue, or a limit of it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Amount {
    /// This number of packets.
    Packets(u32),
    /// This number of bytes.
    Bytes(u64),
}

impl Amount {
    /// Packets, or bytes.
    pub fn number(self) -> f64 {
        match self {
            Amount::Packets(packets) => f64::from(packets),
            Amount::Bytes(bytes) => bytes as f64,
        }
    }
}

/// Random Early Detection as in ns-2 2.35. All amounts are of one kind, packets or bytes. Thresholds are compared
/// with the average of what waits, without the packet being sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Red {
    /// The limit of the queue.
    pub limit: Amount,
    /// Below this average no packet is dropped.
    pub min: Amount,
    /// At this average, packets are dropped with `probability`. Up to twice this average, the probability rises to 1.
    pub max: Amount,
    /// The probability at `max`, before drops are spread evenly.
    pub probability: f64,
    /// The weight of the present queue in the average.
    pub weight: f64,
}

/// Controlled Delay (RFC 8289).
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Codel {
    /// The limit of the queue.
    pub limit: Amount,
    /// The target delay.
    pub target: Duration,
    /// How long the delay may exceed the target before a packet is dropped.
    pub interval: Duration,
}

/// The losses of a link direction. A lost packet takes no place in the queue.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// None.
    None,
    /// Each packet with this probability. The n-th packet offered takes the n-th draw.
    Random(f64),
    /// These packets, counted from 1 in the order in which they are offered; ascending.
    Listed(Vec<u64>),
    /// Each packet with the probability that one of its bits is wrong. This is the probability for one bit.
    Bits(f64),
    /// Each n-th packet, counted in the same way.
    Every(u64),
    /// The chain of Gilbert and Elliott: two states, with a transition after each packet. It begins in the good
    /// state.
    Gilbert {
        /// The probability of a loss in the good state.
        good: f64,
        /// The probability of a loss in the bad state.
        bad: f64,
        /// The probability of a transition from the good to the bad state.
        to_bad: f64,
        /// The probability of a transition from the bad to the good state.
        to_good: f64,
    },
    /// Packets of a flow with user data, counted from 1 in the order in which they are offered here, retransmissions
    /// included.
    Data {
        /// The flow's name.
        flow: String,
        /// The numbers of the packets, ascending.
        numbers: Vec<u64>,
    },
}

/// A change at a given time. A field that is `None` changes nothing.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The time of the change, counted from the beginning of the run.
    pub at: Duration,
    /// The link that changes.
    pub link: String,
    /// Whether the link works. Packets on it when it goes down are lost.
    pub up: Option<bool>,
    /// Its rates, bit/s.
    pub rate: Option<[u64; 2]>,
    /// Its delays, for packets that leave from then on.
    pub delay: Option<[Duration; 2]>,
    /// Its losses, from then on.
    pub loss: Option<[Loss; 2]>,
    /// Its queues, for packets that arrive from then on.
    pub queue: Option<[Queue; 2]>,
    /// The number of bytes from which its queues mark packets.
    pub mark: Option<[Option<u64>; 2]>,
    /// The largest additional delay of packets that leave from then on.
    pub jitter: Option<[Duration; 2]>,
    /// The MTU in bytes with the IP header; larger packets are dropped from then on.
    pub mtu: Option<u32>,
}

/// A flow: a transport between two nodes, with an application at each end.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Its name, unique.
    pub name: String,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// When it begins, from the beginning of the run.
    pub start: Duration,
    /// A range from which the start is drawn uniformly instead.
    pub random_start: Option<[Duration; 2]>,
    /// The data to send.
    pub traffic: Traffic,
    /// Bytes of user data in a message; `None`: as many as fit one packet.
    pub message_size: Option<u32>,
    /// How fast the receiving application reads, in bit/s; `None`: at once.
    pub read_rate: Option<u64>,
    /// Bytes of IP header before every packet; `None`: the scenario's.
    pub ip_header: Option<u32>,
    /// The transport of the flow.
    pub transport: Transport,
}

impl Default for Flow {
    /// An SCTP flow without end; its nodes have no names yet.
    fn default() -> Self {
        Flow {
            name: String::new(),
            from: String::new(),
            to: String::new(),
            start: Duration::ZERO,
            random_start: None,
            traffic: Traffic::Bulk(None),
            message_size: None,
            read_rate: None,
            ip_header: None,
            transport: Transport::Sctp(Box::default()),
        }
    }
}

impl Flow {
    /// The settings of an SCTP flow; `None` if the flow is not SCTP.
    pub fn sctp(&self) -> Option<&Sctp> {
        match &self.transport {
            Transport::Sctp(sctp) => Some(sctp),
            _ => None,
        }
    }

    /// Whether every pair of addresses with a route is a path.
    pub fn all_pairs(&self) -> bool {
        match &self.transport {
            Transport::Sctp(sctp) => sctp.all_pairs,
            Transport::Mptcp(mptcp) => mptcp.path_manager == PathManager::FullMesh,
            Transport::Tcp(_) | Transport::Datagram | Transport::Foreign(_) => false,
        }
    }

    /// The name of the primary path, if one is named.
    pub fn primary(&self) -> Option<&String> {
        match &self.transport {
            Transport::Sctp(sctp) => sctp.primary.as_ref(),
            Transport::Mptcp(mptcp) => mptcp.primary.as_ref(),
            Transport::Tcp(_) | Transport::Datagram | Transport::Foreign(_) => None,
        }
    }

    /// As `sctp`, mutable.
    pub fn sctp_mut(&mut self) -> Option<&mut Sctp> {
        match &mut self.transport {
            Transport::Sctp(sctp) => Some(sctp),
            _ => None,
        }
    }
}

/// The transport of a flow.
#[derive(Clone, PartialEq, Debug)]
pub enum Transport {
    /// An SCTP association.
    Sctp(Box<Sctp>),
    /// A TCP connection.
    Tcp(Box<Tcp>),
    /// A connection of Multipath TCP.
    Mptcp(Box<Mptcp>),
    /// UDP: messages leave at their time, and nothing is sent again.
    Datagram,
    /// A stack of other people, by its name ([`foreign`](crate::foreign)).
    Foreign(String),
}

impl Transport {
    /// Its protocol.
    pub fn protocol(&self) -> Protocol {
        match self {
            Transport::Sctp(_) => Protocol::Sctp,
            Transport::Tcp(_) => Protocol::Tcp,
            Transport::Mptcp(_) => Protocol::Mptcp,
            Transport::Datagram => Protocol::Udp,
            Transport::Foreign(_) => Protocol::Foreign,
        }
    }

    /// Whether it has an independent association on each path.
    pub(crate) fn is_striped(&self) -> bool {
        matches!(self, Transport::Sctp(sctp) if sctp.stripe)
    }

    /// Whether radios never lose its SACKs.
    pub(crate) fn has_lossless_sacks(&self) -> bool {
        matches!(self, Transport::Sctp(sctp) if sctp.lossless_sacks)
    }
}

/// The settings of an SCTP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Sctp {
    /// The rules and parameters of the protocol at both ends. The network fills in addresses and port.
    pub config: Config,
    /// The primary path, by the name of the sender's first link, or "first/last".
    pub primary: Option<String>,
    /// Whether every pair of addresses with a route is a path.
    pub all_pairs: bool,
    /// Whether packets are encapsulated in UDP (8 bytes more).
    pub udp: bool,
    /// Whether each path has an independent association of its own, and each message goes to an association with
    /// room.
    pub stripe: bool,
    /// Whether radios pass on packets that hold nothing but SACKs when they would drop them.
    pub lossless_sacks: bool,
    /// The receiving application reads so many messages and then stops; `None`: all.
    pub stop_reading_after: Option<u64>,
    /// The number of streams; messages use them in turn.
    pub streams: u16,
    /// Whether messages are sent unordered.
    pub unordered: bool,
    /// When its messages are abandoned.
    pub reliability: Reliability,
    /// Whether every message asks for an immediate acknowledgement.
    pub immediate: bool,
}

impl Default for Sctp {
    /// One stream, ordered and reliable, with the parameters of the newest era.
    fn default() -> Self {
        Sctp {
            config: Config::default(),
            primary: None,
            all_pairs: false,
            udp: false,
            stripe: false,
            lossless_sacks: false,
            stop_reading_after: None,
            streams: 1,
            unordered: false,
            reliability: Reliability::Full,
            immediate: false,
        }
    }
}

/// The data that an application sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// This number of bytes, as fast as the transport accepts them; `None`: without end.
    Bulk(Option<u64>),
    /// Messages at a constant rate.
    Constant {
        /// Bit/s of user data.
        rate: u64,
        /// Bytes in all; `None`: until the run ends.
        bytes: Option<u64>,
    },
    /// Messages at random times: a Poisson process.
    Poisson {
        /// The mean rate of user data, bit/s.
        rate: u64,
        /// Bytes in all; `None`: until the run ends.
        bytes: Option<u64>,
    },
    /// Messages at a constant rate with pauses.
    Bursts {
        /// The rate of user data during an on time, bit/s.
        rate: u64,
        /// Bytes in all; `None`: until the run ends.
        bytes: Option<u64>,
        /// The on times and the off times.
        times: [Times; 2],
    },
}

/// Random durations, drawn independently.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Times {
    /// Always this duration.
    Fixed(Duration),
    /// Exponential, with this mean.
    Exponential(Duration),
    /// Pareto.
    Pareto {
        /// The mean.
        mean: Duration,
        /// The shape, above 1; below 2 the variance is infinite.
        shape: f64,
    },
}

impl Times {
    /// The mean.
    pub fn mean(&self) -> Duration {
        match *self {
            Times::Fixed(mean) | Times::Exponential(mean) | Times::Pareto { mean, .. } => mean,
        }
    }
}

/// Cross traffic: sources that send packets in bursts and never react to losses.
#[derive(Clone, PartialEq, Debug)]
pub struct CrossTraffic {
    /// Its name, different from those of flows and other cross traffic.
    pub name: String,
    /// Pairs of nodes, from the first to the second.
    pub pairs: Vec<[String; 2]>,
    /// Whether the same amount goes back.
    pub both_ways: bool,
    /// The number of sources of each pair in each direction.
    pub sources: u32,
    /// The mean rate offered in each direction, bit/s with IP headers, over on and off times.
    pub load: u64,
    /// Packet sizes in bytes with the IP header, each with its share of the sources.
    pub sizes: Vec<(u32, u32)>,
    /// The on times of a source.
    pub on: Times,
    /// The off times of a source.
    pub off: Times,
    /// Whether packets follow each other as a Poisson process instead of evenly.
    pub poisson: bool,
    /// When the sources begin.
    pub start: Start,
}

impl CrossTraffic {
    /// The packet size of each source of a pair.
    pub fn source_sizes(&self) -> Vec<u32> {
        let shares: u64 = self.sizes.iter().map(|(_, share)| u64::from(*share)).sum();
        let sources = |share: u32| u64::from(self.sources) * u64::from(share) / shares.max(1);
        let of_size = |(size, share): &(u32, u32)| std::iter::repeat_n(*size, sources(*share) as usize);
        self.sizes.iter().flat_map(of_size).collect()
    }

    /// The number of directions.
    pub fn directions(&self) -> u64 {
        if self.both_ways { 2 } else { 1 }
    }
}

/// A start time, counted from the beginning of the run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// At this time.
    At(Duration),
    /// At a time drawn uniformly between these.
    Uniform([Duration; 2]),
}

impl Traffic {
    /// Bytes in all; `None`: without end.
    pub fn amount(&self) -> Option<u64> {
        match *self {
            Traffic::Bulk(amount)
            | Traffic::Constant { bytes: amount, .. }
            | Traffic::Poisson { bytes: amount, .. }
            | Traffic::Bursts { bytes: amount, .. } => amount,
        }
    }
}
