//! The sending half of an association. A SACK, a timeout or a call grants rights to send; each poll chooses one packet.

mod blocked;
mod buffers;
mod marked;
mod new_data;
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

use crate::mechanisms::{Bundling, WithoutRoom};
use crate::notes::Notes;
use crate::output::{Limit, NoteKind, Statistics};
use crate::path::estimate::Needs;
use crate::path::{PathId, Paths};
use crate::policy::{Ask, PolicyError, Why};
use crate::rules::ResendPath;
use crate::send::outstanding::Outstanding;
use crate::send::queue::SendQueue;
use crate::wire::{Chunk, Packet};
use crate::{Config, Policies, Ssn, Time, Tsn};
use blocked::BlockedClock;
use buffers::Buffers;
use recovery::Recoveries;
use rights::{Ready, Rights};
use routes::Routes;

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
    /// If all retransmissions of one event take one path (rule `resend_path`): the path of the current event, once it
    /// is chosen.
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

    /// The chunks of a path that cannot be used any more are marked. They leave on another at once.
    pub(crate) fn send_elsewhere(&mut self) {
        self.event();
        self.rights.send_elsewhere();
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

    /// As `settle`, if no train waits for room.
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

    /// Puts the chunks of a load into its packet, at most `budget` bytes, in place of its own. `alone`: nothing but
    /// data can be due.
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
}
