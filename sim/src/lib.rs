//! A deterministic packet simulator, and the laboratory on it.

mod agenda;
mod agent;
pub mod capture;
mod chance;
pub mod claims;
mod engine;
mod error;
mod flow;
mod link;
mod loss;
pub mod models;
mod network;
mod observed;
mod queue;
pub mod results;
mod run;
pub mod scenario;
pub mod script;
mod sctp;
mod series;
pub mod sweep;
pub mod trace;
mod traffic;
mod wire;
mod wireless;

#[cfg(test)]
mod tests;

pub use chance::stream_seed;
pub use error::{Item, RunError};
pub use run::{Progress, RunOptions, check, run};
pub use series::CsvSeries;
