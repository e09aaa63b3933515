//! The sending half of an association. A SACK, a timeout or a call grants rights to send; each poll chooses one packet.

mod blocked;
mod buffers;
mod order;
pub(crate) mod outstanding;
mod partial;
pub(crate) mod queue;
mod recovery;
mod rights;
mod routes;
mod sack;
mod spurious;
mod streams;
mod timeout;
mod train;

pub(crate) use sack::{Answer, revived};
pub(crate) use timeout::TimedOut;

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;
use smallvec::SmallVec;

use crate::mechanisms::{Bundling, FillPackets, WithoutRoom};
use crate::notes::Notes;
use crate::output::{Blocked, Limit, NoteKind, Statistics};
use crate::path::estimate::Needs;
use crate::path::{PathId, Paths};
use crate::policy::{Ask, Choice, PolicyError, Why};
use crate::rules::{NewData, ResendPath};
use crate::send::outstanding::Outstanding;
use crate::send::queue::SendQueue;
use crate::wire::{Chunk, Packet};
use crate::{Config, Policies, Ssn, Time, Tsn};
use blocked::{BlockedClock, in_the_way};
use buffers::Buffers;
use recovery::Recoveries;
use rights::{Ready, Rights};
use routes::{Routes, unless_dormant};

/// A packet with less room than this is not filled with a fragment of a message.
const SMALLEST_CUT: u32 = 64;

/// The sending half of an association.
// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    pub(crate) queue: SendQueue,
    pub(crate) outstanding: Outstanding,
    /// The path of the last packet, if the next new chunks follow it there.
    train: Option<Train>,
    /// The path that new data took last or would take.
    pub(crate) in_use: PathId,
    /// Whether the user has more to send than the send buffer has room for.
    pub(crate) refused: bool,
    /// Whether a window probe is in flight.
    probing: bool,
    /// Whether a SACK has arrived since the last window probe.
    heard_since_probe: bool,
    /// If all retransmissions of one event take one path (rule `resend_path`): the path of the current event, once it is chosen.
    round: Option<PathId>,
    /// The receive buffer that the peer advertised last, in bytes.
    a_rwnd: u64,
    /// The number of events that have allowed data to leave.
    events: u64,
    /// When a closed window is probed; [`Time::NEVER`] if no probe is needed.
    pub(crate) probe_timer: Time,
    /// A random number, drawn again after each packet, so that ties are broken in the same way however often a route
    /// is asked.
    tie: u64,
    rights: Rights,
    blocked: BlockedClock,
    buffers: Buffers,
    recoveries: Recoveries,
    routes: Routes,
    /// Whether the next marked chunk is tried when the path of one has no room.
    looks_further: bool,
    /// Whether a packet carries only marked chunks whose route names the packet's path.
    same_path_only: bool,
    /// Whether all retransmissions that one event releases take one path.
    one_path: bool,
}

/// The load of the next packet; [`Sender::fill`] puts it into the packet.
pub(crate) struct PacketPlan {
    pub(crate) path: PathId,
    pub(crate) why: Why,
    pub(crate) limit: Limit,
    /// The question to the route: about the first marked chunk, or about new data.
    ask: Ask,
}

/// A train under way.
#[derive(Copy, Clone, Debug)]
struct Train {
    path: PathId,
    /// Whether new data waits for this path when it has no room.
    waits: bool,
    /// Whether its packets hold nothing but its chunks, and nothing else can be due.
    alone: bool,
    /// The peer's window.
    window: u64,
    /// What may leave now without another look, if it goes alone.
    ready: Ready,
}

/// What a train decides about the next packet.
enum NextOfTrain {
    /// It carries this.
    Load(TrainLoad),
    /// Nothing more leaves now.
    Nothing,
    /// No train decides it.
    Undecided,
}

/// The load of the next packet of a train.
struct TrainLoad {
    path: PathId,
    /// The stream and the size of its first chunk.
    next: (u16, u32),
    /// The peer's window.
    window: u64,
}

/// The part of the association that the choice of a packet needs.
pub(crate) struct SendContext<'a> {
    pub(crate) now: Time,
    pub(crate) config: &'a Config,
    pub(crate) paths: &'a mut Paths,
    pub(crate) notes: &'a mut Notes,
    pub(crate) statistics: &'a mut Statistics,
}

impl Sender {
    pub(crate) fn new(
        first: Tsn,
        config: &Config,
        policies: &Policies,
        chance: &mut ChaCha8Rng,
    ) -> Result<Self, PolicyError> {
        let mut outstanding = Outstanding::new(first);
        outstanding.remember_marks(config.extensions.partial_reliability);
        Ok(Sender {
            queue: SendQueue::new(
                Ssn(config.first_ssn),
                config.extensions.partial_reliability.then(Box::default),
            ),
            outstanding,
            routes: Routes::new(config, policies)?,
            rights: Rights::new(config),
            a_rwnd: 0,
            recoveries: Recoveries::new(&config.rules, &config.mechanisms),
            looks_further: config.mechanisms.without_room == WithoutRoom::NextChunk,
            same_path_only: config.mechanisms.bundling == Bundling::SamePath,
            one_path: config.rules.resend_path == ResendPath::EachEvent,
            round: None,
            events: 0,
            probe_timer: Time::NEVER,
            probing: false,
            heard_since_probe: false,
            blocked: BlockedClock::default(),
            buffers: Buffers::new(config),
            refused: false,
            in_use: PathId(0),
            train: None,
            tie: chance.next_u64(),
        })
    }

    /// What the routes want to know of every path.
    pub(crate) fn needs(&self) -> Needs {
        self.routes.needs()
    }

    /// The peer's receive buffer as announced in INIT or INIT ACK.
    pub(crate) fn set_peer_buffer(&mut self, bytes: u32) {
        self.a_rwnd = u64::from(bytes);
        self.buffers.peer = self.a_rwnd;
    }

    /// TSNs restart with this one, and SSNs with 0. Nothing is outstanding.
    pub(crate) fn restart(&mut self, next: Tsn) {
        self.outstanding.restart(next);
        self.queue.reset(&[]);
        self.recoveries.restart();
    }

    /// The peer's window: the advertised window minus the bytes in flight.
    //= rfc9260#section-6.2.1
    pub(crate) fn peer_window(&self, paths: &Paths) -> u64 {
        self.a_rwnd.saturating_sub(paths.counted_all() - self.outstanding.copied())
    }

    pub(crate) fn in_recovery(&self) -> bool {
        self.recoveries.any()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.outstanding.is_empty()
    }

    /// New data may leave from now on: the required paths are confirmed.
    pub(crate) fn open(&mut self) {
        self.rights.open();
    }

    /// New data waits until all paths are confirmed.
    pub(crate) fn close_until_confirmed(&mut self) {
        self.rights.close();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.rights.is_open()
    }

    /// A message was given to send.
    pub(crate) fn called(&mut self, was_empty: bool) {
        self.events += u64::from(was_empty);
        self.rights.called(was_empty, self.outstanding.is_empty());
    }

    /// An event other than a SACK that may allow data to leave. Each such event has its own Max.Burst.
    pub(crate) fn event(&mut self) {
        self.events += 1;
        self.round = None;
        self.rights.event();
    }

    /// A path works again: its chunks, which are marked by now, may leave, followed by new data.
    pub(crate) fn resume(&mut self) {
        self.rights.resume();
    }

    /// Settles if there is nothing to send and nothing waits. Returns whether that is so.
    #[inline]
    pub(crate) fn rests(&mut self) -> bool {
        let idle = !self.refused && self.blocked.is_idle() && self.probe_timer == Time::NEVER;
        let rests = self.is_empty() && idle;
        if rests {
            self.buffers.decided();
            self.rights.settle(false, true);
        }
        rests
    }

    /// Nothing more leaves now. Ends the rights that last for one answer, and records what blocks.
    #[inline(always)]
    pub(crate) fn settle(&mut self, around: &mut SendContext<'_>) {
        match self.waits_for_room() {
            true => self.settle_train(around),
            false => self.settle_anew(around),
        }
    }

    /// The same if no train waits for room.
    #[inline(never)]
    fn settle_anew(&mut self, around: &mut SendContext<'_>) {
        self.uncouple();
        if self.rests() {
            return;
        }
        self.penalise_late(around);
        let marked = self.outstanding.lowest_marked().is_some();
        self.rights.settle(marked, self.outstanding.is_empty());
        self.settle_blocked(around);
        self.watch_closed_window(around);
    }

    /// Checks that the sums charged to the paths match the outstanding chunks; of many chunks not at every event.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self, paths: &Paths) {
        let every = 1 + self.outstanding.len() as u64 / 1000;
        if self.events.is_multiple_of(every) {
            self.outstanding.check(paths);
        }
    }

    /// The load of the next packet with data, if one may leave. Its chunks have `budget` bytes.
    #[inline(always)]
    pub(crate) fn next_load(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        match self.next_of_train(budget, around) {
            NextOfTrain::Load(TrainLoad { path, next, window }) => {
                let ask = self.ask_new(next, Why::New, window);
                return Some(PacketPlan { path, why: Why::New, limit: Limit::Window, ask });
            }
            NextOfTrain::Nothing => return None,
            NextOfTrain::Undecided => {}
        }
        if let Some(load) = self.tail_probe(budget, around) {
            return Some(load);
        }
        if let Some(load) = self.retransmission(budget, around) {
            return Some(load);
        }
        match self.new_data(budget, around) {
            None => self.reinjection(budget, around),
            load => load,
        }
    }

    /// Puts the chunks of a load into its packet, at most `budget` bytes, in place of its own. `alone`: nothing but data can be due.
    #[inline(always)]
    pub(crate) fn fill(
        &mut self,
        load: &PacketPlan,
        (budget, alone): (u32, bool),
        packet: &mut Packet,
        around: &mut SendContext<'_>,
        chance: &mut ChaCha8Rng,
    ) {
        let Ask { size, peer_window: mut window, .. } = load.ask;
        let may_be_whole = load.why == Why::New && size == budget;
        if may_be_whole && self.queue.joins_equals() && self.send_whole(load.path, budget, packet, around) {
            let Ask { tsn, why, .. } = load.ask;
            around.notes.add(around.now, || NoteKind::Sent { path: load.path, tsn, size, why });
            window -= u64::from(size);
        } else {
            packet.clear();
            window = self.fill_any(load, budget, &mut packet.chunks, around);
        }
        if load.why == Why::TailProbe {
            let again = load.ask.last.is_some();
            let tsn = if again { load.ask.tsn } else { self.outstanding.highest() };
            self.tail_probed(load.path, tsn, again, around);
        }
        let asked = load.why != Why::TailProbe || load.ask.last.is_none();
        if asked && load.why != Why::Reinjected {
            self.routes.of(load.why).sent(&load.ask, load.path);
        }
        self.tie = chance.next_u64();
        self.couple(load, window, alone, around);
        around.paths.note_window(load.path, around.now, around.notes);
        self.note_peer_window(around);
    }

    /// Puts the chunks of any load into an empty packet. Returns what new data leaves of the peer's window.
    #[inline]
    fn fill_any(
        &mut self,
        load: &PacketPlan,
        budget: u32,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) -> u64 {
        match (load.why, load.ask.last) {
            (Why::Reinjected, _) => self.send_copy(load, chunks, around),
            (Why::TailProbe, Some(_)) => self.send_tail_again(&load.ask, load.path, chunks, around),
            (_, Some(_)) => self.resend_from(load.ask.tsn, load.path, budget, chunks, around),
            (_, None) => return self.send_new(load, budget, chunks, around),
        }
        load.ask.peer_window
    }

    /// A packet of marked chunks: one by a granted right, or as many as the room allows.
    //= rfc9260#section-6.1
    #[inline(always)]
    fn retransmission(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        let mut next = Some(self.outstanding.lowest_marked()?);
        if !self.rights.may_retransmit_anywhere() {
            return None;
        }
        around.paths.measure_room(true);
        self.rights.open_granted(around.paths);
        while let Some((tsn, why)) = next {
            if let Some(load) = self.retransmission_of(tsn, why, budget, around) {
                return Some(load);
            }
            next = self.looks_further.then(|| self.outstanding.marked_from(tsn.next())).flatten();
        }
        None
    }

    /// A packet that begins with this marked chunk, if the chunk may leave on the path that its route names.
    #[inline(always)]
    fn retransmission_of(
        &mut self,
        tsn: Tsn,
        why: Why,
        budget: u32,
        around: &mut SendContext<'_>,
    ) -> Option<PacketPlan> {
        // A chunk from before the path MTU fell may be larger than any budget. It is sent alone.
        let size = self.outstanding.get(tsn)?.size;
        if size > budget && size <= around.paths.smallest_pmdcs() {
            return None;
        }
        let ask = self.ask_again(tsn, why, around.paths)?;
        let choice = match self.round {
            Some(path) => Choice::Send(path),
            None => self.routes.of(why).choose(&ask, around.paths.views()),
        };
        let Choice::Send(path) = unless_dormant(choice, why, around) else { return None };
        let granted = self.rights.granted().is_some() || self.rights.granted_on(path);
        let room = self.rights.may_retransmit() && around.paths.view(path).room > 0;
        let sendable = around.paths.sends(path) && around.paths.view(path).confirmed();
        if !sendable || !(granted || room) {
            return None;
        }
        let limit = if granted { Limit::Granted } else { Limit::Window };
        if let Some(reason) = around.notes.if_on(|| self.routes.of(why).reason(&ask, around.paths.views())) {
            around.notes.add(around.now, || NoteKind::Route { path, tsn, reason });
        }
        Some(PacketPlan { path, why, limit, ask })
    }

    fn ask_again(&self, tsn: Tsn, why: Why, paths: &Paths) -> Option<Ask> {
        let sent = self.outstanding.get(tsn)?;
        Some(Ask {
            why,
            tsn,
            size: sent.size,
            stream: sent.data.stream,
            last: Some(sent.path),
            transmissions: sent.transmissions,
            queued: self.queue.user_bytes(),
            peer_window: self.peer_window(paths),
            peer_buffer: self.buffers.peer,
            tie: self.tie,
            event: self.events,
        })
    }

    /// Retransmits marked chunks, beginning with this one, as long as they fit the packet.
    fn resend_from(
        &mut self,
        first: Tsn,
        path: PathId,
        mut budget: u32,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) {
        let mut from = first;
        while let Some((tsn, why)) = self.outstanding.marked_from(from) {
            let Some(size) = self.outstanding.get(tsn).map(|sent| sent.size) else { break };
            from = tsn.next();
            if tsn != first && self.same_path_only && !self.goes_by(path, tsn, why, around) {
                continue;
            }
            if size > budget && !chunks.is_empty() {
                self.outstanding.looked_at(tsn, path, around.paths);
                break;
            }
            budget = budget.saturating_sub(size);
            let data = self.outstanding.resend(tsn, path, around.paths, around.now);
            around.notes.add(around.now, || NoteKind::Sent { path, tsn, size, why });
            chunks.push(self.queue.chunk(data));
        }
        self.rights.retransmitted(path);
        self.round = self.one_path.then_some(path);
    }

    /// Whether the route of this marked chunk names this path.
    fn goes_by(&mut self, path: PathId, tsn: Tsn, why: Why, around: &SendContext<'_>) -> bool {
        let Some(ask) = self.ask_again(tsn, why, around.paths) else { return false };
        let choice = self.routes.of(why).choose(&ask, around.paths.views());
        unless_dormant(choice, why, around) == Choice::Send(path)
    }

    /// A packet of new chunks, if marked chunks, windows, bursts and SSNs allow it. Otherwise records the obstacle.
    #[inline(always)]
    fn new_data(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        let (stream, size) = self.queue.peek(around.paths.smallest_pmdcs())?;
        if self.lacks_ssn() {
            self.blocked.found(Blocked::Turn);
            return None;
        }
        let window = self.measure(around);
        let fits = u64::from(size) <= window;
        let probing = !fits && self.may_probe(around.config);
        if !fits && !probing {
            self.blocked.found(Blocked::PeerWindow);
            return None;
        }
        let why = if probing { Why::WindowProbe } else { Why::New };
        let (choice, ask) = self.preferred((stream, size), why, window, around);
        let allowed = (self.rights.may_send() || probing) && !self.waits_for_marked(around.config);
        match choice {
            Choice::Send(path) if allowed && size <= budget && around.paths.view(path).room > 0 => {
                let limit = if probing { Limit::Granted } else { Limit::Window };
                Some(PacketPlan { path, why, limit, ask })
            }
            _ => {
                if let Choice::Send(path) = choice
                    && fits
                    && around.paths.view(path).room > 0
                {
                    self.rights.kept_back();
                }
                self.blocked.found(if fits { in_the_way(choice, around.paths) } else { Blocked::PeerWindow });
                None
            }
        }
    }

    fn waits_for_marked(&mut self, config: &Config) -> bool {
        let waits = config.rules.new_data == NewData::AfterMarked || self.rights.resumes();
        waits && self.outstanding.lowest_marked().is_some()
    }

    /// Computes the room of each path for new data, and returns the peer's window.
    #[inline(always)]
    fn measure(&self, around: &mut SendContext<'_>) -> u64 {
        let counted = around.paths.measure_room(false);
        self.rights.limit_bursts(around.paths);
        self.buffers.share(self.a_rwnd, around.paths);
        self.a_rwnd.saturating_sub(counted - self.outstanding.copied())
    }

    /// The path that the route of new data names for the next chunk, with or without room, and the question. The room
    /// was measured.
    #[inline(always)]
    fn preferred(
        &self,
        (stream, size): (u16, u32),
        why: Why,
        peer_window: u64,
        around: &SendContext<'_>,
    ) -> (Choice, Ask) {
        let ask = self.ask_new((stream, size), why, peer_window);
        let choice = self.routes.new.choose(&ask, around.paths.views());
        (unless_dormant(choice, why, around), ask)
    }

    /// The question about the next new chunk.
    #[inline(always)]
    fn ask_new(&self, (stream, size): (u16, u32), why: Why, peer_window: u64) -> Ask {
        Ask {
            why,
            tsn: self.outstanding.next_tsn(),
            size,
            stream,
            last: None,
            transmissions: 0,
            queued: self.queue.user_bytes(),
            peer_window,
            peer_buffer: self.buffers.peer,
            tie: self.tie,
            event: self.events,
        }
    }

    /// The path that new data would take now.
    pub(crate) fn next_path(&self, around: &mut SendContext<'_>) -> Option<PathId> {
        let size = around.paths.smallest_pmdcs();
        let window = self.measure(around);
        match self.preferred((0, size), Why::New, window, around).0 {
            Choice::Send(path) => Some(path),
            Choice::Wait => None,
        }
    }

    /// Cuts new chunks from the queue, as many as fit the packet and the peer's window. Returns what they leave of that window.
    #[inline(always)]
    fn send_new(
        &mut self,
        load: &PacketPlan,
        mut budget: u32,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) -> u64 {
        let fragment = around.paths.smallest_pmdcs();
        let mut window = load.ask.peer_window;
        let (path, why, now) = (load.path, load.why, around.now);
        let probing = why == Why::WindowProbe;
        let fills = around.config.mechanisms.fill_packets == FillPackets::On;
        let mut next = Some(load.ask.size);
        while let Some(mut size) = next {
            let mut limit = fragment;
            if fills && size > budget && budget >= SMALLEST_CUT && self.queue.is_cut(fragment) {
                limit = budget & !3;
                size = limit;
            }
            if size > budget || (u64::from(size) > window && !probing) {
                break;
            }
            let tsn = self.outstanding.next_tsn();
            let Some(data) = self.queue.take(limit, tsn) else { break };
            budget -= size;
            window = window.saturating_sub(u64::from(size));
            let data = self.outstanding.push(data, size, path, around.paths, now);
            let chunk = self.queue.chunk(data.clone());
            debug_assert_eq!(chunk.padded_size() as u32, size);
            chunks.push(chunk);
            around.notes.add(now, || NoteKind::Sent { path, tsn, size, why });
            if probing {
                self.probe_sent(around);
                break;
            }
            // Nothing fits into a packet that is full.
            let more = budget > 0 && !self.lacks_ssn();
            next = if more { self.queue.peek(fragment).map(|(_, size)| size) } else { None };
        }
        self.in_use = path;
        self.rights.sent_new(path);
        window
    }
}
