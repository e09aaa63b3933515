//! The number of the ordered message that is due on each stream: an SSN for DATA, a Message Identifier for I-DATA.

/// The numbers that are due on the streams in use.
#[derive(Clone, Default, Debug)]
pub(super) struct Due<N> {
    numbers: Vec<N>,
    first: N,
}

impl<N: Copy> Due<N> {
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

    /// The streams of a request, which means all streams in use if it names none.
    pub(super) fn named(&self, streams: &[u16]) -> Vec<u16> {
        if streams.is_empty() {
            return (0..self.numbers.len()).map(|stream| stream as u16).collect();
        }
        streams.to_vec()
    }
}
