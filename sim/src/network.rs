//! The topology: nodes are whatever links name, interfaces have addresses, routes are computed.
//!
//! Links and nodes are numbered by sorted name. The two directions of link number i are numbered 2i and
//! 2i + 1 by their labels ("a>b", "b>a"); an interface has the number of the direction that leaves from it.

use std::cmp::Ordering;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_proto::LocalAddress;
use anabranch_proto::wire::Address;

use crate::error::RunError;
use crate::scenario::Scenario;

/// The number of a link direction, and of the interface that it leaves from.
pub(crate) type DirectionId = u32;

/// Nodes, links and who may forward.
#[derive(Debug)]
pub(crate) struct Network {
    /// Names, sorted.
    nodes: Vec<String>,
    /// Sorted by name.
    links: Vec<Edge>,
    /// By node: whether a flow begins or ends there. Hosts do not forward.
    host: Vec<bool>,
}

/// A link.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) name: String,
    /// By direction 0 and 1: the node that it leaves from.
    ends: [usize; 2],
    /// By direction 0 and 1: which of the two of the scenario's link it is.
    pub(crate) given: [usize; 2],
    /// Which link of the scenario it is.
    pub(crate) index: usize,
    /// Bytes, IP header included.
    pub(crate) mtu: u32,
}

/// Every link has a prefix of its own, with two addresses; so many bits of an address are within it.
const WITHIN: u8 = 2;
/// The first link's prefix.
const FIRST: u32 = Ipv4Addr::new(10, 0, 0, 0).to_bits();
/// The same with IPv6.
const FIRST_V6: u128 = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0).to_bits();

impl Network {
    /// The network of a scenario whose links have been checked.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let mut nodes: Vec<String> = scenario.links.iter().flat_map(|link| link.between.clone()).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut network = Network { host: vec![false; nodes.len()], nodes, links: Vec::new() };
        network.links =
            scenario.links.iter().enumerate().map(|(index, _)| network.edge(scenario, index)).collect();
        network.links.sort_by(|a, b| a.name.cmp(&b.name));
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
                network.host[number] = true;
            }
        }
        Ok(network)
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

    /// The link that has this interface or direction.
    pub(crate) fn link_of(&self, interface: DirectionId) -> &Edge {
        &self.links[interface as usize / 2]
    }

    /// "a>b".
    pub(crate) fn label(&self, direction: DirectionId) -> String {
        let [from, to] = self.ends(direction);
        format!("{}>{}", self.nodes[from], self.nodes[to])
    }

    /// The interfaces of a node, by name of their links.
    pub(crate) fn interfaces(&self, node: usize) -> Vec<DirectionId> {
        self.directions().filter(|direction| self.ends(*direction)[0] == node).collect()
    }

    /// The address of an interface, ".1" where direction 0 leaves.
    pub(crate) fn address(&self, interface: DirectionId, udp: u16, ipv6: bool) -> LocalAddress {
        let place = interface / 2 * 4 + 1 + interface % 2;
        let (ip, bits) = match ipv6 {
            false => (IpAddr::V4(Ipv4Addr::from_bits(FIRST + place)), 32),
            true => (IpAddr::V6(Ipv6Addr::from_bits(FIRST_V6 + u128::from(place))), 128),
        };
        LocalAddress { address: Address { ip, udp }, prefix: bits - WITHIN }
    }

    /// The route from one interface to another, as link directions: the shortest by number of links, of these
    /// the first by names of links. It leaves by the first interface's link and arrives by the second's.
    pub(crate) fn route(&self, from: DirectionId, to: DirectionId) -> Option<Vec<DirectionId>> {
        let last = reverse(to);
        if from == last {
            return Some(vec![from]);
        }
        let [source, mut at] = self.ends(from);
        let [goal, target] = self.ends(last);
        if source == target || self.host[at] || self.host[goal] {
            return None;
        }
        let distance = self.distances(goal);
        distance[at]?;
        let mut route = vec![from];
        while at != goal {
            let nearer = |direction: &DirectionId| {
                let [leaves, arrives] = self.ends(*direction);
                leaves == at && distance[arrives].is_some_and(|there| Some(there + 1) == distance[at])
            };
            let next = self.directions().find(nearer)?;
            at = self.ends(next)[1];
            route.push(next);
        }
        route.push(last);
        Some(route)
    }

    /// By node: links from there to `goal` through nodes that forward.
    fn distances(&self, goal: usize) -> Vec<Option<u32>> {
        let mut distance = vec![None; self.nodes.len()];
        distance[goal] = Some(0);
        for links in 1.. {
            let mut reached = false;
            for direction in self.directions() {
                let [leaves, arrives] = self.ends(direction);
                if distance[arrives] == Some(links - 1) && distance[leaves].is_none() && !self.host[leaves] {
                    distance[leaves] = Some(links);
                    reached = true;
                }
            }
            if !reached {
                break;
            }
        }
        distance
    }

    fn directions(&self) -> impl Iterator<Item = DirectionId> {
        0..2 * self.links.len() as DirectionId
    }

    /// Where a direction leaves and arrives.
    fn ends(&self, direction: DirectionId) -> [usize; 2] {
        let ends = self.link_of(direction).ends;
        if direction.is_multiple_of(2) { ends } else { [ends[1], ends[0]] }
    }
}

/// The other direction of the same link.
pub(crate) fn reverse(direction: DirectionId) -> DirectionId {
    direction ^ 1
}

/// Which of two routes is better: fewer links, then the names of the links (their numbers, as they are sorted).
pub(crate) fn shorter(a: &[DirectionId], b: &[DirectionId]) -> Ordering {
    (a.len(), a).cmp(&(b.len(), b))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tests::{link, scenario};

    /// The paper's: two disjoint paths of three links.
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
