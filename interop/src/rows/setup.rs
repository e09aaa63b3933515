//! Associations come up, and start over.

use anabranch_proto::{Duration, Event, Reliability};

use super::messages::{exchange, letters};
use crate::bench::{Bench, Done, ensure};
use crate::peer::{Ask, PeerEvent, STREAMS};

pub fn handshake(bench: &mut Bench) -> Done {
    bench.up()?;
    let status = bench.end.status(bench.id()).expect("it is up");
    let streams = [status.outbound_streams, status.inbound_streams];
    ensure(streams == [STREAMS; 2], || format!("streams out and in: {streams:?}"))?;
    let wanted = |told: &PeerEvent| matches!(told, PeerEvent::Up { streams, .. } if *streams == [STREAMS; 2]);
    ensure(bench.told.iter().any(wanted), || format!("the peer says {:?}", bench.told))?;
    exchange(bench, &letters(&[100], 2))
}

pub fn collision(bench: &mut Bench) -> Done {
    bench.ask(Ask::Connect)?;
    bench.connect();
    bench.both_up()?;
    exchange(bench, &letters(&[1000], 4))
}

pub fn peer_restarts(bench: &mut Bench) -> Done {
    bench.up()?;
    exchange(bench, &letters(&[1000], 4))?;
    // Nothing is under way any more that the new one would wonder about.
    bench.pass(Duration::from_millis(100))?;
    bench.told.clear();
    bench.arrived.clear();
    bench.ask(Ask::Restart)?;
    bench.until("the restart is noticed", |bench| bench.events.contains(&Event::Restart))?;
    bench.both_up()?;
    exchange(bench, &letters(&[1000], 4))
}

pub fn we_restart(bench: &mut Bench) -> Done {
    bench.up()?;
    for letter in letters(&[1000], 4) {
        bench.send(&letter, Reliability::Full)?;
    }
    bench.until("the first messages arrive", |bench| bench.arrived_there().len() == 4)?;
    bench.restart();
    bench.until("the peer notices", |bench| bench.told.contains(&PeerEvent::Restarted))?;
    bench.until("we are up again", |bench| bench.events.contains(&Event::Up))?;
    bench.told.clear();
    exchange(bench, &letters(&[1000], 4))
}
