//! The SACKs that a receiver has sent and of which the sender knows nothing.

use std::sync::Arc;

use anabranch_proto::Time;
use anabranch_proto::wire::chunk::Sack;

use super::follow::{COPIES, Held, Place};

/// The SACKs sent since the last one that arrived, in the order of sending: the first and the latest ones. One that
/// arrives says all that those before it say.
#[derive(Default, Debug)]
pub(super) struct Unheard(Vec<Told>);

/// A SACK of the receiver.
#[derive(Debug)]
pub(super) struct Told {
    held: Held,
    pub(super) path: Arc<str>,
    pub(super) place: Place,
}

impl Told {
    /// When it was sent.
    pub(super) fn at(&self) -> Time {
        self.held.at
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.place, Place::Dropped { .. })
    }
}

impl Unheard {
    pub(super) fn sent(&mut self, path: &str, held: Held) {
        if self.0.len() == COPIES {
            self.0.remove(1);
        }
        self.0.push(Told { held, path: path.into(), place: Place::Sender });
    }

    /// The oldest such SACK that is still in flight on this path is at `place` now: a path delivers in order.
    pub(super) fn moved(&mut self, path: &str, sack: &Sack, place: &Place) {
        let on_way = |told: &Told| *told.path == *path && !told.is_lost() && told.held.sack == *sack;
        let Some(which) = self.0.iter().position(on_way) else { return };
        match place {
            Place::Arrived { .. } => drop(self.0.drain(..=which)),
            place => self.0[which].place.moved(place),
        }
    }

    /// Those that acknowledge this TSN.
    pub(super) fn covering(&self, number: u64) -> impl Iterator<Item = &Told> {
        self.0.iter().filter(move |told| told.held.covers(number))
    }
}
