//! Authentication: RFC 4895. The keys and HMACs are worked out here a second time, from the RFC.

use anabranch_proto::wire::chunk::{Auth, Init};
use anabranch_proto::wire::{Address, Cause, Chunk, Packet, Param};
use anabranch_proto::{Config, Event, Extensions, Incoming, LostReason, SharedKey};
use bytes::{Bytes, BytesMut};
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

use crate::support::bench::{Bench, PEER_TAG, chunk, ms};
use crate::support::{World, address, secs};
use crate::with;

pub(crate) const AUTHENTICATION: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: true,
    addresses: false,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

/// A peer that wants these chunk types authenticated, by these algorithms, and the key that both then have.
pub(crate) struct Peer {
    pub(crate) bench: Bench,
    pub(crate) key: Vec<u8>,
}

fn shared(secret: &'static [u8]) -> Option<SharedKey> {
    Some(SharedKey { id: 7, secret: Bytes::from_static(secret) })
}

pub(crate) fn peer(config: Config, wants: &'static [u8], algorithms: &[u16]) -> Peer {
    let theirs = vec![
        Param::Random(Bytes::from_static(&[0x11; 32])),
        Param::ChunkList(Bytes::from_static(wants)),
        Param::HmacAlgorithms(algorithms.to_vec()),
        Param::SupportedExtensions(Bytes::from_static(&[0x0f, 0xc1, 0x80])),
    ];
    let secret = config.shared_key.as_ref().map_or(Bytes::new(), |key| key.secret.clone());
    let mut key = Vec::new();
    let answer = |init: &Init| {
        let ours: Vec<Param> =
            init.params.iter().filter(|p| (0x8002..=0x8004).contains(&p.number())).cloned().collect();
        key = association_key(&secret, &vector(&ours), &vector(&theirs[..3]));
        theirs.clone()
    };
    let bench = Bench::with(config, 1, answer);
    Peer { bench, key }
}

/// The parameters without padding, one behind the other.
pub(crate) fn vector(params: &[Param]) -> Vec<u8> {
    params.iter().flat_map(|param| Param::encode_list(std::slice::from_ref(param)).expect("short")).collect()
}

/// Both vectors begin with 0x8002, so the longer is the larger number.
pub(crate) fn association_key(secret: &[u8], a: &[u8], b: &[u8]) -> Vec<u8> {
    let (small, large) = if (a.len(), a) < (b.len(), b) { (a, b) } else { (b, a) };
    [secret, small, large].concat()
}

/// AUTH with this HMAC, and the chunks behind it.
pub(crate) fn authenticated(key: &[u8], id: u16, algorithm: u16, chunks: Vec<Chunk>) -> Vec<Chunk> {
    let size = if algorithm == 1 { 20 } else { 32 };
    let blank = Auth { key: id, algorithm, hmac: vec![0; size].into(), covered: Default::default() };
    let mut all = vec![Chunk::Auth(Box::new(blank.clone()))];
    all.extend(chunks);
    let hmac: Vec<u8> = match algorithm {
        1 => {
            let mut mac = Hmac::<Sha1>::new_from_slice(key).expect("any length");
            mac.update(&bytes(&all));
            mac.finalize().into_bytes().to_vec()
        }
        _ => {
            let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
            mac.update(&bytes(&all));
            mac.finalize().into_bytes().to_vec()
        }
    };
    all[0] = Chunk::Auth(Box::new(Auth { hmac: hmac.into(), ..blank }));
    all
}

/// Chunks as they stand in a packet.
fn bytes(chunks: &[Chunk]) -> Vec<u8> {
    let address = crate::support::address(0, 0);
    let ports = anabranch_proto::wire::Ports { source: 1, destination: 2 };
    let chunks = chunks.iter().cloned().collect();
    let packet =
        Packet { from: address, to: address, ports, tag: 1, ecn: anabranch_proto::wire::Ecn::NotEct, chunks };
    let mut out = BytesMut::new();
    packet.encode(&mut out).expect("it can be encoded");
    out[12..].to_vec()
}

/// What the peer wants authenticated leaves behind AUTH, the rest before it or behind it; HMACs are right with each
/// algorithm, the first of the peer's that we know, and with and without a shared key. Full packets have room for it.
//= rfc4895#section-6.1
//= rfc4895#section-6.2
//= rfc4895#section-3.2
//= rfc4895#section-3.3
#[test]
fn what_leaves_is_authentic() {
    for (algorithms, algorithm) in [(&[1][..], 1), (&[3, 1], 3), (&[99, 1, 3], 1)] {
        for shared_key in [None, shared(b"a secret")] {
            let id = shared_key.as_ref().map_or(0, |key| key.id);
            let Peer { mut bench, key } =
                peer(Config { shared_key, ..with(AUTHENTICATION) }, &[0], algorithms);
            bench.send(1, 5000);
            let data: Vec<Packet> = bench.sent.iter().map(|(_, packet, _)| packet.clone()).collect();
            assert_eq!(data.len(), 4);
            for packet in data {
                let [Chunk::Auth(_), rest @ ..] = &packet.chunks[..] else { panic!("{packet:?}") };
                assert_eq!(packet.chunks[..], authenticated(&key, id, algorithm, rest.to_vec())[..]);
                assert!(packet.size() <= 1480);
            }
            bench.sent.clear();
            bench.data(1, 10);
            bench.pass(ms(200));
            let [(_, sack, _)] = &bench.sent[..] else { panic!() };
            assert!(matches!(sack.chunks[..], [Chunk::Sack(_)]), "not asked for");
        }
    }
}

/// DATA that we accept only authenticated: without AUTH, with one byte of it changed, with another key, another key
/// identifier or an HMAC cut short, nothing happens; an algorithm that we did not offer is reported.
//= rfc4895#section-6.3
//= rfc4895#section-4.1
#[test]
fn what_is_not_authentic_is_thrown_away() {
    let config =
        Config { authenticated_chunks: vec![0], shared_key: shared(b"a secret"), ..with(AUTHENTICATION) };
    let Peer { mut bench, key } = peer(config, &[], &[3, 1]);
    let mut came = |chunks: Vec<Chunk>| {
        bench.hear_packet(0, bench.tag, chunks);
        std::iter::from_fn(|| bench.end.read(bench.now, bench.id)).count()
    };
    assert_eq!(came(vec![chunk(1, 10)]), 0, "without AUTH");
    let right = authenticated(&key, 7, 3, vec![chunk(1, 10)]);
    let changed = vec![right[0].clone(), chunk(1, 11)];
    assert_eq!(came(changed), 0);
    assert_eq!(came(vec![chunk(1, 10), right[0].clone()]), 0, "AUTH behind it");
    assert_eq!(came(authenticated(b"no key", 7, 3, vec![chunk(1, 10)])), 0);
    assert_eq!(came(authenticated(&key, 0, 3, vec![chunk(1, 10)])), 0, "another identifier");
    let Chunk::Auth(auth) = &right[0] else { panic!() };
    for cut in [0, 20, 31] {
        let short = Auth { hmac: auth.hmac.slice(..cut), ..*auth.clone() };
        assert_eq!(came(vec![Chunk::Auth(Box::new(short)), chunk(1, 10)]), 0);
    }
    let strange = Auth { algorithm: 2, ..*auth.clone() };
    assert_eq!(came(vec![Chunk::Auth(Box::new(strange)), chunk(1, 10)]), 0);
    assert_eq!(came(right.clone()), 1);
    assert_eq!(came(authenticated(&key, 7, 1, vec![chunk(2, 10)])), 1, "any algorithm that we offered");
    assert_eq!(came(right), 0, "a replay is a duplicate");
    let errors = bench.take(|c| if let Chunk::Error(error) = c { Some(error.causes.clone()) } else { None });
    assert_eq!(errors, [vec![Cause::UnsupportedHmac(2)]]);
    assert_eq!(bench.events.iter().filter(|(_, e)| !matches!(e, Event::Up | Event::Readable)).count(), 0);
}

/// Where data has to be authentic, who only knows the tag cannot turn it to another UDP port.
//= rfc6951#section-5.4
#[test]
fn only_an_authentic_packet_moves_the_peer() {
    let config = Config { authenticated_chunks: vec![0], ..with(AUTHENTICATION) };
    let Peer { mut bench, key } = peer(config, &[], &[3, 1]);
    let mut came = |chunks: Vec<Chunk>| {
        bench.hear_from(Address { udp: 4000, ..address(0, 1) }, chunks);
        bench.view(0).remote.udp
    };
    assert_eq!(came(vec![chunk(1, 10)]), 0);
    assert_eq!(came(authenticated(b"no key", 0, 3, vec![chunk(1, 10)])), 0);
    assert_eq!(came(authenticated(&key, 0, 3, vec![chunk(1, 10)])), 4000);
}

/// A wrong AUTH takes with it what is behind it, and only that.
//= rfc4895#section-6.3
#[test]
fn a_wrong_auth_hides_what_is_behind_it() {
    let Peer { mut bench, .. } = peer(with(AUTHENTICATION), &[], &[1]);
    let wrong = authenticated(b"no key", 0, 1, vec![chunk(2, 10)]);
    bench.hear_packet(0, bench.tag, [chunk(1, 10)].into_iter().chain(wrong));
    bench.pass(ms(200));
    assert_eq!(bench.sacks()[0].1.cumulative.0, 1);
}

/// An ABORT that has to be authenticated cannot be forged by who knows the tag.
#[test]
fn a_forged_abort() {
    use anabranch_proto::wire::chunk::Abort;
    let config = Config { authenticated_chunks: vec![6], ..with(AUTHENTICATION) };
    let Peer { mut bench, key } = peer(config, &[], &[1]);
    let abort = || Chunk::Abort(Abort::default());
    bench.hear(abort());
    assert_eq!(bench.events.len(), 1);
    bench.hear_packet(0, bench.tag, authenticated(&key, 0, 1, vec![abort()]));
    assert!(matches!(bench.events[1].1, Event::Lost(LostReason::PeerAborted(_))));
}

/// Who knows the tag forges a FORWARD TSN that skips what the peer sends next. It counts only where it need not be
/// authentic; there the peer is told that TSNs were acknowledged that it has not sent, and ends the association.
#[test]
fn a_forged_forward_tsn() {
    use anabranch_proto::wire::chunk::ForwardTsn;
    for (authenticated_chunks, delivered) in [(vec![0, 192], vec![100, 100]), (vec![0], vec![100])] {
        let extensions = Extensions { partial_reliability: true, ..AUTHENTICATION };
        let config = Config { authenticated_chunks, shared_key: shared(b"a secret"), ..with(extensions) };
        let (mut world, id) = World::joined([&config, &config], 1);
        world.run(secs(0.5));
        world.give(0, id, 100);
        world.run(secs(1.0));
        let data = |chunk: &Chunk| if let Chunk::Data(data) = chunk { Some(data.tsn) } else { None };
        let sent = world.log.iter().filter(|left| left.side == 0);
        let packet =
            sent.map(|left| &left.packet).find(|packet| packet.chunks.iter().any(|c| data(c).is_some()));
        let mut forged = packet.expect("a packet with DATA").clone();
        let last = forged.chunks.iter().find_map(data).expect("DATA");
        let skip = ForwardTsn { cumulative: last.plus(10), skipped: Vec::new() };
        forged.chunks = [Chunk::ForwardTsn(skip)].into_iter().collect();
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(forged)));
        world.give(0, id, 100);
        world.drain(1);
        world.run(secs(3.0));
        assert_eq!(world.take(1), delivered);
    }
}

/// A random number of another length ends the set-up; with a shared key, so does a peer that cannot authenticate, and
/// so does one that could not authenticate changes of addresses which it offers.
//= rfc4895#section-6.1
//= rfc5061#section-6
#[test]
fn set_ups_that_fail() {
    let lost = |config: Config, params: Vec<Param>| {
        let config = crate::support::at(0, 1, &config);
        let mut end = anabranch_proto::Endpoint::new(config, Default::default(), [0; 32]).expect("usable");
        let to = crate::support::address(0, 1);
        end.connect(anabranch_proto::Time::ZERO, 9, &[to]).expect("a path");
        let now = anabranch_proto::Time::ZERO;
        let anabranch_proto::Output::Transmit(init, _) = end.poll(now) else { panic!("no INIT") };
        let Chunk::Init(asked) = &init.chunks[0] else { panic!() };
        let cookie = Param::Cookie(Bytes::from_static(b"cookie"));
        let params = [cookie].into_iter().chain(params).collect();
        let (tag, a_rwnd, tsn) = (PEER_TAG, 10_000, anabranch_proto::Tsn(1));
        let ack = Init { tag, a_rwnd, outbound: 1, inbound: 1, tsn, params };
        let packet = Packet {
            from: init.to,
            to: init.from,
            ports: init.ports.reversed(),
            tag: asked.tag,
            chunks: [Chunk::InitAck(Box::new(ack))].into_iter().collect(),
            ..(*init).clone()
        };
        end.handle(now, anabranch_proto::Incoming::Packet(Box::new(packet)));
        match end.poll(now) {
            anabranch_proto::Output::Event(_, Event::Lost(reason)) => Some(reason),
            _ => None,
        }
    };
    let short = vec![Param::Random(Bytes::from_static(&[1; 31]))];
    assert_eq!(lost(with(AUTHENTICATION), short), Some(LostReason::ProtocolViolation));
    let keyed = Config { shared_key: shared(b"a secret"), ..with(AUTHENTICATION) };
    assert_eq!(lost(keyed, vec![]), Some(LostReason::NotAuthenticated));
    assert_eq!(lost(with(AUTHENTICATION), vec![]), None, "without a key one can do without");
    let movable = vec![Param::SupportedExtensions(Bytes::from_static(&[0xc1, 0x80]))];
    assert_eq!(lost(with(AUTHENTICATION), movable.clone()), None, "addresses stay, anyway");
    let addresses = Extensions { addresses: true, ..AUTHENTICATION };
    assert_eq!(lost(with(addresses), vec![]), None);
    assert_eq!(lost(with(addresses), movable), Some(LostReason::ProtocolViolation));
}

/// Two ends with the same key exchange data both ways, everything authenticated that can be, COOKIE ECHO too, also
/// through the codec; with different keys nothing comes to be.
//= rfc4895#section-6.3
#[test]
fn two_ends_with_keys() {
    let all = (0..=255u8).filter(|kind| !matches!(kind, 1 | 2 | 14 | 15)).collect::<Vec<_>>();
    let keyed = |secret| Config {
        authenticated_chunks: all.clone(),
        shared_key: shared(secret),
        ..with(AUTHENTICATION)
    };
    for (secret, same) in [(&b"a secret"[..], true), (b"another", false)] {
        for wire in [false, true] {
            let (mut world, id) = World::joined([&keyed(b"a secret"), &keyed(secret)], 2);
            world.wire = wire;
            world.give(0, id, 20_000);
            world.run(secs(2.0));
            assert_eq!(world.up(1).is_some(), same);
            assert_eq!(world.take(1), if same { vec![20_000] } else { vec![] });
            if same {
                let peer = world.up(1).expect("up");
                world.give(1, peer, 20_000);
                world.run(secs(4.0));
                assert_eq!(world.take(0), [20_000]);
                assert!(world.log.iter().all(|left| left.packet.size() <= 1480));
                world.ends[0].shutdown(world.now, id);
                world.drain(0);
                world.run(secs(8.0));
                assert!(world.happened(0, &Event::Closed) && world.happened(1, &Event::Closed));
            }
        }
    }
}

/// A restart has to know the key if COOKIE ECHO must be authenticated.
#[test]
fn a_forged_restart() {
    let config = Config { authenticated_chunks: vec![10], ..with(AUTHENTICATION) };
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let seed = [77; 32];
    let fresh = crate::support::at(0, 1, &config);
    world.ends[0] = anabranch_proto::Endpoint::new(fresh, Default::default(), seed).expect("usable");
    world.connect();
    world.run(secs(3.0));
    assert!(!world.happened(1, &Event::Restart));
}

/// A probe of 1,500 bytes has so many with AUTH too, whether the peer wants HEARTBEAT or PAD authenticated, or neither.
//= rfc4895#section-6.1
#[test]
fn authentication_takes_its_place_in_a_probe() {
    for wants in [&[][..], &[4], &[0x84], &[0, 4, 0x84]] {
        let config = Config { mtu_discovery: true, ..with(AUTHENTICATION) };
        let Peer { bench, .. } = peer(config, wants, &[3]);
        let probe = |packet: &Packet| packet.chunks.iter().any(|chunk| matches!(chunk, Chunk::Pad(_)));
        let probes: Vec<usize> =
            bench.sent.iter().filter(|sent| probe(&sent.1)).map(|sent| sent.1.size()).collect();
        assert_eq!(probes, [1480], "{wants:?}");
    }
}

/// AUTH with SHA-256 takes 8 + 32 bytes of every packet with DATA: of 1,500, and of what routers leave of it.
//= rfc4895#section-6.1
#[test]
fn authentication_takes_its_place_in_a_packet() {
    let mut bench = peer(with(AUTHENTICATION), &[0], &[3]).bench;
    assert_eq!(bench.view(0).pmdcs, 1500 - 20 - 12 - 40);
    bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), 1000));
    bench.drain();
    assert_eq!(bench.view(0).pmdcs, 1000 - 20 - 12 - 40);
}
