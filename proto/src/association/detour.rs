//! Where SACKs go when the way back is broken.
//!
//! A duplicate may say that our SACK did not arrive: the address that the data comes from cannot be reached, though data comes from
//! it. This is so where a peer sends from one of its addresses by the link of another. With `Config::rehome`, SACKs then go to
//! the next active path, until a heartbeat is answered on the first.

use super::Association;
use crate::Time;
use crate::path::{PathId, PathState};

/// SACKs for what comes by one path go to another.
#[derive(Copy, Clone, Debug)]
pub(super) struct Detour {
    pub(super) from: PathId,
    to: PathId,
    since: Time,
}

impl Association {
    /// Where the SACK for a packet goes that came by this path. It changes once an RTO at most: a burst of duplicates says no
    /// more than one.
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

    /// The next path after this one that is active, up and without errors: not one whose heartbeats are lost already.
    fn next_active(&self, after: PathId) -> Option<PathId> {
        let behind = self.paths.ids().filter(|id| id.index() > after.index());
        let usable = |id: &PathId| {
            let view = self.paths.view(*id);
            *id != after && view.state == PathState::Active && view.up && view.errors == 0
        };
        behind.chain(self.paths.ids()).find(usable)
    }
}
