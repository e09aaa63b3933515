//! When the next SACK is due (RFC 9260 §6.2).

use std::hint::cold_path;

use smallvec::SmallVec;

use super::Receiver;
use crate::Time;
use crate::config::Config;
use crate::mechanisms::Dac;
use crate::path::PathId;
use crate::rules::{DelayedSack, DuplicateSack};

/// When the next SACK is due.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// The latest time for the SACK; [`Time::NEVER`] while none is owed.
    pub(crate) deadline: Time,
    /// Whether it is due now.
    pub(crate) now: bool,
    /// What the SACK that is due now means for the delayed one.
    settles: Settles,
}

/// What a SACK means for the delayed one (`duplicate_sack`).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Settles {
    /// It takes its place.
    All,
    /// Nothing.
    Nothing,
    /// The count of packets begins anew, but SACK.Delay goes on.
    Count,
}

impl Schedule {
    /// No SACK is owed.
    pub(super) fn idle() -> Self {
        Schedule { packets: 0, deadline: Time::NEVER, now: false, settles: Settles::All }
    }

    /// Packets with DATA since the last SACK.
    pub(super) fn packets(&self) -> u32 {
        self.packets
    }

    /// The SACK that is owed is due now.
    #[inline]
    pub(super) fn owe(&mut self) {
        (self.now, self.settles) = (true, Settles::All);
    }

    /// The SACK was sent.
    #[inline]
    pub(super) fn sent(&mut self) {
        match self.settles {
            Settles::All => *self = Schedule::idle(),
            settles => {
                cold_path();
                (self.now, self.settles) = (false, Settles::All);
                self.packets = if settles == Settles::Count { 0 } else { self.packets };
            }
        }
    }
}

/// The SACKs of the paths, if the packets of each path count separately (`sack_return`).
#[derive(Clone, Default, Debug)]
pub(super) struct EachPath {
    /// The SACKs owed to paths other than the path of the last DATA.
    aside: SmallVec<[(PathId, Schedule); 1]>,
}

impl EachPath {
    /// Stores the pending acknowledgements of the path `before`, and loads those of `path`.
    fn exchange(&mut self, before: (PathId, Schedule), path: PathId) -> Schedule {
        let place = self.aside.iter().position(|(aside, _)| *aside == path);
        let taken = place.map_or_else(Schedule::idle, |place| self.aside.swap_remove(place).1);
        let (id, mut schedule) = before;
        if schedule.now {
            (schedule.deadline, schedule.settles) = (Time::ZERO, Settles::All);
        }
        if schedule.deadline != Time::NEVER {
            self.aside.push((id, schedule));
        }
        taken
    }

    /// The time of the next SACK that does not wait for its turn yet.
    fn deadline(&self) -> Time {
        let later = self.aside.iter().map(|(_, schedule)| schedule.deadline).filter(|at| *at > Time::ZERO);
        later.min().unwrap_or(Time::NEVER)
    }

    /// SACKs that are due now wait for their turn.
    fn mark(&mut self, now: Time) {
        let due = self.aside.iter_mut().filter(|(_, schedule)| schedule.deadline <= now);
        due.for_each(|(_, schedule)| schedule.deadline = Time::ZERO);
    }

    /// A path whose SACK waits for its turn.
    fn marked(&self) -> Option<PathId> {
        self.aside.iter().find(|(_, schedule)| schedule.deadline == Time::ZERO).map(|(path, _)| *path)
    }
}

/// The outcome of the DATA chunks of one packet.
#[derive(Default, Debug)]
pub(crate) struct Arrival {
    pub(super) chunks: u32,
    pub(super) at_once: bool,
    /// Whether a SACK must be sent at once besides the delayed one.
    pub(super) besides: bool,
    /// Whether that is for the very first chunk. A packet that has no other does not count towards the delayed SACK.
    pub(super) opens: bool,
    /// The number of chunks of the packet that may look at every stream.
    costly: u32,
}

impl Arrival {
    /// Counts a chunk that may look at every stream. Returns whether it is processed: only the first `most` of a packet
    /// are.
    pub(crate) fn admits_costly(&mut self, most: u32) -> bool {
        self.costly += 1;
        self.costly <= most
    }

    /// Whether the packet had DATA at all.
    pub(crate) fn any(&self) -> bool {
        self.chunks > 0
    }
}

impl Receiver {
    /// All chunks of a packet were processed: decides whether a SACK is due, now or later.
    //= rfc9260#section-6.2
    #[inline(always)]
    pub(crate) fn packet_done(&mut self, arrival: &Arrival, from: PathId, now: Time, config: &Config) {
        let counted = arrival.chunks > u32::from(arrival.opens);
        if !counted && !arrival.opens {
            return;
        }
        self.turn_to(from);
        self.schedule.packets += u32::from(counted);
        let gap = self.has_gap() && self.dac == Dac::Off;
        if arrival.at_once || gap || self.schedule.packets >= config.sack_every {
            self.schedule.owe();
        } else if arrival.besides && !self.schedule.now {
            cold_path();
            let counts = self.duplicate_sack == DuplicateSack::Counted;
            (self.schedule.now, self.schedule.settles) =
                (true, if counts { Settles::Count } else { Settles::Nothing });
        }
        // The first packet after a SACK starts the timer, also if that SACK has left it running.
        if counted && (self.schedule.deadline == Time::NEVER || self.schedule.packets == 1) {
            self.schedule.deadline = now + config.sack_delay;
            if config.sack_delay.is_zero() {
                cold_path();
                self.schedule.owe();
            }
        }
        self.take_turn();
    }

    /// A packet with control chunks arrived on this path. A SACK that is owed may follow it.
    //= rfc9260#section-6.4
    pub(crate) fn control_came(&mut self, path: PathId, config: &Config) {
        if config.rules.delayed_sack == DelayedSack::LastPacket && self.each_path.is_none() {
            self.from = path;
        }
    }

    /// If no SACK is due for the path in use, one that waits for its turn becomes due.
    #[inline]
    pub(super) fn take_turn(&mut self) {
        if !self.schedule.now
            && let Some(path) = self.each_path.as_ref().and_then(|each| each.marked())
        {
            self.turn_to(path);
            (self.schedule.now, self.schedule.deadline) = (true, Time::NEVER);
        }
    }

    /// The next SACK goes to this path.
    #[inline]
    fn turn_to(&mut self, path: PathId) {
        if path != self.from {
            cold_path();
            self.turn_away(path);
        }
    }

    fn turn_away(&mut self, path: PathId) {
        if let Some(each) = &mut self.each_path {
            let before = std::mem::replace(&mut self.schedule, Schedule::idle());
            self.schedule = each.exchange((self.from, before), path);
        }
        self.from = path;
    }

    /// When a SACK is due at the latest; [`Time::NEVER`] while none is owed.
    #[inline]
    pub(crate) fn sack_deadline(&self) -> Time {
        let others = self.each_path.as_ref().map_or(Time::NEVER, |each| each.deadline());
        self.schedule.deadline.min(others)
    }

    /// A delayed SACK is due.
    pub(crate) fn sack_timer_expired(&mut self, now: Time) {
        if let Some(each) = &mut self.each_path {
            each.mark(now);
        }
        if self.schedule.deadline > now {
            self.take_turn();
        }
        self.schedule.owe();
        self.schedule.deadline = Time::NEVER;
        if self.dac == Dac::Literal {
            self.schedule.packets = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tsn;
    use crate::mechanisms::SackReturn;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn packets_of_each_path_count_by_themselves_if_they_are_to() {
        let (first, second) = (PathId(0), PathId(1));
        let packet = Arrival { chunks: 1, ..Arrival::default() };
        let mut config = Config::default();
        let mut together = Receiver::new(Tsn(1), &config);
        config.mechanisms.sack_return = SackReturn::EachPath;
        let mut apart = Receiver::new(Tsn(1), &config);
        for receiver in [&mut together, &mut apart] {
            receiver.packet_done(&packet, first, at(0), &config);
            receiver.packet_done(&packet, second, at(50), &config);
        }
        assert_eq!((together.schedule.now, together.from), (true, second));
        assert_eq!((apart.schedule.now, apart.sack_deadline()), (false, at(200)));
        apart.packet_done(&packet, second, at(60), &config);
        assert_eq!((apart.schedule.now, apart.from), (true, second));
        apart.sack(1000, &config);
        assert_eq!(apart.sack_deadline(), at(200), "the first path's packet still waits");
        apart.sack_timer_expired(at(200));
        assert_eq!((apart.schedule.now, apart.from), (true, first));
        apart.sack(1000, &config);
        assert_eq!(apart.sack_deadline(), Time::NEVER);
    }

    #[test]
    fn a_sack_that_is_due_is_not_forgotten_for_another_path() {
        let mut config = Config::default();
        config.mechanisms.sack_return = SackReturn::EachPath;
        let mut receiver = Receiver::new(Tsn(1), &config);
        let packet = Arrival { chunks: 1, ..Arrival::default() };
        let urgent = Arrival { chunks: 1, at_once: true, ..Arrival::default() };
        receiver.packet_done(&urgent, PathId(0), at(0), &config);
        receiver.packet_done(&packet, PathId(1), at(0), &config);
        assert_eq!((receiver.schedule.now, receiver.from), (true, PathId(0)));
        receiver.sack(1000, &config);
        assert_eq!(receiver.sack_deadline(), at(200), "the other path's packet still waits");
    }

    /// The timers of two paths expire together: one SACK leaves after the other, and no timer remains.
    #[test]
    fn two_sacks_that_are_due_take_turns() {
        let mut config = Config::default();
        config.mechanisms.sack_return = SackReturn::EachPath;
        let mut receiver = Receiver::new(Tsn(1), &config);
        let packet = Arrival { chunks: 1, ..Arrival::default() };
        receiver.packet_done(&packet, PathId(0), at(0), &config);
        receiver.packet_done(&packet, PathId(1), at(0), &config);
        receiver.sack_timer_expired(at(200));
        assert_eq!((receiver.sack_deadline(), receiver.from), (Time::NEVER, PathId(1)));
        receiver.sack(1000, &config);
        assert_eq!((receiver.schedule.now, receiver.from), (true, PathId(0)));
        receiver.sack(1000, &config);
        assert!(!receiver.schedule.now && receiver.sack_deadline() == Time::NEVER);
    }
}
