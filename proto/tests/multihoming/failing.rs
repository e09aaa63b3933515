//! Potentially failed paths (RFC 7829).

use anabranch_proto::{Config, Event, PathId, PathState, Time};

use crate::support::bench::{Bench, era, ms};

fn with_pf() -> Config {
    Config { pf_max_retrans: Some(0), path_max_retrans: 3, ..era("rfc9260") }
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

/// An acknowledgement of data that was sent twice says nothing for certain; one of data sent once does. With no
/// active path left, new data takes the potentially failed one.
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
    alone.sack(1, &[]);
    assert_eq!(alone.view(0).state, PathState::PotentiallyFailed, "sent twice, if on one path");
    alone.send(1, 1452);
    alone.sack(2, &[]);
    assert_eq!((alone.view(0).state, alone.view(0).errors), (PathState::Active, 0));
}
