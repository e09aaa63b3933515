//! A scenario's network that carries packets of real programs.
//!
//! The links, their queues, losses and changes, the flows and the cross traffic are those of a run. Only the clock is
//! outside: who drives a [`Live`] tells it the time, gives it packets at interfaces of *attached* nodes, and takes
//! those that have arrived. There is still no clock here: the same packets at the same times give the same results.
//!
//! Nodes without an attached program can be reached too. What arrives there also comes out, so that the driver can
//! answer it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use anabranch_proto::{Policies, Time};

use crate::engine::{Engine, NO_ROUTE};
use crate::error::RunError;
use crate::network::{DirectionId, Network};
use crate::results::RunResult;
use crate::run::{self, GatePlan};
use crate::scenario::Scenario;
use crate::transport::End;
use crate::transport::gate::RawPacket;

/// An interface of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interface {
    /// Its node.
    pub node: String,
    /// Its link.
    pub link: String,
    /// Its address.
    pub address: IpAddr,
    /// The length of the link's prefix in bits.
    pub prefix: u8,
    /// The largest packet, in bytes with the IP header.
    pub mtu: u32,
    /// Whether a program is attached to its node.
    pub attached: bool,
    /// The interfaces of other nodes that are reached from here, each with the number of hops to it.
    pub reaches: Vec<(usize, usize)>,
}

/// A packet that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// When, in virtual time.
    pub at: Time,
    /// The number of the interface, as [`Live::interfaces`] counts them.
    pub interface: usize,
    /// The packet, from its IP header on.
    pub packet: Vec<u8>,
}

/// The network of a scenario while it carries packets of programs.
pub struct Live {
    engine: Engine<'static, End>,
    scenario: Scenario,
    network: Network,
    policies: Policies,
    /// The number of the gate among the agents.
    gate: usize,
    interfaces: Vec<Interface>,
    /// By interface and the address of another: the other, and where the route begins.
    routes: Vec<BTreeMap<IpAddr, (usize, u32)>>,
}

impl Live {
    /// The network of `scenario` with programs at the nodes `attached`, which forward nothing, and without the flows
    /// `left_out`, whose ends remain hosts.
    ///
    /// # Errors
    /// The errors of [`run`](crate::run), and nodes that do not exist or have no neighbour.
    pub fn new(
        scenario: &Scenario,
        attached: &[String],
        left_out: &[String],
        policies: Policies,
    ) -> Result<Self, RunError> {
        let mut scenario = run::with_starts(scenario).into_owned();
        let mut network = run::network(&scenario)?;
        scenario.flows.retain(|flow| !left_out.contains(&flow.name));
        for node in attached {
            let number = network
                .node(node)
                .ok_or_else(|| RunError::NoNode { node: node.clone(), known: network.nodes().to_vec() })?;
            network.make_host(number);
        }
        let ipv6 = scenario.ip_header == crate::transport::IPV6_HEADER;
        let (ids, mut interfaces) = interfaces(&network, attached, ipv6);
        let ways = ways(&network, &ids, &interfaces);
        for node in attached {
            let lonely = !ways.iter().any(|(from, _, _)| interfaces[*from].node == *node);
            if lonely {
                return Err(RunError::Alone { node: node.clone() });
            }
        }
        let plan: Vec<_> = ways.iter().map(|(from, to, _)| (ids[*from], ids[*to])).collect();
        let GatePlan { parts, gate, starts } = run::with_gate(&scenario, &network, &policies, &plan)?;
        let mut routes = vec![BTreeMap::new(); interfaces.len()];
        for ((from, to, hops), start) in ways.into_iter().zip(starts) {
            debug_assert_ne!(start, NO_ROUTE, "the route was found before");
            routes[from].insert(interfaces[to].address, (to, start));
            interfaces[from].reaches.push((to, hops));
        }
        let engine = Engine::new(parts);
        Ok(Live { engine, scenario, network, policies, gate, interfaces, routes })
    }

    /// All interfaces, by node, then link.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// Goes on to `now`: everything that is due until then happens.
    pub fn advance(&mut self, now: Time) {
        self.engine.advance_to(now);
    }

    /// When something happens next; [`Time::NEVER`] if nothing does.
    pub fn next_event(&mut self) -> Time {
        self.engine.next_event()
    }

    /// A program sends a packet at an interface, at the time to which the network has gone on. Returns whether there is
    /// a route to its destination: if there is none, nothing happens.
    pub fn send(&mut self, interface: usize, to: IpAddr, packet: Vec<u8>) -> bool {
        let Some((to, start)) = self.routes.get(interface).and_then(|routes| routes.get(&to).copied()) else {
            return false;
        };
        self.engine.give(self.gate, |agent| {
            if let End::Gate(gate) = agent {
                gate.enter(RawPacket { bytes: packet, to }, start);
            }
        });
        true
    }

    /// The next packet that has arrived at an interface.
    pub fn arrived(&mut self) -> Option<Arrival> {
        let End::Gate(gate) = self.engine.agent_mut(self.gate) else { return None };
        let (at, packet) = gate.leave()?;
        Some(Arrival { at, interface: packet.to, packet: packet.bytes })
    }

    /// The results so far, of the scenario's own flows and of its links.
    pub fn result(&self) -> Result<RunResult, RunError> {
        run::result_so_far(&self.scenario, &self.network, &self.policies, &self.engine)
    }
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

/// The interfaces of all nodes, with their numbers in the network.
fn interfaces(network: &Network, attached: &[String], ipv6: bool) -> (Vec<DirectionId>, Vec<Interface>) {
    let all = network.nodes().iter().enumerate().flat_map(|(number, node)| {
        network.interfaces(number).into_iter().map(move |id| {
            let local = network.address(id, 0, ipv6);
            let interface = Interface {
                node: node.clone(),
                link: network.medium(id).to_owned(),
                address: local.address.ip,
                prefix: local.prefix,
                mtu: network.interface_mtu(id),
                attached: attached.contains(node),
                reaches: Vec::new(),
            };
            (id, interface)
        })
    });
    all.unzip()
}

/// Pairs of interfaces of different nodes, of which one is attached, with a route from the first to the second; and its
/// hops.
fn ways(network: &Network, ids: &[DirectionId], interfaces: &[Interface]) -> Vec<(usize, usize, usize)> {
    let mut ways = Vec::new();
    for (from, here) in interfaces.iter().enumerate() {
        for (to, there) in interfaces.iter().enumerate() {
            if here.node != there.node
                && (here.attached || there.attached)
                && let Some(route) = network.route(ids[from], ids[to])
            {
                ways.push((from, to, route.len()));
            }
        }
    }
    ways
}
