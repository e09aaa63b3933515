//! Cross traffic: many on/off sources of datagrams in one agent.
//!
//! All sources of a `[[traffic]]` are one agent, which keeps their next packets in a heap. The datagrams return to
//! the same agent at the ends of their routes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::rc::Rc;

use anabranch_proto::{Duration, Time};

use super::datagram::{REASON, UDP_HEADER};
use super::ends::Ends;
use super::{Agent, Body, Datagram, Frame, Output, Routes, Stage};
use crate::chance::Sequence;
use crate::error::{Item, RunError};
use crate::network::{DirectionId, Network};
use crate::results::TrafficResult;
use crate::scenario::{CrossTraffic, Flow, Scenario};
use crate::traffic::{Bursts, Plot};

/// The port of all cross traffic: discard.
const PORT: u16 = 9;

/// All sources of a `[[traffic]]`.
pub(crate) struct CrossAgent {
    sources: Vec<Source>,
    /// The next packet of each source.
    next: BinaryHeap<Reverse<(Time, u32)>>,
    plot: Plot,
    start: Time,
    ways: u64,
    packets: u64,
    bytes: u64,
    dropped: u64,
}

/// One source.
struct Source {
    bursts: Bursts,
    datagram: Rc<Datagram>,
    /// Bytes per packet, IP header included.
    size: u32,
    /// The beginning of its route.
    route: u32,
}

/// A direction in which sources send: an interface at each end.
#[derive(Copy, Clone, Debug)]
struct SourceRoute {
    from: DirectionId,
    to: DirectionId,
}

/// The agent of a `[[traffic]]`, which is number `agent`; its routes are added to `routes`.
pub(crate) fn agent(
    scenario: &Scenario,
    network: &Network,
    traffic: &CrossTraffic,
    routes: &mut Routes,
    agent: usize,
) -> Result<CrossAgent, RunError> {
    let ways = ways(network, traffic)?;
    // All sources have the same packet rate, and the load is a multiple of it.
    let sizes = traffic.source_sizes();
    let bytes: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
    let apart = 8e9 * bytes as f64 * ways.len() as f64 / traffic.directions() as f64 / traffic.load as f64;
    let [on, off] = [&traffic.on, &traffic.off].map(|times| times.mean().as_nanos() as f64);
    let spacing = if off > 0.0 { apart * on / (on + off) } else { apart };
    let ipv6 = scenario.ip_header == super::site::IPV6_HEADER;
    let mut sources = Vec::new();
    let mut start = Time::NEVER;
    for (way, label) in ways.iter().zip(labels(network, &traffic.name, &ways)) {
        let route = routes.add(network, way.from, way.to, agent);
        let [from, to] = [way.from, way.to].map(|end| network.address(end, PORT, ipv6).address);
        for (number, size) in sizes.iter().enumerate() {
            let mut chance = Sequence::new(scenario.seed, &format!("{label}/{number}"));
            let begins = Time::ZERO + chance.start(traffic.start);
            start = start.min(begins);
            let payload = size.saturating_sub(scenario.ip_header + UDP_HEADER);
            let bursts = match traffic.poisson {
                true => Bursts::poisson(begins, spacing, chance),
                false => Bursts::new(begins, [traffic.on, traffic.off], spacing, chance),
            };
            let datagram = Rc::new(Datagram { from, to, payload, number: 0 });
            sources.push(Source { bursts, datagram, size: *size, route });
        }
    }
    let cycle = if off > 0.0 { traffic.on.mean() + traffic.off.mean() } else { Duration::ZERO };
    let next = sources.iter_mut().enumerate();
    let next = next.map(|(number, source)| Reverse((source.bursts.next(), number as u32))).collect();
    let plot = Plot::new(start, cycle);
    let ways = traffic.directions();
    Ok(CrossAgent { sources, next, plot, start, ways, packets: 0, bytes: 0, dropped: 0 })
}

/// Checks whether a `[[traffic]]` can be sent.
pub(crate) fn check(scenario: &Scenario, network: &Network, traffic: &CrossTraffic) -> Result<(), RunError> {
    let mtu = |way: &SourceRoute| {
        let route = network.route(way.from, way.to).unwrap_or_default();
        route.iter().map(|direction| network.mtu(*direction)).min().unwrap_or_default()
    };
    let least = ways(network, traffic)?.iter().map(mtu).min().unwrap_or_default();
    let fits = |size: &u32| (scenario.ip_header + UDP_HEADER..=least).contains(size);
    if traffic.source_sizes().iter().all(fits) {
        return Ok(());
    }
    let why = "a packet must hold the headers of IP and UDP, and fit the MTU of every link on its route";
    Err(RunError::Value { item: Item::Traffic(traffic.name.clone()), key: "sizes", why })
}

/// The directions of all pairs: forward and, if requested, back.
fn ways(network: &Network, traffic: &CrossTraffic) -> Result<Vec<SourceRoute>, RunError> {
    let mut ways = Vec::new();
    for [from, to] in &traffic.pairs {
        let flow = Flow { name: traffic.name.clone(), from: from.clone(), to: to.clone(), ..Flow::default() };
        let ends = Ends::new(network, &flow)?;
        let (client, server) = ends.paths.first().copied().unwrap_or_default();
        let way = SourceRoute { from: ends.client[client], to: ends.server[server] };
        ways.push(way);
        ways.extend(traffic.both_ways.then_some(SourceRoute { from: way.to, to: way.from }));
    }
    Ok(ways)
}

/// The names of the ways' random sequences. A pair may be listed several times: its sources are then different ones.
fn labels(network: &Network, traffic: &str, ways: &[SourceRoute]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for way in ways {
        let [leaves, arrives] = [way.from, way.to].map(|end| network.interface_label(end));
        let label = format!("traffic/{traffic}/{leaves}>{arrives}");
        let before = known.entry(label.clone()).or_default();
        labels.push(if *before == 0 { label } else { format!("{label}#{before}") });
        *before += 1;
    }
    labels
}

impl CrossAgent {
    /// Its results until `now`.
    pub(crate) fn result(&self, name: &str, now: Time) -> TrafficResult {
        let seconds = now.since(self.start).as_secs_f64();
        let bits = self.bytes as f64 * 8.0 / self.ways as f64;
        TrafficResult {
            name: name.to_owned(),
            packets: self.packets,
            bytes: self.bytes,
            dropped: self.dropped,
            load: if now > self.start { bits / seconds } else { 0.0 },
            hurst: self.plot.hurst(now),
        }
    }

    /// When its first source begins.
    pub(crate) fn start(&self) -> Time {
        self.start
    }
}

impl Agent for CrossAgent {
    fn handle(&mut self, _: Time, _: Frame) {}

    fn dropped(&mut self, _: Frame) {
        self.dropped += 1;
    }

    fn poll(&mut self, now: Time) -> Output {
        let Some(mut first) = self.next.peek_mut() else { return Output::Wait(None) };
        let Reverse((time, number)) = *first;
        if time > now {
            return Output::Wait(Some(time));
        }
        let source = &mut self.sources[number as usize];
        *first = Reverse((source.bursts.next(), number));
        self.packets += 1;
        self.bytes += u64::from(source.size);
        self.plot.add(now, source.size);
        Output::Transmit(
            Frame::new(Body::Datagram(source.datagram.clone()), source.size, source.route),
            REASON,
        )
    }

    /// The run never waits for it.
    fn stage(&self) -> Stage {
        Stage::Idle
    }
}
