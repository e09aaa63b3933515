//! A path and its local address: where it begins, and where it goes when it fails.

use anabranch_proto::wire::chunk::{Heartbeat, Init};
use anabranch_proto::wire::{Address, Chunk, Ecn, Packet, Param, Ports};
use anabranch_proto::{
    AssociationId, Config, Endpoint, Event, Incoming, Message, Output, PathState, Policies, Time, Tsn,
};

use crate::support::bench::{Bench, at_ms, era, ms};
use crate::support::{PORT, address, at, secs};

/// Changes a packet that a side sends, or loses it.
type Way = fn(usize, &mut Packet) -> bool;

/// Two endpoints with two addresses each; every address reaches every other one, at once.
struct Hosts {
    now: Time,
    ends: [Endpoint; 2],
    wake: [Option<Time>; 2],
    sent: Vec<(Time, usize, Packet)>,
    events: [Vec<(Time, AssociationId, Event)>; 2],
    way: Way,
}

impl Hosts {
    fn new(config: &Config, way: Way) -> Hosts {
        let end = |side| {
            let config = at(side, 2, config);
            Endpoint::new(config, Policies::default(), [side as u8; 32]).expect("a usable configuration")
        };
        let ends = [end(0), end(1)];
        Hosts { now: Time::ZERO, ends, wake: [None; 2], sent: vec![], events: Default::default(), way }
    }

    /// Side 1 has its first address only; nothing is lost.
    fn with_one_peer_address(config: &Config) -> Hosts {
        let mut hosts = Hosts::new(config, |_, _| true);
        let end = Endpoint::new(at(1, 1, config), Policies::default(), [1; 32]);
        hosts.ends[1] = end.expect("a usable configuration");
        hosts
    }

    fn connect(&mut self, to: &[Address]) -> AssociationId {
        let id = self.ends[0].connect(self.now, PORT + 1, to).expect("a path");
        self.settle();
        id
    }

    /// Delivers until nobody has anything to say.
    fn settle(&mut self) {
        let mut side = 0;
        let mut quiet = 0;
        while quiet < 2 {
            quiet += 1;
            loop {
                match self.ends[side].poll(self.now) {
                    Output::Transmit(mut packet, _) => {
                        quiet = 0;
                        self.sent.push((self.now, side, (*packet).clone()));
                        if (self.way)(side, &mut packet) {
                            self.ends[1 - side].handle(self.now, Incoming::Packet(packet));
                        }
                    }
                    Output::Event(id, event) => self.events[side].push((self.now, id, event)),
                    Output::Note(_) => {}
                    Output::Wait(until) => break self.wake[side] = until,
                }
            }
            side = 1 - side;
        }
    }

    fn run(&mut self, until: Time) {
        while let Some(next) = self.wake.into_iter().flatten().min().filter(|next| *next <= until) {
            self.now = next;
            self.settle();
        }
        self.now = until;
        self.settle();
    }

    fn pairs(&self, side: usize) -> Vec<(Address, Address)> {
        let (_, id, _) = self.events[side].iter().find(|e| e.2 == Event::Up).expect("it is up");
        self.ends[side].paths(*id).iter().map(|path| (path.local, path.remote)).collect()
    }
}

/// Both paths, each on its link.
fn by_link(side: usize) -> Vec<(Address, Address)> {
    (0..2).map(|path| (address(path, side), address(path, 1 - side))).collect()
}

/// The listener answers everything from its second address, as a stack does that leaves the choice to its routes. Each
/// end has one path on each link all the same: what fails with one link must not take both paths along.
//= rfc9260#section-5.1
#[test]
fn a_peer_that_answers_from_its_other_address_has_a_path_on_each_link() {
    let way: Way = |side, packet| {
        if side == 1 {
            packet.from = address(1, 1);
        }
        true
    };
    for rehome in [false, true] {
        let mut hosts = Hosts::new(&Config { rehome, ..era("rfc9260") }, way);
        hosts.connect(&[address(0, 1), address(1, 1)]);
        hosts.run(secs(60.0));
        assert_eq!(hosts.pairs(0), by_link(0), "rehome: {rehome}");
        assert_eq!(hosts.pairs(1), by_link(1), "rehome: {rehome}");
    }
}

/// The initiator sends everything from its second address to the listener's first. That pair is the first that the
/// listener knows; it is away from the link of the initiator's address, and moves there as soon as a heartbeat is
/// answered.
#[test]
fn a_path_that_is_away_from_its_link_returns_to_it() {
    let way: Way = |side, packet| {
        if side == 0 {
            packet.from = address(1, 0);
        }
        true
    };
    let mut hosts = Hosts::new(&Config { rehome: true, ..era("rfc9260") }, way);
    hosts.connect(&[address(0, 1), address(1, 1)]);
    let mut pairs = hosts.pairs(1);
    pairs.sort();
    assert_eq!(pairs, by_link(1));
}

/// Side 1 sends all from its second address, whose link is cut: what it sends arrives by the first link, and SACKs to
/// where it comes from do not. A message of 10 s times out at 11 s, goes in vain by the other path, and comes a second
/// time at 12 s: its SACK takes the first link.
//= rfc9260#section-6.4
#[test]
fn a_duplicate_lets_sacks_take_another_path() {
    let second: Way = |side, packet| {
        if side == 1 {
            packet.from = address(1, 1);
        }
        true
    };
    let cut: Way = |side, packet| {
        if side == 1 {
            packet.from = address(1, 1);
        }
        packet.to != address(1, 1) && packet.to != address(1, 0)
    };
    for rehome in [true, false] {
        let mut hosts = Hosts::new(&Config { rehome, ..era("rfc9260") }, second);
        hosts.connect(&[address(0, 1), address(1, 1)]);
        hosts.run(secs(10.0));
        hosts.way = cut;
        let (_, id, _) = *hosts.events[1].iter().find(|event| event.2 == Event::Up).expect("it is up");
        let message = Message { payload: vec![7; 100].into(), ..Message::default() };
        hosts.ends[1].send(hosts.now, id, message).expect("there is room");
        hosts.settle();
        let acknowledged = |hosts: &mut Hosts| hosts.ends[1].statistics(hosts.now, id).acknowledged;
        hosts.run(secs(11.9));
        assert_eq!(acknowledged(&mut hosts), 0);
        hosts.run(secs(12.0));
        assert_eq!(acknowledged(&mut hosts), if rehome { 100 } else { 0 });
    }
}

/// The first address of side 0 neither sends nor hears any more.
fn dead(_: usize, packet: &mut Packet) -> bool {
    packet.from != address(0, 0) && packet.to != address(0, 0)
}

/// The first link is cut at 10 s, after a message and before its SACK. The message times out at 11 s and comes a second
/// time on the other path: the SACK that was lost went by the first link, so the new one goes to the source of the
/// packet that it answers.
//= rfc9260#section-6.4
#[test]
fn a_duplicate_after_a_failover_is_answered_on_the_path_of_its_packet() {
    for rehome in [true, false] {
        let mut hosts = Hosts::new(&Config { rehome, ..era("rfc9260") }, |_, _| true);
        let id = hosts.connect(&[address(0, 1), address(1, 1)]);
        hosts.run(secs(10.0));
        hosts.way = |side, packet| side == 0 || dead(side, packet);
        let message = Message { payload: vec![7; 100].into(), ..Message::default() };
        hosts.ends[0].send(hosts.now, id, message).expect("there is room");
        hosts.settle();
        hosts.run(secs(10.9));
        hosts.way = dead;
        hosts.run(secs(11.0));
        assert_eq!(hosts.ends[0].statistics(hosts.now, id).acknowledged, 100, "rehome: {rehome}");
    }
}

/// The first address of side 0 hears nothing from 10 s on, but what it sends arrives. A message times out, and comes a
/// second time on the other path, where it is answered: the SACKs for the next messages, which come on the first path,
/// are lost no more. When the first path works again, a heartbeat is answered, and its SACKs return.
//= rfc9260#section-6.4
#[test]
fn sacks_avoid_a_path_that_works_one_way() {
    for rehome in [true, false] {
        let mut hosts = Hosts::new(&Config { rehome, ..era("rfc9260") }, |_, _| true);
        let id = hosts.connect(&[address(0, 1), address(1, 1)]);
        hosts.run(secs(10.0));
        hosts.way = |_, packet| packet.to != address(0, 0);
        let talk = |hosts: &mut Hosts, until: Time| {
            while hosts.now < until {
                let message = Message { payload: vec![7; 100].into(), ..Message::default() };
                hosts.ends[0].send(hosts.now, id, message).expect("there is room");
                hosts.settle();
                hosts.run(hosts.now + ms(500));
            }
            hosts.ends[0].statistics(hosts.now, id).timeouts
        };
        let timeouts = talk(&mut hosts, secs(20.0));
        assert_eq!(timeouts == 1, rehome, "{timeouts} timeouts");
        hosts.way = |_, _| true;
        talk(&mut hosts, secs(80.0));
        let is_sack = |sent: &&(Time, usize, Packet)| matches!(&sent.2.chunks[..], [Chunk::Sack(_)]);
        let last = hosts.sent.iter().rfind(is_sack).expect("there are SACKs");
        assert_eq!(last.2.to, address(0, 0), "rehome: {rehome}");
    }
}

/// One peer address, two local ones, and the first is cut off silently at 10 s. Path.Max.Retrans = 2: a message of 10 s
/// times out at 11, 13 and 17 s. Inactive then, the path is asked from the second address, moves there, and delivers at
/// once. When the first works again, the next heartbeat from there is answered, and the path returns to its link.
//= rfc9260#section-8.2
//= rfc9260#section-7.2.5.2
#[test]
fn a_path_that_fails_goes_from_another_local_address() {
    let config = era("rfc9260").with(|parameters| parameters.path_max_retrans = 2);
    for rehome in [true, false] {
        let mut hosts = Hosts::with_one_peer_address(&Config { rehome, ..config.clone() });
        let id = hosts.connect(&[address(0, 1)]);
        hosts.run(secs(10.0));
        hosts.way = dead;
        let message = Message { payload: vec![7; 100].into(), ..Message::default() };
        hosts.ends[0].send(hosts.now, id, message).expect("there is room");
        hosts.settle();
        hosts.run(secs(16.9));
        assert!(hosts.events[1].iter().all(|event| event.2 != Event::Readable));
        hosts.run(secs(17.0));
        let arrived = hosts.events[1].iter().any(|event| event.2 == Event::Readable);
        assert_eq!(arrived, rehome);
        if rehome {
            assert_eq!(hosts.pairs(0), [(address(1, 0), address(0, 1))]);
            let path = &hosts.ends[0].paths(id)[0];
            assert_eq!(path.state, PathState::Active);
            assert_eq!((path.window, path.ssthresh), (4404, u64::MAX), "another route: all begins anew");
            hosts.way = |_, _| true;
            hosts.run(secs(50.0));
            assert_eq!(hosts.pairs(0), [(address(0, 0), address(0, 1))]);
        }
    }
}

/// A path that leaves an address whose socket is full does not wait for that socket; one that comes to be while a
/// socket is full does.
#[test]
fn a_full_socket_holds_only_the_paths_that_use_it() {
    let mut hosts = Hosts::new(&Config { rehome: true, ..era("rfc9260") }, |_, _| true);
    let room = |hosts: &mut Hosts, path, writable| {
        hosts.ends[0].handle(hosts.now, Incoming::Writable(address(path, 0), writable));
        hosts.settle();
    };
    room(&mut hosts, 1, false);
    hosts.connect(&[address(0, 1), address(1, 1)]);
    let asked = |hosts: &Hosts, path| {
        let asks = |chunk: &Chunk| matches!(chunk, Chunk::Heartbeat(_));
        let ours = hosts.sent.iter().filter(|sent| sent.1 == 0 && sent.2.from == address(path, 0));
        ours.flat_map(|sent| &sent.2.chunks).any(asks)
    };
    assert!(!asked(&hosts, 1), "the path waits for its socket");
    room(&mut hosts, 1, true);
    assert!(asked(&hosts, 1));

    let mut hosts = Hosts::with_one_peer_address(&era("rfc9260"));
    let id = hosts.connect(&[address(0, 1)]);
    room(&mut hosts, 0, false);
    hosts.ends[0].handle(hosts.now, Incoming::Up(address(0, 0), false));
    hosts.settle();
    assert_eq!(hosts.pairs(0), [(address(1, 0), address(0, 1))]);
    let message = Message { payload: vec![7; 100].into(), ..Message::default() };
    hosts.ends[0].send(hosts.now, id, message).expect("there is room");
    hosts.settle();
    assert!(hosts.events[1].iter().any(|event| event.2 == Event::Readable));
}

/// Each heartbeat has a nonce of its own, and its answer counts once: an old one says nothing of the path as it is now.
//= rfc5062#section-2.3
#[test]
fn each_heartbeat_has_its_own_nonce_and_one_answer() {
    let config = era("rfc9260").with(|parameters| parameters.heartbeat_interval = Some(ms(5000)));
    let mut bench = Bench::new(config, 2);
    let first = bench.heartbeats();
    let [(_, 1, info)] = &first[..] else { panic!("{first:?}") };
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(info.clone())));
    assert_eq!(bench.view(1).state, PathState::Active);
    bench.until(at_ms(40_000));
    let errors = bench.view(1).errors;
    assert!(errors > 0);
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(info.clone())));
    assert_eq!(bench.view(1).errors, errors, "that answer was counted at the beginning");
    let infos: Vec<_> = bench.heartbeats().into_iter().chain(first).map(|asked| asked.2).collect();
    let nonce = |info: &bytes::Bytes| info[8..16].to_vec();
    let distinct: std::collections::BTreeSet<_> = infos.iter().map(nonce).collect();
    assert_eq!(distinct.len(), infos.len());
    // A nonce with the time of another heartbeat is of neither.
    let last = bench.view(1).errors;
    let forged = [&infos[0][..8], &infos[1][8..]].concat();
    bench.hear_on(1, Chunk::HeartbeatAck(Heartbeat::new(forged)));
    assert_eq!(bench.view(1).errors, last);
}

/// An INIT names addresses that are nobody's, everybody's or ours: only the two that can be the peer's are ever asked.
//= rfc9260#section-5.4
#[test]
fn no_heartbeat_leaves_for_an_address_that_cannot_be_the_peers() {
    let wrong4 = "224.0.0.1 255.255.255.255 127.0.0.1 0.0.0.0 10.0.0.255 10.0.0.2 10.0.1.2 169.254.1.1 240.0.0.1 0.1.2.3";
    let wrong6 = "::1 ff02::1 :: fe80::1 ::ffff:127.0.0.1 ::ffff:10.0.0.9";
    let mut params: Vec<Param> =
        wrong4.split(' ').map(|ip| Param::Ipv4(ip.parse().expect("an address"))).collect();
    params.extend(wrong6.split(' ').map(|ip| Param::Ipv6(ip.parse().expect("an address"))));
    params.push(Param::Ipv4([10, 0, 1, 1].into()));
    let (tag, a_rwnd, tsn) = (77, 100_000, Tsn(1));
    let init = Init { tag, a_rwnd, outbound: 1, inbound: 1, tsn, params };

    let config = at(1, 2, &era("rfc9260")).with(|parameters| parameters.heartbeat_max_burst = 100);
    let mut end = Endpoint::new(config, Policies::default(), [1; 32]).expect("a usable configuration");
    let ports = Ports { source: PORT, destination: PORT + 1 };
    let (from, to, ecn) = (address(0, 0), address(0, 1), Ecn::NotEct);
    let mut say = |now, tag, chunk| {
        let packet = Packet { from, to, ports, tag, ecn, chunks: [chunk].into_iter().collect() };
        end.handle(now, Incoming::Packet(Box::new(packet)));
        let mut said = Vec::new();
        loop {
            match end.poll(now) {
                Output::Transmit(packet, _) => said.push(*packet),
                Output::Wait(_) => return said,
                _ => {}
            }
        }
    };
    let answer = say(Time::ZERO, 0, Chunk::Init(Box::new(init)));
    let [Chunk::InitAck(ack)] = &answer[0].chunks[..] else { panic!("{answer:?}") };
    let cookie = ack.params.iter().find_map(|param| match param {
        Param::Cookie(cookie) => Some(cookie.clone()),
        _ => None,
    });
    let echo = anabranch_proto::wire::chunk::CookieEcho { cookie: cookie.expect("a cookie") };
    let mut said = say(Time::ZERO, ack.tag, Chunk::CookieEcho(echo));
    for second in 1..100 {
        said.extend(say(secs(f64::from(second)), 0, Chunk::CookieAck(anabranch_proto::wire::chunk::Bare)));
    }
    let asked: std::collections::BTreeSet<Address> = said.iter().map(|packet| packet.to).collect();
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), [address(0, 0), address(1, 0)]);
}
