//! Every chunk, parameter and error cause as the figures of RFC 9260 §3, and of the extensions, lay it out, byte
//! for byte.

use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::chunk::{
    Abort, AddStreams, AddressRequest, Asconf, AsconfAck, AsconfParam, Auth, Bare, CookieEcho, Data, EcnEcho,
    Failed, ForwardTsn, FragmentPosition, GapBlock, Heartbeat, IData, IForwardTsn, IncomingReset, Init,
    NrSack, OperationError, OutgoingReset, Pad, ReConfig, ReConfigParam, Response, Sack, Shutdown,
    ShutdownComplete, SkippedMessage,
};
use anabranch_proto::wire::{Address, Cause, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Mid, Ssn, Tsn};
use bytes::{Bytes, BytesMut};
use smallvec::smallvec;

const PLACE: Address = Address::ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

/// Bytes from hexadecimal digits; whatever else stands between them is layout.
fn hex(text: &str) -> Bytes {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// The chunk and the bytes, padding included, are each other.
#[track_caller]
fn same(chunk: Chunk, text: &str) {
    let ports = Ports { source: 0x1388, destination: 0x0b80 };
    let chunks = smallvec![chunk];
    let packet = Packet { from: PLACE, to: PLACE, ports, tag: 0x0102_0304, ecn: Ecn::NotEct, chunks };
    let mut out = BytesMut::new();
    packet.encode(&mut out).expect("it can be encoded");
    assert_eq!(out[..8], hex("1388 0b80 01020304")[..]);
    assert_eq!(out[12..], hex(text)[..], "{packet:?}");
    assert_eq!(Packet::decode(PLACE, PLACE, Ecn::NotEct, out.freeze()), Ok(packet));
}

#[track_caller]
fn same_param(param: Param, text: &str) {
    let bytes = Param::encode_list(std::slice::from_ref(&param)).expect("it can be encoded");
    assert_eq!(bytes, hex(text));
    assert_eq!(Param::decode_list(&bytes), Ok(vec![param]));
}

/// As the only cause of an ERROR.
#[track_caller]
fn same_cause(cause: Cause, text: &str) {
    let bytes = hex(text);
    let length = 4 + usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    let chunk = Chunk::Error(OperationError { causes: vec![cause] });
    same(chunk, &format!("09 00 {length:04x} {text}"));
}

fn init(params: Vec<Param>) -> Box<Init> {
    Box::new(Init { tag: 0xa0a1_a2a3, a_rwnd: 0x1_0000, outbound: 2, inbound: 3, tsn: Tsn(9), params })
}

#[test]
fn data_and_sack() {
    let data = |begin, end, unordered, immediate, payload| {
        let (tsn, stream, ssn, ppid) = (Tsn(0x1122_3344), 5, Ssn(6), 7);
        Chunk::Data(Data { tsn, stream, ssn, ppid, begin, end, unordered, immediate, payload })
    };
    //= rfc9260#section-3.3.1
    // Flags: I 8, U 4, B 2, E 1. The length counts no padding.
    //= rfc9260#section-3.2
    let payload = || Bytes::from_static(b"abc");
    same(data(true, true, false, false, payload()), "00 03 0013 11223344 0005 0006 00000007 616263 00");
    same(data(true, false, true, false, payload()), "00 06 0013 11223344 0005 0006 00000007 616263 00");
    same(data(false, true, false, true, payload()), "00 09 0013 11223344 0005 0006 00000007 616263 00");
    //= rfc9260#section-3.3.4
    let gaps = smallvec![GapBlock { start: 2, end: 3 }];
    let sack = Sack { flags: 0, cumulative: Tsn(12), a_rwnd: 0x1234, gaps, duplicates: smallvec![Tsn(11)] };
    same(Chunk::Sack(sack), "03 00 0018 0000000c 00001234 0001 0001 0002 0003 0000000b");
    // The draft's NR-SACK: three counts, two reserved bytes, gaps, gaps that are kept, duplicates.
    let (gaps, kept) = (smallvec![GapBlock { start: 2, end: 3 }], smallvec![GapBlock { start: 5, end: 6 }]);
    let duplicates = smallvec![Tsn(11)];
    let sack = NrSack { flags: 0x80, cumulative: Tsn(12), a_rwnd: 0x1234, gaps, kept, duplicates };
    same(
        Chunk::NrSack(Box::new(sack)),
        "10 80 0020 0000000c 00001234 0001 0001 0001 0000 0002 0003 0005 0006 0000000b",
    );
}

#[test]
fn setting_up() {
    //= rfc9260#section-3.3.2
    same(Chunk::Init(init(vec![])), "01 00 0014 a0a1a2a3 00010000 0002 0003 00000009");
    //= rfc9260#section-3.3.3
    // The last parameter's padding is the chunk's: not in its length (0x1a), but there.
    //= rfc9260#section-3.2.1
    let cookie = Param::Cookie(Bytes::from_static(b"ab"));
    same(
        Chunk::InitAck(init(vec![cookie])),
        "02 00 001a a0a1a2a3 00010000 0002 0003 00000009 0007 0006 6162 0000",
    );
    //= rfc9260#section-3.3.11
    same(
        Chunk::CookieEcho(CookieEcho { cookie: Bytes::from_static(b"abcde") }),
        "0a 00 0009 6162636465 000000",
    );
    //= rfc9260#section-3.3.12
    same(Chunk::CookieAck(Bare), "0b 00 0004");
}

#[test]
fn watching_paths() {
    let heartbeat = || Heartbeat::new(Bytes::from_static(b"hi"));
    //= rfc9260#section-3.3.5
    same(Chunk::Heartbeat(heartbeat()), "04 00 000a 0001 0006 6869 0000");
    //= rfc9260#section-3.3.6
    same(Chunk::HeartbeatAck(heartbeat()), "05 00 000a 0001 0006 6869 0000");
}

#[test]
fn ending() {
    //= rfc9260#section-3.3.7
    same(Chunk::Abort(Abort { reflected: true, causes: vec![] }), "06 01 0004");
    same(
        Chunk::Abort(Abort { reflected: false, causes: vec![Cause::OutOfResource] }),
        "06 00 0008 0004 0004",
    );
    //= rfc9260#section-3.3.8
    same(Chunk::Shutdown(Shutdown { cumulative: Tsn(0x0102_0304) }), "07 00 0008 01020304");
    //= rfc9260#section-3.3.9
    same(Chunk::ShutdownAck(Bare), "08 00 0004");
    //= rfc9260#section-3.3.13
    same(Chunk::ShutdownComplete(ShutdownComplete { reflected: true }), "0e 01 0004");
    same(Chunk::ShutdownComplete(ShutdownComplete { reflected: false }), "0e 00 0004");
}

#[test]
fn parameters() {
    //= rfc9260#section-3.3.2.1.1
    same_param(Param::Ipv4([192, 0, 2, 1].into()), "0005 0008 c0000201");
    //= rfc9260#section-3.3.2.1.2
    let v6 = "2001:db8::1".parse().expect("an address");
    same_param(Param::Ipv6(v6), "0006 0014 20010db8 00000000 00000000 00000001");
    //= rfc9260#section-3.3.2.1.3
    same_param(Param::CookiePreservative(1000), "0009 0008 000003e8");
    //= rfc9260#section-3.3.2.1.4
    same_param(Param::HostName(Bytes::from_static(b"a.b\0")), "000b 0008 612e6200");
    //= rfc9260#section-3.3.2.1.5
    same_param(Param::SupportedAddressTypes(vec![5, 6]), "000c 0008 0005 0006");
    //= rfc9260#section-3.3.3.1.1
    same_param(Param::Cookie(Bytes::from_static(b"abcd")), "0007 0008 61626364");
    //= rfc9260#section-3.3.3.1.2
    same_param(Param::Unrecognized(hex("c000 0004")), "0008 0008 c000 0004");
}

//= rfc9260#section-3.3.10
#[test]
fn causes() {
    //= rfc9260#section-3.3.10.1
    same_cause(Cause::InvalidStream(7), "0001 0008 0007 0000");
    //= rfc9260#section-3.3.10.2
    same_cause(Cause::MissingParameter(vec![7, 5]), "0002 000c 00000002 0007 0005");
    //= rfc9260#section-3.3.10.3
    same_cause(Cause::StaleCookie(256), "0003 0008 00000100");
    //= rfc9260#section-3.3.10.4
    same_cause(Cause::OutOfResource, "0004 0004");
    //= rfc9260#section-3.3.10.5
    same_cause(Cause::UnresolvableAddress(hex("0005 0008 7f000001")), "0005 000c 0005 0008 7f000001");
    //= rfc9260#section-3.3.10.6
    same_cause(Cause::UnrecognizedChunk(hex("c0 00 0004")), "0006 0008 c0 00 0004");
    //= rfc9260#section-3.3.10.7
    same_cause(Cause::InvalidMandatoryParameter, "0007 0004");
    //= rfc9260#section-3.3.10.8
    same_cause(Cause::UnrecognizedParameters(hex("c000 0004")), "0008 0008 c000 0004");
    //= rfc9260#section-3.3.10.9
    same_cause(Cause::NoUserData(Tsn(5)), "0009 0008 00000005");
    //= rfc9260#section-3.3.10.10
    same_cause(Cause::CookieWhileShutdown, "000a 0004");
    //= rfc9260#section-3.3.10.11
    let added = hex("0005 0008 0a000909");
    same_cause(Cause::RestartWithNewAddresses(added), "000b 000c 0005 0008 0a000909");
    //= rfc9260#section-3.3.10.12
    same_cause(Cause::UserInitiated(Bytes::from_static(b"bye!")), "000c 0008 62796521");
    //= rfc9260#section-3.3.10.13
    same_cause(Cause::ProtocolViolation(Bytes::from_static(b"why?")), "000d 0008 7768793f");
}

//= rfc4895#section-5.1
//= rfc4820#section-3
//= rfc4960#appendix-A
#[test]
fn authentication_padding_and_congestion() {
    let hmac = Bytes::from_static(b"hash");
    let auth = Auth { key: 2, algorithm: 3, hmac, covered: Default::default() };
    same(Chunk::Auth(Box::new(auth)), "0f 00 000c 0002 0003 68617368");
    same(Chunk::Pad(Pad { bytes: 3 }), "84 00 0007 000000 00");
    same(Chunk::Ecne(EcnEcho { tsn: Tsn(7) }), "0c 00 0008 00000007");
    same(Chunk::Cwr(EcnEcho { tsn: Tsn(7) }), "0d 00 0008 00000007");
}

/// The bytes behind AUTH are kept as they came, padding included: the HMAC is over them.
//= rfc4895#section-6.2
#[test]
fn what_auth_covers() {
    let bytes = hex("1388 0b80 01020304 00000000 0f00 0008 0000 0001 0b00 0004 0a00 0005 61ffffff");
    let packet = Packet::decode_unchecked(PLACE, PLACE, Ecn::NotEct, bytes.clone()).expect("a packet");
    let Chunk::Auth(auth) = &packet.chunks[0] else { panic!("{packet:?}") };
    assert_eq!(auth.covered.0, Some(bytes.slice(20..)));
}

//= rfc3758#section-3.2
//= rfc8260#section-2.1
//= rfc8260#section-2.3.1
#[test]
fn giving_up_and_interleaving() {
    let forward = ForwardTsn { cumulative: Tsn(9), skipped: vec![(1, Ssn(2)), (3, Ssn(4))] };
    same(Chunk::ForwardTsn(forward), "c0 00 0010 00000009 0001 0002 0003 0004");
    let skipped = vec![SkippedMessage { stream: 1, unordered: true, mid: Mid(2) }];
    let forward = IForwardTsn { cumulative: Tsn(9), skipped };
    same(Chunk::IForwardTsn(forward), "c2 00 0010 00000009 0001 0001 00000002");
    let data = |place, end| {
        let payload = Bytes::from_static(b"abc");
        let (tsn, mid) = (Tsn(0x1122_3344), Mid(6));
        Chunk::IData(IData { tsn, stream: 5, mid, place, end, unordered: false, immediate: true, payload })
    };
    let first = data(FragmentPosition::First { ppid: 7 }, false);
    same(first, "40 0a 0017 11223344 0005 0000 00000006 00000007 616263 00");
    let last = data(FragmentPosition::Later { fsn: 1 }, true);
    same(last, "40 09 0017 11223344 0005 0000 00000006 00000001 616263 00");
}

//= rfc6525#section-3.1
#[test]
fn streams() {
    let same = |param, text: &str| same(Chunk::ReConfig(ReConfig { params: vec![param] }), text);
    //= rfc6525#section-4.1
    let reset = OutgoingReset { request: 1, response: 2, last_tsn: Tsn(3), streams: vec![4] };
    same(ReConfigParam::OutgoingReset(reset), "82 00 0016 000d 0012 00000001 00000002 00000003 0004 0000");
    //= rfc6525#section-4.2
    let reset = IncomingReset { request: 1, streams: vec![] };
    same(ReConfigParam::IncomingReset(reset), "82 00 000c 000e 0008 00000001");
    //= rfc6525#section-4.3
    same(ReConfigParam::TsnReset(5), "82 00 000c 000f 0008 00000005");
    //= rfc6525#section-4.4
    let response = Response { request: 1, result: Response::DENIED, next: None };
    same(ReConfigParam::Response(response), "82 00 0010 0010 000c 00000001 00000002");
    let next = Some((Tsn(8), Tsn(9)));
    let response = Response { request: 1, result: Response::PERFORMED, next };
    same(ReConfigParam::Response(response), "82 00 0018 0010 0014 00000001 00000001 00000008 00000009");
    //= rfc6525#section-4.5
    same(
        ReConfigParam::AddOutgoing(AddStreams { request: 1, count: 2 }),
        "82 00 0010 0011 000c 00000001 0002 0000",
    );
    //= rfc6525#section-4.6
    same(
        ReConfigParam::AddIncoming(AddStreams { request: 1, count: 2 }),
        "82 00 0010 0012 000c 00000001 0002 0000",
    );
}

/// The parameters as the examples of the section have them, in an ASCONF that names 192.0.2.9.
//= rfc5061#section-4.1.1
//= rfc5061#section-4.1.2
#[test]
fn addresses() {
    let request = |correlation| AddressRequest { correlation, address: [192, 0, 2, 1].into() };
    let asconf = |param| {
        let (sequence, address) = (1, [192, 0, 2, 9].into());
        Chunk::Asconf(Box::new(Asconf { sequence, address, requests: vec![param] }))
    };
    let head = "c1 00 0020 00000001 0005 0008 c0000209";
    //= rfc5061#section-4.2.1
    let add = asconf(AsconfParam::Add(request(0x0102_3474)));
    same(add, &format!("{head} c001 0010 01023474 0005 0008 c0000201"));
    //= rfc5061#section-4.2.2
    let delete = asconf(AsconfParam::Delete(request(0x0102_3476)));
    same(delete, &format!("{head} c002 0010 01023476 0005 0008 c0000201"));
    //= rfc5061#section-4.2.4
    let primary = asconf(AsconfParam::SetPrimary(request(0x0102_3479)));
    same(primary, &format!("{head} c004 0010 01023479 0005 0008 c0000201"));
    let ack = |param| Chunk::AsconfAck(Box::new(AsconfAck { sequence: 1, responses: vec![param] }));
    //= rfc5061#section-4.2.5
    same(ack(AsconfParam::Succeeded(7)), "80 00 0010 00000001 c005 0008 00000007");
    //= rfc5061#section-4.2.3
    //= rfc5061#section-4.3.1
    let refused = AsconfParam::Delete(request(0x0102_3476)).to_bytes().expect("short");
    let failed = Failed { correlation: 0x0102_3476, causes: vec![Cause::DeletesLastAddress(refused)] };
    same(
        ack(AsconfParam::Failed(failed)),
        "80 00 0024 00000001 c003 001c 01023476 00a0 0014 c002 0010 01023476 0005 0008 c0000201",
    );
}

#[test]
fn parameters_and_causes_of_extensions() {
    //= rfc4960#appendix-A
    same_param(Param::EcnCapable, "8000 0004");
    //= rfc9653#section-4
    same_param(Param::ZeroChecksum(1), "8001 0008 00000001");
    //= rfc4895#section-3.1
    same_param(Param::Random(Bytes::from_static(b"dice")), "8002 0008 64696365");
    //= rfc4895#section-3.2
    same_param(Param::ChunkList(Bytes::from_static(&[0xc1, 0x80])), "8003 0006 c180");
    //= rfc4895#section-3.3
    same_param(Param::HmacAlgorithms(vec![3, 1]), "8004 0008 0003 0001");
    //= rfc4820#section-4
    same_param(Param::Padding(Bytes::from_static(&[0])), "8005 0005 00");
    //= rfc5061#section-4.2.7
    same_param(Param::SupportedExtensions(Bytes::from_static(&[0x82])), "8008 0005 82");
    //= rfc3758#section-3.1
    same_param(Param::ForwardTsnSupported, "c000 0004");
    let refused = || hex("c002 0004");
    //= rfc5061#section-4.3.2
    same_cause(Cause::ResourceShortage(refused()), "00a1 0008 c002 0004");
    //= rfc5061#section-4.3.3
    same_cause(Cause::DeletesSourceAddress(refused()), "00a2 0008 c002 0004");
    //= rfc5061#section-4.3.4
    same_cause(Cause::IllegalAsconfAck, "00a3 0004");
    //= rfc5061#section-4.3.5
    same_cause(Cause::NotAuthorized(refused()), "00a4 0008 c002 0004");
    //= rfc4895#section-4.1
    same_cause(Cause::UnsupportedHmac(2), "0105 0006 0002 0000");
}
