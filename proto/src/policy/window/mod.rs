//! Windows that a configuration can name: those of [`crate::control::window`], and SCTP's own.

pub mod standard;

pub use crate::control::window::{Acked, Congestion, Loss, Lost, MakePath, Sibling, Start};
