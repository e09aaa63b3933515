//! Graceful ends, from either side and both, with losses; aborts; a peer that is gone.

use anabranch_proto::wire::chunk::{Abort, Bare, Heartbeat, Shutdown};
use anabranch_proto::wire::{Cause, Chunk};
use anabranch_proto::{Event, LostReason, Message, SendError, Time, Tsn};
use bytes::Bytes;

use crate::support::bench::{Bench, at_ms, era, ms};
use crate::support::{Kind, World, address, secs};

fn is_shutdown(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Shutdown(_))
}

fn is_ack(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::ShutdownAck(_))
}

fn is_complete(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::ShutdownComplete(_))
}

fn shut(world: &mut World, side: usize) {
    let id = world.up(side).expect("up");
    world.ends[side].shutdown(world.now, id);
    world.drain(side);
}

fn closed(world: &World) -> [Option<Time>; 2] {
    [0, 1].map(|side| world.when(side, &Event::Closed))
}

fn established() -> World {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    world
}

/// SHUTDOWN 1.0, SHUTDOWN ACK 1.05, SHUTDOWN COMPLETE 1.1 s: closed at 1.1 where it was asked for, and at 1.15.
//= rfc9260#section-9.2
#[test]
fn either_side_may_ask() {
    for side in 0..2 {
        let mut world = established();
        shut(&mut world, side);
        world.run(secs(20.0));
        let mut times = [Some(at_ms(1150)); 2];
        times[side] = Some(at_ms(1100));
        assert_eq!(closed(&world), times);
        assert_eq!(world.when(1 - side, &Event::PeerShutdown), Some(at_ms(1050)));
    }
}

/// Both ask at 1.0: SHUTDOWN crosses SHUTDOWN, SHUTDOWN ACK crosses SHUTDOWN ACK at 1.05: both closed at 1.1.
//= rfc9260#section-9.2
#[test]
fn both_ask_at_once() {
    let mut world = established();
    shut(&mut world, 0);
    shut(&mut world, 1);
    world.run(secs(20.0));
    assert_eq!(closed(&world), [Some(at_ms(1100)); 2]);
}

/// Losses; RTO is 1 s.
///
/// - SHUTDOWN: again at 2.0: closed at 2.1 and 2.15.
/// - SHUTDOWN ACK, of 1.05: SHUTDOWN again at 2.0 says nothing new; SHUTDOWN ACK again at 2.05: 2.1 and 2.15.
/// - SHUTDOWN COMPLETE, of 1.1: side 0 is gone. SHUTDOWN ACK again at 2.05 comes out of the blue there and gets
///   a SHUTDOWN COMPLETE all the same (T bit): closed at 1.1 and 2.15.
//= rfc9260#section-9.2
//= rfc9260#section-8.4
#[test]
fn one_packet_of_the_end_is_lost() {
    let kinds: [(Kind, u64, u64); 3] =
        [(is_shutdown, 2100, 2150), (is_ack, 2100, 2150), (is_complete, 1100, 2150)];
    for (kind, side0, side1) in kinds {
        let mut world = established();
        world.lose(1, kind);
        shut(&mut world, 0);
        world.run(secs(20.0));
        assert_eq!(closed(&world), [Some(at_ms(side0)), Some(at_ms(side1))]);
        assert!(!world.events.iter().flatten().any(|e| matches!(e.2, Event::Lost(_))));
    }
}

/// The same losses when both ask at once, each of the two packets of a kind.
//= rfc9260#section-9.2
#[test]
fn both_ask_and_packets_are_lost() {
    let kinds: [Kind; 3] = [is_shutdown, is_ack, is_complete];
    for kind in kinds {
        for count in 1..=4 {
            let mut world = established();
            world.lose(count, kind);
            shut(&mut world, 0);
            shut(&mut world, 1);
            world.run(secs(60.0));
            assert!(closed(&world).iter().all(Option::is_some), "{count}");
        }
    }
}

/// Asked for while the association is being set up, in COOKIE-WAIT (0) and COOKIE-ECHOED (120 ms): it comes up at
/// 200 ms, what was given is delivered, nothing more is taken, and it ends: SHUTDOWN at 200 ms, or at 300 ms when
/// the message of 200 ms has been acknowledged, without delay by its I bit; a round trip later it is over.
//= rfc9260#section-11.1.3
//= rfc9260#section-9.2
#[test]
fn an_end_before_the_beginning() {
    let config = era("rfc9260");
    for asked in [0, 120] {
        for size in [None, Some(100)] {
            let (mut world, id) = World::joined([&config, &config], 1);
            size.into_iter().for_each(|size| world.give(0, id, size));
            world.run(at_ms(asked));
            world.ends[0].shutdown(world.now, id);
            let more = Message { payload: Bytes::from_static(b"x"), ..Message::default() };
            assert!(matches!(world.ends[0].send(world.now, id, more), Err(SendError::Closed(_))));
            world.drain(0);
            world.run(secs(20.0));
            assert_eq!(world.when(0, &Event::Up), Some(at_ms(200)));
            assert_eq!(world.take(1), size.into_iter().collect::<Vec<_>>());
            let end = if size.is_none() { 300 } else { 400 };
            assert_eq!(closed(&world), [Some(at_ms(end)), Some(at_ms(end + 50))], "{asked} {size:?}");
        }
    }
}

/// An end that was asked for does not outlive a set-up that fails.
//= rfc9260#section-11.1.3
#[test]
fn an_end_before_a_beginning_that_never_comes() {
    let config = era("rfc9260").with(|parameters| parameters.max_init_retransmits = 1);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.weather[0].up = false;
    world.give(0, id, 100);
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(secs(20.0));
    let [(_, _, Event::SendFailed { sent: false, .. }), (_, _, last)] = &world.events[0][..] else {
        panic!("{:?}", world.events[0]);
    };
    assert_eq!(*last, Event::Lost(LostReason::NoAnswer));
}

/// What was given before is delivered first, on both sides; nothing more is taken. The end that did not ask is
/// told: no more will come.
//= rfc9260#section-9.2
#[test]
fn data_is_delivered_first() {
    let mut world = established();
    let [a, b] = [0, 1].map(|side| world.up(side).expect("up"));
    (0..20).for_each(|_| world.give(0, a, 1452));
    (0..20).for_each(|_| world.give(1, b, 1452));
    shut(&mut world, 0);
    let message = Message { payload: Bytes::from_static(b"x"), ..Message::default() };
    let refused = world.ends[0].send(world.now, a, message);
    assert!(matches!(refused, Err(SendError::Closed(_))));
    world.run(secs(60.0));
    assert_eq!([world.take(0).len(), world.take(1).len()], [20, 20], "also after the end");
    assert!(closed(&world).iter().all(Option::is_some));
    let failed = |e: &(Time, _, Event)| matches!(e.2, Event::SendFailed { .. } | Event::Lost(_));
    assert!(!world.events.iter().flatten().any(failed));
}

/// What has arrived can be read after the association has ended, until it is forgotten.
#[test]
fn read_after_close() {
    let mut world = established();
    let [a, b] = [0, 1].map(|side| world.up(side).expect("up"));
    world.give(0, a, 100);
    shut(&mut world, 0);
    world.run(secs(60.0));
    assert!(world.happened(1, &Event::Closed) && world.happened(1, &Event::Readable));
    assert_eq!(world.take(1), [100]);
    assert_eq!(world.take(1), [0; 0]);
    world.ends[1].forget(world.now, b);
    assert_eq!(world.take(1), [0; 0]);
    assert!(world.ends[1].paths(b).is_empty());
}

/// Nobody answers SHUTDOWN: T2 doubled up to RTO.Max: 0, 1, 3, 7, 15, 31, 63, 123, 183, 243 s; T5, five times
/// RTO.Max, gives up at 300 s, with an ABORT.
//= rfc9260#section-9.2
#[test]
fn nobody_answers_the_shutdown() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    bench.pass(ms(400_000));
    let sent: Vec<u64> = bench.sent.iter().map(|(at, ..)| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 300]);
    assert!(matches!(bench.sent.last().expect("sent").1.chunks[..], [Chunk::Abort(_)]));
    assert_eq!(bench.events.last(), Some(&(at_ms(300_000), Event::Lost(LostReason::TooManyErrors))));
}

/// T2 doubles the RTO of its path. The average counts it: 1 s for one second, then 2 s for two.
//= rfc9260#section-9.2
#[test]
fn the_average_rto_counts_t2() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    bench.until(at_ms(2999));
    let path = &bench.end.paths(bench.id)[0];
    assert_eq!(path.rto_average.mean(at_ms(3000)).as_millis(), 1666);
}

/// A peer that is heard may have much left to send: its packets clear the count. They do not restart T2, unless
/// they have DATA: else a lost SHUTDOWN would wait for ever for a peer with heartbeats.
///
/// Association.Max.Retrans = 2: SHUTDOWN at 0, 1, 3 s, and lost at 7; heard at 6 s: again at 7 and 15 s; lost
/// at 31 s.
//= rfc9260#section-9.2
#[test]
fn a_peer_that_is_heard_has_time() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.association_max_retrans = 2), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    bench.until(at_ms(6000));
    bench.hear(Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"alive?"))));
    bench.pass(ms(100_000));
    let shutdowns = bench.sent.iter().filter(|(_, packet, _)| packet.chunks.iter().any(is_shutdown));
    let times: Vec<u64> = shutdowns.map(|(at, ..)| at.as_nanos() / 1_000_000_000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15]);
    assert_eq!(bench.events.last(), Some(&(at_ms(31_000), Event::Lost(LostReason::TooManyErrors))));
}

/// The SACK beside a SHUTDOWN has as many Gap Ack Blocks as the packet has room for: 548 bytes, less 20 of IP, 12 of
/// the common header, 8 of SHUTDOWN and 16 of SACK, are 123 blocks.
//= rfc9260#section-9.2
//= rfc9260#section-3.3.4
#[test]
fn a_sack_with_many_gaps_beside_shutdown() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.mtu = 548), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    (1..=200).for_each(|n| bench.data(1 + 2 * n, 500));
    let (_, packet, _) = bench.sent.last().expect("an answer");
    let [Chunk::Shutdown(_), Chunk::Sack(sack)] = &packet.chunks[..] else { panic!("{packet:?}") };
    assert_eq!((sack.gaps.len(), packet.size()), (123, 528));
}

/// Data that comes after SHUTDOWN was sent is acknowledged, and SHUTDOWN repeated, in one packet and at once.
//= rfc9260#section-9.2
#[test]
fn data_after_shutdown_is_answered_at_once() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    bench.sent.clear();
    bench.until(at_ms(400));
    bench.data(1, 100);
    let [(at, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    let [Chunk::Shutdown(shutdown), Chunk::Sack(sack)] = &packet.chunks[..] else { panic!("{packet:?}") };
    assert_eq!((*at, sack.cumulative, shutdown.cumulative), (at_ms(400), Tsn(1), Tsn(1)));
    assert!(bench.end.read(bench.now, bench.id).is_some());
}

/// SHUTDOWN acknowledges data as a SACK does; with nothing left, SHUTDOWN ACK follows at once.
//= rfc9260#section-9.2
#[test]
fn a_shutdown_acknowledges() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(2, 100);
    bench.sent.clear();
    bench.hear(Chunk::Shutdown(Shutdown { cumulative: Tsn(0) }));
    assert!(bench.sent.is_empty() && bench.events.last().expect("one").1 == Event::PeerShutdown);
    bench.hear(Chunk::Shutdown(Shutdown { cumulative: Tsn(2) }));
    assert!(matches!(&bench.sent[..], [(_, packet, _)] if packet.chunks[..] == [Chunk::ShutdownAck(Bare)]));
}

/// An INIT in SHUTDOWN-ACK-SENT: the peer does not know that this is the end; SHUTDOWN ACK goes again.
//= rfc9260#section-9.2
#[test]
fn an_init_at_the_end_gets_the_shutdown_ack_again() {
    let mut world = established();
    let init = world.log[0].packet.clone();
    world.lose(usize::MAX, is_complete);
    shut(&mut world, 0);
    world.run(at_ms(1200));
    let before = world.left(1, is_ack).len();
    let incoming = anabranch_proto::Incoming::Packet(Box::new(init));
    world.ends[1].handle(world.now, incoming);
    world.drain(1);
    assert_eq!(world.left(1, is_ack).len(), before + 1);
    assert!(!world.left(1, |c| matches!(c, Chunk::InitAck(_))).contains(&at_ms(1200)));
}

/// SHUTDOWN COMPLETE and COOKIE ACK mean nothing while data flows; SHUTDOWN ACK neither.
//= rfc9260#section-9.2
#[test]
fn ends_that_nobody_asked_for() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let complete = anabranch_proto::wire::chunk::ShutdownComplete { reflected: false };
    for chunk in [Chunk::ShutdownComplete(complete), Chunk::ShutdownAck(Bare), Chunk::CookieAck(Bare)] {
        bench.hear(chunk);
    }
    assert!(bench.sent.is_empty() && bench.events.len() == 1);
    bench.send(1, 100);
    assert_eq!(bench.loads().len(), 1);
}

/// Of a long reason the peer is told as much as fits a packet of 1,500 bytes.
//= rfc9260#section-6.10
#[test]
fn the_user_aborts_for_a_long_reason() {
    for size in [1460, 1461, 100_000] {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.end.abort(bench.now, bench.id, vec![7; size].into());
        bench.drain();
        let [(_, packet, reason)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
        let causes = vec![Cause::UserInitiated(vec![7; 1460].into())];
        assert_eq!(packet.chunks[..], [Chunk::Abort(Abort { reflected: false, causes })]);
        assert_eq!((packet.size(), reason.oversize), (1480, false));
    }
}

/// The user aborts: the peer is told why, and its user, too. What was not acknowledged comes back: one message
/// sent, and of three packets' worth in the queue what never left.
//= rfc9260#section-9.1
//= rfc9260#section-3.3.10.12
#[test]
fn the_user_aborts() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(6, 1452);
    bench.sack(1, &[(3, 3)]);
    bench.end.abort(bench.now, bench.id, b"enough".as_slice().into());
    bench.sent.clear();
    bench.drain();
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    let causes = vec![Cause::UserInitiated(Bytes::from_static(b"enough"))];
    assert_eq!(packet.chunks[..], [Chunk::Abort(Abort { reflected: false, causes })]);
    let sent: Vec<bool> = bench.events.iter().filter_map(|(_, e)| failed(e)).collect();
    // 1 is acknowledged, 3 by a gap; 2, 4, 5, 6 are not: the window of 5872 let all go.
    assert_eq!(sent, [true, true, true, true]);
    assert_eq!(bench.events.last().expect("one").1, Event::Lost(LostReason::UserAborted));
}

fn failed(event: &Event) -> Option<bool> {
    match event {
        Event::SendFailed { sent, .. } => Some(*sent),
        _ => None,
    }
}

/// The peer aborts: its reason is passed on; what was sent, and what was not, comes back.
//= rfc9260#section-9.1
#[test]
fn the_peer_aborts() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(5, 1452);
    let causes = vec![Cause::UserInitiated(Bytes::from_static(b"enough"))];
    bench.hear(Chunk::Abort(Abort { reflected: false, causes: causes.clone() }));
    let sent: Vec<bool> = bench.events.iter().filter_map(|(_, e)| failed(e)).collect();
    assert_eq!(sent, [true, true, true, false, false], "4404 bytes of window");
    assert_eq!(bench.events.last().expect("one").1, Event::Lost(LostReason::PeerAborted(causes)));
    assert!(matches!(bench.try_send(1), Err(SendError::Closed(_))));
    bench.sent.clear();
    bench.pass(ms(100_000));
    assert!(bench.sent.is_empty(), "an ABORT is not answered, and nothing goes on");
}

/// Aborted while COOKIE ACK is awaited, the peer may be up already: it is told.
//= rfc9260#section-9.1
#[test]
fn an_abort_during_the_handshake() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(at_ms(160));
    world.ends[0].abort(world.now, id, Default::default());
    world.drain(0);
    world.run(secs(5.0));
    assert!(world.happened(0, &Event::Lost(LostReason::UserAborted)));
    let told = LostReason::PeerAborted(vec![Cause::UserInitiated(Bytes::new())]);
    assert_eq!(world.when(1, &Event::Lost(told)), Some(at_ms(210)));
}

/// SHUTDOWN comes on the second path, and nothing is left to be acknowledged: SHUTDOWN ACK goes back there.
//= rfc9260#section-6.4
#[test]
fn a_shutdown_is_answered_where_it_came_from() {
    for data in [false, true] {
        let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
        if data {
            bench.send(1, 100);
        }
        bench.sent.clear();
        bench.hear_on(1, Chunk::Shutdown(Shutdown { cumulative: Tsn(data.into()) }));
        let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
        assert_eq!(
            (packet.to, &packet.chunks[0]),
            (address(1, 1), &Chunk::ShutdownAck(Bare)),
            "data: {data}"
        );
    }
}
