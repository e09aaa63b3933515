//! `timeout-alternate`: a fast retransmission takes the same path, and a chunk that timed out takes an alternate path
//! (RFC 4960 and 9260 §6.4).

use super::{Ask, Choice, Route, Why};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Debug)]
struct TimeoutAlternate {
    fast: Box<dyn Route>,
    timeout: Box<dyn Route>,
}

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(TimeoutAlternate {
        fast: super::same::make(spec, config)?,
        timeout: super::alternate::make(spec, config)?,
    }))
}

impl Route for TimeoutAlternate {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        match ask.why {
            Why::Timeout => self.timeout.choose(ask, paths),
            _ => self.fast.choose(ask, paths),
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }

    fn takes_new_data(&self) -> bool {
        false
    }
}
