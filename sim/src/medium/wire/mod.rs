//! Wires: links of two directions, each with a rate, a delay, a queue and losses.

mod codel;
mod jitter;
mod link;
mod loss;
mod managed;
mod passed;
mod queue;
mod red;
mod traced;

pub(crate) use jitter::Jitter;
pub use link::DropCause;
pub(crate) use link::{Alteration, Carried, Counters, Direction, Taken};
pub(crate) use loss::Losses;
pub(crate) use managed::Management;
pub(crate) use queue::Occupancy;
pub(crate) use traced::Traced;
