//! Potentially failed paths (RFC 7829).

use anabranch_proto::policy::Why;
use anabranch_proto::{Config, Event, PathId, PathState, PolicySpec, Purpose, Time};

use crate::support::bench::{Bench, FULL, era, ms};

fn with_pf() -> Config {
    era("rfc9260").with(|parameters| {
        parameters.pf_max_retrans = Some(0);
        parameters.path_max_retrans = 3;
    })
}

fn states(bench: &Bench, path: u16) -> Vec<(Time, PathState)> {
    let of = |(at, event): &(Time, Event)| match event {
        Event::Path(id, state) if *id == PathId(path) => Some((*at, *state)),
        _ => None,
    };
    bench.events.iter().filter_map(of).collect()
}

/// RTO 1 s, PFMR 0, PMR 3. Data leaves at 0 on the primary; T3 at 1 s makes it potentially failed: the chunk and
/// what is new go to the alternate at once, and a heartbeat goes to the primary. Its RTO is 2 s by then, so it
/// is lost at 3 s, the next, with 4 s, at 7, and the last, with 8 s, at 15: four errors are more than three,
/// the path is inactive.
//= rfc7829#section-3.2
#[test]
fn a_path_fails_in_two_steps() {
    let mut bench = Bench::confirmed(with_pf(), 2, ms(100));
    let start = bench.now;
    bench.send(1, 1452);
    bench.heartbeats();
    bench.until(start + ms(1000));
    bench.send(1, 1452);
    let paths: Vec<u16> = bench.loads().iter().map(|load| load.1).collect();
    assert_eq!(paths, [0, 1, 1]);
    bench.sack(2, &[]);
    bench.until(start + ms(16_000));
    let after = |n: u64| start + ms(n);
    let asked: Vec<Time> = bench.heartbeats().iter().filter(|h| h.1 == 0).map(|h| h.0).collect();
    assert_eq!(asked, [after(1000), after(3000), after(7000)]);
    let failed = [(after(1000), PathState::PotentiallyFailed), (after(15_000), PathState::Inactive)];
    assert_eq!(states(&bench, 0).iter().rev().take(2).rev().copied().collect::<Vec<_>>(), failed);
}

/// An answer to the heartbeat makes it active again, and new data returns to it.
//= rfc7829#section-3.2
#[test]
fn an_answer_ends_it() {
    let mut bench = Bench::confirmed(with_pf(), 2, ms(100));
    bench.send(1, 1452);
    bench.pass(ms(1000));
    bench.answer_heartbeats(|path| path == 0);
    assert_eq!(bench.view(0).state, PathState::Active);
    assert_eq!(bench.view(0).errors, 0);
    bench.sack(1, &[]);
    bench.loads();
    bench.send(1, 1452);
    assert_eq!(bench.loads()[0].1, 0);
}

/// An acknowledgement of data that two paths have carried says nothing for certain. One of data that only one
/// has, be it twice, says that this one works. With no active path left, the potentially failed one goes on.
//= rfc7829#section-3.2
#[test]
fn only_certain_acknowledgements_count() {
    let mut bench = Bench::confirmed(with_pf(), 2, ms(100));
    bench.send(1, 1452);
    bench.pass(ms(1000));
    bench.sack(1, &[]);
    assert_eq!(bench.view(0).state, PathState::PotentiallyFailed);
    let mut alone = Bench::new(with_pf(), 1);
    alone.send(1, 1452);
    alone.pass(ms(1000));
    assert_eq!((alone.view(0).state, alone.loads().len()), (PathState::PotentiallyFailed, 2));
    alone.sack(1, &[]);
    assert_eq!((alone.view(0).state, alone.view(0).errors), (PathState::Active, 0));
}

/// Both paths are potentially failed, with one error each: what timed out on one goes to the other. No state and no
/// count changes by the choice.
//= rfc7829#section-3.2
#[test]
fn of_failing_paths_another_than_the_last() {
    let mut bench =
        Bench::confirmed(with_pf().with(|parameters| parameters.heartbeat_interval = None), 2, ms(100));
    let start = bench.now;
    bench.send(1, 1452);
    bench.until(start + ms(2000));
    let paths: Vec<u16> = bench.loads().iter().map(|load| load.1).collect();
    assert_eq!(paths, [0, 1, 0]);
    let failing = (PathState::PotentiallyFailed, 1);
    assert_eq!([0, 1].map(|path| (bench.view(path).state, bench.view(path).errors)), [failing; 2]);
}

/// Without heartbeats a path that fails is not asked, and a question of the user's is asked once.
//= rfc7829#section-3.2
#[test]
fn without_heartbeats_nothing_is_asked() {
    let mut bench =
        Bench::confirmed(with_pf().with(|parameters| parameters.heartbeat_interval = None), 2, ms(100));
    bench.send(1, 1452);
    bench.pass(ms(1000));
    bench.sack(1, &[]);
    assert_eq!(bench.view(0).state, PathState::PotentiallyFailed);
    assert!(bench.heartbeats().is_empty());
    assert!(bench.end.heartbeat(bench.now, bench.id, PathId(0)));
    bench.drain();
    bench.pass(ms(60_000));
    assert_eq!((bench.heartbeats().len(), bench.view(0).errors), (1, 2));
}

/// Every path inactive, Path.Max.Retrans 0. The alternate has lost two heartbeats (0 to 1 s, 1 to 3 s; its RTO
/// is 4 s then) when data leaves on the primary at 3 s. T3 at 4 s: one error there, two on the alternate:
/// the primary again. T3 at 6 s: two each: the other. At 10 s it has three: the primary; at 14 s three each. Where
/// no path is potentially failed, all stays on the path that has carried it.
//= rfc7829#section-4.1
#[test]
fn in_dormancy_the_path_with_the_fewest_errors_goes_on() {
    let carried = |pf_max_retrans| {
        let config = era("rfc9260").with(|parameters| {
            parameters.pf_max_retrans = pf_max_retrans;
            parameters.path_max_retrans = 0;
            parameters.association_max_retrans = 100;
            parameters.heartbeat_interval = None;
        });
        let mut bench = Bench::confirmed(config, 2, ms(100));
        let start = bench.now;
        for at in [0, 1000] {
            bench.until(start + ms(at));
            assert!(bench.end.heartbeat(bench.now, bench.id, PathId(1)));
            bench.drain();
        }
        bench.until(start + ms(3000));
        bench.send(1, 1452);
        bench.until(start + ms(14_000));
        assert!(bench.paths().iter().all(|path| path.state == PathState::Inactive));
        let loads = bench.loads();
        loads.into_iter().map(|(at, path, _)| (at - 100, path)).collect::<Vec<_>>()
    };
    assert_eq!(carried(Some(0)), [(3000, 0), (4000, 0), (6000, 1), (10_000, 0), (14_000, 1)]);
    assert_eq!(carried(None), [(3000, 0), (4000, 0), (6000, 0), (10_000, 0)]);
}

/// Errors of an inactive path are counted up to ten times those that made it so: 4 and 40.
//= rfc7829#section-4.1
#[test]
fn errors_of_inactive_paths_are_counted_further() {
    let config = with_pf().with(|parameters| {
        parameters.rto_max = ms(1000);
        parameters.association_max_retrans = 1000;
    });
    let mut bench = Bench::new(config, 1);
    bench.send(1, 1452);
    bench.pass(ms(20_000));
    assert_eq!((bench.view(0).state, bench.view(0).errors > 4), (PathState::Inactive, true));
    bench.pass(ms(100_000));
    assert_eq!(bench.view(0).errors, 40);
}

/// A primary that fails at 1 s, has lost two heartbeats at 3 and 7 s and answers at 7.1 s. With a PSMR of 0 the first
/// error makes the alternate the primary, with 2 the third, with 3 none: data returns.
//= rfc7829#section-5
#[test]
fn the_primary_is_switched_over() {
    for (limit, at) in [(Some(0), Some(1000)), (Some(2), Some(7000)), (Some(3), None), (None, None)] {
        let config = with_pf().with(|parameters| parameters.primary_switchover_max_retrans = limit);
        let mut bench = Bench::confirmed(config, 2, ms(100));
        let start = bench.now;
        bench.send(1, 1452);
        for ms_after in [999, 1000, 6999, 7000] {
            bench.until(start + ms(ms_after));
            assert_eq!(bench.view(1).primary, at.is_some_and(|at| at <= ms_after), "{limit:?} {ms_after}");
            // The alternate has carried it in time.
            if ms_after == 1000 {
                bench.sack(1, &[]);
            }
        }
        bench.until(start + ms(7100));
        bench.answer_heartbeats(|path| path == 0);
        assert_eq!(bench.view(0).state, PathState::Active);
        bench.loads();
        bench.send(1, 1452);
        assert_eq!(bench.loads()[0].1, u16::from(at.is_some()), "{limit:?}");
    }
}

/// A limit below the one at which data leaves the path is refused; equal to it is not.
//= rfc7829#section-5
#[test]
fn a_switchover_before_the_failure_is_refused() {
    let check = |pf_max_retrans, limit| {
        let addresses = crate::support::at(0, 1, &era("rfc9260")).addresses;
        let config = with_pf().with(|parameters| {
            parameters.pf_max_retrans = pf_max_retrans;
            parameters.primary_switchover_max_retrans = Some(limit);
        });
        Config { addresses, ..config }.check().map_err(|error| error.key)
    };
    let refused = Err("primary_switchover_max_retrans");
    assert_eq!([check(Some(1), 0), check(Some(1), 1)], [refused, Ok(())]);
    assert_eq!([check(None, 2), check(None, 3)], [refused, Ok(())]);
}

/// A path becomes inactive before it is potentially failed, if the two limits are equal: a setting without effect.
//= rfc7829#section-3.2
#[test]
fn a_limit_that_is_never_reached_is_warned_of() {
    let warned = |failing, inactive| {
        let config = with_pf().with(|parameters| {
            (parameters.pf_max_retrans, parameters.path_max_retrans) = (failing, inactive);
        });
        config.warnings().iter().map(|warning| warning.key).collect::<Vec<_>>()
    };
    assert!(warned(Some(2), 3).is_empty() && warned(None, 0).is_empty());
    assert_eq!([warned(Some(3), 3), warned(Some(0), 0)], [["pf_max_retrans"]; 2]);
}

/// Path 0 is potentially failed since its T3-rtx expired. The policy `same` names it for the retransmission, or not.
//= rfc7829#section-3.2
#[test]
fn failing_paths() {
    for (choice, path) in [("avoided", 1), ("named", 0)] {
        let mut config = era("rfc9260").with(|parameters| parameters.heartbeat_interval = None);
        config.pf_max_retrans = Some(0);
        config.timeout = PolicySpec::named("same");
        config.rules.choose("failing_paths", choice).expect("a rule");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(1, FULL);
        bench.loads();
        bench.pass(ms(1000));
        assert_eq!(bench.view(0).state, PathState::PotentiallyFailed);
        assert_eq!(bench.loads(), [(1000, path, vec![1])], "{choice}");
    }
}

/// T3-rtx makes path 0 potentially failed, and expires there again. A heartbeat precedes the first retransmission, or
/// follows each.
//= rfc7829#section-3.2
#[test]
fn heartbeats_of_a_failing_path_may_follow_each_timeout() {
    let [data, heartbeat] = [Purpose::Data(Why::Timeout), Purpose::Heartbeat];
    for (choice, purposes) in
        [("next-interval", [heartbeat, data].as_slice()), ("at-once", [data, heartbeat].as_slice())]
    {
        let mut config = era("rfc9260");
        config.pf_max_retrans = Some(0);
        config.timeout = PolicySpec::named("same");
        config.rules.choose("failing_paths", "named").expect("a rule");
        config.rules.choose("lost_heartbeat", choice).expect("a rule");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(1, FULL);
        let since = bench.sent.len();
        bench.pass(ms(1100));
        let sent: Vec<Purpose> = bench.sent[since..].iter().map(|(.., reason)| reason.purpose).collect();
        assert_eq!(sent, purposes, "{choice}");
    }
}

/// T3-rtx of path 0 expires, and TSN 1 goes again there, with TSN 2 if both fit a packet. An acknowledgement clears the
/// failure. In era `ns2` the Cumulative TSN Ack clears it only for a chunk that was sent once and is not marked; a Gap
/// Ack Block if one of the two is true.
//= rfc9260#section-8.2
#[test]
fn acknowledgements_that_clear_a_failing_path() {
    let cumulative = |tsn| (tsn, [].as_slice());
    let gap = (0, [(2, 2)].as_slice());
    for (name, size, (tsn, runs), clears) in [
        ("rfc9260", FULL, cumulative(1), true),
        ("ns2", FULL, cumulative(1), false),
        ("ns2", FULL, cumulative(2), false),
        ("ns2", FULL, gap, true),
        ("ns2", 100, gap, true),
    ] {
        let mut config = era(name).with(|parameters| parameters.heartbeat_interval = None);
        config.pf_max_retrans = Some(0);
        config.timeout = PolicySpec::named("same");
        config.rules.choose("failing_paths", "named").expect("a rule");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(2, size);
        bench.pass(ms(1000));
        assert_eq!(bench.view(0).state, PathState::PotentiallyFailed);
        bench.sack(tsn, runs);
        let state = if clears { PathState::Active } else { PathState::PotentiallyFailed };
        assert_eq!(bench.view(0).state, state, "{name}, {size} B, {tsn} and {runs:?}");
    }
}
