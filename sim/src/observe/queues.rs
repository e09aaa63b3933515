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
        /// First the packets that were still there when the last one of the record before came, that one included; then
        /// those that came.
        stays: &'a [Stay],
        /// The number of the former.
        before: usize,
    },
    /// A packet came or left.
    Changed(QueueChange),
    /// The run is over.
    Ended {
        /// The link direction.
        link: usize,
        /// The packets that were still there when the last one came, that one included.
        stays: &'a [Stay],
        /// When it was over.
        at: Time,
    },
}

/// A packet in a queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Stay {
    /// When it came.
    pub at: Time,
    /// When it leaves.
    pub leaves: Time,
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

impl QueueRecord<'_> {
    /// Calls `changed` with every change of a queue's length, those of each link direction in order of time.
    #[inline(always)]
    pub fn each(&self, mut changed: impl FnMut(QueueChange)) {
        match *self {
            QueueRecord::Came { link, stays, before } => {
                let mut now = Moment::of(&stays[..before]);
                for stay in &stays[before..] {
                    now.leave(stays, stay.at, |at, queue| changed(QueueChange { at, link, queue }));
                    now.come += 1;
                    now.bytes += u64::from(stay.size);
                    changed(QueueChange { at: stay.at, link, queue: now.length() });
                }
            }
            QueueRecord::Changed(change) => changed(change),
            QueueRecord::Ended { link, stays, at: until } => {
                Moment::of(stays).leave(stays, until, |at, queue| changed(QueueChange { at, link, queue }));
            }
        }
    }
}

/// A queue at a moment.
struct Moment {
    /// So many packets, from the first, have left.
    left: usize,
    /// So many have come.
    come: usize,
    bytes: u64,
}

impl Moment {
    /// With these packets.
    fn of(stays: &[Stay]) -> Self {
        let bytes = stays.iter().map(|stay| u64::from(stay.size)).sum();
        Moment { left: 0, come: stays.len(), bytes }
    }

    /// Lets packets leave up to `until`. Calls `left` for each with the time and the queue behind it.
    #[inline(always)]
    fn leave(&mut self, stays: &[Stay], until: Time, mut left: impl FnMut(Time, QueueLength)) {
        while let Some(stay) = stays[self.left..self.come].first().filter(|stay| stay.leaves <= until) {
            self.left += 1;
            self.bytes -= u64::from(stay.size);
            left(stay.leaves, self.length());
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

    /// Two packets of one second each come at once on link 1, and a third when the first has left. The run ends when
    /// the second has left too.
    #[test]
    fn packets_leave_before_the_next_one_comes() {
        let second = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
        let came = |at, leaves| Stay { at: second(at), leaves: second(leaves), size: 100 };
        let stays = [came(0, 1), came(0, 2), came(1, 3)];
        let records = [
            QueueRecord::Came { link: 1, stays: &stays[..2], before: 0 },
            QueueRecord::Came { link: 1, stays: &stays, before: 2 },
            QueueRecord::Ended { link: 1, stays: &stays[1..], at: second(2) },
        ];
        let mut seen = Vec::new();
        for record in &records {
            record.each(|QueueChange { at, link, queue }| {
                assert_eq!((link, queue.bytes), (1, 100 * u64::from(queue.packets)));
                seen.push((at.as_nanos() / 1_000_000_000, queue.packets));
            });
        }
        assert_eq!(seen, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1)]);
    }
}
