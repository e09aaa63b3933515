//! The four-way handshake, its losses and its collisions.

use anabranch_proto::wire::chunk::CookieEcho;
use anabranch_proto::wire::{Cause, Chunk, Packet, Param, Ports};
use anabranch_proto::{
    AssociationId, Config, Event, Incoming, LostReason, Message, Output, PathState, Refused, SendError, Time,
};
use bytes::Bytes;

use crate::support::bench::{at_ms, era, ms};
use crate::support::{Kind, Left, PORT, Weather, World, address, at, secs};

fn is_init(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Init(_))
}

fn is_echo(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::CookieEcho(_))
}

fn is_ack(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::CookieAck(_))
}

fn up(world: &World) -> [Option<Time>; 2] {
    [0, 1].map(|side| world.when(side, &Event::Up))
}

/// INIT 0, INIT ACK 50, COOKIE ECHO 100, COOKIE ACK 150: up at 150 ms and 200 ms.
//= rfc9260#section-5.1
#[test]
fn up_at_both_ends() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(60.0));
    assert_eq!(up(&world), [Some(at_ms(200)), Some(at_ms(150))]);
    let count = |side: usize| world.events[side].len();
    assert_eq!([count(0), count(1)], [1, 1]);
}

/// T1 from RTO.Initial, doubled up to RTO.Max: INIT at 0, 1, 3, 7, 15, 31, 63, 123, 183 s, the first and
/// Max.Init.Retransmits = 8 more; given up at 243 s. What was given meanwhile comes back, unsent.
//= rfc9260#section-5.1
#[test]
fn nobody_answers() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 1);
    world.weather[0].up = false;
    world.run(secs(2.0));
    world.give(0, id, 77);
    world.run(secs(300.0));
    // The first left before the path went down, and was answered; the answer was lost.
    assert_eq!(world.left(0, is_init), [0, 1, 3, 7, 15, 31, 63, 123, 183].map(|s| at_ms(1000 * s)));
    let [(_, _, Event::SendFailed { message, sent: false }), (at, _, last)] = &world.events[0][..] else {
        panic!("{:?}", world.events[0]);
    };
    assert_eq!((message.payload.len(), *at), (77, secs(243.0)));
    assert_eq!(*last, Event::Lost(LostReason::NoAnswer));
    assert!(world.events[1].is_empty());
}

/// The COOKIE ECHO under T1, too: 100 ms, and 1, 3 s later; Max.Init.Retransmits = 2, given up at 7.1 s.
//= rfc9260#section-5.1
#[test]
fn the_cookie_is_not_answered() {
    let config = era("rfc9260").with(|parameters| parameters.max_init_retransmits = 2);
    let (mut world, _) = World::joined([&config, &config], 1);
    world.lose(usize::MAX, is_echo);
    world.run(secs(60.0));
    assert_eq!(world.left(0, is_echo), [100, 1100, 3100].map(at_ms));
    assert_eq!(world.when(0, &Event::Lost(LostReason::NoAnswer)), Some(at_ms(7100)));
    assert!(world.events[1].is_empty(), "nothing is kept before the cookie comes");
}

/// The first address does not answer: after 1 s INIT goes to the second. Data flows there, the handshake's path
/// being the confirmed one; the primary is the first all the same, once it answers a heartbeat.
//= rfc9260#section-5.1
//= rfc9260#section-5.4
#[test]
fn the_next_address_is_tried() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 2);
    world.weather[0].up = false;
    world.log.clear();
    // The first INIT left before: what it brings back is lost.
    world.give(0, id, 100);
    world.run(secs(2.0));
    assert_eq!(up(&world), [Some(at_ms(1200)), Some(at_ms(1150))]);
    let paths = world.ends[0].paths(id);
    assert_eq!([paths[0].state, paths[1].state], [PathState::Unconfirmed, PathState::Active]);
    assert_eq!((paths[1].chunks, paths[0].chunks, paths[0].primary), (1, 0, true));
}

/// A lost INIT, INIT ACK, COOKIE ECHO or COOKIE ACK costs 1 s (RTO.Initial). The cookie that comes again when
/// COOKIE ACK was lost is answered again, and tells side 1's user nothing new.
//= rfc9260#section-5.2.4
#[test]
fn one_packet_of_the_handshake_is_lost() {
    let is_init_ack = |c: &Chunk| matches!(c, Chunk::InitAck(_));
    let kinds: [(Kind, u64); 4] = [(is_init, 1150), (is_init_ack, 1150), (is_echo, 1150), (is_ack, 150)];
    for (kind, side1) in kinds {
        let config = era("rfc9260");
        let weather = vec![Weather::fair(ms(50))];
        let mut world = World::new([at(0, 1, &config), at(1, 1, &config)], weather, 1);
        world.lose(1, kind);
        world.connect();
        world.run(secs(20.0));
        assert_eq!(up(&world), [Some(at_ms(1200)), Some(at_ms(side1))]);
        assert_eq!(world.events[1].len(), 1);
    }
}

/// COOKIE ACK was lost, but side 1 already sends: its data says as much.
#[test]
fn data_stands_for_a_lost_cookie_ack() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.lose(1, is_ack);
    world.run(at_ms(150));
    let peer = world.up(1).expect("up");
    world.give(1, peer, 100);
    world.run(secs(1.0));
    assert_eq!(up(&world)[0], Some(at_ms(200)));
    assert_eq!(world.take(0), [100]);
}

/// The cookie was made at 50 ms and lives 500 ms. Lost at 100 ms, it comes back at 1150 ms, 600 ms too late. The
/// INIT of 1200 ms asks for a longer life, and the association is up two round trips later.
//= rfc9260#section-5.2.6
//= rfc9260#section-3.3.10.3
#[test]
fn a_stale_cookie_is_renewed_once() {
    let config = Config { cookie_life: ms(500), ..era("rfc9260") };
    let (mut world, _) = World::joined([&config, &config], 1);
    world.keep_log = true;
    world.lose(1, is_echo);
    world.run(secs(20.0));
    assert_eq!(up(&world), [Some(at_ms(1400)), Some(at_ms(1350))]);
    let preserves = |left: &Left| {
        let Some(Chunk::Init(init)) = left.packet.chunks.first() else { return false };
        left.at == at_ms(1200) && init.params == [Param::CookiePreservative(1100)]
    };
    assert!(
        world.log.iter().any(preserves),
        "an INIT asks for a second more than the round trip, 1100 ms, and not for twice the staleness, 1200"
    );
}

/// The longer-lived cookie (500 ms more, no more is granted) is stale as well: two losses in a row of its echo.
//= rfc9260#section-5.2.6
#[test]
fn a_second_stale_cookie_ends_it() {
    let config = Config { cookie_life: ms(500), ..era("rfc9260") }.with(|parameters| {
        parameters.rto_min = ms(500);
        parameters.rto_initial = ms(1000);
    });
    let (mut world, _) = World::joined([&config, &config], 1);
    let mut echoes = 0;
    world.drop = Box::new(move |_, side, packet| {
        let echo = side == 0 && packet.chunks.iter().any(is_echo);
        echoes += u32::from(echo);
        echo && echoes != 2 && echoes < 4
    });
    world.run(secs(30.0));
    let lost = |event: &Event| matches!(event, Event::Lost(LostReason::PeerAborted(c)) if matches!(c[..], [Cause::StaleCookie(_)]));
    assert!(world.events[0].iter().any(|(_, _, event)| lost(event)), "{:?}", world.events[0]);
    assert!(world.events[1].is_empty());
}

/// A stale cookie of the very association that it has made is valid (§5.2.4, 3): COOKIE ACK was lost.
//= rfc9260#section-5.2.4
#[test]
fn age_does_not_matter_for_the_cookie_of_this_association() {
    let config = Config { cookie_life: ms(500), ..era("rfc9260") };
    let (mut world, _) = World::joined([&config, &config], 1);
    world.lose(1, is_ack);
    world.run(secs(20.0));
    assert_eq!(up(&world), [Some(at_ms(1200)), Some(at_ms(150))]);
    assert_eq!([world.events[0].len(), world.events[1].len()], [1, 1]);
}

/// Nothing in a forged cookie is believed, whatever byte was changed; nothing is answered or kept.
//= rfc9260#section-5.1.5
#[test]
fn a_forged_cookie_is_ignored() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.lose(usize::MAX, is_echo);
    world.run(at_ms(100));
    let echo = world.log.last().expect("COOKIE ECHO").packet.clone();
    let Chunk::CookieEcho(CookieEcho { cookie }) = &echo.chunks[0] else { panic!("{echo:?}") };
    for byte in 0..cookie.len() {
        let mut forged = cookie.to_vec();
        forged[byte] ^= 0x40;
        let chunk = Chunk::CookieEcho(CookieEcho { cookie: forged.into() });
        let packet = Packet { chunks: [chunk].into_iter().collect(), ..echo.clone() };
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(packet)));
        assert!(matches!(world.ends[1].poll(world.now), Output::Wait(None)), "byte {byte}");
    }
    assert!(world.ends[1].paths(AssociationId(0)).is_empty());
    // The true one is welcome.
    world.ends[1].handle(world.now, Incoming::Packet(Box::new(echo)));
    world.drain(1);
    assert!(world.happened(1, &Event::Up));
}

/// A thousand INITs from as many ports: answered in part, and nothing is kept.
//= rfc9260#section-5.1
#[test]
fn an_init_flood_leaves_no_association() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    let init = world.log[0].packet.clone();
    for port in 1..=1000 {
        let packet = Packet { ports: Ports { source: port, ..init.ports }, ..init.clone() };
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(packet)));
    }
    let mut answers = 0;
    while let Output::Transmit(packet, _) = world.ends[1].poll(world.now) {
        assert!(matches!(packet.chunks[0], Chunk::InitAck(_)));
        answers += 1;
    }
    assert_eq!(answers, 256);
    assert!(matches!(world.ends[1].poll(world.now), Output::Wait(None)));
    assert!(world.ends[1].paths(AssociationId(0)).is_empty());
}

/// Who does not listen answers an INIT with ABORT, under the initiator's tag.
//= rfc9260#section-8.4
#[test]
fn who_does_not_listen_refuses() {
    let config = era("rfc9260");
    let weather = vec![Weather::fair(ms(50))];
    let mut world = World::new([at(0, 1, &config), at(1, 1, &config)], weather, 1);
    world.ends[1].set_listening(false);
    world.connect();
    world.run(secs(1.0));
    assert_eq!(world.when(0, &Event::Lost(LostReason::PeerAborted(vec![]))), Some(at_ms(100)));
}

/// An INIT that offers no streams is refused (§3.3.2), one with a tag or in company is not looked at (§8.5.1).
//= rfc9260#section-3.3.2
//= rfc9260#section-8.5.1
#[test]
fn bad_inits() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    let good = world.log[0].packet.clone();
    let Chunk::Init(init) = &good.chunks[0] else { panic!("{good:?}") };
    let mut answer = |packet: Packet| {
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(packet)));
        world.ends[1].poll(world.now)
    };
    let mut none = init.clone();
    none.outbound = 0;
    let packet = Packet { chunks: [Chunk::Init(none)].into_iter().collect(), ..good.clone() };
    let Output::Transmit(refusal, _) = answer(packet) else { panic!("it is answered") };
    assert_eq!(refusal.tag, init.tag);
    let Chunk::Abort(abort) = &refusal.chunks[0] else { panic!("{refusal:?}") };
    assert_eq!((abort.reflected, &abort.causes[..]), (false, &[Cause::InvalidMandatoryParameter][..]));
    assert!(matches!(answer(Packet { tag: 5, ..good.clone() }), Output::Wait(None)));
    let twice = [good.chunks[0].clone(), good.chunks[0].clone()].into_iter().collect();
    assert!(matches!(answer(Packet { chunks: twice, ..good.clone() }), Output::Wait(None)));
}

/// Both ends connect, side 1 so many milliseconds after side 0: one association, up at both, data both ways.
fn both_connect(offset: u64, paths: usize) {
    let config = era("rfc9260");
    let (mut world, first) = World::joined([&config, &config], paths);
    world.run(at_ms(offset));
    let to: Vec<_> = (0..paths).map(|path| address(path, 0)).collect();
    let second = world.ends[1].connect(world.now, PORT, &to);
    world.drain(1);
    world.run(secs(20.0));
    match second {
        Ok(id) => assert_eq!(world.up(1), Some(id), "{offset}"),
        Err(refused) => assert!(refused == Refused::Exists && offset >= 150, "{offset}"),
    }
    let ups = |side: usize| world.events[side].iter().filter(|e| e.2 == Event::Up).count();
    assert_eq!([ups(0), ups(1)], [1, 1], "{offset}");
    let peer = world.up(1).expect("up");
    world.give(0, first, 10);
    world.give(1, peer, 20);
    world.run(secs(30.0));
    assert_eq!([world.take(0), world.take(1)], [vec![20], vec![10]], "{offset}");
}

/// INIT crosses INIT (to 50 ms), INIT ACK (to 100 ms), COOKIE ECHO (to 150 ms); after that side 1 has the
/// association already.
//= rfc9260#section-5.2.4
//= rfc9260#section-5.2.2
#[test]
fn both_ends_connect_at_once() {
    for offset in (0..=200).step_by(10) {
        both_connect(offset, 1);
        both_connect(offset, 2);
    }
}

/// A second connect call to the same peer is refused, and so is one that no local address can make.
#[test]
fn refused_connects() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 2);
    assert_eq!(world.ends[0].connect(world.now, PORT + 1, &[address(1, 1)]), Err(Refused::Exists));
    let v6 = anabranch_proto::wire::Address::ip(std::net::IpAddr::V6(1.into()));
    assert_eq!(world.ends[0].connect(world.now, PORT + 1, &[v6]), Err(Refused::NoPath));
}

/// Streams: the lesser of what one end sends on and the other accepts.
//= rfc9260#section-3.3.2
#[test]
fn streams_are_agreed() {
    let wide = Config { outbound_streams: 16, ..era("rfc9260") };
    let narrow = Config { inbound_streams: 4, ..era("rfc9260") };
    let (mut world, id) = World::joined([&wide, &narrow], 1);
    world.run(secs(1.0));
    let mut send = |stream, size| {
        let payload = Bytes::from(vec![0; size]);
        world.ends[0].send(world.now, id, Message { stream, payload, ..Message::default() })
    };
    assert!(send(3, 1).is_ok());
    assert!(matches!(send(4, 1), Err(SendError::Invalid(_))));
    assert!(matches!(send(0, 0), Err(SendError::Invalid(_))), "an empty message");
}
