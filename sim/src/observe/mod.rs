//! What a run reports while it runs, and the files made from it: series, captures and traces.

pub mod capture;
pub mod columns;
mod held;
mod json;
pub(crate) mod observed;
pub(crate) mod perfetto;
pub(crate) mod qlog;
mod queues;
pub(crate) mod series;
pub mod trace;
pub mod words;
