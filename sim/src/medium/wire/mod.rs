//! Wires: links of two directions, each with a rate, a delay, a queue and losses.

mod link;
mod loss;
mod queue;

pub use link::DropCause;
pub(crate) use link::{Alteration, Carried, Counters, Direction};
pub(crate) use loss::Losses;
pub(crate) use queue::Occupancy;
