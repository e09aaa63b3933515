//! The data that a receiver holds above the Cumulative TSN, by the path on which it arrived, and the lateness of
//! chunks.

use std::collections::BTreeMap;

use smallvec::SmallVec;

/// The held chunks of one flow.
#[derive(Debug, Default)]
pub(super) struct HeldData {
    /// The Cumulative TSN; positions are counted from it.
    base: Option<u64>,
    highest: u32,
    /// By position: the index of the path in `paths`, and the size.
    chunks: BTreeMap<u32, (usize, u32)>,
    /// Names, and bytes held.
    paths: Vec<(String, u64)>,
}

/// The effect of a chunk.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// The distance of the chunk's TSN from the highest TSN; 0: it is the highest.
    pub(super) depth: u32,
    /// The paths whose held bytes have changed, with the bytes held now.
    pub(super) held: Vec<(String, u64)>,
}

impl HeldData {
    /// A new chunk arrived on `path`. Nothing is missing up to `cumulative`.
    pub(super) fn received(&mut self, path: &str, tsn: u64, size: u32, cumulative: u64) -> Change {
        let base = *self.base.get_or_insert(if tsn == cumulative { tsn.wrapping_sub(1) } else { cumulative });
        // TSNs are serial numbers of 32 bits.
        let position = |tsn: u64| (tsn as u32).wrapping_sub(base as u32);
        let (position, cumulative) = (position(tsn), position(cumulative));
        let depth = self.highest.saturating_sub(position);
        self.highest = self.highest.max(position);
        let before: SmallVec<[u64; 4]> = self.paths.iter().map(|(_, bytes)| *bytes).collect();
        let path = self.path(path);
        if position > cumulative {
            self.chunks.insert(position, (path, size));
            self.paths[path].1 += u64::from(size);
        }
        while let Some(first) = self.chunks.first_entry().filter(|first| *first.key() <= cumulative) {
            let (path, size) = first.remove();
            self.paths[path].1 -= u64::from(size);
        }
        let was = |place: usize| before.get(place).copied().unwrap_or(0);
        let changed = self.paths.iter().enumerate().filter(|(place, (_, bytes))| was(*place) != *bytes);
        Change { depth, held: changed.map(|(_, path)| path.clone()).collect() }
    }

    fn path(&mut self, name: &str) -> usize {
        self.paths.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.paths.push((name.to_owned(), 0));
            self.paths.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(depth: u32, held: &[(&str, u64)]) -> Change {
        let held = held.iter().map(|(path, bytes)| ((*path).to_owned(), *bytes)).collect();
        Change { depth, held }
    }

    /// TSNs wrap: 4294967295 is followed by 0. Two chunks wait for the one that arrives last.
    #[test]
    fn chunks_are_held_until_nothing_is_missing_below() {
        let mut held = HeldData::default();
        let last = u64::from(u32::MAX);
        assert_eq!(held.received("wifi", last - 1, 100, last - 1), change(0, &[]));
        assert_eq!(held.received("wifi", 0, 100, last - 1), change(0, &[("wifi", 100)]));
        assert_eq!(held.received("lte", 2, 50, last - 1), change(0, &[("lte", 50)]));
        assert_eq!(held.received("lte", last, 100, 0), change(3, &[("wifi", 0)]));
        assert_eq!(held.received("wifi", 1, 100, 2), change(1, &[("lte", 0)]));
    }
}
