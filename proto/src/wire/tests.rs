//! Known answers, written by hand from the figures of the RFC. Their checksums come from the bit-by-bit
//! definition of the CRC, not from the crate under test. What holds for every packet is in `tests/codec.rs`.

use std::net::{IpAddr, Ipv4Addr};

use bytes::{Bytes, BytesMut};
use smallvec::{SmallVec, smallvec};

use super::checksum::{CHECKSUM, checksum};
use super::chunk::{Abort, Auth, Bare, Covered, Data, EcnEcho, GapBlock, Heartbeat, Init, Sack, Unknown};
use super::{Address, Cause, Chunk, Copies, DecodeError, Ecn, EncodeError, HEADER, Packet, Param, Ports};
use crate::{Ssn, Tsn};

const HERE: Address = Address::ip(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
const THERE: Address = Address::ip(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1)));

/// Bytes from hexadecimal digits; whatever else stands between them is layout.
fn hex(text: &str) -> Bytes {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn packet(tag: u32, chunks: impl IntoIterator<Item = Chunk>) -> Packet {
    let ports = Ports { source: 5000, destination: 2944 };
    Packet { from: HERE, to: THERE, ports, tag, ecn: Ecn::NotEct, chunks: chunks.into_iter().collect() }
}

fn encoded(packet: &Packet) -> Bytes {
    let mut out = BytesMut::new();
    packet.encode(&mut out).unwrap();
    out.freeze()
}

fn decoded(bytes: &Bytes) -> Result<Packet, DecodeError> {
    let shared = Packet::decode(HERE, THERE, Ecn::NotEct, bytes.clone());
    // Into a packet that was used for something else.
    let mut again = packet(9, [Chunk::CookieAck(Bare)]);
    let copied = again.decode_copied(HERE, THERE, Ecn::NotEct, bytes, &Copies::default());
    assert_eq!(copied.map(|()| again.clone()), shared);
    let into = again.decode_into(HERE, THERE, Ecn::NotEct, bytes, bytes);
    assert_eq!(into.map(|()| again), shared);
    shared
}

/// The packet and the bytes are each other.
#[track_caller]
fn same(packet: &Packet, text: &str) {
    let bytes = hex(text);
    assert_eq!(encoded(packet), bytes);
    assert_eq!(decoded(&bytes).as_ref(), Ok(packet));
    assert_eq!(packet.size(), bytes.len());
}

/// How the chunks behind a common header are decoded, with any checksum.
fn chunks(text: &str) -> Result<Vec<Chunk>, DecodeError> {
    let bytes = [&hex("1388 0b80 01020304 00000000")[..], &hex(text)].concat().into();
    let packet = Packet::decode_unchecked(HERE, THERE, Ecn::NotEct, bytes)?;
    Ok(packet.chunks.into_vec())
}

/// The CRC32c of a packet by the crate, with zeros in place of its checksum.
fn crc32c_of(packet: &[u8]) -> u32 {
    crc32c::crc32c(&[&packet[..8], &[0; 4], &packet[HEADER..]].concat())
}

//= rfc9260#section-6.8
//= rfc9260#appendix-A
#[test]
fn the_checksum_is_crc32c() {
    assert_eq!(crc32c::crc32c(b"123456789"), 0xe306_9283);
    let bytes: Vec<u8> = (0..6000_u32).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 21) as u8).collect();
    for length in HEADER..5000 {
        // At each place beside a multiple of eight.
        let packet = &bytes[length % 9..][..length];
        assert_eq!(checksum(packet), crc32c_of(packet), "{length} bytes");
    }
}

#[test]
fn every_bit_but_those_of_the_checksum_changes_the_checksum() {
    let mut packet = [0x5a; 1452];
    let whole = checksum(&packet);
    for bit in 0..packet.len() * 8 {
        packet[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(checksum(&packet) == whole, CHECKSUM.contains(&(bit / 8)), "bit {bit}");
        packet[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn init() {
    let init = Init {
        tag: 0xdead_beef,
        a_rwnd: 131_071,
        outbound: 10,
        inbound: 2048,
        tsn: Tsn(0xffff_fffe),
        params: vec![
            Param::Ipv4(Ipv4Addr::new(192, 0, 2, 1)),
            Param::Ipv6("2001:db8::1".parse().unwrap()),
            Param::SupportedAddressTypes(vec![5]),
            Param::Unknown { kind: 0xc0ee, value: hex("abcd") },
            Param::CookiePreservative(1000),
        ],
    };
    same(
        &packet(0, [Chunk::Init(Box::new(init))]),
        "1388 0b80  00000000  28eabaa7
         01 00 0048  deadbeef  0001ffff  000a 0800  fffffffe
         0005 0008 c0000201
         0006 0014 20010db8 00000000 00000000 00000001
         000c 0006 0005 (0000)
         c0ee 0006 abcd (0000)
         0009 0008 000003e8",
    );
}

#[test]
fn sack_with_gaps_and_duplicates() {
    // The example of the RFC, and TSN 19 that came three times.
    let sack = Sack {
        flags: 0,
        cumulative: Tsn(12),
        a_rwnd: 4660,
        gaps: smallvec![GapBlock { start: 2, end: 3 }, GapBlock { start: 5, end: 5 }],
        duplicates: smallvec![Tsn(19), Tsn(19)],
    };
    let mut packet = packet(0x0102_0304, [Chunk::Sack(sack)]);
    packet.ports = packet.ports.reversed();
    same(
        &packet,
        "0b80 1388  01020304  1e05f673
         03 00 0020  0000000c  00001234  0002 0002  0002 0003  0005 0005  00000013  00000013",
    );
}

#[test]
fn abort_with_causes() {
    let causes = vec![
        Cause::InvalidStream(7),
        Cause::MissingParameter(vec![7]),
        Cause::NoUserData(Tsn(17)),
        Cause::OutOfResource,
        Cause::ProtocolViolation(Bytes::from_static(b"!")),
        Cause::UserInitiated(Bytes::from_static(b"y")),
    ];
    same(
        &packet(0xcafe_babe, [Chunk::Abort(Abort { reflected: true, causes })]),
        "1388 0b80  cafebabe  727b3548
         06 01 0031
         0001 0008 0007 0000
         0002 000a 00000001 0007 (0000)
         0009 0008 00000011
         0004 0004
         000d 0005 21 (000000)
         000c 0005 79 (000000)",
    );
}

#[test]
fn heartbeat() {
    same(
        &packet(0x0102_0304, [Chunk::Heartbeat(Heartbeat::new(&b"hello"[..]))]),
        "1388 0b80  01020304  de55b2cc
         04 00 000d  0001 0009 68656c6c6f (000000)",
    );
}

/// What comes with the information goes back with it.
//= rfc9260#section-8.3
#[test]
fn heartbeat_with_further_parameters() {
    let bytes = hex("04 00 0016  0001 0006 6869 (0000)  c0ee 0004  0002 0006 abcd (0000)");
    let others = Some(Box::new(hex("c0ee 0004  0002 0006 abcd")));
    let heartbeat = Chunk::Heartbeat(Heartbeat { info: Bytes::from_static(b"hi"), others });
    assert_eq!((heartbeat.size(), heartbeat.to_bytes()), (22, Ok(bytes)));
    let text = "04 00 0016  0001 0006 6869 (0000)  c0ee 0004  0002 0006 abcd (0000)";
    assert_eq!(chunks(text), Ok(vec![heartbeat]));
}

/// The chunks before a partial one count, and so does a packet that is nothing but one.
//= rfc9260#section-6.10
#[test]
fn a_partial_chunk_is_dropped() {
    assert_eq!(chunks("07 00 0008"), Ok(vec![]));
    for rest in ["00 03 0014 00000001", "00", "00 03", "00 03 00"] {
        assert_eq!(chunks(&format!("0b 00 0004  {rest}")), Ok(vec![Chunk::CookieAck(Bare)]), "{rest}");
    }
}

fn data(payload: &'static [u8]) -> Data {
    Data {
        tsn: Tsn(0xffff_ffff),
        stream: 3,
        ssn: Ssn(9),
        ppid: 51,
        begin: true,
        end: true,
        unordered: false,
        immediate: true,
        payload: Bytes::from_static(payload),
    }
}

#[test]
fn data_bundled_with_a_sack() {
    let sack =
        Sack { flags: 0, cumulative: Tsn(0), a_rwnd: 0, gaps: SmallVec::new(), duplicates: SmallVec::new() };
    same(
        &packet(0x0102_0304, [Chunk::Data(data(b"abc")), Chunk::Sack(sack)]),
        "1388 0b80  01020304  19848c01
         00 0b 0013  ffffffff  0003 0009  00000033  616263 (00)
         03 00 0010  00000000  00000000  0000 0000",
    );
}

#[test]
fn data_without_user_data_is_seen_to_be_answered() {
    let empty = chunks("00 0b 0010  ffffffff  0003 0009  00000033").unwrap();
    assert_eq!(empty, [Chunk::Data(data(b""))]);
}

#[test]
fn a_payload_is_shared_with_the_bytes_that_came() {
    let bytes = encoded(&packet(1, [Chunk::Data(data(&[7; 100]))]));
    let packet = decoded(&bytes).unwrap();
    let Chunk::Data(data) = &packet.chunks[0] else { unreachable!() };
    assert_eq!(data.payload.as_ptr(), bytes[28..].as_ptr());
}

#[test]
fn reserved_bits_and_padding_are_not_looked_at() {
    let plain = chunks("00 03 0011  00000001 0002 0003 00000004 41 000000   07 00 0008 00000005");
    let noisy = chunks("00 f3 0011  00000001 0002 0003 00000004 41 abcdef   07 ff 0008 00000005");
    assert_eq!(plain, noisy);
    assert_eq!(chunks("06 fe 000c  0001 0008 0007 abcd"), chunks("06 00 000c  0001 0008 0007 0000"));
}

#[test]
fn padding_inside_the_length_is_accepted_where_a_list_ends() {
    let without = chunks("06 00 0009  000c 0005 79 000000");
    assert_eq!(chunks("06 00 000c  000c 0005 79 000000"), without);
    assert_eq!(chunks("04 00 000c  0001 0005 79 000000"), chunks("04 00 0009  0001 0005 79 000000"));
}

#[test]
fn unknown_chunks_are_kept_as_they_came() {
    let unknown = Unknown { number: 0xc7, flags: 0x55, value: hex("0102") };
    assert_eq!(chunks("c7 55 0006 0102 0000"), Ok(vec![Chunk::Unknown(Box::new(unknown.clone()))]));
    assert_eq!(Chunk::Unknown(Box::new(unknown)).to_bytes(), Ok(hex("c7 55 0006 0102 0000")));
}

/// Whoever does not use an extension need not understand its chunks.
//= rfc9260#section-3.2
#[test]
fn a_chunk_of_an_extension_that_cannot_be_read_is_unknown() {
    for number in [12, 13, 15, 16, 64, 128, 130, 144, 192, 193, 194] {
        let unknown = Chunk::Unknown(Box::new(Unknown { number, flags: 7, value: hex("0102") }));
        let bytes = unknown.to_bytes().unwrap();
        assert_eq!(bytes[..], [number, 7, 0, 6, 1, 2, 0, 0]);
        let with_data = [unknown, Chunk::Data(data(b"abc"))];
        assert_eq!(decoded(&encoded(&packet(1, with_data.clone()))), Ok(packet(1, with_data)));
    }
}

//= rfc9260#section-3.2.1
#[test]
fn a_parameter_of_an_extension_that_cannot_be_read_is_unknown() {
    for kind in [0x8000, 0x8001, 0x8004, 0xc000] {
        let params = vec![Param::Unknown { kind, value: hex("01") }, Param::Ipv4(Ipv4Addr::LOCALHOST)];
        assert_eq!(Param::decode_list(&Param::encode_list(&params).unwrap()), Ok(params));
    }
}

#[test]
fn parameters_of_a_report_can_be_read_again() {
    let params =
        vec![Param::Unknown { kind: 0xc0ee, value: hex("ab") }, Param::Ipv4(Ipv4Addr::new(192, 0, 2, 1))];
    let bytes = Param::encode_list(&params).unwrap();
    assert_eq!(bytes, hex("c0ee 0005 ab 000000  0005 0008 c0000201"));
    assert_eq!(Param::decode_list(&bytes), Ok(params));
    assert_eq!(Param::decode_list(&hex("0005 0006 c000")), Err(DecodeError::Content { at: 0 }));
}

#[test]
fn malformed_packets_are_refused_with_the_place() {
    use DecodeError::{Content, Length, Remainder};
    let cases = [
        ("a length below its own header", "07 00 0003", Length { at: 12, length: 3 }),
        ("DATA without all of its header", "00 03 000c 00000001 0002 0003", Content { at: 12 }),
        (
            "a SACK with fewer blocks than counted",
            "03 00 0010 00000001 00000000 0001 0000",
            Content { at: 12 },
        ),
        ("a SACK with more", "03 00 0014 00000001 00000000 0000 0000 0001 0001", Content { at: 12 }),
        ("a COOKIE ACK with a value", "0b 00 0008 00000000", Content { at: 12 }),
        ("a SHUTDOWN without one", "07 00 0004", Content { at: 12 }),
        ("an INIT without all of its header", "01 00 0008 00000001", Content { at: 12 }),
        ("a HEARTBEAT without info", "04 00 0004", Remainder { at: 16 }),
        ("one with another parameter", "04 00 0008 0002 0004", Content { at: 16 }),
        (
            "one with info and half a parameter",
            "04 00 000c 0001 0004 0002 0008",
            Length { at: 20, length: 8 },
        ),
        ("one with too little for another", "04 00 000a 0001 0004 0002 0000", Remainder { at: 20 }),
        ("a cause that leaves its chunk", "06 00 0008 0004 0008", Length { at: 16, length: 8 }),
        ("a cause that ends before its header does", "06 00 0008 0004 0000", Length { at: 16, length: 0 }),
        ("too little for another cause", "06 00 000a 0004 0004 0004 0000", Remainder { at: 20 }),
        ("a cause with a wrong count", "06 00 000e 0002 000a 00000002 0007 0000", Content { at: 16 }),
        ("a cause with half a number", "06 00 000d 0002 0009 00000000 07 000000", Content { at: 16 }),
        ("a cause that should be empty", "06 00 000c 0004 0008 00000000", Content { at: 16 }),
    ];
    for (what, text, error) in cases {
        assert_eq!(chunks(text), Err(error), "{what}");
    }
}

#[test]
fn short_packets_are_refused() {
    assert_eq!(decoded(&hex("1388 0b80 01")), Err(DecodeError::TooShort { size: 5 }));
}

/// Hundreds of chunks that nobody understands cost little; what stands behind them counts.
//= rfc9260#section-3.2
#[test]
fn few_of_many_unknown_chunks_are_kept() {
    let unknown = || Chunk::Unknown(Box::new(Unknown { number: 0xfe, flags: 0, value: Bytes::new() }));
    let chunks = (0..300).map(|_| unknown()).chain([Chunk::Data(data(b"abc"))]);
    let mut bytes = BytesMut::new();
    Packet { chunks: chunks.collect(), ..packet(1, [unknown()]) }
        .encode(&mut bytes)
        .expect("it can be encoded");
    let kept = decoded(&bytes.freeze()).expect("a packet").chunks;
    assert_eq!((kept.len(), kept.last()), (33, Some(&Chunk::Data(data(b"abc")))));
}

/// A sender has to pad its last chunk too, but nothing is lost if it does not.
//= rfc9260#section-3.2
#[test]
fn the_last_padding_may_be_missing() {
    let whole = packet(1, [Chunk::Data(data(b"abc"))]);
    let bytes = encoded(&whole);
    let decode = |bytes| Packet::decode_unchecked(HERE, THERE, Ecn::NotEct, bytes);
    assert_eq!(decode(bytes.slice(..31)), Ok(whole));
    assert_eq!(
        decode(bytes.slice(..30)).map(|packet| packet.chunks.len()),
        Ok(0),
        "a chunk that is cut does not count"
    );
}

#[test]
fn another_checksum_is_refused() {
    let mut bytes = encoded(&packet(1, [Chunk::Data(data(b"abc"))])).to_vec();
    let computed = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    bytes[8] ^= 1;
    let refused = DecodeError::Checksum { found: computed ^ 1, computed };
    assert_eq!(decoded(&Bytes::from(bytes)), Err(refused));
}

#[test]
fn what_would_change_its_meaning_is_not_encoded() {
    let unknown = |number| Chunk::Unknown(Box::new(Unknown { number, flags: 0, value: Bytes::new() }));
    let abort = |cause| Chunk::Abort(Abort { reflected: false, causes: vec![cause] });
    let known = |number| EncodeError::Known { number };
    let cases = [
        (unknown(14), known(14)),
        (unknown(132), known(132)),
        (abort(Cause::Unknown { code: 6, value: Bytes::new() }), known(6)),
        (abort(Cause::Unknown { code: 4, value: Bytes::new() }), known(4)),
        (abort(Cause::UserInitiated(vec![0; 65_528].into())), EncodeError::TooLong { size: 65_536 }),
        (abort(Cause::MissingParameter(vec![0; 40_000])), EncodeError::TooLong { size: 80_012 }),
        (Chunk::Heartbeat(Heartbeat::new(vec![0; 65_528])), EncodeError::TooLong { size: 65_536 }),
    ];
    for (chunk, error) in cases {
        let mut out = BytesMut::from(&b"before"[..]);
        let packet = packet(1, [Chunk::Data(data(b"abc")), chunk]);
        assert_eq!(packet.encode(&mut out), Err(error));
        assert_eq!(out, &b"before"[..]);
    }
}

#[test]
fn the_longest_chunk_fits() {
    let mut longest = data(b"");
    longest.payload = vec![1; 65_519].into();
    let packet = packet(1, [Chunk::Data(longest)]);
    assert_eq!(decoded(&encoded(&packet)), Ok(packet));
}

/// Payloads that were decoded before keep their bytes, whatever is decoded after them.
#[test]
fn copies_of_payloads_lie_side_by_side() {
    let payload = |n: u8| Bytes::from(vec![n; 700 * usize::from(n)]);
    let (copies, mut kept) = (Copies::default(), Vec::new());
    for n in 1..20 {
        let bytes = encoded(&packet(1, [Chunk::Data(Data { payload: payload(n), ..data(b"") })]));
        let mut decoded = Packet::default();
        decoded.decode_copied(HERE, THERE, Ecn::NotEct, &bytes, &copies).unwrap();
        kept.push(decoded);
    }
    for (n, packet) in (1..).zip(kept) {
        assert!(matches!(&packet.chunks[..], [Chunk::Data(data)] if data.payload == payload(n)));
    }
}

/// A packet full of AUTH chunks would otherwise take the square of its length.
#[test]
fn only_the_first_auth_chunk_keeps_what_it_covers() {
    let auth = |key| {
        let hmac = Bytes::from_static(&[7; 20]);
        Chunk::Auth(Box::new(Auth { key, algorithm: 1, hmac, covered: Covered(None) }))
    };
    let bytes = encoded(&packet(5, [Chunk::CookieAck(Bare), auth(1), Chunk::CookieAck(Bare), auth(2)]));
    let found = decoded(&bytes).expect("a packet").chunks;
    let covered = found
        .iter()
        .filter_map(|chunk| if let Chunk::Auth(auth) = chunk { Some(&auth.covered.0) } else { None });
    let rest = bytes.slice(HEADER + 4 + 28..);
    assert_eq!(covered.collect::<Vec<_>>(), [&Some(rest), &None]);
}

/// FreeBSD's stack, and usrsctp, append the number of marked packets to an ECNE.
#[test]
fn an_ecne_may_be_longer() {
    let cookie_ack = encoded(&packet(5, [Chunk::CookieAck(Bare)]));
    let mut bytes = BytesMut::from(&cookie_ack[..]);
    bytes.extend_from_slice(&hex("0c00 000c 00000007 00000003"));
    let sum = {
        bytes[8..12].fill(0);
        checksum(&bytes)
    };
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    let found = decoded(&bytes.freeze()).expect("a packet").chunks;
    assert!(matches!(found[1], Chunk::Ecne(EcnEcho { tsn: Tsn(7) })), "{found:?}");
}
