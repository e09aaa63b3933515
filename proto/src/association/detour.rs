//! The destination of SACKs when the return path is broken.
//!
//! A duplicate may mean that our SACK did not arrive: the source address of the data cannot be reached, although data
//! arrives from it. This happens when a peer sends from one of its addresses over the link of another. With
//! `Config::rehome`, SACKs then go to the next active path until a heartbeat is answered on the first.
//!
//! A duplicate says this only of the path to which the last SACK went. After a failover a duplicate arrives on another
//! path, because the SACK was lost with the path that failed: it is answered on the path on which it arrived. Data may
//! still arrive on the path that failed, if it failed in one direction: its SACKs take the other path as well, until a
//! heartbeat, which leaves at once, is answered. Without that, a peer that repeats data on another path after each
//! timeout would never learn more than one window per RTO.

use super::Association;
use crate::Time;
use crate::path::{PathId, PathState};

/// Where SACKs go instead of the source of the data.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Detour {
    /// SACKs for data on the first path go to the second.
    around: Option<(PathId, PathId)>,
    /// The path to which SACKs go now, and since when.
    current: Option<(PathId, Time)>,
}

impl Detour {
    /// A heartbeat was answered on this path: SACKs for its data need no other.
    pub(super) fn answered(&mut self, path: PathId) {
        self.around.take_if(|(from, _)| *from == path);
    }
}

impl Association {
    /// The destination of the SACK for a packet that arrived on this path.
    //= rfc9260#section-6.4
    #[inline(always)]
    pub(super) fn sack_path(&mut self, from: PathId, now: Time) -> PathId {
        if self.config.rehome { self.rehomed(from, now) } else { from }
    }

    /// As `sack_path`, where `Config::rehome` allows another path.
    #[inline(never)]
    fn rehomed(&mut self, from: PathId, now: Time) -> PathId {
        let mut to = self.detour.around.filter(|around| around.0 == from).map_or(from, |around| around.1);
        if self.receiver.has_duplicates() {
            self.avoid_unheard(to, now);
            if self.could_know(from, to, now)
                && let Some(next) = self.next_active(to)
            {
                self.detour.around = Some((from, next));
                to = next;
            }
        }
        if self.detour.current.is_none_or(|(path, _)| path != to) {
            self.detour.current = Some((to, now));
        }
        to
    }

    /// A duplicate is answered on this path, and the SACKs before went to another, of which the peer would know one by
    /// now.
    fn avoid_unheard(&mut self, answered: PathId, now: Time) {
        let Some((unheard, since)) = self.detour.current else { return };
        if unheard == answered || now.since(since) < self.paths.view(unheard).rto {
            return;
        }
        let source =
            self.detour.around.filter(|around| around.1 == unheard).map_or(unheard, |around| around.0);
        self.detour.around = (source != answered).then_some((source, answered));
        self.paths.ask(unheard);
    }

    /// Whether SACKs have gone to this path for so long that the peer would know one of them by now. So the destination
    /// changes at most once per RTO, because a burst of duplicates means no more than one.
    fn could_know(&self, from: PathId, to: PathId, now: Time) -> bool {
        let rto = self.paths.view(from).rto;
        self.detour.current.is_some_and(|(path, since)| path == to && now.since(since) >= rto)
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
