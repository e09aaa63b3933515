//! Addresses that change while the association lives (RFC 5061): ASCONF, always behind AUTH.
//!
//! Each change of the user's is an ASCONF of its own, one at a time. An address that is added is not sent from before
//! the peer has acknowledged it, but that an ASCONF which was not answered tries it too: the old address may be gone.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::output::{AddressChange, ChangeError, Outcome};
use crate::path::{PathId, PathState, PathView, Paths};
use crate::wire::chunk::{AddressRequest, Asconf, AsconfAck, AsconfParam as Param, Failed};
use crate::wire::{Address, Cause};
use crate::{LocalAddress, Time, Tsn};

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

/// A change of ours that the peer has been asked for.
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

/// An ASCONF of ours that leaves now.
pub(crate) struct Asking {
    pub(crate) path: PathId,
    pub(crate) chunk: Asconf,
    /// The address that it leaves from, if it is not that of the path.
    pub(crate) from: Option<Address>,
}

/// What an ASCONF ACK says.
pub(crate) enum Acknowledged {
    /// Nothing that was asked.
    Nothing,
    /// Something that was neither asked nor is about to be: it is forged, or the peer is out of its mind.
    Never,
    /// The change asked on this path was made or refused.
    Change { path: PathId, change: AddressChange, local: LocalAddress, outcome: Outcome },
}

/// What an ASCONF of the peer is.
pub(crate) enum Received {
    /// The next: its requests have to be done.
    Next,
    /// One that was answered already, thus.
    Again(AsconfAck),
    /// One that is out of order.
    OutOfOrder,
}

/// A change of the peer's addresses that can be made.
pub(crate) enum PeerChange {
    None,
    Add(Address),
    Delete(Vec<Address>),
    Primary(PathId),
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

    /// A change is asked for as soon as those before it were answered.
    pub(crate) fn wish(&mut self, change: AddressChange, local: LocalAddress) -> Result<(), ChangeError> {
        if self.wishes.len() >= MAX_WISHES {
            return Err(ChangeError::Busy);
        }
        self.wishes.push_back(PendingChange { change, local });
        Ok(())
    }

    /// ASCONF, if one is due: on the path `usual`, or on another after it was not answered.
    //= rfc5061#section-5.1
    pub(crate) fn next(&mut self, usual: PathId, paths: &Paths, now: Time) -> Option<Asking> {
        if self.request.is_none() {
            let wish = self.wishes.pop_front()?;
            let (sequence, timer) = (self.next, Time::NEVER);
            self.next = self.next.wrapping_add(1);
            self.request = Some(Request { sequence, wish, path: usual, timer, due: true, tries: 0 });
        }
        let request = self.request.as_mut().filter(|request| request.due)?;
        request.due = false;
        let views = paths.views();
        let other = views.iter().find(|p| p.state == PathState::Active && p.id != request.path).map(|p| p.id);
        request.path = other.filter(|_| request.tries > 0).unwrap_or(usual);
        let view = paths.view(request.path);
        request.timer = now + view.rto;
        let PendingChange { change, local } = request.wish;
        let asked = AddressRequest { correlation: request.sequence, address: local.address.ip };
        let param = match change {
            AddressChange::Added => Param::Add(asked),
            AddressChange::Removed => Param::Delete(asked),
            AddressChange::Primary => Param::SetPrimary(asked),
        };
        let chunk = Asconf { sequence: request.sequence, address: view.local.ip, requests: vec![param] };
        let same_family = view.remote.ip.is_ipv4() == local.address.ip.is_ipv4();
        let tries_new = change == AddressChange::Added && request.tries % 2 == 1 && same_family;
        Some(Asking { path: request.path, chunk, from: tries_new.then_some(local.address) })
    }

    /// T4-rto: the path on which ASCONF was not answered in time.
    //= rfc5061#section-5.1
    pub(crate) fn expired(&mut self, now: Time) -> Option<PathId> {
        let request = self.request.as_mut().filter(|request| request.timer <= now)?;
        (request.timer, request.due) = (Time::NEVER, true);
        request.tries += 1;
        Some(request.path)
    }

    /// The peer has answered our ASCONF.
    //= rfc5061#section-5.1
    //= rfc5061#section-5.3
    pub(crate) fn acknowledged(&mut self, ack: &AsconfAck) -> Acknowledged {
        let Some(request) = self.request.take_if(|request| request.sequence == ack.sequence) else {
            let ahead = self.request.is_none() && !Tsn(ack.sequence).before(Tsn(self.next));
            return if ahead { Acknowledged::Never } else { Acknowledged::Nothing };
        };
        let failed = ack.responses.iter().any(|response| match response {
            Param::Failed(failed) => failed.correlation == request.sequence,
            _ => false,
        });
        let Request { path, wish: PendingChange { change, local }, .. } = request;
        let outcome = if failed { Outcome::Denied } else { Outcome::Done };
        Acknowledged::Change { path, change, local, outcome }
    }

    /// ASCONF came, and is authentic.
    //= rfc5061#section-5.2
    pub(crate) fn received(&mut self, asconf: &Asconf) -> Received {
        if asconf.sequence == self.expected {
            self.expected = self.expected.wrapping_add(1);
            return Received::Next;
        }
        let same = |ack: &&AsconfAck| ack.sequence == asconf.sequence;
        self.answered.as_ref().filter(same).map_or(Received::OutOfOrder, |ack| Received::Again(ack.clone()))
    }

    /// The answer to the next, which is kept for a peer that asks again.
    pub(crate) fn answer(&mut self, sequence: u32, responses: Vec<Param>) -> AsconfAck {
        let ack = AsconfAck { sequence, responses };
        self.answered = Some(ack.clone());
        ack
    }
}

/// What a parameter of the peer's ASCONF, which came from `source`, asks for, if that can be done. `refusing`: an address was refused
/// already, so no later one is added or deleted.
//= rfc5061#section-5.3
pub(crate) fn peer_change(
    param: &Param,
    refusing: bool,
    source: Address,
    own: &[LocalAddress],
    paths: &Paths,
) -> Result<PeerChange, Refusal> {
    match param {
        Param::Add(_) | Param::Delete(_) if refusing => Err(Cause::ResourceShortage as Refusal),
        Param::Add(request) => added(named(request.address, source), source, own, &paths.peers()),
        Param::Delete(request) => deleted(request.address, source, &paths.peers()),
        Param::SetPrimary(request) => primary(named(request.address, source), paths),
        Param::Unknown { kind, .. } if kind & 0x4000 != 0 => Err(Cause::UnrecognizedParameters as Refusal),
        Param::Unknown { .. } | Param::Failed(_) | Param::Succeeded(_) => Ok(PeerChange::None),
    }
}

/// The answer to a parameter that is refused.
pub(crate) fn refused(param: &Param, cause: Refusal) -> Param {
    let causes = vec![cause(param.to_bytes().unwrap_or_default())];
    Param::Failed(Failed { correlation: correlation(param), causes })
}

//= rfc5061#section-4.2.1
fn added(
    address: Address,
    source: Address,
    own: &[LocalAddress],
    peers: &[Address],
) -> Result<PeerChange, Refusal> {
    if peers.contains(&address) {
        return Ok(PeerChange::None);
    }
    if !address.may_be_named_by(source, own) {
        return Err(Cause::NotAuthorized);
    }
    if peers.len() >= MAX_ADDRESSES {
        return Err(Cause::ResourceShortage);
    }
    Ok(PeerChange::Add(address))
}

//= rfc5061#section-4.2.2
//= rfc5061#section-5.3
fn deleted(ip: IpAddr, source: Address, peers: &[Address]) -> Result<PeerChange, Refusal> {
    let gone: Vec<Address> = match ip.is_unspecified() {
        true => peers.iter().copied().filter(|peer| *peer != source).collect(),
        false => peers.iter().copied().filter(|peer| peer.ip == ip).collect(),
    };
    if !gone.is_empty() && gone.len() == peers.len() {
        return Err(Cause::DeletesLastAddress);
    }
    if gone.contains(&source) {
        return Err(Cause::DeletesSourceAddress);
    }
    Ok(PeerChange::Delete(gone))
}

//= rfc5061#section-4.2.4
fn primary(address: Address, paths: &Paths) -> Result<PeerChange, Refusal> {
    let live = |view: &&PathView| view.remote.ip == address.ip && view.state != PathState::Removed;
    let path = paths.views().iter().find(live).ok_or(Cause::UnresolvableAddress as Refusal)?;
    Ok(PeerChange::Primary(path.id))
}

/// A cause that refuses a request, given as bytes.
pub(crate) type Refusal = fn(bytes::Bytes) -> Cause;

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
