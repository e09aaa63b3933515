//! The answers of extensions. An extension keeps its own state and returns actions; the association carries them out.

use crate::output::{Event, Purpose};
use crate::path::PathId;
use crate::wire::{Cause, Chunk};

/// What the association must do for an extension, in order.
pub(crate) type Actions = Vec<Action>;

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send a control chunk on this path, or on another path while this one does not work.
    Send(PathId, Chunk, Purpose),
    /// The same, unless too many replies are queued.
    Reply(PathId, Chunk, Purpose),
    /// Report this event to the user.
    Tell(Event),
    /// Report to the user that data can be read.
    Readable,
    /// Report an error to the peer. The association continues.
    Report(PathId, Cause),
    /// This path has answered a control chunk.
    Answered(PathId),
}
