//! A deterministic packet simulator, and the strict reader of what it simulates.

mod agenda;
mod agent;
pub mod capture;
mod chance;
mod engine;
mod error;
mod flow;
mod link;
mod loss;
mod network;
mod observed;
mod queue;
pub mod results;
mod run;
pub mod scenario;
mod sctp;
mod series;
pub mod trace;
mod traffic;
mod wire;

#[cfg(test)]
mod tests;

pub use chance::stream_seed;
pub use error::{Item, RunError};
pub use run::{Progress, RunOptions, check, run};
pub use series::CsvSeries;
