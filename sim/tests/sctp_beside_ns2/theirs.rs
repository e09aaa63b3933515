//! What ns-2 sends.

use std::path::Path;
use std::process::Command;

use crate::setting::{CLASSES, Class, DATAGRAM, Load, QUEUE, Setting};
use crate::{Sent, since_the_first};

/// When the application begins, in seconds.
const BEGIN: f64 = 0.5;

fn words(list: &[u64]) -> String {
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn flag(on: bool) -> String {
    u8::from(on).to_string()
}

/// Numbers of packets as ns-2 counts them, from 0, with this many packets before the first one that the list means.
fn shifted(list: &[u64], before: u64) -> String {
    words(&list.iter().map(|number| number + before - 1).collect::<Vec<_>>())
}

/// Seconds after which the first DATA leaves: INIT, INIT ACK, COOKIE ECHO, COOKIE ACK on the first path, then
/// HEARTBEATs on all.
fn first_data(setting: &Setting) -> f64 {
    let takes = |path: usize, bytes: f64| {
        let link = &setting.links[path];
        2.0 * bytes * 8.0 / 100e6 + bytes * 8.0 / link.rate as f64 + link.delay as f64 / 1e9
    };
    let begun: f64 = [56.0, 56.0, 36.0, 36.0].map(|bytes| takes(0, bytes)).iter().sum();
    let asked = (0..setting.links.len()).map(|path| 2.0 * takes(path, 56.0)).fold(0.0, f64::max);
    BEGIN + begun + asked
}

fn of_links(setting: &Setting) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    for (index, link) in setting.links.iter().enumerate() {
        let path = index + 1;
        // INIT, COOKIE ECHO and a HEARTBEAT, or a HEARTBEAT, and as many packets back.
        let before = if index == 0 { 3 } else { 1 };
        keys.push((format!("bw{path}"), link.rate.to_string()));
        keys.push((format!("d{path}"), format!("{:.9}", link.delay as f64 / 1e9)));
        keys.push((format!("fdrop{path}"), shifted(&link.data_lost, before)));
        keys.push((format!("rdrop{path}"), shifted(&link.sacks_lost, before)));
        keys.push((format!("lr{path}"), format!("0.0{path}")));
    }
    keys
}

fn of_class(setting: &Setting) -> Vec<(&'static str, String)> {
    match setting.class {
        Class::One { class, policy } => {
            vec![("class", CLASSES[class].0.to_owned()), ("rtxToAlt", policy.to_string())]
        }
        Class::Cmt { policy, sfr, cuc, dac, pf } => vec![
            ("class", "Agent/SCTP/CMT".to_owned()),
            ("policy", (policy + 1).to_string()),
            ("sfr", flag(sfr)),
            ("cuc", flag(cuc)),
            ("dac", flag(dac)),
            ("pf", flag(pf)),
        ],
    }
}

fn of_surroundings(setting: &Setting) -> Vec<(&'static str, String)> {
    let first = first_data(setting);
    let mut keys = Vec::new();
    match setting.load {
        Load::Bytes(bytes) => keys.push(("bytes", bytes.to_string())),
        Load::Chunks { streams, unordered, seconds, .. } => keys.extend([
            ("chunks", "1".to_owned()),
            ("streams", streams.to_string()),
            ("unordered", flag(unordered)),
            ("bytes", "1000000000000".to_owned()),
            ("stop", (first + seconds as f64).to_string()),
        ]),
    }
    if let Some(outage) = &setting.outage {
        keys.push(("down", (outage.path + 1).to_string()));
        keys.push(("down_at", format!("{:.9}", first + outage.begin_ms as f64 / 1e3)));
        keys.push(("up_at", format!("{:.9}", first + outage.end_ms as f64 / 1e3)));
    }
    if let Some(interval) = setting.cross {
        let seconds = interval as f64 / 1e6;
        keys.push(("cross", format!("{DATAGRAM} {seconds:.9} {:.9}", first + seconds)));
    }
    keys
}

/// Runs ns-2 with the setting; its trace is written to this file.
pub(crate) fn theirs(setting: &Setting, trace: &Path) -> Sent {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cmt_drop_lists/droplist.tcl");
    let keys = [
        ("paths", setting.links.len().to_string()),
        ("q", QUEUE.to_string()),
        ("rwnd", setting.receive_buffer.to_string()),
        ("ssthresh", setting.ssthresh.to_string()),
        ("pmr", setting.path_max_retrans.to_string()),
        ("trig", setting.missing_reports.to_string()),
        ("burst", flag(setting.burst)),
        ("delsack", flag(setting.delayed)),
        ("sackdelay", (setting.sack_delay_ms as f64 / 1e3).to_string()),
        ("minrto", (setting.rto_min_ms as f64 / 1e3).to_string()),
        ("chunk", setting.chunk().to_string()),
        ("hb", "5000".to_owned()),
        ("hbr", "0".to_owned()),
    ];
    let keys = keys.into_iter().chain(of_class(setting)).chain(of_surroundings(setting));
    let keys = keys.map(|(key, value)| (key.to_owned(), value)).chain(of_links(setting));
    let words = keys.flat_map(|(key, value)| [key, value]);
    let output =
        Command::new("ns").arg(script).args(words).arg("trace").arg(trace).output().expect("ns runs");
    assert!(output.status.success(), "ns: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(trace).expect("ns wrote its trace");
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let path = |node: &str| ["2", "4", "6"].iter().position(|sender| *sender == node);
    // A packet with several chunks has a line for each.
    let sent = fields.filter(|f| f[0] == "+" && f[6].ends_with('D')).filter_map(|f| {
        let (time, tsn): (f64, u64) = (f[1].parse().expect("a time"), f[11].parse().expect("a TSN"));
        let path = path(f[2]).filter(|path| *path < setting.links.len());
        path.map(|path| (time, tsn, path as u8 + 1))
    });
    let sent: Sent = sent.collect();
    assert!((sent[0].0 - first_data(setting)).abs() < 2e-6, "{} {}", sent[0].0, first_data(setting));
    since_the_first(sent)
}
