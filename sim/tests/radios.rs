//! Radios under whole scenarios: rates, routes, measurements, captures, and documents that are refused.

mod support;

use std::process::Command;

use anabranch_proto::Policies;
use anabranch_sim::capture::CaptureWriter;
use anabranch_sim::results::{RunResult, StationResult};
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};
use anabranch_sim::{RunError, RunOptions, run};
use support::has_tshark;

/// A chain, and a flow along it.
const TEXT: &str = "\
stop = '60 s'
measure = ['10 s', '60 s']
[[channel]]
name = 'air'
reception = { name = 'range', decode = '370 m', sense = '520 m', interfere = '520 m', capture = '10 dB' }
[channel.dcf]
cw_min = 31
[[chain]]
name = 'a'
hops = 1
spacing = '300 m'
channels = ['air']
[[flow]]
name = 'f'
from = 'a0'
to = 'a1'
message_size = '1000 B'
[flow.sctp]
era = 'ns2'
";

fn document(text: &str, edits: &[&str]) -> Result<Document, ScenarioError> {
    let mut document = Document::parse("test.toml", text)?;
    edits.iter().try_for_each(|edit| document.set("--set", edit))?;
    Ok(document)
}

fn scenario(text: &str, edits: &[&str]) -> Scenario {
    let read = document(text, edits).and_then(|document| document.scenario("test", &Policies::default()));
    read.unwrap_or_else(|error| panic!("{}", error.render(false)))
}

fn result(text: &str, edits: &[&str]) -> RunResult {
    run(&scenario(text, edits), RunOptions::default()).unwrap()
}

/// kbit/s of the first flow within the measurement.
fn goodput(result: &RunResult) -> f64 {
    result.flows[0].measured.as_ref().expect("it was measured").goodput / 1000.0
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found / expected - 1.0).abs() <= tolerance, "{found:.1} for {expected}");
}

const UDP: &str = "flow.f.protocol=udp";
const FAST: &str = "flow.f.rate=2 Mbit/s";

fn without_sctp() -> String {
    TEXT.replace("[flow.sctp]\nera = 'ns2'\n", "")
}

#[test]
fn one_hop_carries_what_the_standard_allows() {
    near(goodput(&result(&without_sctp(), &[UDP, FAST])), 1434.2, 0.003);
    let slow = "channel.air.dcf.control_rate=1 Mbit/s";
    near(goodput(&result(&without_sctp(), &[UDP, FAST, slow])), 1386.5, 0.003);
    let off = "channel.air.dcf.rts_threshold=off";
    near(goodput(&result(&without_sctp(), &[UDP, FAST, off])), 1588.6, 0.003);
    near(goodput(&result(TEXT, &[])), 1242.0, 0.015);
}

#[test]
fn along_four_hops_sctp_loses_nothing_in_queues() {
    let result = result(TEXT, &["chain.a.hops=4", "flow.f.to=a4"]);
    near(goodput(&result), 289.7, 0.05);
    let queue: u64 = result.stations.iter().map(|station| station.drops.queue).sum();
    let retries: u64 =
        result.stations.iter().map(|station| station.drops.rts_retries + station.drops.data_retries).sum();
    assert_eq!(queue, 0);
    assert!(retries > 0);
    let cwnd = result.flows[0].measured.as_ref().unwrap().paths[0].mean_cwnd.unwrap();
    assert!((7e3..12.5e3).contains(&cwnd), "{cwnd}");
    let sum = |count: fn(&StationResult) -> u64| result.stations.iter().map(count).sum::<u64>() as f64;
    near(sum(|s| s.rts.answered) / sum(|s| s.rts.sent), 0.618, 0.08);
    for StationResult { airtime, .. } in &result.stations {
        let all = airtime.data + airtime.control + airtime.collision + airtime.idle;
        assert!((all - 50.0).abs() < 1e-6, "{all}");
    }
}

#[test]
fn measuring_changes_nothing() {
    let with = result(TEXT, &["chain.a.hops=3", "flow.f.to=a3", "stop=20 s", "measure=['3 s', '17 s']"]);
    let text = TEXT.replace("measure = ['10 s', '60 s']\n", "");
    let without = result(&text, &["chain.a.hops=3", "flow.f.to=a3", "stop=20 s"]);
    assert_eq!((with.flows[0].delivered, with.ended), (without.flows[0].delivered, without.ended));
    assert!(without.flows[0].measured.is_none());
    assert!(with.stations[0].rts.sent < without.stations[0].rts.sent);
}

/// A wire, a chain, and a wire: `s` - `a0` … `a2` - `r`.
const MIXED: &str = "\
stop = '20 s'
[[link]]
name = 'in'
between = ['s', 'a0']
rate = '10 Mbit/s'
[[link]]
name = 'out'
between = ['a2', 'r']
rate = '10 Mbit/s'
[[channel]]
name = 'air'
[[chain]]
name = 'a'
hops = 2
spacing = '300 m'
channels = ['air']
[[flow]]
name = 'through'
from = 's'
to = 'r'
send = '100 kB'
[[flow]]
name = 'within'
from = 'a0'
to = 'a2'
send = '100 kB'
";

#[test]
fn links_and_radios_meet_and_nodes_with_radios_forward() {
    let result = result(MIXED, &[]);
    for flow in &result.flows {
        assert_eq!((flow.delivered, flow.outcome), (100_000, "closed"), "{}", flow.name);
    }
    assert_eq!(result.flows[0].paths[0].name, "in");
    assert_eq!(result.flows[1].paths[0].name, "air");
    assert!(result.stations[1].data.answered > 100);
}

/// Two chains that do not hear each other, one of them with a wire, and a link by itself that fails and changes.
const APART: &str = "\
stop = '7 s'
measure = ['1500 ms', '5 s']
[[channel]]
name = 'air'
[[chain]]
name = 'a'
hops = 3
spacing = '300 m'
channels = ['air']
[[chain]]
name = 'b'
hops = 3
spacing = '300 m'
at = ['0 m', '50 km']
channels = ['air']
[[link]]
name = 'out'
between = ['b3', 'r']
rate = '1 Mbit/s'
loss = '2 %'
[[link]]
name = 'alone'
between = ['x', 'y']
rate = '1 Mbit/s'
down = [['2200 ms', '2900 ms']]
[[change]]
link = 'alone'
at = '4 s'
rate = '300 kbit/s'
[[flow]]
name = 'datagrams'
protocol = 'udp'
from = 'a0'
to = 'a3'
rate = '2 Mbit/s'
[[flow]]
name = 'through'
from = 'b0'
to = 'r'
[[flow]]
name = 'wired'
from = 'x'
to = 'y'
";

/// With additional polls there are no rounds: everything happens in order of time.
#[test]
fn what_cannot_meet_needs_no_common_order() {
    let json = |extra_polls| {
        let options = RunOptions { extra_polls, ..RunOptions::default() };
        let result = run(&scenario(APART, &[]), options).unwrap();
        assert!(result.flows.iter().all(|flow| flow.delivered > 50_000));
        assert_eq!(result.ended, 7.0);
        serde_json::to_string(&result).unwrap()
    };
    assert_eq!(json(false), json(true));
}

#[test]
fn a_named_route_is_taken() {
    // Each node reads two on each side: the shortest way leaves out every other node.
    let close = ["chain.a.spacing=180 m", "chain.a.hops=4", "flow.f.to=a4", "stop=12 s"];
    let busy = |text: &str| {
        let stations = result(text, &close).stations;
        stations.into_iter().filter(|station| station.data.sent > 0).map(|s| s.node).collect::<Vec<_>>()
    };
    let text = TEXT.replace("measure = ['10 s', '60 s']\n", "");
    assert_eq!(busy(&text), ["a0", "a2", "a4"]);
    let all = format!("{text}[[route]]\nchannel = 'air'\nthrough = ['a0', 'a1', 'a2', 'a3', 'a4']\n");
    assert_eq!(busy(&all), ["a0", "a1", "a2", "a3", "a4"]);
}

#[test]
fn both_channels_of_two_radios_are_paths() {
    let text = TEXT.replace("[[chain]]", "[[channel]]\nname = 'second'\n[[chain]]");
    let both = ["chain.a.channels=['second', 'air']", "chain.a.hops=4", "flow.f.to=a4"];
    let result = result(&text, &both);
    let names: Vec<_> = result.flows[0].paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["air", "second"]);
    assert_eq!(result.stations.len(), 10);
}

/// Cross traffic along a chain whose radios drop most of it. It begins and ends at a radio.
const CROSS: &str = "\
stop = '5 s'
[[channel]]
name = 'air'
[channel.dcf]
queue = '3 packets'
[[chain]]
name = 'a'
hops = 4
spacing = '300 m'
channels = ['air']
[[traffic]]
name = 't'
from = 'a0'
to = 'a4'
load = '2 Mbit/s'
sizes = { '1000 B' = 1 }
";

#[test]
fn cross_traffic_may_begin_and_end_at_a_radio() {
    let wires = "[[link]]\nname = 'w'\nbetween = ['x', 'y']\nrate = '1 Mbit/s'\n";
    for text in [CROSS.to_owned(), format!("{CROSS}both_ways = true\n"), format!("{CROSS}{wires}")] {
        let result = result(&text, &[]);
        assert!(result.traffic[0].packets > 1000, "{:?}", result.traffic);
        assert!(result.stations[1].data.answered > 10);
    }
}

#[test]
fn a_flow_of_datagrams_is_over_when_radios_have_dropped_the_rest() {
    let lossy = [
        "chain.a.hops=4",
        "flow.f.to=a4",
        "channel.air.dcf.queue=3 packets",
        UDP,
        FAST,
        "flow.f.send=100 kB",
    ];
    let text = without_sctp().replace("measure = ['10 s', '60 s']\n", "");
    let result = result(&text, &lossy);
    let flow = &result.flows[0];
    assert!(flow.delivered < 100_000 && result.stations[0].drops.queue > 0, "{flow:?}");
    assert_eq!(flow.outcome, "closed");
    assert!(result.ended < 60.0, "the run ends with its flow: {} s", result.ended);
}

#[test]
fn cross_traffic_counts_what_radios_drop() {
    let result = result(CROSS, &[]);
    let drops = |station: &StationResult| {
        station.drops.queue + station.drops.rts_retries + station.drops.data_retries
    };
    let dropped: u64 = result.stations.iter().map(drops).sum();
    assert!(result.traffic[0].dropped > 100);
    assert_eq!(result.traffic[0].dropped, dropped);
}

/// Packets dropped on the way back, from the last node's radio on.
fn dropped_backwards(result: &RunResult) -> u64 {
    let measured = result.flows[0].measured.as_ref().expect("it was measured");
    let back = |direction: &str| {
        let number = |node: &str| node[1..].parse::<u32>().expect("a node of a chain");
        direction.split_once('>').is_some_and(|(from, to)| number(from) > number(to))
    };
    measured.links.iter().filter(|link| back(&link.direction)).map(|link| link.dropped).sum()
}

#[test]
fn sacks_of_a_flow_are_lost_unless_they_are_not_to_be() {
    let long = [
        "chain.a.hops=6",
        "flow.f.to=a6",
        "channel.air.reception.interfere=812 m",
        "channel.air.reception.capture=off",
    ];
    let lossy = result(TEXT, &long);
    assert!(dropped_backwards(&lossy) > 0);
    let lossless = result(TEXT, &[&long[..], &["flow.f.lossless_sacks=true"]].concat());
    assert_eq!(dropped_backwards(&lossless), 0);
    let given_up: u64 = lossless.stations.iter().map(|s| s.drops.rts_retries + s.drops.data_retries).sum();
    assert!(given_up > 0, "the radios count what they give up all the same");
}

#[test]
fn windows_stay_below_their_limit_path_by_path() {
    let text = TEXT.replace("[[chain]]", "[[channel]]\nname = 'second'\n[[chain]]");
    let both = ["chain.a.channels=['second', 'air']", "chain.a.hops=2", "flow.f.to=a2"];
    let means = |edits: &[&str]| {
        let measured = result(&text, edits).flows[0].measured.clone().expect("it was measured");
        measured.paths.iter().map(|path| path.mean_cwnd.expect("it has windows")).collect::<Vec<_>>()
    };
    let free = means(&[&both[..], &["flow.f.sctp.cmt=true"]].concat());
    assert!(free[0] > 8000.0 && free[1] > 8000.0, "{free:?}");
    for shape in ["flow.f.sctp.cmt=true", "flow.f.stripe=true"] {
        let limit = "flow.f.sctp.max_cwnd=['8 kB', '5 kB']";
        let limited = means(&[&both[..], &[shape, limit]].concat());
        assert!(
            (3000.0..=8000.0).contains(&limited[0]) && (2000.0..=5000.0).contains(&limited[1]),
            "{limited:?}"
        );
    }
}

/// What a document that is wrong is told: line, key, and a part of message and advice.
fn refused(text: &str, edits: &[&str]) -> (usize, String, String) {
    let document = document(text, edits).unwrap();
    let error = match document.scenario("test", &Policies::default()) {
        Err(error) => error,
        Ok(scenario) => {
            let error = run(&scenario, RunOptions::default()).expect_err("it cannot be run");
            document.blame(&scenario, &error).expect("the scenario is wrong")
        }
    };
    (error.line(), error.key().to_owned(), error.render(false))
}

#[test]
fn the_default_of_control_rate_is_not_above_rate() {
    let slow = scenario(&TEXT.replace("cw_min = 31", "rate = '1 Mbit/s'"), &[]);
    assert_eq!(slow.channels[0].dcf.control_rate, 1_000_000);
}

#[test]
fn what_cannot_be_is_refused_with_line_key_and_fix() {
    let replaced = |from: &str, to: &str| TEXT.replace(from, to);
    let two = format!("{TEXT}[[node]]\nname = 'n'\nat = ['300 m', '0 m']\nchannels = ['air']\n");
    let route = "[[route]]\nchannel = 'air'\nthrough = ['a0', 'a1']\n";
    let power = |key: &str| {
        let begin = TEXT.find("{ name").expect("it has a reception");
        let end = TEXT.find(" }").expect("it ends") + 2;
        TEXT.replace(&TEXT[begin..end], &format!("{{ name = 'power', {key} }}"))
    };
    let cases: &[(String, usize, &str, &str)] = &[
        (replaced("hops = 1", "hops = 0"), 10, "chain.a.hops", "it must be 1 to"),
        (
            replaced("decode = '370 m'", "decode = '200 m'"),
            16,
            "flow.f.to",
            "`a0` and `a1` are 300.0 m apart",
        ),
        (replaced("sense = '520 m'", "sense = '300 m'"), 5, "channel.air.reception.sense", "below `decode`"),
        (
            replaced("interfere = '520 m'", "interfere = '510 m'"),
            5,
            "channel.air.reception.interfere",
            "below `sense`",
        ),
        (two, 8, "chain.a.at", "`a1` and `n` are at the same place"),
        (replaced("channels = ['air']", "channels = ['ari']"), 12, "chain.a.channels", "did you mean `air`?"),
        (replaced("cw_min = 31", "cw_min = 2047"), 7, "channel.air.dcf.cw_min", "above `cw_max`"),
        (replaced("spacing = '300 m'", "spacing = '300'"), 11, "chain.a.spacing", "`300` has no unit"),
        (
            replaced("spacing = '300 m'", "spacing = 300"),
            11,
            "chain.a.spacing",
            "the units are mm, cm, m, km",
        ),
        (replaced("cw_min = 31", "rate = '3 Mbit/s'"), 7, "channel.air.dcf.rate", "1, 2, 5.5, 11 Mbit/s"),
        (
            replaced("cw_min = 31", "control_rate = '5.5 Mbit/s'"),
            7,
            "channel.air.dcf.control_rate",
            "is above `rate`, 2 Mbit/s",
        ),
        (replaced("'60 s']", "'61 s']"), 2, "measure", "ends after the run"),
        (
            format!("{TEXT}{route}{route}"),
            25,
            "route.2.through",
            "there is another route from `a0` to `a1` on channel `air`",
        ),
        (
            format!("{TEXT}{}", route.replace("'a1'", "'a1', 'a0'")),
            22,
            "route.1.through",
            "this route passes `a0` twice",
        ),
        (power("busy = '-102 dBm'"), 5, "channel.air.reception.busy", "is not above `noise`, -101.27 dBm"),
        (power("noise = '-90 dBm'"), 5, "channel.air.reception.noise", "`busy`, -93 dBm, is not above"),
        (power("header = '30 dB'"), 16, "flow.f.to", "too far to read each other"),
        (
            power("propagation = 'free-space', height = '3 m'"),
            5,
            "channel.air.reception.height",
            "set `propagation = \"two-ray\"`",
        ),
        (power("exponent = 4"), 5, "channel.air.reception.exponent", "for `\"log-distance\"` alone"),
        (replaced("spacing = '300 m'", "spacing = '100000001 km'"), 11, "chain.a.spacing", "the most is"),
    ];
    for (text, line, key, part) in cases {
        let (found_line, found_key, told) = refused(text, &[]);
        assert_eq!((found_line, found_key.as_str()), (*line, *key), "{told}");
        assert!(told.contains(part), "{part} in {told}");
    }
}

/// A hundred and twenty-eight nodes square. A metre apart, each radio reaches all others: 134 million pairs.
#[test]
fn radios_that_are_too_close_are_refused_with_their_spacing() {
    let grid = "[[channel]]\nname = 'air'\n[[grid]]\nname = 'g'\ncolumns = 128\nrows = 128\nspacing = '1 m'\nchannels = ['air']\n";
    let text = format!("{grid}[[flow]]\nname = 'f'\nfrom = 'g0-0'\nto = 'g1-0'\nsend = '1 kB'\n");
    let (line, key, told) = refused(&text, &[]);
    assert_eq!((line, key.as_str()), (7, "grid.g.spacing"), "{told}");
    assert!(told.contains("more than 5000000 pairs of radios of channel `air`"), "{told}");
    scenario(&text, &["grid.g.spacing=300 m"]);
}

#[test]
fn the_same_without_a_document_is_an_error_too() {
    let scenario = scenario(TEXT, &["chain.a.spacing=400 m"]);
    let error = run(&scenario, RunOptions::default()).unwrap_err();
    assert!(matches!(error, RunError::Gap { metres: 400.0, .. }), "{error}");
}

/// A run's capture as tshark reads it, one line a frame.
fn tshark(capture: &[u8], fields: &[&str]) -> String {
    let file = std::env::temp_dir().join(format!("anabranch-radios-{}.pcapng", std::process::id()));
    std::fs::write(&file, capture).unwrap();
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let output =
        Command::new("tshark").arg("-r").arg(&file).args(["-T", "fields"]).args(fields).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tshark_reads_every_frame() {
    if !has_tshark("tshark_reads_every_frame") {
        return;
    }
    let mut writer = CaptureWriter::new(Vec::new(), "test");
    let scenario = scenario(TEXT, &["flow.f.send=2000 B"]);
    run(&scenario, RunOptions { observer: Some(&mut writer), ..RunOptions::default() }).unwrap();
    let capture = writer.finish().unwrap();
    let fields = [
        "frame.interface_name",
        "wlan.fc.type_subtype",
        "wlan.duration",
        "wlan.fcs.status",
        "sctp.chunk_type",
        "_ws.malformed",
    ];
    let read = tshark(&capture, &fields);
    let lines: Vec<&str> = read.lines().collect();
    // INIT: RTS, CTS, data, ACK.
    assert!(lines[0].starts_with("air\t0x001b\t"), "{}", lines[0]);
    assert!(lines[1].starts_with("air\t0x001c\t"), "{}", lines[1]);
    assert!(lines[2].starts_with("air\t0x0020\t258\t") && lines[2].contains("\t1\t"), "{}", lines[2]);
    assert!(lines[3].starts_with("air\t0x001d\t0\t"), "{}", lines[3]);
    assert!(lines.iter().all(|line| !line.contains("Malformed")), "{read}");
    assert!(lines.iter().filter(|line| line.contains("0x0020")).count() >= 9, "{read}");
}
