//! Flows of different transports in one network, as documents say them.

use anabranch_proto::Policies;
use anabranch_sim::results::{FlowResult, RunResult};
use anabranch_sim::scenario::{Document, Scenario, ScenarioError};
use anabranch_sim::{RunOptions, run};

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
    let mut document = Document::parse("test.toml", TEXT)?;
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
    assert_eq!((file.protocol, voice.protocol), ("sctp", "udp"));
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
