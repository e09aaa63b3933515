//! A path goes down, for good or for a while.

use anabranch_proto::rules::{ErrorClearing, Failover, HeartbeatErrors};
use anabranch_proto::{Config, Event, LostReason, NoteKind, PathId, PathState, PolicySpec, Time};

use crate::support::bench::{Bench, FULL, at_ms, era, ms};
use crate::support::{World, secs};
use crate::{first_new, heartbeats, steadily};

/// Steady sending from 1 s; the primary is down from 10 s to 100 s.
fn outage(config: &Config) -> World {
    let (mut world, id) = World::joined([config, config], 2);
    world.run(secs(1.0));
    steadily(&mut world, id, secs(10.0));
    world.weather[0].up = false;
    steadily(&mut world, id, secs(100.0));
    world.weather[0].up = true;
    steadily(&mut world, id, secs(200.0));
    assert!(!world.events[0].iter().any(|e| matches!(e.2, Event::Lost(_))));
    world
}

fn timeouts(world: &World, path: u16) -> Vec<Time> {
    let t3 = |note: &anabranch_proto::Note| note.kind == NoteKind::T3 { path: PathId(path) };
    world.notes[0].iter().filter(|note| t3(note)).map(|note| note.at).collect()
}

fn changes(world: &World, path: u16) -> Vec<(Time, PathState)> {
    let of = |event: &Event| match event {
        Event::Path(PathId(id), state) if *id == path => Some(*state),
        _ => None,
    };
    world.events[0].iter().filter_map(|(at, _, e)| Some((*at, of(e)?))).collect()
}

/// RFC 9260. The last message to arrive left at 9.5 s and was acknowledged at 9.8 s; RTO is 1 s (RTO.Min).
///
/// - T3: the message of 10.0 starts it: 11.0. The marked chunks leave at once on the alternate and are
///   acknowledged there, but new data still goes to the primary: the message of 11.0 starts T3 of 2 s, 13.0;
///   from then on one packet of new data leaves at each T3: 13 + 4 = 17, + 8 = 25, + 16 = 41, + 32 = 73 s.
/// - The sixth error exceeds Path.Max.Retrans = 5: inactive at 73.0, and new data takes the alternate there
///   and then.
/// - Heartbeats: the primary was last used for new data at 41.0; its period was set at the beginning, 30 s and
///   an RTO of 1 s: 72.0 s. RTO is 32 s then: no answer by 104.0. The next is HB.interval and RTO.Max after
///   that one: 72 + 30 + 60 = 162.0. It is answered at 162.1: active.
/// - The next message, of 162.5, takes the primary again.
//= rfc9260#section-8.2
//= rfc9260#section-8.3
//= rfc9260#section-6.4.1
#[test]
fn the_primary_goes_down_and_comes_back() {
    let world = outage(&era("rfc9260"));
    assert_eq!(timeouts(&world, 0), [11, 13, 17, 25, 41, 73].map(|s| at_ms(1000 * s)));
    assert_eq!(changes(&world, 0), [(secs(73.0), PathState::Inactive), (at_ms(162_100), PathState::Active)]);
    assert_eq!(first_new(&world, 1, Time::ZERO), Some(secs(73.0)));
    assert_eq!(heartbeats(&world, 0), [secs(72.0), secs(162.0)]);
    assert_eq!(first_new(&world, 0, secs(74.0)), Some(at_ms(162_500)));
    assert_eq!(first_new(&world, 1, at_ms(162_400)), None);
}

/// ns-2's choices. Data leaves only in answer to SACKs, retransmissions first.
///
/// - T3 at 11.0: one packet to the alternate; the receiver delays its SACK: 50 + 200 + 50 ms. At 11.3 new data
///   goes to the primary: T3 at 11.3 + 2 = 13.3, and so on: + 0.3 + 4 = 17.6, + 0.3 + 8 = 25.9, + 0.3 + 16
///   = 42.2. At 26.2 there were 17 messages, two packets: the second is retransmitted at the SACK of 42.5, and
///   new data after it. 42.5 + 32 = 74.5: the sixth error.
/// - Inactive at 74.5. The retransmission of two packets again: 74.5 and, by the SACK, 74.8; then new data, on
///   the alternate, which is the primary from now on.
/// - The failed path is asked at 73.5 (last new data at 42.5, period 31 s), at 74.5 because it is inactive, and, lost
///   at 134.5 (RTO.Max), at once again; active at 134.6. No new data returns.
//= rfc9260#section-8.2
#[test]
fn by_ns2_the_path_that_took_over_stays_the_primary() {
    let world = outage(&era("ns2"));
    let t3 = [11_000, 13_300, 17_600, 25_900, 42_200, 74_500].map(at_ms);
    assert_eq!(timeouts(&world, 0), t3);
    let returned = [(at_ms(74_500), PathState::Inactive), (at_ms(134_600), PathState::Active)];
    assert_eq!(changes(&world, 0)[1..], returned, "after the confirmation of the beginning");
    assert_eq!(first_new(&world, 1, Time::ZERO), Some(at_ms(74_800)));
    assert_eq!(first_new(&world, 0, at_ms(74_500)), None);
    let id = world.up(0).expect("up");
    assert!(world.ends[0].paths(id)[1].primary && !world.ends[0].paths(id)[0].primary);
}

/// The rule alone, on RFC 9260: the same times, and no return.
#[test]
fn failover() {
    for (choice, returns) in [(Failover::Return, Some(at_ms(162_500))), (Failover::Stay, None)] {
        let mut config = era("rfc9260");
        config.rules.failover = choice;
        let world = outage(&config);
        assert_eq!(first_new(&world, 0, secs(74.0)), returns, "{choice:?}");
    }
}

/// A short outage, of 1.5 s: T3 at 11.0 and, for the message of 11.0, at 13.0; the primary is up again when the
/// next message leaves, and is acknowledged: it never was inactive.
#[test]
fn a_short_outage_is_no_failure() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    steadily(&mut world, id, secs(10.0));
    world.weather[0].up = false;
    steadily(&mut world, id, secs(11.5));
    world.weather[0].up = true;
    steadily(&mut world, id, secs(60.0));
    assert_eq!(timeouts(&world, 0), [11, 13].map(|s| at_ms(1000 * s)));
    assert_eq!(changes(&world, 0), []);
    assert_eq!(world.ends[0].paths(id)[0].errors, 0);
    assert_eq!(first_new(&world, 1, Time::ZERO), None);
}

/// Both paths fail, and one message of 10 s is under way; no heartbeats.
///
/// It goes back and forth, and each path doubles its RTO. Sent at 10 s, with RTO 1: 11 (to the alternate) and 12
/// (back); with RTO 2: 14, 16; RTO 4: 20, 24; RTO 8: 32, 40; RTO 16: 56, 72; RTO 32: 104 s. That is the eleventh error
/// in a row: more than Association.Max.Retrans = 10. The message comes back, sent.
//= rfc9260#section-8.1
//= rfc9260#section-6.3.3
#[test]
fn both_paths_down() {
    let config = era("rfc9260").with(|parameters| parameters.heartbeat_interval = None);
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    steadily(&mut world, id, secs(10.0));
    world.weather.iter_mut().for_each(|w| w.up = false);
    world.give(0, id, 77);
    world.run(secs(200.0));
    assert_eq!(timeouts(&world, 0), [11, 14, 20, 32, 56, 104].map(|s| at_ms(1000 * s)));
    assert_eq!(timeouts(&world, 1), [12, 16, 24, 40, 72].map(|s| at_ms(1000 * s)));
    let [.., (_, _, inactive), (_, _, Event::SendFailed { message, sent: true }), (at, _, last)] =
        &world.events[0][..]
    else {
        panic!("{:?}", world.events[0]);
    };
    assert_eq!(*inactive, Event::Path(PathId(0), PathState::Inactive));
    assert_eq!((message.payload.len(), *at), (77, secs(104.0)));
    assert_eq!(*last, Event::Lost(LostReason::TooManyErrors));
}

/// Only the alternate is down, from the start. Nothing is sent but heartbeats.
fn alternate_down(name: &str) -> World {
    let config = era(name).with(|parameters| {
        parameters.association_max_retrans = 4;
        parameters.heartbeat_interval = Some(ms(1_000_000));
        parameters.rto_initial = ms(3000);
    });
    let (mut world, _) = World::joined([&config, &config], 2);
    world.weather[1].up = false;
    world.run(secs(900.0));
    world
}

fn lost(world: &World, side: usize) -> Option<Time> {
    let lost = Event::Lost(LostReason::TooManyErrors);
    world.events[side].iter().find(|e| e.2 == lost).map(|e| e.0)
}

/// The alternate never answers: asked at 0.2 s (RTO.Initial 3 s), and again when an RTO has passed, doubled
/// each time: lost at 3.2, 9.2, 21.2, 45.2, 93.2 s. Nothing else is sent (the primary's own heartbeat would be
/// due after 1000 s), so that nothing forgives these.
///
/// - RFC 9260: heartbeats lost on a path that does not carry the data do not count: the association lives.
/// - RFC 4960: they count, the fifth exceeds Association.Max.Retrans = 4: lost at 93.2 s, at the end which
///   named the address in its connect call (confirmed by §5.4 rule 1). The other end, to which only its peer
///   named it, verifies it, which does not count.
/// - RFC 2960: no verification: both ends; side 1 is up, and asks, 50 ms earlier.
//= rfc9260#section-8.1
//= rfc9260#section-5.4
#[test]
fn alternate_down_from_the_start() {
    let ends = |name| {
        let world = alternate_down(name);
        [lost(&world, 0), lost(&world, 1)]
    };
    assert_eq!(ends("rfc9260"), [None, None]);
    assert_eq!(ends("rfc4960"), [Some(at_ms(93_200)), None]);
    assert_eq!(ends("rfc2960"), [Some(at_ms(93_200)), Some(at_ms(93_150))]);
}

/// Which heartbeats count, two confirmed paths and no answers at all; HB.interval 5 s, RTO 1 s.
///
/// Both are asked at 6 s (lost at 7), 6 + 5 + 2 = 13 (15), 13 + 5 + 4 = 22 (26), 22 + 5 + 8 = 35 (43).
/// Association.Max.Retrans is 3. `all`, `confirmed`: 2 errors at 7, 4 at 15 s. `path-in-use`: one each time:
/// 4 at 43 s. With Path.Max.Retrans = 0 both paths are inactive at 7 s: `while-active` counts no more.
//= rfc9260#section-8.1
#[test]
fn heartbeat_errors() {
    let end = |rule, path_max_retrans| {
        let mut config = era("rfc9260").with(|parameters| {
            parameters.association_max_retrans = 3;
            parameters.path_max_retrans = path_max_retrans;
            parameters.heartbeat_interval = Some(ms(5000));
        });
        config.rules.heartbeat_errors = rule;
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.pass(ms(500_000));
        let lost = Event::Lost(LostReason::TooManyErrors);
        bench.events.iter().find(|e| e.1 == lost).map(|e| e.0.as_nanos() / 1_000_000_000)
    };
    assert_eq!(end(HeartbeatErrors::All, 5), Some(15));
    assert_eq!(end(HeartbeatErrors::Confirmed, 5), Some(15));
    assert_eq!(end(HeartbeatErrors::PathInUse, 5), Some(43));
    assert_eq!(end(HeartbeatErrors::WhileActive, 5), Some(15));
    assert_eq!(end(HeartbeatErrors::WhileActive, 0), None);
    assert_eq!(end(HeartbeatErrors::All, 0), Some(15));
}

/// Path.Max.Retrans = 2, two idle paths, the second silent: asked at 6, 13, 22 s; the third loss, at 26 s,
/// makes it inactive. Asked on: 22 + 5 + 8 = 35 s; the answer makes it active again, and forgives all.
//= rfc9260#section-8.2
//= rfc9260#section-8.3
#[test]
fn an_idle_path_fails_and_returns() {
    let config = era("rfc9260").with(|parameters| {
        parameters.path_max_retrans = 2;
        parameters.heartbeat_interval = Some(ms(5000));
    });
    let mut bench = Bench::confirmed(config, 2, ms(0));
    let mut asked = Vec::new();
    for second in 1..=34 {
        bench.until(at_ms(1000 * second));
        asked.extend(bench.heartbeats().into_iter().filter(|h| h.1 == 1).map(|h| h.0));
        assert_eq!(bench.view(1).state == PathState::Inactive, second >= 26, "{second}");
    }
    assert_eq!(asked, [6, 13, 22].map(|s| at_ms(1000 * s)));
    bench.until(at_ms(35_000));
    bench.answer_heartbeats(|path| path == 1);
    assert_eq!((bench.view(1).state, bench.view(1).errors), (PathState::Active, 0));
    assert_eq!(bench.events.last(), Some(&(at_ms(35_000), Event::Path(PathId(1), PathState::Active))));
}

/// Data acknowledged on a path that was thought dead revives it.
///
/// One path, Path.Max.Retrans = 0: T3 at 1 s makes it inactive. The late SACK makes it active.
//= rfc9260#section-8.2
#[test]
fn acknowledged_data_revives_a_path() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.path_max_retrans = 0), 1);
    bench.send(1, 100);
    bench.until(at_ms(1000));
    assert_eq!(bench.events.last(), Some(&(at_ms(1000), Event::Path(PathId(0), PathState::Inactive))));
    bench.until(at_ms(1100));
    bench.sack(1, &[]);
    assert_eq!(bench.events.last(), Some(&(at_ms(1100), Event::Path(PathId(0), PathState::Active))));
    assert_eq!(bench.view(0).errors, 0);
}

/// A chunk times out on path 0 at 1 s and on path 1 at 2 s: it was sent on path 0, on path 1, and on path 0 again.
/// Its acknowledgement at 2.1 s may be that of any copy: by RFC 9260 §8.2 it need not clear path 0, the last. That of
/// the next message, which went there only, does.
//= rfc9260#section-8.2
#[test]
fn error_clearing() {
    for (choice, errors) in [(ErrorClearing::Any, [0, 1]), (ErrorClearing::Unambiguous, [1, 1])] {
        let mut config = era("rfc9260").with(|parameters| parameters.heartbeat_interval = None);
        config.rules.error_clearing = choice;
        let mut bench = Bench::confirmed(config, 2, ms(0));
        let begun = bench.now;
        let at = |millis| begun + ms(millis);
        bench.send(1, 100);
        bench.until(at(2000));
        assert_eq!([0, 1].map(|path| bench.view(path).errors), [1, 1], "{choice:?}");
        bench.until(at(2100));
        bench.sack(1, &[]);
        assert_eq!([0, 1].map(|path| bench.view(path).errors), errors, "{choice:?}");
        bench.send(1, 100);
        bench.sack(2, &[]);
        assert_eq!(bench.view(0).errors, 0, "{choice:?}");
    }
}

/// T3-rtx of the only path marks three chunks and sends the first one again. A SACK that was under way acknowledges the
/// third: it was marked and not sent again. That of the first, sent again, is a sign of life in any case.
//= rfc9260#section-8.2
#[test]
fn acknowledgements_of_marked_chunks_may_clear_errors() {
    for (choice, errors) in
        [(ErrorClearing::Any, 0), (ErrorClearing::Unambiguous, 0), (ErrorClearing::Unmarked, 1)]
    {
        let mut config = era("rfc9260").with(|parameters| parameters.heartbeat_interval = None);
        config.rules.error_clearing = choice;
        let mut bench = Bench::confirmed(config, 1, ms(0));
        bench.send(3, FULL);
        bench.pass(ms(1100));
        assert_eq!(bench.view(0).errors, 1, "{choice:?}");
        bench.sack(0, &[(3, 3)]);
        assert_eq!(bench.view(0).errors, errors, "{choice:?}");
        bench.sack(1, &[(3, 3)]);
        assert_eq!(bench.view(0).errors, 0, "{choice:?}");
    }
}

/// RTO.Min of 100 ms, below the peer's SACK delay of 200 ms: single messages are sent on both paths before their SACK
/// arrives. When path 0 is cut at 10 s, those acknowledgements must not keep it active: with Path.Max.Retrans = 2 the
/// third timeout in a row makes it inactive, after three RTOs, each twice the last and followed by at most 500 ms until
/// the next message. Where every acknowledgement clears the count, that takes seconds longer.
#[test]
fn a_short_rto_does_not_keep_a_dead_path_alive() {
    let inactive = |choice| {
        let mut config = era("rfc9260");
        (config.rto_initial, config.rto_min, config.path_max_retrans) = (ms(100), ms(100), 2);
        config.rules.error_clearing = choice;
        assert_eq!(config.warnings().iter().map(|warning| warning.key).collect::<Vec<_>>(), ["rto_min"]);
        let (mut world, id) = World::joined([&config, &config], 2);
        world.run(secs(1.0));
        steadily(&mut world, id, secs(10.0));
        world.weather[0].up = false;
        let limit = secs(10.0) + world.ends[0].paths(id)[0].rto * 7 + ms(1500);
        steadily(&mut world, id, secs(30.0));
        (changes(&world, 0).into_iter().find(|(_, state)| *state == PathState::Inactive), limit)
    };
    let (noticed, limit) = inactive(ErrorClearing::Unambiguous);
    assert!(noticed.is_some_and(|(at, _)| at > secs(10.0) && at <= limit), "{noticed:?}, at most {limit:?}");
    let (noticed, limit) = inactive(ErrorClearing::Any);
    assert!(noticed.is_none_or(|(at, _)| at > limit + ms(2000)), "{noticed:?}");
}

/// Both paths are silent and become inactive with their first error. T3-rtx then repeats the chunk on the path that
/// carried it last, or on the other one.
//= rfc9260#section-8.2
#[test]
fn dormant() {
    for (choice, paths) in [("last", vec![0, 1, 1, 1]), ("next", vec![0, 1, 0, 1])] {
        let mut config = era("rfc9260").with(|parameters| {
            (parameters.heartbeat_interval, parameters.path_max_retrans) = (None, 0);
            parameters.association_max_retrans = 20;
        });
        config.rules.choose("dormant", choice).expect("a rule");
        config.timeout = PolicySpec::named("alternate");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(1, FULL);
        bench.pass(ms(5500));
        let took: Vec<u16> = bench.loads().iter().map(|load| load.1).collect();
        assert_eq!(took, paths, "{choice}");
    }
}
