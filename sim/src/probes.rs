//! Probes of the extension points: a toy transport, a toy medium and a toy window, each as small as possible.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use anabranch_proto::control::window::{Acked, Congestion, Lost, Sibling, Start};
use anabranch_proto::policy::Loss as HowLost;
use anabranch_proto::wire::Address;
use anabranch_proto::{Duration, Limit, Policies, PolicySpec, Purpose, Reason, Time};

use crate::engine::{ARRIVED, Engine, FlowParts, Parts};
use crate::medium::Medium;
use crate::medium::wire::{Direction, Losses};
use crate::medium::wireless::{Channel, Fate, StationId};
use crate::network::RADIO;
use crate::network::radios::RadioHop;
use crate::scenario::{Loss, Queue};
use crate::transport::{Agent, Body, Datagram, Frame, Output, Stage};
use crate::{RunOptions, run, tests};

// The window, in 15 lines: one packet more per acknowledged window, and half after a loss.

#[derive(Clone, Debug)]
struct Halving {
    unit: u64,
    window: u64,
}

impl Congestion for Halving {
    fn window(&self) -> u64 {
        self.window
    }
    fn acked(&mut self, acked: &Acked, _: &[Sibling]) {
        self.window += self.unit * acked.all() / self.window;
    }
    fn lost(&mut self, _: &Lost, _: &[Sibling]) {
        self.window = (self.window / 2).max(self.unit);
    }
}

fn window(start: Start) -> Box<dyn Congestion> {
    Box::new(Halving { unit: start.unit, window: start.window })
}

// The transport, in 60 lines: go-back-N. Each datagram is acknowledged with the number that the receiver expects next.

const SIZE: u64 = 1000;
const TIMEOUT: Duration = Duration::from_millis(500);
const WHY: Reason = Reason { purpose: Purpose::Error, path: None, limit: Limit::Control, oversize: false };

struct Toy {
    route: u32,
    /// The number of datagrams to send; 0 for a receiver.
    total: u64,
    /// The number that is sent next, or that the receiver expects.
    next: u64,
    acked: u64,
    timer: Time,
    /// Acknowledgements that the receiver still has to send.
    answers: u32,
    window: Box<dyn Congestion>,
    timeouts: u32,
}

impl Toy {
    fn new(route: u32, total: u64) -> Self {
        let window = window(Start { unit: SIZE, window: 4 * SIZE, ssthresh: u64::MAX });
        Toy { route, total, next: 0, acked: 0, timer: Time::NEVER, answers: 0, window, timeouts: 0 }
    }
    fn flight(&self) -> u64 {
        (self.next - self.acked) * SIZE
    }
    fn datagram(&self, number: u64, size: u64) -> Output {
        let nobody = Address { ip: IpAddr::V4(Ipv4Addr::UNSPECIFIED), udp: 9 };
        let datagram = Datagram { from: nobody, to: nobody, payload: size as u32, number };
        Output::Transmit(Frame::new(Body::Datagram(Rc::new(datagram)), size as u32, self.route), WHY)
    }
}

impl Agent for Toy {
    fn handle(&mut self, now: Time, frame: Frame) {
        let Body::Datagram(datagram) = frame.body else { return };
        let number = datagram.number;
        if self.total == 0 {
            self.next += u64::from(number == self.next);
            self.answers += 1;
        } else if number > self.acked {
            let cumulative = (number - self.acked) * SIZE;
            (self.acked, self.next) = (number, self.next.max(number));
            self.timer = if self.flight() > 0 { now + TIMEOUT } else { Time::NEVER };
            self.window.acked(&Acked { now, cumulative, ..Acked::default() }, &[]);
        }
    }
    fn poll(&mut self, now: Time) -> Output {
        if self.answers > 0 {
            self.answers -= 1;
            return self.datagram(self.next, 40);
        }
        if now >= self.timer {
            let outstanding = self.flight();
            self.window.lost(&Lost { now, how: HowLost::Timeout, outstanding }, &[]);
            (self.next, self.timer, self.timeouts) = (self.acked, Time::NEVER, self.timeouts + 1);
        }
        if self.next < self.total && self.flight() + SIZE <= self.window.window() {
            (self.next, self.timer) = (self.next + 1, self.timer.min(now + TIMEOUT));
            return self.datagram(self.next - 1, SIZE);
        }
        Output::Wait((self.timer != Time::NEVER).then_some(self.timer))
    }
    fn stage(&self) -> Stage {
        if self.acked == self.total { Stage::Over } else { Stage::Busy }
    }
}

// The medium: a bus. It carries one frame at a time, in the order of `offer`, at 1 Mbit/s, and holds at most 20
// frames.

#[derive(Default)]
struct Bus {
    waiting: VecDeque<Frame>,
    /// When the transmission of the first frame ends.
    ends: Time,
    carried: u64,
}

impl Bus {
    fn begin(&mut self, now: Time) {
        self.ends = self
            .waiting
            .front()
            .map_or(Time::NEVER, |frame| now + Duration::from_micros(8 * u64::from(frame.size)));
    }
}

impl Medium for Bus {
    fn offer(&mut self, now: Time, _: StationId, _: StationId, _: u32, frame: Frame) -> Result<(), Frame> {
        if self.waiting.len() == 20 {
            return Err(frame);
        }
        self.waiting.push_back(frame);
        if self.waiting.len() == 1 {
            self.begin(now);
        }
        Ok(())
    }

    fn next(&self, _part: usize) -> Time {
        if self.waiting.is_empty() { Time::NEVER } else { self.ends }
    }

    fn advance(&mut self, _part: usize, now: Time, _until: Time, fates: &mut Vec<Fate<Frame>>) -> Time {
        if let Some(frame) = self.waiting.pop_front_if(|_| self.ends <= now) {
            self.carried += u64::from(frame.size);
            fates.push(Fate::Delivered(frame));
            self.begin(now);
        }
        now
    }

    fn each_frame(&self, each: &mut dyn FnMut(&Frame)) {
        self.waiting.iter().for_each(each);
    }
}

fn parts<'a, M>(
    links: Vec<Direction>,
    media: Vec<M>,
    hops: Vec<RadioHop>,
    routes: Vec<u32>,
    agents: Vec<Toy>,
) -> Parts<'a, Toy, M> {
    let flow =
        |first| FlowParts { agents: first..first + 2, routes: 0..0, awaited: true, lossless_sacks: false };
    Parts {
        links,
        channels: media,
        radio_hops: hops,
        routes,
        flows: (0..agents.len()).step_by(2).map(flow).collect(),
        agents,
        changes: Vec::new(),
        pauses: Vec::new(),
        observer: None,
        batches: false,
        extra_polls: true,
    }
}

/// 300 kB over 1 Mbit/s and 10 ms, with every 50th packet lost: the engine can carry an unknown transport.
#[test]
fn a_toy_transport_with_a_toy_window_crosses_lossy_links() {
    let direction = |name| {
        let losses = Losses::new(1, name, &Loss::Random(0.02));
        Direction::new(1_000_000, 10_000_000, Queue::Packets(20), losses, true)
    };
    let routes = vec![0, ARRIVED + 1, 1, ARRIVED];
    let agents = vec![Toy::new(0, 300), Toy::new(2, 0)];
    let links = vec![direction("there"), direction("back")];
    let mut engine = Engine::new(parts::<Channel<Frame>>(links, vec![], vec![], routes, agents));
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    let [sender, receiver] = engine.agents() else { panic!("two agents") };
    assert_eq!((sender.acked, receiver.next), (300, 300));
    assert!(sender.timeouts > 0 && engine.now() > Time::from_nanos(2_400_000_000), "{:?}", engine.now());
}

/// Two transfers share a bus that carries one frame at a time, so they take as long as all their bytes.
#[test]
fn a_toy_medium_is_shared() {
    let hop = |from, to| RadioHop { channel: 0, radios: [from, to], stations: [from, to] };
    let hops = vec![hop(0, 1), hop(1, 0), hop(2, 3), hop(3, 2)];
    let routes = (0..4).flat_map(|hop| [RADIO + hop, ARRIVED + [1, 0, 3, 2][hop as usize]]).collect();
    let agents = vec![Toy::new(0, 50), Toy::new(2, 0), Toy::new(4, 50), Toy::new(6, 0)];
    let mut engine = Engine::new(parts(vec![], vec![Bus::default()], hops, routes, agents));
    engine.run(Time::NEVER, |_| ControlFlow::Continue(())).unwrap();
    assert!(engine.agents().iter().all(|agent| agent.stage() == Stage::Over));
    let carried = engine.channels()[0].carried;
    assert!(carried >= 100 * 1040, "{carried}");
    assert_eq!(engine.now(), Time::from_nanos(carried * 8000), "the bus was never idle");
}

/// The same window carries SCTP.
#[test]
fn the_toy_window_carries_sctp() {
    let mut policies = Policies::default();
    policies.add_window("toy", |_, _| Ok(Arc::new(window)));
    let mut scenario = tests::scenario(vec![tests::link("wire", "s", "r")]);
    let toy = scenario.flows[0].sctp_mut().expect("SCTP");
    toy.config.window = PolicySpec::named("toy");
    let result = run(&scenario, RunOptions { policies, ..RunOptions::default() }).expect("it runs");
    let standard =
        run(&tests::scenario(vec![tests::link("wire", "s", "r")]), RunOptions::default()).expect("it runs");
    assert_eq!(result.flows[0].delivered, 1_000_000);
    assert_ne!(result.flows[0].completion, standard.flows[0].completion, "the window is used");
}
