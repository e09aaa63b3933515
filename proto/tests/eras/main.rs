//! Where the editions of the standard, and ns-2's module, disagree: the values of each, computed by hand, and
//! for every rule a test in which its choices differ as documented.

mod buffers;
mod cmt;
mod loss;
mod order;
mod receiving;
mod sending;
#[path = "../support/mod.rs"]
mod support;
mod timers;
mod windows;

use anabranch_proto::Config;
use anabranch_proto::Purpose;
use anabranch_proto::policy::Why;
use support::bench::{Bench, FULL, era, ms};

/// RFC 9260's parameters with one rule or mechanism changed.
fn ruled(key: &str, choice: &str) -> Config {
    let mut config = era("rfc9260");
    let set = config.rules.choose(key, choice).or_else(|_| config.mechanisms.choose(key, choice));
    set.expect("a rule or mechanism, and its choice");
    config
}

/// What an era makes of one loss: first window, missing reports that it waits for, window and threshold then.
fn one_loss(name: &str) -> (u64, u32, (u64, u64)) {
    let mut bench = Bench::confirmed(era(name), 1, ms(0));
    let first = bench.window();
    bench.send(20, FULL);
    let missing = |bench: &Bench| bench.sent.iter().any(|(.., r)| r.purpose == Purpose::Data(Why::Missing));
    for reports in 1..10 {
        bench.sack(0, &[(2, 1 + reports)]);
        if missing(&bench) {
            return (first, reports, bench.windows());
        }
    }
    panic!("it is never found missing")
}

/// TSN 1 is lost, and every SACK acknowledges one chunk more beyond it.
///
/// | | first cwnd | reports | cwnd when cut | max(cwnd/2, floor) |
/// |---|---|---|---|---|
/// | RFC 2960 | 2·1500 | 4 | 3000: no growth, the point stands | max(1500, 2·1500) |
/// | RFC 4960 | 4380 | 3 | 4380: the same | max(2190, 4·1500) |
/// | RFC 9260 | 4404 | 3 | 4404 + 3·1468 = 8808: every SACK finds the window full and grows it | max(4404, 4·1468) |
/// | ns-2 | 4380 | 3 | 4380 | max(2190, 4·1468) |
//= rfc9260#section-7.2.1
//= rfc9260#section-7.2.3
//= rfc9260#section-7.2.4
#[test]
fn one_loss_in_each_era() {
    assert_eq!(one_loss("rfc2960"), (3000, 4, (3000, 3000)));
    assert_eq!(one_loss("rfc4960"), (4380, 3, (6000, 6000)));
    assert_eq!(one_loss("rfc9260"), (4404, 3, (5872, 5872)));
    assert_eq!(one_loss("ns2"), (4380, 3, (5872, 5872)));
}

/// RTO.Initial: 3 s in RFC 2960 and 4960 (§15, §14) and ns-2, 1 s in RFC 9260 (§16).
#[test]
fn initial_timeouts() {
    let first = |name| Bench::new(era(name), 1).view(0).rto.as_secs();
    assert_eq!(["rfc2960", "rfc4960", "rfc9260", "ns2"].map(first), [3, 3, 1, 3]);
}

/// RFC 2960 sends every retransmission to an alternate path, the later ones only those after a timeout.
#[test]
fn default_routes() {
    let routes = |name| {
        let config = Config::era(name).expect("an era");
        let burst = config.heartbeat_max_burst;
        (config.fast.name, config.timeout.name, burst)
    };
    let (same, alternate) = ("same".to_owned(), "alternate".to_owned());
    assert_eq!(routes("rfc2960"), (alternate.clone(), alternate.clone(), u32::MAX));
    assert_eq!(routes("rfc4960"), (same.clone(), alternate.clone(), 1));
    assert_eq!(routes("rfc9260"), (same, alternate.clone(), 1));
    assert_eq!(routes("ns2"), (alternate.clone(), alternate, u32::MAX));
    assert_eq!(Config::era("rfc1"), None);
    assert_eq!(Config::era("rfc9260"), Some(Config::default()));
}
