//! What a TOML file describes: a scenario, a sweep, or a question to `advise`.

use anabranch_sim::scenario::Document;

/// What a file is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One run.
    Scenario,
    /// Many runs of a scenario.
    Sweep,
    /// A question about timeouts and thresholds.
    Failover,
    /// A question about retransmission policies.
    Policy,
}

impl Kind {
    /// The kind of a file, as far as its first level shows it.
    pub fn of(document: &Document) -> Option<Kind> {
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
}
