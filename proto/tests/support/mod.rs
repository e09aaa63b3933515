//! Two endpoints over a network that does what a test tells it.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part")]

pub mod bench;

pub mod expected;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use anabranch_proto::wire::{Address, Chunk, Ecn, Packet};
use anabranch_proto::{
    AssociationId, Config, Duration, Endpoint, Event, Incoming, LocalAddress, Message, Note, Output, PathId,
    Policies, Reason, Time,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// The port of the side that listens.
pub const PORT: u16 = 5000;

/// More turns than any loop of a test takes: an endpoint that never comes to rest fails, and does not hang.
const ENDLESS: usize = 100_000;

/// A packet that left an endpoint.
#[derive(PartialEq, Debug)]
pub struct Left {
    pub at: Time,
    pub side: usize,
    pub packet: Packet,
    pub reason: Reason,
    pub dropped: bool,
}

/// What a path does to packets, each direction alike.
#[derive(Clone, Debug)]
pub struct Weather {
    pub delay: Duration,
    /// Added at random, up to this: packets overtake each other.
    pub jitter: Duration,
    /// Of 1,000 packets so many are lost, and so many doubled.
    pub loss: u64,
    pub doubled: u64,
    pub up: bool,
}

impl Weather {
    pub fn fair(delay: Duration) -> Self {
        Weather { delay, jitter: Duration::ZERO, loss: 0, doubled: 0, up: true }
    }
}

/// Tells a kind of chunk.
pub type Kind = fn(&Chunk) -> bool;

/// Called for each packet that leaves: whether it is to be dropped.
pub type Dropper = Box<dyn FnMut(Time, usize, &Packet) -> bool>;

/// Called for each packet that leaves, if set: how long each of its copies travels. No copy, no arrival.
pub type Fate = Box<dyn FnMut() -> Vec<Duration>>;

pub struct World {
    pub now: Time,
    pub ends: [Endpoint; 2],
    /// By the last byte of the addresses: path `n` joins 10.0.n.1 and 10.0.n.2.
    pub weather: Vec<Weather>,
    pub events: [Vec<(Time, AssociationId, Event)>; 2],
    pub notes: [Vec<Note>; 2],
    pub log: Vec<Left>,
    pub keep_log: bool,
    pub drop: Dropper,
    /// Decides in the weather's place on paths that are up.
    pub fate: Option<Fate>,
    pub chance: ChaCha8Rng,
    /// Of 1,000 packets so many come from another address of their sender than they were sent from.
    pub moved: u64,
    /// Every packet goes through the codec.
    pub wire: bool,
    /// Something without effect happens to an end before each poll.
    pub anew: bool,
    /// Of so many packets that can be marked, one is: congestion; 0: none.
    pub mark: u64,
    markable: u64,
    travelling: BTreeMap<(Time, u64), (usize, Packet)>,
    counter: u64,
    wake: [Option<Time>; 2],
}

pub fn address(path: usize, side: usize) -> Address {
    Address::ip(IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, side as u8 + 1)))
}

/// `config` with one address for each path.
pub fn at(side: usize, paths: usize, config: &Config) -> Config {
    let local = |path| LocalAddress { address: address(path, side), prefix: 24 };
    Config { addresses: (0..paths).map(local).collect(), port: PORT + side as u16, ..config.clone() }
}

impl World {
    pub fn new(configs: [Config; 2], weather: Vec<Weather>, seed: u64) -> Self {
        let [a, b] = configs;
        let make = |config, n| {
            let mut key = [n; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            Endpoint::new(config, Policies::default(), key).expect("a usable configuration")
        };
        World {
            now: Time::ZERO,
            ends: [make(a, 0), make(b, 1)],
            weather,
            events: Default::default(),
            notes: Default::default(),
            log: Vec::new(),
            keep_log: false,
            drop: Box::new(|_, _, _| false),
            fate: None,
            chance: ChaCha8Rng::seed_from_u64(seed),
            moved: 0,
            wire: false,
            anew: false,
            mark: 0,
            markable: 0,
            travelling: BTreeMap::new(),
            counter: 0,
            wake: [None; 2],
        }
    }

    /// Two ends joined by `paths` paths of 50 ms each way. Side 0 has asked for the association at time zero: it
    /// is up at 150 ms (side 1) and 200 ms (side 0), where heartbeats ask the other paths and are answered at
    /// 300 ms.
    pub fn joined([a, b]: [&Config; 2], paths: usize) -> (World, AssociationId) {
        let weather = vec![Weather::fair(Duration::from_millis(50)); paths];
        let mut world = World::new([at(0, paths, a), at(1, paths, b)], weather, 1);
        world.keep_log = true;
        world.ends[0].set_notes(true);
        let id = world.connect();
        (world, id)
    }

    /// A message of `size` bytes is given.
    pub fn give(&mut self, side: usize, id: AssociationId, size: usize) {
        let payload = bytes::Bytes::from(vec![0; size]);
        let message = Message { payload, ..Message::default() };
        self.ends[side].send(self.now, id, message).expect("there is room");
        self.drain(side);
    }

    /// Bytes of the messages that a side can read now.
    pub fn take(&mut self, side: usize) -> Vec<usize> {
        let Some(id) = self.up(side) else { return Vec::new() };
        let lengths = std::iter::from_fn(|| self.ends[side].read(self.now, id)).map(|d| d.len()).collect();
        self.drain(side);
        lengths
    }

    /// Packets with such a chunk that a side sent: when.
    pub fn left(&self, side: usize, of: impl Fn(&Chunk) -> bool) -> Vec<Time> {
        let sent = self.log.iter().filter(|left| left.side == side);
        sent.filter(|left| left.packet.chunks.iter().any(&of)).map(|left| left.at).collect()
    }

    /// When an event first happened.
    pub fn when(&self, side: usize, wanted: &Event) -> Option<Time> {
        self.events[side].iter().find(|(_, _, event)| event == wanted).map(|event| event.0)
    }

    /// Drops the first `count` packets with such a chunk.
    pub fn lose(&mut self, count: usize, of: impl Fn(&Chunk) -> bool + 'static) {
        let mut left = count;
        self.drop = Box::new(move |_, _, packet| {
            let hit = left > 0 && packet.chunks.iter().any(&of);
            left -= usize::from(hit);
            hit
        });
    }

    /// Side 0 connects to side 1.
    pub fn connect(&mut self) -> AssociationId {
        let to: Vec<Address> = (0..self.weather.len()).map(|path| address(path, 1)).collect();
        let id = self.ends[0].connect(self.now, PORT + 1, &to).expect("a path");
        self.drain(0);
        id
    }

    /// A world in the same state, with an empty log. It drops what its weather drops, and nothing else.
    pub fn branch(&self) -> World {
        assert!(self.fate.is_none(), "it cannot be copied");
        World {
            now: self.now,
            ends: self.ends.clone(),
            weather: self.weather.clone(),
            events: self.events.clone(),
            notes: Default::default(),
            log: Vec::new(),
            keep_log: true,
            drop: Box::new(|_, _, _| false),
            fate: None,
            chance: self.chance.clone(),
            moved: self.moved,
            wire: self.wire,
            anew: self.anew,
            mark: self.mark,
            markable: self.markable,
            travelling: self.travelling.clone(),
            counter: self.counter,
            wake: self.wake,
        }
    }

    /// Takes everything that an endpoint has to say.
    pub fn drain(&mut self, side: usize) {
        for _ in 0..ENDLESS {
            if let Some(id) = self.up(side).filter(|_| self.anew) {
                self.ends[side].heartbeat(self.now, id, PathId(u16::MAX));
            }
            match self.ends[side].poll(self.now) {
                Output::Transmit(packet, reason) => self.carry(side, *packet, reason),
                Output::Event(id, event) => self.events[side].push((self.now, id, event)),
                Output::Note(note) => self.notes[side].push(note),
                Output::Wait(until) => {
                    assert!(until.is_none_or(|until| until > self.now), "a wait for what is due");
                    return self.wake[side] = until;
                }
            }
        }
        panic!("it never waits");
    }

    fn carry(&mut self, side: usize, mut packet: Packet, reason: Reason) {
        if self.mark > 0 && packet.ecn == Ecn::Ect0 {
            self.markable += 1;
            packet.ecn = if self.markable.is_multiple_of(self.mark) { Ecn::Ce } else { Ecn::Ect0 };
        }
        let IpAddr::V4(from) = packet.from.ip else { panic!("an IPv4 test") };
        let IpAddr::V4(to) = packet.to.ip else { panic!("an IPv4 test") };
        let path = usize::from(from.octets()[2]);
        let routed = from.octets()[2] == to.octets()[2];
        let mut weather = self.weather[path].clone();
        weather.up &= routed;
        let copies = match &mut self.fate {
            Some(fate) => fate(),
            None => self.by_weather(&weather),
        };
        let lost = (self.drop)(self.now, side, &packet) || copies.is_empty();
        let dropped = lost || !weather.up;
        if !dropped {
            for travel in copies {
                self.counter += 1;
                let arrival = (self.now + travel, self.counter);
                let mut coded = self.coded(&packet);
                coded.from = self.source(packet.from, side);
                self.travelling.insert(arrival, (1 - side, coded));
            }
        }
        if self.keep_log {
            self.log.push(Left { at: self.now, side, packet, reason, dropped });
        }
    }

    /// The address that a packet comes from.
    fn source(&mut self, from: Address, side: usize) -> Address {
        if self.moved == 0 || self.chance.next_u64() % 1000 >= self.moved {
            return from;
        }
        address((self.chance.next_u64() % self.weather.len() as u64) as usize, side)
    }

    /// How long each copy of a packet travels, as chance has it.
    fn by_weather(&mut self, weather: &Weather) -> Vec<Duration> {
        let unlucky = self.chance.next_u64() % 1000 < weather.loss;
        let doubled = self.chance.next_u64() % 1000 < weather.doubled;
        let copies = if unlucky || !weather.up { 0 } else { 1 + usize::from(doubled) };
        let jitter = weather.jitter.as_nanos() as u64 + 1;
        let mut travel = || weather.delay + Duration::from_nanos(self.chance.next_u64() % jitter);
        (0..copies).map(|_| travel()).collect()
    }

    /// The packet as it arrives: through the codec, if that is wanted.
    fn coded(&self, packet: &Packet) -> Packet {
        if !self.wire {
            return packet.clone();
        }
        let mut bytes = bytes::BytesMut::new();
        packet.encode(&mut bytes).expect("what is sent can be encoded");
        assert_eq!(bytes.len(), packet.size());
        let back = Packet::decode(packet.from, packet.to, packet.ecn, bytes.freeze()).expect("and decoded");
        assert_eq!(&back, packet);
        back
    }

    /// The next thing that happens; false if nothing will before `until`.
    pub fn step(&mut self, until: Time) -> bool {
        let arrival = self.travelling.keys().next().map(|key| key.0);
        let timer = [0, 1].into_iter().filter_map(|side| Some((self.wake[side]?, side))).min();
        let next = [arrival, timer.map(|t| t.0)].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        assert!(next >= self.now, "time goes back from {:?} to {next:?}", self.now);
        self.now = next;
        match timer {
            Some((at, side)) if arrival.is_none_or(|a| at <= a) => self.drain(side),
            _ => {
                let ((_, _), (side, packet)) = self.travelling.pop_first().expect("an arrival");
                self.ends[side].handle(self.now, Incoming::Packet(Box::new(packet)));
                self.drain(side);
            }
        }
        true
    }

    pub fn run(&mut self, until: Time) {
        for _ in 0..ENDLESS {
            if !self.step(until) {
                return;
            }
        }
        panic!("nothing comes of it");
    }

    pub fn happened(&self, side: usize, wanted: &Event) -> bool {
        self.events[side].iter().any(|(_, _, event)| event == wanted)
    }

    /// The association of a side, once it is up.
    pub fn up(&self, side: usize) -> Option<AssociationId> {
        self.events[side].iter().find(|(_, _, e)| *e == Event::Up).map(|(_, id, _)| *id)
    }
}

pub fn secs(s: f64) -> Time {
    Time::from_nanos((s * 1e9) as u64)
}
