//! Jitter: how much later than its delay each packet arrives on a link direction.
//!
//! The n-th packet offered takes the n-th draw. Without a change of order the draw is added to the packet's delay, and
//! a packet arrives no earlier than the one before it. With a change of order a packet that has come to the end of the
//! FIFO is held here for as long as its draw says.

use std::collections::BTreeMap;

use anabranch_proto::Time;

use super::Carried;
use super::link::later;
use crate::chance::Draws;
use crate::engine::agenda::Turn;
use crate::transport::Frame;

#[derive(Debug)]
pub(crate) struct Jitter {
    draws: Draws,
    /// Nanoseconds: draws are uniform from zero to this. Each holds for packets that leave after its time, until the
    /// next.
    most: Vec<(Time, u64)>,
    pub(super) reorder: bool,
    /// Packets held, by arrival and turn.
    held: BTreeMap<(Time, Turn), Carried>,
}

impl Jitter {
    /// Up to `most` nanoseconds; `stream` names the draws.
    pub(crate) fn new(root: u64, stream: &str, most: u64, reorder: bool) -> Self {
        Jitter {
            draws: Draws::new(root, stream),
            most: vec![(Time::ZERO, most)],
            reorder,
            held: BTreeMap::new(),
        }
    }

    /// Packets that leave after `now` are delayed up to `most` nanoseconds.
    pub(super) fn change(&mut self, now: Time, most: u64) {
        self.most.push((now, most));
    }

    /// How many nanoseconds later the n-th packet offered arrives, which leaves at `departure`.
    pub(super) fn draw(&mut self, offered: u64, departure: Time) -> u64 {
        let place = self.most.partition_point(|(since, _)| *since < departure);
        let most = self.most[place.saturating_sub(1)].1;
        ((u128::from(self.draws.nth(offered)) * (u128::from(most) + 1)) >> 53) as u64
    }

    /// Holds a packet that would arrive now; gives it back if it arrives indeed.
    pub(super) fn hold(&mut self, now: Time, mut carried: Carried) -> Option<Carried> {
        if !self.reorder {
            return Some(carried);
        }
        carried.transit.arrival = later(now, self.draw(carried.offered, carried.transit.departure));
        if carried.transit.arrival == now {
            return Some(carried);
        }
        self.held.insert((carried.transit.arrival, carried.turn()), carried);
        None
    }

    /// When the next of the packets held arrives, and its turn.
    pub(super) fn next(&self) -> Option<(Time, Turn)> {
        self.held.first_key_value().map(|(key, _)| *key)
    }

    /// The packet held that arrives now.
    pub(super) fn due(&mut self, now: Time) -> Option<Carried> {
        let entry = self.held.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// The packets held, the first to arrive first.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.held.values().map(|carried| &carried.frame)
    }

    /// The link has gone down: the packets held are lost.
    pub(super) fn take(&mut self) -> Vec<Carried> {
        std::mem::take(&mut self.held).into_values().collect()
    }
}
