//! A storm between two honest endpoints: packets are lost, doubled, delayed, replayed and broken, come from another
//! address of the peer, and, where it is hostile, are mutated and spliced under a checksum that is right.
//!
//! In a fair storm every message arrives once, whole and in order, and both ends close, at the latest 100 RTO.Max after
//! the last disturbance. In a hostile one, whose sender knows the tags, nothing panics and every drain ends.
//!
//! `ANABRANCH_STORM=PACKETS` (default 30,000) is how many packets leave in each kind, from seed `ANABRANCH_FIRST` on.
//! `make storm` runs for longer. A failure names its seed: put it into `KEPT`.

mod config;
mod mutate;
#[path = "../support/mod.rs"]
mod support;
mod world;

use world::Storm;

/// Seeds of fair storms that once failed.
const KEPT: &[u64] = &[];

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Storms until so many packets have left; how many did.
fn storms(hostile: bool) -> u64 {
    let (wanted, first) = (number("ANABRANCH_STORM", 30_000), number("ANABRANCH_FIRST", 0));
    let kept = KEPT.iter().copied().filter(|_| !hostile);
    let mut packets = 0;
    for seed in kept.chain(first..) {
        if packets >= wanted {
            println!("{} storms of {packets} packets", if hostile { "hostile" } else { "fair" });
            break;
        }
        match std::panic::catch_unwind(|| Storm::new(seed, hostile).play()) {
            Ok(left) => packets += left,
            Err(panic) => {
                eprintln!("the storm with seed {seed} failed, hostile: {hostile}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    packets
}

#[test]
fn fair_storms() {
    storms(false);
}

#[test]
fn hostile_storms() {
    storms(true);
}
