//! How much may wait before a link, and how much does.

use crate::scenario::Amount;

/// How full the queue of a link direction is; the packet being sent counts.
#[derive(Debug)]
pub(crate) struct Occupancy {
    limit: Amount,
    packets: u32,
    bytes: u64,
    most: u32,
}

impl Occupancy {
    pub(crate) fn new(limit: Amount) -> Self {
        Occupancy { limit, packets: 0, bytes: 0, most: 0 }
    }

    /// From now on so much may be in it; what is in it stays.
    pub(crate) fn limit(&mut self, limit: Amount) {
        self.limit = limit;
    }

    /// Whether a packet of `size` bytes still fits.
    pub(crate) fn admits(&self, size: u32) -> bool {
        match self.limit {
            Amount::Packets(limit) => self.packets < limit,
            Amount::Bytes(limit) => self.bytes + u64::from(size) <= limit,
        }
    }

    /// Whether a packet of `size` bytes fits and the queue has been longer than with this packet.
    #[inline]
    pub(crate) fn has_been_longer(&self, size: u32) -> bool {
        self.packets < self.most && self.admits(size)
    }

    pub(crate) fn enter(&mut self, size: u32) {
        self.packets += 1;
        self.bytes += u64::from(size);
        self.most = self.most.max(self.packets);
    }

    /// The largest packet that fits if the queue is empty, in bytes; 0 if none does.
    pub(crate) fn largest(&self) -> u32 {
        match self.limit {
            Amount::Packets(0) => 0,
            Amount::Packets(_) => u32::MAX,
            Amount::Bytes(limit) => u32::try_from(limit).unwrap_or(u32::MAX),
        }
    }

    /// Every packet leaves, and one of `size` bytes enters.
    #[inline]
    pub(crate) fn hold_only(&mut self, size: u32) {
        (self.packets, self.bytes) = (1, u64::from(size));
        self.most = self.most.max(1);
    }

    pub(crate) fn leave(&mut self, size: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size);
    }

    /// Packets in the queue.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes in the queue.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What came last has not come: the most packets ever in the queue were so many.
    pub(crate) fn forget_most(&mut self, most: u32) {
        self.most = most;
    }

    /// Most packets ever in the queue.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_packets_are_fifty_in_all() {
        let mut queue = Occupancy::new(Amount::Packets(50));
        (0..50).for_each(|_| {
            assert!(queue.admits(1500));
            queue.enter(1500);
        });
        assert!(!queue.admits(1));
        queue.leave(1500);
        assert!(queue.admits(1500));
        assert_eq!((queue.packets(), queue.bytes(), queue.most()), (49, 49 * 1500, 50));
    }

    #[test]
    fn bytes_may_fill_the_queue_exactly() {
        let mut queue = Occupancy::new(Amount::Bytes(3000));
        queue.enter(1500);
        assert!(queue.admits(1500));
        assert!(!queue.admits(1501));
    }
}
