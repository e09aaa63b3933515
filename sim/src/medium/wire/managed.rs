//! Queues that drop before they are full.

use super::codel::Codel;
use super::link::Carried;
use super::red::Red;
use crate::scenario::Queue;

/// What manages a queue beyond its limit.
#[derive(Debug)]
pub(crate) enum Management {
    /// Decides when a packet arrives.
    Red(Box<Red>),
    /// Decides when a packet leaves, so that the packets that wait are here.
    Codel(Codel<Carried>),
}

impl Management {
    /// What this queue needs; `None` of drop-tail. `stream` names the draws of this direction.
    pub(crate) fn new(queue: &Queue, root: u64, stream: &str) -> Option<Box<Management>> {
        match queue {
            Queue::Packets(_) | Queue::Bytes(_) | Queue::BandwidthDelay(_) => None,
            Queue::Red(red) => Some(Box::new(Management::Red(Box::new(Red::new(red, root, stream))))),
            Queue::Codel(codel) => Some(Box::new(Management::Codel(Codel::new(codel)))),
        }
    }

    /// The packets that wait here, and not in the FIFO of the link.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Carried> {
        let codel = match self {
            Management::Codel(codel) => Some(codel),
            Management::Red(_) => None,
        };
        codel.into_iter().flat_map(Codel::waiting)
    }
}
