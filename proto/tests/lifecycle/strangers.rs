//! Packets out of the blue, with wrong tags, and peers that break the protocol.

use anabranch_proto::wire::chunk::{
    Abort, Bare, CookieEcho, Data, Heartbeat, Init, OperationError, Shutdown, ShutdownComplete,
};
use anabranch_proto::wire::{Address, Cause, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Endpoint, Event, Incoming, LostReason, Output, Policies, Ssn, Time, Tsn};
use bytes::Bytes;

use crate::support::bench::{Bench, PEER_TAG, at_ms, chunk, era, ms};
use crate::support::{PORT, address, at};

/// An endpoint without associations.
fn alone() -> Endpoint {
    let config = at(0, 1, &era("rfc9260"));
    Endpoint::new(config, Policies::default(), [0; 32]).expect("usable")
}

/// A packet of somebody at port 9 with one chunk under the tag 99.
fn strange(chunk: Chunk) -> Packet {
    Packet {
        from: address(0, 1),
        to: address(0, 0),
        ports: Ports { source: 9, destination: PORT },
        tag: 99,
        ecn: Ecn::NotEct,
        chunks: [chunk].into_iter().collect(),
    }
}

/// What an endpoint without associations answers to that.
fn answer(chunk: Chunk) -> Option<Packet> {
    let (mut end, packet) = (alone(), strange(chunk));
    end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
    match end.poll(Time::ZERO) {
        Output::Transmit(packet, _) => Some(*packet),
        _ => None,
    }
}

/// In UDP all SCTP ports are ours, and what asks for another is refused; directly on IP another stack may have the
/// port.
//= rfc9260#section-8.4
#[test]
fn another_port() {
    let init = Init { tag: 7, a_rwnd: 5000, outbound: 1, inbound: 1, tsn: Tsn(1), params: Vec::new() };
    let to = |udp, tag, chunk| {
        let place = |host| Address { udp, ..address(0, host) };
        let ports = Ports { source: 9, destination: PORT + 1 };
        let packet = Packet { from: place(1), to: place(0), ports, tag, ..strange(chunk) };
        let mut end = alone();
        end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        match end.poll(Time::ZERO) {
            Output::Transmit(packet, _) => Some((packet.tag, packet.ports.source, packet.chunks[0].clone())),
            _ => None,
        }
    };
    let abort = |reflected| Chunk::Abort(Abort { reflected, causes: vec![] });
    let init = Chunk::Init(Box::new(init));
    assert_eq!(to(9899, 0, init.clone()), Some((7, PORT + 1, abort(false))));
    assert_eq!(to(9899, 99, Chunk::CookieAck(Bare)), None);
    assert_eq!(
        to(9899, 99, Chunk::Shutdown(Shutdown { cumulative: Tsn(1) })),
        Some((99, PORT + 1, abort(true)))
    );
    assert_eq!(to(0, 0, init), None);
}

/// No port is 0: nothing that comes from there is answered, directly on IP or in UDP.
//= rfc9260#section-3.1
#[test]
fn from_port_0() {
    let init = Init { tag: 7, a_rwnd: 5000, outbound: 1, inbound: 1, tsn: Tsn(1), params: Vec::new() };
    let shutdown_ack = || Chunk::ShutdownAck(Bare);
    for (udp, tag, chunk) in
        [(0, 0, Chunk::Init(Box::new(init))), (0, 99, shutdown_ack()), (9899, 99, shutdown_ack())]
    {
        let place = |host| Address { udp, ..address(0, host) };
        for (source, answers) in [(9, 1), (0, 0)] {
            let ports = Ports { source, destination: PORT };
            let packet = Packet { from: place(1), to: place(0), ports, tag, ..strange(chunk.clone()) };
            let mut end = alone();
            end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
            let sent = std::iter::from_fn(|| match end.poll(Time::ZERO) {
                Output::Transmit(packet, _) => Some(packet),
                _ => None,
            });
            assert_eq!(sent.count(), answers, "from port {source}");
        }
    }
}

/// An INIT in company is no INIT, whatever port it asks for: nothing answers it.
//= rfc9260#section-6.10
#[test]
fn an_init_in_company_for_another_port() {
    let init = Init { tag: 7, a_rwnd: 5000, outbound: 1, inbound: 1, tsn: Tsn(1), params: Vec::new() };
    for company in [Chunk::Abort(Abort::default()), Chunk::CookieAck(Bare)] {
        let place = |host| Address { udp: 9899, ..address(0, host) };
        let ports = Ports { source: 9, destination: PORT + 1 };
        let mut packet = Packet { from: place(1), to: place(0), ports, tag: 0, ..strange(company) };
        packet.chunks.insert(0, Chunk::Init(Box::new(init.clone())));
        let mut end = alone();
        end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        assert!(matches!(end.poll(Time::ZERO), Output::Wait(_)));
    }
}

/// What stands behind an INIT is not looked at.
//= rfc9260#section-12.3
#[test]
fn behind_an_init() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.sent.clear();
    let init = Init { tag: 7, a_rwnd: 5000, outbound: 1, inbound: 1, tsn: Tsn(1), params: Vec::new() };
    let heartbeat = || Chunk::Heartbeat(Heartbeat::new(Bytes::from_static(b"info")));
    bench.hear_packet(0, bench.tag, [heartbeat(), Chunk::Init(Box::new(init)), heartbeat(), chunk(1, 10)]);
    bench.pass(ms(1000));
    let answers = bench.sent.iter().flat_map(|(_, packet, _)| packet.chunks.iter());
    assert_eq!(answers.map(Chunk::number).collect::<Vec<_>>(), [5], "one HEARTBEAT ACK");
}

/// Out of the blue: most things get an ABORT with the tag that came (T bit), SHUTDOWN ACK a SHUTDOWN COMPLETE,
/// and what could only start a quarrel gets nothing.
//= rfc9260#section-8.4
#[test]
fn out_of_the_blue() {
    let stale = OperationError { causes: vec![Cause::StaleCookie(1)] };
    let silent = [
        Chunk::Abort(Abort::default()),
        Chunk::ShutdownComplete(ShutdownComplete::default()),
        Chunk::CookieAck(Bare),
        Chunk::Error(stale),
    ];
    for chunk in silent {
        assert_eq!(answer(chunk.clone()), None, "{chunk:?}");
    }
    let complete = answer(Chunk::ShutdownAck(Bare)).expect("an answer");
    assert_eq!(complete.tag, 99);
    assert_eq!(complete.chunks[..], [Chunk::ShutdownComplete(ShutdownComplete { reflected: true })]);
    let other = OperationError { causes: vec![Cause::OutOfResource] };
    let aborted = [
        chunk(1, 10),
        Chunk::Heartbeat(Heartbeat::new(Bytes::new())),
        Chunk::Shutdown(Shutdown { cumulative: Tsn(0) }),
        Chunk::Error(other),
    ];
    for chunk in aborted {
        let abort = answer(chunk).expect("an answer");
        assert_eq!((abort.tag, abort.ports), (99, Ports { source: PORT, destination: 9 }));
        assert_eq!(abort.chunks[..], [Chunk::Abort(Abort { reflected: true, causes: vec![] })]);
    }
}

/// Another port, another address, or no tag at all: not even an answer.
//= rfc9260#section-8.5.1
#[test]
fn not_for_us() {
    let (mut end, packet) = (alone(), strange(chunk(1, 10)));
    let port = Packet { ports: Ports { source: 9, destination: PORT + 7 }, ..packet.clone() };
    let place = Packet { to: address(3, 0), ..packet.clone() };
    let tagless = Packet { tag: 0, ..packet.clone() };
    let empty = Packet { chunks: Default::default(), ..packet };
    for packet in [port, place, tagless, empty] {
        end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        assert!(matches!(end.poll(Time::ZERO), Output::Wait(None)));
    }
}

/// From where the peer is, but with another tag: thrown away in silence. An ABORT or SHUTDOWN COMPLETE must
/// have our tag, or the peer's and the T bit; not one with the other. A stranger who forges one, or a SHUTDOWN, has
/// two tags of 2^32 to guess, and a wrong guess costs us one look-up and no answer.
//= rfc9260#section-8.5
//= rfc9260#section-8.5.1
#[test]
fn wrong_tags_are_ignored() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(1, 100);
    bench.sent.clear();
    let abort = |reflected| Chunk::Abort(Abort { reflected, causes: vec![] });
    let wrong = [
        (bench.tag ^ 1, chunk(1, 10)),
        (bench.tag ^ 1, Chunk::Shutdown(Shutdown { cumulative: Tsn(1) })),
        (bench.tag ^ 1, Chunk::Heartbeat(Heartbeat::new(Bytes::new()))),
        (bench.tag ^ 1, abort(false)),
        (bench.tag, abort(true)),
        (PEER_TAG, abort(false)),
        (PEER_TAG ^ 1, abort(true)),
    ];
    for (tag, chunk) in wrong {
        bench.hear_packet(0, tag, [chunk]);
    }
    assert!(bench.sent.is_empty(), "{:?}", bench.sent);
    assert_eq!(bench.events.len(), 1, "it is up, and stays so");
    bench.hear_packet(0, PEER_TAG, [abort(true)]);
    let [.., (_, last)] = &bench.events[..] else { unreachable!() };
    assert_eq!(*last, Event::Lost(LostReason::PeerAborted(vec![])));
}

/// While a new association is set up, the SHUTDOWN ACK of an old one gets its SHUTDOWN COMPLETE (§8.5.1 E).
//= rfc9260#section-8.5.1
#[test]
fn the_end_of_a_forgotten_association_during_set_up() {
    let mut end = alone();
    end.connect(Time::ZERO, PORT + 1, &[address(0, 1)]).expect("a path");
    while let Output::Transmit(..) = end.poll(Time::ZERO) {}
    let ports = Ports { source: PORT + 1, destination: PORT };
    let packet = Packet { ports, tag: 1234, ..strange(Chunk::ShutdownAck(Bare)) };
    end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
    let Output::Transmit(complete, _) = end.poll(Time::ZERO) else { panic!("no answer") };
    assert_eq!(complete.tag, 1234);
    assert_eq!(complete.chunks[..], [Chunk::ShutdownComplete(ShutdownComplete { reflected: true })]);
}

fn data(tsn: u32, stream: u16, payload: Bytes) -> Chunk {
    let flags = Data {
        tsn: Tsn(tsn),
        stream,
        ssn: Ssn(0),
        ppid: 0,
        begin: true,
        end: true,
        unordered: false,
        immediate: false,
        payload,
    };
    Chunk::Data(flags)
}

/// DATA on a stream that was never agreed: acknowledged, reported, thrown away; the association lives. The ERROR follows
/// the SACK.
//= rfc9260#section-6.5
//= rfc4960#section-6.5
//= rfc9260#section-3.3.10.1
#[test]
fn an_invalid_stream() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.hear(data(1, 99, Bytes::from_static(b"lost")));
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    let [Chunk::Sack(sack), Chunk::Error(error)] = &packet.chunks[..] else { panic!("{packet:?}") };
    assert_eq!((&error.causes[..], sack.cumulative), (&[Cause::InvalidStream(99)][..], Tsn(1)));
    bench.data(2, 10);
    bench.until(at_ms(300));
    assert_eq!(bench.sacks().last().map(|s| s.1.cumulative), Some(Tsn(2)));
}

/// DATA without user data, and a SACK for what was never sent: the peer breaks the protocol, and is told.
//= rfc9260#section-3.3.10.9
//= rfc9260#section-3.3.10.13
#[test]
fn protocol_violations() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.hear(data(1, 0, Bytes::new()));
    let abort = |bench: &Bench| match &bench.sent.last().expect("an answer").1.chunks[..] {
        [Chunk::Abort(abort)] => abort.causes.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(abort(&bench), [Cause::NoUserData(Tsn(1))]);
    assert_eq!(bench.events.last().expect("one").1, Event::Lost(LostReason::ProtocolViolation));
    for (cumulative, gaps) in [(2, vec![]), (0, vec![(2, 2)]), (u32::MAX / 2, vec![])] {
        let mut bench = Bench::new(era("rfc9260"), 1);
        bench.send(1, 10);
        bench.sack(cumulative, &gaps);
        assert!(matches!(abort(&bench)[..], [Cause::ProtocolViolation(_)]));
        assert_eq!(bench.events.last().expect("one").1, Event::Lost(LostReason::ProtocolViolation));
    }
}

/// The same while new data waits for room on its path.
#[test]
fn a_protocol_violation_while_data_waits() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(40, 1452);
    (1..4).for_each(|cumulative| bench.sack(cumulative, &[]));
    assert!(bench.next_tsn() > 6 && bench.next_tsn() < 40, "{}", bench.next_tsn());
    bench.sack(100, &[]);
    let last = &bench.sent.last().expect("an answer").1.chunks[..];
    assert!(matches!(last, [Chunk::Abort(_)]), "{last:?}");
    assert_eq!(bench.failed().len(), 37);
}

/// An older SACK than one heard before says nothing; one from before the beginning neither.
//= rfc9260#section-6.2.1
#[test]
fn an_old_sack_is_ignored() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.send(3, 1452);
    bench.sack_window(2, 5000);
    assert_eq!(bench.peer_window(), 5000 - 1468);
    bench.sack_window(1, 9000);
    bench.sack_window(u32::MAX, 9000);
    assert_eq!(bench.peer_window(), 5000 - 1468);
}

/// An ERROR of the peer is passed on; a stale cookie after set-up is none of its matter (§5.2.6).
//= rfc9260#section-5.2.6
#[test]
fn errors_are_passed_on() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    let error = |cause| Chunk::Error(OperationError { causes: vec![cause] });
    bench.hear(error(Cause::StaleCookie(5)));
    assert_eq!(bench.events.len(), 1);
    bench.hear(error(Cause::OutOfResource));
    assert_eq!(bench.events.last().expect("one").1, Event::PeerError(vec![Cause::OutOfResource]));
}

/// A heartbeat is answered with what it brought, at once and where it came from.
//= rfc9260#section-8.3
#[test]
fn heartbeats_are_answered() {
    let mut bench = Bench::new(era("rfc9260"), 2);
    bench.sent.clear();
    let info = Bytes::from_static(b"whatever this is");
    bench.hear_on(1, Chunk::Heartbeat(Heartbeat::new(info.clone())));
    let [(_, packet, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
    assert_eq!((packet.from, packet.to), (address(1, 0), address(1, 1)));
    assert_eq!(packet.chunks[..], [Chunk::HeartbeatAck(Heartbeat::new(info))]);
}

/// A cookie that is too old is answered by an ERROR, but not if an ABORT stands behind it: nothing in such a packet is
/// answered.
//= rfc9260#section-9.1
//= rfc9260#section-5.1.5
#[test]
fn a_stale_cookie_beside_an_abort() {
    let mut end = alone();
    let mut said = |at: Time, tag: u32, chunks: Vec<Chunk>| {
        let packet = Packet { tag, chunks: chunks.into_iter().collect(), ..strange(Chunk::CookieAck(Bare)) };
        end.handle(at, Incoming::Packet(Box::new(packet)));
        match end.poll(at) {
            Output::Transmit(packet, _) => Some(packet.chunks[0].clone()),
            _ => None,
        }
    };
    let init = Init { tag: 7, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
    let Some(Chunk::InitAck(ack)) = said(Time::ZERO, 0, vec![Chunk::Init(Box::new(init))]) else {
        panic!("no INIT ACK");
    };
    let cookie =
        ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
    let echo = Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") });
    let late = at_ms(61_000);
    assert_eq!(said(late, ack.tag, vec![echo.clone(), Chunk::Abort(Abort::default())]), None);
    assert!(matches!(said(late, ack.tag, vec![echo]), Some(Chunk::Error(_))));
}

/// SHUTDOWN was sent, so nothing of ours is outstanding: a SACK is thrown away, also one for a TSN never sent.
//= rfc9260#section-6
#[test]
fn a_sack_after_shutdown() {
    let mut bench = Bench::new(era("rfc9260"), 1);
    bench.end.shutdown(bench.now, bench.id);
    bench.drain();
    bench.sent.clear();
    bench.sack(7, &[]);
    assert!(bench.sent.is_empty() && bench.events.len() == 1, "{:?} {:?}", bench.sent, bench.events);
}
