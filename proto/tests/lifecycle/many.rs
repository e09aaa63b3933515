//! A hundred thousand chunks outstanding, and SACKs with thousands of Gap Ack Blocks over them.

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Event, Message};
use bytes::Bytes;

use crate::support::bench::{Bench, era};

/// Chunks of one byte; with header and padding 20 bytes of flight each.
const CHUNKS: u32 = 100_000;
const SIZE: u64 = 20;
/// Blocks of a SACK, and TSNs from the beginning of one to that of the next: the last lies within the 65,535 that a
/// block can reach.
const BLOCKS: u32 = 5000;
const STEP: u32 = 13;

/// An endpoint whose window admits so many chunks, and the last TSN acknowledged.
fn opened() -> (Bench, u32) {
    let mut config = era("rfc9260").with(|parameters| parameters.send_buffer = Some(1 << 30));
    config.initial_ssthresh = Some(1 << 30);
    let mut bench = Bench::new(config, 1);
    bench.end.set_notes(false);
    bench.a_rwnd = 1 << 24;
    // The window grows by one chunk with every SACK, as long as it is in full use.
    let first = 4000;
    bench.send(first as usize, 1400);
    let mut acked = 0;
    while bench.view(0).window < u64::from(CHUNKS) * SIZE {
        acked += 1;
        bench.sack(acked, &[]);
    }
    let last = |bench: &mut Bench| bench.loads().last().and_then(|(_, _, tsns)| tsns.last().copied());
    while let Some(tsn) = last(&mut bench) {
        bench.sack(tsn, &[]);
    }
    (bench, first)
}

/// The same with so many chunks in flight, on two streams in turn.
fn outstanding() -> (Bench, u32) {
    let (mut bench, acked) = opened();
    for stream in (0..2).cycle().take(CHUNKS as usize) {
        let message = Message { stream, payload: Bytes::from_static(b"x"), ..Message::default() };
        bench.give(message).expect("there is room");
    }
    bench.drain();
    assert_eq!(bench.view(0).flight, u64::from(CHUNKS) * SIZE);
    (bench, acked)
}

/// Blocks of `length` TSNs each, the first of them behind one that is missing.
fn blocks(acked: u32, length: u32) -> Vec<(u32, u32)> {
    (0..BLOCKS).map(|block| acked + 2 + STEP * block).map(|first| (first, first + length - 1)).collect()
}

/// The TSNs of what was sent again.
fn resent(bench: &mut Bench) -> Vec<u32> {
    bench.loads().into_iter().flat_map(|(_, _, tsns)| tsns).collect()
}

/// Each SACK makes every block longer by one TSN. After the first two no chunk has been reported missing three times;
/// the third marks those below the highest TSN that it newly acknowledges, halves the window, and lets one packet of
/// the lowest go. Then all is acknowledged.
//= rfc9260#section-7.2.4
#[test]
fn blocks_over_a_hundred_thousand_chunks() {
    let (mut bench, acked) = outstanding();
    let window = bench.view(0).window;
    resent(&mut bench);
    for length in 1..=2 {
        bench.sack(acked, &blocks(acked, length));
        assert_eq!(bench.view(0).flight, u64::from(CHUNKS - length * BLOCKS) * SIZE);
        assert!(resent(&mut bench).is_empty());
    }
    bench.sack(acked, &blocks(acked, 3));
    let lost = (BLOCKS - 1) * STEP + 1 - 3 * (BLOCKS - 1);
    let again = resent(&mut bench);
    let in_flight = u64::from(CHUNKS - 3 * BLOCKS - lost) + again.len() as u64;
    assert_eq!((again[0], bench.view(0).window), (acked + 1, window / 2));
    assert_eq!(bench.view(0).flight, in_flight * SIZE);
    bench.sack(acked + CHUNKS, &[]);
    assert_eq!(bench.view(0).flight, 0);
    bench.send(1, 1);
    assert_eq!(resent(&mut bench), [acked + CHUNKS + 1]);
}

/// A peer that takes back what it acknowledged, and acknowledges it again, sixty times: whatever is in flight is
/// counted once.
//= rfc9260#section-6.3.2
#[test]
fn a_peer_that_takes_blocks_back() {
    let (mut bench, acked) = outstanding();
    for turn in 0..60 {
        let length = if turn % 2 == 0 { 3 } else { 1 };
        bench.sack(acked, &blocks(acked, length));
        assert!(bench.view(0).flight <= u64::from(CHUNKS - length * BLOCKS) * SIZE, "turn {turn}");
        resent(&mut bench);
    }
    bench.sack(acked + CHUNKS, &[]);
    assert_eq!(bench.view(0).flight, 0);
    let ended = |event: &Event| matches!(event, Event::Lost(_));
    assert!(!bench.events.iter().any(|(_, event)| ended(event)));
    assert!(bench.take(|chunk| matches!(chunk, Chunk::Abort(_)).then_some(())).is_empty());
}

/// Of the messages of one stream, no more are outstanding than SSNs can tell apart: the next one would have the SSN of
/// the lowest.
//= rfc9260#section-6.1
#[test]
fn ssns_do_not_meet() {
    let (mut bench, acked) = opened();
    let most = u32::from(u16::MAX);
    bench.send(CHUNKS as usize, 1);
    assert_eq!(bench.view(0).flight, u64::from(most) * SIZE);
    resent(&mut bench);
    bench.sack(acked + 3, &[]);
    assert_eq!(resent(&mut bench), (1..=3).map(|n| acked + most + n).collect::<Vec<_>>());
    // Gaps acknowledge, and the lowest message still holds its SSN.
    bench.sack(acked + 3, &[(acked + 5, acked + 100)]);
    assert!(resent(&mut bench).is_empty());
    bench.sack(acked + 100, &[]);
    assert_eq!(resent(&mut bench).len(), 97);
    bench.sack(acked + 100 + most, &[]);
    bench.sack(acked + CHUNKS, &[]);
    assert_eq!(bench.view(0).flight, 0);
}
