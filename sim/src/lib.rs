//! A deterministic packet simulator, and the laboratory on it.

pub mod results;
pub mod scenario;
pub mod sweep;
