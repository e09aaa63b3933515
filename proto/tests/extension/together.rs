//! Extensions that meet each other, restarts of TSNs, and addresses that go. `tests/combinations.rs` does so at random.

use anabranch_proto::wire::chunk::{Data, ForwardTsn, ReConfigParam, Response};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{
    Config, Direction, Event, Extensions, Incoming, LocalAddress, Message, Outcome, Pairs, PathState,
    Reliability,
};

use crate::streams::{RECONFIGURATION, reset};
use crate::support::bench::ms;
use crate::support::{Weather, World, address, at, secs};
use crate::with;

const UNRELIABLE: Extensions = Extensions { partial_reliability: true, ..RECONFIGURATION };

fn answers_a_restart(chunk: &Chunk) -> bool {
    let anew = |param: &_| matches!(param, ReConfigParam::Response(Response { next: Some(_), .. }));
    matches!(chunk, Chunk::ReConfig(chunk) if chunk.params.iter().any(anew))
}

/// The packets of a side with such a chunk.
fn packets(world: &World, side: usize, of: impl Fn(&Chunk) -> bool) -> Vec<Packet> {
    let sent = world.log.iter().filter(|left| left.side == side && left.packet.chunks.iter().any(&of));
    sent.map(|left| left.packet.clone()).collect()
}

/// A message waits for the answer to a reset of its stream, and its lifetime ends meanwhile. It is given up when the
/// answer comes.
//= rfc3758#section-4.1
//= rfc6525#section-5.1.2
#[test]
fn a_lifetime_that_ends_while_a_reset_waits() {
    let config = with(UNRELIABLE);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    world.give(0, id, 10);
    world.run(secs(1.0));
    world.weather[0].up = false;
    world.ends[0].reset_streams(world.now, id, Direction::Outgoing, &[0]).expect("agreed");
    let limits = Reliability::Lifetime(100);
    let message = Message { payload: vec![0; 20].into(), reliability: limits, ..Message::default() };
    world.ends[0].send(world.now, id, message).expect("room");
    world.drain(0);
    world.run(secs(1.5));
    world.weather[0].up = true;
    world.run(secs(10.0));
    let failed = |event: &Event| matches!(event, Event::SendFailed { sent: false, .. });
    assert_eq!(world.events[0].iter().filter(|(_, _, event)| failed(event)).count(), 1);
    assert_eq!(world.take(1), [10]);
}

/// Both ends ask the other to reset a stream at the same time. Each would wait for the other; they are refused instead,
/// and what was given meanwhile arrives.
//= rfc6525#section-5.2.3
#[test]
fn both_ends_ask_for_a_reset_at_once() {
    let config = with(RECONFIGURATION);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let ends = [id, world.up(1).expect("up")];
    (0..2).for_each(|side| world.give(side, ends[side], 10));
    world.run(secs(1.0));
    for (side, of) in ends.into_iter().enumerate() {
        world.ends[side].reset_streams(world.now, of, Direction::Incoming, &[0]).expect("agreed");
        world.drain(side);
    }
    (0..2).for_each(|side| world.give(side, ends[side], 20));
    world.run(secs(60.0));
    for side in 0..2 {
        assert_eq!(world.take(side), [10, 20]);
        assert!(world.happened(side, &reset(Direction::Incoming, &[0], Outcome::Failed)), "side {side}");
    }
}

/// A request for more streams is lost, and the peer adds some of its own accord. That is no answer: the request is
/// repeated, and later ones have the numbers that the peer expects.
//= rfc6525#section-5.2.5
//= rfc6525#section-5.1.1
#[test]
fn streams_that_nobody_asked_for() {
    let config = with(RECONFIGURATION);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    world.lose(1, |chunk| matches!(chunk, Chunk::ReConfig(_)));
    world.ends[0].add_streams(world.now, id, Direction::Incoming, 2).expect("agreed");
    world.drain(0);
    world.ends[1].add_streams(world.now, peer, Direction::Outgoing, 3).expect("agreed");
    world.drain(1);
    world.run(secs(10.0));
    assert_eq!(world.ends[0].status(id).expect("it lives").inbound_streams, 16 + 5);
    world.ends[0].add_streams(world.now, id, Direction::Outgoing, 1).expect("agreed");
    world.drain(0);
    world.run(secs(20.0));
    assert_eq!(world.ends[1].status(peer).expect("it lives").inbound_streams, 16 + 1);
}

/// A SACK and a FORWARD TSN from before a reset of all TSNs come late. They say nothing any more.
//= rfc6525#section-5.2.4
#[test]
fn late_chunks_after_a_reset_of_tsns() {
    let config = with(UNRELIABLE);
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    for _ in 0..3 {
        world.give(0, id, 10);
        world.give(1, peer, 10);
        world.run(world.now + ms(1000));
    }
    let old = packets(&world, 1, |chunk| matches!(chunk, Chunk::Sack(_))).remove(0);
    let data = packets(&world, 1, |chunk| matches!(chunk, Chunk::Data(_))).remove(0);
    world.ends[0].reset_tsns(world.now, id).expect("agreed");
    world.drain(0);
    world.run(world.now + ms(1000));
    (0..3).for_each(|_| world.give(0, id, 10));
    let Some(Chunk::Data(Data { tsn, .. })) = data.chunks.first() else { panic!("{data:?}") };
    let forward = Chunk::ForwardTsn(ForwardTsn { cumulative: *tsn, skipped: vec![] });
    let late = Packet { chunks: [forward].into_iter().collect(), ..data.clone() };
    for late in [old, late] {
        world.ends[0].handle(world.now, Incoming::Packet(Box::new(late)));
        world.drain(0);
    }
    world.give(1, peer, 20);
    world.run(world.now + ms(5000));
    assert!(
        !world.events[0].iter().any(|(_, _, event)| matches!(event, Event::Lost(_))),
        "{:?}",
        world.events[0]
    );
    assert_eq!((world.take(0), world.take(1)), (vec![10, 10, 10, 20], vec![10; 6]));
}

/// The answer to a reset of all TSNs is lost, and then messages are given up. FORWARD TSN brings the answer once more:
/// without it the peer would pass over the gap behind which it takes no data, and take new messages for old ones.
//= rfc6525#section-5.2.4
//= rfc3758#section-3.5
#[test]
fn forward_tsn_after_a_restart_that_the_peer_has_not_heard_of() {
    let config = with(UNRELIABLE).with(|parameters| parameters.rto_min = ms(200));
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    let peer = world.up(1).expect("up");
    (0..3).for_each(|n| world.give(1, peer, 10 + n));
    world.run(secs(1.0));
    world.ends[0].reset_tsns(world.now, id).expect("agreed");
    // No answer comes but that which goes before FORWARD TSN.
    world.drop = Box::new(|_, _, packet| {
        let forward = |chunk: &Chunk| matches!(chunk, Chunk::ForwardTsn(_));
        packet.chunks.iter().any(answers_a_restart) && !packet.chunks.iter().any(forward)
    });
    world.drain(0);
    world.run(secs(1.06));
    let limits = Reliability::Retransmissions(0);
    let message = Message { payload: vec![0; 13].into(), reliability: limits, ..Message::default() };
    world.ends[1].send(world.now, peer, message).expect("room");
    (4..7).for_each(|n| world.give(1, peer, 10 + n));
    world.run(secs(20.0));
    assert_eq!(world.take(0), [10, 11, 12, 14, 15, 16]);
    assert!(world.happened(0, &Event::TsnsReset(Outcome::Done)));
}

/// The only chunk in flight is on the path of an address that the peer deletes. It leaves on the other path, also in an
/// era where only SACKs release data.
//= rfc5061#section-5.3
#[test]
fn the_last_chunk_in_flight_leaves_a_deleted_path() {
    let extensions =
        Extensions { authentication: true, addresses: true, reconfiguration: false, ..RECONFIGURATION };
    for (name, _) in anabranch_proto::Rules::ERAS {
        let mut config = crate::support::bench::era(name);
        config.extensions = extensions;
        let (mut world, id) = World::joined([&config, &config], 2);
        world.run(secs(3.0));
        let peer = world.up(1).expect("up");
        world.weather[0].up = false;
        world.give(0, id, 10);
        world.run(world.now + ms(100));
        world.ends[1].remove_address(world.now, peer, address(0, 1)).expect("agreed");
        world.drain(1);
        world.run(world.now + secs(60.0).since(secs(0.0)));
        assert_eq!(world.take(1), [10], "{name}");
        assert_eq!(world.ends[0].paths(id)[0].state, PathState::Removed, "{name}");
    }
}

/// The peer goes on sending to an address that is being removed. No path goes back there.
//= rfc5061#section-5.3
#[test]
fn no_path_follows_packets_to_an_address_that_is_being_removed() {
    let extensions =
        Extensions { authentication: true, addresses: true, reconfiguration: false, ..RECONFIGURATION };
    let config = Config { pairs: Pairs::OnePerPeer, ..with(extensions) };
    let weather = vec![Weather::fair(ms(20)); 2];
    let mut world = World::new([at(0, 2, &config), at(1, 2, &config)], weather, 1);
    world.keep_log = true;
    let id = world.connect();
    world.run(secs(2.0));
    let peer = world.up(1).expect("up");
    // The request does not arrive, and the peer uses its second path.
    world.lose(usize::MAX, |chunk| matches!(chunk, Chunk::Asconf(_)));
    world.ends[0].remove_address(world.now, id, address(1, 0)).expect("agreed");
    world.drain(0);
    world.log.clear();
    for _ in 0..20 {
        let second = world.ends[1].paths(peer)[1].id;
        world.ends[1].heartbeat(world.now, peer, second);
        world.drain(1);
        world.run(world.now + ms(500));
    }
    let from = |left: &crate::support::Left| left.side == 0 && left.packet.from == address(1, 0);
    assert!(!world.log.iter().any(from), "{:?}", world.ends[0].paths(id));
    let local = LocalAddress { address: address(1, 0), prefix: 24 };
    world.ends[0].add_address(world.now, id, local).expect("it can come back");
}
