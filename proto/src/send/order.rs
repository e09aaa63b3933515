//! Loss detection by time, and tail loss probes (RFC 8985). The state of each path is in `path/rack/`.

use smallvec::SmallVec;

use super::outstanding::{ByPath, enough};
use super::{PacketPlan, SendContext, Sender};
use crate::output::{Limit, NoteKind};
use crate::path::rack::Probe;
use crate::path::{PathId, Timer};
use crate::policy::{Ask, Choice, Loss, Why};
use crate::wire::Chunk;
use crate::wire::chunk::Sack;
use crate::{Time, Tsn};

impl Sender {
    /// Evaluates what a SACK says about the order in which chunks arrive, and about a tail loss probe.
    //= rfc8985#section-6.2
    pub(super) fn hear_order(&mut self, sack: &Sack, around: &mut SendContext<'_>) {
        let (point, next) = (self.outstanding.point(), self.outstanding.next_tsn());
        for id in around.paths.ids() {
            let Some(rack) = &mut around.paths.get_mut(id).rack else { return };
            rack.heard(around.now, point, next, !sack.duplicates.is_empty());
            let Some(probe) = rack.probe else { continue };
            let arrived = self.outstanding.has_arrived(probe.tsn);
            if arrived && rack.probe_arrived(sack.duplicates.contains(&probe.tsn)) {
                self.cut(id, Loss::Missing, around);
                self.tell_routes_lost(id, Loss::Missing);
            }
        }
    }

    /// Marks the chunks that RACK finds lost, and returns the lowest of them.
    //= rfc8985#section-6.2
    pub(super) fn mark_late(&mut self, around: &mut SendContext<'_>) -> Option<Tsn> {
        let mut lowest: Option<Tsn> = None;
        let (now, by_path) = (around.now, lateness(around));
        let notes = &mut *around.notes;
        self.outstanding.mark_late(&by_path, now, around.paths, |tsn, path| {
            lowest.get_or_insert(tsn);
            notes.add(now, || NoteKind::Marked { path, tsn, why: Why::Missing });
        });
        lowest
    }

    /// The reordering timer expired: chunks that were overtaken are lost now.
    //= rfc8985#section-6.2
    pub(crate) fn reordering_expired(&mut self, around: &mut SendContext<'_>) {
        for id in around.paths.ids() {
            let tally = &mut around.paths.get_mut(id).tally;
            (tally.marked, tally.lost_again) = (None, false);
        }
        self.event();
        if let Some(lowest) = self.mark_late(around) {
            let cut = self.cut_windows(lowest, around);
            self.rights.resend_as_windows_allow();
            self.grant_retransmissions(&cut, around);
        }
    }

    /// The chunks of a path that T3-rtx leaves in flight: those sent so late that RACK does not count them as lost
    /// yet. The lowest chunk is lost in any case.
    //= rfc8985#section-6.3
    pub(super) fn spared(&self, id: PathId, around: &SendContext<'_>) -> impl Fn(Tsn, Time) -> bool + use<> {
        let (now, earliest) = (around.now, around.paths.get(id).earliest);
        let detects = around.paths.detects_by_order();
        let lateness = lateness(around).get(id.index()).copied().flatten().filter(|_| detects);
        move |tsn, at| earliest != Some(tsn) && lateness.is_some_and(|path| !path.is_late(at, now))
    }

    /// Two round trips have passed on a path without an acknowledgement: one packet may probe it, unless a chunk in
    /// flight there was overtaken. In that case the loss is found without a probe.
    ///
    /// RFC 8985 sends no probe while the connection recovers from a loss. Here this applies to a path on which chunks
    /// were lost: retransmissions from another path are followed by nothing that would reveal their loss.
    //= rfc8985#section-7.3
    pub(crate) fn tail_due(&mut self, id: PathId, around: &mut SendContext<'_>) {
        let (view, path) = around.paths.both(id);
        path.timers.set(Timer::Tail, Time::NEVER);
        let may = path.rack.is_some_and(|rack| rack.may_probe()) && !path.after_timeout;
        let (flight, rto) = (view.flight > 0 && view.marked == 0, view.rto);
        if may && flight && self.outstanding.is_tail(id, around.paths) {
            around.paths.get_mut(id).timers.set(Timer::T3, around.now + rto);
            self.event();
            self.rights.grant_probe(id);
        }
    }

    /// The packet that probes a path, if one may leave: new data if the peer's window admits it and its route names
    /// this path, otherwise the highest chunk in flight there.
    //= rfc8985#section-7.3
    #[inline(always)]
    pub(super) fn tail_probe(&mut self, budget: u32, around: &mut SendContext<'_>) -> Option<PacketPlan> {
        let path = self.rights.probes()?;
        self.tail_probe_of(path, budget, around)
    }

    #[cold]
    #[inline(never)]
    fn tail_probe_of(
        &mut self,
        path: PathId,
        budget: u32,
        around: &mut SendContext<'_>,
    ) -> Option<PacketPlan> {
        let why = Why::TailProbe;
        if !around.paths.sends(path) || !around.paths.view(path).confirmed() {
            return None;
        }
        let window = self.measure(around);
        let next = self.queue.peek(around.paths.smallest_pmdcs()).filter(|_| !self.lacks_ssn());
        let fits = |&(_, size): &(u16, u32)| self.is_open() && u64::from(size) <= window && size <= budget;
        if let Some(next) = next.filter(fits) {
            let (choice, ask) = self.preferred(next, why, window, around);
            if choice == Choice::Send(path) {
                return Some(PacketPlan { path, why, limit: Limit::Granted, ask });
            }
        }
        let (tsn, size) = self.outstanding.highest_in_flight(path)?;
        let ask = self.ask_again(tsn, why, around.paths)?;
        let fits = size <= budget || size > around.paths.smallest_pmdcs();
        fits.then_some(PacketPlan { path, why, limit: Limit::Granted, ask })
    }

    /// Puts the chunk that probes its path into a packet again.
    pub(super) fn send_tail_again(
        &mut self,
        ask: &Ask,
        path: PathId,
        chunks: &mut SmallVec<[Chunk; 2]>,
        around: &mut SendContext<'_>,
    ) {
        let (tsn, size, why) = (ask.tsn, ask.size, ask.why);
        if let Some(data) = self.outstanding.send_tail_again(tsn, around.paths, around.now) {
            around.notes.add(around.now, || NoteKind::Sent { path, tsn, size, why });
            chunks.push(self.queue.chunk(data));
        }
    }

    /// A probe was sent; `again`: it repeats a chunk. T3-rtx restarts.
    //= rfc8985#section-7.3
    pub(super) fn tail_probed(&mut self, path: PathId, tsn: Tsn, again: bool, around: &mut SendContext<'_>) {
        self.rights.probed();
        let (view, path) = around.paths.both(path);
        view.tail_probes += 1;
        path.timers.set(Timer::T3, around.now + view.rto);
        path.timers.set(Timer::Tail, Time::NEVER);
        if let Some(rack) = &mut path.rack {
            rack.probed(Probe { tsn, at: around.now, again });
        }
    }
}

/// How each path judges its undelivered chunks.
fn lateness(around: &SendContext<'_>) -> ByPath {
    let enough = enough(&around.config.rules);
    around.paths.ids().map(|id| around.paths.lateness(id, enough)).collect()
}
