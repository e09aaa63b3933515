//! The two ends of a flow: their interfaces, the order of these, and the names of the paths.

use crate::error::RunError;
use crate::network::{DirectionId, Network, shorter};
use crate::scenario::{Flow, Transport};

/// The interfaces of a flow's two ends and the paths between them.
///
/// By default an endpoint pairs a peer address with a local address on the same link, otherwise with the local
/// address at the same position. So the interfaces are ordered such that position i of one end reaches position i of
/// the other end wherever possible. The primary path comes first.
#[derive(Debug)]
pub(crate) struct Ends {
    /// The sender's.
    pub(crate) client: Vec<DirectionId>,
    /// The receiver's.
    pub(crate) server: Vec<DirectionId>,
    /// Pairs of positions (client, server) that become paths.
    pub(crate) paths: Vec<(usize, usize)>,
    /// The pair that the flow names as its primary.
    pub(crate) primary: Option<(usize, usize)>,
    /// The name of the path for each pair, in rows by the client's positions.
    names: Vec<String>,
}

impl Ends {
    /// The ends of `flow`. Both of its nodes exist.
    pub(crate) fn new(network: &Network, flow: &Flow) -> Result<Self, RunError> {
        let grid = Grid::new(network, flow)?;
        let all_pairs = flow.all_pairs();
        let matching = |asked| match flow.transport {
            Transport::Mptcp(_) => grid.with_each_client(grid.matching(asked)),
            _ => grid.matching(asked),
        };
        let mut pairs = if all_pairs { grid.all() } else { matching(None) };
        let mut primary = None;
        if let Some(name) = flow.primary() {
            let mut found = grid.named(&pairs, name);
            if found.is_none() && !all_pairs {
                // "first/last" may require another pairing than the default.
                let asked = grid.all().into_iter().find(|pair| grid.full_name(*pair) == *name);
                let pairing = matching(asked);
                found = asked.filter(|pair| pairing.contains(pair));
                pairs = if found.is_some() { pairing } else { pairs };
            }
            primary = Some(found.ok_or_else(|| RunError::UnknownPath {
                flow: flow.name.clone(),
                key: "primary",
                path: name.clone(),
                known: grid.names(&pairs),
            })?);
        }
        Ok(grid.ordered(pairs, primary, all_pairs))
    }

    /// The name of the path between these positions: its first link, seen from the sender; or "first/last" if another
    /// path has the same first link, or if the pair is not a default path.
    pub(crate) fn name(&self, client: usize, server: usize) -> &str {
        &self.names[client * self.server.len() + server]
    }
}

/// All pairs of the interfaces of two nodes, by positions in the order of their links' names.
struct Grid<'a> {
    network: &'a Network,
    client: Vec<DirectionId>,
    server: Vec<DirectionId>,
    /// In rows by the client's interfaces: the route, if there is one.
    routes: Vec<Option<Vec<DirectionId>>>,
}

type Pair = (usize, usize);

impl<'a> Grid<'a> {
    /// Keeps only interfaces that can reach the other end.
    fn new(network: &'a Network, flow: &Flow) -> Result<Self, RunError> {
        let interfaces = |name| network.node(name).map(|node| network.interfaces(node)).unwrap_or_default();
        let (client, server) = (interfaces(&flow.from), interfaces(&flow.to));
        let linked = |a: DirectionId, b: DirectionId| network.route(a, b).is_some();
        let reaching: Vec<_> =
            client.iter().copied().filter(|c| server.iter().any(|s| linked(*c, *s))).collect();
        let reached: Vec<_> =
            server.iter().copied().filter(|s| client.iter().any(|c| linked(*c, *s))).collect();
        if reaching.is_empty() || flow.from == flow.to {
            let Flow { name, from, to, .. } = flow.clone();
            let nodes = network.node(&from).zip(network.node(&to));
            return Err(match nodes.and_then(|(from, to)| network.gap(from, to)) {
                Some((channel, gap)) => RunError::Gap {
                    flow: name,
                    channel: channel.to_owned(),
                    nodes: gap.nodes.map(|node| network.node_name(node).to_owned()),
                    metres: gap.metres,
                },
                None => RunError::NoRoute { flow: name, from, to },
            });
        }
        let routes = reaching.iter().flat_map(|c| reached.iter().map(|s| network.route(*c, *s))).collect();
        Ok(Grid { network, client: reaching, server: reached, routes })
    }

    fn route(&self, (client, server): Pair) -> Option<&Vec<DirectionId>> {
        self.routes[client * self.server.len() + server].as_ref()
    }

    /// All pairs with a route.
    fn all(&self) -> Vec<Pair> {
        let pairs = (0..self.client.len()).flat_map(|c| (0..self.server.len()).map(move |s| (c, s)));
        pairs.filter(|pair| self.route(*pair).is_some()).collect()
    }

    /// The largest set of pairs in which no interface occurs twice: first those on one link, then `asked`, then the
    /// client's interfaces in turn, each with the nearest free interface of the server.
    ///
    /// Choosing the nearest never loses a pair, because interfaces that routers connect all reach each other.
    fn matching(&self, asked: Option<Pair>) -> Vec<Pair> {
        let on_link = |(c, s): &Pair| self.network.joined(self.client[*c], self.server[*s]);
        let free = |pairs: &[Pair], (c, s): Pair| pairs.iter().all(|other| other.0 != c && other.1 != s);
        let mut pairs: Vec<Pair> = self.all().into_iter().filter(on_link).collect();
        pairs.extend(asked.filter(|pair| free(&pairs, *pair)));
        for client in 0..self.client.len() {
            let candidates = (0..self.server.len()).map(|server| (client, server));
            let candidates = candidates.filter(|pair| free(&pairs, *pair));
            let routes = candidates.filter_map(|pair| Some((self.route(pair)?, pair)));
            let nearest = routes.min_by(|(a, _), (b, _)| shorter(a, b));
            pairs.extend(nearest.map(|(_, pair)| pair));
        }
        pairs.sort_unstable();
        pairs
    }

    /// These pairs, and for each interface of the client that is in none of them a pair with the nearest interface of
    /// the server: a client of Multipath TCP joins from each of its interfaces, also to a server with one address.
    fn with_each_client(&self, mut pairs: Vec<Pair>) -> Vec<Pair> {
        for client in 0..self.client.len() {
            if pairs.iter().all(|pair| pair.0 != client) {
                let candidates = (0..self.server.len()).map(|server| (client, server));
                let routes = candidates.filter_map(|pair| Some((self.route(pair)?, pair)));
                pairs.extend(routes.min_by(|(a, _), (b, _)| shorter(a, b)).map(|(_, pair)| pair));
            }
        }
        pairs.sort_unstable();
        pairs
    }

    fn first_link(&self, (client, _): Pair) -> &str {
        self.network.medium(self.client[client])
    }

    fn full_name(&self, pair: Pair) -> String {
        format!("{}/{}", self.first_link(pair), self.network.medium(self.server[pair.1]))
    }

    /// The name of a pair among `pairs`.
    fn name(&self, pairs: &[Pair], pair: Pair) -> String {
        let sharing = pairs.iter().filter(|other| other.0 == pair.0).count();
        if pairs.contains(&pair) && sharing == 1 {
            self.first_link(pair).to_owned()
        } else {
            self.full_name(pair)
        }
    }

    fn names(&self, pairs: &[Pair]) -> Vec<String> {
        pairs.iter().map(|pair| self.name(pairs, *pair)).collect()
    }

    fn named(&self, pairs: &[Pair], name: &str) -> Option<Pair> {
        pairs.iter().copied().find(|pair| self.name(pairs, *pair) == name || self.full_name(*pair) == name)
    }

    /// The ends: the primary's interfaces first, then those of the other pairs, then the rest.
    fn ordered(&self, pairs: Vec<Pair>, primary: Option<Pair>, all_pairs: bool) -> Ends {
        let aligned = if all_pairs { Vec::new() } else { pairs.clone() };
        let leading: Vec<Pair> = primary.into_iter().chain(aligned).collect();
        let clients = in_order(leading.iter().map(|pair| pair.0), self.client.len());
        let servers = in_order(leading.iter().map(|pair| pair.1), self.server.len());
        let position = |order: &[usize], old| order.iter().position(|o| *o == old).expect("an order has all");
        let moved = |pair: Pair| (position(&clients, pair.0), position(&servers, pair.1));
        let mut paths: Vec<Pair> = pairs.iter().map(|pair| moved(*pair)).collect();
        paths.sort_unstable();
        Ends {
            client: clients.iter().map(|old| self.client[*old]).collect(),
            server: servers.iter().map(|old| self.server[*old]).collect(),
            paths,
            primary: primary.map(moved),
            names: clients.iter().flat_map(|c| servers.iter().map(|s| self.name(&pairs, (*c, *s)))).collect(),
        }
    }
}

/// The numbers below `count`, with those of `leading` first.
fn in_order(leading: impl Iterator<Item = usize>, count: usize) -> Vec<usize> {
    let mut order = Vec::with_capacity(count);
    for number in leading.chain(0..count) {
        if !order.contains(&number) {
            order.push(number);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::tests::{PAPER, network};
    use crate::scenario::{Mptcp, Sctp};
    use crate::tests::flow;

    fn ends(links: &[(&str, &str, &str)], primary: Option<&str>, all_pairs: bool) -> Result<Ends, RunError> {
        let sctp = Sctp { primary: primary.map(str::to_owned), all_pairs, ..Sctp::default() };
        let flow = Flow { transport: Transport::Sctp(Box::new(sctp)), ..flow("f", "s", "r") };
        Ends::new(&network(links), &flow)
    }

    fn links_of(network: &Network, interfaces: &[DirectionId]) -> Vec<String> {
        interfaces.iter().map(|i| network.link_of(*i).name.clone()).collect()
    }

    fn path_names(ends: &Ends) -> Vec<&str> {
        ends.paths.iter().map(|(c, s)| ends.name(*c, *s)).collect()
    }

    #[test]
    fn positions_reach_each_other() {
        let network = network(&PAPER);
        let ends = ends(&PAPER, None, false).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["sa", "sc"]);
        assert_eq!(links_of(&network, &ends.server), ["br", "dr"]);
        assert_eq!(path_names(&ends), ["sa", "sc"]);
    }

    #[test]
    fn the_primary_comes_first_at_both_ends() {
        let network = network(&PAPER);
        let ends = ends(&PAPER, Some("sc"), false).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["sc", "sa"]);
        assert_eq!(links_of(&network, &ends.server), ["dr", "br"]);
        assert_eq!(ends.primary, Some((0, 0)));
        assert_eq!(path_names(&ends), ["sc", "sa"]);
    }

    #[test]
    fn an_unknown_primary_is_refused_with_the_names_there_are() {
        let Err(RunError::UnknownPath { known, .. }) = ends(&PAPER, Some("ab"), false) else { panic!() };
        assert_eq!(known, ["sa", "sc"]);
    }

    /// Both interfaces of both ends reach each other through one router.
    const STAR: [(&str, &str, &str); 4] =
        [("s1", "s", "x"), ("s2", "s", "x"), ("r1", "r", "x"), ("r2", "x", "r")];

    #[test]
    fn all_pairs_have_full_names() {
        let network = network(&STAR);
        let ends = ends(&STAR, Some("s2/r1"), true).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["s2", "s1"]);
        assert_eq!(path_names(&ends), ["s2/r1", "s2/r2", "s1/r1", "s1/r2"]);
        assert_eq!(ends.primary, Some((0, 0)));
    }

    #[test]
    fn a_full_name_asks_for_another_pairing() {
        let network = network(&STAR);
        let plain = ends(&STAR, Some("s2"), false).unwrap();
        assert_eq!(links_of(&network, &plain.server), ["r2", "r1"]);
        let crossed = ends(&STAR, Some("s2/r1"), false).unwrap();
        assert_eq!(links_of(&network, &crossed.client), ["s2", "s1"]);
        assert_eq!(links_of(&network, &crossed.server), ["r1", "r2"]);
        assert_eq!(path_names(&crossed), ["s2", "s1"]);
    }

    #[test]
    fn the_nearest_are_paired() {
        let links =
            [("s1", "s", "x"), ("s2", "s", "y"), ("r1", "r", "y"), ("r2", "x", "r"), ("xy", "x", "y")];
        let network = network(&links);
        let ends = ends(&links, None, false).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["s1", "s2"]);
        assert_eq!(links_of(&network, &ends.server), ["r2", "r1"]);
    }

    #[test]
    fn links_of_their_own_go_together() {
        let links = [("a", "s", "x"), ("b", "x", "r"), ("direct", "s", "r"), ("z", "x", "r")];
        let network = network(&links);
        let ends = ends(&links, None, false).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["a", "direct"]);
        assert_eq!(links_of(&network, &ends.server), ["b", "direct", "z"]);
    }

    #[test]
    fn multipath_tcp_joins_from_each_interface() {
        let links = [("wifi", "s", "x"), ("lte", "s", "x"), ("access", "x", "r")];
        let network = network(&links);
        let paths = |transport, name: &str| {
            let ends = Ends::new(&network, &Flow { transport, ..flow(name, "s", "r") }).expect("a route");
            path_names(&ends).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let primary = Mptcp { primary: Some("wifi".to_owned()), ..Mptcp::default() };
        assert_eq!(paths(Transport::Mptcp(Box::new(primary)), "m"), ["wifi", "lte"]);
        assert_eq!(paths(Transport::Sctp(Box::default()), "s"), ["lte"]);
    }

    #[test]
    fn dead_ends_are_left_out() {
        let links = [("lan", "s", "printer"), ("wan", "s", "r")];
        let network = network(&links);
        let ends = ends(&links, None, false).unwrap();
        assert_eq!(links_of(&network, &ends.client), ["wan"]);
        let apart = [("lan", "s", "x"), ("wan", "y", "r")];
        assert!(matches!(
            Ends::new(&super::tests::network(&apart), &flow("f", "s", "r")),
            Err(RunError::NoRoute { .. })
        ));
    }
}
