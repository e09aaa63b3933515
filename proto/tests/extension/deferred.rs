//! Resets of streams that wait (RFC 6525): the peer's for data sent before it, ours for a peer that is busy.

use anabranch_proto::wire::chunk::{Data, FragmentPosition, IData, ReConfigParam, Response};
use anabranch_proto::wire::{Chunk, Param};
use anabranch_proto::{Config, Direction, Extensions, Mid, Outcome, Ssn, Tsn};
use bytes::Bytes;

use crate::streams::{RECONFIGURATION, ask, bench, outgoing, reset, respond, response, said};
use crate::support::World;
use crate::support::bench::{Bench, at_ms, chunk};
use crate::support::secs;
use crate::with;

/// A whole message of the peer, as DATA. Its payload is its TSN.
fn data(tsn: u32, stream: u16, ssn: u16) -> Chunk {
    let (payload, ppid) = (Bytes::from(vec![tsn as u8]), 0);
    let [begin, end, unordered, immediate] = [true, true, false, false];
    let (tsn, ssn) = (Tsn(tsn), Ssn(ssn));
    Chunk::Data(Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload })
}

/// The same as I-DATA.
fn idata(tsn: u32, stream: u16, mid: u16) -> Chunk {
    let payload = Bytes::from(vec![tsn as u8]);
    let (place, end, unordered, immediate) = (FragmentPosition::First { ppid: 0 }, true, false, false);
    let (tsn, mid) = (Tsn(tsn), Mid(mid.into()));
    Chunk::IData(IData { tsn, stream, mid, place, end, unordered, immediate, payload })
}

/// The TSNs of the messages that can be read.
fn read(bench: &mut Bench) -> Vec<u8> {
    let tsn =
        |bench: &mut Bench| bench.end.read(bench.now, bench.id).map(|delivery| delivery.pieces.concat()[0]);
    std::iter::from_fn(|| tsn(bench)).collect()
}

fn cumulative(bench: &mut Bench) -> Option<u32> {
    bench.sacks().last().map(|(_, sack)| sack.cumulative.0)
}

/// TSNs 1 and 2 were sent before the reset of stream 3, and 3 to 5 after it. Whatever their order of arrival is, no
/// message of stream 3 from after the reset is taken for one from before it. Stream 4 does not wait.
//= rfc6525#section-5.2.2
#[test]
fn data_behind_a_reset_waits_for_it() {
    let interleaved = Extensions { interleaving: true, ..RECONFIGURATION };
    let types = Bytes::from_static(&[0x40, 0x82]);
    let interleaving =
        || Bench::with(with(interleaved), 1, |_| vec![Param::SupportedExtensions(types.clone())]);
    type Kind = fn(u32, u16, u16) -> Chunk;
    for (mut bench, chunk) in [(bench(), data as Kind), (interleaving(), idata as Kind)] {
        ask(&mut bench, vec![outgoing(1, 0, 2, &[3])]);
        assert_eq!(said(&mut bench), [response(1, Response::IN_PROGRESS)]);
        // In one packet, so that nothing is polled between them.
        bench.hear_packet(0, bench.tag, [chunk(5, 3, 1), chunk(3, 3, 0), chunk(4, 4, 0)]);
        assert_eq!(read(&mut bench), [4]);
        bench.hear_packet(0, bench.tag, [chunk(2, 3, 1), chunk(1, 3, 0)]);
        assert_eq!(said(&mut bench), [response(1, Response::PERFORMED)]);
        assert_eq!(read(&mut bench), [1, 2, 3, 5]);
        assert_eq!(cumulative(&mut bench), Some(5));
        bench.hear(chunk(6, 3, 2));
        assert_eq!(read(&mut bench), [6]);
    }
}

/// The last TSN before the reset and the first behind it come in one packet.
//= rfc6525#section-5.2.2
#[test]
fn data_behind_a_reset_in_the_packet_that_lets_it_happen() {
    let mut bench = bench();
    ask(&mut bench, vec![outgoing(1, 0, 1, &[])]);
    bench.hear_packet(0, bench.tag, [data(1, 3, 0), data(2, 3, 0), data(3, 3, 1)]);
    assert_eq!(read(&mut bench), [1, 2, 3]);
}

/// Data that waits occupies the buffer: it is bounded as any other data is, and the chunk that the reset waits for is
/// still accepted.
#[test]
fn data_behind_a_reset_occupies_the_buffer() {
    let config = Config { receive_buffer: 3000, ..with(RECONFIGURATION) };
    let types = Bytes::from_static(&[0x82]);
    let mut bench = Bench::with(config, 1, |_| vec![Param::SupportedExtensions(types)]);
    ask(&mut bench, vec![outgoing(1, 0, 1, &[0])]);
    (2..100).for_each(|tsn| bench.hear(chunk(tsn, 984)));
    assert_eq!(bench.end.statistics(bench.now, bench.id).no_room, 98 - 3);
    assert_eq!(bench.sacks().last().expect("a SACK").1.a_rwnd, 0);
    bench.hear(chunk(1, 984));
    let lengths: Vec<usize> =
        std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).map(|delivery| delivery.len()).collect();
    assert_eq!(lengths.len(), 1, "the others have SSNs from 1 on, and wait for the first");
    assert_eq!(said(&mut bench).last(), Some(&response(1, Response::PERFORMED)));
}

/// A peer that answers "in progress" is asked again after 1, 2, 4 s and so on, each time counted from its answer; that
/// is no error.
//= rfc6525#section-5.1.1
//= rfc6525#section-5.2.7
#[test]
fn waiting_for_a_busy_peer() {
    let mut bench = bench();
    bench.end.reset_streams(bench.now, bench.id, Direction::Incoming, &[]).expect("agreed");
    bench.drain();
    let mut asked = Vec::new();
    for tenths in 0..200 {
        bench.until(at_ms(100 * tenths));
        if !said(&mut bench).is_empty() {
            asked.push(tenths);
        }
        // The answer takes half a second.
        if asked.last() == tenths.checked_sub(5).as_ref() {
            respond(&mut bench, 1, Response::IN_PROGRESS);
        }
    }
    assert_eq!(asked, [0, 15, 40, 85, 170]);
    assert_eq!((bench.view(0).errors, bench.view(0).rto.as_secs()), (0, 1));
}

/// The answer to a reset of TSNs is lost, and behind it come new data and a reset of its stream. That reset waits for
/// the data, also when the answer has come.
//= rfc6525#section-5.2.2
//= rfc6525#section-5.2.4
#[test]
fn a_reset_that_overtakes_the_answer() {
    let config = with(RECONFIGURATION);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    world.ends[0].reset_tsns(world.now, id).expect("agreed");
    world.lose(1, |c| {
        let done = |param: &_| matches!(param, ReConfigParam::Response(r) if r.result == Response::PERFORMED);
        matches!(c, Chunk::ReConfig(chunk) if chunk.params.iter().any(done))
    });
    world.drain(0);
    world.run(secs(0.56));
    world.give(1, peer, 10);
    world.give(1, peer, 11);
    world.ends[1].reset_streams(world.now, peer, Direction::Outgoing, &[0]).expect("agreed");
    world.give(1, peer, 12);
    world.run(secs(10.0));
    assert_eq!(world.take(0), [10, 11, 12]);
    let done = |direction| reset(direction, &[0], Outcome::Done);
    assert!(world.happened(0, &done(Direction::Incoming)) && world.happened(1, &done(Direction::Outgoing)));
}
