//! The lengths of queues, for an observer that does without a common order.

use anabranch_proto::Time;

use super::trace::QueueLength;

/// What happened to queues. Of each link direction, these records are in order of time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum QueueRecord<'a> {
    /// Packets came to a link direction, and it is certain when they leave. Then there is no record of that.
    Came {
        /// The link direction.
        link: usize,
        /// The packets.
        stays: &'a [Stay],
    },
    /// A packet came or left.
    Changed(QueueChange),
    /// The run is over.
    Ended(Time),
}

/// A packet in a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stay {
    /// When it came.
    pub at: Time,
    /// When it leaves.
    pub leaves: Time,
    /// Its number among the packets offered to the link direction, from 1.
    pub number: u64,
    /// Bytes.
    pub size: u32,
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

/// Computes the lengths of all queues from their records.
#[derive(Clone, Default, Debug)]
pub struct QueueLengths {
    /// By link direction.
    queues: Vec<Queue>,
}

#[derive(Clone, Default, Debug)]
struct Queue {
    /// When each packet leaves, and its size.
    packets: Vec<(Time, u32)>,
    now: Moment,
}

/// A queue at a moment.
#[derive(Copy, Clone, Default, Debug)]
struct Moment {
    /// So many packets, from the first, have left.
    left: usize,
    /// So many have come.
    come: usize,
    bytes: u64,
}

impl QueueLengths {
    /// Calls `changed` with every change that follows from this record, which comes after that of the last call. The changes
    /// of each link direction are in order of time.
    #[inline(always)]
    pub fn each(&mut self, record: &QueueRecord<'_>, mut changed: impl FnMut(QueueChange)) {
        match *record {
            QueueRecord::Came { link, stays } => {
                if self.queues.len() <= link {
                    self.queues.resize_with(link + 1, Queue::default);
                }
                let queue = &mut self.queues[link];
                queue.await_all(stays);
                let mut now = queue.now;
                for stay in stays {
                    now.leave(&queue.packets, stay.at, |at, queue| changed(QueueChange { at, link, queue }));
                    now.come += 1;
                    now.bytes += u64::from(stay.size);
                    changed(QueueChange { at: stay.at, link, queue: now.length() });
                }
                queue.now = now;
            }
            QueueRecord::Changed(change) => changed(change),
            QueueRecord::Ended(until) => {
                for (link, Queue { packets, now }) in self.queues.iter_mut().enumerate() {
                    now.leave(packets, until, |at, queue| changed(QueueChange { at, link, queue }));
                }
            }
        }
    }
}

impl Queue {
    /// These packets come next.
    fn await_all(&mut self, stays: &[Stay]) {
        self.packets.drain(..self.now.left);
        self.now.come -= self.now.left;
        self.now.left = 0;
        self.packets.extend(stays.iter().map(|stay| (stay.leaves, stay.size)));
    }
}

impl Moment {
    /// Lets packets leave up to `until`. Calls `left` for each with the time and the queue behind it.
    #[inline(always)]
    fn leave(&mut self, packets: &[(Time, u32)], until: Time, mut left: impl FnMut(Time, QueueLength)) {
        while self.left < self.come
            && let (at, size) = packets[self.left]
            && at <= until
        {
            self.left += 1;
            self.bytes -= u64::from(size);
            left(at, self.length());
        }
    }

    #[inline(always)]
    fn length(&self) -> QueueLength {
        QueueLength { packets: (self.come - self.left) as u32, bytes: self.bytes }
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
        let came = |at, leaves, number| Stay { at: second(at), leaves: second(leaves), number, size: 100 };
        let stays = [came(0, 1, 1), came(0, 2, 2), came(1, 3, 3)];
        let together = |stays| QueueRecord::Came { link: 1, stays };
        let records = [together(&stays[..2]), together(&stays[2..]), QueueRecord::Ended(second(2))];
        let mut seen = Vec::new();
        let mut lengths = QueueLengths::default();
        for record in &records {
            lengths.each(record, |QueueChange { at, link, queue }| {
                assert_eq!((link, queue.bytes), (1, 100 * u64::from(queue.packets)));
                seen.push((at.as_nanos() / 1_000_000_000, queue.packets));
            });
        }
        assert_eq!(seen, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)]);
    }
}
