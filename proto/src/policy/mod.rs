//! The two narrow traits behind which every published policy, and yours, stands, and the table of those built in.
//!
//! Adding one is one file in `window/` or `route/` and one row in [`Policies::default`].

pub mod receive_buffer_model;
pub mod route;
pub mod window;

use std::collections::BTreeMap;

use crate::Config;
pub use crate::path::{PathId, PathState, PathView};
pub use route::{Ask, Choice, Route, Why};
pub use window::{Acked, Congestion, Loss, Lost, Sibling, Start};

/// A policy as a configuration names it: `"same"`, or `{ name = "lossrate", window = "10 s" }`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySpec {
    /// Its row in [`Policies`].
    pub name: String,
    /// Its own keys, which its constructor checks.
    pub settings: BTreeMap<String, String>,
}

impl PolicySpec {
    /// The policy `name` without settings.
    pub fn named(name: &str) -> Self {
        PolicySpec { name: name.to_owned(), settings: BTreeMap::new() }
    }
}

/// Why a policy could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyError {
    /// No row has this name.
    #[error("unknown policy `{name}`; known: {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The policy does not take this setting, or not this value.
    #[error("policy `{name}`: {why}")]
    Setting {
        /// The policy.
        name: String,
        /// What is wrong.
        why: String,
    },
}

type MakeWindow = fn(&PolicySpec, &Config) -> Result<window::MakePath, PolicyError>;
type MakeRoute = fn(&PolicySpec, &Config) -> Result<Box<dyn Route>, PolicyError>;

/// The policies that a configuration can name. Add your own to a value of it; there is no global registry.
#[derive(Clone)]
pub struct Policies {
    windows: BTreeMap<&'static str, MakeWindow>,
    routes: BTreeMap<&'static str, MakeRoute>,
}

impl Default for Policies {
    fn default() -> Self {
        let mut table = Policies { windows: BTreeMap::new(), routes: BTreeMap::new() };
        table.add_window("standard", window::standard::make);
        table.add_window("cubic", window::make_cubic);
        table.add_window("reno", window::make_reno);
        table.add_route("primary", route::primary::make);
        table.add_route("same", route::same::make);
        table.add_route("alternate", route::alternate::make);
        table.add_route("timeout-alternate", route::timeout_alternate::make);
        table
    }
}

impl Policies {
    /// Adds the window policy `name`, or replaces it.
    pub fn add_window(&mut self, name: &'static str, make: MakeWindow) {
        self.windows.insert(name, make);
    }

    /// Adds the route policy `name`, or replaces it.
    pub fn add_route(&mut self, name: &'static str, make: MakeRoute) {
        self.routes.insert(name, make);
    }

    /// The names of all routes.
    pub fn route_names(&self) -> impl Iterator<Item = &'static str> {
        self.routes.keys().copied()
    }

    /// The names of all windows.
    pub fn window_names(&self) -> impl Iterator<Item = &'static str> {
        self.windows.keys().copied()
    }

    /// The route that `spec` describes.
    pub fn route(&self, spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
        let make = self.routes.get(spec.name.as_str()).ok_or_else(|| unknown(spec, self.route_names()))?;
        make(spec, config)
    }

    /// What makes the windows that `spec` describes, one for each path.
    pub fn window(&self, spec: &PolicySpec, config: &Config) -> Result<window::MakePath, PolicyError> {
        let make = self.windows.get(spec.name.as_str()).ok_or_else(|| unknown(spec, self.window_names()))?;
        make(spec, config)
    }
}

impl std::fmt::Debug for Policies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policies")
            .field("windows", &self.windows.keys())
            .field("routes", &self.routes.keys())
            .finish()
    }
}

fn unknown(spec: &PolicySpec, known: impl Iterator<Item = &'static str>) -> PolicyError {
    PolicyError::Unknown { name: spec.name.clone(), known: known.collect::<Vec<_>>().join(", ") }
}

/// Refuses every setting: for policies that have none.
fn no_settings(spec: &PolicySpec) -> Result<(), PolicyError> {
    match spec.settings.keys().next() {
        None => Ok(()),
        Some(key) => {
            Err(PolicyError::Setting { name: spec.name.clone(), why: format!("it has no setting `{key}`") })
        }
    }
}
