//! Two endpoints, their users, and the network between them.

use std::collections::BTreeMap;

use anabranch_proto::wire::{Address, Ecn, Packet};
use anabranch_proto::{
    AssociationId, Config, Direction, Duration, Endpoint, Event, Incoming, Message, Output, PathId, Policies,
    SendError, Time,
};
use bytes::{Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use crate::config;
use crate::mutate::{flip, mutate};
use crate::support::expected::Expected;
use crate::support::{PORT, address};

const STREAMS: u64 = 5;
/// Packets remembered to be replayed and spliced.
const KEPT: usize = 200;
/// Outputs of one drain at most.
const ENDLESS: usize = 20_000;
/// So long the network disturbs a fair storm.
const DISTURBED: Duration = Duration::from_secs(30);
/// A hostile storm lasts so many turns.
const TURNS: usize = 3000;

pub(crate) fn below(chance: &mut ChaCha8Rng, limit: u64) -> u64 {
    chance.next_u64() % limit
}

pub(crate) fn one_in(chance: &mut ChaCha8Rng, cases: u64) -> bool {
    below(chance, cases) == 0
}

/// Of a thousand packets so many are…
struct Weather {
    lost: u64,
    doubled: u64,
    replayed: u64,
    broken: u64,
    /// …sent from another address of the sender.
    moved: u64,
    /// Milliseconds added at random.
    jitter: u64,
}

/// A packet on its way.
struct Flying {
    side: usize,
    from: Address,
    to: Address,
    ecn: Ecn,
    bytes: Bytes,
    /// Its checksum is not looked at: it would be right.
    forged: bool,
}

struct User {
    end: Endpoint,
    config: Config,
    id: Option<AssociationId>,
    up: bool,
    over: bool,
    wake: Option<Time>,
    /// Messages still to be given.
    left: u32,
    refused: Option<Message>,
    expected: Expected,
}

pub(crate) struct Storm {
    chance: ChaCha8Rng,
    hostile: bool,
    paths: usize,
    weather: Weather,
    now: Time,
    users: [User; 2],
    air: BTreeMap<(Time, u64), Flying>,
    counter: u64,
    passed: Vec<Vec<u8>>,
    routes: Vec<(usize, Address, Address)>,
    packets: u64,
    /// When the network disturbed last.
    disturbed: Time,
}

impl Storm {
    pub(crate) fn new(seed: u64, hostile: bool) -> Storm {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let paths = 1 + below(&mut chance, 3) as usize;
        let weather = Weather {
            lost: below(&mut chance, 150),
            doubled: below(&mut chance, 100),
            replayed: below(&mut chance, 60),
            broken: below(&mut chance, 60),
            moved: [0, 0, 100, 500][below(&mut chance, 4) as usize],
            jitter: below(&mut chance, 60),
        };
        let configs = config::pair(&mut chance, paths);
        let mut side = 0;
        let users = configs.map(|config| {
            let mut key = [side; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            side += 1;
            let end =
                Endpoint::new(config.clone(), Policies::default(), key).expect("a usable configuration");
            let left = 3 + below(&mut chance, 25) as u32;
            let (id, up, over, wake, refused) = (None, false, false, None, None);
            User { end, config, id, up, over, wake, left, refused, expected: Expected::default() }
        });
        let (air, passed, routes) = Default::default();
        let (now, disturbed, counter, packets) = (Time::ZERO, Time::ZERO, 0, 0);
        Storm {
            chance,
            hostile,
            paths,
            weather,
            now,
            users,
            air,
            counter,
            passed,
            routes,
            packets,
            disturbed,
        }
    }

    /// Lets everything happen; how many packets left.
    pub(crate) fn play(mut self) -> u64 {
        let to: Vec<Address> = (0..self.paths).map(|path| address(path, 1)).collect();
        self.users[0].id = Some(self.users[0].end.connect(Time::ZERO, PORT + 1, &to).expect("a path"));
        let patience = 100 * self.users.iter().map(|user| user.config.rto_max).max().expect("two");
        for turn in 0.. {
            let mut stirs = false;
            for side in 0..2 {
                self.act(side);
                self.drain(side);
                let lazy = !self.air.is_empty() && one_in(&mut self.chance, 3);
                stirs |= self.read(side, lazy);
                self.drain(side);
            }
            let over = self.users.iter().all(|user| user.over);
            if over || self.hostile && turn > TURNS || !(stirs || self.step()) {
                break;
            }
            if !self.hostile && self.now.since(self.disturbed) > patience {
                self.tell();
                panic!("no end {patience:?} after the last disturbance");
            }
        }
        if !self.hostile {
            let whole = |user: &User| user.over && user.expected.is_empty() && !user.expected.in_part();
            if !self.users.iter().all(whole) {
                self.tell();
                panic!("it came to rest too early");
            }
        }
        self.packets
    }

    fn tell(&self) {
        for (side, user) in self.users.iter().enumerate() {
            let Some(id) = user.id else { continue };
            eprintln!("side {side} up {} over {} left {} at {:?}", user.up, user.over, user.left, self.now);
            let (mtu, buffer) = (user.config.mtu, user.config.receive_buffer);
            eprintln!("mtu {mtu} buffer {buffer} {:?} {:?}", user.config.extensions, user.config.rules);
            eprintln!("{:?}", user.end.statistics(self.now, id));
            user.end.paths(id).iter().for_each(|path| eprintln!("{path:?}"));
        }
    }

    /// What a user does: sends; where the storm is hostile, asks for this and that; and shuts down when all has
    /// arrived.
    fn act(&mut self, side: usize) {
        let finished = self
            .users
            .iter()
            .all(|user| user.expected.is_empty() && user.left == 0 && user.refused.is_none());
        let (chance, user) = (&mut self.chance, &mut self.users[side]);
        let Some(id) = user.id.filter(|_| user.up && !user.over) else { return };
        let mut sent = Vec::new();
        while user.left > 0 || user.refused.is_some() {
            let message = user.refused.take().unwrap_or_else(|| {
                user.left -= 1;
                random_message(chance)
            });
            match user.end.send(self.now, id, message.clone()) {
                Ok(()) => sent.push(message),
                Err(SendError::Full(message)) => {
                    user.refused = Some(message);
                    break;
                }
                Err(other) if self.hostile => drop(other),
                Err(other) => panic!("refused: {other}"),
            }
        }
        if self.hostile && one_in(chance, 30) {
            let _ = match below(chance, 4) {
                0 => user.end.reset_streams(self.now, id, Direction::Outgoing, &[1, 2]).is_ok(),
                1 => user.end.add_streams(self.now, id, Direction::Incoming, 3).is_ok(),
                2 => user.end.reset_tsns(self.now, id).is_ok(),
                _ => user.end.heartbeat(self.now, id, PathId(0)),
            };
        }
        if side == 0 && finished {
            user.end.shutdown(self.now, id);
        }
        sent.iter().for_each(|message| self.users[1 - side].expected.sent(message));
    }

    /// Reads what there is, unless the user is lazy; whether there was anything.
    fn read(&mut self, side: usize, lazy: bool) -> bool {
        let user = &mut self.users[side];
        let Some(id) = user.id.filter(|_| user.over || !lazy) else { return false };
        let mut any = false;
        while let Some(delivery) = user.end.read(self.now, id) {
            any = true;
            if !self.hostile {
                assert!(!delivery.abandoned);
                user.expected.arrived(delivery);
            }
        }
        any
    }

    fn drain(&mut self, side: usize) {
        for _ in 0..ENDLESS {
            match self.users[side].end.poll(self.now) {
                Output::Transmit(packet, _) => self.carry(side, &packet),
                Output::Event(id, event) => self.hear(side, id, &event),
                Output::Note(_) => {}
                Output::Wait(until) => {
                    self.users[side].wake = until;
                    return;
                }
            }
        }
        panic!("an endless drain");
    }

    fn hear(&mut self, side: usize, id: AssociationId, event: &Event) {
        let user = &mut self.users[side];
        match event {
            Event::Up if *user.id.get_or_insert(id) == id => user.up = true,
            Event::Closed if user.id == Some(id) => user.over = true,
            Event::Lost(reason) if user.id == Some(id) => {
                user.over = true;
                assert!(self.hostile, "side {side} lost it: {reason:?}");
            }
            _ => {}
        }
    }

    /// A packet leaves.
    fn carry(&mut self, side: usize, packet: &Packet) {
        let mut bytes = BytesMut::new();
        packet.encode(&mut bytes).expect("it can be encoded");
        assert!(bytes.len() <= 65_535);
        self.packets += 1;
        self.keep(side, packet, &bytes);
        let bytes = bytes.freeze();
        if self.hostile || self.now < Time::ZERO + DISTURBED {
            return self.disturb(side, packet, bytes);
        }
        self.fly(side, (packet.from, packet.to), packet.ecn, bytes, Duration::ZERO, false);
    }

    fn disturb(&mut self, side: usize, packet: &Packet, bytes: Bytes) {
        let pair = (packet.from, packet.to);
        let happens = |storm: &mut Storm, per_mille| below(&mut storm.chance, 1000) < per_mille;
        let forged = self.hostile && one_in(&mut self.chance, 4);
        if forged {
            let mut changed = bytes.to_vec();
            mutate(&mut self.chance, &mut changed, &self.passed);
            let to = if one_in(&mut self.chance, 10) { 1 - side } else { side };
            let from = if one_in(&mut self.chance, 20) { address(9, 7) } else { packet.from };
            self.fly(to, (from, packet.to), packet.ecn, changed.into(), Duration::ZERO, true);
        }
        if happens(self, self.weather.replayed) {
            let k = below(&mut self.chance, self.passed.len() as u64) as usize;
            let ((from_side, from, to), old) = (self.routes[k], Bytes::from(self.passed[k].clone()));
            let later = Duration::from_millis(below(&mut self.chance, 300));
            self.fly(from_side, (from, to), Ecn::NotEct, old, later, false);
        }
        if happens(self, self.weather.lost) {
            self.disturbed = self.now;
            return;
        }
        let ecn = if packet.ecn == Ecn::Ect0 && one_in(&mut self.chance, 9) { Ecn::Ce } else { packet.ecn };
        for copy in 0..1 + u64::from(happens(self, self.weather.doubled)) {
            let mut pair = pair;
            if happens(self, self.weather.moved) {
                let other = below(&mut self.chance, self.paths as u64) as usize;
                pair.0 = address(other, side);
            }
            let mut bytes = bytes.clone();
            if copy == 1 && happens(self, self.weather.broken) {
                let mut broken = bytes.to_vec();
                flip(&mut self.chance, &mut broken);
                bytes = broken.into();
            }
            let later = Duration::from_millis(below(&mut self.chance, 1 + self.weather.jitter));
            self.fly(side, pair, ecn, bytes, later, false);
        }
    }

    /// A packet of `side` will arrive at the other.
    fn fly(
        &mut self,
        side: usize,
        pair: (Address, Address),
        ecn: Ecn,
        bytes: Bytes,
        later: Duration,
        forged: bool,
    ) {
        self.counter += 1;
        let at = self.now + Duration::from_millis(5) + later;
        let (from, to) = pair;
        self.air.insert((at, self.counter), Flying { side: 1 - side, from, to, ecn, bytes, forged });
    }

    fn keep(&mut self, side: usize, packet: &Packet, bytes: &[u8]) {
        let (route, bytes) = ((side, packet.from, packet.to), bytes.to_vec());
        if self.passed.len() < KEPT {
            self.passed.push(bytes);
            self.routes.push(route);
        } else {
            let k = below(&mut self.chance, KEPT as u64) as usize;
            (self.passed[k], self.routes[k]) = (bytes, route);
        }
    }

    /// The next packet arrives, or a timer is due; false if nothing more will happen.
    fn step(&mut self) -> bool {
        let arrival = self.air.keys().next().map(|key| key.0);
        let timer = self.users.iter().filter_map(|user| user.wake).min();
        let Some(next) = [arrival, timer].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        if timer.is_some_and(|timer| arrival.is_none_or(|arrival| timer <= arrival)) {
            return true;
        }
        let Some((_, flying)) = self.air.pop_first() else { return true };
        let Flying { side, from, to, ecn, bytes, forged } = flying;
        let decode = if forged { Packet::decode_unchecked } else { Packet::decode };
        if let Ok(packet) = decode(from, to, ecn, bytes) {
            self.users[side].end.handle(self.now, Incoming::Packet(Box::new(packet)));
        }
        true
    }
}

fn random_message(chance: &mut ChaCha8Rng) -> Message {
    let some = 1 + below(chance, 20_000);
    let length = [1, 10, 500, 1400, 3000, some][below(chance, 6) as usize];
    let mut payload = vec![0; length as usize];
    chance.fill_bytes(&mut payload);
    Message {
        stream: below(chance, STREAMS) as u16,
        ppid: chance.next_u32(),
        unordered: one_in(chance, 3),
        immediate: one_in(chance, 10),
        payload: payload.into(),
        ..Message::default()
    }
}
