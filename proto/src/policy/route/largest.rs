//! `rtx-cwnd` and `rtx-ssthresh`: a retransmission takes the active path with the largest congestion window or
//! slow-start threshold (Iyengar, Amer and Stewart 2006). It waits if that path has no room. Ties are broken at
//! random.

use super::{Ask, Choice, Route, best, instead_of};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Debug)]
struct Largest {
    value: fn(&PathView) -> u64,
}

pub(in crate::policy) fn by_window(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Largest { value: |path| path.window }))
}

pub(in crate::policy) fn by_ssthresh(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Largest { value: |path| path.ssthresh }))
}

impl Route for Largest {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let chosen = best(ask.tie, paths.iter().filter(|path| path.carries()), |a, b| {
            (self.value)(a).cmp(&(self.value)(b))
        });
        match (chosen, ask.last) {
            (Some(path), _) => Choice::Send(path.id),
            (None, Some(last)) => Choice::Send(instead_of(last, paths)),
            (None, None) => Choice::Wait,
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}
