//! The results of runs, in SI units. The names are those of `--json`; docs/results.md is made from this file.

use std::collections::BTreeMap;

use crate::transport::Protocol;
use serde::Serialize;

/// The results of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The random seed.
    pub seed: u64,
    /// The scenario's `era`.
    pub era: String,
    /// The keys that `--vary` changed, with their values.
    pub varied: BTreeMap<String, serde_json::Value>,
    /// When the run ended, in virtual seconds from its beginning.
    pub ended: f64,
    /// The flows, by name.
    pub flows: Vec<FlowResult>,
    /// The directions of links, by name, then direction.
    pub links: Vec<LinkResult>,
    /// Cross traffic, by name.
    pub traffic: Vec<TrafficResult>,
    /// The radios, by channel, then node. If the scenario has a `measure`, they are of that part of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationResult>,
    /// Jain's fairness index of the flows' throughputs: 1 if all are equal, 1/n if one of n flows has everything (eq. 1
    /// of "Effect of Congestion Control on the Performance of TCP and SCTP over Satellite Networks"). `None` if nothing
    /// arrived.
    pub fairness: Option<f64>,
    /// How much higher the mean throughput of the SCTP flows is than that of the TCP flows, in per cent (eq. 2 there);
    /// `None` unless there are both.
    pub increase: Option<f64>,
    /// Results within the scenario's `measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredRun>,
}

/// One radio.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationResult {
    /// Its node.
    pub node: String,
    /// Its channel.
    pub channel: String,
    /// RTS frames.
    pub rts: Exchanges,
    /// Data frames.
    pub data: Exchanges,
    /// RTS and data frames of this radio that overlapped another frame at their receiver.
    pub collisions: Collisions,
    /// Packets that it dropped.
    pub drops: StationDrops,
    /// What was on the air at its position, its own frames included, in seconds.
    pub airtime: Airtime,
}

/// Frames that are answered.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Exchanges {
    /// Frames sent, repetitions included.
    pub sent: u64,
    /// Frames answered: RTS by CTS, data by ACK.
    pub answered: u64,
}

/// Frames that overlapped another frame, by the sender of the other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Collisions {
    /// Lost to a station that this one cannot sense (hidden terminal).
    pub hidden: u64,
    /// Lost to a station that this one can sense, which began at the same time, or to a frame of the receiver itself.
    pub slot: u64,
    /// Received nevertheless, because the other frame was weak enough.
    pub capture: u64,
}

/// Packets that a radio dropped, by cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationDrops {
    /// The queue was full.
    pub queue: u64,
    /// The last RTS got no CTS.
    pub rts_retries: u64,
    /// The last data frame got no ACK.
    pub data_retries: u64,
}

/// Seconds by the use of the channel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Airtime {
    /// One data frame.
    pub data: f64,
    /// One RTS, CTS or ACK.
    pub control: f64,
    /// Several frames at once.
    pub collision: f64,
    /// No frame that this station can sense.
    pub idle: f64,
}

/// Results of a run within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredRun {
    /// When `measure` begins and ends, in virtual seconds from the beginning of the run.
    pub between: [f64; 2],
    /// Jain's fairness index, as of the whole run.
    pub fairness: Option<f64>,
    /// The increase, as of the whole run.
    pub increase: Option<f64>,
}

/// One flow. Entries that its transport does not have are zero or empty.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// "sctp", "tcp", "mptcp", "udp" or "foreign".
    pub protocol: Protocol,
    /// Seconds from its start until the receiving application read the first user data.
    pub first_data: Option<f64>,
    /// Seconds from its start until the receiving application read the last byte; `None` if it is unfinished.
    pub completion: Option<f64>,
    /// Bytes of user data that the receiving application read.
    pub delivered: u64,
    /// User data delivered per second, in bit/s: from its start until completion, or until the end of the run.
    pub goodput: f64,
    /// Packets with user data that arrived per second, in bit/s with IP headers: from its start until
    /// completion, or until the end of the run.
    pub throughput: f64,
    /// Packets sent by its sender, retransmissions included. TCP: segments with user data or FIN, and window probes;
    /// neither SYNs nor bare acknowledgements.
    pub packets: u64,
    /// DATA chunks (TCP: segments) sent again, by cause and path.
    pub retransmissions: Retransmissions,
    /// Seconds during which user data waited and nothing could be sent, by cause. SCTP and Multipath TCP count them; of
    /// other transports they are 0.
    pub blocked: Blocked,
    /// Expirations of the retransmission timer at its sender.
    pub timeouts: u64,
    /// How often Fast Retransmit reduced a window of its sender.
    pub fast_recoveries: u64,
    /// Window probes that its sender sent.
    pub probes: u64,
    /// DATA chunks that its receiver received more than once.
    pub duplicates: u64,
    /// How it ended: "closed" (UDP: everything arrived or was dropped), "lost", or "open" (it went on until the end of
    /// the run).
    pub outcome: &'static str,
    /// Its sender's paths.
    pub paths: Vec<PathResult>,
    /// The packets of both ends on the link directions of its routes.
    pub links: Vec<FlowLink>,
    /// Bytes of user data that the receiving application had not read at the end of the run; `None` if the flow is
    /// complete or has no amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// How long its messages took; `None` if the flow sends as fast as it can, or if its messages are unordered or can
    /// be abandoned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What happened to it when links on its routes went down, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageResult>,
    /// The stack that carried it, if it was a foreign one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignResult>,
    /// Results within the scenario's `measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredFlow>,
}

/// A stack of other people.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct ForeignResult {
    /// Its name in scenarios.
    pub name: String,
    /// The crate or program behind it, and its version.
    pub version: String,
    /// Whether the same scenario and seed give the same results each time.
    pub repeatable: bool,
}

/// Seconds from the moment at which a message could be sent until the receiving application read it.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Latency {
    /// Messages read.
    pub messages: u64,
    /// The mean latency.
    pub mean: f64,
    /// The median: the least latency that half of the messages did not exceed.
    pub p50: f64,
    /// The least latency that 95 % of the messages did not exceed.
    pub p95: f64,
    /// The least latency that 99 % of the messages did not exceed.
    pub p99: f64,
    /// The longest latency.
    pub max: f64,
}

/// What happened to a flow when a link on its routes went down.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct OutageResult {
    /// The link.
    pub name: String,
    /// When it went down, seconds from the beginning of the run.
    pub down: f64,
    /// When it worked again, seconds from the beginning of the run; `None`: never.
    pub up: Option<f64>,
    /// Seconds from `down` until the sender regarded its paths over the link as potentially failed or inactive; `None`:
    /// it never did, or the transport has no such state.
    pub detected: Option<f64>,
    /// Seconds from `down` until the sender first sent new data on a route without the link; `None`: never.
    pub new_data: Option<f64>,
    /// Seconds from `down` until the receiving application first read something after data had been sent on a route
    /// that worked; `None`: never.
    pub delivered: Option<f64>,
    /// Seconds from `up` until the sender first sent new data over the link again; `None`: never.
    pub returned: Option<f64>,
}

/// A flow on a link direction.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct FlowLink {
    /// The link's name.
    pub name: String,
    /// "a>b".
    pub direction: String,
    /// Packets of the flow that were offered to the link.
    pub packets: u64,
    /// Packets of the flow that were dropped, for any reason.
    pub dropped: u64,
}

/// Results of a flow within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredFlow {
    /// Bytes of user data that the receiving application read.
    pub delivered: u64,
    /// User data delivered per second, bit/s.
    pub goodput: f64,
    /// Packets with user data that arrived per second, in bit/s with IP headers.
    pub throughput: f64,
    /// Its sender's paths.
    pub paths: Vec<MeasuredPath>,
    /// Its packets on the link directions of its routes.
    pub links: Vec<FlowLink>,
}

/// Results of a path within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredPath {
    /// Its name.
    pub name: String,
    /// The mean of the congestion window over time, bytes; `None` if the path was never used.
    pub mean_cwnd: Option<f64>,
}

/// Chunks retransmitted, by the name of the path that carried them.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Retransmissions {
    /// After missing reports.
    pub fast: BTreeMap<String, u64>,
    /// After a timeout.
    pub timeout: BTreeMap<String, u64>,
}

/// Seconds blocked, by cause; of several causes the first counts.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Blocked {
    /// The peer's window is full.
    pub peer_window: f64,
    /// The send buffer is full, and everything in it has been sent.
    pub send_buffer: f64,
    /// The congestion window of every usable path is full.
    pub cwnd: f64,
    /// None of these: the association is not set up yet, retransmissions go first, an event allowed no more packets, or
    /// a route waits for a path.
    pub turn: f64,
}

/// One path of a flow's sender, at the end of the run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PathResult {
    /// Its name: the sender's first link, or "first/last".
    pub name: String,
    /// "active", "potentially failed", "inactive" or "unconfirmed".
    pub state: &'static str,
    /// DATA chunks sent, retransmissions included.
    pub chunks: u64,
    /// Bytes of chunks acknowledged.
    pub delivered: u64,
    /// The congestion window, bytes.
    pub cwnd: u64,
    /// The slow-start threshold, bytes; `None`: none.
    pub ssthresh: Option<u64>,
    /// Smoothed round-trip time, seconds.
    pub srtt: Option<f64>,
    /// Retransmission timeout, seconds.
    pub rto: f64,
    /// Copies sent on this path of chunks in flight on another path.
    pub reinjected: u64,
    /// Seconds during which new data waited because the peer's window or the send buffer was full, while this path
    /// carried the lowest TSN not acknowledged. The sum over all paths is `blocked.peer_window` +
    /// `blocked.send_buffer`.
    pub blocks: f64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Heartbeats of the sender; `None` with TCP.
    pub heartbeats: Option<HeartbeatCounts>,
    /// Tail loss probes sent here; absent if none was.
    #[serde(skip_serializing_if = "is_zero")]
    pub tail_probes: u64,
    /// The mean of the retransmission timeout over the life of the path, seconds; `None` with TCP.
    pub mean_rto: Option<f64>,
}

/// Heartbeats of a path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct HeartbeatCounts {
    /// HEARTBEATs sent, without the probes of the path MTU.
    pub sent: u64,
    /// HEARTBEATs answered.
    pub answered: u64,
}

/// Cross traffic.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct TrafficResult {
    /// Its name.
    pub name: String,
    /// Packets that its sources sent.
    pub packets: u64,
    /// Bytes of these, IP headers included.
    pub bytes: u64,
    /// Packets dropped by links and radios.
    pub dropped: u64,
    /// What the sources offered in each direction, bit/s with IP headers: from the start of the first source to the end
    /// of the run.
    pub load: f64,
    /// The Hurst parameter of the traffic offered: 0.5 without long-range dependence, up to 1 for self-similar traffic;
    /// `None` if the run is too short for an estimate (under 400 mean on and off times) or the rate is constant.
    pub hurst: Option<f64>,
}

/// One direction of a link.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct LinkResult {
    /// The link's name.
    pub name: String,
    /// "a>b".
    pub direction: String,
    /// Packets offered.
    pub packets: u64,
    /// Bytes delivered at the far end, IP headers included.
    pub bytes: u64,
    /// Packets dropped, for any reason.
    pub dropped: u64,
    /// Packets dropped, by cause.
    pub drops: Drops,
    /// The most packets that were ever in the queue, the one being sent included.
    pub queue_max: u64,
    /// The sum of the throughputs of the flows whose data it carries, in per cent of its rate, or of the mean of a rate
    /// that changes (eq. 3 of the paper named at [`RunResult::fairness`]). More than 100 if the flows are not all
    /// active at the same time: each throughput counts until its flow is complete.
    pub utilisation: f64,
    /// Results within the scenario's `measure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredLink>,
}

/// Results of a link direction within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredLink {
    /// Packets offered.
    pub packets: u64,
    /// Bytes delivered at the far end, IP headers included.
    pub bytes: u64,
    /// Packets dropped, for any reason.
    pub dropped: u64,
    /// The utilisation, as of the whole run.
    pub utilisation: f64,
}

/// Packets dropped, by cause.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Drops {
    /// The queue was full, or its management dropped them.
    pub queue: u64,
    /// The link lost them.
    pub loss: u64,
    /// The link was down.
    pub down: u64,
    /// They were larger than the MTU, which a `[[change]]` had lowered.
    #[serde(skip_serializing_if = "is_zero")]
    pub size: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
