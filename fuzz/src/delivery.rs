//! Two endpoints over a network that does what the bytes say, against a model of delivery that knows no chunks:
//! each message arrives at most once and in order on its stream, and exactly once when the network heals.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use anabranch_proto::{AssociationId, Event, Message, PathId, Purpose, SendError, Time};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;

use crate::input::{self, Setup};
use crate::support::expected::Expected;
use crate::support::{Left, Weather, World, at};

const STREAMS: u8 = 3;
const DELAY: Duration = Duration::from_millis(20);

/// Two endpoints and what happens between them.
pub type Case = input::Case<Step>;

#[derive(Debug)]
pub enum Step {
    Send {
        side: u8,
        stream: u8,
        bytes: u16,
    },
    Read {
        side: u8,
        count: u8,
    },
    Pass(u16),
    /// What becomes of the next packets, one byte each; see [`travel`].
    Fates([u8; 4]),
    /// A path goes down or up.
    Cut(u8),
    Primary {
        side: u8,
        path: u8,
    },
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 16 {
            0..=5 => {
                Step::Send { side: bytes.arbitrary()?, stream: bytes.arbitrary()?, bytes: bytes.arbitrary()? }
            }
            6 | 7 => Step::Read { side: bytes.arbitrary()?, count: bytes.arbitrary()? },
            8..=10 => Step::Pass(bytes.arbitrary()?),
            11..=13 => Step::Fates(bytes.arbitrary()?),
            14 => Step::Cut(bytes.arbitrary()?),
            _ => Step::Primary { side: bytes.arbitrary()?, path: bytes.arbitrary()? },
        })
    }
}

impl Case {
    /// Step by step, then the network heals and everything must arrive.
    pub fn play(self) {
        let mut bout = Bout::new(&self.setup);
        for step in &self.steps {
            bout.step(step);
            bout.look();
        }
        bout.heal();
        let patience = bout.world.now + Duration::from_secs(3600);
        while !bout.is_done() {
            assert!(bout.world.now < patience, "messages missing after an hour\n{}", bout.log());
            bout.pass(Duration::from_millis(500));
            bout.read(0, usize::MAX);
            bout.read(1, usize::MAX);
        }
        bout.close();
    }
}

struct Bout {
    world: World,
    /// By receiving side.
    expected: [Expected; 2],
    ids: [Option<AssociationId>; 2],
    fates: Rc<RefCell<VecDeque<u8>>>,
    /// Messages sent so far: each has a content of its own.
    count: usize,
}

impl Bout {
    fn new(setup: &Setup) -> Self {
        let (config, paths) = (setup.config(), setup.paths());
        let weather = vec![Weather::fair(DELAY); paths];
        let mut world = World::new([at(0, paths, &config), at(1, paths, &config)], weather, 1);
        world.wire = setup.spare() & 1 != 0;
        world.keep_log = std::env::var_os("ANABRANCH_LOG").is_some();
        let fates = Rc::new(RefCell::new(VecDeque::new()));
        let next = Rc::clone(&fates);
        world.fate = Some(Box::new(move || travel(next.borrow_mut().pop_front().unwrap_or(0))));
        let ids = [Some(world.connect()), None];
        Bout { world, expected: Default::default(), ids, fates, count: 0 }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send { side, stream, bytes } => self.send(usize::from(side % 2), *stream, *bytes),
            Step::Read { side, count } => self.read(usize::from(side % 2), (*count).into()),
            Step::Pass(millis) => self.pass(Duration::from_millis((millis % 3000).into())),
            Step::Fates(fates) => self.fates.borrow_mut().extend(fates),
            Step::Cut(path) => {
                let path = usize::from(*path) % self.world.weather.len();
                self.world.weather[path].up ^= true;
            }
            Step::Primary { side, path } => {
                let (side, path) = (usize::from(side % 2), PathId((path % 3).into()));
                if let Some(id) = self.ids[side] {
                    self.world.ends[side].set_primary(self.world.now, id, path);
                    self.world.drain(side);
                }
            }
        }
    }

    fn send(&mut self, side: usize, stream: u8, bytes: u16) {
        let Some(id) = self.ids[side] else { return };
        self.count += 1;
        let message = Message {
            stream: u16::from(stream % STREAMS),
            ppid: self.count as u32,
            unordered: stream & 0x80 != 0,
            immediate: stream & 0x40 != 0,
            payload: content(self.count, 1 + usize::from(bytes) % 5000),
            ..Message::default()
        };
        match self.world.ends[side].send(self.world.now, id, message.clone()) {
            Ok(()) => self.expected[1 - side].sent(&message),
            Err(SendError::Full(_)) => {}
            Err(other) => panic!("refused: {other:?}"),
        }
        self.world.drain(side);
    }

    fn read(&mut self, side: usize, count: usize) {
        let Some(id) = self.ids[side] else { return };
        for _ in 0..count {
            let Some(delivery) = self.world.ends[side].read(self.world.now, id) else { break };
            self.expected[side].arrived(delivery);
        }
        self.world.drain(side);
    }

    fn pass(&mut self, pause: Duration) {
        let until: Time = self.world.now + pause;
        self.world.run(until);
        self.look();
    }

    /// Finds the association of the side that listens. Neither may be lost. A copy of the COOKIE ECHO makes no other
    /// one: a cookie makes one association.
    fn look(&mut self) {
        if self.ids[1].is_none() {
            self.ids[1] = self.world.up(1);
        }
        for side in 0..2 {
            let ours = self.world.events[side].iter().filter(|(_, id, _)| Some(*id) == self.ids[side]);
            let lost = ours.map(|(_, _, e)| e).find(|e| matches!(e, Event::Lost(_) | Event::Restart));
            assert!(lost.is_none(), "{lost:?}\n{}", self.log());
            let another = |id: AssociationId| self.ids[side].is_some_and(|own| own != id);
            let other = self.world.events[side].iter().find(|(_, id, _)| another(*id));
            assert!(other.is_none(), "{other:?}\n{}", self.log());
        }
    }

    /// What was sent last, heartbeats aside.
    fn log(&self) -> String {
        let idle = |left: &&Left| left.reason.purpose != Purpose::Heartbeat;
        let last: Vec<&Left> = self.world.log.iter().rev().filter(idle).take(30).collect();
        last.iter().rev().map(|left| format!("{left:?}\n")).collect()
    }

    fn heal(&mut self) {
        self.fates.borrow_mut().clear();
        self.world.weather.iter_mut().for_each(|weather| weather.up = true);
    }

    fn is_done(&self) -> bool {
        let up = (0..2).all(|side| self.ids[side].is_some() && self.world.up(side) == self.ids[side]);
        up && self.expected.iter().all(Expected::is_empty)
    }

    /// Both ends close.
    fn close(&mut self) {
        let side = self.count % 2;
        let id = self.ids[side].expect("both are up");
        self.world.ends[side].shutdown(self.world.now, id);
        self.world.drain(side);
        self.pass(Duration::from_secs(300));
        for side in 0..2 {
            self.read(side, usize::MAX);
            assert!(self.world.happened(side, &Event::Closed), "side {side} has not closed\n{}", self.log());
            assert!(!self.expected[side].in_part());
        }
    }
}

/// How long each copy of a packet travels: in time, late, twice, or never.
fn travel(fate: u8) -> Vec<Duration> {
    let later = |by: u8| DELAY + Duration::from_millis(7 * u64::from(by));
    match fate {
        0..64 => vec![DELAY],
        64..128 => vec![later(fate - 63)],
        128..176 => vec![DELAY, later(fate - 128)],
        176..192 => vec![later(fate), DELAY, later(fate - 170)],
        _ => Vec::new(),
    }
}

/// The bytes of the `n`-th message: they tell it from others, and their places from each other.
fn content(n: usize, bytes: usize) -> Bytes {
    (0..bytes).map(|at| (n.wrapping_mul(31) ^ at ^ (at >> 8).wrapping_mul(7)) as u8).collect()
}
