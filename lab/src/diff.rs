//! Compares two runs: finds the first packet and the first event that differ, and the settings that cause the
//! difference.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Policies, Reason, Time};
use anabranch_sim::scenario::units::{DURATION, RATE, SIZE};
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::trace::{Contents, Detail, Names, Observer, PacketView, Record, Side};
use anabranch_sim::{Progress, RunError, RunOptions, words};
use serde::Serialize;
use serde_json::Value;

/// The number of steps that a run hands to the comparison at once, and of such batches that may wait.
const BATCH: usize = 512;
const WAITING: usize = 8;

/// An event of a run, in words that do not depend on first TSNs and tags.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Step {
    /// The time in nanoseconds.
    #[serde(skip)]
    pub nanos: u64,
    /// The time in seconds.
    pub at: f64,
    /// The event.
    pub what: String,
    /// Whether the event is the sending of a packet.
    #[serde(skip)]
    packet: bool,
}

/// The point at which two runs begin to differ.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parting {
    /// The first event that differs, in each run; `None` if that run has ended.
    pub event: [Option<Step>; 2],
    /// The number of the first packet that differs, from 1 over both ends of all flows; `None`: all packets are the
    /// same and only events differ.
    pub packet: Option<u64>,
    /// That packet, in each run.
    pub packets: [Option<Step>; 2],
}

/// Runs both scenarios and compares them step by step. `None`: the runs are the same. Stops soon after the first
/// difference.
pub fn part(a: &Scenario, b: &Scenario) -> Result<Option<Parting>, RunError> {
    std::thread::scope(|scope| {
        let (tell_a, hear_a) = sync_channel(WAITING);
        let (tell_b, hear_b) = sync_channel(WAITING);
        let first = scope.spawn(move || tell(a, tell_a));
        let second = scope.spawn(move || tell(b, tell_b));
        let parting = compare(Steps::new(hear_a), Steps::new(hear_b));
        for run in [first, second] {
            match run.join().expect("a run does not panic") {
                // The comparison ended before the run.
                Ok(()) | Err(RunError::Interrupted { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(parting)
    })
}

fn compare(mut a: Steps, mut b: Steps) -> Option<Parting> {
    let mut packets = 0;
    let (first_a, first_b) = loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (Some(a), Some(b)) if a == b => packets += u64::from(a.packet),
            different => break different,
        }
    };
    let mut rest_a = first_a.clone().into_iter().chain(a).filter(|step| step.packet);
    let mut rest_b = first_b.clone().into_iter().chain(b).filter(|step| step.packet);
    let event = [first_a, first_b];
    loop {
        packets += 1;
        match (rest_a.next(), rest_b.next()) {
            (None, None) => return Some(Parting { event, packet: None, packets: [None, None] }),
            (Some(a), Some(b)) if a == b => {}
            (a, b) => return Some(Parting { event, packet: Some(packets), packets: [a, b] }),
        }
    }
}

/// Runs a scenario and sends every step until the receiver is gone.
fn tell(scenario: &Scenario, tell: SyncSender<Vec<Step>>) -> Result<(), RunError> {
    let mut teller =
        Teller { names: Names::default(), first: BTreeMap::new(), batch: Vec::new(), tell, alone: false };
    let alone = std::cell::Cell::new(false);
    let mut watch =
        |_: Progress| if alone.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let mut observer = Watched { teller: &mut teller, alone: &alone };
    let options =
        RunOptions { observer: Some(&mut observer), progress: Some(&mut watch), ..RunOptions::default() };
    let ran = anabranch_sim::run(scenario, options).map(drop);
    teller.flush();
    ran
}

/// Ends the run when the receiver is gone.
struct Watched<'a> {
    teller: &'a mut Teller,
    alone: &'a std::cell::Cell<bool>,
}

impl Observer for Watched<'_> {
    fn begin(&mut self, names: &Names) {
        self.teller.names = names.clone();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if self.teller.alone {
            return self.alone.set(true);
        }
        self.teller.record(at, record);
    }
}

/// Describes records in words.
struct Teller {
    names: Names,
    /// The first TSN of each end of each flow.
    first: BTreeMap<(usize, bool), u32>,
    batch: Vec<Step>,
    tell: SyncSender<Vec<Step>>,
    alone: bool,
}

impl Teller {
    fn flush(&mut self) {
        self.alone |= self.tell.send(std::mem::take(&mut self.batch)).is_err();
    }

    fn record(&mut self, at: Time, record: &Record<'_>) {
        let packet = matches!(record, Record::Sent { .. });
        let Some(what) = self.words(record) else { return };
        self.batch.push(Step { nanos: at.as_nanos(), at: at.as_nanos() as f64 / 1e9, what, packet });
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    fn words(&mut self, record: &Record<'_>) -> Option<String> {
        match record {
            Record::Sent { flow, side, path, reason, packet } => {
                let what = self.packet(*flow, *side, packet);
                let (flow, because) = (&self.names.flows[*flow], because(*reason, packet));
                let end = if *side == Side::Client { "client" } else { "server" };
                let path = path.map(|path| format!(", path {path}")).unwrap_or_default();
                Some(format!("flow {flow}, {end}{path}: {what}{because}"))
            }
            Record::Dropped { link, flow, cause, packet, .. } => {
                let side = packet.origin.map_or(Side::Client, |origin| origin.side);
                let what = self.packet(*flow, side, packet);
                let (name, direction) = self.names.links.iter().chain(&self.names.hops).nth(*link)?;
                let cause = words::drop_cause(*cause, false);
                Some(format!(
                    "{name} {direction} drops ({cause}) of flow {}: {what}",
                    self.names.flows[*flow]
                ))
            }
            Record::Delivered { link, flow, packet } => {
                let side = packet.origin.map_or(Side::Client, |origin| origin.side);
                let what = self.packet(*flow, side, packet);
                let (name, direction) = self.names.links.iter().chain(&self.names.hops).nth(*link)?;
                Some(format!("{name} {direction} delivers of flow {}: {what}", self.names.flows[*flow]))
            }
            Record::Detail { flow, side: Side::Client, path, detail } => {
                let flow = &self.names.flows[*flow];
                let path = path.map(|path| format!(", path {path}")).unwrap_or_default();
                Some(format!("flow {flow}{path}: {}", note(detail)?))
            }
            _ => None,
        }
    }

    /// The contents of a packet. TSNs are counted from the first, and values that depend on the seed alone are left
    /// out.
    fn packet(&mut self, flow: usize, side: Side, packet: &PacketView<'_>) -> String {
        let sctp = match packet.contents {
            Contents::Sctp(sctp) => sctp,
            Contents::Tcp(tcp) => {
                return format!(
                    "bytes from {}, {} long ({} bytes)",
                    tcp.offset, tcp.segment.length, packet.size
                );
            }
            Contents::Datagram(_) => return format!("datagram ({} bytes)", packet.size),
            Contents::Raw(_) => return format!("IP packet of a program ({} bytes)", packet.size),
            Contents::Foreign(_) => return format!("packet of a foreign transport ({} bytes)", packet.size),
        };
        let client = side == Side::Client;
        if let Some(first) = packet.tsns().next() {
            self.first.entry((flow, client)).or_insert(first.0);
        }
        let own = self.first.get(&(flow, client)).copied().unwrap_or_default();
        let peer = self.first.get(&(flow, !client)).copied().unwrap_or_default();
        let chunks = sctp.chunks.iter().map(|chunk| shown(chunk, own, peer));
        format!("{} ({} bytes)", chunks.collect::<Vec<_>>().join("; "), packet.size)
    }
}

/// A chunk; its own TSNs and those of the peer are counted from 1.
fn shown(chunk: &Chunk, own: u32, peer: u32) -> String {
    let number = |tsn: u32, first: u32| tsn.wrapping_sub(first).wrapping_add(1) as i32;
    match chunk {
        Chunk::Data(data) => format!("DATA {}, {} long", number(data.tsn.0, own), data.payload.len()),
        Chunk::IData(data) => format!("I-DATA {}, {} long", number(data.tsn.0, own), data.payload.len()),
        Chunk::Sack(sack) => {
            let gaps = sack.gaps.iter().map(|gap| format!(" {}-{}", gap.start, gap.end)).collect::<String>();
            let gaps = if gaps.is_empty() { gaps } else { format!(", gaps at{gaps}") };
            format!("SACK {}, a_rwnd {}{gaps}", number(sack.cumulative.0, peer), sack.a_rwnd)
        }
        other => anabranch_sim::capture::chunk_name(other),
    }
}

fn because(reason: Reason, packet: &PacketView<'_>) -> String {
    if packet.sctp().is_none() {
        return String::new();
    }
    let (purpose, limit) = (words::purpose(reason.purpose), words::limit(reason.limit));
    let (document, section) = (reason.purpose.document(), reason.purpose.section());
    format!(", {purpose}, {limit}, {document} section {section}")
}

/// A note of the sender, without the numbers that its packets show.
fn note(detail: &Detail) -> Option<String> {
    Some(match detail {
        Detail::Window { cwnd, ssthresh, flight, marked, .. } => {
            let ssthresh = if *ssthresh == u64::MAX { "none".to_owned() } else { ssthresh.to_string() };
            format!("cwnd {cwnd}, ssthresh {ssthresh}, in flight {flight}, marked {marked} bytes")
        }
        Detail::Rto { rto, .. } => format!("RTO {} s", rto.as_secs_f64()),
        Detail::PeerWindow { bytes } => format!("peer's window {bytes} bytes"),
        Detail::Marked { why, .. } => format!("a chunk is marked for {}", words::data(*why)),
        Detail::Route { reason, .. } => format!("the route says: {reason}"),
        Detail::Timeout => "T3-rtx expires".to_owned(),
        Detail::Blocked(by) => words::blocked(*by).to_owned(),
        Detail::State(state) => format!("the path is {}", words::path_state(*state)),
        Detail::Sent { .. } | Detail::Acked { .. } | Detail::Timer { .. } | Detail::Received { .. } => {
            return None;
        }
    })
}

/// Sends the steps of a run as they happen.
struct Steps {
    hear: Receiver<Vec<Step>>,
    batch: std::vec::IntoIter<Step>,
}

impl Steps {
    fn new(hear: Receiver<Vec<Step>>) -> Self {
        Steps { hear, batch: Vec::new().into_iter() }
    }
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.batch.next() {
                return Some(step);
            }
            self.batch = self.hear.recv().ok()?.into_iter();
        }
    }
}

/// A key in which two scenarios differ.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Setting {
    /// The key in the spelling of `--set`.
    pub key: String,
    /// Its values, quantities in units that fit; `None` if it is not given.
    pub values: [Option<Value>; 2],
    /// Whether the first run was repeated with only this key changed to the second run's value.
    pub tried: bool,
    /// The packet at which that run differs from the first; `None`: it does not differ.
    pub alone: Option<u64>,
}

/// The largest number of keys that are tried alone.
const TRIED: usize = 64;

/// The keys in which two scenarios differ, each with the packet at which the key alone makes the first run differ.
pub fn settings(a: &Scenario, b: &Scenario, policies: &Policies) -> Vec<Setting> {
    let (Some(first), Some(second)) = (document(a, policies), document(b, policies)) else {
        return Vec::new();
    };
    let (mut keys, mut others) = (BTreeMap::new(), BTreeMap::new());
    flatten(String::new(), &first.json(), &mut keys);
    flatten(String::new(), &second.json(), &mut others);
    let all: std::collections::BTreeSet<&String> = keys.keys().chain(others.keys()).collect();
    let different = all.into_iter().filter(|key| keys.get(*key) != others.get(*key));
    let setting = |(i, key): (usize, &String)| {
        let values = [keys.get(key).cloned(), others.get(key).cloned()];
        let change = values[1].as_ref().filter(|_| i < TRIED);
        let changed = change.and_then(|value| changed(a, &first, key, value, policies));
        let alone = changed.as_ref().and_then(|changed| part(a, changed).ok()??.packet);
        let values = values.map(|value| value.map(readable));
        Setting { key: key.clone(), values, tried: changed.is_some(), alone }
    };
    different.enumerate().map(setting).collect()
}

/// The canonical form writes quantities in their smallest unit: "60000000000 ns" instead of "60 s".
fn readable(value: Value) -> Value {
    match value {
        Value::String(text) => {
            let dimension =
                [&DURATION, &RATE, &SIZE].into_iter().find_map(|kind| Some((kind, kind.read(&text).ok()?)));
            dimension.map_or(text, |(kind, quantity)| kind.written(quantity)).into()
        }
        Value::Array(values) => values.into_iter().map(readable).collect(),
        other => other,
    }
}

/// The run with only this key changed, if it is possible.
fn changed(
    run: &Scenario,
    document: &Document,
    key: &str,
    value: &Value,
    policies: &Policies,
) -> Option<Scenario> {
    let mut document = document.clone();
    document.set("the other run", &format!("{key}={value}")).ok()?;
    let changed = document.scenario(&run.name, policies).ok()?;
    anabranch_sim::check(&changed, policies).is_ok().then_some(changed)
}

fn document(scenario: &Scenario, policies: &Policies) -> Option<Document> {
    Document::parse("canonical", &scenario.to_toml(policies).ok()?).ok()
}

/// Every value by its key. Tables in an array are addressed by their name, or by their number from 1.
fn flatten(prefix: String, value: &Value, into: &mut BTreeMap<String, Value>) {
    let below = |step: &str| if prefix.is_empty() { step.to_owned() } else { format!("{prefix}.{step}") };
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| flatten(below(key), value, into));
        }
        Value::Array(tables) if tables.first().is_some_and(Value::is_object) => {
            for (i, table) in tables.iter().enumerate() {
                let name = table["name"].as_str().map_or_else(|| (i + 1).to_string(), str::to_owned);
                flatten(below(&name), table, into);
            }
        }
        other => drop(into.insert(prefix, other.clone())),
    }
}
