//! A scenario as canonical TOML, and its content key.
//!
//! Two scenarios that give the same run have the same canonical text: every parameter is written in its smallest unit,
//! links and flows are sorted by name, and changes by time. The text is read again and compared before it is returned,
//! so it describes the scenario exactly.

mod multipath;
mod radio;
mod traced;

use anabranch_proto::{Config, Mechanisms, Pairs, Policies, PolicySpec, Reliability, Rules, Setting};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::transport::tcp::{Halving, RtoBound, Variant};

use super::{
    Amount, Change, Codel, CrossTraffic, Document, Flow, Link, Loss, Phase, Queue, Red, Scenario, Sctp,
    Start, Tcp, Times, Traffic, Transport, WindowSize,
};
use radio::{channel, nodes, route};

/// A scenario that no document can express: an invalid name, or a value that no key accepts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this scenario cannot be written as TOML: {0}")]
pub struct Unwritable(String);

impl Scenario {
    /// The same scenario in canonical order.
    #[must_use]
    pub fn canonical(&self) -> Scenario {
        let mut scenario = self.clone();
        scenario.links.sort_by(|a, b| a.name.cmp(&b.name));
        scenario.flows.sort_by(|a, b| a.name.cmp(&b.name));
        scenario.traffic.sort_by(|a, b| a.name.cmp(&b.name));
        scenario.changes.sort_by(|a, b| (a.at, &a.link).cmp(&(b.at, &b.link)));
        scenario.channels.sort_by(|a, b| a.name.cmp(&b.name));
        scenario.stations.sort_by(|a, b| a.node.cmp(&b.node));
        scenario.routes.sort_by(|a, b| (&a.channel, &a.through).cmp(&(&b.channel, &b.through)));
        scenario
    }

    /// The scenario as canonical TOML, which [`Document::scenario`] reads as [`Scenario::canonical`].
    pub fn to_toml(&self, policies: &Policies) -> Result<String, Unwritable> {
        let canonical = self.canonical();
        let text = toml::to_string(&table(&canonical)).map_err(|error| Unwritable(error.to_string()))?;
        let read = Document::parse("canonical", &text).and_then(|read| read.scenario(&self.name, policies));
        match read {
            Ok(read) if read == canonical => Ok(text),
            Ok(_) => Err(Unwritable("a value differs after it was written and read".to_owned())),
            Err(error) => Err(Unwritable(error.to_string())),
        }
    }

    /// The content key of a run of this scenario with its seed, by this `version` of the program: 64 hexadecimal
    /// digits, the same on every machine. The scenario's name is not part of the key.
    pub fn content_key(&self, version: &str, policies: &Policies) -> Result<String, Unwritable> {
        let text = self.to_toml(policies)?;
        let digest = Sha256::digest(format!("anabranch {version}\n{text}"));
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn table(scenario: &Scenario) -> Table {
    let mut top = Table::new();
    put(&mut top, "era", scenario.era.as_str());
    // TOML has signed numbers: seeds above them are written as a document cannot read them, and refused.
    put(
        &mut top,
        "seed",
        i64::try_from(scenario.seed).map_or(Value::from(scenario.seed.to_string()), Value::from),
    );
    put(&mut top, "wire", scenario.wire);
    if let Some(stop) = scenario.stop {
        put(&mut top, "stop", time(stop));
    }
    put(&mut top, "ip_header", size(scenario.ip_header));
    if let Some(measure) = scenario.measure {
        put(&mut top, "measure", pair(&measure, |at| time(*at).into()));
    }
    let lists = [
        ("flow", tables(&scenario.flows, flow)),
        ("traffic", tables(&scenario.traffic, traffic)),
        ("link", tables(&scenario.links, link)),
        ("change", tables(&scenario.changes, change)),
        ("channel", tables(&scenario.channels, channel)),
        ("node", nodes(scenario)),
        ("route", tables(&scenario.routes, route)),
    ];
    let given = lists.into_iter().filter(|(_, list)| list.as_array().is_some_and(|list| !list.is_empty()));
    given.for_each(|(key, list)| put(&mut top, key, list));
    top
}

fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    table.insert(key.to_owned(), value.into());
}

fn tables<T>(items: &[T], table: fn(&T) -> Table) -> Value {
    Value::Array(items.iter().map(|item| Value::Table(table(item))).collect())
}

fn time(duration: std::time::Duration) -> String {
    format!("{} ns", duration.as_nanos())
}

fn size(bytes: impl Into<u64>) -> String {
    format!("{} B", bytes.into())
}

fn rate(bits: u64) -> String {
    format!("{bits} bit/s")
}

/// A share as a percentage. The digits are those of the shortest decimal that reads back as the same number, with the
/// point two places on.
fn percent(share: f64) -> String {
    let text = share.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = format!("{fraction:0<2}");
    let (moved, rest) = fraction.split_at(2);
    let whole = format!("{whole}{moved}");
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    if rest.is_empty() { format!("{whole} %") } else { format!("{whole}.{rest} %") }
}

/// One value for each direction.
fn pair<T>(values: &[T; 2], write: impl Fn(&T) -> Value) -> Value {
    Value::Array(values.iter().map(write).collect())
}

fn link(link: &Link) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", link.name.as_str());
    put(&mut table, "between", link.between.to_vec());
    let rates =
        [0, 1].map(|i| link.traced[i].as_ref().map_or_else(|| rate(link.rate[i]).into(), traced::traced));
    put(&mut table, "rate", Value::Array(rates.into()));
    match &link.random_delay {
        Some(range) => put(&mut table, "delay", uniform(range)),
        None => put(&mut table, "delay", pair(&link.delay, |delay| time(*delay).into())),
    }
    put(&mut table, "jitter", pair(&link.jitter, |jitter| time(*jitter).into()));
    put(&mut table, "reorder", link.reorder);
    put(&mut table, "queue", pair(&link.queue, queue));
    put(&mut table, "mark", pair(&link.mark, mark));
    put(&mut table, "loss", pair(&link.loss, loss));
    put(&mut table, "mtu", size(link.mtu));
    put(&mut table, "up", link.up);
    table
}

fn uniform(range: &[std::time::Duration; 2]) -> Table {
    Table::from_iter([("uniform".to_owned(), pair(range, |end| time(*end).into()))])
}

fn times(times: &Times) -> Value {
    let mut table = Table::new();
    match *times {
        Times::Fixed(fixed) => return time(fixed).into(),
        Times::Exponential(mean) => put(&mut table, "exponential", time(mean)),
        Times::Pareto { mean, shape } => {
            put(&mut table, "pareto", time(mean));
            put(&mut table, "shape", shape);
        }
    }
    table.into()
}

fn traffic(traffic: &CrossTraffic) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", traffic.name.as_str());
    let pairs = traffic.pairs.iter().map(|nodes| pair(nodes, |node| node.as_str().into()));
    put(&mut table, "pairs", Value::Array(pairs.collect()));
    put(&mut table, "both_ways", traffic.both_ways);
    put(&mut table, "sources", i64::from(traffic.sources));
    put(&mut table, "load", rate(traffic.load));
    let sizes = traffic.sizes.iter().map(|(bytes, share)| (size(*bytes), i64::from(*share).into()));
    put(&mut table, "sizes", Table::from_iter(sizes));
    // Sources that are always on have no times.
    if traffic.on.mean() + traffic.off.mean() > std::time::Duration::ZERO {
        put(&mut table, "on", times(&traffic.on));
        put(&mut table, "off", times(&traffic.off));
    }
    put(&mut table, "spacing", spacing(traffic.poisson));
    put(&mut table, "start", start(&traffic.start));
    table
}

fn start(start: &Start) -> Value {
    match start {
        Start::At(start) => time(*start).into(),
        Start::Uniform(range) => uniform(range).into(),
    }
}

fn spacing(poisson: bool) -> &'static str {
    if poisson { "poisson" } else { "even" }
}

fn change(change: &Change) -> Table {
    let mut table = Table::new();
    put(&mut table, "at", time(change.at));
    put(&mut table, "link", change.link.as_str());
    let Change { up, rate: rates, delay, loss: losses, queue: queues, mark: marks, jitter, mtu, .. } = change;
    let values = [
        ("up", up.map(Value::from)),
        ("rate", rates.map(|rates| pair(&rates, |bits| rate(*bits).into()))),
        ("delay", delay.map(|delay| pair(&delay, |delay| time(*delay).into()))),
        ("loss", losses.as_ref().map(|losses| pair(losses, loss))),
        ("queue", queues.map(|queues| pair(&queues, queue))),
        ("mark", marks.map(|marks| pair(&marks, mark))),
        ("jitter", jitter.map(|jitter| pair(&jitter, |jitter| time(*jitter).into()))),
        ("mtu", mtu.map(|bytes| size(bytes).into())),
    ];
    values
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .for_each(|(key, value)| put(&mut table, key, value));
    table
}

fn amount(amount: Amount) -> String {
    match amount {
        Amount::Packets(packets) => format!("{packets} packets"),
        Amount::Bytes(bytes) => size(bytes),
    }
}

fn queue(queue: &Queue) -> Value {
    let mut table = Table::new();
    let kind = match queue {
        Queue::Packets(_) | Queue::Bytes(_) => return amount(queue.limit()).into(),
        Queue::BandwidthDelay(thousandths) => {
            return format!("{}.{:03} bdp", thousandths / 1000, thousandths % 1000).into();
        }
        Queue::Red(Red { limit, min, max, probability, weight }) => {
            put(&mut table, "limit", amount(*limit));
            put(&mut table, "min", amount(*min));
            put(&mut table, "max", amount(*max));
            put(&mut table, "probability", percent(*probability));
            put(&mut table, "weight", *weight);
            "red"
        }
        Queue::Codel(Codel { limit, target, interval }) => {
            put(&mut table, "limit", amount(*limit));
            put(&mut table, "target", time(*target));
            put(&mut table, "interval", time(*interval));
            "codel"
        }
    };
    Table::from_iter([(kind.to_owned(), Value::Table(table))]).into()
}

fn mark(mark: &Option<u64>) -> Value {
    mark.map_or("off".into(), |bytes| size(bytes).into())
}

fn loss(loss: &Loss) -> Value {
    let numbers = |numbers: &[u64]| {
        Value::Array(numbers.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX).into()).collect())
    };
    let entries: Vec<(&str, Value)> = match loss {
        Loss::None => return "0 %".into(),
        Loss::Random(probability) => return percent(*probability).into(),
        Loss::Listed(packets) => vec![("packets", numbers(packets))],
        Loss::Bits(wrong) => vec![("bits", (*wrong).into())],
        Loss::Every(n) => vec![("every", i64::try_from(*n).unwrap_or(i64::MAX).into())],
        Loss::Gilbert { good, bad, to_bad, to_good } => {
            let shares = [("good", good), ("bad", bad), ("to_bad", to_bad), ("to_good", to_good)];
            shares.map(|(key, share)| (key, percent(*share).into())).into()
        }
        Loss::Data { flow, numbers: data } => vec![("flow", flow.as_str().into()), ("data", numbers(data))],
    };
    Table::from_iter(entries.into_iter().map(|(key, value)| (key.to_owned(), value))).into()
}

fn flow(flow: &Flow) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", flow.name.as_str());
    match &flow.transport {
        Transport::Foreign(name) => {
            let mut protocol = Table::new();
            put(&mut protocol, "foreign", name.as_str());
            put(&mut table, "protocol", protocol);
        }
        transport => put(&mut table, "protocol", transport.protocol().name()),
    }
    put(&mut table, "from", flow.from.as_str());
    put(&mut table, "to", flow.to.as_str());
    match &flow.random_start {
        Some(range) => put(&mut table, "start", uniform(range)),
        None => put(&mut table, "start", time(flow.start)),
    }
    if let Some(bytes) = flow.traffic.amount() {
        put(&mut table, "send", size(bytes));
    }
    if let Traffic::Constant { rate: bits, .. }
    | Traffic::Poisson { rate: bits, .. }
    | Traffic::Bursts { rate: bits, .. } = flow.traffic
    {
        put(&mut table, "rate", rate(bits));
    }
    put(&mut table, "spacing", spacing(matches!(flow.traffic, Traffic::Poisson { .. })));
    if let Traffic::Bursts { times: [on, off], .. } = &flow.traffic {
        put(&mut table, "on", times(on));
        put(&mut table, "off", times(off));
    }
    if let Some(bytes) = flow.message_size {
        put(&mut table, "message_size", size(bytes));
    }
    if let Some(bits) = flow.read_rate {
        put(&mut table, "read", rate(bits));
    }
    if let Some(bytes) = flow.ip_header {
        put(&mut table, "ip_header", size(bytes));
    }
    match &flow.transport {
        Transport::Sctp(sctp) => association(&mut table, sctp),
        Transport::Tcp(tcp) => put(&mut table, "tcp", connection(tcp)),
        Transport::Mptcp(mptcp) => put(&mut table, "mptcp", multipath::connection(mptcp)),
        Transport::Datagram | Transport::Foreign(_) => {}
    }
    table
}

/// `[flow.tcp]`: the variant, and what differs from it.
fn connection(tcp: &Tcp) -> Table {
    let mut table = Table::new();
    let variant = Variant::NAMES.iter().find(|row| row.1 == tcp.variant).map_or("", |row| row.0);
    put(&mut table, "variant", variant);
    let window = |window: WindowSize| match window {
        WindowSize::Bytes(bytes) => size(bytes),
        WindowSize::Packets(packets) => format!("{packets} packets"),
    };
    let phase = |phase| match phase {
        Phase::At(at) => time(at),
        Phase::Random => "random".to_owned(),
    };
    let bound = |bound| if bound == RtoBound::Variation { "variation" } else { "timeout" };
    let halving = |halving| if halving == Halving::Whole { "whole" } else { "fraction" };
    let values = [
        ("segment_size", tcp.segment_size.map(|bytes| size(bytes).into())),
        ("receive_window", tcp.receive_window.map(|size| window(size).into())),
        ("initial_window", tcp.initial_window.map(|size| window(size).into())),
        ("initial_ssthresh", tcp.initial_ssthresh.map(|size| window(size).into())),
        ("ack_every", tcp.ack_every.map(|count| i64::from(count).into())),
        ("ack_delay", tcp.ack_delay.map(|delay| time(delay).into())),
        ("sack_blocks", tcp.sack_blocks.map(|count| i64::from(count).into())),
        ("limited_transmit", tcp.limited_transmit.map(Value::from)),
        ("halving", tcp.halving.map(|of| halving(of).into())),
        ("rto_initial", tcp.rto_initial.map(|rto| time(rto).into())),
        ("rto_min", tcp.rto_min.map(|rto| time(rto).into())),
        ("rto_min_bounds", tcp.rto_min_bounds.map(|of| bound(of).into())),
        ("rto_max", tcp.rto_max.map(|rto| time(rto).into())),
        ("rto_tick", tcp.rto_tick.map(|tick| time(tick).into())),
        ("rto_phase", tcp.rto_phase.map(|of| phase(of).into())),
        ("window", tcp.window.as_ref().map(policy)),
    ];
    values
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .for_each(|(key, value)| put(&mut table, key, value));
    table
}

/// Writes the keys that only SCTP flows have.
fn association(table: &mut Table, sctp: &Sctp) {
    put(table, "udp", sctp.udp);
    if sctp.stripe {
        put(table, "stripe", true);
    }
    if sctp.lossless_sacks {
        put(table, "lossless_sacks", true);
    }
    if let Some(messages) = sctp.stop_reading_after {
        put(table, "stop_reading_after", i64::try_from(messages).unwrap_or(i64::MAX));
    }
    put(table, "streams", i64::from(sctp.streams));
    put(table, "unordered", sctp.unordered);
    put(table, "immediate", sctp.immediate);
    let one = |key: &str, value: Value| Value::Table(Table::from_iter([(key.to_owned(), value)]));
    let reliability = match sctp.reliability {
        Reliability::Full => "full".into(),
        Reliability::Lifetime(ms) => one("lifetime", format!("{ms} ms").into()),
        Reliability::Retransmissions(n) => one("retransmissions", i64::from(n).into()),
        Reliability::Priority(n) => one("priority", i64::from(n).into()),
    };
    put(table, "reliability", reliability);
    let mut protocol = protocol(&sctp.config);
    if let Some(primary) = &sctp.primary {
        put(&mut protocol, "primary", primary.as_str());
    }
    put(&mut protocol, "pairs", if sctp.all_pairs { "all" } else { "one-per-peer" });
    put(table, "sctp", protocol);
}

fn policy(spec: &PolicySpec) -> Value {
    let settings = spec.settings.iter().map(|(key, value)| (key.clone(), setting(value)));
    Table::from_iter([("name".to_owned(), spec.name.as_str().into())].into_iter().chain(settings)).into()
}

/// A setting of a policy.
fn setting(value: &Setting) -> Value {
    match value {
        Setting::Text(text) => text.as_str().into(),
        Setting::Number(number) => (*number).into(),
        Setting::Duration(duration) => time(*duration).into(),
        Setting::Boolean(on) => (*on).into(),
        Setting::List(list) => Value::Array(list.iter().map(setting).collect()),
    }
}

/// `[flow.sctp]`: every parameter, every rule and every mechanism.
fn protocol(config: &Config) -> Table {
    debug_assert!(matches!(config.pairs, Pairs::All | Pairs::OnePerPeer));
    let mut table = Table::new();
    let policies = [
        ("new", &config.new_data),
        ("fast", &config.fast),
        ("timeout", &config.timeout),
        ("window", &config.window),
    ];
    policies.into_iter().for_each(|(key, spec)| put(&mut table, key, policy(spec)));
    durations(&mut table, config);
    numbers(&mut table, config);
    buffers(&mut table, config);
    put(&mut table, "heartbeat_jitter", config.heartbeat_jitter);
    put(&mut table, "mtu_discovery", config.mtu_discovery);
    put(&mut table, "rehome", config.rehome);
    extensions(&mut table, config);
    rules(&mut table, config);
    table
}

fn durations(table: &mut Table, config: &Config) {
    let times = [
        ("rto_initial", Some(config.rto_initial)),
        ("rto_min", Some(config.rto_min)),
        ("rto_max", Some(config.rto_max)),
        ("cookie_life", Some(config.cookie_life)),
        ("max_init_timeout", config.max_init_timeout),
        ("sack_delay", Some(config.sack_delay)),
    ];
    times
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .for_each(|(key, value)| put(table, key, time(value)));
    put(table, "heartbeat_interval", config.heartbeat_interval.map_or("off".to_owned(), time));
}

fn numbers(table: &mut Table, config: &Config) {
    let numbers = [
        ("max_burst", config.max_burst),
        ("association_max_retrans", config.association_max_retrans),
        ("path_max_retrans", config.path_max_retrans),
        ("max_init_retransmits", config.max_init_retransmits),
        ("heartbeat_max_burst", config.heartbeat_max_burst),
        ("sack_every", config.sack_every),
        ("outbound_streams", config.outbound_streams.into()),
        ("inbound_streams", config.inbound_streams.into()),
        ("first_ssn", config.first_ssn.into()),
    ];
    numbers.into_iter().for_each(|(key, value)| put(table, key, i64::from(value)));
    let optional = [
        ("pf_max_retrans", config.pf_max_retrans, "off"),
        ("pf_window", config.pf_window, "off"),
        ("primary_switchover_max_retrans", config.primary_switchover_max_retrans, "off"),
        ("shutdown_guard", config.shutdown_guard, "off"),
        ("first_tsn", config.first_tsn, "random"),
    ];
    for (key, value, none) in optional {
        put(table, key, value.map_or(Value::from(none), |value| i64::from(value).into()));
    }
}

fn buffers(table: &mut Table, config: &Config) {
    put(table, "receive_buffer", size(config.receive_buffer));
    if let Some(bytes) = config.send_buffer {
        put(table, "send_buffer", size(bytes));
    }
    if !config.max_cwnd.is_empty() {
        let sizes = config.max_cwnd.iter().map(|bytes| size(*bytes).into());
        put(table, "max_cwnd", Value::Array(sizes.collect()));
    }
    put(table, "initial_ssthresh", config.initial_ssthresh.map_or("none".to_owned(), size));
}

fn rules(table: &mut Table, config: &Config) {
    for (key, _) in Rules::CHOICES {
        put(table, key, config.rules.get(key).unwrap_or_default());
    }
    for (key, _) in Mechanisms::CHOICES {
        put(table, key, config.mechanisms.get(key).unwrap_or_default());
    }
    for key in Rules::NUMBERS {
        let number = config.rules.get(key).and_then(|text| text.parse::<i64>().ok());
        put(table, key, number.unwrap_or_default());
    }
}

fn extensions(table: &mut Table, config: &Config) {
    let on = &config.extensions;
    let switches = [
        ("partial_reliability", on.partial_reliability),
        ("reconfiguration", on.reconfiguration),
        ("authentication", on.authentication),
        ("dynamic_addresses", on.addresses),
        ("interleaving", on.interleaving),
        ("timestamps", on.timestamps),
        ("zero_checksum", on.zero_checksum),
        ("ecn", on.ecn),
        ("nr_sack", on.nr_sack),
    ];
    switches.into_iter().for_each(|(key, value)| put(table, key, value));
    let kinds = config.authenticated_chunks.iter().map(|kind| Value::from(i64::from(*kind)));
    put(table, "authenticated_chunks", Value::Array(kinds.collect()));
    let secret = config.shared_key.as_ref().map(|key| String::from_utf8_lossy(&key.secret).into_owned());
    put(table, "shared_key", secret.unwrap_or_else(|| "none".to_owned()));
}

#[cfg(test)]
mod tests;
