//! The variants `sack1` and `sack1-2002` beside ns-2's `Agent/TCP/Sack1`: the same data packets in the same order at
//! the same times, for random lists of lost packets, with and without delayed acknowledgements, through all timeouts.
//! Needs `ns`.
//!
//! Timeouts are counted in ticks, and how far into a tick the clock begins decides how round trips are rounded. ns-2
//! draws this for each agent; a script that does not seed its generator always gets the same, which is the variants'
//! default.
//!
//! With delayed acknowledgements the timer and the packet that would cancel it are often due at the same moment: one
//! acknowledgement leaves at once and another one delay later, and the answers to both are one delay apart as well. In
//! ns-2 the rounding of its floating-point clock then decides which comes first. It decides for the packet nearly
//! always, and so the packet is first here. It is not quite regular: the same flow of ns-2, begun a whole second later,
//! can send other packets from such a moment on. A list counts as the same if ns-2 agrees from one of the two starts.

mod support;

use std::path::Path;
use std::process::Command;

use anabranch_proto::{Policies, Time};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Detail, Names, Observer, Record};
use anabranch_sim::{RunOptions, run, stream_seed};
use support::has_ns2;

/// Random lists.
const LISTS: u64 = 200;
/// Seconds that each run lasts.
const END: u64 = 20;
const SEGMENT: u64 = 1448;

/// A run to be compared.
struct Case {
    variant: &'static str,
    rate: u64,
    delay_ms: u64,
    /// Whether acknowledgements are delayed.
    delayed: bool,
    /// Numbers of packets on the bottleneck, the SYN being number 0.
    lost: Vec<u64>,
}

/// Data packets as they leave: seconds, and the number of the segment from 1.
type Sent = Vec<(f64, u64)>;

/// Draws by name, 16 bits each.
fn draws(name: &str) -> impl Iterator<Item = u64> + use<> {
    let name = name.to_owned();
    (0..).flat_map(move |block: u64| {
        let key = stream_seed(block, &name);
        key.as_chunks::<2>().0.iter().map(|pair| u64::from(u16::from_le_bytes(*pair))).collect::<Vec<_>>()
    })
}

fn case(number: u64) -> Case {
    let mut draw = draws(&format!("list {number}"));
    let mut pick = |choices: &[u64]| choices[draw.next().expect("endless") as usize % choices.len()];
    let delayed = number % 2 == 1;
    let variant = if pick(&[0, 1]) == 0 { "sack1" } else { "sack1-2002" };
    let (rate, delay_ms) = (pick(&[500_000, 2_000_000, 10_000_000]), pick(&[5, 20, 50, 125, 300]));
    let per_mille = pick(&[1, 5, 15, 30, 50]);
    let lost = (1..2000).filter(|_| draw.next().expect("endless") % 1000 < per_mille).collect();
    Case { variant, rate, delay_ms, delayed, lost }
}

/// What ns-2 sends if the flow begins after so many whole seconds; times are counted from there.
fn theirs(case: &Case, start: u64, trace: &Path) -> Sent {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/beside_ns2.tcl");
    let delay = case.delay_ms as f64 / 1e3;
    let status = Command::new("ns")
        .args([script, case.variant, &case.rate.to_string(), &delay.to_string()])
        .args([start, start + END].map(|seconds| seconds.to_string()))
        .arg(trace)
        .arg(if case.delayed { "Agent/TCPSink/Sack1/DelAck" } else { "Agent/TCPSink/Sack1" })
        .args(case.lost.iter().map(u64::to_string))
        .status();
    assert!(status.expect("ns runs").success(), "ns failed");
    let text = std::fs::read_to_string(trace).expect("ns wrote its trace");
    let fields = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let sent = fields.filter(|f| f[0] == "+" && f[4] == "tcp" && f[10] != "0");
    let time = |text: &str| text.parse::<f64>().expect("a time") - start as f64;
    sent.map(|f| (time(f[1]), f[10].parse().expect("a number"))).collect()
}

/// What leaves.
#[derive(Default)]
struct Seen {
    sent: Sent,
}

impl Observer for Seen {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if let Record::Detail { detail: Detail::Sent { number, .. }, .. } = record {
            self.sent.push((at.as_secs_f64(), number / SEGMENT + 1));
        }
    }
}

fn ours(case: &Case) -> Sent {
    let Case { variant, rate, delay_ms, delayed, lost } = case;
    let every = if *delayed { 2 } else { 1 };
    let lost: Vec<u64> = lost.iter().map(|number| number + 1).collect();
    let text = format!(
        "stop = '{END} s'\n\
         [[link]]\nname = 'access'\nbetween = ['s', 'r']\nrate = '10 Mbit/s'\ndelay = '2 ms'\nqueue = '10000 packets'\n\
         [[link]]\nname = 'slow'\nbetween = ['r', 'd']\nrate = '{rate} bit/s'\ndelay = '{delay_ms} ms'\n\
         queue = '10000 packets'\nloss = [{{ packets = {lost:?} }}, '0 %']\n\
         [[flow]]\nname = 'f'\nprotocol = 'tcp'\nfrom = 's'\nto = 'd'\n\
         [flow.tcp]\nvariant = '{variant}'\nsegment_size = '{SEGMENT} B'\nreceive_window = '44 packets'\n\
         ack_every = {every}\n"
    );
    let document = Document::parse("case.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let scenario = document.scenario("case", &Policies::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    run(&scenario, RunOptions { observer: Some(&mut seen), ..RunOptions::default() }).expect("it runs");
    seen.sent
}

/// What differs first, if anything.
fn difference(there: &Sent, here: &Sent) -> Option<String> {
    if there.len().abs_diff(here.len()) > 1 {
        return Some(format!("{} packets there, {} here", there.len(), here.len()));
    }
    let differs =
        |pair: &(&(f64, u64), &(f64, u64))| pair.0.1 != pair.1.1 || (pair.0.0 - pair.1.0).abs() > 0.001;
    there.iter().zip(here).find(differs).map(|(there, here)| format!("{there:?} there, {here:?} here"))
}

#[test]
fn sack1_is_ns2s() {
    if !has_ns2("sack1_is_ns2s") {
        return;
    }
    let trace = std::env::temp_dir().join(format!("anabranch-sack1-{}.tr", std::process::id()));
    let mut differing = Vec::new();
    for number in 0..LISTS {
        let case = case(number);
        let here = ours(&case);
        let from = |start| difference(&theirs(&case, start, &trace), &here);
        if let Some(what) = from(0).and_then(|what| from(1).and(Some(what))) {
            let Case { variant, rate, delay_ms, delayed, .. } = case;
            let run = format!("list {number}, {variant}, {rate} bit/s, {delay_ms} ms, delayed {delayed}");
            differing.push(format!("{run}: {what}"));
        }
    }
    let _ = std::fs::remove_file(&trace);
    eprintln!("{} of {LISTS} lists differ: {differing:#?}", differing.len());
    assert!(differing.len() as u64 <= LISTS / 100, "{} of {LISTS} lists differ", differing.len());
    let delayed = |what: &String| what.contains("delayed true");
    assert!(differing.iter().all(delayed), "without delayed acknowledgements every list is the same");
}
