//! The place of a flow in its scenario and network, and the table of all routes.

use anabranch_proto::{LocalAddress, Time};

use super::ends::Ends;
use crate::engine::{ARRIVED, NO_ROUTE};
use crate::network::{DirectionId, Network};
use crate::scenario::{Flow, Scenario};

/// The size of an IPv6 header. A flow with headers of this size has IPv6 addresses.
pub(crate) const IPV6_HEADER: u32 = 40;
/// The port of the first flow.
const FIRST_PORT: u16 = 5000;

/// A flow and its surroundings, from which its agents are made.
pub(crate) struct Site<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) network: &'a Network,
    pub(crate) flow: &'a Flow,
    /// The index of the flow, sorted by name.
    pub(crate) number: usize,
    pub(crate) ends: Ends,
}

impl Site<'_> {
    /// Bytes of IP header before every packet.
    pub(crate) fn ip_header(&self) -> u32 {
        self.flow.ip_header.unwrap_or(self.scenario.ip_header)
    }

    /// When the flow begins.
    pub(crate) fn start(&self) -> Time {
        Time::ZERO + self.flow.start
    }

    /// The addresses of the client's and the server's interfaces.
    pub(crate) fn addresses(&self, udp: u16) -> [Vec<LocalAddress>; 2] {
        let ipv6 = self.ip_header() == IPV6_HEADER;
        [&self.ends.client, &self.ends.server].map(|interfaces| {
            interfaces.iter().map(|interface| self.network.address(*interface, udp, ipv6)).collect()
        })
    }

    /// The port of both ends.
    pub(crate) fn port(&self) -> u16 {
        FIRST_PORT + (self.number % usize::from(u16::MAX - FIRST_PORT)) as u16
    }

    /// The smallest MTU of the links on any of the flow's routes.
    pub(crate) fn mtu(&self) -> u32 {
        let Ends { client, server, .. } = &self.ends;
        let routes = client.iter().flat_map(|c| server.iter().filter_map(|s| self.network.route(*c, *s)));
        routes.flatten().map(|hop| self.network.mtu(hop)).min().unwrap_or(1500)
    }
}

/// All routes of a run in sequence. Each is a list of hops, followed by [`ARRIVED`] plus the number of the agent
/// there.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) table: Vec<u32>,
}

impl Routes {
    /// Adds the route from one interface to another, at which `agent` is. Returns its beginning, or [`NO_ROUTE`].
    pub(crate) fn add(&mut self, network: &Network, from: DirectionId, to: DirectionId, agent: usize) -> u32 {
        let Some(route) = network.route(from, to) else { return NO_ROUTE };
        let start = self.table.len() as u32;
        self.table.extend(route);
        self.table.push(ARRIVED + agent as u32);
        start
    }

    /// The entry at which packets of the route that was added last arrive.
    pub(crate) fn last(&self) -> u32 {
        self.table.len().saturating_sub(1) as u32
    }
}
