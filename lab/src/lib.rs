//! Experiments with the simulator: grids of scenarios run on all cores, sweeps, publications as data with their
//! claims, reports, explanations, and published models.

pub mod advice;
pub mod claims;
pub mod command;
pub mod diff;
mod entry;
pub mod grid;
pub mod kind;
pub mod models;
pub mod report;
pub mod statistics;
pub mod sweep;
pub mod units;
pub mod why;
