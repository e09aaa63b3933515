//! The receiver of a radio: the signals at its place, the signal being received, and collisions.

use anabranch_proto::Time;
use smallvec::SmallVec;

use super::frames::StationId;
use super::reception::{Alone, Beside, Reception};

/// The receiving half of a radio.
#[derive(Default, Debug)]
pub(super) struct Receiver {
    heard: SmallVec<[ReceivedSignal; 4]>,
    /// The index of the signal that it is receiving.
    locked: Option<StationId>,
    /// Since when it has been receiving that signal.
    since: Time,
}

/// A signal that begins.
#[derive(Copy, Clone, Debug)]
pub(super) struct Signal {
    pub(super) from: StationId,
    pub(super) strength: f64,
    /// Whether it makes the medium busy on its own.
    pub(super) sensed: bool,
    /// What an idle radio does with it if there is no other signal.
    pub(super) alone: Alone,
}

/// A signal on the air.
#[derive(Copy, Clone, Debug)]
struct ReceivedSignal {
    from: StationId,
    strength: f64,
    sensed: bool,
    /// Whether it is readable so far. Only the signal being received can be.
    readable: bool,
    /// Whether it has overlapped another sensed signal.
    overlapped: bool,
    /// The sender of the signal that first made it unreadable.
    spoiler: Option<StationId>,
}

/// A signal that has ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Ended {
    pub(super) reception: Outcome,
    /// Whether it has overlapped another sensed signal.
    pub(super) overlapped: bool,
    /// The sender of the signal that made it unreadable.
    pub(super) spoiler: Option<StationId>,
}

/// What the receiver could do with a signal.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Read,
    /// It was received but could not be read.
    Error,
    /// It was never received.
    Missed,
}

impl Receiver {
    /// A signal begins. `transmitting`: whether the station itself (`me`) is transmitting.
    pub(super) fn begin(
        &mut self,
        now: Time,
        rules: &dyn Reception,
        signal: Signal,
        me: StationId,
        transmitting: bool,
    ) {
        let Signal { from, strength, sensed, alone } = signal;
        let overlapped = sensed && self.heard.iter().any(|other| other.sensed);
        let mut new = ReceivedSignal { from, strength, sensed, readable: false, overlapped, spoiler: None };
        if sensed {
            self.heard.iter_mut().for_each(|other| other.overlapped = true);
        }
        if transmitting {
            new.spoiler = Some(me);
        } else if let Some(held) = self.locked {
            self.meet(now, rules, held, &mut new);
        } else if self.heard.is_empty() {
            new.readable = alone.readable;
            if alone.locks {
                (self.locked, self.since) = (Some(from), now);
            }
        } else {
            let beside = self.beside(None);
            let survives = rules.survives(strength, beside);
            if rules.locks(strength, beside) {
                (self.locked, self.since) = (Some(from), now);
                new.readable = survives && rules.decodes(strength);
            }
            new.spoiler = self.strongest().filter(|_| !new.readable);
        }
        self.heard.push(new);
    }

    /// A signal begins while another is received.
    fn meet(&mut self, now: Time, rules: &dyn Reception, held: StationId, new: &mut ReceivedSignal) {
        let beside = self.beside(Some(held));
        let Some(old) = self.heard.iter_mut().find(|signal| signal.from == held) else { return };
        if rules.takes_over(new.strength, old.strength, beside) {
            (old.readable, old.spoiler) = (false, old.spoiler.or(Some(new.from)));
            new.readable = rules.decodes(new.strength);
            (self.locked, self.since) = (Some(new.from), now);
        } else {
            new.spoiler = Some(held);
            if old.readable && !rules.survives(old.strength, beside.and(new.strength)) {
                (old.readable, old.spoiler) = (false, Some(new.from));
            }
        }
    }

    /// A signal ends.
    pub(super) fn end(&mut self, from: StationId) -> Ended {
        let place = self.heard.iter().position(|signal| signal.from == from).expect("what ends has begun");
        let ReceivedSignal { readable, overlapped, spoiler, .. } = self.heard.swap_remove(place);
        let received = self.locked == Some(from);
        if received {
            self.locked = None;
        }
        let reception = match (received, readable) {
            (true, true) => Outcome::Read,
            (true, false) => Outcome::Error,
            (false, _) => Outcome::Missed,
        };
        Ended { reception, overlapped, spoiler }
    }

    /// The station `me` begins to transmit and loses the signal that it is receiving.
    pub(super) fn deafen(&mut self, me: StationId) {
        let Some(held) = self.locked.take() else { return };
        if let Some(signal) = self.heard.iter_mut().find(|signal| signal.from == held) {
            (signal.readable, signal.spoiler) = (false, signal.spoiler.or(Some(me)));
        }
    }

    /// Whether the medium is sensed busy.
    pub(super) fn busy(&self, rules: &dyn Reception) -> bool {
        self.locked.is_some() || (!self.heard.is_empty() && rules.busy(self.beside(None)))
    }

    /// The beginning of the reception in progress.
    pub(super) fn receiving(&self) -> Option<Time> {
        self.locked.map(|_| self.since)
    }

    /// The signals on the air, without that of `held`.
    fn beside(&self, held: Option<StationId>) -> Beside {
        let others = self.heard.iter().filter(|signal| Some(signal.from) != held);
        others.fold(Beside::default(), |beside, signal| beside.and(signal.strength))
    }

    fn strongest(&self) -> Option<StationId> {
        let strongest = self.heard.iter().reduce(|a, b| if b.strength > a.strength { b } else { a });
        strongest.map(|signal| signal.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::wireless::power::tests::published;
    use crate::medium::wireless::reception::Range;

    const NOW: Time = Time::ZERO;
    const ME: StationId = 9;

    fn signal(rules: &dyn Reception, from: StationId, metres: f64) -> Signal {
        let strength = rules.strength(metres);
        Signal { from, strength, sensed: rules.senses(strength), alone: Alone::new(rules, strength) }
    }

    /// Stations begin in turn, each at its distance. Returns the outcome of each signal in the same order.
    fn overlap(rules: &dyn Reception, metres: &[f64]) -> Vec<(Outcome, Option<StationId>)> {
        let mut receiver = Receiver::default();
        for (station, metres) in (0..).zip(metres) {
            receiver.begin(NOW, rules, signal(rules, station, *metres), ME, false);
        }
        let ends = (0..metres.len() as StationId).map(|station| receiver.end(station));
        ends.map(|ended| (ended.reception, ended.spoiler)).collect()
    }

    #[test]
    fn any_signal_within_interference_spoils() {
        let range = Range::new(370.0, 520.0, 812.0, None);
        use Outcome::{Error, Missed, Read};
        assert_eq!(overlap(&range, &[300.0]), [(Read, None)]);
        assert_eq!(overlap(&range, &[450.0]), [(Error, None)]);
        assert_eq!(overlap(&range, &[600.0]), [(Missed, None)]);
        assert_eq!(overlap(&range, &[300.0, 750.0]), [(Error, Some(1)), (Missed, Some(0))]);
        assert_eq!(overlap(&range, &[750.0, 300.0]), [(Missed, None), (Error, Some(0))]);
    }

    #[test]
    fn powers_add_up_and_the_stronger_takes_over() {
        let power = published();
        use Outcome::{Error, Missed, Read};
        // One interferer at 800 m is tolerated, two are not.
        assert_eq!(overlap(&power, &[300.0, 800.0])[0], (Read, None));
        assert_eq!(overlap(&power, &[300.0, 800.0, 810.0])[0], (Error, Some(2)));
        assert_eq!(overlap(&power, &[500.0, 200.0]), [(Missed, Some(1)), (Read, None)]);
        assert_eq!(overlap(&power, &[300.0, 200.0])[1], (Missed, Some(0)));
    }

    #[test]
    fn a_signal_that_begins_while_it_transmits_does_not_hold_the_receiver() {
        use Outcome::{Error, Missed, Read};
        let range = Range::new(250.0, 550.0, 550.0, Some(10.0));
        // An idle radio receives the weak signal, although it cannot read it.
        assert_eq!(overlap(&range, &[400.0, 200.0]), [(Error, None), (Missed, Some(0))]);
        for (metres, outcome) in [(200.0, Read), (250.0, Error)] {
            let mut receiver = Receiver::default();
            receiver.begin(NOW, &range, signal(&range, 0, 400.0), ME, true);
            receiver.begin(NOW, &range, signal(&range, 1, metres), ME, false);
            assert_eq!(receiver.end(1).reception, outcome, "{metres} m");
            assert_eq!(receiver.end(0).reception, Missed);
        }
    }

    #[test]
    fn who_transmits_hears_nothing() {
        let range = Range::new(370.0, 520.0, 812.0, None);
        let mut receiver = Receiver::default();
        receiver.begin(NOW, &range, signal(&range, 0, 300.0), ME, false);
        assert_eq!(receiver.receiving(), Some(NOW));
        receiver.deafen(ME);
        receiver.begin(NOW, &range, signal(&range, 1, 300.0), ME, true);
        assert!(receiver.busy(&range));
        for station in [0, 1] {
            let Ended { reception, spoiler, .. } = receiver.end(station);
            assert_eq!((reception, spoiler), (Outcome::Missed, Some(ME)));
        }
        assert!(!receiver.busy(&range));
    }
}
