//! The number of the ordered message that is due on each stream: an SSN for DATA, a Message Identifier for I-DATA.

use std::collections::BTreeSet;

/// The number of streams that are looked at together.
const RUN: usize = 64;

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

    /// The number of streams in use.
    pub(super) fn in_use(&self) -> usize {
        self.numbers.len()
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

    /// The streams whose numbers restart, in order: those that a request names; if it names none, all for which that
    /// makes a difference. These are the `others`, and those on which another number than zero is due.
    pub(super) fn restarting(&self, streams: &[u16], others: impl Iterator<Item = u16>) -> BTreeSet<u16> {
        if !streams.is_empty() {
            return streams.iter().copied().collect();
        }
        self.used().chain(others).collect()
    }

    /// The streams on which another number than zero is due. Runs of zeros are passed quickly: a peer can ask often.
    fn used(&self) -> impl Iterator<Item = u16> {
        let differs = |number: &N| *number != N::default();
        // A fold, unlike `any`, compares several numbers at once.
        let runs = self.numbers.chunks(RUN).enumerate();
        let runs = runs.filter(move |(_, run)| run.iter().fold(false, |used, number| used | differs(number)));
        runs.flat_map(move |(index, run)| {
            let used = run.iter().enumerate().filter(move |(_, number)| differs(number));
            used.map(move |(offset, _)| (index * RUN + offset) as u16)
        })
    }
}
