//! A link direction: rate, delay, a queue, losses.
//!
//! A packet costs one event; on a link with CoDel or with jitter that may reorder packets, it costs two. When a packet
//! is offered, its departure can be computed: its transmission begins when the packet before it has departed (or now),
//! and takes size / rate. It arrives one delay later. So a link is one FIFO of packets that wait, are being sent, or
//! are in flight, and the agenda holds only the arrival of the first packet. The departures also tell how full the
//! queue is: a packet whose departure is now has left. When the delay of a link becomes shorter, the next packets
//! arrive together with the packet before them.
//!
//! A packet need not be an event on every link of its route. If all packets of a link come from one other link, they
//! *pass* that other link: the engine offers them to the next link as soon as their departure is known, and the link
//! that they pass keeps only their times. When a run ends, [`Direction::rewind`] undoes what had not happened yet.
//!
//! CoDel decides when a packet leaves the queue. Its packets therefore wait in CoDel and enter the FIFO when their
//! transmission begins. That is an event of its own, because CoDel may drop packets then, and a drop is told at its
//! time.
//!
//! A link does not reorder packets, unless it has jitter with `reorder = true`. Then the head of the FIFO is held back
//! after its arrival for as long as its draw says (`jitter.rs`), and is delivered in a second event.

mod alter;
mod managed;

use std::collections::VecDeque;
use std::hint::cold_path;

use anabranch_proto::Time;

use super::counters::{Counters, DropCause};
use super::jitter::Jitter;
use super::managed::Management;
use super::passed::{Pass, Passed};
use super::{Losses, Occupancy, Traced};
use crate::engine::agenda::Turn;
use crate::scenario::{Loss, Queue};
use crate::transport::Frame;

pub(crate) use alter::Alteration;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    /// Bit/s. With a recorded rate (`traced`): its mean.
    rate: u64,
    traced: Option<Box<Traced>>,
    /// Nanoseconds of propagation.
    delay: u64,
    jitter: Option<Box<Jitter>>,
    /// The largest packet, in bytes with the IP header.
    mtu: u32,
    up: bool,
    /// Whether the arrival of a packet depends only on the packets before it: the link has no queue management, no
    /// jitter and no recorded rate.
    plain: bool,
    /// The size up to which the fate of a packet depends only on losses and on the packets before it: it is neither too
    /// large for the link and its empty queue, nor dropped because the link is down, nor marked if the queue is empty,
    /// and the link is `plain`. 0: of none.
    predictable_size: u32,
    /// Packets that pass. All of them were offered before those in the FIFO.
    passed: Passed,
    fifo: VecDeque<Carried>,
    /// The number of packets at the head of the FIFO that have left the queue.
    left: usize,
    /// When the next packet leaves the queue; `NEVER` if the queue is empty.
    leaves: Time,
    /// Departure and arrival of the packet that was offered last.
    last: (Time, Time),
    queue: Occupancy,
    /// Packets that can be marked (ECN) are marked while the queue holds at least so many bytes.
    mark: u64,
    /// The size of the last packet and its transmission time in nanoseconds. Most packets have the size of the one
    /// before, which saves a division.
    last_sending: (u32, u64),
    losses: Losses,
    /// `None`: drop-tail.
    management: Option<Box<Management>>,
    /// Packets that the queue management dropped since [`take_dropped`](Self::take_dropped), with their times.
    dropped: Vec<(Time, Carried)>,
    counters: Counters,
    /// All rates of the run, each with the time at which it began.
    rates: Vec<(Time, u64)>,
}

/// A packet on a link.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) frame: Frame,
    pub(crate) transit: Transit,
    /// The number of this packet among those offered, from 1.
    pub(crate) offered: u64,
}

/// When a packet is on a link.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Transit {
    /// When the packet was offered to this link.
    pub(crate) entered: Time,
    /// The turn of the event that offered it.
    pub(super) came: Turn,
    /// The greatest length of the queue before this packet, in packets.
    pub(super) most: u32,
    /// When it leaves the queue.
    pub(crate) departure: Time,
    /// When it arrives at the far end.
    pub(crate) arrival: Time,
}

impl Carried {
    /// Its turn among packets that arrive at the same time.
    pub(crate) fn turn(&self) -> Turn {
        self.transit.turn(self.frame.number())
    }
}

impl Transit {
    /// The turn of the packet with this number among packets that arrive at the same time.
    #[inline(always)]
    pub(crate) fn turn(&self, number: u64) -> Turn {
        Turn::packet(self.entered, number)
    }
}

/// The fate of an offered packet.
pub(crate) enum OfferResult {
    /// Its arrival is known. The engine lets it pass or has it carried.
    Sent(Carried),
    /// It waits in CoDel; its departure is not known yet.
    Waits,
    /// It was dropped.
    Dropped(DropCause, Frame),
}

impl Direction {
    /// A direction with a rate in bit/s and a delay in nanoseconds.
    pub(crate) fn new(rate: u64, delay: u64, queue: Queue, losses: Losses, up: bool) -> Self {
        Direction {
            rate,
            traced: None,
            delay,
            jitter: None,
            mtu: u32::MAX,
            up,
            plain: true,
            predictable_size: 0,
            passed: Passed::default(),
            fifo: VecDeque::new(),
            left: 0,
            leaves: Time::NEVER,
            last: (Time::ZERO, Time::ZERO),
            last_sending: (0, 0),
            queue: Occupancy::new(queue.limit()),
            mark: u64::MAX,
            losses,
            management: None,
            dropped: Vec::new(),
            counters: Counters::default(),
            rates: vec![(Time::ZERO, rate)],
        }
        .classified()
    }

    /// The same direction; packets that can be marked are marked while the queue holds at least so many bytes.
    pub(crate) fn marking(self, mark: Option<u64>) -> Self {
        Direction { mark: mark.unwrap_or(u64::MAX), ..self }.classified()
    }

    /// The same direction with jitter: each packet is delayed further by a draw of its own.
    pub(crate) fn jittering(self, jitter: Option<Jitter>) -> Self {
        Direction { jitter: jitter.map(Box::new), ..self }.classified()
    }

    /// The same direction with a recorded rate.
    pub(crate) fn traced(self, traced: Option<Traced>) -> Self {
        Direction { traced: traced.map(Box::new), ..self }.classified()
    }

    /// The same direction with this queue management.
    pub(crate) fn managed(self, management: Option<Box<Management>>) -> Self {
        Direction { management, ..self }.classified()
    }

    fn classified(mut self) -> Self {
        self.classify();
        self
    }

    /// Computes `plain` and `predictable_size` again.
    fn classify(&mut self) {
        self.plain = self.management.is_none() && self.jitter.is_none() && self.traced.is_none();
        let predictable = self.plain && self.up && self.mark > 0;
        self.predictable_size = if predictable { self.mtu.min(self.queue.largest()) } else { 0 };
    }

    /// Offers a packet. Losses are drawn first: a lost packet takes no place in the queue.
    // Most packets are certain to be sent and take `accept`. This is kept out of their way.
    #[inline(never)]
    pub(crate) fn offer(&mut self, now: Time, frame: Frame, came: Turn) -> OfferResult {
        self.counters.offered += 1;
        if let Some(loss) = self.traced.as_mut().and_then(|traced| traced.changed_loss(now)) {
            self.losses.change(&Loss::Random(loss), &[]);
        }
        let lost = self.losses.loses(self.counters.offered, &frame);
        if !self.up {
            self.counters.down += 1;
            return OfferResult::Dropped(DropCause::Down, frame);
        }
        if lost {
            self.counters.loss += 1;
            return OfferResult::Dropped(DropCause::Loss, frame);
        }
        if frame.size > self.mtu && !frame.is_fragmentable() {
            self.counters.size += 1;
            return OfferResult::Dropped(DropCause::Size, frame);
        }
        self.depart(now, |_, _, _| {});
        let early = self.management.is_some() && self.dropped_early(now, frame.size);
        let full = !self.queue.admits(frame.size);
        if early || full {
            self.counters.queue += 1;
            let cause = if full { DropCause::Queue } else { DropCause::Early };
            return OfferResult::Dropped(cause, frame);
        }
        self.send_or_wait(now, frame, came)
    }

    /// Whether the queue, with every packet counted that was in it when it was last looked at, admits this one, has
    /// been longer, and marks nothing. Then it makes no difference which packets have left since.
    #[inline(always)]
    fn has_room_even_if_none_left(&self, size: u32) -> bool {
        self.queue.has_been_longer(size) && self.queue.bytes() < self.mark
    }

    /// Whether the queue admits a packet of this size without marking it, after those have left that are due at `now`.
    #[cold]
    fn has_room_at(&mut self, now: Time, size: u32) -> bool {
        self.catch_up(now);
        self.queue.admits(size) && self.queue.bytes() < self.mark
    }

    /// Lets packets leave the queue up to `now`.
    #[inline(never)]
    fn catch_up(&mut self, now: Time) {
        self.depart(now, |_, _, _| {});
    }

    /// Takes a packet that is offered at `at`, if it is certain that it will be sent as it is: the queue will admit it,
    /// and it will be neither lost nor marked. So a packet that passes the previous link can be offered here before its
    /// arrival. `came`: see [`Transit`].
    #[inline(always)]
    pub(crate) fn accept(&mut self, at: Time, came: Turn, size: u32) -> Option<Transit> {
        if size > self.predictable_size || !self.losses.spares(self.counters.offered + 1) {
            return None;
        }
        let most = self.queue.most();
        let departure = if self.last.0 <= at {
            // All others have left the queue.
            self.passed.depart_all();
            self.left = self.fifo.len();
            self.queue.hold_only(size);
            self.leaves = later(at, self.sending(size));
            self.leaves
        } else {
            if !self.has_room_even_if_none_left(size) && !self.has_room_at(at, size) {
                return None;
            }
            self.queue.enter(size);
            later(self.last.0, self.sending(size))
        };
        self.counters.offered += 1;
        let arrival = later(departure, self.delay).max(self.last.1);
        self.last = (departure, arrival);
        Some(Transit { entered: at, came, most, departure, arrival })
    }

    /// Whether a packet's departure is certain when it comes, until the link changes.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether packets may pass here. They may not while the FIFO holds packets, which they would overtake.
    #[inline(always)]
    pub(crate) fn lets_pass(&self) -> bool {
        self.plain && self.fifo.is_empty()
    }

    /// Puts the packet into the queue, or into that of the management.
    fn send_or_wait(&mut self, now: Time, mut frame: Frame, came: Turn) -> OfferResult {
        if self.queue.bytes() >= self.mark {
            frame.mark();
        }
        let (offered, most) = (self.counters.offered, self.queue.most());
        self.queue.enter(frame.size);
        let (departure, arrival) = (Time::NEVER, Time::NEVER);
        let transit = Transit { entered: now, came, most, departure, arrival };
        let mut carried = Carried { frame, transit, offered };
        if !self.plain && self.management.is_some() {
            self.wait(now, carried);
            return OfferResult::Waits;
        }
        self.time(now, &mut carried);
        OfferResult::Sent(carried)
    }

    /// Sets departure and arrival of a packet behind all others.
    fn time(&mut self, now: Time, carried: &mut Carried) {
        self.last = if self.plain {
            let departure = later(self.last.0.max(now), self.sending(carried.frame.size));
            (departure, later(departure, self.delay).max(self.last.1))
        } else {
            self.schedule(now, self.last, carried.frame.size, carried.offered)
        };
        (carried.transit.departure, carried.transit.arrival) = self.last;
        if self.leaves == Time::NEVER {
            self.leaves = carried.transit.departure;
        }
    }

    fn send(&mut self, now: Time, mut carried: Carried) {
        self.time(now, &mut carried);
        self.fifo.push_back(carried);
    }

    /// Adds a packet to the FIFO. Returns whether it is now the head.
    #[inline(always)]
    pub(crate) fn carry(&mut self, frame: Frame, transit: Transit) -> bool {
        self.fifo.push_back(Carried { frame, transit, offered: self.counters.offered });
        self.fifo.len() == 1
    }

    /// Lets a packet that was sent pass at the time `now`.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, pass: Pass) {
        self.counters.delivered_bytes += u64::from(pass.size);
        if self.passed.is_full() {
            cold_path();
            self.catch_up(now);
            self.passed.forget(now);
            // All before this packet may have left the queue. If its transmission takes no time, it is due at once as
            // well.
            self.leaves = self.leaves.min(pass.transit.departure);
        }
        self.passed.push(pass);
    }

    /// The packet that passed last does not pass after all.
    #[cold]
    pub(crate) fn hold_back(&mut self) {
        if let Some(pass) = self.passed.pop() {
            self.counters.delivered_bytes -= u64::from(pass.size);
        }
    }

    /// Undoes what happened after the event with this time and turn, the last one of the run. Returns how many packets
    /// are no longer offered.
    pub(crate) fn rewind(&mut self, end: (Time, Turn)) -> usize {
        let (mut most, offered) = (None, self.counters.offered);
        while let Some(carried) =
            self.fifo.pop_back_if(|carried| (carried.transit.entered, carried.transit.came) > end)
        {
            self.counters.offered -= 1;
            most = Some(carried.transit.most);
        }
        most = self.passed.rewind(end, &mut self.counters).or(most);
        self.queue.forget_most(most.unwrap_or(self.queue.most()));
        (offered - self.counters.offered) as usize
    }

    /// Takes the packets that the queue management dropped since the last call, with their times.
    pub(crate) fn take_dropped(&mut self) -> Vec<(Time, Carried)> {
        std::mem::take(&mut self.dropped)
    }

    /// Whether the queue management has dropped packets that were not taken yet.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// Time and turn of the next event: an arrival, or a decision of CoDel.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Time, Turn)> {
        let head = self.fifo.front().map(|carried| (carried.transit.arrival, carried.turn()));
        if self.plain { head } else { self.earliest(head) }
    }

    /// The packet that was offered last, if it is still here.
    pub(crate) fn newest(&self) -> Option<&Carried> {
        match self.management.as_deref() {
            Some(Management::Codel(codel)) => codel.newest().or(self.fifo.back()),
            _ => self.fifo.back(),
        }
    }

    /// When the next packet leaves the queue; `NEVER` if none is in it.
    pub(crate) fn leaves(&self) -> Time {
        self.leaves
    }

    /// The entries of the table of routes at which the frames on this link stand.
    pub(crate) fn hops(&self, now: Time) -> impl Iterator<Item = u32> {
        let late = self.jitter.iter().flat_map(|jitter| jitter.frames());
        let waiting = self.management.iter().flat_map(|management| management.waiting());
        let carried = self.fifo.iter().chain(waiting).map(|carried| &carried.frame).chain(late);
        carried.map(|frame| frame.hop).chain(self.passed.hops(now))
    }

    /// The mean rate between two times, bit/s.
    pub(crate) fn mean_rate(&self, from: Time, to: Time) -> f64 {
        if let Some(traced) = &self.traced {
            return traced.mean_rate(from, to);
        }
        let ends = self.rates.iter().skip(1).map(|(since, _)| *since).chain([Time::NEVER]);
        let (mut bits, mut nanos) = (0u128, 0u128);
        for ((since, rate), end) in self.rates.iter().zip(ends) {
            let part = end.min(to).as_nanos().saturating_sub(since.max(&from).as_nanos());
            bits += u128::from(part) * u128::from(*rate);
            nanos += u128::from(part);
        }
        // Whole bits and remainder are divided separately, so that a rate that never changed is exact.
        match bits.checked_div(nanos) {
            Some(whole) => whole as f64 + (bits % nanos) as f64 / nanos as f64,
            None => self.rate as f64,
        }
    }

    /// Delivers the head. Returns `None` if jitter that may reorder holds it back, or if it was the `turn` of CoDel to
    /// decide.
    #[inline(always)]
    pub(crate) fn deliver(&mut self, now: Time, turn: Turn) -> Option<Frame> {
        if !self.plain {
            return self.deliver_late(now, turn);
        }
        if self.left == 0 {
            self.catch_up(now);
        }
        let Carried { frame, transit, .. } = self.fifo.pop_front()?;
        debug_assert_eq!(transit.arrival, now);
        self.left -= 1;
        self.counters.delivered_bytes += u64::from(frame.size);
        Some(frame)
    }

    /// As `deliver`, for a link that may hold packets back before or after their transmission.
    #[cold]
    fn deliver_late(&mut self, now: Time, turn: Turn) -> Option<Frame> {
        if turn == Turn::FIRST {
            self.depart(now, |_, _, _| {});
            return None;
        }
        if let Some(late) = self.jitter.as_deref_mut().and_then(|jitter| jitter.due(now)) {
            self.counters.delivered_bytes += u64::from(late.frame.size);
            return Some(late.frame);
        }
        self.depart(now, |_, _, _| {});
        let carried = self.fifo.pop_front()?;
        debug_assert_eq!(carried.transit.arrival, now);
        self.left -= 1;
        let carried = match self.jitter.as_deref_mut() {
            Some(jitter) => jitter.hold(now, carried)?,
            None => carried,
        };
        self.counters.delivered_bytes += u64::from(carried.frame.size);
        Some(carried.frame)
    }

    /// Lets packets leave the queue up to `now`. Calls `shown` for each with its departure, the queue behind it, and
    /// the next packet, whose transmission begins at that moment.
    pub(crate) fn depart(&mut self, now: Time, mut shown: impl FnMut(Time, &Occupancy, Option<&Carried>)) {
        if self.leaves > now {
            return;
        }
        if let Some(next) = self.passed.depart(now, |size| self.queue.leave(size)) {
            self.leaves = next;
            return;
        }
        self.leaves = self.fifo.get(self.left).map_or(Time::NEVER, |carried| carried.transit.departure);
        while self.leaves <= now {
            let Some(carried) = self.fifo.get(self.left) else { break };
            self.queue.leave(carried.frame.size);
            let departure = carried.transit.departure;
            self.left += 1;
            if self.management.is_some() {
                self.leaves = Time::NEVER;
                self.pull(departure);
            }
            let next = self.fifo.get(self.left);
            shown(departure, &self.queue, next);
            self.leaves = next.map_or(Time::NEVER, |next| next.transit.departure);
        }
    }

    /// The queue in front of the link.
    pub(crate) fn queue(&self) -> &Occupancy {
        &self.queue
    }

    /// The counters so far.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Departure and arrival of a packet that is offered now, behind a packet with the departure and arrival `last`.
    fn schedule(&mut self, now: Time, last: (Time, Time), size: u32, offered: u64) -> (Time, Time) {
        let start = last.0.max(now);
        let departure = match &mut self.traced {
            Some(traced) => traced.departure(start, size),
            None => later(start, self.sending(size)),
        };
        (departure, self.arrival(departure, offered).max(last.1))
    }

    /// The arrival of the packet with the number `offered`, which departs at `departure`, if no packet is before it.
    fn arrival(&mut self, departure: Time, offered: u64) -> Time {
        let traced = self.traced.as_ref().and_then(|traced| traced.delay(departure));
        let delay = traced.unwrap_or(self.delay);
        match self.jitter.as_deref_mut() {
            Some(jitter) if !jitter.reorder => {
                later(departure, delay.saturating_add(jitter.draw(offered, departure)))
            }
            _ => later(departure, delay),
        }
    }

    /// The transmission time of `size` bytes in nanoseconds, rounded down. It cannot overflow: packets have at most 64
    /// KiB and some headers.
    fn sending(&mut self, size: u32) -> u64 {
        if self.last_sending.0 != size {
            self.last_sending = (size, u64::from(size) * 8_000_000_000 / self.rate);
        }
        self.last_sending.1
    }
}

pub(super) fn later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(nanos))
}

#[cfg(test)]
mod tests;
