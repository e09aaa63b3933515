//! A run is branched: copies of both endpoints, and of what is under way between them, have the same future.

#[path = "support/mod.rs"]
mod support;

use anabranch_proto::{AssociationId, Config, Duration, Message, Parameters};
use bytes::Bytes;
use support::{Weather, World, at, secs};

/// Points at which each run is branched, and steps that each branch takes; every hundredth runs to the end.
const POINTS: usize = 1000;
const STEPS: usize = 30;
/// Every so many points, states are compared too.
const HASHED: usize = 10;
/// No step happens later.
const END: f64 = 600.0;

/// A transfer over two paths that lose, double and delay.
fn begin(config: &Config) -> (World, AssociationId) {
    let weather = Weather {
        jitter: Duration::from_millis(20),
        loss: 40,
        doubled: 20,
        ..Weather::fair(Duration::from_millis(30))
    };
    let mut world = World::new([at(0, 2, config), at(1, 2, config)], vec![weather; 2], 7);
    world.keep_log = true;
    let id = world.connect();
    let message = |n: u16| Message {
        stream: n % 3,
        unordered: n.is_multiple_of(5),
        payload: Bytes::from(vec![n as u8; 500]),
        ..Message::default()
    };
    (0..700u16).for_each(|n| world.ends[0].send(world.now, id, message(n)).expect("there is room"));
    world.ends[0].shutdown(world.now, id);
    world.drain(0);
    (world, id)
}

/// The next step, with side 1 reading what has arrived.
fn step(world: &mut World) -> bool {
    let more = world.step(secs(END));
    world.take(1);
    more
}

fn hashes(world: &World) -> [u64; 2] {
    [world.ends[0].state_hash(), world.ends[1].state_hash()]
}

/// Small packets, and timeouts that come soon.
fn short(parameters: &mut Parameters) {
    parameters.mtu = 576;
    parameters.rto_min = Duration::from_millis(200);
}

/// Branches a run at [`POINTS`] points; each branch sends the same packets at the same times as the run does.
fn branched(config: &Config) {
    let (mut world, _) = begin(config);
    let (mut branches, mut states) = (Vec::new(), Vec::new());
    for point in 0usize.. {
        states.push(point.is_multiple_of(HASHED).then(|| hashes(&world)));
        if point < POINTS {
            branches.push((point, world.log.len(), world.branch()));
        }
        if !step(&mut world) {
            break;
        }
    }
    assert!(states.len() > POINTS, "{} steps", states.len());
    for (point, sent, mut branch) in branches {
        let same = |branch: &World, at: usize| states[at].is_none_or(|state| state == hashes(branch));
        assert!(same(&branch, point), "at {point}");
        let steps = if point.is_multiple_of(100) { usize::MAX } else { STEPS };
        let taken = (0..steps).take_while(|_| step(&mut branch)).count();
        let last = (point + taken).min(states.len() - 1);
        assert!(same(&branch, last), "at {point}, after {taken} steps");
        assert_eq!(branch.log[..], world.log[sent..][..branch.log.len()], "at {point}");
    }
}

#[test]
fn a_branch_has_the_same_future() {
    let mut config = Config::default().with(short);
    config.extensions.authentication = true;
    config.extensions.partial_reliability = true;
    config.extensions.reconfiguration = true;
    branched(&config);
}

/// With windows and routes that keep state of their own.
#[test]
fn and_so_it_has_with_cmt() {
    branched(&Config::era("ns2").expect("an era").with_cmt().with(short));
}

/// States that differ in a single draw of chance, or in one byte that waits, have different hashes.
#[test]
fn the_hash_tells_states_apart() {
    let config = Config::default().with(short);
    let (mut world, id) = begin(&config);
    let [before, _] = hashes(&world);
    (0..20).for_each(|_| assert!(step(&mut world)));
    assert_ne!(hashes(&world)[0], before);
    let mut end = world.ends[1].clone();
    assert_eq!(end.state_hash(), hashes(&world)[1]);
    end.set_listening(false);
    assert_ne!(end.state_hash(), hashes(&world)[1]);
    let aborted = |byte: u8| {
        let mut end = world.ends[0].clone();
        end.abort(world.now, id, Bytes::from(vec![byte]));
        end.state_hash()
    };
    assert_eq!(aborted(1), aborted(1));
    assert_ne!(aborted(1), aborted(2));
}
