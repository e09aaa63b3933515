//! Wires: links of two directions, each with a rate, a delay, a queue and losses.

mod codel;
mod counters;
mod jitter;
mod link;
mod loss;
mod managed;
mod passed;
mod queue;
mod red;
mod traced;

pub(crate) use counters::Counters;
pub use counters::DropCause;
pub(crate) use jitter::Jitter;
pub(crate) use link::{Alteration, Carried, Direction, OfferResult, Transit};
pub(crate) use loss::Losses;
pub(crate) use managed::Management;
pub(crate) use passed::Pass;
pub(crate) use queue::Occupancy;
pub(crate) use traced::{Traced, carried, segment_count};
