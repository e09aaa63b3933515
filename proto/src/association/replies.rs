//! Control chunks that are sent once: replies to the peer, and what this end has to say.
//!
//! The replies to one packet leave in one packet. What has no room there is not sent: a peer, or someone who writes its
//! address, would get more packets than it has sent.

use super::Association;
use crate::extension::Authentication;
use crate::output::Purpose;
use crate::path::PathId;
use crate::shutdown::State;
use crate::wire::chunk::{CHUNK_HEADER, OperationError};
use crate::wire::{Cause, Chunk};

/// Bytes of a cause before its content.
const CAUSE_HEADER: usize = 4;
/// The largest number of replies that wait to be sent; only a part of a flood of heartbeats is answered.
const MAX_REPLIES: usize = 64;
/// Unknown chunks are reported only while fewer replies than this wait, because a packet can hold hundreds of them.
const MAX_REPORTS: usize = 8;

impl Association {
    /// This chunk leaves on this path, behind those that wait.
    pub(super) fn send_control(&mut self, path: PathId, chunk: Chunk, purpose: Purpose) {
        let before = self.replies.filter(|(on, _)| *on == path).map_or(0, |(_, size)| size);
        self.replies = Some((path, before + chunk.padded_size()));
        self.control.push_back((path, chunk, purpose));
    }

    /// As `send_control`, for a reply, if it may be sent.
    pub(super) fn reply(&mut self, path: PathId, chunk: Chunk, purpose: Purpose) {
        if self.may_reply() && self.joins_replies(path, &chunk) {
            self.send_control(path, chunk, purpose);
        }
    }

    /// Nothing is reported before INIT ACK has told the peer's tag, nor after the end, and only a part of a flood is.
    //= rfc9260#section-8.3
    //= rfc9260#section-12.4
    pub(super) fn may_reply(&self) -> bool {
        !matches!(self.state, State::CookieWait | State::Closed) && self.control.len() < MAX_REPLIES
    }

    /// Whether a chunk fits the packet of what else replies to the packet that is processed.
    //= rfc9260#section-12.4
    fn joins_replies(&self, path: PathId, chunk: &Chunk) -> bool {
        let fits = |size| size + chunk.padded_size() <= self.control_room(path);
        self.replies.is_none_or(|(on, size)| on == path && fits(size))
    }

    /// Bytes of control chunks that fit a packet on this path.
    pub(super) fn control_room(&self, path: PathId) -> usize {
        let auth = self.authentication().map_or(0, Authentication::overhead_of_asconf);
        (self.paths.view(path).pmdcs - auth) as usize
    }

    /// Bytes of a single cause that fit a packet on this path.
    //= rfc9260#section-6.10
    pub(super) fn cause_room(&self, path: PathId) -> usize {
        self.paths.view(path).pmdcs as usize - CHUNK_HEADER - CAUSE_HEADER
    }

    /// Reports an error to the peer; the association continues. Before COOKIE ACK has come, nothing is sent but COOKIE
    /// ECHO and answers to HEARTBEATs.
    //= rfc9260#section-5.1
    pub(super) fn report(&mut self, path: PathId, cause: Cause) {
        if self.state != State::CookieEchoed {
            let error = Chunk::Error(OperationError { causes: vec![cause] });
            self.reply(self.open_path(path), error, Purpose::Error);
        }
    }

    /// The two high bits of an unknown type say what to do. Returns whether the following chunks are processed.
    //= rfc9260#section-3.2
    pub(super) fn unknown(&mut self, chunk: &Chunk, path: PathId) -> bool {
        let kind = chunk.number();
        if kind & 0x40 != 0
            && self.control.len() < MAX_REPORTS
            && let Ok(mut bytes) = chunk.to_bytes()
        {
            // With two headers before it, the chunk may not fit a packet any more.
            bytes.truncate(self.cause_room(self.open_path(path)));
            self.report(path, Cause::UnrecognizedChunk(bytes));
        }
        kind & 0x80 != 0
    }
}
