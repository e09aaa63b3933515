//! What an endpoint is told, for those who record it. The core has no clock and no other input: the same calls at the
//! same times, from the same seed, make it send the same packets again.

use std::ops::Deref;

use anabranch_proto::wire::{Address, Spares};
use anabranch_proto::{
    AssociationId, ChangeError, Config, Delivery, Direction, Endpoint, Incoming, LocalAddress, Message,
    Output, Pairs, PathId, Policies, Refused, SendError, Time,
};
use bytes::Bytes;

/// Records what an endpoint is told and what it does.
pub trait Tape: Send {
    /// The endpoint was made from these parameters and this seed.
    fn begin(&mut self, config: &Config, seed: &[u8; 32]);
    /// The endpoint is about to be told something.
    fn call(&mut self, at: Time, call: &Call<'_>);
    /// The endpoint was polled at the time of the last call.
    fn polled(&mut self, output: &Output);
}

/// What an endpoint is told.
#[derive(Debug)]
pub enum Call<'a> {
    /// A deadline has passed; nothing is told.
    Time,
    /// Something arrived, or a local address changed.
    Handle(&'a Incoming),
    /// Begin an association with this SCTP port at these addresses.
    Connect(u16, &'a [Address]),
    /// Send a message.
    Send(AssociationId, &'a Message),
    /// Read a message.
    Read(AssociationId),
    /// End the association gracefully.
    Shutdown(AssociationId),
    /// End the association at once, and tell the peer this reason.
    Abort(AssociationId, &'a [u8]),
    /// Let peers initiate associations, or refuse them.
    Listen(bool),
    /// Forget an association that has ended.
    Forget(AssociationId),
    /// A call that cannot be repeated from a recording.
    Other,
}

/// An endpoint with its tape, if there is one. Everything that changes the endpoint goes through the functions here.
pub(crate) struct Taped {
    endpoint: Endpoint,
    tape: Option<Running>,
}

struct Running {
    tape: Box<dyn Tape>,
    /// The time of the last call on the tape.
    last: Option<Time>,
}

impl Running {
    fn call(&mut self, at: Time, call: &Call<'_>) {
        self.last = Some(at);
        self.tape.call(at, call);
    }
}

impl Deref for Taped {
    type Target = Endpoint;

    fn deref(&self) -> &Endpoint {
        &self.endpoint
    }
}

impl Taped {
    pub(crate) fn new(endpoint: Endpoint, tape: Option<Box<dyn Tape>>) -> Taped {
        Taped { endpoint, tape: tape.map(|tape| Running { tape, last: None }) }
    }

    /// Puts an endpoint without associations in the place of a broken one. No association begins there.
    pub(crate) fn replace(&mut self) {
        let Config { addresses, port, .. } = self.endpoint.config();
        let (addresses, port, pairs) = (addresses.clone(), *port, Pairs::Listed(Vec::new()));
        let config = Config { addresses, port, pairs, ..Config::default() };
        let idle = Endpoint::new(config, Policies::default(), [0; 32]);
        let mut idle = idle.expect("the default parameters can be used");
        idle.set_listening(false);
        (self.endpoint, self.tape) = (idle, None);
    }

    fn note(&mut self, at: Time, call: &Call<'_>) {
        if let Some(running) = &mut self.tape {
            running.call(at, call);
        }
    }

    #[inline]
    pub(crate) fn poll(&mut self, now: Time) -> Output {
        if self.tape.is_some() { self.poll_and_record(now) } else { self.endpoint.poll(now) }
    }

    #[cold]
    #[inline(never)]
    fn poll_and_record(&mut self, now: Time) -> Output {
        if let Some(running) = &mut self.tape
            && running.last != Some(now)
        {
            running.call(now, &Call::Time);
        }
        let output = self.endpoint.poll(now);
        if let Some(running) = &mut self.tape {
            running.tape.polled(&output);
        }
        output
    }

    pub(crate) fn handle(&mut self, now: Time, incoming: Incoming) {
        self.note(now, &Call::Handle(&incoming));
        self.endpoint.handle(now, incoming);
    }

    /// As [`Endpoint::level_memory`].
    pub(crate) fn level_memory(&mut self, memory: &mut Spares) {
        self.endpoint.level_memory(memory);
    }

    pub(crate) fn connect(&mut self, now: Time, port: u16, to: &[Address]) -> Result<AssociationId, Refused> {
        self.note(now, &Call::Connect(port, to));
        self.endpoint.connect(now, port, to)
    }

    pub(crate) fn send(&mut self, now: Time, id: AssociationId, message: Message) -> Result<(), SendError> {
        self.note(now, &Call::Send(id, &message));
        self.endpoint.send(now, id, message)
    }

    pub(crate) fn read(&mut self, now: Time, id: AssociationId) -> Option<Delivery> {
        self.note(now, &Call::Read(id));
        self.endpoint.read(now, id)
    }

    pub(crate) fn shutdown(&mut self, now: Time, id: AssociationId) {
        self.note(now, &Call::Shutdown(id));
        self.endpoint.shutdown(now, id);
    }

    pub(crate) fn abort(&mut self, now: Time, id: AssociationId, reason: Bytes) {
        self.note(now, &Call::Abort(id, &reason));
        self.endpoint.abort(now, id, reason);
    }

    pub(crate) fn set_listening(&mut self, now: Time, on: bool) {
        self.note(now, &Call::Listen(on));
        self.endpoint.set_listening(on);
    }

    pub(crate) fn forget(&mut self, now: Time, id: AssociationId) {
        self.note(now, &Call::Forget(id));
        self.endpoint.forget(now, id);
    }

    pub(crate) fn set_primary(&mut self, now: Time, id: AssociationId, path: PathId) -> bool {
        self.note(now, &Call::Other);
        self.endpoint.set_primary(now, id, path)
    }

    pub(crate) fn heartbeat(&mut self, now: Time, id: AssociationId, path: PathId) -> bool {
        self.note(now, &Call::Other);
        self.endpoint.heartbeat(now, id, path)
    }

    pub(crate) fn reset_streams(
        &mut self,
        now: Time,
        id: AssociationId,
        direction: Direction,
        streams: &[u16],
    ) -> Result<(), ChangeError> {
        self.note(now, &Call::Other);
        self.endpoint.reset_streams(now, id, direction, streams)
    }

    pub(crate) fn add_streams(
        &mut self,
        now: Time,
        id: AssociationId,
        direction: Direction,
        count: u16,
    ) -> Result<(), ChangeError> {
        self.note(now, &Call::Other);
        self.endpoint.add_streams(now, id, direction, count)
    }

    pub(crate) fn add_address(
        &mut self,
        now: Time,
        id: AssociationId,
        local: LocalAddress,
    ) -> Result<(), ChangeError> {
        self.note(now, &Call::Other);
        self.endpoint.add_address(now, id, local)
    }

    pub(crate) fn remove_address(
        &mut self,
        now: Time,
        id: AssociationId,
        local: Address,
    ) -> Result<(), ChangeError> {
        self.note(now, &Call::Other);
        self.endpoint.remove_address(now, id, local)
    }

    pub(crate) fn set_peer_primary(
        &mut self,
        now: Time,
        id: AssociationId,
        local: Address,
    ) -> Result<(), ChangeError> {
        self.note(now, &Call::Other);
        self.endpoint.set_peer_primary(now, id, local)
    }
}
