//! Two endpoints whose users come and go: both connect, shut down, abort and crash at any moment and change streams and
//! addresses, over a network that loses, doubles, delays and replays packets, and through a NAT that maps one end to
//! new UDP ports.
//!
//! No message arrives twice, and none before an earlier one of its sender. When the network is calm and nobody does
//! anything any more, every association that is up carries a message to the other end and then ends gracefully. None is
//! left, and a new one can begin.
//!
//! `ANABRANCH_STORM=RUNS` (default 100) is how many runs there are, from seed `ANABRANCH_FIRST` on. A failure names its
//! seed.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_proto::wire::{Address, Packet};
use anabranch_proto::{
    AssociationId, Config, Direction, Duration, Endpoint, Event, Incoming, LocalAddress, Message, Output,
    Pairs, Parameters, Policies, Rules, State, Time,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

#[path = "support/mod.rs"]
mod support;

use support::{PORT, address, secs};

/// The UDP port of both ends; that of side 0 is behind the NAT.
const UDP: u16 = 9899;
/// So many seconds users and network are restless.
const RESTLESS: f64 = 20.0;
/// After so many seconds of calm, whoever has lost its peer knows it.
const CALM: f64 = RESTLESS + 150.0;
/// Outputs of one drain at most.
const ENDLESS: usize = 20_000;
/// Packets remembered to be replayed.
const KEPT: usize = 300;

fn below(chance: &mut ChaCha8Rng, limit: u64) -> u64 {
    chance.next_u64() % limit
}

fn one_in(chance: &mut ChaCha8Rng, cases: u64) -> bool {
    below(chance, cases) == 0
}

fn place(path: usize, side: usize) -> Address {
    Address { udp: UDP, ..address(path, side) }
}

fn local(path: usize, side: usize) -> LocalAddress {
    LocalAddress { address: place(path, side), prefix: 24 }
}

fn config(chance: &mut ChaCha8Rng, side: usize, paths: usize) -> Config {
    let parameters = Parameters {
        rto_initial: Duration::from_millis(300),
        rto_min: Duration::from_millis(100),
        rto_max: Duration::from_secs(2),
        // With a smaller limit for paths, an association of inactive paths would wait for data without end (§8.2).
        association_max_retrans: 5,
        path_max_retrans: 5,
        max_init_retransmits: 8,
        heartbeat_interval: Some(Duration::from_millis([500, 3000][below(chance, 2) as usize])),
        ..Parameters::default()
    };
    let mut config = Config {
        addresses: (0..paths).map(|path| local(path, side)).collect(),
        port: PORT + side as u16,
        rehome: one_in(chance, 3),
        pairs: if one_in(chance, 4) { Pairs::All } else { Pairs::OnePerPeer },
        cookie_life: Duration::from_secs(5 + below(chance, 30)),
        receive_buffer: 60_000,
        rules: Rules::ERAS[below(chance, 3) as usize].1,
        parameters,
        ..Config::default()
    };
    let on = &mut config.extensions;
    on.reconfiguration = one_in(chance, 2);
    on.interleaving = one_in(chance, 2);
    on.partial_reliability = one_in(chance, 2);
    on.timestamps = one_in(chance, 2);
    on.ecn = one_in(chance, 2);
    on.nr_sack = one_in(chance, 2);
    on.authentication = one_in(chance, 2);
    on.addresses = on.authentication;
    if on.authentication && one_in(chance, 2) {
        config.authenticated_chunks = vec![0, 3, 7, 8, 10];
    }
    config
}

/// One end and its user.
struct User {
    end: Endpoint,
    /// How often it has crashed.
    life: u64,
    up: BTreeSet<AssociationId>,
    wake: Option<Time>,
}

/// Who sent a message: a side, its life, and its association.
type Sender = (usize, u64, AssociationId);

struct Turmoil {
    chance: ChaCha8Rng,
    now: Time,
    calm: bool,
    paths: usize,
    users: [User; 2],
    /// The packets on their way to a side.
    air: BTreeMap<(Time, u64), (usize, Packet)>,
    counter: u64,
    /// Packets that have passed, and who sent them.
    passed: Vec<(usize, Packet)>,
    /// The ports to which the NAT has mapped side 0; the last one is in use.
    ports: Vec<u16>,
    /// Whether packets to an earlier port still arrive.
    lingers: bool,
    nat: bool,
    crashes: bool,
    /// Whether packets are replayed also when the network is calm. Not with a NAT: one that comes from an earlier port
    /// moves the peer there, until the peer sends something that must be believed.
    replays: bool,
    /// Of a thousand packets so many are lost.
    loss: u64,
    sent: BTreeMap<u64, Sender>,
    arrived: BTreeSet<u64>,
    /// The last message of each sender at an association.
    last: BTreeMap<(Sender, AssociationId), u64>,
    messages: u64,
    /// Associations that were lost since the network has been calm.
    lost: Vec<Event>,
}

impl Turmoil {
    fn new(seed: u64) -> Turmoil {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let paths = 1 + below(&mut chance, 2) as usize;
        let users = [0, 1].map(|side| {
            let config = config(&mut chance, side, paths);
            let mut key = [side as u8; 32];
            key[..8].copy_from_slice(&seed.to_le_bytes());
            let end = Endpoint::new(config, Policies::default(), key).expect("usable");
            User { end, life: 0, up: BTreeSet::new(), wake: None }
        });
        let [nat, lingers, crashes, replays] = [(); 4].map(|()| one_in(&mut chance, 2));
        let replays = replays && !nat;
        let (air, passed, sent, arrived, last, lost) = Default::default();
        let (now, calm, counter, messages) = (Time::ZERO, false, 0, 0);
        let (ports, loss) = (vec![UDP], below(&mut chance, 300));
        Turmoil {
            chance,
            now,
            calm,
            paths,
            users,
            air,
            counter,
            passed,
            ports,
            lingers,
            nat,
            crashes,
            replays,
            loss,
            sent,
            arrived,
            last,
            messages,
            lost,
        }
    }

    fn play(mut self) {
        while self.now < secs(RESTLESS) {
            let side = below(&mut self.chance, 2) as usize;
            self.act(side);
            self.drain(side);
            let until = self.now + Duration::from_millis(below(&mut self.chance, 400));
            self.run(until);
        }
        self.calm = true;
        let paths = self.paths;
        for (side, path) in (0..2).flat_map(|side| (0..paths).map(move |path| (side, path))) {
            self.users[side].end.handle(self.now, Incoming::Up(place(path, side), true));
            self.users[side].end.handle(self.now, Incoming::Writable(place(path, side), true));
            self.drain(side);
        }
        self.run(secs(CALM));
        self.end();
    }

    /// Everything that is up works, and ends; a new association begins.
    fn end(&mut self) {
        self.lost.clear();
        let mut probes = Vec::new();
        for side in 0..2 {
            for id in self.users[side].up.clone() {
                let status = self.users[side].end.status(id).expect("it has not ended");
                assert_eq!(status.state, State::Established, "side {side} {id:?}");
                probes.push(self.send(side, id).expect("there is room"));
            }
        }
        self.run(secs(CALM + 20.0));
        for probe in probes {
            assert!(self.arrived.contains(&probe), "no probe from {:?}", self.sent[&probe]);
        }
        for id in self.users[0].up.clone() {
            self.users[0].end.shutdown(self.now, id);
            self.drain(0);
        }
        self.run(secs(CALM + 40.0));
        assert_eq!(self.lost, []);
        assert!(self.users.iter().all(|user| user.up.is_empty()), "left over");
        let to: Vec<Address> = (0..self.paths).map(|path| place(path, 1)).collect();
        self.users[0].end.connect(self.now, PORT + 1, &to).expect("nobody is in the way");
        self.drain(0);
        self.run(secs(CALM + 50.0));
        assert!(self.users.iter().all(|user| user.up.len() == 1), "no new beginning");
    }

    /// A user, or something around it, does something.
    fn act(&mut self, side: usize) {
        let any = self.users[side].up.first().copied();
        match (below(&mut self.chance, 16), any) {
            (0..3, _) => self.connect(side),
            (3..7, Some(id)) => {
                for _ in 0..1 + below(&mut self.chance, 5) {
                    self.send(side, id);
                }
            }
            (7..9, Some(id)) => self.users[side].end.shutdown(self.now, id),
            (9, Some(id)) => self.users[side].end.abort(self.now, id, Default::default()),
            (10, _) if self.crashes => self.crash(side),
            (11, _) if self.nat => self.ports.push(20_000 + below(&mut self.chance, 10_000) as u16),
            (12..15, Some(id)) => self.change(side, id),
            (15, _) => {
                let local = place(below(&mut self.chance, self.paths as u64) as usize, side);
                let (up, on) = (one_in(&mut self.chance, 2), one_in(&mut self.chance, 2));
                let news = if up { Incoming::Up(local, on) } else { Incoming::Writable(local, on) };
                self.users[side].end.handle(self.now, news);
            }
            _ => {}
        }
    }

    fn connect(&mut self, side: usize) {
        let udp = if side == 0 { UDP } else { self.ports[self.ports.len() - 1] };
        let to: Vec<Address> =
            (0..self.paths).map(|path| Address { udp, ..address(path, 1 - side) }).collect();
        // It is refused while there is an association with that address.
        let _ = self.users[side].end.connect(self.now, PORT + 1 - side as u16, &to);
    }

    fn crash(&mut self, side: usize) {
        let mut key = [7; 32];
        self.chance.fill_bytes(&mut key[..8]);
        let user = &mut self.users[side];
        user.end = Endpoint::new(user.end.config().clone(), Policies::default(), key).expect("usable");
        user.life += 1;
        user.up.clear();
    }

    /// A request about addresses or streams. It may be refused, or not have been agreed.
    fn change(&mut self, side: usize, id: AssociationId) {
        let local = local(below(&mut self.chance, self.paths as u64) as usize, side);
        let (end, now) = (&mut self.users[side].end, self.now);
        let _ = match below(&mut self.chance, 7) {
            0 => end.add_address(now, id, local),
            1 => end.remove_address(now, id, local.address),
            2 => end.set_peer_primary(now, id, local.address),
            3 => end.reset_streams(now, id, Direction::Outgoing, &[]),
            4 => end.reset_streams(now, id, Direction::Incoming, &[]),
            5 => end.add_streams(now, id, Direction::Outgoing, 1),
            _ => end.reset_tsns(now, id),
        };
    }

    /// Sends a message with its number; `None` if it was refused.
    fn send(&mut self, side: usize, id: AssociationId) -> Option<u64> {
        self.messages += 1;
        let mut payload = vec![0; 8 + below(&mut self.chance, 3000) as usize];
        payload[..8].copy_from_slice(&self.messages.to_le_bytes());
        let message = Message { payload: payload.into(), ..Message::default() };
        let taken = self.users[side].end.send(self.now, id, message).is_ok();
        self.sent.insert(self.messages, (side, self.users[side].life, id));
        self.drain(side);
        taken.then_some(self.messages)
    }

    /// Time passes, with everything that happens in it.
    fn run(&mut self, until: Time) {
        loop {
            let arrival = self.air.keys().next().map(|key| key.0);
            let timers = self.users.iter().filter_map(|user| user.wake);
            let next = arrival.into_iter().chain(timers).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next)
                && let Some((_, (side, packet))) = self.air.pop_first()
            {
                self.users[side].end.handle(self.now, Incoming::Packet(Box::new(packet)));
                self.drain(side);
            } else {
                self.drain(0);
                self.drain(1);
            }
        }
        self.now = until;
    }

    fn drain(&mut self, side: usize) {
        for _ in 0..ENDLESS {
            match self.users[side].end.poll(self.now) {
                Output::Transmit(packet, _) => self.carry(side, *packet),
                Output::Event(id, event) => self.hear(side, id, event),
                Output::Note(_) => {}
                Output::Wait(until) => {
                    self.users[side].wake = until;
                    return;
                }
            }
        }
        panic!("an endless drain");
    }

    fn hear(&mut self, side: usize, id: AssociationId, event: Event) {
        match event {
            Event::Up | Event::Restart => drop(self.users[side].up.insert(id)),
            Event::Closed | Event::Lost(_) => {
                self.read(side, id);
                self.users[side].up.remove(&id);
                self.users[side].end.forget(self.now, id);
                self.lost.extend(Some(event).filter(|event| *event != Event::Closed));
            }
            Event::Readable => self.read(side, id),
            _ => {}
        }
    }

    fn read(&mut self, side: usize, id: AssociationId) {
        while let Some(delivery) = self.users[side].end.read(self.now, id) {
            assert!(delivery.complete);
            let number = delivery.into_bytes()[..8].try_into().map(u64::from_le_bytes).expect("eight");
            assert!(self.arrived.insert(number), "message {number} came twice");
            let sender = self.sent[&number];
            assert_eq!(sender.0, 1 - side);
            let last = self.last.insert((sender, id), number);
            assert!(last.is_none_or(|last| last < number), "{number} after {last:?}");
        }
    }

    /// A packet leaves.
    fn carry(&mut self, side: usize, mut packet: Packet) {
        if side == 0 {
            packet.from.udp = self.ports[self.ports.len() - 1];
        }
        if self.passed.len() == KEPT {
            self.passed.swap_remove(below(&mut self.chance, KEPT as u64) as usize);
        }
        self.passed.push((side, packet.clone()));
        let replayed = if self.calm {
            self.replays && one_in(&mut self.chance, 4)
        } else {
            one_in(&mut self.chance, 20)
        };
        if replayed {
            let (side, old) = self.passed[below(&mut self.chance, self.passed.len() as u64) as usize].clone();
            self.fly(side, old, 3000);
        }
        if self.calm {
            return self.fly(side, packet, 1);
        }
        if below(&mut self.chance, 1000) < self.loss {
            return;
        }
        if one_in(&mut self.chance, 10) {
            self.fly(side, packet.clone(), 500);
        }
        self.fly(side, packet, 60);
    }

    /// A packet of `side` arrives at the other in at most `latest` milliseconds more than ten, if its address leads
    /// there.
    fn fly(&mut self, side: usize, mut packet: Packet, latest: u64) {
        let later = below(&mut self.chance, latest);
        if side == 1 {
            let mut led = self.ports.iter().rev().take(if self.lingers { usize::MAX } else { 1 });
            if !led.any(|port| *port == packet.to.udp) {
                return;
            }
            packet.to.udp = UDP;
        }
        self.counter += 1;
        let at = self.now + Duration::from_millis(10 + later);
        self.air.insert((at, self.counter), (1 - side, packet));
    }
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn whatever_users_do_calm_returns() {
    let (runs, first) = (number("ANABRANCH_STORM", 100), number("ANABRANCH_FIRST", 0));
    for seed in first..first + runs {
        if let Err(panic) = std::panic::catch_unwind(|| Turmoil::new(seed).play()) {
            eprintln!("the turmoil with seed {seed} failed");
            std::panic::resume_unwind(panic);
        }
    }
}
