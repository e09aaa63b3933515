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
        let index = if self.by_path() { path.index() } else { 0 };
        self.of.get(index).is_some_and(|exit| exit.point.is_some())
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
