//! The clock jumps forward while nobody polls: a laptop sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anabranch_proto::policy::Congestion;
use anabranch_proto::{Duration, Endpoint, Output, PathId, Policies, PolicySpec};

use crate::support::bench::{era, ms};
use crate::support::{Weather, World, at, secs};

/// A window of one size that counts how often it is told that its path is idle. It always wants to be told again.
#[derive(Clone, Debug)]
struct Counting(Arc<AtomicU32>);

impl Congestion for Counting {
    fn window(&self) -> u64 {
        10_000
    }

    fn idle(&mut self, _: u32) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// The path that was the primary is idle while data is in flight on the new one.
#[test]
fn a_jump_of_the_clock_costs_no_more_than_a_step() {
    let told = Arc::new(AtomicU32::new(0));
    let mut policies = Policies::default();
    let counting = Counting(Arc::clone(&told));
    policies.add_window("counting", move |_, _| {
        let counting = counting.clone();
        Ok(Arc::new(move |_| Box::new(counting.clone()) as Box<dyn Congestion>))
    });
    let mut config = era("rfc9260");
    let mut world = World::new([0, 1].map(|side| at(side, 2, &config)), vec![Weather::fair(ms(50)); 2], 1);
    config.window = PolicySpec::named("counting");
    world.ends[0] = Endpoint::new(at(0, 2, &config), policies, [7; 32]).expect("a usable configuration");
    let id = world.connect();
    world.run(secs(1.0));
    world.give(0, id, 1000);
    world.run(secs(1.4));
    assert!(world.ends[0].set_primary(world.now, id, PathId(1)));
    world.drain(0);
    world.give(0, id, 1000);
    let before = told.load(Ordering::Relaxed);
    let day = world.now + Duration::from_secs(86_400);
    while !matches!(world.ends[0].poll(day), Output::Wait(_)) {}
    let times = told.load(Ordering::Relaxed) - before;
    assert!((1..=4).contains(&times), "it was told {times} times");
}
