//! A route that says that it need not be told what SACKs acknowledge is not told, which changes nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_proto::Policies;
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
