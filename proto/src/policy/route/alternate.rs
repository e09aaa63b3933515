//! `alternate`: a retransmission takes the next active path after the path that carried the chunk last (FRtxOnAlt;
//! RFC 2960 §6.4). If there is no other active path, it takes the same path.

use super::{Ask, Choice, Route, instead_of};
use crate::Config;
use crate::path::PathView;
use crate::policy::{PolicyError, PolicySpec, no_settings};

#[derive(Clone, Debug)]
struct Alternate;

pub(in crate::policy) fn make(spec: &PolicySpec, _: &Config) -> Result<Box<dyn Route>, PolicyError> {
    no_settings(spec)?;
    Ok(Box::new(Alternate))
}

impl Route for Alternate {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let Some(last) = ask.last else { return Choice::Wait };
        Choice::Send(instead_of(last, paths))
    }

    fn hears_sacks(&self) -> bool {
        false
    }

    fn takes_new_data(&self) -> bool {
        false
    }
}
