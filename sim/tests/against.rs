//! One end of a captured association against our endpoint: captures of our own runs have no difference in their own era, and
//! the expected one in another.

use anabranch_proto::{Duration, Policies};
use anabranch_sim::against::{Comparison, Conversation, Difference, NotReplayed, Subject, compare};
use anabranch_sim::capture::{CaptureReader, CaptureWriter, Snap};
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{RunOptions, run};

/// The access link is fast, so that packets leave the host when the endpoint sends them.
const NETWORK: &str = r#"
stop = "60 s"
[[link]]
name = "access"
between = ["s", "gateway"]
rate = "1 Gbit/s"
delay = "1 ms"
[[link]]
name = "far"
between = ["gateway", "r"]
rate = "4 Mbit/s"
delay = "20 ms"
loss = [{ packets = [20, 21, 90, 300] }, "0 %"]
[[flow]]
name = "f"
from = "s"
to = "r"
send = "600 kB"
"#;

fn capture(settings: &[&str]) -> Vec<u8> {
    let mut document = Document::parse("t", NETWORK).expect("a document");
    settings.iter().for_each(|setting| document.set("--set", setting).expect("a setting"));
    written(&document.scenario("t", &Policies::default()).expect("a scenario"))
}

fn written(scenario: &Scenario) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), "test").snap(Snap::Headers);
    run(scenario, RunOptions { observer: Some(&mut writer), ..RunOptions::default() }).expect("it runs");
    writer.finish().expect("written to memory")
}

fn conversation(capture: &[u8], played: Option<&str>) -> Result<Conversation, NotReplayed> {
    let reader = CaptureReader::new(capture)?;
    Conversation::read(reader, &[9899], played.map(|ip| ip.parse().expect("an address")))
}

fn against(capture: &[u8], played: Option<&str>, settings: &[&str]) -> Vec<Difference> {
    let conversation = conversation(capture, played).expect("an association");
    let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let comparison = Comparison { settings, within: Duration::from_millis(1), mtu: None, bulk: false };
    compare(&conversation, &comparison).expect("the settings fit")
}

/// The address of the receiver.
fn receiver(capture: &[u8]) -> String {
    let conversation = conversation(capture, None).expect("an association");
    let own = conversation.own[0];
    let other = CaptureReader::new(capture).expect("a capture").filter_map(Result::ok);
    let lines = other.flat_map(|packet| anabranch_sim::capture::explain(&packet, &[]));
    lines.filter_map(|line| line.to).find(|to| *to != own).expect("a peer").to_string()
}

#[test]
fn an_era_answers_its_own_captures_at_both_ends() {
    for era in ["rfc2960", "rfc4960", "rfc9260", "ns2"] {
        let capture = capture(&[&format!("era={era}")]);
        let other = receiver(&capture);
        for played in [None, Some(other.as_str())] {
            let differences = against(&capture, played, &[&format!("era={era}")]);
            assert_eq!(differences, [], "{era} played {played:?}");
        }
    }
}

/// A sender with two slow interfaces, one of which goes down: packets that wait for one leave behind later ones of the other, and the
/// capture shows them when they leave.
#[test]
fn the_order_of_packets_on_different_interfaces_is_no_difference() {
    let text = include_str!("../../scenarios/outage.toml");
    let scenario = Document::parse("outage", text)
        .and_then(|document| document.scenario("outage", &Policies::default()));
    let capture = written(&scenario.expect("a scenario"));
    let settings = ["era=rfc9260", "path_max_retrans=2", "rto_min=200 ms"];
    let settings: Vec<String> = settings.into_iter().map(str::to_owned).collect();
    let conversation = conversation(&capture, None).expect("an association");
    let within = Duration::from_millis(50);
    let mut comparison = Comparison { settings, within, mtu: None, bulk: false };
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit"), []);
    // The order on each path still counts: a parameter that differs is found.
    comparison.settings.remove(1);
    let differences = compare(&conversation, &comparison).expect("the settings fit");
    let first = &differences.first().expect("a difference").explained[0];
    assert_eq!((first.key.as_str(), first.recorded.as_str(), first.until), ("path_max_retrans", "2", None));
    comparison.settings.insert(1, "path_max_retrans=2".to_owned());
    comparison.settings[2] = "rto_min=400 ms".to_owned();
    let differences = compare(&conversation, &comparison).expect("the settings fit");
    let first = differences.first().expect("a difference");
    assert_eq!(
        (first.subject, first.explained[0].key.as_str()),
        (Subject::Data, "rto_min"),
        "{differences:#?}"
    );
}

/// A sender whose own link loses packets: a lost packet takes no place in the queue, and the capture shows it before those that waited.
#[test]
fn packets_that_the_own_link_loses_are_no_difference() {
    let text = include_str!("../../scenarios/loss.toml");
    let scenario =
        Document::parse("loss", text).and_then(|document| document.scenario("loss", &Policies::default()));
    let conversation = conversation(&written(&scenario.expect("a scenario")), None).expect("an association");
    // The queue holds packets for 120 ms; all data was there from the beginning.
    let within = Duration::from_millis(150);
    let comparison = Comparison { settings: vec![], within, mtu: None, bulk: true };
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit"), []);
}

/// A sender whose own queue overflows: the capture shows a packet that was dropped at once, and before it those that still waited.
#[test]
fn packets_that_the_own_queue_drops_are_no_difference() {
    let slow = ["link.access.rate=4 Mbit/s", "link.access.queue=20 packets", "link.far.loss=0 %"];
    let capture = capture(&slow);
    let packets: Vec<_> =
        CaptureReader::new(&capture[..]).expect("a capture").filter_map(Result::ok).collect();
    let dropped = |comment: &Option<String>| {
        comment.as_deref().is_some_and(|said| said.starts_with("dropped: queue full"))
    };
    assert!(packets.iter().any(|packet| dropped(&packet.comment)));
    let conversation = conversation(&capture, None).expect("an association");
    // The queue holds packets for 60 ms; all data was there from the beginning.
    let comparison =
        Comparison { settings: vec![], within: Duration::from_millis(100), mtu: None, bulk: true };
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit"), []);
}

#[test]
fn a_sender_of_another_era_differs_by_the_rule_that_was_changed() {
    // Four missing reports instead of three: the fast retransmission comes one SACK later.
    let capture = capture(&["flow.f.sctp.missing_reports=4"]);
    let differences = against(&capture, None, &["era=rfc9260"]);
    let first = differences.first().expect("a difference");
    assert_eq!(first.subject, Subject::Data);
    let named: Vec<&str> = first.explained.iter().map(|one| one.key.as_str()).collect();
    assert!(named.contains(&"missing_reports"), "{differences:#?}");
    assert!(first.packet.is_some());
}

#[test]
fn a_receiver_that_acknowledges_every_packet_is_found() {
    let capture = capture(&["flow.f.sctp.sack_every=1"]);
    let other = receiver(&capture);
    let differences = against(&capture, Some(&other), &["era=rfc9260"]);
    let first = differences.first().expect("a difference");
    assert_eq!((first.subject, first.section.as_str()), (Subject::Acknowledgement, "RFC 9260 section 6.2"));
    assert_eq!(first.explained[0].key, "sack_every", "{differences:#?}");
    assert_eq!(first.explained[0].until, None);
}

#[test]
fn another_era_is_named_by_its_rules() {
    let capture = capture(&["era=rfc2960"]);
    let differences = against(&capture, None, &["era=ns2"]);
    assert!(!differences.is_empty());
    assert!(differences.iter().any(|one| !one.explained.is_empty()), "{differences:#?}");
}

#[test]
fn a_capture_without_the_handshake_is_refused() {
    let capture = capture(&[]);
    // The packets of the handshake are the first of all links: a capture that begins later has none.
    let late = skip_packets(&capture, 40);
    let error = conversation(&late, None).expect_err("no handshake");
    assert!(matches!(error, NotReplayed::NoHandshake), "{error}");
    let error = conversation(&capture, Some("192.0.2.99")).expect_err("no such address");
    assert!(
        error.to_string().starts_with("no handshake in the capture has the address 192.0.2.99"),
        "{error}"
    );
}

#[test]
fn a_damaged_capture_does_no_harm() {
    let capture = capture(&["flow.f.send=6 kB"]);
    // A pseudo-random byte of each of many copies is changed, and copies end early.
    let mut state = 1_u32;
    for round in 0..60 {
        let mut damaged = capture.clone();
        for _ in 0..=round % 4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let place = state as usize % damaged.len();
            damaged[place] ^= (state >> 24) as u8;
        }
        if round % 5 == 0 {
            damaged.truncate(state as usize % damaged.len());
        }
        let Ok(reader) = CaptureReader::new(&damaged[..]) else { continue };
        let Ok(conversation) = Conversation::read(reader.take_while(Result::is_ok), &[], None) else {
            continue;
        };
        let settings = vec!["era=rfc9260".to_owned()];
        let comparison =
            Comparison { settings, within: Duration::from_secs(3600), mtu: None, bulk: round % 2 == 0 };
        let _ = compare(&conversation, &comparison);
    }
}

/// The capture without its first packets.
fn skip_packets(capture: &[u8], mut packets: u32) -> Vec<u8> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while let Some(&[a, b, c, d]) = capture.get(at + 4..at + 8) {
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        let is_packet = capture[at] == 6;
        if !is_packet || packets == 0 {
            kept.extend_from_slice(&capture[at..at + length]);
        } else {
            packets -= 1;
        }
        at += length;
    }
    kept
}

/// usrsctp against itself over a veth pair, one packet in eleven with user data of more than 1,000 bytes dropped: six messages of 3,000
/// bytes, then three of 500. Made with `interop/peer.c` and tcpdump at 10.9.0.2, which sends the messages.
const USRSCTP: &[u8] = include_bytes!("captures/usrsctp.pcap");

#[test]
fn usrsctp_as_sender_answers_as_rfc_9260() {
    let settings = vec!["era=rfc9260".to_owned()];
    let comparison = Comparison { settings, within: Duration::from_millis(50), mtu: None, bulk: false };
    let compared = |played| {
        let conversation = conversation(USRSCTP, Some(played)).expect("an association");
        assert_eq!((conversation.initiates, conversation.packets), (played == "10.9.0.2", 46));
        compare(&conversation, &comparison).expect("the settings fit")
    };
    // Every packet is the same, the fast retransmission too.
    assert_eq!(compared("10.9.0.2"), []);
    // The capture was not made at the other end, which lacks a packet that the capture has.
    let differences = compared("10.9.0.1");
    let [only] = &differences[..] else { panic!("{differences:#?}") };
    assert_eq!(
        (only.subject, only.packet, &only.explained[..]),
        (Subject::Acknowledgement, Some(26), &[][..])
    );
    assert!(only.recorded.as_ref().is_some_and(|sent| sent.what.contains("gaps")), "{only:#?}");
}
