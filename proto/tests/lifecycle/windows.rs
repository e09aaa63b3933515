//! A reader that does not read: the peer's window closes, is probed, and opens again (RFC 9260 §6.1 A).

use anabranch_proto::{Blocked, Config, NoteKind};

use crate::support::bench::{Bench, FULL, at_ms, era, ms};
use crate::support::{World, secs};

/// A window closed at 100 ms, RTT 100 ms, RTO 1 s; three chunks wait.
fn closed() -> Bench {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, FULL);
    bench.until(at_ms(100));
    bench.sack_window(1, 0);
    bench.send(3, FULL);
    bench.loads();
    bench
}

/// The peer drops each probe for want of room, and says so 100 ms later; when they left (ms).
fn probes(bench: &mut Bench, until: u64) -> Vec<u64> {
    let mut times = Vec::new();
    while bench.now < at_ms(until) {
        bench.pass(ms(100));
        let loads = bench.loads();
        times.extend(loads.iter().map(|load| load.0));
        if !loads.is_empty() {
            bench.pass(ms(100));
            bench.sack(1, &[]);
        }
    }
    times
}

/// One RTO after it was found closed, then at doubled intervals: 1.1, + 1 = 2.1, + 2 = 4.1, + 4 = 8.1,
/// + 8 = 16.1 s. They are one chunk, always the same; answered, they are no errors, and cut nothing.
//= rfc9260#section-6.1
#[test]
fn probes_at_growing_intervals() {
    let mut bench = closed();
    let window = bench.windows();
    assert_eq!(probes(&mut bench, 20_000), [1100, 2100, 4100, 8100, 16_100]);
    assert_eq!((bench.view(0).errors, bench.windows()), (0, window));
    assert_eq!(bench.view(0).rto, ms(16_000));
    let statistics = bench.end.statistics(bench.now, bench.id);
    assert_eq!(statistics.probes, 5);
    assert!(statistics.blocked_peer_window > ms(19_000), "{statistics:?}");
}

/// Two paths: the probe stays where it is, by the RTO of that path: that the peer has no room says nothing against
/// it. 1.1, + 1, + 2, + 4 s.
//= rfc9260#section-6.1
#[test]
fn probes_stay_on_their_path() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(0));
    bench.send(1, FULL);
    bench.until(at_ms(100));
    bench.sack_window(1, 0);
    bench.send(1, FULL);
    bench.loads();
    let mut times = Vec::new();
    while bench.now < at_ms(10_000) {
        bench.pass(ms(50));
        let loads = bench.loads();
        times.extend(loads.iter().map(|load| (load.0, load.1)));
        if !loads.is_empty() {
            bench.sack(1, &[]);
        }
    }
    assert_eq!(times, [(1100, 0), (2100, 0), (4100, 0), (8100, 0)]);
    assert_eq!(bench.view(0).timeout_retransmissions, 0);
}

/// A window update, 10,000 bytes at 5 s: the probe that was dropped goes again at once, and the rest with it.
//= rfc9260#section-6.1
#[test]
fn a_window_update_lets_all_go_at_once() {
    let mut bench = closed();
    probes(&mut bench, 5000);
    bench.until(at_ms(5000));
    bench.sack_window(1, 10_000);
    assert_eq!(bench.loads(), [(5000, 0, vec![2]), (5000, 0, vec![3]), (5000, 0, vec![4])]);
    bench.until(at_ms(5100));
    bench.sack(4, &[]);
    bench.until(at_ms(60_000));
    assert!(bench.loads().is_empty());
}

/// A probe that is taken opens nothing else: 2 is acknowledged, the window still closed; the next asks an RTO
/// later. The RTT of the probe, 100 ms, has brought the RTO back to 1 s.
//= rfc9260#section-6.1
#[test]
fn a_probe_that_is_taken() {
    let mut bench = closed();
    bench.until(at_ms(1200));
    bench.sack(2, &[]);
    bench.loads();
    bench.until(at_ms(3000));
    assert_eq!(bench.loads(), [(2200, 0, vec![3])]);
}

/// Nobody answers the probe: an error, as of any chunk, and the window is cut.
//= rfc9260#section-8.1
#[test]
fn a_probe_that_nobody_answers_is_an_error() {
    let mut bench = closed();
    bench.until(at_ms(2100));
    assert_eq!((bench.view(0).errors, bench.window()), (1, 1468));
}

/// A window that opens before the first probe: nothing is asked.
//= rfc9260#section-6.1
#[test]
fn it_opens_before_the_first_probe() {
    let mut bench = closed();
    bench.until(at_ms(500));
    bench.sack_window(1, 100_000);
    assert_eq!(bench.loads().iter().map(|load| load.0).collect::<Vec<_>>(), [500, 500, 500]);
    assert_eq!(bench.end.statistics(bench.now, bench.id).probes, 0);
}

/// End to end: a buffer of 10,000 bytes that nobody reads for 20 s takes six chunks of 1468; 1192 bytes are
/// less than a packet and announced as none. All is read at 20 s: told at once, and data leaves at 20.05 s.
/// What waits, waits for the peer's window.
//= rfc9260#section-6.2
//= rfc9260#section-6.1
#[test]
fn a_reader_that_sleeps() {
    let config = Config { receive_buffer: 10_000, ..era("rfc9260") }
        .with(|parameters| parameters.send_buffer = Some(100_000));
    let (mut world, id) = World::joined([&config, &config], 1);
    (0..20).for_each(|_| world.give(0, id, FULL));
    world.run(secs(20.0));
    assert_eq!(world.ends[0].paths(id)[0].errors, 0);
    assert_eq!(world.ends[0].statistics(world.now, id).acknowledged, 6 * FULL as u64);
    assert!(world.ends[0].statistics(world.now, id).probes >= 3);
    let blocked =
        |kind: &NoteKind| matches!(kind, NoteKind::Blocked { cause: Some(Blocked::PeerWindow), .. });
    assert!(world.notes[0].iter().any(|note| blocked(&note.kind)));
    assert_eq!(world.take(1).len(), 6);
    world.log.clear();
    world.run(at_ms(20_050));
    let first = world.log.iter().find(|left| left.side == 0).expect("data").at;
    assert_eq!(first, at_ms(20_050));
    let mut count = 6;
    while count < 20 {
        assert!(world.now < secs(60.0));
        world.run(world.now + ms(100));
        count += world.take(1).len();
    }
}
