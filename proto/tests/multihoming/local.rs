//! What only this end knows: its own interface is down; and where the peer's packets come from.

use anabranch_proto::wire::chunk::Heartbeat;
use anabranch_proto::wire::{Address, Chunk, Packet, Ports, Quoted};
use anabranch_proto::{Endpoint, Event, Incoming, LostReason, Output, PathState, Policies, Time};

use crate::support::bench::{Bench, FULL, at_ms, era, ms};
use crate::support::{PORT, World, address, at, secs};

/// RTO is 1 s, the round trip 100 ms. Two packets are under way on the primary when the system says that its
/// address cannot send: what is given next takes the other path at once, T3-rtx at 1.1 s sends the two again
/// there, no error is counted, and with the address the primary is back.
//= rfc9260#section-6.4
#[test]
fn an_own_interface_down_is_no_error_of_the_path() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
    bench.send(2, FULL);
    bench.up(0, false);
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(100, 0, vec![1]), (100, 0, vec![2]), (100, 1, vec![3])]);
    bench.until(at_ms(1100));
    assert_eq!(bench.loads(), [(1100, 1, vec![1])], "a timeout lets one packet go");
    bench.sack(1, &[(3, 3)]);
    assert_eq!(bench.loads(), [(1100, 1, vec![2])]);
    bench.sack(3, &[]);
    assert_eq!((bench.view(0).errors, bench.view(0).state), (0, PathState::Active));
    bench.up(0, true);
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(1100, 0, vec![4])]);
}

/// No heartbeat leaves where none can; the one that was due follows when it can. One that was under way when
/// the interface went down is no error.
#[test]
fn heartbeats_wait_for_the_interface() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
    bench.until(at_ms(31_200));
    let asked: Vec<u16> = bench.heartbeats().iter().map(|heartbeat| heartbeat.1).collect();
    assert_eq!(asked, [0, 1]);
    bench.up(1, false);
    bench.until(at_ms(200_000));
    assert!(bench.heartbeats().iter().all(|heartbeat| heartbeat.1 == 0));
    assert_eq!((bench.view(1).errors, bench.view(1).state), (0, PathState::Active));
    assert!(bench.view(0).errors > 0);
    bench.up(1, true);
    assert_eq!(bench.heartbeats().len(), 1);
}

/// The peer's second address does not answer our second, is asked from our first at 3 s and does: both paths go
/// from there. An answer to what was asked from the second verifies nothing then. When the first is down, both go
/// from the second, one with data at once, the other once it has been verified. What was measured from the first, and
/// what a router there said of the size of packets, does not hold there.
//= rfc9260#section-5.4
#[test]
fn when_no_path_is_left_they_go_from_another_address() {
    let mut bench = Bench::new(era("rfc9260").with(|parameters| parameters.heartbeat_max_burst = 3), 2);
    let locals = |bench: &Bench| [bench.view(0).local, bench.view(1).local];
    bench.until(at_ms(3000));
    assert_eq!(locals(&bench), [address(0, 0); 2]);
    let [(_, _, late), .., (_, _, right)] = &bench.heartbeats()[..] else {
        panic!("it is asked more than once")
    };
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(late.clone())));
    assert_eq!(bench.view(1).state, PathState::Unconfirmed, "that was asked from the second");
    bench.hear(Chunk::HeartbeatAck(Heartbeat::new(right.clone())));
    assert_eq!((bench.view(1).state, locals(&bench)), (PathState::Active, [address(0, 0); 2]));
    bench.end.handle(bench.now, Incoming::TooBig(address(0, 1), 1000));
    bench.drain();
    assert_eq!((bench.view(0).pmdcs, bench.view(1).srtt.is_some()), (968, true));
    bench.up(0, false);
    assert_eq!(locals(&bench), [address(1, 0); 2]);
    assert_eq!((bench.view(0).pmdcs, bench.view(1).srtt, bench.view(1).min_rtt), (1468, None, None));
    assert_eq!([bench.view(0).state, bench.view(1).state], [PathState::Active, PathState::Unconfirmed]);
    bench.send(1, FULL);
    assert_eq!(bench.loads(), [(3000, 0, vec![1])]);
    bench.answer_heartbeats(|path| path == 1);
    assert_eq!(bench.view(1).state, PathState::Active);
}

/// An address that goes while another path carries is waited for, and so is one without which there is none.
#[test]
fn addresses_without_another_are_waited_for() {
    let mut bench = Bench::confirmed(era("rfc9260"), 2, ms(100));
    bench.up(1, false);
    bench.up(0, false);
    bench.send(1, FULL);
    let locals = [bench.view(0).local, bench.view(1).local];
    assert_eq!((locals, bench.loads()), ([address(0, 0), address(1, 0)], vec![]));
    bench.up(1, true);
    assert_eq!(bench.loads(), [(100, 1, vec![1])]);
}

fn port(path: usize, side: usize, udp: u16) -> Address {
    Address { udp, ..address(path, side) }
}

/// A NAT gives the peer's second address another port in the middle of the association: every packet with the
/// right tag says so, and what is sent to that address follows it; the first address is left alone.
//= rfc6951#section-5.4
#[test]
fn the_udp_port_of_a_peer_address_is_followed() {
    let config = era("rfc9260");
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    let peer = world.up(1).expect("up");
    let tag = tag_to(&world, 1);
    let heard = |world: &mut World, tag, udp| {
        let mut packet = world.log.iter().rev().find(|l| l.side == 0).expect("a packet").packet.clone();
        (packet.from, packet.to, packet.tag) = (port(1, 0, udp), address(1, 1), tag);
        packet.chunks = [Chunk::Heartbeat(Heartbeat::new(&b"is it me"[..]))].into_iter().collect();
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(packet)));
        world.drain(1);
    };
    heard(&mut world, tag, 4000);
    let remotes = |world: &World| world.ends[1].paths(peer).iter().map(|p| p.remote).collect::<Vec<_>>();
    assert_eq!(remotes(&world), [address(0, 0), port(1, 0, 4000)]);
    let sizes = |world: &World| world.ends[1].paths(peer).iter().map(|p| p.pmdcs).collect::<Vec<_>>();
    assert_eq!(sizes(&world), [1468, 1460], "the header of UDP takes room");
    assert_eq!(world.log.last().expect("the answer").packet.to, port(1, 0, 4000));
    heard(&mut world, tag ^ 1, 4001);
    assert_eq!(remotes(&world)[1], port(1, 0, 4000), "a wrong tag says nothing");
    heard(&mut world, tag, 0);
    assert_eq!(remotes(&world)[1], address(1, 0), "and without UDP the encapsulation ends");
    assert_eq!(sizes(&world), [1468; 2]);
    assert!(!world.happened(0, &Event::Restart) && world.ends[0].paths(id).len() == 2);
}

/// The UDP port of a peer has changed. When the peer restarts, its address is no new one.
//= rfc6951#section-5.4
//= rfc9260#section-5.2.2
#[test]
fn a_restart_from_another_udp_port() {
    let config = era("rfc9260");
    let (mut world, _) = World::joined([&config, &config], 1);
    world.run(secs(1.0));
    let tag = tag_to(&world, 1);
    let init = world.log[0].packet.chunks[0].clone();
    let beat = Chunk::Heartbeat(Heartbeat::new(&b"is it me"[..]));
    for (tag, chunk) in [(tag, beat), (0, init)] {
        let mut packet = world.log[0].packet.clone();
        (packet.from, packet.tag) = (port(0, 0, 4000), tag);
        packet.chunks = [chunk].into_iter().collect();
        world.ends[1].handle(world.now, Incoming::Packet(Box::new(packet)));
        world.drain(1);
    }
    let answer = &world.log.last().expect("an answer").packet;
    assert!(matches!(answer.chunks[0], Chunk::InitAck(_)), "{answer:?}");
}

/// The tag of the packets that a side takes.
fn tag_to(world: &World, side: usize) -> u32 {
    world.log.iter().rev().find(|left| left.side != side).expect("a packet").packet.tag
}

/// Set-up asks the first address; an ICMP error ends it there if it quotes our INIT, and the second is asked at once.
/// When nothing listens there either, set-up is over, at the first moment still.
//= rfc9260#section-10
//= rfc6951#section-5.5
#[test]
fn an_unreachable_port_ends_set_up_on_its_address() {
    let config = at(0, 2, &era("rfc9260"));
    let mut end = Endpoint::new(config, Policies::default(), [1; 32]).expect("a usable configuration");
    let drain = |end: &mut Endpoint| -> (Vec<Packet>, Vec<Event>) {
        let (mut packets, mut events) = (vec![], vec![]);
        loop {
            match end.poll(Time::ZERO) {
                Output::Transmit(packet, _) => packets.push(*packet),
                Output::Event(_, event) => events.push(event),
                Output::Note(_) => {}
                Output::Wait(_) => return (packets, events),
            }
        }
    };
    let says = |end: &mut Endpoint, path, quoted| {
        end.handle(Time::ZERO, Incoming::Unreachable(address(path, 1), quoted));
        drain(end)
    };
    end.connect(Time::ZERO, PORT + 1, &[address(0, 1), address(1, 1)]).expect("a path");
    let (sent, _) = drain(&mut end);
    let [Chunk::Init(init)] = &sent[0].chunks[..] else { panic!("{sent:?}") };
    let ports = Ports { source: PORT, destination: PORT + 1 };
    let right = Quoted { ports, tag: 0, initiate_tag: Some(init.tag) };
    let wrong = [
        Quoted { initiate_tag: Some(init.tag ^ 1), ..right },
        Quoted { initiate_tag: None, ..right },
        Quoted { tag: init.tag, ..right },
        Quoted { ports: ports.reversed(), ..right },
    ];
    for forged in wrong {
        assert_eq!(says(&mut end, 0, forged), (vec![], vec![]), "{forged:?}");
    }
    let (sent, events) = says(&mut end, 0, right);
    assert_eq!(sent.iter().map(|packet| packet.to).collect::<Vec<_>>(), [address(1, 1)]);
    assert_eq!(events, []);
    assert_eq!(says(&mut end, 0, right), (vec![], vec![]), "it is no longer asked");
    assert_eq!(says(&mut end, 1, right), (vec![], vec![Event::Lost(LostReason::Unreachable)]));
}
