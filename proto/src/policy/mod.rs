//! The two traits for policies (routes and windows), and the table of the built-in policies.
//!
//! To add a policy, write one file in `window/` or `route/` and one row in [`Policies::default`].

pub mod receive_buffer_model;
pub mod route;
mod spec;
pub mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Config;
pub use crate::path::{PathId, PathState, PathView};
pub use route::{Ask, Choice, Route, Why};
use spec::no_settings;
pub use spec::{PolicyError, PolicySpec, Setting};
pub use window::{Acked, Congestion, Loss, Lost, Sibling, Start};

type MakeWindow = Arc<dyn Fn(&PolicySpec, &Config) -> Result<window::MakePath, PolicyError> + Send + Sync>;
type MakeRoute = Arc<dyn Fn(&PolicySpec, &Config) -> Result<Box<dyn Route>, PolicyError> + Send + Sync>;

/// The policies that a configuration can name. Add your own to a value of this type; there is no global registry.
#[derive(Clone)]
pub struct Policies {
    // Shared: each of thousands of endpoints has a copy.
    windows: Arc<BTreeMap<String, MakeWindow>>,
    routes: Arc<BTreeMap<String, MakeRoute>>,
}

impl Default for Policies {
    fn default() -> Self {
        let mut table = Policies { windows: Arc::default(), routes: Arc::default() };
        table.add_window("standard", window::standard::make);
        table.add_window("lia", window::coupled::lia::lia);
        table.add_window("olia", window::coupled::olia::olia);
        table.add_window("balia", window::coupled::balia::balia);
        table.add_window("rpv1", window::pooling::rpv1);
        table.add_window("rpv2", window::pooling::rpv2);
        table.add_window("cubic", window::make_cubic);
        table.add_window("reno", window::make_reno);
        table.add_route("primary", route::primary::make);
        table.add_route("same", route::same::make);
        table.add_route("adaptive", route::adaptive::make);
        table.add_route("alternate", route::alternate::make);
        table.add_route("timeout-alternate", route::timeout_alternate::make);
        table.add_route("round-robin", route::round_robin::make);
        table.add_route("lowest-rtt", route::open::lowest_rtt);
        table.add_route("window-share", route::open::window_share);
        table.add_route("ecf", route::ecf::make);
        table.add_route("blest", route::blest::make);
        table.add_route("rtx-asap", route::asap::make);
        table.add_route("rtx-cwnd", route::largest::by_window);
        table.add_route("rtx-ssthresh", route::largest::by_ssthresh);
        table.add_route("rtx-lossrate", route::lossrate::make);
        table
    }
}

impl Policies {
    /// Adds the window policy `name`, or replaces it.
    pub fn add_window(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&PolicySpec, &Config) -> Result<window::MakePath, PolicyError> + Send + Sync + 'static,
    ) {
        Arc::make_mut(&mut self.windows).insert(name.into(), Arc::new(make));
    }

    /// Adds the route policy `name`, or replaces it.
    pub fn add_route(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&PolicySpec, &Config) -> Result<Box<dyn Route>, PolicyError> + Send + Sync + 'static,
    ) {
        Arc::make_mut(&mut self.routes).insert(name.into(), Arc::new(make));
    }

    /// The names of all routes.
    pub fn route_names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(String::as_str)
    }

    /// The names of all windows.
    pub fn window_names(&self) -> impl Iterator<Item = &str> {
        self.windows.keys().map(String::as_str)
    }

    /// The route for `spec`.
    pub fn route(&self, spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
        let make = self.routes.get(spec.name.as_str()).ok_or_else(|| unknown(spec, self.route_names()))?;
        make(spec, config)
    }

    /// A maker of windows for `spec`; it makes one window for each path.
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

fn unknown<'a>(spec: &PolicySpec, known: impl Iterator<Item = &'a str>) -> PolicyError {
    PolicyError::Unknown { name: spec.name.clone(), known: known.collect::<Vec<_>>().join(", ") }
}
