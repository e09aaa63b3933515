//! The sending half of a connection: which subflow carries which bytes, and which bytes must go to another subflow.

use std::collections::{BTreeSet, VecDeque};

/// Bytes that were given to a subflow as one segment.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The offset of the first byte.
    pub(super) start: u64,
    pub(super) length: u32,
    /// The subflow that last carried the piece.
    pub(super) path: usize,
    /// The subflows that have carried it, one bit for each.
    carried: u64,
    /// The number of transmissions.
    pub(super) transmissions: u32,
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    /// Whether this subflow has carried it.
    pub(super) fn was_on(&self, path: usize) -> bool {
        self.carried & bit(path) != 0
    }
}

/// Pieces that were given to subflows and are not acknowledged by DATA_ACK, in order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    acknowledged: u64,
    /// One past the highest offset given to a subflow.
    end: u64,
    /// The offsets of the pieces that must go to another subflow.
    again: BTreeSet<u64>,
}

impl Pieces {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// All data below this offset is acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// One past the highest offset given to a subflow.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// The lowest unacknowledged piece.
    pub(super) fn lowest(&self) -> Option<&Piece> {
        self.pieces.front()
    }

    /// Adds a piece of new data that was given to a subflow.
    pub(super) fn push(&mut self, length: u32, path: usize) {
        let piece = Piece { start: self.end, length, path, carried: bit(path), transmissions: 1 };
        self.end = piece.end();
        self.pieces.push_back(piece);
    }

    /// A DATA_ACK acknowledges all data below `offset`. Returns whether any of it is new.
    pub(super) fn acknowledge(&mut self, offset: u64) -> bool {
        if offset <= self.acknowledged {
            return false;
        }
        while self.pieces.front().is_some_and(|piece| piece.end() <= offset) {
            self.pieces.pop_front();
        }
        self.acknowledged = offset;
        let lowest = self.pieces.front().map_or(offset, |piece| piece.start);
        while self.again.first().is_some_and(|start| *start < lowest) {
            self.again.pop_first();
        }
        true
    }

    /// The piece that starts at this offset.
    pub(super) fn at(&self, start: u64) -> Option<&Piece> {
        // What is new has no piece yet.
        if start >= self.end() {
            return None;
        }
        let place = self.pieces.partition_point(|piece| piece.start < start);
        self.pieces.get(place).filter(|piece| piece.start == start)
    }

    /// The pieces with these offsets must go to another subflow if `path` was the last to carry them.
    pub(super) fn give_up(&mut self, starts: impl Iterator<Item = u64>, path: usize) {
        for start in starts {
            if self.at(start).is_some_and(|piece| piece.path == path) {
                self.again.insert(start);
            }
        }
    }

    /// The lowest piece that must go to another subflow.
    pub(super) fn next_again(&self) -> Option<Piece> {
        self.at(*self.again.first()?).copied()
    }

    /// The lowest of these pieces stays where it is, because its subflow works again.
    pub(super) fn forget_again(&mut self) {
        self.again.pop_first();
    }

    /// The piece that starts at this offset was given to a subflow again.
    pub(super) fn sent_again(&mut self, start: u64, path: usize) {
        self.again.remove(&start);
        let place = self.pieces.partition_point(|piece| piece.start < start);
        if let Some(piece) = self.pieces.get_mut(place).filter(|piece| piece.start == start) {
            (piece.path, piece.carried) = (path, piece.carried | bit(path));
            piece.transmissions += 1;
        }
    }
}

fn bit(path: usize) -> u64 {
    1 << path.min(63)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_subflow_gives_up_goes_again_once() {
        let mut pieces = Pieces::default();
        [0, 1, 0].into_iter().for_each(|path| pieces.push(100, path));
        pieces.give_up([0, 200].into_iter(), 0);
        assert_eq!(pieces.next_again().map(|piece| piece.start), Some(0));
        pieces.sent_again(0, 1);
        assert!(pieces.lowest().is_some_and(|piece| piece.was_on(0) && piece.was_on(1)));
        pieces.give_up([0].into_iter(), 0);
        assert_eq!(pieces.next_again().map(|piece| piece.start), Some(200), "the other has the first");
        assert!(pieces.acknowledge(250));
        assert_eq!(pieces.next_again().map(|piece| piece.start), Some(200), "not all of it has arrived");
        assert!(pieces.acknowledge(300) && !pieces.acknowledge(300));
        assert_eq!((pieces.next_again(), pieces.end(), pieces.is_empty()), (None, 300, true));
    }
}
