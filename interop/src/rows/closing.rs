//! Associations end.

use anabranch_proto::wire::Cause;
use anabranch_proto::{Event, LostReason, Reliability};
use bytes::Bytes;

use super::messages::letters;
use crate::bench::{Bench, Done, Stop, ensure};
use crate::letter::complaint;
use crate::peer::{Ask, PeerEvent};

const REASON: &str = "enough";

/// What is under way when an end shuts down.
const SIZES: [usize; 3] = [100, 5000, 60_000];

fn both_closed(bench: &mut Bench) -> Done {
    bench.until("both ends are closed", |bench| {
        bench.events.contains(&Event::Closed) && bench.told.contains(&PeerEvent::Closed)
    })
}

pub fn we_shut_down(bench: &mut Bench) -> Done {
    bench.up()?;
    let letters = letters(&SIZES, 20);
    for letter in &letters {
        bench.send(letter, Reliability::Full)?;
    }
    bench.call(|end, now, id| end.shutdown(now, id));
    both_closed(bench)?;
    complaint(&letters, &bench.arrived_there(), |_| false).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}

pub fn peer_shuts_down(bench: &mut Bench) -> Done {
    bench.up()?;
    let letters = letters(&SIZES, 20);
    for letter in &letters {
        bench.peer_sends(letter, Reliability::Full)?;
    }
    bench.ask(Ask::Shutdown)?;
    both_closed(bench)?;
    complaint(&letters, &bench.arrived, |_| false).map_or(Ok(()), |what| Err(Stop::Failed(what)))
}

pub fn both_shut_down(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.ask(Ask::Shutdown)?;
    bench.call(|end, now, id| end.shutdown(now, id));
    both_closed(bench)
}

pub fn we_abort(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.call(|end, now, id| end.abort(now, id, Bytes::from_static(REASON.as_bytes())));
    let aborted = |told: &PeerEvent| matches!(told, PeerEvent::Aborted(_));
    bench.until("the peer is told", |bench| bench.told.iter().any(aborted))?;
    let why = |told: &PeerEvent| matches!(told, PeerEvent::Aborted(why) if why.contains(REASON));
    ensure(bench.told.iter().any(why), || format!("the peer heard {:?}", bench.told))
}

pub fn peer_aborts(bench: &mut Bench) -> Done {
    bench.up()?;
    bench.ask(Ask::Abort(REASON))?;
    let lost = |event: &Event| matches!(event, Event::Lost(_));
    bench.until("we are told", |bench| bench.events.iter().any(lost))?;
    let because = |event: &Event| match event {
        Event::Lost(LostReason::PeerAborted(causes)) => matches!(&causes[..], [Cause::UserInitiated(_)]),
        _ => false,
    };
    ensure(bench.events.iter().any(because), || format!("we heard {:?}", bench.events.last()))
}
