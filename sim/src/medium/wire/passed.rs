//! Packets that pass a link: what is kept of them while they are on it.

use std::collections::VecDeque;

use anabranch_proto::Time;

use super::{Carried, Counters};
use crate::engine::agenda::Turn;

/// The packets that passed, until they have arrived at the end of the link.
#[derive(Default, Debug)]
pub(super) struct Passed {
    ring: VecDeque<Pass>,
    /// How many of them, from the first, have left the queue.
    left: usize,
}

/// One of them.
#[derive(Debug)]
pub(super) struct Pass {
    entered: Time,
    came: Turn,
    pub(super) departure: Time,
    arrival: Time,
    /// Its number among the frames of the run.
    number: u64,
    pub(super) size: u32,
    hop: u32,
    /// The most packets that had been in the queue before.
    most: u32,
}

impl Pass {
    fn arrives(&self) -> (Time, Turn) {
        (self.arrival, Turn::packet(self.entered, self.number))
    }
}

impl Passed {
    /// A packet passes; it is `now`.
    pub(super) fn push(&mut self, now: Time, carried: &Carried) {
        while self.left > 0 && self.ring.front().is_some_and(|pass| pass.arrival < now) {
            self.ring.pop_front();
            self.left -= 1;
        }
        self.ring.push_back(Pass {
            entered: carried.entered,
            came: carried.came,
            departure: carried.departure,
            arrival: carried.arrival,
            number: carried.frame.number(),
            size: carried.frame.size,
            hop: carried.frame.hop,
            most: carried.most,
        });
    }

    /// The next that leaves the queue.
    #[inline]
    pub(super) fn next(&self) -> Option<&Pass> {
        self.ring.get(self.left)
    }

    /// It has left the queue.
    pub(super) fn leave(&mut self) {
        self.left += 1;
    }

    /// All have arrived.
    pub(super) fn clear(&mut self) {
        self.ring.clear();
        self.left = 0;
    }

    /// Where in the table of routes those are that have not arrived before `now`.
    pub(super) fn hops(&self, now: Time) -> impl Iterator<Item = u32> {
        self.ring.iter().filter(move |pass| pass.arrival >= now).map(|pass| pass.hop)
    }

    /// Takes back what is later than `end`, and keeps those that are on the link then. The most packets that were in the queue, if
    /// that has to be taken back too.
    pub(super) fn rewind(&mut self, end: (Time, Turn), counters: &mut Counters) -> Option<u32> {
        let mut most = None;
        while let Some(pass) = self.ring.pop_back_if(|pass| (pass.entered, pass.came) > end) {
            counters.offered -= 1;
            counters.delivered_bytes -= u64::from(pass.size);
            most = Some(pass.most);
        }
        let arrived = self.ring.partition_point(|pass| pass.arrives() <= end);
        self.ring.drain(..arrived);
        counters.delivered_bytes -= self.ring.iter().map(|pass| u64::from(pass.size)).sum::<u64>();
        most
    }
}
