//! Builds the parts of an engine from a scenario.

use std::collections::BTreeMap;

use anabranch_proto::{Duration, Noting, Time};

use crate::chance::Sequence;
use crate::engine::{ARRIVED, Change, FlowParts, Parts};
use crate::error::{Item, RunError};
use crate::medium::wire::{Alteration, Direction, Jitter, Losses, Management, Traced};
use crate::medium::wireless::Channel;
use crate::network::{DirectionId, Network, radios};
use crate::observe::trace::{Observer, Wants};
use crate::scenario::{self, CrossTraffic, Flow, Link, Loss, Offset, Queue, Scenario};
use crate::transport::ends::Ends;
use crate::transport::gate::Gate;
use crate::transport::{self, End, Frame, PlugIns, Routes, Site, cross};

use super::values;

/// A scenario that can be run.
pub(super) struct Plan<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) network: &'a Network,
    /// Sorted by name.
    pub(super) flows: Vec<Site<'a>>,
    /// Sorted by name.
    pub(super) traffic: Vec<&'a CrossTraffic>,
    /// By link: its changes, in the order of the document.
    changes: BTreeMap<&'a str, Vec<&'a scenario::Change>>,
}

/// The network of a scenario; an error if a value cannot be used.
pub(crate) fn network(scenario: &Scenario) -> Result<Network, RunError> {
    values::check(scenario)?;
    Network::new(scenario)
}

/// The parts of an engine with a gate.
pub(crate) struct GatePlan {
    pub(crate) parts: Parts<'static, End>,
    /// The number of the gate among the agents.
    pub(crate) gate: usize,
    /// By pair of interfaces that was asked for: where its route begins.
    pub(crate) starts: Vec<u32>,
}

impl<'a> Plan<'a> {
    /// Checks everything that can be wrong.
    pub(super) fn new(
        scenario: &'a Scenario,
        network: &'a Network,
        plug_ins: PlugIns<'_>,
    ) -> Result<Self, RunError> {
        let mut sorted: Vec<&Flow> = scenario.flows.iter().collect();
        sorted.sort_by(|a, b| a.name.cmp(&b.name));
        let site = |(number, flow): (usize, &'a Flow)| {
            Ok(Site { scenario, network, flow, number, ends: Ends::new(network, flow)? })
        };
        let flows = sorted.into_iter().enumerate().map(site).collect::<Result<Vec<_>, RunError>>()?;
        flows.iter().try_for_each(|site| transport::check(site, plug_ins))?;
        lost_flows_pass(scenario, network, &flows)?;
        let mut traffic: Vec<_> = scenario.traffic.iter().collect();
        traffic.sort_by(|a, b| a.name.cmp(&b.name));
        traffic.iter().try_for_each(|traffic| cross::check(scenario, network, traffic))?;
        let mut changes: BTreeMap<_, Vec<_>> = BTreeMap::new();
        scenario.changes.iter().for_each(|change| changes.entry(&*change.link).or_default().push(change));
        Ok(Plan { scenario, network, flows, traffic, changes })
    }

    /// The parts of an engine.
    pub(super) fn parts<'o>(
        &self,
        plug_ins: PlugIns<'_>,
        observed: bool,
        observer: Option<&'o mut dyn Observer>,
        extra_polls: bool,
    ) -> Result<Parts<'o, End>, RunError> {
        let (mut agents, flows, routes) = self.agents(plug_ins)?;
        let pauses: Vec<_> = self.scenario.measure.into_iter().flatten().map(|at| Time::ZERO + at).collect();
        let wants = observer.as_ref().map_or(Wants::LEAST, |observer| observer.wants());
        let batches = observed && wants.allows_batches() && pauses.is_empty();
        let asked = match (wants.details, batches) {
            _ if !pauses.is_empty() => Noting::Polled,
            (false, _) => Noting::Blocked,
            (true, true) => Noting::Kept,
            (true, false) => Noting::Polled,
        };
        for flow in &flows {
            for agent in flow.agents.clone() {
                let heard = observed && (wants.receivers || agent == flow.agents.start) || !pauses.is_empty();
                agents[agent].set_details(if heard { asked } else { Noting::Off });
            }
        }
        let places = Places { routes: &routes, flows: &flows, names: &self.flows };
        let links = (0..2 * self.network.links().len() as DirectionId)
            .map(|id| self.direction(id, &places))
            .collect();
        let changes = self.changes(&places);
        let (channels, radio_hops) = (self.channels(), self.network.radios().hops().to_vec());
        Ok(Parts {
            links,
            channels,
            radio_hops,
            routes,
            agents,
            flows,
            changes,
            pauses,
            observer,
            batches,
            extra_polls,
        })
    }

    /// The agents of all flows, then those of cross traffic; which of them belong together; and the table of their
    /// routes.
    fn agents(&self, plug_ins: PlugIns<'_>) -> Result<(Vec<End>, Vec<FlowParts>, Vec<u32>), RunError> {
        let (mut routes, mut agents, mut flows) = (Routes::default(), Vec::new(), Vec::new());
        for site in &self.flows {
            let (first, place) = (agents.len(), routes.table.len());
            agents.extend(transport::agents(site, plug_ins, &mut routes, first)?);
            flows.push(FlowParts {
                agents: first..agents.len(),
                routes: place..routes.table.len(),
                awaited: site.flow.traffic.amount().is_some(),
                lossless_sacks: site.flow.transport.has_lossless_sacks(),
            });
        }
        for traffic in &self.traffic {
            let (first, place) = (agents.len(), routes.table.len());
            let agent = cross::agent(self.scenario, self.network, traffic, &mut routes, first)?;
            agents.push(End::Cross(agent));
            flows.push(FlowParts {
                agents: first..first + 1,
                routes: place..routes.table.len(),
                awaited: false,
                lossless_sacks: false,
            });
        }
        Ok((agents, flows, routes.table))
    }

    /// As `agents`, with a gate after all other agents, and with routes between these pairs of interfaces that end at
    /// the gate.
    pub(super) fn with_gate(
        &self,
        plug_ins: PlugIns<'_>,
        ways: &[(DirectionId, DirectionId)],
    ) -> Result<GatePlan, RunError> {
        let mut parts = self.parts(plug_ins, false, None, false)?;
        parts.pauses.clear();
        let (gate, place) = (parts.agents.len(), parts.routes.len());
        let mut routes = Routes { table: parts.routes };
        let starts = ways.iter().map(|(from, to)| routes.add(self.network, *from, *to, gate)).collect();
        parts.routes = routes.table;
        parts.agents.push(End::Gate(Gate::default()));
        parts.flows.push(FlowParts {
            agents: gate..gate + 1,
            routes: place..parts.routes.len(),
            awaited: false,
            lossless_sacks: false,
        });
        Ok(GatePlan { parts, gate, starts })
    }

    fn channels(&self) -> Vec<Channel<Frame>> {
        let all = self.network.radios();
        let channel = |(number, index): (usize, usize)| {
            let given = &self.scenario.channels[index];
            let name = |node| self.network.node_name(node).to_owned();
            let radios = all.of_channel(number, self.scenario, name);
            let (dcf, reception) = (radios::dcf(&given.dcf), radios::reception(&given.reception));
            Channel::new(dcf, reception, &radios, self.scenario.seed)
        };
        all.channels().enumerate().map(channel).collect()
    }

    fn direction(&self, id: DirectionId, places: &Places<'_>) -> Direction {
        let edge = self.network.link_of(id);
        let given = edge.given[id as usize % 2];
        let link = &self.scenario.links[edge.index];
        let stream = format!("link/{}/{}/loss", link.name, self.network.label(id));
        let mut losses = Losses::new(self.scenario.seed, &stream, &link.loss[given]);
        losses.change(&link.loss[given], &places.of(&link.loss[given], id));
        let delay = link.random_delay.map_or(link.delay[given], |[low, high]| {
            Sequence::new(self.scenario.seed, &format!("link/{}/delay", link.name)).between(low, high)
        });
        let queue = queue(link, given, delay);
        let traced = link.traced[given].as_ref().map(|traced| {
            let offset = match traced.offset {
                Offset::Fixed(offset) => offset,
                Offset::Random => {
                    let stream = format!("link/{}/{}/trace", link.name, self.network.label(id));
                    Sequence::new(self.scenario.seed, &stream).between(Duration::ZERO, traced.trace.period())
                }
            };
            Traced::new(&traced.trace, offset)
        });
        Direction::new(link.rate[given], nanos(delay), queue, losses, link.up)
            .jittering(self.jitter(id, given, link))
            .traced(traced)
            .marking(link.mark[given])
            .managed(self.management(&queue, id))
    }

    fn changes_of(&self, link: &str) -> impl Iterator<Item = &'a scenario::Change> {
        self.changes.get(link).into_iter().flatten().copied()
    }

    /// The jitter of a direction, if it has any now or after a change.
    fn jitter(&self, id: DirectionId, given: usize, link: &Link) -> Option<Jitter> {
        let changes = self.changes_of(&link.name).any(|change| change.jitter.is_some());
        (changes || link.jitter[given] > Duration::ZERO).then(|| {
            let stream = format!("link/{}/{}/jitter", link.name, self.network.label(id));
            Jitter::new(self.scenario.seed, &stream, nanos(link.jitter[given]), link.reorder)
        })
    }

    fn management(&self, queue: &Queue, id: DirectionId) -> Option<Box<Management>> {
        let stream = format!("link/{}/{}/red", self.network.link_of(id).name, self.network.label(id));
        Management::new(queue, self.scenario.seed, &stream)
    }

    /// The changes in order of time. At equal times, the links' names decide, then the order in the document.
    fn changes(&self, places: &Places<'_>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, edge) in self.network.links().iter().enumerate() {
            for change in self.changes_of(&edge.name) {
                for (direction, given) in edge.given.into_iter().enumerate() {
                    let id = (2 * number + direction) as DirectionId;
                    let alteration = Alteration {
                        up: change.up,
                        rate: change.rate.map(|rate| rate[given]),
                        delay: change.delay.map(|delay| nanos(delay[given])),
                        loss: change.loss.as_ref().map(|loss| {
                            let loss = loss[given].clone();
                            let hops = places.of(&loss, id);
                            (loss, hops)
                        }),
                        queue: change
                            .queue
                            .map(|queue| (queue[given].limit(), self.management(&queue[given], id))),
                        mark: change.mark.map(|mark| mark[given].unwrap_or(u64::MAX)),
                        jitter: change.jitter.map(|jitter| nanos(jitter[given])),
                        mtu: change.mtu,
                    };
                    changes.push(Change {
                        at: Time::ZERO + change.at,
                        link: 2 * number + direction,
                        alteration,
                    });
                }
            }
        }
        changes.sort_by_key(|change| change.at);
        changes
    }
}

/// The queue of a direction in packets or bytes.
fn queue(link: &Link, given: usize, delay: Duration) -> Queue {
    let Queue::BandwidthDelay(thousandths) = link.queue[given] else { return link.queue[given] };
    let bits = u128::from(link.rate[given]) * delay.as_nanos() * u128::from(thousandths);
    let packets = bits.div_ceil(8 * 1_000_000_000 * 1000 * u128::from(link.mtu));
    Queue::Packets(u32::try_from(packets).unwrap_or(u32::MAX).max(1))
}

/// A loss that names a flow requires that this flow sends data over the link in that direction. If the loss is given
/// for both directions at once, one of them is enough.
fn lost_flows_pass(scenario: &Scenario, network: &Network, sites: &[Site<'_>]) -> Result<(), RunError> {
    let passes = |link: &str, given: usize, flow: &str| {
        let edge = network.links().iter().enumerate().find(|(_, edge)| edge.name == link);
        let Some((number, edge)) = edge else { return true };
        let Some(side) = edge.given.iter().position(|side| *side == given) else { return true };
        let direction = (2 * number + side) as DirectionId;
        let Some(site) = sites.iter().find(|site| site.flow.name == flow) else { return false };
        let Ends { client, server, .. } = &site.ends;
        let pairs = client.iter().flat_map(|c| server.iter().map(move |s| (*c, *s)));
        pairs.filter_map(|(from, to)| network.route(from, to)).any(|route| route.contains(&direction))
    };
    let check = |link: &str, losses: &[Loss; 2], item: Item| {
        let misses = |(given, loss): (usize, &Loss)| match loss {
            Loss::Data { flow, .. } => {
                let other = losses[0] == losses[1] && passes(link, 1 - given, flow);
                !other && !passes(link, given, flow)
            }
            _ => false,
        };
        match losses.iter().enumerate().any(misses) {
            true => Err(RunError::Value {
                item,
                key: "loss",
                why: "the flow that it names sends no data over this link in this direction",
            }),
            false => Ok(()),
        }
    };
    for link in &scenario.links {
        check(&link.name, &link.loss, Item::Link(link.name.clone()))?;
    }
    for (number, change) in scenario.changes.iter().enumerate() {
        if let Some(loss) = &change.loss {
            check(&change.link, loss, Item::Change(number))?;
        }
    }
    Ok(())
}

/// The entries of flows' link directions in the table of routes.
struct Places<'p> {
    routes: &'p [u32],
    /// By flow, sorted by name: its agents.
    flows: &'p [FlowParts],
    names: &'p [Site<'p>],
}

impl Places<'_> {
    /// The entries of this direction for the flow that the loss names, ascending; none if it names no flow.
    fn of(&self, loss: &Loss, direction: DirectionId) -> Vec<u32> {
        let Loss::Data { flow, .. } = loss else { return Vec::new() };
        let Some(number) = self.names.iter().position(|site| site.flow.name == *flow) else {
            return Vec::new();
        };
        let agents = &self.flows[number].agents;
        let (mut hops, mut start) = (Vec::new(), 0);
        for (end, entry) in self.routes.iter().enumerate() {
            let Some(agent) = entry.checked_sub(ARRIVED) else { continue };
            if agents.contains(&(agent as usize)) {
                hops.extend((start..end).filter(|hop| self.routes[*hop] == direction).map(|hop| hop as u32));
            }
            start = end + 1;
        }
        hops
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
