//! What may leave, and when: room, marked chunks, bursts, what counts as in flight, closed windows.

use anabranch_proto::rules::Burst;
use anabranch_proto::{Config, PolicySpec};

use crate::ruled;
use crate::support::bench::{Bench, FULL, at_ms, era, ms};

/// Whether a chunk marked for retransmission counts against the peer's window.
///
/// T3 marks three chunks; their local address cannot send just now, so they stay marked. A SACK acknowledges
/// the last and announces 10,000 bytes: none of that is taken, or 2936 bytes are.
//= rfc9260#section-6.2.1
#[test]
fn in_flight() {
    for (choice, flight) in [("unmarked", 0), ("unacknowledged", 2936)] {
        let mut bench = Bench::confirmed(ruled("in_flight", choice), 1, ms(0));
        bench.send(3, FULL);
        bench.writable(0, false);
        bench.until(at_ms(1000));
        bench.a_rwnd = 10_000;
        bench.sack(0, &[(3, 3)]);
        assert_eq!((bench.view(0).flight, bench.view(0).marked), (0, 2936));
        assert_eq!(bench.peer_window(), 10_000 - flight, "{choice}");
    }
}

/// Two paths. T3 on the first marks 10 chunks; the alternate's window of 4404 admits three of them. New data
/// on the first, whose window is one chunk and empty: beside the marked ones, or only after them.
//= rfc9260#section-6.1
#[test]
fn new_data() {
    for (choice, new) in [("beside-marked", vec![11]), ("after-marked", vec![])] {
        let mut bench = Bench::confirmed(ruled("new_data", choice), 2, ms(0));
        let a = bench.grow_to(14_680);
        bench.send(10, FULL);
        bench.loads();
        bench.pass(ms(500));
        bench.send(20, FULL);
        bench.until(at_ms(1000));
        let loads = bench.loads();
        let on = |path| -> Vec<u32> {
            loads.iter().filter(|l| l.1 == path).flat_map(|l| l.2.iter().map(|tsn| tsn - a + 1)).collect()
        };
        assert_eq!(on(1), [1, 2, 3], "{choice}");
        assert_eq!(on(0), new, "{choice}");
    }
}

/// A message given while another is in flight and the window has room: it leaves at once, or for the next SACK.
#[test]
fn send_on() {
    for (choice, at_once) in [("room", vec![(100, 0, vec![2])]), ("sack", vec![])] {
        let mut bench = Bench::confirmed(ruled("send_on", choice), 1, ms(0));
        bench.send(1, FULL);
        assert_eq!(bench.loads(), [(0, 0, vec![1])], "{choice}: nothing was in flight");
        bench.pass(ms(100));
        bench.send(1, FULL);
        assert_eq!(bench.loads(), at_once, "{choice}");
        bench.pass(ms(100));
        bench.sack(1, &[]);
        let rest = if at_once.is_empty() { vec![(200, 0, vec![2])] } else { vec![] };
        assert_eq!(bench.loads(), rest, "{choice}");
    }
}

/// A right to send that could not be used is kept while nothing is in flight: no SACK would bring another.
#[test]
fn a_right_to_send_waits_for_room() {
    let mut bench = Bench::new(ruled("send_on", "sack"), 1);
    bench.writable(0, false);
    bench.send(1, FULL);
    bench.pass(ms(100));
    assert_eq!(bench.loads(), []);
    bench.writable(0, true);
    assert_eq!(bench.loads(), [(100, 0, vec![1])]);
}

/// How many packets of new data one SACK lets go: the window is 20,552, all 14 chunks are acknowledged at once
/// and 40 wait. Max.Burst is 4.
fn packets_an_event(scope: Burst) -> Vec<usize> {
    let mut config = era("rfc9260");
    config.rules.burst = scope;
    let mut bench = Bench::confirmed(config, 1, ms(0));
    let mut window = bench.window();
    while window < 20_000 {
        // One packet an event, so that nothing is held back here.
        let first = bench.next_tsn();
        for _ in 0..window.div_ceil(1468) {
            bench.send(1, FULL);
        }
        bench.sack(bench.next_tsn() - 1, &[]);
        assert!(bench.next_tsn() > first && bench.window() > window, "it is sent, and the window grows");
        window = bench.window();
    }
    bench.loads();
    let mut counts = Vec::new();
    bench.send(50, FULL);
    counts.push(bench.loads().len());
    for _ in 0..2 {
        bench.sack(bench.next_tsn() - 1, &[]);
        counts.push(bench.loads().len());
    }
    counts
}

/// Max.Burst limits each event's new packets, or it does not. Without: 14 for the call, and at each SACK of a
/// full window 14 + 1 and 14 + 2. Unarmed, ns-2's kind does not limit either.
//= rfc9260#section-6.1
#[test]
fn burst() {
    assert_eq!(packets_an_event(Burst::Always), [4, 4, 4]);
    assert_eq!(packets_an_event(Burst::Off), [14, 15, 16]);
    assert_eq!(packets_an_event(Burst::WhenArmed), [14, 15, 16]);
}

/// The burst that is armed: TSN `a` was fast-retransmitted; the SACK that acknowledges it cumulatively, with
/// everything else, lets 4 packets go and no more, the next as many as there is room for.
///
/// Window 20,552, 14 chunks, `a` lost: its reports come with the window full once: 22,020/2 = 11,010 when cut.
/// 11,010 admits 8 chunks. Armed: 4; the SACK of these finds flight (5872) below cwnd: no growth, and disarmed:
/// 8. Not armed: 8; that SACK finds 8·1468 = 11,744 ≥ 11,010 and grows to 12,478: 9.
#[test]
fn burst_when_armed() {
    for (scope, expected) in [("when-armed", [4, 8]), ("off", [8, 9])] {
        let mut bench = Bench::confirmed(ruled("burst", scope), 1, ms(0));
        let a = bench.grow_to(20_000);
        bench.send(14, FULL);
        (1..=3).for_each(|n| bench.sack(a - 1, &[(a + 1, a + n)]));
        assert_eq!(bench.windows(), (11_010, 11_010));
        bench.sack(a - 1, &[(a + 1, a + 13)]);
        bench.loads();
        bench.sack(a + 13, &[]);
        bench.send(40, FULL);
        let first = bench.loads().len();
        bench.sack(a + 13 + first as u32, &[]);
        assert_eq!([first, bench.loads().len()], expected, "{scope}");
    }
}

/// ns-2's burst is armed, and TSN `b` and `b + 1` are found lost by one SACK, which lets one packet go. The next SACK
/// finds `b + 1` arrived: that packet counts in its burst too, so that three new packets follow. Without a limit there
/// is room for seven.
#[test]
fn a_burst_goes_on_after_a_sack_that_leaves_chunks_marked() {
    for (scope, new) in [(Burst::WhenArmed, 3), (Burst::Off, 7)] {
        let mut config = era("ns2");
        config.rules.burst = scope;
        config.rules.set_number("missing_reports", 1).expect("a number");
        let mut bench = Bench::confirmed(config, 1, ms(0));
        let a = bench.grow_to(40_000);
        bench.send(20, FULL);
        bench.sack(a - 1, &[(a + 1, a + 1)]);
        bench.sack(a + 19, &[]);
        let b = a + 20;
        bench.send(3, FULL);
        bench.send(40, FULL);
        bench.loads();
        bench.sack(b - 1, &[(b + 2, b + 2)]);
        let resent: Vec<_> = bench.loads().into_iter().map(|(.., tsns)| tsns).collect();
        assert_eq!(resent, [[b]], "{scope:?}");
        bench.sack(b - 1, &[(b + 1, b + 2)]);
        assert_eq!(bench.loads().len(), new, "{scope:?}");
    }
}

/// The same with 17 chunks that are found lost: one packet, then five and five, because each round of retransmissions
/// counts from zero.
#[test]
fn each_round_of_retransmissions_has_a_burst_of_its_own() {
    let mut config = era("ns2");
    config.rules.burst = Burst::WhenArmed;
    config.rules.set_number("missing_reports", 1).expect("a number");
    let mut bench = Bench::confirmed(config, 1, ms(0));
    let a = bench.grow_to(80_000);
    bench.send(20, FULL);
    bench.sack(a - 1, &[(a + 1, a + 1)]);
    bench.sack(a + 1, &[]);
    bench.loads();
    let last = a + 19;
    let resent = [(a + 1, last), (a + 1, last - 1), (a + 2, last - 1)].map(|(cumulative, from)| {
        bench.sack(cumulative, &[(from, last)]);
        bench.loads().len()
    });
    assert_eq!(resent, [1, 5, 5]);
}

/// `resend_path`: 1 to 3 are lost on the first path, 4 on the second; each route names the other path. One event marks
/// them all: 4 leaves on the first path, or waits for room on the second, where 1 to 3 went.
#[test]
fn resend_path() {
    let each_packet = [(1, 1), (1, 2), (1, 3), (0, 4)];
    for (choice, expected) in [("each-packet", &each_packet[..]), ("each-event", &each_packet[..3])] {
        let mut config =
            Config { new_data: PolicySpec::named("round-robin"), ..ruled("resend_path", choice) };
        config.fast = PolicySpec::named("alternate");
        let mut bench = Bench::confirmed(config, 2, ms(100));
        bench.send(8, FULL);
        let carried: Vec<_> = bench.loads().into_iter().map(|load| (load.1, load.2[0])).collect();
        assert_eq!(carried, [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (1, 6)]);
        (5..=7).for_each(|last| bench.sack(0, &[(5, last)]));
        let again = bench.loads().into_iter().filter(|load| load.2[0] <= 4);
        assert_eq!(again.map(|load| (load.1, load.2[0])).collect::<Vec<_>>(), expected, "{choice}");
    }
}

/// Max.Burst never holds a fast retransmission: with 1, the marked packet and no new one.
#[test]
fn a_burst_of_one_lets_data_flow() {
    let mut config = era("rfc9260").with(|parameters| parameters.max_burst = 1);
    config.rules.burst = Burst::Always;
    let mut bench = Bench::confirmed(config, 1, ms(0));
    bench.send(5, FULL);
    assert_eq!(bench.loads(), [(0, 0, vec![1])]);
    bench.sack(1, &[]);
    assert_eq!(bench.loads(), [(0, 0, vec![2])]);
}

/// A window found closed with nothing in flight is probed with one chunk: at once, or an RTO later, and then
/// at growing intervals.
//= rfc9260#section-6.1
#[test]
fn window_probe() {
    for (choice, first) in [("at-once", 0), ("after-rto", 1000)] {
        let mut bench = Bench::confirmed(ruled("window_probe", choice), 1, ms(0));
        bench.send(1, FULL);
        bench.sack_window(1, 0);
        bench.loads();
        bench.send(5, FULL);
        bench.until(at_ms(first));
        assert_eq!(bench.loads(), [(first, 0, vec![2])], "{choice}");
    }
}

/// A chunk that does not fit what is left of the peer's window waits, though some of it is open: 2000 bytes
/// hold one chunk of 1468, not a second.
//= rfc9260#section-6.1
#[test]
fn a_chunk_that_does_not_fit_waits() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.send(1, FULL);
    bench.sack_window(1, 2000);
    bench.send(5, FULL);
    bench.sack_window(2, 2000);
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (0, 0, vec![2]), (0, 0, vec![3])]);
    assert_eq!(bench.peer_window(), 2000 - 1468);
}

/// Messages that fit one packet share it, up to 1500 bytes: 12 chunks of 116 with the header of 12 and IP's 20
/// are 1424. Two of 700 bytes (716) are 1464; a third does not fit.
//= rfc9260#section-6.10
#[test]
fn chunks_share_a_packet() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.send(13, 100);
    bench.send(3, 700);
    let counts: Vec<usize> = bench.loads().iter().map(|load| load.2.len()).collect();
    assert_eq!(counts, [12, 1, 2, 1]);
}

/// A message larger than a packet is cut into full chunks: 3000 = 1452 + 1452 + 96.
//= rfc9260#section-6.9
#[test]
fn a_long_message_is_cut() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.send(1, 3000);
    let sizes: Vec<usize> = bench.sent.iter().map(|(_, packet, _)| packet.size()).collect();
    assert_eq!(sizes, [12 + 1468, 12 + 1468, 12 + 16 + 96]);
}

/// Two messages of 1,500 bytes, which make chunks of 1,468 and 64 bytes each: behind the rest of the first there is
/// room for 1,404 bytes of the second, which must be cut anyway. A message that fits a packet is not cut for that.
//= rfc9260#section-6.10
#[test]
fn fill_packets() {
    for (choice, packets) in
        [("off", vec![vec![0], vec![1], vec![2], vec![3]]), ("on", vec![vec![0], vec![1, 2], vec![3]])]
    {
        let mut bench = Bench::confirmed(ruled("fill_packets", choice), 1, ms(0));
        let a = bench.grow_to(14_680);
        bench.send(2, 1500);
        let sent: Vec<Vec<u32>> =
            bench.loads().into_iter().map(|(.., tsns)| tsns.iter().map(|tsn| tsn - a).collect()).collect();
        assert_eq!(sent, packets, "{choice}");
    }
    let mut bench = Bench::confirmed(ruled("fill_packets", "on"), 1, ms(0));
    let a = bench.grow_to(14_680);
    bench.send(1, 100);
    bench.loads();
    bench.try_send(1500).expect("there is room");
    bench.try_send(FULL).expect("there is room");
    bench.drain();
    let sent: Vec<_> = bench.loads().into_iter().map(|(.., tsns)| tsns).collect();
    assert_eq!(sent, [[a + 1], [a + 2], [a + 3]]);
}
