//! An association that sends, and a peer that acknowledges as it likes: also what it takes back, out of order,
//! overlapping, twice, late, or never sent. A set of TSNs says what must be in flight and what may go again.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_proto::wire::chunk::{GapBlock, Sack};
use anabranch_proto::wire::{Chunk, Packet};
use anabranch_proto::{AssociationId, Event, Message, Tsn};
use arbitrary::{Arbitrary, Result, Unstructured};
use bytes::Bytes;

use crate::input::{self, Setup, few};
use crate::lone::{Lone, init};

/// The peer's tag, and its first TSN.
const TAG: u32 = 0x5eed;
const FIRST: Tsn = Tsn(77);
const BYTES: Bytes = Bytes::from_static(&[5; 4096]);

/// An association and what happens to it.
pub type Case = input::Case<Step>;

#[derive(Debug)]
pub enum Step {
    Send { stream: u8, bytes: u16, count: u8 },
    Acknowledge(Report),
    Pass(Duration),
}

/// A SACK, in terms of what is outstanding.
#[derive(Debug)]
pub struct Report {
    path: u8,
    /// TSNs beyond the last point; beyond the highest sent it wraps, or lies.
    advance: u8,
    /// As an advance that goes back.
    old: bool,
    /// Nothing that was not sent is acknowledged.
    honest: bool,
    a_rwnd: u16,
    gaps: Vec<(u8, u8)>,
    duplicates: Vec<u32>,
}

impl<'a> Arbitrary<'a> for Step {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match bytes.arbitrary::<u8>()? % 8 {
            0 | 1 => Step::Send {
                stream: bytes.arbitrary()?,
                bytes: bytes.arbitrary()?,
                count: bytes.arbitrary()?,
            },
            2..=5 => Step::Acknowledge(bytes.arbitrary()?),
            _ => Step::Pass(Duration::from_millis(bytes.arbitrary::<u16>()?.into())),
        })
    }
}

impl<'a> Arbitrary<'a> for Report {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        let kind = bytes.arbitrary::<u8>()?;
        Ok(Report {
            path: kind & 3,
            advance: bytes.arbitrary()?,
            old: kind & 0xc == 0xc,
            honest: kind & 0xf0 != 0xf0,
            a_rwnd: if kind & 0x10 == 0 { u16::MAX } else { bytes.arbitrary()? },
            gaps: few(bytes, 8)?,
            duplicates: if kind & 0x20 == 0 { Vec::new() } else { few(bytes, 3)? },
        })
    }
}

impl Case {
    /// Step by step, then everything is acknowledged until nothing is left.
    pub fn play(self) {
        let Some(mut bout) = Bout::new(&self.setup) else { return };
        for step in &self.steps {
            bout.step(step);
            if bout.is_over() {
                return;
            }
        }
        bout.finish();
    }
}

/// The association and what a set of TSNs says of it.
struct Bout {
    lone: Lone,
    id: AssociationId,
    tag: u32,
    paths: usize,
    model: Model,
    accepted: u64,
}

impl Bout {
    fn new(setup: &Setup) -> Option<Self> {
        let (config, paths) = (setup.config(), setup.paths());
        let first = config.first_tsn.map(Tsn)?;
        let mut lone = Lone::new(paths, &config);
        let (id, tag) = lone.establish(paths, init(TAG, FIRST, 60_000, paths));
        let mut bout = Bout { lone, id, tag, paths, model: Model::new(first), accepted: 0 };
        bout.hear_out();
        Some(bout)
    }

    fn is_over(&self) -> bool {
        self.lone.events.iter().any(|(_, event)| matches!(event, Event::Lost(_)))
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Send { stream, bytes, count } => self.send(*stream, *bytes, *count),
            Step::Acknowledge(report) => self.acknowledge(report),
            Step::Pass(pause) => self.lone.pass(*pause),
        }
        self.hear_out();
    }

    fn send(&mut self, stream: u8, bytes: u16, count: u8) {
        for _ in 0..=count % 8 {
            let payload = BYTES.slice(..1 + usize::from(bytes) % BYTES.len());
            let size = payload.len() as u64;
            let stream = u16::from(stream % 8);
            let message = Message { stream, unordered: bytes & 0x8000 != 0, payload, ..Message::default() };
            let sent = self.lone.end.send(self.lone.now, self.id, message);
            self.accepted += if sent.is_ok() { size } else { 0 };
        }
        self.lone.drain();
    }

    fn acknowledge(&mut self, report: &Report) {
        let sack = report.sack(&self.model);
        let possible = self.model.take(&sack);
        let path = usize::from(report.path) % self.paths;
        self.lone.hear(path, self.tag, [Chunk::Sack(sack)]);
        assert!(possible || self.is_over() || !report.honest, "{report:?} was honest");
        assert!(!possible || !self.is_over(), "an honest SACK has ended the association: {report:?}");
    }

    /// Looks at what was sent, answers heartbeats, and compares with the set.
    fn hear_out(&mut self) {
        loop {
            let sent = self.lone.take_sent();
            if sent.is_empty() {
                break;
            }
            sent.iter().for_each(|packet| self.look_at(packet));
        }
        if !self.is_over() {
            self.compare();
        }
    }

    fn look_at(&mut self, packet: &Packet) {
        assert_eq!(packet.tag, TAG);
        for chunk in &packet.chunks {
            match chunk {
                Chunk::Data(data) => self.model.sent(data.tsn, data.payload.len()),
                Chunk::Heartbeat(heartbeat) => {
                    let mut answer = crate::lone::packet((0, 0), self.tag, vec![]);
                    (answer.from, answer.to) = (packet.to, packet.from);
                    answer.chunks.push(Chunk::HeartbeatAck(heartbeat.clone()));
                    self.lone.arrive(answer);
                }
                _ => {}
            }
        }
    }

    fn compare(&self) {
        let views = self.lone.end.paths(self.id);
        let charged: u64 = views.iter().map(|path| path.flight + path.marked).sum();
        assert_eq!(charged, self.model.charged(), "bytes charged to the paths");
        let statistics = self.lone.end.statistics(self.lone.now, self.id);
        assert_eq!(statistics.acknowledged, self.model.acknowledged);
    }

    /// The peer acknowledges all it has seen until everything has gone.
    fn finish(&mut self) {
        for _ in 0..300 {
            let sack = all(self.model.next.prev());
            assert!(self.model.take(&sack));
            self.lone.hear(0, self.tag, [Chunk::Sack(sack)]);
            self.hear_out();
            assert!(!self.is_over(), "{:?}", self.lone.events);
            if self.model.acknowledged == self.accepted {
                return;
            }
            self.lone.pass(Duration::from_secs(1));
            self.hear_out();
        }
        panic!("{} of {} bytes have gone", self.model.acknowledged, self.accepted);
    }
}

/// What was sent and what of it is acknowledged, TSN by TSN.
struct Model {
    first: Tsn,
    /// The next new TSN.
    next: Tsn,
    /// All up to this one are acknowledged.
    point: Tsn,
    /// By offset from the first TSN, those after the point: payload, and whether a gap block covers it.
    outstanding: BTreeMap<u32, (usize, bool)>,
    acknowledged: u64,
}

impl Model {
    fn new(first: Tsn) -> Self {
        Model { first, next: first, point: first.prev(), outstanding: BTreeMap::new(), acknowledged: 0 }
    }

    /// A chunk leaves: the next one, or one of which the peer does not say that it has it.
    fn sent(&mut self, tsn: Tsn, payload: usize) {
        let offset = tsn.distance_from(self.first);
        if tsn == self.next {
            self.next = tsn.next();
            self.outstanding.insert(offset, (payload, false));
            return;
        }
        let known = self.outstanding.get(&offset);
        assert_eq!(known, Some(&(payload, false)), "{tsn:?} went again, the point is {:?}", self.point);
    }

    /// The peer says this; false if it cannot be.
    fn take(&mut self, sack: &Sack) -> bool {
        if sack.cumulative.before(self.point) {
            return true;
        }
        let sent = self.next.prev().distance_from(self.point);
        let covered = sack.cumulative.distance_from(self.point);
        let last = sack.gaps.iter().map(|gap| u32::from(gap.end)).max().unwrap_or(0);
        if u64::from(covered) + u64::from(last) > u64::from(sent) {
            return false;
        }
        self.advance(sack.cumulative);
        let point = self.point.next().distance_from(self.first);
        let within = |gap: &GapBlock, offset: u32| {
            let place = offset - point + 1;
            u32::from(gap.start).max(1) <= place && place <= u32::from(gap.end) && gap.start > 0
        };
        for (offset, (_, held)) in &mut self.outstanding {
            *held = sack.gaps.iter().any(|gap| within(gap, *offset));
        }
        true
    }

    fn advance(&mut self, point: Tsn) {
        self.point = point;
        let left = self.outstanding.split_off(&point.next().distance_from(self.first));
        let gone = std::mem::replace(&mut self.outstanding, left);
        self.acknowledged += gone.values().map(|(payload, _)| *payload as u64).sum::<u64>();
    }

    /// Bytes of chunks that the peer does not say it has.
    fn charged(&self) -> u64 {
        let size = |payload: usize| (16 + payload).next_multiple_of(4) as u64;
        self.outstanding.values().filter(|(_, held)| !held).map(|(payload, _)| size(*payload)).sum()
    }
}

impl Report {
    fn sack(&self, model: &Model) -> Sack {
        let sent = model.next.prev().distance_from(model.point);
        let mut advance = u32::from(self.advance);
        if self.honest {
            advance %= sent + 1;
        }
        let cumulative =
            if self.old { Tsn(model.point.0.wrapping_sub(advance)) } else { model.point.plus(advance) };
        let left = if self.old { 0 } else { sent.saturating_sub(advance) };
        let gaps = self.gaps.iter().map(|gap| self.gap(*gap, left as u16)).collect();
        let duplicates = self.duplicates.iter().copied().map(Tsn).collect();
        Sack { flags: 0, cumulative, a_rwnd: self.a_rwnd.into(), gaps, duplicates }
    }

    fn gap(&self, (start, length): (u8, u8), left: u16) -> GapBlock {
        let (start, length) = (u16::from(start), u16::from(length));
        if self.honest {
            let start = if left == 0 { 0 } else { start % (left + 1) };
            return GapBlock { start, end: (start + length % 16).min(left) };
        }
        GapBlock { start, end: start.wrapping_add(length).wrapping_sub(3) }
    }
}

/// Everything up to here, and room enough.
fn all(cumulative: Tsn) -> Sack {
    Sack { flags: 0, cumulative, a_rwnd: 60_000, gaps: Default::default(), duplicates: Default::default() }
}
