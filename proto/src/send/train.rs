//! Trains: packets of new data that leave one after the other on one path. What was decided for the first of them holds
//! for the others, as long as nothing happens in between but that they are sent. If nothing but their chunks can be in
//! them, it also holds after a plain SACK, which changes nothing but how much may be sent.

use std::hint::cold_path;

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

use super::blocked::{MOST_OF_A_STREAM, in_the_way};
use super::rights::Ready;
use super::{NextOfTrain, PacketPlan, SendContext, Sender, Train, TrainLoad};
use crate::output::{Limit, NoteKind};
use crate::path::Paths;
use crate::policy::{Choice, Stays, Why};
use crate::wire::chunk::Data;
use crate::wire::{Chunk, Packet};
use crate::{PathId, Time};

/// The most packets that are counted at once to leave without another look.
const MOST_AT_ONCE: u64 = 1 << 14;
/// A train ends when this number of chunks is outstanding. With the packets that are counted at once, their SSNs could
/// repeat, which only the choice of each single packet checks.
const MOST_BEHIND: usize = MOST_OF_A_STREAM - MOST_AT_ONCE as usize;

impl Sender {
    /// Something other than the sending of packets happened: the next packet is decided anew.
    #[inline]
    pub(crate) fn uncouple(&mut self) {
        self.train = None;
    }

    /// Max.Burst has changed, so the next packet is decided anew.
    pub(crate) fn set_max_burst(&mut self, packets: u32) {
        self.rights.set_max_burst(packets);
        self.uncouple();
    }

    /// Whether a train goes on as soon as its path has room.
    #[inline]
    pub(super) fn waits_for_room(&self) -> bool {
        self.train.is_some_and(|train| train.alone && train.waits)
    }

    /// Settles as `settle` does, for a train that waits for room: its path was found to have none, and nothing else is
    /// to be done.
    #[inline]
    pub(super) fn settle_train(&mut self, around: &mut SendContext<'_>) {
        debug_assert!(!self.queue.is_empty() && self.is_open() && !self.outstanding.has_marked());
        self.rights.settle(false, self.outstanding.is_empty());
        self.blocked.stays_found(around);
        self.probe_timer = Time::NEVER;
    }

    /// A plain SACK was processed: a train that waits for room goes on with what the peer's window is now.
    #[inline]
    pub(super) fn go_on(&mut self, around: &SendContext<'_>) {
        let Some(train) = self.train else { return };
        let as_before = !self.probing && !self.rights.limits_paths() && !around.paths.is_asking();
        self.train = (as_before && train.alone && train.waits).then(|| Train {
            window: self.peer_window(around.paths),
            ready: Ready::default(),
            ..train
        });
    }

    /// This packet was sent. If it belongs to no train, one may begin with it. `window` is what it has left of the
    /// peer's window; `alone`: nothing but data can be due.
    #[inline(always)]
    pub(super) fn couple(&mut self, sent: &PacketPlan, window: u64, alone: bool, around: &SendContext<'_>) {
        match &mut self.train {
            Some(train) => (train.window, train.ready) = (window, Ready::default()),
            None => self.begin_train(sent, window, alone, around),
        }
    }

    /// Begins a train, provided that nothing but the path's window, the peer's window and Max.Burst limits the packets
    /// of new data behind this one.
    fn begin_train(&mut self, sent: &PacketPlan, window: u64, alone: bool, around: &SendContext<'_>) {
        if self.buffers.concern_paths() {
            return;
        }
        let usual = sent.why == Why::New && sent.limit == Limit::Window && !self.outstanding.has_marked();
        let stays = match usual && self.rights.probes().is_none() {
            true => self.routes.new.stays(),
            false => Stays::Unknown,
        };
        let carries = around.paths.view(sent.path).carries();
        self.train = (stays != Stays::Unknown && carries).then_some(Train {
            path: sent.path,
            waits: stays == Stays::Always,
            alone: alone
                && self.queue.joins_equals()
                && !self.buffers.penalises()
                && !self.rights.limits_paths(),
            window,
            ready: Ready::default(),
        });
    }

    /// Whether a train is under way whose packets hold nothing but its chunks.
    #[inline(always)]
    pub(crate) fn goes_alone(&self) -> bool {
        self.train.is_some_and(|train| train.alone)
    }

    /// Decides about the next packet as `new_data` would, if a train is under way.
    #[inline(always)]
    pub(super) fn next_of_train(&mut self, budget: u32, around: &mut SendContext<'_>) -> NextOfTrain {
        let Some(Train { path, waits, window, .. }) = self.train else { return NextOfTrain::Undecided };
        debug_assert_eq!(window, self.peer_window(around.paths));
        if let Some(next) = self.queue.peek(around.paths.smallest_pmdcs())
            && u64::from(next.1) <= window
            && self.outstanding.len() < MOST_BEHIND
        {
            if around.paths.measure_room_of(path) > 0 {
                if next.1 <= budget && self.rights.may_send() && self.rights.admits_on(path) {
                    return NextOfTrain::Load(TrainLoad { path, next, window });
                }
            } else if waits || around.paths.are_full() {
                // The route would name this path again, or another one without room.
                self.blocked.found(in_the_way(Choice::Send(path), around.paths));
                return NextOfTrain::Nothing;
            }
        }
        self.uncouple();
        NextOfTrain::Undecided
    }

    /// The path of the next packet, if a train goes alone and one may leave now. The caller must then send it with
    /// [`fill_alone`](Self::fill_alone).
    #[inline(always)]
    pub(crate) fn next_alone(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PathId> {
        match self.train {
            Some(Train { path, ready: Ready { packets: 1.., .. }, .. }) => {
                // The packet before this one has filled `budget` bytes.
                let room = around.paths.view(path).room.saturating_sub(u64::from(budget));
                around.paths.view_mut(path).room = room;
                debug_assert!(matches!(self.next_of_train(budget, around), NextOfTrain::Load(_)));
                debug_assert_eq!(around.paths.view(path).room, room);
                Some(path)
            }
            Some(Train { path, ready: Ready { fills: true, .. }, .. }) => {
                debug_assert!(matches!(self.next_of_train(budget, around), NextOfTrain::Nothing));
                around.paths.view_mut(path).room = 0;
                self.blocked.found(in_the_way(Choice::Send(path), around.paths));
                None
            }
            _ => self.look_ahead(budget, around),
        }
    }

    /// Finds how many packets of a train that goes alone may leave now, and the path of the first.
    #[inline(always)]
    fn look_ahead(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PathId> {
        let NextOfTrain::Load(load) = self.next_of_train(budget, around) else { return None };
        let ready = self.count_whole(&load, budget, around.paths);
        let train = self.train.as_mut()?;
        train.ready = Ready { fills: ready.fills && train.waits, ..ready };
        Some(load.path)
    }

    /// How many of the next messages may leave now, each whole and in a packet of its own; 1 if the next one does not
    /// fill its packet.
    fn count_whole(&self, load: &TrainLoad, budget: u32, paths: &Paths) -> Ready {
        let equals = self.queue.equals_whole(budget);
        if load.next.1 != budget || equals <= 1 || paths.carries_one(load.path) {
            return Ready { packets: 1, fills: false };
        }
        let few = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let (by_room, by_burst) = (few(paths.view(load.path).room).div_ceil(budget), self.rights.left());
        // A division is slow, and in most cases the peer's window admits more than the path.
        let by_window = match u64::from(by_room) * u64::from(budget) < load.window - u64::from(budget) {
            true => u32::MAX,
            false => few(load.window) / budget,
        };
        let by_rest = by_window.min(equals.min(MOST_AT_ONCE) as u32);
        Ready { packets: by_room.min(by_rest).min(by_burst), fills: by_room < by_rest && by_room <= by_burst }
    }

    /// Puts its chunks into a packet of a train that goes alone, at most `budget` bytes, in place of those that are in
    /// it.
    #[inline(always)]
    pub(crate) fn fill_alone(
        &mut self,
        path: PathId,
        budget: u32,
        packet: &mut Packet,
        around: &mut SendContext<'_>,
        chance: &mut ChaCha8Rng,
    ) {
        let whole = self.send_whole(path, budget, packet, around);
        let left = match whole {
            true => self.train.map_or(0, |train| train.window) - u64::from(budget),
            false => self.send_any(path, budget, packet, around),
        };
        if let Some(train) = &mut self.train {
            train.window = left;
            train.ready.packets = train.ready.packets.saturating_sub(1);
        }
        self.tie = chance.next_u64();
        if around.notes.are_on() {
            cold_path();
            self.note_alone(path, whole.then_some(budget), left, around);
        }
    }

    /// Records that packet, with the size of its chunk unless that is recorded already: in one note, if notes are kept.
    #[inline(never)]
    fn note_alone(&self, path: PathId, size: Option<u32>, peer_window: u64, around: &mut SendContext<'_>) {
        debug_assert_eq!(peer_window, self.peer_window(around.paths));
        let (view, tsn) = (around.paths.view(path), self.outstanding.highest());
        if let Some(size) = size {
            if around.notes.are_kept() && view.marked == 0 {
                let (cwnd, ssthresh, flight) = (view.window, view.ssthresh, view.flight);
                let note = NoteKind::SentAlone { path, tsn, size, cwnd, ssthresh, flight, peer_window };
                return around.notes.keep(around.now, note);
            }
            around.notes.add(around.now, || NoteKind::Sent { path, tsn, size, why: Why::New });
        }
        around.paths.note_window(path, around.now, around.notes);
        around.notes.add(around.now, || NoteKind::PeerWindow { bytes: peer_window });
    }

    /// Sends the next message as one chunk, if that fills a packet of `budget` bytes and nothing of it was sent. The
    /// usual packet holds such a chunk. Makes no note. Returns whether it was sent.
    #[inline(always)]
    pub(super) fn send_whole(
        &mut self,
        path: PathId,
        budget: u32,
        packet: &mut Packet,
        around: &mut SendContext<'_>,
    ) -> bool {
        let tsn = self.outstanding.next_tsn();
        let Some(chunk) = self.queue.take_constant(budget, tsn) else {
            return self.send_other_whole(path, budget, packet, around);
        };
        self.sent_whole([chunk(), chunk()], path, budget, packet, around);
        true
    }

    /// As `send_whole`, for a message whose payload is not constant.
    #[inline(never)]
    fn send_other_whole(
        &mut self,
        path: PathId,
        budget: u32,
        packet: &mut Packet,
        around: &mut SendContext<'_>,
    ) -> bool {
        let chunks = self.queue.take_whole(budget, self.outstanding.next_tsn());
        chunks.map(|chunks| self.sent_whole(chunks, path, budget, packet, around)).is_some()
    }

    /// A chunk leaves alone in a packet. It comes twice: to send it, and to keep it.
    #[inline(always)]
    fn sent_whole(
        &mut self,
        [sent, kept]: [Data; 2],
        path: PathId,
        budget: u32,
        packet: &mut Packet,
        around: &mut SendContext<'_>,
    ) {
        self.in_use = path;
        self.rights.sent_new(path);
        self.outstanding.push(kept, budget, path, around.paths, around.now);
        packet.hold(Chunk::Data(sent));
    }

    /// Sends new chunks that do not fill the packet exactly, or several in one packet. Returns what they leave of the
    /// peer's window.
    #[inline(never)]
    fn send_any(
        &mut self,
        path: PathId,
        budget: u32,
        packet: &mut Packet,
        around: &mut SendContext<'_>,
    ) -> u64 {
        packet.clear();
        let next = self.queue.peek(around.paths.smallest_pmdcs());
        let (Some(Train { window, .. }), Some(next)) = (self.train, next) else { return 0 };
        let ask = self.ask_new(next, Why::New, window);
        let load = PacketPlan { path, why: Why::New, limit: Limit::Window, ask };
        self.send_new(&load, budget, &mut packet.chunks, around)
    }
}
