//! `rtx-asap`: a retransmission takes any active path with room (Iyengar, Amer and Stewart 2006). Of several paths,
//! one is drawn at random.

use super::{Ask, Choice, Route, best, instead_of};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};
use std::cmp::Ordering;

#[derive(Clone, Debug)]
struct Asap;

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Asap))
}

impl Route for Asap {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let open = paths.iter().filter(|path| path.carries() && path.room > 0);
        if let Some(path) = best(ask.tie, open, |_, _| Ordering::Equal) {
            return Choice::Send(path.id);
        }
        // If no path has room, the path that carried the chunk last is named, and for new data any path.
        let carries = |path: &&PathView| path.carries() && ask.last.is_none_or(|last| path.id == last);
        match (paths.iter().find(carries), ask.last) {
            (Some(path), _) => Choice::Send(path.id),
            (None, Some(last)) => Choice::Send(instead_of(last, paths)),
            (None, None) => Choice::Wait,
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}
