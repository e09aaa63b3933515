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

/// Half of those on each stream are unordered; one in ten needs three packets. With `loose`, all those that do are
/// unordered.
fn letters(loose: bool) -> Vec<Letter> {
    let letter = |number: u32| {
        let long = number.is_multiple_of(10);
        Letter {
            number,
            stream: number as u16 % STREAMS,
            size: if long { 4000 } else { 500 },
            unordered: number / u32::from(STREAMS) % 2 == 1 || (loose && long),
        }
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
    for letter in letters(false) {
        bench.send(&letter, reliability)?;
        bench.pass(PAUSE)?;
    }
    for letter in last() {
        bench.send(&letter, Reliability::Full)?;
    }
    bench.until("the last message of each stream arrives", |bench| all_last(&bench.arrived_there()))?;
    judge(&letters(false), &bench.arrived_there(), &bench.failed, 2)
}

fn peer_sends(bench: &mut Bench, reliability: Reliability) -> Done {
    bench.up()?;
    ensure(bench.end.extensions(bench.id()).partial_reliability, || "not agreed".to_owned())?;
    // Where the clock is coarser than the lifetime, much is given up before it leaves.
    let coarse = bench.peer_tick() > Duration::from_millis(LIFETIME.into());
    // Such a peer is Linux 6.1. Of a long message it gives up the fragments that have no TSN yet after those before
    // them were acknowledged. Its FORWARD TSN is then out of date (RFC 3758 section 3.6): what follows in order on the
    // stream never comes.
    for letter in letters(coarse) {
        bench.peer_sends(&letter, reliability)?;
        bench.pass(PAUSE)?;
    }
    for letter in last() {
        bench.peer_sends(&letter, Reliability::Full)?;
    }
    bench.until("the last message of each stream arrives", |bench| all_last(&bench.arrived))?;
    judge(&letters(coarse), &bench.arrived, &bench.failed_there(), if coarse { 10 } else { 2 })
}

/// Only what was given up may be missing, and something must be; one of `share` must arrive.
fn judge(letters: &[Letter], arrived: &[Arrived], failed: &[u32], share: usize) -> Done {
    let sent: Vec<Letter> = letters.iter().copied().chain(last()).collect();
    if let Some(what) = complaint(&sent, arrived, |number| failed.contains(&number)) {
        return Err(Stop::Failed(what));
    }
    ensure(arrived.len() < sent.len(), || "nothing was given up".to_owned())?;
    ensure(arrived.len() > sent.len() / share, || format!("only {} messages arrived", arrived.len()))
}
