//! A deterministic packet simulator, and the strict reader of its scenarios.

pub mod against;
mod chance;
mod engine;
mod error;
mod live;
mod medium;
mod network;
mod observe;
pub mod results;
mod run;
pub mod scenario;
mod traffic;
mod transport;

#[cfg(test)]
mod probes;
#[cfg(test)]
mod tests;

pub use chance::stream_seed;
pub use error::{Item, RunError};
pub use live::{Arrival, Interface, Live};
pub use observe::perfetto::PerfettoWriter;
pub use observe::qlog::QlogWriter;
pub use observe::series::CsvSeries;
pub use observe::{capture, columns, trace, words};
pub use run::{Progress, RunOptions, check, run, single_paths};
pub use transport::{Protocol, foreign};
