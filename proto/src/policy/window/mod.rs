//! Windows that a configuration can name: those of [`crate::control::window`], and SCTP's own.

pub mod coupled;
mod cubic;
pub mod pooling;
mod reno;
pub mod standard;

pub(super) use cubic::make as make_cubic;
pub(super) use reno::make as make_reno;

pub use crate::control::window::{
    Acked, Alpha, Congestion, Cubic, Estimated, Halving, Loss, Lost, MakePath, Reno, Sibling, Start,
};
