//! When each association has to be woken. The cost of a poll depends on the number of associations that are due, not
//! on the number that exist.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// The earliest known deadline of every association. An entry may be too early, but never too late. A deadline that
/// moves back (as T3-rtx does with every SACK) therefore costs nothing until the old deadline is reached.
#[derive(Clone, Debug)]
pub(crate) struct Agenda {
    /// The earliest entry.
    next: Time,
    heap: BinaryHeap<Reverse<(Time, usize)>>,
    /// The valid entry of each association.
    registered: Vec<Time>,
}

impl Default for Agenda {
    fn default() -> Self {
        Agenda { next: Time::NEVER, heap: BinaryHeap::new(), registered: Vec::new() }
    }
}

impl Agenda {
    /// The association `index` has nothing to do before `deadline`.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, deadline: Time) {
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
            self.heap.push(Reverse((deadline, index)));
            self.next = self.next.min(deadline);
        }
    }

    /// Whether any entry is due.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Takes out an association whose entry is due.
    pub(crate) fn due(&mut self, now: Time) -> Option<usize> {
        while let Some(&Reverse((at, index))) = self.heap.peek() {
            if at > now {
                return None;
            }
            self.heap.pop();
            self.next = self.heap.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            if self.registered[index] == at {
                self.registered[index] = Time::NEVER;
                return Some(index);
            }
        }
        None
    }

    /// All entries, including the void ones.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The earliest entry.
    pub(crate) fn next(&self) -> Option<Time> {
        (self.next != Time::NEVER).then_some(self.next)
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
}
