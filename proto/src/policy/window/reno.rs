//! `reno`: [`crate::control::window::Reno`] as a policy: the window of TCP, on an SCTP path or in ns-2's agent.

use std::sync::Arc;

use super::{Halving, MakeWindow, Reno};
use crate::Config;
use crate::policy::{PolicyError, PolicySpec, no_settings};

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<MakeWindow, PolicyError> {
    no_settings(spec)?;
    Ok(Arc::new(|start| Box::new(Reno::new(start, Halving::Fraction))))
}
