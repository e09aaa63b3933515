//! Nodes with radios, their channels and routes in canonical TOML.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::{amount, put, rate, size};
use crate::scenario::{
    Channel, Dcf, Powers, Propagation, Ranges, Reception, Route, Scenario, Station, Timing,
};

/// The nodes with radios, and the nodes that links join: with radios in the scenario, these must be declared too.
pub(super) fn nodes(scenario: &Scenario) -> Value {
    let mut nodes: BTreeMap<&str, Table> = BTreeMap::new();
    if !scenario.stations.is_empty() {
        for name in scenario.links.iter().flat_map(|link| &link.between) {
            nodes
                .entry(name)
                .or_insert_with(|| Table::from_iter([("name".to_owned(), name.as_str().into())]));
        }
    }
    for Station { node, place, channels } in &scenario.stations {
        let mut table = Table::new();
        put(&mut table, "name", node.as_str());
        put(&mut table, "at", place.map(metres).to_vec());
        put(&mut table, "channels", channels.clone());
        nodes.insert(node, table);
    }
    Value::Array(nodes.into_values().map(Value::Table).collect())
}

pub(super) fn route(route: &Route) -> Table {
    let mut table = Table::new();
    put(&mut table, "channel", route.channel.as_str());
    put(&mut table, "through", route.through.clone());
    table
}

fn metres(metres: f64) -> String {
    format!("{metres} m")
}

pub(super) fn channel(channel: &Channel) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", channel.name.as_str());
    let reception = match &channel.reception {
        Reception::Range(ranges) => ranges_table(ranges),
        Reception::Power(powers) => powers_table(powers),
    };
    put(&mut table, "reception", reception);
    put(&mut table, "dcf", dcf(&channel.dcf));
    table
}

fn ranges_table(ranges: &Ranges) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", "range");
    put(&mut table, "decode", metres(ranges.decode));
    put(&mut table, "sense", metres(ranges.sense));
    put(&mut table, "interfere", metres(ranges.interfere));
    put(&mut table, "capture", ranges.capture.map_or("off".to_owned(), |capture| format!("{capture} dB")));
    table
}

fn powers_table(powers: &Powers) -> Table {
    let mut table = Table::new();
    put(&mut table, "name", "power");
    let propagation = match powers.propagation {
        Propagation::TwoRay => "two-ray",
        Propagation::FreeSpace => "free-space",
        Propagation::LogDistance => "log-distance",
    };
    put(&mut table, "propagation", propagation);
    put(&mut table, "frequency", format!("{} Hz", powers.frequency));
    put(&mut table, "height", metres(powers.height));
    put(&mut table, "exponent", powers.exponent);
    let absolute = [
        ("transmit", powers.transmit),
        ("noise", powers.noise),
        ("busy", powers.busy),
        ("cutoff", powers.cutoff),
    ];
    absolute.into_iter().for_each(|(key, power)| put(&mut table, key, format!("{power} dBm")));
    let relative = [("loss", powers.loss), ("sinr", powers.sinr), ("header", powers.header)];
    relative.into_iter().for_each(|(key, ratio)| put(&mut table, key, format!("{ratio} dB")));
    table
}

fn dcf(dcf: &Dcf) -> Table {
    let mut table = Table::new();
    let timing = match dcf.timing {
        Timing::A => "802.11a",
        Timing::B => "802.11b",
        Timing::G => "802.11g",
    };
    put(&mut table, "timing", timing);
    put(&mut table, "rate", rate(dcf.rate));
    put(&mut table, "control_rate", rate(dcf.control_rate));
    put(&mut table, "rts_threshold", dcf.rts_threshold.map_or("off".to_owned(), size));
    put(&mut table, "short_retry", i64::from(dcf.short_retry));
    put(&mut table, "long_retry", i64::from(dcf.long_retry));
    if let Some(slots) = dcf.cw_min {
        put(&mut table, "cw_min", i64::from(slots));
    }
    put(&mut table, "cw_max", i64::from(dcf.cw_max));
    put(&mut table, "nav_reset", dcf.nav_reset);
    put(&mut table, "llc", size(dcf.llc));
    put(&mut table, "queue", amount(dcf.queue));
    table
}
