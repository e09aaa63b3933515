//! STATUS and SET PROTOCOL PARAMETERS (RFC 9260 §11.1.8, §11.1.13): the user looks, and changes his mind.

use anabranch_proto::rules::Burst;
use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Sack;
use anabranch_proto::{Config, NoteKind, Noting, Parameters, State, Tsn};
use smallvec::SmallVec;

use crate::support::bench::{Bench, FULL, era, ms};

#[test]
fn the_status_says_where_an_association_stands() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(3, 100);
    bench.data(1, 100);
    let status = bench.end.status(bench.id).expect("it is there");
    assert_eq!((status.state, status.unacknowledged, status.unread), (State::Established, 3, 1));
    // 16 streams are offered each way; the three chunks of 116 bytes are in flight.
    assert_eq!((status.outbound_streams, status.inbound_streams), (16, 16));
    assert_eq!(status.peer_window, (1 << 20) - 3 * 116);
    assert_eq!(status.fragmentation_point, FULL as u32);
    bench.end.abort(bench.now, bench.id, Default::default());
    assert_eq!(bench.end.status(bench.id).map(|status| status.state), Some(State::Closed));
    bench.end.forget(bench.now, bench.id);
    assert_eq!(bench.end.status(bench.id), None);
}

/// Before the first measurement RTO.Initial holds, then RTO is kept within its bounds.
#[test]
fn other_parameters_hold_at_once() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let before = bench.end.config_of(bench.id).expect("it is there").parameters;
    let shorter = Parameters { rto_initial: ms(400), rto_min: ms(300), rto_max: ms(700), ..before };
    bench.end.reconfigure(bench.now, bench.id, shorter).expect("they can be used");
    assert_eq!(bench.view(0).rto, ms(400));
    bench.send(1, 100);
    bench.loads();
    for later in [400, 700, 700] {
        bench.pass(ms(later));
        assert_eq!(bench.loads().len(), 1, "after {later} ms");
    }
    let off = Parameters { heartbeat_interval: None, ..shorter };
    bench.end.reconfigure(bench.now, bench.id, off).expect("they can be used");
    bench.sack(1, &[]);
    bench.pass(ms(100_000));
    assert!(bench.heartbeats().is_empty());
    let wrong = Parameters { rto_min: ms(800), ..shorter };
    assert_eq!(bench.end.reconfigure(bench.now, bench.id, wrong).unwrap_err().key, "rto_min");
}

/// Max.Burst bounds what the next SACK releases, before and after it was changed.
//= rfc9260#section-6.1
#[test]
fn another_max_burst_holds_at_once() {
    let mut config = era("rfc9260").with(|parameters| parameters.max_burst = 1000);
    config.rules.burst = Burst::Always;
    let mut bench = Bench::new(config, 1);
    bench.grow_to(60_000);
    let first = bench.next_tsn();
    bench.send(80, FULL);
    bench.loads();
    for (n, packets) in (1..).zip([4, 10, 2]) {
        // Room for twelve packets more.
        let before = bench.end.config_of(bench.id).expect("it is there").parameters;
        let other = Parameters { max_burst: packets, ..before };
        bench.end.reconfigure(bench.now, bench.id, other).expect("they can be used");
        bench.sack(first + 12 * n, &[]);
        assert_eq!(bench.loads().len(), packets as usize);
    }
}

/// Notes that were made in one manner are not reported in another one.
#[test]
fn another_manner_of_noting_begins_without_notes() {
    for (other, expected) in [(Noting::Polled, true), (Noting::Kept, false), (Noting::Blocked, false)] {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.send(1, FULL);
        bench.notes.clear();
        let (a_rwnd, cumulative) = (bench.a_rwnd, Tsn(1));
        let sack = Sack { flags: 0, cumulative, a_rwnd, gaps: SmallVec::new(), duplicates: SmallVec::new() };
        bench.hear_unpolled(Chunk::Sack(sack));
        bench.end.set_noting(other);
        bench.end.set_noting(Noting::Polled);
        bench.drain();
        let told = bench.notes.iter().any(|note| matches!(note.kind, NoteKind::Acked { .. }));
        assert_eq!(told, expected, "{other:?}");
    }
}

/// What the endpoint is told holds for associations that begin later.
#[test]
fn an_endpoint_takes_other_parameters() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let before = bench.view(0).rto;
    let config = bench.end.config().clone().with(|parameters| parameters.rto_initial = ms(2000));
    bench.end.configure(config).expect("they can be used");
    assert_eq!(bench.view(0).rto, before);
    assert_eq!(bench.end.config().rto_initial, ms(2000));
    let wrong = Config { port: 0, ..bench.end.config().clone() };
    assert!(bench.end.configure(wrong).is_err());
}
