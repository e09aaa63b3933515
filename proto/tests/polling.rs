//! What must not matter, does not: how often one polls, when the run began, where the numbers start, and
//! whether packets go through the codec. Random cases are played twice and compared packet by packet.

mod support;

use anabranch_proto::rules::Confirmation;
use anabranch_proto::wire::{Chunk, Packet, Param};
use anabranch_proto::{
    Config, Duration, Event, Message, Pairs, Parameters, PolicySpec, Rules, Ssn, Time, Tsn,
};
use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use support::{Weather, World, at, secs};

const CASES: u64 = 60;
/// Where the numbers start when nothing else is tested.
const TSN: u32 = 1;

/// How a case is played.
#[derive(Clone)]
struct Play {
    start: Time,
    extra_polls: bool,
    /// Whether notes are on, which every poll looks for: no end settles early because it rests.
    noted: bool,
    /// Whether every packet is decided anew, because something happens before each poll.
    anew: bool,
    /// Whether equal messages are given by one call.
    copies: bool,
    wire: bool,
    tsn: u32,
    ssn: u16,
}

impl Play {
    const PLAIN: Play = Play {
        start: Time::ZERO,
        extra_polls: false,
        noted: false,
        anew: false,
        copies: false,
        wire: false,
        tsn: TSN,
        ssn: 0,
    };
}

/// Plays every case both ways; what happened must be the same but for times and numbers, which are relative.
fn compare(other: &Play) {
    for seed in 0..CASES {
        let (plain, varied) = (happened(seed, &Play::PLAIN), happened(seed, other));
        let at = plain.iter().zip(&varied).position(|(a, b)| a != b);
        if let Some(at) = at {
            panic!("seed {seed}, line {at}:\n{}\n{}", plain[at], varied[at]);
        }
        assert_eq!(plain.len(), varied.len(), "seed {seed}");
    }
}

#[test]
fn polling_more_often_changes_nothing() {
    compare(&Play { extra_polls: true, ..Play::PLAIN });
}

/// An end that has nothing to send settles in fewer steps, but not while notes are on.
#[test]
fn nor_do_notes() {
    compare(&Play { noted: true, ..Play::PLAIN });
}

/// The packets of a train are those that are decided one by one.
#[test]
fn nor_do_trains() {
    compare(&Play { anew: true, ..Play::PLAIN });
}

#[test]
fn nor_do_equal_messages_given_by_one_call() {
    compare(&Play { copies: true, ..Play::PLAIN });
}

#[test]
fn nor_does_the_time_of_the_start() {
    compare(&Play { start: secs(1e6), ..Play::PLAIN });
}

#[test]
fn nor_do_the_first_numbers() {
    compare(&Play { tsn: u32::MAX - 20, ssn: u16::MAX - 3, ..Play::PLAIN });
    compare(&Play { tsn: (1 << 31) - 5, ssn: (1 << 15) - 2, ..Play::PLAIN });
}

#[test]
fn nor_does_the_codec() {
    compare(&Play { wire: true, ..Play::PLAIN });
}

/// Cases differ, and much happens in them: so that the comparisons compare something.
#[test]
fn the_cases_are_worth_playing() {
    let all: Vec<String> = (0..CASES).flat_map(|seed| happened(seed, &Play::PLAIN)).collect();
    assert!(all.len() > 100 * CASES as usize, "{} lines", all.len());
    for sign in ["Missing", "Timeout", "Abort", "Heartbeat", "ShutdownAck", "Inactive", "SendFailed"] {
        assert!(all.iter().any(|line| line.contains(sign)), "no {sign} in any case");
    }
}

fn below(chance: &mut ChaCha8Rng, limit: u64) -> u64 {
    chance.next_u64() % limit
}

/// Everything that left and was told in a case, line by line.
fn happened(seed: u64, play: &Play) -> Vec<String> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut polls = ChaCha8Rng::seed_from_u64(!seed);
    let mut world = begin(&mut chance, seed, play);
    world.connect();
    for _ in 0..30 {
        act(&mut world, &mut chance, play);
        let until = world.now + Duration::from_micros(below(&mut chance, 700_000));
        pass(&mut world, until, play, &mut polls);
    }
    let side = below(&mut chance, 2) as usize;
    if let Some(id) = world.up(side) {
        world.ends[side].shutdown(world.now, id);
        world.drain(side);
    }
    let until = world.now + Duration::from_secs(200);
    pass(&mut world, until, play, &mut polls);
    let data = |chunk: &Chunk| matches!(chunk, Chunk::Data(_));
    let has_sent = world.log.iter().any(|left| left.packet.chunks.iter().any(data));
    assert!(!has_sent || play.noted == world.notes.iter().any(|notes| !notes.is_empty()));
    tell(&world, play)
}

fn begin(chance: &mut ChaCha8Rng, seed: u64, play: &Play) -> World {
    let paths = 1 + below(chance, 3) as usize;
    let (_, mut rules) = Rules::ERAS[below(chance, 4) as usize];
    let pairs = if below(chance, 4) == 0 { Pairs::All } else { Pairs::OnePerPeer };
    if pairs == Pairs::All {
        rules.confirmation = Confirmation::DataAtOnce;
    }
    let retransmit = ["same", "alternate", "timeout-alternate"][below(chance, 3) as usize];
    let config = Config {
        rules,
        pairs,
        new_data: PolicySpec::named(["primary", "round-robin"][below(chance, 2) as usize]),
        fast: PolicySpec::named(retransmit),
        timeout: PolicySpec::named(retransmit),
        receive_buffer: [5000, 20_000, 100_000][below(chance, 3) as usize],
        first_tsn: Some(play.tsn),
        first_ssn: play.ssn,
        parameters: Parameters {
            rto_min: Duration::from_millis([10, 300, 1000][below(chance, 3) as usize]),
            path_max_retrans: [0, 1, 5][below(chance, 3) as usize],
            heartbeat_interval: Some(Duration::from_secs(1)),
            ..Parameters::default()
        },
        ..Config::default()
    };
    let weather = (0..paths).map(|_| random_weather(chance)).collect();
    let mut world = World::new([at(0, paths, &config), at(1, paths, &config)], weather, seed);
    world.now = play.start;
    world.wire = play.wire;
    world.ends.iter_mut().for_each(|end| end.set_notes(play.noted));
    world.anew = play.anew;
    world.keep_log = true;
    world
}

fn random_weather(chance: &mut ChaCha8Rng) -> Weather {
    Weather {
        delay: Duration::from_millis(1 + below(chance, 100)),
        jitter: Duration::from_millis([0, 0, 30][below(chance, 3) as usize]),
        loss: [0, 10, 100][below(chance, 3) as usize],
        doubled: [0, 0, 50][below(chance, 3) as usize],
        up: below(chance, 10) > 0,
    }
}

fn act(world: &mut World, chance: &mut ChaCha8Rng, play: &Play) {
    let side = below(chance, 2) as usize;
    match below(chance, 12) {
        0..6 => send(world, side, chance, play),
        6..9 => {
            world.take(side);
        }
        9 | 10 => {
            let path = below(chance, world.weather.len() as u64) as usize;
            world.weather[path] = random_weather(chance);
        }
        _ if below(chance, 10) == 0 => {
            if let Some(id) = world.up(side) {
                world.ends[side].abort(world.now, id, Default::default());
                world.drain(side);
            }
        }
        _ => {}
    }
}

fn send(world: &mut World, side: usize, chance: &mut ChaCha8Rng, play: &Play) {
    for _ in 0..=below(chance, 8) {
        let size = [50, 1452, 4000][below(chance, 3) as usize];
        let message = Message {
            stream: below(chance, 3) as u16,
            unordered: below(chance, 4) == 0,
            payload: Bytes::from(vec![7; size]),
            ..Message::default()
        };
        let count = 1 + below(chance, 5);
        let Some(id) = world.up(side) else { continue };
        let (now, end) = (world.now, &mut world.ends[side]);
        if play.copies {
            end.send_copies(now, id, &message, None, count);
        } else {
            let _full = (0..count).try_for_each(|_| end.send(now, id, message.clone()));
        }
    }
    world.drain(side);
}

/// Time passes, with polls in between that nobody needs, if the case is played so.
fn pass(world: &mut World, until: Time, play: &Play, polls: &mut ChaCha8Rng) {
    while play.extra_polls && world.now < until {
        let pause = Duration::from_micros(below(polls, 100_000));
        world.run((world.now + pause).min(until));
        for _ in 0..=below(polls, 3) {
            world.drain(below(polls, 2) as usize);
        }
    }
    world.run(until);
}

fn tell(world: &World, play: &Play) -> Vec<String> {
    let since = |at: Time| at.since(play.start);
    let sent = world.log.iter().map(|left| {
        let (size, packet) = (left.packet.size(), relative(&left.packet, play));
        let (at, side, dropped) = (since(left.at), left.side, left.dropped);
        format!("{at:?} {side} {size} {packet:?} {:?} {dropped}", left.reason)
    });
    let told = |side: usize| {
        let line = move |(at, id, event): &(Time, _, Event)| match event {
            Event::SendFailed { message, sent } => {
                format!("{:?} {id:?} SendFailed {} {sent}", since(*at), message.payload.len())
            }
            event => format!("{:?} {id:?} {event:?}", since(*at)),
        };
        world.events[side].iter().map(line)
    };
    sent.chain(told(0)).chain(told(1)).collect()
}

/// The packet with its numbers counted from the first, without the times that its sender put into it, and
/// without user data, which is all alike.
fn relative(packet: &Packet, play: &Play) -> Packet {
    let mut packet = packet.clone();
    let from = |tsn: Tsn| Tsn(tsn.0.wrapping_sub(play.tsn));
    for chunk in &mut packet.chunks {
        match chunk {
            Chunk::Data(data) => {
                data.tsn = from(data.tsn);
                data.payload = Bytes::new();
                if !data.unordered {
                    data.ssn = Ssn(data.ssn.0.wrapping_sub(play.ssn));
                }
            }
            Chunk::Sack(sack) => {
                sack.cumulative = from(sack.cumulative);
                sack.duplicates.iter_mut().for_each(|tsn| *tsn = from(*tsn));
            }
            Chunk::Init(init) | Chunk::InitAck(init) => {
                init.tsn = from(init.tsn);
                init.params.retain(|param| !matches!(param, Param::Cookie(_)));
            }
            Chunk::Shutdown(shutdown) => shutdown.cumulative = from(shutdown.cumulative),
            Chunk::CookieEcho(echo) => echo.cookie = Bytes::new(),
            Chunk::Heartbeat(heartbeat) | Chunk::HeartbeatAck(heartbeat) => {
                heartbeat.info = heartbeat.info.slice(8..);
            }
            _ => {}
        }
    }
    packet
}

/// A poll that has nothing to say says so again, and an event is told once.
#[test]
fn a_drained_endpoint_stays_drained() {
    let config = Config::default();
    let (mut world, id) = World::joined([&config, &config], 2);
    world.run(secs(1.0));
    world.give(0, id, 100);
    let told = world.events[0].len();
    for _ in 0..100 {
        world.drain(0);
        world.drain(1);
    }
    assert_eq!(world.events[0].len(), told);
    assert_eq!(world.events[0].iter().filter(|e| e.2 == Event::Up).count(), 1);
    assert_eq!(world.log.iter().filter(|left| left.at == world.now).count(), 1);
}
