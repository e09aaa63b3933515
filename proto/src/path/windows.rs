//! What the windows of paths are told, and what they say then.

use super::start::{start, unit};
use super::{PathId, PathState, PathView, Paths, Suspect, Timer};
use crate::notes::Notes;
use crate::policy::{Acked, Loss, Lost, Sibling};
use crate::rules::DecayTie;
use crate::serial::LATE;
use crate::{Config, Duration, Time, Tsn};

impl Paths {
    /// Reports the SACK to a path's window. Makes no note of it.
    #[inline(always)]
    pub(crate) fn grow(&mut self, id: PathId, acked: &Acked) {
        self.renew_siblings(id);
        self.rest[id.index()].congestion.acked(acked, &self.siblings);
        self.see_window(id);
    }

    /// Reports a loss to a path's window.
    pub(crate) fn cut(&mut self, id: PathId, loss: Loss, now: Time, notes: &mut Notes) {
        self.renew_siblings(id);
        let lost = self.lost(id, loss, now);
        self.rest[id.index()].congestion.lost(&lost, &self.siblings);
        self.note_cut(id, now);
        self.renew(id, now, notes);
    }

    /// A packet with this TSN, sent on this path, was marked: cuts the window as after a loss, unless it was cut since
    /// then. All marks and losses of one window of data are one congestion. `highest`: the highest TSN sent.
    //= rfc3168#section-6.1.2
    pub(crate) fn cut_for_mark(&mut self, id: PathId, tsn: Tsn, highest: Tsn, now: Time, notes: &mut Notes) {
        if self.get(id).cut_up_to.is_none_or(|cut| tsn.after(cut)) {
            self.penalise(id, now, notes);
            let path = self.get_mut(id);
            (path.cut_up_to, path.cut_for_mark_up_to) = (Some(highest), Some(highest));
        }
    }

    /// `highest` is the highest TSN sent: forgets cuts so long ago that their TSNs would soon seem to lie ahead.
    //= rfc9260#section-1.6
    pub(crate) fn forget_cuts(&mut self, highest: Tsn) {
        for path in &mut self.rest {
            for cut in [&mut path.cut_up_to, &mut path.cut_for_mark_up_to] {
                cut.take_if(|cut| highest.distance_from(*cut) >= LATE);
            }
        }
    }

    /// What a path's window is told of a loss.
    fn lost(&self, id: PathId, how: Loss, now: Time) -> Lost {
        let view = self.view(id);
        Lost { now, how, outstanding: view.flight + view.marked }
    }

    /// As `cut`, unless it would enlarge the window: a timeout leaves less than the least threshold after a loss.
    pub(crate) fn penalise(&mut self, id: PathId, now: Time, notes: &mut Notes) {
        self.renew_siblings(id);
        let mut window = self.rest[id.index()].congestion.clone();
        window.lost(&self.lost(id, Loss::Missing, now), &self.siblings);
        if window.window() <= self.view(id).window {
            self.cut(id, Loss::Missing, now, notes);
        }
    }

    /// Reports that a cut of a path's window was needless.
    pub(crate) fn undo(&mut self, id: PathId, before: Suspect, now: Time, notes: &mut Notes) {
        self.rest[id.index()].congestion.undo(before.window, before.ssthresh);
        self.renew(id, now, notes);
    }

    /// The path works again: its window begins with this number of packets, which may leave at once.
    pub(crate) fn reopen(&mut self, id: PathId, packets: u32, now: Time, notes: &mut Notes) {
        let path = &mut self.rest[id.index()];
        path.congestion.reopen(packets);
        path.after_timeout = false;
        self.renew(id, now, notes);
    }

    /// The packets of the path may have another size now: it becomes the unit of the window. The window keeps its bytes,
    /// with two exceptions: before the first data it is at most the initial window for this size, and after a timeout
    /// at most one packet.
    //= rfc9260#section-7.2.1
    //= rfc8899#section-3
    pub(super) fn renew_unit(&mut self, id: PathId, config: &Config) {
        let stamps = self.stamps;
        let (view, path) = self.both(id);
        let unit = unit(config, view.remote, path.mtu.size(), stamps);
        if unit == path.unit {
            return;
        }
        path.unit = unit;
        path.congestion.set_unit(unit);
        if view.chunks == 0 {
            path.congestion.restart(start(config, view.remote, unit).window);
        } else if path.after_timeout {
            path.congestion.restart(unit);
        }
        self.see_window(id);
    }

    /// Updates the facts that the window of `own` sees: those of its own path and of the active paths.
    #[inline(always)]
    fn renew_siblings(&mut self, own: PathId) {
        self.siblings.clear();
        if !self.rest[own.index()].congestion.stands_alone() {
            self.list_siblings(own);
        }
    }

    /// As `renew_siblings`, for a window that looks at other paths.
    #[inline(never)]
    fn list_siblings(&mut self, own: PathId) {
        let seen = |view: &PathView| view.id == own || view.state == PathState::Active;
        let paths = self.views.iter().zip(&self.rest).filter(|(view, _)| seen(view));
        self.siblings.extend(paths.map(|(view, path)| Sibling {
            own: view.id == own,
            window: view.window,
            ssthresh: view.ssthresh,
            flight: view.flight,
            srtt: view.srtt,
            loss_distance: path.congestion.loss_distance(),
        }));
    }

    /// Whether the decay that is due now must come after the retransmission that T3-rtx of another path causes. Then
    /// it happens 1 ns later.
    pub(crate) fn defers_decay(&mut self, id: PathId, now: Time) -> bool {
        let tie = self.rules.decay_tie == DecayTie::Resend;
        let defers =
            tie && (self.t3_expired == now || self.rest.iter().any(|path| path.timers[Timer::T3] <= now));
        if defers {
            self.get_mut(id).timers.set(Timer::Idle, now + Duration::from_nanos(1));
        }
        defers
    }

    /// Nothing was sent on this path for an RTO. `outstanding`: whether acknowledgements may still enlarge its window.
    //= rfc9260#section-7.2.1
    pub(crate) fn idle(&mut self, id: PathId, outstanding: bool, now: Time, notes: &mut Notes) {
        let (view, path) = (&mut self.views[id.index()], &mut self.rest[id.index()]);
        let at = path.timers[Timer::Idle];
        path.idle_rtos = path.idle_rtos.saturating_add(1);
        let before = path.congestion.window();
        let again = path.congestion.idle(path.idle_rtos) || outstanding;
        // If the clock jumps, the RTOs that it has skipped count only while they make the window smaller.
        let from = if path.congestion.window() < before { at } else { at.max(now) };
        path.timers.set(Timer::Idle, if again { from + view.rto } else { Time::NEVER });
        self.renew(id, at, notes);
    }

    /// Copies the values of the window policy into the facts.
    #[inline(always)]
    fn see_window(&mut self, id: PathId) {
        let (view, path) = (&mut self.views[id.index()], &self.rest[id.index()]);
        view.window = path.cwnd();
        view.ssthresh = path.congestion.ssthresh();
    }

    /// As `see_window`, with a note.
    fn renew(&mut self, id: PathId, now: Time, notes: &mut Notes) {
        self.see_window(id);
        self.note_window(id, now, notes);
    }
}
