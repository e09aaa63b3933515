//! I-DATA (RFC 8260).

use anabranch_proto::{Extensions, Reliability};

use super::messages::{SIZES, exchange, letters};
use crate::bench::{Bench, Done, ensure};
use crate::letter::{Arrived, Letter};

fn up(bench: &mut Bench) -> Done {
    bench.up()?;
    let agreed: Extensions = bench.end.extensions(bench.id());
    ensure(agreed.interleaving, || "not agreed".to_owned())?;
    ensure(bench.uses("interleaving"), || "the peer does not say that it interleaves".to_owned())
}

pub fn messages(bench: &mut Bench) -> Done {
    up(bench)?;
    exchange(bench, &letters(&SIZES, 32))
}

/// A long message, and a short one given behind it.
const LONG: Letter = Letter { number: 0, stream: 1, size: 1 << 20, unordered: false };
const SHORT: Letter = Letter { number: 1, stream: 2, size: 10, unordered: false };

/// The short one arrives first.
fn overtaken(arrived: &[Arrived]) -> Done {
    let order: Vec<u32> = arrived.iter().map(|one| one.number).collect();
    ensure(order == [SHORT.number, LONG.number], || format!("messages arrived in the order {order:?}"))
}

pub fn ours_overtakes(bench: &mut Bench) -> Done {
    up(bench)?;
    bench.send(&LONG, Reliability::Full)?;
    bench.send(&SHORT, Reliability::Full)?;
    bench.until("both messages arrive", |bench| bench.arrived_there().len() == 2)?;
    overtaken(&bench.arrived_there())
}

pub fn theirs_overtakes(bench: &mut Bench) -> Done {
    up(bench)?;
    bench.peer_sends(&LONG, Reliability::Full)?;
    bench.peer_sends(&SHORT, Reliability::Full)?;
    bench.until("both messages arrive", |bench| bench.arrived.len() == 2)?;
    overtaken(&bench.arrived)
}
