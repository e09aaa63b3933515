//! `same`: a retransmission takes the path that carried the chunk last (FRtxOnSame) while that path is active,
//! otherwise the next active path.

use super::{Ask, Choice, Eligible, Route, instead_of};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Debug)]
struct Same(Eligible);

pub(in crate::policy) fn make(spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Same(Eligible::of(config))))
}

impl Route for Same {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let Some(last) = ask.last else { return Choice::Wait };
        match paths.iter().find(|p| p.id == last) {
            Some(path) if self.0.admits(path) => Choice::Send(last),
            _ => Choice::Send(instead_of(last, paths)),
        }
    }

    fn hears_sacks(&self) -> bool {
        false
    }

    fn takes_new_data(&self) -> bool {
        false
    }
}
