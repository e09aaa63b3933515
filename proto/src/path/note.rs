//! What observers are told of a path.

use std::hint::cold_path;

use super::{PathId, Paths};
use crate::notes::Notes;
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

    /// The same while notes are recorded.
    #[inline(never)]
    fn tell_window(&self, id: PathId, now: Time, notes: &mut Notes) {
        notes.add(now, || {
            let view = self.view(id);
            NoteKind::Window {
                path: id,
                cwnd: view.window,
                ssthresh: view.ssthresh,
                flight: view.flight,
                marked: view.marked,
            }
        });
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
