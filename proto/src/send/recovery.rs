//! Fast Recovery, for the association or for each path. Both are the same code with different indices.

use std::hint::cold_path;

use crate::Tsn;
use crate::mechanisms::{ExitPoint, Mechanisms, Recovery};
use crate::path::{PathId, Paths};
use crate::rules::{FastRecovery, Rules};

use super::outstanding::Outstanding;

#[derive(Clone, Debug)]
pub(super) struct Recoveries {
    scope: Recovery,
    rule: FastRecovery,
    exit_point: ExitPoint,
    of: Vec<Exit>,
}

/// The exit points of one Fast Recovery.
#[derive(Copy, Clone, Default, Debug)]
struct Exit {
    /// The exit point, while in Fast Recovery.
    point: Option<Tsn>,
    /// The highest exit point so far.
    highest: Option<Tsn>,
    /// The last exit point, even if it was reached.
    last: Option<Tsn>,
}

impl Recoveries {
    pub(super) fn new(rules: &Rules, mechanisms: &Mechanisms) -> Self {
        Recoveries {
            scope: mechanisms.recovery,
            rule: rules.fast_recovery,
            exit_point: mechanisms.exit_point,
            of: vec![Exit::default()],
        }
    }

    /// Whether each path has its own recovery.
    pub(super) fn by_path(&self) -> bool {
        self.scope == Recovery::Path
    }

    /// Ends every recovery, because TSNs restart.
    pub(super) fn restart(&mut self) {
        self.of.fill(Exit::default());
    }

    /// Whether this path is in loss recovery.
    pub(super) fn recovers(&self, path: PathId) -> bool {
        self.of.get(self.index(path)).is_some_and(|exit| exit.point.is_some())
    }

    /// The place of the recovery to which this path belongs.
    fn index(&self, path: PathId) -> usize {
        if self.by_path() { path.index() } else { 0 }
    }

    /// T3-rtx of this path has expired: slow start begins, in which the window grows. So Fast Recovery ends before its
    /// exit point, which is returned.
    //= rfc9260#section-7.2.3
    pub(super) fn time_out(&mut self, path: PathId) -> Option<Tsn> {
        let index = self.index(path);
        let until_exit = self.rule == FastRecovery::UntilExit;
        self.of.get_mut(index).filter(|_| until_exit)?.point.take()
    }

    /// T3-rtx of this path has expired without need: the Fast Recovery that it ended goes on, unless its exit point is
    /// acknowledged or another one has begun. `point`: the Cumulative TSN Ack Point.
    pub(super) fn resume(&mut self, path: PathId, exit: Option<Tsn>, point: Tsn) {
        let index = self.index(path);
        if let Some(of) = self.of.get_mut(index) {
            of.point = of.point.or(exit.filter(|exit| point.before(*exit)));
        }
    }

    /// The last exit point of the association, even if it was reached.
    pub(super) fn last_exit(&self) -> Option<Tsn> {
        self.of[0].last
    }

    pub(super) fn any(&self) -> bool {
        self.of.iter().any(|exit| exit.point.is_some())
    }

    /// Ends the recoveries whose exit point is acknowledged by the Cumulative TSN Ack. The recovery of a path also
    /// ends if none of its chunks up to the exit point is outstanding.
    pub(super) fn acknowledged(&mut self, point: Tsn, paths: &Paths) {
        let (by_path, until_exit) = (self.by_path(), self.rule == FastRecovery::UntilExit);
        for (index, of) in self.of.iter_mut().enumerate() {
            let Some(exit) = of.point else { continue };
            cold_path();
            let earliest = || paths.get(PathId(index as u16)).earliest;
            let alone = by_path && until_exit && earliest().is_none_or(|earliest| earliest.after(exit));
            if !point.before(exit) || alone {
                of.point = None;
            }
        }
    }

    /// The paths whose windows are cut because chunks were marked, `lowest` being the lowest of them. Their exit
    /// points move.
    pub(super) fn enter(&mut self, lowest: Tsn, sent: &Outstanding, paths: &Paths) -> Vec<PathId> {
        let newly = |id: &PathId| paths.get(*id).tally.marked.is_some();
        if self.by_path() {
            return paths.ids().filter(|id| self.path_enters(*id, sent, paths)).collect();
        }
        if self.rule == FastRecovery::OncePerWindow {
            return self.enter_beyond(sent);
        }
        let exit = match self.exit_point {
            ExitPoint::HighestSent => Some(sent.highest()),
            ExitPoint::HighestUnmarked => sent.highest_unmarked(|_| true),
        };
        let entered = self.move_exit(0, lowest, exit);
        paths.ids().filter(|id| entered && newly(id)).collect()
    }

    /// As `enter`, if every window is cut that lost a chunk above the exit point. The exit point moves to the highest
    /// TSN that is not marked, but not back.
    fn enter_beyond(&mut self, sent: &Outstanding) -> Vec<PathId> {
        let of = &mut self.of[0];
        let unmarked = sent.highest_unmarked(|_| true);
        let ahead = of.highest.into_iter().chain(unmarked).filter(|tsn| tsn.after(sent.point()));
        let exit = ahead.max_by_key(|tsn| tsn.distance_from(sent.point()));
        let mut cut = Vec::new();
        while let Some(path) = sent.lowest_marked_beyond(of.point, &cut) {
            cut.push(path);
            *of = Exit { point: exit, highest: exit, last: exit };
        }
        cut
    }

    fn path_enters(&mut self, id: PathId, sent: &Outstanding, paths: &Paths) -> bool {
        let marked = match self.rule {
            FastRecovery::OncePerWindow => sent.highest_marked(id),
            FastRecovery::None | FastRecovery::UntilExit => paths.get(id).tally.marked,
        };
        let exit = match self.exit_point {
            ExitPoint::HighestSent => sent.highest_on(id),
            ExitPoint::HighestUnmarked => sent.highest_unmarked(|path| path == id),
        };
        if self.of.len() <= id.index() {
            self.of.resize(id.index() + 1, Exit::default());
        }
        marked.is_some_and(|marked| self.move_exit(id.index(), marked, exit))
    }

    /// Whether the chunk `marked` cuts a window. If so, the exit point moves.
    fn move_exit(&mut self, index: usize, marked: Tsn, exit: Option<Tsn>) -> bool {
        let of = &mut self.of[index];
        let cut = match (self.rule, of.point) {
            (FastRecovery::None, _) => return true,
            (_, None) => true,
            (FastRecovery::UntilExit, Some(_)) => false,
            (FastRecovery::OncePerWindow, Some(point)) => marked.after(point),
        };
        if cut && self.exit_point == ExitPoint::HighestSent {
            of.point = exit;
        } else if cut {
            let below = exit.is_none_or(|exit| of.highest.is_some_and(|highest| exit.before(highest)));
            of.point = exit.filter(|_| !below);
            of.highest = of.point.or(of.highest);
        }
        of.last = of.point.or(of.last);
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two paths, each in Fast Recovery, or the association. T3-rtx of the second path ends its recovery only, or that
    /// of all. By ns-2's rule it ends none.
    //= rfc9260#section-7.2.3
    #[test]
    fn a_timeout_ends_fast_recovery_of_its_path() {
        let exits = [Some(Tsn(5)), Some(Tsn(7))];
        for (scope, rule, left) in [
            (Recovery::Path, FastRecovery::UntilExit, [exits[0], None]),
            (Recovery::Association, FastRecovery::UntilExit, [None, exits[1]]),
            (Recovery::Path, FastRecovery::OncePerWindow, exits),
            (Recovery::Association, FastRecovery::OncePerWindow, exits),
        ] {
            let of = exits.map(|point| Exit { point, highest: point, last: point }).to_vec();
            let mut recoveries = Recoveries { scope, rule, exit_point: ExitPoint::HighestSent, of };
            let points = |recoveries: &Recoveries| [recoveries.of[0].point, recoveries.of[1].point];
            let exit = recoveries.time_out(PathId(1));
            assert_eq!(points(&recoveries), left, "{scope:?} {rule:?}");
            recoveries.resume(PathId(1), exit, Tsn(7));
            assert_eq!(points(&recoveries), left, "its exit point was reached");
            recoveries.resume(PathId(1), exit, Tsn(4));
            assert_eq!(points(&recoveries), exits, "it was needless");
        }
    }
}
