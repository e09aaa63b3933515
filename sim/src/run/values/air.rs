//! Channels, nodes with radios, and routes between them.

use std::collections::BTreeSet;

use super::{Judgement, at, distinct};
use crate::error::{Item, RunError};
use crate::medium::wireless::distance;
use crate::network::radios;
use crate::scenario::{Channel, Dcf, Powers, Ranges, Reception, Route, Scenario, Station};

/// Checks the channels of a scenario, its nodes with radios, and its routes.
pub(super) fn check(scenario: &Scenario) -> Result<(), RunError> {
    let links = scenario.links.iter().map(|link| link.name.as_str());
    let channels = scenario.channels.iter().map(|channel| channel.name.as_str());
    distinct(links.chain(channels), Item::Channel)?;
    distinct(scenario.stations.iter().map(|station| station.node.as_str()), Item::Node)?;
    for station in &scenario.stations {
        at(Item::Node(station.node.clone()), place(station, scenario))?;
    }
    for channel in &scenario.channels {
        let parameters = dcf(&channel.dcf).and_then(|()| reception(&channel.reception));
        at(Item::Channel(channel.name.clone()), parameters.and_then(|()| crowd(channel, scenario)))?;
    }
    let mut ends = BTreeSet::new();
    for given in &scenario.routes {
        route(given, scenario)?;
        if !ends.insert((&given.channel, given.through.first(), given.through.last())) {
            at(Item::Channel(given.channel.clone()), Err(("name", "two of its routes have the same ends")))?;
        }
    }
    Ok(())
}

fn place(station: &Station, scenario: &Scenario) -> Judgement {
    let known = |name: &String| scenario.channels.iter().any(|channel| channel.name == *name);
    let names: BTreeSet<_> = station.channels.iter().collect();
    match () {
        _ if !station.place.iter().all(|metres| metres.is_finite()) => Err(("at", "must be finite")),
        _ if !station.channels.iter().all(known) => Err(("channels", "there is no such channel")),
        _ if names.len() < station.channels.len() => Err(("channels", "a node has one radio on a channel")),
        _ => Ok(()),
    }
}

fn dcf(dcf: &Dcf) -> Judgement {
    let known = |rate: &u64| dcf.timing.constants().rates().contains(rate);
    match () {
        _ if !known(&dcf.rate) => Err(("dcf.rate", "must be a rate of the timing")),
        _ if !known(&dcf.control_rate) => Err(("dcf.control_rate", "must be a rate of the timing")),
        _ if dcf.control_rate > dcf.rate => Err(("dcf.control_rate", "must not be above `rate`")),
        _ if !(1..=255).contains(&dcf.short_retry) => Err(("dcf.short_retry", "must be from 1 to 255")),
        _ if !(1..=255).contains(&dcf.long_retry) => Err(("dcf.long_retry", "must be from 1 to 255")),
        _ if dcf.cw_max > 65_535 => Err(("dcf.cw_max", "must be at most 65535 slots")),
        _ if dcf.cw_min() > dcf.cw_max => Err(("dcf.cw_min", "must not be above `cw_max`")),
        _ if dcf.llc > 255 => Err(("dcf.llc", "must be at most 255 bytes")),
        _ => Ok(()),
    }
}

fn reception(reception: &Reception) -> Judgement {
    match reception {
        Reception::Range(Ranges { decode, sense, interfere, .. })
            if !(0.0 < *decode && decode <= sense && sense <= interfere && interfere.is_finite()) =>
        {
            Err(("reception", "its ranges are above zero, and decode, sense and interfere do not descend"))
        }
        Reception::Range(Ranges { capture: Some(ratio), .. }) if !(0.0..=200.0).contains(ratio) => {
            Err(("reception", "capture must be from 0 to 200 dB"))
        }
        Reception::Power(powers) if !are_usable(powers) => Err((
            "reception",
            "its frequency and height are above zero, its exponent from 1 to 10, its powers finite, and busy is above noise",
        )),
        Reception::Power(powers) if powers.unused().is_some() => {
            Err(("reception", "its height is for two-ray propagation alone, its exponent for log-distance"))
        }
        _ => Ok(()),
    }
}

fn are_usable(powers: &Powers) -> bool {
    let Powers { transmit, loss, noise, sinr, header, busy, cutoff, .. } = *powers;
    let lengths = [powers.frequency, powers.height].into_iter().all(|value| value > 0.0 && value.is_finite());
    let decibels = [transmit, loss, noise, sinr, header, busy, cutoff];
    lengths
        && busy > noise
        && (1.0..=10.0).contains(&powers.exponent)
        && decibels.into_iter().all(|value| value.abs() <= 200.0)
}

/// No two radios are at one place, and those within reach of each other fit into memory.
fn crowd(channel: &Channel, scenario: &Scenario) -> Judgement {
    let here = |station: &&Station| station.channels.contains(&channel.name);
    let places: Vec<_> = scenario.stations.iter().filter(here).map(|station| station.place).collect();
    let millimetres = |place: &[f64; 2]| place.map(|metres| (metres * 1000.0).round() as i64);
    let distinct: BTreeSet<_> = places.iter().map(millimetres).collect();
    match () {
        _ if distinct.len() < places.len() => Err(("name", "two of its radios are at the same place")),
        _ if radios::are_too_many(&places, &*radios::reception(&channel.reception)) => {
            Err(("name", "more than 5000000 pairs of its radios are within reach of each other"))
        }
        _ => Ok(()),
    }
}

/// A route leads along radios of a channel of which each reads the next.
fn route(route: &Route, scenario: &Scenario) -> Result<(), RunError> {
    let of_channel = Item::Channel(route.channel.clone());
    let Some(channel) = scenario.channels.iter().find(|channel| channel.name == route.channel) else {
        return at(of_channel, Err(("name", "a route names a channel that does not exist")));
    };
    let reception = radios::reception(&channel.reception);
    let (mut before, mut passed): (Option<[f64; 2]>, _) = (None, BTreeSet::new());
    for name in &route.through {
        if !passed.insert(name) {
            return at(of_channel, Err(("name", "one of its routes passes a node twice")));
        }
        let is_here = |station: &&Station| station.node == *name && station.channels.contains(&route.channel);
        let Some(station) = scenario.stations.iter().find(is_here) else {
            let why = "a route of a channel leads through this node, which has no radio there";
            return at(Item::Node(name.clone()), Err(("channels", why)));
        };
        let reads = |before: [f64; 2]| {
            let metres = distance(before, station.place);
            metres > 0.0 && reception.decodes(reception.strength(metres))
        };
        if !before.is_none_or(reads) {
            let why = "a route leads here from a node that is too far to read";
            return at(Item::Node(name.clone()), Err(("at", why)));
        }
        before = Some(station.place);
    }
    Ok(())
}
