//! The distributed coordination function of one station: contention, RTS/CTS, acknowledgement, retries.
//!
//! A station has one deadline, whose meaning depends on its [`Phase`]. While the station contends, the deadline is the
//! moment of access. Backoff slots are not counted one by one: the deadline follows from the time at which the medium
//! became idle.

use std::collections::VecDeque;

use anabranch_proto::Time;

use crate::chance::Draws;
use crate::medium::wire::{DropCause, Occupancy};
use crate::scenario::Amount;

use super::frames::{Air, Dcf, Kind, StationId};
use super::receiver::Receiver;
use super::reception::Reception;
use super::statistics::{Occupation, Statistics};

/// A radio and its queue.
#[derive(Debug)]
pub(super) struct Station<F> {
    pub(super) id: StationId,
    pub(super) receiver: Receiver,
    /// All but the use of the channel.
    pub(super) statistics: Statistics,
    pub(super) occupation: Occupation,
    phase: Phase,
    /// When the phase ends if no event ends it before.
    deadline: Time,
    /// The deadline that its group has for it.
    pub(super) awaited: Time,
    access: Access,
    queue: VecDeque<Queued<F>>,
    room: Occupancy,
    service: Option<Service<F>>,
    /// The number of the next packet.
    sequence: u16,
}

/// What a station is doing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    /// It waits for the medium if it has something to send.
    Contend,
    /// It is transmitting this frame.
    Send(Air),
    /// It waits for this answer to its frame. `late`: the timeout has passed, but a frame is arriving.
    Await { answer: Kind, late: bool },
    /// It will answer with this frame after SIFS.
    Answer(Air),
}

/// When the station may access the medium.
#[derive(Debug)]
struct Access {
    /// When contention may begin: the medium has been idle for DIFS or EIFS. `None`: it is busy.
    clear: Option<Time>,
    /// The last frame could not be read, so EIFS applies instead of DIFS.
    erroneous: bool,
    /// The end of the reservation by others (NAV).
    nav: Time,
    /// When a NAV set by an RTS is cancelled unless a frame begins before; `NEVER`: it is not in doubt.
    doubt: Time,
    cw: u32,
    /// Remaining backoff slots; `None`: no backoff is pending.
    slots: Option<u32>,
    /// The time up to which slots have been counted, or at which the backoff was drawn.
    counted: Time,
    /// Rarely used fields are boxed, so that the fields that every event reads stay together.
    draws: Box<Draws>,
    drawn: u64,
}

/// A packet in the queue.
#[derive(Debug)]
struct Queued<F> {
    to: StationId,
    size: u32,
    packet: F,
}

/// The packet in service.
#[derive(Debug)]
struct Service<F> {
    to: StationId,
    /// Bytes of its frame.
    bytes: u32,
    sequence: u16,
    announced: bool,
    short: u32,
    long: u32,
    /// Whether its DATA frame has been sent before.
    retry: bool,
    /// The addressee takes the packet when it reads the frame for the first time. A station sends one packet at a time,
    /// so a frame without its packet is a duplicate. A duplicate is acknowledged and not delivered again.
    packet: Option<F>,
}

/// The result of a reception or of a wait.
#[derive(Debug)]
pub(super) enum Step<F> {
    Nothing,
    /// This frame is transmitted now.
    Transmit(Air),
    /// Its packet was given up after the last attempt. `None`: the packet had been delivered nevertheless.
    GiveUp(DropCause, Option<F>),
}

impl<F> Station<F> {
    pub(super) fn new(id: StationId, dcf: &Dcf, queue: Amount, draws: Draws) -> Self {
        let access = Access {
            // Before the run the medium was idle.
            clear: Some(Time::ZERO),
            erroneous: false,
            nav: Time::ZERO,
            doubt: Time::NEVER,
            cw: dcf.cw_min,
            slots: None,
            counted: Time::ZERO,
            draws: Box::new(draws),
            drawn: 0,
        };
        Station {
            id,
            receiver: Receiver::default(),
            statistics: Statistics::default(),
            occupation: Occupation::default(),
            phase: Phase::Contend,
            deadline: Time::NEVER,
            awaited: Time::NEVER,
            access,
            queue: VecDeque::new(),
            room: Occupancy::new(queue),
            service: None,
            sequence: 0,
        }
    }

    /// When the station acts if no event comes before; `NEVER` if it does not.
    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    pub(super) fn transmitting(&self) -> bool {
        matches!(self.phase, Phase::Send(_))
    }

    /// The frame that it is transmitting.
    pub(super) fn sending(&self) -> Option<Air> {
        match self.phase {
            Phase::Send(air) => Some(air),
            _ => None,
        }
    }

    /// What it has counted up to now.
    pub(super) fn statistics(&self, now: Time) -> Statistics {
        let mut occupation = self.occupation;
        occupation.settle(now);
        Statistics { airtime: occupation.airtime, ..self.statistics }
    }

    /// Whether it is transmitting the frame that it began at `start`.
    pub(super) fn sends(&self, start: Time) -> bool {
        matches!(self.phase, Phase::Send(air) if self.deadline == later(start, air.airtime))
    }

    /// Whether it may take a packet from this frame when it ends, or give up one of its own.
    pub(super) fn may_free_a_packet(&self, air: &Air) -> bool {
        let addressed = air.to == self.id;
        match self.phase {
            Phase::Await { answer, .. } => {
                let expected = self.service.as_ref().is_some_and(|service| service.to == air.from);
                !addressed || air.kind != answer || !expected
            }
            _ => addressed && air.kind == Kind::Data,
        }
    }

    /// Whether it senses the medium busy. Its own frame counts.
    pub(super) fn finds_busy(&self) -> bool {
        self.access.clear.is_none()
    }

    /// The length of the queue, without the packet in service.
    #[cfg(test)]
    pub(super) fn queue(&self) -> &Occupancy {
        &self.room
    }

    /// Accepts a packet of `size` bytes for its neighbour `to`, or returns it if the queue is full.
    pub(super) fn offer(
        &mut self,
        now: Time,
        dcf: &Dcf,
        to: StationId,
        size: u32,
        packet: F,
    ) -> Result<(), F> {
        if self.service.is_some() {
            if !self.room.admits(size) {
                self.statistics.drops.queue += 1;
                return Err(packet);
            }
            self.room.enter(size);
            self.queue.push_back(Queued { to, size, packet });
            return Ok(());
        }
        self.serve(dcf, Queued { to, size, packet });
        self.access.count(now, dcf);
        // A station that finds the medium busy needs a backoff. Otherwise DIFS is enough.
        let taken = self.phase != Phase::Contend || self.access.clear.is_none() || self.access.reserved(now);
        if taken && self.access.slots.is_none() {
            self.access.draw(now);
        }
        self.contend(now, dcf);
        Ok(())
    }

    /// The deadline has passed.
    pub(super) fn wake(&mut self, now: Time, dcf: &Dcf, rules: &dyn Reception) -> Step<F> {
        match self.phase {
            Phase::Contend => self.access_granted(dcf),
            Phase::Send(air) => {
                self.sent(now, dcf, &air);
                Step::Nothing
            }
            Phase::Await { answer, .. } => self.unanswered(now, dcf, answer),
            Phase::Answer(air) if air.kind == Kind::Cts && self.receiver.busy(rules) => {
                self.phase = Phase::Contend;
                Step::Nothing
            }
            Phase::Answer(air) => self.transmit(air),
        }
    }

    /// The backoff is over: sends RTS, or DATA if no RTS is needed.
    fn access_granted(&mut self, dcf: &Dcf) -> Step<F> {
        let Some(service) = &self.service else { return Step::Nothing };
        let Service { to, bytes, sequence, .. } = *service;
        let air = match service.announced {
            true => Air { retry: service.short + service.long > 0, ..dcf.rts(self.id, to, bytes, sequence) },
            false => service.data(dcf, self.id),
        };
        self.access.slots = None;
        self.transmit(air)
    }

    fn transmit(&mut self, air: Air) -> Step<F> {
        match air.kind {
            Kind::Rts => self.statistics.rts.sent += 1,
            Kind::Data => self.statistics.data.sent += 1,
            Kind::Cts | Kind::Ack => {}
        }
        Step::Transmit(air)
    }

    /// Its own frame begins.
    pub(super) fn begin(&mut self, now: Time, air: Air) {
        self.phase = Phase::Send(air);
        self.deadline = later(now, air.airtime);
        self.receiver.deafen(self.id);
        self.occupation.enter(now, &air);
    }

    /// Its own frame ends.
    fn sent(&mut self, now: Time, dcf: &Dcf, air: &Air) {
        self.occupation.leave(now, air);
        let answer = match air.kind {
            Kind::Rts => Kind::Cts,
            Kind::Data => Kind::Ack,
            Kind::Cts | Kind::Ack => {
                self.phase = Phase::Contend;
                return;
            }
        };
        if let Some(service) = self.service.as_mut().filter(|_| air.kind == Kind::Data) {
            service.retry = true;
        }
        self.phase = Phase::Await { answer, late: false };
        self.deadline = later(now, dcf.timing.answer_timeout());
    }

    /// The timeout for an answer has passed. A frame whose header has been received by now may still be the answer.
    fn unanswered(&mut self, now: Time, dcf: &Dcf, answer: Kind) -> Step<F> {
        let begun = |since: Time| later(since, dcf.timing.preamble()) <= now;
        if self.receiver.receiving().is_some_and(begun) {
            self.phase = Phase::Await { answer, late: true };
            self.deadline = Time::NEVER;
            return Step::Nothing;
        }
        self.fail(now, dcf, answer)
    }

    /// A frame was read.
    pub(super) fn read(&mut self, now: Time, dcf: &Dcf, air: &Air) -> Step<F> {
        self.access.erroneous = false;
        let mut step = Step::Nothing;
        if let Phase::Await { answer, .. } = self.phase {
            let expected = self.service.as_ref().is_some_and(|service| service.to == air.from);
            if air.to == self.id && air.kind == answer && expected {
                self.answered(now, dcf, answer);
                return Step::Nothing;
            }
            // Any other frame shows that the answer will not come.
            step = self.fail(now, dcf, answer);
        }
        if air.to != self.id {
            self.access.reserve(later(now, air.reserves), air.kind == Kind::Rts && dcf.nav_reset, now, dcf);
        } else if self.phase == Phase::Contend {
            self.answer(now, dcf, air);
        }
        step
    }

    /// Receives a frame addressed to this station, which may require an answer after SIFS.
    fn answer(&mut self, now: Time, dcf: &Dcf, air: &Air) {
        let answer = match air.kind {
            Kind::Rts if !self.access.reserved(now) => dcf.cts(air),
            Kind::Data => dcf.ack(air),
            Kind::Rts | Kind::Cts | Kind::Ack => return,
        };
        self.phase = Phase::Answer(answer);
        self.deadline = later(now, dcf.timing.sifs);
    }

    /// The expected answer has arrived.
    fn answered(&mut self, now: Time, dcf: &Dcf, answer: Kind) {
        if answer == Kind::Cts {
            self.statistics.rts.answered += 1;
            let Some(service) = &mut self.service else { return };
            service.short = 0;
            self.phase = Phase::Answer(service.data(dcf, self.id));
            self.deadline = later(now, dcf.timing.sifs);
            return;
        }
        self.statistics.data.answered += 1;
        self.finish(now, dcf);
    }

    /// The answer did not come: makes the next attempt, or gives the packet up.
    fn fail(&mut self, now: Time, dcf: &Dcf, answer: Kind) -> Step<F> {
        let Some(service) = &mut self.service else { return Step::Nothing };
        let long = answer == Kind::Ack && service.announced;
        let (count, limit) = match long {
            true => (&mut service.long, dcf.long_retry),
            false => (&mut service.short, dcf.short_retry),
        };
        *count += 1;
        if *count < limit {
            self.phase = Phase::Contend;
            self.access.cw = dcf.widened(self.access.cw);
            self.access.draw(now);
            return Step::Nothing;
        }
        let cause = match answer {
            Kind::Cts => {
                self.statistics.drops.rts_retries += 1;
                DropCause::Rts
            }
            _ => {
                self.statistics.drops.data_retries += 1;
                DropCause::Data
            }
        };
        Step::GiveUp(cause, self.finish(now, dcf))
    }

    /// The packet in service is finished. A backoff follows even if no packet is queued.
    fn finish(&mut self, now: Time, dcf: &Dcf) -> Option<F> {
        let done = self.service.take().and_then(|service| service.packet);
        self.phase = Phase::Contend;
        self.access.cw = dcf.cw_min;
        self.access.draw(now);
        if let Some(next) = self.queue.pop_front() {
            self.room.leave(next.size);
            self.serve(dcf, next);
        }
        done
    }

    fn serve(&mut self, dcf: &Dcf, next: Queued<F>) {
        let bytes = dcf.data_bytes(next.size);
        self.service = Some(Service {
            to: next.to,
            bytes,
            sequence: self.sequence,
            announced: dcf.announces(bytes),
            short: 0,
            long: 0,
            retry: false,
            packet: Some(next.packet),
        });
        // A sequence number has twelve bits.
        self.sequence = (self.sequence + 1) & 0xfff;
    }

    /// The packet in service, unless its addressee has received it.
    pub(super) fn packet(&self) -> Option<&F> {
        self.service.as_ref()?.packet.as_ref()
    }

    /// The packet in service and the queued packets.
    pub(super) fn packets(&self) -> impl Iterator<Item = &F> {
        self.packet().into_iter().chain(self.queue.iter().map(|queued| &queued.packet))
    }

    /// Takes the packet of the DATA frame on the air for the first station that reads it.
    pub(super) fn take_packet(&mut self) -> Option<F> {
        self.service.as_mut()?.packet.take()
    }

    /// A frame that was being received has ended and could not be read.
    pub(super) fn misread(&mut self, now: Time, dcf: &Dcf) -> Step<F> {
        self.access.erroneous = true;
        match self.phase {
            Phase::Await { answer, late: true } => self.fail(now, dcf, answer),
            _ => Step::Nothing,
        }
    }

    /// A frame begins to arrive.
    pub(super) fn receiving(&mut self, now: Time) {
        self.access.settle_doubt(now);
    }

    /// Called after all other events of this time. `busy`: whether the medium is busy, this station's own frame
    /// included.
    pub(super) fn settle(&mut self, now: Time, dcf: &Dcf, busy: bool) {
        match (self.access.clear, busy) {
            (Some(_), true) => {
                self.access.count(now, dcf);
                self.access.clear = None;
                if self.phase == Phase::Contend && self.service.is_some() && self.access.slots.is_none() {
                    self.access.draw(now);
                }
            }
            (None, false) => {
                let erroneous = std::mem::take(&mut self.access.erroneous);
                let space = if erroneous { dcf.timing.eifs() } else { dcf.timing.difs() };
                self.access.clear = Some(later(now, space));
            }
            _ => {}
        }
        self.contend(now, dcf);
    }

    /// Sets the deadline to the moment of access while the station contends.
    fn contend(&mut self, now: Time, dcf: &Dcf) {
        if self.phase == Phase::Contend {
            let wanted = self.service.is_some();
            self.deadline = if wanted { self.access.granted(now, dcf) } else { Time::NEVER };
        }
    }
}

impl<F> Service<F> {
    fn data(&self, dcf: &Dcf, from: StationId) -> Air {
        Air { retry: self.retry, ..dcf.data(from, self.to, self.bytes, self.sequence) }
    }
}

impl Access {
    /// Whether the medium is reserved by others.
    fn reserved(&self, now: Time) -> bool {
        self.nav.min(self.doubt) > now
    }

    /// The time from which slots are counted while the medium stays idle; `NEVER` while it is busy.
    fn counting(&self, dcf: &Dcf) -> Time {
        let Some(clear) = self.clear else { return Time::NEVER };
        let free = match self.nav.min(self.doubt) {
            Time::ZERO => Time::ZERO,
            nav => later(nav, dcf.timing.difs()),
        };
        clear.max(free).max(self.counted)
    }

    /// The moment of access if the medium stays idle.
    fn granted(&self, now: Time, dcf: &Dcf) -> Time {
        match self.counting(dcf) {
            Time::NEVER => Time::NEVER,
            from => later(from, u64::from(self.slots.unwrap_or(0)) * dcf.timing.slot).max(now),
        }
    }

    /// Counts the slots that have passed by now.
    fn count(&mut self, now: Time, dcf: &Dcf) {
        let from = self.counting(dcf);
        let Some(slots) = self.slots.filter(|_| from <= now) else { return };
        let passed = (now.as_nanos() - from.as_nanos()) / dcf.timing.slot;
        if passed >= u64::from(slots) {
            self.slots = None;
        } else {
            self.slots = Some(slots - passed as u32);
            self.counted = later(from, passed * dcf.timing.slot);
        }
    }

    /// Draws a new backoff, which counts from now on.
    fn draw(&mut self, now: Time) {
        self.slots = Some((self.draws.nth(self.drawn) % (u64::from(self.cw) + 1)) as u32);
        self.drawn += 1;
        self.counted = now;
    }

    /// Other stations reserve the medium until then. `doubtful`: the reservation comes from an RTS whose CTS may not
    /// follow.
    fn reserve(&mut self, until: Time, doubtful: bool, now: Time, dcf: &Dcf) {
        if until > self.nav {
            self.nav = until;
            self.doubt = if doubtful { later(now, dcf.nav_doubt()) } else { Time::NEVER };
        }
    }

    /// A frame begins. A doubtful NAV is confirmed, unless it was cancelled before.
    fn settle_doubt(&mut self, now: Time) {
        if self.doubt <= now {
            self.nav = self.nav.min(self.doubt);
        }
        self.doubt = Time::NEVER;
    }
}

pub(super) fn later(time: Time, nanos: u64) -> Time {
    Time::from_nanos(time.as_nanos().saturating_add(nanos))
}

#[cfg(test)]
mod tests;
