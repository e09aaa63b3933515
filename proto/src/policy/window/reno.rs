//! `reno`: [`crate::control::window::Reno`] as a policy: the window of TCP, on an SCTP path or in ns-2's agent.

use std::sync::Arc;

use super::{Halving, MakeWindow, Reno};
use crate::Config;
use crate::control::window::Decay;
use crate::policy::{PolicyError, PolicySpec, no_settings};

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<MakeWindow, PolicyError> {
    no_settings(spec)?;
    let decay = Decay::of(&config.rules);
    Ok(Arc::new(move |start| Box::new(Reno::new(start, Halving::Fraction).decaying(decay))))
}
