//! What an attack costs: who does not know the tag reaches nothing, who does is bounded.

use anabranch_proto::wire::chunk::{Data, GapBlock, Heartbeat, Pad, Sack};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{Config, PathState, Ssn, Tsn};
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

use crate::support::bench::{Bench, chunk, era, ms};

/// A HEARTBEAT ACK that was not asked for, or with a nonce that is not the path's, confirms nothing: 2^64 nonces.
//= rfc9260#section-5.4
#[test]
fn a_forged_heartbeat_ack_confirms_nothing() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    let asked = bench.heartbeats();
    let (_, _, info) = asked.first().expect("the second path is asked");
    let mut forged = info.to_vec();
    forged[15] ^= 1;
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(forged)));
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(Bytes::new())));
    assert_eq!(bench.view(1).state, PathState::Unconfirmed);
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(info.clone())));
    assert_eq!(bench.view(1).state, PathState::Active);
}

/// Packets of the smallest chunks occupy much memory, but not for as long as their memory is used again.
#[test]
fn packets_of_the_smallest_chunks() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    for _ in 0..8 {
        bench.hear_packet(0, bench.tag, vec![Chunk::Pad(Pad { bytes: 0 }); 370]);
    }
    let spares: Vec<usize> = (0..8).map(|_| bench.end.spare().chunks.capacity()).collect();
    assert!(spares.iter().all(|capacity| *capacity <= 128), "{spares:?}");
}

/// Fragments of one byte that never complete: a buffer of 10,000 bytes holds as many chunks as if each had 64 bytes,
/// 156; and what fills the gap in front of them takes the place of the highest.
#[test]
fn tiny_fragments() {
    let mut bench = Bench::new(Config { receive_buffer: 10_000, ..era("rfc9260") }, 1);
    for n in 0..2000 {
        bench.hear(fragment(1 + 2 * n));
    }
    let statistics = bench.end.statistics(bench.now, bench.id);
    assert_eq!(statistics.no_room, 2000 - 10_000 / 64);
    assert!(bench.end.read(bench.now, bench.id).is_none());
    bench.hear(fragment(2));
    assert_eq!(bench.end.statistics(bench.now, bench.id).no_room, statistics.no_room);
    assert_eq!(bench.sacks().last().expect("a SACK").1.cumulative, Tsn(3));
}

fn fragment(tsn: u32) -> Chunk {
    let payload = Bytes::from_static(b"x");
    let (ssn, ppid, begin, end) = (Ssn(0), 0, false, false);
    Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream: 0,
        ssn,
        ppid,
        begin,
        end,
        unordered: false,
        immediate: false,
        payload,
    })
}

/// A SACK with hundreds of gap blocks, unsorted, overlapping and upside down, is what they cover together; one
/// that reaches beyond what was sent ends the association.
#[test]
fn a_flood_of_gap_blocks() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.grow_to(60_000);
    let first = bench.next_tsn();
    bench.send(40, 1452);
    let mut gaps: SmallVec<[GapBlock; 4]> = SmallVec::new();
    for n in (0..360u16).rev() {
        let start = 3 + n % 30;
        gaps.push(GapBlock { start, end: start + n % 5 });
        gaps.push(GapBlock { start: start + 1, end: start });
    }
    let cumulative = Tsn(first.wrapping_sub(1));
    let before = bench.view(0).flight;
    bench.hear(Chunk::Sack(Sack {
        flags: 0,
        cumulative,
        a_rwnd: 100_000,
        gaps: gaps.clone(),
        duplicates: SmallVec::new(),
    }));
    // Offsets 3 to 36 are covered: 34 chunks of 1,468 bytes.
    let resent = bench.view(0).fast_retransmissions;
    assert_eq!(resent, 0, "one report is not three");
    assert_eq!(bench.view(0).delivered % 1468, 0);
    assert!(before - 34 * 1468 <= bench.view(0).flight);
    gaps.push(GapBlock { start: 60_000, end: 65_535 });
    bench.hear(Chunk::Sack(Sack {
        flags: 0,
        cumulative,
        a_rwnd: 100_000,
        gaps,
        duplicates: SmallVec::new(),
    }));
    assert_eq!(bench.counted().keys().filter(|kind| kind.contains("Lost")).count(), 1);
}

/// Acknowledging each chunk alone, or what has not arrived yet, grows the window by no more than one PMDCS a SACK
/// and no more than what was acknowledged.
//= rfc9260#section-7.2.1
#[test]
fn split_and_early_acknowledgements() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(10, 1452);
    let window = bench.window();
    bench.sack(1, &[]);
    bench.sack(1, &[]);
    bench.sack(1, &[]);
    assert_eq!(bench.window(), window + 1468, "the same acknowledgement again gives nothing");
    bench.sack(4, &[]);
    assert!(bench.window() <= window + 2 * 1468);
}

/// Duplicates that a receiver reports grow nothing, and each costs it four bytes. §7.2.2 describes a way that counts
/// them; but nobody can check a report, what it names is no longer outstanding, and a window would grow by one
/// PMDCS a SACK instead of one a round trip. Congestion avoidance at 4,404 bytes: the third chunk of 1,468 makes
/// a step.
//= rfc9260#section-7.2.2
#[test]
fn reported_duplicates_grow_no_window() {
    let mut bench = Bench::new(Config { initial_ssthresh: Some(3000), ..era("rfc9260") }, 1);
    bench.send(10, 1452);
    let windows = (1..=3).map(|tsn| {
        let duplicates = (0..300).map(|_| Tsn(1)).collect();
        let sack =
            Sack { flags: 0, cumulative: Tsn(tsn), a_rwnd: 100_000, gaps: SmallVec::new(), duplicates };
        bench.hear(Chunk::Sack(sack));
        bench.window()
    });
    assert_eq!(windows.collect::<Vec<_>>(), [4404, 4404, 4404 + 1468]);
}

/// HEARTBEATs in one packet are answered, at most 64 of them; the same duplicate a hundred times is reported 16
/// times.
#[test]
fn floods_of_heartbeats_and_duplicates() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let heartbeat = || Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"again")));
    bench.hear_packet(0, bench.tag, (0..300).map(|_| heartbeat()));
    let answers = bench.sent.iter().flat_map(|s| &s.1.chunks).filter(|c| matches!(c, Chunk::HeartbeatAck(_)));
    assert_eq!(answers.count(), 64);
    bench.hear_packet(0, bench.tag, (0..100).map(|_| chunk(1, 10)));
    bench.pass(ms(200));
    assert_eq!(bench.sacks().last().expect("a SACK").1.duplicates.len(), 16);
}

/// A few bytes out of a large packet do not keep it: they are copied.
#[test]
fn a_small_payload_does_not_pin_its_packet() {
    let small = chunk(1, 10);
    let large = chunk(2, 1400);
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, 10);
    let packet = Packet { chunks: [small, large].into_iter().collect(), ..bench.sent[0].1.clone() };
    let mut bytes = BytesMut::new();
    packet.encode(&mut bytes).expect("it fits");
    let bytes = bytes.freeze();
    let range = bytes.as_ptr() as usize..bytes.as_ptr() as usize + bytes.len();
    let decoded = Packet::decode(packet.from, packet.to, packet.ecn, bytes.clone()).expect("right");
    let shared: Vec<bool> = decoded
        .chunks
        .iter()
        .map(|c| {
            if let Chunk::Data(data) = c { range.contains(&(data.payload.as_ptr() as usize)) } else { false }
        })
        .collect();
    assert_eq!(shared, [false, true]);
}
