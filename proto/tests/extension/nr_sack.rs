//! Acknowledgements that say what is not taken back: draft-tuexen-tsvwg-sctp-multipath.

use anabranch_proto::wire::chunk::{GapBlock, NrSack};
use anabranch_proto::wire::{Chunk, Param};
use anabranch_proto::{Config, Extensions, Tsn};
use smallvec::SmallVec;

use crate::support::bench::{Bench, FULL, ms};
use crate::with;

const NR_SACK: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: true,
};

/// Chunk type 16 in Supported Extensions.
fn offers() -> Vec<Param> {
    vec![Param::SupportedExtensions(vec![16].into())]
}

/// With a send buffer of four full messages.
fn bench(params: Vec<Param>) -> Bench {
    let config = with(NR_SACK).with(|parameters| parameters.send_buffer = Some(4 * FULL as u64));
    Bench::with(config, 1, |_| params)
}

fn runs(cumulative: u32, runs: &[(u32, u32)]) -> SmallVec<[GapBlock; 4]> {
    let block = |tsn: u32| (tsn - cumulative) as u16;
    runs.iter().map(|&(a, b)| GapBlock { start: block(a), end: block(b) }).collect()
}

fn nr_sack(cumulative: u32, gaps: &[(u32, u32)], kept: &[(u32, u32)]) -> Chunk {
    let (gaps, kept) = (runs(cumulative, gaps), runs(cumulative, kept));
    let duplicates = SmallVec::new();
    let cumulative = Tsn(cumulative);
    Chunk::NrSack(Box::new(NrSack { flags: 0, cumulative, a_rwnd: 1 << 20, gaps, kept, duplicates }))
}

/// What acknowledges, of all that was sent.
fn acknowledgements(bench: &mut Bench) -> Vec<Chunk> {
    bench.take(|chunk| matches!(chunk, Chunk::Sack(_) | Chunk::NrSack(_)).then(|| chunk.clone()))
}

/// It is used if both ends offer it; the receiver says that it keeps all it has.
#[test]
fn both_ends_have_to_offer_it() {
    for (params, used) in [(offers(), true), (vec![], false)] {
        let mut bench = bench(params);
        assert_eq!(bench.end.extensions(bench.id).nr_sack, used);
        bench.data(1, 10);
        bench.data(3, 10);
        let said = acknowledgements(&mut bench);
        match said.last() {
            Some(Chunk::NrSack(sack)) if used => {
                assert_eq!((sack.cumulative, &sack.gaps[..]), (Tsn(1), &[][..]));
                assert_eq!(sack.kept[..], [GapBlock { start: 2, end: 2 }]);
            }
            Some(Chunk::Sack(sack)) if !used => assert_eq!(sack.gaps.len(), 1),
            other => panic!("{used}: {other:?}"),
        }
    }
}

/// Without agreement it is a chunk that is not understood, of the kind that ends its packet.
#[test]
fn without_agreement_it_is_not_understood() {
    let mut bench = bench(vec![]);
    bench.send(1, FULL);
    let tag = bench.tag;
    bench.hear_packet(0, tag, [nr_sack(1, &[], &[]), crate::support::bench::chunk(1, 10)]);
    assert_eq!(bench.view(0).flight, 1468);
    assert_eq!(acknowledgements(&mut bench).len(), 0, "the DATA behind it was not looked at");
}

/// What is kept leaves the send buffer; what could be taken back does not.
#[test]
fn what_is_kept_frees_the_send_buffer() {
    for (gaps, kept, freed) in
        [(&[(2, 3)][..], &[][..], 0), (&[][..], &[(2, 3)][..], 2), (&[(2, 2)], &[(3, 3)], 1)]
    {
        let mut bench = bench(offers());
        bench.send(4, FULL);
        assert!(bench.try_send(FULL).is_err());
        bench.hear(nr_sack(0, gaps, kept));
        assert_eq!(bench.view(0).flight, 2 * 1468, "all of them are acknowledged");
        let taken = (0..4).take_while(|_| bench.try_send(FULL).is_ok()).count();
        assert_eq!(taken, freed, "{gaps:?} {kept:?}");
    }
}

/// A peer that takes back what it said it keeps is not believed: the data are gone.
#[test]
fn what_is_kept_cannot_be_taken_back() {
    let mut bench = bench(offers());
    bench.send(4, FULL);
    bench.loads();
    bench.hear(nr_sack(0, &[(2, 2)], &[(3, 3)]));
    assert_eq!(bench.view(0).flight, 2 * 1468);
    bench.hear(nr_sack(0, &[], &[]));
    assert_eq!(bench.view(0).flight, 3 * 1468, "2 is in flight again, 3 is not");
    bench.pass(ms(1000));
    let again: Vec<u32> = bench.loads().into_iter().flat_map(|(.., tsns)| tsns).collect();
    assert!(again.contains(&1) && !again.contains(&3), "{again:?}");
    bench.sack(4, &[]);
    assert_eq!((bench.view(0).flight, bench.try_send(FULL).is_ok()), (0, true));
}

/// Blocks that lie beyond what was sent, that are old, or upside down release nothing.
#[test]
fn hostile_blocks_release_nothing() {
    let mut bench = bench(offers());
    bench.send(4, FULL);
    bench.hear(nr_sack(2, &[], &[]));
    bench.hear(nr_sack(0, &[], &[(3, 4)]));
    assert!(bench.try_send(FULL).is_ok() && bench.try_send(FULL).is_ok() && bench.try_send(FULL).is_err());
    let mut sack = match nr_sack(2, &[], &[(3, 3)]) {
        Chunk::NrSack(sack) => sack,
        other => panic!("{other:?}"),
    };
    sack.kept[0] = GapBlock { start: 2, end: 1 };
    bench.hear(Chunk::NrSack(sack));
    assert!(bench.try_send(FULL).is_err());
    bench.hear(nr_sack(2, &[], &[(3, 9000)]));
    assert!(bench.paths().is_empty() || bench.try_send(FULL).is_err(), "it acknowledges what was never sent");
}

/// A receiver that has said that it keeps all drops nothing for a chunk that fills a gap.
#[test]
fn nothing_that_was_acknowledged_is_dropped() {
    for (params, dropped) in [(offers(), 0), (vec![], 1)] {
        let config = Config { receive_buffer: 5000, ..with(NR_SACK) };
        let mut bench = Bench::with(config, 1, |_| params);
        bench.data(1, 10);
        while bench.end.read(bench.now, bench.id).is_some() {}
        // 3 to 5 fill the buffer; 2 is next in order.
        for tsn in [3, 4, 5] {
            bench.data(tsn, FULL);
        }
        acknowledgements(&mut bench);
        bench.data(2, FULL);
        let cumulative = match acknowledgements(&mut bench).pop() {
            Some(Chunk::Sack(sack)) => sack.cumulative.0,
            Some(Chunk::NrSack(sack)) => sack.cumulative.0,
            other => panic!("{other:?}"),
        };
        assert_eq!(cumulative, 5 - dropped);
    }
}

/// A buffer that is full of chunks beyond a gap, none of which may be dropped, takes all chunks of a packet that fills
/// the gap, not only the first.
#[test]
fn a_full_buffer_takes_all_chunks_of_the_packet_that_is_next() {
    let mut bench = Bench::with(Config { receive_buffer: 3000, ..with(NR_SACK) }, 1, |_| offers());
    for (tsn, bytes) in [(10, 1000), (12, 1000), (14, 940)] {
        bench.data(tsn, bytes);
    }
    let tag = bench.tag;
    bench.hear_packet(0, tag, [1, 2, 3].map(|tsn| crate::support::bench::chunk(tsn, 10)));
    bench.pass(ms(300));
    match acknowledgements(&mut bench).last() {
        Some(Chunk::NrSack(sack)) => assert_eq!((sack.cumulative, sack.kept.len()), (Tsn(3), 3)),
        other => panic!("{other:?}"),
    }
}
