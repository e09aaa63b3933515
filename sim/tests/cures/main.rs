//! The cures of the retransmission policy in era `ns2`, beside ns-2 2.35's classes: 50 random lists of lost packets for
//! each, and the completion of every transfer (`lists.csv`).

use std::path::Path;

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

/// ns-2's classes, and the keys that stand for them.
const CLASSES: [(&str, &str); 4] = [
    ("base", ""),
    ("HbAfterRto", "heartbeat_after_timeout = true"),
    ("Timestamp", "timestamps = true"),
    ("MultipleFastRtx", "fast_retransmissions = 'per-recovery'"),
];

/// So near is completion to ns-2's, relatively.
const TOLERANCE: f64 = 0.005;
/// In so many of the 50 lists of each class.
const AGREE: usize = 50;

struct List {
    class: String,
    seconds: f64,
    /// By path, of all packets, counted from 1 as we do.
    lost: [Vec<u64>; 2],
}

fn lists() -> Vec<List> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cures/lists.csv");
    let text = std::fs::read_to_string(path).expect("the lists are there");
    let rows = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    rows.map(|row| {
        let cells: Vec<&str> = row.split(',').collect();
        // Our receiver verifies path 1, too: the sender's answer is one packet more there.
        let numbers = |cell: &str, by: u64| {
            cell.split(' ')
                .filter(|n| !n.is_empty())
                .map(|n| n.parse::<u64>().expect("a number") + by)
                .collect()
        };
        let seconds = cells[2].parse().expect("seconds");
        List { class: cells[0].to_owned(), seconds, lost: [numbers(cells[3], 1), numbers(cells[4], 2)] }
    })
    .collect()
}

fn link(name: &str, between: (&str, &str), rate: &str, delay_ns: u64, queue: u32, lost: &[u64]) -> String {
    let (from, to) = between;
    format!(
        "[[link]]\nname = '{name}'\nbetween = ['{from}', '{to}']\nrate = '{rate}'\ndelay = '{delay_ns} ns'\nqueue = '{queue} packets'\nloss = [{{ packets = {lost:?} }}, '0 %']\n"
    )
}

fn completion(list: &List, keys: &str) -> f64 {
    let mut text = String::from("era = 'ns2'\n");
    for (path, lost) in list.lost.iter().enumerate() {
        let (a, b) = (format!("a{path}"), format!("b{path}"));
        let delay = 25_000_000 + 20 * path as u64;
        text += &link(&format!("s{path}"), ("s", &a), "100 Mbit/s", 10_000_000, 167, &[]);
        text += &link(&format!("core{path}"), (&a, &b), "10 Mbit/s", delay, 42, lost);
        text += &link(&format!("r{path}"), (&b, "r"), "100 Mbit/s", 10_000_000, 167, &[]);
    }
    text += "[[flow]]\nname = 'transfer'\nfrom = 's'\nto = 'r'\nsend = '1 MB'\n[flow.sctp]\nprimary = 's0'\nretransmit = 'alternate'\nreceive_buffer = '64 KiB'\ninitial_ssthresh = '64 KiB'\n";
    text += keys;
    let scenario = Document::parse("list", &text).and_then(|d| d.scenario("list", &Policies::default()));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let result = run(&scenario, RunOptions::default()).expect("it runs");
    result.flows[0].completion.expect("it completes")
}

#[test]
fn completion_is_that_of_ns2s_classes() {
    let lists = lists();
    for (class, keys) in CLASSES {
        let of_class = lists.iter().filter(|list| list.class == class);
        let ratios: Vec<f64> = of_class.map(|list| completion(list, keys) / list.seconds).collect();
        let near = ratios.iter().filter(|ratio| (*ratio - 1.0).abs() <= TOLERANCE).count();
        println!("{class}: {near} of {} within {TOLERANCE}", ratios.len());
        assert_eq!(ratios.len(), 50, "{class}");
        assert!(near >= AGREE, "{class}: {near} of 50 agree");
    }
}
