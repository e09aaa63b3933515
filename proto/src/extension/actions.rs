//! What extensions answer: they keep their own state, and the association does the rest.

use crate::output::{Event, Purpose};
use crate::path::PathId;
use crate::wire::{Cause, Chunk};

/// What the association has to do for an extension, in order.
pub(crate) type Actions = Vec<Action>;

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// A control chunk is sent on this path, or on another while this one is not in order.
    Send(PathId, Chunk, Purpose),
    /// The same, unless too many answers wait to be sent.
    Reply(PathId, Chunk, Purpose),
    /// The user is told.
    Tell(Event),
    /// The user is told that data can be read.
    Readable,
    /// The peer is told of an error that the association survives.
    Report(PathId, Cause),
    /// A control chunk was answered by this path.
    Answered(PathId),
}
