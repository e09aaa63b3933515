//! What a run has to say, in SI units; the names are those of `--json`.

use std::collections::BTreeMap;

use serde::Serialize;

/// The results of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The root of its chance.
    pub seed: u64,
    /// The scenario's era.
    pub era: String,
    /// What `--vary` changed: key and value.
    pub varied: BTreeMap<String, serde_json::Value>,
    /// Virtual seconds from the beginning to the end of the run.
    pub ended: f64,
    /// The flows, by name.
    pub flows: Vec<FlowResult>,
    /// The link directions, by name, then direction.
    pub links: Vec<LinkResult>,
    /// Cross traffic, by name.
    pub traffic: Vec<TrafficResult>,
    /// The radios, by channel, then node; within the scenario's `measure` if it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stations: Vec<StationResult>,
    /// How equal the flows' throughputs are: 1 if all are, one over their number if one has everything (Jain; eq. 1 of
    /// "Performance and Fairness of SCTP and TCP in satellite networks"). `None` if there is no throughput.
    pub fairness: Option<f64>,
    /// By how many per cent the mean throughput of the SCTP flows is higher than that of the TCP flows (eq. 2 there);
    /// `None` without both.
    pub increase: Option<f64>,
    /// The same within the scenario's `measure`, if it has one.
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
    /// RTS.
    pub rts: Exchanges,
    /// Frames of data.
    pub data: Exchanges,
    /// Its RTS and data that met another frame at their addressee.
    pub collisions: Collisions,
    /// Packets that it did not pass on.
    pub drops: StationDrops,
    /// What was on the air at its place, its own frames included, seconds.
    pub airtime: Airtime,
}

/// Frames that ask for an answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Exchanges {
    /// Sent, repetitions included.
    pub sent: u64,
    /// Answered: RTS by CTS, data by ACK.
    pub answered: u64,
}

/// Frames that met another, by its sender.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Collisions {
    /// Spoiled by a station out of this one's carrier sense.
    pub hidden: u64,
    /// Spoiled by a station within it, that had not heard this one yet, or by the addressee's own frame.
    pub slot: u64,
    /// Read all the same: the other was too weak.
    pub capture: u64,
}

/// Packets that a radio dropped, by cause.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StationDrops {
    /// The queue was full.
    pub queue: u64,
    /// No CTS came to the last RTS.
    pub rts_retries: u64,
    /// No ACK came to the last frame of data.
    pub data_retries: u64,
}

/// Seconds, by what was on the air.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Airtime {
    /// One frame of data.
    pub data: f64,
    /// One RTS, CTS or ACK.
    pub control: f64,
    /// Several frames at once.
    pub collision: f64,
    /// None that can be sensed.
    pub idle: f64,
}

/// What a run is within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredRun {
    /// Virtual seconds from the beginning of the run at which it begins and ends.
    pub between: [f64; 2],
    /// As of the whole run.
    pub fairness: Option<f64>,
    /// As of the whole run.
    pub increase: Option<f64>,
}

/// One flow. What its transport does not have is zero or empty.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// "sctp", "tcp" or "udp".
    pub protocol: &'static str,
    /// Seconds from its start to the reading of the first user data.
    pub first_data: Option<f64>,
    /// Seconds from its start to the reading of its last byte; `None` while unfinished.
    pub completion: Option<f64>,
    /// Bytes of user data read by the receiving application.
    pub delivered: u64,
    /// User data delivered a second, bit/s: until completion, or until the end of the run.
    pub goodput: f64,
    /// Packets with user data that arrived a second, in bit/s with IP headers: from its start until completion, or until
    /// the end of the run.
    pub throughput: f64,
    /// Packets sent by its sender, retransmissions included.
    pub packets: u64,
    /// DATA chunks sent again, by kind and path.
    pub retransmissions: Retransmissions,
    /// Seconds with user data waiting and nothing sendable, by cause.
    pub blocked: Blocked,
    /// T3-rtx expirations at its sender.
    pub timeouts: u64,
    /// Window cuts by Fast Retransmit at its sender.
    pub fast_recoveries: u64,
    /// Window probes sent.
    pub probes: u64,
    /// DATA chunks that its receiver got again.
    pub duplicates: u64,
    /// How it ended: "closed" (UDP: everything arrived or was dropped), "lost", or "open" at the end of the run.
    pub outcome: &'static str,
    /// Its sender's paths.
    pub paths: Vec<PathResult>,
    /// Its packets on the link directions of its routes, those of both ends.
    pub links: Vec<FlowLink>,
    /// Bytes of user data that the receiving application has not read at the end of the run; `None` of a flow that is
    /// complete, or has no end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// How long its messages took; `None` of a flow that sends as fast as it can, and of messages that are unordered or can
    /// be given up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// What became of it when a link on its routes went down, in order of time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageResult>,
    /// The same within the scenario's `measure`, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredFlow>,
}

/// Seconds from the moment at which a message is there to be sent until the receiving application has read it.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Latency {
    /// Messages read.
    pub messages: u64,
    /// The mean.
    pub mean: f64,
    /// Half of the messages took no longer: the least latency of which that holds, as of those below.
    pub p50: f64,
    /// 95 % took no longer.
    pub p95: f64,
    /// 99 % took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// What became of a flow when a link on its routes went down.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct OutageResult {
    /// The link.
    pub name: String,
    /// When it went down, seconds from the beginning of the run.
    pub down: f64,
    /// When it worked again; `None`: never.
    pub up: Option<f64>,
    /// Seconds after `down` until the sender took its paths over the link for potentially failed or inactive; `None`: it did
    /// not, or the transport has no such state.
    pub detected: Option<f64>,
    /// Seconds after `down` until it first sent new data on a route without the link.
    pub new_data: Option<f64>,
    /// Seconds after `down` until the receiving application first read something after data had been sent on a route
    /// that worked.
    pub delivered: Option<f64>,
    /// Seconds after `up` until it first sent new data over the link again.
    pub returned: Option<f64>,
}

/// A flow on a link direction.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct FlowLink {
    /// The link's name.
    pub name: String,
    /// "a>b".
    pub direction: String,
    /// Its packets that were offered.
    pub packets: u64,
    /// Its packets that were dropped, of all causes.
    pub dropped: u64,
}

/// What a flow is within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredFlow {
    /// Bytes of user data read by the receiving application.
    pub delivered: u64,
    /// User data delivered a second, bit/s.
    pub goodput: f64,
    /// Packets with user data that arrived a second, in bit/s with IP headers.
    pub throughput: f64,
    /// Its sender's paths.
    pub paths: Vec<MeasuredPath>,
    /// Its packets on the link directions of its routes.
    pub links: Vec<FlowLink>,
}

/// What a path is within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredPath {
    /// Its name.
    pub name: String,
    /// The congestion window's mean over time, bytes; `None` if the path was never used.
    pub mean_cwnd: Option<f64>,
}

/// Chunks retransmitted, by path name.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Retransmissions {
    /// After missing reports.
    pub fast: BTreeMap<String, u64>,
    /// After a timeout.
    pub timeout: BTreeMap<String, u64>,
}

/// Seconds blocked, by the first cause that holds.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Blocked {
    /// By the peer's window.
    pub peer_window: f64,
    /// By a full send buffer: all that it holds is sent.
    pub send_buffer: f64,
    /// By the congestion window of every usable path.
    pub cwnd: f64,
    /// By neither: marked chunks went first, an event allowed no more, or a path was awaited.
    pub turn: f64,
}

/// One path of a flow's sender, at the end.
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
    /// Copies sent here of chunks in flight on another path.
    pub reinjected: u64,
    /// Seconds in which new data waited for the peer's window or a full send buffer while the lowest TSN not
    /// acknowledged was last sent on this path. Over all paths they are `blocked.peer_window` + `blocked.send_buffer`.
    pub blocks: f64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Heartbeats of the sender; `None` with TCP, which has none.
    pub heartbeats: Option<HeartbeatCounts>,
    /// Tail loss probes sent here; absent if none was.
    #[serde(skip_serializing_if = "is_zero")]
    pub tail_probes: u64,
    /// The mean of the retransmission timeout over the time of the path, seconds; `None` with TCP.
    pub mean_rto: Option<f64>,
}

/// Heartbeats of a path.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct HeartbeatCounts {
    /// How many were sent, probes of the MTU not among them.
    pub sent: u64,
    /// How many of them were answered.
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
    /// Packets dropped on the way.
    pub dropped: u64,
    /// What was offered in each direction, bit/s with IP headers: from the start of the first source to the end.
    pub load: f64,
    /// The Hurst parameter of what was offered: 0.5 without long memory, up to 1 for self-similar traffic; `None` if
    /// the run is too short to tell (under 400 mean on and off times) or the rate is constant.
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
    /// Packets dropped, of all causes.
    pub dropped: u64,
    /// The same by cause.
    pub drops: Drops,
    /// Most packets ever in the queue, the one being sent included.
    pub queue_max: u64,
    /// The throughputs of the flows whose data it carries, in per cent of its rate (eq. 3 of the paper named at
    /// [`RunResult::fairness`]); of a rate that changes, its mean.
    pub utilisation: f64,
    /// The same within the scenario's `measure`, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<MeasuredLink>,
}

/// What a link direction is within the scenario's `measure`.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct MeasuredLink {
    /// Packets offered.
    pub packets: u64,
    /// Bytes delivered at the far end, IP headers included.
    pub bytes: u64,
    /// Packets dropped, of all causes.
    pub dropped: u64,
    /// As of the whole run.
    pub utilisation: f64,
}

/// Packets dropped, by cause.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Drops {
    /// The queue was full.
    pub queue: u64,
    /// The link lost them.
    pub loss: u64,
    /// The link was down.
    pub down: u64,
    /// They were larger than the MTU to which the link has changed.
    #[serde(skip_serializing_if = "is_zero")]
    pub size: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
