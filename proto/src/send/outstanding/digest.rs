//! What a SACK newly says (RFC 9260 §6.2.1, §7.2.4). It costs what is new in it, not what is outstanding.

use super::{Outstanding, Sent, Standing};
use crate::control::ranges::Ranges;
use crate::path::{PathId, Paths};
use crate::rules::{FastRetransmissions, MissingBelow, Rules};
use crate::wire::chunk::Sack;
use crate::{Time, Tsn};

/// What the chunk that brought a Cumulative TSN Ack says of TSNs beyond it.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(crate) enum Says {
    /// Its Gap Ack Blocks are all that has arrived there: a SACK.
    Gaps,
    /// Nothing: a SHUTDOWN.
    Nothing,
}

/// What a SACK said.
pub(crate) enum Heard {
    /// It is older than one heard before.
    Old,
    /// It acknowledges what was never sent.
    Impossible,
    /// This.
    News(Digest),
}

/// What a SACK said of the association as a whole; each path has a tally of its own.
pub(crate) struct Digest {
    /// Whether the Cumulative TSN Ack Point advanced.
    pub(crate) advanced: bool,
    /// Bytes newly acknowledged, all paths.
    pub(crate) acked: u64,
    /// User bytes that the Cumulative TSN Ack Point passed.
    pub(crate) user_bytes: u64,
    /// Whether a chunk marked by missing reports once was cumulatively acknowledged.
    pub(crate) fast_acked: bool,
    /// The highest TSN newly acknowledged, as an offset from the new first, one past it; 0 if none beyond it.
    newest: u32,
    /// Whether there were Gap Ack Blocks.
    gaps: bool,
}

impl Outstanding {
    /// Takes a SACK in: standing of chunks, flight, tallies, RTT. Missing reports are counted afterwards.
    pub(crate) fn digest(&mut self, sack: &Sack, says: Says, now: Time, paths: &mut Paths) -> Heard {
        let covered = sack.cumulative.distance_from(self.point());
        // Half the circle away is where a SACK from before TSNs began anew lies.
        if covered >= 1 << 31 {
            return Heard::Old;
        }
        let last = sack.gaps.iter().map(|gap| u32::from(gap.end)).max().unwrap_or(0);
        if covered as usize + last as usize > self.ring.len() {
            return Heard::Impossible;
        }
        for id in paths.ids() {
            paths.get_mut(id).tally =
                crate::path::Tally { flight_before: paths.counted(id), ..Default::default() };
        }
        let mut digest = Digest {
            advanced: covered > 0,
            acked: 0,
            user_bytes: 0,
            fast_acked: false,
            newest: 0,
            gaps: !sack.gaps.is_empty(),
        };
        self.take_cumulative(covered, now, paths, &mut digest);
        if says == Says::Gaps && (digest.gaps || !self.acked.is_empty()) {
            self.take_gaps(sack, now, paths, &mut digest);
        }
        for id in paths.ids() {
            if paths.get(id).tally.earliest {
                self.renew_earliest(id, paths);
            }
        }
        Heard::News(digest)
    }

    fn take_cumulative(&mut self, covered: u32, now: Time, paths: &mut Paths, digest: &mut Digest) {
        for _ in 0..covered {
            let Some(sent) = self.ring.pop_front() else { break };
            let user = sent.data.payload.len() as u64;
            self.user_bytes -= user;
            digest.user_bytes += user;
            digest.fast_acked |= sent.fast;
            paths.get_mut(sent.path).tally.passed = true;
            if sent.unacknowledged() {
                digest.acked += u64::from(sent.size);
                acknowledge(&sent, self.first, now, paths, false);
            }
            self.first = self.first.next();
        }
        self.acked.advance(covered);
    }

    fn take_gaps(&mut self, sack: &Sack, now: Time, paths: &mut Paths, digest: &mut Digest) {
        let sound = sack.gaps.iter().filter(|gap| gap.start >= 1 && gap.start <= gap.end);
        let said = Ranges::of(sound.map(|gap| (u32::from(gap.start) - 1, u32::from(gap.end))));
        let (ring, first) = (&mut self.ring, self.first);
        said.without(&self.acked, |start, end| {
            for offset in start..end {
                let sent = &mut ring[offset as usize];
                if sent.unacknowledged() {
                    digest.acked += u64::from(sent.size);
                    digest.newest = offset + 1;
                    acknowledge(sent, first.plus(offset), now, paths, true);
                    sent.standing = Standing::Acked;
                }
            }
        });
        self.acked.without(&said, |start, end| {
            for offset in start..end {
                renege(&mut ring[offset as usize], first.plus(offset), now, paths);
            }
        });
        self.acked = said;
    }

    /// Counts the missing reports of the SACK just digested and marks the chunks that have enough of them;
    /// calls `each` with every chunk counted and whether it was marked.
    //= rfc9260#section-7.2.4
    pub(crate) fn count_missing(
        &mut self,
        digest: &Digest,
        in_recovery: bool,
        rules: &Rules,
        paths: &mut Paths,
        mut each: impl FnMut(Tsn, u8, bool),
    ) {
        if !digest.gaps {
            return;
        }
        let limit = match rules.missing_below {
            MissingBelow::HighestAcked => self.acked.end(),
            MissingBelow::HighestNewlyAcked if in_recovery && digest.advanced => self.acked.end(),
            MissingBelow::HighestNewlyAcked => digest.newest,
        };
        let holes = Ranges::of((limit > 0).then_some((0, limit)).into_iter());
        let mut marked = Vec::new();
        let again = rules.fast_retransmissions == FastRetransmissions::Again;
        let (ring, first) = (&mut self.ring, self.first);
        holes.without(&self.acked, |start, end| {
            for offset in start..end {
                let sent = &mut ring[offset as usize];
                sent.missing = sent.missing.saturating_add(1);
                let enough = u32::from(sent.missing) >= rules.missing_reports;
                let mark = enough && sent.standing == Standing::InFlight && (again || !sent.fast);
                each(first.plus(offset), sent.missing, mark);
                if mark {
                    sent.fast = true;
                    sent.missing = 0;
                    marked.push((first.plus(offset), sent.path));
                }
            }
        });
        for (tsn, path) in marked {
            paths.get_mut(path).tally.marked = true;
            self.mark(tsn, crate::policy::Why::Missing, paths);
        }
    }

    /// The lowest chunk that is fresh above `exit` and marked; see `FastRecovery::OncePerWindow`.
    pub(crate) fn standing_path(&self, tsn: Tsn) -> Option<PathId> {
        self.get(tsn).map(|sent| sent.path)
    }
}

/// A chunk is acknowledged for the first time, cumulatively or by a gap block.
fn acknowledge(sent: &Sent, tsn: Tsn, now: Time, paths: &mut Paths, by_gap: bool) {
    let (view, path) = paths.both(sent.path);
    let size = u64::from(sent.size);
    match sent.standing {
        Standing::Marked(_) => view.marked -= size,
        _ => view.flight -= size,
    }
    view.delivered += size;
    let tally = &mut path.tally;
    tally.certain |= !sent.moved;
    if by_gap {
        tally.gap += size;
    } else {
        tally.cumulative += size;
    }
    tally.earliest |= path.earliest == Some(tsn);
    if let Some((timed, since)) = path.timed
        && timed == tsn
    {
        tally.rtt = Some(now.since(since));
        path.timed = None;
    }
}

/// A chunk once acknowledged by a gap block is missing again: in flight as before, with one missing report.
//= rfc9260#section-6.2.1
fn renege(sent: &mut Sent, tsn: Tsn, now: Time, paths: &mut Paths) {
    if sent.standing != Standing::Acked {
        return;
    }
    sent.standing = Standing::InFlight;
    sent.missing = 1;
    let (view, path) = paths.both(sent.path);
    view.flight += u64::from(sent.size);
    if path.earliest.is_none_or(|earliest| tsn.before(earliest)) {
        path.earliest = Some(tsn);
    }
    if path.timers.t3 == Time::NEVER {
        path.timers.t3 = now + view.rto;
    }
}
