//! Paths as text and as JSON.

use anabranch_net::{Device, PathReport, Traffic};
use anabranch_proto::wire::Address;
use anabranch_sim::words;
use comfy_table::{Table, presets};
use serde_json::{Value, json};

use std::net::SocketAddr;

/// An address, with its UDP port if it has one.
pub(super) fn place(address: Address) -> String {
    match address.udp {
        0 => address.ip.to_string(),
        port => SocketAddr::new(address.ip, port).to_string(),
    }
}

/// A path by its addresses.
pub(super) fn name(path: &PathReport) -> String {
    format!("{} → {}", path.local.ip, path.remote.ip)
}

pub(super) fn state(path: &PathReport) -> &'static str {
    match path.state {
        _ if !path.up => "down here",
        state => words::path_state(state),
    }
}

/// The share of a path in all delivered bytes, 0 to 1.
pub(super) fn share(path: &PathReport, all: &[PathReport]) -> f64 {
    let total: u64 = all.iter().map(|path| path.delivered).sum();
    path.delivered as f64 / total.max(1) as f64
}

/// Every path with its share.
pub(super) fn json(paths: &[PathReport]) -> Value {
    paths.iter().map(|path| one_as_json(path, share(path, paths))).collect()
}

fn one_as_json(path: &PathReport, share: f64) -> Value {
    let (device, refused) = match &path.device {
        Device::Any => (None, None),
        Device::Bound(name) => (Some(name), None),
        Device::Refused(name, why) => (Some(name), Some(why)),
    };
    json!({
        "local": place(path.local),
        "remote": place(path.remote),
        "state": state(path),
        "primary": path.primary,
        "device": device,
        "device_refused": refused,
        "delivered": path.delivered,
        "share": share,
        "lost": path.lost,
        "errors": path.errors,
        "srtt": path.srtt.map(|srtt| srtt.as_secs_f64()),
        "rto": path.rto.as_secs_f64(),
        "window": path.window,
        "pmdcs": path.pmdcs,
    })
}

pub(super) fn traffic(traffic: &Traffic) -> Value {
    json!({
        "packets_sent": traffic.packets_sent,
        "packets_received": traffic.packets_received,
        "sends": traffic.sends,
        "receives": traffic.receives,
        "malformed": traffic.malformed,
        "segments_a_send": traffic.segments_a_send(),
    })
}

/// One line for each path.
pub(super) fn table(paths: &[PathReport]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    crate::table::fit(&mut table);
    table.set_header(["path", "interface", "state", "delivered", "share", "lost", "round trip"]);
    for path in paths {
        let device = match &path.device {
            Device::Any => "any".to_owned(),
            Device::Bound(name) => name.clone(),
            Device::Refused(name, why) => format!("any ({name} refused: {why})"),
        };
        let srtt = path.srtt.map_or("-".to_owned(), |srtt| format!("{:.1} ms", srtt.as_secs_f64() * 1e3));
        let row = [
            name(path),
            device,
            state(path).to_owned(),
            format!("{} B", path.delivered),
            format!("{:.0} %", share(path, paths) * 100.0),
            format!("{} B", path.lost),
            srtt,
        ];
        table.add_row(row);
    }
    crate::table::text(table)
}
