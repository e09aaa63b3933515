//! The one packet builder: control, SACK and data for one path.

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};

use super::{Association, AwaitedReply, HeartbeatBurst, Resend};
use crate::extension::Congestion;
use crate::handshake;
use crate::output::{Limit, Purpose, Reason};
use crate::path::{PathId, Timer, Wanted};
use crate::policy::Why;
use crate::rules::ImmediateSack;
use crate::shutdown::State;
use crate::wire::chunk::{Bare, CookieEcho, Heartbeat, NrSack, Sack, Shutdown};
use crate::wire::{Chunk, Ecn, HEADER, Packet, Ports, Spares};
use crate::{Time, Tsn};

type Built = (Box<Packet>, Reason);

/// The most packets whose memory an association keeps: enough for the packets that one SACK releases.
const MAX_SPARES: usize = 4;
/// The most packets whose memory waits between the ends that exchange it.
const MAX_EXCHANGED: usize = 64;
/// Bytes of a SHUTDOWN. A SHUTDOWN ACK has fewer.
const SHUTDOWN: usize = Shutdown { cumulative: Tsn(0) }.size();

impl Association {
    /// The next packet, if there is one to send now.
    #[inline(always)]
    pub(super) fn next_packet(&mut self, now: Time) -> Option<Built> {
        if self.extended.is_some()
            && let Some(asconf) = self.next_asconf(now)
        {
            return Some(asconf);
        }
        let control = self.has_control().then(|| self.next_of_control(now)).flatten();
        let next = control.or_else(|| self.next_load(now));
        if next.is_none() && self.paths.is_asking() {
            return self.next_measurement(now);
        }
        next
    }

    /// A heartbeat that follows the packets of an expired T3-rtx.
    #[cold]
    fn next_measurement(&mut self, now: Time) -> Option<Built> {
        self.paths.data_gone();
        self.next_heartbeat(now)
    }

    /// Whether anything but DATA and SACK may be due.
    pub(super) fn has_control(&self) -> bool {
        !self.control.is_empty() || self.resend.is_some() || self.paths.is_asking()
    }

    // This is rare compared with data, so it is kept out of the data path.
    #[cold]
    fn next_of_control(&mut self, now: Time) -> Option<Built> {
        let next = self
            .next_control(now)
            .or_else(|| self.next_resend(now))
            .or_else(|| self.next_heartbeat(now))
            .or_else(|| self.next_probe(now));
        if next.is_none() {
            self.paths.all_asked();
        }
        next
    }

    pub(crate) fn packet(
        &mut self,
        path: PathId,
        chunks: SmallVec<[Chunk; 2]>,
        purpose: Purpose,
        limit: Limit,
    ) -> Built {
        let mut packet = self.empty(path);
        if matches!(chunks.first(), Some(Chunk::Init(_))) {
            packet.tag = 0;
        }
        packet.chunks = chunks;
        (packet, Reason { purpose, path: Some(path), limit, oversize: false })
    }

    /// An empty packet, in the memory of an arrived packet if there is one.
    fn empty(&mut self, path: PathId) -> Box<Packet> {
        let mut packet = self.addressed(path);
        packet.clear();
        packet
    }

    /// As `empty`, but the chunks of the arrived packet are still in it.
    #[inline(always)]
    fn addressed(&mut self, path: PathId) -> Box<Packet> {
        let mut packet = self.take_spare().unwrap_or_default();
        let view = self.paths.view(path);
        (packet.from, packet.to) = (view.local, view.remote);
        packet.ports = Ports { source: self.config.port, destination: self.peer_port };
        (packet.tag, packet.ecn) = (self.peer_tag, Ecn::NotEct);
        packet
    }

    /// Keeps a processed packet, so that the next packet needs no new memory.
    #[inline(always)]
    pub(crate) fn keep(&mut self, mut packet: Box<Packet>) {
        if self.spares.len() < MAX_SPARES {
            packet.free_excess();
            self.spares.push(packet);
        }
    }

    /// The packet that [`keep`](Self::keep) got last, if nothing has used it since.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> Option<Box<Packet>> {
        self.spares.pop()
    }

    /// Gives the memory of a packet to other associations if this one has nothing to send, and else takes it.
    #[inline]
    pub(crate) fn exchange(&mut self, memory: &mut Spares) {
        if !self.sender.is_empty() {
            if self.spares.len() < MAX_SPARES
                && let Some(packet) = memory.pop()
            {
                self.spares.push(packet);
            }
        } else if self.spares.len() > 1
            && memory.len() < MAX_EXCHANGED
            && let Some(packet) = self.spares.pop()
        {
            memory.push(packet);
        }
    }

    /// Keeps the memory of all but one of `MAX_SPARES` packets, because the next packet that arrives brings one. The
    /// others go to `memory`, or come from there.
    #[inline]
    pub(crate) fn level(&mut self, memory: &mut Spares) {
        while self.spares.len() >= MAX_SPARES
            && let Some(mut packet) = self.spares.pop()
        {
            packet.chunks.clear();
            memory.push(packet);
        }
        while self.spares.len() + 1 < MAX_SPARES
            && let Some(packet) = memory.pop()
        {
            self.spares.push(packet);
        }
    }

    /// Control chunks that are sent once. Those for one path share a packet, as far as they fit.
    fn next_control(&mut self, now: Time) -> Option<Built> {
        let (path, chunk, purpose) = self.control.pop_front()?;
        let budget = self.control_room(path);
        let mut size = chunk.padded_size();
        let mut packet = self.empty(path);
        let mut chunks = std::mem::take(&mut packet.chunks);
        chunks.push(chunk);
        let last =
            |chunks: &[Chunk]| matches!(chunks.last(), Some(Chunk::Abort(_) | Chunk::ShutdownComplete(_)));
        while let Some((next, chunk, _)) = self.control.front() {
            size += chunk.padded_size();
            if *next != path || size > budget || last(&chunks) || matches!(chunk, Chunk::ShutdownComplete(_))
            {
                break;
            }
            if let Some((_, chunk, _)) = self.control.pop_front() {
                chunks.push(chunk);
            }
        }
        if self.receiver.schedule.now && !last(&chunks) {
            self.add_sack(path, budget, &mut chunks);
        }
        if !last(&chunks) {
            self.append_shutdown(path, budget, &mut chunks, now);
        }
        packet.chunks = chunks;
        let oversize = self.is_oversize(&packet, path);
        Some((packet, Reason { purpose, path: Some(path), limit: Limit::Control, oversize }))
    }

    /// Appends a due SHUTDOWN or SHUTDOWN ACK after control chunks, if both have at most `budget` bytes and go to the
    /// same path: both may answer one packet.
    //= rfc9260#section-12.4
    fn append_shutdown(&mut self, path: PathId, budget: usize, chunks: &mut SmallVec<[Chunk; 2]>, now: Time) {
        let ends =
            |resend: &Resend| matches!(resend.what, AwaitedReply::Shutdown | AwaitedReply::ShutdownAck);
        let here = self.resend.as_ref().is_some_and(|resend| resend.path == path && ends(resend));
        let used: usize = chunks.iter().map(Chunk::padded_size).sum();
        if here
            && used + SHUTDOWN <= budget
            && let Some((_, chunk, _)) = self.take_resend(now)
        {
            chunks.push(chunk);
        }
    }

    /// Whether a packet is larger than the path MTU, so that IP must be allowed to fragment it: a chunk from before the
    /// path MTU fell, or one whose size the peer has chosen, as that of a cookie. AUTH, which comes last, may have no
    /// reserve yet.
    fn is_oversize(&self, packet: &Packet, path: PathId) -> bool {
        let auth = self.authentication().map_or(0, |keys| keys.overhead_of(&packet.chunks));
        let unreserved = auth.saturating_sub(self.paths.overhead()) as usize;
        packet.size() + unreserved > HEADER + self.paths.view(path).pmdcs as usize
    }

    /// INIT, COOKIE ECHO, SHUTDOWN or SHUTDOWN ACK, for the first time or again.
    fn next_resend(&mut self, now: Time) -> Option<Built> {
        let (path, chunk, purpose) = self.take_resend(now)?;
        let with = self.resend.as_ref().and_then(|resend| resend.with.clone());
        let mut chunks: SmallVec<[Chunk; 2]> = SmallVec::new();
        chunks.push(chunk);
        chunks.extend(with);
        if self.receiver.schedule.now && self.state == State::ShutdownSent {
            let used: usize = chunks.iter().map(Chunk::padded_size).sum();
            let sack = self.take_sack_within(self.sack_limit(path).saturating_sub(used));
            chunks.push(sack);
        }
        let (packet, reason) = self.packet(path, chunks, purpose, Limit::Control);
        let oversize = self.is_oversize(&packet, path);
        Some((packet, Reason { oversize, ..reason }))
    }

    /// The control chunk that is repeated until it is answered, if it is due; with its path. Its timer starts.
    fn take_resend(&mut self, now: Time) -> Option<(PathId, Chunk, Purpose)> {
        let resend = self.resend.as_mut().filter(|r| r.due)?;
        resend.due = false;
        resend.sent = now;
        let path = resend.path;
        let longest = self.config.max_init_timeout.filter(|_| self.state.setting_up());
        let rto = self.paths.view(path).rto;
        resend.timer = now + longest.map_or(rto, |longest| rto.min(longest));
        let (chunk, purpose) = match &resend.what {
            AwaitedReply::Init => {
                let init = handshake::init(
                    self.local_tag,
                    self.local_tsn,
                    &self.config,
                    self.preserve,
                    &self.random(),
                );
                (Chunk::Init(Box::new(init)), Purpose::Setup)
            }
            AwaitedReply::CookieEcho(cookie) => {
                (Chunk::CookieEcho(CookieEcho { cookie: Bytes::clone(cookie) }), Purpose::Setup)
            }
            AwaitedReply::Shutdown => {
                //= rfc9260#section-9.2
                let longest = self.config.rto_max;
                let guard = self.config.shutdown_guard.map(|times| now + longest.saturating_mul(times));
                self.guard = self.guard.min(guard.unwrap_or(Time::NEVER));
                (Chunk::Shutdown(Shutdown { cumulative: self.receiver.cumulative() }), Purpose::Shutdown)
            }
            AwaitedReply::ShutdownAck => (Chunk::ShutdownAck(Bare), Purpose::Shutdown),
        };
        Some((path, chunk, purpose))
    }

    //= rfc9260#section-8.3
    fn next_heartbeat(&mut self, now: Time) -> Option<Built> {
        if !self.state.heartbeats() {
            return None;
        }
        if let Some(built) = self.next_heartbeat_elsewhere(now) {
            return Some(built);
        }
        let asks = |id: &PathId| self.paths.get(*id).health.wanted == Wanted::Now && self.paths.sends(*id);
        // The path that has waited longest comes first, so that paths that are probed again at once do not delay the
        // others.
        let id = self.paths.ids().filter(asks).min_by_key(|id| self.paths.get(*id).health.deferred)?;
        let (view, path) = self.paths.both(id);
        path.health.wanted = Wanted::No;
        if self.heartbeats.at != now {
            self.heartbeats = HeartbeatBurst { at: now, sent: 0 };
        }
        if self.heartbeats.sent >= self.config.heartbeat_max_burst {
            // It is not lost: it has its turn an RTO later.
            path.health.deferred = path.health.deferred.min(now);
            path.health.used = now;
            path.health.period = view.rto;
            path.timers.set(Timer::Heartbeat, now + view.rto);
            return self.next_heartbeat(now);
        }
        self.heartbeats.sent += 1;
        view.heartbeats += 1;
        (path.health.deferred, path.health.counted) = (Time::NEVER, false);
        path.heartbeat_sent(view, now, &self.config, &mut self.chance);
        path.timers.set(Timer::Answer, now + view.rto);
        let chunk = Chunk::Heartbeat(Heartbeat::new(path.health.information(view.local, now)));
        self.ask_elsewhere(id);
        Some(self.packet(id, smallvec![chunk], Purpose::Heartbeat, Limit::Control))
    }

    /// A heartbeat from a local address other than that of its path. Only an answer has an effect.
    fn next_heartbeat_elsewhere(&mut self, now: Time) -> Option<Built> {
        let from = |id: PathId| self.paths.get(id).health.elsewhere;
        let asks =
            |id: PathId| from(id).filter(|local| self.paths.leaves_from(*local)).map(|local| (id, local));
        let (id, local) = self.paths.ids().find_map(asks)?;
        let health = &mut self.paths.get_mut(id).health;
        (health.elsewhere, health.last_elsewhere) = (None, Some(local));
        let chunk = Chunk::Heartbeat(Heartbeat::new(health.information(local, now)));
        let mut built = self.packet(id, smallvec![chunk], Purpose::Heartbeat, Limit::Control);
        built.0.from = local;
        Some(built)
    }

    /// A probe of a path's bandwidth or MTU.
    fn next_probe(&mut self, now: Time) -> Option<Built> {
        if !self.state.heartbeats() {
            return None;
        }
        let pair = self.paths.next_of_pair(now, &self.config);
        let (id, chunks) = pair.or_else(|| self.paths.next_probe(now, &self.config))?;
        Some(self.packet(id, chunks.into(), Purpose::Heartbeat, Limit::Control))
    }

    /// The next packet and its path, if a train goes alone and one may leave now. What may be due besides data was
    /// checked when it began.
    #[inline(never)]
    pub(super) fn next_of_train(&mut self, now: Time) -> Option<(Box<Packet>, PathId)> {
        let budget = self.paths.smallest_pmdcs();
        let (sender, mut around, _) = self.sending(now);
        let path = sender.next_alone(budget, &mut around)?;
        let mut packet = self.addressed(path);
        let (sender, mut around, chance) = self.sending(now);
        sender.fill_alone(path, budget, &mut packet, &mut around, chance);
        self.wish_for_sack(&mut packet);
        Some((packet, path))
    }

    /// Whether a SACK is due, and nothing else can be: the usual packet of an end that only receives.
    #[inline(always)]
    pub(super) fn owes_sack_alone(&self) -> bool {
        self.receiver.schedule.now
            && self.sender.is_empty()
            && self.state.receives_data()
            && self.extended.is_none()
            && !self.has_control()
    }

    /// A SACK that is due, data, or both in one packet.
    //= rfc9260#section-6.1
    #[inline(always)]
    fn next_load(&mut self, now: Time) -> Option<Built> {
        let due = self.receiver.schedule.now && self.state.receives_data();
        match self.state.sends_data() && !(self.extended.is_none() && self.sender.is_empty()) {
            true => self.next_data(due, now),
            false => due.then(|| self.built_sack()),
        }
    }

    /// As `next_load`, for an end that may have data to send. `due`: whether a SACK is.
    #[inline(never)]
    fn next_data(&mut self, due: bool, now: Time) -> Option<Built> {
        let owed = self.receiver.schedule.now || self.receiver.schedule.deadline != Time::NEVER;
        let sack_size = if owed { self.sack_size() as u32 } else { 0 };
        // A SACK that is due does not wait for data that leaves no room for it.
        let reserve = if due { sack_size } else { 0 };
        let limit = self.paths.smallest_pmdcs().saturating_sub(reserve);
        let forward = if self.extended.is_some() { self.sender.forward_size(limit) } else { 0 };
        if forward > 0
            && let Some(before) = self.before_forward()
        {
            let limit = limit.saturating_sub(before.padded_size() as u32);
            if self.sender.forward_size(limit) > 0 {
                return Some(self.forward_alone(limit, Some(before), now));
            }
        }
        let budget = limit - forward;
        let (sender, mut around, _) = self.sending(now);
        let Some(load) = sender.next_load(budget, &mut around) else {
            return match forward {
                0 => due.then(|| self.built_sack()),
                _ => Some(self.forward_alone(limit, None, now)),
            };
        };
        let alone = !(owed || self.extended.is_some() || !self.state.sends_data() || self.has_control());
        let mut packet = self.addressed(load.path);
        let (sender, mut around, chance) = self.sending(now);
        sender.fill(&load, (budget, alone), &mut packet, &mut around, chance);
        let oversize = load.why != Why::New && self.is_oversize(&packet, load.path);
        self.wish_for_sack(&mut packet);
        if forward > 0 {
            self.bundle_forward(load.path, limit, &mut packet, now);
        }
        if self.extended.is_some() {
            self.bundle_answer(load.path, limit, &mut packet);
        }
        if owed {
            self.bundle_sack(load.path, sack_size, &mut packet);
        }
        let (purpose, path, limit) = (Purpose::Data(load.why), Some(load.path), load.limit);
        Some((packet, Reason { purpose, path, limit, oversize }))
    }

    /// The last DATA before SHUTDOWN asks for an immediate SACK, because nothing else is waited for.
    //= rfc9260#section-6.1
    #[inline(always)]
    fn wish_for_sack(&self, packet: &mut Packet) {
        if self.state == State::ShutdownPending
            && self.sender.queue.is_empty()
            && self.config.rules.immediate_sack == ImmediateSack::BeforeShutdown
        {
            match packet.chunks.last_mut() {
                Some(Chunk::Data(data)) => data.immediate = true,
                Some(Chunk::IData(data)) => data.immediate = true,
                _ => {}
            }
        }
    }

    /// Puts the owed SACK at the front, if it fits and goes to the same path.
    //= rfc9260#section-6.1
    fn bundle_sack(&mut self, path: PathId, size: u32, packet: &mut Packet) {
        let used: usize = packet.chunks.iter().map(Chunk::padded_size).sum();
        let fits = used + size as usize <= self.paths.view(path).pmdcs as usize;
        if fits && self.paths.view(path).remote == self.paths.view(self.receiver.from).remote {
            let sack = self.take_sack(path);
            packet.chunks.insert(0, sack);
        }
    }

    /// Adds a due SACK to control chunks, if all have at most `budget` bytes and go to the same path. COOKIE ACK and ERROR
    /// must not wait for it. An ERROR follows it, as the standards before RFC 9260 required.
    //= rfc9260#section-6.10
    //= rfc4960#section-6.5
    fn add_sack(&mut self, path: PathId, budget: usize, chunks: &mut SmallVec<[Chunk; 2]>) {
        let used: usize = chunks.iter().map(Chunk::padded_size).sum();
        let fits = used + self.sack_size() <= budget;
        let same = self.paths.view(path).remote == self.paths.view(self.receiver.from).remote;
        if fits && same && self.state.receives_data() {
            let sack = self.take_sack(path);
            let error = chunks.iter().position(|chunk| matches!(chunk, Chunk::Error(_)));
            chunks.insert(error.unwrap_or(chunks.len()), sack);
        }
    }

    fn sack_limit(&self, path: PathId) -> usize {
        self.paths.view(path).pmdcs as usize - self.echo_size()
    }

    /// The size of the owed SACK and of the chunks that go with it.
    fn sack_size(&self) -> usize {
        self.receiver.sack_size(self.sack_limit(self.receiver.from)) + self.echo_size()
    }

    fn echo_size(&self) -> usize {
        let congestion = self.extended.as_ref().and_then(|extended| extended.congestion.as_ref());
        congestion.map_or(0, Congestion::echo_size)
    }

    // Most SACKs are plain, and leave alone: see `sack_alone`.
    #[inline(never)]
    fn take_sack(&mut self, path: PathId) -> Chunk {
        self.take_sack_within(self.sack_limit(path))
    }

    /// The SACK with as many Gap Ack Blocks as fit.
    #[inline(always)]
    fn take_sack_within(&mut self, limit: usize) -> Chunk {
        let sack = self.receiver.sack(limit, &self.config);
        match self.receiver.keeps() {
            false => Chunk::Sack(sack),
            true => {
                let Sack { flags, cumulative, a_rwnd, gaps: kept, duplicates } = sack;
                let gaps = SmallVec::new();
                Chunk::NrSack(Box::new(NrSack { flags, cumulative, a_rwnd, gaps, kept, duplicates }))
            }
        }
    }

    fn built_sack(&mut self) -> Built {
        let (packet, path) = self.sack_alone();
        (packet, Reason::of_sack(path))
    }

    /// A SACK in a packet of its own, sent to the source of the data. Returns the packet and its path.
    //= rfc9260#section-6.4
    #[inline(never)]
    pub(super) fn sack_alone(&mut self) -> (Box<Packet>, PathId) {
        let path = self.open_path(self.receiver.from);
        let mut packet = self.addressed(path);
        // The usual SACK has no lists and is built in the packet. Any other is built elsewhere and copied, which takes
        // longer.
        match self.receiver.sack_is_plain() && !self.receiver.keeps() {
            true => packet.hold(Chunk::Sack(self.receiver.plain_sack(&self.config))),
            false => packet.hold(self.take_sack(path)),
        }
        (packet, path)
    }
}
