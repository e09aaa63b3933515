//! The cost of the agenda with 10,000 entities: `cargo bench -p anabranch-sim --bench agenda`.
//!
//! A radio cancels and moves its timers all the time: of a hundred changes of a timer, one is for an event that
//! happens. On a wire every event happens as it was scheduled.
//!
//! On two busy cores of 2026: 35 to 45 ns per change, however often timers are moved.
#![allow(clippy::disallowed_types, reason = "it measures the program, not the simulation")]

#[allow(dead_code, unused_imports, reason = "the engine and the tests use the rest")]
#[path = "../src/engine/agenda/mod.rs"]
mod agenda;

use std::hint::black_box;
use std::time::Instant;

use agenda::{Agenda, Entity, Turn};
use anabranch_proto::Time;

const ENTITIES: u64 = 10_000;
const CHANGES: u64 = 10_000_000;

fn main() {
    for moved in [1, 10, 100] {
        let best = (0..3).map(|_| run(moved)).min().unwrap_or_default();
        println!("{moved:3} changes per event: {} ns per change", best / CHANGES);
    }
}

/// Every entity waits for an event. Of so many changes of timers one belongs to an event that happens, whose entity
/// waits for the next; the others move the event of any entity. The time that all changes take, in nanoseconds.
fn run(moved: u64) -> u64 {
    let mut agenda = Agenda::new(ENTITIES as usize);
    let mut random = 1_u64;
    for entity in 0..ENTITIES {
        agenda.set(entity as Entity, Time::from_nanos(entity), Turn::fixed(entity));
    }
    let start = Instant::now();
    for n in 0..CHANGES {
        // A linear congruential generator: which entity, and when.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let any = ((random >> 33) % ENTITIES) as Entity;
        let happened = if n % moved == 0 { agenda.pop(Time::NEVER) } else { None };
        let entity = happened.map_or(any, |(_, _, entity)| entity);
        agenda.set(entity, Time::from_nanos(n + 1_000_000 + (random >> 40)), Turn::fixed(n));
    }
    black_box(agenda.pop(Time::NEVER));
    start.elapsed().as_nanos() as u64
}
