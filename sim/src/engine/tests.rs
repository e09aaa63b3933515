//! The engine with agents that speak no protocol.

use anabranch_proto::{Duration, Limit, Purpose, Reason};

use super::*;
use crate::medium::wire::{Alteration, Losses};
use crate::scenario::{Loss, Queue};
use crate::tests::frame;

/// Sends a packet of `size` bytes every `every` nanoseconds, or counts what comes.
struct Plain {
    route: u32,
    size: u32,
    every: u64,
    left: u64,
    next: Time,
    got: Vec<Time>,
    expected: usize,
    count: usize,
    keep: bool,
}

impl Plain {
    fn source(route: u32, size: u32, every: u64, left: u64) -> Self {
        let (next, got) = (Time::ZERO, Vec::new());
        Plain { route, size, every, left, next, got, expected: 0, count: 0, keep: false }
    }

    fn sink(expected: usize, keep: bool) -> Self {
        Plain { expected, keep, ..Plain::source(NO_ROUTE, 0, 1, 0) }
    }
}

const DATA: Reason = Reason { purpose: Purpose::Error, path: None, limit: Limit::Control, oversize: false };

impl Agent for Plain {
    fn handle(&mut self, now: Time, _: Frame) {
        self.count += 1;
        if self.keep {
            self.got.push(now);
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if self.left > 0 && now >= self.next {
            self.left -= 1;
            self.next = Time::from_nanos(self.next.as_nanos() + self.every);
            return Output::Transmit(frame(self.size, self.route), DATA);
        }
        Output::Wait((self.left > 0).then_some(self.next))
    }

    fn stage(&self) -> Stage {
        if self.left == 0 && self.count >= self.expected { Stage::Over } else { Stage::Busy }
    }
}

fn direction(rate: u64, delay: Duration, packets: u32) -> Direction {
    let losses = Losses::new(0, "x", &Loss::None);
    Direction::new(rate, delay.as_nanos() as u64, Queue::Packets(packets), losses, true)
}

/// 125 bytes take 1 ms.
fn link() -> Direction {
    direction(1_000_000, Duration::from_millis(10), 50)
}

const MS: u64 = 1_000_000;

fn engine<'a>(
    links: Vec<Direction>,
    routes: Vec<u32>,
    agents: Vec<Plain>,
    changes: Vec<Change>,
) -> Engine<'a, Plain> {
    let pairs = (0..agents.len()).step_by(2);
    let flow =
        |first| FlowParts { agents: first..first + 2, routes: 0..0, awaited: true, lossless_sacks: false };
    let flows = pairs.map(flow).collect();
    Engine::new(Parts {
        links,
        channels: Vec::new(),
        radio_hops: Vec::new(),
        routes,
        agents,
        flows,
        changes,
        pauses: Vec::new(),
        observer: None,
        batches: false,
        extra_polls: false,
    })
}

fn millis(times: &[Time]) -> Vec<u64> {
    times.iter().map(|time| time.as_nanos() / MS).collect()
}

#[test]
fn packets_go_along_their_route() {
    let agents = vec![Plain::source(0, 125, 5 * MS, 3), Plain::sink(3, true)];
    let mut engine = engine(vec![link(), link(), link()], vec![2, 0, 1, ARRIVED + 1], agents, Vec::new());
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(millis(&engine.agents[1].got), [33, 38, 43]);
    assert_eq!(engine.now(), Time::from_nanos(43 * MS));
}

#[test]
fn at_equal_times_the_first_scheduled_is_first() {
    // Two flows meet at a link with room for one packet: both arrive at 11 ms.
    let both = |first: u32| {
        let agents = vec![
            Plain::source(0, 125, MS, 1),
            Plain::sink(1, true),
            Plain::source(3, 125, MS, 1),
            Plain::sink(1, true),
        ];
        let routes = vec![first, 2, ARRIVED + 1, 1 - first, 2, ARRIVED + 3];
        let last = direction(1_000_000, Duration::ZERO, 1);
        let mut engine = engine(vec![link(), link(), last], routes, agents, Vec::new());
        engine.run(Time::from_nanos(MS * 100), |_| ControlFlow::Continue(())).unwrap();
        [engine.agents[1].got.len(), engine.agents[3].got.len()]
    };
    assert_eq!(both(0), [1, 0]);
    assert_eq!(both(1), [1, 0], "the number of the link decides nothing");
}

#[test]
fn a_place_is_free_at_the_moment_of_a_departure() {
    // The second link sends as fast as the first: each packet comes just as the last one leaves.
    let agents = vec![Plain::source(0, 125, 0, 20), Plain::sink(20, true)];
    let links = vec![link(), direction(1_000_000, Duration::ZERO, 1)];
    let mut engine = engine(links, vec![0, 1, ARRIVED + 1], agents, Vec::new());
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(engine.links[1].counters().queue, 0);
}

#[test]
fn a_run_ends_at_its_stop() {
    let agents = vec![Plain::source(0, 125, 5 * MS, u64::MAX), Plain::sink(0, true)];
    let mut engine = engine(vec![link()], vec![0, ARRIVED + 1], agents, Vec::new());
    engine.run(Time::from_nanos(21 * MS), |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(millis(&engine.agents[1].got), [11, 16, 21]);
    assert_eq!(engine.now(), Time::from_nanos(21 * MS));
}

#[test]
fn links_go_down_and_up() {
    let agents = vec![Plain::source(0, 125, 5 * MS, 10), Plain::sink(6, true)];
    let up = |at, up| {
        let alteration = Alteration { up: Some(up), ..Alteration::default() };
        Change { at: Time::from_nanos(at * MS), link: 0, alteration }
    };
    let mut engine = engine(vec![link()], vec![0, ARRIVED + 1], agents, vec![up(12, false), up(27, true)]);
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(millis(&engine.agents[1].got), [11, 41, 46, 51, 56]);
    assert_eq!(engine.links[0].counters().down, 5);
}

#[test]
fn a_link_becomes_slower_and_faster_while_packets_wait() {
    let agents = vec![Plain::source(0, 125, 0, 6), Plain::sink(6, true)];
    let rate = |at, rate| {
        let alteration = Alteration { rate: Some(rate), ..Alteration::default() };
        Change { at: Time::from_nanos(at), link: 0, alteration }
    };
    let changes = vec![rate(MS / 2, 100_000), rate(MS + MS / 2, 1_000_000), rate(12 * MS, 500_000)];
    let links = vec![direction(1_000_000, Duration::ZERO, 50)];
    let mut engine = engine(links, vec![0, ARRIVED + 1], agents, changes);
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(millis(&engine.agents[1].got), [1, 11, 12, 13, 15, 17]);
}

#[test]
fn whoever_watches_can_end_it() {
    let agents = vec![Plain::source(0, 125, 5 * MS, u64::MAX), Plain::sink(0, false)];
    let mut engine = engine(vec![link()], vec![0, ARRIVED + 1], agents, Vec::new());
    assert!(engine.run(Time::NEVER, |_| ControlFlow::Break(())).is_err());
    assert_eq!(engine.events(), GLANCE);
}

#[test]
fn a_packet_that_takes_no_time_to_send_leaves_its_queue() {
    for next in [link(), direction(100_000, Duration::ZERO, 1)] {
        // 40 bytes take less than a nanosecond. Because of its losses, the link looks at its queue for each packet.
        let losses = Losses::new(0, "x", &Loss::Every(1_000_000));
        let fast = Direction::new(400_000_000_000, 0, Queue::Packets(1), losses, true);
        let agents = vec![Plain::source(0, 40, MS, 100), Plain::sink(100, false)];
        let mut engine = engine(vec![fast, next], vec![0, 1, ARRIVED + 1], agents, Vec::new());
        engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(engine.links[0].counters().queue, 0);
        assert_eq!(engine.agents[1].count as u64 + engine.links[1].counters().queue, 100);
    }
}

/// With `PACKETS=20000000` and `HOPS=7`, under `time`, what the engine costs: the difference of two is that of a hop.
#[test]
fn all_packets_arrive_over_any_number_of_links() {
    let packets: u64 = std::env::var("PACKETS").map_or(20_000, |n| n.parse().unwrap());
    let hops = std::env::var("HOPS").map_or(3, |hops| hops.parse().unwrap());
    let agents = vec![Plain::source(0, 1500, 1_200_000, packets), Plain::sink(packets as usize, false)];
    let access = || direction(1_000_000_000, Duration::ZERO, 10_000);
    let mut links: Vec<_> = (0..hops).map(|_| access()).collect();
    links[hops as usize / 2] = direction(10_000_000, Duration::from_millis(50), 50);
    let routes = (0..hops).chain([ARRIVED + 1]).collect();
    let mut engine = engine(links, routes, agents, Vec::new());
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(engine.agents[1].count, packets as usize);
}
