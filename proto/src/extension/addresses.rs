//! Dynamic addresses (RFC 5061): ASCONF chunks, always authenticated.
//!
//! Each change that the user requests is sent in an ASCONF of its own, one at a time. A new address is used as a source
//! only after the peer has acknowledged it. The exception is a repeated ASCONF: it may use the new address, because the
//! old one may have failed.

use std::collections::VecDeque;
use std::net::IpAddr;

use crate::output::{AddressChange, ChangeError, Outcome};
use crate::path::{PathId, PathState, PathView, Paths};
use crate::wire::chunk::{AddressRequest, Asconf, AsconfAck, AsconfParam as Param, Failed, padded};
use crate::wire::{Address, Cause, Chunk, Packet};
use crate::{LocalAddress, Time, Tsn};

/// The largest number of changes that wait.
const MAX_WISHES: usize = 16;
/// The largest number of answers that are kept in case the peer repeats its ASCONFs.
const MAX_ANSWERS: usize = 16;
/// The largest number of addresses of a peer.
const MAX_ADDRESSES: usize = 32;
/// The chunk type of ASCONF.
const ASCONF: u8 = 0xc1;

/// Requests to the peer, and answers to its requests.
#[derive(Clone, Debug)]
pub(crate) struct AddressChanges {
    /// The sequence numbers of our next ASCONF and of the peer's next.
    next: u32,
    expected: u32,
    wishes: VecDeque<PendingChange>,
    request: Option<Request>,
    /// The answers to the peer's last ASCONFs, the oldest first.
    answered: VecDeque<AsconfAck>,
    /// An answer that leaves at the next poll, because its destination is on no path.
    off_path: Option<OffPathAnswer>,
    /// The peer's addresses have changed, and the endpoint must be told.
    pub(crate) moved: bool,
    /// The peer has said that it does not understand requests of these kinds, so none is made any more.
    refused: Refused,
}

/// A change that this end wants.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PendingChange {
    pub(crate) change: AddressChange,
    pub(crate) local: LocalAddress,
}

impl PendingChange {
    /// The ASCONF that requests this, with the local address of a path as the one by which the peer knows us.
    //= rfc5061#section-4.1.1
    fn asconf(&self, sequence: u32, path: &PathView) -> Asconf {
        let asked = AddressRequest { correlation: sequence, address: self.local.address.ip };
        let param = match self.change {
            AddressChange::Added => Param::Add(asked),
            AddressChange::Removed => Param::Delete(asked),
            AddressChange::Primary => Param::SetPrimary(asked),
        };
        Asconf { sequence, address: path.local.ip, requests: vec![param] }
    }
}

/// The kinds of requests that the peer does not understand.
#[derive(Copy, Clone, Default, Debug)]
struct Refused {
    /// To add and to remove addresses.
    addresses: bool,
    /// To use an address as the primary one.
    primary: bool,
}

impl Refused {
    fn has(self, change: AddressChange) -> bool {
        match change {
            AddressChange::Added | AddressChange::Removed => self.addresses,
            AddressChange::Primary => self.primary,
        }
    }

    fn add(&mut self, change: AddressChange) {
        match change {
            AddressChange::Added | AddressChange::Removed => self.addresses = true,
            AddressChange::Primary => self.primary = true,
        }
    }
}

/// A change that was requested from the peer.
#[derive(Clone, Debug)]
struct Request {
    /// Repeated as it was, whatever the path.
    chunk: Asconf,
    wish: PendingChange,
    path: PathId,
    /// The T4-rto timer.
    timer: Time,
    due: bool,
    tries: u32,
}

/// An ASCONF that leaves now.
pub(crate) struct Asking {
    pub(crate) path: PathId,
    pub(crate) chunk: Asconf,
    /// Its source address, if it is not that of the path.
    pub(crate) from: Option<Address>,
}

/// An ASCONF-ACK to an address that is on no path, because the peer has not added it or was refused it.
#[derive(Clone, Debug)]
pub(crate) struct OffPathAnswer {
    pub(crate) from: Address,
    pub(crate) to: Address,
    pub(crate) ack: AsconfAck,
}

/// The result of an ASCONF-ACK.
pub(crate) enum Acknowledged {
    /// It answers no request.
    Nothing,
    /// It answers a request that was never made and is not next. It is forged, or the peer is faulty.
    Never,
    /// The peer has made or refused the change that was requested on this path.
    Change { path: PathId, asked: PendingChange, outcome: Outcome },
}

/// The classification of a received ASCONF.
pub(crate) enum Received {
    /// The next one: its requests must be carried out.
    Next,
    /// It was answered before with this chunk.
    Again(AsconfAck),
    /// It is out of order.
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
        let (wishes, request, answered, off_path, moved, refused) = Default::default();
        AddressChanges {
            next: local.0,
            expected: peer.0,
            wishes,
            request,
            answered,
            off_path,
            moved,
            refused,
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.request.as_ref().map_or(Time::NEVER, |request| request.timer)
    }

    /// Queues a change. It is requested when the earlier ones were answered.
    pub(crate) fn wish(&mut self, change: AddressChange, local: LocalAddress) -> Result<(), ChangeError> {
        if self.refused.has(change) {
            return Err(ChangeError::NotAgreed);
        }
        if self.wishes.len() >= MAX_WISHES {
            return Err(ChangeError::Busy);
        }
        self.wishes.push_back(PendingChange { change, local });
        Ok(())
    }

    /// Whether this address is being added.
    pub(crate) fn adds(&self, address: Address) -> bool {
        let asked = self.request.iter().map(|request| &request.wish);
        asked
            .chain(&self.wishes)
            .any(|wish| wish.change == AddressChange::Added && wish.local.address == address)
    }

    /// The next ASCONF, if one is due. It uses the path `usual`, or another one if an attempt was not answered.
    //= rfc5061#section-5.1
    pub(crate) fn next(&mut self, usual: PathId, paths: &Paths, now: Time) -> Option<Asking> {
        if self.request.is_none() {
            let wish = self.wishes.pop_front()?;
            let (chunk, timer) = (wish.asconf(self.next, paths.view(usual)), Time::NEVER);
            self.next = self.next.wrapping_add(1);
            self.request = Some(Request { chunk, wish, path: usual, timer, due: true, tries: 0 });
        }
        let request = self.request.as_mut().filter(|request| request.due)?;
        request.due = false;
        let views = paths.views();
        let other = views.iter().find(|p| p.state == PathState::Active && p.id != request.path).map(|p| p.id);
        request.path = other.filter(|_| request.tries > 0).unwrap_or(usual);
        let view = paths.view(request.path);
        request.timer = now + view.rto;
        let PendingChange { change, local } = request.wish;
        let chunk = request.chunk.clone();
        let same_family = view.remote.ip.is_ipv4() == local.address.ip.is_ipv4();
        let tries_new = change == AddressChange::Added && request.tries % 2 == 1 && same_family;
        Some(Asking { path: request.path, chunk, from: tries_new.then_some(local.address) })
    }

    /// If T4-rto has expired: the path on which the ASCONF was not answered.
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
        let Some(request) = self.request.take_if(|request| request.chunk.sequence == ack.sequence) else {
            let ahead = self.request.is_none() && !Tsn(ack.sequence).before(Tsn(self.next));
            return if ahead { Acknowledged::Never } else { Acknowledged::Nothing };
        };
        let failed = ack.responses.iter().find_map(|response| match response {
            Param::Failed(failed) if failed.correlation == ack.sequence => Some(failed),
            _ => None,
        });
        let Request { path, wish: asked, .. } = request;
        let strange = |cause: &Cause| matches!(cause, Cause::UnrecognizedParameters(_));
        if failed.is_some_and(|failed| failed.causes.iter().any(strange)) {
            self.refused.add(asked.change);
        }
        let outcome = if failed.is_some() { Outcome::Denied } else { Outcome::Done };
        Acknowledged::Change { path, asked, outcome }
    }

    /// The peer has reported chunks that it does not understand. If ASCONF is among them, none is sent any more.
    //= rfc5061#section-5.1
    pub(crate) fn not_understood(&mut self, causes: &[Cause]) {
        let asconf = |cause: &Cause| matches!(cause, Cause::UnrecognizedChunk(chunk) if chunk.first() == Some(&ASCONF));
        if causes.iter().any(asconf) {
            self.refused = Refused { addresses: true, primary: true };
            let request = self.request.take();
            request.into_iter().for_each(|request| self.wishes.push_front(request.wish));
        }
    }

    /// The association begins anew: the changes that are not requested any more.
    pub(crate) fn give_up(&mut self) -> Vec<PendingChange> {
        let sent = self.request.take().map(|request| request.wish);
        sent.into_iter().chain(self.wishes.drain(..)).collect()
    }

    /// Takes a waiting change of a kind that the peer does not understand.
    pub(crate) fn take_refused(&mut self) -> Option<PendingChange> {
        let at = self.wishes.iter().position(|wish| self.refused.has(wish.change))?;
        self.wishes.remove(at)
    }

    /// A packet has come. If the first ASCONF in it is the next one, the peer has heard all answers.
    //= rfc5061#section-5.2
    pub(crate) fn look_at(&mut self, packet: &Packet) {
        let sequence = |chunk: &Chunk| match chunk {
            Chunk::Asconf(asconf) => Some(asconf.sequence),
            _ => None,
        };
        if packet.chunks.iter().find_map(sequence) == Some(self.expected) {
            self.answered.clear();
        }
    }

    /// An authenticated ASCONF has arrived.
    //= rfc5061#section-5.2
    pub(crate) fn received(&mut self, asconf: &Asconf) -> Received {
        if asconf.sequence == self.expected {
            self.expected = self.expected.wrapping_add(1);
            return Received::Next;
        }
        let answer = self.answered.iter().find(|ack| ack.sequence == asconf.sequence);
        answer.map_or(Received::OutOfOrder, |ack| Received::Again(ack.clone()))
    }

    /// Stores and returns the answer to the peer's next ASCONF. A peer that repeats the ASCONF gets the same answer.
    pub(crate) fn answer(&mut self, sequence: u32, responses: Vec<Param>) -> AsconfAck {
        let ack = AsconfAck { sequence, responses };
        if self.answered.len() >= MAX_ANSWERS {
            self.answered.pop_front();
        }
        self.answered.push_back(ack.clone());
        ack
    }

    /// Answers an ASCONF whose source is on no path. A second such answer before the next poll takes the place of the
    /// first: the peer repeats the ASCONF that was not answered.
    pub(crate) fn answer_off_path(&mut self, answer: OffPathAnswer) {
        self.off_path = Some(answer);
    }

    pub(crate) fn take_off_path_answer(&mut self) -> Option<OffPathAnswer> {
        self.off_path.take()
    }
}

/// The responses to the requests of an ASCONF, the first of which is a failure. They fit the path.
///
/// Behind a failure, a request without a response counts as failed. So if the room is used up, failures are left out,
/// and nothing more is carried out.
//= rfc5061#section-5.1
pub(crate) struct Responses {
    list: Vec<Param>,
    /// Bytes left for responses.
    room: usize,
}

impl Responses {
    /// The responses of an ASCONF-ACK of at most `size` bytes.
    pub(crate) fn within(size: usize) -> Self {
        let empty = AsconfAck { sequence: 0, responses: Vec::new() };
        Responses { list: Vec::new(), room: size.saturating_sub(empty.size()) }
    }

    /// Whether another request can be carried out, because its success can be reported if it has to be.
    pub(crate) fn has_room(&self) -> bool {
        self.list.is_empty() || self.room >= Param::Succeeded(0).size()
    }

    /// A request was carried out.
    pub(crate) fn succeeded(&mut self, param: &Param) {
        if !self.list.is_empty()
            && let Some(response) = success(param)
        {
            self.push(response);
        }
    }

    /// A request was refused. The first refusal always fits: if need be, it quotes only the beginning of the request.
    pub(crate) fn refused(&mut self, param: &Param, cause: Refusal) {
        let quoted = param.to_bytes().unwrap_or_default();
        let response = refusal(param, cause, quoted.clone());
        if padded(response.size()) <= self.room {
            self.push(response);
        } else if self.list.is_empty() {
            let headers = response.size() - quoted.len();
            self.push(refusal(param, cause, quoted.slice(..(self.room.saturating_sub(headers)) & !3)));
        }
    }

    fn push(&mut self, response: Param) {
        self.room = self.room.saturating_sub(padded(response.size()));
        self.list.push(response);
    }

    pub(crate) fn into_list(self) -> Vec<Param> {
        self.list
    }
}

/// The change that a parameter of the peer's ASCONF requests, if it is possible. `source`: the source address of the
/// ASCONF. `refusing`: an earlier address was refused, so no later one is added or deleted.
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

/// Whether an unknown parameter forbids to process those behind it: by the highest bit of its type.
//= rfc9260#section-3.2.1
pub(crate) fn ends_list(param: &Param) -> bool {
    matches!(param, Param::Unknown { kind, .. } if kind & 0x8000 == 0)
}

/// The response to a request that was carried out; none for a parameter that requests nothing.
fn success(param: &Param) -> Option<Param> {
    match param {
        Param::Add(_) | Param::Delete(_) | Param::SetPrimary(_) => Some(Param::Succeeded(correlation(param))),
        Param::Unknown { .. } | Param::Failed(_) | Param::Succeeded(_) => None,
    }
}

/// The response to a refused parameter, of which the cause quotes these bytes.
fn refusal(param: &Param, cause: Refusal, quoted: bytes::Bytes) -> Param {
    Param::Failed(Failed { correlation: correlation(param), causes: vec![cause(quoted)] })
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

/// Builds the cause that refuses a request from the bytes of the request.
pub(crate) type Refusal = fn(bytes::Bytes) -> Cause;

/// Resolves the unspecified address to the source address of the packet.
fn named(ip: IpAddr, source: Address) -> Address {
    if ip.is_unspecified() { source } else { Address { ip, udp: source.udp } }
}

/// The correlation ID of the peer's request. An unknown parameter has it at the same position.
fn correlation(param: &Param) -> u32 {
    match param {
        Param::Add(request) | Param::Delete(request) | Param::SetPrimary(request) => request.correlation,
        Param::Failed(failed) => failed.correlation,
        Param::Succeeded(correlation) => *correlation,
        Param::Unknown { value, .. } => value.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)),
    }
}
