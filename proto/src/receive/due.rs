//! The number of the ordered message that is due on each stream: an SSN for DATA, a Message Identifier for I-DATA.

use std::collections::BTreeSet;

/// The numbers that are due on the streams in use.
#[derive(Clone, Default, Debug)]
pub(super) struct Due<N> {
    numbers: Vec<N>,
    first: N,
}

impl<N: Copy + Default + PartialEq> Due<N> {
    /// Every stream begins with the number `first`.
    pub(super) fn new(first: N) -> Self {
        Due { numbers: Vec::new(), first }
    }

    /// New streams begin with this number from now on.
    pub(super) fn begin_with(&mut self, first: N) {
        self.first = first;
    }

    /// Begins to use a stream.
    pub(super) fn open(&mut self, stream: u16) {
        if self.numbers.len() <= usize::from(stream) {
            self.numbers.resize(usize::from(stream) + 1, self.first);
        }
    }

    /// Whether a stream is in use.
    #[inline]
    pub(super) fn is_open(&self, stream: u16) -> bool {
        usize::from(stream) < self.numbers.len()
    }

    /// The number that is due on a stream in use.
    pub(super) fn on(&self, stream: u16) -> N {
        self.numbers[usize::from(stream)]
    }

    /// Sets the number that is due on a stream in use.
    pub(super) fn set(&mut self, stream: u16, number: N) {
        self.numbers[usize::from(stream)] = number;
    }

    /// The streams whose numbers restart, in order: those that a request names; if it names none, all for which that makes a difference.
    /// These are the `others`, and those on which another number than zero is due.
    pub(super) fn restarting(&self, streams: &[u16], others: impl Iterator<Item = u16>) -> BTreeSet<u16> {
        if !streams.is_empty() {
            return streams.iter().copied().collect();
        }
        let zero = N::default();
        let used = self.numbers.iter().enumerate().filter(|(_, number)| **number != zero);
        used.map(|(stream, _)| stream as u16).chain(others).collect()
    }
}
