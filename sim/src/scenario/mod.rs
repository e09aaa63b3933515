//! What is simulated, as plain data. The TOML document, a Rust literal and a Python dict are three
//! spellings of the same [`Scenario`].
//!
//! A document is read in three steps: TOML becomes a tree that knows its places (`document`), the rows of
//! [`keys`] read its tables into these types (`link`, `flow`, `sctp`), and `read` checks what only the whole
//! can tell. Whatever is wrong becomes one [`ScenarioError`].

mod air;
pub mod at;
mod blame;
mod canonical;
mod channel;
mod cross;
pub mod document;
pub mod error;
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
pub use mptcp::Mptcp;
pub use station::{Route, Station};
pub use tcp::{Phase, Tcp, WindowSize};
pub use trace::{Interpolation, OPPORTUNITY, Offset, Sample, Trace, TracedRate};

pub use crate::transport::mptcp::{MptcpConfig, PathManager, Priority, Reinjection};
pub use crate::transport::tcp::{Halving, TcpConfig, Variant};

use anabranch_proto::{Config, Duration, Policies, Reliability};

/// The bytes that a size with its unit says, as `"64 KiB"`; or what is wrong.
pub fn size(text: &str) -> Result<u64, String> {
    units::SIZE.read(text).map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The time that a duration with its unit says, as `"50 ms"`; or what is wrong.
pub fn duration(text: &str) -> Result<Duration, String> {
    units::DURATION
        .read(text)
        .map(Duration::from_nanos)
        .map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The bit/s that a rate with its unit says, as `"10 Mbit/s"`; or what is wrong.
pub fn rate(text: &str) -> Result<u64, String> {
    units::RATE.read(text).map_err(|bad| format!("{}; {}", bad.message, bad.hint))
}

/// The protocol's parameters that assignments `KEY=VALUE` to keys of `[flow.sctp]` make, given by `option`.
pub fn protocol(option: &str, assignments: &[String]) -> Result<Config, ScenarioError> {
    let mut document = Document::parse("", "")?;
    assignments.iter().try_for_each(|assignment| document.set(option, assignment))?;
    let newest = Config::era("rfc9260").unwrap_or_default();
    let root = at::At::root(&document);
    let read = sctp::sctp(&root, &newest, &Policies::default())?;
    match read.primary {
        Some(_) => Err(root.error_below("primary", "a primary path is named by a scenario's links only")),
        None => Ok(read.config),
    }
}

/// A network, the flows on it, and what changes on the way.
#[derive(Clone, PartialEq, Debug)]
pub struct Scenario {
    /// What the scenario is called; a file's name without its ending.
    pub name: String,
    /// The era of every flow that does not name its own.
    pub era: String,
    /// The random seed.
    pub seed: u64,
    /// Whether every packet goes through the byte codec on its way.
    pub wire: bool,
    /// When the run ends at the latest, from its beginning.
    pub stop: Option<Duration>,
    /// Bytes of IP header before every packet.
    pub ip_header: u32,
    /// From when to when results are measured beside those of the whole run, from its beginning.
    pub measure: Option<[Duration; 2]>,
    /// The links, in any order.
    pub links: Vec<Link>,
    /// The flows, in any order.
    pub flows: Vec<Flow>,
    /// Cross traffic, in any order.
    pub traffic: Vec<CrossTraffic>,
    /// What changes while it runs, in any order.
    pub changes: Vec<Change>,
    /// The channels on which radios are, in any order.
    pub channels: Vec<Channel>,
    /// The nodes with radios, in any order.
    pub stations: Vec<Station>,
    /// Ways between radios; all others are the shortest.
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
    /// Bit/s, for each direction; of a recorded one the mean.
    pub rate: [u64; 2],
    /// The rate as it was recorded, for each direction that has a trace.
    pub traced: [Option<TracedRate>; 2],
    /// Propagation delay, for each direction.
    pub delay: [Duration; 2],
    /// Instead of it, a delay between these two, drawn from the run's seed, the same in both directions.
    pub random_delay: Option<[Duration; 2]>,
    /// How much later than its delay a packet arrives at most, in each direction: drawn uniformly for each packet.
    pub jitter: [Duration; 2],
    /// Whether jitter may change the order of packets.
    pub reorder: bool,
    /// The queue before each direction.
    pub queue: [Queue; 2],
    /// Bytes in each queue from which on packets that can be marked (ECN) are; `None`: never.
    pub mark: [Option<u64>; 2],
    /// Which packets are lost, in each direction.
    pub loss: [Loss; 2],
    /// The largest packet, in bytes with the IP header.
    pub mtu: u32,
    /// Whether the link is up at the beginning.
    pub up: bool,
}

/// The queue before a link direction. Its limit is how much may be in it in all, the packet being sent included.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Queue {
    /// Drop-tail: at most so many packets.
    Packets(u32),
    /// Drop-tail: at most so many bytes.
    Bytes(u64),
    /// Drop-tail: so many thousandths of rate times delay of the direction, in packets of the link's MTU, rounded up.
    BandwidthDelay(u32),
    /// Random Early Detection.
    Red(Red),
    /// Controlled Delay (RFC 8289).
    Codel(Codel),
}

impl Queue {
    /// How much may be in it in all; 0 packets of a bandwidth-delay product, which only a link makes a number.
    pub fn limit(&self) -> Amount {
        match *self {
            Queue::Packets(packets) => Amount::Packets(packets),
            Queue::Bytes(bytes) => Amount::Bytes(bytes),
            Queue::BandwidthDelay(_) => Amount::Packets(0),
            Queue::Red(Red { limit, .. }) | Queue::Codel(Codel { limit, .. }) => limit,
        }
    }
}

/// How much is in a queue, or may be.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Amount {
    /// So many packets.
    Packets(u32),
    /// So many bytes.
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

/// Random Early Detection as ns-2 2.35 has it. All amounts are of one kind, packets or bytes; thresholds are compared
/// with the average of what waits, without the packet being sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Red {
    /// How much may be in the queue in all.
    pub limit: Amount,
    /// Below this average nothing is dropped.
    pub min: Amount,
    /// At this average packets are dropped with `probability`; between it and twice it the probability rises to 1.
    pub max: Amount,
    /// The probability at `max`, before drops are spread.
    pub probability: f64,
    /// The weight of a packet's queue in the average.
    pub weight: f64,
}

/// Controlled Delay (RFC 8289).
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Codel {
    /// How much may be in the queue in all.
    pub limit: Amount,
    /// The delay that packets may have.
    pub target: Duration,
    /// For how long they may have more before one is dropped.
    pub interval: Duration,
}

/// Which packets a link direction loses, after they have left the queue's entry: lost packets take no place.
#[derive(Clone, PartialEq, Debug)]
pub enum Loss {
    /// None.
    None,
    /// Each with this probability; the n-th packet offered takes the n-th draw.
    Random(f64),
    /// These, counted from 1 in the order in which they are offered; ascending.
    Listed(Vec<u64>),
    /// Each with the probability that one of its bits is wrong; this is that of a bit.
    Bits(f64),
    /// Each n-th, counted like listed ones.
    Every(u64),
    /// The chain of Gilbert and Elliott: two states, with a step after each packet. It begins in the good state.
    Gilbert {
        /// The probability of a loss in the good state.
        good: f64,
        /// The same in the bad state.
        bad: f64,
        /// The probability of a step from the good state to the bad one.
        to_bad: f64,
        /// The same back.
        to_good: f64,
    },
    /// Packets of a flow with user data, counted from 1 in the order in which they are offered here, retransmissions
    /// included.
    Data {
        /// The flow's name.
        flow: String,
        /// Which; ascending.
        numbers: Vec<u64>,
    },
}

/// Something that changes at a moment. What is `None` stays.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// The time of the change, counted from the beginning of the run.
    pub at: Duration,
    /// The link that changes.
    pub link: String,
    /// It works or not. What is on it when it goes down is lost.
    pub up: Option<bool>,
    /// Its rates, bit/s.
    pub rate: Option<[u64; 2]>,
    /// Its delays, for packets that leave from now on.
    pub delay: Option<[Duration; 2]>,
    /// Its losses, from now on.
    pub loss: Option<[Loss; 2]>,
    /// Its queues, for packets that come from now on.
    pub queue: Option<[Queue; 2]>,
    /// From how many bytes on its queues mark packets.
    pub mark: Option<[Option<u64>; 2]>,
    /// How much later than its delay packets arrive at most, for packets that leave from now on.
    pub jitter: Option<[Duration; 2]>,
    /// The largest packet, in bytes with the IP header; larger ones are dropped from now on.
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
    /// Instead: drawn uniformly between these.
    pub random_start: Option<[Duration; 2]>,
    /// What is sent.
    pub traffic: Traffic,
    /// Bytes of user data in a message; `None`: what fits one packet.
    pub message_size: Option<u32>,
    /// How fast the receiving application reads, in bit/s; `None`: at once.
    pub read_rate: Option<u64>,
    /// Bytes of IP header before every packet; `None`: the scenario's.
    pub ip_header: Option<u32>,
    /// What carries it.
    pub transport: Transport,
}

impl Default for Flow {
    /// An SCTP flow without end, from nowhere to nowhere.
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
    /// What is particular to an SCTP flow; `None` if it is none.
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
            Transport::Tcp(_) | Transport::Datagram => false,
        }
    }

    /// The name of the path that comes first, if one is named.
    pub fn primary(&self) -> Option<&String> {
        match &self.transport {
            Transport::Sctp(sctp) => sctp.primary.as_ref(),
            Transport::Mptcp(mptcp) => mptcp.primary.as_ref(),
            Transport::Tcp(_) | Transport::Datagram => None,
        }
    }

    /// The same, to be changed.
    pub fn sctp_mut(&mut self) -> Option<&mut Sctp> {
        match &mut self.transport {
            Transport::Sctp(sctp) => Some(sctp),
            _ => None,
        }
    }
}

/// What carries a flow.
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
}

impl Transport {
    /// How a scenario and the results spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Transport::Sctp(_) => "sctp",
            Transport::Tcp(_) => "tcp",
            Transport::Mptcp(_) => "mptcp",
            Transport::Datagram => "udp",
        }
    }

    /// Whether radios never lose its SACKs.
    pub(crate) fn has_lossless_sacks(&self) -> bool {
        matches!(self, Transport::Sctp(sctp) if sctp.lossless_sacks)
    }
}

/// What is particular to an SCTP flow.
#[derive(Clone, PartialEq, Debug)]
pub struct Sctp {
    /// The protocol's rules and parameters at both ends. Addresses and port are filled in by the network.
    pub config: Config,
    /// The primary path, by the name of the sender's first link, or "first/last".
    pub primary: Option<String>,
    /// Whether every pair of addresses with a route is a path.
    pub all_pairs: bool,
    /// Whether packets are encapsulated in UDP (8 bytes more).
    pub udp: bool,
    /// Whether each path has an independent association of its own, and messages go to whichever has room.
    pub stripe: bool,
    /// Whether radios pass on packets that carry nothing but SACKs when they would drop them.
    pub lossless_sacks: bool,
    /// The receiving application reads so many messages and then none; `None`: all.
    pub stop_reading_after: Option<u64>,
    /// Messages go to this many streams in turn.
    pub streams: u16,
    /// Whether messages are sent unordered.
    pub unordered: bool,
    /// When its messages are given up.
    pub reliability: Reliability,
    /// Whether every message asks for its acknowledgement at once.
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

/// What an application sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Traffic {
    /// So many bytes, as fast as the association takes them; `None`: without end.
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
        /// Bit/s of user data, a mean.
        rate: u64,
        /// Bytes in all; `None`: until the run ends.
        bytes: Option<u64>,
    },
    /// Messages at a constant rate with pauses.
    Bursts {
        /// Bit/s of user data while it sends.
        rate: u64,
        /// Bytes in all; `None`: until the run ends.
        bytes: Option<u64>,
        /// How long it sends, and how long it pauses.
        times: [Times; 2],
    },
}

/// Lengths of time, drawn independently.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Times {
    /// Always this long.
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

/// Traffic that only fills queues: sources that send packets in bursts and never react.
#[derive(Clone, PartialEq, Debug)]
pub struct CrossTraffic {
    /// Its name, unlike those of flows and other traffic.
    pub name: String,
    /// Pairs of nodes, from the first to the second.
    pub pairs: Vec<[String; 2]>,
    /// Whether as much goes back.
    pub both_ways: bool,
    /// Sources of each pair in each direction.
    pub sources: u32,
    /// Bit/s that all of it offers in each direction, a mean over on and off times, IP headers included.
    pub load: u64,
    /// Packet sizes in bytes with the IP header, and how the sources are divided among them.
    pub sizes: Vec<(u32, u32)>,
    /// How long a source sends.
    pub on: Times,
    /// How long it pauses.
    pub off: Times,
    /// Whether packets follow each other at random, as a Poisson process, and not evenly.
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

    /// In how many directions it goes.
    pub fn directions(&self) -> u64 {
        if self.both_ways { 2 } else { 1 }
    }
}

/// When something begins, from the beginning of the run.
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
