//! Status and parameters of associations for the user (RFC 9260 §11.1: STATUS, SET PROTOCOL PARAMETERS).

use super::{Endpoint, NewError};
use crate::{AssociationId, Config, ConfigError, Parameters, PathId, PathParameters, State, Time};

/// The status of an association (RFC 9260 §11.1.8). Its paths are in [`Endpoint::paths`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Its state.
    pub state: State,
    /// The peer's window as the sender sees it, in bytes.
    pub peer_window: u64,
    /// DATA chunks that were sent and not cumulatively acknowledged.
    pub unacknowledged: usize,
    /// Messages, or parts of one, that can be read.
    pub unread: usize,
    /// The number of outbound streams.
    pub outbound_streams: u16,
    /// The number of inbound streams.
    pub inbound_streams: u16,
    /// The largest message that is not fragmented, in bytes of user data.
    pub fragmentation_point: u32,
}

impl Endpoint {
    /// The configuration for new associations.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sets the configuration for new associations. Existing associations keep theirs.
    pub fn configure(&mut self, config: Config) -> Result<(), NewError> {
        self.config = super::checked(config, &self.policies)?.into();
        Ok(())
    }

    /// Changes the parameters of one association. They must fit the rest of its configuration.
    pub fn reconfigure(
        &mut self,
        now: Time,
        id: AssociationId,
        parameters: Parameters,
    ) -> Result<(), ConfigError> {
        self.run_timers(now);
        let result = self.get_mut(id).map_or(Ok(()), |association| association.reconfigure(parameters, now));
        self.wake(id.place());
        result
    }

    /// The configuration of an association.
    pub fn config_of(&self, id: AssociationId) -> Option<&Config> {
        self.get(id).map(|a| a.config())
    }

    /// Sets parameters of one path that replace those of its association: heartbeats, error limit, MTU. False if
    /// there is no such path.
    pub fn configure_path(
        &mut self,
        now: Time,
        id: AssociationId,
        path: PathId,
        own: PathParameters,
    ) -> bool {
        self.run_timers(now);
        let known = self.get_mut(id).is_some_and(|a| a.configure_path(path, own));
        self.wake(id.place());
        known
    }

    /// The parameters set for this path alone; `None` if there is no such path.
    pub fn path_parameters(&self, id: AssociationId, path: PathId) -> Option<PathParameters> {
        self.get(id)?.path_parameters(path)
    }

    /// The status of the association; `None` once it is forgotten.
    pub fn status(&self, id: AssociationId) -> Option<Status> {
        self.get(id).map(|a| a.status())
    }
}
