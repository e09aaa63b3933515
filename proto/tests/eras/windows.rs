//! Congestion windows: how they start, grow, and shrink by idling.

use std::net::IpAddr;

use anabranch_proto::wire::Address;
use anabranch_proto::{Config, Endpoint, LocalAddress, NoteKind, PathId, Policies, Time};

use crate::ruled;
use crate::support::bench::{Bench, FULL, at_ms, era, ms};

/// The first window over 20 bytes of IP header, and with an MTU of 576 (PMDCS 576 − 32 = 544):
/// RFC 2960: 2·1500, 2·576. RFC 4960: min(6000, max(3000, 4380)), min(4·576, 4380).
/// RFC 9260: min(5872, max(2936, 4404)), min(4·544, 4404). ns-2: 4380 of P = 1468, 4·544.
//= rfc9260#section-7.2.1
#[test]
fn initial_window() {
    let first = |name, mtu| Bench::new(era(name).with(|parameters| parameters.mtu = mtu), 1).window();
    let both = |name| (first(name, 1500), first(name, 576));
    assert_eq!(both("rfc2960"), (3000, 1152));
    assert_eq!(both("rfc4960"), (4380, 2304));
    assert_eq!(both("rfc9260"), (4404, 2176));
    assert_eq!(both("ns2"), (4380, 2176));
    for (choice, window) in [("two", 2936), ("4380", 4380), ("4404", 4404)] {
        assert_eq!(Bench::new(ruled("initial_window", choice), 1).window(), window);
    }
}

/// Over IPv6: PMDCS 1500 − 40 − 12 = 1448; min(5792, max(2896, 4344)).
//= rfc9260#section-7.2.1
#[test]
fn initial_window_over_ipv6() {
    let local = Address::ip(IpAddr::V6(1.into()));
    let addresses = vec![LocalAddress { address: local, prefix: 64 }];
    let config = Config { addresses, ip_header: 40, ..era("rfc9260") };
    let mut end = Endpoint::new(config, Policies::default(), [0; 32]).expect("usable");
    let id = end.connect(Time::ZERO, 1, &[Address::ip(IpAddr::V6(2.into()))]).expect("a path");
    assert_eq!((end.paths(id)[0].window, end.paths(id)[0].pmdcs), (4344, 1448));
}

/// Windows after each of `count` SACKs that acknowledge one more full chunk, with more always waiting.
fn trace(config: Config, count: u32) -> Vec<u64> {
    let mut bench = Bench::confirmed(config, 1, ms(0));
    bench.send(100, FULL);
    let step = |tsn| {
        bench.sack(tsn, &[]);
        bench.window()
    };
    (1..=count).map(step).collect()
}

/// A window in full use grows by what is acknowledged, at most one unit a SACK.
//= rfc9260#section-7.2.1
#[test]
fn slow_start() {
    assert_eq!(trace(era("rfc9260"), 3), [5872, 7340, 8808]);
    // One chunk of 1468 is less than the unit of 1500.
    assert_eq!(trace(era("rfc4960"), 3), [4380 + 1468, 4380 + 2936, 4380 + 4404]);
    assert_eq!(trace(era("rfc2960"), 2), [3000 + 1468, 3000 + 2936]);
    let mut bench = Bench::confirmed(era("rfc4960"), 1, ms(0));
    bench.send(9, FULL);
    bench.sack(2, &[]);
    assert_eq!(bench.window(), 4380 + 1500, "two chunks at once are more than the unit");
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.send(50, 100);
    bench.sack(1, &[]);
    assert_eq!(bench.window(), 4404 + 116, "100 bytes and 16 of header");
}

/// A window that is not in full use does not grow (flight before the SACK below cwnd).
//= rfc9260#section-7.2.1
#[test]
fn no_growth_while_the_sender_idles() {
    for name in ["rfc2960", "rfc4960", "rfc9260", "ns2"] {
        let mut bench = Bench::confirmed(era(name), 1, ms(0));
        let first = bench.window();
        for tsn in 1..=5 {
            bench.send(1, FULL);
            bench.sack(tsn, &[]);
        }
        assert_eq!(bench.window(), first, "{name}");
    }
}

/// Slow start goes on while cwnd ≤ ssthresh; above it one unit for each cwnd of bytes acknowledged.
///
/// RFC 9260 from 4404 with ssthresh 5872: 5872, 7340 in slow start (5872 is not above), then pba counts
/// 1468 a SACK: 7340 needs five. RFC 4960, ssthresh below 4380: pba 1468, 2936, 4404 − 4380 = 24; 5880 is
/// reached after 24 + 4·1468 = 5896, four SACKs later.
//= rfc9260#section-7.2.2
#[test]
fn congestion_avoidance() {
    let from = |name, ssthresh| Config { initial_ssthresh: Some(ssthresh), ..era(name) };
    let windows = trace(from("rfc9260", 5872), 8);
    assert_eq!(windows, [5872, 7340, 7340, 7340, 7340, 7340, 8808, 8808]);
    let windows = trace(from("rfc4960", 4379), 7);
    assert_eq!(windows, [4380, 4380, 5880, 5880, 5880, 5880, 7380]);
}

/// May a SACK that leaves the Cumulative TSN Ack Point where it is grow the window? Its window is full.
#[test]
fn growth() {
    for (choice, window) in [("on-advance", 4404), ("on-ack", 4404 + 1468)] {
        let mut bench = Bench::confirmed(ruled("growth", choice), 1, ms(0));
        bench.send(9, FULL);
        bench.sack(0, &[(2, 2)]);
        assert_eq!(bench.window(), window, "{choice}");
    }
}

/// Units of growth: 1500, or PMDCS; two chunks are acknowledged at once. A timeout leaves one unit.
#[test]
fn window_unit() {
    for (choice, unit) in [("mtu", 1500), ("pmdcs", 1468)] {
        let mut bench = Bench::confirmed(ruled("window_unit", choice), 1, ms(0));
        bench.send(9, FULL);
        bench.sack(2, &[]);
        assert_eq!(bench.window(), 4404 + unit, "{choice}");
        bench.pass(ms(1000));
        assert_eq!(bench.windows(), (unit, 4 * unit), "{choice}");
    }
}

/// Fast Recovery holds a window that would grow: it is full, and the SACK advances the point.
///
/// 41,104 = 4404 + 25·1468 admits 28 chunks. The SACK of the third finds the window full and adds 1468, two
/// more miss the first two: cut to 42,572/2 = 21,286. Then the first is acknowledged, the second is not:
/// flight before is 23 chunks + 1 sent again, more than the window.
//= rfc9260#section-7.2.1
#[test]
fn recovery_growth() {
    for (choice, growth) in [("barred", 0), ("allowed", 1468)] {
        let mut bench = Bench::confirmed(ruled("recovery_growth", choice), 1, ms(0));
        let a = bench.grow_to(41_000);
        assert_eq!(bench.window(), 41_104);
        bench.send(28, FULL);
        for last in 2..=4 {
            bench.sack(a - 1, &[(a + 2, a + last)]);
        }
        assert_eq!(bench.windows(), (21_286, 21_286));
        bench.sack(a, &[(a + 2, a + 4)]);
        assert_eq!(bench.window(), 21_286 + growth, "{choice}");
    }
}

/// partial_bytes_acked while the sender idles above ssthresh, then with the window full (4404, ssthresh 4000).
///
/// Six chunks are acknowledged with one left in flight each time: 8808 bytes. Then three SACKs of one chunk
/// each with a full window:
/// - `on-advance`: 8808 + 1468 − 4404 = 5872, grown to 5872; 5872 + 1468 − 5872 = 1468, grown to 7340; 2936.
/// - `capped`: 4404 + 1468 − 4404 = 1468, grown to 5872; 2936; 4404.
/// - `split`: 0 + 1468; 2936; 4404 − 4404, grown to 5872.
//= rfc9260#section-7.2.2
#[test]
fn partial_bytes() {
    let expected =
        [("on-advance", [5872, 7340, 7340]), ("capped", [5872, 5872, 5872]), ("split", [4404, 4404, 5872])];
    for (choice, windows) in expected {
        let config = Config { initial_ssthresh: Some(4000), ..ruled("partial_bytes", choice) };
        let mut bench = Bench::confirmed(config, 1, ms(0));
        bench.send(1, FULL);
        for tsn in 1..=6 {
            bench.send(1, FULL);
            bench.sack(tsn, &[]);
        }
        bench.send(20, FULL);
        let seen = [7, 8, 9].map(|tsn| {
            bench.sack(tsn, &[]);
            bench.window()
        });
        assert_eq!(seen, windows, "{choice}");
    }
}

/// partial_bytes_acked begins at zero again when nothing is left in flight: three chunks of 4404, all
/// acknowledged but one SACK before the step, give no step later.
//= rfc9260#section-7.2.2
#[test]
fn partial_bytes_are_forgotten_when_all_is_acknowledged() {
    let config = Config { initial_ssthresh: Some(4000), ..era("rfc9260") };
    let mut bench = Bench::confirmed(config, 1, ms(0));
    for round in 0..4 {
        bench.send(2, FULL);
        bench.sack(2 * round + 2, &[]);
    }
    bench.send(9, FULL);
    bench.sack(9, &[]);
    assert_eq!(bench.window(), 4404, "8 chunks before do not count");
}

/// Windows and thresholds at the end of each RTO in which nothing was sent, from a window above 20,000 bytes.
fn decay(config: Config) -> Vec<(u64, Option<u64>)> {
    let mut bench = Bench::confirmed(config, 1, ms(0));
    bench.grow_to(20_000);
    let mut windows = Vec::new();
    for rto in 1..=4 {
        bench.until(at_ms(rto * 1000 - 1));
        let before = bench.window();
        bench.until(at_ms(rto * 1000));
        let (window, ssthresh) = bench.windows();
        assert!(window <= before);
        windows.push((window, Some(ssthresh).filter(|s| *s < u64::MAX)));
    }
    windows
}

/// Nothing is sent: at the end of every RTO (1 s, RTO.Min) cwnd becomes max(cwnd/2, floor).
///
/// RFC 9260: 4404 + 11·1468 = 20,552; 10,276; max(5138, 5872); ssthresh is set to the 20,552 before the first
/// step. RFC 4960: 4380 + 11·1500 = 20,880; 10,440; max(5220, 6000). RFC 2960: 3000 + 12·1500 = 21,000;
/// 10,500; 5250; max(2625, 3000). ns-2: 4380 + 11·1468 = 20,528; 10,264; max(5132, 5872).
//= rfc9260#section-7.2.1
#[test]
fn idle_decay_in_each_era() {
    let plain = |windows: [u64; 4]| windows.map(|w| (w, None)).to_vec();
    assert_eq!(decay(era("rfc9260")), [10_276, 5872, 5872, 5872].map(|w| (w, Some(20_552))));
    assert_eq!(decay(era("rfc4960")), plain([10_440, 6000, 6000, 6000]));
    assert_eq!(decay(era("rfc2960")), plain([10_500, 5250, 3000, 3000]));
    assert_eq!(decay(era("ns2")), plain([10_264, 5872, 5872, 5872]));
}

/// The four choices, from 20,552 bytes.
#[test]
fn idle_decay() {
    let plain = |windows: [u64; 4]| windows.map(|w| (w, None)).to_vec();
    assert_eq!(decay(ruled("idle_decay", "off")), plain([20_552; 4]));
    assert_eq!(decay(ruled("idle_decay", "halve")), plain([10_276, 5872, 5872, 5872]));
    assert_eq!(decay(ruled("idle_decay", "literal")), plain([10_276, 5872, 5872, 5872]));
    let remembered = [10_276, 5872, 5872, 5872].map(|w| (w, Some(20_552)));
    assert_eq!(decay(ruled("idle_decay", "remember")), remembered);
}

/// Floors of two and four units of 1468 bytes.
#[test]
fn idle_floor() {
    for (units, windows) in [(2, [10_276, 5138, 2936, 2936]), (4, [10_276, 5872, 5872, 5872])] {
        let mut config = ruled("idle_decay", "halve");
        config.rules.set_number("idle_floor", units).expect("a number");
        assert_eq!(decay(config), windows.map(|w| (w, None)));
    }
}

/// An RTO after its only packet, a first window of 4404 is below the floor of 4·1468 = 5872: read to the
/// letter, max(cwnd/2, floor) raises it; the other choices leave it.
#[test]
fn only_the_literal_formula_raises_a_window() {
    for (choice, window) in [("literal", 5872), ("halve", 4404), ("remember", 4404), ("off", 4404)] {
        let mut bench = Bench::confirmed(ruled("idle_decay", choice), 1, ms(0));
        bench.send(1, FULL);
        bench.sack(1, &[]);
        bench.until(at_ms(1000));
        assert_eq!(bench.window(), window, "{choice}");
    }
}

/// A path idles when nothing is *sent* to it, whatever is in flight there: the last packets left at 0, a SACK
/// at 500 ms restarts T3 but not the idling, at 1 s the window halves.
//= rfc9260#section-7.2.1
#[test]
fn a_path_idles_also_with_data_in_flight() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(5, FULL);
    bench.until(at_ms(500));
    bench.sack(a, &[]);
    bench.until(at_ms(999));
    assert_eq!((bench.window(), bench.view(0).flight), (20_552, 4 * 1468));
    bench.until(at_ms(1000));
    assert_eq!((bench.window(), bench.view(0).flight), (10_276, 4 * 1468));
    assert!(bench.timeouts().is_empty());
}

/// The window of 8808 is at the floor of 5872 after an RTO. A SACK at 1.2 s enlarges it again, and nothing is sent:
/// after another RTO it is at the floor again.
//= rfc9260#section-7.2.1
#[test]
fn an_idle_window_decays_again_after_late_acknowledgements() {
    for name in ["rfc9260", "ns2"] {
        let mut bench = Bench::confirmed(era(name), 1, ms(0));
        let a = bench.grow_to(7000);
        bench.send(5, FULL);
        bench.until(at_ms(500));
        bench.sack(a, &[]);
        let seen = [1000, 1200, 1999, 2000].map(|at| {
            bench.until(at_ms(at));
            if at == 1200 {
                bench.sack(a + 1, &[]);
            }
            bench.window()
        });
        assert_eq!(seen, [5872, 7340, 7340, 5872], "{name}");
        assert!(bench.timeouts().is_empty());
    }
}

/// And also while the peer's window is shut: data waits, none leaves.
//= rfc9260#section-7.2.1
#[test]
fn a_path_idles_also_while_the_peers_window_is_shut() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    let a = bench.grow_to(20_000);
    bench.send(1, FULL);
    bench.sack_window(a, 0);
    bench.send(9, FULL);
    bench.until(at_ms(999));
    assert_eq!(bench.window(), 20_552);
    bench.until(at_ms(1000));
    assert_eq!(bench.window(), 10_276);
}

/// After idling, ssthresh has the window of before (RFC 9260 §7.2.1): slow start leads back to 20,552 and no
/// further.
//= rfc9260#section-7.2.1
#[test]
fn slow_start_after_idling_ends_at_the_window_of_before() {
    let mut bench = Bench::confirmed(era("rfc9260"), 1, ms(0));
    bench.grow_to(20_000);
    bench.pass(ms(1000));
    assert_eq!(bench.windows(), (10_276, 20_552));
}

/// Who follows an association is told of every window and every RTO.
#[test]
fn windows_and_timeouts_are_noted() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(4, FULL);
    bench.notes.clear();
    bench.pass(ms(100));
    bench.sack(3, &[]);
    let mut windows = bench.notes.iter().filter_map(|note| match note.kind {
        NoteKind::Window { cwnd, ssthresh, .. } => Some((cwnd, ssthresh)),
        _ => None,
    });
    assert_eq!(windows.next_back(), Some(bench.windows()));
    let mut rtos = bench.notes.iter().filter_map(|note| match note.kind {
        NoteKind::Rto { rto, srtt, rtt, .. } => Some((rto, srtt, rtt)),
        _ => None,
    });
    assert_eq!(rtos.next_back(), Some((ms(1000), Some(ms(100)), Some(ms(100)))));
}

/// Chunks that T3-rtx marks, and that leave on the other path, are no longer in flight on theirs: who follows the
/// association is told, although nothing else changes there.
#[test]
fn a_window_is_noted_when_its_chunks_leave_on_another_path() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
    bench.send(2, FULL);
    bench.notes.clear();
    bench.until(bench.now + ms(1500));
    assert!(bench.timeouts().iter().any(|(_, path)| *path == PathId(0)), "T3-rtx expired");
    for path in [0, 1] {
        let mut noted = bench.notes.iter().filter_map(|note| match note.kind {
            NoteKind::Window { path: PathId(id), flight, marked, .. } if id == path => Some((flight, marked)),
            _ => None,
        });
        let view = bench.view(path);
        assert_eq!(noted.next_back(), Some((view.flight, view.marked)), "path {path}");
    }
    assert_eq!(bench.view(0).flight, 0);
}
