//! Buffers that several paths share: the share of each path, copies of chunks that hold up others, and cuts of
//! windows for holding up others.
//!
//! Buffer splitting and chunk rescheduling follow T. Dreibholz, M. Becke, E. P. Rathgeb, M. Tuexen, "On the Use of
//! Concurrent Multipath Transfer over Asymmetric Paths" (GLOBECOM 2010) and H. Adhari et al., "Evaluation of
//! Concurrent Multipath Transfer over Dissimilar Paths" (AINA 2011). Opportunistic reinjection and penalising follow
//! C. Raiciu et al., "How Hard Can It Be? Designing and Implementing a Deployable Multipath TCP" (NSDI 2012).

use smallvec::SmallVec;

use super::{PacketPlan, SendContext, Sender};
use crate::mechanisms::{
    BufferSplit, BufferSplitCounts, ChunkRescheduling, Mechanisms, Penalise, Reinjection,
};
use crate::output::{Blocked, Limit, NoteKind};
use crate::path::{Path, PathId, PathView, Paths};
use crate::policy::{Ask, Why};
use crate::wire::Chunk;
use crate::{Config, Time};

/// The two buffers that all paths share, and how they are divided.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    /// The peer's buffer: the largest size that it has announced, bytes.
    pub(super) peer: u64,
    own: u64,
    split: [bool; 2],
    counts: BufferSplitCounts,
    reschedules: [bool; 2],
    reinjects: bool,
    penalises: bool,
    /// Whether a SACK has arrived for which penalising is not yet decided.
    undecided: bool,
    /// By path: the time until which it is not penalised again.
    spared: Vec<Time>,
}

impl Buffers {
    pub(super) fn new(config: &Config) -> Self {
        let mechanisms: &Mechanisms = &config.mechanisms;
        Buffers {
            peer: 0,
            own: config.send_buffer(),
            split: match mechanisms.buffer_split {
                BufferSplit::Off => [false, false],
                BufferSplit::Sender => [true, false],
                BufferSplit::Receiver => [false, true],
                BufferSplit::Both => [true, true],
            },
            counts: mechanisms.buffer_split_counts,
            reschedules: match mechanisms.chunk_rescheduling {
                ChunkRescheduling::Off => [false, false],
                ChunkRescheduling::Sender => [true, false],
                ChunkRescheduling::Receiver => [false, true],
                ChunkRescheduling::Both => [true, true],
            },
            reinjects: mechanisms.reinjection == Reinjection::Opportunistic,
            penalises: mechanisms.penalise == Penalise::On,
            undecided: false,
            spared: Vec::new(),
        }
    }

    /// A SACK announced this window in bytes.
    pub(super) fn heard(&mut self, a_rwnd: u64) {
        self.peer = self.peer.max(a_rwnd);
        self.undecided = self.penalises;
    }

    /// Nothing is left for which a path could be penalised.
    pub(super) fn decided(&mut self) {
        self.undecided = false;
    }

    /// Whether the buffers may limit the room of single paths, or call for copies.
    #[inline]
    pub(super) fn concern_paths(&self) -> bool {
        self.reinjects || self.split.contains(&true) || self.reschedules.contains(&true)
    }

    /// Whether paths may be penalised.
    #[inline]
    pub(super) fn penalises(&self) -> bool {
        self.penalises
    }

    /// Reduces each path's room to its share of a divided buffer. A path that occupies nothing of the buffer may send
    /// one packet, however small its share is.
    #[inline]
    pub(super) fn share(&self, a_rwnd: u64, paths: &mut Paths) {
        if self.split.contains(&true) {
            self.divide(a_rwnd, paths);
        }
    }

    fn divide(&self, a_rwnd: u64, paths: &mut Paths) {
        let outstanding = self.counts == BufferSplitCounts::Outstanding;
        let receive = if outstanding { a_rwnd } else { self.peer };
        for (_, limit) in self.split.into_iter().zip([self.own, receive]).filter(|(split, _)| *split) {
            let used = |view: &PathView, path: &Path| if outstanding { view.flight } else { path.buffered };
            paths.share_room(limit, used);
        }
    }

    /// Whether chunks sent on paths other than `lowest`, which carries the lowest TSN, fill half of a buffer.
    fn reschedule(&self, lowest: PathId, paths: &Paths) -> bool {
        let half = |(watched, size): (bool, u64)| watched && 2 * paths.buffered_beside(lowest) >= size;
        self.reschedules.into_iter().zip([self.own, self.peer]).any(half)
    }

    /// Whether this path may be penalised now. If so, it is not penalised again for its round-trip time.
    fn may_penalise(&mut self, view: &PathView, now: Time) -> bool {
        let index = view.id.index();
        if self.spared.len() <= index {
            self.spared.resize(index + 1, Time::ZERO);
        }
        let may = now >= self.spared[index];
        if may {
            self.spared[index] = now + view.srtt.unwrap_or(view.rto);
        }
        may
    }
}

impl Sender {
    /// Whether a full buffer, here or at the peer, keeps new data from leaving.
    fn buffer_full(&self) -> bool {
        match self.queue.is_empty() {
            true => self.refused,
            false => self.blocked.last_found() == Some(Blocked::PeerWindow),
        }
    }

    /// The fastest path with room for new data, other than `lowest`.
    fn room_beside(&self, lowest: PathId, around: &mut SendContext<'_>) -> Option<PathId> {
        around.paths.measure_room(false);
        self.rights.limit_bursts(around.paths);
        let usable = |view: &&PathView| view.id != lowest && view.carries() && view.room > 0;
        let paths = around.paths.views().iter().filter(usable);
        paths.min_by_key(|view| (view.srtt.unwrap_or(view.rto), view.id)).map(|view| view.id)
    }

    /// A copy of the lowest chunk on a path with room, if the chunks behind it call for one.
    pub(super) fn reinjection(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        if !(self.buffers.reinjects || self.buffers.reschedules.contains(&true)) {
            return None;
        }
        let (tsn, size, lowest) = self.outstanding.lowest_in_flight()?;
        let wanted = self.buffers.reinjects && self.buffer_full();
        let wanted = wanted || self.buffers.reschedule(lowest, around.paths);
        if !wanted || self.probing || size > budget || !self.rights.may_send() {
            return None;
        }
        let path = self.room_beside(lowest, around)?;
        let ask = Ask { why: Why::Reinjected, ..self.ask_again(tsn, Why::Reinjected, around.paths)? };
        Some(PacketPlan { path, why: Why::Reinjected, limit: Limit::Window, ask })
    }

    /// Sends the planned copy.
    pub(super) fn send_copy(
        &mut self,
        load: &PacketPlan,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) {
        let (path, tsn, size, why) = (load.path, load.ask.tsn, load.ask.size, load.why);
        if let Some(data) = self.outstanding.copy(tsn, path, around.paths, around.now) {
            around.notes.add(around.now, || NoteKind::Sent { path, tsn, size, why });
            chunks.push(self.queue.chunk(data));
        }
        self.rights.sent_new(path);
        if self.buffers.penalises && self.buffer_full() {
            self.penalise(load.ask.last.unwrap_or(path), around);
        }
    }

    /// Nothing more leaves after a SACK: penalises the path that keeps a buffer full, if another path has room.
    pub(super) fn penalise_late(&mut self, around: &mut SendContext<'_>) {
        if !std::mem::take(&mut self.buffers.undecided) || self.probing || !self.buffer_full() {
            return;
        }
        let Some(lowest) = self.outstanding.first_path() else { return };
        if self.room_beside(lowest, around).is_some() {
            self.penalise(lowest, around);
        }
    }

    fn penalise(&mut self, path: PathId, around: &mut SendContext<'_>) {
        if self.buffers.may_penalise(around.paths.view(path), around.now) {
            around.paths.penalise(path, around.now, around.notes);
        }
    }
}
