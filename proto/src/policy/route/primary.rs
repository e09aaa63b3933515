//! `primary`: new data takes the primary path; while that is not active, the next one that is
//! (RFC 9260 §6.4, §6.4.1). With none active it stays on the primary, so that timeouts go on counting.

use super::{Ask, Choice, Route, instead_of};
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
    fn choose(&self, _: &Ask, paths: &[PathView]) -> Choice {
        let Some(primary) = paths.iter().find(|p| p.primary) else { return Choice::Wait };
        match primary.carries() {
            true => Choice::Send(primary.id),
            false => Choice::Send(instead_of(primary.id, paths)),
        }
    }
}
