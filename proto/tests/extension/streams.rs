//! Stream reconfiguration: RFC 6525.

use anabranch_proto::wire::chunk::{
    AddStreams, Data, IncomingReset, OutgoingReset, ReConfig, ReConfigParam, Response, Shutdown,
};
use anabranch_proto::wire::{Cause, Chunk, Param};
use anabranch_proto::{
    AssociationId, ChangeError, Config, Direction, Event, Extensions, Message, Outcome, SendError, Ssn, Tsn,
};
use bytes::Bytes;

use crate::support::bench::{Bench, at_ms, chunk, ms};
use crate::support::{World, address, secs};
use crate::with;

pub(crate) const RECONFIGURATION: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: true,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

/// The peer's first TSN is 1, and so is the number of its first request; ours is 1 too.
pub(crate) fn bench() -> Bench {
    Bench::with(with(RECONFIGURATION), 1, |_| vec![Param::SupportedExtensions(Bytes::from_static(&[0x82]))])
}

pub(crate) fn ask(bench: &mut Bench, params: Vec<ReConfigParam>) {
    bench.hear(Chunk::ReConfig(ReConfig { params }));
}

/// The parameters of the RE-CONFIGs sent so far.
pub(crate) fn said(bench: &mut Bench) -> Vec<ReConfigParam> {
    let chunks =
        bench.take(|c| if let Chunk::ReConfig(chunk) = c { Some(chunk.params.clone()) } else { None });
    chunks.concat()
}

pub(crate) fn respond(bench: &mut Bench, request: u32, result: u32) {
    ask(bench, vec![ReConfigParam::Response(Response { request, result, next: None })]);
}

pub(crate) fn response(request: u32, result: u32) -> ReConfigParam {
    ReConfigParam::Response(Response { request, result, next: None })
}

pub(crate) fn outgoing(request: u32, response: u32, last_tsn: u32, streams: &[u16]) -> ReConfigParam {
    let (last_tsn, streams) = (Tsn(last_tsn), streams.to_vec());
    ReConfigParam::OutgoingReset(OutgoingReset { request, response, last_tsn, streams })
}

fn give(bench: &mut Bench, stream: u16, size: usize) {
    let message = Message { stream, payload: vec![0; size].into(), ..Message::default() };
    bench.give(message).expect("there is room");
    bench.drain();
}

/// Stream and SSN of the DATA sent so far.
fn data(bench: &mut Bench) -> Vec<(u16, u16)> {
    bench.take(|c| if let Chunk::Data(data) = c { Some((data.stream, data.ssn.0)) } else { None })
}

pub(crate) fn reset(direction: Direction, streams: &[u16], outcome: Outcome) -> Event {
    Event::StreamsReset { direction, streams: streams.to_vec(), outcome }
}

/// What was given before the reset leaves before the request; what comes after waits for the answer, on that stream
/// alone, and then begins with SSN 0.
//= rfc6525#section-4.1
//= rfc6525#section-5.1.1
//= rfc6525#section-5.1.2
//= rfc6525#section-5.2.7
#[test]
fn resetting_a_stream() {
    let mut bench = bench();
    give(&mut bench, 3, 10);
    bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[3]).expect("agreed");
    bench.drain();
    assert_eq!(said(&mut bench), [outgoing(1, 0, 1, &[3])]);
    give(&mut bench, 3, 10);
    give(&mut bench, 4, 10);
    assert_eq!(data(&mut bench), [(3, 0), (4, 0)]);
    respond(&mut bench, 1, Response::PERFORMED);
    assert_eq!(data(&mut bench), [(3, 0)]);
    assert_eq!(bench.events.last().expect("one").1, reset(Direction::Outgoing, &[3], Outcome::Done));
    respond(&mut bench, 1, Response::DENIED);
    assert_eq!(bench.events.len(), 2, "answered already");
}

/// Denied: the SSNs go on.
#[test]
fn a_reset_that_is_denied() {
    let mut bench = bench();
    give(&mut bench, 3, 10);
    bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[]).expect("agreed");
    bench.drain();
    give(&mut bench, 3, 10);
    respond(&mut bench, 1, Response::DENIED);
    assert_eq!(data(&mut bench), [(3, 0), (3, 1)]);
    assert_eq!(bench.events.last().expect("one").1, reset(Direction::Outgoing, &[], Outcome::Denied));
}

/// A message that does not fit the window yet keeps the request waiting.
#[test]
fn a_request_waits_for_what_was_given_before() {
    let mut bench = bench();
    bench.sack_window(0, 0);
    (0..2).for_each(|_| give(&mut bench, 3, 1400));
    bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[3]).expect("agreed");
    bench.drain();
    assert_eq!(said(&mut bench), []);
    bench.pass(ms(1000));
    bench.sack_window(1, 10_000);
    assert_eq!(said(&mut bench), [outgoing(1, 0, 2, &[3])]);
}

/// Without an answer the request goes again after 1 s, 3 s, 7 s, and counts as an error; with "in progress" it goes
/// again and does not.
//= rfc6525#section-5.1.1
//= rfc6525#section-5.2.7
#[test]
fn asking_again() {
    let mut bench = bench();
    bench.end.reset_streams(bench.now, bench.id, Direction::Incoming, &[]).expect("agreed");
    bench.drain();
    bench.sent.clear();
    bench.until(at_ms(3000));
    let when: Vec<u64> = bench.sent.iter().map(|(at, ..)| at.as_nanos() / 1_000_000).collect();
    assert_eq!((when, bench.view(0).errors), (vec![1000, 3000], 2));
    respond(&mut bench, 1, Response::IN_PROGRESS);
    assert_eq!(bench.view(0).errors, 0);
    bench.until(at_ms(7000));
    assert_eq!((said(&mut bench).len(), bench.view(0).errors), (3, 0));
}

/// One request at a time, in the order of the calls.
//= rfc6525#section-5.1.3
//= rfc6525#section-5.1.5
//= rfc6525#section-5.1.6
#[test]
fn requests_queue() {
    let mut bench = bench();
    let (now, id) = (bench.now, bench.id);
    bench.end.reset_streams(now, id, Direction::Incoming, &[7]).expect("agreed");
    bench.end.add_streams(now, id, Direction::Outgoing, 2).expect("agreed");
    bench.end.add_streams(now, id, Direction::Incoming, 3).expect("agreed");
    bench.drain();
    let incoming = ReConfigParam::IncomingReset(IncomingReset { request: 1, streams: vec![7] });
    assert_eq!(said(&mut bench), [incoming]);
    respond(&mut bench, 1, Response::NOTHING_TO_DO);
    assert_eq!(said(&mut bench), [ReConfigParam::AddOutgoing(AddStreams { request: 2, count: 2 })]);
    let seventeenth = Message { stream: 16, payload: Bytes::from_static(b"x"), ..Message::default() };
    assert!(matches!(bench.give(seventeenth.clone()), Err(SendError::Invalid(_))), "not before the answer");
    respond(&mut bench, 2, Response::PERFORMED);
    bench.give(seventeenth).expect("there is such a stream now");
    assert_eq!(said(&mut bench), [ReConfigParam::AddIncoming(AddStreams { request: 3, count: 3 })]);
    let many = |bench: &mut Bench| bench.end.add_streams(now, id, Direction::Outgoing, 1);
    assert_eq!((0..16).try_for_each(|_| many(&mut bench)), Ok(()));
    assert_eq!(many(&mut bench), Err(ChangeError::Busy));
    assert_eq!(bench.end.reset_streams(now, id, Direction::Outgoing, &[999]), Err(ChangeError::Invalid));
    assert_eq!(bench.end.reset_tsns(now, AssociationId(9)), Err(ChangeError::NotAgreed));
}

/// The peer resets its streams: at once if all before it has arrived, else when it has; asked again, the answer is
/// the same or what has become of it. A SACK goes with it.
//= rfc6525#section-5.2.1
//= rfc6525#section-5.2.2
//= rfc6525#section-5.1.7
#[test]
fn the_peer_resets_streams() {
    let mut bench = bench();
    bench.data(1, 10);
    ask(&mut bench, vec![outgoing(1, 0, 2, &[0])]);
    assert!(bench.sent.iter().any(|(_, p, _)| matches!(p.chunks[0], Chunk::Sack(_))));
    assert_eq!(said(&mut bench), [response(1, Response::IN_PROGRESS)]);
    ask(&mut bench, vec![outgoing(1, 0, 2, &[0])]);
    assert_eq!(said(&mut bench), [response(1, Response::IN_PROGRESS)], "the same again");
    bench.data(2, 10);
    assert_eq!(said(&mut bench), [response(1, Response::PERFORMED)]);
    assert_eq!(bench.events.last().expect("one").1, reset(Direction::Incoming, &[0], Outcome::Done));
    ask(&mut bench, vec![outgoing(1, 0, 2, &[0])]);
    assert_eq!(said(&mut bench), [response(1, Response::PERFORMED)]);
    let resets = bench.events.iter().filter(|(_, e)| matches!(e, Event::StreamsReset { .. })).count();
    assert_eq!(resets, 1, "done once");
    let Chunk::Data(third) = chunk(3, 30) else { panic!() };
    bench.hear(Chunk::Data(Data { ssn: Ssn(0), ..third }));
    let read: Vec<usize> =
        std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).map(|d| d.len()).collect();
    assert_eq!(read, [10, 10, 30]);
}

/// The peer wants our streams reset: by a request of ours that names its own; if nothing was sent on them, there is
/// nothing to do.
//= rfc6525#section-5.2.3
//= rfc6525#section-4.2
#[test]
fn the_peer_asks_for_a_reset() {
    let mut bench = bench();
    let incoming = |request, streams: &[u16]| {
        vec![ReConfigParam::IncomingReset(IncomingReset { request, streams: streams.to_vec() })]
    };
    ask(&mut bench, incoming(1, &[5]));
    assert_eq!(said(&mut bench), [response(1, Response::NOTHING_TO_DO)]);
    give(&mut bench, 5, 10);
    ask(&mut bench, incoming(2, &[5]));
    assert_eq!(said(&mut bench), [response(2, Response::IN_PROGRESS), outgoing(1, 2, 1, &[5])]);
    ask(&mut bench, incoming(3, &[5]));
    assert_eq!(said(&mut bench), [response(3, Response::NOTHING_TO_DO)], "it is under way");
    respond(&mut bench, 1, Response::PERFORMED);
    ask(&mut bench, incoming(2, &[5]));
    assert_eq!(said(&mut bench), [response(2, Response::PERFORMED)]);
    ask(&mut bench, incoming(4, &[16]));
    assert_eq!(said(&mut bench), [response(4, Response::WRONG_SSN)]);
}

/// Streams are added up to the limit of the configuration.
//= rfc6525#section-5.2.5
//= rfc6525#section-5.2.6
//= rfc6525#section-4.5
//= rfc6525#section-4.6
#[test]
fn the_peer_adds_streams() {
    let config = Config { inbound_streams: 20, ..with(RECONFIGURATION) };
    let supported = |_: &_| vec![Param::SupportedExtensions(Bytes::from_static(&[0x82]))];
    let mut bench = Bench::with(config, 1, supported);
    let add = |request, count| AddStreams { request, count };
    ask(&mut bench, vec![ReConfigParam::AddOutgoing(add(1, 4))]);
    ask(&mut bench, vec![ReConfigParam::AddOutgoing(add(2, 1))]);
    assert_eq!(said(&mut bench), [response(1, Response::PERFORMED), response(2, Response::DENIED)]);
    let added = Event::StreamsAdded { outgoing: 16, incoming: 20, outcome: Outcome::Done };
    assert_eq!(bench.events.last().expect("one").1, added);
    ask(&mut bench, vec![ReConfigParam::AddIncoming(add(3, 4))]);
    let ours = ReConfigParam::AddOutgoing(add(1, 4));
    assert_eq!(said(&mut bench), [response(3, Response::PERFORMED), ours]);
    respond(&mut bench, 1, Response::PERFORMED);
    give(&mut bench, 19, 10);
    ask(&mut bench, vec![ReConfigParam::AddIncoming(add(4, 65_530))]);
    assert_eq!(said(&mut bench), [response(4, Response::DENIED)]);
}

/// All begins anew: our data is acknowledged first, then the peer hears where each of us goes on, 2^31 further for
/// the peer and one further for us; asked again, the same.
//= rfc6525#section-5.2.4
//= rfc6525#section-4.3
//= rfc6525#section-4.4
#[test]
fn the_peer_resets_tsns() {
    let mut bench = bench();
    bench.data(1, 10);
    give(&mut bench, 0, 10);
    ask(&mut bench, vec![ReConfigParam::TsnReset(1)]);
    assert_eq!(said(&mut bench), [response(1, Response::IN_PROGRESS)]);
    give(&mut bench, 0, 20);
    assert_eq!(data(&mut bench), [(0, 0)], "what is given now waits");
    bench.sack(1, &[]);
    let next = Some((Tsn(3), Tsn(2 + (1 << 31))));
    let done = ReConfigParam::Response(Response { request: 1, result: Response::PERFORMED, next });
    assert_eq!(said(&mut bench), std::slice::from_ref(&done));
    assert_eq!(data(&mut bench), [(0, 0)], "and begins with SSN 0");
    ask(&mut bench, vec![ReConfigParam::TsnReset(1)]);
    assert_eq!(said(&mut bench), [done]);
    let Chunk::Data(data) = chunk(1, 30) else { panic!() };
    bench.hear(Chunk::Data(Data { tsn: Tsn(2 + (1 << 31)), ssn: Ssn(0), ..data }));
    let read: Vec<usize> =
        std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).map(|d| d.len()).collect();
    assert_eq!(read, [10, 30]);
}

/// A peer may name a stream often and in any order. It is reset once, and the others as well.
//= rfc6525#section-5.2.3
#[test]
fn a_peer_names_streams_often() {
    let mut bench = bench();
    for stream in [3, 1, 2] {
        give(&mut bench, stream, 10);
    }
    let streams = [3, 1, 3, 1].repeat(300);
    ask(&mut bench, vec![ReConfigParam::IncomingReset(IncomingReset { request: 1, streams })]);
    assert_eq!(said(&mut bench), [response(1, Response::IN_PROGRESS), outgoing(1, 1, 3, &[1, 3])]);
    respond(&mut bench, 1, Response::PERFORMED);
    bench.sack(3, &[]);
    data(&mut bench);
    for stream in [3, 1, 2] {
        give(&mut bench, stream, 10);
    }
    assert_eq!(data(&mut bench), [(3, 0), (1, 0), (2, 1)]);
}

/// Nothing of ours is under way: one answer, at once, and no SACK beside it, which would speak of TSNs that a peer
/// without the answer does not know. usrsctp 0.9.5 breaks on either.
//= rfc6525#section-5.2.4
#[test]
fn the_peer_resets_tsns_and_nothing_is_under_way() {
    let mut bench = bench();
    bench.data(1, 10);
    bench.pass(ms(300));
    bench.take(|c| matches!(c, Chunk::Sack(_)).then_some(()));
    ask(&mut bench, vec![ReConfigParam::TsnReset(1)]);
    bench.pass(ms(300));
    let next = Some((Tsn(2), Tsn(2 + (1 << 31))));
    let done = ReConfigParam::Response(Response { request: 1, result: Response::PERFORMED, next });
    assert_eq!(said(&mut bench), [done]);
    assert_eq!(bench.take(|c| matches!(c, Chunk::Sack(_)).then_some(())), []);
    assert_eq!(bench.events.last().expect("one").1, Event::TsnsReset(Outcome::Done));
}

/// New data of a peer whose answer was lost is beyond a gap, where nothing is taken now, and comes again after the
/// answer.
#[test]
fn new_data_before_the_answer() {
    let config = with(RECONFIGURATION);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    (0..3).for_each(|n| world.give(1, peer, 10 + n));
    world.run(secs(1.0));
    world.ends[0].reset_tsns(world.now, id).expect("agreed");
    world.lose(1, |c| {
        let done = |param: &_| matches!(param, ReConfigParam::Response(r) if r.result == Response::PERFORMED);
        matches!(c, Chunk::ReConfig(chunk) if chunk.params.iter().any(done))
    });
    world.drain(0);
    world.run(secs(1.06));
    (3..9).for_each(|n| world.give(1, peer, 10 + n));
    world.run(secs(10.0));
    assert_eq!(world.take(0), (0..9).map(|n| 10 + n).collect::<Vec<_>>());
    assert!(world.happened(0, &Event::TsnsReset(Outcome::Done)));
}

/// Both ends ask to begin anew at the same time. Each would begin where the other says, and is refused instead: nothing
/// changes, and what was given meanwhile arrives.
//= rfc6525#section-5.2.4
//= rfc6525#section-4.4
#[test]
fn both_ends_reset_tsns_at_once() {
    let config = with(RECONFIGURATION);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    for (side, of) in [(0, id), (1, peer)] {
        world.ends[side].reset_tsns(world.now, of).expect("agreed");
        world.drain(side);
    }
    for (side, of) in [(0, id), (1, peer)] {
        world.give(side, of, 10 + side);
    }
    world.run(secs(5.0));
    assert_eq!((world.take(0), world.take(1)), (vec![11], vec![10]));
    for (side, of) in [(0, id), (1, peer)] {
        assert!(world.happened(side, &Event::TsnsReset(Outcome::Failed)), "side {side}");
        world.ends[side].reset_tsns(world.now, of).expect("agreed");
        world.drain(side);
        world.run(world.now + ms(2000));
        assert!(world.happened(side, &Event::TsnsReset(Outcome::Done)), "one after the other they are done");
    }
}

/// We begin anew: not before all is acknowledged, and then where the peer says.
//= rfc6525#section-5.1.4
#[test]
fn resetting_tsns() {
    let mut bench = bench();
    give(&mut bench, 0, 10);
    bench.end.reset_tsns(bench.now, bench.id).expect("agreed");
    give(&mut bench, 0, 20);
    assert_eq!(said(&mut bench), []);
    bench.sack(1, &[]);
    assert_eq!(said(&mut bench), [ReConfigParam::TsnReset(1)]);
    bench.loads();
    let next = Some((Tsn(1), Tsn(7000)));
    ask(
        &mut bench,
        vec![ReConfigParam::Response(Response { request: 1, result: Response::PERFORMED, next })],
    );
    assert_eq!(bench.loads(), [(0, 0, vec![7000])]);
    assert_eq!(bench.events.last().expect("one").1, Event::TsnsReset(Outcome::Done));
}

/// While we wait for the answer, only the next TSN is taken: what is beyond a gap may have begun anew already. So it is
/// again once there is an answer, also one that refuses.
//= rfc6525#section-5.1.4
#[test]
fn beyond_a_gap_while_tsns_may_begin_anew() {
    let mut bench = bench();
    bench.end.reset_tsns(bench.now, bench.id).expect("agreed");
    bench.drain();
    let anew = |tsn| match chunk(tsn, 10) {
        Chunk::Data(data) => Chunk::Data(Data { unordered: true, ..data }),
        _ => panic!(),
    };
    let read = |bench: &mut Bench| bench.end.read(bench.now, bench.id).map(|delivery| delivery.len());
    bench.hear(anew(2));
    assert_eq!(read(&mut bench), None);
    bench.data(1, 20);
    assert_eq!(read(&mut bench), Some(20));
    respond(&mut bench, 1, Response::DENIED);
    bench.hear(anew(3));
    assert_eq!(read(&mut bench), Some(10));
}

/// Streams that do not exist, numbers out of turn, combinations that make no sense, floods: refused, answered at most
/// four times a packet and 64 times at once, and nothing is kept.
//= rfc6525#section-3.1
#[test]
fn hostile_requests() {
    let mut bench = bench();
    ask(&mut bench, vec![outgoing(1, 0, 0, &[16])]);
    ask(&mut bench, vec![outgoing(3, 0, 0, &[0])]);
    ask(&mut bench, vec![ReConfigParam::TsnReset(1)]);
    let [wrong, number, again] = &said(&mut bench)[..] else { panic!() };
    assert_eq!(*wrong, response(1, Response::WRONG_SSN));
    assert_eq!(*number, response(3, Response::BAD_NUMBER));
    assert_eq!(again, wrong, "a number means one request");
    ask(&mut bench, vec![ReConfigParam::TsnReset(2), ReConfigParam::TsnReset(3)]);
    let errors = bench.take(|c| if let Chunk::Error(error) = c { Some(error.causes.clone()) } else { None });
    assert!(matches!(errors[0][..], [Cause::ProtocolViolation(_)]));
    let request = || Chunk::ReConfig(ReConfig { params: vec![ReConfigParam::TsnReset(9)] });
    bench.hear_packet(0, bench.tag, (0..300).map(|_| request()));
    assert_eq!(said(&mut bench).len(), 4);
    (0..300).for_each(|_| bench.hear_unpolled(request()));
    bench.drain();
    assert_eq!(said(&mut bench).len(), 64);
    assert!(bench.events.iter().all(|(_, e)| *e == Event::Up));
}

/// Messages held back when the association ends come back; one that shuts down sends them first.
#[test]
fn what_is_held_is_not_lost() {
    for graceful in [false, true] {
        let mut bench = bench();
        bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[]).expect("agreed");
        bench.drain();
        give(&mut bench, 3, 10);
        if graceful {
            bench.end.shutdown(bench.now, bench.id);
            bench.drain();
            respond(&mut bench, 1, Response::PERFORMED);
            assert_eq!(data(&mut bench), [(3, 0)]);
            bench.sack(1, &[]);
            assert_eq!(bench.take(|c| matches!(c, Chunk::Shutdown(_)).then_some(())).len(), 1);
        } else {
            bench.end.abort(bench.now, bench.id, Bytes::new());
            bench.drain();
            assert_eq!(bench.failed().len(), 1);
        }
    }
}

/// Two ends that reset everything all the time, with losses: each message arrives once, in order on its stream.
#[test]
fn two_ends_with_losses() {
    let config = with(RECONFIGURATION);
    for seed in 0..200 {
        let (mut world, id) = World::joined([&config, &config], 1);
        world.run(secs(0.5));
        world.weather[0].loss = 150;
        world.chance = rand_core::SeedableRng::seed_from_u64(seed);
        let peer = world.up(1).expect("up");
        for n in 0..150u32 {
            let (side, from) = if n % 2 == 0 { (0, id) } else { (1, peer) };
            let message = Message {
                stream: (n % 4) as u16,
                ppid: n,
                payload: vec![0; 700].into(),
                ..Message::default()
            };
            world.ends[side].send(world.now, from, message).expect("room");
            let _ = match n % 30 {
                7 => world.ends[side].reset_streams(world.now, from, Direction::Outgoing, &[1]),
                14 => world.ends[side].reset_streams(world.now, from, Direction::Incoming, &[]),
                21 => world.ends[side].reset_tsns(world.now, from),
                28 => world.ends[side].add_streams(world.now, from, Direction::Outgoing, 1),
                _ => Ok(()),
            };
            world.drain(side);
            world.run(world.now + ms(200));
        }
        world.weather[0].loss = 0;
        world.run(secs(300.0));
        for (side, of) in [(0, id), (1, peer)] {
            let read: Vec<u32> =
                std::iter::from_fn(|| world.ends[side].read(world.now, of)).map(|d| d.ppid).collect();
            for stream in 0..4 {
                let own: Vec<u32> = read.iter().copied().filter(|n| n % 4 == stream).collect();
                assert!(own.is_sorted_by(|a, b| a < b), "seed {seed}: {own:?}");
            }
            assert_eq!(read.len(), 75, "seed {seed}, side {side}: {:?}", world.events[side]);
        }
    }
}

/// The peer ends the association while a request is under way, and does not grant it any more: its answer counts, and
/// the message that waited for it leaves before the end.
//= rfc6525#section-5.2.7
//= rfc9260#section-9.2
#[test]
fn a_request_is_answered_after_shutdown() {
    let mut bench = bench();
    bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[3]).expect("agreed");
    bench.drain();
    give(&mut bench, 3, 10);
    bench.hear(Chunk::Shutdown(Shutdown { cumulative: Tsn(0) }));
    assert_eq!(data(&mut bench), []);
    respond(&mut bench, 1, Response::DENIED);
    assert_eq!(data(&mut bench), [(3, 0)]);
    ask(&mut bench, vec![ReConfigParam::TsnReset(1)]);
    assert_eq!(said(&mut bench).last(), Some(&response(1, Response::DENIED)), "it is too late");
    bench.sack(1, &[]);
    assert_eq!(bench.take(|c| matches!(c, Chunk::ShutdownAck(_)).then_some(())).len(), 1);
}

/// An answer goes to where the request came from.
//= rfc9260#section-6.4
#[test]
fn a_request_is_answered_where_it_came_from() {
    let supported = |_: &_| vec![Param::SupportedExtensions(Bytes::from_static(&[0x82]))];
    let mut bench = Bench::with(with(RECONFIGURATION), 2, supported);
    bench.answer_heartbeats(|_| true);
    bench.sent.clear();
    let request = ReConfigParam::AddOutgoing(AddStreams { request: 1, count: 1 });
    bench.hear_on(1, Chunk::ReConfig(ReConfig { params: vec![request] }));
    let answers = |chunk: &Chunk| matches!(chunk, Chunk::ReConfig(_));
    let answer = bench.sent.iter().find(|(_, packet, _)| packet.chunks.iter().any(answers));
    assert_eq!(answer.expect("an answer").1.to, address(1, 1));
}

/// A request must fit a packet: of 1,468 bytes, 20 are its header, and each stream takes two. The user is told, and the
/// peer denied.
//= rfc6525#section-5.1.2
//= rfc9260#section-6.10
#[test]
fn requests_that_fit_no_packet() {
    let mut bench = bench();
    bench.end.add_streams(bench.now, bench.id, Direction::Outgoing, 2000).expect("agreed");
    bench.drain();
    respond(&mut bench, 1, Response::PERFORMED);
    let streams: Vec<u16> = (0..725).collect();
    let mut reset =
        |streams: &[u16]| bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, streams);
    assert_eq!(reset(&streams), Err(ChangeError::Invalid));
    assert_eq!(reset(&streams[1..].repeat(2)), Ok(()), "a stream counts once");
    give(&mut bench, 0, 10);
    ask(&mut bench, vec![ReConfigParam::IncomingReset(IncomingReset { request: 1, streams })]);
    assert_eq!(said(&mut bench).last(), Some(&response(1, Response::DENIED)));
}

/// Requests wait for the messages of their own streams, and only for these, however these stand between others.
//= rfc6525#section-5.1.2
#[test]
fn each_request_waits_for_its_own_streams() {
    let mut bench = bench();
    bench.sack_window(0, 0);
    for stream in [5, 1, 3, 1, 7] {
        give(&mut bench, stream, 1400);
    }
    // The first message is a window probe; it was on stream 5.
    bench.pass(ms(1000));
    assert_eq!(data(&mut bench), [(5, 0)]);
    for streams in [&[5, 9][..], &[1, 3], &[]] {
        bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, streams).expect("agreed");
    }
    bench.drain();
    assert_eq!(said(&mut bench), [outgoing(1, 0, 1, &[5, 9])]);
    respond(&mut bench, 1, Response::PERFORMED);
    for (tsn, stream, ssn, asks) in [(1, 1, 0, false), (2, 3, 0, false), (3, 1, 1, true)] {
        bench.sack_window(tsn, 1416);
        assert_eq!(data(&mut bench), [(stream, ssn)]);
        assert_eq!(said(&mut bench), if asks { vec![outgoing(2, 0, 4, &[1, 3])] } else { vec![] });
    }
    respond(&mut bench, 2, Response::PERFORMED);
    assert_eq!(said(&mut bench), []);
    bench.sack_window(4, 1416);
    assert_eq!((data(&mut bench), said(&mut bench)), (vec![(7, 0)], vec![outgoing(3, 0, 5, &[])]));
}
