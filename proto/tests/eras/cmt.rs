//! Concurrent multipath transfer: each mechanism alone, its choices compared, and what `cmt` makes of them.

use anabranch_proto::policy::Why;
use anabranch_proto::{Config, NoteKind, PolicySpec, Purpose};

use crate::support::bench::{Bench, FULL, chunk, ms};

/// An era with `cmt`, and one mechanism or rule of it changed.
fn cmt(name: &str, key: &str, choice: &str) -> Config {
    let mut config = Config::era(name).expect("an era").with_cmt();
    config.heartbeat_jitter = false;
    let set = config.mechanisms.choose(key, choice).or_else(|_| config.rules.choose(key, choice));
    set.expect("a mechanism or a rule, and its choice");
    config
}

/// Two paths that answer after 100 ms, and 40 full messages. In era `ns2` each carries three chunks at first: 1, 2, 3
/// on the first path, 4, 5, 6 on the second.
fn bench(config: Config) -> Bench {
    let mut bench = Bench::confirmed(config, 2, ms(100));
    bench.send(40, FULL);
    bench
}

/// The TSNs sent on each path since this was asked last.
fn sent(bench: &mut Bench) -> [Vec<u32>; 2] {
    let mut by_path = [Vec::new(), Vec::new()];
    for (_, path, tsns) in bench.loads() {
        by_path[usize::from(path)].extend(tsns);
    }
    by_path
}

/// The last count of missing reports of a chunk.
fn reports(bench: &Bench, tsn: u32) -> u8 {
    let count = |kind: &NoteKind| match *kind {
        NoteKind::MissingReport { tsn: of, count } if of.0 == tsn => Some(count),
        _ => None,
    };
    bench.notes.iter().rev().find_map(|note| count(&note.kind)).unwrap_or(0)
}

fn fast(bench: &Bench) -> usize {
    bench.sent.iter().filter(|(.., r)| r.purpose == Purpose::Data(Why::Missing)).count()
}

/// New data takes both paths, each up to its window, and the turn goes on with the path after the last.
#[test]
fn new_data_takes_both_paths_in_turn() {
    let mut bench = bench(cmt("ns2", "sfr", "on"));
    assert_eq!(sent(&mut bench), [vec![1, 2, 3], vec![4, 5, 6]]);
    bench.sack(1, &[(4, 4)]);
    let [first, second] = sent(&mut bench);
    assert_eq!((first.first(), second.last()), (Some(&7), Some(&10)), "{first:?} {second:?}");
}

/// Chunk 1 is on the first path. SACKs of chunks on the second are no reports of it, unless all paths count as one.
#[test]
fn sfr() {
    for (choice, expected) in [("on", 0), ("off", 3)] {
        let mut bench = bench(cmt("ns2", "sfr", choice));
        for last in 4..=6 {
            bench.sack_of(1, 0, &[(4, last)]);
        }
        assert_eq!((reports(&bench, 1), fast(&bench) > 0), (expected, expected >= 3), "{choice}");
    }
}

/// Chunk 1 is lost, 4 arrives: the second path's own point moves, so that its window grows though the Cumulative TSN
/// Ack Point stands. Chunk 5 before 4 moves no point.
#[test]
fn cuc() {
    for (choice, grows) in [("off", false), ("v1", true), ("v2", true)] {
        let mut config = cmt("ns2", "cuc", choice);
        config.mechanisms.choose("growth_flight", "as-counted").expect("a mechanism");
        let mut bench = bench(config);
        let before = bench.view(1).window;
        bench.sack(0, &[(5, 5)]);
        assert_eq!(bench.view(1).window, before, "{choice}: chunk 4 is still missing");
        bench.sack(0, &[(4, 5)]);
        assert_eq!(bench.view(1).window > before, grows, "{choice}");
    }
}

/// Chunk 4 is lost on the second path and sent again on the first, where chunk 1 is missing. Its acknowledgement moves
/// the first path's point for chunks sent again, which only `v2` has.
#[test]
fn in_v2_chunks_sent_again_have_a_point_of_their_own() {
    for (choice, grows) in [("v1", false), ("v2", true)] {
        let mut config = cmt("ns2", "cuc", choice);
        let set = [("growth_flight", "as-counted"), ("recovery", "association")];
        set.iter().for_each(|(key, choice)| config.mechanisms.choose(key, choice).expect("a mechanism"));
        config.rules.choose("on_marking", "packet-then-room").expect("a rule");
        config.rules.set_number("missing_reports", 1).expect("a number");
        config.fast = PolicySpec::named("alternate");
        let mut bench = bench(config);
        sent(&mut bench);
        bench.sack_of(1, 0, &[(5, 5)]);
        assert_eq!(sent(&mut bench)[0], [4], "{choice}");
        let before = bench.view(0).window;
        bench.sack_of(1, 0, &[(4, 5)]);
        assert_eq!(bench.view(0).window > before, grows, "{choice}");
    }
}

/// One SACK of two packets is two reports with DAC, one without. A SACK that says 0 is one, or none where 0 is 0.
/// A gap makes the receiver acknowledge at once without DAC, every second packet with it.
#[test]
fn dac() {
    for (choice, of_two, of_none) in [("off", 1, 1), ("on", 2, 1), ("literal", 2, 0)] {
        let mut two = bench(cmt("ns2", "dac", choice));
        two.sack_of(2, 0, &[(3, 3)]);
        assert_eq!(reports(&two, 2), of_two, "{choice}");
        let mut none = bench(cmt("ns2", "dac", choice));
        none.sack_of(0, 0, &[(3, 3)]);
        assert_eq!(reports(&none, 2), of_none, "{choice}");

        let mut receiver = Bench::confirmed(cmt("ns2", "dac", choice), 2, ms(100));
        receiver.data(1, FULL);
        receiver.data(2, FULL);
        receiver.sacks();
        receiver.data(4, FULL);
        let at_once = receiver.sacks().len();
        receiver.data(5, FULL);
        let packets: Vec<_> = receiver.sacks().iter().map(|(_, sack)| sack.packets()).collect();
        assert_eq!((at_once, packets), if choice == "off" { (1, vec![0]) } else { (0, vec![2]) }, "{choice}");
    }
}

/// A packet by each path: together they are two, and the SACK follows by the path of the second. Apart they are one and
/// one; a second packet of the second path brings the SACK there, and the first path's waits for its time.
#[test]
fn sack_return() {
    for (choice, after_two, after_three) in [("last-data", 1, 0), ("each-path", 0, 1)] {
        let mut bench = Bench::confirmed(cmt("ns2", "sack_return", choice), 2, ms(100));
        bench.data(1, FULL);
        bench.data(2, FULL);
        bench.sacks();
        bench.hear_on(0, chunk(3, FULL));
        bench.hear_on(1, chunk(4, FULL));
        assert_eq!(bench.sacks().len(), after_two, "{choice}");
        bench.hear_on(1, chunk(5, FULL));
        assert_eq!(bench.sacks().len(), after_three, "{choice}");
        bench.pass(ms(250));
        assert_eq!(bench.sacks().len(), 1, "{choice}: the one that waited");
    }
}

/// Losses on both paths, one after the other: each path cuts its own window, or the association cuts once.
#[test]
fn recovery() {
    for (choice, cuts) in [("path", true), ("association", false)] {
        let mut config = cmt("rfc9260", "recovery", choice);
        config.rules.choose("burst", "off").expect("a rule");
        let mut bench = bench(config);
        let [first, second] = sent(&mut bench);
        let (a, b) = (first[0], second[0]);
        bench.sack_of(3, a - 1, &[(a + 1, a + 2)]);
        let after_first = bench.view(1).window;
        assert!(fast(&bench) > 0, "{choice}: {a} is marked");
        bench.sack_of(1, a - 1, &[(a + 1, a + 2), (b + 1, b + 1)]);
        bench.sack_of(3, a - 1, &[(a + 1, a + 2), (b + 1, b + 2)]);
        let cut = bench.view(1).ssthresh < u64::MAX;
        assert_eq!(cut, cuts, "{choice}: window of path 2 {after_first} -> {}", bench.view(1).window);
    }
}

/// Max.Burst 2: a SACK lets two packets go, or two on each path.
#[test]
fn burst_count() {
    for (choice, most) in [("association", 2), ("path", 4)] {
        let mut config = cmt("rfc9260", "burst_count", choice);
        config.max_burst = 2;
        let mut bench = bench(config);
        sent(&mut bench);
        bench.pass(ms(100));
        bench.sack(bench.next_tsn() - 1, &[]);
        assert_eq!(bench.loads().len(), most, "{choice}");
    }
}

/// Chunks 1 and 4 go again on their own paths. The first path's socket is full: 4 waits behind 1, or does not.
#[test]
fn without_room() {
    for (choice, others) in [("wait", vec![]), ("next-chunk", vec![4])] {
        let mut config = cmt("ns2", "without_room", choice);
        config.rules.set_number("missing_reports", 1).expect("a number");
        config.fast = PolicySpec::named("same");
        let mut bench = bench(config);
        sent(&mut bench);
        bench.writable(0, false);
        bench.sack_of(1, 0, &[(2, 2), (5, 5)]);
        let again: Vec<u32> = sent(&mut bench)[1].iter().copied().filter(|tsn| *tsn <= 6).collect();
        assert_eq!(again, others, "{choice}");
    }
}

/// Small chunks 1 and 2, on different paths, are marked by a timeout of both: the packet of 1 takes 2 along, or only
/// what goes the same way.
#[test]
fn bundling() {
    for (choice, together) in [("following", true), ("same-path", false)] {
        let mut config = cmt("rfc9260", "bundling", choice);
        (config.fast, config.timeout) = (PolicySpec::named("same"), PolicySpec::named("same"));
        let mut bench = Bench::confirmed(config, 2, ms(100));
        bench.send(1, 100);
        bench.send(1, 100);
        let first = bench.loads();
        assert_eq!(first.iter().map(|load| load.1).collect::<Vec<_>>(), [0, 1]);
        bench.pass(ms(2000));
        let packets: Vec<_> = bench.loads().into_iter().map(|(_, _, tsns)| tsns).collect();
        assert_eq!(packets.contains(&vec![1, 2]), together, "{choice}: {packets:?}");
    }
}

/// Flight 4404 of 4380. The SACK that acknowledges 1 and 3 marks 2: without that chunk 2936 were in
/// flight, and the window does not grow.
#[test]
fn growth_flight() {
    for (choice, grows) in [("as-counted", true), ("unmarked", false)] {
        let mut config = cmt("ns2", "growth_flight", choice);
        config.rules.set_number("missing_reports", 1).expect("a number");
        let mut bench = bench(config);
        bench.sack_of(1, 1, &[(3, 3)]);
        let grown = bench.notes.iter().any(
            |note| matches!(note.kind, NoteKind::Window { path, cwnd, .. } if path.0 == 0 && cwnd > 4380),
        );
        assert_eq!(grown, grows, "{choice}");
    }
}

/// Everything in flight on the first path is marked and has no room: T3-rtx of the path runs on, or not.
#[test]
fn t3_flight() {
    for (choice, expires) in [("as-counted", true), ("unmarked", false)] {
        let mut config = cmt("ns2", "t3_flight", choice);
        config.heartbeat_interval = None;
        config.rules.set_number("missing_reports", 1).expect("a number");
        (config.fast, config.timeout) = (PolicySpec::named("same"), PolicySpec::named("same"));
        let mut bench = Bench::confirmed(config, 2, ms(100));
        bench.send(6, FULL);
        bench.writable(0, false);
        bench.sack_of(1, 1, &[(3, 6)]);
        bench.pass(ms(1500));
        assert_eq!(bench.timeouts().iter().any(|(_, path)| path.0 == 0), expires, "{choice}");
    }
}

/// T3-rtx marks 1, 2 and 3; 1 goes again. A loss on the second path cuts both windows; the first path's exit point is
/// 3, or 1 as the highest chunk not marked. Chunk 3 being marked still, the next loss cuts the first path again in the
/// latter case.
#[test]
fn exit_point() {
    for (choice, recoveries) in [("highest-sent", 1), ("highest-unmarked", 2)] {
        let mut config = cmt("ns2", "exit_point", choice);
        config.rules.set_number("missing_reports", 1).expect("a number");
        (config.fast, config.timeout) = (PolicySpec::named("same"), PolicySpec::named("same"));
        let mut bench = bench(config);
        bench.pass(ms(500));
        bench.sack_of(1, 0, &[(4, 4)]);
        sent(&mut bench);
        bench.pass(ms(700));
        assert_eq!(sent(&mut bench), [vec![1], vec![]], "{choice}");
        bench.sack_of(1, 0, &[(4, 4), (6, 6)]);
        bench.sack_of(1, 0, &[(4, 4), (6, 6), (8, 8)]);
        assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, recoveries, "{choice}");
    }
}

/// T3-rtx of the first path, to be sent again on the second, which is full: one packet goes whatever its window, or
/// waits.
#[test]
fn on_timeout() {
    for (choice, goes) in [("packet", true), ("room", false)] {
        let mut config = cmt("ns2", "on_timeout", choice);
        (config.fast, config.timeout) = (PolicySpec::named("alternate"), PolicySpec::named("alternate"));
        let mut bench = bench(config);
        bench.pass(ms(500));
        bench.sack(0, &[(4, 4)]);
        sent(&mut bench);
        bench.pass(ms(700));
        assert_eq!(bench.timeouts().len(), 1, "{choice}: only the first path");
        assert_eq!(sent(&mut bench)[1].contains(&1), goes, "{choice}");
    }
}

/// The first path fails and answers a heartbeat: what was sent there goes again at once, or when a SACK comes.
#[test]
fn revival() {
    for (choice, resends) in [("nothing", false), ("resend", true)] {
        let mut config = cmt("ns2", "revival", choice);
        config.pf_max_retrans = Some(0);
        let mut bench = bench(config);
        bench.pass(ms(1100));
        let before = bench.loads().len();
        assert!(before > 0);
        bench.answer_heartbeats(|_| true);
        assert_eq!(!bench.loads().is_empty(), resends, "{choice}");
    }
}

/// A SACK that another has overtaken does not name chunk 3 any more: it has one missing report, or none as before.
#[test]
fn taken_back() {
    for (choice, missing) in [("one", 2), ("as-before", 1)] {
        let mut bench = bench(cmt("ns2", "taken_back", choice));
        bench.sack_of(1, 1, &[(2, 2), (5, 5)]);
        bench.sack_of(1, 1, &[(4, 4)]);
        bench.sack_of(1, 1, &[(4, 4), (6, 6)]);
        assert_eq!(reports(&bench, 5), missing, "{choice}");
    }
}

/// A send buffer of three messages, all sent: the fourth waits for it, which the path of the lowest TSN is charged
/// with.
#[test]
fn a_full_send_buffer_is_charged_to_the_path_that_blocks() {
    let mut config = cmt("rfc9260", "sfr", "on");
    config.send_buffer = Some(3 * FULL as u64);
    let mut bench = Bench::confirmed(config, 2, ms(100));
    bench.send(3, FULL);
    assert!(bench.try_send(FULL).is_err());
    bench.drain();
    bench.pass(ms(70));
    let path = bench.end.blocking(bench.now, bench.id);
    assert_eq!(path, Some((anabranch_proto::PathId(0), ms(70))));
    bench.sack(3, &[]);
    assert_eq!(bench.end.statistics(bench.now, bench.id).blocked_send_buffer, ms(70));
    assert_eq!((bench.view(0).blocks, bench.view(1).blocks), (ms(70), ms(0)));
}

/// Path 2 was sent to last at 200 ms, which has been acknowledged, so that its window of 5848 is to decay at 1.2 s, to
/// max(2924, 4·1468). At that moment T3-rtx of path 1 expires, and 2 goes again on path 2.
#[test]
fn decay_tie() {
    for (choice, window) in [("decay", 5872), ("resend", 5848)] {
        let mut config = cmt("ns2", "decay_tie", choice);
        config.timeout = PolicySpec::named("alternate");
        let mut bench = Bench::confirmed(config, 2, ms(100));
        bench.send(10, FULL);
        bench.pass(ms(100));
        bench.sack_of(1, 1, &[(4, 6)]);
        bench.pass(ms(100));
        bench.sack_of(1, 1, &[(4, 6), (9, 10)]);
        sent(&mut bench);
        bench.pass(ms(950));
        assert_eq!((bench.timeouts().len(), sent(&mut bench)[1].first()), (1, Some(&2)), "{choice}");
        assert_eq!(bench.view(1).window, window, "{choice}");
    }
}

/// A SACK says that it acknowledges a packet; in ns-2's module it says so only if SACKs are delayed.
#[test]
fn a_literal_count_is_0_without_delayed_sacks() {
    for (choice, every, packets) in [("on", 1, 1), ("literal", 1, 0), ("literal", 2, 2)] {
        let mut config = cmt("ns2", "dac", choice);
        config.sack_every = every;
        let mut bench = Bench::confirmed(config, 2, ms(100));
        (1..=every).for_each(|tsn| bench.data(tsn, FULL));
        let told: Vec<u8> = bench.sacks().iter().map(|(_, sack)| sack.packets()).collect();
        assert_eq!(told, [packets], "{choice}, every {every}");
    }
}
