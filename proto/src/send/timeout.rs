//! T3-rtx expires, and the timer that probes a closed window.

use super::{SendContext, Sender};
use crate::Time;
use crate::mechanisms::OnTimeout;
use crate::output::NoteKind;
use crate::path::{PathId, Timer};
use crate::policy::{Loss, Why};

/// The cause of an expired T3-rtx.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum TimedOut {
    /// A loss: it counts as an error of the path.
    Error,
    /// A window probe that the peer answered without room for it: no error.
    Probe,
}

impl Sender {
    /// T3-rtx of a path has expired.
    //= rfc9260#section-6.3.3
    pub(crate) fn time_out(&mut self, id: PathId, around: &mut SendContext<'_>) -> TimedOut {
        around.paths.t3_expired = around.now;
        around.notes.add(around.now, || NoteKind::T3 { path: id });
        let probe = self.probing && self.heard_since_probe && self.outstanding.only().is_some();
        if !probe {
            let exit = self.recoveries.time_out(id);
            self.suspect(id, around.paths.get(id).earliest, exit, around);
            self.cut(id, Loss::Timeout, around);
            self.tell_routes_lost(id, Loss::Timeout);
        }
        self.back_off(id, probe, around);
        let why = if probe { Why::WindowProbe } else { Why::Timeout };
        self.mark_timed_out(id, why, around);
        if self.queue.ledger.is_some() {
            self.review(around);
        }
        self.event();
        if probe || around.config.mechanisms.on_timeout == OnTimeout::Packet {
            self.rights.grant(why);
        } else {
            self.rights.resend_as_windows_allow();
        }
        self.count_timeout(id, probe, around)
    }

    /// Doubles RTO, stops the timers of the path, and ends what they measured. `probe`: the chunk was a window probe.
    fn back_off(&mut self, id: PathId, probe: bool, around: &mut SendContext<'_>) {
        let limits = around.paths.limits;
        let highest = self.outstanding.highest();
        let (view, path) = around.paths.both(id);
        view.back_off(limits);
        path.end_timing();
        path.after_timeout |= !probe;
        path.timers.set(Timer::T3, Time::NEVER);
        // An RTO without an answer is a loss. It does not also count as idle time.
        path.timers.set(Timer::Idle, Time::NEVER);
        if let Some(rack) = &mut path.rack {
            rack.lost(highest);
        }
        around.paths.note_rto(id, around.now, None, around.notes);
    }

    /// Marks the chunks in flight on the path, for this reason. T3-rtx starts again if RACK leaves some in flight.
    //= rfc8985#section-6.3
    fn mark_timed_out(&mut self, id: PathId, why: Why, around: &mut SendContext<'_>) {
        let (now, spared) = (around.now, self.spared(id, around));
        let notes = &mut *around.notes;
        self.outstanding.time_out(
            id,
            why,
            around.paths,
            |tsn, sent| spared(tsn, sent.at),
            |tsn| {
                notes.add(now, || NoteKind::Marked { path: id, tsn, why });
            },
        );
        let (view, path) = around.paths.both(id);
        if view.flight > 0 {
            path.timers.set(Timer::T3, now + view.rto);
        }
    }

    fn count_timeout(&mut self, id: PathId, probe: bool, around: &mut SendContext<'_>) -> TimedOut {
        if probe {
            self.heard_since_probe = false;
            around.statistics.probes += 1;
            return TimedOut::Probe;
        }
        around.statistics.timeouts += 1;
        around.paths.view_mut(id).timeouts += 1;
        TimedOut::Error
    }

    /// The window has been closed for an RTO: one chunk may ask.
    //= rfc9260#section-6.1
    pub(crate) fn probe(&mut self) {
        self.probe_timer = Time::NEVER;
        self.rights.grant(Why::WindowProbe);
    }
}
