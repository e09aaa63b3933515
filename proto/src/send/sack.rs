//! Processing of a SACK, in order: acknowledgements, growth of windows, missing reports, cuts of windows, timers, and
//! rights to send.

use std::hint::cold_path;

use super::{SendContext, Sender};
use crate::mechanisms::{EarlyRetransmit, GrowthFlight};
use crate::output::NoteKind;
use crate::path::{PathId, PathView, Paths, SackResult};
use crate::policy::{Acked, Loss, Why};
use crate::rules::{ErrorClearing, OnMarking};
use crate::send::outstanding::{GapReport, PlainSack, Reported, SackNews, SackOutcome};
use crate::wire::chunk::Sack;
use crate::{Config, Tsn};

/// The effect of a SACK on the association.
pub(crate) enum Answer {
    /// Nothing.
    Ignored,
    /// It acknowledges a TSN that was never sent.
    Impossible,
    /// It was processed. `news`: it acknowledges something for the first time, be it only that the peer knows of chunks
    /// given up.
    Processed { news: bool },
    /// A plain one was processed: it newly acknowledged data on this path only, which no other path has carried.
    Plain(PathId),
}

impl Sender {
    /// Processes a SACK. A SACK that is older than an earlier one is also an event that releases data.
    pub(crate) fn sack(&mut self, sack: &Sack, around: &mut SendContext<'_>) -> Answer {
        self.heard(sack, GapReport::Gaps, around)
    }

    #[inline(always)]
    fn heard(&mut self, sack: &Sack, says: GapReport, around: &mut SendContext<'_>) -> Answer {
        self.events += 1;
        self.round = None;
        self.rights.sack();
        self.heard_since_probe = true;
        match self.outstanding.take_plain(sack, around.now, around.paths) {
            Some(plain) => self.hear_plain(&plain, sack, around),
            None => self.hear_any(sack, says, around),
        }
    }

    /// A plain SACK acknowledges the chunks of one path in order. Most do, so this is all that has to be done for them.
    #[inline(always)]
    fn hear_plain(&mut self, plain: &PlainSack, sack: &Sack, around: &mut SendContext<'_>) -> Answer {
        let PlainSack { path, result, user_bytes } = plain;
        around.statistics.acknowledged += user_bytes;
        let one_note = around.notes.are_kept();
        if !one_note {
            self.note_point(around);
        }
        self.recoveries.acknowledged(self.outstanding.point(), around.paths);
        self.grow_on(*path, result, true, around);
        if !one_note {
            around.paths.note_window(*path, around.now, around.notes);
        }
        around.paths.ask_for_pairs(around.now);
        around.paths.restart_t3_of(*path, result, around.now);
        around.paths.settle_t3_beside(*path, around.now);
        self.hear_window(sack);
        self.go_on(around);
        match one_note {
            true => self.note_plain(*path, around),
            false => self.note_peer_window(around),
        }
        self.use_window(around);
        Answer::Plain(*path)
    }

    /// Records what a plain SACK says, in one note.
    #[cold]
    #[inline(never)]
    fn note_plain(&self, path: PathId, around: &mut SendContext<'_>) {
        let cumulative = self.outstanding.point();
        // A train that goes on has just computed it.
        let known = self.train.map(|train| train.window);
        let peer_window = known.unwrap_or_else(|| self.peer_window(around.paths));
        debug_assert_eq!(peer_window, self.peer_window(around.paths));
        let view = around.paths.view(path);
        let (cwnd, ssthresh, flight, marked) = (view.window, view.ssthresh, view.flight, view.marked);
        let note = NoteKind::AckedAlone { path, cumulative, cwnd, ssthresh, flight, marked, peer_window };
        around.notes.keep(around.now, note);
    }

    #[inline(never)]
    fn hear_any(&mut self, sack: &Sack, says: GapReport, around: &mut SendContext<'_>) -> Answer {
        self.uncouple();
        let mechanisms = &around.config.mechanisms;
        let news = match self.outstanding.take_in(sack, says, mechanisms, around.now, around.paths) {
            SackOutcome::Old => {
                self.rights.old_sack();
                return Answer::Ignored;
            }
            SackOutcome::Impossible => return Answer::Impossible,
            SackOutcome::News(news) => news,
        };
        around.statistics.acknowledged += news.user_bytes;
        if news.advanced {
            self.note_point(around);
        }
        self.recoveries.acknowledged(self.outstanding.point(), around.paths);
        if around.paths.keeps_order() {
            cold_path();
            self.hear_order(sack, around);
        }
        if news.advanced && (news.fast_acked || news.resent_acked) {
            cold_path();
            self.rights.arm(news.fast_acked);
        }
        self.undo_spurious(around);
        self.grow_and_mark(&news, around);
        around.paths.restart_t3(around.now);
        self.hear_window(sack);
        self.note_peer_window(around);
        if news.advanced && self.queue.ledger.is_some() {
            self.hear_forward_answered(around);
        }
        self.use_window(around);
        Answer::Processed { news: news.advanced || news.acked > 0 }
    }

    /// Records that the Cumulative TSN Ack Point advanced.
    #[inline(always)]
    fn note_point(&self, around: &mut SendContext<'_>) {
        let cumulative = self.outstanding.point();
        around.notes.add(around.now, || NoteKind::Acked { cumulative });
    }

    /// The SACK announces the peer's receive buffer.
    #[inline(always)]
    fn hear_window(&mut self, sack: &Sack) {
        self.a_rwnd = u64::from(sack.a_rwnd);
        self.buffers.heard(self.a_rwnd);
    }

    /// Does what the window that was heard requires.
    #[inline(always)]
    fn use_window(&mut self, around: &mut SendContext<'_>) {
        self.answer_probe(around);
        if self.queue.ledger.is_some() || self.queue.interleaving.is_some() {
            cold_path();
            self.review(around);
        }
    }

    /// Processes the Cumulative TSN Ack of a SHUTDOWN. Earlier Gap Ack Blocks stay valid.
    //= rfc9260#section-3.3.8
    pub(crate) fn cumulative(&mut self, cumulative: Tsn, around: &mut SendContext<'_>) -> Answer {
        let a_rwnd = u32::try_from(self.a_rwnd).unwrap_or(u32::MAX);
        let (gaps, duplicates) = Default::default();
        self.heard(&Sack { flags: 0, cumulative, a_rwnd, gaps, duplicates }, GapReport::Nothing, around)
    }

    /// Windows grow, chunks are marked, and windows are cut. Growth comes before the marks, unless marked chunks must
    /// not count as in flight for the growth.
    #[inline(always)]
    fn grow_and_mark(&mut self, news: &SackNews, around: &mut SendContext<'_>) {
        let unmarked = grows_by_unmarked(around.config);
        if !unmarked {
            self.grow(news, around);
        }
        let lowest = match around.paths.detects_by_order() {
            true => self.mark_late(around),
            false => self.mark_missing(news, around),
        };
        if unmarked {
            self.grow(news, around);
        }
        if let Some(lowest) = lowest {
            let cut = self.cut_windows(lowest, around);
            self.grant_retransmissions(&cut, around);
        }
    }

    /// Reports to each path, its window and the routes what the SACK acknowledged there.
    #[inline(always)]
    fn grow(&mut self, news: &SackNews, around: &mut SendContext<'_>) {
        for id in around.paths.ids() {
            let tally = around.paths.get(id).tally;
            if tally.cumulative + tally.gap > 0 {
                let advanced = if news.by_association { news.advanced } else { tally.moved };
                self.grow_on(id, &tally, advanced, around);
                around.paths.note_window(id, around.now, around.notes);
            }
        }
        around.paths.ask_for_pairs(around.now);
    }

    /// As `grow`, for a path of which the SACK acknowledged something. `advanced`: a point advanced with which windows
    /// grow.
    #[inline(always)]
    fn grow_on(&mut self, id: PathId, tally: &SackResult, advanced: bool, around: &mut SendContext<'_>) {
        let (view, path) = around.paths.both(id);
        path.after_timeout = false;
        path.data_came_through();
        if proves_path(tally, around.config) {
            view.errors = 0;
            around.paths.resume_search(id);
        }
        if tally.also_timed {
            cold_path();
            let rtt = around.paths.get(id).beside;
            around.paths.note_rto(id, around.now, rtt, around.notes);
        }
        if let Some(rtt) = tally.rtt {
            around.paths.measure(id, rtt);
            around.paths.note_rto(id, around.now, tally.rtt, around.notes);
        }
        let unmarked = grows_by_unmarked(around.config);
        let flight = if unmarked { around.paths.view(id).flight } else { around.paths.counted(id) };
        let newly = tally.cumulative + tally.gap;
        let acked = Acked {
            now: around.now,
            cumulative: tally.cumulative,
            gap: tally.gap,
            gap_behind_point: tally.gap_behind_point,
            advanced,
            recovery: self.recoveries.recovers(id),
            flight_before: if unmarked { newly + flight } else { tally.flight_before },
            unacknowledged_before: tally.flight_before,
            flight,
            rtt: tally.rtt,
        };
        around.paths.grow(id, &acked);
        if around.paths.view(id).estimates.is_some() {
            cold_path();
            around.paths.estimate_from_sack(id, newly, tally.rtt, around.now, around.config);
        }
        if self.routes.hear_sacks {
            cold_path();
            self.tell_routes_acked(around.paths.view(id), &acked);
        }
    }

    /// Tells the routes what the SACK acknowledged on a path.
    #[inline(never)]
    fn tell_routes_acked(&mut self, path: &PathView, acked: &Acked) {
        for route in [&mut self.routes.new, &mut self.routes.fast, &mut self.routes.timeout] {
            route.acked(path, acked);
        }
    }

    /// Whether there is no new data, or none that the peer's window admits.
    fn sends_no_more(&self, around: &SendContext<'_>) -> bool {
        let next = self.queue.peek(around.paths.smallest_pmdcs());
        next.is_none_or(|(_, size)| u64::from(size) > self.peer_window(around.paths))
    }

    /// Counts missing reports and marks chunks. Returns the lowest marked chunk.
    //= rfc9260#section-7.2.4
    #[inline(always)]
    fn mark_missing(&mut self, news: &SackNews, around: &mut SendContext<'_>) -> Option<Tsn> {
        let now = around.now;
        let early = around.config.mechanisms.early_retransmit == EarlyRetransmit::On;
        let recovery = Reported {
            under_way: self.in_recovery(),
            exit: self.recoveries.last_exit(),
            last_unit: (early && self.sends_no_more(around)).then(|| around.paths.smallest_pmdcs()),
        };
        let mut lowest: Option<Tsn> = None;
        let notes = &mut *around.notes;
        let each = |tsn, count, marked| {
            notes.add(now, || NoteKind::MissingReport { tsn, count });
            if marked && lowest.is_none() {
                lowest = Some(tsn);
            }
        };
        self.outstanding.count_missing(news, recovery, around.config, around.paths, each);
        if let Some(tsn) = lowest {
            let marks = |id: &PathId| around.paths.get(*id).tally.marked == Some(tsn);
            if let Some(path) = around.paths.ids().find(marks) {
                around.notes.add(now, || NoteKind::Marked { path, tsn, why: Why::Missing });
            }
        }
        lowest
    }

    /// Chunks were marked, of which `lowest` is the lowest: cuts the windows of the paths that enter Fast Recovery for
    /// that, and of those where RACK found a retransmission lost. Returns these paths.
    //= rfc9260#section-7.2.4
    pub(super) fn cut_windows(&mut self, lowest: Tsn, around: &mut SendContext<'_>) -> Vec<PathId> {
        let mut entered = self.recoveries.enter(lowest, &self.outstanding, around.paths);
        let again = |id: &PathId| around.paths.get(*id).tally.lost_again && !entered.contains(id);
        entered.extend(around.paths.ids().filter(again).collect::<Vec<_>>());
        if !entered.is_empty() {
            around.statistics.fast_recoveries += 1;
        }
        for &id in &entered {
            //= rfc3168#section-6.1.2
            // A mark may have told of the same congestion before.
            let told = around.paths.get(id).cut_for_mark_up_to;
            if told.is_none_or(|cut| self.outstanding.lost_after(id, cut)) {
                self.suspect(id, around.paths.get(id).tally.marked, None, around);
                self.cut(id, Loss::Missing, around);
            }
            self.tell_routes_lost(id, Loss::Missing);
            around.paths.get_mut(id).cut_timing();
        }
        entered
    }

    /// Cuts the window of a path after a loss.
    pub(super) fn cut(&self, id: PathId, loss: Loss, around: &mut SendContext<'_>) {
        around.paths.cut(id, loss, around.now, around.notes);
        around.paths.get_mut(id).cut_up_to = Some(self.outstanding.highest());
    }

    /// Grants the packets that a SACK that reports losses may release regardless of the windows: for each path, if each
    /// path recovers by itself.
    //= rfc9260#section-7.2.4
    pub(super) fn grant_retransmissions(&mut self, entered: &[PathId], around: &SendContext<'_>) {
        let by_path = self.recoveries.by_path();
        let rule = around.config.rules.on_marking;
        if rule == OnMarking::PacketEachPath {
            for id in around.paths.ids() {
                self.rights.set_lost(id, self.outstanding.lost_on(id));
            }
            return;
        }
        let on_entry = rule == OnMarking::PacketOnEntry;
        if by_path {
            let newly = |id: &PathId| around.paths.get(*id).tally.marked.is_some();
            let entry = |id: &PathId| if on_entry { entered.contains(id) } else { newly(id) };
            around.paths.ids().filter(entry).for_each(|id| self.rights.grant_on(id));
        } else if !on_entry || !entered.is_empty() {
            self.rights.grant(Why::Missing);
        }
        if rule == OnMarking::OnePacket {
            self.rights.bar();
        }
    }

    pub(super) fn tell_routes_lost(&mut self, id: PathId, loss: Loss) {
        for route in [&mut self.routes.new, &mut self.routes.fast, &mut self.routes.timeout] {
            route.lost(id, loss);
        }
    }

    #[inline(always)]
    pub(super) fn note_peer_window(&self, around: &mut SendContext<'_>) {
        if around.notes.are_on() {
            cold_path();
            let bytes = self.peer_window(around.paths);
            around.notes.add(around.now, || NoteKind::PeerWindow { bytes });
        }
    }

    /// The window is open again, but the chunk that probed it was dropped: it goes again at once.
    //= rfc9260#section-6.1
    fn answer_probe(&mut self, around: &mut SendContext<'_>) {
        if !self.probing {
            return;
        }
        cold_path();
        let Some(tsn) = self.outstanding.only() else {
            self.probing = false;
            return;
        };
        let size = self.outstanding.get(tsn).map_or(0, |sent| u64::from(sent.size));
        if self.a_rwnd >= size {
            self.probing = false;
            self.outstanding.mark(tsn, Why::WindowProbe, around.paths);
            self.rights.grant(Why::WindowProbe);
        }
    }
}

/// Whether only unmarked chunks count as in flight for the growth of windows.
fn grows_by_unmarked(config: &Config) -> bool {
    config.mechanisms.growth_flight == GrowthFlight::Unmarked
}

/// A path that was thought dead or failing, and that this SACK proves to work.
//= rfc7829#section-3.2
pub(crate) fn revived(paths: &Paths, config: &Config) -> Option<PathId> {
    let failed = paths.views().iter().filter(|view| view.has_failed());
    failed.map(|view| view.id).find(|id| proves_path(&paths.get(*id).tally, config))
}

/// Whether what a SACK acknowledged on a path counts as a sign that the path works. RFC 9260 leaves it to the sender
/// whether an ambiguous acknowledgement does: with an RTO below the peer's SACK delay, every chunk is sent on both
/// paths before its SACK arrives, and a dead path would be cleared again and again.
//= rfc9260#section-8.2
fn proves_path(tally: &SackResult, config: &Config) -> bool {
    let may_fail = config.pf_max_retrans.is_some();
    match config.rules.error_clearing {
        ErrorClearing::Unmarked if may_fail => tally.certain,
        ErrorClearing::Unmarked => tally.awaited,
        ErrorClearing::Any if !may_fail => tally.cumulative + tally.gap > 0,
        ErrorClearing::Any | ErrorClearing::Unambiguous => tally.unambiguous,
    }
}
