//! Chooses the local address of a path. With one path per peer address, the local address can change.
//!
//! A path uses the local address on the link of its peer address, if there is one: that is the source address of the
//! route. With `Config::rehome`, a failed path is also probed from the other local addresses, and moves to the first
//! one that gets an answer. A path that is away from its own link is probed from there, and returns.

use super::Association;
use crate::path::{PathId, PathState};
use crate::rules::Verification;
use crate::wire::Address;
use crate::{Config, Pairs, Time};

impl Association {
    /// The path of a packet's pair. An unconfirmed path moves to the local address at which packets of its peer
    /// address arrive, unless that takes it away from the peer's link. A peer may answer an INIT from any of its
    /// addresses. So until the association is up, its source addresses say nothing about later packets, and all paths
    /// could end on one link.
    pub(crate) fn follow(&mut self, local: Address, source: Address) -> PathId {
        let id = self.path_of(local, source);
        let view = self.paths.view(id);
        let away = view.state == PathState::Unconfirmed && view.local != local && view.remote == source;
        let at_home = || self.home(id) == Some(view.local);
        //= rfc5061#section-5.3
        // Not back to an address that is being removed.
        let away = away && self.config.addresses.iter().any(|known| known.address == local);
        if away && self.config.pairs == Pairs::OnePerPeer && !self.state.setting_up() && !at_home() {
            self.paths.go_from(id, local);
        }
        id
    }

    /// The peer's packets come from this address: from a known one, but perhaps from another UDP port. Returns what the
    /// address was before; `None` if it is unknown.
    //= rfc6951#section-5.4
    pub(crate) fn follow_port(&mut self, source: Address) -> Option<Address> {
        let before = self.paths.follow_port(source)?;
        self.named.iter_mut().filter(|named| **named == before).for_each(|named| *named = source);
        // The encapsulation may have begun or ended, and its header takes room.
        for id in self.paths.live() {
            self.paths.measure_pmdcs(id, &self.config);
        }
        Some(before)
    }

    /// The local address on the link of the path's peer address, if there is one.
    fn home(&self, id: PathId) -> Option<Address> {
        let remote = self.paths.view(id).remote;
        self.config.addresses.iter().find(|local| local.on_link(remote.ip)).map(|local| local.address)
    }

    /// If the path has failed or is away from its own link, requests a heartbeat from another local address.
    pub(super) fn ask_elsewhere(&mut self, id: PathId) {
        if let Some(local) = self.elsewhere(id) {
            self.paths.ask_from(id, local);
        }
    }

    /// The local address that may be better than the path's own: that of its link; for a failed path, each one in
    /// turn.
    fn elsewhere(&self, id: PathId) -> Option<Address> {
        let view = self.paths.view(id);
        if !self.config.rehome || self.config.pairs != Pairs::OnePerPeer || !view.confirmed() {
            return None;
        }
        if view.state != PathState::Inactive {
            return self.home(id).filter(|home| *home != view.local);
        }
        let next = |after| next_local(&self.config, after, view.remote, self.paths.down());
        let after = self.paths.get(id).health.last_elsewhere.unwrap_or(view.local);
        next(after).filter(|local| *local != view.local).or_else(|| next(view.local))
    }

    /// Whether a path moves to this local address as soon as a heartbeat from there is answered.
    pub(super) fn may_move(&self, id: PathId, local: Address) -> bool {
        let failed = self.paths.view(id).state == PathState::Inactive;
        let returns = self.paths.view(id).confirmed() && self.home(id) == Some(local);
        self.config.rehome && (failed || returns)
    }

    /// Moves the path to another local address, which has proved to work. Its data in flight is retransmitted at
    /// once, its window begins anew, and its round-trip time and MTU are measured again.
    pub(super) fn move_to(&mut self, id: PathId, local: Address, now: Time) {
        self.evacuate(id, now);
        self.paths.go_from(id, local);
        self.begin_path_anew(id);
        self.sender.event();
    }

    /// Packets of the path take another route from now on, of which nothing is known.
    fn begin_path_anew(&mut self, id: PathId) {
        self.paths.fix_mtu(id, &self.config);
        self.paths.begin_congestion(id, &self.config, &self.window);
        let view = self.paths.view_mut(id);
        (view.srtt, view.min_rtt) = (None, None);
        self.paths.get_mut(id).timed = None;
    }

    /// The pair was not confirmed: the path moves to the next local address.
    pub(super) fn try_next_local(&mut self, id: PathId) {
        let view = self.paths.view(id);
        let moves = self.config.rules.verification == Verification::NextLocal;
        if !moves || self.config.pairs != Pairs::OnePerPeer {
            return;
        }
        if let Some(local) = next_local(&self.config, view.local, view.remote, self.paths.down()) {
            self.paths.go_from(id, local);
        }
    }

    /// A local address went up or down. Its paths wait for it while another confirmed path is up; otherwise they move
    /// to another local address.
    pub(crate) fn set_up(&mut self, local: Address, up: bool, now: Time) {
        self.paths.set_up(local, up);
        let mut usable = self.paths.views().iter().filter(|path| path.up && path.confirmed());
        if usable.next().is_none() && matches!(self.config.pairs, Pairs::OnePerPeer) {
            self.leave_down(now);
        }
        self.open_once_verified();
        self.sender.event();
    }

    fn leave_down(&mut self, now: Time) {
        for id in self.paths.live() {
            let view = self.paths.view(id);
            let other = next_local(&self.config, view.local, view.remote, self.paths.down());
            if let Some(other) = other.filter(|_| !view.up) {
                self.go_from(id, other, now);
            }
        }
    }

    /// Moves the path to another local address. Its window begins anew, and its round-trip time and MTU are measured
    /// again. The new pair must be verified, unless no other path carries data.
    pub(crate) fn go_from(&mut self, id: PathId, local: Address, now: Time) {
        let others = self.paths.views().iter().any(|other| other.id != id && other.carries());
        self.paths.go_from(id, local);
        self.paths.view_mut(id).rto = self.config.rto_initial;
        self.paths.note_rto(id, now, None, &mut self.notes);
        self.paths.ask(id);
        if others && self.paths.view(id).confirmed() {
            self.evacuate(id, now);
            self.set_state(id, PathState::Unconfirmed);
        }
        self.begin_path_anew(id);
    }
}

/// The local address of the one path to `peer`, which is the `position`-th of its addresses.
pub(super) fn local_for(config: &Config, position: usize, peer: Address) -> Option<Address> {
    let on_link = config.addresses.iter().find(|local| local.on_link(peer.ip));
    let same_position =
        config.addresses.get(position).filter(|l| l.address.ip.is_ipv4() == peer.ip.is_ipv4());
    on_link.or(same_position).map(|local| local.address).or_else(|| same_family(config, peer).next())
}

pub(super) fn same_family(config: &Config, peer: Address) -> impl Iterator<Item = Address> + '_ {
    config.addresses.iter().map(|l| l.address).filter(move |a| a.ip.is_ipv4() == peer.ip.is_ipv4())
}

/// The local address after `local`, among those not down, that could be tried for `peer`.
pub(crate) fn next_local(
    config: &Config,
    local: Address,
    peer: Address,
    down: &[Address],
) -> Option<Address> {
    let later = same_family(config, peer).skip_while(|a| *a != local).skip(1);
    let mut others = later.chain(same_family(config, peer).take_while(|a| *a != local));
    others.find(|a| !down.contains(a))
}
