//! Windows that a configuration can name: those of [`crate::control::window`], and SCTP's own.

mod cubic;
pub mod standard;

pub(super) use cubic::make as make_cubic;

pub use crate::control::window::{Acked, Congestion, Cubic, Loss, Lost, MakePath, Sibling, Start};
