//! What observers are told of a path.

use std::hint::cold_path;

use super::{PathId, Paths};
use crate::notes::{Notes, Window};
use crate::output::NoteKind;
use crate::{Duration, Time};

impl Paths {
    /// Records a possible change of the window.
    #[inline(always)]
    pub(crate) fn note_window(&self, id: PathId, now: Time, notes: &mut Notes) {
        if notes.are_on() {
            cold_path();
            self.tell_window(id, now, notes);
        }
    }

    /// As `note_window`, while notes are recorded.
    #[inline(never)]
    fn tell_window(&self, id: PathId, now: Time, notes: &mut Notes) {
        let Window { cwnd, ssthresh, flight, marked } = self.window(id);
        notes.add(now, || NoteKind::Window { path: id, cwnd, ssthresh, flight, marked });
    }

    /// Records the windows that changed since they were recorded: chunks were marked, abandoned or sent on another
    /// path.
    #[inline(always)]
    pub(crate) fn note_changed_windows(&self, now: Time, notes: &mut Notes) {
        if notes.are_on() {
            cold_path();
            for id in self.ids() {
                if notes.is_outdated(id, self.window(id)) {
                    self.tell_window(id, now, notes);
                }
            }
        }
    }

    fn window(&self, id: PathId) -> Window {
        let view = self.view(id);
        Window { cwnd: view.window, ssthresh: view.ssthresh, flight: view.flight, marked: view.marked }
    }

    /// Records a possible change of RTO. `rtt`: what was measured now.
    pub(crate) fn note_rto(&mut self, id: PathId, now: Time, rtt: Option<Duration>, notes: &mut Notes) {
        let view = self.view_mut(id);
        view.rto_average.set(now, view.rto);
        notes.add(now, || {
            let view = self.view(id);
            NoteKind::Rto { path: id, rto: view.rto, srtt: view.srtt, rtt }
        });
    }
}
