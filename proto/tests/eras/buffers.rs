//! Buffers that several paths share: shares of them, chunks that go again because others wait behind them, windows cut
//! for that; and what a chunk on two paths means. All computed by hand: chunks have 1,468 bytes, and each path
//! begins with a window of three.

use anabranch_proto::policy::{PolicySpec, Why};
use anabranch_proto::wire::Param;
use anabranch_proto::{Config, Message, Parameters, Purpose, Reason, Reliability};

use crate::support::bench::{Bench, FULL, ms};

const CHUNK: u64 = 1468;

fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config {
        parameters: Parameters { heartbeat_jitter: false, ..Parameters::default() },
        ..Config::default()
    }
    .with_cmt();
    config.rules.choose("burst", "off").expect("a rule");
    for (key, choice) in settings {
        config.mechanisms.choose(key, choice).expect("a mechanism and its choice");
    }
    config
}

/// Two paths of 100 ms; the peer's buffer holds so many chunks.
fn bench(config: Config, chunks: u32) -> Bench {
    Bench::confirmed_with(config, 2, ms(100), chunks * CHUNK as u32)
}

/// The TSNs sent on each path since this was asked last.
fn sent(bench: &mut Bench) -> [Vec<u32>; 2] {
    let mut by_path = [Vec::new(), Vec::new()];
    for (_, path, tsns) in bench.loads() {
        by_path[usize::from(path)].extend(tsns);
    }
    by_path
}

/// The same of copies alone.
fn copies(bench: &mut Bench) -> [Vec<u32>; 2] {
    let copy = |reason: &Reason| reason.purpose == Purpose::Data(Why::Reinjected);
    bench.sent.retain(|(.., reason)| copy(reason));
    sent(bench)
}

fn flights(bench: &Bench) -> [u64; 2] {
    [bench.view(0).flight, bench.view(1).flight]
}

/// A SACK from a peer of six chunks that holds `held` of them.
fn sack_holding(bench: &mut Bench, held: u32, cumulative: u32, runs: &[(u32, u32)]) {
    bench.a_rwnd = (6 - held) * CHUNK as u32;
    bench.sack(cumulative, runs);
}

/// Both buffers hold four chunks: without shares the first path takes three of them, with shares each takes two.
#[test]
fn buffer_split() {
    for (choice, own, peer, expected) in [
        ("off", 4, 4, [vec![1, 2, 3], vec![4]]),
        ("sender", 4, 100, [vec![1, 2], vec![3, 4]]),
        ("sender", 100, 4, [vec![1, 2, 3], vec![4]]),
        ("receiver", 100, 4, [vec![1, 2], vec![3, 4]]),
        ("receiver", 4, 100, [vec![1, 2, 3], vec![4, 5, 6]]),
        ("both", 100, 4, [vec![1, 2], vec![3, 4]]),
        ("both", 4, 100, [vec![1, 2], vec![3, 4]]),
    ] {
        let config =
            config(&[("buffer_split", choice)]).with(|parameters| parameters.send_buffer = Some(own * CHUNK));
        let mut bench = bench(config, peer);
        // One message is taken whole, however large: more waits than the send buffer holds.
        bench.send(1, 10 * FULL);
        assert_eq!(sent(&mut bench), expected, "{choice}: {own} chunks here, {peer} there");
    }
}

/// Each path has a share of two chunks, and 2 is acknowledged by a gap: it is buffered, but no longer outstanding.
#[test]
fn buffer_split_counts() {
    for (choice, expected) in [("buffered", vec![]), ("outstanding", vec![5])] {
        let set = [("buffer_split", "sender"), ("buffer_split_counts", choice)];
        let mut bench = bench(config(&set).with(|parameters| parameters.send_buffer = Some(4 * CHUNK)), 100);
        bench.send(1, 10 * FULL);
        sent(&mut bench);
        bench.sack(0, &[(2, 2)]);
        assert_eq!(sent(&mut bench), [expected, vec![]], "{choice}");
    }
    let set = [("buffer_split", "receiver"), ("buffer_split_counts", "outstanding")];
    let mut bench = bench(config(&set), 100);
    bench.send(1, 10 * FULL);
    sent(&mut bench);
    // The peer has room for eight more than it holds, six of which are in flight: four for each path, and a path's
    // fifth begins where its share is not used up.
    bench.a_rwnd = 8 * CHUNK as u32;
    bench.sack(0, &[(4, 6)]);
    assert_eq!(flights(&bench)[1], 4 * CHUNK, "the share, less than the window and the peer's");
}

/// A path that is alone has all of the buffer.
#[test]
fn a_path_that_fails_has_no_share() {
    let set = [("buffer_split", "receiver")];
    let mut bench = bench(config(&set), 4);
    bench.up(1, false);
    bench.send(1, 10 * FULL);
    assert_eq!(sent(&mut bench)[0], [1, 2, 3]);
}

/// Chunks 4 to 6, half of the peer's buffer, wait behind 1.
#[test]
fn chunk_rescheduling() {
    for (choice, own, expected) in [
        ("off", 6, vec![]),
        ("sender", 100, vec![]),
        ("sender", 6, vec![1]),
        ("receiver", 100, vec![1]),
        ("both", 100, vec![1]),
        ("both", 6, vec![1]),
    ] {
        let config = config(&[("chunk_rescheduling", choice)])
            .with(|parameters| parameters.send_buffer = Some(own * CHUNK));
        let mut bench = bench(config, 6);
        bench.send(6, FULL);
        assert_eq!(sent(&mut bench), [vec![1, 2, 3], vec![4, 5, 6]]);
        sack_holding(&mut bench, 2, 0, &[(4, 5)]);
        assert_eq!(copies(&mut bench), [vec![], expected], "{choice}: a send buffer of {own}");
    }
}

/// Two of six chunks are less than half: nothing goes again.
#[test]
fn less_than_half_of_a_buffer_is_not_rescheduled() {
    let mut bench = bench(config(&[("chunk_rescheduling", "both")]), 6);
    bench.send(5, FULL);
    sack_holding(&mut bench, 2, 0, &[(4, 5)]);
    assert_eq!(copies(&mut bench), [vec![], vec![]]);
}

/// The peer's buffer of six is full behind 1, and the second path has room.
#[test]
fn reinjection() {
    for (choice, expected) in [("off", vec![]), ("opportunistic", vec![1])] {
        let mut bench = blocked(choice);
        assert_eq!(copies(&mut bench), [vec![], expected], "{choice}");
    }
}

/// Chunks 4 to 6 are acknowledged, 1 to 3 in flight; the peer has no room for a seventh.
fn blocked(reinjection: &str) -> Bench {
    blocked_by(config(&[("reinjection", reinjection)]))
}

fn blocked_by(config: Config) -> Bench {
    let mut bench = bench(config, 6);
    bench.send(10, FULL);
    assert_eq!(sent(&mut bench), [vec![1, 2, 3], vec![4, 5, 6]]);
    bench.pass(ms(50));
    sack_holding(&mut bench, 3, 0, &[(4, 6)]);
    bench
}

/// A full send buffer blocks as well as the peer's.
#[test]
fn a_full_send_buffer_asks_for_a_copy() {
    let config = config(&[("reinjection", "opportunistic")])
        .with(|parameters| parameters.send_buffer = Some(6 * CHUNK));
    let mut bench = bench(config, 100);
    bench.send(6, FULL);
    assert!(bench.try_send(FULL).is_err());
    bench.sack(0, &[(4, 6)]);
    assert_eq!(copies(&mut bench), [vec![], vec![1]]);
}

/// While new data can leave, nothing is sent twice.
#[test]
fn new_data_goes_first() {
    let mut bench = bench(config(&[("reinjection", "opportunistic")]), 100);
    bench.send(40, FULL);
    bench.sack(0, &[(4, 6)]);
    assert_eq!(copies(&mut bench), [vec![], vec![]]);
}

/// Each copy is in flight on its own path; the peer holds the TSN once.
#[test]
fn a_copy_is_in_flight_on_its_path() {
    let mut bench = blocked("opportunistic");
    assert_eq!(flights(&bench), [3 * CHUNK, CHUNK]);
    assert_eq!((bench.view(1).reinjected, bench.view(1).fast_retransmissions), (1, 0));
    assert_eq!(bench.peer_window(), 0);
    assert_eq!(copies(&mut bench), [vec![], vec![1]]);
    bench.sack(0, &[(4, 6)]);
    assert_eq!(copies(&mut bench), [vec![], vec![]], "one copy at a time");
}

/// A chunk with a copy is given up. From then on T3-rtx of the copy's path runs for what is sent there: an
/// acknowledgement restarts it.
//= rfc3758#section-3.5
//= rfc9260#section-6.3.2
#[test]
fn a_chunk_with_a_copy_is_given_up() {
    let mut config = config(&[("reinjection", "opportunistic")]);
    config.extensions.partial_reliability = true;
    let mut bench = Bench::with(config, 2, |_| vec![Param::ForwardTsnSupported]);
    bench.pass(ms(100));
    bench.answer_heartbeats(|_| true);
    let give = |bench: &mut Bench, size, reliability| {
        let payload = vec![0; size].into();
        bench.give(Message { reliability, payload, ..Message::default() }).expect("there is room");
    };
    give(&mut bench, 4 * FULL, Reliability::Retransmissions(0));
    (0..3).for_each(|_| give(&mut bench, FULL, Reliability::Full));
    bench.drain();
    assert_eq!(sent(&mut bench), [vec![1, 2, 3], vec![4, 5, 6]]);
    sack_holding(&mut bench, 1, 0, &[(5, 5)]);
    assert_eq!(copies(&mut bench), [vec![], vec![1]], "the peer has no room for 7");
    sack_holding(&mut bench, 0, 0, &[(5, 6)]);
    assert_eq!(sent(&mut bench), [vec![], vec![7]]);
    // Chunk 4 is found lost, and its message is given up with chunk 1.
    sack_holding(&mut bench, 0, 0, &[(5, 7)]);
    assert_eq!(flights(&bench), [0, 0]);
    bench.sack(7, &[]);
    bench.send(6, FULL);
    assert_eq!(sent(&mut bench), [vec![8, 9, 10], vec![11, 12, 13]]);
    bench.pass(ms(900));
    bench.sack(11, &[]);
    bench.pass(ms(500));
    assert_eq!(bench.timeouts(), []);
}

/// An acknowledgement ends both, whichever arrived. The round trip that 1 would have measured is none; the next is.
#[test]
fn an_acknowledgement_ends_both_copies() {
    let mut bench = blocked("opportunistic");
    let srtt = bench.view(1).srtt;
    let window = bench.view(1).window;
    bench.pass(ms(70));
    sack_holding(&mut bench, 3, 1, &[(4, 6)]);
    assert_eq!(flights(&bench), [3 * CHUNK, CHUNK], "2, 3 and the next new chunk; and a copy of 2");
    assert_eq!((bench.view(0).srtt, bench.view(1).srtt), (None, srtt), "neither path is measured");
    assert_eq!(bench.view(1).window, window, "the copy is not what lets its path grow");
    bench.sack(bench.next_tsn() - 1, &[]);
    bench.pass(ms(1));
    while flights(&bench) != [0, 0] {
        bench.sack(bench.next_tsn() - 1, &[]);
    }
    assert_eq!(flights(&bench), [0, 0]);
    bench.pass(ms(5000));
    assert!(bench.timeouts().is_empty(), "no T3-rtx is left running: {:?}", bench.timeouts());
}

/// The chunk is found missing on its own path: the window is cut there, and the copy is the chunk from now on.
#[test]
fn a_copy_takes_the_place_of_a_chunk_reported_missing() {
    let mut config = config(&[("reinjection", "opportunistic")]);
    config.rules.set_number("missing_reports", 1).expect("a number");
    config.rules.set_number("ssthresh_floor", 1).expect("a number");
    let mut bench = blocked_by(config);
    let window = bench.view(0).window;
    sent(&mut bench);
    sack_holding(&mut bench, 4, 0, &[(2, 2), (4, 6)]);
    assert_eq!(bench.view(0).window, (window + CHUNK) / 2, "it grows for 2 and is halved for 1");
    assert_eq!(flights(&bench), [CHUNK, CHUNK], "3 on the first path, 1 on the second");
    assert_eq!(sent(&mut bench), [vec![], vec![]], "nothing is sent a third time");
    assert_eq!(bench.view(0).lost, CHUNK);
    // Its path now is the second: missing there, it is sent again.
    bench.pass(ms(10_000));
    assert!(sent(&mut bench).concat().contains(&1));
}

/// T3-rtx of the chunk's path: what has a copy goes on there, the rest is marked.
#[test]
fn a_copy_takes_the_place_of_a_chunk_that_timed_out() {
    let config = Config { timeout: PolicySpec::named("same"), ..config(&[("reinjection", "opportunistic")]) };
    let mut bench = blocked_by(config);
    sent(&mut bench);
    bench.pass(ms(500));
    // Something is heard from the second path's T3-rtx alone: it starts anew, the first path's does not.
    let timeouts = |bench: &Bench| bench.timeouts().iter().map(|(_, path)| path.0).collect::<Vec<_>>();
    while timeouts(&bench).is_empty() {
        bench.pass(ms(10));
    }
    assert_eq!(timeouts(&bench), [0], "the chunk was sent before its copy");
    let again = sent(&mut bench);
    assert!(again[0].first() == Some(&2) && !again[0].contains(&1), "{again:?}");
    assert!(flights(&bench)[1] >= CHUNK && !again[1].contains(&1), "{again:?}");
}

/// T3-rtx of the copy's path: the copy is lost, and the chunk stays as it was.
#[test]
fn a_copy_that_times_out_leaves_the_chunk() {
    let mut bench = blocked("opportunistic");
    sent(&mut bench);
    // The first path's T3-rtx starts anew at the Cumulative TSN Ack of 1, for 2; the copy of 2 leaves at once.
    bench.pass(ms(400));
    sack_holding(&mut bench, 5, 1, &[(4, 6)]);
    assert_eq!(copies(&mut bench), [vec![], vec![2]]);
    bench.pass(ms(10));
    // 3 was taken with it: T3-rtx of the first path starts anew, after that of the second path.
    bench.pass(ms(995));
    assert_eq!(bench.timeouts().iter().map(|(_, path)| path.0).collect::<Vec<_>>(), [0, 1]);
    bench.a_rwnd = 6 * CHUNK as u32;
    bench.sack(bench.next_tsn() - 1, &[]);
    bench.sack(bench.next_tsn() - 1, &[]);
    bench.sack(bench.next_tsn() - 1, &[]);
    assert_eq!(flights(&bench), [0, 0]);
}

/// The association's window probe is not sent twice.
#[test]
fn a_window_probe_has_no_copy() {
    let mut bench = bench(config(&[("reinjection", "opportunistic"), ("chunk_rescheduling", "both")]), 6);
    bench.send(6, FULL);
    bench.sack_window(6, 0);
    bench.send(3, FULL);
    bench.pass(ms(30_000));
    assert_eq!(copies(&mut bench), [vec![], vec![]]);
}

/// The first path keeps the peer's buffer full: its window is halved, once in a round trip.
#[test]
fn penalise() {
    for (choice, halvings) in [("off", 0), ("on", 1)] {
        let mut bench = two_beside_four(&[("penalise", choice)]);
        assert_eq!(sent(&mut bench), [vec![7, 8, 9, 10], vec![11, 12]]);
        bench.pass(ms(50));
        sack_holding(&mut bench, 2, 6, &[(11, 12)]);
        let window = |bench: &Bench| bench.view(0).window;
        assert_eq!(window(&bench), (4 * CHUNK) >> halvings, "{choice}");
        bench.pass(ms(99));
        bench.sack(6, &[(11, 12)]);
        assert_eq!(window(&bench), (4 * CHUNK) >> halvings, "{choice}: within a round trip");
        bench.pass(ms(1));
        bench.sack(6, &[(11, 12)]);
        assert_eq!(window(&bench), (4 * CHUNK) >> (2 * halvings), "{choice}: after one");
        assert!(bench.view(1).window >= 4 * CHUNK, "{choice}");
    }
}

/// A cut would enlarge a window that is below the least threshold after a loss, four chunks: it is left as it is.
#[test]
fn a_penalty_never_enlarges_a_window() {
    let mut bench = bench(config(&[("penalise", "on")]), 4);
    bench.send(10, FULL);
    assert_eq!(sent(&mut bench), [vec![1, 2, 3], vec![4]]);
    bench.a_rwnd = 3 * CHUNK as u32;
    bench.sack(0, &[(4, 4)]);
    assert_eq!(bench.view(0).window, 3 * CHUNK);
}

/// The copy and the cut go together.
#[test]
fn a_copy_penalises_at_once() {
    let mut bench = two_beside_four(&[("penalise", "on"), ("reinjection", "opportunistic")]);
    assert_eq!(sent(&mut bench), [vec![7, 8, 9, 10], vec![11, 12, 7]]);
    assert_eq!([bench.view(0).window, bench.view(1).window], [2 * CHUNK, 4 * CHUNK]);
}

/// Paths of 100 ms with windows of four; the second has room when six chunks, 7 to 12, fill the peer's buffer.
fn two_beside_four(settings: &[(&str, &str)]) -> Bench {
    let mut config = config(settings);
    config.rules.set_number("ssthresh_floor", 1).expect("a number");
    let mut bench = bench(config, 6);
    bench.send(6, FULL);
    bench.pass(ms(100));
    bench.sack(6, &[]);
    sent(&mut bench);
    bench.send(10, FULL);
    bench
}

/// The path that blocks is not penalised when no other has room: nothing better could be done.
#[test]
fn without_room_elsewhere_nothing_is_penalised() {
    let mut config = config(&[("penalise", "on")]);
    config.rules.set_number("ssthresh_floor", 1).expect("a number");
    let mut bench = bench(config, 6);
    bench.send(10, FULL);
    sack_holding(&mut bench, 0, 0, &[]);
    assert_eq!([bench.view(0).window, bench.view(1).window], [3 * CHUNK; 2]);
}
