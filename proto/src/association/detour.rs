//! The destination of SACKs when the return path is broken.
//!
//! A duplicate may mean that our SACK did not arrive: the source address of the data cannot be reached, although data
//! arrives from it. This happens when a peer sends from one of its addresses over the link of another. With
//! `Config::rehome`, SACKs then go to the next active path until a heartbeat is answered on the first.

use super::Association;
use crate::Time;
use crate::path::{PathId, PathState};

/// SACKs for data on one path go to another.
#[derive(Copy, Clone, Debug)]
pub(super) struct Detour {
    pub(super) from: PathId,
    to: PathId,
    since: Time,
}

impl Association {
    /// The destination of the SACK for a packet that arrived on this path. It changes at most once per RTO, because a
    /// burst of duplicates means no more than one.
    //= rfc9260#section-6.4
    pub(super) fn sack_path(&mut self, from: PathId, now: Time) -> PathId {
        let known = self.detour.filter(|detour| detour.from == from);
        let to = known.map_or(from, |detour| detour.to);
        let settled = known.is_none_or(|detour| now.since(detour.since) >= self.paths.view(from).rto);
        if !self.config.rehome || !settled || !self.receiver.has_duplicates() {
            return to;
        }
        let Some(next) = self.next_active(to) else { return to };
        self.detour = Some(Detour { from, to: next, since: now });
        next
    }

    /// The next path after this one that is active, up and without errors, so that no path with lost heartbeats is
    /// chosen.
    fn next_active(&self, after: PathId) -> Option<PathId> {
        let behind = self.paths.ids().filter(|id| id.index() > after.index());
        let usable = |id: &PathId| {
            let view = self.paths.view(*id);
            *id != after && view.state == PathState::Active && view.up && view.errors == 0
        };
        behind.chain(self.paths.ids()).find(usable)
    }
}
