//! Timestamps: what is offered, what packets carry, and which chunks measure the round trip.

use anabranch_proto::wire::chunk::{Data, Sack, Timestamp};
use anabranch_proto::wire::{Chunk, Param};
use anabranch_proto::{Config, Extensions, PolicySpec, Ssn, Tsn};
use bytes::Bytes;
use smallvec::SmallVec;

use crate::support::bench::{Bench, at_ms, era, ms};

/// The chunk type by which it is offered.
const TIMESTAMP: u8 = 144;
/// User bytes that fill a packet of 1,500 bytes beside a TIMESTAMP of 12.
const FULL: usize = 1440;

fn offering() -> Config {
    let extensions = Extensions { timestamps: true, ..Extensions::default() };
    let mut config = Config { extensions, fast: PolicySpec::named("alternate"), ..era("rfc9260") };
    config.parameters.heartbeat_max_burst = 9;
    config
}

/// A peer that lists these chunk types in Supported Extensions.
fn bench(types: &'static [u8]) -> Bench {
    let mut bench =
        Bench::with(offering(), 2, |_| vec![Param::SupportedExtensions(Bytes::from_static(types))]);
    bench.pass(ms(100));
    bench.answer_heartbeats(|_| true);
    bench.sent.clear();
    bench
}

/// The stamps that were sent.
fn stamps(bench: &mut Bench) -> Vec<Timestamp> {
    bench.take(|chunk| if let Chunk::Timestamp(stamp) = chunk { Some(*stamp) } else { None })
}

/// A SACK of all up to `cumulative`, and of what is beyond the gap behind it, with this echo.
fn sack(cumulative: u32, beyond: Option<u16>, echo: Option<u32>) -> [Chunk; 2] {
    let gaps = beyond.map(|at| anabranch_proto::wire::chunk::GapBlock { start: at, end: at });
    let sack = Sack {
        flags: 0,
        cumulative: Tsn(cumulative),
        a_rwnd: 1 << 20,
        gaps: gaps.into_iter().collect(),
        duplicates: SmallVec::new(),
    };
    [Chunk::Sack(sack), Chunk::Timestamp(Timestamp { sent: None, echo })]
}

fn hear(bench: &mut Bench, chunks: [Chunk; 2]) {
    let tag = bench.tag;
    bench.hear_packet(0, tag, chunks);
}

/// What both ends list is used: a packet with DATA has 12 bytes for a TIMESTAMP, and windows count in units of 1,456.
#[test]
fn they_are_used_if_both_ends_list_them() {
    for (types, used) in [(&[TIMESTAMP] as &[u8], true), (&[132], false)] {
        let mut bench = bench(types);
        assert_eq!(bench.end.extensions(bench.id).timestamps, used);
        assert_eq!(bench.view(0).pmdcs, if used { 1456 } else { 1468 });
        bench.send(1, FULL);
        let sizes: Vec<_> = bench.sent.iter().map(|(_, packet, _)| packet.size()).collect();
        assert_eq!(sizes, [if used { 1480 } else { 1468 }]);
        assert_eq!(stamps(&mut bench).len(), usize::from(used));
    }
}

/// The chunk is lost and sent again on the other path at 1.1 s: RTO there is 1 s, doubled to 2 s by the timeout of 2.1
/// s. The SACK echoes that transmission, 50 ms after it: it measures that path. Without an echo, or with another,
/// nothing is measured (Karn).
//= rfc9260#section-6.3.1
#[test]
fn a_chunk_sent_again_measures_its_last_transmission() {
    for (wrong, srtt) in [(None, 93_750), (Some(1), 100_000)] {
        let mut bench = bench(&[TIMESTAMP]);
        bench.send(1, FULL);
        bench.until(at_ms(1150));
        let [first, again] = stamps(&mut bench)[..] else { panic!("sent twice") };
        assert_eq!(again.sent.unwrap().wrapping_sub(first.sent.unwrap()), 1_000_000, "microseconds");
        let echo = again.sent.map(|sent| sent.wrapping_add(wrong.unwrap_or(0)));
        hear(&mut bench, sack(1, None, echo));
        // 7/8 of the heartbeat's 100 ms and 1/8 of 50 ms.
        assert_eq!(bench.view(1).srtt.unwrap().as_micros(), srtt);
        assert_eq!(bench.view(0).rto, ms(2000), "the path of the first transmission stays backed off");
    }
}

/// Each chunk that left at the echoed time is a sample, others are none: a lie is as good as no echo.
#[test]
fn a_lie_measures_nothing() {
    let lies: [fn(u32) -> Option<u32>; 4] =
        [|_| None, |_| Some(0), |sent| Some(sent.wrapping_sub(1)), |sent| Some(!sent)];
    for (number, lie) in lies.into_iter().enumerate() {
        let mut bench = bench(&[TIMESTAMP]);
        bench.send(3, FULL);
        let sent = stamps(&mut bench)[0].sent.expect("a packet with DATA");
        bench.pass(ms(60));
        hear(&mut bench, sack(0, Some(2), lie(sent)));
        assert_eq!(bench.view(0).srtt, None, "lie {number}");
        hear(&mut bench, sack(1, None, Some(sent)));
        assert_eq!(bench.view(0).srtt, Some(ms(60)));
    }
}

/// Three chunks are only late: T3-rtx expires at 1.1 s, and the first is sent again. The SACK of 1.15 s
/// echoes the first transmission, so nothing was lost: the window is as before, and the other two are not sent again.
/// If it echoes the retransmission, or without the mechanism, the cut stays.
//= rfc4015#section-3.2
#[test]
fn spurious_losses() {
    for (choice, late, undone) in [("undo", true, true), ("undo", false, false), ("off", true, false)] {
        let mut bench = cautious(choice);
        bench.send(3, FULL);
        let before = bench.windows();
        bench.until(at_ms(1150));
        assert!(bench.windows() < before);
        let stamps = stamps(&mut bench);
        let [first, again] = [stamps[0], *stamps.last().expect("stamps")];
        bench.sent.clear();
        hear(&mut bench, sack(1, None, if late { first.sent } else { again.sent }));
        assert_eq!(bench.windows() == before, undone, "{choice} {late}: {:?}", bench.windows());
        let resent: Vec<u32> = bench.loads().into_iter().flat_map(|(_, _, tsns)| tsns).collect();
        assert_eq!(resent.is_empty(), undone, "{choice} {late}: {resent:?}");
        assert_eq!(bench.end.statistics(bench.now, bench.id).spurious_losses, u64::from(undone));
        if undone {
            assert_eq!(bench.view(0).srtt, Some(ms(1050)), "the late packet measures the path");
            assert_eq!(bench.view(0).flight, 2 * (FULL as u64 + 16));
        }
    }
}

/// With one missing report a fast retransmission follows when chunk 2 overtakes chunk 1.
#[test]
fn a_fast_retransmission_can_be_spurious() {
    for (choice, undone) in [("undo", true), ("off", false)] {
        let mut bench = cautious(choice);
        bench.send(3, FULL);
        let before = bench.windows();
        let first = stamps(&mut bench)[0];
        bench.pass(ms(60));
        hear(&mut bench, sack(0, Some(2), None));
        assert!(bench.windows().1 < before.1, "cut");
        bench.pass(ms(10));
        hear(&mut bench, sack(2, None, first.sent));
        assert_eq!(bench.windows().1 == before.1, undone, "{choice}");
    }
}

/// Chunk 4 is lost, and its retransmission is acknowledged. Then chunk 6 is late in Fast Recovery, which T3-rtx ends.
/// That was needless, so Fast Recovery goes on: the report of chunk 7 starts no other.
//= rfc9260#section-7.2.4
#[test]
fn a_spurious_timeout_does_not_end_fast_recovery() {
    for (late, recoveries) in [(true, 1), (false, 2)] {
        let mut bench = cautious("undo");
        bench.send(8, FULL);
        for tsn in 1..=3 {
            hear(&mut bench, sack(tsn, None, None));
        }
        hear(&mut bench, sack(3, Some(2), None));
        hear(&mut bench, sack(5, None, None));
        let stamps_before = stamps(&mut bench);
        let sixth = stamps_before[5];
        bench.pass(ms(1000));
        hear(&mut bench, sack(6, None, sixth.sent.filter(|_| late)));
        assert_eq!(bench.end.statistics(bench.now, bench.id).spurious_losses, u64::from(late));
        hear(&mut bench, sack(6, Some(2), None));
        assert_eq!(bench.end.statistics(bench.now, bench.id).fast_recoveries, recoveries);
    }
}

/// With timestamps, one missing report and this choice of `spurious_losses`.
fn cautious(choice: &str) -> Bench {
    let mut config = offering();
    config.mechanisms.choose("spurious_losses", choice).expect("a mechanism");
    config.rules.set_number("missing_reports", 1).expect("a rule");
    let mut bench =
        Bench::with(config, 1, |_| vec![Param::SupportedExtensions(Bytes::from_static(&[TIMESTAMP]))]);
    bench.pass(ms(100));
    bench.answer_heartbeats(|_| true);
    bench.sent.clear();
    bench
}

/// A SACK echoes the first packet since the last one, once.
#[test]
fn a_sack_echoes_the_first_packet_that_it_answers() {
    let mut bench = bench(&[TIMESTAMP]);
    let data = |tsn: u32| {
        let (ssn, payload) = (Ssn(tsn as u16 - 1), Bytes::from_static(b"some"));
        let (begin, end, unordered, immediate) = (true, true, false, false);
        Chunk::Data(Data {
            tsn: Tsn(tsn),
            stream: 0,
            ssn,
            ppid: 0,
            begin,
            end,
            unordered,
            immediate,
            payload,
        })
    };
    for (tsn, sent) in [(1, 70), (2, 80), (3, 90), (4, 100), (5, 110)] {
        hear(&mut bench, [data(tsn), Chunk::Timestamp(Timestamp { sent: Some(sent), echo: None })]);
    }
    let echoes: Vec<_> = stamps(&mut bench).into_iter().map(|stamp| stamp.echo).collect();
    assert_eq!(echoes, [Some(70), Some(80), Some(100)], "the first at once, then every second packet");
}
