//! Changes of a link direction during a run.

use anabranch_proto::Time;

use super::{Carried, Direction, Transit};
use crate::medium::wire::Management;
use crate::medium::wire::jitter::Jitter;
use crate::scenario::{Amount, Loss};

/// A change of a link direction. A field that is `None` changes nothing.
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
    /// The loss, and the entries of the table of routes that stand for this direction in the flow that the loss names.
    pub(crate) loss: Option<(Loss, Vec<u32>)>,
    /// Limit and management of the queue. The management has its own random stream already.
    pub(crate) queue: Option<(Amount, Option<Box<Management>>)>,
    /// Packets are marked (ECN) while the queue holds at least so many bytes; `u64::MAX`: never.
    pub(crate) mark: Option<u64>,
}

impl Direction {
    /// Changes the link. If it goes down, the packets on it are lost; they are returned.
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
            jitter.change(now, most);
        }
        if let Some((loss, hops)) = &alteration.loss {
            self.losses.change(loss, hops);
        }
        self.mark = alteration.mark.unwrap_or(self.mark);
        if let Some((limit, management)) = alteration.queue {
            self.queue.limit(limit);
            self.manage(now, management);
        }
        if alteration.rate.is_some() || alteration.delay.is_some() || alteration.jitter.is_some() {
            self.reschedule(now);
        }
        self.up = alteration.up.unwrap_or(self.up);
        self.classify();
        if self.up { Vec::new() } else { self.lose_all(now) }
    }

    /// Computes the departures of all packets in the queue again after a change of rate, delay or jitter. The packet
    /// that is being sent keeps its departure.
    fn reschedule(&mut self, now: Time) {
        self.last_sending = (0, 0);
        let gone = self.left.checked_sub(1).map(|last| &self.fifo[last]);
        // Without any, all packets before this have left and arrived: RED asks since when the link is idle.
        let before = (self.last.0.min(now), self.last.1.min(now));
        let mut last = gone.map_or(before, |carried| (carried.transit.departure, carried.transit.arrival));
        for at in self.left..self.fifo.len() {
            let Carried { ref frame, transit: Transit { departure, .. }, offered } = self.fifo[at];
            let size = frame.size;
            last = match at == self.left {
                // A recorded rate is known in advance, so departures stay as they were computed.
                _ if self.traced.is_some() => (departure, self.arrival(departure, offered).max(last.1)),
                true => (departure, self.arrival(departure, offered).max(last.1)),
                false => self.schedule(now, last, size, offered),
            };
            let transit = &mut self.fifo[at].transit;
            (transit.departure, transit.arrival) = last;
        }
        self.last = last;
    }

    /// Replaces the management of the queue. Packets that waited in CoDel are sent after those already in the FIFO.
    fn manage(&mut self, now: Time, management: Option<Box<Management>>) {
        let before = std::mem::replace(&mut self.management, management);
        self.classify();
        if let Some(Management::Codel(mut codel)) = before.map(|before| *before) {
            codel.clear().for_each(|(carried, _)| self.send(now, carried));
        }
    }

    /// Removes every packet from the link and counts it as dropped because the link is down.
    fn lose_all(&mut self, now: Time) -> Vec<Carried> {
        if let Some(Management::Codel(codel)) = self.management.as_deref_mut() {
            for (carried, _) in codel.clear() {
                self.fifo.push_back(carried);
            }
        }
        self.fifo.iter().skip(self.left).for_each(|carried| self.queue.leave(carried.frame.size));
        self.left = 0;
        self.leaves = Time::NEVER;
        self.last = (self.last.0.min(now), self.last.1.min(now));
        self.traced.iter_mut().for_each(|traced| traced.free());
        let late = self.jitter.as_deref_mut().map(Jitter::take).unwrap_or_default();
        let lost: Vec<_> = late.into_iter().chain(self.fifo.drain(..)).collect();
        self.counters.down += lost.len() as u64;
        lost
    }
}
