//! A deterministic packet simulator, and the laboratory on it.

mod chance;
pub mod claims;
mod engine;
mod error;
mod medium;
pub mod models;
mod network;
mod observe;
pub mod results;
mod run;
pub mod scenario;
pub mod script;
pub mod sweep;
mod traffic;
mod transport;

#[cfg(test)]
mod tests;

pub use chance::stream_seed;
pub use error::{Item, RunError};
pub use observe::series::CsvSeries;
pub use observe::{capture, trace};
pub use run::{Progress, RunOptions, check, run};
