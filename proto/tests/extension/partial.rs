//! Partial reliability: RFC 3758 and RFC 7496.

use anabranch_proto::wire::chunk::ForwardTsn;
use anabranch_proto::wire::{Chunk, Param};
use anabranch_proto::{Config, Event, Extensions, Message, Reliability, SendError, Ssn, Tsn};
use bytes::Bytes;

use crate::support::bench::{Bench, at_ms, chunk, ms};
use crate::support::{World, secs};
use crate::with;

const PARTIAL: Extensions = Extensions {
    partial_reliability: true,
    reconfiguration: false,
    authentication: false,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

fn bench() -> Bench {
    Bench::with(with(PARTIAL), 1, |_| vec![Param::ForwardTsnSupported])
}

fn message(stream: u16, size: usize, reliability: Reliability) -> Message {
    Message { stream, payload: Bytes::from(vec![stream as u8; size]), reliability, ..Message::default() }
}

fn give(bench: &mut Bench, stream: u16, size: usize, reliability: Reliability) {
    bench.give(message(stream, size, reliability)).expect("there is room");
}

fn forwards(bench: &mut Bench) -> Vec<ForwardTsn> {
    bench.take(|c| if let Chunk::ForwardTsn(forward) = c { Some(forward.clone()) } else { None })
}

fn forward(cumulative: u32, skipped: &[(u16, u16)]) -> Chunk {
    let skipped = skipped.iter().map(|&(stream, ssn)| (stream, Ssn(ssn))).collect();
    Chunk::ForwardTsn(ForwardTsn { cumulative: Tsn(cumulative), skipped })
}

/// Three messages of one chunk each, the first not to be sent again; the others are acknowledged, so the first is
/// found lost: the window is cut as for any loss, the message goes back, FORWARD TSN says 1 on stream 4.
//= rfc3758#section-3.5
//= rfc7496#section-3.1
#[test]
fn a_message_that_may_not_be_sent_again() {
    let mut bench = bench();
    bench.grow_to(20_000);
    let first = bench.next_tsn();
    let window = bench.window();
    give(&mut bench, 4, 1000, Reliability::Retransmissions(0));
    (0..3).for_each(|_| give(&mut bench, 5, 1400, Reliability::Full));
    bench.drain();
    bench.loads();
    (1..=3).for_each(|n| bench.sack(first - 1, &[(first + 1, first + n)]));
    assert_eq!(bench.loads(), [], "it is not sent again");
    assert_eq!(forwards(&mut bench), [ForwardTsn { cumulative: Tsn(first), skipped: vec![(4, Ssn(0))] }]);
    assert_eq!(bench.failed(), [(message(4, 1000, Reliability::Retransmissions(0)), true)]);
    assert!(bench.window() <= window / 2 + 4 * 1468, "cut: {} of {window}", bench.window());
    assert_eq!(bench.view(0).flight, 0);
    bench.sack(first + 3, &[]);
    bench.pass(ms(60_000));
    assert_eq!(forwards(&mut bench), [], "the peer knows");
}

/// One retransmission is allowed: it is sent again after T3-rtx, and given up at the next.
//= rfc7496#section-3.1
#[test]
fn one_retransmission() {
    let mut bench = bench();
    give(&mut bench, 0, 100, Reliability::Retransmissions(1));
    bench.drain();
    bench.until(at_ms(1000));
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (1000, 0, vec![1])]);
    bench.until(at_ms(3000));
    assert_eq!((bench.loads(), forwards(&mut bench).len()), (vec![], 1));
    assert_eq!(bench.timeouts().len(), 2);
}

/// FORWARD TSN without an answer is said again after the RTO, doubled each time; the silence ends the association
/// like any other.
//= rfc3758#section-3.5
#[test]
fn forward_tsn_is_said_again() {
    let mut bench = bench();
    give(&mut bench, 0, 100, Reliability::Retransmissions(0));
    bench.drain();
    bench.until(at_ms(1000));
    bench.sent.clear();
    bench.until(at_ms(20_000));
    let when: Vec<u64> = bench.sent.iter().map(|(at, ..)| at.as_nanos() / 1_000_000).collect();
    assert_eq!(when, [3000, 7000, 15_000]);
    bench.until(at_ms(600_000));
    assert!(bench.events.iter().any(|(_, e)| matches!(e, Event::Lost(_))));
}

/// A peer that answers FORWARD TSN, be it only the second one, is there: of its messages none is acknowledged, each is
/// given up at its first timeout, and the errors of that round are forgotten.
//= rfc3758#section-3.5
//= rfc9260#section-8.1
//= rfc9260#section-8.2
#[test]
fn an_answer_to_forward_tsn_ends_a_row_of_errors() {
    let config = with(PARTIAL).with(|parameters| parameters.heartbeat_interval = None);
    let mut bench = Bench::with(config, 1, |_| vec![Param::ForwardTsnSupported]);
    for tsn in 1..=20 {
        give(&mut bench, 0, 100, Reliability::Retransmissions(0));
        bench.drain();
        let forwarded = |bench: &mut Bench| {
            bench.pass(bench.view(0).rto);
            forwards(bench).len()
        };
        assert_eq!((forwarded(&mut bench), forwarded(&mut bench)), (1, 1), "round {tsn}");
        assert_eq!(bench.view(0).errors, 2, "round {tsn}");
        bench.sack(tsn, &[]);
        assert_eq!(bench.view(0).errors, 0);
    }
    assert!(bench.events.iter().all(|(_, event)| !matches!(event, Event::Lost(_))));
}

/// 200 messages on as many streams are given up, of which a FORWARD TSN of 496 bytes names 122. The peer hears of the
/// others when it knows of these, be it in less than the smoothed round-trip time, and not before. To know a part is an
/// answer.
//= rfc3758#section-3.5
//= rfc9260#section-8.2
#[test]
fn a_forward_tsn_without_room_for_all_streams() {
    let config = Config { outbound_streams: 200, ..with(PARTIAL) };
    let config = config.with(|parameters| (parameters.mtu, parameters.heartbeat_interval) = (528, None));
    let mut bench = Bench::with(config, 1, |_| vec![Param::ForwardTsnSupported]);
    give(&mut bench, 0, 1, Reliability::Full);
    bench.drain();
    bench.pass(ms(100));
    bench.sack(1, &[]);
    bench.send(40, 400);
    while bench.view(0).flight > 0 {
        bench.sack(bench.next_tsn() - 1, &[]);
    }
    assert!(bench.window() > 200 * 20, "{}", bench.window());
    let first = bench.next_tsn();
    (0..200).for_each(|stream| give(&mut bench, stream, 1, Reliability::Retransmissions(0)));
    bench.drain();
    bench.pass(bench.view(0).rto);
    let said = |bench: &mut Bench| {
        let all = forwards(bench).into_iter();
        all.map(|forward| (forward.cumulative.0 + 1 - first, forward.skipped.len())).collect::<Vec<_>>()
    };
    assert_eq!((said(&mut bench), bench.view(0).errors), (vec![(122, 122)], 1));
    let srtt = bench.view(0).srtt.expect("it is measured");
    bench.pass(srtt / 4);
    bench.sack(first - 1, &[]);
    assert_eq!(said(&mut bench), [], "the peer may not have got the first");
    bench.pass(srtt / 4);
    bench.sack(first + 121, &[]);
    assert_eq!((said(&mut bench), bench.view(0).errors), (vec![(200, 78)], 0));
    bench.sack(first + 199, &[]);
    bench.pass(ms(60_000));
    assert_eq!((said(&mut bench), bench.view(0).errors), (vec![], 0));
}

/// Before its first transmission: nothing is said, the user gets it back as not sent, its SSN goes to the next.
//= rfc3758#section-4.1
#[test]
fn a_lifetime_that_ends_in_the_queue() {
    let mut bench = bench();
    bench.sack_window(0, 0);
    give(&mut bench, 0, 1400, Reliability::Full);
    bench.drain();
    give(&mut bench, 3, 1400, Reliability::Lifetime(250));
    give(&mut bench, 3, 10, Reliability::Full);
    bench.drain();
    bench.until(at_ms(249));
    assert_eq!(bench.failed(), []);
    bench.until(at_ms(250));
    assert_eq!(bench.failed(), [(message(3, 1400, Reliability::Lifetime(250)), false)]);
    assert_eq!(forwards(&mut bench), []);
}

/// Lifetimes also end while the association is being set up (200 ms): these
/// messages come back as not sent, and the one that lives longer is delivered.
//= rfc3758#section-4.1
#[test]
fn a_lifetime_that_ends_during_set_up() {
    let config = with(PARTIAL);
    let (mut world, id) = World::joined([&config, &config], 1);
    for (stream, lifetime) in [(0, 50), (1, 150), (2, 1000)] {
        let limited = message(stream, 100, Reliability::Lifetime(lifetime));
        world.ends[0].send(world.now, id, limited).expect("there is room");
    }
    world.drain(0);
    world.run(secs(2.0));
    let failed = world.events[0].iter().filter_map(|(at, _, event)| match event {
        Event::SendFailed { message, sent } => Some((*at, message.stream, *sent)),
        _ => None,
    });
    assert_eq!(failed.collect::<Vec<_>>(), [(at_ms(50), 0, false), (at_ms(150), 1, false)]);
    let peer = world.up(1).expect("it is up");
    let read: Vec<_> = std::iter::from_fn(|| world.ends[1].read(world.now, peer)).map(|d| d.stream).collect();
    assert_eq!(read, [2]);
}

/// A chunk in flight is left alone when its lifetime ends; when it would be sent again, it is not.
//= rfc3758#section-4.1
#[test]
fn a_lifetime_that_ends_in_flight() {
    let mut bench = bench();
    give(&mut bench, 3, 1400, Reliability::Lifetime(250));
    bench.drain();
    bench.until(at_ms(999));
    assert_eq!((bench.failed().len(), bench.view(0).flight), (0, 1416));
    bench.until(at_ms(1000));
    assert_eq!(bench.failed(), [(message(3, 1400, Reliability::Lifetime(250)), true)]);
    assert_eq!(forwards(&mut bench), [ForwardTsn { cumulative: Tsn(1), skipped: vec![(3, Ssn(0))] }]);
}

/// All chunks of a message go together, also those acknowledged beyond a gap, and what was not sent; one after it
/// is delivered.
//= rfc3758#section-3.5
#[test]
fn fragments_are_given_up_together() {
    let mut bench = bench();
    give(&mut bench, 2, 3 * 1452, Reliability::Lifetime(500));
    bench.drain();
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (0, 0, vec![2]), (0, 0, vec![3])]);
    bench.sack(0, &[(2, 2)]);
    bench.until(at_ms(1000));
    let forward = forwards(&mut bench);
    assert_eq!(forward, [ForwardTsn { cumulative: Tsn(3), skipped: vec![(2, Ssn(0))] }]);
    let (message, sent) = bench.failed().remove(0);
    assert_eq!((message.payload.len(), sent), (2 * 1452, true), "what the peer did not have");
}

/// The second of three fragments is lost and may not be sent again, the third was not sent: a TSN that is never sent
/// stands for it, so that a peer that has all of what was sent hears of the message.
//= rfc3758#section-3.5
#[test]
fn what_was_not_sent_needs_a_tsn() {
    let mut bench = bench();
    bench.sack_window(0, 3000);
    give(&mut bench, 2, 3 * 1452, Reliability::Retransmissions(0));
    bench.drain();
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (0, 0, vec![2])]);
    bench.sack_window(1, 0);
    bench.until(at_ms(1000));
    assert_eq!(forwards(&mut bench), [ForwardTsn { cumulative: Tsn(3), skipped: vec![(2, Ssn(0))] }]);
    let (message, sent) = bench.failed().remove(0);
    assert_eq!((message.payload.len(), sent), (2 * 1452, true));
    bench.sack_window(3, 10_000);
    give(&mut bench, 2, 10, Reliability::Full);
    bench.drain();
    assert_eq!(bench.loads(), [(1000, 0, vec![4])]);
}

/// A message that is under way when its lifetime ends is sent to its end.
//= rfc3758#section-4.1
#[test]
fn a_lifetime_that_ends_on_the_way() {
    let mut bench = bench();
    bench.sack_window(0, 1500);
    give(&mut bench, 2, 2 * 1452, Reliability::Lifetime(500));
    bench.drain();
    bench.sack_window(1, 0);
    bench.until(at_ms(600));
    bench.loads();
    bench.sack_window(1, 10_000);
    assert_eq!((bench.loads(), bench.failed().len()), (vec![(600, 0, vec![2])], 0));
}

/// Unordered messages are not listed: a receiver finds their parts by TSN.
//= rfc3758#section-3.2
#[test]
fn unordered_messages_have_no_place_in_the_list() {
    let mut bench = bench();
    let unordered =
        |stream| Message { unordered: true, ..message(stream, 10, Reliability::Retransmissions(0)) };
    bench.give(unordered(7)).expect("room");
    give(&mut bench, 8, 10, Reliability::Retransmissions(0));
    bench.drain();
    bench.until(at_ms(1000));
    assert_eq!(forwards(&mut bench), [ForwardTsn { cumulative: Tsn(2), skipped: vec![(8, Ssn(0))] }]);
}

/// A full send buffer: what has the lowest priority gives way, newest first, to a higher one and to reliable data,
/// but not to its equal; and not in vain.
//= rfc7496#section-3.2
#[test]
fn priorities() {
    let config = with(PARTIAL).with(|parameters| parameters.send_buffer = Some(3000));
    let mut bench = Bench::with(config, 1, |_| vec![Param::ForwardTsnSupported]);
    bench.sack_window(0, 0);
    give(&mut bench, 0, 100, Reliability::Full);
    bench.drain();
    give(&mut bench, 1, 1000, Reliability::Priority(5));
    give(&mut bench, 2, 1000, Reliability::Priority(9));
    give(&mut bench, 3, 800, Reliability::Priority(5));
    let full = |bench: &mut Bench, size, reliability| {
        matches!(bench.give(message(9, size, reliability)), Err(SendError::Full(_)))
    };
    assert!(full(&mut bench, 500, Reliability::Priority(9)), "not for an equal");
    assert!(full(&mut bench, 2000, Reliability::Priority(7)), "1,000 are not enough");
    give(&mut bench, 4, 900, Reliability::Priority(7));
    give(&mut bench, 6, 1500, Reliability::Full);
    bench.drain();
    let gone: Vec<u16> = bench.failed().iter().map(|(message, _)| message.stream).collect();
    assert_eq!(gone, [2, 4, 3]);
    assert!(bench.failed().iter().all(|(_, sent)| !sent));
}

/// A reliable message costs nothing, and a peer without the extension gets everything.
#[test]
fn without_agreement_everything_is_reliable() {
    let mut bench = Bench::new(with(PARTIAL), 1);
    give(&mut bench, 0, 100, Reliability::Lifetime(1));
    bench.drain();
    bench.until(at_ms(1000));
    assert_eq!(bench.loads(), [(0, 0, vec![1]), (1000, 0, vec![1])]);
}

/// The example of the section: 103 is skipped, 104 and 105 have arrived, 107 has not been reached.
//= rfc3758#section-3.6
#[test]
fn the_cumulative_point_moves_on() {
    let mut bench = bench();
    for tsn in [1, 3, 4, 6] {
        bench.data(tsn, 10);
    }
    bench.sacks();
    bench.hear(forward(2, &[(0, 1)]));
    let (_, sack) = bench.sacks().pop().expect("at once, there is a gap");
    assert_eq!((sack.cumulative, sack.gaps.len(), sack.gaps[0].start), (Tsn(4), 1, 2));
    let read: Vec<usize> =
        std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).map(|d| d.len()).collect();
    assert_eq!(read, [10, 10, 10], "stranded messages are delivered; SSN 4 still waits");
    bench.data(2, 10);
    assert_eq!(bench.sacks().pop().expect("a SACK").1.duplicates[..], [Tsn(2)], "late: a duplicate");
    bench.hear(forward(3, &[]));
    assert_eq!(bench.sacks().pop().expect("out of date: at once").1.cumulative, Tsn(4));
}

/// Of a message that was delivered in part the user is told that no more comes.
//= rfc3758#section-3.6
#[test]
fn a_partial_delivery_ends() {
    let config = anabranch_proto::Config { receive_buffer: 5000, ..with(PARTIAL) };
    let mut bench = Bench::with(config, 1, |_| vec![Param::ForwardTsnSupported]);
    for tsn in 1..=3 {
        let Chunk::Data(mut data) = chunk(tsn, 1400) else { panic!() };
        (data.begin, data.end, data.ssn) = (tsn == 1, false, Ssn(0));
        bench.hear(Chunk::Data(data));
    }
    let read = |bench: &mut Bench| bench.end.read(bench.now, bench.id);
    let part = read(&mut bench).expect("a part");
    assert!(!part.complete && !part.is_empty());
    while read(&mut bench).is_some() {}
    bench.hear(forward(4, &[(0, 0)]));
    let end = read(&mut bench).expect("the end");
    assert!(end.abandoned && end.complete && end.is_empty());
    let Chunk::Data(data) = chunk(5, 10) else { panic!() };
    bench.hear(Chunk::Data(anabranch_proto::wire::chunk::Data { ssn: Ssn(1), ..data }));
    assert_eq!(read(&mut bench).expect("the next").len(), 10);
}

/// FORWARD TSNs in floods, far ahead, for streams that do not exist: no state, no harm beyond the sender's own data.
/// One for more than can be outstanding, by our window of 1 MiB, ends the association.
#[test]
fn hostile_forwards() {
    let mut bench = bench();
    let many = (0..150).map(|n| forward(10 + n, &[(60_000, 1), (3, 7)]));
    bench.hear_packet(0, bench.tag, many);
    bench.pass(ms(200));
    assert_eq!(bench.sacks().pop().expect("a SACK").1.cumulative, Tsn(13), "four of a packet count");
    bench.hear(forward(13 + (1 << 20), &[]));
    bench.pass(ms(200));
    assert_eq!(bench.sacks().pop().expect("a SACK").1.cumulative, Tsn(13 + (1 << 20)));
    bench.hear(forward(13, &[]));
    assert_eq!(bench.sacks().pop().expect("a SACK").1.cumulative, Tsn(13 + (1 << 20)), "never back");
    let lost = |bench: &mut Bench| bench.counted().keys().filter(|kind| kind.contains("Lost")).count();
    assert_eq!(lost(&mut bench), 0);
    bench.hear(forward(13 + (1 << 21) + 1, &[]));
    assert_eq!(lost(&mut bench), 1);
}

/// Between two ends with losses: what arrives is in order, nothing is delivered twice, everything is accounted for
/// once, and the association ends gracefully.
#[test]
fn two_ends_with_losses() {
    let config = with(PARTIAL);
    for seed in 0..200 {
        let (mut world, id) = World::joined([&config, &config], 1);
        world.wire = true;
        world.run(secs(0.5));
        world.weather[0].loss = 200;
        world.chance = rand_core::SeedableRng::seed_from_u64(seed);
        for n in 0..200u32 {
            let reliability = match n % 4 {
                0 => Reliability::Full,
                1 => Reliability::Retransmissions(n % 3),
                2 => Reliability::Lifetime(300),
                _ => Reliability::Priority(n),
            };
            let (stream, unordered) = ((n % 3) as u16, n % 7 == 0);
            let payload = vec![0; 1 + n as usize * 20].into();
            world.ends[0]
                .send(
                    world.now,
                    id,
                    Message { stream, ppid: n, unordered, payload, reliability, immediate: n % 9 == 0 },
                )
                .ok();
            world.drain(0);
            world.run(world.now + ms(20));
        }
        world.ends[0].shutdown(world.now, id);
        world.drain(0);
        world.weather[0].loss = 0;
        world.run(secs(300.0));
        let peer = world.up(1).expect("it was up");
        let read: Vec<_> = std::iter::from_fn(|| world.ends[1].read(world.now, peer)).collect();
        let failed = world.events[0].iter().filter(|(_, _, e)| matches!(e, Event::SendFailed { .. })).count();
        assert!(world.happened(0, &Event::Closed), "seed {seed}");
        assert!(failed > 0 && read.len() + failed >= 200, "seed {seed}: {} and {failed}", read.len());
        for stream in 0..3 {
            let ordered = read.iter().filter(|d| d.stream == stream && !d.unordered).map(|d| d.ppid);
            assert!(ordered.is_sorted(), "seed {seed}");
        }
        let mut all: Vec<u32> = read.iter().map(|d| d.ppid).collect();
        all.sort_unstable();
        assert!(all.is_sorted_by(|a, b| a < b), "seed {seed}: nothing twice");
        let reliable = (0..200).step_by(4).filter(|n| all.binary_search(n).is_err()).count();
        assert_eq!(reliable, 0, "seed {seed}: reliable messages all arrive");
    }
}

/// Four chunks, of which a timeout has marked all and sent the first again: when their lifetime ends, nothing is left
/// of the other three, neither marked nor in the send buffer. The first is in flight, and given up when it is lost.
//= rfc3758#section-3.5
#[test]
fn a_lifetime_that_ends_after_a_timeout() {
    let buffer = with(PARTIAL).with(|parameters| parameters.send_buffer = Some(6000));
    let mut bench = Bench::with(buffer, 1, |_| vec![Param::ForwardTsnSupported]);
    bench.grow_to(5800);
    let since = bench.now;
    (0..4).for_each(|_| give(&mut bench, 0, 1452, Reliability::Lifetime(1500)));
    bench.drain();
    bench.until(since + ms(1200));
    let charged = |bench: &Bench| (bench.view(0).flight, bench.view(0).marked);
    assert_eq!((charged(&bench), bench.view(0).timeout_retransmissions), ((1468, 3 * 1468), 1));
    assert!(matches!(bench.try_send(1452), Err(SendError::Full(_))), "the buffer is occupied");
    bench.until(since + ms(1600));
    assert_eq!((charged(&bench), bench.failed().len()), ((1468, 0), 3));
    // There is room for three, and for no more.
    (0..3).for_each(|_| give(&mut bench, 0, 1452, Reliability::Full));
    assert!(matches!(bench.try_send(1452), Err(SendError::Full(_))));
    bench.until(since + ms(3100));
    assert_eq!((bench.failed().len(), forwards(&mut bench).len()), (4, 1));
}

/// A message of five chunks, of which the first is lost and the last under way when it is given up: nothing is left
/// of it, and the round trip of the next message is measured.
//= rfc3758#section-3.5
#[test]
fn a_message_of_several_chunks_is_given_up_whole() {
    let mut bench = bench();
    let first = bench.grow_to(8000);
    give(&mut bench, 4, 5 * 1452, Reliability::Retransmissions(0));
    bench.drain();
    assert_eq!(bench.view(0).flight, 5 * 1468);
    (1..=3).for_each(|n| bench.sack(first - 1, &[(first + 1, first + n)]));
    assert_eq!((bench.view(0).flight, bench.view(0).marked), (0, 0));
    assert_eq!(forwards(&mut bench), [ForwardTsn { cumulative: Tsn(first + 4), skipped: vec![(4, Ssn(0))] }]);
    bench.sack(first + 4, &[]);
    let before = bench.view(0).srtt;
    give(&mut bench, 0, 100, Reliability::Full);
    bench.drain();
    bench.pass(ms(80));
    bench.sack(first + 5, &[]);
    assert_eq!((before, bench.view(0).srtt), (Some(ms(0)), Some(ms(10))));
}

/// A message that waits for the window is given up at the moment at which the cookie of a restart arrives: the user gets it back all the same.
//= rfc9260#section-5.2.4.1
#[test]
fn given_up_as_the_peer_restarts() {
    use anabranch_proto::wire::chunk::{CookieEcho, Init};
    let mut bench = bench();
    let limited = || message(0, 100, Reliability::Lifetime(700));
    give(&mut bench, 1, 20_000, Reliability::Full);
    bench.give(limited()).expect("there is room");
    bench.drain();
    bench.until(at_ms(600));
    bench.sent.clear();
    let (a_rwnd, outbound, inbound, tsn, params) = (5000, 1, 1, Tsn(1), vec![Param::ForwardTsnSupported]);
    bench.hear_packet(
        0,
        0,
        [Chunk::Init(Box::new(Init { tag: 99, a_rwnd, outbound, inbound, tsn, params }))],
    );
    let (_, packet, _) = bench.sent.pop().expect("INIT ACK");
    let [Chunk::InitAck(ack)] = &packet.chunks[..] else { panic!("{packet:?}") };
    let cookie =
        ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
    bench.now = at_ms(700);
    let echo = CookieEcho { cookie: cookie.expect("a cookie") };
    bench.hear_packet(0, ack.tag, [Chunk::CookieEcho(echo)]);
    assert!(bench.events.iter().any(|(_, event)| *event == Event::Restart));
    assert_eq!(bench.failed()[0], (limited(), false));
}
