//! Two connections and a path between them, without the simulator's engine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::{Duration, Time};

use super::config::{TcpConfig, Variant};
use super::connection::{Connection, Identity, Output, State};
use super::segment::{Segment, Sequence, TcpNote, Why};

/// A link direction: bit/s and propagation delay, with a queue without end.
#[derive(Copy, Clone)]
struct Hop {
    rate: u64,
    delay: Duration,
    free: Time,
}

impl Hop {
    fn new(rate: u64, delay: Duration) -> Self {
        Hop { rate, delay, free: Time::ZERO }
    }

    fn carry(&mut self, now: Time, bytes: u32) -> Time {
        let sending = Duration::from_nanos(u64::from(bytes) * 8 * 1_000_000_000 / self.rate);
        self.free = self.free.max(now) + sending;
        self.free + self.delay
    }
}

/// A client that sends, a server that reads at once, and the path between them.
pub(super) struct World {
    pub(super) now: Time,
    pub(super) ends: [Connection; 2],
    hops: [Vec<Hop>; 2],
    /// Segments with data that are lost, counted from 1 as they leave the client.
    lost: BTreeSet<u64>,
    /// SYNs and other segments without data of the client that are lost, counted from 1.
    lost_control: BTreeSet<u64>,
    counts: [u64; 2],
    /// By time and order: whose it is, and the segment.
    under_way: BTreeMap<(Time, u64), (usize, Segment)>,
    order: u64,
    waits: [Option<Time>; 2],
    /// Data of the client: time, first byte, why.
    pub(super) sent: Vec<(Time, u64, Why)>,
    pub(super) acks: Vec<Segment>,
    pub(super) notes: Vec<(Time, TcpNote)>,
}

const FIRST: Sequence = Sequence(u32::MAX - 3000);

impl World {
    pub(super) fn new(config: &TcpConfig, hops: &[(u64, u64)], lost: &[u64]) -> Self {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let identity = |local, remote, first| Identity {
            addresses: (address, address),
            local,
            remote,
            first,
            phase: Duration::ZERO,
        };
        let mut client = Connection::connect(config.clone(), identity(1, 2, FIRST), None);
        client.set_notes(true);
        let server = Connection::listen(config.clone(), identity(2, 1, Sequence(77)), None);
        let hops: Vec<Hop> =
            hops.iter().map(|(rate, micros)| Hop::new(*rate, Duration::from_micros(*micros))).collect();
        World {
            now: Time::ZERO,
            ends: [client, server],
            hops: [hops.clone(), hops.into_iter().rev().collect()],
            lost: lost.iter().copied().collect(),
            lost_control: BTreeSet::new(),
            counts: [0, 0],
            under_way: BTreeMap::new(),
            order: 0,
            waits: [Some(Time::ZERO), None],
            sent: Vec::new(),
            acks: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn losing_control(mut self, lost: &[u64]) -> Self {
        self.lost_control = lost.iter().copied().collect();
        self
    }

    /// Runs until nothing is left to happen, or `stop`.
    pub(super) fn run(&mut self, stop: Duration) {
        let stop = Time::ZERO + stop;
        (0..2).for_each(|end| self.drain(end));
        loop {
            let arrival = self.under_way.keys().next().map(|key| key.0);
            let next = self.waits.iter().copied().flatten().chain(arrival).min();
            let Some(next) = next.filter(|next| *next <= stop) else { break };
            self.now = next;
            if arrival == Some(next) {
                let (_, (end, segment)) = self.under_way.pop_first().expect("it is there");
                self.ends[end].handle(next, &segment);
            }
            for end in 0..2 {
                self.drain(end);
            }
        }
    }

    fn drain(&mut self, end: usize) {
        if end == 1 {
            let readable = self.ends[1].readable();
            self.ends[1].read(readable);
            if self.ends[1].ended() {
                self.ends[1].close();
            }
        }
        loop {
            match self.ends[end].poll(self.now) {
                Output::Transmit(packet, why) => self.transmit(end, packet.segment, why),
                Output::Wait(until) => break self.waits[end] = until,
            }
        }
        self.notes.extend(self.ends[0].take_notes());
    }

    fn transmit(&mut self, end: usize, segment: Segment, why: Why) {
        let (mut at, size) = (self.now, segment.size() + 20);
        let data = segment.length > 0;
        if end == 0 {
            self.counts[usize::from(data)] += 1;
            let lost = if data { &self.lost } else { &self.lost_control };
            if data {
                let offset = segment.sequence.offset(FIRST.at(1), self.ends[0].path().delivered);
                self.sent.push((self.now, offset.expect("it is known"), why));
            }
            if lost.contains(&self.counts[usize::from(data)]) {
                // Lost on entering the last hop, of which it takes nothing.
                let last = self.hops[0].len() - 1;
                self.hops[0][..last].iter_mut().for_each(|hop| at = hop.carry(at, size));
                return;
            }
        } else {
            self.acks.push(segment.clone());
        }
        self.hops[end].iter_mut().for_each(|hop| at = hop.carry(at, size));
        self.order += 1;
        self.under_way.insert((at, self.order), (1 - end, segment));
    }

    fn windows(&self) -> Vec<f64> {
        let mut seen = Vec::new();
        for (_, note) in &self.notes {
            if let TcpNote::Window { cwnd_segments, .. } = note
                && seen.last() != Some(cwnd_segments)
            {
                seen.push(*cwnd_segments);
            }
        }
        seen
    }
}

const SATELLITE: [(u64, u64); 2] = [(10_000_000, 2_000), (2_000_000, 250_000)];

fn satellite(variant: Variant) -> TcpConfig {
    let config = variant.defaults(1448);
    TcpConfig {
        receive_window: 44 * 1448,
        initial_window: 2 * 1448,
        initial_ssthresh: Some(44 * 1448),
        ..config
    }
}

#[test]
fn a_transfer_without_loss_closes_both_ends() {
    for (name, variant) in Variant::NAMES {
        let mut world = World::new(&variant.defaults(1000), &SATELLITE, &[]);
        world.ends[0].write(123_456);
        world.ends[0].close();
        world.run(Duration::from_secs(100));
        assert_eq!(world.ends[1].receiver_read(), 123_456, "{name}");
        assert_eq!(world.ends.each_ref().map(Connection::state), [State::Closed; 2], "{name}");
        assert_eq!(world.sent.len(), 124, "{name}: nothing is sent twice");
    }
}

#[test]
fn everything_arrives_whatever_is_lost() {
    for (name, variant) in Variant::NAMES {
        for step in [3, 5, 17] {
            let lost: Vec<u64> = (1..200).filter(|n| n % step == 0 || n % 11 == 7).collect();
            let mut world = World::new(&variant.defaults(1000), &SATELLITE, &lost).losing_control(&[1, 3]);
            world.ends[0].write(200_000);
            world.ends[0].close();
            world.run(Duration::from_secs(4000));
            assert_eq!(world.ends[1].receiver_read(), 200_000, "{name}, every {step}th");
            assert_eq!(world.ends[0].state(), State::Closed, "{name}, every {step}th");
        }
    }
}

#[test]
fn the_single_loss_of_2002() {
    let mut world = World::new(&satellite(Variant::Sack1Of2002), &SATELLITE, &[8]);
    world.ends[0].write(1 << 40);
    world.run(Duration::from_secs(4));
    let windows: Vec<f64> = world.windows().iter().map(|w| (w * 1000.0).round() / 1000.0).collect();
    let published = [9.0, 4.0, 4.25, 4.485, 4.708, 4.921, 5.124];
    assert_eq!(windows[7..14], published, "{windows:?}");
    let again: Vec<_> = world.sent.iter().filter(|sent| sent.2 != Why::New).collect();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].1, 7 * 1448, "segment 8");
    let next = world.sent.iter().find(|sent| sent.0 > again[0].0).expect("it goes on");
    assert_eq!(next.1, 16 * 1448, "segment 17 is the first new one");
}

/// Half of the ten segments outstanding is more than the one segment that a timeout has left.
#[test]
fn a_penalty_never_enlarges_a_window() {
    let lost: Vec<u64> = (1..=30).collect();
    for (lost, penalised, left) in [(&lost[..], false, 1000), (&[], true, 5000)] {
        let config = TcpConfig { initial_ssthresh: Some(10_000), ..Variant::Standard.defaults(1000) };
        let mut world = World::new(&config, &SATELLITE, lost);
        world.ends[0].write(10_000);
        world.run(Duration::from_millis(if penalised { 800 } else { 3000 }));
        assert_eq!(world.ends[0].penalise(world.now), penalised);
        assert_eq!(world.ends[0].cwnd(), left);
    }
}

/// ns-2's sink answers SYNs and has no timer; its sender acknowledges nothing.
#[test]
fn only_the_client_of_sack1_repeats_its_handshake() {
    for (variant, answers) in [(Variant::Standard, 2), (Variant::Sack1, 1)] {
        let config = TcpConfig { rto_initial: Duration::from_secs(3), ..variant.defaults(1448) };
        let mut world = World::new(&config, &SATELLITE, &(1..100).collect::<Vec<_>>());
        world.ends[0].write(1 << 20);
        world.run(Duration::from_secs(5));
        assert_eq!(world.acks.iter().filter(|ack| ack.syn).count(), answers, "{variant:?}");
    }
    // The SYN is repeated after 3 s and answered twice.
    let mut world = World::new(&Variant::Sack1.defaults(1448), &[(10_000_000, 2_000_000)], &[]);
    world.ends[0].write(1448);
    world.run(Duration::from_secs(100));
    assert_eq!((world.acks.iter().filter(|ack| ack.syn).count(), world.counts[0]), (2, 2));
}
