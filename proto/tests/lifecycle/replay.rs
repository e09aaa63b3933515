//! Somebody has recorded a session and sends its packets again: the cookie in it has been used.

use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Config, Event, Incoming, SharedKey, Time};
use bytes::Bytes;

use crate::support::bench::{at_ms, era};
use crate::support::{World, secs};

/// Two ends that share a key, as with `--key`.
fn keyed() -> Config {
    let mut config = era("rfc9260");
    config.extensions.authentication = true;
    config.authenticated_chunks = vec![0, 3, 7, 8, 10, 11];
    config.shared_key = Some(SharedKey { id: 1, secret: Bytes::from_static(b"known to both ends") });
    config
}

/// A session of side 0: a message, then the end. What side 0 sent in it.
fn recorded(config: &Config) -> (World, Vec<Packet>) {
    let (mut world, id) = World::joined([config, config], 1);
    world.run(secs(0.5));
    world.give(0, id, 100);
    world.run(secs(2.0));
    assert_eq!(world.take(1), [100]);
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(secs(4.0));
    assert!(world.happened(0, &Event::Closed) && world.happened(1, &Event::Closed));
    let sent = world.log.iter().filter(|left| left.side == 0).map(|left| left.packet.clone()).collect();
    (world, sent)
}

/// Side 1 hears these packets at this time, from where they once came; how many associations came up then, and how many
/// packets it answered with.
fn replay(world: &mut World, packets: &[Packet], at: Time) -> (usize, usize) {
    world.run(at);
    let (events, log) = (world.events[1].len(), world.log.len());
    for packet in packets {
        world.ends[1].handle(at, Incoming::Packet(Box::new(packet.clone())));
        world.drain(1);
    }
    let ups = world.events[1][events..].iter().filter(|event| event.2 == Event::Up).count();
    (ups, world.log[log..].iter().filter(|left| left.side == 1).count())
}

/// The whole session comes again 1 s after its end, well within the life of its cookie (60 s): no association, no
/// message. The used cookie is answered with an ABORT, so that an honest peer whose COOKIE ACK was lost gives up.
//= rfc9260#section-5.1.5
#[test]
fn a_recorded_session_makes_no_association() {
    for config in [era("rfc9260"), keyed()] {
        let (mut world, sent) = recorded(&config);
        assert!(sent.iter().any(|packet| packet.chunks.iter().any(|c| matches!(c, Chunk::CookieEcho(_)))));
        let (ups, answers) = replay(&mut world, &sent, secs(5.0));
        assert_eq!(ups, 0);
        assert!(answers <= sent.len(), "{answers} answers to {} packets", sent.len());
        let echo: Vec<Packet> = sent
            .into_iter()
            .filter(|packet| packet.chunks.iter().any(|c| matches!(c, Chunk::CookieEcho(_))))
            .collect();
        let (ups, answers) = replay(&mut world, &echo, secs(6.0));
        assert_eq!((ups, answers), (0, 1));
        let last = world.log.last().expect("an answer");
        assert!(matches!(last.packet.chunks[..], [Chunk::Abort(_)]), "{last:?}");
    }
}

/// After the life of the cookie it is stale, whatever is remembered; after two changes of the key it is forged.
//= rfc9260#section-5.2.6
#[test]
fn a_recorded_session_after_the_key_has_changed() {
    let (mut world, sent) = recorded(&era("rfc9260"));
    for at in [70.0, 130.0, 260.0, 400.0] {
        let (ups, _) = replay(&mut world, &sent, secs(at));
        assert_eq!(ups, 0, "at {at} s");
    }
}

/// A session that its server aborted can be replayed no better than one that ended in order.
#[test]
fn a_session_that_was_aborted() {
    let config = keyed();
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(0.5));
    world.give(0, id, 100);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    let now = world.now;
    world.ends[1].forget(now, peer);
    world.drain(1);
    let sent: Vec<Packet> =
        world.log.iter().filter(|left| left.side == 0).map(|left| left.packet.clone()).collect();
    assert_eq!(replay(&mut world, &sent, secs(2.0)).0, 0);
}

/// The COOKIE ACK is lost three times: the same cookie comes again while its association lives, and is answered each
/// time.
//= rfc9260#section-5.2.4
#[test]
fn a_cookie_that_is_retransmitted() {
    let config = keyed();
    let (mut world, id) = World::joined([&config, &config], 1);
    world.lose(3, |chunk| matches!(chunk, Chunk::CookieAck(_)));
    world.run(secs(20.0));
    assert_eq!(world.left(1, |chunk| matches!(chunk, Chunk::CookieAck(_))).len(), 4);
    world.give(0, id, 100);
    world.run(secs(21.0));
    assert_eq!(world.take(1), [100]);
}

/// The same peer, from the same addresses and ports, comes back at once after each end: its cookies are its own.
#[test]
fn honest_associations_one_after_the_other() {
    let config = keyed();
    let (mut world, mut id) = World::joined([&config, &config], 1);
    for turn in 1..=20u64 {
        world.run(at_ms(turn * 2000 - 1000));
        world.ends[0].shutdown(world.now, id);
        world.drain(0);
        world.run(at_ms(turn * 2000));
        id = world.connect();
    }
    world.run(secs(50.0));
    let ups = world.events[1].iter().filter(|event| event.2 == Event::Up).count();
    assert_eq!(ups, 21);
}
