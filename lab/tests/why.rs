//! Twenty events of scenarios and publications: the answer names the right rule and the right path.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anabranch_lab::why::{Explainer, Question, Waits};
use anabranch_proto::policy::Why;
use anabranch_proto::{Duration, Policies, Purpose, Time};
use anabranch_sim::RunOptions;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::trace::{Names, Observer, Record, Side};

fn scenario(file: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
    let text = std::fs::read_to_string(&path).expect("the scenario is there");
    parsed(&text)
}

fn parsed(text: &str) -> Scenario {
    let document = Document::parse("s", text).expect("it is a scenario");
    document.scenario("s", &Policies::default()).expect("it is a scenario")
}

fn observe(scenario: &Scenario, observer: &mut dyn Observer) {
    let options = RunOptions { observer: Some(observer), ..RunOptions::default() };
    anabranch_sim::run(scenario, options).expect("it runs");
}

fn answers(scenario: &Scenario, question: Question) -> Vec<String> {
    let mut explainer = Explainer::new(question, scenario);
    observe(scenario, &mut explainer);
    explainer.answers().iter().map(|answer| answer.lines().join("\n")).collect()
}

fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not said:\n{text}");
    }
}

/// What is said at each of these moments.
fn at(file: &str, moments: &[(f64, &[&str])]) {
    let time = |seconds: f64| Time::ZERO + Duration::from_secs_f64(seconds);
    let at = moments.iter().map(|(seconds, _)| time(*seconds)).collect();
    let texts = answers(&scenario(file), Question { at, ..Question::default() });
    assert_eq!(texts.len(), moments.len());
    texts.iter().zip(moments).for_each(|(text, (_, parts))| assert_says(text, parts));
}

/// Finds the number of the first packet of each purpose.
#[derive(Default)]
struct Find {
    seen: u64,
    first: Vec<(Purpose, u64)>,
}

impl Find {
    fn number(&self, purpose: Purpose) -> Option<u64> {
        self.first.iter().find(|(known, _)| *known == purpose).map(|(_, number)| *number)
    }
}

impl Observer for Find {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, _: Time, record: &Record<'_>) {
        let Record::Sent { reason, .. } = record else { return };
        self.seen += 1;
        if self.number(reason.purpose).is_none() {
            self.first.push((reason.purpose, self.seen));
        }
    }
}

/// What is said of the first packet that is sent for each of these purposes.
fn first(file: &str, packets: &[(Purpose, &[&str])]) {
    let scenario = scenario(file);
    let mut find = Find::default();
    observe(&scenario, &mut find);
    for (purpose, parts) in packets {
        let packet = Some(find.number(*purpose).expect("such a packet is sent"));
        assert_says(&answers(&scenario, Question { packet, ..Question::default() })[0], parts);
    }
}

const CASE_STUDY: &str = "papers/receive-buffer-blocking/case-study.toml";
const SINGLE_LOSS: &str = "papers/satellite-fairness/single-loss-tcp.toml";

#[test]
fn the_case_study_of_receive_buffer_blocking() {
    // The published times: the first fast retransmission at 7.063, the pause from 7.694 on.
    at(
        CASE_STUDY,
        &[
            (
                8.0,
                &["sent again", "secondary-access chosen by alternate", "on its way on secondary c>d since"],
            ),
            (
                10.0,
                &[
                    "blocked by the peer's window since 7.694268 s: 292 bytes left (RFC 9260 section 6.1 A)",
                    "Path primary-access: blocked by the peer's window",
                    "620 chunks wait at the receiver behind TSN 1624781933",
                    "lost at 6.915901 s on primary a>b (queue full)",
                    "sent again at 7.080294 s on secondary-access chosen by alternate",
                    "missing_reports = 4",
                    "on its way on secondary c>d since 9.396817 s",
                ],
            ),
            (
                26.4,
                &[
                    "blocked by its turn since 26.332822 s: 12 chunks go first",
                    "section 6.1 C",
                    "new_data = after-marked",
                    "again at 26.332822 s on primary-access chosen by alternate (retransmission after T3-rtx)",
                ],
            ),
            (
                31.5,
                &[
                    "blocked by the congestion window",
                    "section 6.1 B",
                    "the cwnd of primary-access was cut by a fast retransmission (RFC 9260 section 7.2.4) from 197073 to 98536",
                    "the cwnd of secondary-access was cut by a timeout (RFC 9260 section 7.2.3)",
                ],
            ),
        ],
    );
    first(
        CASE_STUDY,
        &[
            (
                Purpose::Data(Why::Missing),
                &[
                    "at 7.063472 s",
                    "path secondary-access",
                    "one packet regardless of cwnd: RFC 9260 section 7.2.4",
                    "policy alternate (key `fast`)",
                    "missing_reports = 4",
                    "on_marking = one-packet",
                    "lost at 6.899101 s on primary a>b (queue full)",
                ],
            ),
            (
                Purpose::Data(Why::Timeout),
                &[
                    "path primary-access",
                    "RFC 9260 section 6.3.3",
                    "T3-rtx of secondary-access expired at 26.231503 s",
                    "policy alternate (key `timeout`)",
                ],
            ),
            (Purpose::Data(Why::New), &["path primary-access", "within cwnd: RFC 9260 section 6.1"]),
        ],
    );
}

#[test]
fn an_outage_and_its_failover() {
    let outage = "scenarios/outage.toml";
    at(
        outage,
        &[
            (
                10.5,
                &[
                    "after its timeout first carries one packet",
                    "after_timeout = one-packet",
                    "section 7.2.3",
                ],
            ),
            (
                11.25,
                &[
                    "Path first: its congestion window is full since 10.874368 s",
                    "lost at 10.592000 s on first s>r (link down)",
                ],
            ),
            (
                11.8,
                &[
                    "Path first: inactive since 11.674368 s",
                    "T3-rtx of first expired last at 11.674368 s after an RTO of 0.8 s",
                ],
            ),
        ],
    );
    first(
        outage,
        &[
            (
                Purpose::Data(Why::Timeout),
                &[
                    "at 10.177184 s",
                    "path second",
                    "T3-rtx of first expired at 10.177184 s after an RTO of 0.2 s",
                    "policy alternate (key `timeout`)",
                    "Window of second, bytes: cwnd",
                ],
            ),
            (Purpose::Heartbeat, &["heartbeat, control: RFC 9260 section 8.3"]),
            (Purpose::Setup, &["INIT", "RFC 9260 section 5.1"]),
        ],
    );
}

#[test]
fn losses_and_slow_readers() {
    at(
        "scenarios/slow-reader.toml",
        &[(
            2.0,
            &[
                "blocked by the peer's window since 0.330134 s: 944 bytes left",
                "window_probe = after-rto",
                "receiving application",
            ],
        )],
    );
    at(
        "scenarios/loss.toml",
        &[(0.3881, &["the last event allowed no more packets", "burst = always", "section 6.1 D"])],
    );
    first(
        "scenarios/loss.toml",
        &[(Purpose::Data(Why::Missing), &["path wifi", "7.2.4", "missing_reports = 3"])],
    );
    at("scenarios/ecn.toml", &[(10.5, &["the cwnd of dsl was cut by a report of congestion (ECN"])]);
    at(
        "scenarios/multihop.toml",
        &[(
            3.653,
            &[
                "Path freq1: its congestion window is full",
                "lost at 3.400534 s on freq1 a0>a1 (no CTS to the last RTS)",
            ],
        )],
    );
    at(
        "scenarios/partial-reliability.toml",
        &[(1.7, &["the cwnd of wifi was cut by a timeout (RFC 9260 section 7.2.3)"])],
    );
}

/// The only SACK of the oldest chunk is lost on its way back.
#[test]
fn a_lost_acknowledgement_is_a_cause() {
    at(
        "scenarios/partial-reliability.toml",
        &[
            (1.675, &["it arrived at 1.673673 s; its acknowledgement is awaited."]),
            (
                1.678,
                &[
                    "it arrived at 1.673673 s; no acknowledgement of it has arrived.",
                    "TSN 3588993205 was acknowledged by a SACK at 1.676073 s on wifi: \
                     lost at 1.676073 s on wifi viewer>camera (lost on the link).",
                ],
            ),
        ],
    );
    let mut explainer = Explainer::new(
        Question { at: vec![Time::ZERO + Duration::from_millis(1678)], ..Question::default() },
        &scenario("scenarios/partial-reliability.toml"),
    );
    observe(&scenario("scenarios/partial-reliability.toml"), &mut explainer);
    let answers = explainer.answers();
    let causes = &answers[0].flows[0].causes;
    let lost: Vec<_> = causes.iter().filter(|cause| cause.kind == "acknowledgement").collect();
    assert_eq!(lost.len(), 1, "{causes:?}");
    assert_eq!((lost[0].number, lost[0].path.as_deref()), (Some(3_588_993_205), Some("wifi")));
}

#[test]
fn several_paths_at_once_and_satellites() {
    at(
        "scenarios/cmt.toml",
        &[(
            1.5,
            &[
                "584 bytes left",
                "behind TSN 2171341265",
                "sent again at 0.744134 s on lte chosen by rtx-lossrate",
                "queue full",
            ],
        )],
    );
    first(
        "scenarios/cmt.toml",
        &[(Purpose::Data(Why::Missing), &["path lte", "policy rtx-lossrate (key `fast`)"])],
    );
    first(
        SINGLE_LOSS,
        &[(
            Purpose::Data(Why::Missing),
            &[
                "flow tcp",
                "byte 10136",
                "lost at 2.331434 s on satellite router>destination (lost on the link)",
            ],
        )],
    );
}

/// The answers about the longest waits of a run, as without a moment.
fn longest_waits(scenario: &Scenario) -> Vec<String> {
    let mut waits = Waits::new(None);
    let options = RunOptions { observer: Some(&mut waits), ..RunOptions::default() };
    let ended = anabranch_sim::run(scenario, options).expect("it runs").ended;
    let at = waits.moments(Time::ZERO + Duration::from_secs_f64(ended));
    answers(scenario, Question { at, ..Question::default() })
}

/// The only link goes down for good in the middle of the transfer.
#[test]
fn a_wait_that_never_ends_is_explained() {
    let stall = parsed(
        r#"
stop = "120 s"
[[link]]
name = "wire"
between = ["s", "r"]
rate = "10 Mbit/s"
delay = "20 ms"
[[flow]]
name = "transfer"
from = "s"
to = "r"
send = "20 MB"
[[change]]
at = "5 s"
link = "wire"
up = false
"#,
    );
    let texts = longest_waits(&stall);
    let endless: Vec<&String> =
        texts.iter().filter(|text| text.contains("lasts until the run ends.")).collect();
    assert_eq!(endless.len(), 1, "{texts:#?}");
    assert_says(
        endless[0],
        &["Flow transfer: blocked by the congestion window since", "on wire s>r (link down)"],
    );
    // The SACKs that were on their way back are lost with the link.
    assert_eq!(endless[0].matches("was acknowledged by a SACK at 4.98").count(), 3, "{}", endless[0]);
    assert_says(
        endless[0],
        &["by later SACKs, the last at 5.199373 s on wire: lost at 5.199373 s on wire r>s (link down)"],
    );
    // The sender of this scenario is blocked by its window from its first packet to the end of the run.
    let texts = longest_waits(&scenario("scenarios/tcp-beside-sctp.toml"));
    assert!(
        texts
            .iter()
            .any(|text| text.contains("Flow sctp: blocked by the congestion window since 2.321245 s")),
        "{texts:#?}"
    );
    // No wait of a transfer that is completed lasts so long.
    let texts = longest_waits(&scenario("scenarios/outage.toml"));
    assert!(texts.len() == 5 && !texts.iter().any(|text| text.contains("lasts until")), "{texts:#?}");
}

/// The TSNs that each path of the only flow carries.
#[derive(Default)]
struct Carried(BTreeMap<String, BTreeSet<u64>>);

impl Observer for Carried {
    fn begin(&mut self, _: &Names) {}

    fn record(&mut self, _: Time, record: &Record<'_>) {
        if let Record::Sent { side: Side::Client, path: Some(path), packet, .. } = record {
            self.0.entry((*path).to_owned()).or_default().extend(packet.numbers());
        }
    }
}

#[test]
fn each_association_of_a_striped_flow_has_its_own_answer() {
    let scenario = scenario("scenarios/stripe.toml");
    let mut carried = Carried::default();
    observe(&scenario, &mut carried);
    assert!(carried.0.len() >= 2, "{:?}", carried.0.keys());
    let at = (1..=20).map(|tenth| Time::ZERO + Duration::from_millis(250 * tenth)).collect();
    let mut explainer = Explainer::new(Question { at, ..Question::default() }, &scenario);
    observe(&scenario, &mut explainer);
    let mut causes = 0;
    for answer in explainer.answers() {
        assert_eq!(answer.flows.len(), carried.0.len(), "{answer:?}");
        for flow in &answer.flows {
            let own = flow.association.as_ref().expect("an association");
            assert_says(&answer.lines().join("\n"), &[&format!("association over {own}: ")]);
            assert!(flow.paths.iter().all(|path| path.path == *own), "{flow:?}");
            for cause in flow.causes.iter().filter(|cause| cause.number.is_some()) {
                causes += 1;
                let number = cause.number.expect("it has one");
                assert!(carried.0[own].contains(&number), "{own} never carried {cause:?}");
                assert!(cause.path.is_none() || cause.path.as_ref() == Some(own), "{cause:?}");
            }
        }
    }
    assert!(causes > 20, "{causes}");
}

#[test]
fn tcp_tells_what_its_data_waits_for() {
    let times = |seconds: &[f64]| -> Vec<Time> {
        seconds.iter().map(|at| Time::ZERO + Duration::from_secs_f64(*at)).collect()
    };
    let at = times(&[0.9, 1.5, 2.4, 2.6, 3.0, 4.0]);
    let mut explainer = Explainer::new(Question { at, ..Question::default() }, &scenario(SINGLE_LOSS));
    observe(&scenario(SINGLE_LOSS), &mut explainer);
    let texts: Vec<String> = explainer.answers().iter().map(|answer| answer.lines().join("\n")).collect();
    let all = texts.join("\n");
    let parts = [
        "Flow tcp: blocked by the congestion window since",
        "RFC 5681 sections 3.1 and 3.2",
        "was cut by a fast retransmission (RFC 5681 section 3.2)",
        "is the oldest in flight",
    ];
    assert_says(&all, &parts);
    assert!(!all.contains("RFC 9260"), "{all}");
}

/// The Wi-Fi path of this scenario fails at 4 s.
#[test]
fn multipath_tcp_is_told_in_its_own_terms() {
    const FILE: &str = "scenarios/mptcp.toml";
    first(
        FILE,
        &[
            (Purpose::Setup, &["MP_CAPABLE version=1", "RFC 8684 section 3.1"]),
            (Purpose::Data(Why::New), &["peer_key=", "RFC 5681 section 3.1", "policy blest (key `new`)"]),
            (Purpose::Data(Why::Missing), &["fast retransmission after duplicate acknowledgements", "DSS "]),
            (
                Purpose::Data(Why::Reinjected),
                &["copy of data that another subflow has", "RFC 8684 section 3.3.6"],
            ),
        ],
    );
    at(
        FILE,
        &[(
            9.0,
            &[
                "Flow download: blocked by the congestion window since",
                "Path wifi: potentially failed since",
                "the retransmission timer of wifi expired last at",
                "(RFC 6298 section 5)",
            ],
        )],
    );
    let at = (1..40).map(|half| Time::ZERO + Duration::from_millis(250 * half)).collect();
    let all = answers(&scenario(FILE), Question { at, ..Question::default() }).join("\n");
    assert!(!all.contains("RFC 9260") && !all.contains("T3-rtx") && !all.contains("TSN"), "{all}");
}

/// The first SACK after the data has begun.
#[test]
fn a_packet_of_the_receiver_has_no_window() {
    let scenario = scenario("scenarios/one-path.toml");
    let mut find = Find::default();
    observe(&scenario, &mut find);
    let packet = find.number(Purpose::Sack);
    let mut explainer = Explainer::new(Question { packet, ..Question::default() }, &scenario);
    observe(&scenario, &mut explainer);
    let answers = explainer.answers();
    let packet = answers[0].packet.as_ref().expect("it is a packet");
    assert_eq!((packet.sender, packet.before, packet.after), ("server", None, None));
    assert!(packet.text.iter().all(|text| !text.contains("Window of")), "{:?}", packet.text);
}

#[test]
fn a_window_changes_with_a_packet() {
    let scenario = scenario("scenarios/one-path.toml");
    let mut find = Find::default();
    observe(&scenario, &mut find);
    let packet = find.number(Purpose::Data(Why::New));
    let mut explainer = Explainer::new(Question { packet, ..Question::default() }, &scenario);
    observe(&scenario, &mut explainer);
    let answers = explainer.answers();
    let packet = answers[0].packet.as_ref().expect("it is a packet");
    assert_eq!(packet.before.map_or(0, |window| window.flight), 0);
    assert_eq!(packet.after.map(|window| window.flight), Some(u64::from(packet.size - 32)));
}
