//! When a SACK leaves, and what it says (RFC 9260 §6.2, §6.7).

use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::{Data, GapBlock};
use anabranch_proto::{Config, Event, Tsn};

use crate::support::bench::{Bench, Sent, at_ms, chunk, era, ms};

/// A SACK: when (ms), cumulative, gap blocks, duplicates.
type Told = (u64, u32, Vec<(u16, u16)>, Vec<u32>);

/// As it is behind the very first DATA chunk, whose own SACK never waits (`eras/receiving.rs`).
fn later() -> Config {
    let mut config = era("rfc9260");
    config.mechanisms.choose("first_data", "delayed").expect("a rule and its choice");
    config
}

/// The SACKs so far.
fn sacks(bench: &mut Bench) -> Vec<Told> {
    let block = |gap: &GapBlock| (gap.start, gap.end);
    let told = |(at, sack): (u64, anabranch_proto::wire::chunk::Sack)| {
        let duplicates = sack.duplicates.iter().map(|tsn| tsn.0).collect();
        (at, sack.cumulative.0, sack.gaps.iter().map(block).collect(), duplicates)
    };
    bench.sacks().into_iter().map(told).collect()
}

/// One packet is acknowledged after SACK.Delay, the second at once.
//= rfc9260#section-6.2
#[test]
fn every_second_packet_or_200_ms() {
    let mut bench = Bench::new(later(), 1);
    bench.data(1, 100);
    bench.until(at_ms(500));
    assert_eq!(sacks(&mut bench), [(200, 1, vec![], vec![])]);
    bench.data(2, 100);
    bench.until(at_ms(550));
    bench.data(3, 100);
    assert_eq!(sacks(&mut bench), [(550, 3, vec![], vec![])]);
    bench.pass(ms(1000));
    assert_eq!(sacks(&mut bench), [], "nothing is owed any more");
}

/// Two chunks in one packet are one packet.
//= rfc9260#section-6.2
#[test]
fn packets_count_not_chunks() {
    let mut bench = Bench::new(later(), 1);
    bench.hear_packet(0, bench.tag, [chunk(1, 100), chunk(2, 100)]);
    bench.until(at_ms(300));
    assert_eq!(sacks(&mut bench), [(200, 2, vec![], vec![])]);
}

/// SACK.Delay and the count are parameters: 50 ms, every third.
//= rfc9260#section-6.2
#[test]
fn delay_and_count_are_parameters() {
    let mut bench = Bench::new(
        later().with(|parameters| {
            parameters.sack_delay = ms(50);
            parameters.sack_every = 3;
        }),
        1,
    );
    bench.data(1, 100);
    bench.data(2, 100);
    bench.until(at_ms(100));
    assert_eq!(sacks(&mut bench), [(50, 2, vec![], vec![])]);
    (3..=5).for_each(|tsn| bench.data(tsn, 100));
    assert_eq!(sacks(&mut bench), [(100, 5, vec![], vec![])]);
}

/// Without a delay, each packet is acknowledged when it comes, and nothing waits for a time that is over.
//= rfc9260#section-6.2
#[test]
fn no_delay_is_at_once() {
    let mut bench = Bench::new(later().with(|parameters| parameters.sack_delay = ms(0)), 1);
    bench.data(1, 100);
    assert_eq!(sacks(&mut bench), [(0, 1, vec![], vec![])]);
    bench.data(2, 100);
    assert_eq!(sacks(&mut bench), [(0, 2, vec![], vec![])]);
}

/// While there is a gap, every packet is answered at once (§6.7, §7.2.4), and so is the one that closes it
/// (§6.2, by RFC 5681 §4.2).
//= rfc9260#section-6.7
#[test]
fn gaps_at_once() {
    let mut bench = Bench::new(later(), 1);
    bench.data(2, 100);
    bench.data(4, 100);
    bench.data(5, 100);
    bench.data(1, 100);
    let expected = [
        (0, 0, vec![(2, 2)], vec![]),
        (0, 0, vec![(2, 2), (4, 4)], vec![]),
        (0, 0, vec![(2, 2), (4, 5)], vec![]),
        (0, 2, vec![(2, 3)], vec![]),
    ];
    assert_eq!(sacks(&mut bench), expected);
    bench.data(3, 100);
    bench.until(at_ms(300));
    assert_eq!(sacks(&mut bench), [(0, 5, vec![], vec![])]);
}

/// What came before is reported at once, each time that it came; once it was told, no more.
//= rfc9260#section-6.2
#[test]
fn duplicates_at_once() {
    let mut bench = Bench::new(later(), 1);
    bench.data(1, 100);
    bench.data(1, 100);
    bench.hear_packet(0, bench.tag, [chunk(1, 100), chunk(1, 100)]);
    let expected = [(0, 1, vec![], vec![1]), (0, 1, vec![], vec![1, 1])];
    assert_eq!(sacks(&mut bench), expected);
    assert_eq!(bench.end.statistics(bench.now, bench.id).duplicates, 3);
}

/// The I bit asks for the SACK at once.
//= rfc9260#section-6.2
#[test]
fn the_i_bit() {
    let mut bench = Bench::new(later(), 1);
    let Chunk::Data(data) = chunk(1, 100) else { unreachable!() };
    bench.hear(Chunk::Data(Data { immediate: true, ..data }));
    assert_eq!(sacks(&mut bench), [(0, 1, vec![], vec![])]);
}

/// A SACK that is owed travels with data that leaves before its time.
//= rfc9260#section-6.1
#[test]
fn a_sack_travels_with_data() {
    let mut bench = Bench::new(later(), 1);
    bench.data(1, 100);
    bench.until(at_ms(100));
    bench.send(1, 100);
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert!(matches!(packet.chunks[..], [Chunk::Sack(_), Chunk::Data(_)]), "{packet:?}");
    bench.sent.clear();
    bench.until(at_ms(400));
    assert!(bench.sent.is_empty());
}

/// But not if the packet would be too large: full chunks leave alone, and the SACK in its time.
//= rfc9260#section-6.1
#[test]
fn a_sack_that_does_not_fit_waits_its_time() {
    let mut bench = Bench::new(later(), 1);
    bench.data(1, 100);
    bench.until(at_ms(100));
    bench.send(1, 1452);
    let loads: [Sent; 1] = [(100, 0, vec![1])];
    assert_eq!(bench.loads(), loads);
    bench.until(at_ms(400));
    assert_eq!(sacks(&mut bench), [(200, 1, vec![], vec![])]);
}

/// A buffer that is full to the last packet takes what fills a gap, in the place of the highest chunk, which is
/// then not reported any more; what is above all else is dropped. The peer is told at once either way. Ten chunks
/// of 1000 bytes fill it.
//= rfc9260#section-6.2
#[test]
fn a_full_buffer_gives_way_to_what_is_lower() {
    let mut bench = Bench::new(Config { receive_buffer: 10_000, ..later() }, 1);
    (2..=11).for_each(|tsn| bench.data(tsn, 984));
    bench.data(12, 984);
    assert_eq!(sacks(&mut bench).last(), Some(&(0, 0, vec![(2, 11)], vec![])));
    assert_eq!(bench.end.statistics(bench.now, bench.id).no_room, 1);
    bench.data(1, 984);
    bench.until(at_ms(300));
    assert_eq!(sacks(&mut bench).last(), Some(&(0, 10, vec![], vec![])));
}

/// A message that is there is announced once; the next announcement comes after all was read.
//= rfc9260#section-6.6
#[test]
fn readable_is_announced_once() {
    let mut bench = Bench::new(later(), 1);
    let announced = |bench: &Bench| bench.events.iter().filter(|e| e.1 == Event::Readable).count();
    bench.data(2, 100);
    assert_eq!(announced(&bench), 0, "its turn has not come");
    bench.data(1, 100);
    bench.data(3, 100);
    assert_eq!(announced(&bench), 1);
    for expected in [true, true, true, false] {
        assert_eq!(bench.end.read(bench.now, bench.id).is_some(), expected);
    }
    bench.data(4, 100);
    assert_eq!(announced(&bench), 2);
}

/// TSNs order the circle: with the peer's first TSN 1 and 0 before it, a TSN from half the circle away is old.
#[test]
fn a_tsn_from_before_the_beginning_is_a_duplicate() {
    let mut bench = Bench::new(later(), 1);
    let Chunk::Data(data) = chunk(1, 100) else { unreachable!() };
    bench.hear(Chunk::Data(Data { tsn: Tsn(u32::MAX), ..data }));
    assert_eq!(sacks(&mut bench), [(0, 0, vec![], vec![u32::MAX])]);
}
