//! Partial reliability: what was given up is skipped, and all else arrives.

use anabranch_proto::{Duration, Reliability};

use crate::bench::{Bench, Done, Stop, ensure};
use crate::letter::{Arrived, Letter, complaint};
use crate::peer::STREAMS;

/// Messages, and the time between two of them.
const COUNT: u32 = 300;
const PAUSE: Duration = Duration::from_millis(1);
/// Milliseconds: less than the way there and back.
const LIFETIME: u32 = 3;

/// Half of those on each stream are unordered; one in ten needs three packets.
fn letters() -> Vec<Letter> {
    let letter = |number: u32| Letter {
        number,
        stream: number as u16 % STREAMS,
        size: if number.is_multiple_of(10) { 4000 } else { 500 },
        unordered: number / u32::from(STREAMS) % 2 == 1,
    };
    (0..COUNT).map(letter).collect()
}

pub fn we_limit_retransmissions(bench: &mut Bench) -> Done {
    we_send(bench, Reliability::Retransmissions(0))
}

pub fn we_limit_lifetime(bench: &mut Bench) -> Done {
    we_send(bench, Reliability::Lifetime(LIFETIME))
}

pub fn peer_limits_retransmissions(bench: &mut Bench) -> Done {
    peer_sends(bench, Reliability::Retransmissions(0))
}

pub fn peer_limits_lifetime(bench: &mut Bench) -> Done {
    peer_sends(bench, Reliability::Lifetime(LIFETIME))
}

/// A last message is fully reliable and in order behind the others of its stream: when it has come, all is settled
/// there; one on each stream.
fn last() -> Vec<Letter> {
    let letter = |stream| Letter { number: COUNT + u32::from(stream), stream, size: 10, unordered: false };
    (0..STREAMS).map(letter).collect()
}

fn all_last(arrived: &[Arrived]) -> bool {
    arrived.iter().filter(|one| one.number >= COUNT).count() == usize::from(STREAMS)
}

fn we_send(bench: &mut Bench, reliability: Reliability) -> Done {
    bench.up()?;
    ensure(bench.end.extensions(bench.id()).partial_reliability, || "not agreed".to_owned())?;
    for letter in letters() {
        bench.send(&letter, reliability)?;
        bench.pass(PAUSE)?;
    }
    for letter in last() {
        bench.send(&letter, Reliability::Full)?;
    }
    bench.until("the last message of each stream arrives", |bench| all_last(&bench.arrived_there()))?;
    judge(&bench.arrived_there(), &bench.failed, 2)
}

fn peer_sends(bench: &mut Bench, reliability: Reliability) -> Done {
    bench.up()?;
    ensure(bench.end.extensions(bench.id()).partial_reliability, || "not agreed".to_owned())?;
    for letter in letters() {
        bench.peer_sends(&letter, reliability)?;
        bench.pass(PAUSE)?;
    }
    for letter in last() {
        bench.peer_sends(&letter, Reliability::Full)?;
    }
    bench.until("the last message of each stream arrives", |bench| all_last(&bench.arrived))?;
    // Where the clock is coarser than the lifetime, much is given up before it leaves.
    judge(
        &bench.arrived,
        &bench.failed_there(),
        if bench.peer_tick() > Duration::from_millis(LIFETIME.into()) { 10 } else { 2 },
    )
}

/// Only what was given up may be missing, and something must be; one of `share` must arrive.
fn judge(arrived: &[Arrived], failed: &[u32], share: usize) -> Done {
    let sent: Vec<Letter> = letters().into_iter().chain(last()).collect();
    if let Some(what) = complaint(&sent, arrived, |number| failed.contains(&number)) {
        return Err(Stop::Failed(what));
    }
    ensure(arrived.len() < sent.len(), || "nothing was given up".to_owned())?;
    ensure(arrived.len() > sent.len() / share, || format!("only {} messages arrived", arrived.len()))
}
