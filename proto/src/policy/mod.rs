//! The two traits for policies (routes and windows), and the table of the built-in policies.
//!
//! To add a policy, write one file in `window/` or `route/` and one row in `WINDOWS` or `ROUTES`.

pub mod receive_buffer_model;
pub mod route;
mod spec;
pub mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Config;
pub use crate::path::{PathId, PathState, PathView};
pub use route::{Ask, Choice, Route, Stays, Why};
use spec::no_settings;
pub use spec::{PolicyError, PolicySpec, Setting};
pub use window::{Acked, Congestion, Loss, Lost, Sibling, Start};

type WindowConstructor =
    Arc<dyn Fn(&PolicySpec, &Config) -> Result<window::MakeWindow, PolicyError> + Send + Sync>;
type RouteConstructor =
    Arc<dyn Fn(&PolicySpec, &Config) -> Result<Box<dyn Route>, PolicyError> + Send + Sync>;

/// The policies that a configuration can name. Add your own to a value of this type; there is no global registry.
#[derive(Clone)]
pub struct Policies {
    // Shared: each of thousands of endpoints has a copy.
    windows: Arc<BTreeMap<String, Row<WindowConstructor>>>,
    routes: Arc<BTreeMap<String, Row<RouteConstructor>>>,
}

/// A policy of the table.
#[derive(Clone)]
struct Row<M> {
    make: M,
    /// One line for lists; empty for policies that others add.
    summary: &'static str,
}

/// The constructors of built-in policies.
type BuiltInWindow = fn(spec: &PolicySpec, config: &Config) -> Result<window::MakeWindow, PolicyError>;
type BuiltInRoute = fn(spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError>;

/// The built-in windows: name, summary, constructor.
const WINDOWS: &[(&str, &str, BuiltInWindow)] = &[
    ("standard", "SCTP's own window (RFC 9260 section 7.2), by the rules of the era", window::standard::make),
    ("lia", "linked increases (RFC 6356)", window::coupled::lia::lia),
    ("olia", "opportunistic linked increases", window::coupled::olia::olia),
    ("balia", "balanced linked adaptation", window::coupled::balia::balia),
    ("rpv1", "resource pooling of CMT/RP, version 1", window::pooling::rpv1),
    ("rpv2", "resource pooling of CMT/RP, version 2", window::pooling::rpv2),
    ("cubic", "CUBIC (RFC 9438)", window::make_cubic),
    ("reno", "the window of TCP (RFC 5681)", window::make_reno),
];

/// The built-in routes: name, summary, constructor.
const ROUTES: &[(&str, &str, BuiltInRoute)] = &[
    ("primary", "the primary path, or the next active path while it is not active", route::primary::make),
    ("same", "the path that last carried the chunk (FRtxOnSame)", route::same::make),
    ("adaptive", "as `alternate`, or as `same` if that would fill the receive buffer", route::adaptive::make),
    ("alternate", "the next active path after the one that last carried the chunk", route::alternate::make),
    (
        "timeout-alternate",
        "as `alternate` after a timeout, otherwise as `same` (RFC 9260 section 6.4)",
        route::timeout_alternate::make,
    ),
    ("round-robin", "all active paths in turn, each until its window is full", route::round_robin::make),
    ("lowest-rtt", "the path with room that has the lowest smoothed RTT", route::open::lowest_rtt),
    (
        "window-share",
        "the path with room that uses the smallest share of its window",
        route::open::window_share,
    ),
    (
        "ecf",
        "earliest completion first: waits for the fastest path if a slower one would deliver later",
        route::ecf::make,
    ),
    (
        "blest",
        "blocking estimation: waits for the fastest path if a slower one would fill the peer's window",
        route::blest::make,
    ),
    ("rtx-asap", "any active path with room", route::asap::make),
    ("rtx-cwnd", "the active path with the largest congestion window", route::largest::by_window),
    ("rtx-ssthresh", "the active path with the largest slow-start threshold", route::largest::by_ssthresh),
    ("rtx-lossrate", "the active path with the lowest loss rate", route::lossrate::make),
];

impl Default for Policies {
    fn default() -> Self {
        let (mut windows, mut routes) = (BTreeMap::new(), BTreeMap::new());
        for &(name, summary, make) in WINDOWS {
            let make: WindowConstructor = Arc::new(make);
            windows.insert(name.to_owned(), Row { make, summary });
        }
        for &(name, summary, make) in ROUTES {
            let make: RouteConstructor = Arc::new(make);
            routes.insert(name.to_owned(), Row { make, summary });
        }
        Policies { windows: Arc::new(windows), routes: Arc::new(routes) }
    }
}

impl Policies {
    /// Adds the window policy `name`, or replaces it.
    pub fn add_window(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&PolicySpec, &Config) -> Result<window::MakeWindow, PolicyError> + Send + Sync + 'static,
    ) {
        Arc::make_mut(&mut self.windows).insert(name.into(), Row { make: Arc::new(make), summary: "" });
    }

    /// Adds the route policy `name`, or replaces it.
    pub fn add_route(
        &mut self,
        name: impl Into<String>,
        make: impl Fn(&PolicySpec, &Config) -> Result<Box<dyn Route>, PolicyError> + Send + Sync + 'static,
    ) {
        Arc::make_mut(&mut self.routes).insert(name.into(), Row { make: Arc::new(make), summary: "" });
    }

    /// The names of all routes.
    pub fn route_names(&self) -> impl Iterator<Item = &str> {
        self.routes.keys().map(String::as_str)
    }

    /// The names of all windows.
    pub fn window_names(&self) -> impl Iterator<Item = &str> {
        self.windows.keys().map(String::as_str)
    }

    /// One line about each route, after its name; empty for a route that was added.
    pub fn route_summaries(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.routes.iter().map(|(name, row)| (name.as_str(), row.summary))
    }

    /// One line about each window, after its name; empty for a window that was added.
    pub fn window_summaries(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.windows.iter().map(|(name, row)| (name.as_str(), row.summary))
    }

    /// The route for `spec`.
    pub fn route(&self, spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
        let row = self.routes.get(spec.name.as_str()).ok_or_else(|| unknown(spec, self.route_names()))?;
        (row.make)(spec, config)
    }

    /// As `route`, for new data. A route that chooses paths for retransmissions only is refused.
    pub fn new_data_route(&self, spec: &PolicySpec, config: &Config) -> Result<Box<dyn Route>, PolicyError> {
        let route = self.route(spec, config)?;
        match route.takes_new_data() {
            true => Ok(route),
            false => Err(spec.refuse("it chooses paths for retransmissions, not for new data")),
        }
    }

    /// A maker of windows for `spec`; it makes one window for each path.
    pub fn window(&self, spec: &PolicySpec, config: &Config) -> Result<window::MakeWindow, PolicyError> {
        let row = self.windows.get(spec.name.as_str()).ok_or_else(|| unknown(spec, self.window_names()))?;
        (row.make)(spec, config)
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
