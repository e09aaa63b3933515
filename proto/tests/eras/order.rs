//! Losses found by time, and tail loss probes (RFC 8985), chunk by chunk.

use anabranch_proto::policy::Why;
use anabranch_proto::wire::Chunk;
use anabranch_proto::wire::chunk::Sack;
use anabranch_proto::{Config, PolicySpec, Purpose, Tsn};

use crate::support::bench::{Bench, FULL, at_ms, era, ms};

fn with(settings: &[(&str, &str)]) -> Config {
    let mut config = era("rfc9260");
    for (key, choice) in settings {
        config.mechanisms.choose(key, choice).expect("a mechanism");
    }
    config
}

const RACK: (&str, &str) = ("loss_detection", "rack");
const PROBE: (&str, &str) = ("tail_probe", "on");

/// A path of 100 ms whose window takes eight chunks, and the next TSN. Nothing is in flight.
fn grown(settings: &[(&str, &str)]) -> (Bench, u32) {
    let mut bench = Bench::confirmed(with(settings), 1, ms(100));
    let mut next = 1;
    while bench.window() < 8 * 1468 {
        let chunks = (bench.window() / 1468) as u32;
        bench.send(chunks as usize, FULL);
        bench.pass(ms(100));
        next += chunks;
        bench.sack(next - 1, &[]);
    }
    bench.loads();
    (bench, next)
}

/// Two chunks on a path of 100 ms, the first is lost. One SACK is no proof by number: T3-rtx comes a second after the
/// second chunk, and RACK a round trip and a quarter after the first.
//= rfc8985#section-6.2
#[test]
fn loss_detection() {
    for (choice, again) in [("missing-reports", 1100), ("rack", 225)] {
        let mut bench = Bench::confirmed(with(&[("loss_detection", choice)]), 1, ms(100));
        bench.send(2, FULL);
        bench.loads();
        bench.pass(ms(100));
        bench.sack(0, &[(2, 2)]);
        bench.pass(ms(2000));
        assert_eq!(bench.loads()[0], (again, 0, vec![1]), "{choice}");
    }
}

/// Eight chunks, the first is lost: the third chunk beyond the hole proves it, without a timer. The retransmission is
/// lost too: chunk 9, which leaves after it, tells when its SACK comes, and the window is cut again.
//= rfc8985#section-6.2
//= rfc8985#section-9.3
#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let (mut bench, a) = grown(&[RACK]);
    bench.send(8, FULL);
    let begun = bench.now;
    bench.pass(ms(100));
    let at = |n| (begun + ms(n)).as_nanos() / 1_000_000;
    bench.sack(a - 1, &[(a + 1, a + 1)]);
    bench.sack(a - 1, &[(a + 1, a + 2)]);
    assert_eq!(bench.loads().iter().filter(|(_, _, tsns)| tsns.contains(&a)).count(), 1, "sent once");
    bench.sack(a - 1, &[(a + 1, a + 3)]);
    assert_eq!(bench.loads(), [(at(100), 0, vec![a])]);
    let cut = bench.windows();
    bench.sack(a - 1, &[(a + 1, a + 7)]);
    bench.pass(ms(50));
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(at(150), 0, vec![a + 8])]);
    bench.pass(ms(100));
    bench.sack(a - 1, &[(a + 1, a + 8)]);
    assert_eq!(bench.loads(), [(at(250), 0, vec![a])], "100 ms after what was sent 50 ms after it");
    assert!(bench.windows().1 < cut.1, "{:?}: a loss after the cut is another one", bench.windows());
}

/// Chunk 1 arrives after 2 and 3, within the reordering window: nothing is sent again.
//= rfc8985#section-6.2
#[test]
fn reordering_within_the_window_is_no_loss() {
    let mut bench = Bench::confirmed(with(&[RACK]), 1, ms(100));
    bench.send(3, FULL);
    bench.loads();
    bench.pass(ms(100));
    bench.sack(0, &[(2, 3)]);
    bench.pass(ms(24));
    bench.sack(3, &[]);
    bench.pass(ms(3000));
    assert_eq!(bench.loads(), []);
}

/// Chunks of one path say nothing of another: retransmissions of the first path's losses are in flight on the second
/// while the first goes on delivering.
#[test]
fn each_path_has_its_own_order() {
    let mut config = with(&[RACK]);
    (config.fast, config.timeout) = (PolicySpec::named("alternate"), PolicySpec::named("alternate"));
    let mut bench = Bench::confirmed(config, 2, ms(100));
    bench.send(3, FULL);
    bench.loads();
    bench.pass(ms(100));
    bench.sack(0, &[(2, 3)]);
    bench.pass(ms(25));
    assert_eq!(bench.loads(), [(225, 1, vec![1])]);
    for _ in 0..5 {
        bench.send(1, FULL);
        let sent = bench.loads()[0].2[0];
        bench.pass(ms(100));
        bench.sack(0, &[(2, sent)]);
    }
    assert_eq!(bench.loads(), [], "725 ms: nothing has overtaken chunk 1 on its path");
}

/// A flight of four, the last lost, on a path of 100 ms: the probe leaves two round trips after the SACK of the third
/// and 200 ms later, since the peer may delay a SACK of one packet; T3-rtx would expire a second after it. Without a
/// measured round trip there is none.
//= rfc8985#section-7.2
//= rfc8985#section-7.3
#[test]
fn tail_probe() {
    for (choice, why, again) in [("off", Why::Timeout, 1200), ("on", Why::TailProbe, 600)] {
        let mut bench = Bench::confirmed(with(&[RACK, ("tail_probe", choice)]), 1, ms(100));
        bench.send(3, FULL);
        bench.loads();
        bench.pass(ms(100));
        bench.sack(2, &[]);
        bench.until(at_ms(1500));
        let sent =
            bench.sent.iter().find(|(.., reason)| reason.purpose != Purpose::Heartbeat).expect("a packet");
        assert_eq!((sent.0, sent.2.purpose), (at_ms(again), Purpose::Data(why)), "{choice}");
        assert_eq!(bench.loads()[0].2, [3]);
    }
    let mut bench = Bench::new(with(&[RACK, PROBE]), 1);
    bench.send(1, FULL);
    bench.loads();
    bench.until(at_ms(999));
    assert_eq!(bench.loads(), []);
}

/// New data goes as the probe although the window is full: then the SACK that it brings finds the loss of the flight.
//= rfc8985#section-7.3
//= rfc8985#section-7.4.1
#[test]
fn a_probe_of_new_data_goes_beyond_the_window() {
    let (mut bench, a) = grown(&[RACK, PROBE]);
    bench.send(20, FULL);
    let probe = a + bench.loads().len() as u32;
    let begun = bench.now;
    let at = |n| (begun + ms(n)).as_nanos() / 1_000_000;
    assert!(bench.view(0).room == 0, "the window is full");
    bench.pass(ms(200));
    assert_eq!(bench.loads(), [(at(200), 0, vec![probe])]);
    bench.pass(ms(100));
    bench.sack(a - 1, &[(probe, probe)]);
    assert_eq!(bench.loads()[0], (at(300), 0, vec![a]));
    assert_eq!((bench.view(0).timeouts, bench.view(0).tail_probes), (0, 1));
}

/// The probe is lost too: there is no second one, and T3-rtx expires one RTO after the probe.
//= rfc8985#section-7.3
#[test]
fn after_a_lost_probe_comes_t3() {
    let (mut bench, _) = grown(&[RACK, PROBE]);
    bench.send(1, FULL);
    bench.loads();
    let begun = bench.now;
    bench.pass(ms(4000));
    let purposes: Vec<_> = bench.sent.iter().map(|(at, _, reason)| (*at, reason.purpose)).collect();
    let expected = [(400, Why::TailProbe), (1400, Why::Timeout), (3400, Why::Timeout)];
    assert_eq!(purposes, expected.map(|(at, why)| (begun + ms(at), Purpose::Data(why))));
}

/// The last chunk of three goes again as a probe. Without a duplicate one of the two was lost: the window is cut when
/// what is sent later arrives. With a duplicate it is not.
//= rfc8985#section-7.4.2
#[test]
fn a_probe_that_repairs_a_loss_cuts_the_window() {
    for spurious in [false, true] {
        let mut bench = Bench::confirmed(with(&[RACK, PROBE]), 1, ms(100));
        bench.send(3, FULL);
        bench.pass(ms(100));
        bench.sack(2, &[]);
        bench.until(at_ms(700));
        let duplicates = if spurious { vec![Tsn(3)] } else { Vec::new() };
        let sack = |cumulative, duplicates: Vec<Tsn>| {
            let gaps = Default::default();
            Chunk::Sack(Sack {
                flags: 0,
                cumulative: Tsn(cumulative),
                a_rwnd: 1 << 20,
                gaps,
                duplicates: duplicates.into(),
            })
        };
        bench.hear(sack(3, duplicates));
        let before = bench.windows().1;
        bench.send(1, FULL);
        bench.pass(ms(100));
        bench.hear(sack(4, Vec::new()));
        assert_eq!(bench.windows().1 < before, !spurious, "{:?}", bench.windows());
    }
}

/// Two chunks, sent 950 ms apart, when T3-rtx expires a second after the first: the second was sent less than a round
/// trip ago and stays in flight, and a SACK of the first sends nothing again.
//= rfc8985#section-6.3
#[test]
fn a_timeout_spares_chunks_sent_a_moment_ago() {
    for (choice, marked) in [("missing-reports", 2), ("rack", 1)] {
        let (mut bench, a) = grown(&[("loss_detection", choice)]);
        bench.send(1, FULL);
        bench.pass(ms(950));
        bench.send(1, FULL);
        bench.loads();
        bench.pass(ms(50));
        assert_eq!(bench.loads().concat_tsns(), [a], "{choice}");
        bench.sack(a, &[]);
        assert_eq!(bench.loads().concat_tsns().len(), marked - 1, "{choice}");
    }
}

trait Tsns {
    fn concat_tsns(self) -> Vec<u32>;
}

impl Tsns for Vec<crate::support::bench::Sent> {
    fn concat_tsns(self) -> Vec<u32> {
        self.into_iter().flat_map(|(_, _, tsns)| tsns).collect()
    }
}
