//! What only the whole of a document tells about radios: that channels exist, that no two radios are at one place, and
//! that routes go from one radio to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::at::{At, Result};
use super::{Channel, Scenario, Station, station};
use crate::medium::wireless::distance;
use crate::network::radios;

/// Whether channels, nodes and routes agree.
pub(super) fn check(root: &At<'_>, scenario: &Scenario) -> Result<()> {
    let tables = |key| root.get(key).map_or(Ok(Vec::new()), |at| at.tables());
    names(&tables("channel")?, scenario)?;
    let mut made = PlacedNodes { scenario, nodes: BTreeSet::new(), places: BTreeMap::new() };
    for table in tables("node")? {
        made.take(&table, vec![station::node(&table)?])?;
    }
    for table in tables("chain")? {
        made.take(&table, station::chain(&table)?)?;
    }
    for table in tables("grid")? {
        made.take(&table, station::grid(&table)?)?;
    }
    let lines = [tables("chain")?, tables("grid")?];
    for (at, channel) in tables("channel")?.iter().zip(&scenario.channels) {
        crowd(at, &lines, channel, scenario)?;
    }
    let routes = tables("route")?;
    routes.iter().zip(&scenario.routes).try_for_each(|(at, given)| route(at, given, scenario))?;
    ends_differ(&routes, scenario)?;
    match (root.get("measure"), scenario.measure, scenario.stop) {
        (Some(at), Some([_, end]), Some(stop)) if end > stop => {
            Err(at.error("this ends after the run").hint("let it end at `stop` at the latest"))
        }
        _ => Ok(()),
    }
}

/// The names of channels are those of paths, as links' are.
fn names(tables: &[At<'_>], scenario: &Scenario) -> Result<()> {
    let mut seen: BTreeSet<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    for at in tables {
        let Some(name) = at.get("name") else { continue };
        if !seen.insert(name.string()?) {
            let message = format!("there is another channel or link `{}`", name.string()?);
            return Err(name.error(message).hint("names are unique: call one of them something else"));
        }
    }
    Ok(())
}

/// Whether the radios of a channel are so far apart that the pairs within reach fit into memory. `lines` are the chains
/// and the grids.
fn crowd(at: &At<'_>, lines: &[Vec<At<'_>>; 2], channel: &Channel, scenario: &Scenario) -> Result<()> {
    let here = |station: &&Station| station.channels.contains(&channel.name);
    let places: Vec<_> = scenario.stations.iter().filter(here).map(|station| station.place).collect();
    let reception = radios::reception(&channel.reception);
    if !radios::are_too_many(&places, &*reception) {
        return Ok(());
    }
    let message = format!(
        "more than {} pairs of radios of channel `{}` are within reach of each other, which is {:.0} m",
        radios::MOST_PAIRS,
        channel.name,
        reception.reach()
    );
    let nodes = |at: &At<'_>, made: fn(&At<'_>) -> Result<Vec<Station>>| {
        made(at).map_or(0, |stations| stations.iter().filter(here).count())
    };
    let chains = lines[0].iter().map(|at| (nodes(at, station::chain), at));
    let grids = lines[1].iter().map(|at| (nodes(at, station::grid), at));
    let error = match chains.chain(grids).max_by_key(|(nodes, _)| *nodes) {
        Some((1.., largest)) => largest.error_below("spacing", message),
        _ => at.error_below("name", message),
    };
    Err(error.hint("a larger `spacing`, or fewer nodes"))
}

/// The nodes of the tables so far.
struct PlacedNodes<'s> {
    scenario: &'s Scenario,
    nodes: BTreeSet<String>,
    /// By channel and place, in millimetres: the node there.
    places: BTreeMap<(String, [i64; 2]), String>,
}

impl PlacedNodes<'_> {
    fn take(&mut self, at: &At<'_>, stations: Vec<Station>) -> Result<()> {
        if let Some(channels) = at.get("channels") {
            for item in channels.array("an array of channels")? {
                let known = self.scenario.channels.iter().map(|channel| channel.name.as_str());
                let name = item.string()?;
                if !known.clone().any(|channel| channel == name) {
                    return Err(item.unknown("channel", name, known));
                }
            }
        }
        for station in stations {
            let Station { node, place, channels } = station;
            if !self.nodes.insert(node.clone()) {
                let error = at.error_below("name", format!("there is another node `{node}`"));
                return Err(error.hint("names are unique: call one of them something else"));
            }
            let millimetres = place.map(|metres| (metres * 1000.0).round() as i64);
            for channel in channels {
                if let Some(other) = self.places.insert((channel.clone(), millimetres), node.clone()) {
                    let message =
                        format!("`{node}` and `{other}` are at the same place, both on channel `{channel}`");
                    return Err(at.error_below("at", message).hint("move one of them"));
                }
            }
        }
        Ok(())
    }
}

/// Of two routes between the same ends, one would not be used.
fn ends_differ(tables: &[At<'_>], scenario: &Scenario) -> Result<()> {
    let mut seen = BTreeSet::new();
    for (at, super::Route { channel, through }) in tables.iter().zip(&scenario.routes) {
        let (Some(from), Some(to)) = (through.first(), through.last()) else { continue };
        if !seen.insert((channel, from, to)) {
            let message = format!("there is another route from `{from}` to `{to}` on channel `{channel}`");
            return Err(at.error_below("through", message).hint("give one of them"));
        }
    }
    Ok(())
}

fn route(at: &At<'_>, given: &super::Route, scenario: &Scenario) -> Result<()> {
    let known = scenario.channels.iter().map(|channel| channel.name.as_str());
    let Some(channel) = scenario.channels.iter().find(|channel| channel.name == given.channel) else {
        return Err(at.get("channel").unwrap_or_else(|| at.clone()).unknown(
            "channel",
            &given.channel,
            known,
        ));
    };
    let nodes = at.get("through").map_or(Ok(Vec::new()), |through| through.array("an array of nodes"))?;
    let here = || scenario.stations.iter().filter(|station| station.channels.contains(&given.channel));
    let (mut before, mut passed): (Option<&Station>, _) = (None, BTreeSet::new());
    for item in nodes {
        let name = item.string()?;
        if !passed.insert(name) {
            let error = item.error(format!("this route passes `{name}` twice"));
            return Err(error.hint("name each node once"));
        }
        let Some(station) = here().find(|station| station.node == name) else {
            let what = format!("node with a radio on `{}`", given.channel);
            return Err(item.unknown(&what, name, here().map(|station| station.node.as_str())));
        };
        if let Some(before) = before {
            let metres = distance(before.place, station.place);
            let reception = radios::reception(&channel.reception);
            if metres <= 0.0 || !reception.decodes(reception.strength(metres)) {
                let message = format!("`{name}` is {metres:.0} m from `{}`, too far to read it", before.node);
                return Err(item.error(message).hint("name the nodes between them, or bring them nearer"));
            }
        }
        before = Some(station);
    }
    Ok(())
}
