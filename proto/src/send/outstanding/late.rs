//! RACK (RFC 8985 §6.2, step 5): finds chunks that are lost because later chunks of their path have arrived. Also finds
//! the chunk that a tail loss probe sends again (§7.3).

use smallvec::SmallVec;

use super::{ChunkState, Outstanding, Sent};
use crate::control::ranges::Ranges;
use crate::path::rack::Lateness;
use crate::path::{PathId, Paths, Timer};
use crate::policy::Why;
use crate::wire::chunk::Data;
use crate::{Time, Tsn};

/// For each path: when a chunk that it has not delivered counts as lost.
pub(crate) type ByPath = SmallVec<[Option<Lateness>; 4]>;

impl Outstanding {
    /// Marks the chunks that count as lost by now, and sets the time at which the next one will. Calls `each` with
    /// every marked chunk and its path.
    //= rfc8985#section-6.2
    pub(crate) fn mark_late(
        &mut self,
        by_path: &ByPath,
        now: Time,
        paths: &mut Paths,
        mut each: impl FnMut(Tsn, PathId),
    ) {
        for id in paths.ids() {
            paths.get_mut(id).timers.set(Timer::Reordering, Time::NEVER);
        }
        let mut lost: SmallVec<[Tsn; 16]> = SmallVec::new();
        let (ring, first) = (&self.ring, self.first);
        self.below_the_newest().without(&self.acked, |start, end| {
            for offset in start..end {
                let (sent, tsn) = (&ring[offset as usize], first.plus(offset));
                match due(sent, tsn, by_path) {
                    Some(due) if due <= now => lost.push(tsn),
                    Some(due) => {
                        let timers = &mut paths.get_mut(sent.path).timers;
                        let set = timers[Timer::Reordering];
                        timers.set(Timer::Reordering, if set == Time::NEVER { due } else { due.max(set) });
                    }
                    None => {}
                }
            }
        });
        let highest = self.highest();
        for tsn in lost {
            let Some(sent) = self.get(tsn) else { continue };
            let (id, at, again) = (sent.path, sent.at, sent.transmissions > 1);
            let path = paths.get_mut(id);
            path.tally.marked.get_or_insert(tsn);
            if let Some(rack) = &mut path.rack {
                path.tally.lost_again |= again && rack.is_new_congestion(at);
                rack.lost(highest);
            }
            each(tsn, id);
            self.mark(tsn, Why::Missing, paths);
        }
    }

    /// Offsets of the chunks that a chunk sent later may have overtaken. A chunk that was sent once was sent after all
    /// lower ones.
    fn below_the_newest(&self) -> Ranges {
        let resent = self.highest_resent.filter(|tsn| !tsn.before(self.first));
        let resent = resent.map_or(0, |tsn| tsn.distance_from(self.first) + 1);
        let limit = self.acked.end().max(resent).min(self.ring.len() as u32);
        Ranges::of((limit > 0).then_some((0, limit)).into_iter())
    }

    /// A chunk was sent more than once.
    pub(super) fn note_resent(&mut self, tsn: Tsn) {
        self.highest_resent = self.highest_resent.filter(|highest| !highest.before(tsn)).or(Some(tsn));
    }

    /// Whether the chunk was acknowledged, cumulatively or by a Gap Ack Block.
    pub(crate) fn has_arrived(&self, tsn: Tsn) -> bool {
        !tsn.after(self.point()) || self.get(tsn).is_some_and(|sent| sent.state == ChunkState::Acked)
    }

    /// Whether every chunk in flight on this path was sent after the chunks that it has delivered.
    pub(crate) fn is_tail(&self, path: PathId, paths: &Paths) -> bool {
        let Some(rack) = &paths.get(path).rack else { return false };
        let on_path = |sent: &&Sent| sent.path == path && sent.state == ChunkState::InFlight;
        let tsns = (0..).map(|offset| self.first.plus(offset));
        let mut flight = self.ring.iter().zip(tsns).filter(|(sent, _)| on_path(sent));
        !flight.any(|(sent, tsn)| rack.overtaken(sent.at, tsn))
    }

    /// The highest chunk that is in flight on this path only, and its size.
    //= rfc8985#section-7.3
    pub(crate) fn highest_in_flight(&self, path: PathId) -> Option<(Tsn, u32)> {
        let alone =
            |sent: &Sent| sent.path == path && sent.state == ChunkState::InFlight && sent.copy.is_none();
        let at = self.ring.iter().rposition(alone)?;
        Some((self.first.plus(at as u32), self.ring[at].size))
    }

    /// Sends a chunk in flight again on the same path. The flight counts it once.
    pub(crate) fn send_tail_again(&mut self, tsn: Tsn, paths: &mut Paths, now: Time) -> Option<Data> {
        let index = self.index(tsn)?;
        self.note_resent(tsn);
        let sent = &mut self.ring[index];
        (sent.at, sent.resent) = (now, true);
        sent.transmissions += 1;
        let (path, data) = (sent.path, sent.data.clone());
        paths.view_mut(path).chunks += 1;
        paths.sent_again(tsn, path, now);
        paths.chunk_sent(path, tsn, now, false);
        Some(data)
    }
}

/// When a chunk counts as lost if a later chunk of its path was delivered. If a copy has taken the chunk's place, the
/// time at which it was sent is unknown: T3-rtx must detect the loss.
fn due(sent: &Sent, tsn: Tsn, by_path: &ByPath) -> Option<Time> {
    let judged = sent.state == ChunkState::InFlight && (sent.copy.is_some() || !sent.copied);
    let lateness = by_path.get(sent.path.index()).copied().flatten();
    lateness.filter(|_| judged)?.of(sent.at, tsn)
}
