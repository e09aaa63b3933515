//! What is not understood, what a peer may not ask, and what a user may ask besides data.

use anabranch_proto::rules::ImmediateSack;
use anabranch_proto::wire::chunk::{Abort, Bare, CookieEcho, Heartbeat, Init, Unknown};
use anabranch_proto::wire::{Cause, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Config, Endpoint, Incoming, Message, Output, PathId, Policies, Reason, Time, Tsn};
use bytes::Bytes;

use crate::support::bench::{Bench, chunk, era, ms};
use crate::support::{PORT, address, at};

fn unknown(number: u8) -> Chunk {
    Chunk::Unknown(Box::new(Unknown { number, flags: 3, value: Bytes::from_static(b"what?") }))
}

/// The two high bits of an unknown chunk type: 00 ends the packet, 01 does and is reported, 10 is passed over,
/// 11 is and is reported. DATA behind it is acknowledged only where the packet went on.
//= rfc9260#section-3.2
#[test]
fn unknown_chunks() {
    for (number, goes_on, reported) in
        [(0x3f, false, false), (0x7f, false, true), (0xbf, true, false), (0xff, true, true)]
    {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.hear_packet(0, bench.tag, [unknown(number), chunk(1, 10)]);
        bench.pass(ms(200));
        assert_eq!(bench.sacks().len(), usize::from(goes_on), "{number:#x}");
        let errors = bench.sent.iter().flat_map(|(_, packet, _)| &packet.chunks).filter_map(|c| match c {
            Chunk::Error(error) => Some(&error.causes),
            _ => None,
        });
        let expected = Cause::UnrecognizedChunk(unknown(number).to_bytes().expect("short"));
        let errors: Vec<_> = errors.flatten().collect();
        assert_eq!(errors, if reported { vec![&expected] } else { vec![] }, "{number:#x}");
    }
}

/// What an endpoint answers to an INIT with these parameters, and whether IP may fragment it.
fn answered(params: Vec<Param>) -> (Chunk, bool) {
    let config = at(0, 1, &era("rfc9260"));
    let mut end = Endpoint::new(config, Policies::default(), [0; 32]).expect("usable");
    let init = Init { tag: 7, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params };
    let packet = Packet {
        from: address(0, 1),
        to: address(0, 0),
        ports: Ports { source: 9, destination: PORT },
        tag: 0,
        ecn: Ecn::NotEct,
        chunks: [Chunk::Init(Box::new(init))].into_iter().collect(),
    };
    end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
    match end.poll(Time::ZERO) {
        Output::Transmit(packet, reason) => (packet.chunks[0].clone(), reason.oversize),
        other => panic!("no answer but {other:?}"),
    }
}

fn init_with(params: Vec<Param>) -> Chunk {
    answered(params).0
}

fn param(kind: u16) -> Param {
    Param::Unknown { kind, value: Bytes::from_static(b"?") }
}

/// A report holds as much of an unknown chunk as fits a packet of 1,500 bytes.
//= rfc9260#section-6.10
#[test]
fn an_unknown_chunk_that_fills_a_packet() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let value = Bytes::from(vec![1; 1464]);
    bench.hear(Chunk::Unknown(Box::new(Unknown { number: 0xf0, flags: 0, value })));
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    let Chunk::Error(error) = &packet.chunks[0] else { panic!("{packet:?}") };
    let Cause::UnrecognizedChunk(bytes) = &error.causes[0] else { panic!("{error:?}") };
    assert_eq!((packet.size(), &bytes[..4]), (1480, &[0xf0, 0, 5, 188][..]));
}

/// The reports and answers to one packet leave in one packet; what has no room in it is left out. The next packet is
/// answered again.
//= rfc9260#section-12.4
#[test]
fn one_packet_answers_a_packet() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let strange = Unknown { number: 200, flags: 0, value: Bytes::from_static(&[0; 700]) };
    let strange = || Chunk::Unknown(Box::new(strange.clone()));
    let heartbeat = Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"info")));
    // Reports of 2 × 712 bytes, and 44 are left.
    for (more, answers) in [(strange(), 2), (heartbeat, 3)] {
        for _ in 0..2 {
            bench.sent.clear();
            bench.hear_packet(0, bench.tag, [strange(), strange(), more.clone()]);
            let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
            assert_eq!(packet.chunks.len(), answers);
        }
    }
}

/// Unknown parameters by their two high bits: what is reported comes back in the INIT ACK; 00 and 01 hide what
/// follows them.
//= rfc9260#section-3.2.1
#[test]
fn unknown_parameters() {
    let reported = |params: Vec<Param>| match init_with(params) {
        Chunk::InitAck(ack) => ack.params.iter().filter(|p| matches!(p, Param::Unrecognized(_))).count(),
        other => panic!("{other:?}"),
    };
    assert_eq!(reported(vec![param(0x8ff1), param(0xc001), param(0xc002)]), 2);
    assert_eq!(reported(vec![param(0x4001), param(0xc001)]), 1);
    assert_eq!(reported(vec![param(0x0101), param(0xc001)]), 0);
    assert_eq!(
        reported(vec![Param::SupportedAddressTypes(vec![5, 6]), param(0xc001)]),
        1,
        "that one is known"
    );
    assert_eq!(
        reported((0..40).map(|n| param(0xc100 + n)).collect()),
        16,
        "the answer to a flood is bounded"
    );
}

/// However many addresses a peer lists, and how often, each counts once, and 32 at most besides that which it answers
/// from.
//= rfc9260#section-5.1.2
#[test]
fn a_peer_of_many_addresses() {
    let paths = |listed: &[u8]| {
        let bench = Bench::with(era("rfc9260"), 1, |_| {
            listed.iter().map(|n| Param::Ipv4([10, 9, 9, *n].into())).collect()
        });
        bench.paths().len()
    };
    assert_eq!(paths(&[1, 2, 1, 2, 3]), 4);
    assert_eq!(paths(&(1..60).collect::<Vec<_>>()), 33);
}

/// A host name instead of addresses is refused (§5.1.2), and so are as many associations as are allowed and one.
//= rfc9260#section-5.1.2
#[test]
fn what_is_refused() {
    let host = init_with(vec![Param::HostName(Bytes::from_static(b"a.example\0"))]);
    assert!(
        matches!(&host, Chunk::Abort(abort) if matches!(abort.causes[..], [Cause::UnresolvableAddress(_)]))
    );
    let config = Config { max_associations: 1, ..era("rfc9260") };
    let mut bench = Bench::new(config, 1);
    let init = Init { tag: 7, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
    bench.end.handle(bench.now, stranger(&bench, Chunk::Init(Box::new(init))));
    bench.drain();
    let full = Abort { reflected: false, causes: vec![Cause::OutOfResource] };
    assert_eq!(bench.sent.last().expect("an answer").1.chunks[..], [Chunk::Abort(full)]);
}

/// Two cookies are out, and there is room for one association: the cookie that comes back second is refused.
//= rfc9260#section-5.1
#[test]
fn a_cookie_for_which_there_is_no_room() {
    let config = Config { max_associations: 1, ..at(0, 1, &era("rfc9260")) };
    let mut end = Endpoint::new(config, Policies::default(), [0; 32]).expect("usable");
    let mut answer = |host: usize, tag, chunk| {
        let ports = Ports { source: PORT + 1, destination: PORT };
        let (from, to, ecn) = (address(0, host), address(0, 0), Ecn::NotEct);
        let packet = Packet { from, to, ports, tag, ecn, chunks: [chunk].into_iter().collect() };
        end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        loop {
            match end.poll(Time::ZERO) {
                Output::Transmit(packet, _) => return (packet.tag, packet.chunks[0].clone()),
                Output::Wait(_) => panic!("no answer"),
                _ => {}
            }
        }
    };
    let echoes = [1, 2].map(|host| {
        let tag = host as u32;
        let init = Init { tag, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
        let (_, Chunk::InitAck(ack)) = answer(host, 0, Chunk::Init(Box::new(init))) else {
            panic!("refused")
        };
        let cookie =
            ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
        (ack.tag, Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") }))
    });
    let [(first, one), (second, other)] = echoes;
    assert_eq!(answer(1, first, one), (1, Chunk::CookieAck(Bare)));
    let full = Abort { reflected: false, causes: vec![Cause::OutOfResource] };
    assert_eq!(answer(2, second, other), (2, Chunk::Abort(full)));
}

fn stranger(bench: &Bench, chunk: Chunk) -> Incoming {
    let to = bench.view(0).local;
    let from = address(0, 7);
    let ports = Ports { source: 4711, destination: PORT };
    Incoming::Packet(Box::new(Packet {
        from,
        to,
        ports,
        tag: 0,
        ecn: Ecn::NotEct,
        chunks: [chunk].into_iter().collect(),
    }))
}

/// An endpoint that has sent INIT, and its answer to an INIT ACK with these parameters.
fn echo_of(params: Vec<Param>) -> (Packet, Reason) {
    let config = at(0, 1, &era("rfc9260"));
    let mut end = Endpoint::new(config, Policies::default(), [0; 32]).expect("usable");
    end.connect(Time::ZERO, PORT + 1, &[address(0, 1)]).expect("a path");
    let Output::Transmit(init, _) = end.poll(Time::ZERO) else { panic!("no INIT") };
    let Chunk::Init(asked) = &init.chunks[0] else { panic!("{init:?}") };
    let ack = Init { tag: 7, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params };
    let packet = Packet {
        from: init.to,
        to: init.from,
        ports: init.ports.reversed(),
        tag: asked.tag,
        ecn: Ecn::NotEct,
        chunks: [Chunk::InitAck(Box::new(ack))].into_iter().collect(),
    };
    end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
    match end.poll(Time::ZERO) {
        Output::Transmit(echo, reason) => (*echo, reason),
        other => panic!("no COOKIE ECHO but {other:?}"),
    }
}

/// A cookie is as large as the peer makes it, and an INIT ACK has what it has to say. IP may fragment what a packet of
/// 1,500 bytes does not hold.
//= rfc9260#section-3.3.3
#[test]
fn set_up_needs_large_packets() {
    for (size, fragmented) in [(1464, false), (1465, true), (5000, true)] {
        let cookie = Bytes::from(vec![7; size]);
        let (echo, reason) = echo_of(vec![Param::Cookie(cookie.clone())]);
        assert_eq!(echo.chunks[..], [Chunk::CookieEcho(CookieEcho { cookie })]);
        assert_eq!(reason.oversize, fragmented, "{size}");
    }
    let strange = |size: usize| Param::Unknown { kind: 0xc001, value: vec![0; size].into() };
    assert!(!answered(vec![strange(1000)]).1);
    assert!(answered(vec![strange(1400)]).1, "the report, and the cookie");
}

/// What an INIT ACK has that is not understood is reported behind the COOKIE ECHO, in one packet: types 11…; of
/// those behind 00… nothing is said, they were not looked at.
//= rfc9260#section-3.2.2
#[test]
fn unknown_parameters_of_an_init_ack() {
    let cookie = Param::Cookie(Bytes::from_static(b"cookie"));
    let params = vec![cookie, param(0xc001), param(0x8ff1), param(0x0001), param(0xc002)];
    let (echo, _) = echo_of(params);
    let [Chunk::CookieEcho(_), Chunk::Error(error)] = &echo.chunks[..] else { panic!("{echo:?}") };
    let reported = Param::encode_list(&[param(0xc001)]).expect("short");
    assert_eq!(error.causes, [Cause::UnrecognizedParameters(reported)]);
}

/// The last DATA before SHUTDOWN has the I bit, in the era that knows it.
//= rfc9260#section-6.1
#[test]
fn immediate_sack() {
    for (era_name, wished) in [("rfc9260", true), ("rfc4960", false)] {
        let config = era(era_name);
        assert_eq!(config.rules.immediate_sack == ImmediateSack::BeforeShutdown, wished);
        let mut bench = Bench::new(config, 1);
        (0..2).for_each(|_| bench.try_send(1000).expect("room"));
        bench.end.shutdown(bench.now, bench.id);
        bench.drain();
        assert_eq!(i_bits(&bench), [false, wished], "{era_name}");
    }
}

/// The user asks for it: the last chunk of that message has the I bit, in every era, and has it still when it is
/// sent again.
//= rfc9260#section-6.1
#[test]
fn the_user_asks_for_a_sack_at_once() {
    let mut bench = Bench::new(era("rfc4960"), 1);
    for (size, immediate) in [(2000, true), (10, false)] {
        let message = Message { payload: vec![0; size].into(), immediate, ..Message::default() };
        bench.end.send(bench.now, bench.id, message).expect("room");
    }
    bench.drain();
    assert_eq!(i_bits(&bench), [false, true, false]);
    bench.sent.clear();
    bench.pass(ms(3000));
    bench.sack(1, &[]);
    assert_eq!(i_bits(&bench), [false, true, false]);
}

/// The I bits of the DATA sent.
fn i_bits(bench: &Bench) -> Vec<bool> {
    let bit = |chunk: &Chunk| if let Chunk::Data(data) = chunk { Some(data.immediate) } else { None };
    bench.sent.iter().flat_map(|(_, packet, _)| &packet.chunks).filter_map(bit).collect()
}

/// A heartbeat leaves when the user asks for one.
#[test]
fn a_heartbeat_on_request() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.heartbeat_interval = None), 1);
    bench.pass(ms(5000));
    assert_eq!(bench.heartbeats().len(), 0);
    assert!(bench.end.heartbeat(bench.now, bench.id, PathId(0)));
    assert!(!bench.end.heartbeat(bench.now, bench.id, PathId(9)));
    bench.drain();
    assert_eq!(bench.heartbeats().len(), 1);
}

/// A router says that packets to the peer may have 1,000 bytes: chunks of at most 968 from then on; one of 1,468
/// that was sent before goes again as it is, alone.
//= rfc9260#section-7.3
#[test]
fn the_path_mtu_falls() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, 1452);
    bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), 1000));
    bench.drain();
    assert_eq!(bench.view(0).pmdcs, 968);
    bench.pass(ms(1000));
    bench.sack(1, &[]);
    bench.send(1, 1452);
    let sizes: Vec<usize> =
        bench.sent.iter().filter(|s| matches!(s.1.chunks[0], Chunk::Data(_))).map(|s| s.1.size()).collect();
    assert_eq!(sizes, [1480, 1480, 980, 12 + 16 + 500]);
    assert_eq!(bench.counted().get("Lost"), None);
}
