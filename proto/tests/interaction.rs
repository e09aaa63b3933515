//! Random sends, reads, losses, duplications, reorderings, path failures and timers between two endpoints:
//! every message is delivered exactly once, in order on its stream, and both ends close. The ends differ in MTU,
//! buffers, eras and extensions, and may answer from another of their addresses. With CMT they have its mechanisms,
//! routes and windows at random besides, on two or three paths.
//!
//! A failure names its seed: put it into `KEPT`. `ANABRANCH_CASES=N` runs N cases instead of 2,000 (500 with CMT),
//! `ANABRANCH_FIRST=N` begins with seed N.

mod support;

use anabranch_proto::{
    AssociationId, Config, Duration, Event, Mechanisms, Message, Pairs, Parameters, Policies, PolicySpec,
    Rules, SendError,
};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use support::expected::Expected;
use support::{Weather, World, at};

/// Seeds that once failed, when both ends had one configuration.
const KEPT: &[u64] = &[100, 5624, 15_946, 16_585, 36_352];
const CASES: u64 = 2000;
const CMT_CASES: u64 = 500;
const STREAMS: u16 = 4;

/// How the ends are configured.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Ends {
    /// Both alike.
    Alike,
    /// Each by itself.
    Apart,
    /// Each by itself, with CMT.
    Cmt,
}

#[test]
fn every_message_arrives_once_and_in_order() {
    let kept = KEPT.iter().map(|seed| (*seed, Ends::Alike));
    play_all(kept.chain(seeds(CASES).map(|seed| (seed, Ends::Apart))));
}

#[test]
fn every_message_arrives_once_and_in_order_with_cmt() {
    play_all(seeds(CMT_CASES).map(|seed| (seed, Ends::Cmt)));
}

/// The seeds that the environment asks for, else the first of this count.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|n| n.parse::<u64>().ok());
    let first = number("ANABRANCH_FIRST").unwrap_or(0);
    first..first + number("ANABRANCH_CASES").unwrap_or(count)
}

fn play_all(cases: impl Iterator<Item = (u64, Ends)>) {
    for (seed, ends) in cases {
        let outcome = std::panic::catch_unwind(|| Case::new(seed, ends).play());
        if let Err(panic) = outcome {
            eprintln!("the case with seed {seed} failed, ends: {ends:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Encoded and decoded, every packet arrives as it left: the run is the same to the last nanosecond and byte.
#[test]
fn the_codec_changes_nothing() {
    for (seed, ends) in (0..100).flat_map(|seed| [(seed, Ends::Apart), (seed, Ends::Cmt)]) {
        let [plain, coded] = [false, true].map(|wire| {
            let mut case = Case::new(seed, ends);
            (case.world.wire, case.world.keep_log) = (wire, true);
            case.play()
        });
        assert!(!plain.log.is_empty() && plain.log == coded.log, "seed {seed}");
        assert_eq!(plain.events, coded.events, "seed {seed}");
    }
}

struct Case {
    world: World,
    chance: ChaCha8Rng,
    /// By receiving side.
    expected: [Expected; 2],
    ids: [Option<AssociationId>; 2],
}

impl Case {
    fn new(seed: u64, ends: Ends) -> Self {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let alike = ends == Ends::Alike;
        let paths = match ends {
            Ends::Alike | Ends::Apart => 1 + below(&mut chance, 3) as usize,
            Ends::Cmt => 2 + below(&mut chance, 2) as usize,
        };
        let config = random_config(&mut chance);
        let weather = (0..paths).map(|_| random_weather(&mut chance)).collect();
        let mut configs = [config.clone(), config];
        if !alike {
            set_apart(&mut configs, &mut chance);
        }
        if ends == Ends::Cmt {
            configs.iter_mut().for_each(|config| set_cmt(config, &mut chance));
        }
        let [a, b] = configs;
        let mut world = World::new([at(0, paths, &a), at(1, paths, &b)], weather, seed);
        if !alike && a.pairs == Pairs::OnePerPeer && b.pairs == Pairs::OnePerPeer {
            world.moved = [0, 0, 100][below(&mut chance, 3) as usize];
        }
        world.wire = seed.is_multiple_of(4);
        world.ends.iter_mut().for_each(|end| end.set_notes(seed % 16 == 1));
        Case { world, chance, expected: Default::default(), ids: [None; 2] }
    }

    /// What left and what was told, to the end.
    fn play(mut self) -> World {
        self.world.keep_log |= std::env::var_os("ANABRANCH_FIRST").is_some();
        self.ids[0] = Some(self.world.connect());
        let steps = 20 + below(&mut self.chance, 60);
        for _ in 0..steps {
            self.act();
            let pause = Duration::from_micros(below(&mut self.chance, 400_000));
            self.pass(pause);
        }
        self.heal();
        let patience = self.world.now + Duration::from_secs(3600);
        while !self.expected.iter().all(Expected::is_empty) || !self.ids_known() {
            if self.world.now >= patience {
                self.tell();
                panic!("messages missing after an hour of fair weather");
            }
            self.pass(Duration::from_millis(500));
            self.read_all();
        }
        self.finish()
    }

    /// What a case that failed looked like at the end.
    fn tell(&self) {
        for left in self.world.log.iter().rev().take(12).rev() {
            eprintln!("{left:?}");
        }
        for side in 0..2 {
            let Some(id) = self.ids[side] else { continue };
            eprintln!("side {side}: {:#?}", self.world.ends[side].paths(id));
            eprintln!("{:?}", self.world.ends[side].statistics(self.world.now, id));
            eprintln!("{:?}", self.world.ends[side].config());
        }
    }

    fn ids_known(&self) -> bool {
        self.ids.iter().all(Option::is_some)
    }

    /// Lets time pass, and looks for the association of the side that listens.
    fn pass(&mut self, pause: Duration) {
        self.world.run(self.world.now + pause);
        if self.ids[1].is_none() {
            self.ids[1] = self.world.up(1);
        }
        for side in 0..2 {
            let lost = self.world.events[side].iter().find(|(_, _, e)| matches!(e, Event::Lost(_)));
            if lost.is_some() {
                self.tell();
                panic!("{lost:?} at side {side}");
            }
        }
    }

    fn act(&mut self) {
        let side = below(&mut self.chance, 2) as usize;
        match below(&mut self.chance, 10) {
            0..5 => self.send(side),
            5..7 => self.read(side),
            7 => {
                let path = below(&mut self.chance, self.world.weather.len() as u64) as usize;
                self.world.weather[path].up ^= true;
            }
            8 => {
                let path = below(&mut self.chance, self.world.weather.len() as u64) as usize;
                self.world.weather[path] = random_weather(&mut self.chance);
            }
            _ => {
                for _ in 0..below(&mut self.chance, 3) {
                    self.world.drain(side);
                }
            }
        }
    }

    fn send(&mut self, side: usize) {
        let Some(id) = self.ids[side] else { return };
        for _ in 0..=below(&mut self.chance, 6) {
            let message = random_message(&mut self.chance);
            match self.world.ends[side].send(self.world.now, id, message.clone()) {
                Ok(()) => self.expected[1 - side].sent(&message),
                Err(SendError::Full(_)) => break,
                Err(other) => panic!("refused: {other:?}"),
            }
        }
        self.world.drain(side);
    }

    fn read(&mut self, side: usize) {
        let Some(id) = self.ids[side] else { return };
        for _ in 0..below(&mut self.chance, 5) {
            let Some(delivery) = self.world.ends[side].read(self.world.now, id) else { break };
            self.expected[side].arrived(delivery);
        }
        self.world.drain(side);
    }

    fn read_all(&mut self) {
        for side in 0..2 {
            let Some(id) = self.ids[side] else { continue };
            while let Some(delivery) = self.world.ends[side].read(self.world.now, id) {
                self.expected[side].arrived(delivery);
            }
            self.world.drain(side);
        }
    }

    fn heal(&mut self) {
        for weather in &mut self.world.weather {
            *weather = Weather::fair(weather.delay);
        }
    }

    /// Nothing more comes, and both ends close.
    fn finish(mut self) -> World {
        let side = below(&mut self.chance, 2) as usize;
        self.world.ends[side].shutdown(self.world.now, self.ids[side].expect("up"));
        self.world.drain(side);
        self.pass(Duration::from_secs(300));
        self.read_all();
        if !(0..2).all(|side| self.world.happened(side, &Event::Closed)) {
            self.tell();
        }
        for side in 0..2 {
            assert!(self.world.happened(side, &Event::Closed), "side {side} has not closed");
            assert!(!self.expected[side].in_part());
        }
        self.world
    }
}

fn below(chance: &mut ChaCha8Rng, limit: u64) -> u64 {
    chance.next_u64() % limit
}

fn random_weather(chance: &mut ChaCha8Rng) -> Weather {
    Weather {
        delay: Duration::from_millis(1 + below(chance, 100)),
        jitter: Duration::from_millis([0, 0, 5, 80][below(chance, 4) as usize]),
        loss: [0, 0, 10, 100, 300][below(chance, 5) as usize],
        doubled: [0, 0, 50][below(chance, 3) as usize],
        up: below(chance, 8) > 0,
    }
}

fn random_message(chance: &mut ChaCha8Rng) -> Message {
    let len = match below(chance, 10) {
        0..4 => 1 + below(chance, 100),
        4..8 => 1000 + below(chance, 1000),
        8 => 5000 + below(chance, 5000),
        _ => 20_000 + below(chance, 40_000),
    };
    let mut payload = vec![0; len as usize];
    chance.fill_bytes(&mut payload);
    Message {
        stream: below(chance, u64::from(STREAMS)) as u16,
        ppid: chance.next_u32(),
        unordered: below(chance, 4) == 0,
        immediate: false,
        payload: payload.into(),
        ..Message::default()
    }
}

/// Makes two ends differ where they may.
fn set_apart(configs: &mut [Config; 2], chance: &mut ChaCha8Rng) {
    let interleaving = below(chance, 3) == 0;
    let first_ssn = if interleaving { 0 } else { configs[0].first_ssn };
    for config in configs {
        let own = random_config(chance);
        (config.receive_buffer, config.send_buffer) = (own.receive_buffer, own.send_buffer);
        (config.rules, config.pairs, config.fast, config.timeout) =
            (own.rules, own.pairs, own.fast, own.timeout);
        config.mtu = [576, 1500, 1500, 4000, 9000][below(chance, 5) as usize];
        config.mtu_discovery = below(chance, 6) == 0;
        config.sack_every = 1 + below(chance, 3) as u32;
        config.first_tsn = Some(u32::MAX - below(chance, 60) as u32);
        config.first_ssn = first_ssn;
        config.extensions.interleaving = interleaving;
        config.extensions.partial_reliability = below(chance, 2) == 0;
        config.extensions.reconfiguration = below(chance, 2) == 0;
        config.extensions.ecn = below(chance, 2) == 0;
    }
}

/// CMT with its mechanisms, routes and windows at random.
fn set_cmt(config: &mut Config, chance: &mut ChaCha8Rng) {
    config.rules = Rules::ERAS[below(chance, 4) as usize].1;
    *config = std::mem::take(config).with_cmt();
    for (key, choices) in Mechanisms::CHOICES {
        if below(chance, 3) == 0 {
            let choice = choices[below(chance, choices.len() as u64) as usize];
            config.mechanisms.choose(key, choice).expect("a mechanism and its choice");
        }
    }
    let policies = Policies::default();
    let routes: Vec<_> = policies.route_names().collect();
    let windows: Vec<_> = policies.window_names().collect();
    let mut one_of = |names: &[&str]| PolicySpec::named(names[below(chance, names.len() as u64) as usize]);
    config.new_data = one_of(&["round-robin", "lowest-rtt", "window-share", "ecf", "blest"]);
    (config.fast, config.timeout) = (one_of(&routes), one_of(&routes));
    config.window = one_of(&windows);
    config.pf_max_retrans = [None, Some(0), Some(1)][below(chance, 3) as usize];
    config.pf_window = [None, Some(2)][below(chance, 2) as usize];
    config.heartbeat_max_burst = 9;
    config.extensions.nr_sack = below(chance, 2) == 0;
}

fn random_config(chance: &mut ChaCha8Rng) -> Config {
    let (_, rules) = Rules::ERAS[below(chance, 4) as usize];
    let retransmit = ["same", "alternate", "timeout-alternate"][below(chance, 3) as usize];
    let pairs = if below(chance, 3) == 0 { Pairs::All } else { Pairs::OnePerPeer };
    Config {
        rules,
        fast: PolicySpec::named(retransmit),
        timeout: PolicySpec::named(retransmit),
        pairs,
        receive_buffer: [5000, 20_000, 100_000][below(chance, 3) as usize],
        first_tsn: Some(u32::MAX - below(chance, 60) as u32),
        first_ssn: u16::MAX - below(chance, 10) as u16,
        cookie_life: Duration::from_secs(3600),
        parameters: Parameters {
            send_buffer: Some([3000, 100_000][below(chance, 2) as usize]),
            rto_initial: Duration::from_millis(500),
            rto_min: Duration::from_millis([10, 200, 500][below(chance, 3) as usize]),
            rto_max: Duration::from_secs(10),
            path_max_retrans: [0, 1, 5][below(chance, 3) as usize],
            association_max_retrans: 100_000,
            max_init_retransmits: 100_000,
            heartbeat_interval: Some(Duration::from_secs(1)),
            mtu: [576, 1500][below(chance, 2) as usize],
            ..Parameters::default()
        },
        ..Config::default()
    }
}
