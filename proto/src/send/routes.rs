//! The three routes of an association.

use std::hint::cold_path;

use crate::path::Paths;
use crate::path::estimate::Needs;
use crate::policy::{Choice, PolicyError, Route, Why};
use crate::{Config, Policies};

/// Those for new data, for fast retransmissions and for retransmissions after timeouts.
#[derive(Clone, Debug)]
pub(super) struct Routes {
    pub(super) new: Box<dyn Route>,
    pub(super) fast: Box<dyn Route>,
    pub(super) timeout: Box<dyn Route>,
    /// Whether any of them hears what SACKs acknowledge.
    pub(super) hear_sacks: bool,
}

impl Routes {
    pub(super) fn new(config: &Config, policies: &Policies) -> Result<Self, PolicyError> {
        let new = policies.new_data_route(&config.new_data, config)?;
        let fast = policies.route(&config.fast, config)?;
        let timeout = policies.route(&config.timeout, config)?;
        let hear_sacks = new.hears_sacks() || fast.hears_sacks() || timeout.hears_sacks();
        Ok(Routes { new, fast, timeout, hear_sacks })
    }

    pub(super) fn of(&mut self, why: Why) -> &mut dyn Route {
        match why {
            Why::New | Why::WindowProbe | Why::TailProbe | Why::Reinjected => &mut *self.new,
            Why::Missing => &mut *self.fast,
            Why::Timeout => &mut *self.timeout,
        }
    }

    pub(super) fn needs(&self) -> Needs {
        self.new.needs().and(self.fast.needs()).and(self.timeout.needs())
    }
}

/// If every path is inactive, the path with the fewest errors replaces any path that a route names. Without
/// potentially failed paths, the route's choice stands, or retransmissions take the next path (rule `dormant`). A route
/// of the user's own may name a path that does not exist: then nothing is sent.
//= rfc7829#section-4.1
#[inline(always)]
pub(super) fn unless_dormant(choice: Choice, why: Why, config: &Config, paths: &Paths) -> Choice {
    match choice {
        Choice::Send(path) if path.index() >= paths.views().len() => {
            cold_path();
            Choice::Wait
        }
        Choice::Send(path) if config.pf_max_retrans.is_some() => {
            Choice::Send(paths.fewest_errors(path).unwrap_or(path))
        }
        Choice::Send(path) if matches!(why, Why::Missing | Why::Timeout) => {
            Choice::Send(paths.next_dormant(path).unwrap_or(path))
        }
        other => other,
    }
}
