//! Changes of addresses during the life of an association (RFC 5061): the paths that are added and removed. Requests
//! and answers are in `extension/addresses.rs`.

use std::sync::Arc;

use super::{Association, next_local};
use crate::extension::Authentication;
use crate::extension::addresses::{
    Acknowledged, AddressChanges, OffPathAnswer, PeerChange, PendingChange, Received, Refusal, Responses,
    ends_list, peer_change,
};
use crate::output::{AddressChange, ChangeError, Event, Limit, Outcome, Purpose, Reason};
use crate::path::{PacketOrigin, PathId, PathState};
use crate::wire::chunk::{Asconf, AsconfAck, AsconfParam};
use crate::wire::{Address, Cause, Chunk, Packet};
use crate::{LocalAddress, Pairs, Time};

impl Association {
    /// The user adds a local address.
    pub(crate) fn add_address(&mut self, local: LocalAddress) -> Result<(), ChangeError> {
        let known = self.config.addresses.iter().any(|known| known.address == local.address);
        if known || self.changes().is_some_and(|changes| changes.adds(local.address)) {
            return Err(ChangeError::Invalid);
        }
        self.change_address(AddressChange::Added, local)
    }

    /// The user removes a local address, if the association still has a path without it. Nothing leaves from it from
    /// now on.
    //= rfc5061#section-5.3
    pub(crate) fn remove_address(&mut self, address: Address, now: Time) -> Result<(), ChangeError> {
        let known = self.config.addresses.iter().find(|known| known.address == address).copied();
        let stays = |id: &PathId| {
            self.paths.view(*id).local != address || self.elsewhere_than(address, *id).is_some()
        };
        let local = known.filter(|_| self.paths.live().iter().any(stays)).ok_or(ChangeError::Invalid)?;
        self.change_address(AddressChange::Removed, local)?;
        self.leave(address, now);
        Arc::make_mut(&mut self.config).addresses.retain(|known| known.address != address);
        Ok(())
    }

    /// The peer has restarted at this local address. From its INIT ACK it knows the address as one of the association,
    /// so it is one again if it was removed.
    //= rfc5061#section-5.3
    pub(crate) fn take_back(&mut self, local: LocalAddress) {
        if self.config.addresses.iter().all(|known| known.address != local.address) {
            Arc::make_mut(&mut self.config).addresses.push(local);
        }
    }

    /// The user asks the peer to send to this address if it can.
    pub(crate) fn set_peer_primary(&mut self, address: Address) -> Result<(), ChangeError> {
        let known = self.config.addresses.iter().find(|known| known.address == address).copied();
        self.change_address(AddressChange::Primary, known.ok_or(ChangeError::Invalid)?)
    }

    fn change_address(&mut self, change: AddressChange, local: LocalAddress) -> Result<(), ChangeError> {
        let able = self.state.sends_data();
        self.changes().filter(|_| able).ok_or(ChangeError::NotAgreed)?.wish(change, local)
    }

    /// Moves the paths of this local address to another one, or removes them.
    fn leave(&mut self, local: Address, now: Time) {
        for id in self.paths.live() {
            if self.paths.view(id).local != local {
                continue;
            }
            match self.elsewhere_than(local, id) {
                Some(other) => self.go_from(id, other, now),
                None => self.remove_path(id, now),
            }
        }
    }

    /// The local address to which a path moves when this one goes; `None`: the path goes, too.
    fn elsewhere_than(&self, local: Address, id: PathId) -> Option<Address> {
        let other = next_local(&self.config, local, self.paths.view(id).remote, self.paths.down());
        other.filter(|_| self.config.pairs == Pairs::OnePerPeer)
    }

    /// ASCONF, or an ASCONF-ACK to an address on no path, if one is due.
    pub(super) fn next_asconf(&mut self, now: Time) -> Option<(Box<Packet>, Reason)> {
        let up = self.state.sends_data() || self.state.receives_data();
        let answer = self.changes().filter(|_| up).and_then(AddressChanges::take_off_path_answer);
        if let Some(answer) = answer {
            return Some(self.off_path_answer(answer));
        }
        if !self.state.sends_data() {
            return None;
        }
        let usual = self.open_path(self.sender.in_use);
        let asking = self.extended.as_mut()?.addresses.as_mut()?.next(usual, &self.paths, now)?;
        let chunks = [Chunk::Asconf(Box::new(asking.chunk))].into_iter().collect();
        let (mut packet, reason) = self.packet(asking.path, chunks, Purpose::Addresses, Limit::Control);
        packet.from = asking.from.unwrap_or(packet.from);
        Some((packet, reason))
    }

    //= rfc5061#section-5.2
    fn off_path_answer(&mut self, OffPathAnswer { from, to, ack }: OffPathAnswer) -> (Box<Packet>, Reason) {
        let chunks = [Chunk::AsconfAck(Box::new(ack))].into_iter().collect();
        let path = self.open_path(self.sender.in_use);
        let (mut packet, reason) = self.packet(path, chunks, Purpose::Addresses, Limit::Control);
        (packet.from, packet.to) = (from, to);
        (packet, reason)
    }

    /// The peer has answered our ASCONF.
    //= rfc5061#section-5.3
    pub(super) fn asconf_ack(&mut self, ack: &AsconfAck, now: Time) {
        let Some(changes) = self.changes() else { return };
        let (path, asked, outcome) = match changes.acknowledged(ack) {
            Acknowledged::Nothing => return,
            Acknowledged::Never => return self.violated(Cause::IllegalAsconfAck, now),
            Acknowledged::Change { path, asked, outcome } => (path, asked, outcome),
        };
        self.control_answered(path);
        self.change_ended(asked, outcome, now);
        self.end_refused(now);
    }

    /// The peer has reported chunks that it does not understand.
    pub(super) fn not_understood(&mut self, causes: &[Cause], now: Time) {
        if let Some(changes) = self.changes() {
            changes.not_understood(causes);
            self.end_refused(now);
        }
    }

    /// Ends the waiting changes of kinds that the peer does not understand.
    //= rfc5061#section-5.3
    fn end_refused(&mut self, now: Time) {
        while let Some(asked) = self.changes().and_then(AddressChanges::take_refused) {
            self.change_ended(asked, Outcome::Denied, now);
        }
    }

    /// A change that the user has asked for was made or refused.
    fn change_ended(&mut self, PendingChange { change, local }: PendingChange, outcome: Outcome, now: Time) {
        match (change, outcome) {
            (AddressChange::Added, Outcome::Done) | (AddressChange::Removed, Outcome::Denied) => {
                self.address_added(local, now);
            }
            _ => {}
        }
        self.events.push_back(Event::LocalAddress { address: local.address, change, outcome });
    }

    /// The peer knows the address, or keeps it. If all pairs are paths, there are new paths from it; otherwise paths on
    /// its link that do not work move to it.
    fn address_added(&mut self, local: LocalAddress, now: Time) {
        if self.config.addresses.iter().any(|known| known.address == local.address) {
            return;
        }
        Arc::make_mut(&mut self.config).addresses.push(local);
        if self.config.pairs == Pairs::All {
            let peers = self.paths.peers();
            self.new_paths(&peers, now);
            return;
        }
        for id in self.paths.live() {
            let view = self.paths.view(id);
            if view.state != PathState::Active && local.on_link(view.remote.ip) {
                self.go_from(id, local.address, now);
            }
        }
    }

    /// Adds paths to these addresses and probes them. Returns whether there are any.
    fn new_paths(&mut self, peers: &[Address], now: Time) -> bool {
        let before: Vec<PathId> = self.paths.live();
        self.add_paths(peers, None, now);
        let new: Vec<PathId> = self.paths.live().into_iter().filter(|id| !before.contains(id)).collect();
        for &id in &new {
            self.paths.ask(id);
            self.set_state(id, PathState::Unconfirmed);
        }
        !new.is_empty()
    }

    /// An authentic ASCONF arrived.
    //= rfc5061#section-5.2
    pub(super) fn asconf(&mut self, asconf: &Asconf, came: PacketOrigin, now: Time) {
        if !self.state.sends_data() && !self.state.receives_data() {
            return;
        }
        let Some(changes) = self.changes() else { return };
        let ack = match changes.received(asconf) {
            Received::Next => {
                let (responses, moved) = self.change_peer(asconf, came, now);
                let Some(changes) = self.changes() else { return };
                changes.moved |= moved;
                changes.answer(asconf.sequence, responses)
            }
            Received::Again(ack) => ack,
            Received::OutOfOrder => return,
        };
        self.answer_asconf(ack, came);
    }

    /// The answer goes to the source of the ASCONF, which may be new, or on no path.
    //= rfc5061#section-5.2
    fn answer_asconf(&mut self, ack: AsconfAck, came: PacketOrigin) {
        if !self.may_reply() {
            return;
        }
        match self.paths.to(came.source) {
            Some(path) => self.reply(path, Chunk::AsconfAck(Box::new(ack)), Purpose::Addresses),
            None => {
                let answer = OffPathAnswer { from: came.local, to: came.source, ack };
                if let Some(changes) = self.changes() {
                    changes.answer_off_path(answer);
                }
            }
        }
    }

    /// Carries out the peer's requests in order. Returns the responses, and whether its addresses have changed.
    //= rfc5061#section-5.3
    fn change_peer(&mut self, asconf: &Asconf, came: PacketOrigin, now: Time) -> (Vec<AsconfParam>, bool) {
        let auth = self.authentication().map_or(0, Authentication::overhead_of_asconf);
        let mut responses = Responses::within((self.paths.smallest_pmdcs() - auth) as usize);
        let (mut refusing, mut moved) = (false, false);
        for param in &asconf.requests {
            if !responses.has_room() {
                break;
            }
            let possible = peer_change(param, refusing, came.source, &self.config.addresses, &self.paths);
            match possible.and_then(|change| self.perform(change, now)) {
                Ok(changed) => {
                    moved |= changed;
                    responses.succeeded(param);
                }
                Err(cause) => {
                    refusing |= matches!(param, AsconfParam::Add(_) | AsconfParam::Delete(_));
                    responses.refused(param, cause);
                }
            }
            if ends_list(param) {
                break;
            }
        }
        (responses.into_list(), moved)
    }

    /// Carries out a change of the peer. Returns whether its addresses have changed.
    fn perform(&mut self, change: PeerChange, now: Time) -> Result<bool, Refusal> {
        match change {
            PeerChange::None => Ok(false),
            PeerChange::Add(address) => {
                let known = self.knows(address);
                if !self.new_paths(&[address], now) {
                    // Otherwise a peer could fill the memory with addresses that no path can have.
                    self.named.retain(|named| known || *named != address);
                    return Err(Cause::ResourceShortage);
                }
                self.events.push_back(Event::PeerAddress { address, change: AddressChange::Added });
                Ok(true)
            }
            PeerChange::Delete(gone) => {
                self.named.retain(|named| !gone.contains(named));
                gone.iter().for_each(|address| self.forget_peer(*address, now));
                Ok(!gone.is_empty())
            }
            PeerChange::Primary(path) => {
                self.set_primary(path);
                let address = self.paths.view(path).remote;
                self.events.push_back(Event::PeerAddress { address, change: AddressChange::Primary });
                Ok(false)
            }
        }
    }

    /// Removes this address of the peer and the paths to it.
    fn forget_peer(&mut self, address: Address, now: Time) {
        for id in self.paths.live() {
            if self.paths.view(id).remote == address {
                self.remove_path(id, now);
            }
        }
        self.events.push_back(Event::PeerAddress { address, change: AddressChange::Removed });
    }

    /// Whether the peer's addresses have changed since the last call.
    pub(crate) fn moved(&mut self) -> bool {
        self.changes().is_some_and(|changes| std::mem::take(&mut changes.moved))
    }

    fn changes(&mut self) -> Option<&mut AddressChanges> {
        self.extended.as_mut().and_then(|extended| extended.addresses.as_mut())
    }
}
