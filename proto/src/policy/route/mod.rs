//! Which path carries it: new data, or a retransmission.

pub mod alternate;
pub mod asap;
pub mod largest;
pub mod lossrate;
pub mod primary;
pub mod round_robin;
pub mod same;
pub mod timeout_alternate;

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::Tsn;
use crate::path::{PathId, PathState, PathView};

use super::window::{Acked, Loss};

/// A rule that chooses a path. An association has three: for new data, for fast retransmissions and for
/// retransmissions after a timeout.
pub trait Route: Send {
    /// The path for what `ask` describes. Pure: it may be asked twice. The answer need not have room: if it
    /// has none, nothing is sent until it has.
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice;
    /// What `choose` answered has been done.
    fn sent(&mut self, _ask: &Ask, _path: PathId) {}
    /// A SACK acknowledged data of this path.
    fn acked(&mut self, _path: &PathView, _acked: &Acked) {}
    /// This path lost data.
    fn lost(&mut self, _path: PathId, _loss: Loss) {}
}

/// An answer to [`Ask`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Choice {
    /// This path, as soon as it has room.
    Send(PathId),
    /// None now.
    Wait,
}

/// What is to be sent.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Ask {
    /// Why it is to be sent.
    pub why: Why,
    /// Its TSN; for new data the one that it will get.
    pub tsn: Tsn,
    /// Bytes of the chunk.
    pub size: u32,
    /// The stream that it belongs to.
    pub stream: u16,
    /// The path that carried it last.
    pub last: Option<PathId>,
    /// How often it has been sent.
    pub transmissions: u32,
    /// Bytes of user data waiting to be sent for the first time.
    pub queued: u64,
    /// The peer's window, in bytes.
    pub peer_window: u64,
    /// A number drawn for this decision alone, to break ties with.
    pub tie: u64,
    /// The number of the event that lets data leave now: a packet, a timer or a call.
    pub event: u64,
}

/// Why a chunk is to be sent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// For the first time.
    New,
    /// Missing reports say that it was lost: a fast retransmission.
    Missing,
    /// T3-rtx expired.
    Timeout,
    /// The peer's window is closed, and this asks whether it still is.
    WindowProbe,
}

/// Where data goes when the path `last` is not to be used: the next active path that is up; none being active, the
/// potentially failed one with the fewest errors (RFC 7829 §3.2), of several another than `last`; else `last`
/// again, so that its timeouts go on counting.
pub fn instead_of(last: PathId, paths: &[PathView]) -> PathId {
    let failing = paths.iter().filter(|p| p.state == PathState::PotentiallyFailed && p.up);
    let fewest = || failing.min_by_key(|p| (p.errors, p.id == last)).map(|p| p.id);
    next_active(last, paths).or_else(fewest).unwrap_or(last)
}

/// The first path after `last`, in their order and around the end, that can carry data and is not `last`.
pub fn next_active(last: PathId, paths: &[PathView]) -> Option<PathId> {
    let start = paths.iter().position(|p| p.id == last).map_or(0, |i| i + 1);
    let (before, after) = paths.split_at(start.min(paths.len()));
    after.iter().chain(before).find(|p| p.carries() && p.id != last).map(|p| p.id)
}

/// The best of `paths` by `compare`; of several, the one that `tie` names.
pub fn best<'p>(
    tie: u64,
    paths: impl Iterator<Item = &'p PathView>,
    compare: impl Fn(&PathView, &PathView) -> Ordering,
) -> Option<&'p PathView> {
    let mut found: SmallVec<[&PathView; 4]> = SmallVec::new();
    for path in paths {
        match found.first().map_or(Ordering::Greater, |best| compare(path, best)) {
            Ordering::Less => {}
            Ordering::Equal => found.push(path),
            Ordering::Greater => {
                found.clear();
                found.push(path);
            }
        }
    }
    let turn = tie.checked_rem(found.len() as u64)? as usize;
    found.get(turn).copied()
}
