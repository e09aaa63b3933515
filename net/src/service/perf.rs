//! Measures a way there and back, with data that means nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::{Control, Failure, Heard, answer, hear, say, send_data, unexpected};
use crate::{Association, PathId, PathReport};

/// What is to be measured.
#[derive(Copy, Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How long each direction sends.
    pub seconds: f64,
    /// Bytes of a message.
    pub message_size: u32,
    /// Streams that messages go to in turn.
    pub streams: u16,
}

/// Limits of a plan: an hour, and a mebibyte.
const LONGEST: f64 = 3600.0;
const LARGEST: u32 = 1 << 20;
/// Paths of which a report tells, at most: with more it would be too long.
const MOST_SHARES: usize = 24;

impl Plan {
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            _ if !(0.0..=LONGEST).contains(&self.seconds) => Err("0 to 3600 seconds".to_owned()),
            _ if !(1..=LARGEST).contains(&self.message_size) => {
                Err("messages of 1 to 1048576 bytes".to_owned())
            }
            _ if self.streams == 0 => Err("at least one stream".to_owned()),
            _ => Ok(()),
        }
    }
}

/// One direction, measured.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Direction {
    /// Bytes of user data that arrived.
    pub bytes: u64,
    /// From the first message given to the last one acknowledged or received.
    pub seconds: f64,
    /// CPU seconds of this end's process, and of the other's.
    pub cpu: [f64; 2],
    /// Bytes acknowledged, for each path that carried any: its addresses, the sender's first.
    pub by_path: BTreeMap<(IpAddr, IpAddr), u64>,
}

impl Direction {
    /// Bit/s of user data.
    pub fn rate(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.seconds.max(f64::MIN_POSITIVE)
    }

    /// CPU seconds of both ends for a gigabyte of user data.
    pub fn cpu_a_gigabyte(&self) -> f64 {
        (self.cpu[0] + self.cpu[1]) / (self.bytes.max(1) as f64 / 1e9)
    }
}

/// Both directions.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// From this end to the other.
    pub there: Direction,
    /// From the other end to this.
    pub back: Direction,
}

/// Measures the way to a listener that serves, and back.
pub async fn measure(association: &Association, plan: &Plan) -> Result<Measured, Failure> {
    plan.check().map_err(Failure::Refused)?;
    say(association, &Control::Measure(*plan)).await?;
    match answer(association).await? {
        Control::Go {} => {}
        other => return Err(unexpected(&other)),
    }
    let begun = Instant::now();
    let there = give(association, plan).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let by_path_there = by_path(&there.shares);
    let there = Direction { bytes: there.bytes, seconds, cpu: there.cpu, by_path: by_path_there };
    let begun = Instant::now();
    let back = take(association).await?;
    let seconds = begun.elapsed().as_secs_f64();
    match answer(association).await? {
        Control::Measured { bytes, cpu: theirs, shares } if bytes == back.bytes => {
            let cpu = [back.cpu[0], theirs];
            let back = Direction { bytes, seconds, cpu, by_path: by_path(&shares) };
            Ok(Measured { there, back })
        }
        other => Err(unexpected(&other)),
    }
}

/// What one path carried.
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

/// What the paths have carried since they had carried this much.
fn shares(association: &Association, before: &BTreeMap<PathId, u64>) -> Vec<Share> {
    let share = |path: PathReport| {
        let bytes = path.delivered - before.get(&path.id).unwrap_or(&0);
        Share { from: path.local.ip, to: path.remote.ip, bytes }
    };
    let shares = association.paths().into_iter().map(share);
    shares.filter(|share| share.bytes > 0).take(MOST_SHARES).collect()
}

/// What one end reports of a phase.
pub(super) struct Report {
    pub(super) bytes: u64,
    /// CPU seconds of this end's process, and of the other's as far as it has told.
    pub(super) cpu: [f64; 2],
    /// Of the paths that carried what this end sent.
    pub(super) shares: Vec<Share>,
}

/// Sends for as long as is planned, and waits until the other end has all of it: its report.
pub(super) async fn give(association: &Association, plan: &Plan) -> Result<Report, Failure> {
    let payload = Bytes::from(vec![0x5a; plan.message_size as usize]);
    let before = association.paths().iter().map(|path| (path.id, path.delivered)).collect();
    let (begun, length) = (Instant::now(), Duration::from_secs_f64(plan.seconds));
    let used = cpu();
    let mut bytes = 0;
    for stream in (0..plan.streams).cycle() {
        if begun.elapsed() >= length {
            break;
        }
        send_data(association, stream, payload.clone()).await?;
        bytes += payload.len() as u64;
    }
    say(association, &Control::Sent { bytes }).await?;
    match answer(association).await? {
        Control::Measured { bytes: arrived, cpu: theirs, .. } if arrived == bytes => {
            Ok(Report { bytes, cpu: [cpu() - used, theirs], shares: shares(association, &before) })
        }
        other => Err(unexpected(&other)),
    }
}

/// Takes what the other end sends, and reports it.
pub(super) async fn take(association: &Association) -> Result<Report, Failure> {
    let used = cpu();
    let (mut bytes, mut announced) = (0, None);
    while announced != Some(bytes) {
        if announced.is_some_and(|announced| announced < bytes) {
            return Err(Failure::Confused("more bytes than announced".to_owned()));
        }
        match hear(association).await? {
            Some(Heard::Data(delivery)) => bytes += delivery.len() as u64,
            Some(Heard::Said(Control::Sent { bytes })) if announced.is_none() => announced = Some(bytes),
            Some(Heard::Said(other)) => return Err(unexpected(&other)),
            None => return Err(Failure::Stopped),
        }
    }
    let cpu = cpu() - used;
    say(association, &Control::Measured { bytes, cpu, shares: Vec::new() }).await?;
    Ok(Report { bytes, cpu: [cpu, 0.0], shares: Vec::new() })
}

/// CPU seconds of this process.
fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
