//! The own addresses: which sockets packets can leave from, and what paths learn of that.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anabranch_proto::wire::Address;
use anabranch_proto::{Incoming, PathState, PathView, Time};

use super::users::User;
use super::{Core, Shared};
use crate::interface::{self, route};

/// The number of peers of a local address that are tried in order to find out whether the address is up.
const ASKED: usize = 8;
/// The number of peer addresses that learn at once of a smaller MTU of an own interface. Others find out by what is
/// lost.
const TOLD: usize = 256;
/// The interval at which an address that is down is checked, if no notification comes.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

impl Core {
    /// When the next address that is down is checked.
    pub(crate) fn look_again(&self) -> Option<Instant> {
        self.outbound.iter().filter_map(|outbound| outbound.down).min()
    }

    /// Checks every local address, or only those that are down.
    pub(crate) fn look_at_all(&mut self, shared: &Shared, only_down: bool, now: Time) {
        for index in 0..shared.sockets.len() {
            if !only_down || self.outbound[index].down.is_some() {
                self.follow(shared, index, now);
                self.look(shared, index, now);
            }
        }
    }

    /// Binds a socket to the interface that its address is on now, if that is another one. If that carries less than
    /// before, paths learn it.
    fn follow(&mut self, shared: &Shared, index: usize, now: Time) {
        let socket = &shared.sockets[index];
        let Some(interface) = interface::of(socket.address.ip) else { return };
        let followed = socket.follow(&interface);
        self.outbound[index].astray = followed.is_err();
        let before = std::mem::replace(&mut self.outbound[index].mtu, interface.mtu);
        if let Some(mtu) = interface.mtu.filter(|mtu| before.is_some_and(|before| *mtu < before)) {
            for remote in self.remotes(TOLD, |path, _| path.local == socket.address) {
                self.endpoint.handle(now, Incoming::TooBig(remote, mtu));
            }
            self.drain(shared, now);
        }
        // What the old socket did not take, the new one does.
        if matches!(followed, Ok(true)) && self.outbound[index].full {
            self.writable(shared, index, now);
        }
    }

    /// Asks the system whether packets can leave from a local address, and reports a change to the core. Addresses that
    /// peers have named and not confirmed are not asked for: any stranger can name one to which no route leads, and
    /// that is a fault of its path alone.
    pub(super) fn look(&mut self, shared: &Shared, index: usize, now: Time) {
        let socket = &shared.sockets[index];
        let local = socket.address;
        let was_up = self.outbound[index].down.is_none();
        if self.users.values().all(User::over) {
            // Nobody is left who could be told of it.
            self.outbound[index].down = None;
            return;
        }
        let asked = self.remotes(ASKED, |path, ours| path.local == local && (ours || confirmed(path)));
        let open = socket.open();
        let leads = |to: &Address| route(Some(local.ip), open.bound(), to.ip).is_ok();
        let usable = match asked.is_empty() {
            true => interface::of(local.ip).is_some_and(|interface| interface.up),
            false => asked.iter().any(leads),
        };
        let up = usable && !self.outbound[index].astray;
        self.outbound[index].down = (!up).then(|| Instant::now() + LOOK_AGAIN);
        // An address that is down is reported again, because an association may have begun since.
        if !up || !was_up {
            self.endpoint.handle(now, Incoming::Up(local, up));
            self.drain(shared, now);
        }
    }

    /// The peer addresses of these paths; not many more than `most` of them. `of` also learns whether the path is of an
    /// association that we are setting up, with addresses that its user has given.
    fn remotes(&self, most: usize, of: impl Fn(&PathView, bool) -> bool) -> BTreeSet<Address> {
        let mut remotes = BTreeSet::new();
        for (id, _) in self.users.iter().filter(|(_, user)| !user.over()) {
            let (paths, ours) = (self.endpoint.paths(*id).iter(), self.setting_up.contains(id));
            remotes.extend(paths.filter(|path| of(path, ours)).map(|path| path.remote));
            if remotes.len() >= most {
                break;
            }
        }
        remotes
    }
}

/// Whether the peer has answered on this path.
fn confirmed(path: &PathView) -> bool {
    !matches!(path.state, PathState::Unconfirmed | PathState::Removed)
}
