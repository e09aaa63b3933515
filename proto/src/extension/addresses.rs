//! Addresses that change while the association lives (RFC 5061): ASCONF, always behind AUTH.
//!
//! Each change of the user's is an ASCONF of its own, one at a time. An address that is added is not sent from before
//! the peer has acknowledged it, but that an ASCONF which was not answered tries it too: the old address may be gone.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use super::PacketOrigin;
use crate::association::{Association, next_local};
use crate::output::{AddressChange, ChangeError, Event, Limit, Outcome, Purpose, Reason};
use crate::path::{PathId, PathState};
use crate::wire::chunk::{AddressRequest, Asconf, AsconfAck, AsconfParam as Param, Failed};
use crate::wire::{Address, Cause, Chunk, Packet};
use crate::{LocalAddress, Pairs, Time, Tsn};

/// Changes that wait at most.
const MAX_WISHES: usize = 16;
/// Addresses that a peer has at most.
const MAX_ADDRESSES: usize = 32;

/// What is asked of the peer, and what it was answered.
#[derive(Clone, Debug)]
pub(crate) struct AddressChanges {
    /// The number of our next ASCONF, and of the peer's.
    next: u32,
    expected: u32,
    wishes: VecDeque<PendingChange>,
    request: Option<Request>,
    /// The answer to the peer's last.
    answered: Option<AsconfAck>,
    /// The peer's addresses have changed: the endpoint has to know.
    pub(crate) moved: bool,
}

/// A change of ours.
#[derive(Copy, Clone, Debug)]
struct PendingChange {
    change: AddressChange,
    local: LocalAddress,
}

#[derive(Clone, Debug)]
struct Request {
    sequence: u32,
    wish: PendingChange,
    path: PathId,
    /// T4-rto.
    timer: Time,
    due: bool,
    tries: u32,
}

impl AddressChanges {
    //= rfc5061#section-5.1
    pub(super) fn new(local: Tsn, peer: Tsn) -> Self {
        let (wishes, request, answered) = Default::default();
        AddressChanges { next: local.0, expected: peer.0, wishes, request, answered, moved: false }
    }

    pub(super) fn deadline(&self) -> Time {
        self.request.as_ref().map_or(Time::NEVER, |request| request.timer)
    }
}

impl Association {
    fn changes(&mut self) -> Option<&mut AddressChanges> {
        self.extended.as_mut().and_then(|extended| extended.addresses.as_mut())
    }

    /// The user has a further address.
    pub(crate) fn add_address(&mut self, local: LocalAddress) -> Result<(), ChangeError> {
        if self.config.addresses.iter().any(|known| known.address == local.address) {
            return Err(ChangeError::Invalid);
        }
        self.change_address(AddressChange::Added, local)
    }

    /// The user loses an address. Nothing leaves from it from now on.
    //= rfc5061#section-5.3
    pub(crate) fn remove_address(&mut self, address: Address, now: Time) -> Result<(), ChangeError> {
        let known = self.config.addresses.iter().find(|known| known.address == address).copied();
        let local = known.filter(|_| self.config.addresses.len() > 1).ok_or(ChangeError::Invalid)?;
        self.change_address(AddressChange::Removed, local)?;
        self.leave(address, now);
        Arc::make_mut(&mut self.config).addresses.retain(|known| known.address != address);
        Ok(())
    }

    /// The user wants the peer to send to this address if it can.
    pub(crate) fn set_peer_primary(&mut self, address: Address) -> Result<(), ChangeError> {
        let known = self.config.addresses.iter().find(|known| known.address == address).copied();
        self.change_address(AddressChange::Primary, known.ok_or(ChangeError::Invalid)?)
    }

    fn change_address(&mut self, change: AddressChange, local: LocalAddress) -> Result<(), ChangeError> {
        let able = self.state.sends_data();
        let state = self.changes().filter(|_| able).ok_or(ChangeError::NotAgreed)?;
        if state.wishes.len() >= MAX_WISHES {
            return Err(ChangeError::Busy);
        }
        state.wishes.push_back(PendingChange { change, local });
        Ok(())
    }

    /// Paths from this local address go from another, or are no more.
    fn leave(&mut self, local: Address, now: Time) {
        for id in self.live_paths() {
            let view = self.paths.view(id);
            if view.local != local {
                continue;
            }
            let other = next_local(&self.config, local, view.remote, self.paths.down());
            match other.filter(|_| self.config.pairs == Pairs::OnePerPeer) {
                Some(other) => self.go_from(id, other, now),
                None => self.remove_path(id, now),
            }
        }
    }

    /// ASCONF, if one is due.
    //= rfc5061#section-5.1
    pub(crate) fn next_asconf(&mut self, now: Time) -> Option<(Box<Packet>, Reason)> {
        if !self.state.sends_data() {
            return None;
        }
        let path = self.open_path(self.sender.in_use);
        let paths = self.paths.views();
        let state = self.extended.as_mut()?.addresses.as_mut()?;
        if state.request.is_none() {
            let wish = state.wishes.pop_front()?;
            let (sequence, timer) = (state.next, Time::NEVER);
            state.next = state.next.wrapping_add(1);
            state.request = Some(Request { sequence, wish, path, timer, due: true, tries: 0 });
        }
        let request = state.request.as_mut().filter(|request| request.due)?;
        request.due = false;
        // Again: by another path if there is one.
        let other = paths.iter().find(|p| p.state == PathState::Active && p.id != request.path).map(|p| p.id);
        request.path = other.filter(|_| request.tries > 0).unwrap_or(path);
        let (path, tries) = (request.path, request.tries);
        request.timer = now + paths[usize::from(path.0)].rto;
        let PendingChange { change, local } = request.wish;
        let asked = AddressRequest { correlation: request.sequence, address: local.address.ip };
        let param = match change {
            AddressChange::Added => Param::Add(asked),
            AddressChange::Removed => Param::Delete(asked),
            AddressChange::Primary => Param::SetPrimary(asked),
        };
        let address = paths[usize::from(path.0)].local.ip;
        let chunk = Asconf { sequence: request.sequence, address, requests: vec![param] };
        let (mut packet, reason) = self.packet(
            path,
            [Chunk::Asconf(Box::new(chunk))].into_iter().collect(),
            Purpose::Addresses,
            Limit::Control,
        );
        let same_family = packet.to.ip.is_ipv4() == local.address.ip.is_ipv4();
        if change == AddressChange::Added && tries % 2 == 1 && same_family {
            packet.from = local.address;
        }
        Some((packet, reason))
    }

    /// T4-rto.
    //= rfc5061#section-5.1
    pub(super) fn asconf_timer(&mut self, now: Time) {
        let Some(request) = self.changes().and_then(|state| state.request.as_mut()) else { return };
        if request.timer > now {
            return;
        }
        (request.timer, request.due) = (Time::NEVER, true);
        request.tries += 1;
        let path = request.path;
        self.control_unanswered(path, now);
    }

    /// The peer has answered our ASCONF.
    //= rfc5061#section-5.1
    //= rfc5061#section-5.3
    pub(super) fn asconf_ack(&mut self, ack: &AsconfAck, now: Time) {
        let Some(state) = self.changes() else { return };
        let answers = |request: &mut Request| request.sequence == ack.sequence;
        let Some(request) = state.request.take_if(answers) else {
            // Neither asked nor about to be asked: forged, or the peer is out of its mind.
            let ahead = Tsn(ack.sequence);
            if state.request.is_none() && !ahead.before(Tsn(state.next)) {
                self.violated(Cause::IllegalAsconfAck, now);
            }
            return;
        };
        self.control_answered(request.path);
        let failed = ack.responses.iter().any(|response| match response {
            Param::Failed(failed) => failed.correlation == request.sequence,
            _ => false,
        });
        let PendingChange { change, local } = request.wish;
        match change {
            AddressChange::Added if !failed => self.address_added(local, now),
            AddressChange::Removed if failed => Arc::make_mut(&mut self.config).addresses.push(local),
            _ => {}
        }
        let outcome = if failed { Outcome::Denied } else { Outcome::Done };
        self.events.push_back(Event::LocalAddress { address: local.address, change, outcome });
    }

    /// The peer knows the new address: with all pairs there are new paths from it, else those on its link that do not
    /// work go from it.
    fn address_added(&mut self, local: LocalAddress, now: Time) {
        Arc::make_mut(&mut self.config).addresses.push(local);
        if self.config.pairs == Pairs::All {
            let peers = self.peer_addresses();
            self.new_paths(&peers, now);
            return;
        }
        for id in self.live_paths() {
            let view = self.paths.view(id);
            if view.state != PathState::Active && local.on_link(view.remote.ip) {
                self.go_from(id, local.address, now);
            }
        }
    }

    fn peer_addresses(&self) -> Vec<Address> {
        let mut peers: Vec<Address> = Vec::new();
        for view in self.paths.views().iter().filter(|view| view.state != PathState::Removed) {
            if !peers.contains(&view.remote) {
                peers.push(view.remote);
            }
        }
        peers
    }

    /// Adds paths to these addresses, and asks whether they work; whether there are any.
    fn new_paths(&mut self, peers: &[Address], now: Time) -> bool {
        let before: Vec<PathId> = self.live_paths();
        self.add_paths(peers, None, now);
        let new: Vec<PathId> = self.live_paths().into_iter().filter(|id| !before.contains(id)).collect();
        for &id in &new {
            self.paths.ask(id);
            self.set_state(id, PathState::Unconfirmed);
        }
        !new.is_empty()
    }

    pub(crate) fn live_paths(&self) -> Vec<PathId> {
        let live = |id: &PathId| self.paths.view(*id).state != PathState::Removed;
        self.paths.ids().filter(live).collect()
    }

    /// ASCONF came, and is authentic.
    //= rfc5061#section-5.2
    pub(super) fn asconf(&mut self, asconf: &Asconf, came: PacketOrigin, now: Time) {
        if !self.state.sends_data() && !self.state.receives_data() {
            return;
        }
        let Some(state) = self.changes() else { return };
        let ack = if asconf.sequence == state.expected {
            state.expected = state.expected.wrapping_add(1);
            let ack = AsconfAck { sequence: asconf.sequence, responses: self.change_peer(asconf, came, now) };
            if let Some(state) = self.changes() {
                state.answered = Some(ack.clone());
            }
            ack
        } else {
            let same = |ack: &&AsconfAck| ack.sequence == asconf.sequence;
            let Some(ack) = state.answered.as_ref().filter(same) else { return };
            ack.clone()
        };
        // To where it came from, which may be new.
        let path = self.paths.to(came.source).unwrap_or(self.open_path(came.path));
        if self.may_reply() {
            self.control.push_back((path, Chunk::AsconfAck(Box::new(ack)), Purpose::Addresses));
        }
    }

    /// Does what the peer asks, in order; what failed. Once an address was refused, no later one is added or deleted.
    //= rfc5061#section-5.3
    fn change_peer(&mut self, asconf: &Asconf, came: PacketOrigin, now: Time) -> Vec<Param> {
        let mut failed = Vec::new();
        let mut refusing = false;
        for param in &asconf.requests {
            let result = match param {
                Param::Add(_) | Param::Delete(_) if refusing => Err(Cause::ResourceShortage as fn(_) -> _),
                Param::Add(request) => self.peer_adds_address(request.address, came, now),
                Param::Delete(request) => self.peer_deletes_address(request.address, came, now),
                Param::SetPrimary(request) => self.peer_wants_primary(request.address, came),
                Param::Unknown { kind, .. } if kind & 0x4000 != 0 => {
                    Err(Cause::UnrecognizedParameters as fn(_) -> _)
                }
                Param::Unknown { .. } | Param::Failed(_) | Param::Succeeded(_) => Ok(()),
            };
            if let Err(cause) = result {
                refusing |= matches!(param, Param::Add(_) | Param::Delete(_));
                let causes = vec![cause(param.to_bytes().unwrap_or_default())];
                failed.push(Param::Failed(Failed { correlation: correlation(param), causes }));
            }
        }
        failed
    }

    //= rfc5061#section-4.2.1
    fn peer_adds_address(&mut self, ip: IpAddr, came: PacketOrigin, now: Time) -> Result<(), Refusal> {
        let address = named(ip, came.source);
        let peers = self.peer_addresses();
        if peers.contains(&address) {
            return Ok(());
        }
        if !address.may_be_named_by(came.source, &self.config.addresses) {
            return Err(Cause::NotAuthorized);
        }
        if peers.len() >= MAX_ADDRESSES || !self.new_paths(&[address], now) {
            return Err(Cause::ResourceShortage);
        }
        self.peer_changed(address, AddressChange::Added);
        Ok(())
    }

    //= rfc5061#section-4.2.2
    //= rfc5061#section-5.3
    fn peer_deletes_address(&mut self, ip: IpAddr, came: PacketOrigin, now: Time) -> Result<(), Refusal> {
        let peers = self.peer_addresses();
        let gone: Vec<Address> = match ip.is_unspecified() {
            true => peers.iter().copied().filter(|peer| *peer != came.source).collect(),
            false => peers.iter().copied().filter(|peer| peer.ip == ip).collect(),
        };
        if !gone.is_empty() && gone.len() == peers.len() {
            return Err(Cause::DeletesLastAddress);
        }
        if gone.contains(&came.source) {
            return Err(Cause::DeletesSourceAddress);
        }
        self.named.retain(|named| !gone.contains(named));
        for address in gone {
            for id in self.live_paths() {
                if self.paths.view(id).remote == address {
                    self.remove_path(id, now);
                }
            }
            self.peer_changed(address, AddressChange::Removed);
        }
        Ok(())
    }

    //= rfc5061#section-4.2.4
    fn peer_wants_primary(&mut self, ip: IpAddr, came: PacketOrigin) -> Result<(), Refusal> {
        let address = named(ip, came.source);
        let path =
            self.paths.views().iter().find(|p| p.remote.ip == address.ip && p.state != PathState::Removed);
        let Some(path) = path.map(|path| path.id) else { return Err(Cause::UnresolvableAddress) };
        self.set_primary(path);
        self.peer_changed(self.paths.view(path).remote, AddressChange::Primary);
        Ok(())
    }

    fn peer_changed(&mut self, address: Address, change: AddressChange) {
        if let Some(state) = self.changes() {
            state.moved |= change != AddressChange::Primary;
        }
        self.events.push_back(Event::PeerAddress { address, change });
    }

    /// Whether the peer's addresses have changed since this was asked last.
    pub(crate) fn moved(&mut self) -> bool {
        self.changes().is_some_and(|state| std::mem::take(&mut state.moved))
    }
}

/// A cause that refuses a request, given as bytes.
type Refusal = fn(bytes::Bytes) -> Cause;

/// The address that is meant: the unspecified one stands for that of the packet.
fn named(ip: IpAddr, source: Address) -> Address {
    if ip.is_unspecified() { source } else { Address { ip, udp: source.udp } }
}

/// The name that the peer gave its request; a parameter that is not understood has it in the same place.
fn correlation(param: &Param) -> u32 {
    match param {
        Param::Add(request) | Param::Delete(request) | Param::SetPrimary(request) => request.correlation,
        Param::Failed(failed) => failed.correlation,
        Param::Succeeded(correlation) => *correlation,
        Param::Unknown { value, .. } => value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)),
    }
}
