//! Losses that were none: a packet that was only late makes a timer expire or is reported missing, and a window is cut
//! without need (mechanism `spurious_losses`).
//!
//! For each cut, the first chunk thought lost is remembered with the time at which it was sent. When it is
//! acknowledged, the SACK echoes the packet that it answers. If that is the packet that seemed lost and not its
//! retransmission, the cut is taken back: the window, its threshold and RTO are restored, Fast Recovery that the timer
//! ended goes on, and chunks that the timer marked and that were not sent again yet count as in flight again. Detection
//! follows RFC 3522, the response RFC 4015; both were written for TCP.

use std::hint::cold_path;

use super::{SendContext, Sender};
use crate::extension::clock;
use crate::mechanisms::SpuriousLosses;
use crate::path::{PathId, RttSamples, Suspect};
use crate::{Duration, Tsn};

impl Sender {
    /// The window of a path is about to be cut because `tsn` seems to be lost. Of several cuts in a row the first is
    /// remembered: it knows the window from before all of them. `exit`: the exit point of the Fast Recovery that the
    /// loss has ended.
    pub(super) fn suspect(
        &self,
        id: PathId,
        tsn: Option<Tsn>,
        exit: Option<Tsn>,
        around: &mut SendContext<'_>,
    ) {
        if around.config.mechanisms.spurious_losses == SpuriousLosses::Off {
            return;
        }
        let (view, path) = around.paths.both(id);
        if let Some((tsn, sent)) = tsn.and_then(|tsn| Some((tsn, self.outstanding.get(tsn)?)))
            && path.suspect.is_none()
        {
            let (window, ssthresh) = (view.window, view.ssthresh);
            path.suspect = Some(Suspect { tsn, sent: sent.at, window, ssthresh, exit });
        }
    }

    /// Takes the cuts back that this SACK proves to be needless.
    #[inline(always)]
    pub(super) fn undo_spurious(&mut self, around: &mut SendContext<'_>) {
        if let RttSamples::Echoed(echo) = around.paths.samples {
            cold_path();
            self.undo_needless(echo, around);
        }
    }

    /// As `undo_spurious`, for a SACK that echoes this time stamp.
    fn undo_needless(&mut self, echo: Option<u32>, around: &mut SendContext<'_>) {
        for id in around.paths.ids() {
            let Some(suspect) = around.paths.get(id).suspect else { continue };
            if self.outstanding.is_unacknowledged(suspect.tsn) {
                continue;
            }
            around.paths.get_mut(id).suspect = None;
            if echo == Some(clock(suspect.sent)) {
                self.undo(id, suspect, around.now.since(suspect.sent), around);
            }
        }
    }

    fn undo(&mut self, id: PathId, suspect: Suspect, rtt: Duration, around: &mut SendContext<'_>) {
        self.outstanding.unmark_timed_out(id, around.paths);
        self.recoveries.resume(id, suspect.exit, self.outstanding.point());
        let limits = around.paths.limits;
        around.paths.view_mut(id).measure(rtt, limits);
        around.paths.note_rto(id, around.now, Some(rtt), around.notes);
        around.paths.undo(id, suspect, around.now, around.notes);
        around.statistics.spurious_losses += 1;
    }
}
