//! A link direction: rate, delay, a queue, losses.
//!
//! A packet costs one event. When it is offered, its departure is known: the end of the one before it, or now,
//! and then size / rate; its arrival is the delay later. So a link is one FIFO of packets that wait, are sent
//! or are on their way, and only the arrival of its head stands in the agenda. How full the queue is follows
//! from the departures: a packet whose departure is now has left. A link never reorders: when its delay
//! becomes shorter, the next packets arrive together with the last one before.
//!
//! A packet need not be an event on every link of its way. While everything that comes to a link comes by one other, packets
//! pass: the engine offers them to the next link as soon as they are sent on this one, and this one keeps only when they leave
//! and arrive. [`Direction::rewind`] takes back what had not happened yet when a run ends.
//!
//! CoDel decides when a packet leaves the queue, so that its packets wait elsewhere and enter the FIFO when they begin to be
//! sent. That is never later than the arrival of the packet before, and so needs no event either.

use std::collections::VecDeque;

use anabranch_proto::Time;

use super::jitter::Jitter;
use super::managed::Management;
use super::passed::Passed;
use super::red::Seen;
use super::{Losses, Occupancy, Traced};
use crate::engine::agenda::Turn;
use crate::scenario::{Amount, Loss, Queue};
use crate::transport::Frame;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    /// Bit/s; the mean, where `traced` says when packets leave.
    rate: u64,
    traced: Option<Box<Traced>>,
    /// Nanoseconds of propagation.
    delay: u64,
    jitter: Option<Box<Jitter>>,
    /// The largest packet, in bytes with the IP header.
    mtu: u32,
    up: bool,
    /// Whether the arrival of a packet is known when it comes, and depends on nothing but those before it: no management, jitter or
    /// recorded rate.
    plain: bool,
    /// Packets that pass: all of them came before those of the FIFO.
    passed: Passed,
    fifo: VecDeque<Carried>,
    /// How many packets of the FIFO, from its head, have left the queue.
    left: usize,
    /// When the next leaves it; `NEVER` if none is in it.
    leaves: Time,
    /// Departure and arrival of the packet that came last.
    last: (Time, Time),
    queue: Occupancy,
    /// From so many bytes in the queue on, packets that can be marked are.
    mark: u64,
    /// The size of that packet, and the nanoseconds that it took to send: most are like the one before.
    like: (u32, u64),
    losses: Losses,
    /// `None`: drop-tail.
    management: Option<Box<Management>>,
    /// Packets that the management dropped since it was last asked, and when.
    dropped: Vec<(Time, Carried)>,
    counters: Counters,
    /// The rates that it had, each since when.
    rates: Vec<(Time, u64)>,
}

/// A packet on a link.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) frame: Frame,
    /// How many packets had been offered, this one included.
    pub(crate) offered: u64,
    /// When it came to this link.
    pub(super) entered: Time,
    /// What its turn was when it came.
    pub(super) came: Turn,
    /// The most packets that had been in the queue before.
    pub(super) most: u32,
    pub(super) departure: Time,
    pub(super) arrival: Time,
}

impl Carried {
    /// Among packets that arrive at the same time.
    pub(crate) fn turn(&self) -> Turn {
        Turn::packet(self.entered, self.frame.number())
    }

    /// When it arrives at the end of the link.
    pub(crate) fn arrival(&self) -> Time {
        self.arrival
    }
}

/// What becomes of a packet that is offered.
pub(crate) enum Taken {
    /// It arrives at the time that it says: it passes, or is carried.
    Sent(Carried),
    /// It waits; when it is sent is not known yet.
    Waits,
    /// It does not arrive.
    Dropped(DropCause, Frame),
}

/// Why a packet does not arrive.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// The queue was full, or its management dropped it.
    Queue,
    /// The link lost it.
    Loss,
    /// The link was down, or went down.
    Down,
    /// No CTS came to the last RTS.
    Rts,
    /// No ACK came to the last frame of data.
    Data,
    /// The packet was larger than the MTU to which the link has changed.
    Size,
}

/// What a link direction has done so far.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Counters {
    /// Packets offered.
    pub(crate) offered: u64,
    /// Bytes delivered at the far end.
    pub(crate) delivered_bytes: u64,
    /// Packets that the queue dropped.
    pub(crate) queue: u64,
    /// Packets lost.
    pub(crate) loss: u64,
    /// Packets dropped because the link was down.
    pub(crate) down: u64,
    /// Packets dropped because they were larger than the link's MTU.
    pub(crate) size: u64,
}

impl Counters {
    /// Packets dropped, of all causes.
    pub(crate) fn dropped(&self) -> u64 {
        self.queue + self.loss + self.down + self.size
    }

    /// What was counted since they were like `earlier`.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            offered: self.offered - earlier.offered,
            delivered_bytes: self.delivered_bytes - earlier.delivered_bytes,
            queue: self.queue - earlier.queue,
            loss: self.loss - earlier.loss,
            down: self.down - earlier.down,
            size: self.size - earlier.size,
        }
    }
}

/// What becomes different in a link direction; what is `None` stays.
#[derive(Default, Debug)]
pub(crate) struct Alteration {
    pub(crate) up: Option<bool>,
    /// Bit/s.
    pub(crate) rate: Option<u64>,
    /// Nanoseconds.
    pub(crate) delay: Option<u64>,
    /// Nanoseconds.
    pub(crate) jitter: Option<u64>,
    /// Bytes with the IP header.
    pub(crate) mtu: Option<u32>,
    /// The loss, and where the flow that it names has this direction in the table of routes.
    pub(crate) loss: Option<(Loss, Vec<u32>)>,
    /// Has its own stream of chance already.
    pub(crate) queue: Option<(Amount, Option<Box<Management>>)>,
    /// Bytes from which on packets are marked; `u64::MAX`: never.
    pub(crate) mark: Option<u64>,
}

impl Direction {
    /// Rate in bit/s, delay in nanoseconds.
    pub(crate) fn new(rate: u64, delay: u64, queue: Queue, losses: Losses, up: bool) -> Self {
        Direction {
            rate,
            traced: None,
            delay,
            jitter: None,
            mtu: u32::MAX,
            up,
            plain: true,
            passed: Passed::default(),
            fifo: VecDeque::new(),
            left: 0,
            leaves: Time::NEVER,
            last: (Time::ZERO, Time::ZERO),
            like: (0, 0),
            queue: Occupancy::new(queue.limit()),
            mark: u64::MAX,
            losses,
            management: None,
            dropped: Vec::new(),
            counters: Counters::default(),
            rates: vec![(Time::ZERO, rate)],
        }
    }

    /// The same, and marks packets that can be marked from so many bytes in the queue on.
    pub(crate) fn marking(self, mark: Option<u64>) -> Self {
        Direction { mark: mark.unwrap_or(u64::MAX), ..self }
    }

    /// The same with packets that arrive later than its delay, each by its own draw.
    pub(crate) fn jittering(self, jitter: Option<Jitter>) -> Self {
        Direction { jitter: jitter.map(Box::new), ..self }.sorted()
    }

    /// The same with a recorded rate.
    pub(crate) fn traced(self, traced: Option<Traced>) -> Self {
        Direction { traced: traced.map(Box::new), ..self }.sorted()
    }

    /// The same with this management of its queue.
    pub(crate) fn managed(self, management: Option<Box<Management>>) -> Self {
        Direction { management, ..self }.sorted()
    }

    fn sorted(mut self) -> Self {
        self.sort();
        self
    }

    fn sort(&mut self) {
        self.plain = self.management.is_none() && self.jitter.is_none() && self.traced.is_none();
    }

    /// A packet comes. Losses are drawn first: a lost packet takes no place in the queue.
    #[inline(always)]
    pub(crate) fn offer(&mut self, now: Time, frame: Frame, came: Turn) -> Taken {
        self.counters.offered += 1;
        if self.plain && self.up && self.losses.never() && frame.size <= self.mtu {
            self.depart(now, |_, _, _| {});
            if self.queue.admits(frame.size) {
                return self.send_or_wait(now, frame, came);
            }
            self.counters.queue += 1;
            return Taken::Dropped(DropCause::Queue, frame);
        }
        if let Some(loss) = self.traced.as_mut().and_then(|traced| traced.changed_loss(now)) {
            self.losses.change(&Loss::Random(loss), &[]);
        }
        let lost = self.losses.loses(self.counters.offered, &frame);
        if !self.up {
            self.counters.down += 1;
            return Taken::Dropped(DropCause::Down, frame);
        }
        if lost {
            self.counters.loss += 1;
            return Taken::Dropped(DropCause::Loss, frame);
        }
        if frame.size > self.mtu && !frame.is_fragmentable() {
            self.counters.size += 1;
            return Taken::Dropped(DropCause::Size, frame);
        }
        self.depart(now, |_, _, _| {});
        if self.management.is_some() && self.dropped_early(now) || !self.queue.admits(frame.size) {
            self.counters.queue += 1;
            return Taken::Dropped(DropCause::Queue, frame);
        }
        self.send_or_wait(now, frame, came)
    }

    /// Whether a packet that passes the link before can be offered here already, before the time `at` at which it comes: it is
    /// sure to be taken then, and what becomes of it is known.
    #[inline(always)]
    pub(crate) fn foresees(&mut self, at: Time, size: u32) -> bool {
        if !self.plain || !self.up || size > self.mtu || !self.losses.spares(self.counters.offered + 1) {
            return false;
        }
        self.depart(at, |_, _, _| {});
        self.queue.admits(size)
    }

    /// A packet that was foreseen comes from the link before, when it arrives there.
    #[inline(always)]
    pub(crate) fn follow(&mut self, carried: &mut Carried) {
        carried.came = carried.turn();
        carried.entered = carried.arrival;
        carried.frame.hop += 1;
        self.counters.offered += 1;
        self.enter(carried);
        self.time(carried.entered, carried);
    }

    /// Whether packets may pass here: none that is carried must stay behind.
    #[inline(always)]
    pub(crate) fn lets_pass(&self) -> bool {
        self.plain && self.fifo.is_empty()
    }

    #[inline(always)]
    fn send_or_wait(&mut self, now: Time, frame: Frame, came: Turn) -> Taken {
        let (departure, arrival) = (Time::NEVER, Time::NEVER);
        let mut carried = Carried { frame, offered: 0, entered: now, came, most: 0, departure, arrival };
        self.enter(&mut carried);
        if !self.plain && self.management.is_some() {
            self.wait(now, carried);
            return Taken::Waits;
        }
        self.time(now, &mut carried);
        Taken::Sent(carried)
    }

    /// The packet enters the queue.
    #[inline(always)]
    fn enter(&mut self, carried: &mut Carried) {
        if self.queue.bytes() >= self.mark {
            carried.frame.mark();
        }
        (carried.offered, carried.most) = (self.counters.offered, self.queue.most());
        self.queue.enter(carried.frame.size);
    }

    /// The packet is sent behind those before it: says when.
    #[inline(always)]
    fn time(&mut self, now: Time, carried: &mut Carried) {
        self.last = if self.plain {
            let departure = later(self.last.0.max(now), self.sending(carried.frame.size));
            (departure, later(departure, self.delay).max(self.last.1))
        } else {
            self.schedule(now, self.last, carried.frame.size, carried.offered)
        };
        (carried.departure, carried.arrival) = self.last;
        if self.leaves == Time::NEVER {
            self.leaves = carried.departure;
        }
    }

    fn send(&mut self, now: Time, mut carried: Carried) {
        self.time(now, &mut carried);
        self.fifo.push_back(carried);
    }

    /// A packet that was sent is carried to the end of the link; whether it is the head.
    #[inline(always)]
    pub(crate) fn carry(&mut self, carried: Carried) -> bool {
        self.fifo.push_back(carried);
        self.fifo.len() == 1
    }

    /// A packet that was sent passes; it is `now`.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, carried: &Carried) {
        self.counters.delivered_bytes += u64::from(carried.frame.size);
        self.passed.push(now, carried);
    }

    /// A run ends with the event of this time and turn: what is later has not happened.
    pub(crate) fn rewind(&mut self, end: (Time, Turn)) {
        let mut most = None;
        while let Some(carried) = self.fifo.pop_back_if(|carried| (carried.entered, carried.came) > end) {
            self.counters.offered -= 1;
            most = Some(carried.most);
        }
        most = self.passed.rewind(end, &mut self.counters).or(most);
        self.queue.forget_most(most.unwrap_or(self.queue.most()));
    }

    /// Whether RED drops the packet that arrives now.
    #[cold]
    fn dropped_early(&mut self, now: Time) -> bool {
        let Some(Management::Red(red)) = self.management.as_deref_mut() else { return false };
        let sending = self.fifo.get(self.left).map_or(0, |carried| carried.frame.size);
        let seen = Seen {
            packets: self.queue.packets().saturating_sub(1),
            bytes: self.queue.bytes() - u64::from(sending),
            idle: (self.leaves == Time::NEVER).then_some(self.last.0),
            rate: self.rate,
        };
        red.drops(now, &seen)
    }

    /// The packet enters a managed queue.
    #[cold]
    fn wait(&mut self, now: Time, carried: Carried) {
        let Some(Management::Codel(codel)) = self.management.as_deref_mut() else {
            return self.send(now, carried);
        };
        let size = carried.frame.size;
        codel.enter(now, carried, size);
        if self.leaves == Time::NEVER {
            self.pull(now);
        }
    }

    /// The link has nothing more to send: CoDel says which packet is next.
    #[cold]
    fn pull(&mut self, now: Time) {
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

    /// What the management of the queue dropped since this was last asked, with the time of each.
    pub(crate) fn take_dropped(&mut self) -> Vec<(Time, Carried)> {
        std::mem::take(&mut self.dropped)
    }

    /// Whether the management of the queue has dropped any.
    pub(crate) fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The next arrival: when, and the packet's turn.
    #[inline]
    pub(crate) fn head(&self) -> Option<(Time, Turn)> {
        let head = self.fifo.front().map(|carried| (carried.arrival, carried.turn()));
        match self.jitter.as_deref() {
            Some(jitter) => head.into_iter().chain(jitter.next()).min(),
            None => head,
        }
    }

    /// The packet that entered last, if it is still here.
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

    /// How many packets are on it, those not counted that jitter holds back.
    pub(crate) fn len(&self) -> usize {
        self.fifo.len()
    }

    /// Where in the table of routes the frames are that are on it now.
    pub(crate) fn hops(&self, now: Time) -> impl Iterator<Item = u32> {
        let late = self.jitter.iter().flat_map(|jitter| jitter.frames());
        let carried = self.fifo.iter().map(|carried| &carried.frame).chain(late);
        carried.map(|frame| frame.hop).chain(self.passed.hops(now))
    }

    /// Its mean rate over time between two moments, bit/s.
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
        // In two parts, so that a rate that never changed comes out to the bit.
        match bits.checked_div(nanos) {
            Some(whole) => whole as f64 + (bits % nanos) as f64 / nanos as f64,
            None => self.rate as f64,
        }
    }

    /// The head arrives; `None` if it is held back by jitter that may change the order.
    pub(crate) fn deliver(&mut self, now: Time) -> Option<Frame> {
        if let Some(late) = self.jitter.as_deref_mut().and_then(|jitter| jitter.due(now)) {
            self.counters.delivered_bytes += u64::from(late.frame.size);
            return Some(late.frame);
        }
        self.depart(now, |_, _, _| {});
        let carried = self.fifo.pop_front()?;
        debug_assert_eq!(carried.arrival, now);
        self.left -= 1;
        let carried = match self.jitter.as_deref_mut() {
            Some(jitter) => jitter.hold(now, carried)?,
            None => carried,
        };
        self.counters.delivered_bytes += u64::from(carried.frame.size);
        Some(carried.frame)
    }

    /// Packets leave the queue up to `now`; shown are the departure of each, the queue behind it, and the next,
    /// whose first bit leaves at that moment.
    pub(crate) fn depart(&mut self, now: Time, mut shown: impl FnMut(Time, &Occupancy, Option<&Carried>)) {
        while self.leaves <= now {
            if let Some(pass) = self.passed.next() {
                self.queue.leave(pass.size);
                self.passed.leave();
                let next = self.passed.next().map(|pass| pass.departure);
                let behind = || self.fifo.get(self.left).map(|carried| carried.departure);
                self.leaves = next.or_else(behind).unwrap_or(Time::NEVER);
                continue;
            }
            let Some(carried) = self.fifo.get(self.left) else { break };
            self.queue.leave(carried.frame.size);
            let departure = carried.departure;
            self.left += 1;
            if self.management.is_some() {
                self.leaves = Time::NEVER;
                self.pull(departure);
            }
            let next = self.fifo.get(self.left);
            shown(departure, &self.queue, next);
            self.leaves = next.map_or(Time::NEVER, |next| next.departure);
        }
    }

    /// The link becomes different. If it goes down, what is on it is lost and given back.
    pub(crate) fn alter(&mut self, now: Time, alteration: Alteration) -> Vec<Carried> {
        self.depart(now, |_, _, _| {});
        self.passed.clear();
        if let Some(rate) = alteration.rate {
            self.rate = rate;
            self.rates.push((now, rate));
        }
        self.delay = alteration.delay.unwrap_or(self.delay);
        self.mtu = alteration.mtu.unwrap_or(self.mtu);
        if let (Some(most), Some(jitter)) = (alteration.jitter, &mut self.jitter) {
            jitter.most = most;
        }
        if let Some((loss, hops)) = &alteration.loss {
            self.losses.change(loss, hops);
        }
        self.mark = alteration.mark.unwrap_or(self.mark);
        if let Some((limit, management)) = alteration.queue {
            self.queue.limit(limit);
            self.manage(now, management);
        }
        if alteration.rate.is_some() || alteration.delay.is_some() {
            self.reschedule(now);
        }
        self.up = alteration.up.unwrap_or(self.up);
        if self.up { Vec::new() } else { self.lose_all() }
    }

    /// The queue before it.
    pub(crate) fn queue(&self) -> &Occupancy {
        &self.queue
    }

    /// What it has done so far.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Departure and arrival of a packet that comes now and stands behind another, whose are `last`.
    fn schedule(&mut self, now: Time, last: (Time, Time), size: u32, offered: u64) -> (Time, Time) {
        let start = last.0.max(now);
        let departure = match &mut self.traced {
            Some(traced) => traced.departure(start, size),
            None => later(start, self.sending(size)),
        };
        (departure, self.arrival(departure, offered).max(last.1))
    }

    /// When the n-th packet offered arrives, whose last bit leaves then, if none is before it.
    fn arrival(&mut self, departure: Time, offered: u64) -> Time {
        let traced = self.traced.as_ref().and_then(|traced| traced.delay(departure));
        let delay = traced.unwrap_or(self.delay);
        match self.jitter.as_deref_mut() {
            Some(jitter) if !jitter.reorder => later(departure, delay.saturating_add(jitter.draw(offered))),
            _ => later(departure, delay),
        }
    }

    /// Nanoseconds to send `size` bytes, the fraction cut off. Packets have at most 64 KiB and some headers: it
    /// does not overflow.
    fn sending(&mut self, size: u32) -> u64 {
        if self.like.0 != size {
            self.like = (size, u64::from(size) * 8_000_000_000 / self.rate);
        }
        self.like.1
    }

    /// After a change of rate or delay: the packets in the queue leave anew, but for the one being sent.
    fn reschedule(&mut self, now: Time) {
        self.like = (0, 0);
        let gone = self.left.checked_sub(1).map(|last| &self.fifo[last]);
        let mut last = gone.map_or((Time::ZERO, Time::ZERO), |carried| (carried.departure, carried.arrival));
        for at in self.left..self.fifo.len() {
            let Carried { ref frame, departure, offered, .. } = self.fifo[at];
            let size = frame.size;
            last = match at == self.left {
                // A recorded rate never changes otherwise: packets leave as was foreseen.
                _ if self.traced.is_some() => (departure, self.arrival(departure, offered).max(last.1)),
                true => (departure, self.arrival(departure, offered).max(last.1)),
                false => self.schedule(now, last, size, offered),
            };
            (self.fifo[at].departure, self.fifo[at].arrival) = last;
        }
        self.last = last;
    }

    /// Another management: what CoDel has kept waiting is sent after what is there.
    fn manage(&mut self, now: Time, management: Option<Box<Management>>) {
        let before = std::mem::replace(&mut self.management, management);
        self.sort();
        if let Some(Management::Codel(mut codel)) = before.map(|before| *before) {
            codel.clear().for_each(|(carried, _)| self.send(now, carried));
        }
    }

    fn lose_all(&mut self) -> Vec<Carried> {
        if let Some(Management::Codel(codel)) = self.management.as_deref_mut() {
            for (carried, _) in codel.clear() {
                self.fifo.push_back(carried);
            }
        }
        self.fifo.iter().skip(self.left).for_each(|carried| self.queue.leave(carried.frame.size));
        self.left = 0;
        self.leaves = Time::NEVER;
        self.last = (Time::ZERO, Time::ZERO);
        let late = self.jitter.as_deref_mut().map(Jitter::take).unwrap_or_default();
        let lost: Vec<_> = late.into_iter().chain(self.fifo.drain(..)).collect();
        self.counters.down += lost.len() as u64;
        lost
    }
}

pub(super) fn later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(nanos))
}

#[cfg(test)]
mod tests;
