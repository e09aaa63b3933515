//! Interleaved messages: RFC 8260.

use anabranch_proto::wire::chunk::{ForwardTsn, FragmentPosition, IData, IForwardTsn, SkippedMessage};
use anabranch_proto::wire::{Cause, Chunk, Param};
use anabranch_proto::{
    Config, Direction, Event, Extensions, LostReason, Message, Mid, Outcome, Reliability, Tsn,
};
use bytes::Bytes;

use crate::support::bench::{Bench, at_ms, chunk, ms};
use crate::support::expected::Expected;
use crate::support::{World, secs};
use crate::with;

const INTERLEAVING: Extensions = Extensions {
    partial_reliability: true,
    reconfiguration: true,
    authentication: false,
    addresses: false,
    interleaving: true,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

fn bench(config: Config) -> Bench {
    let types = Bytes::from_static(&[0x40, 0xc0, 0xc2, 0x82]);
    Bench::with(config, 1, |_| vec![Param::ForwardTsnSupported, Param::SupportedExtensions(types)])
}

fn give(bench: &mut Bench, stream: u16, size: usize, reliability: Reliability) {
    let message =
        Message { stream, ppid: 9, payload: vec![0; size].into(), reliability, ..Message::default() };
    bench.give(message).expect("there is room");
}

/// TSN, stream, message, place (the first by its PPID) and whether it is the last, of what was sent.
fn sent(bench: &mut Bench) -> Vec<(u32, u16, u32, FragmentPosition, bool)> {
    let of = |c: &Chunk| match c {
        Chunk::IData(d) => Some((d.tsn.0, d.stream, d.mid.0, d.place, d.end)),
        Chunk::Data(_) => panic!("DATA"),
        _ => None,
    };
    bench.take(of)
}

const FIRST: FragmentPosition = FragmentPosition::First { ppid: 9 };

fn later(fsn: u32) -> FragmentPosition {
    FragmentPosition::Later { fsn }
}

/// A piece of a message of the peer.
fn piece(tsn: u32, stream: u16, mid: u32, place: FragmentPosition, end: bool) -> IData {
    let payload = Bytes::from(vec![tsn as u8; 10]);
    IData { tsn: Tsn(tsn), stream, mid: Mid(mid), place, end, unordered: false, immediate: false, payload }
}

fn hear(bench: &mut Bench, piece: IData) {
    bench.hear(Chunk::IData(piece));
}

/// The first bytes of the pieces of each message read.
fn read(bench: &mut Bench) -> Vec<Vec<u8>> {
    let read = std::iter::from_fn(|| bench.end.read(bench.now, bench.id));
    read.map(|delivery| delivery.pieces.iter().map(|piece| piece[0]).collect()).collect()
}

/// The header of I-DATA has 20 bytes, so a packet of 1,500 holds a message of 1,448.
//= rfc8260#section-2.1
#[test]
fn the_largest_message_that_is_not_cut() {
    let mut bench = bench(with(INTERLEAVING));
    assert_eq!(bench.end.status(bench.id).expect("it is up").fragmentation_point, 1448);
    for (size, ends) in [(1448, vec![true]), (1449, vec![false, true])] {
        give(&mut bench, 0, size, Reliability::Full);
        bench.drain();
        assert_eq!(sent(&mut bench).iter().map(|sent| sent.4).collect::<Vec<_>>(), ends);
    }
}

/// Three streams take turns chunk by chunk, as in figure 2; chunks carry 20 bytes of header and no more than 1,448 of
/// data; retransmissions keep their numbers.
//= rfc8260#section-2.1
//= rfc8260#section-2.2.2
//= rfc8260#section-3.2
#[test]
fn streams_take_turns() {
    let mut bench = bench(with(INTERLEAVING));
    bench.sack_window(0, 1 << 20);
    for (stream, size) in [(0, 2 * 1448), (1, 10), (1, 20), (2, 1448 + 1)] {
        give(&mut bench, stream, size, Reliability::Full);
    }
    bench.drain();
    let all = [
        (1, 0, 0, FIRST, false),
        (2, 1, 0, FIRST, true),
        (3, 2, 0, FIRST, false),
        (4, 0, 0, later(1), true),
        (5, 1, 1, FIRST, true),
        (6, 2, 0, later(1), true),
    ];
    let early = sent(&mut bench);
    bench.sack(3, &[]);
    let late = sent(&mut bench);
    assert_eq!([early.clone(), late].concat(), all);
    bench.pass(ms(1000));
    assert_eq!(sent(&mut bench)[0], all[3]);
    assert_eq!(bench.sent.iter().filter(|(_, p, _)| p.size() > 1480).count(), 0);
}

/// Messages are joined by their numbers whatever the TSNs; ordered ones wait for their turn, unordered ones do not.
//= rfc8260#section-2.2.3
#[test]
fn joining() {
    let mut bench = bench(with(INTERLEAVING));
    hear(&mut bench, piece(5, 1, 0, later(2), true));
    hear(&mut bench, piece(1, 2, 1, FIRST, true));
    hear(&mut bench, piece(2, 1, 0, FIRST, false));
    hear(&mut bench, IData { unordered: true, ..piece(3, 1, 7, FIRST, true) });
    assert_eq!(read(&mut bench), [[3]]);
    hear(&mut bench, piece(4, 1, 0, later(1), false));
    assert_eq!(read(&mut bench), [[2, 4, 5]]);
    hear(&mut bench, piece(6, 2, 0, FIRST, true));
    assert_eq!(read(&mut bench), [[6], [1]]);
}

/// DATA, or FORWARD TSN, in an association with I-DATA ends it; so does I-DATA in one without.
//= rfc8260#section-2.2.3
//= rfc8260#section-2.3.1
#[test]
fn the_wrong_kind() {
    let lost = |mut bench: Bench, chunk: Chunk| {
        bench.hear(chunk);
        assert_eq!(bench.events.last().expect("one").1, Event::Lost(LostReason::ProtocolViolation));
        let aborts =
            bench.take(|c| if let Chunk::Abort(abort) = c { Some(abort.causes.clone()) } else { None });
        assert!(matches!(aborts[0][..], [Cause::ProtocolViolation(_)]));
    };
    lost(bench(with(INTERLEAVING)), chunk(1, 10));
    let forward = ForwardTsn { cumulative: Tsn(1), skipped: vec![] };
    lost(bench(with(INTERLEAVING)), Chunk::ForwardTsn(forward));
    lost(Bench::new(with(INTERLEAVING), 1), Chunk::IData(piece(1, 0, 0, FIRST, true)));
}

/// What is given up is said by I-FORWARD-TSN, with the messages of each order.
//= rfc8260#section-2.3.1
#[test]
fn giving_up() {
    let mut bench = bench(with(INTERLEAVING));
    give(&mut bench, 3, 10, Reliability::Retransmissions(0));
    let unordered = Message { unordered: true, stream: 3, payload: vec![0; 10].into(), ..Message::default() };
    bench.give(Message { reliability: Reliability::Retransmissions(0), ..unordered }).expect("room");
    bench.drain();
    bench.until(at_ms(1000));
    let of = |c: &Chunk| if let Chunk::IForwardTsn(forward) = c { Some(forward.clone()) } else { None };
    let skipped = |unordered| SkippedMessage { stream: 3, unordered, mid: Mid(0) };
    let expected = IForwardTsn { cumulative: Tsn(2), skipped: vec![skipped(false), skipped(true)] };
    assert_eq!(bench.take(of), [expected]);
}

/// What the peer gives up is dropped, in either order; what is complete behind it is delivered, and a message that was
/// delivered in part ends.
//= rfc8260#section-2.3.1
#[test]
fn the_peer_gives_up() {
    let mut bench = bench(Config { receive_buffer: 1500, ..with(INTERLEAVING) });
    hear(&mut bench, piece(2, 0, 0, later(1), false));
    hear(&mut bench, piece(3, 0, 1, FIRST, true));
    hear(&mut bench, IData { unordered: true, ..piece(4, 0, 0, FIRST, false) });
    let skipped = |unordered| SkippedMessage { stream: 0, unordered, mid: Mid(0) };
    bench.hear(Chunk::IForwardTsn(IForwardTsn { cumulative: Tsn(2), skipped: vec![skipped(false)] }));
    assert_eq!(read(&mut bench), [[4], [3]], "the first as a part, the buffer is small");
    bench.hear(Chunk::IForwardTsn(IForwardTsn { cumulative: Tsn(5), skipped: vec![skipped(true)] }));
    let end = bench.end.read(bench.now, bench.id).expect("the end of the part");
    assert!(end.abandoned && end.unordered && end.is_empty());
    let (_, last) = bench.sacks().pop().expect("a SACK");
    assert_eq!((last.cumulative, last.a_rwnd), (Tsn(5), 1500), "nothing is held");
}

/// Both numbers begin anew with a stream.
//= rfc8260#section-2.3.2
#[test]
fn a_reset() {
    let mut bench = bench(with(INTERLEAVING));
    give(&mut bench, 3, 10, Reliability::Full);
    bench.end.reset_streams(bench.now, bench.id, Direction::Outgoing, &[3]).expect("agreed");
    bench.drain();
    use anabranch_proto::wire::chunk::{ReConfig, ReConfigParam, Response};
    let response = Response { request: 1, result: Response::PERFORMED, next: None };
    bench.hear(Chunk::ReConfig(ReConfig { params: vec![ReConfigParam::Response(response)] }));
    give(&mut bench, 3, 10, Reliability::Full);
    bench.drain();
    assert_eq!(sent(&mut bench), [(1, 3, 0, FIRST, true), (2, 3, 0, FIRST, true)]);
    let reset =
        Event::StreamsReset { direction: Direction::Outgoing, streams: vec![3], outcome: Outcome::Done };
    assert!(bench.events.iter().any(|(_, event)| *event == reset));
}

/// Fragments that make no sense together: a second first, one behind the last, a beginning without its mark, a number
/// far off. Nothing is delivered twice, and what is thrown away is not held.
#[test]
fn hostile_fragments() {
    let mut bench = bench(with(INTERLEAVING));
    hear(&mut bench, piece(1, 0, 0, later(0), false));
    hear(&mut bench, piece(2, 0, 0, later(1), true));
    hear(&mut bench, piece(3, 0, 0, later(2), true));
    hear(&mut bench, piece(4, 0, 0, later(u32::MAX), false));
    assert_eq!(read(&mut bench), Vec::<Vec<u8>>::new());
    hear(&mut bench, piece(5, 0, 0, FIRST, false));
    hear(&mut bench, piece(6, 0, 0, FIRST, true));
    assert_eq!(read(&mut bench), [[5, 2]]);
    hear(&mut bench, piece(7, 0, 0, FIRST, true));
    hear(&mut bench, piece(8, 0, 0xffff_ffff, FIRST, true));
    assert_eq!(read(&mut bench), Vec::<Vec<u8>>::new());
    bench.pass(ms(200));
    assert_eq!(bench.sacks().pop().expect("a SACK").1.a_rwnd, 1 << 20);
}

/// Between two ends with losses and small buffers, everything arrives once, in order on its stream.
#[test]
fn two_ends_with_losses() {
    for seed in 0..200u64 {
        let receive_buffer = [5000, 100_000][seed as usize % 2];
        let config = Config { receive_buffer, ..with(INTERLEAVING) }
            .with(|parameters| parameters.send_buffer = Some(1 << 20));
        let (mut world, id) = World::joined([&config, &config], 1);
        world.wire = true;
        world.run(secs(0.5));
        world.weather[0].loss = 100;
        world.chance = rand_core::SeedableRng::seed_from_u64(seed);
        let mut expected = Expected::default();
        for n in 0..100u32 {
            let size = 1 + (n as usize * 7919) % 9000;
            let (stream, unordered) = ((n % 5) as u16, n % 3 == 0);
            let payload = (0..size).map(|at| (at as u32 ^ n) as u8).collect();
            let message = Message { stream, ppid: n, unordered, payload, ..Message::default() };
            expected.sent(&message);
            world.ends[0].send(world.now, id, message).expect("room");
            world.drain(0);
        }
        let peer = world.up(1).expect("up");
        while !expected.is_empty() {
            assert!(world.now < secs(3600.0), "seed {seed}");
            world.run(world.now + ms(500));
            while let Some(delivery) = world.ends[1].read(world.now, peer) {
                expected.arrived(delivery);
            }
            world.drain(1);
        }
        assert!(!expected.in_part());
    }
}
