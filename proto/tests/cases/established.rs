//! With an association.

use anabranch_proto::{Event, LostReason, Message};
use bytes::Bytes;

use crate::bytes::{INIT, Init, chunk, data, heartbeat, param, sack};
use crate::victim::Victim;

const NOTHING: &str = "";

fn established() -> Victim {
    Victim::established(&INIT)
}

/// INIT of a peer with partial reliability and stream reconfiguration.
fn extended() -> Victim {
    let params = [param(0x8008, &[192, 130]), param(0xc000, &[])].concat();
    Victim::established(&Init { params, ..INIT })
}

fn alive(victim: &mut Victim) -> bool {
    victim.hear(&heartbeat(b"alive?")) == "HEARTBEAT-ACK"
}

fn lost(victim: &Victim) -> bool {
    victim.events.iter().any(|event| matches!(event, Event::Lost(_) | Event::Closed))
}

/// Who does not know the tag cannot say anything.
//= rfc9260#section-8.5
#[test]
fn a_wrong_tag() {
    let mut victim = established();
    let wrong = victim.tag ^ 0x10;
    let cases = [
        ("DATA", data(1, 0, 0, b"x")),
        ("SACK", sack(5, &[])),
        ("ABORT", chunk(6, 0, &[])),
        ("ABORT with T", chunk(6, 1, &[])),
        ("SHUTDOWN", chunk(7, 0, &[0; 4])),
        ("SHUTDOWN ACK", chunk(8, 0, &[])),
        ("SHUTDOWN COMPLETE with T", chunk(14, 1, &[])),
        ("ERROR", chunk(9, 0, &param(3, &[0; 4]))),
        ("COOKIE ACK", chunk(11, 0, &[])),
        ("HEARTBEAT", heartbeat(b"hello")),
        ("FORWARD TSN", chunk(192, 0, &[0, 0, 0, 9])),
        ("RE-CONFIG", chunk(130, 0, &param(17, &[0, 0, 0, 1, 0, 9, 0, 0]))),
    ];
    for (name, bytes) in cases {
        assert_eq!(victim.hear_all(wrong, &[bytes]), NOTHING, "{name}");
        assert!(alive(&mut victim), "{name}");
    }
    assert_eq!(victim.hear_all(INIT.tag, &[chunk(6, 0, &[])]), NOTHING, "the peer's tag without T");
    assert!(alive(&mut victim));
    assert_eq!(victim.hear_all(INIT.tag, &[chunk(6, 1, &[])]), NOTHING);
    assert!(lost(&victim), "the peer's tag with T");
}

/// Chunks under the right tag that mean nothing, or too much.
#[test]
fn from_the_peer() {
    let cases = [
        ("DATA without data", data(1, 0, 0, b""), "ABORT"),
        ("DATA", data(1, 0, 0, b"x"), "SACK"),
        ("DATA twice", [data(1, 0, 0, b"abc"), data(1, 0, 0, b"abd")].concat(), "SACK"),
        ("DATA 2^30 ahead", data(1 + (1 << 30), 0, 0, b"x"), "SACK"),
        ("DATA 2^31 ahead", data(1 + (1 << 31), 0, 0, b"x"), "SACK"),
        ("DATA on a stream that is not there", data(1, 2000, 0, b"x"), "SACK+ERROR"),
        ("I-DATA that was not agreed", chunk(64, 3, &[0; 24]), "ERROR"),
        ("INIT ACK", Init { kind: 2, ..INIT }.bytes(), NOTHING),
        ("COOKIE ACK", chunk(11, 0, &[]), NOTHING),
        ("ERROR, stale cookie", chunk(9, 0, &param(3, &[0, 0, 0, 1])), NOTHING),
        ("SHUTDOWN ACK", chunk(8, 0, &[]), NOTHING),
        ("SHUTDOWN COMPLETE", chunk(14, 0, &[]), NOTHING),
        ("HEARTBEAT ACK that nobody asked for", chunk(5, 0, &param(1, &[0; 40])), NOTHING),
        ("HEARTBEAT of 60,000 bytes", heartbeat(&[1; 60_000]), "HEARTBEAT-ACK"),
        ("ASCONF that was not agreed", chunk(193, 0, &[0, 0, 0, 1]), "ERROR"),
        ("AUTH that was not agreed", chunk(15, 0, &[0; 24]), NOTHING),
        ("FORWARD TSN that was not agreed", chunk(192, 0, &[0, 0, 0, 9]), "ERROR"),
        ("PAD", chunk(132, 0, &[0; 40]), NOTHING),
    ];
    for (name, bytes, expected) in cases {
        let mut victim = established();
        assert_eq!(victim.hear(&bytes), expected, "{name}");
        let ends = expected == "ABORT";
        assert_eq!(lost(&victim), ends, "{name}");
        assert!(ends || alive(&mut victim), "{name}");
    }
}

/// A SACK, or a SHUTDOWN, for what was never sent.
#[test]
fn never_sent() {
    for ahead in [1, 100, 1 << 30] {
        let mut victim = established();
        let cumulative = victim.tsn.wrapping_add(ahead - 1);
        assert_eq!(victim.hear(&sack(cumulative, &[])), "ABORT", "SACK, {ahead} ahead");
        assert!(victim.events.contains(&Event::Lost(LostReason::ProtocolViolation)));
        let mut victim = established();
        let cumulative = victim.tsn.wrapping_add(ahead - 1).to_be_bytes();
        assert_eq!(victim.hear(&chunk(7, 0, &cumulative)), "ABORT", "SHUTDOWN, {ahead} ahead");
    }
}

/// Every chunk type that nobody has defined: the high bits say what to do.
//= rfc9260#section-3.2
#[test]
fn unknown_chunks() {
    let known = |kind: u8| matches!(kind, 0..=15 | 64 | 128 | 130 | 132 | 144 | 192..=194);
    for kind in (0..=255).filter(|kind| !known(*kind)) {
        let mut victim = established();
        let expected = if kind & 0x40 != 0 { "ERROR" } else { NOTHING };
        let goes_on = kind & 0x80 != 0;
        let packet = [chunk(kind, 0, b"abcd"), heartbeat(b"behind it")];
        let answer = victim.hear_all(victim.tag, &packet);
        assert_eq!(answer.contains("ERROR"), !expected.is_empty(), "type {kind}");
        assert_eq!(answer.contains("HEARTBEAT-ACK"), goes_on, "type {kind}");
        assert!(alive(&mut victim), "type {kind}");
    }
}

/// FORWARD TSN and RE-CONFIG beyond all measure.
#[test]
fn extensions_beyond_measure() {
    let far = |tsn: u32| chunk(192, 0, &tsn.to_be_bytes());
    let streams: Vec<u8> = (0..20_000u16).flat_map(u16::to_be_bytes).collect();
    let many = [7u8, 0, 0, 7].repeat(3000);
    let more = |kind: u16, number: u8| chunk(130, 0, &param(kind, &[0, 0, 0, number, 255, 255, 0, 0]));
    let reset =
        |value: &[u8]| chunk(130, 0, &param(13, &[&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], value].concat()));
    let cases = [
        ("FORWARD TSN", far(9), NOTHING, false),
        ("FORWARD TSN backwards", far(0), "SACK", false),
        ("FORWARD TSN, 2^31 - 1 ahead", far(0x7fff_ffff), "ABORT", true),
        ("FORWARD TSN, 2^31 ahead", far(0x8000_0000), "SACK", false),
        ("FORWARD TSN, 3,000 streams", chunk(192, 0, &[&[0, 0, 0, 9][..], &many].concat()), NOTHING, false),
        ("RE-CONFIG, 65,535 streams more out", more(17, 1), "RE-CONFIG+SACK", false),
        ("RE-CONFIG, 65,535 streams more in", more(18, 1), "RE-CONFIG+SACK", false),
        ("RE-CONFIG, 20,000 streams begin anew", reset(&streams), "RE-CONFIG+SACK", false),
        ("RE-CONFIG without a parameter", chunk(130, 0, &[]), "ERROR", false),
    ];
    for (name, bytes, expected, ends) in cases {
        let mut victim = extended();
        assert_eq!(victim.hear(&bytes), expected, "{name}");
        assert_eq!(lost(&victim), ends, "{name}");
    }
}

/// An INIT, and a cookie, for an association that exists (§5.2).
//= rfc9260#section-5.2.4
#[test]
fn again() {
    let mut victim = established();
    let (tag, cookie) = (victim.tag, victim.cookie.clone());
    assert_eq!(
        victim.invite(&Init { params: param(5, &[10, 1, 2, 3]), tag: 6, ..INIT }),
        "ABORT",
        "a new address"
    );
    assert_eq!(victim.invite(&Init { tag: 6, tsn: 100, ..INIT }), "INIT-ACK");
    assert_ne!(victim.tag, tag);
    assert!(victim.hear_all(tag, &[heartbeat(b"alive?")]) == "HEARTBEAT-ACK", "until the cookie comes");
    let echo = victim.echo();
    assert_eq!(victim.hear(&echo), "COOKIE-ACK");
    assert!(victim.events.contains(&Event::Restart));
    assert_eq!(victim.hear_all(tag, &[chunk(10, 0, &cookie)]), NOTHING, "the first cookie is too old now");
    assert!(alive(&mut victim));
}

/// §5.2.4 case B: both ends set up, the peer's INIT had another tag before. And case C, a cookie that is late.
//= rfc9260#section-5.2.4
#[test]
fn two_cookies() {
    let mut victim = Victim::new();
    victim.invite(&INIT);
    let (tag, first) = (victim.tag, victim.echo());
    victim.invite(&INIT);
    let second = victim.echo();
    assert_eq!(victim.hear(&second), "COOKIE-ACK");
    assert_eq!(victim.hear_all(tag, &[first]), NOTHING, "our tag is another, the peer's the same: case C");
    assert!(alive(&mut victim));
    assert_eq!(victim.events.len(), 1);
}

/// An INIT ACK that somebody invents before the right one: under our tag it would have to be known.
//= rfc9260#section-5.1
#[test]
fn a_spoofed_init_ack() {
    let mut victim = Victim::new();
    let peer = anabranch_proto::wire::Address::ip([10, 0, 0, 2].into());
    let id = victim.end.connect(victim.now, 5001, &[peer]).expect("a path");
    let init = victim.drain();
    let anabranch_proto::wire::Chunk::Init(sent) = &init[0].chunks[0] else { panic!("{init:?}") };
    let ack = |tag| Init { kind: 2, tag, params: param(7, b"a cookie"), ..INIT }.bytes();
    assert_eq!(victim.hear_all(sent.tag ^ 1, &[ack(66)]), NOTHING, "another tag");
    assert_eq!(victim.hear_all(0, &[ack(66)]), NOTHING, "no tag");
    assert_eq!(victim.hear_from(9, sent.tag ^ 1, &[ack(66)]), "ABORT(T)", "another host");
    assert_eq!(victim.hear_all(sent.tag, &[Init { kind: 2, ..INIT }.bytes()]), "ABORT", "no cookie");
    let status = victim.end.status(id);
    assert!(status.is_none() || lost(&victim), "{status:?}");
}

/// Floods in one packet: each is answered in part.
#[test]
fn floods() {
    let mut victim = established();
    let answers = victim.hear_all(victim.tag, &vec![heartbeat(b"12345678"); 4000]);
    assert!(answers.matches("HEARTBEAT-ACK").count() <= 64);
    let answers = victim.hear_all(victim.tag, &vec![chunk(0xff, 0, b""); 3000]);
    assert!(answers.matches("ERROR").count() <= 64, "{answers}");
    let error = chunk(9, 0, &param(6, &[b'z'; 10]));
    assert_eq!(victim.hear_all(victim.tag, &vec![error; 3000]), NOTHING);
    assert!(alive(&mut victim));
}

/// SACKs with thousands of gap blocks over thousands of outstanding chunks, also such as take back what others said.
//= rfc9260#section-6.2.1
#[test]
fn thousands_of_gap_blocks() {
    let mut victim = established();
    let id = victim.id.expect("up");
    let mut sent = 0;
    while sent < 20_000 {
        let message = || Message { payload: Bytes::from_static(&[1; 4]), ..Message::default() };
        while victim.end.send(victim.now, id, message()).is_ok() && sent < 20_000 {
            sent += 1;
        }
        victim.drain();
        let status = victim.end.status(id).expect("it is up");
        if sent == 20_000 && status.unacknowledged > 10_000 {
            break;
        }
        let outstanding = status.unacknowledged as u32;
        let all = victim.tsn.wrapping_add(outstanding).wrapping_sub(1);
        victim.tsn = victim.tsn.wrapping_add(outstanding);
        victim.hear(&sack(all, &[]));
    }
    let before = victim.tsn.wrapping_sub(1);
    let outstanding = victim.end.status(id).expect("it is up").unacknowledged as u16;
    for shift in 0..20u16 {
        let blocks: Vec<(u16, u16)> = (0..3000)
            .map(|n| (2 + shift % 3 + 3 * n, 2 + shift % 3 + 3 * n))
            .filter(|b| b.1 <= outstanding)
            .collect();
        victim.hear(&sack(before, &blocks));
        victim.hear(&sack(before, &[]));
    }
    assert!(!lost(&victim), "{:?}", victim.events);
    assert!(victim.end.status(id).is_some());
    let all = before.wrapping_add(victim.end.status(id).expect("it is up").unacknowledged as u32);
    victim.hear(&sack(all, &[]));
    assert!(!lost(&victim), "{:?}", victim.events);
}
