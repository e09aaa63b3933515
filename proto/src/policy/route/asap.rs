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
        let Some(last) = ask.last else { return Choice::Wait };
        let chosen = best(ask.tie, open, |_, _| Ordering::Equal).map(|path| path.id);
        // If no path has room, the path that carried the chunk last is named.
        let same = || paths.iter().find(|path| path.id == last && path.carries()).map(|path| path.id);
        Choice::Send(chosen.or_else(same).unwrap_or_else(|| instead_of(last, paths)))
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}
