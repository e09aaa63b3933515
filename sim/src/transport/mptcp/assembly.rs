//! The receiving half of a connection: the data that has arrived on all subflows, and the one buffer that holds it.

use std::collections::VecDeque;

/// The data that arrived and the data that was read. Offsets count user data from 0, with DATA_FIN.
#[derive(Debug)]
pub(super) struct Assembly {
    /// The next offset expected.
    next: u64,
    /// Runs beyond it, in ascending order and not adjacent.
    beyond: VecDeque<(u64, u64)>,
    /// Bytes that the application has read.
    read: u64,
    /// The offset of DATA_FIN; `u64::MAX` until that is known.
    fin: u64,
    /// Size of the buffer in bytes.
    buffer: u64,
    /// One past the highest offset that the last advertised window allows.
    admitted: u64,
    segment: u64,
}

impl Assembly {
    pub(super) fn new(buffer: u64, segment: u64) -> Self {
        Assembly { next: 0, beyond: VecDeque::new(), read: 0, fin: u64::MAX, buffer, admitted: 0, segment }
    }

    /// The next offset expected.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Bytes that the application can read.
    pub(super) fn readable(&self) -> u64 {
        self.next.min(self.fin) - self.read
    }

    /// Whether everything up to DATA_FIN has arrived.
    pub(super) fn ended(&self) -> bool {
        self.fin < self.next
    }

    /// The application has read this number of bytes. Returns whether the new window should be advertised: it was
    /// smaller than a full segment and no longer is.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        self.read += bytes;
        let opened = (self.read + self.buffer).saturating_sub(self.admitted);
        let worth = (2 * self.segment).min(self.buffer / 2);
        let closed = self.admitted < self.next + self.segment;
        closed && opened >= worth && !self.ended()
    }

    /// The offsets `start..end` have arrived; if `fin` is set, the last one is DATA_FIN. Returns whether any of them is
    /// new. Data beyond the buffer is dropped.
    pub(super) fn arrived(&mut self, start: u64, end: u64, fin: bool) -> bool {
        if end > self.read + self.buffer + u64::from(fin) || end <= start {
            return false;
        }
        if fin {
            self.fin = end - 1;
        }
        if start > self.next {
            return self.add_beyond(start, end);
        }
        let new = end > self.next;
        self.next = self.next.max(end);
        while let Some(run) = self.beyond.front().copied().filter(|run| run.0 <= self.next) {
            self.next = self.next.max(run.1);
            self.beyond.pop_front();
        }
        new
    }

    /// Adds the run and joins it with adjacent ones.
    fn add_beyond(&mut self, start: u64, end: u64) -> bool {
        // Most data follows all that has arrived.
        match self.beyond.back_mut() {
            Some(last) if start < last.1 => self.insert(start, end),
            Some(last) if start == last.1 => {
                last.1 = end;
                true
            }
            _ => {
                self.beyond.push_back((start, end));
                true
            }
        }
    }

    fn insert(&mut self, start: u64, end: u64) -> bool {
        let first = self.beyond.partition_point(|run| run.1 < start);
        let last = self.beyond.partition_point(|run| run.0 <= end);
        match self.beyond.get_mut(first) {
            Some(run) if first < last && run.0 <= start && end <= run.1 => false,
            Some(run) if first + 1 == last => {
                *run = (run.0.min(start), run.1.max(end));
                true
            }
            _ => {
                let joined = self.beyond.range(first..last);
                let joined = joined.fold((start, end), |all, run| (all.0.min(run.0), all.1.max(run.1)));
                self.beyond.drain(first..last);
                self.beyond.insert(first, joined);
                true
            }
        }
    }

    /// The window field. What it allows is never taken back.
    //= rfc8684#section-3.3.1
    pub(super) fn window(&mut self, scale: u8) -> u16 {
        let free = (self.read + self.buffer).max(self.admitted).saturating_sub(self.next);
        let field = (free >> scale).min(65_535);
        self.admitted = self.admitted.max(self.next + (field << scale));
        field as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_until_nothing_is_missing() {
        let mut all = Assembly::new(1000, 10);
        assert!(all.arrived(20, 30, false) && all.arrived(40, 50, false) && all.arrived(60, 70, false));
        assert!(!all.arrived(42, 50, false), "again");
        assert!(all.arrived(28, 45, false));
        assert_eq!(all.beyond, [(20, 50), (60, 70)]);
        assert!(all.arrived(0, 20, false));
        assert_eq!((all.next(), all.readable()), (50, 50));
        assert!(all.arrived(50, 71, true));
        assert!(all.ended() && all.readable() == 70);
    }

    #[test]
    fn what_is_beyond_the_buffer_is_not_taken() {
        let mut all = Assembly::new(100, 10);
        assert_eq!(all.window(0), 100);
        assert!(!all.arrived(95, 105, false));
        assert!(all.arrived(0, 100, false));
        assert_eq!(all.window(0), 0);
        assert!(!all.take(5), "less than two segments");
        assert!(all.take(15));
        assert_eq!(all.window(0), 20);
    }
}
