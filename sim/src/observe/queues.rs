//! The lengths of queues, for an observer that does without a common order.

use std::collections::VecDeque;

use anabranch_proto::Time;

use super::trace::QueueLength;

/// What happened to a queue. Of each link direction, these records are in order of time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum QueueRecord {
    /// A packet came, and it is certain when it leaves. Then there is no record of that.
    Came {
        /// When it came.
        at: Time,
        /// When it leaves the queue.
        leaves: Time,
        /// The number of the packet among those offered to the link direction, from 1.
        number: u64,
        /// The link direction.
        link: u32,
        /// Bytes.
        size: u32,
    },
    /// A packet came or left.
    Changed(QueueChange),
    /// The run is over.
    Ended(Time),
}

/// The queue of a link direction is so long from now on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct QueueChange {
    /// When it changed.
    pub at: Time,
    /// The link direction.
    pub link: usize,
    /// Its length.
    pub queue: QueueLength,
}

impl QueueRecord {
    pub(super) fn at(&self) -> Time {
        match *self {
            QueueRecord::Came { at, .. } | QueueRecord::Ended(at) => at,
            QueueRecord::Changed(change) => change.at,
        }
    }
}

/// Computes the lengths of all queues from their records.
#[derive(Clone, Default, Debug)]
pub struct QueueLengths {
    /// By link direction.
    queues: Vec<Queue>,
}

#[derive(Clone, Default, Debug)]
struct Queue {
    /// When each packet leaves, and its size.
    packets: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl QueueLengths {
    /// Calls `changed` with every change that follows from these records, which come after those of the last call. The changes
    /// of each link direction are in order of time.
    pub fn each(&mut self, records: &[QueueRecord], mut changed: impl FnMut(QueueChange)) {
        for record in records {
            match *record {
                QueueRecord::Came { at, leaves, link, size, .. } => {
                    let link = link as usize;
                    if self.queues.len() <= link {
                        self.queues.resize_with(link + 1, Queue::default);
                    }
                    let queue = &mut self.queues[link];
                    queue.leave(link, at, &mut changed);
                    queue.packets.push_back((leaves, size));
                    queue.bytes += u64::from(size);
                    changed(queue.changed(link, at));
                }
                QueueRecord::Changed(change) => changed(change),
                QueueRecord::Ended(at) => {
                    let queues = self.queues.iter_mut().enumerate();
                    queues.for_each(|(link, queue)| queue.leave(link, at, &mut changed));
                }
            }
        }
    }
}

impl Queue {
    /// Lets packets leave up to `until`.
    #[inline(always)]
    fn leave(&mut self, link: usize, until: Time, changed: &mut impl FnMut(QueueChange)) {
        while let Some(&(at, size)) = self.packets.front().filter(|(at, _)| *at <= until) {
            self.packets.pop_front();
            self.bytes -= u64::from(size);
            changed(self.changed(link, at));
        }
    }

    #[inline(always)]
    fn changed(&self, link: usize, at: Time) -> QueueChange {
        QueueChange { at, link, queue: QueueLength { packets: self.packets.len() as u32, bytes: self.bytes } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packets of one second each come at once on link 1, and a third when the first has left. The run ends when the second
    /// has left too.
    #[test]
    fn packets_leave_before_the_next_one_comes() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let came = |at, leaves, number| QueueRecord::Came {
            at: second(at),
            leaves: second(leaves),
            number,
            link: 1,
            size: 100,
        };
        let records = [came(0, 1, 1), came(0, 2, 2), came(1, 3, 3), QueueRecord::Ended(second(2))];
        let mut seen = Vec::new();
        let mut lengths = QueueLengths::default();
        for part in records.chunks(2) {
            lengths.each(part, |QueueChange { at, link, queue }| {
                assert_eq!((link, queue.bytes), (1, 100 * u64::from(queue.packets)));
                seen.push((at.as_nanos() / 1_000_000_000, queue.packets));
            });
        }
        assert_eq!(seen, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)]);
    }
}
