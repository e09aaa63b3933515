//! Copies: a chunk in flight on its own path is also sent on a second path, so that later data need not wait for a slow
//! path.
//!
//! Each copy counts in the flight of the path that carries it and keeps that path's T3-rtx running. An acknowledgement
//! does not say which of the two arrived. So it ends both, measures no round trip, does not show that either path
//! works, says nothing about the order of arrival, and grows the window of the chunk's own path as if there were no
//! copy. If the chunk is found lost on its own path, it is not marked: the copy takes its place. If the copy is lost,
//! the chunk stays as it was.

use super::{ChunkState, Outstanding, Sent};
use crate::path::{PathId, Paths};
use crate::wire::chunk::Data;
use crate::{Time, Tsn};

/// The chunk was acknowledged or given up, so its copy ends too. Returns the bytes of copy that are no longer in
/// flight.
pub(super) fn end(sent: &mut Sent, tsn: Tsn, paths: &mut Paths) -> u64 {
    let Some(id) = sent.copy.take() else { return 0 };
    let size = u64::from(sent.size);
    let (view, path) = paths.both(id);
    view.flight -= size;
    path.tally.earliest |= path.earliest == Some(tsn);
    size
}

impl Outstanding {
    /// Bytes of copies in flight. The peer stores each TSN once.
    pub(crate) fn copied(&self) -> u64 {
        self.copied
    }

    /// The lowest chunk (TSN, size, path), if it is in flight and had no copy since it was last sent.
    pub(crate) fn lowest_in_flight(&self) -> Option<(Tsn, u32, PathId)> {
        let sent = self.ring.front()?;
        let once = sent.state == ChunkState::InFlight && !sent.copied;
        once.then_some((self.first, sent.size, sent.path))
    }

    /// Sends a copy of a chunk that is in flight on another path.
    pub(crate) fn copy(&mut self, tsn: Tsn, path: PathId, paths: &mut Paths, now: Time) -> Option<Data> {
        let index = self.index(tsn)?;
        let sent = &mut self.ring[index];
        debug_assert!(sent.state == ChunkState::InFlight && !sent.copied && sent.path != path);
        (sent.copy, sent.copied, sent.moved) = (Some(path), true, true);
        let (size, data) = (u64::from(sent.size), sent.data.clone());
        self.copied += size;
        let view = paths.view_mut(path);
        view.flight += size;
        view.chunks += 1;
        view.reinjected += 1;
        paths.sent_again(tsn, path, now);
        paths.chunk_sent(path, tsn, now, false);
        Some(data)
    }

    /// The chunk at this index is lost on its own path. From now on it is in flight on the path of its copy.
    pub(super) fn copy_takes_over(&mut self, index: usize, paths: &mut Paths) {
        let tsn = self.first.plus(index as u32);
        let sent = &mut self.ring[index];
        let Some(path) = sent.copy.take() else { return };
        let (old, size) = (std::mem::replace(&mut sent.path, path), u64::from(sent.size));
        sent.missing = 0;
        self.copied -= size;
        let view = paths.view_mut(old);
        view.flight -= size;
        view.lost += size;
        paths.get_mut(old).buffered -= size;
        paths.get_mut(path).buffered += size;
        paths.get_mut(old).points.seek();
        if paths.get(old).earliest == Some(tsn) {
            self.renew_earliest(old, paths);
        }
    }

    /// T3-rtx of a path has expired. Copies on this path are lost, and chunks of this path continue as their copies.
    pub(super) fn lose_copies(&mut self, path: PathId, paths: &mut Paths) {
        let mut lost = false;
        for index in 0..self.ring.len() {
            let sent = &mut self.ring[index];
            if sent.copy == Some(path) {
                sent.copy = None;
                let size = u64::from(sent.size);
                self.copied -= size;
                let view = paths.view_mut(path);
                view.flight -= size;
                view.lost += size;
                lost = true;
            } else if sent.path == path && sent.copy.is_some() {
                self.copy_takes_over(index, paths);
            }
        }
        if lost {
            self.renew_earliest(path, paths);
        }
    }
}
