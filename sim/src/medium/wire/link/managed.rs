//! What the management of a queue decides: whether a packet is dropped before the queue is full, and which is sent
//! next.

use anabranch_proto::Time;

use super::{Carried, Direction};
use crate::engine::agenda::Turn;
use crate::medium::wire::Management;
use crate::medium::wire::jitter::Jitter;
use crate::medium::wire::red::Seen;

impl Direction {
    /// Whether RED drops the packet of this size that arrives now.
    #[cold]
    pub(super) fn dropped_early(&mut self, now: Time, size: u32) -> bool {
        let full = !self.queue.admits(size);
        let Some(Management::Red(red)) = self.management.as_deref_mut() else { return false };
        let sending = self.fifo.get(self.left).map_or(0, |carried| carried.frame.size);
        let seen = Seen {
            packets: self.queue.packets().saturating_sub(1),
            bytes: self.queue.bytes() - u64::from(sending),
            idle: (self.leaves == Time::NEVER).then_some(self.last.0),
            rate: self.rate,
        };
        let early = red.drops(now, &seen);
        if full {
            red.is_full();
        }
        early
    }

    /// Puts the packet into a managed queue.
    #[cold]
    pub(super) fn wait(&mut self, now: Time, carried: Carried) {
        let Some(Management::Codel(codel)) = self.management.as_deref_mut() else {
            return self.send(now, carried);
        };
        let size = carried.frame.size;
        codel.enter(now, carried, size);
        if self.leaves == Time::NEVER {
            self.pull(now);
        }
    }

    /// Asks CoDel for the next packet when the link has nothing to send.
    #[cold]
    pub(super) fn pull(&mut self, now: Time) {
        if self.left < self.fifo.len() {
            return;
        }
        let Some(Management::Codel(codel)) = self.management.as_deref_mut() else { return };
        let (queue, dropped, counters) = (&mut self.queue, &mut self.dropped, &mut self.counters);
        let next = codel.leave(now, |packet, size| {
            queue.leave(size);
            counters.queue += 1;
            dropped.push((now, packet));
        });
        if let Some((carried, _)) = next {
            self.send(now, carried);
        }
    }

    /// The head, a packet that jitter holds back, or the departure after which CoDel decides which packet is next.
    #[cold]
    pub(super) fn earliest(&self, head: Option<(Time, Turn)>) -> Option<(Time, Turn)> {
        let late = self.jitter.as_deref().and_then(Jitter::next);
        let waits =
            self.management.as_deref().is_some_and(|management| management.waiting().next().is_some());
        let decides = waits.then_some((self.leaves, Turn::FIRST));
        head.into_iter().chain(late).chain(decides).min()
    }

    /// The management of the queue decides what it has to decide up to `now`.
    pub(crate) fn decide(&mut self, now: Time) {
        if self.management.is_some() {
            self.depart(now, |_, _, _| {});
        }
    }
}
