//! A COOKIE ECHO behind AUTH, and what stands behind both, where the keys that admit it are not those of the
//! association (RFC 4895 §6.3).

use anabranch_proto::wire::chunk::{Abort, CookieEcho, Init};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{AssociationId, Config, Endpoint, Event, Incoming, Output, Policies, Time, Tsn};
use bytes::Bytes;

use super::auth::{AUTHENTICATION, Peer, association_key, authenticated, peer, vector};
use crate::support::bench::{PEER_TAG, chunk};
use crate::support::{PORT, address, at};
use crate::with;

/// What a peer with this random number says of authentication.
fn keying(random: u8) -> Vec<Param> {
    vec![
        Param::Random(Bytes::from(vec![random; 32])),
        Param::HmacAlgorithms(vec![3]),
        Param::SupportedExtensions(Bytes::from_static(&[0x0f])),
    ]
}

/// The INIT, or INIT ACK, of a peer that says this.
fn init(tag: u32, params: Vec<Param>) -> Init {
    Init { tag, a_rwnd: 100_000, outbound: 4, inbound: 4, tsn: Tsn(1), params }
}

/// The cookie in an INIT ACK, and the key that the keying of its peer and ours make.
fn cookie_and_key(ack: &Init, theirs: &[Param]) -> (Chunk, Vec<u8>) {
    let cookie =
        ack.params.iter().find_map(|p| if let Param::Cookie(c) = p { Some(c.clone()) } else { None });
    (Chunk::CookieEcho(CookieEcho { cookie: cookie.expect("a cookie") }), key(ack, theirs))
}

/// The key that the keying of the peer and ours make.
fn key(ours: &Init, theirs: &[Param]) -> Vec<u8> {
    let keying = |params: &[Param]| {
        let keying = params.iter().filter(|p| (0x8002..=0x8004).contains(&p.number()));
        vector(&keying.cloned().collect::<Vec<_>>())
    };
    association_key(&[], &keying(&ours.params), &keying(theirs))
}

/// The INIT ACKs among these packets.
fn init_acks<'a>(sent: impl Iterator<Item = &'a Packet>) -> Vec<Init> {
    let ack = |packet: &Packet| match &packet.chunks[..] {
        [Chunk::InitAck(ack)] => Some((**ack).clone()),
        _ => None,
    };
    sent.filter_map(ack).collect()
}

/// The peer begins anew, and shows by the keys of the old association that it is the peer. What it says behind the
/// COOKIE ECHO counts too: DATA that must be authentic, from another UDP port. From then on the keys are the new ones.
//= rfc4895#section-6.3
#[test]
fn a_restart_by_the_old_keys() {
    for required in [vec![], vec![10], vec![0, 10]] {
        let config = Config { authenticated_chunks: required.clone(), ..with(AUTHENTICATION) };
        let Peer { mut bench, key: old } = peer(config, &[], &[3]);
        bench.hear_packet(0, 0, [Chunk::Init(Box::new(init(PEER_TAG + 1, keying(2))))]);
        let ack = init_acks(bench.sent.iter().map(|(_, packet, _)| packet)).pop().expect("INIT ACK");
        let (echo, new) = cookie_and_key(&ack, &keying(2));
        bench.sent.clear();
        let moved = Address { udp: 4000, ..address(0, 1) };
        bench.tag = ack.tag;
        bench.hear_from(moved, authenticated(b"no key", 0, 3, vec![echo.clone(), chunk(1, 10)]));
        assert!(!bench.events.iter().any(|(_, event)| *event == Event::Restart), "{required:?}");
        bench.hear_from(moved, authenticated(&old, 0, 3, vec![echo, chunk(1, 10)]));
        assert!(bench.events.iter().any(|(_, event)| *event == Event::Restart), "{required:?}");
        let [(_, answer, _)] = &bench.sent[..] else { panic!("{:?}", bench.sent) };
        assert!(matches!(answer.chunks[..], [Chunk::CookieAck(_), Chunk::Sack(_)]), "{answer:?}");
        assert_eq!((answer.tag, answer.to), (PEER_TAG + 1, moved));
        let mut read = || std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).count();
        assert_eq!(read(), 1);
        let old = authenticated(&old, 0, 3, vec![chunk(2, 10)]);
        let new = authenticated(&new, 0, 3, vec![chunk(2, 10)]);
        bench.hear_from(moved, old);
        assert_eq!(std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).count(), 0, "the old keys");
        bench.hear_from(moved, new);
        assert_eq!(std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).count(), 1, "the new keys");
    }
}

/// An ABORT behind a restart is no restart.
#[test]
fn a_restart_with_an_abort_is_none() {
    let Peer { mut bench, key: old } = peer(with(AUTHENTICATION), &[], &[3]);
    bench.hear_packet(0, 0, [Chunk::Init(Box::new(init(PEER_TAG + 1, keying(2))))]);
    let ack = init_acks(bench.sent.iter().map(|(_, packet, _)| packet)).pop().expect("INIT ACK");
    let (echo, _) = cookie_and_key(&ack, &keying(2));
    bench.sent.clear();
    bench.hear_packet(0, ack.tag, authenticated(&old, 0, 3, vec![echo, Chunk::Abort(Abort::default())]));
    assert_eq!((bench.sent.len(), bench.events.len()), (0, 1));
}

/// AUTH counts in the packet of a COOKIE ECHO: an ERROR that has no room beside it is left out, and IP may fragment
/// what is too large by AUTH alone.
//= rfc4895#section-6.1
//= rfc9260#section-3.2.2
#[test]
fn auth_counts_beside_a_cookie() {
    // Of 1,480 bytes, 12 are the header, 40 AUTH, and 4 that of COOKIE ECHO. An ERROR takes 12.
    for (wants, cookie, expected) in [
        (&[10][..], 1412, (1480, true, false)),
        (&[10], 1416, (1472, false, false)),
        (&[10], 1424, (1480, false, false)),
        (&[10], 1428, (1484, false, true)),
        (&[9], 1412, (1480, true, false)),
        (&[9], 1416, (1432, false, false)),
        (&[0], 1452, (1480, true, false)),
        (&[0], 1464, (1480, false, false)),
        (&[0], 1468, (1484, false, true)),
    ] {
        let strange = Param::Unknown { kind: 0xc123, value: Bytes::new() };
        let theirs = [Param::ChunkList(Bytes::from_static(wants)), strange].into_iter().chain(keying(1));
        let joining = Joining::with_cookie(&with(AUTHENTICATION), vec![7; cookie].into(), theirs.collect());
        let (packet, oversize) = joining.sent.last().expect("COOKIE ECHO");
        let error = packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Error(_)));
        assert_eq!((packet.size(), error, *oversize), expected, "{wants:?}, a cookie of {cookie}");
    }
}

/// An endpoint that has sent COOKIE ECHO, to a peer that says this in its INIT ACK.
struct Joining {
    end: Endpoint,
    id: AssociationId,
    tag: u32,
    /// With each packet, whether IP may fragment it.
    sent: Vec<(Packet, bool)>,
    events: Vec<Event>,
}

impl Joining {
    fn new(config: &Config, theirs: Vec<Param>) -> Self {
        Joining::with_cookie(config, Bytes::from_static(b"cookie"), theirs)
    }

    fn with_cookie(config: &Config, cookie: Bytes, theirs: Vec<Param>) -> Self {
        let mut end = Endpoint::new(at(0, 1, config), Policies::default(), [3; 32]).expect("usable");
        let id = end.connect(Time::ZERO, PORT + 1, &[address(0, 1)]).expect("a path");
        let mut joining = Joining { end, id, tag: 0, sent: Vec::new(), events: Vec::new() };
        joining.drain();
        let Some([Chunk::Init(asked)]) = joining.sent.last().map(|(packet, _)| &packet.chunks[..]) else {
            panic!("no INIT")
        };
        joining.tag = asked.tag;
        let params = [Param::Cookie(cookie)].into_iter().chain(theirs).collect();
        joining.hear(joining.tag, vec![Chunk::InitAck(Box::new(init(PEER_TAG, params)))]);
        joining
    }

    fn drain(&mut self) {
        loop {
            match self.end.poll(Time::ZERO) {
                Output::Transmit(packet, reason) => self.sent.push((*packet, reason.oversize)),
                Output::Event(_, event) => self.events.push(event),
                Output::Note(_) => {}
                Output::Wait(_) => return,
            }
        }
    }

    fn hear(&mut self, tag: u32, chunks: Vec<Chunk>) {
        let ports = Ports { source: PORT + 1, destination: PORT };
        let (from, to, chunks) = (address(0, 1), address(0, 0), chunks.into());
        let packet = Packet { from, to, ports, tag, ecn: Ecn::NotEct, chunks };
        self.end.handle(Time::ZERO, Incoming::Packet(Box::new(packet)));
        self.drain();
    }

    /// The peer begins at the same time, says this, and gets a cookie with this key.
    fn collide(&mut self, theirs: &[Param]) -> (Chunk, Vec<u8>) {
        self.sent.clear();
        self.hear(0, vec![Chunk::Init(Box::new(init(PEER_TAG, theirs.to_vec())))]);
        let ack = init_acks(self.sent.iter().map(|(packet, _)| packet)).pop().expect("INIT ACK");
        self.sent.clear();
        cookie_and_key(&ack, theirs)
    }

    fn read(&mut self) -> usize {
        std::iter::from_fn(|| self.end.read(Time::ZERO, self.id)).count()
    }
}

/// The peer's INIT has the tag of its INIT ACK, but another random number: the cookie is of this association, and the
/// AUTH before it is by other keys.
#[test]
fn a_cookie_of_other_keys_during_set_up() {
    let config = Config { authenticated_chunks: vec![0, 10], ..with(AUTHENTICATION) };
    let mut joining = Joining::new(&config, keying(1));
    let (echo, key) = joining.collide(&keying(2));
    joining.hear(joining.tag, authenticated(&key, 0, 3, vec![echo, chunk(1, 10)]));
    assert_eq!(joining.events[0], Event::Up);
    assert_eq!(joining.read(), 1);
}

/// The peer's INIT ACK offers authentication, and its INIT does not: its COOKIE ECHO is bare. What stands behind the
/// COOKIE ECHO is judged by the keys of the association.
#[test]
fn a_bare_cookie_during_set_up() {
    let config = Config { authenticated_chunks: vec![0, 10], ..with(AUTHENTICATION) };
    let mut joining = Joining::new(&config, keying(1));
    let (echo, _) = joining.collide(&[]);
    joining.hear(joining.tag, vec![echo, chunk(1, 10)]);
    assert_eq!(joining.events, [Event::Up]);
    assert_eq!(joining.read(), 0, "DATA must be authentic");
}
