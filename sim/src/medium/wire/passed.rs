//! Packets that pass a link: what is kept of them while they are on it.

use anabranch_proto::Time;

use super::{Counters, Transit};
use crate::engine::agenda::Turn;

/// The packets that passed, until they have arrived at the end of the link.
#[derive(Default, Debug)]
pub(super) struct Passed {
    /// In the order of arrival; the first of them may have arrived already.
    all: Vec<Pass>,
    /// How many of them, from the first, have left the queue.
    left: usize,
}

/// The memory begins with so many places.
const FEW: usize = 16;

/// A packet that passed.
#[derive(Debug)]
pub(crate) struct Pass {
    pub(crate) transit: Transit,
    /// Its number among the frames of the run.
    pub(crate) number: u64,
    pub(crate) size: u32,
    pub(crate) hop: u32,
}

impl Pass {
    fn arrives(&self) -> (Time, Turn) {
        (self.transit.arrival, self.transit.turn(self.number))
    }
}

impl Passed {
    /// A packet passes.
    #[inline(always)]
    pub(super) fn push(&mut self, pass: Pass) {
        self.all.push(pass);
    }

    /// Takes the last one back, which has not left the queue.
    pub(super) fn pop(&mut self) -> Option<Pass> {
        self.all.pop()
    }

    /// Whether the next packet needs new memory, unless packets are forgotten.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.all.len() == self.all.capacity()
    }

    /// Forgets those that arrived before `now`. They are forgotten together, each time that the memory is full; so the
    /// memory is made larger if most of them are still needed.
    pub(super) fn forget(&mut self, now: Time) {
        let gone = self.all[..self.left].partition_point(|pass| pass.transit.arrival < now);
        self.all.drain(..gone);
        self.left -= gone;
        if self.all.len() >= self.all.capacity() / 2 {
            self.all.reserve(self.all.capacity().max(FEW));
        }
    }

    /// Lets packets leave the queue up to `now`; `leave` gets the size of each. Returns the departure of the next.
    pub(super) fn depart(&mut self, now: Time, mut leave: impl FnMut(u32)) -> Option<Time> {
        let waiting = &self.all[self.left..];
        for pass in waiting {
            if pass.transit.departure > now {
                return Some(pass.transit.departure);
            }
            leave(pass.size);
            self.left += 1;
        }
        None
    }

    /// All leave the queue.
    #[inline]
    pub(super) fn depart_all(&mut self) {
        self.left = self.all.len();
    }

    /// All have arrived.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.left = 0;
    }

    /// Where in the table of routes those are that have not arrived before `now`.
    pub(super) fn hops(&self, now: Time) -> impl Iterator<Item = u32> {
        self.all.iter().filter(move |pass| pass.transit.arrival >= now).map(|pass| pass.hop)
    }

    /// Takes back what is later than `end`, and keeps those that are on the link then. The most packets that were in
    /// the queue, if that has to be taken back too.
    pub(super) fn rewind(&mut self, end: (Time, Turn), counters: &mut Counters) -> Option<u32> {
        let mut most = None;
        while let Some(pass) = self.all.pop_if(|pass| (pass.transit.entered, pass.transit.came) > end) {
            counters.offered -= 1;
            counters.delivered_bytes -= u64::from(pass.size);
            most = Some(pass.transit.most);
        }
        let arrived = self.all.partition_point(|pass| pass.arrives() <= end);
        self.all.drain(..arrived);
        counters.delivered_bytes -= self.all.iter().map(|pass| u64::from(pass.size)).sum::<u64>();
        most
    }
}
