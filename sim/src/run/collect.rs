//! Collects the results of a run.

use std::collections::BTreeMap;

use anabranch_proto::{Duration, Time};

use crate::engine::{Engine, Outage};
use crate::medium::wireless::Statistics;
use crate::results::{
    Airtime, Collisions, Drops, Exchanges, FlowLink, FlowResult, LinkResult, MeasuredFlow, MeasuredLink,
    MeasuredPath, MeasuredRun, OutageResult, RunResult, StationDrops, StationResult, TrafficResult,
};
use crate::scenario::Transport;
use crate::traffic::Sink;
use crate::transport::cross::CrossAgent;
use crate::transport::{self, Agent, End, Site};

use super::build::Plan;
use super::fairness::{fairness, increase};
use super::snapshot::{Snapshot, Span};

/// The results of a run that has ended. `pauses` are the limits of the measured part.
pub(super) fn result(plan: &Plan<'_>, engine: &Engine<'_, End>, pauses: Vec<Snapshot>) -> RunResult {
    let end = Snapshot::new(engine);
    let beginning = end.beginning();
    let ends: Vec<_> = engine.flows().collect();
    let flows = plan.flows.iter().zip(&ends);
    let seconds = flows.map(|(site, ends)| lasted(site, ends, engine.now()));
    let crossing = cross(engine).map(|agent| engine.now().since(agent.start()).as_secs_f64());
    let seconds: Vec<_> = seconds.chain(crossing).collect();
    let starts = plan.flows.iter().map(|site| site.start());
    let start = starts.chain(cross(engine).map(CrossAgent::start)).min().unwrap_or(Time::ZERO);
    let span = Span { routes: engine.routes(), from: &beginning, to: &end };
    let whole = Part { plan, engine, span, busy: [start, end.at], seconds };
    let mut result = RunResult {
        scenario: plan.scenario.name.clone(),
        seed: plan.scenario.seed,
        era: plan.scenario.era.clone(),
        varied: BTreeMap::new(),
        ended: engine.now().as_secs_f64(),
        flows: (0..plan.flows.len()).map(|flow| whole.flow(flow, ends[flow])).collect(),
        links: whole
            .carried()
            .into_iter()
            .enumerate()
            .map(|(link, carried)| whole.link(link, carried))
            .collect(),
        traffic: traffic(plan, engine),
        stations: stations(plan, &whole.span),
        fairness: fairness(&whole.throughputs()),
        increase: None,
        measured: None,
    };
    result.increase = increase(&result.flows, &whole.throughputs());
    if plan.scenario.measure.is_some() {
        // A run that ends earlier is measured until its end.
        let mut moments = pauses.iter().chain([&end; 2]);
        let (from, to) = (moments.next().expect("two"), moments.next().expect("two"));
        let span = Span { routes: engine.routes(), from, to };
        let (busy, seconds) = ([from.at, to.at], vec![span.seconds(); ends.len()]);
        Part { busy, seconds, span, ..whole }.measure(&mut result);
    }
    result
}

fn traffic(plan: &Plan<'_>, engine: &Engine<'_, End>) -> Vec<TrafficResult> {
    let agents = plan.traffic.iter().zip(cross(engine));
    agents.map(|(traffic, agent)| agent.result(&traffic.name, engine.now())).collect()
}

/// The agents of cross traffic.
fn cross<'e>(engine: &'e Engine<'_, End>) -> impl Iterator<Item = &'e CrossAgent> {
    engine.agents().iter().filter_map(|agent| match agent {
        End::Cross(agent) => Some(agent),
        _ => None,
    })
}

/// Seconds from a flow's start until it was complete, or until `now`.
fn lasted(site: &Site<'_>, ends: &[End], now: Time) -> f64 {
    let start = site.start();
    sink(ends).completed().unwrap_or(now).since(start).as_secs_f64()
}

fn sink(ends: &[End]) -> &Sink {
    ends.iter().find_map(End::sink).expect("a flow has a receiver")
}

/// A run, or a part of it between two times.
struct Part<'p, 'o> {
    plan: &'p Plan<'p>,
    engine: &'p Engine<'o, End>,
    span: Span<'p>,
    /// The times between which flows were active.
    busy: [Time; 2],
    /// By flow, then by cross traffic: its duration within this part.
    seconds: Vec<f64>,
}

impl Part<'_, '_> {
    /// A flow over the whole run.
    fn flow(&self, number: usize, ends: &[End]) -> FlowResult {
        let site = &self.plan.flows[number];
        let (start, sink) = (site.start(), sink(ends));
        let mut result = FlowResult {
            name: site.flow.name.clone(),
            protocol: site.flow.transport.protocol(),
            first_data: sink.first().map(|first| first.since(start).as_secs_f64()),
            completion: sink.completed().map(|end| end.since(start).as_secs_f64()),
            delivered: sink.bytes(),
            goodput: self.goodput(number),
            throughput: self.throughput(number),
            links: self.flow_links(number),
            ..FlowResult::default()
        };
        result.missing = site
            .flow
            .traffic
            .amount()
            .and_then(|amount| amount.checked_sub(sink.bytes()))
            .filter(|missing| *missing > 0);
        result.latency = sink.latency();
        result.outages = self.outages(number);
        transport::complete(ends, self.engine.over(number), &mut result);
        result
    }

    /// How a flow reacted to outages.
    fn outages(&self, flow: usize) -> Vec<OutageResult> {
        let result = |outage: &Outage| {
            let after = |time: Option<Time>| time.map(|time| time.since(outage.from).as_secs_f64());
            let back = outage.returned.zip(outage.until);
            OutageResult {
                name: self.plan.network.link_of(2 * outage.link as u32).name.clone(),
                down: outage.from.as_secs_f64(),
                up: outage.until.map(Time::as_secs_f64),
                detected: after(outage.detected),
                new_data: after(outage.new_data),
                delivered: after(outage.delivered),
                returned: back.map(|(returned, until)| returned.since(until).as_secs_f64()),
            }
        };
        self.engine.outages().filter(|outage| outage.flow == flow).map(result).collect()
    }

    /// A link direction over the whole run.
    fn link(&self, direction: usize, carried: f64) -> LinkResult {
        let link = &self.engine.links()[direction];
        let counters = link.counters();
        LinkResult {
            name: self.plan.network.link_of(direction as u32).name.clone(),
            direction: self.plan.network.label(direction as u32),
            packets: counters.offered,
            bytes: counters.delivered_bytes,
            dropped: counters.dropped(),
            drops: Drops {
                queue: counters.queue,
                loss: counters.loss,
                down: counters.down,
                size: counters.size,
            },
            queue_max: u64::from(link.queue().most()),
            utilisation: self.utilisation(direction, carried),
            measured: None,
        }
    }

    /// Adds the results of the measured part to those of the whole run.
    fn measure(&self, result: &mut RunResult) {
        for number in 0..result.flows.len() {
            result.flows[number].measured = Some(MeasuredFlow {
                delivered: self.span.read(number),
                goodput: self.goodput(number),
                throughput: self.throughput(number),
                paths: self.paths(number),
                links: self.flow_links(number),
            });
        }
        let carried = self.carried();
        for (direction, link) in result.links.iter_mut().enumerate() {
            let counters = self.span.link(direction);
            link.measured = Some(MeasuredLink {
                packets: counters.offered,
                bytes: counters.delivered_bytes,
                dropped: counters.dropped(),
                utilisation: self.utilisation(direction, carried[direction]),
            });
        }
        result.stations = stations(self.plan, &self.span);
        result.measured = Some(MeasuredRun {
            between: [self.span.from, self.span.to].map(|moment| moment.at.as_secs_f64()),
            fairness: fairness(&self.throughputs()),
            increase: increase(&result.flows, &self.throughputs()),
        });
    }

    fn goodput(&self, flow: usize) -> f64 {
        rate(self.span.read(flow), self.seconds[flow])
    }

    fn throughput(&self, flow: usize) -> f64 {
        rate(self.span.data(&self.engine.flow(flow).routes), self.seconds[flow])
    }

    fn throughputs(&self) -> Vec<f64> {
        (0..self.plan.flows.len()).map(|flow| self.throughput(flow)).collect()
    }

    /// By link direction: bit/s of packets with user data.
    fn carried(&self) -> Vec<f64> {
        let mut carried = vec![0.0; self.engine.links().len()];
        for (flow, seconds) in self.seconds.iter().enumerate() {
            for (hop, bytes) in self.span.data_over(&self.engine.flow(flow).routes) {
                if let Some(carried) = carried.get_mut(hop as usize) {
                    *carried += rate(bytes, *seconds);
                }
            }
        }
        carried
    }

    fn utilisation(&self, direction: usize, carried: f64) -> f64 {
        let [from, to] = self.busy;
        carried / self.engine.links()[direction].mean_rate(from, to) * 100.0
    }

    fn flow_links(&self, flow: usize) -> Vec<FlowLink> {
        let packets = self.span.packets(&self.engine.flow(flow).routes).into_iter();
        let link = |(direction, [packets, dropped]): (u32, [u64; 2])| FlowLink {
            name: self.plan.network.medium(direction).to_owned(),
            direction: self.plan.network.label(direction),
            packets,
            dropped,
        };
        packets.map(link).collect()
    }

    /// The paths of a flow's sender. Those of a transport over several paths are listed also if they were never used.
    fn paths(&self, flow: usize) -> Vec<MeasuredPath> {
        let agent = self.engine.flow(flow).agents.start;
        let name = |path| self.engine.agents()[agent].path_name(path).map(str::to_owned);
        let paths = self.span.paths(agent);
        let measured =
            |path| Some(MeasuredPath { name: name(path)?, mean_cwnd: self.span.mean_window(agent, path) });
        let mut all: Vec<MeasuredPath> = paths.filter_map(measured).collect();
        let Site { flow, ends, .. } = &self.plan.flows[flow];
        if matches!(flow.transport, Transport::Sctp(_) | Transport::Mptcp(_)) {
            let names = ends.paths.iter().map(|(client, server)| ends.name(*client, *server));
            let unused: Vec<&str> = names.filter(|name| all.iter().all(|path| path.name != *name)).collect();
            all.extend(
                unused.into_iter().map(|name| MeasuredPath { name: name.to_owned(), mean_cwnd: None }),
            );
        }
        all
    }
}

/// The counters of the radios in a part of the run.
fn stations(plan: &Plan<'_>, span: &Span<'_>) -> Vec<StationResult> {
    let all = plan.network.radios();
    let channels = all.channels().enumerate();
    let places = channels.flat_map(|(number, index)| all.nodes(number).map(move |node| (index, node)));
    let station = |((index, node), counted): ((usize, usize), Statistics)| {
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        let Statistics { rts, data, collisions, drops, airtime } = counted;
        StationResult {
            node: plan.network.node_name(node).to_owned(),
            channel: plan.scenario.channels[index].name.clone(),
            rts: Exchanges { sent: rts.sent, answered: rts.answered },
            data: Exchanges { sent: data.sent, answered: data.answered },
            collisions: Collisions {
                hidden: collisions.hidden,
                slot: collisions.slot,
                capture: collisions.capture,
            },
            drops: StationDrops {
                queue: drops.queue,
                rts_retries: drops.rts_retries,
                data_retries: drops.data_retries,
            },
            airtime: Airtime {
                data: seconds(airtime.data),
                control: seconds(airtime.control),
                collision: seconds(airtime.collision),
                idle: seconds(airtime.idle),
            },
        }
    };
    places.zip(span.radios()).map(station).collect()
}

/// Bit/s.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}
