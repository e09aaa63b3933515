//! One end of a captured association against our endpoint: captures of our own runs have no difference in their own
//! era, and the expected one in another.

use anabranch_proto::wire::Chunk;
use anabranch_proto::{Duration, Policies};
use anabranch_sim::against::{
    Assumption, Compared, Comparison, Conversation, Difference, Doubt, NotReplayed, Subject, compare,
};
use anabranch_sim::capture::{CaptureReader, CaptureWriter, CapturedPacket, Snap, sctp_packets};
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

/// Two paths. The sender has the addresses 10.0.0.2 and 10.0.0.6, the receiver 10.0.0.10 and 10.0.0.14.
const TWO_PATHS: &str = r#"
era = "rfc2960"
stop = "60 s"
[[link]]
name = "a0"
between = ["s", "g0"]
rate = "1 Gbit/s"
delay = "1 ms"
[[link]]
name = "b0"
between = ["g0", "r"]
rate = "4 Mbit/s"
delay = "20 ms"
[[link]]
name = "a1"
between = ["s", "g1"]
rate = "1 Gbit/s"
delay = "1 ms"
[[link]]
name = "b1"
between = ["g1", "r"]
rate = "4 Mbit/s"
delay = "20 ms"
[[flow]]
name = "f"
from = "s"
to = "r"
send = "100 kB"
"#;

fn capture(settings: &[&str]) -> Vec<u8> {
    capture_of(NETWORK, settings)
}

fn capture_of(text: &str, settings: &[&str]) -> Vec<u8> {
    let mut document = Document::parse("t", text).expect("a document");
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
    compared(capture, played, settings).differences
}

fn compared(capture: &[u8], played: Option<&str>, settings: &[&str]) -> Compared {
    compared_within(Duration::from_millis(1), capture, played, settings)
}

fn compared_within(within: Duration, capture: &[u8], played: Option<&str>, settings: &[&str]) -> Compared {
    let conversation = conversation(capture, played).expect("an association");
    let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let comparison = Comparison { settings, within, mtu: None, bulk: false };
    compare(&conversation, &comparison).expect("the settings fit")
}

/// The settings of `[flow.sctp]` in both: a capture of the example with them, and what differs with the same at its
/// sender and its receiver.
fn own(more: &[&str], sctp: &[&str]) -> (Vec<u8>, [Compared; 2]) {
    let keys: Vec<String> = sctp.iter().map(|setting| format!("flow.f.sctp.{setting}")).collect();
    let all: Vec<&str> = more.iter().copied().chain(keys.iter().map(String::as_str)).collect();
    let capture = capture(&all);
    let other = receiver(&capture);
    let ends = [None, Some(other.as_str())].map(|played| compared(&capture, played, sctp));
    (capture, ends)
}

fn assert_same(more: &[&str], sctp: &[&str]) -> [Vec<Assumption>; 2] {
    own(more, sctp).1.map(|end| {
        assert_eq!(end.differences, [], "{more:?} {sctp:?}");
        end.assumed
    })
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

/// A sender with two slow interfaces, one of which goes down: packets that wait for one leave behind later ones of the
/// other, and the capture shows them when they leave.
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
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit").differences, []);
    // The order on each path still counts: a parameter that differs is found.
    comparison.settings.remove(1);
    let differences = compare(&conversation, &comparison).expect("the settings fit").differences;
    let first = &differences.first().expect("a difference").explained[0];
    assert_eq!((first.key.as_str(), first.recorded.as_str(), first.until), ("path_max_retrans", "2", None));
    comparison.settings.insert(1, "path_max_retrans=2".to_owned());
    comparison.settings[2] = "rto_min=400 ms".to_owned();
    let differences = compare(&conversation, &comparison).expect("the settings fit").differences;
    let first = differences.first().expect("a difference");
    assert_eq!(
        (first.subject, first.explained[0].key.as_str()),
        (Subject::Data, "rto_min"),
        "{differences:#?}"
    );
}

/// A sender whose own link loses packets: a lost packet takes no place in the queue, and the capture shows it before
/// those that waited.
#[test]
fn packets_that_the_own_link_loses_are_no_difference() {
    let text = include_str!("../../scenarios/loss.toml");
    let scenario =
        Document::parse("loss", text).and_then(|document| document.scenario("loss", &Policies::default()));
    let conversation = conversation(&written(&scenario.expect("a scenario")), None).expect("an association");
    // The queue holds packets for 120 ms; all data was there from the beginning.
    let within = Duration::from_millis(150);
    let comparison = Comparison { settings: vec![], within, mtu: None, bulk: true };
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit").differences, []);
}

/// A sender whose own queue overflows: the capture shows a packet that was dropped at once, and before it those that
/// still waited.
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
    assert_eq!(compare(&conversation, &comparison).expect("the settings fit").differences, []);
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
fn another_era_is_named_as_a_whole() {
    let capture = capture(&["era=rfc2960"]);
    let differences = against(&capture, None, &["era=rfc9260"]);
    let [only] = &differences[..] else { panic!("{differences:#?}") };
    let best = &only.explained[0];
    assert_eq!(
        (best.key.as_str(), best.ours.as_str(), best.recorded.as_str()),
        ("era", "rfc9260", "rfc2960")
    );
    // An era that explains only a part is not named, but its rules are.
    let differences = against(&capture, None, &["era=ns2", "missing_reports=3"]);
    assert!(differences.iter().any(|one| !one.explained.is_empty()), "{differences:#?}");
    let reaches =
        |one: &Difference| one.explained.iter().all(|best| best.key != "era" || best.until.is_none());
    assert!(differences.iter().all(reaches), "{differences:#?}");
}

/// The sender's own interface is slow. The capture shows when a packet leaves, not when it was sent.
#[test]
fn packets_that_wait_for_the_own_interface_are_no_difference() {
    let slow = ["link.access.rate=4 Mbit/s", "link.far.rate=100 Mbit/s"];
    let queues = ["link.access.queue=100 packets", "link.access.queue=10 packets"];
    for (queue, era) in queues.iter().flat_map(|queue| ["rfc4960", "rfc9260", "ns2"].map(|era| (queue, era)))
    {
        let era = format!("era={era}");
        let [sender, receiver] = assert_same(&[&slow[..], &[queue, &era]].concat(), &[&era]);
        assert_eq!((&sender[..], &receiver[..]), (&[Assumption::Queue][..], &[][..]), "{queue} {era}");
    }
    // What the rules decide is still a difference.
    let capture = capture(&[&slow[..], &["flow.f.sctp.missing_reports=4"]].concat());
    let found = compared(&capture, None, &["era=rfc9260"]);
    assert_eq!((found.differences.len(), found.differences[0].doubt), (1, None), "{found:#?}");
    assert_eq!(found.differences[0].explained[0].key, "missing_reports", "{found:#?}");
}

/// With other data than the capture's our endpoint is acknowledged for what it never sent, and ends the association.
#[test]
fn an_abort_after_unexplained_data_is_not_explained() {
    let text = include_str!("../../scenarios/cmt.toml");
    for size in ["3 MB", "5 MB"] {
        let mut document = Document::parse("cmt", text).expect("a document");
        document.set("--set", &format!("flow.upload.send={size}")).expect("a setting");
        let scenario = document.scenario("cmt", &Policies::default()).expect("a scenario");
        let conversation = conversation(&written(&scenario), None).expect("an association");
        let settings = ["era=rfc9260", "cmt=true"].map(str::to_owned).to_vec();
        let within = Duration::from_millis(50);
        let comparison = Comparison { settings, within, mtu: None, bulk: false };
        let differences = compare(&conversation, &comparison).expect("the settings fit").differences;
        let [only] = &differences[..] else { panic!("{differences:#?}") };
        assert_eq!((only.subject, &only.explained[..]), (Subject::Data, &[][..]));
    }
}

/// The receiver's user reads what fills a gap before the SACK leaves.
#[test]
fn a_small_receive_buffer_is_no_difference() {
    for era in ["era=rfc2960", "era=rfc4960", "era=rfc9260"] {
        assert_same(&[era], &[era, "receive_buffer=20 kB"]);
    }
}

#[test]
fn a_user_that_reads_late_is_no_rule() {
    let (_, [sender, receiver]) = own(&["flow.f.read=1 Mbit/s"], &["receive_buffer=30 kB"]);
    assert_eq!(sender.differences, []);
    let first = receiver.differences.first().expect("a smaller window");
    assert_eq!((first.doubt, &first.explained[..]), (Some(Doubt::Reading), &[][..]), "{receiver:#?}");
}

#[test]
fn messages_that_were_given_up_are_no_difference() {
    for limit in ["retransmissions = 0", "lifetime = \"100 ms\""] {
        let limit = format!("flow.f.reliability={{ {limit} }}");
        for size in ["1 kB", "4 kB"] {
            let size = format!("flow.f.message_size={size}");
            assert_same(&[&limit, &size], &["partial_reliability=true"]);
        }
    }
}

#[test]
fn extensions_are_replayed() {
    let marks = ["link.far.mark=10 kB"];
    for (more, sctp) in [(&[][..], "timestamps=true"), (&marks[..], "ecn=true"), (&[], "nr_sack=true")] {
        assert_same(more, &[sctp]);
    }
    // NR-SACKs are compared as SACKs are.
    let capture = capture(&["flow.f.sctp.nr_sack=true", "flow.f.sctp.sack_every=1"]);
    let differences = against(&capture, Some(&receiver(&capture)), &["nr_sack=true"]);
    assert_eq!(differences.first().map(|one| one.explained[0].key.as_str()), Some("sack_every"));
}

/// The peer answers a lost SHUTDOWN COMPLETE with the tag that it reflects. Both ends have the same port.
#[test]
fn a_reflected_tag_tells_who_sent_the_packet() {
    let quiet = ["link.far.loss=[{ packets = [7] }, \"0 %\"]", "flow.f.send=3 kB"];
    let (capture, ends) = own(&quiet, &[]);
    let captured = CaptureReader::new(&capture[..]).expect("a capture").filter_map(Result::ok);
    let packets = captured.flat_map(|packet| sctp_packets(&packet, &[]).expect("an SCTP packet"));
    let mut chunks = packets.flat_map(|packet| packet.packet.chunks);
    let reflected = |chunk: Chunk| matches!(chunk, Chunk::ShutdownComplete(complete) if complete.reflected);
    assert!(chunks.any(reflected), "the scenario lost another packet");
    assert_eq!(ends.map(|end| end.differences), [[], []]);
}

/// COOKIE ECHO is lost on the first path, and leaves again on the second one. The user had named both addresses of the
/// peer.
#[test]
fn the_addresses_that_the_user_named_are_found() {
    let capture = capture_of(TWO_PATHS, &["link.b0.loss=[{ packets = [2] }, \"0 %\"]"]);
    let found = compared(&capture, None, &["era=rfc2960"]);
    assert_eq!((&found.differences[..], &found.assumed[..]), (&[][..], &[Assumption::PeerAddresses][..]));
}

/// Two addresses of the sender can be in one network of usual length. A retransmission on the second path leaves from
/// the second of them, and does not wait behind packets on the first path.
#[test]
fn each_path_has_its_own_interface() {
    let slow = ["link.a0.rate=1 Mbit/s", "link.b0.loss=[{ packets = [30] }, \"0 %\"]"];
    let capture = capture_of(TWO_PATHS, &[&slow[..], &["flow.f.sctp.receive_buffer=20 kB"]].concat());
    let found = compared(&capture, None, &["era=rfc2960", "receive_buffer=20 kB"]);
    assert_eq!((&found.differences[..], &found.assumed[..]), (&[][..], &[Assumption::Queue][..]));
}

/// Fragments of IP and packets that were cut off are counted: the comparison lacks them.
#[test]
fn packets_that_cannot_be_read_are_counted() {
    let whole = capture(&[]);
    assert_eq!(conversation(&whole, None).expect("an association").unread, 0);
    let mut fragment = whole.clone();
    let at = block_of_packet(&whole, 60);
    // The IPv4 header follows the fixed part of the block; More Fragments is in its seventh byte.
    fragment[at + 28 + 6] |= 0x20;
    assert_eq!(conversation(&fragment, None).expect("an association").unread, 1);
}

#[test]
fn a_capture_without_the_handshake_is_refused() {
    let capture = capture(&[]);
    // The packets of the handshake are the first of all links: a capture that begins later has none.
    let late = skip_packets(&capture, 40);
    let error = conversation(&late, None).expect_err("no handshake");
    assert!(matches!(error, NotReplayed::NoHandshake { unread: 0 }), "{error}");
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

/// Where the block of this packet begins, the first of which is 0.
fn block_of_packet(capture: &[u8], mut packets: u32) -> usize {
    let mut at = 0;
    loop {
        let is_packet = capture[at] == 6;
        if is_packet && packets == 0 {
            return at;
        }
        packets -= u32::from(is_packet);
        at += u32::from_le_bytes(capture[at + 4..at + 8].try_into().expect("four bytes")) as usize;
    }
}

/// A capture of several places at once shows packets twice; in one of a router, the ends do not answer at once.
#[test]
fn the_place_of_a_capture_is_seen() {
    let capture = capture(&[]);
    let conversation = |place: Option<&str>| {
        let captured = CaptureReader::new(&capture[..]).expect("a capture").filter(|packet| {
            let at = packet.as_ref().ok().and_then(|packet| packet.interface.as_deref());
            place.is_none() || at == place
        });
        let unplaced = captured
            .map(|packet| packet.map(|packet| CapturedPacket { interface: None, inbound: None, ..packet }));
        Conversation::read(unplaced, &[], None).expect("an association")
    };
    assert!(conversation(None).doubled);
    for (place, millis) in [("access:s", 0), ("far:gateway", 2)] {
        let here = conversation(Some(place));
        let after = here.answers_after.expect("it answers").as_millis();
        assert_eq!((here.doubled, after), (false, millis), "{place}");
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

/// usrsctp against itself over a veth pair, one packet in eleven with user data of more than 1,000 bytes dropped: six
/// messages of 3,000 bytes, then three of 500. Made with `interop/peer.c` and tcpdump at 10.9.0.2, which sends the
/// messages.
const USRSCTP: &[u8] = include_bytes!("captures/usrsctp.pcap");

#[test]
fn usrsctp_as_sender_answers_as_rfc_9260() {
    let settings = vec!["era=rfc9260".to_owned()];
    let comparison = Comparison { settings, within: Duration::from_millis(50), mtu: None, bulk: false };
    let compared = |played| {
        let conversation = conversation(USRSCTP, Some(played)).expect("an association");
        assert_eq!((conversation.initiates, conversation.packets), (played == "10.9.0.2", 46));
        compare(&conversation, &comparison).expect("the settings fit").differences
    };
    // Every packet is the same, the fast retransmission too.
    assert_eq!(compared("10.9.0.2"), []);
    // The capture was not made at the other end, which lacks a packet that the capture has.
    let differences = compared("10.9.0.1");
    let [only] = &differences[..] else { panic!("{differences:#?}") };
    assert_eq!(
        (only.subject, only.packet, only.doubt, &only.explained[..]),
        (Subject::Acknowledgement, Some(26), Some(Doubt::Arrival), &[][..])
    );
    assert!(only.recorded.as_ref().is_some_and(|sent| sent.what.contains("gaps")), "{only:#?}");
}

/// `anabranch send` of 200 kB and its `serve`, each captured at its own end: 5 Mbit/s, 15 ms, 3 % loss. Packets that are
/// full of user data are cut to 96 bytes. The user gives data ahead, and ends the association when it has read the
/// answer.
#[test]
fn a_real_transfer_sends_what_the_replay_sends() {
    let settings = ["era=rfc9260", "fill_packets=on", "mtu_discovery=true"];
    let captures = [
        (None, &include_bytes!("captures/send.pcap")[..]),
        (Some("10.0.0.1"), &include_bytes!("captures/serve.pcap")[..]),
    ];
    // The programs did not always have a processor at once.
    let compared =
        |capture, played, settings| compared_within(Duration::from_millis(10), capture, played, settings);
    for (played, capture) in captures {
        let found = compared(capture, played, &settings);
        assert_eq!(found.differences, [], "{played:?}");
        // Without the search for the path MTU, the windows count in other units.
        let without = compared(capture, played, &settings[..2]);
        assert_eq!(without.differences.is_empty(), played.is_some(), "{without:#?}");
    }
}
