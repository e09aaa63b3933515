//! Addresses that change while the association lives: RFC 5061.

use std::net::{IpAddr, Ipv6Addr};

use anabranch_proto::wire::chunk::{
    Abort, AddressRequest, Asconf, AsconfAck, AsconfParam, Failed, Init, OperationError,
};
use anabranch_proto::wire::{Address, Cause, Chunk, Param};
use anabranch_proto::{
    AddressChange, ChangeError, Config, Event, Extensions, Heartbeats, Incoming, LocalAddress, LostReason,
    Outcome, Pairs, Parameters, PathId, PathParameters, PathState, Tsn,
};
use bytes::Bytes;

use crate::auth::{Peer, authenticated, peer};
use crate::support::bench::{Bench, chunk, ms};
use crate::support::{Weather, World, address, at, secs};
use crate::with;

const ADDRESSES: Extensions = Extensions {
    partial_reliability: false,
    reconfiguration: false,
    authentication: true,
    addresses: true,
    interleaving: false,
    zero_checksum: false,
    timestamps: false,
    ecn: false,
    nr_sack: false,
};

pub(crate) fn request(correlation: u32, address: Address) -> AddressRequest {
    AddressRequest { correlation, address: address.ip }
}

pub(crate) fn asconf(sequence: u32, requests: Vec<AsconfParam>) -> Chunk {
    Chunk::Asconf(Box::new(Asconf { sequence, address: address(0, 1).ip, requests }))
}

/// The peer says chunks that are authentic.
pub(crate) fn say(Peer { bench, key }: &mut Peer, path: usize, chunks: Vec<Chunk>) {
    bench.hear_packet(path, bench.tag, authenticated(key, 0, 3, chunks));
}

pub(crate) fn acks(bench: &mut Bench) -> Vec<AsconfAck> {
    bench.take(|c| if let Chunk::AsconfAck(ack) = c { Some(*ack.clone()) } else { None })
}

/// An endpoint with two addresses and a peer with one; all of the peer's numbers begin with 1.
pub(crate) fn one() -> Peer {
    one_that_adds(address(1, 0))
}

/// The same. The second address is this one.
fn one_that_adds(second: Address) -> Peer {
    let mut peer =
        peer(with(ADDRESSES).with(|parameters| parameters.heartbeat_interval = None), &[0xc1, 0x80], &[3]);
    let local = LocalAddress { address: second, prefix: 24 };
    peer.bench.end.add_address(peer.bench.now, peer.bench.id, local).expect("agreed");
    peer.bench.drain();
    say(&mut peer, 0, vec![Chunk::AsconfAck(Box::new(AsconfAck { sequence: 1, responses: vec![] }))]);
    peer.bench.sent.clear();
    peer
}

/// The peer adds an address: the path is asked for a sign of life, and carries nothing before; then it is made the
/// primary, and the old one deleted. Each answer goes to where the request came from; asked again, it is the same.
//= rfc5061#section-4.2.1
//= rfc5061#section-4.2.2
//= rfc5061#section-4.2.4
//= rfc5061#section-5.2
//= rfc5061#section-5.3
#[test]
fn the_peer_moves() {
    let mut peer = one();
    let add = || asconf(1, vec![AsconfParam::Add(request(5, address(1, 1)))]);
    say(&mut peer, 0, vec![add()]);
    assert_eq!(acks(&mut peer.bench), [AsconfAck { sequence: 1, responses: vec![] }]);
    say(&mut peer, 0, vec![add()]);
    assert_eq!(acks(&mut peer.bench), [AsconfAck { sequence: 1, responses: vec![] }], "a replay");
    let view = peer.bench.view(1);
    assert_eq!((view.state, view.local, view.remote), (PathState::Unconfirmed, address(1, 0), address(1, 1)));
    let added = Event::PeerAddress { address: address(1, 1), change: AddressChange::Added };
    assert_eq!(peer.bench.events.iter().filter(|(_, e)| *e == added).count(), 1);
    peer.bench.answer_heartbeats(|path| path == 1);
    assert_eq!(peer.bench.view(1).state, PathState::Active);
    peer.bench.send(1, 1000);
    let both = vec![
        AsconfParam::SetPrimary(request(6, address(1, 1))),
        AsconfParam::Delete(request(7, address(0, 1))),
    ];
    say(&mut peer, 1, vec![asconf(2, both)]);
    assert_eq!(peer.bench.view(0).state, PathState::Removed);
    assert!(peer.bench.view(1).primary && !peer.bench.view(0).primary);
    let to =
        peer.bench.sent.iter().find(|(_, p, _)| p.chunks.iter().any(|c| matches!(c, Chunk::AsconfAck(_))));
    assert_eq!(to.expect("an answer").1.to, address(1, 1));
    let loads = peer.bench.loads();
    assert_eq!(loads, [(0, 0, vec![1]), (0, 1, vec![1])], "what was in flight goes the new way");
    peer.bench.pass(ms(60_000));
    assert!(
        peer.bench.sent.iter().all(|(_, packet, _)| packet.to == address(1, 1)),
        "nothing to the old one"
    );
}

/// An address that comes back gets the place that it had, another a place of its own; who has none is asked nothing.
//= rfc5061#section-5.3
#[test]
fn the_peer_moves_and_comes_back() {
    let mut peer = one();
    let add = |sequence, path| asconf(sequence, vec![AsconfParam::Add(request(sequence, address(path, 1)))]);
    say(&mut peer, 0, vec![add(1, 1)]);
    peer.bench.answer_heartbeats(|_| true);
    say(&mut peer, 1, vec![asconf(2, vec![AsconfParam::Delete(request(2, address(0, 1)))])]);
    say(&mut peer, 1, vec![add(3, 2), add(4, 0)]);
    let places: Vec<_> = peer.bench.paths().iter().map(|view| (view.remote, view.state)).collect();
    let unconfirmed = PathState::Unconfirmed;
    let expected =
        [(address(0, 1), unconfirmed), (address(1, 1), PathState::Active), (address(2, 1), unconfirmed)];
    assert_eq!(places, expected);
    assert!(peer.bench.view(1).primary && !peer.bench.view(0).primary);
}

/// The unspecified address stands for that of the packet, or all but it.
//= rfc5061#section-4.2.1
//= rfc5061#section-4.2.2
#[test]
fn the_address_of_the_packet() {
    let mut peer = one();
    let any = Address::ip(std::net::Ipv4Addr::UNSPECIFIED.into());
    say(&mut peer, 1, vec![asconf(1, vec![AsconfParam::Add(request(1, any))])]);
    assert_eq!(peer.bench.view(1).remote, address(1, 1));
    say(&mut peer, 1, vec![asconf(2, vec![AsconfParam::Delete(request(1, any))])]);
    assert_eq!(
        peer.bench.paths().iter().map(|p| p.state).collect::<Vec<_>>(),
        [PathState::Removed, PathState::Unconfirmed]
    );
}

/// What is refused, and why: the last address, that of the packet, an address that is none, one too many; after a
/// refusal no later address of the same chunk is changed. A primary that is not the peer's is no primary.
//= rfc5061#section-5.3
//= rfc5061#section-4.2.3
//= rfc5061#section-4.3.1
//= rfc5061#section-4.3.3
#[test]
fn what_is_refused() {
    let mut peer = one();
    let broadcast = Address::ip(std::net::Ipv4Addr::BROADCAST.into());
    let cases = [
        vec![AsconfParam::Delete(request(9, address(0, 1)))],
        vec![AsconfParam::Add(request(9, broadcast)), AsconfParam::Add(request(9, address(1, 1)))],
        vec![AsconfParam::SetPrimary(request(9, address(1, 1)))],
        vec![AsconfParam::Unknown { kind: 0xc0ff, value: Bytes::from_static(&[0, 0, 0, 9]) }],
        vec![AsconfParam::Unknown { kind: 0x80ff, value: Bytes::from_static(&[0, 0, 0, 9]) }],
        vec![AsconfParam::Add(request(9, address(1, 1))), AsconfParam::Delete(request(9, address(0, 1)))],
    ];
    let mut answers = Vec::new();
    for (n, case) in cases.into_iter().enumerate() {
        say(&mut peer, 0, vec![asconf(1 + n as u32, case)]);
        answers.push(acks(&mut peer.bench).remove(0).responses);
    }
    let why = |answer: &AsconfParam| match answer {
        AsconfParam::Failed(Failed { correlation: 9, causes }) => causes[0].number(),
        other => panic!("{other:?}"),
    };
    let whys: Vec<Vec<u16>> = answers.iter().map(|answer| answer.iter().map(why).collect()).collect();
    assert_eq!(whys, [vec![0xa0], vec![0xa4, 0xa1], vec![5], vec![8], vec![], vec![0xa2]]);
    assert_eq!(peer.bench.paths().len(), 2, "only the last was added");
}

/// Hundreds of addresses: 32 are kept. Of 69 refusals, 50 fit the answer; behind them, no response means refused.
//= rfc5061#section-4.3.2
//= rfc5061#section-5.1
#[test]
fn too_many_addresses() {
    let mut peer = one();
    let many = (0..100u8).map(|n| {
        let ip = std::net::Ipv4Addr::new(10, 0, 1, 100 + n);
        AsconfParam::Add(AddressRequest { correlation: n.into(), address: ip.into() })
    });
    say(&mut peer, 0, vec![asconf(1, many.collect())]);
    assert_eq!((peer.bench.paths().len(), acks(&mut peer.bench)[0].responses.len()), (32, 50));
}

/// An ASCONF without AUTH, or with a wrong one, changes nothing and is not answered, and what is behind it in the
/// packet is thrown away; nor is one out of turn answered.
//= rfc5061#section-4.1.1
//= rfc5061#section-5.2
#[test]
fn a_forged_asconf() {
    let mut peer = one();
    let add = |sequence| asconf(sequence, vec![AsconfParam::Add(request(1, address(1, 1)))]);
    let tag = peer.bench.tag;
    peer.bench.hear_packet(0, tag, [add(1), chunk(1, 10)]);
    peer.bench.hear_packet(0, tag, authenticated(b"no key", 0, 3, vec![add(1), chunk(1, 10)]));
    say(&mut peer, 0, vec![add(0)]);
    say(&mut peer, 0, vec![add(2)]);
    peer.bench.pass(ms(300));
    assert_eq!((peer.bench.paths().len(), acks(&mut peer.bench), peer.bench.sacks().len()), (1, vec![], 0));
    say(&mut peer, 0, vec![add(1), chunk(1, 10)]);
    peer.bench.pass(ms(300));
    assert_eq!((peer.bench.paths().len(), acks(&mut peer.bench).len(), peer.bench.sacks().len()), (2, 1, 1));
}

/// Without agreement it is not understood: passed over and reported.
#[test]
fn asconf_without_agreement() {
    let mut bench = Bench::new(with(ADDRESSES), 1);
    bench.hear_packet(0, bench.tag, [asconf(1, vec![]), chunk(1, 10)]);
    let errors = bench.take(|c| if let Chunk::Error(error) = c { Some(error.causes.clone()) } else { None });
    assert!(matches!(errors[0][..], [Cause::UnrecognizedChunk(_)]));
    let local = LocalAddress { address: address(1, 0), prefix: 24 };
    assert_eq!(bench.end.add_address(bench.now, bench.id, local), Err(ChangeError::NotAgreed));
}

/// ASCONF goes again after the RTO, every other time from the address that it adds, and counts as an error; an answer
/// that was refused is told; one to a question never asked ends the association.
//= rfc5061#section-5.1
//= rfc5061#section-4.3.4
#[test]
fn asking() {
    let Peer { mut bench, key } = peer(with(ADDRESSES), &[0xc1, 0x80], &[3]);
    let local = LocalAddress { address: address(1, 0), prefix: 24 };
    bench.end.add_address(bench.now, bench.id, local).expect("agreed");
    bench.drain();
    bench.pass(ms(3000));
    let of = |packet: &anabranch_proto::wire::Packet| {
        packet.chunks.iter().any(|c| matches!(c, Chunk::Asconf(asconf) if asconf.sequence == 1))
    };
    let sent = bench.sent.iter().filter(|(_, packet, _)| of(packet));
    let sent: Vec<_> = sent.map(|(at, p, _)| (at.as_nanos() / 1_000_000_000, p.from)).collect();
    assert_eq!(sent, [(0, address(0, 0)), (1, address(1, 0)), (3, address(0, 0))]);
    assert_eq!(bench.view(0).errors, 2);
    let mut peer = Peer { bench, key };
    let refused = AsconfParam::Failed(Failed { correlation: 1, causes: vec![Cause::OutOfResource] });
    say(&mut peer, 0, vec![Chunk::AsconfAck(Box::new(AsconfAck { sequence: 1, responses: vec![refused] }))]);
    let denied = Event::LocalAddress {
        address: address(1, 0),
        change: AddressChange::Added,
        outcome: Outcome::Denied,
    };
    assert_eq!((&peer.bench.events.last().expect("one").1, peer.bench.view(0).errors), (&denied, 0));
    let only = peer.bench.end.remove_address(peer.bench.now, peer.bench.id, address(0, 0));
    assert_eq!(only, Err(ChangeError::Invalid), "the last");
    say(&mut peer, 0, vec![Chunk::AsconfAck(Box::new(AsconfAck { sequence: 1, responses: vec![] }))]);
    assert_eq!(peer.bench.events.last().expect("one").1, denied, "an old one");
    say(&mut peer, 0, vec![Chunk::AsconfAck(Box::new(AsconfAck { sequence: 2, responses: vec![] }))]);
    assert_eq!(peer.bench.events.last().expect("one").1, Event::Lost(LostReason::ProtocolViolation));
}

/// An address stays if the association would have no path without it: the other one is of a family that the peer does not have, or down.
//= rfc5061#section-5.3
#[test]
fn an_address_without_which_there_is_no_path() {
    let ipv6 = Address::ip(IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)));
    for (other, up) in [(ipv6, true), (address(1, 0), false)] {
        let Peer { mut bench, .. } = one_that_adds(other);
        bench.end.handle(bench.now, Incoming::Up(other, up));
        let removed = bench.end.remove_address(bench.now, bench.id, address(0, 0));
        assert_eq!(removed, Err(ChangeError::Invalid), "{other:?}");
        bench.send(1, 100);
        assert_eq!(bench.loads(), [(0, 0, vec![1])]);
    }
}

/// The peer keeps an address that we wanted to remove: its paths are there again. An address is asked for once: otherwise the second answer
/// could bring it back after its removal.
//= rfc5061#section-5.3
#[test]
fn a_removal_that_is_refused() {
    for pairs in [Pairs::OnePerPeer, Pairs::All] {
        let config = Config { pairs: pairs.clone(), ..with(ADDRESSES) };
        let mut peer =
            peer(config.with(|parameters| parameters.heartbeat_interval = None), &[0xc1, 0x80], &[3]);
        let ack = |peer: &mut Peer, sequence, responses| {
            say(peer, 0, vec![Chunk::AsconfAck(Box::new(AsconfAck { sequence, responses }))]);
        };
        let second = LocalAddress { address: address(1, 0), prefix: 24 };
        let add = |peer: &mut Peer| peer.bench.end.add_address(peer.bench.now, peer.bench.id, second);
        assert_eq!([add(&mut peer), add(&mut peer)], [Ok(()), Err(ChangeError::Invalid)], "once");
        peer.bench.drain();
        ack(&mut peer, 1, vec![]);
        let live = |peer: &Peer| {
            let live = peer.bench.paths().iter().filter(|path| path.state != PathState::Removed);
            live.map(|path| path.local).collect::<Vec<_>>()
        };
        let before = live(&peer);
        peer.bench.end.remove_address(peer.bench.now, peer.bench.id, address(1, 0)).expect("known");
        let rest = peer.bench.end.remove_address(peer.bench.now, peer.bench.id, address(0, 0));
        assert_eq!(rest, Err(ChangeError::Invalid), "the last");
        peer.bench.drain();
        let refused = AsconfParam::Failed(Failed { correlation: 2, causes: vec![Cause::OutOfResource] });
        ack(&mut peer, 2, vec![refused]);
        let denied = Event::LocalAddress {
            address: address(1, 0),
            change: AddressChange::Removed,
            outcome: Outcome::Denied,
        };
        assert!(peer.bench.events.iter().any(|(_, event)| *event == denied));
        assert_eq!(live(&peer), before, "{pairs:?}");
    }
}

/// An ABORT to an address that is being deleted is ignored; to another it ends the association.
//= rfc5061#section-5.3
//= rfc5061#section-5.3.1
#[test]
fn an_abort_to_a_deleted_address() {
    let mut peer = one();
    let lost = |peer: &Peer| peer.bench.events.iter().any(|(_, event)| matches!(event, Event::Lost(_)));
    peer.bench.end.remove_address(peer.bench.now, peer.bench.id, address(0, 0)).expect("agreed");
    peer.bench.drain();
    let abort = || [Chunk::Abort(Abort::default())];
    let tag = peer.bench.tag;
    peer.bench.hear_packet(0, tag, abort());
    assert!(!lost(&peer));
    peer.bench.hear_packet(1, tag, abort());
    assert!(lost(&peer));
}

/// A host moves from one network to another in the midst of a transfer: it adds the new address, asks to be sent to
/// there, and deletes the old one after the old network has gone. Everything arrives, once and in order.
#[test]
fn a_handover() {
    for pairs in [Pairs::OnePerPeer, Pairs::All] {
        let config = Config { pairs: pairs.clone(), ..with(ADDRESSES) }
            .with(|parameters| parameters.rto_min = ms(100));
        let weather = vec![Weather::fair(ms(20)); 2];
        let mut world = World::new([at(0, 1, &config), at(1, 2, &config)], weather, 1);
        world.wire = true;
        let id = world.ends[0].connect(world.now, 5001, &[address(0, 1)]).expect("a path");
        world.drain(0);
        world.run(secs(0.5));
        let peer = world.up(1).expect("up");
        for n in 0..300 {
            let now = world.now;
            let local = LocalAddress { address: address(1, 0), prefix: 24 };
            match n {
                20 => world.ends[0].add_address(now, id, local).expect("agreed"),
                100 => world.ends[0].set_peer_primary(now, id, address(1, 0)).expect("agreed"),
                120 => world.weather[0].up = false,
                150 => world.ends[0].remove_address(now, id, address(0, 0)).expect("agreed"),
                _ => {}
            }
            world.drain(0);
            world.give(0, id, 1000 + n);
            world.give(1, peer, 2000 + n);
            world.run(world.now + ms(50));
        }
        world.run(secs(120.0));
        assert_eq!(
            world.take(1),
            (0..300).map(|n| 1000 + n).collect::<Vec<_>>(),
            "{pairs:?} {:?} {:?}",
            world.events,
            world.ends[1].paths(peer)
        );
        assert_eq!(world.take(0), (0..300).map(|n| 2000 + n).collect::<Vec<_>>(), "{pairs:?}");
        let removed = Event::PeerAddress { address: address(0, 0), change: AddressChange::Removed };
        assert!(world.happened(1, &removed), "{pairs:?}");
        let live: Vec<_> =
            world.ends[1].paths(peer).iter().filter(|p| p.state == PathState::Active).collect();
        assert!(live.iter().all(|p| p.remote == address(1, 0)) && !live.is_empty());
        // And back again: the same pair is the same path.
        world.weather[0].up = true;
        let before = world.ends[1].paths(peer).len();
        for address in [address(0, 0), address(1, 0), address(0, 0), address(1, 0)] {
            let local = LocalAddress { address, prefix: 24 };
            let other = crate::support::address(1 - usize::from(address == crate::support::address(1, 0)), 0);
            let _ = world.ends[0].add_address(world.now, id, local);
            world.drain(0);
            world.run(world.now + ms(10_000));
            let _ = world.ends[0].remove_address(world.now, id, other);
            world.drain(0);
            world.run(world.now + ms(10_000));
        }
        assert!(world.ends[1].paths(peer).len() <= before + 1, "{:?}", world.ends[1].paths(peer).len());
        world.give(0, id, 77);
        world.run(world.now + ms(10_000));
        assert_eq!(world.take(1), [77]);
    }
}

/// An address that another association has stays its: naming it in an ASCONF takes no packets away.
#[test]
fn an_address_of_another() {
    let config = with(ADDRESSES);
    let (mut world, _) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    assert_eq!(world.ends[1].paths(peer).len(), 2);
    assert!(world.ends[1].connect(world.now, 5000, &[address(0, 0)]).is_err(), "known by both addresses");
}

/// A request behind one that failed is said to have succeeded: without that, the peer takes it for failed. An unknown parameter whose type
/// begins with 0 hides what is behind it.
//= rfc5061#section-5.1
//= rfc9260#section-3.2.1
#[test]
fn behind_a_failure_and_behind_what_is_unknown() {
    let mut peer = one();
    let unknown = |kind| AsconfParam::Unknown { kind, value: Bytes::from_static(&[0, 0, 0, 9]) };
    let add = |path| AsconfParam::Add(request(7, address(path, 1)));
    let failed = |cause: fn(Bytes) -> Cause, param: AsconfParam| {
        let causes = vec![cause(param.to_bytes().expect("short"))];
        AsconfParam::Failed(Failed { correlation: 9, causes })
    };
    let primary = AsconfParam::SetPrimary(request(9, address(3, 1)));
    let cases = [
        (
            vec![primary.clone(), unknown(0x80ff), add(1)],
            vec![failed(Cause::UnresolvableAddress, primary), AsconfParam::Succeeded(7)],
        ),
        (vec![unknown(0x40ff), add(2)], vec![failed(Cause::UnrecognizedParameters, unknown(0x40ff))]),
        (vec![unknown(0x00ff), add(2)], vec![]),
        (
            vec![add(1), unknown(0xc0ff), add(2)],
            vec![failed(Cause::UnrecognizedParameters, unknown(0xc0ff)), AsconfParam::Succeeded(7)],
        ),
    ];
    for (n, (requests, responses)) in cases.into_iter().enumerate() {
        let before = peer.bench.paths().len();
        let sequence = 1 + n as u32;
        say(&mut peer, 0, vec![asconf(sequence, requests)]);
        assert_eq!(acks(&mut peer.bench), [AsconfAck { sequence, responses }]);
        assert_eq!(peer.bench.paths().len() - before, usize::from(n == 0 || n == 3), "case {n}");
    }
}

/// A peer that does not know ASCONF after all, or cannot add addresses, is asked for nothing of the kind any more; what waited is denied.
//= rfc5061#section-5.1
//= rfc5061#section-5.3
#[test]
fn a_peer_that_does_not_understand() {
    for chunk in [true, false] {
        let Peer { mut bench, key } = peer(with(ADDRESSES), &[0xc1, 0x80], &[3]);
        let local = |path| LocalAddress { address: address(path, 0), prefix: 24 };
        for path in [1, 2] {
            bench.end.add_address(bench.now, bench.id, local(path)).expect("agreed");
        }
        bench.drain();
        let [sent] = &bench.take(|c| if let Chunk::Asconf(a) = c { Some(*a.clone()) } else { None })[..]
        else {
            panic!("not one ASCONF");
        };
        let mut peer = Peer { bench, key };
        let answer = match chunk {
            true => {
                let bytes = Chunk::Asconf(Box::new(sent.clone())).to_bytes().expect("short");
                Chunk::Error(OperationError { causes: vec![Cause::UnrecognizedChunk(bytes)] })
            }
            false => {
                let causes = vec![Cause::UnrecognizedParameters(sent.requests[0].to_bytes().expect("short"))];
                let responses = vec![AsconfParam::Failed(Failed { correlation: 1, causes })];
                Chunk::AsconfAck(Box::new(AsconfAck { sequence: 1, responses }))
            }
        };
        say(&mut peer, 0, vec![answer]);
        let bench = &mut peer.bench;
        let (change, outcome) = (AddressChange::Added, Outcome::Denied);
        for path in [1, 2] {
            let denied = Event::LocalAddress { address: address(path, 0), change, outcome };
            assert!(bench.events.iter().any(|(_, event)| *event == denied), "{:?}", bench.events);
        }
        let not = Err(ChangeError::NotAgreed);
        assert_eq!(bench.end.add_address(bench.now, bench.id, local(1)), not);
        let primary = bench.end.set_peer_primary(bench.now, bench.id, address(0, 0));
        assert_eq!(primary, if chunk { not } else { Ok(()) });
        bench.pass(ms(20_000));
        let asks = |c: &Chunk| matches!(c, Chunk::Asconf(a) if matches!(a.requests[0], AsconfParam::Add(_)));
        assert!(bench.take(|c| asks(c).then_some(())).is_empty());
    }
}

/// A packet from an address that the peer has deleted is out of the blue, except for the ASCONF that adds the address again.
//= rfc5061#section-5.3
#[test]
fn a_packet_from_a_deleted_address() {
    let mut peer = one();
    say(&mut peer, 0, vec![asconf(1, vec![AsconfParam::Add(request(1, address(1, 1)))])]);
    peer.bench.answer_heartbeats(|_| true);
    say(&mut peer, 1, vec![asconf(2, vec![AsconfParam::Delete(request(2, address(0, 1)))])]);
    peer.bench.sent.clear();
    peer.bench.data(1, 10);
    let [(_, packet, _)] = &peer.bench.sent[..] else { panic!("{:?}", peer.bench.sent) };
    assert_eq!((packet.to, packet.tag), (address(0, 1), peer.bench.tag));
    assert_eq!(packet.chunks[..], [Chunk::Abort(Abort { reflected: true, causes: vec![] })]);
    assert!(peer.bench.end.read(peer.bench.now, peer.bench.id).is_none());
    say(&mut peer, 0, vec![asconf(3, vec![AsconfParam::Add(request(3, address(0, 1)))])]);
    assert_eq!(peer.bench.view(0).state, PathState::Unconfirmed);
    peer.bench.data(1, 10);
    assert!(peer.bench.end.read(peer.bench.now, peer.bench.id).is_some());
}

/// Whatever the user asks for later, nothing is sent to an address that the peer has deleted, and the size of its packets no longer counts.
//= rfc5061#section-5.3
//= rfc9260#section-7.3
#[test]
fn nothing_goes_to_a_deleted_address() {
    let mut peer = one();
    say(&mut peer, 0, vec![asconf(1, vec![AsconfParam::Add(request(1, address(1, 1)))])]);
    peer.bench.answer_heartbeats(|_| true);
    let size = |bench: &Bench| bench.end.status(bench.id).expect("it is up").fragmentation_point;
    let before = size(&peer.bench);
    peer.bench.end.handle(peer.bench.now, Incoming::TooBig(address(0, 1), 1000));
    peer.bench.drain();
    assert_eq!(size(&peer.bench), before - 500);
    say(&mut peer, 1, vec![asconf(2, vec![AsconfParam::Delete(request(2, address(0, 1)))])]);
    let Bench { end, id, now, sent, .. } = &mut peer.bench;
    assert_eq!(end.status(*id).expect("it is up").fragmentation_point, before);
    sent.clear();
    let often = PathParameters { heartbeats: Heartbeats::Every(ms(1000)), ..PathParameters::default() };
    let known = [
        end.heartbeat(*now, *id, PathId(0)),
        end.set_primary(*now, *id, PathId(0)),
        end.configure_path(*now, *id, PathId(0), often),
    ];
    assert_eq!(known, [false; 3]);
    let parameters =
        Parameters { heartbeat_interval: Some(ms(1000)), ..end.config_of(*id).expect("up").parameters };
    end.reconfigure(*now, *id, parameters).expect("usable");
    peer.bench.drain();
    peer.bench.pass(ms(30_000));
    assert!(!peer.bench.sent.is_empty());
    assert!(peer.bench.sent.iter().all(|(_, packet, _)| packet.to == address(1, 1)), "{:?}", peer.bench.sent);
}

/// The answer to an ASCONF goes to its source, also if that is none of the peer's addresses: a request to delete the only one is refused.
//= rfc5061#section-5.2
#[test]
fn an_answer_to_an_address_on_no_path() {
    let Peer { mut bench, key } = one();
    let chunks = vec![asconf(1, vec![AsconfParam::Delete(request(5, address(0, 1)))])];
    bench.hear_from(address(7, 1), authenticated(&key, 0, 3, chunks));
    let sent = |bench: &Bench| bench.sent.iter().map(|sent| (sent.1.from, sent.1.to)).collect::<Vec<_>>();
    assert_eq!(sent(&bench), [(address(0, 0), address(7, 1))]);
    assert!(matches!(bench.sent[0].1.chunks[0], Chunk::Auth(_)), "it is authentic");
    let [ack] = &acks(&mut bench)[..] else { panic!("one answer") };
    assert!(matches!(&ack.responses[..], [AsconfParam::Failed(Failed { correlation: 5, .. })]), "{ack:?}");
}

/// Refusals of 28 bytes: with AUTH, a packet of 1,500 bytes has room for 50, and for two successes behind them. The third address would
/// count as refused, so it is not added.
//= rfc5061#section-5.1
#[test]
fn an_answer_fits_the_path() {
    let mut peer = one();
    let strange = (0..60).map(|n| AsconfParam::SetPrimary(request(n, address(9, 1))));
    let add = (1..4).map(|path| AsconfParam::Add(request(100 + path, address(path as usize, 1))));
    say(&mut peer, 0, vec![asconf(1, strange.chain(add).collect())]);
    let answer =
        peer.bench.sent.iter().find(|sent| sent.1.chunks.iter().any(|c| matches!(c, Chunk::AsconfAck(_))));
    let size = answer.expect("an answer").1.size() + 20;
    assert!((1480..=1500).contains(&size), "{size}");
    let [ack] = &acks(&mut peer.bench)[..] else { panic!("one answer") };
    let failed = ack.responses.iter().filter(|response| matches!(response, AsconfParam::Failed(_))).count();
    assert_eq!(
        (failed, &ack.responses[50..]),
        (50, &[AsconfParam::Succeeded(101), AsconfParam::Succeeded(102)][..])
    );
    let known = |address| peer.bench.paths().iter().any(|view| view.remote == address);
    assert_eq!([1, 2, 3].map(|path| known(address(path, 1))), [true, true, false]);
}

/// A request that fills its packet: the refusal quotes as much of it as fits.
//= rfc5061#section-5.1
#[test]
fn a_refusal_of_a_large_request() {
    let mut peer = one();
    let value = Bytes::from(vec![0; 1450]);
    say(&mut peer, 0, vec![asconf(1, vec![AsconfParam::Unknown { kind: 0xc0ff, value }])]);
    assert!(peer.bench.sent.iter().all(|sent| sent.1.size() + 20 <= 1500));
    let [ack] = &acks(&mut peer.bench)[..] else { panic!("one answer") };
    assert!(matches!(&ack.responses[..], [AsconfParam::Failed(_)]));
}

/// An address for which no path can be made is refused and forgotten. A peer that restarts may not bring it.
//= rfc5061#section-5.3
//= rfc9260#section-5.2.2
#[test]
fn an_address_that_is_refused_is_not_the_peers() {
    let config = Config { pairs: Pairs::Listed(vec![(address(0, 0), address(0, 1))]), ..with(ADDRESSES) };
    let mut peer = peer(config, &[0xc1, 0x80], &[3]);
    say(&mut peer, 0, vec![asconf(1, vec![AsconfParam::Add(request(1, address(5, 1)))])]);
    let [ack] = &acks(&mut peer.bench)[..] else { panic!("one answer") };
    assert!(matches!(&ack.responses[..], [AsconfParam::Failed(_)]));
    let IpAddr::V4(other) = address(5, 1).ip else { panic!("IPv4") };
    let params = vec![Param::Ipv4(other)];
    let init = Init { tag: 5, a_rwnd: 5000, outbound: 1, inbound: 1, tsn: Tsn(1), params };
    peer.bench.hear_packet(0, 0, [Chunk::Init(Box::new(init))]);
    let answers =
        peer.bench.take(|c| if let Chunk::Abort(abort) = c { Some(abort.causes.clone()) } else { None });
    assert!(matches!(&answers[..], [causes] if matches!(causes[..], [Cause::RestartWithNewAddresses(_)])));
}
