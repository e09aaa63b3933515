//! An endpoint: demultiplexes packets and owns its associations.

use crate::policy::PolicyError;
use crate::wire::Address;
use crate::{
    AssociationId, Config, ConfigError, Delivery, Incoming, Message, Output, PathId, PathView, Policies,
    Refused, SendError, Statistics, Time,
};

/// One SCTP port at one or more addresses.
pub struct Endpoint {}

/// Why an endpoint could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NewError {
    /// A parameter cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A policy could not be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

#[allow(unused_variables)]
impl Endpoint {
    /// An endpoint; all its chance comes from `seed`.
    pub fn new(config: Config, policies: Policies, seed: [u8; 32]) -> Result<Self, NewError> {
        unimplemented!()
    }
    /// Switches notes on or off.
    pub fn set_notes(&mut self, on: bool) {
        unimplemented!()
    }
    /// Accepts (the default) or refuses associations that peers begin.
    pub fn set_listening(&mut self, on: bool) {
        unimplemented!()
    }
    /// Something came from the network.
    pub fn handle(&mut self, now: Time, incoming: Incoming) {
        unimplemented!()
    }
    /// What the endpoint has to say; drain to `Wait` after every call.
    pub fn poll(&mut self, now: Time) -> Output {
        unimplemented!()
    }
    /// Begins an association with the peer that has these addresses; the first is the first to be tried.
    pub fn connect(&mut self, now: Time, port: u16, to: &[Address]) -> Result<AssociationId, Refused> {
        unimplemented!()
    }
    /// Gives a message to send. One that is larger than the send buffer is taken only when that is empty.
    pub fn send(&mut self, now: Time, id: AssociationId, message: Message) -> Result<(), SendError> {
        unimplemented!()
    }
    /// The next message, if there is one; this opens the receive window.
    pub fn read(&mut self, now: Time, id: AssociationId) -> Option<Delivery> {
        unimplemented!()
    }
    /// Ends the association gracefully, once all data is acknowledged.
    pub fn shutdown(&mut self, now: Time, id: AssociationId) {
        unimplemented!()
    }
    /// Ends the association at once.
    pub fn abort(&mut self, now: Time, id: AssociationId) {
        unimplemented!()
    }
    /// Makes this path the primary. False if there is no such path.
    pub fn set_primary(&mut self, now: Time, id: AssociationId, path: PathId) -> bool {
        unimplemented!()
    }
    /// The paths of an association; empty if there is no such association.
    pub fn paths(&self, id: AssociationId) -> &[PathView] {
        unimplemented!()
    }
    /// What the association has done so far, up to `now`. Remains after it is gone until it is forgotten.
    pub fn statistics(&self, now: Time, id: AssociationId) -> Statistics {
        unimplemented!()
    }
}
