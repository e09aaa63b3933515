//! The topology. Nodes are named by links and channels, interfaces have addresses, and routes are computed.
//!
//! Links and nodes are numbered by sorted name. The two directions of link i have the numbers 2i and 2i + 1, in the
//! order of their labels ("a>b", "b>a"). An interface of a link has the number of the direction that leaves from it.
//! Higher interface numbers are radios. A route is a list of hops: a link direction, or [`RADIO`] plus the number of
//! a hop between radios.

pub(crate) mod radios;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::LocalAddress;
use anabranch_proto::wire::Address;

use crate::error::RunError;
use crate::scenario::Scenario;

use radios::Gap;
pub(crate) use radios::{RADIO, Radios};

/// The number of a hop. A link direction has the number of the interface from which it leaves.
pub(crate) type DirectionId = u32;

/// The nodes, the links, and which nodes forward.
#[derive(Debug)]
pub(crate) struct Network {
    /// Names, sorted.
    nodes: Vec<String>,
    /// Sorted by name.
    links: Vec<Edge>,
    /// By node: whether it is a host, that is, a flow begins or ends there and it has no radio. Hosts do not forward.
    host: Vec<bool>,
    /// By node: the link directions that leave it.
    wired: Vec<Vec<DirectionId>>,
    /// By node: the hops that lead to forwarding nodes, in the order of the node's interfaces.
    onward: Vec<Vec<DirectionId>>,
    radios: Radios,
}

/// A link.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) name: String,
    /// By direction 0 and 1: the node from which it leaves.
    ends: [usize; 2],
    /// By direction 0 and 1: the index of this direction in the scenario's link.
    pub(crate) given: [usize; 2],
    /// The index of the link in the scenario.
    pub(crate) index: usize,
    /// The MTU in bytes, IP header included.
    pub(crate) mtu: u32,
}

/// The length of a link's prefix in bits. Every link has its own prefix with two addresses.
const WITHIN: u8 = 2;
/// The first link's prefix.
const FIRST: u32 = Ipv4Addr::new(10, 0, 0, 0).to_bits();
/// The same for IPv6.
const FIRST_V6: u128 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0).to_bits();
/// The length of a channel's prefix in bits.
const WITHIN_CHANNEL: u8 = 16;
/// The first channel's prefix.
const FIRST_CHANNEL: u32 = Ipv4Addr::new(10, 128, 0, 0).to_bits();
/// The same for IPv6.
const FIRST_CHANNEL_V6: u128 = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0).to_bits();
/// The largest packet between radios, in bytes with the IP header.
const RADIO_MTU: u32 = 1500;

impl Network {
    /// The network of a scenario whose links have been checked already.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let stations = scenario.stations.iter().map(|station| station.node.clone());
        let mut nodes: Vec<String> =
            scenario.links.iter().flat_map(|link| link.between.clone()).chain(stations).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut network = Network {
            host: vec![false; nodes.len()],
            nodes,
            links: Vec::new(),
            wired: Vec::new(),
            onward: Vec::new(),
            radios: Radios::default(),
        };
        network.radios = Radios::new(scenario, |name| network.node(name).expect("stations are nodes"));
        network.links =
            scenario.links.iter().enumerate().map(|(index, _)| network.edge(scenario, index)).collect();
        network.links.sort_by(|a, b| a.name.cmp(&b.name));
        network.wired = vec![Vec::new(); network.nodes.len()];
        for direction in 0..2 * network.links.len() as DirectionId {
            let [leaves, _] = network.ends(direction);
            network.wired[leaves].push(direction);
        }
        let flows = scenario.flows.iter().map(|flow| (&flow.name, &flow.from, &flow.to));
        let traffic = scenario.traffic.iter();
        let traffic = traffic.flat_map(|t| t.pairs.iter().map(move |[from, to]| (&t.name, from, to)));
        for (name, from, to) in flows.chain(traffic) {
            for (key, node) in [("from", from), ("to", to)] {
                let number = network.node(node).ok_or_else(|| RunError::UnknownNode {
                    flow: name.clone(),
                    key,
                    node: node.clone(),
                    known: network.nodes.clone(),
                })?;
                network.host[number] = !network.radios.has(number);
            }
        }
        network.onward = (0..network.nodes.len()).map(|node| network.hops_onward(node)).collect();
        Ok(network)
    }

    /// From now on this node is a host, which does not forward, as if a flow began there.
    pub(crate) fn make_host(&mut self, node: usize) {
        self.host[node] = !self.radios.has(node);
        self.onward = (0..self.nodes.len()).map(|node| self.hops_onward(node)).collect();
    }

    /// The names of all nodes, sorted.
    pub(crate) fn nodes(&self) -> &[String] {
        &self.nodes
    }

    /// The part of [`onward`](Self::onward) that belongs to a node.
    fn hops_onward(&self, node: usize) -> Vec<DirectionId> {
        let hops = self.interfaces_of(node).into_iter().flat_map(|interface| self.leaving(interface));
        hops.filter(|hop| !self.host[self.ends(*hop)[1]]).collect()
    }

    fn edge(&self, scenario: &Scenario, index: usize) -> Edge {
        let link = &scenario.links[index];
        let number = |node: &String| self.nodes.binary_search(node).expect("nodes are what links name");
        let [a, b] = &link.between;
        let given = if format!("{a}>{b}") <= format!("{b}>{a}") { [0, 1] } else { [1, 0] };
        let ends = given.map(|side| number(&link.between[side]));
        Edge { name: link.name.clone(), ends, given, index, mtu: link.mtu }
    }

    /// The links, sorted by name.
    pub(crate) fn links(&self) -> &[Edge] {
        &self.links
    }

    /// The number of a node.
    pub(crate) fn node(&self, name: &str) -> Option<usize> {
        self.nodes.binary_search_by(|node| node.as_str().cmp(name)).ok()
    }

    /// The link of this interface or direction.
    pub(crate) fn link_of(&self, interface: DirectionId) -> &Edge {
        &self.links[interface as usize / 2]
    }

    /// "a>b".
    pub(crate) fn label(&self, direction: DirectionId) -> String {
        let [from, to] = self.ends(direction);
        format!("{}>{}", self.nodes[from], self.nodes[to])
    }

    /// The label of the direction that leaves from an interface. Many hops leave from a radio: its label is the name of
    /// its node.
    pub(crate) fn interface_label(&self, interface: DirectionId) -> String {
        match self.radio(interface) {
            Some(radio) => self.nodes[self.radios.node(radio)].clone(),
            None => self.label(interface),
        }
    }

    /// The item to which an interface or a hop belongs: a link or a channel.
    pub(crate) fn medium(&self, number: DirectionId) -> &str {
        match (self.hop(number), self.radio(number)) {
            (Some(hop), _) => self.radios.channel(hop.radios()[0]).1,
            (None, Some(radio)) => self.radios.channel(radio).1,
            (None, None) => &self.link_of(number).name,
        }
    }

    /// The largest packet on a hop, in bytes with the IP header.
    pub(crate) fn mtu(&self, hop: DirectionId) -> u32 {
        if hop >= RADIO { RADIO_MTU } else { self.link_of(hop).mtu }
    }

    /// The largest packet that leaves by an interface, in bytes with the IP header.
    pub(crate) fn interface_mtu(&self, interface: DirectionId) -> u32 {
        self.radio(interface).map_or_else(|| self.link_of(interface).mtu, |_| RADIO_MTU)
    }

    /// The radios.
    pub(crate) fn radios(&self) -> &Radios {
        &self.radios
    }

    /// The name of a node.
    pub(crate) fn node_name(&self, node: usize) -> &str {
        &self.nodes[node]
    }

    /// The number of the radio, if the interface is a radio.
    fn radio(&self, interface: DirectionId) -> Option<u32> {
        interface.checked_sub(2 * self.links.len() as u32).filter(|_| interface < RADIO)
    }

    fn hop(&self, number: DirectionId) -> Option<&radios::RadioHop> {
        self.radios.hops().get(number.checked_sub(RADIO)? as usize)
    }

    /// The interfaces of a node, sorted by the names of their links and channels.
    pub(crate) fn interfaces(&self, node: usize) -> Vec<DirectionId> {
        let mut interfaces = self.interfaces_of(node);
        interfaces.sort_by_key(|interface| self.medium(*interface));
        interfaces
    }

    /// Whether two interfaces are on the same link or channel.
    pub(crate) fn joined(&self, a: DirectionId, b: DirectionId) -> bool {
        match (self.radio(a), self.radio(b)) {
            (Some(a), Some(b)) => self.radios.channel(a) == self.radios.channel(b),
            (None, None) => a == reverse(b),
            _ => false,
        }
    }

    /// The address of an interface: ".1" where direction 0 leaves.
    pub(crate) fn address(&self, interface: DirectionId, udp: u16, ipv6: bool) -> LocalAddress {
        if let Some(radio) = self.radio(interface) {
            return self.radio_address(radio, udp, ipv6);
        }
        let place = interface / 2 * 4 + 1 + interface % 2;
        let (ip, bits) = match ipv6 {
            false => (IpAddr::V4(Ipv4Addr::from_bits(FIRST + place)), 32),
            true => (IpAddr::V6(Ipv6Addr::from_bits(FIRST_V6 + u128::from(place))), 128),
        };
        LocalAddress { address: Address { ip, udp }, prefix: bits - WITHIN }
    }

    /// The address of a radio. Every channel has its own prefix.
    fn radio_address(&self, radio: u32, udp: u16, ipv6: bool) -> LocalAddress {
        let place = (self.radios.channel(radio).0 << WITHIN_CHANNEL) + 1 + self.radios.station(radio);
        let (ip, bits) = match ipv6 {
            false => (IpAddr::V4(Ipv4Addr::from_bits(FIRST_CHANNEL + place)), 32),
            true => (IpAddr::V6(Ipv6Addr::from_bits(FIRST_CHANNEL_V6 + u128::from(place))), 128),
        };
        LocalAddress { address: Address { ip, udp }, prefix: bits - WITHIN_CHANNEL }
    }

    /// The route from one interface to another as a list of hops. It is the shortest route; among shortest routes,
    /// the first by the names of links, then by radios. It leaves from the first interface and arrives at the second.
    /// Between two radios of one channel it stays on that channel.
    pub(crate) fn route(&self, from: DirectionId, to: DirectionId) -> Option<Vec<DirectionId>> {
        if let (Some(a), Some(b), true) = (self.radio(from), self.radio(to), self.joined(from, to)) {
            return Some(self.radios.way(a, b)?.into_iter().map(|hop| RADIO + hop).collect());
        }
        let (source, target) = (self.place(from), self.place(to));
        if source == target {
            return None;
        }
        let distance = self.distances(to);
        let left = |hop: DirectionId| match self.arrives_by(hop) == Some(to) {
            true => Some(0),
            false => distance.get(&self.ends(hop)[1]).copied(),
        };
        let nearest = |hops: Vec<DirectionId>| {
            let reaching = hops.into_iter().filter_map(|hop| Some((left(hop)?, hop)));
            reaching.min_by_key(|(left, _)| *left)
        };
        let (mut remaining, hop) = nearest(self.leaving(from))?;
        let mut route = vec![hop];
        while remaining > 0 {
            let at = self.ends(*route.last()?)[1];
            // The last hop may lead to a host: it is the opposite direction of the host's link.
            let last = self.radio(to).is_none().then(|| reverse(to)).filter(|hop| self.ends(*hop)[0] == at);
            let (next, hop) = nearest(last.into_iter().chain(self.onward[at].iter().copied()).collect())?;
            (remaining, route) = (next, [route, vec![hop]].concat());
        }
        Some(route)
    }

    /// The break in a channel because of which two nodes with radios on it have no route.
    pub(crate) fn gap(&self, from: usize, to: usize) -> Option<(&str, Gap)> {
        let other = |radio: u32| {
            self.radios.of(to).any(|there| self.radios.channel(there) == self.radios.channel(radio))
        };
        let radio = self.radios.of(from).find(|radio| other(*radio))?;
        Some((self.radios.channel(radio).1, self.radios.gap(radio)?))
    }

    /// For each forwarding node that can reach the interface `to`: the number of hops.
    fn distances(&self, to: DirectionId) -> BTreeMap<usize, u32> {
        let mut distance = BTreeMap::new();
        // Links and radios work in both directions: the hops that arrive at a node are the opposites of those that
        // leave it.
        let mut reached: Vec<usize> = self.leaving(to).into_iter().map(|hop| self.ends(hop)[1]).collect();
        for hops in 1.. {
            reached.retain(|node| !self.host[*node] && !distance.contains_key(node));
            if reached.is_empty() {
                break;
            }
            distance.extend(reached.iter().map(|node| (*node, hops)));
            let hops = reached.iter().flat_map(|node| self.onward[*node].iter().copied());
            reached = hops.map(|hop| self.ends(hop)[1]).collect();
        }
        distance
    }

    /// The hops that leave from an interface, in order.
    fn leaving(&self, interface: DirectionId) -> Vec<DirectionId> {
        match self.radio(interface) {
            Some(radio) => self.radios.hops_of(radio).map(|(hop, _)| RADIO + hop).collect(),
            None => vec![interface],
        }
    }

    /// The interface at which a hop arrives.
    fn arrives_by(&self, hop: DirectionId) -> Option<DirectionId> {
        match self.hop(hop) {
            Some(hop) => Some(2 * self.links.len() as u32 + hop.radios()[1]),
            None => Some(reverse(hop)),
        }
    }

    /// The node that has an interface.
    fn place(&self, interface: DirectionId) -> usize {
        self.radio(interface).map_or_else(|| self.ends(interface)[0], |radio| self.radios.node(radio))
    }

    /// The interfaces of a node: first those of links, by name, then radios.
    fn interfaces_of(&self, node: usize) -> Vec<DirectionId> {
        let wired = self.wired[node].iter().copied();
        wired.chain(self.radios.of(node).map(|radio| 2 * self.links.len() as u32 + radio)).collect()
    }

    /// The nodes at which a direction begins and ends.
    fn ends(&self, direction: DirectionId) -> [usize; 2] {
        if let Some(hop) = self.hop(direction) {
            return hop.radios().map(|radio| self.radios.node(radio));
        }
        let ends = self.link_of(direction).ends;
        if direction.is_multiple_of(2) { ends } else { [ends[1], ends[0]] }
    }
}

/// The other direction of the same link.
pub(crate) fn reverse(direction: DirectionId) -> DirectionId {
    direction ^ 1
}

/// Compares two routes: fewer links are better, then the names of the links decide (by number, because links are
/// sorted).
pub(crate) fn shorter(a: &[DirectionId], b: &[DirectionId]) -> Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tests::{link, scenario};

    /// The network of the paper: two disjoint paths of three links.
    pub(crate) const PAPER: [(&str, &str, &str); 6] = [
        ("sa", "s", "a"),
        ("ab", "a", "b"),
        ("br", "b", "r"),
        ("sc", "s", "c"),
        ("cd", "c", "d"),
        ("dr", "d", "r"),
    ];

    pub(crate) fn network(links: &[(&str, &str, &str)]) -> Network {
        Network::new(&scenario(links.iter().map(|(name, a, b)| link(name, a, b)).collect())).unwrap()
    }

    fn interface(network: &Network, node: &str, link: &str) -> DirectionId {
        let node = network.node(node).unwrap();
        *network.interfaces(node).iter().find(|i| network.link_of(**i).name == link).unwrap()
    }

    fn route(network: &Network, first: &str, last: &str) -> Option<Vec<String>> {
        let route = network.route(interface(network, "s", first), interface(network, "r", last))?;
        Some(route.into_iter().map(|d| format!("{} {}", network.link_of(d).name, network.label(d))).collect())
    }

    #[test]
    fn the_papers_two_paths() {
        let network = network(&PAPER);
        assert_eq!(route(&network, "sa", "br").unwrap(), ["sa s>a", "ab a>b", "br b>r"]);
        assert_eq!(route(&network, "sc", "dr").unwrap(), ["sc s>c", "cd c>d", "dr d>r"]);
        assert_eq!(route(&network, "sa", "dr"), None);
    }

    #[test]
    fn shortest_then_by_names() {
        let network = network(&[
            ("in", "s", "a"),
            ("z", "a", "b"),
            ("y", "b", "a"),
            ("x1", "a", "c"),
            ("x2", "c", "b"),
            ("out", "b", "r"),
        ]);
        assert_eq!(route(&network, "in", "out").unwrap(), ["in s>a", "y a>b", "out b>r"]);
    }

    #[test]
    fn hosts_do_not_forward() {
        let mut with_relay = scenario(vec![link("1", "s", "h"), link("2", "h", "r")]);
        let network = Network::new(&with_relay).unwrap();
        assert_eq!(route(&network, "1", "2").unwrap(), ["1 s>h", "2 h>r"]);
        let mut local = with_relay.flows[0].clone();
        local.to = "h".into();
        with_relay.flows.push(local);
        let network = Network::new(&with_relay).unwrap();
        assert_eq!(route(&network, "1", "2"), None);
    }

    #[test]
    fn direct_links_and_addresses() {
        let network = network(&[("wifi", "s", "r"), ("gprs", "r", "s")]);
        assert_eq!(route(&network, "wifi", "wifi").unwrap(), ["wifi s>r"]);
        assert_eq!(route(&network, "wifi", "gprs"), None);
        let address =
            |node, link| network.address(interface(&network, node, link), 0, false).address.ip.to_string();
        assert_eq!([address("r", "gprs"), address("s", "gprs")], ["10.0.0.1", "10.0.0.2"]);
        assert_eq!([address("r", "wifi"), address("s", "wifi")], ["10.0.0.5", "10.0.0.6"]);
    }
}
