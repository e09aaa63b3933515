//! Losses: how they are found, what they cut, and what they let go.

use std::collections::BTreeMap;

use anabranch_proto::policy::Why;
use anabranch_proto::{Config, NoteKind, PolicySpec, Purpose};

use crate::ruled;
use crate::support::bench::{Bench, FULL, at_ms, era, ms, tsns};

/// The missing reports of each TSN, as offsets from `first`, as counted last.
fn reports(bench: &Bench, first: u32) -> BTreeMap<u32, u8> {
    let count = |kind: &NoteKind| match *kind {
        NoteKind::MissingReport { tsn, count } => Some((tsn.0 - first, count)),
        _ => None,
    };
    bench.notes.iter().filter_map(|note| count(&note.kind)).collect()
}

/// How many packets left so far for missing reports.
fn fast(bench: &Bench) -> usize {
    bench.sent.iter().filter(|(.., r)| r.purpose == Purpose::Data(Why::Missing)).count()
}

/// Window 20,552, 14 chunks. SACKs that newly acknowledge, by gaps: 3; 1; 4. Chunks 0 and 2 are missing. The
/// second SACK's highest newly acknowledged TSN is 1: no report for 2.
//= rfc9260#section-7.2.4
#[test]
fn missing_below() {
    for (choice, of_two) in [("highest-acked", 3), ("highest-newly-acked", 2)] {
        let mut bench = Bench::confirmed(ruled("missing_below", choice), 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.sack(a - 1, &[(a + 3, a + 3)]);
        assert_eq!(reports(&bench, a), BTreeMap::from([(0, 1), (1, 1), (2, 1)]), "{choice}");
        bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 3)]);
        bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 4)]);
        assert_eq!(reports(&bench, a), BTreeMap::from([(0, 3), (1, 1), (2, of_two)]), "{choice}");
    }
}

/// `missing_below` by exit points: chunk 0 is fast-retransmitted with the exit point a+13, all else but 2 and 5
/// arrives, and the SACK that acknowledges 0, which is below the exit point, reports 2 and 5: their second report,
/// whether the highest TSN that it newly acknowledges is above them or not.
#[test]
fn missing_below_an_exit_point() {
    for (choice, of_five) in [("highest-newly-acked-yet", 1), ("exit-point", 2)] {
        let mut bench = Bench::confirmed(ruled("missing_below", choice), 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.sack(a - 1, &[(a + 1, a + 1)]);
        bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 3)]);
        bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 4), (a + 6, a + 13)]);
        assert_eq!(reports(&bench, a)[&5], 1, "{choice}");
        bench.sack(a + 1, &[(a + 3, a + 4), (a + 6, a + 13)]);
        assert_eq!(reports(&bench, a)[&5], of_five, "{choice}");
    }
}

/// In Fast Recovery, a SACK that advances the point is a report for all that it shows missing: the above goes
/// on with chunk 0 acknowledged and nothing else new. Chunk 2 has its third.
//= rfc9260#section-7.2.4
#[test]
fn in_recovery_an_advance_reports_all_that_is_missing() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(14, FULL);
    bench.sack(a - 1, &[(a + 3, a + 3)]);
    bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 3)]);
    bench.sack(a - 1, &[(a + 1, a + 1), (a + 3, a + 4)]);
    bench.sack(a + 1, &[(a + 3, a + 4)]);
    assert_eq!(reports(&bench, a)[&2], 3);
}

/// So many reports and no fewer.
//= rfc9260#section-7.2.4
#[test]
fn missing_reports() {
    for needed in 1..=5 {
        let mut config = era("rfc9260");
        config.rules.set_number("missing_reports", needed).expect("a number");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        bench.send(20, FULL);
        for report in 1..=5 {
            bench.sack(0, &[(2, 1 + report)]);
            assert_eq!(fast(&bench), usize::from(report >= needed), "report {report} of {needed}");
        }
    }
}

/// Floors of 2 and 4 units under half a window of 4404 that grew with three SACKs to 8808.
//= rfc9260#section-7.2.3
#[test]
fn ssthresh_floor() {
    for (units, window) in [(2, 4404), (4, 5872)] {
        let mut config = era("rfc9260");
        config.rules.set_number("ssthresh_floor", units).expect("a number");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        bench.send(20, FULL);
        (2..=4).for_each(|last| bench.sack(0, &[(2, last)]));
        assert_eq!(bench.windows(), (window, window));
    }
}

/// 28 chunks from `a`, the highest a+27. `a` is found lost; then a+10; then, with `a` still missing, a+28.
/// Without Fast Recovery each cuts; RFC 4960's cuts once before its exit point a+27 is acknowledged; ns-2's
/// also for a+28, which lies above it.
//= rfc9260#section-7.2.4
#[test]
fn fast_recovery() {
    for (choice, cuts) in [("none", 3), ("until-exit", 1), ("once-per-window", 2)] {
        let mut bench = Bench::confirmed(ruled("fast_recovery", choice), 1, ms(0));
        let a = bench.grow_to(41_000);
        bench.send(28, FULL);
        (1..=3).for_each(|n| bench.sack(a - 1, &[(a + 1, a + n)]));
        (11..=13).for_each(|n| bench.sack(a - 1, &[(a + 1, a + 9), (a + 11, a + n)]));
        bench.sack(a - 1, &[(a + 1, a + 9), (a + 11, a + 27)]);
        bench.send(6, FULL);
        (29..=31).for_each(|n| bench.sack(a - 1, &[(a + 1, a + 9), (a + 11, a + 27), (a + 29, a + n)]));
        assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, cuts, "{choice}");
    }
}

/// 14 chunks from `a` on. T3-rtx marks all of them and sends the first one again. Then SACKs that were under way report
/// `a` + 1 missing three times, before it is sent again: it is marked already, or it is marked for fast retransmission,
/// and the window is cut.
//= rfc9260#section-7.2.4
#[test]
fn timed_out() {
    for (choice, cuts) in [("ignored", 0), ("counted", 1)] {
        let mut config = ruled("timed_out", choice);
        // So `a`, which was sent again, is not marked.
        config.rules.choose("fast_retransmissions", "before-resending").expect("a rule");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.pass(ms(1100));
        assert_eq!(bench.timeouts().len(), 1);
        (11..=13).for_each(|n| bench.sack(a - 1, &[(a + 11, a + n)]));
        assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, cuts, "{choice}");
    }
}

/// ns-2's window is cut when any marked chunk is above the exit point: here `a`, found lost again, is below it, and `a`
/// + 28, found lost by the same SACK, is above.
//= rfc9260#section-7.2.4
#[test]
fn the_lowest_chunk_above_the_exit_point_cuts() {
    let mut config = ruled("fast_recovery", "once-per-window");
    config.rules.choose("fast_retransmissions", "again").expect("a rule");
    let mut bench = Bench::confirmed(config, 1, ms(0));
    let a = bench.grow_to(41_000);
    bench.send(28, FULL);
    (1..=3).for_each(|n| bench.sack(a - 1, &[(a + 1, a + n)]));
    bench.sack(a - 1, &[(a + 1, a + 27)]);
    bench.send(6, FULL);
    (29..=30).for_each(|n| bench.sack(a - 1, &[(a + 1, a + 27), (a + 29, a + n)]));
    assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, 1);
    bench.sack(a - 1, &[(a + 1, a + 27), (a + 29, a + 31)]);
    assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, 2);
}

/// T3-rtx marks 14 chunks and sends `a` again. SACKs that were under way acknowledge a + 5 to a + 7, so that the window
/// is cut: with `once-per-window` up to a + 7, the highest TSN that is not marked. Then a + 9 and more are
/// acknowledged: a + 8 is above that.
//= rfc9260#section-7.2.4
#[test]
fn the_exit_point_is_the_highest_unmarked_chunk() {
    for (choice, cuts) in [("until-exit", 1), ("once-per-window", 2)] {
        let mut config = ruled("fast_recovery", choice);
        config.rules.choose("timed_out", "counted").expect("a rule");
        config.rules.choose("on_marking", "one-packet").expect("a rule");
        config.rules.choose("send_on", "sack").expect("a rule");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.pass(ms(1100));
        (5..=7).for_each(|n| bench.sack(a - 1, &[(a + 5, a + n)]));
        (9..=11).for_each(|n| bench.sack(a - 1, &[(a + 5, a + 7), (a + 9, a + n)]));
        assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, cuts, "{choice}");
    }
}

/// Missing reports mark a + 1 to a + 10, and a + 1 leaves, before T3-rtx expires. Then a + 2 leaves for the one reason
/// or the other.
//= rfc9260#section-6.3.3
#[test]
fn t3_marks() {
    for (choice, why) in [("in-flight", Why::Missing), ("all", Why::Timeout)] {
        let mut config = era("ns2");
        config.rules.choose("t3_marks", choice).expect("a rule");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.sack(a, &[]);
        (11..=13).for_each(|n| bench.sack(a, &[(a + 11, a + n)]));
        bench.pass(ms(1100));
        bench.sack(a + 1, &[(a + 11, a + 13)]);
        let again = bench.sent.iter().rfind(|(_, packet, _)| tsns(packet) == [a + 2]).expect("it left");
        assert_eq!(again.2.purpose, Purpose::Data(why), "{choice}");
    }
}

/// Chunks a + 1 to a + 10 are marked, and a + 1 leaves. ns-2's module sends no others in answer to a SACK that is older
/// than an earlier one.
//= rfc9260#section-7.2.4
#[test]
fn old_sacks_release_no_marked_chunk() {
    let mut bench = Bench::confirmed(era("ns2"), 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(14, FULL);
    bench.sack(a, &[]);
    (11..=13).for_each(|n| bench.sack(a, &[(a + 11, a + n)]));
    assert_eq!(fast(&bench), 1);
    bench.sack(a - 1, &[]);
    assert_eq!(fast(&bench), 1);
    bench.sack(a, &[(a + 11, a + 13)]);
    assert!(fast(&bench) > 1);
}

/// Fast Recovery ends when the exit point is acknowledged; a loss after that cuts again.
/// 22,020/2 = 11,010; the SACK that ends it finds the window not full (13 chunks were acknowledged before);
/// 5,505 is below the floor.
//= rfc9260#section-7.2.4
#[test]
fn recovery_ends_at_its_exit_point() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(14, FULL);
    (1..=3).for_each(|n| bench.sack(a - 1, &[(a + 1, a + n)]));
    assert_eq!(bench.windows(), (11_010, 11_010));
    bench.sack(a - 1, &[(a + 1, a + 13)]);
    bench.sack(a + 13, &[]);
    let b = a + 14;
    bench.send(5, FULL);
    (1..=3).for_each(|n| bench.sack(b - 1, &[(b + 1, b + n)]));
    assert_eq!(bench.windows(), (5872, 5872));
}

/// A chunk fast-retransmitted and lost again: three more reports mark it again, or it waits for T3. By recovery,
/// reports count that acknowledge what was sent after it was marked: TSN 7 is the highest then, and 8, 9 and 10 mark
/// it.
//= rfc9260#section-7.2.4
#[test]
fn fast_retransmissions() {
    for (choice, last, times) in
        [("again", 7, 2), ("once", 10, 1), ("per-recovery", 9, 1), ("per-recovery", 10, 2)]
    {
        let mut bench = Bench::confirmed(ruled("fast_retransmissions", choice), 1, ms(0));
        bench.send(20, FULL);
        (2..=last).for_each(|last| bench.sack(0, &[(2, last)]));
        assert_eq!(fast(&bench), times, "{choice}");
        assert_eq!(bench.windows(), (5872, 5872), "a repetition cuts nothing: {choice}");
    }
}

/// Chunks of 1,468 bytes, the first is lost: of two, one report is all that comes; of three, the second report finds
/// all but one acknowledged; of four there are three reports, as usual. With more data to send there will be reports.
//= rfc5827#section-2.1
#[test]
fn early_retransmit() {
    for (choice, needed) in [("off", [0, 0, 3]), ("on", [1, 2, 3])] {
        for (outstanding, needed) in [2, 3, 4].into_iter().zip(needed) {
            let mut config = era("rfc9260");
            config.mechanisms.choose("early_retransmit", choice).expect("a mechanism");
            let mut bench = Bench::confirmed(config, 1, ms(0));
            let a = bench.grow_to(8000);
            bench.send(outstanding, FULL);
            let reports = 1..outstanding as u32;
            let first = reports.into_iter().find(|report| {
                bench.sack(a - 1, &[(a + 1, a + report)]);
                fast(&bench) > 0
            });
            assert_eq!(first.unwrap_or(0), needed, "{choice}: {outstanding} outstanding");
        }
    }
    let mut config = era("rfc9260");
    config.mechanisms.choose("early_retransmit", "on").expect("a mechanism");
    let mut bench = Bench::confirmed(config, 1, ms(0));
    bench.send(9, FULL);
    bench.sack(0, &[(2, 2)]);
    assert_eq!(fast(&bench), 0, "there is more to send");
}

/// Seven chunks; 1 and 2 are lost and marked by the same SACK, which cuts the window to 5872 with 6 and 7 in
/// flight: there is room for both.
//= rfc9260#section-7.2.4
#[test]
fn on_marking_with_room() {
    for (choice, sent) in [("packet-then-room", 2), ("packet-on-entry", 2), ("one-packet", 1)] {
        let mut bench = Bench::confirmed(ruled("on_marking", choice), 1, ms(0));
        bench.send(7, FULL);
        (3..=5).for_each(|last| bench.sack(0, &[(3, last)]));
        assert_eq!(bench.windows(), (5872, 5872));
        assert_eq!(fast(&bench), sent, "{choice}");
    }
}

/// 28 chunks in a window that the first loss cuts to 21,286. The second is marked with a, a+8 … a+27 in
/// flight, 30,828 bytes: without room it leaves only by a right of its own, which RFC 9260 gives on entry alone.
//= rfc9260#section-7.2.4
#[test]
fn on_marking() {
    for (choice, sent) in [("packet-then-room", 2), ("packet-on-entry", 1), ("one-packet", 2)] {
        let mut bench = Bench::confirmed(ruled("on_marking", choice), 1, ms(0));
        let a = bench.grow_to(41_000);
        bench.send(28, FULL);
        (1..=3).for_each(|n| bench.sack(a - 1, &[(a + 1, a + n)]));
        assert_eq!((fast(&bench), bench.window()), (1, 21_286));
        (5..=7).for_each(|n| bench.sack(a - 1, &[(a + 1, a + 3), (a + 5, a + n)]));
        assert_eq!(fast(&bench), sent, "{choice}");
    }
}

/// A chunk taken back by the receiver is in flight again, with one report, and two more mark it.
//= rfc9260#section-6.2.1
#[test]
fn reneging_counts_as_one_report() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.send(20, FULL);
    bench.sack(0, &[(2, 3)]);
    let flight = bench.view(0).flight;
    bench.sack(1, &[(3, 3)]);
    // 1 is new; 2 is taken back; what the growing window let go besides is in flight, too.
    let sent = bench.loads().iter().flat_map(|l| l.2.clone()).max().expect("data");
    assert_eq!(bench.view(0).flight, 1468 * u64::from(sent - 2), "all but 1 and 3; it was {flight}");
    bench.sack(1, &[(3, 4)]);
    assert_eq!(fast(&bench), 0);
    bench.sack(1, &[(3, 5)]);
    assert_eq!(fast(&bench), 1);
}

/// T3 leaves one unit and half the window as ssthresh: 20,552/2. The first timeout is an RTO after the last
/// packet: the path has not been idle besides. The second, of the packet sent then: half of 1468 is below the
/// floor, unless nothing is cut any more at one unit.
//= rfc9260#section-7.2.3
//= rfc9260#section-6.3.3
#[test]
fn t3_cut() {
    for (choice, second) in [("always", 5872), ("above-unit", 10_276)] {
        let mut bench = Bench::confirmed(ruled("t3_cut", choice), 1, ms(0));
        bench.grow_to(20_000);
        bench.send(14, FULL);
        bench.until(at_ms(1000));
        assert_eq!(bench.windows(), (1468, 10_276), "{choice}");
        bench.until(at_ms(3000));
        assert_eq!(bench.windows(), (1468, second), "{choice}");
    }
}

/// Half a window of 4404 is below two units, 2936, and below four.
//= rfc9260#section-7.2.3
#[test]
fn t3_floor() {
    for (choice, ssthresh) in [("as-any-loss", 5872), ("two", 2936)] {
        let mut bench = Bench::confirmed(ruled("t3_floor", choice), 1, ms(0));
        bench.send(3, FULL);
        bench.until(at_ms(1000));
        assert_eq!(bench.windows(), (1468, ssthresh), "{choice}");
    }
}

/// After T3 the window is one unit and ssthresh seven. Six chunks acknowledged one by one make them equal. The next one
/// grows the window by one unit in slow start, and by nothing in congestion avoidance.
//= rfc9260#section-7.2.1
#[test]
fn at_threshold() {
    for (choice, grown) in [("slow-start", 1468), ("avoidance", 0)] {
        let mut bench = Bench::confirmed(ruled("at_threshold", choice), 1, ms(0));
        let first = bench.grow_to(20_000);
        bench.send(30, FULL);
        bench.until(at_ms(1000));
        assert_eq!(bench.windows(), (1468, 10_276), "{choice}");
        (0..6).for_each(|chunk| bench.sack(first + chunk, &[]));
        assert_eq!(bench.windows(), (10_276, 10_276), "{choice}");
        bench.sack(first + 6, &[]);
        assert_eq!(bench.windows(), (10_276 + grown, 10_276), "{choice}");
    }
}

/// After T3 no more than one packet is in flight until something is acknowledged: beyond a window of one unit,
/// a second packet leaves while flight is below it: 1468 of 1500, or 1016 of 1468.
//= rfc9260#section-7.2.3
#[test]
fn after_timeout() {
    let second = |choice, unit, size| {
        let mut config = ruled("after_timeout", choice).with(|parameters| parameters.rto_initial = ms(1000));
        config.rules.choose("window_unit", unit).expect("a rule");
        let mut bench = Bench::new(config, 1);
        bench.send(9, size);
        bench.loads();
        bench.until(at_ms(1000));
        let loads = bench.loads();
        assert_eq!(loads[0], (1000, 0, vec![1]));
        bench.sack(1, &[]);
        assert!(!bench.loads().is_empty(), "then slow start");
        loads.len() == 2
    };
    assert!(!second("one-packet", "mtu", FULL) && !second("one-packet", "pmdcs", 1000));
    assert!(second("window", "mtu", FULL) && second("window", "pmdcs", 1000));
    assert!(!second("window", "pmdcs", FULL));
}

/// What SRTT is, in microseconds, after TSN 2 was sent again while TSN 4 was timed.
///
/// 100 ms is measured on TSN 1. TSN 4, sent at 100 ms, is timed when the reports for TSN 2 cut the window, and
/// acknowledged at 300 ms: SRTT = 7/8·100 + 1/8·200 = 112.5 ms; or still 100 if the measurement was given up.
fn srtt_over_a_loss(config: Config) -> Option<u128> {
    let mut bench = Bench::new(config, 1);
    bench.send(7, FULL);
    bench.pass(ms(100));
    bench.sack(1, &[]);
    bench.sack(1, &[(3, 3)]);
    bench.sack(1, &[(3, 3), (5, 5)]);
    bench.sack(1, &[(3, 3), (5, 6)]);
    assert_eq!(fast(&bench), 1);
    bench.pass(ms(200));
    bench.sack(1, &[(3, 6)]);
    let view = bench.view(0);
    assert_eq!((view.chunks, view.fast_retransmissions, view.timeout_retransmissions), (8, 1, 0));
    bench.view(0).srtt.map(|s| s.as_micros())
}

/// The RTT measurement under way when Fast Retransmit cuts the window: kept, or given up. `another` keeps it as well;
/// it differs from `keep` only when new data leaves before the timed chunk is acknowledged, which does not happen here.
/// `suspend` gives it up unless such data leaves.
#[test]
fn rtt_on_cut() {
    for (choice, micros) in
        [("keep", 112_500), ("cancel", 100_000), ("another", 112_500), ("suspend", 100_000)]
    {
        let mut config = ruled("rtt_on_cut", choice);
        config.rules.choose("karn", "chunk").expect("a rule and its choice");
        assert_eq!(srtt_over_a_loss(config), Some(micros), "{choice}");
    }
}

/// SRTT, in microseconds: TSN a + 14 is timed when a window is cut. With `another_leaves`, a + 15 leaves then and is
/// timed too, before a + 14 is acknowledged at 80 ms and a + 15 at 160 ms. All else took no time.
fn srtt_after_a_cut(choice: &str, another_leaves: bool) -> Option<u128> {
    let mut config = ruled("rtt_on_cut", choice);
    config.rules.choose("karn", "chunk").expect("a rule and its choice");
    let mut bench = Bench::confirmed(config, 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(14, FULL);
    bench.sack(a, &[]);
    bench.send(1, FULL);
    (2..=4).for_each(|n| bench.sack(a, &[(a + 2, a + n)]));
    assert_eq!(fast(&bench), 1);
    bench.sack(a, &[(a + 2, a + 11)]);
    bench.send(usize::from(another_leaves), FULL);
    bench.pass(ms(80));
    bench.sack(a, &[(a + 2, a + 11), (a + 14, a + 14)]);
    if another_leaves {
        bench.pass(ms(80));
        bench.sack(a, &[(a + 2, a + 11), (a + 14, a + 15)]);
    }
    bench.view(0).srtt.map(|srtt| srtt.as_micros())
}

/// `suspend`: a + 14 counts if a + 15 is being timed, an eighth of 80 ms; then a + 15 does not count. With `another`
/// both count, and with `cancel` only a + 15.
//= rfc9260#section-6.3.1
#[test]
fn suspended_measurements() {
    for (choice, alone, both) in [("cancel", 0, 20_000), ("another", 10_000, 28_750), ("suspend", 0, 10_000)]
    {
        assert_eq!(srtt_after_a_cut(choice, false), Some(alone), "{choice}");
        assert_eq!(srtt_after_a_cut(choice, true), Some(both), "{choice}");
    }
}

/// a + 2 measures 40 ms, by a Gap Ack Block, and a + 3 is timed. The Gap Ack Block is taken back, and comes again at 80
/// ms: with `suspend` a + 2 measures 80 ms then.
//= rfc9260#section-6.2.1
#[test]
fn a_measurement_counts_again_when_its_acknowledgement_does() {
    for (choice, micros) in [("cancel", 5000), ("suspend", 14_375)] {
        let mut bench = Bench::confirmed(ruled("rtt_on_cut", choice), 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(2, FULL);
        bench.sack(a, &[]);
        bench.send(1, FULL);
        bench.pass(ms(40));
        bench.sack(a, &[(a + 2, a + 2)]);
        bench.send(1, FULL);
        bench.sack(a, &[]);
        bench.pass(ms(40));
        bench.sack(a, &[(a + 2, a + 2)]);
        assert_eq!(bench.view(0).srtt.map(|srtt| srtt.as_micros()), Some(micros), "{choice}");
    }
}

/// The measurement of a chunk above one that is sent again: kept, or given up.
//= rfc9260#section-6.3.1
#[test]
fn karn() {
    for (choice, micros) in [("chunk", 112_500), ("chunk-or-below", 100_000)] {
        assert_eq!(srtt_over_a_loss(ruled("karn", choice)), Some(micros), "{choice}");
    }
}

/// Without Karn's rule a chunk that was sent at 0 s and, after T3-rtx, at 1.0 s on the other path, measures there the
/// 50 ms to its SACK, an eighth of which moves the 0 ms of the heartbeat; with it nothing.
//= rfc9260#section-6.3.1
#[test]
fn karn_off_measures_a_chunk_sent_again() {
    for (choice, srtt) in [("chunk", 0), ("off", 6250)] {
        let mut bench = Bench::confirmed(ruled("karn", choice), 2, ms(0));
        bench.send(1, FULL);
        bench.until(at_ms(1050));
        bench.sack(1, &[]);
        assert_eq!(bench.view(1).srtt.map(|srtt| srtt.as_micros()), Some(srtt), "{choice}");
    }
}

/// T3 of the first path while its loss is repaired on the second.
///
/// TSN 1 is marked at 100 ms and leaves on the alternate: 5 and 6 remain on the first path, whose T3 starts
/// anew with 5 as its earliest: 1100 ms. At 200 ms the point passes 1 (on the alternate) and 2 to 4
/// (acknowledged by gaps before): not the earliest of the first path, but chunks of it: 1200 ms.
//= rfc9260#section-6.3.2
#[test]
fn t3_restart() {
    for (choice, t3) in [("earliest", 1100), ("any-cumulative", 1200)] {
        let config = Config { fast: PolicySpec::named("alternate"), ..ruled("t3_restart", choice) };
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(6, FULL);
        bench.pass(ms(100));
        (2..=4).for_each(|last| bench.sack(0, &[(2, last)]));
        assert_eq!(bench.loads().last(), Some(&(100, 1, vec![1])));
        bench.pass(ms(100));
        bench.sack(4, &[]);
        bench.until(at_ms(1500));
        assert_eq!(bench.timeouts()[0], (at_ms(t3), bench.view(0).id), "{choice}");
    }
}

/// Sixty SACKs of one system call, of which each is one missing report: whether the endpoint is drained after every
/// one or after the last, the same chunks are found missing, and each is fast-retransmitted once. (RFC 2960 lets a
/// chunk go again after four reports more: there it counts whether it has left in between.)
//= rfc9260#section-7.2.4
#[test]
fn a_batch_of_sacks_gives_the_same_fast_retransmissions() {
    // 2 and 9 of 62 are lost: every later chunk that arrives is reported by a SACK of its own.
    let arrived: Vec<(u32, Vec<(u32, u32)>)> = (3..=62)
        .filter(|tsn| *tsn != 9)
        .map(|tsn| (1, if tsn < 9 { vec![(3, tsn)] } else { vec![(3, 8), (10, tsn)] }))
        .collect();
    let sacks: Vec<_> = arrived.iter().map(|(cumulative, runs)| (*cumulative, &runs[..])).collect();
    for name in ["rfc4960", "rfc9260"] {
        let [each, last] = [true, false].map(|drain_each| {
            let mut bench = Bench::new(era(name), 1);
            let first = bench.grow_to(62 * 1468);
            bench.send(62, FULL);
            bench.loads();
            let shifted: Vec<(u32, Vec<(u32, u32)>)> = sacks
                .iter()
                .map(|(_, runs)| (first, runs.iter().map(|(a, b)| (a + first - 1, b + first - 1)).collect()))
                .collect();
            let shifted: Vec<_> = shifted.iter().map(|(cumulative, runs)| (*cumulative, &runs[..])).collect();
            bench.batch(&shifted, drain_each);
            let again = bench.loads().into_iter().flat_map(|load| load.2).filter(|tsn| *tsn < first + 62);
            let mut again: Vec<u32> = again.map(|tsn| tsn - first + 1).collect();
            again.sort_unstable();
            (again, bench.view(0).fast_retransmissions, bench.windows())
        });
        assert_eq!(each.0, [2, 9], "{name}");
        assert_eq!(each, last, "{name}");
    }
}
