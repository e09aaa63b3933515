//! Before there is an association.

use crate::bytes::{INIT, Init, chunk, data, long_param, param, raw};
use crate::victim::Victim;

const NOTHING: &str = "";

/// Out of the blue, under a tag that no association has.
//= rfc9260#section-8.4
#[test]
fn out_of_the_blue() {
    let garbage = vec![7; 100];
    let cases = [
        ("DATA", data(1, 0, 0, b"x"), "ABORT(T)"),
        ("SACK", chunk(3, 0, &[0; 12]), "ABORT(T)"),
        ("HEARTBEAT", chunk(4, 0, &param(1, b"who")), "ABORT(T)"),
        ("SHUTDOWN", chunk(7, 0, &[0; 4]), "ABORT(T)"),
        ("SHUTDOWN ACK", chunk(8, 0, &[]), "SHUTDOWN-COMPLETE(T)"),
        ("ABORT", chunk(6, 0, &[]), NOTHING),
        ("ABORT with T", chunk(6, 1, &[]), NOTHING),
        ("ABORT behind DATA", [data(1, 0, 0, b"x"), chunk(6, 0, &[])].concat(), NOTHING),
        ("COOKIE ACK", chunk(11, 0, &[]), NOTHING),
        ("SHUTDOWN COMPLETE", chunk(14, 0, &[]), NOTHING),
        ("ERROR, stale cookie", chunk(9, 0, &param(3, &[0, 0, 0, 1])), NOTHING),
        ("COOKIE ECHO of garbage", chunk(10, 0, &garbage), NOTHING),
        ("COOKIE ECHO without a cookie", chunk(10, 0, &[]), NOTHING),
        ("INIT under a tag", INIT.bytes(), NOTHING),
        ("INIT ACK", Init { kind: 2, ..INIT }.bytes(), "ABORT(T)"),
        ("no chunk", Vec::new(), NOTHING),
        ("chunk of length 0", raw(0, 3, 0, &[]), NOTHING),
        ("chunk of length 3", raw(0, 3, 3, &[]), NOTHING),
        ("chunk that reaches beyond the packet", raw(0, 3, 65_535, &[0; 20]), NOTHING),
        ("SACK whose counts lie", chunk(3, 0, &[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255]), NOTHING),
    ];
    for (name, bytes, expected) in cases {
        let mut victim = Victim::new();
        assert_eq!(victim.hear_all(0xdead, &[bytes]), expected, "{name}");
        assert!(victim.events.is_empty(), "{name}");
    }
}

/// What has no tag is an INIT alone, or nothing.
//= rfc9260#section-8.5.1
#[test]
fn without_a_tag() {
    let cases = [
        ("INIT", INIT.bytes(), "INIT-ACK"),
        ("DATA", data(1, 0, 0, b"x"), NOTHING),
        ("INIT with DATA behind it", [INIT.bytes(), data(1, 0, 0, b"x")].concat(), NOTHING),
        ("INIT of tag 0", Init { tag: 0, ..INIT }.bytes(), NOTHING),
        ("INIT without streams out", Init { streams: (0, 10), ..INIT }.bytes(), "ABORT"),
        ("INIT without streams in", Init { streams: (10, 0), ..INIT }.bytes(), "ABORT"),
        ("INIT with a window below 1,500", Init { a_rwnd: 1499, ..INIT }.bytes(), "ABORT"),
        ("INIT with a host name", Init { params: param(11, b"host.example\0"), ..INIT }.bytes(), "ABORT"),
        (
            "INIT, unknown parameter to report",
            Init { params: param(0xc123, b"q"), ..INIT }.bytes(),
            "INIT-ACK",
        ),
        (
            "INIT, unknown parameter to stop at",
            Init { params: param(0x0123, b"q"), ..INIT }.bytes(),
            "INIT-ACK",
        ),
        ("INIT, parameter of length 0", Init { params: long_param(5, 0, &[]), ..INIT }.bytes(), NOTHING),
        ("INIT, parameter of length 3", Init { params: long_param(5, 3, &[0; 4]), ..INIT }.bytes(), NOTHING),
        (
            "INIT, parameter too long",
            Init { params: long_param(5, 65_535, &[1; 4]), ..INIT }.bytes(),
            NOTHING,
        ),
        ("INIT of 4 bytes", raw(1, 0, 4, &[]), NOTHING),
    ];
    for (name, bytes, expected) in cases {
        assert_eq!(Victim::new().hear_all(0, &[bytes]), expected, "{name}");
    }
}

/// One bit of the checksum.
//= rfc9260#section-6.8
#[test]
fn a_wrong_checksum() {
    let mut victim = Victim::new();
    let bytes = victim.packet(0, &[INIT.bytes()]);
    let right = crc32c::crc32c(&bytes).to_le_bytes();
    let with = |checksum: [u8; 4]| [&bytes[..8], &checksum, &bytes[12..]].concat().into();
    assert_eq!(victim.hear_checked(with([right[0], right[1] ^ 1, right[2], right[3]])), NOTHING);
    assert_eq!(victim.hear_checked(with(right)), "INIT-ACK");
}

/// A cookie counts as it was given, under its own tag; from whoever brings it the answer goes to whom it was given to.
//= rfc9260#section-5.1.5
#[test]
fn cookies() {
    let mut victim = Victim::new();
    victim.invite(&INIT);
    let (cookie, tag) = (victim.cookie.clone(), victim.tag);
    for bit in 0..8 * cookie.len() {
        let mut changed = cookie.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(victim.hear(&chunk(10, 0, &changed)), NOTHING, "bit {bit}");
    }
    for length in 0..cookie.len() {
        assert_eq!(victim.hear(&chunk(10, 0, &cookie[..length])), NOTHING, "{length} bytes");
    }
    assert_eq!(victim.hear_all(tag ^ 1, &[victim.echo()]), NOTHING, "another tag");
    assert!(victim.events.is_empty());
    let echo = victim.echo();
    assert_eq!(victim.hear(&echo), "COOKIE-ACK");
    assert_eq!(victim.hear(&echo), "COOKIE-ACK", "again: case D");
    assert_eq!(victim.events.len(), 1, "up once");
}
