//! The top of a document, and the checks that depend on several tables.

use std::collections::BTreeSet;

use anabranch_proto::{Config, Duration, Policies};

use super::at::{At, Result};
use super::document::Document;
use super::error::{ScenarioError, listed};
use super::joined::Joined;
use super::keys::{Default, Key, fill};
use super::{
    Change, CrossTraffic, Flow, Link, Scenario, Station, air, channel, cross, flow, link, sctp, station,
};

/// The draft of a scenario.
pub(super) struct Draft {
    scenario: Scenario,
    era: Config,
    /// The nodes that tables define.
    nodes: Vec<String>,
    /// Whether one of them comes from a `[[node]]`.
    declared: bool,
    policies: Policies,
}

impl Draft {
    fn add(&mut self, station: Station) {
        self.nodes.push(station.node.clone());
        if !station.channels.is_empty() {
            self.scenario.stations.push(station);
        }
    }
}

pub(super) const KEYS: &[Key<Draft>] = &[
    Key {
        name: "title",
        takes: "string",
        default: Default::Text("none"),
        doc: "A title, printed above the table of results.",
        read: |_, at| at.string().map(drop),
    },
    Key {
        name: "description",
        takes: "string",
        default: Default::Text("none"),
        doc: "A description, printed below the title.",
        read: |_, at| at.string().map(drop),
    },
    Key {
        name: "era",
        takes: "era",
        default: Default::Value("\"rfc9260\""),
        doc: "The edition of the standard whose defaults every flow uses unless it names its own: `\"rfc2960\"`, `\"rfc4960\"`, `\"rfc9260\"`, or `\"ns2\"` for the choices of ns-2's module.",
        read: |draft, at| {
            draft.era = sctp::era(at)?;
            draft.scenario.era = at.string()?.to_owned();
            Ok(())
        },
    },
    Key {
        name: "seed",
        takes: "count",
        default: Default::Value("1"),
        doc: "The random seed of the run; `--seed` overrides it.",
        read: |draft, at| at.count(0..=u64::MAX).map(|seed| draft.scenario.seed = seed),
    },
    Key {
        name: "wire",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether every packet is encoded to bytes and decoded again; the results are the same.",
        read: |draft, at| at.boolean().map(|wire| draft.scenario.wire = wire),
    },
    Key {
        name: "stop",
        takes: "duration",
        default: Default::Text("when every flow is done and shut down"),
        doc: "The latest end of the run, counted from its beginning.",
        read: |draft, at| at.duration().map(|stop| draft.scenario.stop = Some(stop)),
    },
    Key {
        name: "ip_header",
        takes: "size",
        default: Default::Value("\"20 B\""),
        doc: "The size of the IP header of every packet: 20 bytes for IPv4, 40 for IPv6.",
        read: |draft, at| at.size32(0..=255).map(|size| draft.scenario.ip_header = size),
    },
    Key {
        name: "measure",
        takes: "array of two durations",
        default: Default::Text("the whole run only"),
        doc: "The part of the run whose results are also reported separately: `[\"60 s\", \"360 s\"]` from the beginning of the run. They are `measured` beside those of the whole run.",
        read: |draft, at| measure(at).map(|measure| draft.scenario.measure = Some(measure)),
    },
    Key {
        name: "node",
        takes: "tables",
        default: Default::Text("the nodes that links join"),
        doc: "The nodes, each a `[[node]]`.",
        read: |draft, at| {
            for table in at.tables()? {
                draft.declared = true;
                draft.add(station::node(&table)?);
            }
            Ok(())
        },
    },
    Key {
        name: "channel",
        takes: "tables",
        default: Default::Text("no radios"),
        doc: "The channels that radios share, each a `[[channel]]`; their order has no effect.",
        read: |draft, at| {
            draft.scenario.channels = at.tables()?.iter().map(channel::channel).collect::<Result<_>>()?;
            Ok(())
        },
    },
    Key {
        name: "chain",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Nodes with radios in a row, each row a `[[chain]]`.",
        read: |draft, at| {
            for table in at.tables()? {
                station::chain(&table)?.into_iter().for_each(|station| draft.add(station));
            }
            Ok(())
        },
    },
    Key {
        name: "grid",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Nodes with radios in rows and columns, each a `[[grid]]`.",
        read: |draft, at| {
            for table in at.tables()? {
                station::grid(&table)?.into_iter().for_each(|station| draft.add(station));
            }
            Ok(())
        },
    },
    Key {
        name: "route",
        takes: "tables",
        default: Default::Text("the fewest hops, of these the first by names"),
        doc: "Routes between radios, each a `[[route]]`.",
        read: |draft, at| {
            draft.scenario.routes = at.tables()?.iter().map(station::route).collect::<Result<_>>()?;
            Ok(())
        },
    },
    Key {
        name: "link",
        takes: "tables",
        default: Default::Text("required without channels"),
        doc: "The links, each a `[[link]]`; their order has no effect.",
        read: |draft, at| {
            for table in at.tables()? {
                let (link, changes) = link::link(&table)?;
                draft.scenario.links.push(link);
                draft.scenario.changes.extend(changes);
            }
            Ok(())
        },
    },
    Key {
        name: "change",
        takes: "tables",
        default: Default::Text("nothing changes"),
        doc: "Changes during the run, each a `[[change]]`.",
        read: |draft, at| {
            let changes: Vec<Change> = at.tables()?.iter().map(link::change).collect::<Result<_>>()?;
            draft.scenario.changes.extend(changes);
            Ok(())
        },
    },
    Key {
        name: "flow",
        takes: "tables",
        default: Default::Text("none; then there must be `[[traffic]]`"),
        doc: "The flows, each a `[[flow]]`; their order has no effect.",
        read: |draft, at| {
            for table in at.tables()? {
                draft.scenario.flows.push(flow::flow(&table, &draft.era, &draft.policies)?);
            }
            Ok(())
        },
    },
    Key {
        name: "traffic",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Cross traffic, each a `[[traffic]]`: it fills queues, and a run does not wait for its end.",
        read: |draft, at| {
            draft.scenario.traffic = at.tables()?.iter().map(cross::traffic).collect::<Result<_>>()?;
            Ok(())
        },
    },
];

impl Document {
    /// The scenario that the document describes, with the name `name`; or its first fault. Policies must be among
    /// `policies`.
    pub fn scenario(&self, name: &str, policies: &Policies) -> std::result::Result<Scenario, ScenarioError> {
        self.read(name, policies, false)
    }

    /// As `scenario`, but nothing need be sent: programs outside will send ([`Live`](crate::Live)).
    pub fn network(&self, name: &str, policies: &Policies) -> std::result::Result<Scenario, ScenarioError> {
        self.read(name, policies, true)
    }

    fn read(
        &self,
        name: &str,
        policies: &Policies,
        may_be_silent: bool,
    ) -> std::result::Result<Scenario, ScenarioError> {
        let root = At::root(self);
        let era = Config::default();
        let scenario = Scenario { name: name.to_owned(), ..Scenario::default() };
        let mut draft =
            Draft { scenario, era, nodes: Vec::new(), declared: false, policies: policies.clone() };
        fill(&mut draft, &root, KEYS)?;
        if draft.scenario.links.is_empty() && draft.scenario.channels.is_empty() {
            return Err(root.error_below("link", "this key is missing").hint("add a table `[[link]]`"));
        }
        let tables = |key| root.get(key).map_or(Ok(Vec::new()), |at| at.tables());
        let (nodes, links, changes, flows) =
            (tables("node")?, tables("link")?, tables("change")?, tables("flow")?);
        let traffic = tables("traffic")?;
        let senders = [flows.as_slice(), &traffic].concat();
        for (key, tables) in [("node", &nodes), ("link", &links), ("flow", &senders)] {
            names_are_unique(key, tables)?;
        }
        air::check(&root, &draft.scenario)?;
        if senders.is_empty() && !may_be_silent {
            return Err(root
                .error_below("flow", "this key is missing: nothing is sent")
                .hint("add a table `[[flow]]`"));
        }
        let nodes = nodes_of(&draft, &links)?;
        let least = least_mtu(&draft.scenario);
        for (at, link) in links.iter().zip(&draft.scenario.links) {
            mtu_is_enough(at, link, least)?;
        }
        let joined = Joined::new(&draft.scenario);
        changes.iter().try_for_each(|at| link_exists(at, &draft.scenario.links))?;
        links.iter().chain(&changes).try_for_each(|at| lost_flow_exists(at, &draft.scenario.flows))?;
        for (at, flow) in flows.iter().zip(&draft.scenario.flows) {
            flow_fits(at, flow, &draft.scenario, &nodes, &joined)?;
        }
        for (at, traffic) in traffic.iter().zip(&draft.scenario.traffic) {
            traffic_fits(at, traffic, &draft.scenario, &nodes, &joined)?;
        }
        Ok(draft.scenario)
    }

    /// The document's `title`, and its `description`.
    pub fn headings(&self) -> [Option<String>; 2] {
        let text = |key| Some(At::root(self).get(key)?.string().ok()?.trim().to_owned());
        [text("title"), text("description")]
    }
}

fn measure(at: &At<'_>) -> Result<[Duration; 2]> {
    let times = at.array("an array of two times")?;
    let [from, until] = times.as_slice() else {
        return Err(at
            .error(format!("this has a beginning and an end, found {} times", times.len()))
            .hint("measure = [\"60 s\", \"360 s\"]"));
    };
    let (from, until) = (from.duration()?, until.duration()?);
    if until <= from {
        return Err(at.error("this ends before it has begun").hint("put the earlier time first"));
    }
    Ok([from, until])
}

fn names_are_unique(what: &str, tables: &[At<'_>]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for at in tables {
        let Some(name) = at.get("name") else { continue };
        if !seen.insert(name.string()?) {
            return Err(name
                .error(format!("there is another {what} `{}`", name.string()?))
                .hint("names are unique: call one of them something else"));
        }
    }
    Ok(())
}

/// The existing nodes. If nodes are declared, links may join no others.
fn nodes_of<'s>(draft: &'s Draft, links: &[At<'_>]) -> Result<BTreeSet<&'s str>> {
    let made = draft.nodes.iter().map(String::as_str);
    if !draft.declared {
        let joined = draft.scenario.links.iter().flat_map(|link| &link.between).map(String::as_str);
        return Ok(joined.chain(made).collect());
    }
    let nodes: BTreeSet<&str> = made.collect();
    for link in links {
        for end in link.get("between").map_or(Ok(Vec::new()), |at| at.array("two nodes"))? {
            if !nodes.contains(end.string()?) {
                return Err(end.unknown("node", end.string()?, nodes.iter().copied()));
            }
        }
    }
    Ok(nodes)
}

/// Every path must carry the packets that SCTP requires: 508 bytes in addition to the headers of IP and UDP.
fn least_mtu(scenario: &Scenario) -> u32 {
    let header = |flow: &Flow| {
        let udp = flow.sctp().map(|sctp| if sctp.udp { 8 } else { 0 });
        udp.map(|udp| flow.ip_header.unwrap_or(scenario.ip_header) + udp)
    };
    508 + scenario.flows.iter().filter_map(header).max().unwrap_or(scenario.ip_header)
}

fn mtu_is_enough(at: &At<'_>, link: &Link, least: u32) -> Result<()> {
    if link.mtu >= least {
        return Ok(());
    }
    Err(at
        .error_below("mtu", format!("{} B cannot carry SCTP", link.mtu))
        .hint(format!("at least {least} B")))
}

fn link_exists(change: &At<'_>, links: &[Link]) -> Result<()> {
    let Some(at) = change.get("link") else { return Ok(()) };
    let name = at.string()?;
    match links.iter().any(|link| link.name == name) {
        true => Ok(()),
        false => Err(at.unknown("link", name, links.iter().map(|link| link.name.as_str()))),
    }
}

/// A loss that may name a flow, of one direction or of each.
fn lost_flow_exists(table: &At<'_>, flows: &[Flow]) -> Result<()> {
    let Some(loss) = table.get("loss") else { return Ok(()) };
    let each = if loss.is_array() { loss.array("an array")? } else { vec![loss] };
    for at in each.iter().filter_map(|loss| loss.get("flow")) {
        let name = at.string()?;
        if !flows.iter().any(|flow| flow.name == name) {
            return Err(at.unknown("flow", name, flows.iter().map(|flow| flow.name.as_str())));
        }
    }
    Ok(())
}

fn flow_fits(
    at: &At<'_>,
    flow: &Flow,
    scenario: &Scenario,
    nodes: &BTreeSet<&str>,
    joined: &Joined<'_>,
) -> Result<()> {
    for (key, node) in [("from", &flow.from), ("to", &flow.to)] {
        if let (Some(at), false) = (at.get(key), nodes.contains(node.as_str())) {
            return Err(at.unknown("node", node, nodes.iter().copied()));
        }
    }
    if !joined.connects(&flow.from, &flow.to) {
        let message = format!("there is no route from `{}` to `{}`", flow.from, flow.to);
        return Err(at.error_below("to", message).hint("no sequence of links and channels joins them"));
    }
    if flow.traffic.amount().is_none() && scenario.stop.is_none() {
        return Err(at.error_below("send", "this flow has no end, and neither has the run").hint(
            "give the flow an amount (`send = \"20 MB\"`), or the run an end (`stop = \"60 s\"` at the top)",
        ));
    }
    primary_is_a_link(at, flow, joined)
}

fn traffic_fits(
    at: &At<'_>,
    traffic: &CrossTraffic,
    scenario: &Scenario,
    nodes: &BTreeSet<&str>,
    joined: &Joined<'_>,
) -> Result<()> {
    let pairs = at.get("pairs").map_or(Ok(Vec::new()), |at| at.array("pairs"))?;
    for (number, [from, to]) in traffic.pairs.iter().enumerate() {
        let ends = match pairs.get(number) {
            Some(pair) => pair.array("a pair")?,
            None => ["from", "to"].into_iter().filter_map(|key| at.get(key)).collect(),
        };
        for (at, node) in ends.iter().zip([from, to]) {
            if !nodes.contains(node.as_str()) {
                return Err(at.unknown("node", node, nodes.iter().copied()));
            }
        }
        if let Some(at) = ends.last().filter(|_| from == to || !joined.connects(from, to)) {
            let message = format!("there is no route from `{from}` to `{to}`");
            return Err(at.error(message).hint("no sequence of links joins them"));
        }
    }
    if scenario.flows.is_empty() && scenario.stop.is_none() {
        let error = at.error("this run has no end").hint("give it one: `stop = \"60 s\"` at the top");
        return Err(error);
    }
    Ok(())
}

/// `primary` must begin with a link of the sender, and its second part must be a link of the receiver. The network
/// checks whether the two form a path.
fn primary_is_a_link(at: &At<'_>, flow: &Flow, joined: &Joined<'_>) -> Result<()> {
    let primary = flow.sctp().and_then(|sctp| sctp.primary.as_ref());
    let (Some(path), Some(sctp)) = (primary, at.get("sctp")) else { return Ok(()) };
    let (first, last) = match path.split_once('/') {
        Some((first, last)) => (first, Some(last)),
        None => (path.as_str(), None),
    };
    for (name, node) in [(Some(first), &flow.from), (last, &flow.to)] {
        let Some(name) = name else { continue };
        let here = joined.media(node);
        if !here.contains(&name) {
            let error = sctp.error_below("primary", format!("`{node}` has no link `{name}`"));
            return Err(error.hint(format!("its links are {}", listed(here.iter().copied()))));
        }
    }
    Ok(())
}
