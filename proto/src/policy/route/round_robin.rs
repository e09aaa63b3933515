//! `round-robin`: new data takes all active paths in turn. Each event begins with the path after the last one used,
//! and fills each window before it moves to the next path (concurrent multipath transfer).

use super::{Ask, Choice, Route, Stays, instead_of};
use crate::Config;
use crate::path::{PathId, PathView};
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Default, Debug)]
struct RoundRobin {
    /// The path used last, and the event for which it was used.
    last: Option<(PathId, u64)>,
}

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(RoundRobin::default()))
}

impl RoundRobin {
    /// The index of the path at which the turn begins.
    fn start(&self, ask: &Ask, paths: &[PathView]) -> usize {
        let Some((last, event)) = self.last else { return 0 };
        let its = |path: &&PathView| path.id == last;
        // Most paths stand at the place of their number.
        let at = match paths.get(last.index()).filter(its) {
            Some(_) => last.index(),
            None => paths.iter().position(|path| path.id == last).unwrap_or(0),
        };
        let start = if event == ask.event { at } else { at + 1 };
        if start < paths.len() { start } else { 0 }
    }
}

impl Route for RoundRobin {
    fn stays(&self) -> Stays {
        Stays::WithRoom
    }

    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let (before, after) = paths.split_at(self.start(ask, paths));
        let mut without_room = None;
        for part in [after, before] {
            for path in part.iter().filter(|path| path.carries()) {
                if path.room > 0 {
                    return Choice::Send(path.id);
                }
                without_room = without_room.or(Some(path.id));
            }
        }
        if let Some(path) = without_room {
            return Choice::Send(path);
        }
        match paths.iter().find(|path| path.primary) {
            Some(primary) => Choice::Send(instead_of(primary.id, paths)),
            None => Choice::Wait,
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }

    fn sent(&mut self, ask: &Ask, path: PathId) {
        self.last = Some((path, ask.event));
    }
}
