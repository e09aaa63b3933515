//! Why a scenario cannot be run.

use anabranch_proto::policy::PolicyError;
use anabranch_proto::{ConfigError, Time};

/// Why a run has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A flow begins or ends at a node that no link or channel names.
    #[error("flow `{flow}`: no link has a node `{node}`")]
    UnknownNode {
        /// The flow.
        flow: String,
        /// "from" or "to".
        key: &'static str,
        /// The node.
        node: String,
        /// The existing nodes, sorted.
        known: Vec<String>,
    },
    /// There is no such node.
    #[error("no link has a node `{node}`; the nodes are: {}", known.join(", "))]
    NoNode {
        /// The node that was asked for.
        node: String,
        /// The nodes there are, sorted.
        known: Vec<String>,
    },
    /// A node to which a program is attached reaches nobody.
    #[error("no other host can be reached from node `{node}`: hosts do not forward")]
    Alone {
        /// The node.
        node: String,
    },
    /// No interface of one end can reach an interface of the other end.
    #[error(
        "flow `{flow}`: no route from `{from}` to `{to}`; hosts at which flows begin or end do not forward"
    )]
    NoRoute {
        /// The flow.
        flow: String,
        /// Its sender.
        from: String,
        /// Its receiver.
        to: String,
    },
    /// The radios between the ends of a flow are too far apart.
    #[error(
        "flow `{flow}`: no route on channel `{channel}`: `{}` and `{}` are {metres:.1} m apart, too far to read each other",
        nodes[0], nodes[1]
    )]
    Gap {
        /// The flow.
        flow: String,
        /// The channel on which both ends have a radio.
        channel: String,
        /// The nearest pair of a node that the sender reaches and a node that it does not reach.
        nodes: [String; 2],
        /// The distance between them.
        metres: f64,
    },
    /// A key names a path that the flow does not have.
    #[error("flow `{flow}`: {key}: no path is called `{path}`; its paths are: {}", known.join(", "))]
    UnknownPath {
        /// The flow.
        flow: String,
        /// The key: `primary`, `backup` or `priorities`.
        key: &'static str,
        /// The path that it names.
        path: String,
        /// The names of the paths.
        known: Vec<String>,
    },
    /// A parameter of the protocol cannot be used.
    #[error("flow `{flow}`: {error}")]
    Config {
        /// The flow.
        flow: String,
        /// The parameter and the reason.
        error: ConfigError,
    },
    /// A policy could not be created.
    #[error("flow `{flow}`: {key}: {error}")]
    Policy {
        /// The flow.
        flow: String,
        /// The field of its [`Config`](anabranch_proto::Config).
        key: &'static str,
        /// The error.
        error: PolicyError,
    },
    /// A change of a link that does not exist.
    #[error("a change names the link `{link}`, which does not exist")]
    UnknownLink {
        /// The index of the change, from 0.
        change: usize,
        /// The link.
        link: String,
        /// The existing links, sorted.
        known: Vec<String>,
    },
    /// A value cannot be used.
    #[error("{item}: {key}: {why}")]
    Value {
        /// The item with the value.
        item: Item,
        /// The field.
        key: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A flow of a foreign transport that is not built into the program.
    #[error("flow `{flow}`: {}", without(name, known))]
    NoForeign {
        /// The flow.
        flow: String,
        /// The transport that it names.
        name: String,
        /// Those that the program has.
        known: Vec<String>,
    },
    /// A foreign transport cannot carry a flow.
    #[error("flow `{flow}`: {why}")]
    Foreign {
        /// The flow.
        flow: String,
        /// The transport's own words.
        why: String,
    },
    /// The function that watches the progress has ended the run.
    #[error("interrupted after {:.3} virtual seconds", at.as_secs_f64())]
    Interrupted {
        /// The virtual time at which it did.
        at: Time,
    },
}

/// A part of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Item {
    /// The scenario itself.
    Scenario,
    /// The link of this name.
    Link(String),
    /// The channel of this name.
    Channel(String),
    /// The node of this name.
    Node(String),
    /// The flow of this name.
    Flow(String),
    /// The cross traffic of this name.
    Traffic(String),
    /// A change, counted from 0.
    Change(usize),
}

impl RunError {
    /// The item at fault and its field; `None` if the scenario is not at fault.
    pub fn place(&self) -> Option<(Item, &'static str)> {
        let flow = |name: &String| Item::Flow(name.clone());
        match self {
            RunError::UnknownNode { flow: name, key, .. } | RunError::UnknownPath { flow: name, key, .. } => {
                Some((flow(name), key))
            }
            RunError::NoRoute { flow: name, .. } | RunError::Gap { flow: name, .. } => {
                Some((flow(name), "to"))
            }
            RunError::Config { flow: name, error } => Some((flow(name), error.key)),
            RunError::Policy { flow: name, key, .. } => Some((flow(name), key)),
            RunError::NoForeign { flow: name, .. } | RunError::Foreign { flow: name, .. } => {
                Some((flow(name), "protocol"))
            }
            RunError::UnknownLink { change, .. } => Some((Item::Change(*change), "link")),
            RunError::Value { item, key, .. } => Some((item.clone(), key)),
            RunError::NoNode { .. } | RunError::Alone { .. } | RunError::Interrupted { .. } => None,
        }
    }
}

/// The command that runs scenarios with foreign transports.
pub(crate) const FOREIGN: &str = "cargo run --release --manifest-path foreign/Cargo.toml -- run FILE";

/// That a program has no such foreign transport, and where there is one.
fn without(name: &str, known: &[String]) -> String {
    match known {
        [] => format!(
            "this program was built without foreign transports such as `{name}`; run it with the program that has \
             them: {FOREIGN}"
        ),
        known => format!("no foreign transport is called `{name}`; there are: {}", known.join(", ")),
    }
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Item::Scenario => write!(f, "scenario"),
            Item::Link(name) => write!(f, "link `{name}`"),
            Item::Channel(name) => write!(f, "channel `{name}`"),
            Item::Node(name) => write!(f, "node `{name}`"),
            Item::Flow(name) => write!(f, "flow `{name}`"),
            Item::Traffic(name) => write!(f, "traffic `{name}`"),
            Item::Change(number) => write!(f, "change number {}", number + 1),
        }
    }
}
