//! The replies of an endpoint to INIT and COOKIE ECHO, with and without an existing association.

use std::sync::Arc;

use bytes::Bytes;
use rand_core::Rng;

use super::Endpoint;
use crate::Config;
use crate::association::{Association, Part};
use crate::extension::Authentication;
use crate::handshake::cookie::{BadCookie, Cookie};
use crate::handshake::{self, Collision, LEAST_WINDOW, Peer};
use crate::shutdown::State;
use crate::wire::chunk::{Abort, CookieEcho, Init, OperationError};
use crate::wire::{Address, Cause, Chunk, Packet, Param};
use crate::{Purpose, Time, Tsn};

/// The tags in an INIT ACK and its cookie.
#[derive(Copy, Clone)]
struct Tags {
    /// Ours, for the association that the cookie makes.
    own: u32,
    /// The Tie-Tags: those (ours, the peer's) of an existing association, or zeros.
    ties: (u32, u32),
}

impl Endpoint {
    /// Answers an INIT without keeping any state.
    //= rfc9260#section-5.1
    pub(super) fn init(&mut self, packet: &Packet, now: Time) {
        let Some(Chunk::Init(init)) = packet.chunks.first() else { return };
        if packet.tag != 0 || packet.chunks.len() != 1 || init.tag == 0 {
            return;
        }
        let peer = match Peer::of(init, packet.from, &self.config) {
            Ok(peer) => peer,
            Err(cause) => return self.refuse(packet, init.tag, vec![cause]),
        };
        let offered =
            peer.offer.is_consistent(&self.config).and_then(|()| peer.offer.acceptable(&self.config));
        if let Err(cause) = offered {
            return self.refuse(packet, init.tag, vec![cause]);
        }
        let existing = peer.addresses.iter().find_map(|a| self.by_peer.get(&(*a, packet.ports.source)));
        match existing.copied() {
            None if !self.listening => {
                self.rebuff(packet, init.tag, Chunk::Abort(Abort { reflected: false, causes: vec![] }));
            }
            None if self.is_full() => self.refuse(packet, init.tag, vec![Cause::OutOfResource]),
            None => {
                let tag = self.fresh_tag();
                self.answer_init(packet, back(packet), init, peer, Tags { own: tag, ties: (0, 0) }, now);
            }
            Some(index) => self.init_again(index, packet, init, peer, now),
        }
    }

    /// An INIT for an existing association may not add addresses, unless we still wait for the INIT ACK that could
    /// have named them.
    //= rfc9260#section-5.2.1
    //= rfc9260#section-5.2.2
    fn init_again(&mut self, index: usize, packet: &Packet, init: &Init, peer: Peer, now: Time) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        let ties = (association.local_tag, association.peer_tag);
        match association.state() {
            //= rfc9260#section-9.2
            State::ShutdownAckSent => {
                association.repeat_shutdown_ack(packet.to, packet.from);
                self.wake(index);
            }
            State::CookieWait => {
                // Only addresses that the user has named get the reply.
                let named = peer.addresses.iter().find_map(|address| association.named_pair(*address));
                let pair = named.filter(|pair| pair.1 != packet.from).unwrap_or(back(packet));
                self.answer_init(packet, pair, init, peer, Tags { own: ties.0, ties }, now);
            }
            state => {
                let new = |address: &&Address| !association.knows(**address);
                let new: Vec<Address> = peer.addresses.iter().filter(new).copied().collect();
                // The INIT that has begun the association came again, after the peer has deleted addresses in it. The
                // ABORT would have the tag of the association, and end it.
                //= rfc5061#section-5.3
                if !new.is_empty() && init.tag == ties.1 && !state.setting_up() {
                    return;
                }
                if !new.is_empty() {
                    let list = handshake::address_list(&new);
                    return self.refuse(packet, init.tag, vec![Cause::RestartWithNewAddresses(list)]);
                }
                let own = if state.setting_up() { ties.0 } else { self.fresh_tag() };
                self.answer_init(packet, back(packet), init, peer, Tags { own, ties }, now);
            }
        }
    }

    /// The tag of an expected INIT ACK that announces too small a window: the packet is refused, and set-up
    /// continues.
    //= rfc9260#section-3.3.3
    pub(super) fn too_small(&self, index: usize, packet: &Packet) -> Option<u32> {
        let Some(Chunk::InitAck(ack)) = packet.chunks.first() else { return None };
        let awaited = self.associations.in_place(index).is_some_and(|a| a.state() == State::CookieWait);
        (awaited && ack.tag != 0 && ack.a_rwnd < LEAST_WINDOW).then_some(ack.tag)
    }

    /// Refuses an INIT or INIT ACK.
    pub(super) fn refuse(&mut self, packet: &Packet, tag: u32, causes: Vec<Cause>) {
        let abort = Abort { reflected: false, causes };
        self.answer(packet, tag, Chunk::Abort(abort), Purpose::Abort);
    }

    /// Whether the limit of associations is reached.
    fn is_full(&self) -> bool {
        self.by_tag.len() >= self.config.max_associations as usize
    }

    /// Answers an INIT between this local address and this address of the peer.
    fn answer_init(
        &mut self,
        packet: &Packet,
        pair: (Address, Address),
        init: &Init,
        peer: Peer,
        tags: Tags,
        now: Time,
    ) {
        let existing = self.by_tag.get(&tags.ties.0).and_then(|i| self.associations.in_place(*i));
        // The answer repeats what the existing association has announced.
        let config = existing.map_or(&self.config, |association| association.shared_config());
        let config = Arc::clone(config);
        let (local_tsn, random) = match existing.filter(|association| association.local_tag == tags.own) {
            Some(association) => (association.local_tsn, association.random()),
            None => {
                let tsn = config.first_tsn.unwrap_or_else(|| self.tsns.draw(Rng::next_u32));
                (Tsn(tsn), self.random())
            }
        };
        let peers = match &peer.addresses[..] {
            [_] => peer.addresses,
            _ => Peer::listed(init, packet.from, &config),
        };
        let cookie = Cookie {
            created: now,
            life: self.config.cookie_life + peer.preserve.min(self.config.cookie_life),
            local_tag: tags.own,
            peer_tag: peer.tag,
            local_tsn,
            peer_tsn: peer.tsn,
            peer_buffer: peer.buffer,
            streams: handshake::streams(init, &config),
            ties: tags.ties,
            local: pair.0,
            peer_port: packet.ports.source,
            answered: peers.iter().position(|peer| *peer == pair.1).unwrap_or(0) as u8,
            peers,
            agreement: peer.offer.agree(&config, random),
        };
        let signed = self.secrets.sign(&cookie, now, self.config.cookie_life);
        let ack = init_ack(&config, &cookie, signed, &random, peer.unrecognized);
        self.answer_between(pair, packet, peer.tag, Chunk::InitAck(Box::new(ack)), Purpose::Setup);
    }

    /// Our part of the keys of a new association, if authentication is offered.
    fn random(&mut self) -> [u8; 32] {
        let mut random = [0; 32];
        if self.config.extensions.authentication {
            self.chance.fill_bytes(&mut random);
        }
        random
    }

    /// A cookie came back. It creates an association, or the existing association restarts or collides.
    //= rfc9260#section-5.1.5
    //= rfc9260#section-5.2.4
    pub(super) fn cookie_echo(&mut self, packet: Box<Packet>, echo: &CookieEcho, now: Time) {
        let (cookie, over) = match self.secrets.open(&echo.cookie, now) {
            Ok(cookie) => (cookie, None),
            Err(BadCookie::Forged) => return,
            Err(BadCookie::Stale(cookie, over)) => (*cookie, Some(over)),
        };
        if cookie.peer_port != packet.ports.source || cookie.local_tag != packet.tag {
            return;
        }
        if let Some(over) = over.filter(|_| self.with_tags(&cookie).is_none()) {
            return self.stale(&packet, &cookie, over);
        }
        match self.owner_of(&cookie) {
            Some(index) => self.collide(index, packet, &cookie, now),
            None if !admits(&self.config, None, &cookie, &packet) => {}
            // A cookie makes one association. After that association has ended, the same cookie is a replay.
            None if self.is_used(&cookie) => {
                let abort = Chunk::Abort(Abort { reflected: false, causes: vec![] });
                self.rebuff(&packet, cookie.peer_tag, abort);
            }
            None if !self.listening => {}
            //= rfc9260#section-5.1
            None if self.is_full() => self.refuse(&packet, cookie.peer_tag, vec![Cause::OutOfResource]),
            None => self.accept(packet, &cookie, now),
        }
    }

    /// The association that a cookie concerns: the one with both of its tags, otherwise the one with an address in it.
    /// The former need not have any of these addresses: the peer may have another UDP port by now, or may have deleted
    /// them.
    //= rfc9260#section-5.2.4
    //= rfc6951#section-5.4
    fn owner_of(&self, cookie: &Cookie) -> Option<usize> {
        let with = |address: &Address| self.by_peer.get(&(*address, cookie.peer_port)).copied();
        self.with_tags(cookie).or_else(|| cookie.peers.iter().find_map(with))
    }

    /// The association with both tags of a cookie. Then the cookie's age does not matter.
    fn with_tags(&self, cookie: &Cookie) -> Option<usize> {
        let index = *self.by_tag.get(&cookie.local_tag)?;
        let association = self.associations.in_place(index)?;
        (association.peer_tag == cookie.peer_tag).then_some(index)
    }

    /// Whether an association has or had the tag in this cookie.
    fn is_used(&self, cookie: &Cookie) -> bool {
        self.by_tag.contains_key(&cookie.local_tag) || self.secrets.remembers(cookie.local_tag)
    }

    fn accept(&mut self, packet: Box<Packet>, cookie: &Cookie, now: Time) {
        let (local, source) = (packet.to, packet.from);
        let Ok(association) = Association::accept(self.begin(now), cookie, local, source) else { return };
        let index = self.add(association).place();
        self.deliver_behind_cookie(index, packet, now);
    }

    fn collide(&mut self, index: usize, packet: Box<Packet>, cookie: &Cookie, now: Time) {
        let Some(association) = self.associations.in_place_mut(index) else { return };
        // During set-up, both ends may have begun at once. Then the peer has made its keys from our INIT ACK and its
        // own INIT, as the cookie tells, and not from its INIT ACK, which it has forgotten.
        let keys = association.authentication().filter(|_| !association.state().setting_up());
        if !admits(&self.config, keys, cookie, &packet) {
            return;
        }
        let (local, source) = (packet.to, packet.from);
        match association.collision(cookie) {
            Collision::Restart if association.state() == State::ShutdownAckSent => {
                association.repeat_shutdown_ack(local, source);
                self.wake(index);
                let tag = cookie.peer_tag;
                let error = OperationError { causes: vec![Cause::CookieWhileShutdown] };
                return self.answer(&packet, tag, Chunk::Error(error), Purpose::Error);
            }
            Collision::Restart => {
                self.unlink(index);
                let asked =
                    self.config.addresses.iter().find(|own| own.address.ip == cookie.local.ip).copied();
                if let Some(association) = self.associations.in_place_mut(index) {
                    asked.into_iter().for_each(|own| association.take_back(own));
                    association.restart(cookie, &self.policies, local, source, now);
                }
            }
            Collision::Simultaneous => association.adopt(cookie, local, source, now),
            Collision::Duplicate => association.cookie_again(cookie, local, source, now),
            Collision::Foreign => return,
        }
        self.link(index);
        self.deliver_behind_cookie(index, packet, now);
    }

    /// The COOKIE ECHO of this packet was admitted and dealt with: what stands behind it is processed. What admitted
    /// the COOKIE ECHO holds for that too, whatever keys the association has now.
    //= rfc4895#section-6.3
    fn deliver_behind_cookie(&mut self, index: usize, mut packet: Box<Packet>, now: Time) {
        let authentic = matches!(packet.chunks.first(), Some(Chunk::Auth(_)));
        let echo = packet.chunks.iter().position(|chunk| matches!(chunk, Chunk::CookieEcho(_)));
        packet.chunks.drain(..echo.map_or(0, |at| at + 1));
        self.deliver_first(index, packet, Part::BehindCookie { authentic }, now);
    }

    /// The cookie was ours, but too old.
    //= rfc9260#section-5.2.6
    fn stale(&mut self, packet: &Packet, cookie: &Cookie, over: crate::Duration) {
        let micros = u32::try_from(over.as_nanos().div_ceil(1000)).unwrap_or(u32::MAX);
        let error = OperationError { causes: vec![Cause::StaleCookie(micros)] };
        self.answer(packet, cookie.peer_tag, Chunk::Error(error), Purpose::Error);
    }
}

/// Where a reply to this packet goes: from where it arrived, to where it came from.
fn back(packet: &Packet) -> (Address, Address) {
    (packet.to, packet.from)
}

/// The INIT ACK with this cookie, which is its last parameter, because it is the longest.
//= rfc9260#section-3.3.3
fn init_ack(
    config: &Config,
    cookie: &Cookie,
    signed: Bytes,
    random: &[u8; 32],
    unrecognized: Vec<Bytes>,
) -> Init {
    let mut ack = handshake::init(cookie.local_tag, cookie.local_tsn, config, None, random);
    // No more streams are offered than the peer accepts.
    ack.outbound = cookie.streams.0;
    // The peer knows the source of the INIT ACK, and has to know the address of the association too.
    if let [only] = &config.addresses[..]
        && only.address.ip != cookie.local.ip
    {
        ack.params.insert(0, Param::of_address(only.address.ip));
    }
    ack.params.extend(unrecognized.into_iter().map(Param::Unrecognized));
    ack.params.push(Param::Cookie(signed));
    ack
}

/// Whether a COOKIE ECHO is authentic enough: by the keys of the existing association, otherwise by the keys of its
/// cookie.
//= rfc4895#section-6.3
fn admits(config: &Config, existing: Option<&Authentication>, cookie: &Cookie, packet: &Packet) -> bool {
    if let Some(existing) = existing {
        return existing.admits_cookie(packet);
    }
    let alone = matches!(packet.chunks.first(), Some(Chunk::CookieEcho(_)));
    Authentication::new(config, &cookie.agreement).map_or(alone, |new| new.admits_cookie(packet))
}
