//! The associations that may have an output.

use std::collections::VecDeque;
use std::hint::cold_path;

/// Places of associations, in the order in which they were woken. Most endpoints have one association, so the first
/// place is kept apart from the others.
#[derive(Clone, Default, Debug)]
pub(super) struct Ready {
    first: Option<usize>,
    others: VecDeque<usize>,
}

impl Ready {
    /// The place that was woken first.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.first
    }

    /// The place that was woken last.
    #[inline]
    pub(super) fn last(&self) -> Option<usize> {
        if self.others.is_empty() {
            return self.first;
        }
        cold_path();
        self.others.back().copied()
    }

    /// Adds a place behind all others.
    #[inline]
    pub(super) fn push(&mut self, place: usize) {
        match self.first {
            None => self.first = Some(place),
            Some(_) => {
                cold_path();
                self.others.push_back(place);
            }
        }
    }

    /// Removes the first place.
    #[inline]
    pub(super) fn pop(&mut self) {
        self.first = None;
        if !self.others.is_empty() {
            cold_path();
            self.first = self.others.pop_front();
        }
    }

    /// The number of places.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_keep_their_order() {
        let mut ready = Ready::default();
        [4, 7, 4].into_iter().for_each(|place| ready.push(place));
        assert_eq!((ready.first(), ready.last(), ready.len()), (Some(4), Some(4), 3));
        ready.pop();
        assert_eq!((ready.first(), ready.last()), (Some(7), Some(4)));
        ready.pop();
        ready.pop();
        assert_eq!((ready.first(), ready.last()), (None, None));
        ready.pop();
        ready.push(1);
        assert_eq!((ready.first(), ready.last(), ready.len()), (Some(1), Some(1), 1));
    }
}
