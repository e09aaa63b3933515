//! What a TOML file describes. A file that is given to the wrong command is told which one takes it.

use anabranch_sim::scenario::Document;

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scenario,
    Sweep,
    Failover,
    Policy,
}

impl Kind {
    /// The kind of a file, as far as its first level shows it.
    pub(crate) fn of(document: &Document) -> Option<Kind> {
        let any = |keys: &[&str]| keys.iter().any(|key| document.get(key).is_some());
        if any(&["scenario"]) {
            Some(Kind::Sweep)
        } else if any(&["link", "channel", "flow"]) {
            Some(Kind::Scenario)
        } else {
            match (any(&["budget"]), any(&["transfer"])) {
                (true, false) => Some(Kind::Failover),
                (false, true) => Some(Kind::Policy),
                _ => None,
            }
        }
    }

    /// What `file` is, and the command that takes it.
    pub(crate) fn told(self, file: &str) -> String {
        match self {
            Kind::Scenario => format!("{file}: this is a scenario; `anabranch run {file}` runs it"),
            Kind::Sweep => {
                format!("{file}: this is the file of a sweep; `anabranch sweep {file} --out DIR` runs it")
            }
            Kind::Failover => {
                format!("{file}: this asks for a failover; `anabranch advise failover {file}` answers it")
            }
            Kind::Policy => {
                format!("{file}: this asks for a policy; `anabranch advise policy {file}` answers it")
            }
        }
    }
}
