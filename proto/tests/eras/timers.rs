//! RTO and T3-rtx, to the nanosecond.

use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Heartbeat;
use anabranch_proto::{Config, Duration, Note, NoteKind, PathId, PolicySpec};

use crate::support::bench::{Bench, FULL, at_ms, era, ms};

/// Small bounds, so that formulas show.
fn unbounded() -> Config {
    era("rfc9260").with(|parameters| parameters.rto_min = ms(1))
}

fn rtt(bench: &Bench) -> (u64, u64, u64) {
    let nanos = |d: Duration| d.as_nanos() as u64;
    let view = bench.view(0);
    (view.srtt.map_or(0, nanos), nanos(view.rttvar), nanos(view.rto))
}

/// RTTs of 100, 200, 100 ms, in nanoseconds:
///
/// | SRTT | RTTVAR | RTO |
/// |---|---|---|
/// | 100 | 50 | 300 |
/// | 7/8·100 + 1/8·200 = 112.5 | 3/4·50 + 1/4·100 = 62.5 | 362.5 |
/// | 7/8·112.5 + 1/8·100 = 110.9375 | 3/4·62.5 + 1/4·12.5 = 50 | 310.9375 |
//= rfc9260#section-6.3.1
#[test]
fn rto_by_the_formulas() {
    let mut bench = Bench::new(unbounded(), 1);
    let expected = [
        (100, (100_000_000, 50_000_000, 300_000_000)),
        (200, (112_500_000, 62_500_000, 362_500_000)),
        (100, (110_937_500, 50_000_000, 310_937_500)),
    ];
    for (n, (time, values)) in expected.into_iter().enumerate() {
        bench.send(1, FULL);
        bench.pass(ms(time));
        bench.sack(n as u32 + 1, &[]);
        assert_eq!(rtt(&bench), values);
    }
    assert_eq!(bench.view(0).min_rtt, Some(ms(100)));
}

/// RTO.Min and RTO.Max bound what the formulas give: 3·10 ms, and 3·30 s.
//= rfc9260#section-6.3.1
#[test]
fn rto_has_bounds() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, FULL);
    bench.pass(ms(10));
    bench.sack(1, &[]);
    assert_eq!(bench.view(0).rto, ms(1000));
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.rto_initial = ms(60_000)), 1);
    bench.send(1, FULL);
    bench.pass(ms(30_000));
    bench.sack(1, &[]);
    assert_eq!(bench.view(0).rto, ms(60_000));
}

/// Two chunks a round trip: the first is timed, the second not. At 50 ms TSN 1 measures 50 ms; TSN 2, sent with
/// it, measures nothing at 90 ms.
//= rfc9260#section-6.3.1
#[test]
fn one_measurement_a_round_trip() {
    let mut bench = Bench::new(unbounded(), 1);
    bench.send(2, FULL);
    bench.pass(ms(50));
    bench.sack(1, &[]);
    bench.pass(ms(40));
    bench.sack(2, &[]);
    assert_eq!(rtt(&bench).0, 50_000_000);
}

/// Karn: a chunk sent twice measures nothing, whichever of the two is acknowledged. The next does, and the
/// doubled RTO collapses: 2 s, then 100 + 4·50 ms.
//= rfc9260#section-6.3.1
//= rfc9260#section-6.3.3
#[test]
fn retransmitted_chunks_are_not_timed() {
    let mut bench = Bench::new(unbounded(), 1);
    bench.send(1, FULL);
    bench.pass(ms(1010));
    bench.sack(1, &[]);
    assert_eq!(rtt(&bench), (0, 0, 2_000_000_000));
    bench.send(1, FULL);
    bench.pass(ms(100));
    bench.sack(2, &[]);
    assert_eq!(rtt(&bench), (100_000_000, 50_000_000, 300_000_000));
}

/// A fast retransmission is sent twice, too: TSN 1 was timed, and measures nothing at 300 ms.
//= rfc9260#section-6.3.1
#[test]
fn nor_are_fast_retransmissions() {
    let mut bench = Bench::new(unbounded(), 1);
    bench.send(4, FULL);
    bench.pass(ms(100));
    (2..=4).for_each(|last| bench.sack(0, &[(2, last)]));
    bench.pass(ms(200));
    bench.sack(4, &[]);
    assert_eq!(bench.view(0).srtt, None);
}

/// T3 at 1, 1 + 2, + 4, + 8, + 16, + 32, + 60, + 60 s: doubled up to RTO.Max.
//= rfc9260#section-6.3.3
#[test]
fn t3_doubles_up_to_rto_max() {
    let config = era("rfc9260").with(|parameters| {
        parameters.association_max_retrans = 100;
        parameters.path_max_retrans = 100;
    });
    let mut bench = Bench::new(config, 1);
    bench.send(1, FULL);
    bench.pass(ms(190_000));
    let times: Vec<_> = bench.timeouts().iter().map(|t| t.0).collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 123, 183].map(|s| at_ms(1000 * s)));
    let sent: Vec<u64> = bench.loads().iter().map(|l| l.0 / 1000).collect();
    assert_eq!(sent, [0, 1, 3, 7, 15, 31, 63, 123, 183], "one packet at each");
}

type Runs = &'static [(u32, u32)];

/// T3 runs from the first chunk sent while it was off (R1), from the SACK of the earliest (R3), not from that
/// of a later one, and is off when all is acknowledged (R2).
//= rfc9260#section-6.3.2
#[test]
fn t3_starts_restarts_and_stops() {
    let times = |sacks: &[(u64, u32, Runs)]| -> Vec<u64> {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.send(1, FULL);
        bench.pass(ms(100));
        bench.send(2, FULL);
        for (at, cumulative, gaps) in sacks {
            bench.until(at_ms(*at));
            bench.sack(*cumulative, gaps);
        }
        bench.until(at_ms(2000));
        bench.timeouts().iter().map(|t| t.0.as_nanos() / 1_000_000).collect()
    };
    assert_eq!(times(&[]), [1000]);
    assert_eq!(times(&[(300, 0, &[(2, 2)])]), [1000]);
    assert_eq!(times(&[(300, 1, &[])]), [1300]);
    assert_eq!(times(&[(300, 1, &[]), (500, 1, &[(3, 3)])]), [1300]);
    assert_eq!(times(&[(300, 3, &[])]), [0; 0]);
}

/// T3 restarts when the earliest chunk is retransmitted (§6.1): marked at 400 ms, it expires at 1400.
//= rfc9260#section-6.1
#[test]
fn t3_restarts_when_the_earliest_chunk_is_sent_again() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(4, FULL);
    bench.pass(ms(400));
    (2..=4).for_each(|last| bench.sack(0, &[(2, last)]));
    bench.until(at_ms(1500));
    assert_eq!(bench.timeouts(), [(at_ms(1400), bench.view(0).id)]);
}

/// TSN 1 is fast-retransmitted at 400 ms. It is alone in flight, or 5 is too. T3 expires an RTO after that, or goes on
/// from the beginning while 1 is alone.
//= rfc9260#section-7.2.4
#[test]
fn t3_resent() {
    for (choice, chunks, expiry) in
        [("restarts", 4, 1400), ("with-others", 4, 1000), ("restarts", 5, 1400), ("with-others", 5, 1400)]
    {
        let mut config = crate::ruled("t3_resent", choice);
        // A marked chunk keeps T3-rtx running.
        config.rules.choose("in_flight", "unacknowledged").expect("a rule");
        let mut bench = Bench::new(config, 1);
        bench.grow_to(8 * 1468);
        let begun = bench.now;
        let first = bench.next_tsn();
        bench.send(chunks, FULL);
        bench.pass(ms(400));
        (1..=3).for_each(|n| bench.sack(first - 1, &[(first + 1, first + n)]));
        bench.until(begun + ms(1500));
        assert_eq!(bench.timeouts(), [(begun + ms(expiry), bench.view(0).id)], "{choice}, {chunks} chunks");
    }
}

/// TSN 1, alone on the first path, is fast-retransmitted on the second at 400 ms, and a new chunk takes the first path.
/// T3 of the first path starts with the new chunk, or has gone on.
//= rfc9260#section-7.2.4
#[test]
fn t3_goes_on_without_chunks() {
    for (choice, expiry) in [("restarts", 1400), ("with-others", 1000)] {
        let mut config = crate::ruled("t3_resent", choice);
        config.rules.choose("in_flight", "unacknowledged").expect("a rule");
        config.fast = PolicySpec::named("alternate");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.grow_to(8 * 1468);
        let (begun, first) = (bench.now, bench.next_tsn());
        bench.send(4, FULL);
        bench.pass(ms(400));
        (1..=3).for_each(|n| bench.sack(first - 1, &[(first + 1, first + n)]));
        bench.send(1, FULL);
        bench.until(begun + ms(1395));
        let of_first: Vec<_> = bench.timeouts().into_iter().filter(|(_, path)| path.0 == 0).collect();
        let expected = if expiry < 1395 { vec![(begun + ms(expiry), PathId(0))] } else { vec![] };
        assert_eq!(of_first, expected, "{choice}");
    }
}

/// T3-rtx of two paths expires at 1 s. Together they release one packet, or each releases one.
//= rfc9260#section-6.3.3
#[test]
fn t3_together() {
    for (choice, packets) in [("at-once", 1), ("in-turn", 2)] {
        let mut config = era("ns2");
        config.rules.choose("t3_together", choice).expect("a rule");
        config.new_data = PolicySpec::named("round-robin");
        config.timeout = PolicySpec::named("same");
        let mut bench = Bench::confirmed(config, 2, ms(0));
        bench.send(6, FULL);
        let paths: std::collections::BTreeSet<u16> = bench.loads().iter().map(|load| load.1).collect();
        assert_eq!(paths.len(), 2);
        bench.until(at_ms(1001));
        assert_eq!((bench.timeouts().len(), bench.loads().len()), (2, packets), "{choice}");
    }
}

/// An answered heartbeat is a measurement, too, and ends a doubling.
//= rfc9260#section-8.3
#[test]
fn heartbeats_measure() {
    let config = unbounded().with(|parameters| parameters.heartbeat_interval = Some(ms(5000)));
    let mut bench = Bench::new(config, 1);
    bench.until(at_ms(6000));
    let sent = bench.heartbeats();
    // HB.interval and an RTO of 1 s after the beginning.
    assert_eq!((sent.len(), sent[0].0), (1, at_ms(6000)));
    bench.until(at_ms(6080));
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(sent[0].2.clone())));
    assert_eq!(rtt(&bench), (80_000_000, 40_000_000, 240_000_000));
    // The next: HB.interval and an RTO of 240 ms after this one. Nobody answers: twice 240 ms.
    bench.until(at_ms(11_239));
    assert!(bench.heartbeats().is_empty());
    bench.until(at_ms(11_240));
    assert_eq!(bench.heartbeats().len(), 1);
    bench.until(at_ms(11_480));
    assert_eq!((bench.view(0).rto, bench.view(0).errors), (ms(480), 1));
    // HB.interval and the doubled RTO after that one.
    bench.until(at_ms(11_240 + 5480));
    assert_eq!(bench.heartbeats().len(), 1);
}

/// An answer that nobody asked for, or that was changed, says nothing.
//= rfc9260#section-5.4
#[test]
fn a_heartbeat_ack_with_another_nonce_is_ignored() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    let (_, path, info) = bench.heartbeats().remove(0);
    assert_eq!(path, 1);
    let mut forged = info.to_vec();
    forged[15] ^= 1;
    for wrong in [forged, info[..15].to_vec(), vec![]] {
        bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(wrong)));
        assert!(bench.events.len() == 1, "only that it is up: {:?}", bench.events);
    }
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(info)));
    assert_eq!(bench.events.len(), 2);
}

/// Of three chunks a timeout marks all; each is sent again, and counted, once.
#[test]
fn retransmissions_after_a_timeout_are_counted() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(3, FULL);
    bench.until(at_ms(1000));
    let counts = |bench: &Bench| (bench.view(0).chunks, bench.view(0).timeout_retransmissions);
    assert_eq!(counts(&bench), (4, 1));
    bench.sack(1, &[]);
    assert_eq!((counts(&bench), bench.view(0).fast_retransmissions), ((6, 3), 0));
}

/// Era `ns2` counts marked chunks as in flight. T3-rtx of the second path has expired, and one of its three chunks went
/// to the first path, which then takes no more. The next SACK tells of the first path only and has no gaps. T3-rtx of
/// the second path runs again from then on, with twice the RTO.
#[test]
fn t3_runs_for_marked_chunks_from_the_next_sack_on() {
    let config = era("ns2").with(|parameters| parameters.heartbeat_interval = None);
    let mut bench = Bench::confirmed(config, 2, ms(100));
    bench.send(6, FULL);
    assert!(bench.end.set_primary(bench.now, bench.id, PathId(1)));
    bench.pass(ms(900));
    bench.sack(1, &[]);
    let loads = bench.loads();
    assert!(matches!(&loads[3..], [(1000, 1, _), (1000, 1, _), (1000, 1, _)]), "{loads:?}");
    bench.pass(ms(1050));
    assert_eq!(bench.timeouts(), [(at_ms(2000), PathId(1))]);
    assert_eq!(bench.loads(), [(2000, 0, vec![4])]);
    bench.writable(0, false);
    bench.notes.clear();
    bench.sack(2, &[]);
    let expires = |note: &Note| match note.kind {
        NoteKind::Timer { path: PathId(1), expires } => Some(expires),
        _ => None,
    };
    let expires: Vec<_> = bench.notes.iter().filter_map(expires).collect();
    assert_eq!(expires, [Some(at_ms(4050))]);
}
