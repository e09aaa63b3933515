//! Environments: jitter with and without a change of order, an MTU that changes, random starts, Poisson sources; what
//! results say of outages and of the time that messages take.

use anabranch_proto::{Policies, Time};
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::Document;
use anabranch_sim::trace::{Names, Observer, Record};
use anabranch_sim::{RunOptions, run};

/// One link of 10 Mbit/s and 10 ms, and datagrams of 100 B every millisecond.
const DATAGRAMS: &str = "\
stop = '5 s'
[[link]]
name = 'l'
between = ['a', 'b']
rate = '10 Mbit/s'
delay = '10 ms'
[[flow]]
name = 'f'
protocol = 'udp'
from = 'a'
to = 'b'
rate = '800 kbit/s'
message_size = '100 B'
send = '300 kB'
";

/// When packets arrive over link direction 0, nanoseconds.
#[derive(Default)]
struct Watch {
    arrived: Vec<u64>,
}

impl Observer for Watch {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, at: Time, record: &Record<'_>) {
        if matches!(record, Record::Delivered { link: 0, .. }) {
            self.arrived.push(at.as_nanos());
        }
    }
}

fn result_of(text: &str, edits: &[&str], watch: Option<&mut Watch>) -> RunResult {
    let mut document = Document::parse("test.toml", text).expect("the document can be read");
    edits.iter().for_each(|edit| document.set("--set", edit).expect("the edit can be made"));
    let scenario = document.scenario("test", &Policies::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let observer = watch.map(|watch| watch as &mut dyn Observer);
    run(&scenario, RunOptions { observer, ..RunOptions::default() }).expect("it runs")
}

/// Arrivals of 3000 datagrams, nanoseconds after each would arrive without jitter: the n-th leaves after n
/// milliseconds, and takes 102,400 ns to send.
fn lateness(edits: &[&str]) -> Vec<i64> {
    let mut watch = Watch::default();
    let edits: Vec<&str> = ["flow.f.ip_header=20 B"].iter().chain(edits).copied().collect();
    let result = result_of(DATAGRAMS, &edits, Some(&mut watch));
    assert_eq!(result.flows[0].delivered, 300_000);
    let plain = |n: usize| (n as i64) * 1_000_000 + 102_400 + 10_000_000;
    watch.arrived.iter().enumerate().map(|(n, at)| *at as i64 - plain(n)).collect()
}

#[test]
fn jitter_is_uniform_and_keeps_the_order() {
    assert!(lateness(&[]).iter().all(|late| *late == 0));
    // Shorter than the gaps: no packet waits for the one before it.
    let late = lateness(&["link.l.jitter=900 us"]);
    assert!(late.iter().all(|late| (0..=900_000).contains(late)));
    let mean = late.iter().sum::<i64>() as f64 / late.len() as f64;
    assert!((mean - 450_000.0).abs() < 15_000.0, "{mean}");
    // Longer: arrivals bunch up behind late packets, and the n-th to arrive is never early.
    let bunched = lateness(&["link.l.jitter=20 ms"]);
    assert!(bunched.iter().all(|late| (0..=20_000_000).contains(late)));
    let mean = bunched.iter().sum::<i64>() as f64 / bunched.len() as f64;
    assert!(mean > 13_000_000.0, "waiting for late packets adds to the mean of 10 ms: {mean}");
}

#[test]
fn jitter_that_reorders_keeps_its_mean() {
    let late = lateness(&["link.l.jitter=20 ms", "link.l.reorder=true"]);
    let mean = late.iter().sum::<i64>() as f64 / late.len() as f64;
    assert!((mean - 10_000_000.0).abs() < 350_000.0, "no packet waits for another: {mean}");
}

#[test]
fn sctp_bears_reordering() {
    let text = "stop = '60 s'\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '10 Mbit/s'\ndelay = '20 ms'\n\
        jitter = '5 ms'\nreorder = true\n[[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nsend = '2 MB'\n\
        sctp = { receive_buffer = '64 KiB' }\n";
    let mixed = result_of(text, &[], None);
    let plain = result_of(text, &["link.l.reorder=false"], None);
    assert_eq!([mixed.flows[0].delivered, plain.flows[0].delivered], [2_000_000; 2]);
    assert!(mixed.flows[0].fast_recoveries > 0, "packets that are late look lost");
    assert_eq!(plain.flows[0].fast_recoveries, 0);
    assert!(mixed.flows[0].completion > plain.flows[0].completion);
    // The same run, the same bits.
    assert_eq!(result_of(text, &[], None), mixed);
}

#[test]
fn jitter_can_begin_and_end() {
    let changes = "[[change]]\nat = '1 s'\nlink = 'l'\njitter = '900 us'\n\
        [[change]]\nat = '2 s'\nlink = 'l'\njitter = '0 s'\n";
    let mut watch = Watch::default();
    result_of(&format!("{DATAGRAMS}{changes}"), &["flow.f.ip_header=20 B"], Some(&mut watch));
    let late = |n: usize| watch.arrived[n] as i64 - (n as i64 * 1_000_000 + 10_102_400);
    assert!((0..1000).chain(2001..3000).all(|n| late(n) == 0));
    assert!((1001..2000).filter(|n| late(*n) > 0).count() > 980);
}

/// A path whose MTU falls: only discovery finds out (RFC 8899).
const NARROWS: &str = "\
stop = '120 s'
[[link]]
name = 'l'
between = ['a', 'b']
rate = '10 Mbit/s'
delay = '10 ms'
[[change]]
at = '1 s'
link = 'l'
mtu = '1300 B'
[[flow]]
name = 'f'
from = 'a'
to = 'b'
send = '5 MB'
sctp = { receive_buffer = '8 KiB', heartbeat_interval = '1 s' }
";

#[test]
fn an_mtu_that_falls_is_a_black_hole_until_it_is_found() {
    // Packets that are known to be too large may be fragmented by IP; before the MTU is found none is.
    let blind = result_of(NARROWS, &["flow.f.sctp.mtu_discovery=false"], None);
    assert!(blind.flows[0].completion.is_none() && blind.links[0].drops.size > 0);
    let found = result_of(NARROWS, &["flow.f.sctp.mtu_discovery=true"], None);
    assert!(found.flows[0].completion.is_some(), "{:?}", found.flows[0]);
    assert!(found.links[0].drops.size > 0 && found.links[0].dropped == found.links[0].drops.size);
    assert_eq!(found.links[1].drops.size, 0, "acknowledgements are small");
}

#[test]
fn starts_are_drawn_by_seed_and_name() {
    let text = format!("{DATAGRAMS}start = {{ uniform = ['0 s', '1 s'] }}\n");
    let first = |seed: u64| {
        let mut watch = Watch::default();
        result_of(&text, &[&format!("seed={seed}")], Some(&mut watch));
        watch.arrived[0]
    };
    let times: Vec<u64> = (1..=60).map(first).collect();
    assert_eq!(first(7), times[6], "the same seed, the same start");
    assert!(times.iter().all(|time| (10_000_000..1_011_000_000).contains(time)));
    let mean = times.iter().sum::<u64>() as f64 / 60.0;
    assert!((mean - 510_000_000.0).abs() < 110_000_000.0, "{mean}");
}

#[test]
fn poisson_sources_keep_their_mean_rate() {
    let text = DATAGRAMS.replace("send = '300 kB'\n", "spacing = 'poisson'\n").replace("'5 s'", "'100 s'");
    let result = result_of(&text, &[], None);
    // 100,000 expected; the standard deviation of a Poisson count is its root, 316.
    let packets = result.flows[0].packets as f64;
    assert!((packets - 100_000.0).abs() < 4.0 * 316.0, "{packets}");
    let cross = "stop = '100 s'\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '10 Mbit/s'\n\
        [[traffic]]\nname = 't'\nfrom = 'a'\nto = 'b'\nload = '1 Mbit/s'\nsizes = { '500 B' = 1 }\nsources = 4\n\
        spacing = 'poisson'\n";
    let load = result_of(cross, &[], None).traffic[0].load;
    assert!((load / 1e6 - 1.0).abs() < 4.0 / 25_000f64.sqrt(), "{load}");
}

/// `scenarios/outage.toml` with this Path.Max.Retrans: the signalling flow.
fn outage(path_max_retrans: u32) -> FlowResult {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/outage.toml");
    let text = std::fs::read_to_string(file).expect("the scenario is there");
    let edit = format!("flow.signalling.sctp.path_max_retrans={path_max_retrans}");
    result_of(&text, &[&edit], None).flows.remove(0)
}

#[test]
fn an_outage_tells_when_it_was_noticed_and_when_data_came_again() {
    let of = |flow: &FlowResult| {
        let [only] = flow.outages.as_slice() else { panic!("one outage: {:?}", flow.outages) };
        assert_eq!((only.name.as_str(), only.down, only.up), ("first", 10.0, Some(40.0)));
        let times = [only.detected, only.new_data, only.delivered, only.returned];
        times.map(|time| time.expect("it happened"))
    };
    let flows = [0, 2, 5].map(outage);
    let [at_once, usual, patient] = [0, 1, 2].map(|at| of(&flows[at]));
    // After 1, 3 and 6 timeouts: the RTO is 200 ms, and each next takes twice as long. The timer that ran when the link
    // went down had begun before; each later one begins with the next message or heartbeat.
    let first = at_once[0];
    assert!((0.1..0.25).contains(&first), "{first}");
    for (detected, least) in [(usual[0], 0.2 * 6.0), (patient[0], 0.2 * 62.0)] {
        assert!((least..least * 1.3).contains(&(detected - first)), "{detected} {least}");
    }
    for (flow, [detected, new_data, delivered, returned]) in flows.iter().zip([at_once, usual, patient]) {
        assert!(new_data >= detected, "new data stays on the primary until it is inactive");
        assert!(delivered > first && delivered < new_data + 1.0 && returned > 0.0);
        let latency = flow.latency.as_ref().expect("messages have a rate");
        // The first message that was lost waited longest, or nearly so.
        assert!(latency.max > delivered - 0.1 && latency.p50 < 0.2, "{latency:?}");
        assert!(flow.missing.is_none(), "the flow has no end");
    }
}

#[test]
fn a_flow_that_is_cut_off_says_what_is_missing() {
    let result = result_of(NARROWS, &["stop=500 ms"], None);
    let flow = &result.flows[0];
    assert_eq!(flow.missing, Some(5_000_000 - flow.delivered));
    assert!(flow.outages.is_empty() && flow.latency.is_none());
}

#[test]
fn messages_that_cannot_be_abandoned_have_a_latency() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/partial-reliability.toml");
    let text = std::fs::read_to_string(file).expect("the scenario is there");
    let latency = |settings: &[&str]| result_of(&text, settings, None).flows.remove(0).latency;
    assert_eq!(latency(&[]), None);
    let off = latency(&["flow.camera.sctp.partial_reliability=false"]);
    assert!(off.is_some());
    // Without the extension, `reliability` has no effect.
    assert_eq!(off, latency(&["flow.camera.sctp.partial_reliability=false", "flow.camera.reliability=full"]));
}

#[test]
fn latencies_of_datagrams_and_tcp_are_those_of_an_idle_network() {
    // 128 B at 10 Mbit/s and 10 ms.
    let udp = result_of(DATAGRAMS, &["flow.f.ip_header=20 B"], None);
    let latency = udp.flows[0].latency.clone().expect("messages have a rate");
    assert_eq!((latency.messages, latency.p50, latency.max), (3000, 0.0101024, 0.0101024));
    let text = DATAGRAMS.replace("'udp'", "'tcp'");
    let tcp = result_of(&text, &[], None).flows[0].latency.clone().expect("messages have a rate");
    assert!(tcp.messages == 3000 && tcp.p50 < 0.0115 && tcp.max < 0.1, "{tcp:?}");
}
