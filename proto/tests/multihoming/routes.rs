//! Which path a retransmission takes: `same`, `alternate`, `timeout-alternate`.

use anabranch_proto::{Config, PolicySpec};

use crate::support::bench::{Bench, FULL, era, ms};

fn retransmit(route: &str) -> Config {
    let named = PolicySpec::named(route);
    Config { fast: named.clone(), timeout: named, ..era("rfc9260") }
        .with(|parameters| parameters.path_max_retrans = 20)
}

/// The path of the fast retransmission of TSN 1, three paths.
fn after_a_loss(route: &str) -> u16 {
    let mut bench = Bench::confirmed(retransmit(route), 3, ms(0));
    bench.send(9, FULL);
    bench.loads();
    (2..=4).for_each(|last| bench.sack(0, &[(2, last)]));
    let again = bench.loads().into_iter().find(|load| load.2 == [1]);
    again.expect("it is sent again").1
}

/// The paths that TSN 1 takes, timeout after timeout, three paths.
fn after_timeouts(route: &str) -> Vec<u16> {
    let mut bench = Bench::confirmed(retransmit(route), 3, ms(0));
    bench.send(1, FULL);
    bench.loads();
    bench.pass(ms(20_000));
    bench.loads().iter().map(|load| load.1).take(4).collect()
}

/// Fast retransmissions: to the path of the loss, or to the next one.
//= rfc9260#section-6.4
#[test]
fn one_loss() {
    assert_eq!(after_a_loss("same"), 0);
    assert_eq!(after_a_loss("timeout-alternate"), 0);
    assert_eq!(after_a_loss("alternate"), 1);
}

/// Timed-out chunks: again on the same, or on the next path each time, and around.
//= rfc9260#section-6.4
#[test]
fn timeouts() {
    assert_eq!(after_timeouts("same"), [0, 0, 0, 0]);
    assert_eq!(after_timeouts("timeout-alternate"), [1, 2, 0, 1]);
    assert_eq!(after_timeouts("alternate"), [1, 2, 0, 1]);
}

/// An alternate that is inactive, or not confirmed, is passed over; with no other, the same path serves.
//= rfc9260#section-6.4.1
#[test]
fn only_active_paths_are_alternates() {
    let mut bench =
        Bench::new(retransmit("alternate").with(|parameters| parameters.heartbeat_max_burst = 9), 3);
    bench.answer_heartbeats(|path| path == 2);
    bench.send(1, FULL);
    bench.loads();
    bench.pass(ms(1000));
    assert_eq!(bench.loads(), [(1000, 2, vec![1])]);
    let mut bench = Bench::new(retransmit("alternate"), 3);
    bench.send(1, FULL);
    bench.loads();
    bench.pass(ms(1000));
    assert_eq!(bench.loads(), [(1000, 0, vec![1])]);
}

/// `same`, when its path has become inactive: the next active one. Path.Max.Retrans = 0.
//= rfc9260#section-6.4.1
#[test]
fn the_same_path_only_while_it_is_active() {
    let config = retransmit("same").with(|parameters| parameters.path_max_retrans = 0);
    let mut bench = Bench::confirmed(config, 2, ms(0));
    bench.send(1, FULL);
    bench.loads();
    bench.pass(ms(1000));
    assert_eq!(bench.loads(), [(1000, 1, vec![1])]);
}

/// What is sent again on another path counts in flight there, and no more where it was.
//= rfc9260#section-6.4
#[test]
fn flight_moves_with_the_chunk() {
    let mut bench = Bench::confirmed(retransmit("alternate"), 2, ms(0));
    bench.send(3, FULL);
    assert_eq!((bench.view(0).flight, bench.view(1).flight), (4404, 0));
    bench.pass(ms(1000));
    assert_eq!((bench.view(0).flight, bench.view(0).marked, bench.view(1).flight), (0, 0, 4404));
    bench.sack(3, &[]);
    assert_eq!((bench.view(1).flight, bench.view(1).delivered), (0, 4404));
}

/// The SACK of data goes back to where the data came from.
//= rfc9260#section-6.4
#[test]
fn a_sack_goes_where_the_data_came_from() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(0));
    for path in [1, 0] {
        let tsn = 2 - path as u32;
        bench.hear_on(path, crate::support::bench::chunk(tsn, 100));
        bench.pass(ms(200));
        let to = bench.sent.iter().map(|(.., reason)| reason.path.expect("a path").0).next_back();
        assert_eq!((to, bench.sacks().len()), (Some(path as u16), 1));
    }
}
