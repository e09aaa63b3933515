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

/// TSN 1 comes again at 300 ms, and 2 at 350 ms. The duplicate is told of at once. It settles what is owed, so that 2 waits for
/// SACK.Delay, which starts again; or it is the first of two packets, and 2 is the second. If TSN 2 does not come, SACK.Delay may go on.
//= rfc9260#section-6.2
#[test]
fn duplicate_sack() {
    for (choice, second, alone) in
        [("settles", 550, None), ("besides", 350, Some(500)), ("counted", 550, Some(500))]
    {
        for comes in [true, false] {
            let mut bench = Bench::new(ruled("duplicate_sack", choice), 1);
            bench.data(1, 984);
            bench.until(at_ms(300));
            bench.data(1, 984);
            bench.until(at_ms(350));
            if comes {
                bench.data(2, 984);
            }
            bench.until(at_ms(900));
            let told: Vec<_> = bench.sacks().iter().map(|s| (s.0, s.1.duplicates.len())).collect();
            let last = if comes { Some(second) } else { alone };
            let expected: Vec<_> = [(0, 0), (300, 1)].into_iter().chain(last.map(|at| (at, 0))).collect();
            assert_eq!(told, expected, "{choice}");
        }
    }
}

/// DATA comes by the first path, and a HEARTBEAT by the second before SACK.Delay ends: the SACK follows the one or the other. The
/// answer to the next DATA follows that DATA in any case.
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

/// TSN 1 and 2 come in one packet, which is told of at once. It settles what is owed, or counts as the first of two packets.
//= rfc9260#section-5.1
#[test]
fn the_first_packet_may_count_towards_the_next_sack() {
    for (choice, at) in [("settles", 300), ("besides", 100)] {
        let mut bench = Bench::new(ruled("duplicate_sack", choice), 1);
        let tag = bench.tag;
        bench.hear_packet(0, tag, [chunk(1, 984), chunk(2, 100)]);
        bench.until(at_ms(100));
        bench.data(3, 984);
        bench.until(at_ms(500));
        let times: Vec<u64> = bench.sacks().iter().map(|s| s.0).collect();
        assert_eq!(times, [0, at], "{choice}");
    }
}
