//! The compiled part of the Python package `anabranch`. `python/anabranch/__init__.py` is its public surface.

mod document;
#[cfg(target_os = "linux")]
mod loopback;
mod objects;
mod papers;
mod path;
mod policies;
mod run;
mod sweep;
mod tables;

use pyo3::prelude::*;

/// The module that `anabranch` imports as `anabranch._core`.
#[pymodule]
mod _core {
    #[pymodule_export]
    use super::document::{ScenarioError, string_at, to_toml, to_toml_value};
    #[cfg(target_os = "linux")]
    #[pymodule_export]
    use super::loopback::loopback;
    #[pymodule_export]
    use super::papers::{Reproduction, model, papers};
    #[pymodule_export]
    use super::path::Path;
    #[pymodule_export]
    use super::policies::{Acked, Ask, Sibling};
    #[pymodule_export]
    use super::run::{Run, content_key, run};
    #[pymodule_export]
    use super::sweep::{Judge, Runs, Sweep};
    #[pymodule_export]
    use super::tables::Table;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
