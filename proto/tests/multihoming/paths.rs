//! Which pairs are paths, how they are verified, and what the user can say about them.

use anabranch_proto::policy::Why;
use anabranch_proto::rules::{Confirmation, LostHeartbeat, NextHeartbeat, Verification};
use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Heartbeat;
use anabranch_proto::{
    Config, Event, LocalAddress, Pairs, Parameters, PathId, PathState, PolicySpec, Purpose, Time,
};

use crate::support::bench::{Bench, FULL, at_ms, chunk, era, ms};
use crate::support::{Left, Weather, World, address, at, secs};
use crate::{first_new, heartbeats, loads};

/// Data flows at once on the path of the handshake; the other is asked then, and confirmed when it answers.
//= rfc9260#section-5.4
#[test]
fn data_at_once() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 2);
    world.give(0, id, 100);
    world.run(secs(1.0));
    assert_eq!(first_new(&world, 0, Time::ZERO), Some(at_ms(200)));
    assert_eq!(heartbeats(&world, 1), [at_ms(200)]);
    let confirmed = (at_ms(300), id, Event::Path(PathId(1), PathState::Active));
    assert!(world.events[0].contains(&confirmed));
}

/// `confirmation`: the initiator's first data leaves at 200 ms, or when all paths have answered: 300 ms.
#[test]
fn confirmation() {
    for (choice, first) in [(Confirmation::DataAtOnce, 200), (Confirmation::AllPathsFirst, 300)] {
        let mut config = era("rfc9260").with(|parameters| parameters.heartbeat_max_burst = 9);
        config.rules.confirmation = choice;
        let (mut world, id) = World::joined([&config, &config], 2);
        world.give(0, id, 100);
        world.run(secs(1.0));
        assert_eq!(first_new(&world, 0, Time::ZERO), Some(at_ms(first)), "{choice:?}");
    }
}

/// `AllPathsFirst` without periodic heartbeats. Where the alternate never answers (or its first six heartbeats, at 0.2
/// s and after RTOs of 1, 2, 4, 8 and 16 s, are lost), data leaves when it counts as failed: after Path.Max.Retrans + 1
/// errors, the last at 0.2 + 63 s. Where heartbeats of all paths are lost until 70 s, the peer is asked until it
/// answers.
#[test]
fn confirmation_without_heartbeats() {
    let mut config = era("rfc9260").with(|parameters| {
        parameters.heartbeat_interval = None;
        parameters.heartbeat_max_burst = 9;
    });
    config.rules.confirmation = Confirmation::AllPathsFirst;
    let beat = |packet: &anabranch_proto::wire::Packet| matches!(packet.chunks[0], Chunk::Heartbeat(_));
    let (mut world, id) = World::joined([&config, &config], 2);
    world.drop = Box::new(move |_, _, packet| beat(packet) && packet.to == address(1, 1));
    world.give(0, id, 100);
    world.run(secs(100.0));
    assert_eq!(heartbeats(&world, 1).len(), 6, "{:?}", heartbeats(&world, 1));
    assert_eq!(first_new(&world, 0, Time::ZERO), Some(at_ms(63_200)));
    let (mut world, id) = World::joined([&config, &config], 2);
    world.drop = Box::new(move |now, side, packet| side == 0 && beat(packet) && now < secs(70.0));
    world.give(0, id, 100);
    world.run(secs(300.0));
    assert_eq!(world.take(1), [100]);
}

/// The alternate never answers. Every tenth packet is lost, and every retransmission would rather take the
/// alternate: it carries heartbeats only.
//= rfc9260#section-5.4
#[test]
fn no_data_on_an_unconfirmed_path() {
    let alternate = PolicySpec::named("alternate");
    let config = Config { fast: alternate.clone(), timeout: alternate, ..era("rfc9260") };
    let (mut world, id) = World::joined([&config, &config], 2);
    world.weather[1].up = false;
    let mut count = 0;
    world.drop = Box::new(move |_, side, _| {
        count += 1;
        side == 0 && count % 10 == 9
    });
    world.run(secs(1.0));
    (0..100).for_each(|_| world.give(0, id, FULL));
    world.run(secs(100.0));
    assert!(loads(&world).count() > 100, "some are sent again");
    let on_alternate = world.log.iter().filter(|left| left.reason.path == Some(PathId(1)));
    let only_heartbeats = |left: &Left| {
        left.packet.chunks.iter().all(|c| matches!(c, Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_)))
    };
    assert!(on_alternate.clone().count() > 3 && on_alternate.clone().all(only_heartbeats));
    assert_eq!(world.ends[0].paths(id)[1].state, PathState::Unconfirmed);
}

/// The set-up went by the second path, at 1.0 s; the first, the primary, never answers. Nothing but INITs and
/// heartbeats goes there: the SACK of the peer's data, SHUTDOWN at 2.0 s and its repetition (the first is lost;
/// RTO 2 s, doubled by the lost INIT) take the second. Closed at 4.1 s.
//= rfc9260#section-5.4
#[test]
fn no_chunks_at_all_on_an_unconfirmed_path() {
    let config = era("rfc9260");
    let mut world = World::new([at(0, 2, &config), at(1, 2, &config)], vec![Weather::fair(ms(50)); 2], 1);
    world.keep_log = true;
    world.weather[0].up = false;
    let id = world.connect();
    world.run(secs(1.5));
    let peer = world.up(1).expect("up");
    (0..3).for_each(|_| world.give(1, peer, FULL));
    world.run(secs(2.0));
    world.lose(1, |c| matches!(c, Chunk::Shutdown(_)));
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    world.run(secs(60.0));
    assert_eq!(world.when(0, &Event::Closed), Some(at_ms(4100)));
    let allowed = |c: &Chunk| matches!(c, Chunk::Init(_) | Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_));
    for left in world.log.iter().filter(|left| left.packet.to.ip == address(0, 1 - left.side).ip) {
        assert!(left.packet.chunks.iter().all(allowed), "{left:?}");
    }
}

/// Data from an address that is not confirmed is acknowledged to one that is.
//= rfc9260#section-5.4
#[test]
fn a_sack_does_not_go_to_an_unconfirmed_address() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    bench.sent.clear();
    bench.hear_on(1, chunk(1, 100));
    bench.hear_on(1, chunk(2, 100));
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert_eq!(packet.to, address(0, 1));
}

/// An unconfirmed path is asked once an RTO, doubled each time, until it has Path.Max.Retrans + 1 errors; then
/// after HB.interval as any other: 0, 1, 3, 7 s, lost at 15 s; Path.Max.Retrans = 3: 7 + 30 + 16 = 53 s.
//= rfc9260#section-5.4
#[test]
fn verification_goes_on_more_slowly() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.path_max_retrans = 3), 2);
    bench.pass(ms(60_000));
    let asked: Vec<Time> = bench.heartbeats().into_iter().filter(|h| h.1 == 1).map(|h| h.0).collect();
    assert_eq!(asked, [0, 1, 3, 7, 53].map(|s| at_ms(1000 * s)));
}

/// `verification`: the alternate is asked at 0, 1 and 3 s, and again at 7 s. After two failures, at 3 s, the local
/// address is another one, or still the same.
#[test]
fn verification() {
    for (choice, local) in [(Verification::NextLocal, 0), (Verification::SameLocal, 1)] {
        let mut config = era("rfc9260");
        config.rules.verification = choice;
        let mut bench = Bench::new(config, 2);
        bench.until(at_ms(2999));
        assert_eq!(bench.view(1).local, address(1, 0), "{choice:?}");
        bench.until(at_ms(3000));
        assert_eq!(bench.view(1).local, address(local, 0), "{choice:?}");
        let asked: Vec<Time> = bench.heartbeats().into_iter().filter(|h| h.1 == 1).map(|h| h.0).collect();
        assert_eq!(asked, [0, 1, 3].map(|s| at_ms(1000 * s)), "{choice:?}");
    }
}

/// When the heartbeats left on a path, in milliseconds.
fn asked(bench: &mut Bench, path: u16) -> Vec<u64> {
    let on = bench.heartbeats().into_iter().filter(|heartbeat| heartbeat.1 == path);
    on.map(|heartbeat| heartbeat.0.as_nanos() / 1_000_000).collect()
}

/// `lost_heartbeat`: the alternate is asked at 31 s, and RTO is 1 s. Not answered it is asked again at 32 s, 34 s and
/// so on, or HB.interval and an RTO of 2 s after 31 s. The primary is inactive after one timeout, at 1.1 s.
//= rfc9260#section-8.3
#[test]
fn lost_heartbeat() {
    for (choice, of_alternate, of_primary) in [
        (LostHeartbeat::NextInterval, [31_000, 63_000].as_slice(), [].as_slice()),
        (LostHeartbeat::AtOnce, &[31_000, 32_000, 34_000, 38_000, 46_000, 62_000], &[1100]),
    ] {
        let mut config = era("rfc9260").with(|parameters| parameters.path_max_retrans = 9);
        config.rules.lost_heartbeat = choice;
        let mut bench = Bench::confirmed(config.clone(), 2, ms(100));
        bench.until(at_ms(64_000));
        assert_eq!(asked(&mut bench, 1), of_alternate, "{choice:?}");
        let mut bench = Bench::confirmed(
            Config { parameters: Parameters { path_max_retrans: 0, ..config.parameters }, ..config },
            2,
            ms(100),
        );
        bench.send(1, FULL);
        bench.until(at_ms(2000));
        assert_eq!(asked(&mut bench, 0), of_primary, "{choice:?}");
    }
}

/// `heartbeat_after_timeout`: T3-rtx of the primary expires at 1.1 s, RTO is doubled to 2 s, and the answer to the
/// heartbeat brings it back. Without another path in order there is none.
//= rfc9260#section-8.3
#[test]
fn heartbeat_after_timeout() {
    for (choice, expected, rto) in [("off", [].as_slice(), 2000), ("on", &[1100], 1000)] {
        let mut config = era("rfc9260");
        config.mechanisms.choose("heartbeat_after_timeout", choice).expect("a mechanism");
        let timed_out = |paths: usize, other: bool| {
            let mut bench = Bench::confirmed(config.clone(), paths, ms(100));
            bench.send(1, FULL);
            bench.until(at_ms(1099));
            if paths > 1 {
                bench.up(1, other);
            }
            bench.until(at_ms(1200));
            bench
        };
        let mut bench = timed_out(2, true);
        bench.answer_heartbeats(|_| true);
        assert_eq!(bench.view(0).rto, ms(rto), "{choice}");
        assert_eq!(asked(&mut timed_out(2, true), 0), expected, "{choice}");
        assert_eq!(asked(&mut timed_out(2, false), 0), [], "{choice}: the other path is down");
        assert_eq!(asked(&mut timed_out(1, true), 0), [], "{choice}: there is no other path");
    }
}

/// The heartbeat follows the packet that T3-rtx releases, also on the same path. When T3-rtx expires again together
/// with the time for the answer, the path's silence is one error, and the next heartbeat replaces the first.
//= rfc9260#section-8.3
#[test]
fn the_heartbeat_follows_the_retransmission() {
    let mut config = era("rfc9260");
    config.mechanisms.choose("heartbeat_after_timeout", "on").expect("a mechanism");
    config.timeout = PolicySpec::named("same");
    let mut bench = Bench::confirmed(config, 2, ms(100));
    bench.send(1, FULL);
    let since = bench.sent.len();
    bench.until(at_ms(1200));
    let purposes: Vec<Purpose> = bench.sent[since..].iter().map(|(.., reason)| reason.purpose).collect();
    assert_eq!(purposes, [Purpose::Data(Why::Timeout), Purpose::Heartbeat]);
    bench.until(at_ms(3200));
    assert_eq!((bench.timeouts().len(), bench.view(0).errors), (2, 2));
    assert_eq!(asked(&mut bench, 0), [1100, 3100]);
}

/// `next_heartbeat`: the alternate is asked at 31 s, when RTO is 1 s, and does not answer, which doubles it. The next
/// heartbeat is due HB.interval and an RTO after that: the RTO of the loss, or that of the sending.
//= rfc9260#section-8.3
#[test]
fn next_heartbeat() {
    for (choice, expected) in [(NextHeartbeat::WhenAnswered, 63_000), (NextHeartbeat::WhenSent, 62_000)] {
        let mut config = era("rfc9260").with(|parameters| parameters.path_max_retrans = 9);
        config.rules.next_heartbeat = choice;
        let mut bench = Bench::confirmed(config, 2, ms(100));
        bench.until(at_ms(64_000));
        assert_eq!(asked(&mut bench, 1), [31_000, expected], "{choice:?}");
    }
}

/// Three paths to verify. HB.Max.Burst = 1: one heartbeat at a time, the others an RTO later each; or all.
//= rfc9260#section-5.4
#[test]
fn heartbeat_max_burst() {
    for (burst, expected) in [(1, [(0, 1), (1000, 2), (2000, 3)]), (3, [(0, 1), (0, 2), (0, 3)])] {
        let mut bench =
            Bench::new(era("rfc9260").with(|parameters| parameters.heartbeat_max_burst = burst), 4);
        let mut asked = Vec::new();
        for second in 1..=3 {
            for (at, path, info) in bench.heartbeats() {
                asked.push((at.as_nanos() / 1_000_000, path));
                let answer = anabranch_proto::wire::chunk::Heartbeat::new(info);
                bench.hear_on(path.into(), Chunk::HeartbeatAck(answer));
            }
            bench.until(at_ms(1000 * second));
        }
        assert_eq!(asked, expected);
    }
}

/// The local addresses of side 0 in this order, none known to be on a link with a peer's: paths are made by
/// position.
fn by_position(order: [usize; 3]) -> World {
    let config = era("rfc9260").with(|parameters| parameters.heartbeat_max_burst = 9);
    let local = |path| LocalAddress { address: address(path, 0), prefix: 32 };
    let addresses = order.into_iter().map(local).collect();
    let ends = [Config { addresses, ..at(0, 3, &config) }, at(1, 3, &config)];
    let mut world = World::new(ends, vec![Weather::fair(ms(50)); 3], 1);
    world.keep_log = true;
    world
}

fn confirmed_at(world: &World, path: u16) -> Option<Time> {
    let up = Event::Path(PathId(path), PathState::Active);
    world.events[0].iter().find(|e| e.2 == up).map(|e| e.0)
}

/// Second and third address are crossed: no route. Each pair is tried twice, then the next local address.
///
/// The peer's second address is asked from our third at 0.2 and 1.2 s, lost at 3.2 s, then from our second:
/// confirmed at 3.3 s. Its third: from our second; from 3.2 s, beyond the end of the list, our first, lost at
/// 7.2 and 15.2 s; then our third: 15.3 s. (The peer's own heartbeats, which would tell sooner, are lost.)
//= rfc9260#section-5.4
#[test]
fn a_pair_without_a_route_leads_to_the_next_local_address() {
    let mut world = by_position([0, 2, 1]);
    let asks = |c: &Chunk| matches!(c, Chunk::Heartbeat(_));
    world.drop = Box::new(move |_, side, packet| side == 1 && packet.chunks.iter().any(asks));
    world.connect();
    world.run(secs(20.0));
    assert_eq!(confirmed_at(&world, 1), Some(at_ms(3300)));
    assert_eq!(confirmed_at(&world, 2), Some(at_ms(15_300)));
    let id = world.up(0).expect("up");
    let local = |path: usize| world.ends[0].paths(id)[path].local;
    assert_eq!([local(1), local(2)], [address(1, 0), address(2, 0)]);
}

/// The peer's heartbeats tell which local address reaches it: they arrive at 0.2 s (its own paths are by link);
/// the question of 1.2 s takes the right pair.
#[test]
fn a_path_goes_from_where_the_peers_packets_come_to() {
    let mut world = by_position([0, 2, 1]);
    world.connect();
    world.run(secs(20.0));
    assert_eq!([confirmed_at(&world, 1), confirmed_at(&world, 2)], [Some(at_ms(1300)); 2]);
}

/// The link decides before the position: prefix 24, addresses in another order, right at once.
#[test]
fn a_local_address_on_the_same_link_comes_first() {
    let mut bench_config = at(0, 3, &era("rfc9260"));
    bench_config.addresses.reverse();
    let ends = [bench_config, at(1, 3, &era("rfc9260"))];
    let mut world = World::new(ends, vec![Weather::fair(ms(50)); 3], 1);
    let id = world.connect();
    let pairs: Vec<_> = world.ends[0].paths(id).iter().map(|p| (p.local, p.remote)).collect();
    assert_eq!(pairs, [0, 1, 2].map(|path| (address(path, 0), address(path, 1))));
}

/// Every pair is a path: of four, two have a route, are confirmed and carry data.
#[test]
fn pairs_all() {
    let config =
        Config { pairs: Pairs::All, ..era("rfc9260") }.with(|parameters| parameters.heartbeat_max_burst = 9);
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(30.0));
    let paths = world.ends[0].paths(id);
    let routed =
        |p: &anabranch_proto::PathView| (0..2).any(|n| (p.local, p.remote) == (address(n, 0), address(n, 1)));
    assert_eq!(paths.len(), 4);
    for path in paths {
        let state = if routed(path) { PathState::Active } else { PathState::Unconfirmed };
        assert_eq!(path.state, state, "{path:?}");
    }
}

/// Exactly the pairs that are listed, as far as the peer has their addresses.
#[test]
fn pairs_listed() {
    let listed =
        vec![(address(0, 0), address(0, 1)), (address(1, 0), address(0, 1)), (address(0, 0), address(7, 1))];
    let config = Config { pairs: Pairs::Listed(listed.clone()), ..era("rfc9260") };
    let (mut world, id) = World::joined([&config, &era("rfc9260")], 2);
    world.run(secs(1.0));
    let pairs: Vec<_> = world.ends[0].paths(id).iter().map(|p| (p.local, p.remote)).collect();
    assert_eq!(pairs, listed[..2]);
}

/// New data takes the primary that the user chose, from that moment.
//= rfc9260#section-6.4
#[test]
fn set_primary() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(0));
    bench.send(1, FULL);
    assert!(bench.end.set_primary(bench.now, bench.id, PathId(1)));
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (0, 1, vec![2])]);
    assert!(!bench.end.set_primary(bench.now, bench.id, PathId(2)), "there is no such path");
    assert!(bench.view(1).primary && !bench.view(0).primary);
}

/// A primary that is not confirmed is passed over until it is.
//= rfc9260#section-5.4
#[test]
fn an_unconfirmed_primary_waits_for_its_confirmation() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    bench.end.set_primary(bench.now, bench.id, PathId(1));
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(0, 0, vec![1])]);
    bench.answer_heartbeats(|_| true);
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(0, 1, vec![2])]);
}

/// A local address that cannot send holds the data of its path; the other path goes on: it takes what timed out
/// (1 s), and heartbeats. When it can send again, what waited leaves at once.
#[test]
fn set_writable() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(0));
    bench.send(1, FULL);
    bench.writable(0, false);
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(0, 0, vec![1])]);
    bench.until(at_ms(1000));
    assert_eq!(bench.loads(), [(1000, 1, vec![1])]);
    bench.end.set_primary(bench.now, bench.id, PathId(1));
    bench.drain();
    assert_eq!(bench.loads(), [(1000, 1, vec![2])]);
    bench.end.set_primary(bench.now, bench.id, PathId(0));
    bench.send(1, FULL);
    assert_eq!(bench.loads(), []);
    bench.until(at_ms(1500));
    bench.writable(0, true);
    assert_eq!(bench.loads(), [(1500, 0, vec![3])]);
}

/// HB.interval, and an RTO of a second, half of it more or less: over two hundred heartbeats every tenth of that
/// range is met.
//= rfc9260#section-8.3
#[test]
fn heartbeats_are_jittered_by_half_an_rto() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.heartbeat_jitter = true), 1);
    let (mut last, mut met) = (None, [0; 10]);
    for tenth in 1..=62_000 {
        bench.until(at_ms(tenth * 100));
        for (at, _, info) in bench.heartbeats() {
            bench.hear(Chunk::HeartbeatAck(Heartbeat::new(info)));
            if let Some(last) = last.replace(at) {
                let passed = (at.since(last).as_nanos() as u64) / 1_000_000;
                met[((passed - 30_500) / 100) as usize] += 1;
            }
        }
    }
    assert!(met.iter().all(|count| (5..60).contains(count)), "{met:?}");
}
