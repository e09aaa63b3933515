//! Establishes an association: by a connect call, by a returned cookie, or again by a restart.

use std::sync::Arc;

use bytes::Bytes;
use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::detour::Detour;
use super::local::{local_for, same_family};
use super::{Announced, Association, AwaitedReply, HeartbeatBurst, Resend, Windows};
use crate::chance::Chance;
use crate::control::window::{MakeWindow, Start};
use crate::extension::{Agreement, Authentication, Extended, Extensions, Timestamps};
use crate::handshake::cookie::Cookie;
use crate::handshake::{Collision, Peer};
use crate::notes::{Notes, Noting};
use crate::output::{Event, LostReason, Purpose, Statistics};
use crate::path::estimate::Needs;
use crate::path::{PathId, PathState, Paths, Wanted};
use crate::policy::PolicyError;
use crate::receive::Receiver;
use crate::rules::Confirmation;
use crate::send::Sender;
use crate::shutdown::State;
use crate::wire::chunk::{Abort, Bare, CookieEcho, Init, OperationError, Timestamp};
use crate::wire::{Address, Cause, Chunk};
use crate::{AssociationId, Config, Duration, Pairs, Policies, Time, Tsn};

/// The type of the parameter that an INIT ACK must have.
const STATE_COOKIE: u16 = 7;

/// The common initial state of every association.
pub(crate) struct AssociationParts<'a> {
    pub(crate) id: AssociationId,
    pub(crate) now: Time,
    pub(crate) config: &'a Arc<Config>,
    pub(crate) policies: &'a Policies,
    pub(crate) chance: Chance,
    pub(crate) notes: Noting,
}

/// What the windows of this maker want to know of their paths.
fn needs_of(window: &MakeWindow) -> Needs {
    let tried = window(Start { unit: 1, window: 1, ssthresh: 1 });
    if tried.wants_estimates() { Needs::OF_WINDOW } else { Needs::NONE }
}

impl Association {
    fn new(begin: AssociationParts<'_>, tag: u32, tsn: Tsn, peer_port: u16) -> Result<Self, PolicyError> {
        let AssociationParts { id, config, policies, mut chance, notes, .. } = begin;
        let sender = Sender::new(tsn, config, policies, &mut chance)?;
        let mut paths = Paths::new(config);
        let window = policies.window(&config.window, config)?;
        paths.estimate(sender.needs().and(needs_of(&window)));
        Ok(Association {
            id,
            state: State::CookieWait,
            local_tag: tag,
            peer_tag: 0,
            local_tsn: tsn,
            peer_port,
            named: Vec::new(),
            streams: (config.outbound_streams, config.inbound_streams),
            window: Windows(window),
            paths,
            sender,
            receiver: Receiver::new(Tsn(0), config),
            detour: Detour::default(),
            control: Default::default(),
            replies: None,
            resend: None,
            heartbeats: HeartbeatBurst { at: Time::ZERO, sent: 0 },
            events: Default::default(),
            notes: Notes::new(id, notes),
            statistics: Statistics::default(),
            errors: 0,
            preserve: None,
            cookie_taken: None,
            guard: Time::NEVER,
            leaving: false,
            announced: Announced::No,
            spares: Vec::new(),
            extended: Extended::new(config, &mut chance),
            config: Arc::clone(config),
            chance,
        })
    }

    /// Begins with a connect call: INIT goes to the first address. `None` if no pair can be a path.
    //= rfc9260#section-5.1
    pub(crate) fn connect(
        begin: AssociationParts<'_>,
        tag: u32,
        peer_port: u16,
        to: &[Address],
    ) -> Result<Option<Self>, PolicyError> {
        let now = begin.now;
        let tsn = first_tsn(begin.config, &begin.chance, tag);
        let mut association = Association::new(begin, tag, tsn, peer_port)?;
        association.add_paths(to, None, now);
        for id in association.paths.ids() {
            association.paths.get_mut(id).health.named = true;
        }
        if association.paths.views().is_empty() {
            return Ok(None);
        }
        association.await_answer(AwaitedReply::Init, PathId(0));
        Ok(Some(association))
    }

    /// Begins with a cookie that came back from `source` to `local`.
    //= rfc9260#section-5.1.5
    pub(crate) fn accept(
        begin: AssociationParts<'_>,
        cookie: &Cookie,
        local: Address,
        source: Address,
    ) -> Result<Self, PolicyError> {
        let now = begin.now;
        let mut association = Association::new(begin, cookie.local_tag, cookie.local_tsn, cookie.peer_port)?;
        association.peer_tag = cookie.peer_tag;
        association.cookie_taken = Some(cookie.created);
        association.take_peer(cookie.peer_tsn, cookie.peer_buffer, cookie.streams, &cookie.agreement);
        association.add_paths(&cookie.peers, cookie.pair(), now);
        association.establish(association.answered(cookie), Event::Up, now);
        association.reply_cookie(local, source);
        Ok(association)
    }

    /// The path on which the cookie was sent. Only its peer address is known to belong to the peer, because the
    /// source address of the returned cookie may be forged.
    //= rfc9260#section-5.4
    fn answered(&self, cookie: &Cookie) -> PathId {
        cookie.pair().map_or(self.paths.primary(), |(local, peer)| self.path_of(local, peer))
    }

    /// Answers a COOKIE ECHO.
    fn reply_cookie(&mut self, local: Address, source: Address) {
        let path = self.open_path(self.path_of(local, source));
        self.replies = None;
        self.send_control(path, Chunk::CookieAck(Bare), Purpose::Setup);
    }

    /// SHUTDOWN ACK again, to a peer that begins anew because it has forgotten this association: to where its INIT or
    /// COOKIE ECHO came from. T2-shutdown goes on. Otherwise, whoever forges INITs could keep the association for ever,
    /// and a path that has failed would be used for as long as the peer asks.
    //= rfc9260#section-9.2
    //= rfc9260#section-6.4
    pub(crate) fn repeat_shutdown_ack(&mut self, local: Address, source: Address) {
        let heard = self.paths.of_pair(local, source).or_else(|| self.paths.to(source));
        let path = heard.unwrap_or(self.path_of_end());
        self.replies = None;
        self.reply(path, Chunk::ShutdownAck(Bare), Purpose::Shutdown);
    }

    /// The peer has restarted: everything restarts with the contents of its cookie.
    //= rfc9260#section-5.2.4.1
    pub(crate) fn restart(
        &mut self,
        cookie: &Cookie,
        policies: &Policies,
        local: Address,
        source: Address,
        now: Time,
    ) {
        let Ok(mut sender) = Sender::new(cookie.local_tsn, &self.config, policies, &mut self.chance) else {
            return;
        };
        // A user whose message was refused still waits for room, and now there is some. What could be read is gone.
        sender.refused = self.sender.refused;
        self.announced = Announced::No;
        self.fail_all();
        self.fail_requests();
        self.local_tag = cookie.local_tag;
        self.peer_tag = cookie.peer_tag;
        self.cookie_taken = Some(cookie.created);
        self.local_tsn = cookie.local_tsn;
        self.sender = sender;
        self.take_peer(cookie.peer_tsn, cookie.peer_buffer, cookie.streams, &cookie.agreement);
        let begun_anew = self.paths.begun_anew(&self.config);
        let before = std::mem::replace(&mut self.paths, begun_anew);
        // These name paths, and a shutdown, of before the restart.
        (self.detour, self.guard) = (Detour::default(), Time::NEVER);
        self.named.clear();
        self.add_paths(&cookie.peers, cookie.pair(), now);
        self.keep_path_parameters(&before);
        self.control.clear();
        self.establish(self.answered(cookie), Event::Restart, now);
        self.announce_readable();
        self.reply_cookie(local, source);
    }

    /// The meaning of a cookie, by its tags. One with our tag and another tag of the peer (B) was made while we were
    /// setting up. If the association is up since, the peer has begun anew. Its TSNs have nothing to do with those of
    /// the association, so this is a restart: with the new tag alone, nothing would ever be acknowledged. But if the
    /// association has accepted a cookie that is as new, this one was recorded, or its tag was replaced.
    //= rfc9260#section-5.2.4
    pub(crate) fn collision(&self, cookie: &Cookie) -> Collision {
        let newer = self.cookie_taken.is_none_or(|taken| cookie.created > taken);
        match (cookie.local_tag == self.local_tag, cookie.peer_tag == self.peer_tag) {
            (true, true) => Collision::Duplicate,
            (true, false) if self.state.setting_up() => Collision::Simultaneous,
            (true, false) if newer => Collision::Restart,
            (false, false) if cookie.ties == (self.local_tag, self.peer_tag) => Collision::Restart,
            _ => Collision::Foreign,
        }
    }

    /// Both ends have begun at once, and the cookie holds another tag of the peer (§5.2.4 B).
    pub(crate) fn adopt(&mut self, cookie: &Cookie, local: Address, source: Address, now: Time) {
        self.peer_tag = cookie.peer_tag;
        self.cookie_taken = Some(cookie.created);
        self.take_peer(cookie.peer_tsn, cookie.peer_buffer, cookie.streams, &cookie.agreement);
        self.add_paths(&cookie.peers, cookie.pair(), now);
        self.establish(self.answered(cookie), Event::Up, now);
        self.reply_cookie(local, source);
    }

    /// The cookie of this association came, perhaps again. If COOKIE ACK is awaited, this replaces it.
    pub(crate) fn cookie_again(&mut self, cookie: &Cookie, local: Address, source: Address, now: Time) {
        if self.state.setting_up() {
            self.establish(self.answered(cookie), Event::Up, now);
        }
        self.reply_cookie(local, source);
    }

    /// INIT ACK arrived.
    //= rfc9260#section-5.1
    pub(super) fn init_ack(&mut self, init: &Init, local: Address, source: Address, now: Time) {
        if self.state != State::CookieWait {
            return;
        }
        let peer = Peer::of(init, source, &self.config);
        self.peer_tag = init.tag;
        let peer = match peer {
            Ok(peer) => peer,
            Err(cause) if init.tag == 0 => return self.refuse_reflected(cause, now),
            Err(cause) => return self.violated(cause, now),
        };
        let Peer { tsn, buffer, streams, cookie: Some(cookie), unrecognized, offer, .. } = peer else {
            return self.violated(Cause::MissingParameter(vec![STATE_COOKIE]), now);
        };
        if let Err(cause) = offer.is_consistent(&self.config) {
            return self.violated(cause, now);
        }
        if let Err(cause) = offer.acceptable(&self.config) {
            self.send_abort(vec![cause]);
            return self.close(Event::Lost(LostReason::NotAuthenticated), now);
        }
        let agreement = offer.agree(&self.config, self.random());
        self.take_peer(tsn, buffer, streams, &agreement);
        self.add_paths(&Peer::listed(init, source, &self.config), Some((local, source)), now);
        self.state = State::CookieEchoed;
        self.await_answer(AwaitedReply::CookieEcho(cookie), self.echo_path(local, source));
        self.report_with_cookie(unrecognized);
    }

    /// The destination of the COOKIE ECHO: the source of the INIT ACK if the user has named that address, otherwise
    /// the destination of INIT. It is not yet known whether another address belongs to the peer.
    //= rfc9260#section-5.4
    fn echo_path(&self, local: Address, source: Address) -> PathId {
        let heard = self.path_of(local, source);
        match &self.resend {
            Some(resend) if !self.paths.get(heard).health.named => resend.path,
            _ => heard,
        }
    }

    /// The peer has told no tag, so the ABORT carries ours.
    //= rfc9260#section-3.3.3
    fn refuse_reflected(&mut self, cause: Cause, now: Time) {
        self.peer_tag = self.local_tag;
        let abort = Chunk::Abort(Abort { reflected: true, causes: vec![cause] });
        let path = self.resend.as_ref().map_or(self.paths.primary(), |resend| resend.path);
        self.send_control(path, abort, Purpose::Abort);
        self.close(Event::Lost(LostReason::ProtocolViolation), now);
    }

    /// Reports unrecognized parameters of an INIT ACK after the COOKIE ECHO, in the same packet if there is room.
    //= rfc9260#section-3.2.2
    fn report_with_cookie(&mut self, unrecognized: Vec<Bytes>) {
        if unrecognized.is_empty() {
            return;
        }
        let Some(Resend { what: AwaitedReply::CookieEcho(cookie), path, .. }) = &self.resend else { return };
        let echo = Chunk::CookieEcho(CookieEcho { cookie: cookie.clone() });
        let causes = unrecognized.into_iter().map(Cause::UnrecognizedParameters).collect();
        let chunks = [echo, Chunk::Error(OperationError { causes })];
        let auth = self.authentication().map_or(0, |keys| keys.overhead_of(&chunks)) as usize;
        let size = chunks.iter().map(Chunk::padded_size).sum::<usize>() + auth;
        let fits = size <= self.paths.view(*path).pmdcs as usize;
        if let Some(resend) = self.resend.as_mut().filter(|_| fits) {
            let [_, error] = chunks;
            resend.with = Some(error);
        }
    }

    /// The cookie was too old when it came back. Tries once more with a cookie that lives longer by at most the round
    /// trip and one second, because long-lived cookies can be replayed.
    //= rfc9260#section-5.2.6
    pub(super) fn begin_again(&mut self, staleness: Duration, now: Time) {
        let round_trip = self.resend.as_ref().map_or(Duration::ZERO, |resend| now.since(resend.sent));
        self.preserve = Some((staleness * 2).min(round_trip + Duration::from_secs(1)));
        // The tag is the same, so all that INIT says must be: the peer may know the random number from an INIT ACK, and
        // keep it.
        //= rfc9260#section-5.2.1
        self.extended = match &self.extended {
            Some(extended) => Extended::offered(&self.config, extended.random),
            None => Extended::new(&self.config, &mut self.chance),
        };
        self.state = State::CookieWait;
        self.await_answer(AwaitedReply::Init, self.paths.primary());
    }

    /// COOKIE ACK arrived.
    pub(super) fn cookie_ack(&mut self, now: Time) {
        if self.state == State::CookieEchoed {
            let echoed = self.resend.as_ref().map_or(self.paths.primary(), |resend| resend.path);
            self.establish(echoed, Event::Up, now);
            self.confirm_first();
        }
    }

    fn take_peer(&mut self, tsn: Tsn, buffer: u32, streams: (u16, u16), agreement: &Agreement) {
        self.receiver = self.receiver.begun_anew(tsn, &self.config);
        self.sender.set_peer_buffer(buffer);
        self.streams = streams;
        // The user gave these messages before the number of streams was known.
        //= rfc9260#section-5.1.1
        let refused = self.sender.queue.take_from(streams.0);
        self.events.extend(refused.into_iter().map(|message| Event::SendFailed { message, sent: false }));
        self.extended = Extended::agreed(agreement, self.local_tsn, tsn, &self.config);
        let Extensions { interleaving, reconfiguration, .. } = agreement.extensions;
        self.sender.queue.agree(interleaving, reconfiguration);
        if interleaving {
            self.receiver.interleave();
        }
        if agreement.extensions.nr_sack {
            self.receiver.keep_all();
        }
        if !agreement.extensions.partial_reliability {
            self.return_abandoned();
            self.sender.queue.ledger = None;
            self.sender.outstanding.remember_marks(false);
        }
    }

    fn await_answer(&mut self, what: AwaitedReply, path: PathId) {
        self.resend = Some(Resend::new(what, path));
    }

    /// The association is up: the path of the handshake is confirmed, and the other paths are probed.
    //= rfc9260#section-5.4
    fn establish(&mut self, path: PathId, event: Event, now: Time) {
        self.resend = None;
        self.state = State::Established;
        self.reserve_for_extensions();
        self.errors = 0;
        if self.paths.view(path).state == PathState::Unconfirmed {
            self.paths.set_state(path, PathState::Active);
            self.paths.search_mtu(path, &self.config);
        }
        for id in self.paths.ids() {
            let unconfirmed = self.paths.view(id).state == PathState::Unconfirmed;
            let (view, rest) = self.paths.both(id);
            rest.health.wanted = Wanted::No;
            rest.health.used = now;
            rest.schedule_heartbeat(view, &self.config, &mut self.chance);
            if unconfirmed {
                self.paths.ask(id);
            }
            self.ask_elsewhere(id);
        }
        self.sender.in_use = self.open_path(self.paths.primary());
        self.sender.open();
        self.events.push_back(event);
        if std::mem::take(&mut self.leaving) {
            self.shutdown();
        }
    }

    /// Packets with data have room for what extensions put into them.
    fn reserve_for_extensions(&mut self) {
        let overhead = self.authentication().map_or(0, Authentication::overhead);
        let stamped = self.agreed().timestamps;
        let stamps = if stamped { Timestamp::SIZE as u32 } else { 0 };
        self.paths.set_overhead(overhead + stamps);
        self.paths.set_probe_overhead(self.authentication().map_or(0, Authentication::overhead_of_probes));
        self.paths.set_stamps(stamps, &self.config, &self.window);
        if let Some(kept) = self.extended.as_mut().and_then(|extended| extended.timestamps.as_mut()) {
            let mut own = self.chance.clone();
            own.set_stream(u64::from(self.local_tag) << 32);
            *kept = Timestamps::new(own.next_u32());
        }
    }

    /// By ns-2's rule, the initiator probes all paths and holds its data until they have answered.
    fn confirm_first(&mut self) {
        if self.config.rules.confirmation != Confirmation::AllPathsFirst {
            return;
        }
        self.sender.close_until_confirmed();
        for id in self.paths.ids() {
            self.paths.set_state(id, PathState::Unconfirmed);
            self.paths.ask(id);
        }
    }

    /// The path to which packets of this pair belong.
    pub(super) fn path_of(&self, local: Address, source: Address) -> PathId {
        self.paths.of_pair(local, source).or_else(|| self.paths.to(source)).unwrap_or(self.paths.primary())
    }

    /// Adds the missing paths to these peer addresses; `known` is the pair of an arrived packet.
    pub(crate) fn add_paths(&mut self, peers: &[Address], known: Option<(Address, Address)>, now: Time) {
        let new = peers.iter().filter(|peer| !self.named.contains(peer)).copied().collect::<Vec<_>>();
        self.named.extend(new);
        let config = Arc::clone(&self.config);
        // With one path per peer address, an existing path keeps the local address of its route.
        if let Some(pair) = known
            && (config.pairs != Pairs::OnePerPeer || self.paths.to(pair.1).is_none())
        {
            self.add_path(pair, now);
        }
        match &config.pairs {
            Pairs::OnePerPeer => {
                for (position, peer) in peers.iter().enumerate() {
                    if self.paths.to(*peer).is_none()
                        && let Some(local) = local_for(&config, position, *peer)
                    {
                        self.add_path((local, *peer), now);
                    }
                }
            }
            Pairs::All => {
                for peer in peers {
                    for local in same_family(&config, *peer) {
                        self.add_path((local, *peer), now);
                    }
                }
            }
            Pairs::Listed(pairs) => {
                for pair in pairs.iter().filter(|pair| peers.contains(&pair.1)) {
                    self.add_path(*pair, now);
                }
            }
        }
    }

    fn add_path(&mut self, pair: (Address, Address), now: Time) {
        if self.paths.of_pair(pair.0, pair.1).is_none()
            && let Some(place) = self.paths.place_for(pair)
        {
            self.paths.add(place, pair, now, &self.config, &self.window, &mut self.chance);
        }
    }
}

/// The first TSN of an association, unless the configuration fixes it. It is drawn from a separate random stream, so
/// that an attacker who learns the tag does not learn the TSN.
fn first_tsn(config: &Config, chance: &ChaCha8Rng, tag: u32) -> Tsn {
    Tsn(config.first_tsn.unwrap_or_else(|| {
        let mut own = chance.clone();
        own.set_stream(tag.into());
        own.next_u32()
    }))
}

/// A tag: random, not zero.
pub(crate) fn new_tag(chance: &mut ChaCha8Rng) -> u32 {
    loop {
        let tag = chance.next_u32();
        if tag != 0 {
            return tag;
        }
    }
}
