//! Chunks that were sent and are not yet covered by the Cumulative TSN Ack: a ring indexed by TSN − first, with one
//! state per TSN.

mod copies;
mod late;
mod missing;
mod news;
mod points;
mod released;

pub(crate) use late::ByPath;
pub(crate) use missing::{Reported, enough};
pub(crate) use news::{GapReport, PlainSack, SackNews, SackOutcome};

use std::collections::VecDeque;

use crate::control::ranges::Ranges;
use crate::path::{PathId, Paths, Timer};
use crate::policy::Why;
use crate::wire::chunk::Data;
use crate::{Ssn, Time, Tsn};

/// The state of a chunk.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// Sent and not acknowledged.
    InFlight,
    /// Waiting to be sent again, for this reason.
    Marked(Why),
    /// Acknowledged by a Gap Ack Block. The receiver may still withdraw that.
    Acked,
    /// Given up (RFC 3758): it is not sent again, and nobody waits for it.
    Abandoned,
}

/// A chunk that was sent.
// The chunk stands first, with no gap before it, for the reason told at `Chunk`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sent {
    pub(crate) data: Data,
    /// When it was last sent.
    pub(crate) at: Time,
    /// Bytes of the chunk with its padding, as windows count them.
    pub(crate) size: u32,
    pub(crate) state: ChunkState,
    /// The path that carried it last. Only this path is charged for it.
    pub(crate) path: PathId,
    /// How many times it was sent.
    pub(crate) transmissions: u32,
    /// Missing reports since it was last sent or since they were reset.
    pub(crate) missing: u8,
    /// If missing reports have marked it: the highest TSN that had been sent when they last did.
    pub(crate) fast: Option<Tsn>,
    /// It was sent again for any reason, or was considered for that.
    pub(crate) resent: bool,
    /// partial_bytes_acked has already counted it because of a Gap Ack Block.
    counted: bool,
    /// It was sent on more than one path, so an acknowledgement does not show which of them works.
    moved: bool,
    /// The second path on which it is in flight at the same time. Set only while the chunk itself is in flight.
    copy: Option<PathId>,
    /// It had a copy since it was last sent.
    copied: bool,
}

impl Sent {
    fn unacknowledged(&self) -> bool {
        matches!(self.state, ChunkState::InFlight | ChunkState::Marked(_))
    }

    /// Whether it is in flight, was sent once and was not considered for anything else.
    fn is_plain(&self) -> bool {
        let once = self.transmissions == 1 && !self.resent && !self.moved;
        once && self.state == ChunkState::InFlight && self.fast.is_none()
    }

    /// Whether the chunk or its copy is charged to this path.
    fn is_on(&self, path: PathId) -> bool {
        self.unacknowledged() && (self.path == path || self.copy == Some(path))
    }

    fn is_marked(&self) -> bool {
        matches!(self.state, ChunkState::Marked(_))
    }

    /// Whether T3-rtx has marked it, and it was not sent again yet.
    fn waits_after_t3(&self) -> bool {
        self.state == ChunkState::Marked(Why::Timeout)
    }
}

/// The ring of sent chunks.
// What every packet needs stands first: see `Association`.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Outstanding {
    ring: VecDeque<Sent>,
    /// The TSN of the ring's first entry: the Cumulative TSN Ack Point plus one.
    first: Tsn,
    /// The highest TSN newly acknowledged so far. A Gap Ack Block raises it; the Cumulative TSN Ack sets it.
    newest_yet: Option<Tsn>,
    /// User bytes in the ring.
    user_bytes: u64,
    /// Bytes of copies in flight. Their chunks are also in flight on their own paths.
    copied: u64,
    /// The chunks that Gap Ack Blocks have acknowledged, as offsets from `first`.
    acked: Ranges,
    /// The chunks that the peer has promised to keep, as offsets from `first`. Their data is freed.
    released: Ranges,
    /// Marked chunks in TSN order. Entries whose chunk is no longer marked are skipped.
    marked: VecDeque<Tsn>,
    /// The chunks marked since the last query. `None` if no policy asks for them.
    newly_marked: Option<Vec<Tsn>>,
    /// The highest TSN that was sent more than once.
    highest_resent: Option<Tsn>,
    /// The highest TSN that was sent before TSNs restarted.
    before_restart: Option<Tsn>,
}

impl Outstanding {
    pub(crate) fn new(first: Tsn) -> Self {
        Outstanding {
            ring: VecDeque::new(),
            first,
            acked: Ranges::default(),
            marked: VecDeque::new(),
            newly_marked: None,
            user_bytes: 0,
            released: Ranges::default(),
            copied: 0,
            newest_yet: None,
            highest_resent: None,
            before_restart: None,
        }
    }

    /// The path that last carried the lowest outstanding chunk.
    pub(crate) fn first_path(&self) -> Option<PathId> {
        self.ring.front().map(|sent| sent.path)
    }

    /// The SSN of the lowest ordered chunk of this stream, if at least `count` chunks, that one included, may belong to
    /// the stream.
    pub(crate) fn lowest_ssn(&self, stream: u16, count: usize) -> Option<Ssn> {
        // Behind these, too few are left.
        let first = (self.ring.len() + 1).saturating_sub(count);
        let mut chunks = self.ring.range(..first).map(|sent| &sent.data);
        chunks.find(|data| data.stream == stream && !data.unordered).map(|data| data.ssn)
    }

    /// The number of chunks that were sent and are not cumulatively acknowledged.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// Sets the TSN of the next chunk. The ring must be empty.
    pub(crate) fn restart(&mut self, next: Tsn) {
        debug_assert!(self.ring.is_empty());
        let (newly_marked, before_restart) = (self.newly_marked.take(), Some(self.highest()));
        *self = Outstanding { newly_marked, before_restart, ..Outstanding::new(next) };
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// User bytes sent and not cumulatively acknowledged.
    pub(crate) fn user_bytes(&self) -> u64 {
        self.user_bytes
    }

    /// The TSN that the next new chunk gets.
    pub(crate) fn next_tsn(&self) -> Tsn {
        self.first.plus(self.ring.len() as u32)
    }

    /// The Cumulative TSN Ack Point.
    pub(crate) fn point(&self) -> Tsn {
        self.first.prev()
    }

    /// The highest TSN sent.
    pub(crate) fn highest(&self) -> Tsn {
        self.next_tsn().prev()
    }

    fn index(&self, tsn: Tsn) -> Option<usize> {
        let offset = tsn.distance_from(self.first) as usize;
        (offset < self.ring.len()).then_some(offset)
    }

    pub(crate) fn get(&self, tsn: Tsn) -> Option<&Sent> {
        self.index(tsn).map(|i| &self.ring[i])
    }

    fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Sent> {
        self.index(tsn).map(|i| &mut self.ring[i])
    }

    /// Adds a new chunk that was sent on `path`, and returns it. `size` is its bytes with padding. Its TSN is
    /// [`next_tsn`](Self::next_tsn).
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        data: Data,
        size: u32,
        path: PathId,
        paths: &mut Paths,
        now: Time,
    ) -> &Data {
        let tsn = data.tsn;
        self.user_bytes += data.payload.len() as u64;
        let (view, rest) = paths.both(path);
        rest.buffered += u64::from(size);
        view.flight += u64::from(size);
        view.chunks += 1;
        paths.chunk_sent(path, tsn, now, true);
        let sent = self.ring.push_back_mut(Sent {
            data,
            size,
            state: ChunkState::InFlight,
            path,
            at: now,
            transmissions: 1,
            missing: 0,
            fast: None,
            resent: false,
            counted: false,
            moved: false,
            copy: None,
            copied: false,
        });
        &sent.data
    }

    /// Whether any chunk may be marked for retransmission.
    #[inline]
    pub(crate) fn has_marked(&self) -> bool {
        !self.marked.is_empty()
    }

    /// The lowest chunk marked for retransmission.
    pub(crate) fn lowest_marked(&mut self) -> Option<(Tsn, Why)> {
        while let Some(&tsn) = self.marked.front() {
            if let Some(ChunkState::Marked(why)) = self.get(tsn).map(|sent| sent.state) {
                return Some((tsn, why));
            }
            self.marked.pop_front();
        }
        None
    }

    /// The lowest marked chunk at or above `tsn`.
    pub(crate) fn marked_from(&self, tsn: Tsn) -> Option<(Tsn, Why)> {
        let from = self.marked.partition_point(|marked| marked.before(tsn));
        self.marked.range(from..).find_map(|&tsn| match self.get(tsn).map(|sent| sent.state) {
            Some(ChunkState::Marked(why)) => Some((tsn, why)),
            _ => None,
        })
    }

    /// The highest marked chunk that was last sent on `path`.
    pub(crate) fn highest_marked(&self, path: PathId) -> Option<Tsn> {
        let on_path = |tsn: &&Tsn| self.get(**tsn).is_some_and(|sent| sent.path == path && sent.is_marked());
        self.marked.iter().rev().find(on_path).copied()
    }

    /// The path of the lowest marked chunk above `point`, or of the lowest of all, that was last sent on none of these
    /// paths.
    pub(crate) fn lowest_marked_beyond(&self, point: Option<Tsn>, but: &[PathId]) -> Option<PathId> {
        let beyond = |tsn: &&Tsn| point.is_none_or(|point| tsn.after(point));
        let path = |tsn| self.get(tsn).filter(|sent| sent.is_marked()).map(|sent| sent.path);
        self.marked.iter().filter(beyond).filter_map(|tsn| path(*tsn)).find(|path| !but.contains(path))
    }

    /// The highest chunk in the ring that is not marked and was last sent on one of these paths.
    pub(crate) fn highest_unmarked(&self, of: impl Fn(PathId) -> bool) -> Option<Tsn> {
        let at = self.ring.iter().rposition(|sent| of(sent.path) && !sent.is_marked())?;
        Some(self.first.plus(at as u32))
    }

    /// The highest chunk in the ring that was last sent on `path`.
    pub(crate) fn highest_on(&self, path: PathId) -> Option<Tsn> {
        let at = self.ring.iter().rposition(|sent| sent.path == path)?;
        Some(self.first.plus(at as u32))
    }

    /// Whether any chunk that missing reports marked was last sent on `path`.
    pub(crate) fn lost_on(&self, path: PathId) -> bool {
        let lost = |sent: &Sent| sent.path == path && sent.state == ChunkState::Marked(Why::Missing);
        self.marked.iter().any(|tsn| self.get(*tsn).is_some_and(lost))
    }

    /// Whether missing reports have marked a chunk of `path` with a TSN after this one, or one that was sent again.
    pub(crate) fn lost_after(&self, path: PathId, cut: Tsn) -> bool {
        let lost = |tsn: &Tsn| {
            self.get(*tsn).is_some_and(|sent| {
                let later = tsn.after(cut) || sent.transmissions > 1;
                later && sent.path == path && sent.state == ChunkState::Marked(Why::Missing)
            })
        };
        self.marked.iter().any(lost)
    }

    /// A marked chunk was considered for a packet to `path` and did not fit.
    pub(crate) fn looked_at(&mut self, tsn: Tsn, path: PathId, paths: &mut Paths) {
        let Some(index) = self.index(tsn) else { return };
        let sent = &mut self.ring[index];
        sent.resent = true;
        if sent.path != path {
            paths.get_mut(sent.path).points.seek();
        }
    }

    /// Sends a marked chunk again, on `path`.
    pub(crate) fn resend(&mut self, tsn: Tsn, path: PathId, paths: &mut Paths, now: Time) -> Data {
        let at = self.marked.partition_point(|marked| marked.before(tsn));
        self.marked.remove(at);
        let index = self.index(tsn).expect("a marked chunk is in the ring");
        let sent = &mut self.ring[index];
        let (old, size, why) = (sent.path, u64::from(sent.size), sent.state);
        sent.state = ChunkState::InFlight;
        sent.path = path;
        sent.at = now;
        sent.moved |= old != path;
        sent.resent = true;
        sent.copied = false;
        sent.transmissions += 1;
        let data = sent.data.clone();
        self.note_resent(tsn);
        paths.view_mut(old).marked -= size;
        paths.get_mut(old).buffered -= size;
        paths.get_mut(path).buffered += size;
        let view = paths.view_mut(path);
        view.flight += size;
        view.chunks += 1;
        match why {
            ChunkState::Marked(Why::Missing) => view.fast_retransmissions += 1,
            ChunkState::Marked(Why::Timeout) => view.timeout_retransmissions += 1,
            _ => {}
        }
        if old != path {
            paths.get_mut(old).points.seek();
        }
        paths.sent_again(tsn, path, now);
        self.left(tsn, old, path, paths, now);
        paths.chunk_resent(path, tsn, size, now);
        data
    }

    /// A chunk of the path `old` is sent again on `path`. T3-rtx of `old` now follows the earliest chunk that is left.
    fn left(&mut self, tsn: Tsn, old: PathId, path: PathId, paths: &mut Paths, now: Time) {
        if old != path && paths.get(old).earliest == Some(tsn) {
            self.renew_earliest(old, paths);
            let (flight, held, rto) = (paths.view(old).flight, paths.holds_t3(old), paths.view(old).rto);
            let restarts = paths.restarts_t3_when_resent();
            let timers = &mut paths.get_mut(old).timers;
            if !held && restarts {
                timers.set(Timer::T3, Time::NEVER);
            } else if held && flight > 0 && timers[Timer::T3] != Time::NEVER {
                timers.set(Timer::T3, now + rto);
            }
        }
    }

    /// Finds the earliest unacknowledged chunk of a path again, starting at the previous one.
    #[inline(always)]
    fn renew_earliest(&mut self, path: PathId, paths: &mut Paths) {
        let Some(last) = paths.get(path).earliest else { return };
        let view = paths.view(path);
        let from = if last.before(self.first) { 0 } else { last.distance_from(self.first) as usize };
        let found = if view.flight + view.marked == 0 {
            None
        } else if self.ring.get(from).is_some_and(|sent| sent.is_on(path)) {
            // This is the usual case, and searching costs more.
            Some(0)
        } else {
            self.ring.range(from.min(self.ring.len())..).position(|s| s.is_on(path))
        };
        paths.get_mut(path).earliest = found.map(|i| self.first.plus((from + i) as u32));
    }

    /// Marks the chunks in flight on `path`, for this reason, after its T3-rtx expired. Spared chunks stay in flight.
    //= rfc9260#section-6.3.3
    pub(crate) fn time_out(
        &mut self,
        path: PathId,
        why: Why,
        paths: &mut Paths,
        spared: impl Fn(Tsn, &Sent) -> bool,
        mut marked: impl FnMut(Tsn),
    ) {
        if self.copied > 0 {
            self.lose_copies(path, paths);
        }
        let mut tsn = self.first;
        let marks_again = paths.t3_marks_again();
        let view = paths.view_mut(path);
        for sent in &mut self.ring {
            if sent.path == path && sent.is_marked() {
                sent.missing = 0;
                sent.state = if marks_again { ChunkState::Marked(why) } else { sent.state };
            }
            if sent.path == path && sent.state == ChunkState::InFlight && !spared(tsn, sent) {
                sent.state = ChunkState::Marked(why);
                sent.missing = 0;
                let size = u64::from(sent.size);
                view.flight -= size;
                view.marked += size;
                view.lost += size;
                marked(tsn);
                if let Some(newly_marked) = &mut self.newly_marked {
                    newly_marked.push(tsn);
                }
            }
            tsn = tsn.next();
        }
        self.collect_marked();
    }

    /// Chunks of a path that T3-rtx marked and that were not yet sent again return to flight.
    pub(crate) fn unmark_timed_out(&mut self, path: PathId, paths: &mut Paths) {
        let view = paths.view_mut(path);
        for sent in &mut self.ring {
            if sent.path == path && sent.state == ChunkState::Marked(Why::Timeout) {
                sent.state = ChunkState::InFlight;
                let size = u64::from(sent.size);
                view.flight += size;
                view.marked -= size;
                view.lost -= size;
            }
        }
        self.collect_marked();
    }

    /// Whether this chunk is in flight or marked.
    pub(crate) fn is_unacknowledged(&self, tsn: Tsn) -> bool {
        self.get(tsn).is_some_and(Sent::unacknowledged)
    }

    /// Rebuilds the list of marked chunks.
    fn collect_marked(&mut self) {
        self.marked.clear();
        let first = self.first;
        let marked = self.ring.iter().enumerate().filter(|(_, sent)| sent.is_marked());
        self.marked.extend(marked.map(|(i, _)| first.plus(i as u32)));
    }

    /// Marks one chunk that is in flight.
    pub(crate) fn mark(&mut self, tsn: Tsn, why: Why, paths: &mut Paths) {
        let Some(index) = self.index(tsn) else { return };
        let sent = &mut self.ring[index];
        if sent.state != ChunkState::InFlight {
            return;
        }
        if sent.copy.is_some() {
            return self.copy_takes_over(index, paths);
        }
        sent.state = ChunkState::Marked(why);
        let size = u64::from(sent.size);
        let view = paths.view_mut(sent.path);
        view.flight -= size;
        view.marked += size;
        view.lost += size;
        let at = self.marked.partition_point(|m| m.before(tsn));
        self.marked.insert(at, tsn);
        if let Some(newly_marked) = &mut self.newly_marked {
            newly_marked.push(tsn);
        }
    }

    /// Starts or stops remembering the chunks that are marked.
    pub(crate) fn remember_marks(&mut self, on: bool) {
        self.newly_marked = on.then(Vec::new);
    }

    /// Adds these chunks to the next answer of `take_newly_marked`.
    pub(crate) fn look_at(&mut self, tsns: impl Iterator<Item = Tsn>) {
        if let Some(newly_marked) = &mut self.newly_marked {
            newly_marked.extend(tsns);
        }
    }

    /// The chunks marked since the last query that are still marked, in order, and how many times each was sent.
    pub(crate) fn take_newly_marked(&mut self) -> Vec<(Tsn, u32)> {
        let mut tsns = self.newly_marked.as_mut().map(std::mem::take).unwrap_or_default();
        tsns.sort_unstable_by_key(|tsn| tsn.distance_from(self.first));
        tsns.dedup();
        let sent = |tsn| Some((tsn, self.get(tsn).filter(|sent| sent.is_marked())?.transmissions));
        tsns.into_iter().filter_map(sent).collect()
    }

    /// The number of chunks, from the first on, that were given up.
    pub(crate) fn abandoned(&self) -> u32 {
        self.ring.iter().take_while(|sent| sent.state == ChunkState::Abandoned).count() as u32
    }

    /// Adds a chunk that is given up before it was ever sent.
    pub(crate) fn push_abandoned(&mut self, data: Data, path: PathId) {
        self.ring.push_back(Sent {
            data,
            size: 0,
            state: ChunkState::Abandoned,
            path,
            at: Time::ZERO,
            transmissions: 0,
            missing: 0,
            fast: None,
            resent: false,
            counted: false,
            moved: false,
            copy: None,
            copied: false,
        });
    }

    /// Gives up a chunk. It counts as acknowledged, but no window grows for it. Returns its data unless the peer has
    /// it.
    //= rfc3758#section-3.5
    pub(crate) fn abandon(&mut self, tsn: Tsn, paths: &mut Paths) -> Option<Data> {
        let index = self.index(tsn)?;
        let sent = &mut self.ring[index];
        let (id, size, state) = (sent.path, u64::from(sent.size), sent.state);
        if state == ChunkState::Abandoned {
            return None;
        }
        if let (Some(rack), ChunkState::Acked) = (&mut paths.get_mut(id).rack, state) {
            rack.gapped -= 1;
        }
        let copied_on = sent.copy;
        self.copied -= copies::end(sent, tsn, paths);
        sent.state = ChunkState::Abandoned;
        paths.get_mut(id).buffered -= size;
        let data = sent.data.clone();
        sent.data.payload = Default::default();
        self.user_bytes -= data.payload.len() as u64;
        let (view, path) = paths.both(id);
        match state {
            ChunkState::InFlight => view.flight -= size,
            ChunkState::Marked(_) => view.marked -= size,
            ChunkState::Acked | ChunkState::Abandoned => return None,
        }
        path.timed = path.timed.filter(|(timed, _)| *timed != tsn);
        path.forget_also_timed(tsn);
        for id in [Some(id), copied_on].into_iter().flatten() {
            self.gave_up_on(id, tsn, paths);
        }
        Some(data)
    }

    /// A chunk on this path was given up: T3-rtx runs for the next one there, if there is one.
    fn gave_up_on(&mut self, id: PathId, tsn: Tsn, paths: &mut Paths) {
        if paths.get(id).earliest == Some(tsn) {
            self.renew_earliest(id, paths);
        }
        if paths.counted(id) == 0 {
            paths.get_mut(id).timers.set(Timer::T3, Time::NEVER);
        }
    }

    /// The chunk in flight if exactly one chunk is outstanding: it is a window probe.
    pub(crate) fn only(&self) -> Option<Tsn> {
        (self.ring.len() == 1 && self.ring[0].state == ChunkState::InFlight).then_some(self.first)
    }

    /// Removes every chunk, in order, because the association has ended.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Data> + '_ {
        self.ring.drain(..).filter(|s| s.unacknowledged()).map(|s| s.data)
    }

    /// Checks that the bytes charged to the paths match the ring.
    #[cfg(debug_assertions)]
    pub(crate) fn check(&self, paths: &Paths) {
        for id in paths.ids() {
            let of = |wanted: fn(ChunkState) -> bool| -> u64 {
                let charged = self.ring.iter().filter(|s| s.path == id && wanted(s.state));
                charged.map(|s| u64::from(s.size)).sum()
            };
            let copies: u64 =
                self.ring.iter().filter(|s| s.copy == Some(id)).map(|s| u64::from(s.size)).sum();
            assert_eq!(paths.view(id).flight, of(|s| s == ChunkState::InFlight) + copies, "flight of {id:?}");
            assert_eq!(paths.get(id).buffered, of(|s| s != ChunkState::Abandoned), "buffered on {id:?}");
            let gapped = self.ring.iter().filter(|s| s.path == id && s.state == ChunkState::Acked).count();
            assert!(paths.get(id).rack.is_none_or(|rack| rack.gapped as usize == gapped), "gaps on {id:?}");
            assert_eq!(paths.view(id).marked, of(|s| matches!(s, ChunkState::Marked(_))), "marked on {id:?}");
        }
    }
}
