//! Flows of different transports in one network, as documents say them.

use anabranch_proto::Policies;
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};
use anabranch_sim::{Protocol, RunOptions, run};

/// Two links, an SCTP flow, and a UDP flow of 1 Mbit/s that shares its bottleneck.
const TEXT: &str = "\
stop = '10 s'
[[link]]
name = 'access'
between = ['s', 'x']
rate = '100 Mbit/s'
[[link]]
name = 'neck'
between = ['x', 'r']
rate = '2 Mbit/s'
delay = '10 ms'
[[flow]]
name = 'file'
from = 's'
to = 'r'
[[flow]]
name = 'voice'
protocol = 'udp'
from = 's'
to = 'r'
rate = '1 Mbit/s'
message_size = '1000 B'
";

fn scenario(edits: &[&str]) -> Result<Scenario, ScenarioError> {
    scenario_of(TEXT, edits)
}

fn scenario_of(text: &str, edits: &[&str]) -> Result<Scenario, ScenarioError> {
    let mut document = Document::parse("test.toml", text)?;
    edits.iter().try_for_each(|edit| document.set("--set", edit))?;
    document.scenario("test", &Policies::default())
}

fn result(edits: &[&str]) -> RunResult {
    let scenario = scenario(edits).unwrap_or_else(|error| panic!("{}", error.render(false)));
    run(&scenario, RunOptions::default()).unwrap()
}

fn flow<'r>(result: &'r RunResult, name: &str) -> &'r FlowResult {
    result.flows.iter().find(|flow| flow.name == name).expect("a flow of this name")
}

#[test]
fn udp_keeps_its_rate_beside_sctp() {
    let result = result(&["link.neck.queue=1000 packets"]);
    let (file, voice) = (flow(&result, "file"), flow(&result, "voice"));
    assert_eq!((file.protocol, voice.protocol), (Protocol::Sctp, Protocol::Udp));
    // One datagram every 8 ms, the first at once.
    assert_eq!(voice.packets, 1251);
    assert!(voice.delivered.is_multiple_of(1000) && voice.delivered > 700_000, "{}", voice.delivered);
    let both = file.goodput + voice.goodput;
    assert!(file.goodput > 0.8e6 && both > 1.8e6 && both < 2e6, "{} {}", file.goodput, voice.goodput);
    assert_eq!(voice.outcome, "open");
}

#[test]
fn a_udp_flow_ends_when_everything_has_arrived() {
    let alone = ["stop=60 s", "flow.voice.send=10500 B", "flow.file.send=20 kB", "flow.file.start=1 s"];
    let finished = result(&alone);
    let voice = flow(&finished, "voice");
    assert_eq!((voice.packets, voice.delivered, voice.outcome), (11, 10_500, "closed"));
    // The last datagram leaves after 80 ms; 528 bytes take 42 us and 2.112 ms, and then there is the delay.
    assert_eq!(voice.completion, Some(0.092_154_240));
    assert!(finished.ended < 3.0, "{}", finished.ended);
    let lossy = result(&[&alone[..], &["link.neck.loss=[{ packets = [3] }, '0 %']"]].concat());
    assert_eq!((flow(&lossy, "voice").outcome, flow(&lossy, "voice").completion), ("closed", None));
    assert_eq!((flow(&lossy, "voice").delivered, lossy.ended), (9500, finished.ended));
}

#[test]
fn a_flow_may_have_an_ip_header_of_its_own() {
    let bytes = |edits: &[&str]| {
        let result = result(&[edits, &["flow.voice.send=5 kB", "flow.file.start=11 s"]].concat());
        result.links.iter().find(|link| link.direction == "s>x").expect("the first link").bytes
    };
    assert_eq!(bytes(&[]), 5 * 1028);
    assert_eq!(bytes(&["flow.voice.ip_header=40 B"]), 5 * 1048);
    assert_eq!(bytes(&["ip_header=0 B"]), 5 * 1008);
    assert_eq!(bytes(&["ip_header=0 B", "flow.voice.ip_header=20 B"]), 5 * 1028);
}

#[test]
fn what_a_protocol_does_not_have_is_refused_with_a_fix() {
    let refused = |edit: &str| {
        let error = scenario(&[edit]).expect_err(edit);
        (error.key().to_owned(), error.to_string())
    };
    for key in ["streams=3", "unordered=true", "reliability=full", "immediate=true", "udp=true"] {
        let (at, text) = refused(&format!("flow.voice.{key}"));
        assert_eq!(at, format!("flow.voice.{}", key.split('=').next().unwrap()));
        assert!(text.contains("only SCTP flows"), "{text}");
    }
    assert_eq!(refused("flow.voice.sctp.max_burst=4").0, "flow.voice.sctp");
    assert_eq!(refused("flow.voice.read=1 Mbit/s").0, "flow.voice.read");
    assert!(refused("flow.voice.protocol=tpc").1.contains("there is no protocol `tpc`"));
    let no_rate = TEXT.replace("rate = '1 Mbit/s'\n", "");
    let error = Document::parse("test.toml", &no_rate).unwrap().scenario("test", &Policies::default());
    assert_eq!(error.unwrap_err().key(), "flow.voice.rate");
}

#[test]
fn a_datagram_that_fits_no_packet_is_refused() {
    let scenario = scenario(&["flow.voice.message_size=1473 B"]).unwrap();
    let error = run(&scenario, RunOptions::default()).unwrap_err();
    assert_eq!(error.place().map(|(_, key)| key), Some("message_size"));
    assert!(
        run(&self::scenario(&["flow.voice.message_size=1472 B"]).unwrap(), RunOptions::default()).is_ok()
    );
}

#[test]
fn a_flow_tells_what_it_had_of_each_link() {
    let result = result(&["link.neck.queue=1000 packets", "link.neck.loss=['1 %', '0 %']"]);
    for link in &result.links {
        let of = |count: fn(&anabranch_sim::results::FlowLink) -> u64| -> u64 {
            let flows = result.flows.iter().flat_map(|flow| &flow.links);
            flows.filter(|l| (&l.name, &l.direction) == (&link.name, &link.direction)).map(count).sum()
        };
        assert_eq!((of(|l| l.packets), of(|l| l.dropped)), (link.packets, link.dropped), "{}", link.name);
    }
    assert!(flow(&result, "voice").links.iter().any(|link| link.dropped > 0));
}

#[test]
fn throughput_counts_packets_with_data_and_utilisation_adds_it_up() {
    let result = result(&["flow.file.start=11 s", "flow.voice.start=2 s"]);
    let voice = flow(&result, "voice");
    // 1,028 bytes every 8 ms; the last one or two of ten seconds are under way when it ends.
    assert_eq!(voice.first_data, Some(0.014_194_240));
    assert_eq!(voice.throughput, voice.delivered as f64 * 1.028 * 8.0 / 8.0);
    assert_eq!(voice.goodput, voice.delivered as f64);
    let neck = result.links.iter().find(|link| link.direction == "x>r").expect("a link");
    assert_eq!(neck.utilisation, voice.throughput / 2e6 * 100.0);
    let back = result.links.iter().find(|link| link.direction == "r>x").expect("a link");
    assert_eq!((back.utilisation, result.increase), (0.0, None));
    assert_eq!(result.fairness, Some(0.5), "the other flow has nothing");
}

#[test]
fn a_part_of_a_run_is_measured_beside_the_whole() {
    let parts = |measure: &str| {
        let edit = format!("measure={measure}");
        let mut result = result(&[&edit, "link.neck.loss=['1 %', '0 %']"]);
        let flow = result.flows.remove(0);
        assert_eq!(flow.name, "file");
        let neck = result.links.into_iter().find(|link| link.direction == "x>r").expect("a link");
        let measured = flow.measured.clone().expect("measured");
        (flow, measured, neck.measured.clone().expect("measured"), neck)
    };
    let (flow, all, neck, whole) = parts("['0 s', '10 s']");
    assert_eq!((all.delivered, all.goodput, all.throughput), (flow.delivered, flow.goodput, flow.throughput));
    assert_eq!((&all.links, neck.packets), (&flow.links, whole.packets));
    let (_, first, neck_first, _) = parts("['0 s', '4 s']");
    let (_, second, neck_second, _) = parts("['4 s', '10 s']");
    assert_eq!(first.delivered + second.delivered, flow.delivered);
    assert_eq!(neck_first.packets + neck_second.packets, whole.packets);
    assert_eq!(second.goodput, second.delivered as f64 * 8.0 / 6.0);
    let [mean, early, late] = [&all, &first, &second].map(|part| part.paths[0].mean_cwnd.expect("a window"));
    assert!(mean > 1500.0 && (early.min(late)..=early.max(late)).contains(&mean), "{early} {mean} {late}");
    let unmeasured = result(&["link.neck.loss=['1 %', '0 %']"]);
    assert_eq!(FlowResult { measured: None, ..flow }, unmeasured.flows[0], "measuring changes nothing");
}

#[test]
fn a_measure_that_ends_before_it_begins_is_refused() {
    for wrong in ["['4 s', '4 s']", "['4 s']", "['4 s', '5 s', '6 s']", "[4, 5]", "4 s"] {
        assert_eq!(scenario(&[&format!("measure={wrong}")]).expect_err(wrong).key(), "measure");
    }
}

/// Two paths, each with an association of its own; nothing arrives on the second.
const STRIPED: &str = "\
stop = '5 s'
measure = ['1 s', '5 s']
[[link]]
name = 'first'
between = ['s', 'r']
rate = '10 Mbit/s'
[[link]]
name = 'second'
between = ['s', 'r']
rate = '10 Mbit/s'
loss = '100 %'
[[flow]]
name = 'file'
from = 's'
to = 'r'
stripe = true
";

#[test]
fn a_path_that_was_never_used_is_measured_without_a_window() {
    let scenario = scenario_of(STRIPED, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
    let result = run(&scenario, RunOptions::default()).expect("a run");
    let paths = &result.flows[0].measured.as_ref().expect("measured").paths;
    let windows: Vec<_> = paths.iter().map(|path| (path.name.as_str(), path.mean_cwnd.is_some())).collect();
    assert_eq!(windows, [("first", true), ("second", false)]);
}

/// A flow that is over is not changed by another that goes on: its path had the mean RTO that it has when it is alone.
#[test]
fn a_path_ends_with_its_flow() {
    let text = "\
[[link]]
name = 'short'
between = ['a', 'b']
rate = '5 Mbit/s'
delay = '30 ms'
[[link]]
name = 'long'
between = ['c', 'd']
rate = '5 Mbit/s'
[[flow]]
name = 'file'
from = 'a'
to = 'b'
send = '200 kB'
[flow.sctp]
rto_min = '300 ms'
";
    let beside = "[[flow]]\nname = 'voice'\nprotocol = 'udp'\nfrom = 'c'\nto = 'd'\nsend = '100 kB'\nrate = '20 kbit/s'\nmessage_size = '500 B'\n";
    let file = |text: &str| {
        let result = run(&scenario_of(text, &[]).unwrap(), RunOptions::default()).unwrap();
        (result.ended, flow(&result, "file").clone())
    };
    let (alone, with) = (file(text), file(&format!("{text}{beside}")));
    assert!(alone.0 < 1.0 && with.0 > 39.0, "{} and {} s", alone.0, with.0);
    assert_eq!(alone.1, with.1);
    assert!(alone.1.paths[0].mean_rto > Some(0.35), "1 s before the first measurement");
}

#[test]
fn only_a_link_is_switched_off() {
    let refused = |edit: &str| scenario(&[edit]).expect_err("a rate of zero").render(false);
    assert!(refused("link.neck.rate=0 bit/s").contains("`up = false`"));
    for edit in ["flow.file.read=0 bit/s", "flow.voice.rate=0 bit/s"] {
        let text = refused(edit);
        assert!(text.contains("cannot be zero") && !text.contains("up = false"), "{text}");
    }
}

/// The receiver reads a byte a second, so its window of 20 kB stays closed for most of an hour: the sender probes it
/// for as long as probes are answered. If the link fails for good, it gives up after as many probes as timeouts.
#[test]
fn tcp_probes_a_closed_window_while_the_probes_are_answered() {
    let tcp = |down: &str| {
        let text = format!(
            "stop = '40000 s'\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '10 Mbit/s'\n{down}\n[[flow]]\nname = 'f'\nprotocol = 'tcp'\nfrom = 'a'\nto = 'b'\nsend = '30 kB'\nread = '8 bit/s'\n[flow.tcp]\nreceive_window = '20 kB'\n"
        );
        let scenario = scenario_of(&text, &[]).unwrap_or_else(|error| panic!("{}", error.render(false)));
        run(&scenario, RunOptions::default()).expect("it can be run")
    };
    let answered = tcp("");
    assert_eq!((answered.flows[0].delivered, answered.flows[0].outcome), (30_000, "closed"));
    assert!(answered.flows[0].probes > 20, "{}", answered.flows[0].probes);
    let unanswered = tcp("down = [['2 s']]");
    assert_eq!(unanswered.flows[0].outcome, "lost");
    assert!(unanswered.ended < 40_000.0 && unanswered.flows[0].probes < 20, "{unanswered:?}");
}

/// TCP sends whole segments: a window of two and a half is full with two. When one acknowledgement covers both, windows
/// that count a whole window of bytes go on counting.
#[test]
fn every_window_of_tcp_grows_from_two_segments_and_a_half() {
    let text = "\
stop = '20 s'
[[link]]
name = 'l'
between = ['s', 'r']
rate = '20 Mbit/s'
delay = '25 ms'
queue = '1000 packets'
[[flow]]
name = 'f'
from = 's'
to = 'r'
protocol = 'tcp'
[flow.tcp]
initial_window = '3650 B'
initial_ssthresh = '3650 B'
";
    let windows =
        ["standard", "reno", "cubic", "rpv1", "rpv2", "{ name = 'standard', at_threshold = 'avoidance' }"];
    for window in windows {
        let edits = [format!("flow.f.tcp.window={window}")];
        let scenario = scenario_of(text, &edits.each_ref().map(String::as_str)).unwrap();
        let result = run(&scenario, RunOptions::default()).unwrap();
        assert!(flow(&result, "f").goodput > 10e6, "{window}: {}", flow(&result, "f").goodput);
    }
}
