//! When each association has to be woken. The cost of a poll depends on the number of associations that are due, not
//! on the number that exist.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use smallvec::SmallVec;

use crate::Time;

/// The earliest known deadline of every association. An entry may be too early, but never too late. A deadline that
/// moves back (as T3-rtx does with every SACK) therefore costs nothing until the old deadline is reached.
#[derive(Clone, Debug)]
pub(super) struct Agenda {
    /// The earliest entry, and whose it is. It is kept apart from the others, because most endpoints have one
    /// association.
    first: (Time, usize),
    others: BinaryHeap<Reverse<(Time, usize)>>,
    /// The valid entry of each association.
    registered: SmallVec<[Time; 1]>,
}

/// In place of the first entry, if there is none.
const NONE: (Time, usize) = (Time::NEVER, usize::MAX);

impl Default for Agenda {
    fn default() -> Self {
        Agenda { first: NONE, others: BinaryHeap::new(), registered: SmallVec::new() }
    }
}

impl Agenda {
    /// The association `index` has nothing to do before `deadline`.
    #[inline]
    pub(super) fn set(&mut self, index: usize, deadline: Time) {
        if self.registered.get(index).is_none_or(|registered| deadline < *registered) {
            self.enter(index, deadline);
        }
    }

    fn enter(&mut self, index: usize, deadline: Time) {
        if self.registered.len() <= index {
            self.registered.resize(index + 1, Time::NEVER);
        }
        if deadline < self.registered[index] {
            self.registered[index] = deadline;
            self.add((deadline, index));
        }
    }

    fn add(&mut self, entry: (Time, usize)) {
        let before = std::mem::replace(&mut self.first, entry);
        // An older entry of the same association is void.
        if before != NONE && before.1 != entry.1 {
            self.others.push(Reverse(before));
        }
        if let Some(mut least) = self.others.peek_mut()
            && least.0 < self.first
        {
            std::mem::swap(&mut least.0, &mut self.first);
        }
    }

    /// Whether any entry is due.
    pub(super) fn is_due(&self, now: Time) -> bool {
        self.first.0 <= now
    }

    /// Takes out an association whose entry is due.
    pub(super) fn due(&mut self, now: Time) -> Option<usize> {
        while self.first != NONE && self.is_due(now) {
            let next = self.others.pop().map_or(NONE, |Reverse(entry)| entry);
            let (at, index) = std::mem::replace(&mut self.first, next);
            if self.registered[index] == at {
                self.registered[index] = Time::NEVER;
                return Some(index);
            }
        }
        None
    }

    /// All entries, including the void ones.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.first != NONE) + self.others.len()
    }

    /// The earliest entry.
    pub(super) fn next(&self) -> Option<Time> {
        (self.first.0 != Time::NEVER).then_some(self.first.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_early_or_right_never_late() {
        let at = Time::from_nanos;
        let mut agenda = Agenda::default();
        agenda.set(0, at(50));
        agenda.set(1, at(40));
        agenda.set(0, at(90));
        assert_eq!(agenda.next(), Some(at(40)));
        assert_eq!(agenda.due(at(39)), None);
        assert_eq!((agenda.due(at(60)), agenda.due(at(60)), agenda.due(at(60))), (Some(1), Some(0), None));
        agenda.set(0, at(90));
        agenda.set(0, at(70));
        assert_eq!((agenda.due(at(99)), agenda.due(at(99))), (Some(0), None), "the superseded entry is void");
    }

    #[test]
    fn a_void_entry_gives_its_place_to_a_later_one() {
        let at = Time::from_nanos;
        let mut agenda = Agenda::default();
        agenda.set(0, at(90));
        agenda.set(1, at(80));
        agenda.set(0, at(50));
        assert_eq!(
            (agenda.due(at(50)), agenda.due(at(80)), agenda.len()),
            (Some(0), Some(1), 1),
            "the entry at 90 is void"
        );
        agenda.set(1, at(95));
        agenda.set(0, at(99));
        assert_eq!((agenda.next(), agenda.len()), (Some(at(95)), 2));
        assert_eq!((agenda.due(at(99)), agenda.due(at(99)), agenda.due(at(99))), (Some(1), Some(0), None));
    }
}
