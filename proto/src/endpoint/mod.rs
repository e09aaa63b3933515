//! An endpoint: the calls of its user, its associations, and their timers.

mod agenda;
mod changes;
mod incoming;
mod parameters;
mod places;
mod poll;
mod ready;
mod refusal;
mod setup;
#[cfg(test)]
mod tests;

pub use parameters::Status;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

use agenda::Agenda;
use places::Associations;
use ready::Ready;

use crate::association::{Association, AssociationParts, new_tag};
use crate::chance::{Chance, SeldomChance};
use crate::digest::Digest;
use crate::handshake::cookie::Secrets;
use crate::notes::Noting;
use crate::policy::PolicyError;
use crate::wire::{Address, Chunk, Packet, Spares};
use crate::{
    AssociationId, Config, ConfigError, Delivery, Discarded, Extensions, Incoming, Message, PathId,
    PathState, PathView, Policies, Purpose, Refused, SendError, Statistics, Time,
};

/// The name of the random stream for first TSNs.
const TSNS: u64 = 1;

/// One SCTP port at one or more addresses.
///
/// A clone has the same state: with the same inputs, it has the same future.
#[derive(Clone)]
pub struct Endpoint {
    config: Arc<Config>,
    policies: Policies,
    chance: Chance,
    /// Draws the first TSNs for cookies. They are independent of the tags, so an attacker who learns a tag does not
    /// learn the TSN.
    tsns: SeldomChance,
    secrets: Secrets,
    listening: bool,
    notes: Noting,
    associations: Associations,
    /// Associations by our verification tag.
    by_tag: BTreeMap<u32, usize>,
    /// The association of the last packet, while its tag is known.
    last: Option<usize>,
    /// Associations by peer address and port.
    by_peer: BTreeMap<(Address, u16), usize>,
    /// Associations that have an output.
    ready: Ready,
    /// Local addresses whose sockets are full.
    full: Vec<FullSocket>,
    agenda: Agenda,
    /// Replies that belong to no association.
    answers: VecDeque<(Box<Packet>, Purpose)>,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (addresses, port) = (&self.config.addresses, self.config.port);
        let associations = self.by_tag.len();
        f.debug_struct("Endpoint")
            .field("addresses", addresses)
            .field("port", &port)
            .field("associations", &associations)
            .finish_non_exhaustive()
    }
}

/// A local address whose socket is full.
#[derive(Clone, Debug)]
struct FullSocket {
    local: Address,
    /// The associations that know it: they have been polled since, and may be waiting.
    told: Vec<usize>,
}

/// Why an endpoint could not be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NewError {
    /// A parameter cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A policy could not be created.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

/// Checks the configuration with these policies.
fn checked(config: Config, policies: &Policies) -> Result<Config, NewError> {
    config.check()?;
    policies.new_data_route(&config.new_data, &config)?;
    for route in [&config.fast, &config.timeout] {
        policies.route(route, &config)?;
    }
    policies.window(&config.window, &config).map(drop)?;
    Ok(config)
}

impl Endpoint {
    /// A new endpoint. All its random streams are derived from `seed`.
    pub fn new(config: Config, policies: Policies, seed: [u8; 32]) -> Result<Self, NewError> {
        let config = checked(config, &policies)?;
        let mut chance = Chance::from_seed(seed);
        let secrets = Secrets::new(&mut chance);
        let mut tsns = ChaCha8Rng::from_seed(seed);
        tsns.set_stream(TSNS);
        Ok(Endpoint {
            config: Arc::new(config),
            policies,
            chance,
            tsns: tsns.into(),
            secrets,
            listening: true,
            notes: Noting::Off,
            associations: Associations::default(),
            by_tag: BTreeMap::new(),
            last: None,
            by_peer: BTreeMap::new(),
            ready: Ready::default(),
            full: Vec::new(),
            agenda: Agenda::default(),
            answers: VecDeque::new(),
        })
    }

    /// Switches notes on or off.
    pub fn set_notes(&mut self, on: bool) {
        self.set_noting(if on { Noting::Polled } else { Noting::Off });
    }

    /// Chooses the notes that are made, and how they are reported. A change drops those that were not reported.
    pub fn set_noting(&mut self, noting: Noting) {
        self.notes = noting;
        self.associations.each().for_each(|a| a.switch_notes(noting));
    }

    /// Accepts (the default) or refuses associations that peers initiate.
    pub fn set_listening(&mut self, on: bool) {
        self.listening = on;
    }

    /// Handles an input from the network.
    pub fn handle(&mut self, now: Time, incoming: Incoming) {
        self.run_timers(now);
        match incoming {
            Incoming::Packet(packet) => self.packet(packet, now),
            other => self.notice(other, now),
        }
    }

    /// As `handle`, for an input that is no packet. Packets are much more frequent.
    #[cold]
    fn notice(&mut self, incoming: Incoming, now: Time) {
        match incoming {
            Incoming::Packet(packet) => self.packet(packet, now),
            Incoming::Writable(local, true) => self.socket_has_room(local),
            Incoming::Writable(local, false) => self.socket_is_full(local),
            Incoming::Up(local, up) => self.for_all(|a| a.set_up(local, up, now)),
            Incoming::Unreachable(remote, quoted) => self.unreachable(remote, quoted, now),
            Incoming::TooBig(remote, mtu) => self.for_all(|a| a.too_big(remote, mtu, now)),
        }
    }

    /// Calls `act` for every association that has not ended.
    fn for_all(&mut self, mut act: impl FnMut(&mut Association)) {
        let all: Vec<usize> = self.by_tag.values().copied().collect();
        for index in all {
            if let Some(association) = self.associations.in_place_mut(index) {
                act(association);
                self.wake(index);
            }
        }
    }

    /// An association learns of a full socket only when it is polled and has something to send. A full socket costs
    /// the others nothing.
    fn socket_is_full(&mut self, local: Address) {
        if self.full.iter().all(|full| full.local != local) {
            self.full.push(FullSocket { local, told: Vec::new() });
        }
    }

    fn socket_has_room(&mut self, local: Address) {
        let Some(place) = self.full.iter().position(|full| full.local == local) else { return };
        for index in self.full.swap_remove(place).told {
            if let Some(association) = self.associations.in_place_mut(index) {
                association.set_writable(local, true);
                self.wake(index);
            }
        }
    }

    /// Begins an association with the peer that has these addresses. The first address is tried first.
    pub fn connect(&mut self, now: Time, port: u16, to: &[Address]) -> Result<AssociationId, Refused> {
        if let Some(refused) = refusal::refusal(&self.config, port, to) {
            return Err(refused);
        }
        if to.iter().any(|address| self.by_peer.contains_key(&(*address, port))) {
            return Err(Refused::Exists);
        }
        let tag = self.fresh_tag();
        let made = Association::connect(self.begin(now), tag, port, to);
        let association = made.expect("the policies were checked").ok_or(Refused::NoPath)?;
        Ok(self.add(association))
    }

    /// Gives a message to send. A message that is larger than the send buffer is accepted only when the send buffer
    /// is empty.
    #[inline]
    pub fn send(&mut self, now: Time, id: AssociationId, message: Message) -> Result<(), SendError> {
        self.run_timers(now);
        let Some(association) = self.get_mut(id) else { return Err(SendError::Closed(message)) };
        let taken = association.send(message, now);
        // If the send buffer is full and all of it was sent, the user waits for the send buffer. This time is
        // counted.
        if taken.is_ok() || association.sender.queue.is_empty() {
            self.wake(id.place());
        }
        taken
    }

    /// Gives up to `count` equal messages to send, as `count` calls of [`Endpoint::send`] would. Returns how many were
    /// accepted; why the next one was not, `send` tells. They share memory while they wait, unless an extension numbers
    /// each. `constant`: their payload once more, if that is a constant of the program; such messages are sent a little
    /// faster. It is ignored if it is not the memory of the payload.
    pub fn send_copies(
        &mut self,
        now: Time,
        id: AssociationId,
        message: &Message,
        constant: Option<&'static [u8]>,
        count: u64,
    ) -> u64 {
        let constant = constant.filter(|constant| std::ptr::eq(*constant, &message.payload[..]));
        self.run_timers(now);
        let Some(association) = self.get_mut(id) else { return 0 };
        let taken = association.send_copies(message, constant, count, now);
        if taken > 0 || association.sender.queue.is_empty() {
            self.wake(id.place());
        }
        taken
    }

    /// The next message, if there is one. Reading opens the receive window. Messages that have arrived can also be
    /// read after the association has ended.
    #[inline]
    pub fn read(&mut self, now: Time, id: AssociationId) -> Option<Delivery> {
        self.run_timers(now);
        let delivery = self.get_mut(id)?.read();
        self.wake(id.place());
        delivery
    }

    /// Reads the next message as [`Endpoint::read`] does, and lets `look` see it. That is cheaper for a user who does
    /// not keep it.
    #[inline]
    pub fn read_with<T>(
        &mut self,
        now: Time,
        id: AssociationId,
        look: impl FnOnce(&Delivery) -> T,
    ) -> Option<T> {
        self.run_timers(now);
        let seen = self.get_mut(id)?.read_with(look);
        self.wake(id.place());
        seen
    }

    /// The user of this association reads everything at once and only counts it, also after a restart of the peer. A
    /// message that could be read alone is not kept for [`Endpoint::read`], but counted for
    /// [`Endpoint::take_discarded`], which must be called after every packet.
    pub fn discard(&mut self, id: AssociationId) {
        if let Some(association) = self.get_mut(id) {
            association.receiver.discard();
        }
    }

    /// What was discarded since the last call. It counts as read now.
    #[inline]
    pub fn take_discarded(&mut self, id: AssociationId) -> Option<Discarded> {
        self.get_mut(id)?.take_discarded()
    }

    /// Whether there is something to read now.
    pub fn is_readable(&self, id: AssociationId) -> bool {
        self.get(id).is_some_and(Association::is_readable)
    }

    /// Ends the association gracefully, after all data is acknowledged. During set-up, the association comes up
    /// first.
    pub fn shutdown(&mut self, now: Time, id: AssociationId) {
        self.run_timers(now);
        if let Some(association) = self.get_mut(id) {
            association.shutdown();
            self.wake(id.place());
        }
    }

    /// Ends the association at once and sends the peer the user's reason, which may be empty. What does not fit a
    /// packet is cut off.
    pub fn abort(&mut self, now: Time, id: AssociationId, reason: Bytes) {
        self.run_timers(now);
        if let Some(association) = self.get_mut(id) {
            association.abort(reason, now);
            self.wake(id.place());
        }
    }

    /// Forgets an association that has ended, with its unread messages. An association that has not ended is aborted
    /// first.
    pub fn forget(&mut self, now: Time, id: AssociationId) {
        self.abort(now, id, Bytes::new());
        let Some(association) = self.get_mut(id) else { return };
        while association.next_news(now).is_some() {}
        let mut last = Vec::new();
        while let Some((packet, reason)) = association.take_packet(now) {
            last.push((packet, reason.purpose));
        }
        self.answers.extend(last);
        self.unlink(id.place());
        self.associations.free(id);
    }

    /// Requests a heartbeat on a path now (RFC 9260 §11.1.10). False if there is no such path.
    pub fn heartbeat(&mut self, now: Time, id: AssociationId, path: PathId) -> bool {
        self.run_timers(now);
        let known = self.get_mut(id).is_some_and(|a| a.request_heartbeat(path));
        self.wake(id.place());
        known
    }

    /// Makes this path the primary. False if there is no such path.
    pub fn set_primary(&mut self, now: Time, id: AssociationId, path: PathId) -> bool {
        self.run_timers(now);
        let known = self.get_mut(id).is_some_and(|a| a.set_primary(path));
        self.wake(id.place());
        known
    }

    /// Whether this packet of the endpoint may leave with a checksum of zero (RFC 9653): its peer accepts such
    /// packets, and the packet does not belong to set-up. The lower layer must detect errors, as DTLS does.
    //= rfc9653#section-5.2
    pub fn omits_checksum(&self, packet: &Packet) -> bool {
        let owner = self.by_peer.get(&(packet.to, packet.ports.destination));
        let owner = owner.and_then(|index| self.associations.in_place(*index));
        let agreed = owner.is_some_and(|a| a.peer_tag == packet.tag && a.agreed().zero_checksum);
        agreed && !packet.chunks.iter().any(always_needs_checksum)
    }

    /// Whether an arriving packet with a checksum of zero is accepted (RFC 9653): it belongs to an association whose
    /// peer was told so, and does not begin one. An INIT ACK may also have none, because our INIT offered it.
    //= rfc9653#section-5.3
    pub fn accepts_without_checksum(&self, packet: &Packet) -> bool {
        let owner = self.by_tag.get(&packet.tag).and_then(|index| self.associations.in_place(*index));
        let told = owner.is_some_and(|association| association.config.extensions.zero_checksum);
        told && !packet.chunks.iter().any(always_needs_checksum)
    }

    /// The extensions that both ends of an association use.
    pub fn extensions(&self, id: AssociationId) -> Extensions {
        self.get(id).map(Association::agreed).unwrap_or_default()
    }

    /// The paths of an association; empty if there is no such association.
    pub fn paths(&self, id: AssociationId) -> &[PathView] {
        self.get(id).map_or(&[], |a| a.paths.views())
    }

    /// The statistics of the association up to `now`; all zero once it is forgotten.
    pub fn statistics(&self, now: Time, id: AssociationId) -> Statistics {
        self.get(id).map(|a| a.statistics(now)).unwrap_or_default()
    }

    /// Bytes of user data that were given to an association and have not been sent yet.
    pub fn unsent(&self, id: AssociationId) -> u64 {
        self.get(id).map_or(0, |a| a.unsent())
    }

    /// The path that keeps a buffer full now, the peer's or the send buffer, and for how long. New data waits, and
    /// the lowest TSN not acknowledged was last sent on this path. Earlier blocking is in [`PathView::blocks`].
    pub fn blocking(&self, now: Time, id: AssociationId) -> Option<(PathId, crate::Duration)> {
        self.get(id)?.blocking(now)
    }

    /// Exchanges memory between the ends of associations in one program, so that an end that sends more packets than it
    /// receives needs no new memory for them: the endpoint gives that of a packet which it has handled to `memory`, or
    /// takes one from there. Call it after [`Endpoint::handle`]; it changes nothing else.
    #[inline]
    pub fn exchange_memory(&mut self, memory: &mut Spares) {
        if let Some(association) = self.last.and_then(|index| self.associations.in_place_mut(index)) {
            association.exchange(memory);
        }
    }

    /// Gives the memory of packets that were handled to `memory`, or takes some from there, so that the endpoint has
    /// enough to answer the next packet. Call it after [`Endpoint::poll`] has returned `Wait`; it changes nothing else.
    #[inline]
    pub fn level_memory(&mut self, memory: &mut Spares) {
        if let Some(association) = self.last.and_then(|index| self.associations.in_place_mut(index)) {
            association.level(memory);
        }
    }

    /// A hash of the whole state: associations, policies and random streams included. Endpoints in the same state
    /// have the same hash on every machine; so do an endpoint and its clone. The whole state is written out for it,
    /// which takes time in proportion to the amount of state.
    pub fn state_hash(&self) -> u64 {
        let mut digest = Digest::default();
        // Every field is named here, so that none can be forgotten. The makers of policies never change.
        let Endpoint {
            config,
            policies: _,
            chance,
            tsns,
            secrets,
            listening,
            notes,
            associations,
            by_tag,
            last,
            by_peer,
            ready,
            full,
            agenda,
            answers,
        } = self;
        let written = write!(
            digest,
            "{config:?} {chance:?} {tsns:?} {secrets:?} {listening} {notes:?} {associations:?} {by_tag:?} {last:?} {by_peer:?} \
             {ready:?} {full:?} {agenda:?} {answers:?}"
        );
        written.expect("a digest takes everything");
        digest.value()
    }

    fn get(&self, id: AssociationId) -> Option<&Association> {
        self.associations.of(id)
    }

    fn get_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.associations.of_mut(id)
    }

    /// A tag that no association uses, and no cookie that is still valid.
    fn fresh_tag(&mut self) -> u32 {
        loop {
            let tag = new_tag(&mut self.chance);
            if !self.by_tag.contains_key(&tag) && !self.secrets.remembers(tag) {
                return tag;
            }
        }
    }

    fn begin(&mut self, now: Time) -> AssociationParts<'_> {
        let mut seed = [0; 32];
        self.chance.fill_bytes(&mut seed);
        AssociationParts {
            id: self.associations.next_id(),
            now,
            config: &self.config,
            policies: &self.policies,
            chance: Chance::from_seed(seed),
            notes: self.notes,
        }
    }

    fn add(&mut self, association: Association) -> AssociationId {
        let id = association.id();
        let index = id.place();
        self.associations.insert(association);
        self.link(index);
        self.wake(index);
        id
    }

    /// Registers an association under its tag and its peer's addresses.
    fn link(&mut self, index: usize) {
        let Some(association) = self.associations.in_place(index) else { return };
        self.by_tag.insert(association.local_tag, index);
        for path in association.paths.views().iter().filter(|path| path.state != PathState::Removed) {
            // An address that another association already has stays with that association: a peer cannot take it over
            // by naming it.
            self.by_peer.entry((path.remote, association.peer_port)).or_insert(index);
        }
    }

    #[inline(never)]
    fn unlink(&mut self, index: usize) {
        let Some(association) = self.associations.in_place(index) else { return };
        self.by_tag.remove(&association.local_tag);
        self.secrets.remember(association.local_tag);
        self.last = None;
        let port = association.peer_port;
        for path in association.paths.views() {
            if self.by_peer.get(&(path.remote, port)) == Some(&index) {
                self.by_peer.remove(&(path.remote, port));
            }
        }
    }

    /// Registers the new port of an association's peer in place of `before`.
    fn moved(&mut self, index: usize, before: Address) {
        let Some(association) = self.associations.in_place(index) else { return };
        let key = (before, association.peer_port);
        if self.by_peer.get(&key) == Some(&index) {
            self.by_peer.remove(&key);
        }
        self.link(index);
    }
}

/// Whether a chunk needs a checksum in any case, because its receiver may not know the agreement to omit it.
fn always_needs_checksum(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Init(_) | Chunk::CookieEcho(_))
}
