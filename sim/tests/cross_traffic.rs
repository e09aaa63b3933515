//! `[[traffic]]`, on and off times, random delays, and queues in bandwidth-delay products.

use anabranch_proto::Policies;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};
use anabranch_sim::{RunOptions, run};

/// A dumbbell whose core is as the publication's on retransmission policies; traffic of 2 Mbit/s each way.
const TEXT: &str = "\
stop = '20 s'
[[link]]
name = 'core'
between = ['a', 'b']
rate = '10 Mbit/s'
delay = '25 ms'
queue = '2 bdp'
[[link]]
name = 'x'
between = ['x', 'a']
rate = '100 Mbit/s'
delay = { uniform = ['5 ms', '20 ms'] }
[[link]]
name = 'y'
between = ['b', 'y']
rate = '100 Mbit/s'
delay = { uniform = ['5 ms', '20 ms'] }
[[traffic]]
name = 'cross'
from = 'x'
to = 'y'
both_ways = true
sources = 32
load = '2 Mbit/s'
sizes = { '44 B' = 2, '576 B' = 1, '1500 B' = 1 }
on = { exponential = '500 ms' }
off = { exponential = '500 ms' }
start = { uniform = ['0 s', '1 s'] }
";

fn read(text: &str, edits: &[&str]) -> Result<Scenario, ScenarioError> {
    let mut document = Document::parse("test.toml", text)?;
    edits.iter().try_for_each(|edit| document.set("--set", edit))?;
    document.scenario("test", &Policies::default())
}

fn result_of(text: &str, edits: &[&str]) -> RunResult {
    let scenario = read(text, edits).unwrap_or_else(|error| panic!("{}", error.render(false)));
    run(&scenario, RunOptions::default()).unwrap()
}

fn result(edits: &[&str]) -> RunResult {
    result_of(TEXT, edits)
}

#[test]
fn traffic_crosses_both_ways_in_the_ratio_of_its_sizes() {
    let result = result(&[]);
    let cross = &result.traffic[0];
    let core = result.links.iter().filter(|link| link.name == "core");
    assert!(core.clone().all(|link| link.packets > 3000), "{result:?}");
    assert_eq!((cross.dropped, cross.hurst), (0, None));
    let mean = cross.bytes as f64 / cross.packets as f64;
    assert!((mean / 541.0 - 1.0).abs() < 0.1, "{mean}");
    assert!((cross.load / 2e6 - 1.0).abs() < 0.2, "{}", cross.load);
    let one_way = self::result(&["traffic.cross.both_ways=false"]);
    for link in &one_way.links {
        let forth = ["x>a", "a>b", "b>y"].contains(&link.direction.as_str());
        assert_eq!(link.packets > 0, forth, "{}", link.direction);
    }
}

#[test]
fn traffic_keeps_no_run_alive_and_shares_a_queue_with_flows() {
    let flow = "[[flow]]\nname = 'file'\nfrom = 'x'\nto = 'y'\nstart = '1 s'\nsend = '500 kB'\n";
    let text = TEXT.replace("stop = '20 s'\n", "") + flow;
    let alone = result_of(&text, &["traffic.cross.load=1 kbit/s"]);
    assert!(alone.ended < 10.0 && alone.flows[0].outcome == "closed");
    let beside = result_of(&text, &["traffic.cross.load=9 Mbit/s"]);
    assert!(beside.flows[0].completion > alone.flows[0].completion);
    assert!(beside.traffic[0].dropped > 0);
}

#[test]
fn a_constant_rate_is_one_without_on_and_off_times() {
    let text = TEXT.replace("on = { exponential = '500 ms' }\noff = { exponential = '500 ms' }\n", "");
    let result = result_of(&text, &["traffic.cross.start=0 s"]);
    assert!((result.traffic[0].load / 2e6 - 1.0).abs() < 0.01, "{}", result.traffic[0].load);
}

/// The load and the Hurst parameter, means over ten seeds of 1,000 s.
fn means(times: &str) -> (f64, f64) {
    let (on, off) = (format!("traffic.cross.on={times}"), format!("traffic.cross.off={times}"));
    let edits =
        ["stop=1000 s", "traffic.cross.sizes={ '1500 B' = 1 }", "traffic.cross.both_ways=false", &on, &off];
    let seeded = |seed: u32| result(&[&edits[..], &[&format!("seed={seed}")]].concat());
    let results: Vec<RunResult> = (1..=10).map(seeded).collect();
    let mean = |of: &dyn Fn(&RunResult) -> f64| results.iter().map(of).sum::<f64>() / results.len() as f64;
    (mean(&|r| r.traffic[0].load / 2e6), mean(&|r| r.traffic[0].hurst.expect("long enough")))
}

#[test]
fn heavy_tails_make_self_similar_traffic_and_exponential_times_do_not() {
    let (load, hurst) = means("{ exponential = '500 ms' }");
    assert!((load - 1.0).abs() < 0.05 && (hurst - 0.5).abs() < 0.1, "{load} {hurst}");
    let (_, hurst) = means("{ pareto = '500 ms', shape = 1.5 }");
    assert!((hurst - 0.75).abs() < 0.1, "{hurst}");
}

#[test]
fn a_queue_of_two_bandwidth_delay_products_holds_42_packets() {
    let result = result(&["traffic.cross.load=30 Mbit/s", "traffic.cross.sizes={ '1500 B' = 1 }"]);
    for link in result.links.iter().filter(|link| link.name == "core") {
        assert_eq!(link.queue_max, 42, "{}", link.direction);
    }
    let queue = |queue: &str| read(TEXT, &[&format!("link.core.queue={queue}")]).map(|s| s.links[0].queue);
    assert_eq!(queue("0.5 bdp"), Ok([anabranch_sim::scenario::Queue::BandwidthDelay(500); 2]));
    assert!(queue("0 bdp").is_err() && queue("0.0001 bdp").is_err());
}

#[test]
fn a_random_delay_is_the_same_both_ways_and_another_with_another_seed() {
    let text = TEXT.split("[[traffic]]").next().unwrap().to_owned()
        + "[[flow]]\nname = 'there'\nprotocol = 'udp'\nfrom = 'x'\nto = 'y'\nsend = '972 B'\nrate = '1 Mbit/s'\n\
           [[flow]]\nname = 'back'\nprotocol = 'udp'\nfrom = 'y'\nto = 'x'\nsend = '972 B'\nrate = '1 Mbit/s'\n";
    let delays = |seed: &str| {
        let result = result_of(&text, &[seed]);
        let taken = |flow: usize| result.flows[flow].completion.expect("it arrives");
        assert_eq!(taken(0), taken(1));
        // Ten bits of a byte and 25 ms on the core; 80 µs on each of the others.
        taken(0) - 0.025 - 0.000_8 - 2.0 * 0.000_08
    };
    let drawn = ["seed=1", "seed=2", "seed=3"].map(delays);
    assert!(drawn.iter().all(|delay| (0.010..=0.040).contains(delay)), "{drawn:?}");
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
}

#[test]
fn a_flow_can_start_at_random() {
    let text = TEXT.split("[[traffic]]").next().unwrap().to_owned()
        + "[[flow]]\nname = 'one'\nprotocol = 'udp'\nfrom = 'x'\nto = 'y'\nsend = '972 B'\nrate = '1 Mbit/s'\n\
           start = { uniform = ['2 s', '4 s'] }\n";
    let ended = |seed: &str| result_of(&text, &[seed]).ended;
    let drawn = ["seed=1", "seed=2", "seed=3"].map(ended);
    assert!(drawn.iter().all(|end| (2.035..=4.066).contains(end)), "{drawn:?}");
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2]);
    assert_eq!(ended("seed=1"), drawn[0]);
    let refused = match read(&text, &["flow.one.start={ uniform = ['4 s', '2 s'] }"]) {
        Err(error) => error.render(false),
        Ok(_) => panic!("its ends are exchanged"),
    };
    assert!(refused.contains("the ends of this range are exchanged"), "{refused}");
}

#[test]
fn a_udp_flow_can_pause() {
    let flow = "[[flow]]\nname = 'talk'\nprotocol = 'udp'\nfrom = 'x'\nto = 'y'\nrate = '80 kbit/s'\nmessage_size = '100 B'\n";
    let talk = |edits: &[&str]| result_of(&(TEXT.to_owned() + flow), edits).flows.remove(0);
    assert_eq!(talk(&[]).packets, 2001);
    // A pause, then ten packets 10 ms apart: each cycle is 500 ms.
    assert_eq!(talk(&["flow.talk.on=100 ms", "flow.talk.off=400 ms"]).packets, 400);
    let drawn =
        talk(&["flow.talk.on={ exponential = '400 ms' }", "flow.talk.off={ exponential = '400 ms' }"]);
    assert!((600..1400).contains(&drawn.packets), "{}", drawn.packets);
}

#[test]
fn wrong_input_is_refused_at_its_key_with_a_fix() {
    let refused = |edit: &str| {
        let error = read(TEXT, &[edit]).expect_err(edit);
        (error.key().to_owned(), error.to_string())
    };
    let key = |edit: &str| refused(edit).0;
    for shape in ["1", "1.0", "0.5", "-2"] {
        let (at, text) = refused(&format!("traffic.cross.on={{ pareto = '500 ms', shape = {shape} }}"));
        assert!(at.starts_with("traffic.cross.on") && text.contains("1 or less"), "{at}: {text}");
    }
    assert_eq!(key("traffic.cross.sources=30"), "traffic.cross.sources");
    assert!(refused("traffic.cross.sources=30").1.contains("does not divide"));
    assert_eq!(key("traffic.cross.from=z"), "traffic.cross.from");
    assert!(refused("traffic.cross.to=yy").1.contains("there is no node `yy`"));
    assert_eq!(key("traffic.cross.pairs=[['x', 'y']]"), "traffic.cross.pairs");
    assert_eq!(key("traffic.cross.to=x"), "traffic.cross.to");
    assert_eq!(key("link.core.delay=0 ms"), "link.core.queue");
    assert!(refused("link.core.delay=0 ms").1.contains("bdp"));
    let (at, text) = refused("link.x.delay={ uniform = ['20 ms', '5 ms'] }");
    assert!(at.starts_with("link.x.delay") && text.contains("exchanged"), "{at}: {text}");
    assert!(key("traffic.cross.start={ uniform = ['2 s', '1 s'] }").starts_with("traffic.cross.start"));
    assert!(key("traffic.cross.sizes={ '44' = 2 }").starts_with("traffic.cross.sizes"));
    assert!(key("traffic.cross.sizes={ '20 B' = 2 }").starts_with("traffic.cross.sizes"));
    assert_eq!(key("traffic.cross.load=0 bit/s"), "traffic.cross.load");
    let without = TEXT.replace("stop = '20 s'\n", "");
    assert!(read(&without, &[]).unwrap_err().to_string().contains("no end"));
    let oversized = read(TEXT, &["traffic.cross.sizes={ '1501 B' = 1 }"]).unwrap();
    let error = run(&oversized, RunOptions::default()).unwrap_err();
    let document = Document::parse("test.toml", TEXT).unwrap();
    assert_eq!(document.blame(&oversized, &error).unwrap().key(), "traffic.cross.sizes");
}

/// A pair that is listed twice has two different sources. If both drew the same numbers, packets would come two at a time,
/// and a short queue would lose 12 %. M/D/1/6 at a load of 0.9 loses 4.7 %.
#[test]
fn a_pair_that_is_listed_twice_has_two_sources() {
    const POISSON: &str = "\
stop = '500 s'
[[link]]
name = 'l'
between = ['a', 'b']
rate = '10 Mbit/s'
delay = '20 ms'
queue = '6 packets'
[[traffic]]
name = 'x'
pairs = [['a', 'b'], ['a', 'b']]
load = '9 Mbit/s'
sizes = { '1250 B' = 1 }
spacing = 'poisson'
";
    for edits in [&["traffic.x.sources=1"][..], &["traffic.x.pairs=[['a', 'b']]", "traffic.x.sources=2"]] {
        let traffic = &result_of(POISSON, edits).traffic[0];
        let lost = traffic.dropped as f64 / traffic.packets as f64;
        assert!((lost - 0.047).abs() < 0.005, "{edits:?}: {lost}");
    }
}
