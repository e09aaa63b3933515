//! Extensions in combination, between two ends at random: interleaving, partial reliability, stream reset,
//! authentication, dynamic addresses, NR-SACK, ECN and timestamps, with and without CMT and potentially failed paths.
//! While messages travel, streams are reset and added, TSNs are reset, addresses come and go, links fail, and in some
//! cases one end restarts with other extensions.
//!
//! Every reliable message arrives once, whole and in order on its stream. A message with limits arrives at most once
//! and in order, or is reported to its sender. Every request is answered, and both ends close.
//!
//! A failure names its seed: put it into `KEPT`. `ANABRANCH_CASES=N` runs N cases instead of 300, `ANABRANCH_FIRST=N`
//! begins with seed N.

mod support;

use std::collections::BTreeMap;

use anabranch_proto::mechanisms::{LossDetection, TailProbe};
use anabranch_proto::wire::{Address, Chunk};
use anabranch_proto::{
    AssociationId, Config, Delivery, Direction, Duration, Endpoint, Event, Extensions, LocalAddress, Message,
    Outcome, Pairs, Parameters, PathId, Policies, PolicySpec, Reliability, Rules, SendError, SharedKey,
};
use bytes::{Bytes, BytesMut};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use support::{Left, PORT, Weather, World, address};

/// Seeds that once failed.
const KEPT: &[u64] = &[];
const CASES: u64 = 300;
const STREAMS: u64 = 5;

#[test]
fn extensions_work_together() {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let first = number("ANABRANCH_FIRST").unwrap_or(0);
    let seeds = first..first + number("ANABRANCH_CASES").unwrap_or(CASES);
    for seed in KEPT.iter().copied().chain(seeds) {
        if let Err(panic) = std::panic::catch_unwind(|| Case::new(seed).play()) {
            eprintln!("the case with seed {seed} failed");
            std::panic::resume_unwind(panic);
        }
    }
}

/// A message that was accepted.
struct Given {
    stream: u16,
    unordered: bool,
    limited: bool,
    payload: Bytes,
    delivered: bool,
    failed: bool,
}

/// What one end has sent, and what of it has arrived at the other.
#[derive(Default)]
struct Ledger {
    given: BTreeMap<u32, Given>,
    /// Events of the sender that were looked at.
    seen: usize,
    /// Parts of messages not yet complete, by the number of the message.
    parts: BTreeMap<u64, BytesMut>,
    /// The last ordered message of each stream.
    last: BTreeMap<u16, u32>,
}

impl Ledger {
    fn arrived(&mut self, delivery: Delivery) {
        let Delivery { stream, ppid, unordered, message, complete, abandoned, .. } = delivery;
        let given = self.given.get_mut(&ppid).expect("a message that was given");
        assert_eq!((given.stream, given.unordered), (stream, unordered), "message {ppid}");
        if abandoned {
            assert!(given.limited && self.parts.remove(&message).is_some(), "message {ppid} was abandoned");
            return;
        }
        let whole = self.parts.entry(message).or_default();
        whole.extend_from_slice(&delivery.into_bytes());
        if !complete {
            return;
        }
        let whole = self.parts.remove(&message).expect("just put there");
        assert!(whole == given.payload, "message {ppid}: {} of {} bytes", whole.len(), given.payload.len());
        assert!(!std::mem::replace(&mut given.delivered, true), "message {ppid} arrived twice");
        if !unordered {
            let before = self.last.insert(stream, ppid);
            assert!(before < Some(ppid), "stream {stream}: {ppid} after {before:?}");
        }
    }

    /// Reports of the sender about messages that it has given up.
    fn reported(&mut self, events: &[(anabranch_proto::Time, AssociationId, Event)]) {
        for (_, _, event) in &events[self.seen..] {
            if let Event::SendFailed { message, .. } = event {
                let given = self.given.get_mut(&message.ppid).expect("a message that was given");
                assert!(given.limited, "message {} was given up", message.ppid);
                assert!(!std::mem::replace(&mut given.failed, true), "{} was reported twice", message.ppid);
            }
        }
        self.seen = events.len();
    }

    fn missing(&self) -> Vec<u32> {
        // Only a message with limits can have failed: see `reported`.
        let missing = |given: &Given| !(given.delivered || given.failed);
        self.given.iter().filter(|(_, given)| missing(given)).map(|(ppid, _)| *ppid).collect()
    }
}

struct Case {
    world: World,
    chance: ChaCha8Rng,
    /// By sending side.
    ledgers: [Ledger; 2],
    ids: [AssociationId; 2],
    /// The number of the last message.
    last: u32,
    /// The side whose addresses change, and the link that both ends keep.
    mover: usize,
    anchor: usize,
    /// Whether an end has asked for a reset of all TSNs.
    restarted: bool,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let links = 1 + below(&mut chance, 3) as usize;
        let configs = random_pair(&mut chance, links);
        let weather: Vec<_> = (0..links).map(|_| random_weather(&mut chance)).collect();
        let mut world = World::new(configs, weather, seed);
        world.wire = seed.is_multiple_of(4);
        world.mark = [0, 3][below(&mut chance, 2) as usize];
        world.keep_log = std::env::var_os("ANABRANCH_FIRST").is_some();
        // A packet from an address that was deleted is out of the blue, and the ABORT for it may come when the address
        // is back.
        world.lose(usize::MAX, out_of_the_blue);
        let to: Vec<Address> = (0..links).map(|link| address(link, 1)).collect();
        let id = world.ends[0].connect(world.now, PORT + 1, &to).expect("a path");
        let (mover, anchor) = (below(&mut chance, 2) as usize, below(&mut chance, links as u64) as usize);
        let mut case = Case {
            world,
            chance,
            ledgers: Default::default(),
            ids: [id; 2],
            last: 0,
            mover,
            anchor,
            restarted: false,
        };
        case.world.drain(0);
        case.come_up();
        case
    }

    /// Until both ends are up.
    fn come_up(&mut self) {
        for _ in 0..1000 {
            self.world.run(self.world.now + Duration::from_millis(500));
            if let (Some(_), Some(peer)) = (self.world.up(0), self.world.up(1)) {
                self.ids[1] = peer;
                return;
            }
        }
        self.tell();
        panic!("it does not come up");
    }

    fn play(mut self) {
        self.disturb();
        if one_in(&mut self.chance, 3) {
            self.restart();
            self.disturb();
        }
        self.settle();
        self.ask_last();
        self.close();
    }

    /// Sends, reads and requests while links fail.
    fn disturb(&mut self) {
        for _ in 0..40 + below(&mut self.chance, 60) {
            let side = below(&mut self.chance, 2) as usize;
            match below(&mut self.chance, 20) {
                0..10 => self.send(side),
                10..14 => self.read(side, 5),
                14 | 15 => self.request(side),
                16 | 17 => self.move_address(),
                18 => {
                    let link = below(&mut self.chance, self.world.weather.len() as u64) as usize;
                    self.world.weather[link].up ^= true;
                }
                _ => {
                    let link = below(&mut self.chance, self.world.weather.len() as u64) as usize;
                    self.world.weather[link] = random_weather(&mut self.chance);
                }
            }
            self.world.drain(side);
            let pause = Duration::from_micros(below(&mut self.chance, 500_000));
            self.world.run(self.world.now + pause);
            self.look();
        }
    }

    fn send(&mut self, side: usize) {
        for _ in 0..=below(&mut self.chance, 6) {
            let ppid = self.last + 1;
            let message = random_message(&mut self.chance, ppid);
            match self.world.ends[side].send(self.world.now, self.ids[side], message.clone()) {
                Ok(()) => self.last = ppid,
                Err(SendError::Full(_)) => break,
                Err(other) => panic!("refused: {other:?}"),
            }
            let limited = message.reliability != Reliability::Full;
            let Message { stream, unordered, payload, .. } = message;
            let given = Given { stream, unordered, limited, payload, delivered: false, failed: false };
            self.ledgers[side].given.insert(ppid, given);
        }
    }

    fn read(&mut self, side: usize, most: usize) {
        for _ in 0..most {
            let Some(delivery) = self.world.ends[side].read(self.world.now, self.ids[side]) else { break };
            self.ledgers[1 - side].arrived(delivery);
        }
        self.world.drain(side);
    }

    /// A request about streams; whether there are any is for the ends to say.
    fn request(&mut self, side: usize) {
        let (now, id) = (self.world.now, self.ids[side]);
        let direction = [Direction::Outgoing, Direction::Incoming][below(&mut self.chance, 2) as usize];
        let one = [below(&mut self.chance, STREAMS) as u16];
        let listed: &[u16] = if one_in(&mut self.chance, 3) { &[] } else { &one };
        let end = &mut self.world.ends[side];
        let _ = match below(&mut self.chance, 6) {
            0..3 => end.reset_streams(now, id, direction, listed),
            3 => end.add_streams(now, id, direction, 2),
            // Resets of all TSNs should be 30 seconds apart (RFC 6525 §5.1.4).
            4 if !std::mem::replace(&mut self.restarted, true) => end.reset_tsns(now, id),
            _ => {
                end.heartbeat(now, id, PathId(0));
                Ok(())
            }
        };
    }

    /// The mover adds an address, removes one, or names its favourite; that of the anchor stays.
    fn move_address(&mut self) {
        let (now, side) = (self.world.now, self.mover);
        let link = below(&mut self.chance, self.world.weather.len() as u64) as usize;
        let local = address(link, side);
        let end = &mut self.world.ends[side];
        let _ = match below(&mut self.chance, 3) {
            0 => end.add_address(now, self.ids[side], LocalAddress { address: local, prefix: 24 }),
            1 if link != self.anchor => end.remove_address(now, self.ids[side], local),
            _ => end.set_peer_primary(now, self.ids[side], local),
        };
        self.world.drain(side);
    }

    /// Nothing is lost, and what was given up is reported.
    fn look(&mut self) {
        for side in 0..2 {
            let events = &self.world.events[side];
            let lost = events.iter().find(|(_, _, event)| matches!(event, Event::Lost(_)));
            if lost.is_some() {
                self.tell();
                panic!("side {side}: {lost:?}");
            }
            self.ledgers[side].reported(events);
        }
    }

    fn heal(&mut self) {
        for weather in &mut self.world.weather {
            *weather = Weather::fair(weather.delay);
        }
    }

    /// Side 0 forgets everything and connects again, from one address and with other extensions. What was under way is
    /// lost.
    fn restart(&mut self) {
        self.heal();
        self.world.run(self.world.now + Duration::from_secs(100));
        self.look();
        let seed = [below(&mut self.chance, 256) as u8; 32];
        let [mut config, _] = random_pair(&mut self.chance, self.world.weather.len());
        config.addresses = vec![LocalAddress { address: address(self.anchor, 0), prefix: 24 }];
        config.shared_key = self.world.ends[1].config().shared_key.clone();
        config.extensions.authentication |= config.shared_key.is_some();
        self.world.ends[0] =
            Endpoint::new(config, Policies::default(), seed).expect("a usable configuration");
        self.world.events[0].clear();
        let to = [address(self.anchor, 1)];
        self.ids[0] = self.world.ends[0].connect(self.world.now, PORT + 1, &to).expect("a path");
        self.world.drain(0);
        self.come_up();
        self.world.run(self.world.now + Duration::from_secs(5));
        if !self.world.happened(1, &Event::Restart) {
            self.tell();
            panic!("side 1 has not noticed the restart");
        }
        // What side 1 has read in part ends; nothing else of before is delivered.
        while let Some(delivery) = self.world.ends[1].read(self.world.now, self.ids[1]) {
            assert!(delivery.abandoned, "message {} of before the restart", delivery.ppid);
            assert!(self.ledgers[0].parts.remove(&delivery.message).is_some(), "it was read in part");
        }
        assert!(self.ledgers[0].parts.is_empty(), "all that was read in part has ended");
        (self.ledgers, self.restarted) = Default::default();
        for side in 0..2 {
            self.ledgers[side].seen = self.world.events[side].len();
        }
    }

    /// In fair weather everything arrives or is given up.
    fn settle(&mut self) {
        self.heal();
        let patience = self.world.now + Duration::from_secs(3600);
        while self.ledgers.iter().any(|ledger| !ledger.missing().is_empty()) {
            if self.world.now >= patience {
                self.tell();
                panic!("missing after an hour of fair weather");
            }
            self.world.run(self.world.now + Duration::from_millis(500));
            (0..2).for_each(|side| self.read(side, usize::MAX));
            self.look();
        }
        self.world.run(self.world.now + Duration::from_secs(120));
    }

    /// One more request of each end is answered, so none before it is stuck.
    fn ask_last(&mut self) {
        for side in 0..2 {
            let (now, id) = (self.world.now, self.ids[side]);
            let before = self.world.events[side].len();
            let asked = self.world.ends[side].reset_streams(now, id, Direction::Outgoing, &[0]);
            self.world.drain(side);
            self.world.run(self.world.now + Duration::from_secs(60));
            let agreed = self.world.ends[side].extensions(id).reconfiguration;
            assert_eq!(asked.is_ok(), agreed, "{asked:?}");
            let (direction, streams, outcome) = (Direction::Outgoing, vec![0], Outcome::Done);
            let wanted = Event::StreamsReset { direction, streams, outcome };
            let answered = self.world.events[side][before..].iter().any(|(_, _, event)| *event == wanted);
            if agreed && !answered {
                self.tell();
                panic!("side {side}: the reset was not answered");
            }
        }
    }

    fn close(mut self) {
        let side = below(&mut self.chance, 2) as usize;
        self.world.ends[side].shutdown(self.world.now, self.ids[side]);
        self.world.drain(side);
        self.world.run(self.world.now + Duration::from_secs(300));
        (0..2).for_each(|side| self.read(side, usize::MAX));
        self.look();
        let closed = (0..2).all(|side| self.world.happened(side, &Event::Closed));
        let whole = self.ledgers.iter().all(|ledger| ledger.parts.is_empty());
        if !closed || !whole {
            self.tell();
            panic!("closed {closed}, whole {whole}");
        }
    }

    /// What a case that failed went through, and what it looked like at the end.
    fn tell(&self) {
        let heartbeat =
            |chunk: &Chunk| matches!(chunk, Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) | Chunk::Auth(_));
        for Left { at, side, packet, dropped, .. } in &self.world.log {
            for chunk in packet.chunks.iter().filter(|chunk| !heartbeat(chunk)) {
                let lost = if *dropped { "lost " } else { "" };
                eprintln!(
                    "{at:?} {side} {} > {} {lost}{:.300}",
                    packet.from.ip,
                    packet.to.ip,
                    format!("{chunk:?}")
                );
            }
        }
        for side in 0..2 {
            let (end, id) = (&self.world.ends[side], self.ids[side]);
            let told = |event: &Event| !matches!(event, Event::Readable | Event::Writable);
            for (at, _, event) in self.world.events[side].iter().filter(|(_, _, event)| told(event)) {
                eprintln!("side {side} hears at {at:?} {:.200}", format!("{event:?}"));
            }
            eprintln!("side {side} at {:?}: missing {:?}", self.world.now, self.ledgers[side].missing());
            eprintln!("{:?}", end.extensions(id));
            end.paths(id).iter().for_each(|path| eprintln!("{path:?}"));
            eprintln!("{:?} {:?}", end.status(id), end.statistics(self.world.now, id));
            eprintln!("{:?}", end.config());
        }
    }
}

/// An ABORT for a packet that belongs to no association. After a restart, it would end the association of the other end
/// first.
fn out_of_the_blue(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Abort(abort) if abort.reflected)
}

fn below(chance: &mut ChaCha8Rng, limit: u64) -> u64 {
    chance.next_u64() % limit
}

fn one_in(chance: &mut ChaCha8Rng, cases: u64) -> bool {
    below(chance, cases) == 0
}

fn random_weather(chance: &mut ChaCha8Rng) -> Weather {
    Weather {
        delay: Duration::from_millis(1 + below(chance, 60)),
        jitter: Duration::from_millis([0, 0, 30][below(chance, 3) as usize]),
        loss: [0, 10, 100, 250][below(chance, 4) as usize],
        doubled: [0, 50][below(chance, 2) as usize],
        up: true,
    }
}

fn random_message(chance: &mut ChaCha8Rng, ppid: u32) -> Message {
    let size = [1 + below(chance, 100), 1000 + below(chance, 1000), 5000 + below(chance, 9000)];
    let size = size[below(chance, 3) as usize];
    let reliability = match below(chance, 8) {
        0 => Reliability::Retransmissions(below(chance, 3) as u32),
        1 => Reliability::Lifetime([1, 200, 1000][below(chance, 3) as usize]),
        2 => Reliability::Priority(below(chance, 5) as u32),
        _ => Reliability::Full,
    };
    Message {
        stream: below(chance, STREAMS) as u16,
        ppid,
        unordered: one_in(chance, 3),
        immediate: one_in(chance, 9),
        payload: (0..size).map(|at| (at as u32 ^ ppid) as u8).collect(),
        reliability,
    }
}

fn key() -> SharedKey {
    SharedKey { id: 1, secret: Bytes::from_static(b"known to both") }
}

/// One configuration for each end. The mover may begin with fewer addresses than there are links.
fn random_pair(chance: &mut ChaCha8Rng, links: usize) -> [Config; 2] {
    let authentication = one_in(chance, 2);
    let keyed = authentication && one_in(chance, 2);
    [0, 1].map(|side| {
        let mut config = random_config(chance, links);
        let local = |link| LocalAddress { address: address(link, side), prefix: 24 };
        config.addresses = (0..links).map(local).collect();
        config.port = PORT + side as u16;
        config.extensions.authentication = authentication;
        config.extensions.addresses = authentication && !one_in(chance, 6);
        if authentication {
            config.authenticated_chunks =
                [vec![], vec![0, 3, 64], vec![0xc0, 0xc2, 0x82]][below(chance, 3) as usize].clone();
        }
        config.shared_key = keyed.then(key);
        config
    })
}

fn random_config(chance: &mut ChaCha8Rng, links: usize) -> Config {
    let mut any = |cases| one_in(chance, cases);
    let extensions = Extensions {
        partial_reliability: !any(4),
        reconfiguration: !any(4),
        interleaving: any(2),
        nr_sack: any(3),
        ecn: any(3),
        timestamps: any(3),
        ..Extensions::default()
    };
    let (_, rules) = Rules::ERAS[below(chance, 4) as usize];
    let retransmit = ["same", "alternate", "timeout-alternate"][below(chance, 3) as usize];
    let mut config = Config {
        rules,
        fast: PolicySpec::named(retransmit),
        timeout: PolicySpec::named(retransmit),
        pairs: if one_in(chance, 3) { Pairs::All } else { Pairs::OnePerPeer },
        rehome: one_in(chance, 3),
        receive_buffer: [5000, 20_000, 100_000][below(chance, 3) as usize],
        first_tsn: one_in(chance, 2).then(|| u32::MAX - below(chance, 60) as u32),
        mtu_discovery: one_in(chance, 6),
        cookie_life: Duration::from_secs(3600),
        extensions,
        parameters: Parameters {
            send_buffer: [None, Some(20_000), Some(1 << 20)][below(chance, 3) as usize],
            rto_initial: Duration::from_millis(500),
            rto_min: Duration::from_millis([100, 500][below(chance, 2) as usize]),
            rto_max: Duration::from_secs(5),
            sack_every: 1 + below(chance, 2) as u32,
            path_max_retrans: [0, 1, 5][below(chance, 3) as usize],
            pf_max_retrans: [None, Some(0), Some(1)][below(chance, 3) as usize],
            association_max_retrans: 100_000,
            max_init_retransmits: 100_000,
            heartbeat_interval: Some(Duration::from_secs(1)),
            mtu: [576, 1500, 1500, 4000][below(chance, 4) as usize],
            ..Parameters::default()
        },
        ..Config::default()
    };
    if links > 1 && one_in(chance, 2) {
        config = config.with_cmt();
        config.heartbeat_max_burst = 9;
    }
    if one_in(chance, 3) {
        config.mechanisms.loss_detection = LossDetection::Rack;
    }
    if one_in(chance, 3) {
        config.mechanisms.tail_probe = TailProbe::On;
    }
    config
}
