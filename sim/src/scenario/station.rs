//! Where nodes with radios stand: `[[node]]`, `[[chain]]`, `[[grid]]`; and `[[route]]`, the ways between them.

use super::at::{At, Result};
use super::keys::{Default, Key, fill};

/// A node with radios. All are where the node is.
#[derive(Clone, PartialEq, Debug)]
pub struct Station {
    /// The node's name.
    pub node: String,
    /// Metres east and north.
    pub place: [f64; 2],
    /// A radio on each of these channels.
    pub channels: Vec<String>,
}

/// A way that packets take between two radios of a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Route {
    /// The channel.
    pub channel: String,
    /// The nodes from one end to the other.
    pub through: Vec<String>,
}

/// Nodes in a row or in rows.
pub(super) struct Draft {
    name: String,
    at: Option<[f64; 2]>,
    spacing: f64,
    columns: u32,
    rows: u32,
    channels: Vec<String>,
}

/// Most nodes that one table makes.
const MOST: u32 = 1 << 14;

pub(super) const CHAIN_KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "Its nodes have this name and a number: `a0`, `a1`, …",
        read: |draft, at| at.name().map(|name| draft.name = name),
    },
    Key {
        name: "hops",
        takes: "count",
        default: Default::Required,
        doc: "The number of hops; the chain has one more node.",
        read: |draft, at| at.count(1..=MOST).map(|hops| draft.columns = hops + 1),
    },
    Key {
        name: "spacing",
        takes: "length",
        default: Default::Required,
        doc: "The distance from each node to the next, eastwards.",
        read: |draft, at| at.length().map(|metres| draft.spacing = metres),
    },
    Key {
        name: "at",
        takes: "array of two lengths",
        default: Default::Value("[\"0 m\", \"0 m\"]"),
        doc: "The position of its first node: east and north.",
        read: |draft, at| at.place_of().map(|place| draft.at = Some(place)),
    },
    Key {
        name: "channels",
        takes: "array of channels",
        default: Default::Required,
        doc: "Each of its nodes has a radio on each of these.",
        read: |draft, at| channels(at).map(|channels| draft.channels = channels),
    },
];

pub(super) const GRID_KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "Its nodes have this name, their column and their row, from 0: `g2-3`.",
        read: |draft, at| at.name().map(|name| draft.name = name),
    },
    Key {
        name: "columns",
        takes: "count",
        default: Default::Required,
        doc: "The number of nodes eastwards.",
        read: |draft, at| at.count(1..=1024u32).map(|count| draft.columns = count),
    },
    Key {
        name: "rows",
        takes: "count",
        default: Default::Required,
        doc: "The number of nodes northwards.",
        read: |draft, at| at.count(1..=1024u32).map(|count| draft.rows = count),
    },
    Key {
        name: "spacing",
        takes: "length",
        default: Default::Required,
        doc: "The distance from each node to the next, eastwards and northwards.",
        read: |draft, at| at.length().map(|metres| draft.spacing = metres),
    },
    Key {
        name: "at",
        takes: "array of two lengths",
        default: Default::Value("[\"0 m\", \"0 m\"]"),
        doc: "The position of its node `g0-0`: east and north.",
        read: |draft, at| at.place_of().map(|place| draft.at = Some(place)),
    },
    Key {
        name: "channels",
        takes: "array of channels",
        default: Default::Required,
        doc: "Each of its nodes has a radio on each of these.",
        read: |draft, at| channels(at).map(|channels| draft.channels = channels),
    },
];

pub(super) const NODE_KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name that links and flows use. If any node is declared, links may only join declared nodes; otherwise the links define the nodes.",
        read: |draft, at| at.name().map(|name| draft.name = name),
    },
    Key {
        name: "at",
        takes: "array of two lengths",
        default: Default::Text("needed only for radios"),
        doc: "Where it is: east and north, `[\"300 m\", \"-0.5 km\"]`.",
        read: |draft, at| at.place_of().map(|place| draft.at = Some(place)),
    },
    Key {
        name: "channels",
        takes: "array of channels",
        default: Default::Value("[]"),
        doc: "The channels on which it has a radio. A node with radios forwards packets, even if a flow begins or ends there.",
        read: |draft, at| channels(at).map(|channels| draft.channels = channels),
    },
];

fn channels(at: &At<'_>) -> Result<Vec<String>> {
    let mut channels: Vec<String> = Vec::new();
    for item in at.array("an array of channels")? {
        let name = item.string()?.to_owned();
        if channels.contains(&name) {
            return Err(item
                .error(format!("channel `{name}` stands here twice"))
                .hint("a node has one radio on a channel"));
        }
        channels.push(name);
    }
    Ok(channels)
}

fn drafted(at: &At<'_>, keys: &[Key<Draft>]) -> Result<Draft> {
    let mut draft =
        Draft { name: String::new(), at: None, spacing: 0.0, columns: 1, rows: 1, channels: Vec::new() };
    fill(&mut draft, at, keys)?;
    Ok(draft)
}

/// Reads a `[[node]]`.
pub(super) fn node(at: &At<'_>) -> Result<Station> {
    let draft = drafted(at, NODE_KEYS)?;
    if draft.at.is_none() && !draft.channels.is_empty() {
        return Err(at
            .error_below("at", "a node with radios must be somewhere")
            .hint("at = [\"0 m\", \"0 m\"]"));
    }
    Ok(Station { node: draft.name, place: draft.at.unwrap_or_default(), channels: draft.channels })
}

/// Reads a `[[chain]]`: its nodes.
pub(super) fn chain(at: &At<'_>) -> Result<Vec<Station>> {
    let draft = drafted(at, CHAIN_KEYS)?;
    Ok((0..draft.columns).map(|number| draft.station(format!("{}{number}", draft.name), number, 0)).collect())
}

/// Reads a `[[grid]]`: its nodes.
pub(super) fn grid(at: &At<'_>) -> Result<Vec<Station>> {
    let draft = drafted(at, GRID_KEYS)?;
    if draft.columns * draft.rows > MOST {
        return Err(at.error_below("rows", "this grid has too many nodes").hint(format!("at most {MOST}")));
    }
    let places = (0..draft.columns).flat_map(|column| (0..draft.rows).map(move |row| (column, row)));
    Ok(places
        .map(|(column, row)| draft.station(format!("{}{column}-{row}", draft.name), column, row))
        .collect())
}

impl Draft {
    fn station(&self, node: String, column: u32, row: u32) -> Station {
        let [east, north] = self.at.unwrap_or_default();
        let place = [east + self.spacing * f64::from(column), north + self.spacing * f64::from(row)];
        Station { node, place, channels: self.channels.clone() }
    }
}

pub(super) const ROUTE_KEYS: &[Key<Route>] = &[
    Key {
        name: "channel",
        takes: "a channel's name",
        default: Default::Required,
        doc: "The channel on which the packets stay.",
        read: |route, at| at.string().map(|channel| route.channel = channel.to_owned()),
    },
    Key {
        name: "through",
        takes: "array of nodes",
        default: Default::Required,
        doc: "The nodes from one end to the other, each in reach of the next. The reverse direction uses the same nodes, unless another route is given for it.",
        read: |route, at| {
            route.through = at.array("an array of nodes")?.iter().map(At::name).collect::<Result<_>>()?;
            match route.through.len() {
                0 | 1 => Err(at.error("a route has two ends").hint("through = [\"a0\", \"a1\", \"a3\"]")),
                _ => Ok(()),
            }
        },
    },
];

/// Reads a `[[route]]`.
pub(super) fn route(at: &At<'_>) -> Result<Route> {
    let mut route = Route { channel: String::new(), through: Vec::new() };
    fill(&mut route, at, ROUTE_KEYS)?;
    Ok(route)
}
