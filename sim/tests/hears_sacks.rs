//! What policies are told of acknowledgements. A route that says that it need not be told what SACKs acknowledge is not
//! told, which changes nothing else. A window is told of every byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_proto::Policies;
use anabranch_proto::control::window;
use anabranch_proto::policy::{Acked, Ask, Choice, PathId, PathView, Route};
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

const TWO_PATHS: &str = "
stop = '60 s'
[[link]]
name = 'first'
between = ['s', 'r']
rate = '10 Mbit/s'
delay = '20 ms'
loss = '1 %'
[[link]]
name = 'second'
between = ['s', 'r']
rate = '10 Mbit/s'
delay = '20 ms'
[[flow]]
name = 'bulk'
from = 's'
to = 'r'
send = '1 MB'
[flow.sctp]
retransmit = 'told'
";

/// `same`, which counts what it is told.
#[derive(Clone, Debug)]
struct Told {
    hears: bool,
    times: Arc<AtomicU64>,
}

impl Route for Told {
    fn choose(&self, ask: &Ask, _: &[PathView]) -> Choice {
        Choice::Send(ask.last.unwrap_or(PathId(0)))
    }

    fn acked(&mut self, _: &PathView, _: &Acked) {
        self.times.fetch_add(1, Ordering::Relaxed);
    }

    fn hears_sacks(&self) -> bool {
        self.hears
    }
}

/// How often a route that does or does not hear SACKs was told of one, and the results of the run.
fn told(hears: bool) -> (u64, String) {
    let times = Arc::new(AtomicU64::new(0));
    let mut policies = Policies::default();
    let shared = times.clone();
    policies.add_route("told", move |_, _| Ok(Box::new(Told { hears, times: shared.clone() })));
    let scenario = Document::parse("told.toml", TWO_PATHS).unwrap().scenario("told", &policies).unwrap();
    let results = run(&scenario, RunOptions { policies, ..RunOptions::default() }).unwrap();
    (times.load(Ordering::Relaxed), format!("{results:?}"))
}

#[test]
fn a_route_that_needs_no_sacks_is_not_told_of_them() {
    let (hearing, with) = told(true);
    let (deaf, without) = told(false);
    assert!(hearing > 100, "{hearing}");
    assert_eq!(deaf, 0);
    assert_eq!(with, without);
}

/// A fixed window, which counts the bytes that it is told of.
#[derive(Clone, Debug)]
struct Counting(Arc<AtomicU64>);

impl window::Congestion for Counting {
    fn window(&self) -> u64 {
        40_000
    }

    fn acked(&mut self, acked: &window::Acked, _: &[window::Sibling]) {
        self.0.fetch_add(acked.all(), Ordering::Relaxed);
    }
}

/// The bytes that the windows of a flow of 1 MB were told of, and how often its retransmission timer expired.
fn counted(protocol: &str, keys: &str, seed: u64) -> (u64, u64) {
    let bytes = Arc::new(AtomicU64::new(0));
    let mut policies = Policies::default();
    let shared = bytes.clone();
    policies.add_window("counting", move |_, _| {
        let shared = shared.clone();
        Ok(Arc::new(move |_| Box::new(Counting(shared.clone()))))
    });
    let text = format!(
        "seed = {seed}\n[[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = '10 Mbit/s'\ndelay = '20 ms'\nloss = '3 %'\n[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nprotocol = '{protocol}'\nsend = '1 MB'\n[flow.{protocol}]\nwindow = 'counting'\n{keys}\n"
    );
    let document = Document::parse("counting.toml", &text).unwrap();
    let scenario =
        document.scenario("counting", &policies).unwrap_or_else(|error| panic!("{}", error.render(false)));
    let results = run(&scenario, RunOptions { policies, ..RunOptions::default() }).unwrap();
    (bytes.load(Ordering::Relaxed), results.flows[0].timeouts)
}

/// SCTP counts 689 chunks with their headers of 16 bytes, TCP the FIN of each end. After a timeout TCP forgets what was
/// acknowledged selectively (RFC 2018 §8), and hears of it again.
#[test]
fn a_window_hears_of_every_byte_once_also_in_recovery() {
    for (protocol, keys, expected, forgets) in [
        ("sctp", "", 1_011_024, false),
        ("tcp", "", 1_000_002, true),
        ("tcp", "sack_blocks = 0", 1_000_002, false),
        ("mptcp", "", 1_000_002, true),
    ] {
        let runs: Vec<(u64, u64)> = (0..10).map(|seed| counted(protocol, keys, seed)).collect();
        let fits = |(bytes, timeouts): &(u64, u64)| {
            *bytes == expected || forgets && *timeouts > 0 && *bytes > expected
        };
        assert!(runs.iter().all(fits), "{protocol} {keys}: {runs:?}");
        assert!(runs.iter().any(|(bytes, _)| *bytes == expected), "{protocol} {keys}: {runs:?}");
    }
}
