//! Measures throughput and delay in one or both directions with meaningless data.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_proto::Delivery;
use bytes::{Bytes, BytesMut};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, sleep_until};

use super::delay::{Clock, Delays, Transits};
use super::{Control, Failure, Inbound, PATIENCE, answer, hear_within, say, send_data, unexpected};
use crate::{Association, PathId, PathReport};

/// The plan of a measurement.
#[derive(Copy, Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How long each direction sends.
    pub seconds: f64,
    /// Bytes of a message.
    pub message_size: u32,
    /// The number of streams; messages use them in turn.
    pub streams: u16,
    /// Which directions, and when.
    #[serde(default)]
    pub way: PerfDirections,
    /// The rate of user data of each direction's application, bit/s; `None`: as fast as the association accepts it.
    #[serde(default)]
    pub rate: Option<u64>,
}

impl Default for Plan {
    /// Both directions one after the other, ten seconds each, with messages of 8192 bytes on one stream.
    fn default() -> Self {
        Plan { seconds: 10.0, message_size: 8192, streams: 1, way: PerfDirections::ThereAndBack, rate: None }
    }
}

/// The directions of a measurement.
#[derive(Copy, Clone, PartialEq, Eq, Default, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case")]
pub enum PerfDirections {
    /// First from the client to the listener, then back.
    #[default]
    ThereAndBack,
    /// From the listener to the client only.
    Back,
    /// Both at once.
    Both,
}

impl PerfDirections {
    /// The phases: whether the client sends, and whether the listener does.
    fn phases(self) -> &'static [(bool, bool)] {
        match self {
            PerfDirections::ThereAndBack => &[(true, false), (false, true)],
            PerfDirections::Back => &[(false, true)],
            PerfDirections::Both => &[(true, true)],
        }
    }
}

/// Limits of a plan: an hour, and a mebibyte.
const LONGEST: f64 = 3600.0;
const LARGEST: u32 = 1 << 20;
/// The largest number of paths in a report; with more, it would be too long.
const MOST_SHARES: usize = 24;
/// The largest number of messages that an association holds until they are acknowledged. The send buffer counts only
/// their bytes, and each needs about 200 bytes more.
const MOST_MESSAGES: usize = 1 << 14;
/// How long a sender waits before it looks whether there are fewer.
const PAUSE: Duration = Duration::from_millis(1);
/// No host has more processors.
const PROCESSORS: f64 = 65_536.0;
/// No path's packets leave room for fewer bytes of user data in a chunk, and no chunk has more bytes of header and
/// padding.
const SMALLEST: u32 = 256;
const HEADER: u64 = 24;
/// Bytes at the beginning of a message that hold its sending time.
const STAMP: usize = 8;
/// The number of clock comparisons. The one with the shortest round trip counts.
const COMPARISONS: usize = 8;

impl Plan {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            _ if !(self.seconds > 0.0 && self.seconds <= LONGEST) => {
                Err("more than 0 and at most 3600 seconds".to_owned())
            }
            _ if !(1..=LARGEST).contains(&self.message_size) => {
                Err("messages of 1 to 1048576 bytes".to_owned())
            }
            _ if self.streams == 0 => Err("at least one stream".to_owned()),
            _ if self.rate == Some(0) => Err("a rate of at least one bit per second".to_owned()),
            _ => Ok(()),
        }
    }

    /// When message `n` is due, after the first.
    fn due(&self, n: u64) -> Option<Duration> {
        let bits = n as f64 * f64::from(self.message_size) * 8.0;
        self.rate.map(|rate| Duration::from_secs_f64((bits / rate as f64).min(2.0 * LONGEST)))
    }
}

/// The result of one direction.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Direction {
    /// Bytes of user data that arrived.
    pub bytes: u64,
    /// The time from the first message given to the last one acknowledged or received.
    pub seconds: f64,
    /// CPU seconds of this end's process and of the other end's. If both directions are measured at once, they cover
    /// both.
    pub cpu: [f64; 2],
    /// Bytes acknowledged on each path that carried any, by its addresses, the sender's first. They are bytes of
    /// chunks: the 16 bytes of each chunk's header are part of them, and the control messages of the measurement.
    pub by_path: BTreeMap<(IpAddr, IpAddr), u64>,
    /// The delays of messages; `None` if the messages are too small to hold their sending time, or none arrived.
    pub delays: Option<Delays>,
}

impl Direction {
    /// Bit/s of user data.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// CPU seconds of both ends per gigabyte of user data.
    pub fn cpu_a_gigabyte(&self) -> f64 {
        (self.cpu[0] + self.cpu[1]) / (self.bytes.max(1) as f64 / 1e9)
    }
}

/// The measurements of each direction.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Measured {
    /// From this end to the other.
    pub there: Option<Direction>,
    /// From the other end to this.
    pub back: Option<Direction>,
}

/// The measurements so far, for display during the measurement.
#[derive(Debug, Default)]
pub struct PerfProgress {
    received: AtomicU64,
    stages: Mutex<[Stage; 2]>,
    begun: Mutex<[Option<Instant>; 2]>,
}

/// The stage of a direction.
#[derive(Clone, PartialEq, Default, Debug)]
pub enum Stage {
    /// Nothing has been sent, or the direction is not measured.
    #[default]
    NotBegun,
    /// It began at this time.
    Running(Instant),
    /// It is measured.
    Done(Direction),
}

impl PerfProgress {
    /// Bytes of user data that have arrived from the other end.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// When each direction began: the clocks of both ends have been compared before.
    pub fn begun(&self) -> [Option<Instant>; 2] {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stages of both directions.
    pub fn stages(&self) -> [Stage; 2] {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, [Stage; 2]> {
        self.stages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, (there, back): (bool, bool), now: Instant) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        for ((stage, begun), begins) in self.lock().iter_mut().zip(&mut *begun).zip([there, back]) {
            if begins {
                (*stage, *begun) = (Stage::Running(now), Some(now));
            }
        }
    }
}

/// Measures both directions to a serving listener.
pub async fn measure(
    association: &Association,
    plan: &Plan,
    tally: &PerfProgress,
) -> Result<Measured, Failure> {
    plan.check().map_err(Failure::Refused)?;
    if plan.way != PerfDirections::Back {
        enough_streams(association, plan)?;
    }
    let clock = Clock::new();
    let (ahead, uncertainty) = compare(association, clock).await?;
    let corrected = |delays: Option<Delays>, ahead: f64, bytes: u64| {
        let delays = delays.map(|delays| delays.corrected(ahead, uncertainty));
        let (seconds, most) = (clock.now() as f64 * 1e-9, bytes / u64::from(plan.message_size));
        match delays.is_none_or(|delays| delays.possible(seconds) && delays.messages <= most) {
            true => Ok(delays),
            false => Err(impossible("delays")),
        }
    };
    say(association, &Control::Measure(*plan)).await?;
    match answer(association).await? {
        Control::Go {} => {}
        other => return Err(unexpected(&other)),
    }
    let mut measured = Measured::default();
    for (there, back) in plan.way.phases() {
        let begun = Instant::now();
        tally.begin((*there, *back), begun);
        let phase = exchange(association, plan, (*there, *back), clock, tally).await?;
        let seconds = begun.elapsed().as_secs_f64();
        // The last message of the listener holds what only the listener knows.
        let mut cpu = [phase.cpu, phase.theirs.cpu];
        if *back {
            let last = reported(answer(association).await?)?;
            last.check(plan, phase.received)?;
            cpu[1] = last.cpu;
            let delays = corrected(phase.transits.delays(), -ahead, phase.received)?;
            let by_path = by_path(&last.shares);
            let direction = Direction { bytes: phase.received, seconds, cpu, by_path, delays };
            tally.lock()[1] = Stage::Done(direction.clone());
            measured.back = Some(direction);
        }
        if *there {
            let delays = corrected(phase.theirs.delays, ahead, phase.given)?;
            let by_path = by_path(&phase.shares);
            let direction = Direction { bytes: phase.given, seconds, cpu, by_path, delays };
            tally.lock()[0] = Stage::Done(direction.clone());
            measured.there = Some(direction);
        }
    }
    Ok(measured)
}

/// Whether this end can send on all streams of the plan.
pub(super) fn enough_streams(association: &Association, plan: &Plan) -> Result<(), Failure> {
    match association.streams() {
        Some((agreed, _)) if agreed < plan.streams => Err(Failure::Streams { wanted: plan.streams, agreed }),
        _ => Ok(()),
    }
}

/// Takes part in a client's measurement. Returns the bytes received and sent.
pub(super) async fn partner(
    association: &Association,
    plan: &Plan,
    clock: Clock,
) -> Result<(u64, u64), Failure> {
    let mut bytes = (0, 0);
    for (there, back) in plan.way.phases() {
        let phase = exchange(association, plan, (*back, *there), clock, &PerfProgress::default()).await?;
        bytes = (bytes.0 + phase.received, bytes.1 + phase.given);
        if *back {
            let Phase { given: bytes, cpu, shares, .. } = phase;
            say(association, &Control::Measured(Report { bytes, cpu, shares, delays: None })).await?;
        }
    }
    Ok(bytes)
}

/// The seconds by which the other end's clock is ahead of ours, and the uncertainty.
async fn compare(association: &Association, clock: Clock) -> Result<(f64, f64), Failure> {
    let mut best = (0.0, f64::INFINITY);
    for _ in 0..COMPARISONS {
        let asked = clock.now();
        say(association, &Control::Clock { now: asked }).await?;
        let theirs = match answer(association).await? {
            Control::Clock { now } => now,
            other => return Err(unexpected(&other)),
        };
        let answered = clock.now();
        let half = (answered - asked) as f64 / 2.0;
        if half * 1e-9 < best.1 {
            best = ((theirs as f64 - asked as f64 - half) * 1e-9, half * 1e-9);
        }
    }
    Ok(best)
}

/// The bytes that one path carried.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Share {
    /// The sender's address.
    from: IpAddr,
    to: IpAddr,
    /// Bytes acknowledged.
    bytes: u64,
}

fn by_path(shares: &[Share]) -> BTreeMap<(IpAddr, IpAddr), u64> {
    shares.iter().map(|share| ((share.from, share.to), share.bytes)).collect()
}

/// The bytes that the paths have carried since `before`. A late SACK can take some of them back.
fn shares(association: &Association, before: &BTreeMap<PathId, u64>) -> Vec<Share> {
    let share = |path: PathReport| {
        let before = before.get(&path.id).copied().unwrap_or(0);
        let bytes = path.delivered.saturating_sub(before);
        Share { from: path.local.ip, to: path.remote.ip, bytes }
    };
    let shares = association.paths().into_iter().map(share);
    shares.filter(|share| share.bytes > 0).take(MOST_SHARES).collect()
}

/// The report of one end about a phase.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    /// Bytes of the phase that arrived.
    bytes: u64,
    /// CPU seconds of its process.
    cpu: f64,
    /// The bytes that its paths carried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    shares: Vec<Share>,
    /// The delays, computed as if both clocks were one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delays: Option<Delays>,
}

impl Report {
    /// Whether a host can have measured this, when so many bytes of user data have arrived.
    fn check(&self, plan: &Plan, arrived: u64) -> Result<(), Failure> {
        let time = (plan.seconds + PATIENCE as f64) * PROCESSORS;
        if !(0.0..=time).contains(&self.cpu) {
            return Err(impossible("CPU seconds"));
        }
        // The last message may have arrived in part, and control messages count as well.
        let messages = arrived / u64::from(plan.message_size) + 1;
        let chunks = messages * u64::from(plan.message_size / SMALLEST + 1);
        let most = arrived + chunks * HEADER + super::LONGEST as u64;
        let all = self.shares.iter().fold(0_u64, |all, share| all.saturating_add(share.bytes));
        match self.shares.len() <= MOST_SHARES && all <= most {
            true => Ok(()),
            false => Err(impossible("bytes of paths")),
        }
    }
}

fn impossible(what: &str) -> Failure {
    Failure::Confused(format!("{what} that cannot be"))
}

fn reported(said: Control) -> Result<Report, Failure> {
    match said {
        Control::Measured(report) => Ok(report),
        other => Err(unexpected(&other)),
    }
}

/// The knowledge of one end after a phase.
#[derive(Default)]
struct Phase {
    given: u64,
    received: u64,
    transits: Transits,
    /// CPU seconds of this process.
    cpu: f64,
    /// The paths that carried the data of this end.
    shares: Vec<Share>,
    /// The other end's report on the data that this end sent.
    theirs: Report,
}

/// One phase: sends, receives, or does both at once, until all data has arrived and both ends know it.
async fn exchange(
    association: &Association,
    plan: &Plan,
    (sends, receives): (bool, bool),
    clock: Clock,
    tally: &PerfProgress,
) -> Result<Phase, Failure> {
    let before = association.paths().iter().map(|path| (path.id, path.delivered)).collect();
    let used = cpu();
    let giving = async { if sends { give(association, plan, clock).await } else { Ok(0) } };
    let taking = take(association, plan, (sends, receives), clock, tally, used);
    let (given, (received, transits, theirs)) = tokio::try_join!(giving, taking)?;
    if sends && theirs.bytes != given {
        return Err(Failure::Confused(format!("{} bytes of {given} measured", theirs.bytes)));
    }
    theirs.check(plan, given)?;
    let shares = if sends { shares(association, &before) } else { Vec::new() };
    Ok(Phase { given, received, transits, cpu: cpu() - used, shares, theirs })
}

/// Sends for the planned time. Returns the number of bytes.
async fn give(association: &Association, plan: &Plan, clock: Clock) -> Result<u64, Failure> {
    let size = plan.message_size as usize;
    let mut messages = Messages { size, sent: VecDeque::new() };
    let (begun, length) = (Instant::now(), Duration::from_secs_f64(plan.seconds));
    let end = clock.now() + (plan.seconds * 1e9) as i64;
    let mut bytes = 0;
    for (n, stream) in (0..).zip((0..plan.streams).cycle()) {
        if let Some(due) = plan.due(n)
            && due > begun.elapsed()
        {
            sleep_until((begun + due.min(length)).into()).await;
        }
        while messages.are_too_many() && clock.now() < end {
            sleep(PAUSE).await;
        }
        let now = clock.now();
        if now >= end {
            break;
        }
        send_data(association, stream, messages.next(now)).await?;
        bytes += size as u64;
    }
    say(association, &Control::Sent { bytes }).await?;
    Ok(bytes)
}

/// Messages of one size that hold their sending time. A message uses the memory of one that nobody holds any more.
struct Messages {
    size: usize,
    /// In the order in which they were sent.
    sent: VecDeque<Bytes>,
}

impl Messages {
    /// Whether the association holds so many that it must get rid of the first before it takes another.
    fn are_too_many(&self) -> bool {
        self.sent.len() >= MOST_MESSAGES && self.sent.front().is_some_and(|first| !first.is_unique())
    }

    fn next(&mut self, now: i64) -> Bytes {
        let mut payload = match self.sent.pop_front().map(Bytes::try_into_mut) {
            Some(Ok(payload)) => payload,
            Some(Err(held)) => {
                self.sent.push_front(held);
                BytesMut::zeroed(self.size)
            }
            None => BytesMut::zeroed(self.size),
        };
        if let Some(stamp) = payload.first_chunk_mut::<STAMP>() {
            *stamp = now.to_be_bytes();
        }
        let payload = payload.freeze();
        self.sent.push_back(payload.clone());
        payload
    }
}

/// Receives the data of the other end and reports its amount; receives the report on the data that this end sends.
async fn take(
    association: &Association,
    plan: &Plan,
    (sends, receives): (bool, bool),
    clock: Clock,
    tally: &PerfProgress,
    used: f64,
) -> Result<(u64, Transits, Report), Failure> {
    let mut stamps = Stamps::default();
    // An end that only receives says nothing before the end of the phase, and messages at a low rate come seldom.
    let patience = PATIENCE + plan.seconds.ceil() as u64;
    let begun = Instant::now();
    let (mut bytes, mut announced, mut told, mut theirs) = (0, None, !receives, None);
    while !told || (sends && theirs.is_none()) {
        let heard = hear_within(association, patience).await?;
        // What was in the send buffer at the end of the phase needs some time.
        if !told && begun.elapsed().as_secs() > patience {
            return Err(Failure::Endless(PATIENCE));
        }
        match heard {
            Some(Inbound::Data(delivery)) if !told => {
                bytes += delivery.len() as u64;
                tally.received.fetch_add(delivery.len() as u64, Ordering::Relaxed);
                if plan.message_size as usize >= STAMP {
                    stamps.take(&delivery, clock);
                }
            }
            Some(Inbound::Said(Control::Sent { bytes })) if announced.is_none() => announced = Some(bytes),
            Some(Inbound::Said(Control::Measured(report))) if theirs.is_none() => theirs = Some(report),
            Some(Inbound::Said(other)) => return Err(unexpected(&other)),
            Some(Inbound::Data(_)) => return Err(Failure::Confused("data after the end".to_owned())),
            None => return Err(Failure::Stopped),
        }
        if announced.is_some_and(|announced| announced < bytes) {
            return Err(Failure::Confused("more bytes than announced".to_owned()));
        }
        if !told && announced == Some(bytes) {
            let delays = stamps.transits.delays();
            let report = Report { bytes, cpu: cpu() - used, shares: Vec::new(), delays };
            say(association, &Control::Measured(report)).await?;
            told = true;
        }
    }
    Ok((bytes, stamps.transits, theirs.unwrap_or_default()))
}

/// Reads the sending times of messages, which may arrive in parts.
#[derive(Default)]
struct Stamps {
    transits: Transits,
    /// By stream, for incomplete messages; `None` if the first part was too short for the time.
    open: BTreeMap<u16, Option<i64>>,
}

impl Stamps {
    fn take(&mut self, delivery: &Delivery, clock: Clock) {
        let stamp = || {
            let first = delivery.pieces.first().and_then(|piece| piece.first_chunk::<STAMP>());
            first.map(|stamp| i64::from_be_bytes(*stamp))
        };
        let sent = self.open.remove(&delivery.stream).unwrap_or_else(stamp);
        match sent {
            sent if !delivery.complete => drop(self.open.insert(delivery.stream, sent)),
            Some(sent) => self.transits.add(sent, clock.now()),
            None => {}
        }
    }
}

/// CPU seconds of this process.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_so_many_at_most() {
        let mut messages = Messages { size: 1, sent: VecDeque::new() };
        let mut held: VecDeque<Bytes> = (0..MOST_MESSAGES).map(|_| messages.next(0)).collect();
        assert!(messages.are_too_many());
        held.pop_back();
        assert!(messages.are_too_many(), "the first is still held");
        held.pop_front();
        assert!(!messages.are_too_many());
        held.push_back(messages.next(0));
        assert!(messages.are_too_many() && messages.sent.len() == MOST_MESSAGES);
    }
}
