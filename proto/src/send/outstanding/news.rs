//! What a SACK newly acknowledges (RFC 9260 §6.2.1, §7.2.4). The cost depends on what is new in it, not on how much is
//! outstanding.

use std::hint::cold_path;

use super::copies;
use super::points::{Growth, PointCount};
use super::{ChunkState, Outstanding, Sent};
use crate::control::ranges::Ranges;
use crate::extension::clock;
use crate::mechanisms::Mechanisms;
use crate::path::rack::Delivered;
use crate::path::{Paths, RttSamples, SackResult, Timer};
use crate::policy::Why;
use crate::serial::LATE;
use crate::wire::chunk::Sack;
use crate::{PathId, Time, Tsn};

/// What a chunk with a Cumulative TSN Ack reports beyond it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum GapReport {
    /// The Gap Ack Blocks list all data that has arrived there: a SACK.
    Gaps,
    /// It reports nothing: a SHUTDOWN.
    Nothing,
}

/// The result of reading a SACK.
pub(crate) enum SackOutcome {
    /// It is older than an earlier SACK.
    Old,
    /// It acknowledges data that was never sent.
    Impossible,
    /// It is valid; this is new in it.
    News(SackNews),
}

/// The association's part of what a SACK newly says. Each path has a tally of its own.
#[derive(Debug)]
pub(crate) struct SackNews {
    /// Whether the Cumulative TSN Ack Point advanced.
    pub(crate) advanced: bool,
    /// Bytes newly acknowledged, on all paths.
    pub(crate) acked: u64,
    /// User bytes that the Cumulative TSN Ack Point passed.
    pub(crate) user_bytes: u64,
    /// Whether it cumulatively acknowledged a chunk that missing reports had marked.
    pub(crate) fast_acked: bool,
    /// Whether it cumulatively acknowledged a retransmitted chunk.
    pub(crate) resent_acked: bool,
    /// The highest TSN newly acknowledged, plus one, as an offset from the new first TSN. 0 if no such TSN is beyond
    /// it.
    pub(super) newest: u32,
    /// Whether there were Gap Ack Blocks.
    pub(super) gaps: bool,
    /// The number of packets that the SACK acknowledges according to its flags.
    pub(super) packets: u8,
    /// Whether windows grow with the Cumulative TSN Ack Point, and not with the own points of paths.
    pub(crate) by_association: bool,
}

/// What a plain SACK says: see [`Outstanding::take_plain`].
#[derive(Debug)]
pub(crate) struct PlainSack {
    /// The only path that it concerns.
    pub(crate) path: PathId,
    /// What it says about that path.
    pub(crate) result: SackResult,
    /// User bytes that it acknowledges.
    pub(crate) user_bytes: u64,
}

impl SackNews {
    /// Nothing is known yet but that the SACK advances the Cumulative TSN Ack Point by `covered`.
    fn of(sack: &Sack, covered: u32, mechanisms: &Mechanisms) -> Self {
        SackNews {
            advanced: covered > 0,
            acked: 0,
            user_bytes: 0,
            fast_acked: false,
            resent_acked: false,
            newest: 0,
            gaps: !sack.gaps.is_empty(),
            packets: sack.packets(),
            by_association: !PointCount::decides_growth(mechanisms),
        }
    }
}

impl Outstanding {
    /// Takes in any SACK: updates the states of chunks, the flight, the tallies and the RTT. Missing reports are
    /// counted afterwards.
    pub(crate) fn take_in(
        &mut self,
        sack: &Sack,
        says: GapReport,
        mechanisms: &Mechanisms,
        now: Time,
        paths: &mut Paths,
    ) -> SackOutcome {
        let covered = sack.cumulative.distance_from(self.point());
        if covered >= 1 << 31 {
            cold_path();
            return SackOutcome::Old;
        }
        let last = sack.gaps.iter().map(|gap| u32::from(gap.end)).max().unwrap_or(0);
        if covered as usize + last as usize > self.ring.len() {
            cold_path();
            // A SACK from before a reset of the TSNs may be late. It lies up to half the number space ahead.
            let late = self.before_restart.is_some_and(|last| last.distance_from(sack.cumulative) <= LATE);
            return if late { SackOutcome::Old } else { SackOutcome::Impossible };
        }
        paths.begin_tallies();
        let mut news = SackNews::of(sack, covered, mechanisms);
        let reports = (says == GapReport::Gaps).then_some(sack);
        self.take_any(covered, reports, mechanisms, now, paths, &mut news);
        SackOutcome::News(news)
    }

    /// Takes in a plain SACK, which most are: without Gap Ack Blocks now or before, acknowledging chunks that were sent
    /// once, all on one path. Leaves everything as [`take_in`](Self::take_in) would, but returns what it says about its
    /// path instead of noting it there. Returns `None` for any other SACK.
    #[inline(always)]
    pub(crate) fn take_plain(&mut self, sack: &Sack, now: Time, paths: &mut Paths) -> Option<PlainSack> {
        let covered = sack.cumulative.distance_from(self.point()) as usize;
        let gaps = !(sack.gaps.is_empty() && self.acked.is_empty() && self.released.is_empty());
        if gaps || covered == 0 || covered > self.ring.len() {
            return None;
        }
        let id = self.first_path()?;
        let (mut size, mut user_bytes) = (0, 0);
        let plain = |sent: &Sent| {
            size += u64::from(sent.size);
            user_bytes += sent.data.payload.len() as u64;
            sent.path == id && sent.is_plain()
        };
        let end = self.first.plus(covered as u32);
        if !paths.times_one(id, end) || !self.ring.range(..covered).all(plain) {
            return None;
        }
        for _ in 0..covered {
            self.ring.pop_front();
        }
        let first = self.first;
        self.first = end;
        let last = self.point();
        self.user_bytes -= user_bytes;
        self.newest_yet = Some(last);
        let acked = |tsn: Tsn| !tsn.before(first) && !tsn.after(last);
        let flight_before = paths.counted(id);
        let (view, path) = paths.both(id);
        view.flight -= size;
        view.delivered += size;
        path.buffered -= size;
        let passed_point = path.points.reached_by(last);
        path.points.seek();
        let earliest = path.earliest.is_some_and(acked);
        let rtt = path.timed.take_if(|(timed, _)| acked(*timed)).map(|(_, since)| now.since(since));
        if earliest {
            // This is the usual case, and searching costs more.
            match self.ring.front().filter(|sent| sent.is_on(id)) {
                Some(_) => path.earliest = Some(self.first),
                None => self.renew_earliest(id, paths),
            }
        }
        let (cumulative, lowest) = (size, Some(first));
        let [moved, passed, unambiguous, awaited, certain] = [true; 5];
        let of = SackResult { flight_before, cumulative, lowest, moved, passed, ..SackResult::default() };
        let result = SackResult { unambiguous, awaited, certain, passed_point, earliest, rtt, ..of };
        Some(PlainSack { path: id, result, user_bytes })
    }

    /// Takes in a SACK that covers `covered` chunks. `reports`: the SACK itself, if its Gap Ack Blocks count.
    #[inline(never)]
    fn take_any(
        &mut self,
        covered: u32,
        reports: Option<&Sack>,
        mechanisms: &Mechanisms,
        now: Time,
        paths: &mut Paths,
        news: &mut SackNews,
    ) {
        let seeker = PointCount::new(mechanisms, paths.t3_restart());
        let by_association = news.by_association;
        self.take_cumulative(covered, now, paths, news);
        if let Some(sack) = reports.filter(|_| news.gaps || !self.acked.is_empty()) {
            let growth = if by_association { Growth::Association(news.advanced) } else { Growth::Path };
            self.take_gaps(sack, seeker.map(|seeker| (seeker, growth)), now, paths, news);
        }
        for id in paths.ids() {
            let tally = &mut paths.get_mut(id).tally;
            if by_association && seeker.is_none() {
                tally.gap_behind_point = if news.advanced { tally.gap } else { 0 };
            }
            if tally.earliest {
                self.renew_earliest(id, paths);
            }
            if paths.get(id).times_several() {
                paths.get_mut(id).forget_timed_below(self.first);
            }
        }
    }

    fn take_cumulative(&mut self, covered: u32, now: Time, paths: &mut Paths, news: &mut SackNews) {
        for _ in 0..covered {
            let Some(sent) = self.ring.front_mut() else { break };
            let user = sent.data.payload.len() as u64;
            self.user_bytes -= user;
            news.user_bytes += user;
            news.fast_acked |= sent.fast.is_some();
            news.resent_acked |= sent.resent;
            let path = paths.get_mut(sent.path);
            if sent.state != ChunkState::Abandoned {
                path.buffered -= u64::from(sent.size);
            }
            path.tally.passed = true;
            if let (Some(rack), ChunkState::Acked) = (&mut path.rack, sent.state) {
                rack.gapped -= 1;
            }
            path.tally.passed_point |= path.points.reached_by(self.first);
            if sent.unacknowledged() {
                news.acked += u64::from(sent.size);
                path.tally.moved = true;
                path.points.seek();
                self.newest_yet = Some(self.first);
                acknowledge(sent, self.first, now, paths, false);
                self.copied -= copies::end(sent, self.first, paths);
            }
            self.first = self.first.next();
            self.ring.pop_front();
        }
        self.acked.advance(covered);
        self.released.advance(covered);
    }

    fn take_gaps(
        &mut self,
        sack: &Sack,
        seeker: Option<(PointCount, Growth)>,
        now: Time,
        paths: &mut Paths,
        news: &mut SackNews,
    ) {
        let sound = sack.gaps.iter().filter(|gap| gap.start >= 1 && gap.start <= gap.end);
        let said = Ranges::of(sound.map(|gap| (u32::from(gap.start) - 1, u32::from(gap.end))));
        let said = self.with_released(said);
        if let Some((seeker, growth)) = seeker {
            self.seek_points(&said, seeker, growth, paths);
        }
        let (ring, first, copied) = (&mut self.ring, self.first, &mut self.copied);
        let keep_reports = paths.keeps_reports();
        said.without(&self.acked, |start, end| {
            for offset in start..end {
                let sent = &mut ring[offset as usize];
                if sent.unacknowledged() {
                    news.acked += u64::from(sent.size);
                    news.newest = offset + 1;
                    acknowledge(sent, first.plus(offset), now, paths, true);
                    *copied -= copies::end(sent, first.plus(offset), paths);
                    sent.state = ChunkState::Acked;
                }
            }
        });
        self.acked.without(&said, |start, end| {
            for offset in start..end {
                renege(&mut ring[offset as usize], first.plus(offset), now, paths, keep_reports);
            }
        });
        self.acked = said;
        if news.newest > 0 {
            let newest = first.plus(news.newest - 1);
            self.newest_yet = Some(self.newest_yet.filter(|yet| yet.after(newest)).unwrap_or(newest));
        }
    }
}

/// A chunk is acknowledged for the first time, cumulatively or by a Gap Ack Block.
#[inline(always)]
fn acknowledge(sent: &Sent, tsn: Tsn, now: Time, paths: &mut Paths, by_gap: bool) {
    let samples = paths.samples;
    let (view, path) = paths.both(sent.path);
    let size = u64::from(sent.size);
    let tally = &mut path.tally;
    match sent.state {
        ChunkState::Marked(why) => {
            view.marked -= size;
            view.late += size;
            tally.awaited |= why != Why::Timeout;
        }
        _ => {
            view.flight -= size;
            tally.awaited = true;
        }
    }
    view.delivered += size;
    tally.unambiguous |= !sent.moved;
    let (once, unmarked) = (sent.transmissions == 1, sent.state != ChunkState::Marked(Why::Timeout));
    tally.certain |= if by_gap { once || unmarked } else { once && unmarked };
    tally.lowest = tally.lowest.or(Some(tsn));
    if by_gap {
        tally.gap += size;
        // With two copies it is unknown which one arrived. So this shows no missing chunk on either path.
        tally.highest_gap = if sent.copy.is_none() { Some(tsn) } else { tally.highest_gap };
    } else {
        tally.cumulative += size;
    }
    tally.earliest |= path.earliest == Some(tsn);
    match samples {
        RttSamples::Echoed(echo) if echo == Some(clock(sent.at)) => tally.rtt = Some(now.since(sent.at)),
        RttSamples::Echoed(_) => {}
        RttSamples::OneAtATime => {
            if path.timed.is_some_and(|(timed, _)| timed == tsn) {
                let since = path.end_timing_of(by_gap);
                path.tally.rtt = since.map(|since| now.since(since));
            }
        }
    }
    if path.rack.is_some() {
        hear_order(sent, tsn, now, paths, by_gap);
    }
    let path = paths.get(sent.path);
    if path.times_several() {
        acknowledge_timed(sent, tsn, now, paths, by_gap);
    }
}

/// What the acknowledgement of a chunk says about the order in which chunks arrive.
#[cold]
fn hear_order(sent: &Sent, tsn: Tsn, now: Time, paths: &mut Paths, by_gap: bool) {
    let earlier = match paths.samples {
        RttSamples::Echoed(Some(echo)) => clock(sent.at).wrapping_sub(echo).wrapping_sub(1) < 1 << 31,
        RttSamples::Echoed(None) | RttSamples::OneAtATime => false,
    };
    let again = sent.transmissions > 1;
    let ambiguous = sent.copied || (again && earlier);
    let (view, path) = paths.both(sent.path);
    let Some(rack) = &mut path.rack else { return };
    rack.delivered(&Delivered { tsn, at: sent.at, again, ambiguous }, now, view.min_rtt);
    rack.gapped += u32::from(by_gap);
}

/// As `acknowledge`, for a chunk that may be timed beside the one that is being timed (rule `rtt_on_cut`). Its
/// measurement ends for another.
#[cold]
fn acknowledge_timed(sent: &Sent, tsn: Tsn, now: Time, paths: &mut Paths, by_gap: bool) {
    let timed_out = sent.state == ChunkState::Marked(Why::Timeout);
    let Some(since) = paths.get_mut(sent.path).end_timing_beside(tsn, by_gap) else { return };
    if !timed_out {
        let rtt = now.since(since);
        paths.measure(sent.path, rtt);
        let path = paths.get_mut(sent.path);
        (path.tally.also_timed, path.beside) = (true, Some(rtt));
    }
}

/// A chunk that a Gap Ack Block had acknowledged is missing again. It is in flight as before, with one missing report
/// or as many as it had.
//= rfc9260#section-6.2.1
fn renege(sent: &mut Sent, tsn: Tsn, now: Time, paths: &mut Paths, keep_reports: bool) {
    if sent.state != ChunkState::Acked {
        return;
    }
    sent.state = ChunkState::InFlight;
    if !keep_reports {
        sent.missing = 1;
    }
    let (view, path) = paths.both(sent.path);
    view.flight += u64::from(sent.size);
    view.delivered -= u64::from(sent.size);
    if let Some(rack) = &mut path.rack {
        rack.gapped -= 1;
    }
    if path.earliest.is_none_or(|earliest| tsn.before(earliest)) {
        path.earliest = Some(tsn);
    }
    if path.timers[Timer::T3] == Time::NEVER {
        path.timers.set(Timer::T3, now + view.rto);
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    use super::*;
    use crate::policy::Why;
    use crate::wire::Address;
    use crate::wire::chunk::{Data, GapBlock};
    use crate::{Config, Duration, Policies, Ssn};

    fn below(random: &mut ChaCha8Rng, n: u32) -> u32 {
        random.next_u32() % n
    }

    fn two_paths(config: &Config, random: &mut ChaCha8Rng) -> Paths {
        let address = |host: u8| Address::ip(std::net::Ipv4Addr::new(10, 0, 0, host).into());
        let window = Policies::default().window(&config.window, config).expect("a window");
        let mut paths = Paths::new(config);
        for host in 0..2 {
            paths.add(
                PathId(host.into()),
                (address(1), address(2 + host)),
                Time::ZERO,
                config,
                &window,
                random,
            );
        }
        paths
    }

    fn chunk(tsn: Tsn) -> Data {
        let (payload, ppid) = (bytes::Bytes::from_static(&[0; 100]), 0);
        let [begin, end, unordered, immediate] = [true, true, false, false];
        Data { tsn, stream: 0, ssn: Ssn(0), ppid, begin, end, unordered, immediate, payload }
    }

    /// The receiver's next SACK: it usually covers some chunks more, and rarely reports a gap.
    fn next_sack(random: &mut ChaCha8Rng, outstanding: &Outstanding) -> Sack {
        let left = outstanding.len() as u32;
        let covered = below(random, 4).min(left);
        let gap = below(random, 12) == 0 && left > covered + 2;
        let gaps = if gap { vec![GapBlock { start: 2, end: (left - covered) as u16 }] } else { vec![] };
        let cumulative = outstanding.point().plus(covered);
        Sack { flags: 0, cumulative, a_rwnd: 1000, gaps: gaps.into(), duplicates: Default::default() }
    }

    /// Something that makes chunks unlike others: a timeout, a mark and its retransmission, a copy.
    fn disturb(random: &mut ChaCha8Rng, outstanding: &mut Outstanding, paths: &mut Paths, now: Time) {
        let path = PathId(below(random, 2) as u16);
        match below(random, 40) {
            0 => outstanding.time_out(path, Why::Timeout, paths, |_, _| false, |_| {}),
            1 => outstanding.mark(outstanding.point().next(), Why::Missing, paths),
            2 => outstanding.unmark_timed_out(path, paths),
            3 => {
                let lowest = outstanding.lowest_in_flight().filter(|(.., on)| *on != path);
                lowest.map(|(tsn, ..)| outstanding.copy(tsn, path, paths, now));
            }
            4..20 => {
                let marked = outstanding.lowest_marked();
                marked.map(|(tsn, _)| outstanding.resend(tsn, path, paths, now));
            }
            _ => {}
        }
    }

    /// Of four chunks the third is the only one of its stream. Who looks for streams with three chunks need not look
    /// there.
    #[test]
    fn the_search_for_an_ssn_ends_where_too_few_chunks_are_left() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let (mut paths, mut outstanding) =
            (two_paths(&Config::default(), &mut random), Outstanding::new(Tsn(1)));
        for stream in [0, 0, 1, 0] {
            let data = Data { stream, ssn: Ssn(9), ..chunk(outstanding.next_tsn()) };
            outstanding.push(data, 116, PathId(0), &mut paths, Time::ZERO);
        }
        let found = |stream, count| outstanding.lowest_ssn(stream, count);
        assert_eq!([found(0, 3), found(1, 3), found(1, 2)], [Some(Ssn(9)), None, Some(Ssn(9))]);
        assert_eq!([found(0, 5), found(2, 1)], [None, None]);
    }

    /// A plain SACK takes a short way. It must leave what the long way leaves.
    #[test]
    fn the_short_way_of_a_sack_ends_where_the_long_way_does() {
        let mut short_ways = 0;
        for seed in 0..40 {
            let (mut random, config) = (ChaCha8Rng::seed_from_u64(seed), Config::default());
            let mut paths = two_paths(&config, &mut random);
            let (mut outstanding, mut now) = (Outstanding::new(Tsn(u32::MAX - 100)), Time::ZERO);
            let mechanisms = &config.mechanisms;
            for _ in 0..200 {
                now += Duration::from_millis(1);
                for _ in 0..below(&mut random, 4) {
                    let path = PathId(u16::from(below(&mut random, 8) == 0));
                    outstanding.push(chunk(outstanding.next_tsn()), 116, path, &mut paths, now);
                }
                disturb(&mut random, &mut outstanding, &mut paths, now);
                let sack = next_sack(&mut random, &outstanding);
                let (mut long, mut paths_long) = (outstanding.clone(), paths.clone());
                let says = GapReport::Gaps;
                let SackOutcome::News(news) = long.take_in(&sack, says, mechanisms, now, &mut paths_long)
                else {
                    panic!("seed {seed}: no news");
                };
                match outstanding.take_plain(&sack, now, &mut paths) {
                    None => (outstanding, paths) = (long.clone(), paths_long.clone()),
                    Some(PlainSack { path, result, user_bytes }) => {
                        short_ways += 1;
                        assert!(news.advanced && !(news.fast_acked || news.resent_acked));
                        assert_eq!((news.acked, news.user_bytes), (result.cumulative, user_bytes));
                        paths.begin_tallies();
                        paths.get_mut(path).tally = result;
                        let beside = &mut paths.get_mut(PathId(1 - path.0)).tally;
                        *beside = paths_long.get(PathId(1 - path.0)).tally;
                        assert_eq!(beside.cumulative + beside.gap, 0, "seed {seed}");
                    }
                }
                assert_eq!(format!("{outstanding:?}"), format!("{long:?}"), "seed {seed}");
                assert_eq!(format!("{paths:?}"), format!("{paths_long:?}"), "seed {seed}");
            }
        }
        assert!(short_ways > 1000, "{short_ways}");
    }
}
