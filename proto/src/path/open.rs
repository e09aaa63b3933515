//! Which paths of an association can be used, and for what.

use super::{PathId, PathState, Paths};
use crate::wire::Address;

impl Paths {
    /// `wanted` if it is active and up. Otherwise a path in the best state, if possible one that is up; of equal ones
    /// `wanted`, then the path of data (`in_use`). An unconfirmed path gets only heartbeats, so none takes the place of
    /// `wanted`.
    //= rfc9260#section-5.4
    #[inline(always)]
    pub(crate) fn open(&self, wanted: PathId, in_use: PathId) -> PathId {
        if self.view(wanted).carries() { wanted } else { self.in_best_order(wanted, in_use) }
    }

    #[inline(never)]
    fn in_best_order(&self, wanted: PathId, in_use: PathId) -> PathId {
        let candidates = || [wanted, in_use].into_iter().chain(self.ids());
        let in_state = |state| {
            let right = |id: &PathId| self.view(*id).state == state;
            let up = |id: &PathId| right(id) && self.view(*id).up;
            candidates().find(up).or_else(|| candidates().find(right))
        };
        let states = [PathState::Active, PathState::PotentiallyFailed, PathState::Inactive];
        states.into_iter().find_map(in_state).unwrap_or(wanted)
    }

    /// One packet may leave on this path regardless of its window. A route that asks for room sees it.
    pub(crate) fn grant_room(&mut self, id: PathId) {
        if self.sends(id) && self.view(id).confirmed() {
            let view = self.view_mut(id);
            view.room = view.room.max(1);
        }
    }

    /// The paths that were not removed.
    pub(crate) fn live(&self) -> Vec<PathId> {
        self.ids().filter(|id| self.view(*id).state != PathState::Removed).collect()
    }

    /// The peer's addresses that these lead to.
    pub(crate) fn peers(&self) -> Vec<Address> {
        let mut peers: Vec<Address> = Vec::new();
        for view in self.views().iter().filter(|view| view.state != PathState::Removed) {
            if !peers.contains(&view.remote) {
                peers.push(view.remote);
            }
        }
        peers
    }
}
