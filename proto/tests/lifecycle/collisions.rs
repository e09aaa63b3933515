//! Cookies that come back while their association exists, with another tag of the peer or from another of its
//! addresses, and INITs while it ends (RFC 9260 §5.2.4, §9.2).

use anabranch_proto::wire::chunk::{Bare, CookieEcho, Data, Init, OperationError, Shutdown};
use anabranch_proto::wire::{Address, Cause, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{Config, Endpoint, Event, Incoming, LostReason, Output, Policies, Ssn, Time, Tsn};
use bytes::Bytes;

use crate::support::bench::{at_ms, era};
use crate::support::{PORT, World, address, at, secs};

/// An endpoint, and what a peer with so many addresses sends it by hand.
struct Hand {
    end: Endpoint,
    now: Time,
    events: Vec<Event>,
}

impl Hand {
    fn new(paths: usize) -> Hand {
        Hand::with(&era("rfc9260"), paths)
    }

    fn with(config: &Config, paths: usize) -> Hand {
        let end = Endpoint::new(at(0, paths, config), Policies::default(), [3; 32]).expect("usable");
        Hand { end, now: Time::ZERO, events: Vec::new() }
    }

    fn drain(&mut self) -> (Vec<Packet>, Option<Time>) {
        let mut sent = Vec::new();
        loop {
            match self.end.poll(self.now) {
                Output::Transmit(packet, _) => sent.push(*packet),
                Output::Event(_, event) => self.events.push(event),
                Output::Note(_) => {}
                Output::Wait(until) => return (sent, until),
            }
        }
    }

    /// The peer sends a chunk from here; what is sent at once.
    fn hear(&mut self, from: Address, tag: u32, chunk: Chunk) -> Vec<Packet> {
        let to = Address { udp: from.udp, ..address(usize::from(from.ip == address(1, 1).ip), 0) };
        let ports = Ports { source: PORT + 1, destination: PORT };
        let packet = Packet { from, to, ports, tag, ecn: Ecn::NotEct, chunks: [chunk].into_iter().collect() };
        self.end.handle(self.now, Incoming::Packet(Box::new(packet)));
        self.drain().0
    }

    /// The peer sends INIT with this tag and first TSN; our tag, and the COOKIE ECHO for the answer.
    fn begin(&mut self, from: Address, tag: u32, tsn: u32, params: Vec<Param>) -> (u32, Chunk) {
        let init = Init { tag, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(tsn), params };
        let answers = self.hear(from, 0, Chunk::Init(Box::new(init)));
        let [Chunk::InitAck(ack)] = &answers[0].chunks[..] else { panic!("{answers:?}") };
        let cookie = ack.params.iter().find_map(|param| match param {
            Param::Cookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        (ack.tag, Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") }))
    }
}

fn data(tsn: u32) -> Chunk {
    let (stream, ssn, ppid) = (0, Ssn(0), 0);
    let (begin, end, unordered, immediate) = (true, true, false, false);
    let payload = Bytes::from_static(b"data");
    Chunk::Data(Data { tsn: Tsn(tsn), stream, ssn, ppid, begin, end, unordered, immediate, payload })
}

/// The Cumulative TSN Acks of these packets, and their tags.
fn acknowledged(packets: &[Packet]) -> Vec<(u32, u32)> {
    let of = |packet: &Packet| {
        packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Sack(sack) => Some((packet.tag, sack.cumulative.0)),
            _ => None,
        })
    };
    packets.iter().filter_map(of).collect()
}

/// During set-up the peer begins with tag 7 and then anew with tag 9, perhaps because it has crashed. It comes up with
/// its first cookie, and data flows. Then its second cookie comes: it stands for the peer that is there now, whose TSNs
/// are others. The first cookie means nothing any more.
//= rfc9260#section-5.2.4
#[test]
fn a_peer_that_begins_twice_while_we_begin() {
    let (mut hand, from) = (Hand::new(1), address(0, 1));
    let id = hand.end.connect(hand.now, PORT + 1, &[from]).expect("a path");
    hand.drain();
    hand.now = at_ms(10);
    let (tag, first) = hand.begin(from, 7, 100, vec![]);
    hand.now = at_ms(20);
    let (same, second) = hand.begin(from, 9, 90_000_000, vec![]);
    assert_eq!(tag, same);
    hand.hear(from, tag, first.clone());
    assert_eq!(acknowledged(&hand.hear(from, tag, data(100))), [(7, 100)]);
    let answers = hand.hear(from, tag, second);
    assert_eq!((answers[0].tag, &answers[0].chunks[0]), (9, &Chunk::CookieAck(Bare)));
    assert!(hand.events.contains(&Event::Restart));
    assert_eq!(acknowledged(&hand.hear(from, tag, data(90_000_000))), [(9, 90_000_000)]);
    assert_eq!(
        hand.end.read(hand.now, id).map(|delivery| delivery.into_bytes()),
        Some(Bytes::from_static(b"data"))
    );
    assert_eq!(hand.hear(from, tag, first), []);
}

/// The COOKIE ACK does not arrive, and a NAT maps the peer to another UDP port before each COOKIE ECHO. The cookie
/// names the first port only. It is the cookie of the association all the same, which must not be aborted.
//= rfc9260#section-5.2.4
//= rfc6951#section-5.4
#[test]
fn a_cookie_from_one_udp_port_after_another() {
    let mut hand = Hand::new(1);
    let from = |udp| Address { udp, ..address(0, 1) };
    let (tag, echo) = hand.begin(from(1001), 7, 100, vec![]);
    for udp in [1001, 1002, 1003, 1004, 1001] {
        let answers = hand.hear(from(udp), tag, echo.clone());
        let [Chunk::CookieAck(_), ..] = &answers[0].chunks[..] else { panic!("{answers:?}") };
        assert_eq!((answers[0].tag, answers[0].to), (7, from(udp)));
    }
    assert_eq!(hand.events.iter().filter(|event| **event == Event::Up).count(), 1);
}

/// The peer has forgotten an association whose end waits for its SHUTDOWN COMPLETE, and begins anew from its second
/// address. SHUTDOWN ACK goes there, as often as it asks, and T2-shutdown goes on: whoever sends INITs, perhaps forged,
/// keeps the association no longer than silence.
//= rfc9260#section-9.2
//= rfc9260#section-6.4
#[test]
fn an_end_comes_in_spite_of_inits() {
    let (mut hand, here) = (Hand::new(2), address(1, 1));
    let listed = vec![Param::Ipv4([10, 0, 0, 2].into()), Param::Ipv4([10, 0, 1, 2].into())];
    let (tag, echo) = hand.begin(address(0, 1), 7, 100, listed);
    hand.hear(address(0, 1), tag, echo);
    let answers = hand.hear(address(0, 1), tag, Chunk::Shutdown(Shutdown { cumulative: Tsn(0) }));
    assert!(answers.iter().any(|packet| packet.chunks[..] == [Chunk::ShutdownAck(Bare)]), "{answers:?}");
    let mut asked = 0;
    while hand.now < secs(1000.0) && hand.events.last() != Some(&Event::Lost(LostReason::TooManyErrors)) {
        hand.now += std::time::Duration::from_millis(500);
        hand.drain();
        let init = Init { tag: 9, a_rwnd: 10_000, outbound: 1, inbound: 1, tsn: Tsn(1), params: vec![] };
        let answers = hand.hear(here, 0, Chunk::Init(Box::new(init)));
        if let [Chunk::ShutdownAck(_)] = &answers[0].chunks[..] {
            assert_eq!((answers[0].tag, answers[0].to), (7, here));
            asked += 1;
        }
    }
    // 1, 2, 4, 8, 16, 32 and 5 times 60 s, each but the last before another SHUTDOWN ACK.
    assert!((360..400).contains(&(hand.now.as_nanos() / 1_000_000_000)), "{:?}", hand.now);
    assert!(asked > 700);
}

/// An end that accepts COOKIE ECHO only with authentication.
fn keyed() -> Config {
    let mut config = era("rfc9260");
    config.extensions.authentication = true;
    config.authenticated_chunks = vec![10];
    config
}

/// Side 1 has answered the INIT of side 0, knows nothing of that, and begins, too, before the COOKIE ECHO comes. So its
/// own COOKIE ECHO has keys from its INIT, and side 0 knows keys from its INIT ACK. The cookie tells which count.
//= rfc9260#section-5.2.4
//= rfc4895#section-6.3
#[test]
fn both_ends_begin_and_authenticate_their_cookies() {
    let config = keyed();
    let (mut world, id) = World::joined([&config, &config], 1);
    world.run(at_ms(120));
    world.ends[1].connect(world.now, PORT, &[address(0, 0)]).expect("a path");
    world.drain(1);
    world.run(at_ms(400));
    assert!(world.happened(0, &Event::Up) && world.happened(1, &Event::Up));
    world.give(0, id, 100);
    world.run(secs(1.0));
    assert_eq!(world.take(1), [100]);
}

/// The INIT after a stale cookie has the tag of the first one, and the same random number: a peer that has begun as
/// well may have the tag and the number from our INIT ACK. With another number the two would have different keys, and
/// neither would hear the other's data.
//= rfc9260#section-5.2.6
//= rfc9260#section-5.2.1
#[test]
fn the_init_after_a_stale_cookie_says_the_same() {
    let (mut hand, from) = (Hand::with(&keyed(), 1), address(0, 1));
    hand.end.connect(hand.now, PORT + 1, &[from]).expect("a path");
    let first = hand.drain().0;
    let [Chunk::Init(first)] = &first[0].chunks[..] else { panic!("{first:?}") };
    let cookie = Param::Cookie(Bytes::from_static(b"a cookie"));
    let params = first.params.iter().cloned().chain([cookie]).collect();
    let ack = Init { tag: 7, params, ..(**first).clone() };
    assert_eq!(hand.hear(from, first.tag, Chunk::InitAck(Box::new(ack))).len(), 1);
    let stale = OperationError { causes: vec![Cause::StaleCookie(1000)] };
    let second = hand.hear(from, first.tag, Chunk::Error(stale));
    let [Chunk::Init(second)] = &second[0].chunks[..] else { panic!("{second:?}") };
    let said = |init: &Init| -> Vec<Param> {
        init.params.iter().filter(|param| !matches!(param, Param::CookiePreservative(_))).cloned().collect()
    };
    assert_eq!((second.tag, second.tsn, said(second)), (first.tag, first.tsn, said(first)));
}

/// The peer deletes one of its two addresses. Then the INIT that began the association comes again, late. It adds the
/// address anew, which a restart must not. But its tag is that of the association, so the peer must not be told.
//= rfc5061#section-5.3
//= rfc9260#section-5.2.2
#[test]
fn the_init_of_the_association_after_an_address_was_deleted() {
    let mut config = era("rfc9260");
    (config.extensions.authentication, config.extensions.addresses) = (true, true);
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    let init = world.log[0].packet.clone();
    assert!(matches!(init.chunks[0], Chunk::Init(_)));
    world.ends[0].remove_address(world.now, id, address(1, 0)).expect("there is another one");
    world.drain(0);
    world.run(secs(2.0));
    world.log.clear();
    world.ends[1].handle(world.now, Incoming::Packet(Box::new(init)));
    world.drain(1);
    assert_eq!(world.log, []);
    world.give(0, id, 100);
    world.run(secs(3.0));
    assert_eq!(world.take(1), [100]);
}
