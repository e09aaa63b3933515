//! The estimators beside the truth of the simulator (docs/advice.md has the table).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anabranch_proto::control::window::{Congestion, Estimated};
use anabranch_proto::path::estimate::Needs;
use anabranch_proto::policy::{Ask, Choice, PathId, PathView, Route};
use anabranch_proto::{Duration, Policies};
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

/// The last facts of each path that a route has seen.
type Seen = Arc<Mutex<BTreeMap<u16, PathView>>>;

/// `same`, which remembers what it sees.
#[derive(Clone, Debug)]
struct Watch(Seen, Needs);

impl Route for Watch {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let mut seen = self.0.lock().expect("no panic");
        seen.extend(paths.iter().map(|path| (path.id.0, path.clone())));
        Choice::Send(ask.last.unwrap_or(PathId(0)))
    }

    fn acked(&mut self, path: &PathView, _: &anabranch_proto::policy::Acked) {
        self.0.lock().expect("no panic").insert(path.id.0, path.clone());
    }

    fn needs(&self) -> Needs {
        self.1
    }
}

/// The paths of the first flow as its sender saw them last.
fn watched(text: &str, needs: Needs) -> BTreeMap<u16, PathView> {
    let seen = Seen::default();
    let mut policies = Policies::default();
    // Both ends make routes; only the sender's are asked.
    let shared = seen.clone();
    policies.add_route("watch", move |_, _| Ok(Box::new(Watch(shared.clone(), needs))));
    let scenario = Document::parse("estimates.toml", text).unwrap().scenario("estimates", &policies).unwrap();
    run(&scenario, RunOptions { policies, ..RunOptions::default() }).unwrap();
    seen.lock().unwrap().clone()
}

/// A bulk transfer over `first` with `second` beside it: rate in bit/s, one-way delay in ms, loss, and more keys.
struct Pair<'a> {
    name: &'a str,
    first: (f64, u64, &'static str),
    second: (f64, u64, &'static str),
    size: &'static str,
    seed: u64,
}

impl Pair<'_> {
    /// The pair, and other traffic on each path that takes a fifth of it.
    fn crossed(&self, shape: &str) -> String {
        let mut text = self.text();
        for (name, rate) in [("first", self.first.0), ("second", self.second.0)] {
            let (x, y) = (format!("{name}-x"), format!("{name}-y"));
            for (from, to) in [(&x, format!("{name}-near")), (&y, format!("{name}-far"))] {
                text += &format!(
                    "[[link]]\nname = '{from}-access'\nbetween = ['{from}', '{to}']\nrate = '1 Gbit/s'\nqueue = '1000 packets'\n"
                );
            }
            text += &format!(
                "[[traffic]]\nname = '{name}-cross'\nfrom = '{x}'\nto = '{y}'\nsources = 8\nload = '{} bit/s'\nsizes = {{ '576 B' = 1, '1500 B' = 1 }}\n{shape}\n",
                (CROSS * rate) as u64
            );
        }
        text
    }

    fn text(&self) -> String {
        let mut text = format!("seed = {}\nstop = '600 s'\n", self.seed);
        for (name, (rate, delay, more)) in [("first", self.first), ("second", self.second)] {
            let link = |name: &str, from: &str, to: &str, rate: f64, delay: u64, more: &str| {
                format!(
                    "[[link]]\nname = '{name}'\nbetween = ['{from}', '{to}']\nrate = '{rate} bit/s'\ndelay = '{delay} ms'\n{more}\n"
                )
            };
            let (near, far) = (format!("{name}-near"), format!("{name}-far"));
            text += &link(name, "s", &near, 1e9, 0, "");
            text += &link(&format!("{name}-core"), &near, &far, rate, delay, more);
            text += &link(&format!("{name}-exit"), &far, "r", 1e9, 0, "");
        }
        text + &format!(
            "[[flow]]\nname = 'bulk'\nfrom = 's'\nto = 'r'\nsend = '{}'\n[flow.sctp]\nprimary = 'first'\nretransmit = 'watch'\nreceive_buffer = '4 MB'\n",
            self.size
        )
    }
}

/// The share of each path that other traffic takes.
const CROSS: f64 = 0.2;

/// Relative errors of an estimate: bandwidth of the path with data, of the other one, and base round trips of both.
fn errors(pair: &Pair<'_>) -> [f64; 4] {
    errors_of(pair, &pair.text(), 1.0)
}

/// The same of a run with this text, where so much of the first path is left for the transfer.
fn errors_of(pair: &Pair<'_>, text: &str, left: f64) -> [f64; 4] {
    let paths = watched(text, Needs::ALL);
    let estimates = |path: u16| paths[&path].estimates.clone().expect("they are kept");
    let (first, second) = (estimates(0), estimates(1));
    let bandwidth = first.bandwidth.and_then(|e| e.rate()).expect("bandwidth");
    let pairs = second.packet_pair.as_ref().and_then(|e| e.rate()).expect("a pair");
    // A path without traffic may have no route asked for it yet; its round trip is that of heartbeats.
    let base = |e: &anabranch_proto::path::estimate::Estimates| {
        e.round_trip.as_ref().and_then(|e| e.base()).expect("a round trip").as_secs_f64()
    };
    let truth = |(rate, delay, _): (f64, u64, &str), bytes: f64| {
        (Duration::from_millis(2 * delay).as_secs_f64()) + bytes * 8.0 / rate
    };
    // What measures a path, in bytes there and back: a full packet and its SACK, or a heartbeat and its answer.
    let (data, heartbeat) = (1500.0 + 48.0, 2.0 * 60.0);
    [
        bandwidth / (left * pair.first.0) - 1.0,
        pairs / pair.second.0 - 1.0,
        base(&first) / truth(pair.first, data) - 1.0,
        base(&second) / truth(pair.second, heartbeat) - 1.0,
    ]
}

const BULK: &[Pair<'_>] = &[
    Pair {
        name: "10 Mbit/s, 100 ms beside 36 kbit/s, 600 ms",
        first: (10e6, 50, "queue = '50 packets'"),
        second: (36e3, 300, ""),
        size: "20 MB",
        seed: 1,
    },
    Pair {
        name: "30 Mbit/s, 40 ms beside 2 Mbit/s, 100 ms",
        first: (30e6, 20, "queue = '100 packets'"),
        second: (2e6, 50, ""),
        size: "30 MB",
        seed: 1,
    },
    Pair {
        name: "1 Mbit/s, 200 ms beside 384 kbit/s, 600 ms",
        first: (1e6, 100, "queue = '50 packets'"),
        second: (384e3, 300, ""),
        size: "5 MB",
        seed: 1,
    },
    Pair {
        name: "5 Mbit/s, 20 ms beside 20 Mbit/s, 60 ms",
        first: (5e6, 10, "queue = '30 packets'"),
        second: (20e6, 30, ""),
        size: "10 MB",
        seed: 1,
    },
];

const DISTURBED: &[Pair<'_>] = &[Pair {
    name: "2 Mbit/s, 100 ms, jitter of 4 ms",
    first: (2e6, 50, "queue = '50 packets'\njitter = '4 ms'"),
    second: (1e6, 100, "jitter = '1 ms'"),
    size: "5 MB",
    seed: 1,
}];

fn shown(pair: &Pair<'_>, errors: [f64; 4]) {
    let [a, b, c, d] = errors.map(|error| format!("{:+.1} %", error * 100.0));
    println!("| {} | {a} | {b} | {c} | {d} |", pair.name);
}

#[test]
fn bandwidth_and_round_trips_are_near_the_truth() {
    // Jitter lengthens the round trips that are measured, at worst by twice its 4 ms in 100 ms.
    for (pairs, bandwidth, round_trip) in [(BULK, 0.10, 0.02), (DISTURBED, 0.25, 0.08)] {
        for pair in pairs {
            let errors = errors(pair);
            shown(pair, errors);
            let within = errors[..2].iter().all(|error| error.abs() < bandwidth)
                && errors[2..].iter().all(|error| error.abs() < round_trip);
            assert!(within, "{}: {errors:?}", pair.name);
        }
    }
}

/// A fixed window, which remembers what it is told.
#[derive(Clone, Debug)]
struct Told(Arc<Mutex<Vec<Estimated>>>, bool);

impl Congestion for Told {
    fn window(&self) -> u64 {
        150_000
    }

    fn wants_estimates(&self) -> bool {
        self.1
    }

    fn estimated(&mut self, estimated: &Estimated) {
        self.0.lock().expect("no panic").push(*estimated);
    }
}

/// 10 Mbit/s and 20 ms: the window of 150 kB keeps a queue of 125 kB, 100 ms.
#[test]
fn a_window_that_asks_is_told_the_estimates_of_its_path() {
    for asks in [true, false] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let shared = told.clone();
        let mut policies = Policies::default();
        policies.add_window("told", move |_, _| {
            let shared = shared.clone();
            Ok(Arc::new(move |_| Box::new(Told(shared.clone(), asks))))
        });
        let text = "[[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = '10 Mbit/s'\ndelay = '10 ms'\nqueue = '1000 packets'\n[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '3 MB'\n[flow.sctp]\nwindow = 'told'\n";
        let scenario = Document::parse("told.toml", text).unwrap().scenario("told", &policies).unwrap();
        run(&scenario, RunOptions { policies, ..RunOptions::default() }).unwrap();
        let told = told.lock().unwrap();
        assert_eq!(told.is_empty(), !asks);
        let Some(last) = told.last() else { continue };
        let (rate, base) = (last.rate.expect("a rate"), last.base_rtt.expect("a round trip").as_secs_f64());
        assert!((rate / 10e6 - 1.0).abs() < 0.1 && (base - 0.0212).abs() < 0.001, "{last:?}");
        let queueing = told.iter().filter_map(|told| told.queueing).max().expect("a queue");
        assert!((0.08..0.13).contains(&queueing.as_secs_f64()), "{queueing:?}");
    }
}

/// The estimate from SACKs is held against what other traffic leaves, that of pairs against the link.
#[test]
fn bandwidth_is_near_the_truth_beside_other_traffic() {
    for (name, shape) in [
        ("evenly spaced packets", ""),
        ("a Poisson process", "spacing = 'poisson'"),
        ("bursts of 500 ms", "on = { exponential = '500 ms' }\noff = { exponential = '500 ms' }"),
    ] {
        for pair in BULK {
            let errors = errors_of(pair, &pair.crossed(shape), 1.0 - CROSS);
            shown(&Pair { name: &format!("{}, {name}", pair.name), ..copy(pair) }, errors);
            assert!(errors[..2].iter().all(|error| error.abs() < 0.25), "{}, {name}: {errors:?}", pair.name);
        }
    }
}

/// How often the interval holds the loss rate of the link, of so many transfers.
fn held(loss: f64, size: &str, transfers: u64) -> u64 {
    (0..transfers)
        .filter(|seed| {
            let text = format!(
                "seed = {seed}\n[[link]]\nname = 'first'\nbetween = ['s', 'r']\nrate = '10 Mbit/s'\ndelay = '10 ms'\nqueue = '1000 packets'\nloss = ['{} %', '0 %']\n[[flow]]\nname = 'bulk'\nfrom = 's'\nto = 'r'\nsend = '{size}'\n[flow.sctp]\nretransmit = 'watch'\n",
                loss * 100.0
            );
            let paths = watched(&text, Needs::NONE);
            let rate = paths[&0].loss_rate().expect("data was sent");
            (rate.low..=rate.high).contains(&loss)
        })
        .count() as u64
}

#[test]
fn the_interval_of_the_loss_rate_holds_it_in_19_of_20_cases() {
    for (loss, size) in [(0.01, "500 kB"), (0.03, "300 kB"), (0.1, "100 kB")] {
        let transfers = 1000;
        let held = held(loss, size, transfers);
        println!("| {loss} | {size} | {held} of {transfers} |");
        assert!(held >= 930, "loss {loss}: {held} of {transfers}");
    }
}

/// At most a hundredth of the bytes that the association sends.
#[test]
fn pairs_take_a_hundredth_at_most_and_none_where_no_policy_asks() {
    for size in ["100 kB", "3 MB"] {
        let text = Pair { size, ..copy(&BULK[0]) }.text();
        let paths = watched(&text, Needs::ALL);
        // Before the first loss the route was not asked, and has not seen the other path.
        let pairs = |path: &PathView| Some(path.estimates.as_ref()?.packet_pair.as_ref()?.bytes_sent());
        let probes: u64 = paths.values().filter_map(pairs).sum();
        let sent: u64 = paths.values().map(|path| path.delivered + path.lost + path.flight).sum();
        assert!(probes * 100 <= sent, "{size}: {probes} of {sent}");
        assert_eq!(size == "100 kB", probes == 0, "{size}");
        let without = watched(&text, Needs::NONE);
        assert!(without.values().all(|path| path.estimates.is_none()));
    }
}

fn copy<'a>(pair: &Pair<'a>) -> Pair<'a> {
    Pair { first: pair.first, second: pair.second, name: pair.name, ..*pair }
}
