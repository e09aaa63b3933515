//! Traces a fault that the network finds back to the line of the document.

use super::document::Document;
use super::error::{ScenarioError, did_you_mean};
use super::{Scenario, mptcp, sctp, tcp};
use crate::error::{FOREIGN, Item, RunError};

impl Document {
    /// The same error at its line of the document of `scenario`; `None` if the scenario is not at fault.
    pub fn blame(&self, scenario: &Scenario, error: &RunError) -> Option<ScenarioError> {
        let (item, key) = error.place()?;
        let path = match item {
            Item::Scenario => key.to_owned(),
            Item::Link(name) => format!("link.{name}.{key}"),
            Item::Channel(name) => format!("channel.{name}.{key}"),
            Item::Node(name) => format!("node.{name}.{key}"),
            Item::Flow(name) if self.get(&format!("traffic.{name}")).is_some() => {
                format!("traffic.{name}.{key}")
            }
            Item::Traffic(name) => format!("traffic.{name}.{key}"),
            Item::Flow(name) => self.flow_path(&name, key),
            Item::Change(number) => format!("change.{}.{key}", self.change_number(scenario, number)),
        };
        let (message, hint) = told(error);
        Some(self.error(&path, message).maybe_hint(hint))
    }

    fn flow_path(&self, name: &str, field: &str) -> String {
        let given = |key: &str| self.get(&format!("flow.{name}.sctp.{key}")).is_some();
        let key = match field {
            "read_rate" => "read",
            "new_data" => "new",
            "fast" | "timeout" if !given(field) && given("retransmit") => "retransmit",
            _ => field,
        };
        let protocol = self.get(&format!("flow.{name}.protocol"));
        let multipath = self.get(&format!("flow.{name}.mptcp")).is_some();
        match protocol.as_ref().and_then(|protocol| protocol.as_str()) {
            _ if multipath && mptcp::has_key(key) => format!("flow.{name}.mptcp.{key}"),
            Some("tcp") if tcp::has_key(key) => format!("flow.{name}.tcp.{key}"),
            None | Some("sctp") if sctp::has_key(key) => format!("flow.{name}.sctp.{key}"),
            _ => format!("flow.{name}.{key}"),
        }
    }

    /// The number of the `[[change]]`, from 1, for change `number` of the scenario. Outages of links come first.
    fn change_number(&self, scenario: &Scenario, number: usize) -> usize {
        let written = self.get("change").and_then(|changes| Some(changes.as_array()?.len())).unwrap_or(0);
        (number + 1).saturating_sub(scenario.changes.len().saturating_sub(written))
    }
}

/// The message and the advice, for cases in which the item's own name would only repeat the key.
fn told(error: &RunError) -> (String, Option<String>) {
    match error {
        RunError::NoRoute { from, to, .. } => (
            format!("there is no route from `{from}` to `{to}`"),
            Some("nodes at which flows begin or end are hosts, which do not forward".to_owned()),
        ),
        RunError::Gap { channel, nodes: [near, far], metres, .. } => (
            format!(
                "there is no route on channel `{channel}`: `{near}` and `{far}` are {metres:.1} m apart, too far to read each other"
            ),
            Some(
                "bring them nearer, put a node between them, or let the channel's reception reach farther"
                    .to_owned(),
            ),
        ),
        RunError::UnknownPath { path, known, .. } => {
            (format!("there is no path `{path}`"), Some(did_you_mean(path, known.iter().map(String::as_str))))
        }
        RunError::UnknownNode { node, known, .. } => {
            (format!("there is no node `{node}`"), Some(did_you_mean(node, known.iter().map(String::as_str))))
        }
        RunError::UnknownLink { link, known, .. } => {
            (format!("there is no link `{link}`"), Some(did_you_mean(link, known.iter().map(String::as_str))))
        }
        RunError::Config { error, .. } => (error.why.clone(), error.fix.clone()),
        RunError::Policy { error, .. } => (error.to_string(), None),
        RunError::Value { why, .. } => ((*why).to_owned(), None),
        RunError::NoForeign { name, known, .. } if !known.is_empty() => (
            format!("there is no foreign transport `{name}`"),
            Some(did_you_mean(name, known.iter().map(String::as_str))),
        ),
        RunError::NoForeign { name, .. } => (
            format!("this program was built without foreign transports such as `{name}`"),
            Some(format!("run it with the program that has them: {FOREIGN}")),
        ),
        RunError::Foreign { why, .. } => (why.clone(), None),
        RunError::NoNode { .. } | RunError::Alone { .. } | RunError::Interrupted { .. } => {
            (error.to_string(), None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_proto::{ConfigError, Policies};

    const TEXT: &str = "\
[[link]]
name = 'l'
between = ['s', 'r']
rate = '1 Mbit/s'
down = [['1 s', '2 s']]
[[change]]
at = '1 s'
link = 'l'
rate = '2 Mbit/s'
[[flow]]
name = 'f'
from = 's'
to = 'r'
send = '1 MB'
[flow.sctp]
retransmit = 'same'
";

    fn blamed(error: &RunError) -> (usize, String) {
        let document = Document::parse("test.toml", TEXT).unwrap();
        let scenario = document.scenario("test", &Policies::default()).unwrap();
        let error = document.blame(&scenario, error).unwrap();
        (error.line(), error.key().to_owned())
    }

    #[test]
    fn items_are_found_by_what_the_document_calls_them() {
        let value = |item, key| blamed(&RunError::Value { item, key, why: "wrong" });
        assert_eq!(value(Item::Link("l".into()), "rate"), (4, "link.l.rate".into()));
        assert_eq!(value(Item::Change(2), "rate"), (9, "change.1.rate".into()));
        assert_eq!(value(Item::Flow("f".into()), "send"), (14, "flow.f.send".into()));
        assert_eq!(value(Item::Flow("f".into()), "read_rate"), (10, "flow.f.read".into()));
        assert_eq!(value(Item::Flow("f".into()), "fast"), (16, "flow.f.sctp.retransmit".into()));
        let error = ConfigError { key: "rto_min", why: "must be less".into(), fix: None };
        assert_eq!(blamed(&RunError::Config { flow: "f".into(), error }), (15, "flow.f.sctp.rto_min".into()));
    }
}
