//! `primary`: new data takes the primary path. While that path is not active, new data takes the next active path
//! (RFC 9260 §6.4, §6.4.1). If no path is active, new data stays on the primary, so that timeouts continue to count.

use super::{Ask, Choice, Route, Stays, instead_of};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Debug)]
struct Primary;

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Primary))
}

impl Route for Primary {
    fn stays(&self) -> Stays {
        Stays::Always
    }

    fn choose(&self, _: &Ask, paths: &[PathView]) -> Choice {
        let Some(primary) = paths.iter().find(|p| p.primary) else { return Choice::Wait };
        match primary.carries() {
            true => Choice::Send(primary.id),
            false => Choice::Send(instead_of(primary.id, paths)),
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }
}
