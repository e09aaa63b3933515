//! The search for a path's MTU. A packet of 1,500 bytes carries a DATA chunk of 1,468 at most, one of 1,200 of 1,168.

use anabranch_proto::wire::chunk::Heartbeat;
use anabranch_proto::wire::{Address, Chunk};
use anabranch_proto::{
    Config, Endpoint, Incoming, Message, Parameters, PathId, PathParameters, PathState, Policies, Time,
};

use crate::support::bench::{Bench, at_ms, chunk, era, ms, tsns};
use crate::support::{PORT, address, at};

/// Bytes of an IP header.
const IP: usize = 20;

fn searching() -> Config {
    Config { mtu_discovery: true, ..era("rfc9260") }.with(|parameters| parameters.heartbeat_interval = None)
}

/// Takes out the probes sent so far: when in milliseconds, how large with the IP header, with which information.
fn probes(bench: &mut Bench) -> Vec<(u64, usize, bytes::Bytes)> {
    let of = |chunks: &[Chunk]| match chunks {
        [Chunk::Heartbeat(heartbeat), Chunk::Pad(_)] => Some(heartbeat.info.clone()),
        _ => None,
    };
    let taken: Vec<_> = bench.sent.extract_if(.., |(_, packet, _)| of(&packet.chunks).is_some()).collect();
    let probe = |(at, packet, _): (anabranch_proto::Time, anabranch_proto::wire::Packet, _)| {
        let info = of(&packet.chunks).expect("it is one");
        (at.as_nanos() / 1_000_000, packet.size() + IP, info)
    };
    taken.into_iter().map(probe).collect()
}

/// Answers the probe that is under way if it is of at most `carried` bytes.
fn answer(bench: &mut Bench, carried: usize) -> Option<(u64, usize)> {
    let (at, size, info) = probes(bench).pop()?;
    if size <= carried {
        bench.hear(Chunk::HeartbeatAck(Heartbeat::new(info)));
    }
    Some((at, size))
}

/// The largest size is tried first; where it gets through, all is known after one round trip.
//= rfc8899#section-5.2
//= rfc8899#section-6.2.1
//= rfc4820#section-3
#[test]
fn a_path_that_carries_the_largest_packet() {
    let mut bench = Bench::new(searching(), 1);
    assert_eq!(bench.view(0).pmdcs, 1168);
    assert_eq!(answer(&mut bench, 1500), Some((0, 1500)));
    assert_eq!(bench.view(0).pmdcs, 1468);
    bench.send(1, 1452);
    assert_eq!(bench.loads(), [(0, 0, vec![1])]);
    // PMTU_RAISE_TIMER: there is nothing larger to be tried, and nothing is.
    bench.sack(1, &[]);
    bench.until(at_ms(1_300_000));
    assert_eq!(probes(&mut bench).iter().map(|probe| probe.1).collect::<Vec<_>>(), Vec::<usize>::new());
}

/// A path of 1,400 bytes. Each size is tried three times, a second apart, before it counts as too large; the next is
/// half-way, rounded down to a multiple of four; lost probes are no errors. 1500, then 1348 comes through, 1424
/// does not, 1384 does, 1404 does not, 1392 does, and what is left is less than 16 bytes.
//= rfc8899#section-5.1.1
#[test]
fn the_search_halves_what_is_not_known() {
    let mut bench = Bench::new(searching(), 1);
    let mut tried = Vec::new();
    for second in 1..=20 {
        while let Some(probe) = answer(&mut bench, 1400) {
            tried.push(probe);
        }
        bench.until(at_ms(second * 1000));
    }
    let times = |at: u64, size| (0..3).map(move |n| (at + n * 1000, size));
    let expected: Vec<_> = times(0, 1500)
        .chain([(3000, 1348)])
        .chain(times(3000, 1424))
        .chain([(6000, 1384)])
        .chain(times(6000, 1404))
        .chain([(9000, 1392)])
        .collect();
    assert_eq!(tried, expected);
    assert_eq!((bench.view(0).pmdcs, bench.view(0).errors), (1360, 0));
    // Ten minutes later the path may have changed.
    bench.until(at_ms(9_000 + 600_000));
    assert_eq!(answer(&mut bench, 1500), Some((609_000, 1500)));
    assert_eq!(bench.view(0).pmdcs, 1468);
}

/// Large packets vanish from some moment on, and small ones do not: after two timeouts a heartbeat asks, and its
/// answer says that the size is to blame. What was sent keeps its size; what is cut from then on is small.
//= rfc8899#section-4.3
#[test]
fn a_black_hole() {
    let mut bench = Bench::new(searching(), 1);
    answer(&mut bench, 1500);
    bench.send(1, 1452);
    bench.until(at_ms(1000));
    assert_eq!(bench.heartbeats().len(), 0);
    bench.until(at_ms(3000));
    let (at, _, info) = bench.heartbeats().pop().expect("it asks");
    assert_eq!(at, at_ms(3000));
    assert_eq!(bench.view(0).pmdcs, 1468);
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(info)));
    assert_eq!((bench.view(0).pmdcs, bench.view(0).state), (1168, PathState::Active));
    assert_eq!(bench.windows(), (1168, 4 * 1468), "one packet, as after a timeout");
    assert_eq!(answer(&mut bench, 1400), Some((3000, 1348)), "and the search begins, below what is lost");
    assert_eq!((bench.view(0).pmdcs, bench.window()), (1316, 1168));
    bench.send(1, 1452);
    bench.until(at_ms(7000));
    let data: Vec<_> = bench.sent.iter().filter(|sent| !tsns(&sent.1).is_empty()).collect();
    let last = data.last().expect("the next timeout sends it again");
    assert_eq!((tsns(&last.1), last.2.oversize), (vec![1], true), "IP has to fragment it");
    assert!(data[..data.len() - 1].iter().all(|sent| !sent.2.oversize));
}

/// A path that is potentially failed after each timeout is asked after each, and answers: two timeouts still count
/// together.
//= rfc8899#section-4.3
//= rfc7829#section-3.1
#[test]
fn a_black_hole_whose_heartbeats_are_answered_after_each_timeout() {
    let mut bench = Bench::new(
        Config { mtu_discovery: true, ..era("rfc9260") }
            .with(|parameters| parameters.pf_max_retrans = Some(0)),
        1,
    );
    answer(&mut bench, 1500);
    bench.send(1, 1452);
    for (seconds, pmdcs) in [(1, 1468), (3, 1168)] {
        probes(&mut bench);
        bench.until(at_ms(seconds * 1000));
        assert_eq!(bench.view(0).state, PathState::PotentiallyFailed);
        bench.answer_heartbeats(|_| true);
        assert_eq!((bench.view(0).pmdcs, bench.view(0).state), (pmdcs, PathState::Active), "{seconds}");
    }
}

/// The path carries packets of 900 bytes, less than the search began with: chunks become as small as they can be, and
/// the search goes on from there. 864 is half-way from 528 to 1200.
//= rfc8899#section-4.3
//= rfc8899#section-5.2
#[test]
fn a_black_hole_for_the_size_at_which_the_search_begins() {
    let mut bench = Bench::new(searching(), 1);
    bench.send(1, 1152);
    bench.until(at_ms(3000));
    probes(&mut bench);
    let (at, _, info) = bench.heartbeats().pop().expect("it asks");
    assert_eq!(at, at_ms(3000));
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(info)));
    assert_eq!((bench.view(0).pmdcs, bench.view(0).state), (496, PathState::Active));
    assert_eq!(answer(&mut bench, 900), Some((3000, 864)), "and the search begins, below what is lost");
    assert_eq!(bench.view(0).pmdcs, 832);
}

/// A path that is dead is no black hole: nobody answers, and its size stays.
#[test]
fn a_dead_path_keeps_its_size() {
    let mut bench = Bench::new(searching(), 1);
    answer(&mut bench, 1500);
    bench.send(1, 1452);
    bench.until(at_ms(100_000));
    assert_eq!(bench.view(0).pmdcs, 1468);
}

/// What a router says bounds the search.
//= rfc9260#section-7.3
#[test]
fn too_big_bounds_the_search() {
    let mut bench = Bench::new(searching(), 1);
    answer(&mut bench, 1500);
    bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), 1300));
    bench.drain();
    assert_eq!(bench.view(0).pmdcs, 1268);
    bench.pass(ms(10));
    assert_eq!(probes(&mut bench).len(), 0);
}

/// A router says that a probe under way is too large. The search goes on below, and an answer to the probe changes
/// nothing any more: 1300 is half-way from 1200 to 1401, rounded down to a multiple of four.
//= rfc8899#section-4.6.2
#[test]
fn a_probe_that_a_router_finds_too_big() {
    let mut bench = Bench::new(searching(), 1);
    let (_, size, info) = probes(&mut bench).pop().expect("a probe");
    assert_eq!(size, 1500);
    bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), 1400));
    bench.drain();
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(info)));
    assert_eq!(bench.view(0).pmdcs, 1168);
    bench.pass(ms(10));
    assert_eq!(answer(&mut bench, 1400), Some((0, 1300)));
    assert_eq!(bench.view(0).pmdcs, 1268);
    let later: Vec<usize> = (0..100)
        .filter_map(|_| {
            bench.pass(ms(1000));
            answer(&mut bench, 1400).map(|probe| probe.1)
        })
        .collect();
    assert!(!later.is_empty() && later.iter().all(|size| *size <= 1400), "{later:?}");
}

/// Two routers report in the wrong order. The smaller size holds, with a search or without, until the user sets
/// another.
//= rfc8899#section-4.6.2
#[test]
fn a_report_never_makes_packets_larger() {
    for config in [searching(), era("rfc9260").with(|parameters| parameters.heartbeat_interval = None)] {
        let mut bench = Bench::new(config, 1);
        for limit in [1100, 1400, 1100, 2000] {
            bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), limit));
            bench.drain();
            assert_eq!(bench.view(0).pmdcs, 1100 - 32, "after {limit}");
        }
        let parameters = Parameters { mtu: 1300, ..bench.end.config_of(bench.id).expect("one").parameters };
        bench.end.reconfigure(bench.now, bench.id, parameters).expect("usable");
        let searches = bench.end.config().mtu_discovery;
        assert_eq!(bench.view(0).pmdcs, if searches { 1100 - 32 } else { 1300 - 32 });
    }
}

/// A SACK of 200 blocks, 816 bytes, fits the first path and not the second, whose packets have 528: it leaves alone,
/// and data, which must fit either, behind it.
//= rfc9260#section-6.1
#[test]
fn a_sack_that_only_one_path_can_carry() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
    bench.end.handle(bench.now, Incoming::TooBig(address(1, 1), 528));
    for n in 1..200 {
        bench.data(2 * n, 4);
    }
    bench.sent.clear();
    bench.a_rwnd = 1 << 20;
    let last = chunk(400, 4);
    bench.end.send(bench.now, bench.id, message(100)).expect("there is room");
    bench.hear(last);
    let sizes: Vec<usize> = bench.sent.iter().map(|(_, packet, _)| packet.size()).collect();
    assert_eq!(sizes, [12 + 16 + 4 * 200, 12 + 16 + 100]);
    assert_eq!(bench.loads(), [(100, 0, vec![1])]);
}

fn message(size: usize) -> Message {
    Message { payload: vec![0; size].into(), ..Message::default() }
}

/// A path on which nobody has answered yet carries no data, and limits no chunk. As soon as it is confirmed, it does,
/// until its MTU is found.
//= rfc9260#section-7.3
#[test]
fn an_unconfirmed_path_limits_no_chunk() {
    let mut bench = Bench::new(searching().with(|parameters| parameters.heartbeat_max_burst = u32::MAX), 2);
    let point = |bench: &Bench| bench.end.status(bench.id).expect("it is up").fragmentation_point;
    assert_eq!(point(&bench), 1152);
    answer(&mut bench, 1500);
    assert_eq!((bench.view(1).state, bench.view(1).pmdcs), (PathState::Unconfirmed, 1168));
    assert_eq!(point(&bench), 1452);
    bench.answer_heartbeats(|_| true);
    assert_eq!(point(&bench), 1152);
    answer(&mut bench, 1500);
    assert_eq!(point(&bench), 1452);
}

/// The first path's packets have a size that the user has fixed: nothing is searched there, also when it has been
/// verified since; the second is searched like any other.
//= rfc8899#section-5.2
#[test]
fn a_fixed_size_is_not_searched() {
    let mut bench = Bench::new(searching().with(|parameters| parameters.heartbeat_max_burst = u32::MAX), 2);
    let fixed = PathParameters { mtu: Some(1000), ..PathParameters::default() };
    assert!(bench.end.configure_path(bench.now, bench.id, PathId(0), fixed));
    bench.drain();
    probes(&mut bench);
    bench.answer_heartbeats(|_| true);
    assert_eq!(answer(&mut bench, 1500), Some((0, 1500)), "on the second");
    bench.until(at_ms(1_300_000));
    assert_eq!((bench.view(0).pmdcs, bench.view(1).pmdcs), (1000 - 32, 1468));
}

/// The size that the user has fixed for a path is at most that of the association, also if that shrinks, and holds
/// again when it grows.
#[test]
fn a_fixed_size_is_bounded_by_the_associations() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    let fixed = PathParameters { mtu: Some(1400), ..PathParameters::default() };
    assert!(bench.end.configure_path(bench.now, bench.id, PathId(0), fixed));
    let before = bench.end.config_of(bench.id).expect("it is there").parameters;
    for (mtu, expected) in [(1200, [1168, 1168]), (1500, [1368, 1468])] {
        let other = Parameters { mtu, ..before };
        bench.end.reconfigure(bench.now, bench.id, other).expect("they can be used");
        assert_eq!([bench.view(0).pmdcs, bench.view(1).pmdcs], expected, "{mtu}");
    }
}

/// Data is lost for good on a path of the smallest size, or of one that is not searched for: packets are not
/// too large there, and nothing is asked or changed.
//= rfc8899#section-4.3
#[test]
fn no_black_hole_where_nothing_can_be_smaller() {
    let fixed = era("rfc9260").with(|parameters| parameters.heartbeat_interval = None);
    let smallest = searching().with(|parameters| parameters.mtu = 528);
    for (config, pmdcs) in [(smallest, 496), (fixed, 1468)] {
        let mut bench = Bench::new(config, 1);
        bench.send(1, 480);
        bench.until(at_ms(3000));
        assert_eq!(bench.timeouts().len(), 2);
        assert_eq!(bench.heartbeats(), []);
        bench.end.heartbeat(bench.now, bench.id, PathId(0));
        bench.drain();
        bench.answer_heartbeats(|_| true);
        assert_eq!(bench.view(0).pmdcs, pmdcs);
    }
}

/// Two timeouts with data that came through between them are two losses, and no black hole.
//= rfc8899#section-4.3
#[test]
fn data_that_comes_through_starts_the_count_anew() {
    let mut bench = Bench::new(searching(), 1);
    answer(&mut bench, 1500);
    for tsn in 1..=3 {
        bench.send(1, 1452);
        bench.pass(bench.view(0).rto);
        assert_eq!(bench.timeouts().len(), tsn as usize);
        bench.sack(tsn, &[]);
        assert_eq!(bench.heartbeats(), [], "after {tsn}");
    }
}

/// A packet of 1,500 bytes has room for 20 of IP, 8 of UDP, 12 of the common header, and a DATA chunk of 1,460.
//= rfc6951#section-5.6
#[test]
fn udp_takes_its_place_in_a_packet() {
    let mut end = Endpoint::new(at(0, 1, &era("rfc9260")), Policies::default(), [9; 32]).expect("usable");
    let to = Address { udp: 9899, ..address(0, 1) };
    let id = end.connect(Time::ZERO, PORT, &[to]).expect("a path");
    assert_eq!(end.paths(id)[0].pmdcs, 1460);
}
