//! A frame on its way from its sender to those who hear it.

use std::ops::Range;

use anabranch_proto::Time;

use super::frames::Air;
use super::neighbours::{Neighbour, Neighbours};
use super::station::later;

/// A frame on its way to the neighbours of its sender. The end of one may still travel when the sender's next begins.
#[derive(Copy, Clone, Debug)]
pub(super) struct FrameInFlight {
    pub(super) air: Air,
    pub(super) start: Time,
    /// When it reaches or leaves the next; `NEVER`: it has left all.
    pub(super) next: Time,
    /// Its beginning is next, not its end.
    pub(super) begins: bool,
    /// The neighbour that its beginning reaches next.
    reaches: u32,
    /// The neighbour that its end leaves next.
    leaves: u32,
    /// Behind the last neighbour of its sender.
    last: u32,
}

impl FrameInFlight {
    /// A frame that begins now.
    pub(super) fn new(air: Air, now: Time, neighbours: &Neighbours) -> Self {
        let Range { start: first, end: last } = neighbours.of(air.from);
        let flight =
            FrameInFlight { air, start: now, next: now, begins: true, reaches: first, leaves: first, last };
        flight.aimed(neighbours)
    }

    /// A frame whose transmission ends now. All have heard it begin.
    pub(super) fn left(air: Air, now: Time, neighbours: &Neighbours) -> Self {
        let start = Time::from_nanos(now.as_nanos() - air.airtime);
        let flight = FrameInFlight::new(air, start, neighbours);
        FrameInFlight { reaches: flight.last, ..flight }.aimed(neighbours)
    }

    /// Whether all have heard its beginning.
    pub(super) fn has_begun(&self) -> bool {
        self.reaches == self.last
    }

    /// The neighbours that its end leaves next, all at the same time.
    pub(super) fn leaves<'n>(&self, neighbours: &'n Neighbours) -> impl Iterator<Item = &'n Neighbour> {
        let delay = neighbours[self.leaves].delay;
        let rest = (self.leaves..self.last).map(|place| &neighbours[place]);
        rest.take_while(move |neighbour| neighbour.delay == delay)
    }

    /// The place of the neighbour that it reaches or leaves now. It turns to the next.
    pub(super) fn turn(&mut self, neighbours: &Neighbours) -> u32 {
        let next = if self.begins { &mut self.reaches } else { &mut self.leaves };
        let place = *next;
        *next += 1;
        *self = self.aimed(neighbours);
        place
    }

    /// Finds out when its end leaves a neighbour or its beginning reaches one, whatever is first.
    fn aimed(mut self, neighbours: &Neighbours) -> Self {
        let at = |place: u32, after: u64| match place < self.last {
            true => later(self.start, after + neighbours[place].delay),
            false => Time::NEVER,
        };
        let (end, beginning) = (at(self.leaves, self.air.airtime), at(self.reaches, 0));
        (self.next, self.begins) = if end <= beginning { (end, false) } else { (beginning, true) };
        self
    }

    /// The order at one place in time: ends are heard before beginnings, and then the sender decides.
    pub(super) fn is_before(&self, other: &FrameInFlight) -> bool {
        (self.next, self.begins, self.air.from) < (other.next, other.begins, other.air.from)
    }
}
