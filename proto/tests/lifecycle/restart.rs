//! A peer that forgets and comes back (RFC 9260 §5.2.2, §5.2.4.1).

use anabranch_proto::wire::chunk::{Bare, CookieEcho, Init};
use anabranch_proto::wire::{Cause, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Endpoint, Event, Incoming, LostReason, Message, Output, Policies, SendError, Tsn};

use crate::support::bench::{at_ms, era, ms};
use crate::support::{Left, PORT, Weather, World, address, at, secs};

/// Side 0 loses its memory.
fn forget(world: &mut World, paths: usize) {
    let config = at(0, paths, &era("rfc9260"));
    world.ends[0] = Endpoint::new(config, Policies::default(), [77; 32]).expect("usable");
    world.drain(0);
}

/// Side 0 crashes at 1.0 s with data of side 1 under way, and connects again at 1.5 s: side 1 learns of the
/// restart when the cookie comes, at 1.65 s; its window goes back to the start, and so does T3.
//= rfc9260#section-5.2.4.1
//= rfc9260#section-5.2.4
//= rfc9260#section-5.2.2
#[test]
fn a_peer_restarts() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    forget(&mut world, 2);
    world.lose(usize::MAX, |c| matches!(c, Chunk::Data(_)));
    (0..5).for_each(|_| world.give(1, peer, 1452));
    world.run(at_ms(1500));
    let again = world.connect();
    world.run(at_ms(1900));
    assert_eq!(world.when(1, &Event::Restart), Some(at_ms(1650)));
    let failed: Vec<bool> = world.events[1]
        .iter()
        .filter_map(|e| match e.2 {
            Event::SendFailed { sent, .. } => Some(sent),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [true, true, true, false, false], "three were sent, two were not");
    assert_eq!(world.ends[1].paths(peer)[0].window, 4404);
    world.lose(0, |_| false);
    world.give(0, again, 10);
    world.give(1, peer, 20);
    world.run(secs(60.0));
    assert_eq!(world.take(1), [10]);
    assert_eq!(world.ends[0].read(world.now, again).map(|d| d.len()), Some(20));
    let ups = world.events[1].iter().filter(|e| e.2 == Event::Up).count();
    assert_eq!(ups, 1, "a restart is no second beginning");
}

/// The user of side 1 was refused for want of room, and has not read what was announced to it. The restart empties both
/// buffers, and the user is told of the room, and of what arrives after it.
//= rfc9260#section-5.2.4.1
#[test]
fn a_restart_makes_room_and_announces_what_comes_after_it() {
    let config = era("rfc9260").with(|parameters| parameters.send_buffer = Some(3000));
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    world.give(0, id, 10);
    world.run(at_ms(1200));
    assert!(world.happened(1, &Event::Readable));
    forget(&mut world, 1);
    world.lose(usize::MAX, |c| matches!(c, Chunk::Data(_)));
    world.give(1, peer, 3000);
    let message = Message { payload: vec![0; 3000].into(), ..Message::default() };
    assert!(matches!(world.ends[1].send(world.now, peer, message), Err(SendError::Full(_))));
    world.run(at_ms(1500));
    world.events[1].clear();
    let again = world.connect();
    world.run(at_ms(1900));
    assert!(world.happened(1, &Event::Restart) && world.happened(1, &Event::Writable));
    world.lose(0, |_| false);
    world.give(0, again, 20);
    world.run(at_ms(2500));
    assert!(world.happened(1, &Event::Readable));
    assert_eq!(world.ends[1].read(world.now, peer).map(|d| d.len()), Some(20));
}

/// A user who only counts what arrives goes on counting after the peer has come back.
#[test]
fn who_only_counts_goes_on_counting() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    world.ends[1].discard(peer);
    forget(&mut world, 1);
    let again = world.connect();
    world.run(secs(2.0));
    assert!(world.happened(1, &Event::Restart));
    // The first message of a stream waits to be read in any case.
    world.give(0, again, 10);
    world.run(secs(3.0));
    assert_eq!(world.take(1), [10]);
    world.give(0, again, 20);
    world.run(secs(4.0));
    assert_eq!(world.ends[1].take_discarded(peer).map(|counted| counted.bytes), Some(20));
    assert!(!world.ends[1].is_readable(peer));
}

/// A peer that has forgotten and does not come back answers data with ABORT, its T bit set.
//= rfc9260#section-8.4
#[test]
fn a_peer_that_has_forgotten_says_so() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    forget(&mut world, 1);
    world.give(1, peer, 100);
    world.run(secs(2.0));
    assert_eq!(world.when(1, &Event::Lost(LostReason::PeerAborted(vec![]))), Some(at_ms(1100)));
}

/// A restart may not bring addresses along: it is refused, and the association stays as it is.
//= rfc9260#section-5.2.2
//= rfc9260#section-3.3.10.11
#[test]
fn a_restart_with_new_addresses_is_refused() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    let mut init = world.log[0].packet.clone();
    let Chunk::Init(chunk) = &mut init.chunks[0] else { panic!("{init:?}") };
    chunk.tag ^= 1;
    chunk.params.push(anabranch_proto::wire::Param::Ipv4([10, 0, 9, 9].into()));
    world.log.clear();
    world.ends[1].handle(world.now, anabranch_proto::Incoming::Packet(Box::new(init)));
    world.drain(1);
    let Some(Chunk::Abort(abort)) = world.log.last().map(|left| &left.packet.chunks[0]) else {
        panic!("{:?}", world.log);
    };
    assert!(matches!(abort.causes[..], [Cause::RestartWithNewAddresses(_)]) && !abort.reflected);
    // The ABORT has the tag of that INIT: to the association that lives it is nobody's.
    world.run(secs(2.0));
    world.give(0, id, 10);
    world.run(secs(3.0));
    assert_eq!(world.take(1), [10]);
}

/// What side 0, which connects at 0 s to the first address of side 1 alone, answers after `millis` to an INIT of
/// side 1 that comes from its second address, and names its first and these besides.
fn answer_to_an_init(millis: u64, more: &[[u8; 4]]) -> (Left, World) {
    let config = era("rfc9260");
    let ends = [at(0, 2, &config), at(1, 2, &config)];
    let mut world = World::new(ends, vec![Weather::fair(ms(50)); 2], 1);
    world.lose(usize::MAX, |c| matches!(c, Chunk::CookieEcho(_)));
    world.keep_log = true;
    world.ends[0].connect(world.now, PORT + 1, &[address(0, 1)]).expect("a path");
    world.drain(0);
    world.run(at_ms(millis));
    let addresses = [[10, 0, 0, 2], [10, 0, 1, 2]].iter().chain(more);
    let params = addresses.map(|ip| Param::Ipv4((*ip).into())).collect();
    let init = Init { tag: 7, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params };
    let packet = Packet {
        from: address(1, 1),
        to: address(1, 0),
        ports: Ports { source: PORT + 1, destination: PORT },
        tag: 0,
        ecn: Ecn::NotEct,
        chunks: [Chunk::Init(Box::new(init))].into_iter().collect(),
    };
    world.ends[0].handle(world.now, Incoming::Packet(Box::new(packet)));
    world.drain(0);
    (world.log.pop().expect("an answer"), world)
}

/// In COOKIE-WAIT (10 ms) any addresses may come, and the answer goes to the one that the user has named. In
/// COOKIE-ECHOED (110 ms) the INIT ACK has named all there are: further ones are refused, and the association comes up
/// as if nothing had been. The answers have the tag of the INIT that was sent.
//= rfc9260#section-5.2.1
//= rfc9260#section-3.3.10.11
#[test]
fn an_init_with_new_addresses_during_set_up() {
    for (millis, more, to) in [(10, true, 0), (10, false, 0), (110, false, 1)] {
        let more: &[_] = if more { &[[10, 0, 9, 9]] } else { &[] };
        let (answer, world) = answer_to_an_init(millis, more);
        let Chunk::Init(asked) = &world.log[0].packet.chunks[0] else { panic!("{:?}", world.log) };
        let [Chunk::InitAck(ack)] = &answer.packet.chunks[..] else { panic!("{answer:?}") };
        assert_eq!(
            (ack.tag, answer.packet.tag, answer.packet.to),
            (asked.tag, 7, address(to, 1)),
            "{millis}"
        );
    }
    let (answer, mut world) = answer_to_an_init(110, &[[10, 0, 9, 9]]);
    let [Chunk::Abort(abort)] = &answer.packet.chunks[..] else { panic!("{answer:?}") };
    let new = Param::encode_list(&[Param::Ipv4([10, 0, 9, 9].into())]).expect("short");
    assert_eq!((answer.packet.tag, &abort.causes[..]), (7, &[Cause::RestartWithNewAddresses(new)][..]));
    world.lose(0, |_| false);
    world.run(secs(5.0));
    assert!(world.happened(0, &Event::Up));
}

/// During set-up the peer sends INIT with tag 7, then with tag 9, and comes up with the cookie of the second. The first
/// cookie, and whoever recorded it, cannot give it the old tag back; its own cookie is answered again.
//= rfc9260#section-5.2.4
#[test]
fn an_older_cookie_does_not_bring_an_old_tag_back() {
    let config = era("rfc9260");
    let ends = [at(0, 1, &config), at(1, 1, &config)];
    let mut world = World::new(ends, vec![Weather::fair(ms(50))], 1);
    world.lose(usize::MAX, |c| matches!(c, Chunk::CookieEcho(_)));
    world.keep_log = true;
    let id = world.ends[0].connect(world.now, PORT + 1, &[address(0, 1)]).expect("a path");
    world.drain(0);
    let hear = |world: &mut World, tag: u32, chunk: Chunk| -> Vec<Packet> {
        let packet = Packet {
            from: address(0, 1),
            to: address(0, 0),
            ports: Ports { source: PORT + 1, destination: PORT },
            tag,
            ecn: Ecn::NotEct,
            chunks: [chunk].into_iter().collect(),
        };
        let before = world.log.len();
        world.ends[0].handle(world.now, Incoming::Packet(Box::new(packet)));
        world.drain(0);
        world.log[before..].iter().map(|left| left.packet.clone()).collect()
    };
    let mut cookies = Vec::new();
    for (millis, tag) in [(10, 7), (20, 9)] {
        world.run(at_ms(millis));
        let init = Init { tag, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
        let answers = hear(&mut world, 0, Chunk::Init(Box::new(init)));
        let [Chunk::InitAck(ack)] = &answers[0].chunks[..] else { panic!("{answers:?}") };
        let cookie =
            ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
        cookies.push((ack.tag, Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") })));
    }
    world.run(at_ms(120));
    let [(tag, older), (_, newer)] = &cookies[..] else { panic!("{cookies:?}") };
    let acks = |packets: &[Packet]| {
        packets.iter().filter(|packet| packet.chunks.iter().any(|c| matches!(c, Chunk::CookieAck(_)))).count()
    };
    assert_eq!(acks(&hear(&mut world, *tag, newer.clone())), 1);
    assert!(world.happened(0, &Event::Up));
    assert_eq!(acks(&hear(&mut world, *tag, older.clone())), 0);
    assert_eq!(acks(&hear(&mut world, *tag, newer.clone())), 1);
    let before = world.log.len();
    world.give(0, id, 100);
    let tags: Vec<u32> = world.log[before..].iter().map(|left| left.packet.tag).collect();
    assert!(!tags.is_empty() && tags.iter().all(|tag| *tag == 9), "{tags:?}");
}

/// An address of the peer that no path of ours reaches (it names an IPv6 address besides) is no new one when it
/// restarts.
//= rfc9260#section-5.2.2
#[test]
fn a_restart_with_an_address_out_of_reach() {
    let mut end = Endpoint::new(at(0, 1, &era("rfc9260")), Policies::default(), [0; 32]).expect("usable");
    let mut answer = |tag, chunk| {
        let packet = Packet {
            from: address(0, 1),
            to: address(0, 0),
            ports: Ports { source: PORT + 1, destination: PORT },
            tag,
            ecn: Ecn::NotEct,
            chunks: [chunk].into_iter().collect(),
        };
        end.handle(at_ms(0), Incoming::Packet(Box::new(packet)));
        loop {
            match end.poll(at_ms(0)) {
                Output::Transmit(packet, _) => return packet.chunks[0].clone(),
                Output::Wait(_) => panic!("no answer"),
                _ => {}
            }
        }
    };
    for tag in [7, 8] {
        let params = vec![Param::Ipv6(1.into()), Param::Ipv4([10, 0, 0, 2].into())];
        let init = Init { tag, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params };
        let Chunk::InitAck(ack) = answer(0, Chunk::Init(Box::new(init))) else { panic!("not an INIT ACK") };
        let cookie =
            ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
        let echo = CookieEcho { cookie: cookie.expect("a cookie") };
        assert_eq!(answer(ack.tag, Chunk::CookieEcho(echo)), Chunk::CookieAck(Bare));
    }
}

/// The cookie of a restart that comes when the end is under way: no new association, SHUTDOWN ACK again.
//= rfc9260#section-5.2.4
//= rfc9260#section-3.3.10.10
#[test]
fn a_restart_in_the_middle_of_the_end() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    // The new incarnation gets as far as a cookie, which is held back.
    let mut old = Endpoint::new(at(0, 1, &config), Policies::default(), [77; 32]).expect("usable");
    std::mem::swap(&mut old, &mut world.ends[0]);
    world.lose(usize::MAX, |c| matches!(c, Chunk::CookieEcho(_)));
    world.ends[0].connect(world.now, PORT + 1, &[address(0, 1)]).expect("a path");
    world.drain(0);
    world.run(at_ms(1100));
    let echo = world.log.last().expect("COOKIE ECHO").packet.clone();
    assert!(matches!(echo.chunks[0], Chunk::CookieEcho(_)));
    // Meanwhile the old one ends, up to the answer to its SHUTDOWN.
    world.ends[0] = old;
    world.lose(usize::MAX, |c| matches!(c, Chunk::ShutdownComplete(_)));
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(world.now + ms(200));
    world.log.clear();
    world.ends[1].handle(world.now, anabranch_proto::Incoming::Packet(Box::new(echo)));
    world.drain(1);
    let has = |wanted: fn(&Chunk) -> bool| world.left(1, wanted).len();
    assert_eq!(has(|c| matches!(c, Chunk::ShutdownAck(_))), 1);
    assert_eq!(has(|c| matches!(c, Chunk::Error(e) if e.causes == [Cause::CookieWhileShutdown])), 1);
    assert!(!world.happened(1, &Event::Restart));
}

/// Side 1 has sent SHUTDOWN when its peer comes back. The guard of that shutdown, which would abort it after 300 s,
/// ends with it.
//= rfc9260#section-5.2.4
//= rfc9260#section-9.2
#[test]
fn a_restart_ends_the_guard_of_a_shutdown() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    forget(&mut world, 1);
    world.lose(usize::MAX, |c| matches!(c, Chunk::Shutdown(_)));
    world.ends[1].shutdown(world.now, peer);
    world.drain(1);
    world.run(at_ms(1500));
    let again = world.connect();
    world.run(secs(400.0));
    assert!(world.happened(1, &Event::Restart));
    world.give(0, again, 10);
    world.run(secs(401.0));
    assert_eq!(world.take(1), [10]);
}

/// Side 1 sends SACKs for its first path to the second, because a duplicate came on the first. Its peer comes back with
/// one address, so that there is no second path any more.
//= rfc9260#section-5.2.4.1
//= rfc9260#section-6.4
#[test]
fn a_restart_with_fewer_paths_than_sacks_took() {
    let config = anabranch_proto::Config { rehome: true, ..era("rfc9260") };
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    world.give(0, id, 100);
    let load = world.log.iter().find(|left| matches!(left.packet.chunks[0], Chunk::Data(_))).expect("DATA");
    let load = load.packet.clone();
    world.run(secs(5.0));
    world.log.clear();
    world.ends[1].handle(world.now, Incoming::Packet(Box::new(load)));
    world.drain(1);
    assert_eq!(world.log.last().expect("a SACK").packet.to, address(1, 0));
    assert_eq!(world.take(1), [100]);
    forget(&mut world, 1);
    let again = world.ends[0].connect(world.now, PORT + 1, &[address(0, 1)]).expect("a path");
    world.drain(0);
    world.run(secs(6.0));
    assert!(world.happened(1, &Event::Restart));
    world.give(0, again, 20);
    world.run(secs(7.0));
    assert_eq!(world.take(1), [20]);
}

/// The association gives up at the moment at which the cookie of a restart arrives. It has ended, as its user is told, so
/// it cannot restart: the cookie makes another one.
//= rfc9260#section-5.2.4
#[test]
fn a_cookie_at_the_moment_of_the_end() {
    use crate::support::bench::{Bench, PEER_TAG};
    let config = era("rfc9260").with(|parameters| {
        (parameters.association_max_retrans, parameters.path_max_retrans) = (0, 0);
    });
    let mut bench = Bench::new(config, 1);
    bench.send(1, 10);
    bench.until(at_ms(500));
    let (a_rwnd, outbound, inbound, tsn, params) = (5000, 1, 1, Tsn(1), Vec::new());
    let again = Init { tag: PEER_TAG + 1, a_rwnd, outbound, inbound, tsn, params };
    bench.hear_packet(0, 0, [Chunk::Init(Box::new(again))]);
    let (_, packet, _) = bench.sent.pop().expect("INIT ACK");
    let [Chunk::InitAck(ack)] = &packet.chunks[..] else { panic!("{packet:?}") };
    let cookie =
        ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
    let echo = CookieEcho { cookie: cookie.expect("a cookie") };
    bench.now = at_ms(1000);
    bench.hear_packet(0, ack.tag, [Chunk::CookieEcho(echo)]);
    let events: Vec<&Event> = bench.events.iter().map(|(_, event)| event).collect();
    assert!(events.contains(&&Event::Lost(LostReason::TooManyErrors)), "{events:?}");
    assert!(!events.contains(&&Event::Restart), "{events:?}");
    assert_eq!(events.iter().filter(|event| ***event == Event::Up).count(), 2, "{events:?}");
}
