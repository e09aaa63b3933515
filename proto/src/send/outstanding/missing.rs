//! Missing reports (RFC 9260 §7.2.4): finds the chunks that a SACK reports missing, counts the reports, and marks
//! chunks.

use super::{ChunkState, Outstanding, SackNews, Sent};
use crate::Config;
use crate::Tsn;
use crate::control::ranges::Ranges;
use crate::mechanisms::{self, Dac, Mechanisms, Sfr};
use crate::path::{PathId, Paths};
use crate::policy::Why;
use crate::rules::{FastRetransmissions, MissingBelow, Rules, TimedOutChunk};

/// What the counting of missing reports must know about Fast Recovery.
#[derive(Copy, Clone)]
pub(crate) struct Reported {
    /// Whether a Fast Recovery is under way after this SACK.
    pub(crate) under_way: bool,
    /// The exit point of the current or the last one.
    pub(crate) exit: Option<Tsn>,
    /// The size of a full chunk if chunks may be marked early, because no new data can be sent and so no further
    /// missing reports will come.
    pub(crate) last_unit: Option<u32>,
}

impl Outstanding {
    /// Counts the missing reports of the SACK just read, and marks the chunks that have enough of them. Calls `each`
    /// with every counted chunk and whether it was marked.
    //= rfc9260#section-7.2.4
    pub(crate) fn count_missing(
        &mut self,
        news: &SackNews,
        recovery: Reported,
        config: &Config,
        paths: &mut Paths,
        mut each: impl FnMut(Tsn, u8, bool),
    ) {
        let rules = &config.rules;
        let below = rules.missing_below;
        let limit = self.missing_below(news, recovery, below);
        if limit == 0 {
            return;
        }
        let counting = Counting::new(news, &config.mechanisms, paths);
        let early = recovery.last_unit.is_some_and(|unit| self.is_nearly_acked(unit));
        let needed = if early { 1 } else { enough(rules) };
        let (fast, newest) = (rules.fast_retransmissions, self.newest(news, below));
        let mut marked: Vec<(Tsn, PathId)> = Vec::new();
        let highest = self.highest();
        let (ring, first) = (&mut self.ring, self.first);
        Ranges::of(std::iter::once((0, limit))).without(&self.acked, |start, end| {
            for offset in start..end {
                let (sent, tsn) = (&mut ring[offset as usize], first.plus(offset));
                let open = is_open(sent, rules.timed_out);
                if !counts(sent, fast, newest) || (sent.waits_after_t3() && !open) {
                    continue;
                }
                let Some(reports) = counting.reports(sent, tsn, paths) else { continue };
                sent.missing = sent.missing.saturating_add(reports);
                let enough = u32::from(sent.missing) >= needed;
                let mark = enough && open && may_mark(sent, fast);
                each(tsn, sent.missing, mark);
                if mark {
                    sent.fast = Some(highest);
                    sent.missing = 0;
                    marked.push((tsn, sent.path));
                }
            }
        });
        self.mark_missing(&marked, paths);
    }

    /// The chunks below this offset that are not acknowledged are reported missing by the SACK.
    fn missing_below(&self, news: &SackNews, recovery: Reported, rule: MissingBelow) -> u32 {
        match rule {
            MissingBelow::HighestNewlyAckedYet => self.newest_yet_offset(),
            _ if !news.gaps => 0,
            MissingBelow::ExitPoint if news.advanced && self.is_within(recovery.exit) => {
                self.acked.end().max(self.newest_yet_offset())
            }
            MissingBelow::ExitPoint => self.newest_yet_offset(),
            MissingBelow::HighestAcked => self.acked.end(),
            MissingBelow::HighestNewlyAcked if recovery.under_way && news.advanced => self.acked.end(),
            MissingBelow::HighestNewlyAcked => news.newest,
        }
    }

    /// Marks these chunks, in order, because of their missing reports.
    fn mark_missing(&mut self, marked: &[(Tsn, PathId)], paths: &mut Paths) {
        let highest = self.highest();
        for &(tsn, path) in marked {
            let of = paths.get_mut(path);
            of.tally.marked.get_or_insert(tsn);
            if let Some(rack) = &mut of.rack {
                rack.lost(highest);
            }
            self.mark_or_change_mark(tsn, paths);
        }
    }

    /// Marks a chunk, or changes why it is marked.
    fn mark_or_change_mark(&mut self, tsn: Tsn, paths: &mut Paths) {
        match self.get_mut(tsn).filter(|sent| sent.is_marked()) {
            Some(sent) => sent.state = ChunkState::Marked(Why::Missing),
            None => self.mark(tsn, Why::Missing, paths),
        }
    }

    /// The highest TSN that this SACK newly acknowledges, or the highest that any SACK so far did.
    fn newest(&self, news: &SackNews, rule: MissingBelow) -> Option<Tsn> {
        match rule {
            MissingBelow::HighestNewlyAckedYet | MissingBelow::ExitPoint => self.newest_yet,
            MissingBelow::HighestAcked | MissingBelow::HighestNewlyAcked => {
                news.newest.checked_sub(1).map(|offset| self.first.plus(offset))
            }
        }
    }

    /// Whether fewer than four chunks of `unit` bytes are outstanding and at most one of them is not acknowledged.
    //= rfc5827#section-2.1
    fn is_nearly_acked(&self, unit: u32) -> bool {
        let (mut all, mut open) = (0, 0);
        for sent in &self.ring {
            all += u64::from(sent.size);
            open += if sent.unacknowledged() { u64::from(sent.size) } else { 0 };
            if all >= 4 * u64::from(unit) {
                return false;
            }
        }
        open <= u64::from(unit)
    }

    /// Whether the highest TSN newly acknowledged so far is not above this exit point.
    fn is_within(&self, exit: Option<Tsn>) -> bool {
        matches!((self.newest_yet, exit), (Some(newest), Some(exit)) if !newest.after(exit))
    }

    /// The highest TSN newly acknowledged so far, as an offset from the first of the ring. At most the ring's length.
    fn newest_yet_offset(&self) -> u32 {
        let newest = self.newest_yet.filter(|newest| !newest.before(self.first));
        newest.map_or(0, |newest| newest.distance_from(self.first)).min(self.ring.len() as u32)
    }
}

/// The number of missing reports that marks a chunk. RACK uses it as the number of chunks beyond a hole that prove a
/// loss.
pub(crate) fn enough(rules: &Rules) -> u32 {
    rules.missing_reports
}

/// Whether a SACK that acknowledges `newest` can count as a missing report of this chunk. Data that was under way when
/// the chunk was marked says nothing about its retransmission.
fn counts(sent: &Sent, rule: FastRetransmissions, newest: Option<Tsn>) -> bool {
    let beyond = |point| newest.is_some_and(|newest| newest.after(point));
    rule != FastRetransmissions::PerRecovery || sent.fast.is_none_or(beyond)
}

/// Whether the state of this chunk admits that missing reports mark it.
fn is_open(sent: &Sent, rule: TimedOutChunk) -> bool {
    match sent.state {
        ChunkState::InFlight => true,
        ChunkState::Marked(Why::Timeout) => rule == TimedOutChunk::Counted,
        _ => false,
    }
}

/// Whether missing reports may mark this chunk.
fn may_mark(sent: &Sent, rule: FastRetransmissions) -> bool {
    match rule {
        FastRetransmissions::Again | FastRetransmissions::PerRecovery => true,
        FastRetransmissions::Once => sent.fast.is_none(),
        FastRetransmissions::BeforeResending => sent.fast.is_none() && !sent.resent,
    }
}

/// How many missing reports this SACK counts for.
struct Counting {
    by_path: bool,
    dac: Dac,
    /// The number of packets that the SACK acknowledges according to its flags.
    packets: u8,
    /// Paths whose chunks it newly acknowledges by Gap Ack Blocks.
    paths: usize,
}

impl Counting {
    fn new(news: &SackNews, mechanisms: &Mechanisms, paths: &Paths) -> Self {
        let dac = mechanisms::dac(mechanisms);
        let packets = if dac == Dac::On { news.packets.max(1) } else { news.packets };
        let acknowledged = |id: &PathId| paths.get(*id).tally.highest_gap.is_some();
        Counting {
            by_path: mechanisms.sfr == Sfr::On,
            dac,
            packets,
            paths: if dac == Dac::Off { 0 } else { paths.ids().filter(acknowledged).count() },
        }
    }

    /// The number of missing reports of a chunk, or `None` if it is not reported missing.
    fn reports(&self, sent: &Sent, tsn: Tsn, paths: &Paths) -> Option<u8> {
        let tally = &paths.get(sent.path).tally;
        if self.by_path && !tally.highest_gap.is_some_and(|highest| tsn.before(highest)) {
            return None;
        }
        if self.dac == Dac::Off {
            return Some(1);
        }
        // If a SACK covers several paths, or acknowledges chunks on both sides of this one, then possibly only one of
        // its packets was above this chunk.
        let across = tally.lowest.is_none_or(|lowest| lowest.before(tsn));
        Some(if self.paths > 1 || across { 1 } else { self.packets })
    }
}
