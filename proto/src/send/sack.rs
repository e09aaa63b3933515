//! A SACK, in order: what is acknowledged, growth, what is missing, cuts, timers, and what may leave for it.

use super::{Sender, Surroundings};
use crate::output::NoteKind;
use crate::path::{PathId, PathState, Paths, Tally};
use crate::policy::{Acked, Loss, Why};
use crate::rules::{ErrorClearing, FastRecovery, OnMarking, RttOnCut, Rules, T3Restart};
use crate::send::outstanding::{Digest, Heard, Says};
use crate::wire::chunk::Sack;
use crate::{Config, Time, Tsn};

/// What a SACK meant for the association.
pub(crate) enum Answer {
    /// Nothing.
    Ignored,
    /// It acknowledges what was never sent.
    Impossible,
    /// It was taken in, and acknowledged so many bytes for the first time.
    Taken(u64),
}

impl Sender {
    /// Takes a SACK in. Also one that is older than another heard before is an event that lets data go.
    pub(crate) fn sack(&mut self, sack: &Sack, around: &mut Surroundings<'_>) -> Answer {
        self.heard(sack, Says::Gaps, around)
    }

    fn heard(&mut self, sack: &Sack, says: Says, around: &mut Surroundings<'_>) -> Answer {
        self.rights.sack();
        self.heard_since_probe = true;
        let digest = match self.outstanding.digest(sack, says, around.now, around.paths) {
            Heard::Old => return Answer::Ignored,
            Heard::Impossible => return Answer::Impossible,
            Heard::News(digest) => digest,
        };
        around.statistics.acknowledged += digest.user_bytes;
        if digest.advanced {
            let cumulative = self.outstanding.point();
            around.notes.add(around.now, || NoteKind::Acked { cumulative });
        }
        if self.exit.is_some_and(|exit| !self.outstanding.point().before(exit)) {
            self.exit = None;
        }
        if digest.fast_acked && digest.advanced {
            self.rights.arm();
        }
        self.grow(&digest, around);
        self.mark_missing(&digest, around);
        self.restart_t3(around);
        self.a_rwnd = u64::from(sack.a_rwnd);
        self.note_peer_window(around);
        self.answer_probe(around);
        if self.queue.ledger.is_some() || self.queue.interleaving.is_some() {
            self.review(around);
        }
        Answer::Taken(digest.acked)
    }

    /// Takes the Cumulative TSN Ack of a SHUTDOWN in. It takes nothing back that gap blocks have said.
    //= rfc9260#section-3.3.8
    pub(crate) fn cumulative(&mut self, cumulative: Tsn, around: &mut Surroundings<'_>) -> Answer {
        let a_rwnd = u32::try_from(self.a_rwnd).unwrap_or(u32::MAX);
        let (gaps, duplicates) = Default::default();
        self.heard(&Sack { cumulative, a_rwnd, gaps, duplicates }, Says::Nothing, around)
    }

    /// Tells each path, its window and the routes what the SACK acknowledged there.
    fn grow(&mut self, digest: &Digest, around: &mut Surroundings<'_>) {
        for id in around.paths.ids() {
            let tally = around.paths.get(id).tally;
            if tally.cumulative + tally.gap == 0 {
                continue;
            }
            if let Some(rtt) = tally.rtt {
                let limits = around.paths.limits;
                around.paths.view_mut(id).measure(rtt, limits);
                around.paths.note_rto(id, around.now, around.notes);
            }
            if proves_path(&tally, around.config) {
                around.paths.view_mut(id).errors = 0;
            }
            around.paths.get_mut(id).lone = false;
            around.paths.get_mut(id).data_came_through();
            let acked = Acked {
                now: around.now,
                cumulative: tally.cumulative,
                gap: tally.gap,
                advanced: digest.advanced,
                recovery: self.in_recovery(),
                flight_before: tally.flight_before,
                flight: around.paths.counted(id),
                rtt: tally.rtt,
            };
            around.paths.grow(id, &acked, around.notes);
            for route in [&mut self.routes.new, &mut self.routes.fast, &mut self.routes.timeout] {
                route.acked(id, &acked);
            }
        }
    }

    /// Counts missing reports, marks, cuts windows and grants the fast retransmission.
    //= rfc9260#section-7.2.4
    fn mark_missing(&mut self, digest: &Digest, around: &mut Surroundings<'_>) {
        let rules = &around.config.rules;
        let (now, recovery) = (around.now, self.in_recovery());
        let mut lowest: Option<Tsn> = None;
        let notes = &mut *around.notes;
        self.outstanding.count_missing(digest, recovery, rules, around.paths, |tsn, count, marked| {
            notes.add(now, || NoteKind::MissingReport { tsn, count });
            if marked && lowest.is_none() {
                lowest = Some(tsn);
            }
        });
        let Some(lowest) = lowest else { return };
        self.note_marked(lowest, around);
        let entered = self.enter_recovery(lowest, rules);
        if entered {
            self.cut_windows(around);
        }
        match around.config.rules.on_marking {
            OnMarking::PacketOnEntry if !entered => {}
            OnMarking::PacketOnEntry | OnMarking::PacketThenRoom => self.rights.grant(Why::Missing),
            OnMarking::OnePacket => {
                self.rights.grant(Why::Missing);
                self.rights.bar();
            }
        }
    }

    fn note_marked(&self, tsn: Tsn, around: &mut Surroundings<'_>) {
        let Some(path) = self.outstanding.standing_path(tsn) else { return };
        around.notes.add(around.now, || NoteKind::Marked { path, tsn, why: Why::Missing });
    }

    /// Whether the chunks marked by this SACK, `lowest` the first of them, cut the window; moves the exit point.
    fn enter_recovery(&mut self, lowest: Tsn, rules: &Rules) -> bool {
        let cut = match (rules.fast_recovery, self.exit) {
            (FastRecovery::None, _) => return true,
            (_, None) => true,
            (FastRecovery::UntilExit, Some(_)) => false,
            (FastRecovery::OncePerWindow, Some(exit)) => lowest.after(exit),
        };
        if cut {
            self.exit = Some(self.outstanding.highest());
        }
        cut
    }

    fn cut_windows(&mut self, around: &mut Surroundings<'_>) {
        around.statistics.fast_recoveries += 1;
        for id in around.paths.ids() {
            if !around.paths.get(id).tally.marked {
                continue;
            }
            around.paths.cut(id, Loss::Missing, around.now, around.notes);
            self.tell_routes_lost(id, Loss::Missing);
            if around.config.rules.rtt_on_cut == RttOnCut::Cancel {
                around.paths.get_mut(id).timed = None;
            }
        }
    }

    pub(super) fn tell_routes_lost(&mut self, id: PathId, loss: Loss) {
        for route in [&mut self.routes.new, &mut self.routes.fast, &mut self.routes.timeout] {
            route.lost(id, loss);
        }
    }

    //= rfc9260#section-6.3.2
    fn restart_t3(&mut self, around: &mut Surroundings<'_>) {
        let any_cumulative = around.config.rules.t3_restart == T3Restart::AnyCumulative;
        for id in around.paths.ids() {
            let counted = around.paths.counted(id);
            let (view, path) = around.paths.both(id);
            let restart = path.tally.earliest || (any_cumulative && path.tally.passed);
            if counted == 0 {
                path.timers.t3 = Time::NEVER;
            } else if restart || path.timers.t3 == Time::NEVER {
                path.timers.t3 = around.now + view.rto;
            }
        }
    }

    pub(super) fn note_peer_window(&self, around: &mut Surroundings<'_>) {
        let paths = &*around.paths;
        around.notes.add(around.now, || NoteKind::PeerWindow { bytes: self.peer_window(paths) });
    }

    /// The window is open again, but the chunk that probed it was dropped: it goes again at once.
    //= rfc9260#section-6.1
    fn answer_probe(&mut self, around: &mut Surroundings<'_>) {
        if !self.probing {
            return;
        }
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

/// A path that was thought dead or failing, and that this SACK proves to work.
//= rfc7829#section-3.2
pub(crate) fn revived(paths: &Paths, config: &Config) -> Option<PathId> {
    paths.ids().find(|id| {
        proves_path(&paths.get(*id).tally, config)
            && matches!(paths.view(*id).state, PathState::Inactive | PathState::PotentiallyFailed)
    })
}

/// Whether what a SACK acknowledged on a path counts as a sign that the path works. RFC 9260 leaves it to the sender
/// whether an ambiguous acknowledgement does: with an RTO below the peer's SACK delay, every chunk is sent on both
/// paths before its SACK arrives, and a dead path would be cleared again and again.
//= rfc9260#section-8.2
fn proves_path(tally: &Tally, config: &Config) -> bool {
    let any = config.rules.error_clearing == ErrorClearing::Any && config.pf_max_retrans.is_none();
    tally.cumulative + tally.gap > 0 && (tally.certain || any)
}
