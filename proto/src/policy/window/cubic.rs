//! `cubic`: [`crate::control::window::Cubic`] as a policy.

use std::sync::Arc;

use super::{Cubic, MakePath};
use crate::Config;
use crate::policy::{PolicyError, PolicySpec, no_settings};

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<MakePath, PolicyError> {
    no_settings(spec)?;
    Ok(Arc::new(|start| Box::new(Cubic::new(start))))
}
