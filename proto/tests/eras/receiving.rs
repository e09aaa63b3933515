//! The rules of the receiving half.

use anabranch_proto::Config;
use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Heartbeat;

use crate::ruled;
use crate::support::bench::{Bench, at_ms, chunk, ms};

/// The very first chunk is acknowledged at once, or after SACK.Delay as any other.
#[test]
fn first_data() {
    for (choice, at) in [("at-once", 0), ("delayed", 200)] {
        let mut bench = Bench::new(ruled("first_data", choice), 1);
        bench.data(1, 984);
        bench.until(at_ms(300));
        bench.data(2, 984);
        bench.until(at_ms(600));
        let times: Vec<u64> = bench.sacks().iter().map(|s| s.0).collect();
        assert_eq!(times, [at, 500], "{choice}");
    }
}

/// TSN 2 fills the gap below 3: told at once, or after SACK.Delay.
//= rfc9260#section-6.2
#[test]
fn gap_filled() {
    for (choice, at) in [("at-once", 300), ("delayed", 500)] {
        let mut bench = Bench::new(ruled("gap_filled", choice), 1);
        bench.data(1, 984);
        bench.until(at_ms(300));
        bench.data(3, 984);
        bench.data(2, 984);
        bench.until(at_ms(600));
        let told: Vec<_> = bench.sacks().iter().map(|s| (s.0, s.1.gaps.len())).collect();
        assert_eq!(told, [(0, 0), (300, 1), (at, 0)], "{choice}");
    }
}

/// A buffer of 10,000 bytes holds nine chunks of 1000: the thousand left is less than a packet, and announced
/// as none, or to the byte. Two are read: 3000 are free, a quarter of the buffer more than announced: told at
/// once, or not at all.
//= rfc9260#section-6.2
#[test]
fn window_updates() {
    for (choice, left, update) in [("announced", 0, Some(3000)), ("none", 1000, None)] {
        let config = Config { receive_buffer: 10_000, ..ruled("window_updates", choice) };
        let mut bench = Bench::new(config, 1);
        (1..=9).for_each(|tsn| bench.data(tsn, 984));
        bench.until(at_ms(300));
        assert_eq!(bench.sacks().last().map(|s| s.1.a_rwnd), Some(left), "{choice}");
        bench.end.read(bench.now, bench.id).expect("a message");
        bench.drain();
        assert!(bench.sacks().is_empty(), "2000 is less than a quarter more");
        bench.end.read(bench.now, bench.id).expect("a message");
        bench.drain();
        assert_eq!(bench.sacks().last().map(|s| s.1.a_rwnd), update, "{choice}");
    }
}

/// TSN 2 comes again at 300 ms, and 4 at 350 ms. The duplicate is told of at once. It settles what is owed, so that 4
/// waits for SACK.Delay, which starts again; or it is the first of two packets, and 4 is the second. If TSN 4 does not
/// come, SACK.Delay may go on.
//= rfc9260#section-6.2
#[test]
fn duplicate_sack() {
    for (choice, second, alone) in
        [("settles", 550, None), ("besides", 350, Some(500)), ("counted", 550, Some(500))]
    {
        for comes in [true, false] {
            let mut bench = Bench::new(ruled("duplicate_sack", choice), 1);
            (1..=3).for_each(|tsn| bench.data(tsn, 984));
            bench.until(at_ms(300));
            bench.data(2, 984);
            bench.until(at_ms(350));
            if comes {
                bench.data(4, 984);
            }
            bench.until(at_ms(900));
            let told: Vec<_> = bench.sacks().iter().map(|s| (s.0, s.1.duplicates.len())).collect();
            let last = if comes { Some(second) } else { alone };
            let expected: Vec<_> =
                [(0, 0), (0, 0), (300, 1)].into_iter().chain(last.map(|at| (at, 0))).collect();
            assert_eq!(told, expected, "{choice}");
        }
    }
}

/// TSN 2 comes at 250 ms, 1 again at 300 ms, and 3 at 350 ms. As a duplicate of the first chunk, 1 does not count
/// towards the delayed SACK, nor does it start SACK.Delay: 3 is the second packet; without 2 and 3 nothing more is
/// owed.
#[test]
fn the_first_chunk_does_not_count_when_it_comes_again() {
    for (others, last) in [(true, Some(350)), (false, None)] {
        let mut bench = Bench::new(ruled("duplicate_sack", "besides"), 1);
        bench.data(1, 984);
        for (at, tsn) in [(250, 2), (300, 1), (350, 3)] {
            bench.until(at_ms(at));
            if others || tsn == 1 {
                bench.data(tsn, 984);
            }
        }
        bench.until(at_ms(900));
        let times: Vec<u64> = bench.sacks().iter().map(|s| s.0).collect();
        assert_eq!(times, [0, 300].into_iter().chain(last).collect::<Vec<_>>());
    }
}

/// DATA comes by the first path, and a HEARTBEAT by the second before SACK.Delay ends: the SACK follows the one or the
/// other. The answer to the next DATA follows that DATA in any case.
//= rfc9260#section-6.4
#[test]
fn delayed_sack() {
    for (choice, path) in [("last-data", 0), ("last-packet", 1)] {
        let mut bench = Bench::confirmed(ruled("delayed_sack", choice), 2, ms(0));
        bench.data(1, 984);
        bench.data(2, 984);
        bench.hear_on(1, Chunk::Heartbeat(Heartbeat::new(vec![1; 8])));
        bench.until(at_ms(200));
        bench.data(3, 984);
        bench.hear_on(1, Chunk::Heartbeat(Heartbeat::new(vec![2; 8])));
        bench.data(4, 984);
        let sacks = bench.sent.iter().filter(|(_, packet, _)| matches!(packet.chunks[..], [Chunk::Sack(_)]));
        let paths: Vec<u16> = sacks.map(|(.., reason)| reason.path.expect("a path").0).collect();
        assert_eq!(paths, [0, path, 0], "{choice}");
    }
}

/// TSN 1 and 2 come in one packet, which is told of at once. It settles what is owed, or counts as the first of two
/// packets; also if it fills the gap below TSN 3, which is told of at once.
//= rfc9260#section-5.1
#[test]
fn the_first_packet_may_count_towards_the_next_sack() {
    for (choice, at) in [("settles", 300), ("besides", 100)] {
        for gap in [false, true] {
            let mut config = ruled("duplicate_sack", choice);
            config.rules.choose("gap_filled", "delayed").expect("a rule");
            let mut bench = Bench::new(config, 1);
            let tag = bench.tag;
            if gap {
                bench.data(3, 984);
            }
            bench.hear_packet(0, tag, [chunk(1, 984), chunk(2, 100)]);
            bench.until(at_ms(100));
            bench.data(4 - u32::from(!gap), 984);
            bench.until(at_ms(500));
            let times: Vec<u64> = bench.sacks().iter().map(|s| s.0).collect();
            let expected = [0].iter().filter(|_| gap).chain(&[0, at]).copied().collect::<Vec<_>>();
            assert_eq!(times, expected, "{choice}, gap {gap}");
        }
    }
}
