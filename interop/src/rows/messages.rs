//! Messages, and what may be around them.

use anabranch_proto::{Extensions, Reliability};

use crate::bench::{Bench, Done, Stop, ensure};
use crate::letter::{Letter, complaint};
use crate::peer::STREAMS;

/// Bytes: the smallest, what fills a packet and one more, what 16 bits hold and one more, a mebibyte.
pub const SIZES: [usize; 8] = [1, 2, 1000, 1452, 1453, 65_535, 65_536, 1 << 20];

/// So many messages of these sizes in turn, over all streams; half of those on each stream unordered.
pub fn letters(sizes: &[usize], count: u32) -> Vec<Letter> {
    let letter = |number: u32| Letter {
        number,
        stream: number as u16 % STREAMS,
        size: sizes[number as usize % sizes.len()],
        unordered: number / u32::from(STREAMS) % 2 == 1,
    };
    (0..count).map(letter).collect()
}

/// Both send these, and both have them.
pub fn exchange(bench: &mut Bench, letters: &[Letter]) -> Done {
    for letter in letters {
        bench.send(letter, Reliability::Full)?;
        bench.peer_sends(letter, Reliability::Full)?;
    }
    let count = letters.len();
    bench.until("all messages arrive there", |bench| bench.arrived_there().len() >= count)?;
    bench.until("all messages arrive here", |bench| bench.arrived.len() >= count)?;
    sound(bench, letters)
}

/// What has arrived at both ends is as it should be.
pub fn sound(bench: &Bench, letters: &[Letter]) -> Done {
    let there = complaint(letters, &bench.arrived_there(), |_| false).map(|what| format!("there: {what}"));
    let here = complaint(letters, &bench.arrived, |_| false).map(|what| format!("here: {what}"));
    there.or(here).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}

pub fn both_ways(bench: &mut Bench) -> Done {
    bench.up()?;
    exchange(bench, &letters(&SIZES, 32))
}

pub fn small(bench: &mut Bench) -> Done {
    bench.up()?;
    let sizes: Vec<usize> = (1..=100).collect();
    exchange(bench, &letters(&sizes, 500))
}

pub fn authenticated(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.agreed(Extensions { authentication: true, ..Extensions::default() })?;
    ensure(bench.uses("authentication"), || "the peer does not say that it authenticates".to_owned())?;
    exchange(bench, &letters(&SIZES, 16))
}

/// Both acknowledge by NR-SACK.
pub fn kept(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.agreed(Extensions { nr_sack: true, ..Extensions::default() })?;
    exchange(bench, &letters(&SIZES, 32))?;
    ensure(bench.nr_sacks > 0, || "the peer sent no NR-SACK".to_owned())
}

pub fn without_checksum(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.agreed(Extensions { zero_checksum: true, ..Extensions::default() })?;
    exchange(bench, &letters(&SIZES, 16))?;
    ensure(bench.without_checksum > 0, || "every packet of the peer had a checksum".to_owned())
}
