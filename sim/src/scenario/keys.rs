//! The keys of a scenario. Each key is one row: its name, its kind of value, its default, its meaning, and how it is
//! read. The reader accepts exactly these rows, `docs/scenario.md` lists them, and hints choose from them.

use super::at::{At, Result};
use super::error::{ScenarioError, nearest, three_nearest};
use super::{channel, cross, flow, link, mptcp, read, sctp, station, tcp, wire};

/// A key of a table of kind `T`.
pub struct Key<T> {
    /// The spelling of the key.
    pub name: &'static str,
    /// The kind of value.
    pub takes: &'static str,
    /// The default.
    pub default: Default,
    /// The meaning.
    pub doc: &'static str,
    /// Reads the value into a draft of the table.
    pub read: fn(&mut T, &At<'_>) -> Result<()>,
}

/// The default of a key.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Default {
    /// The key is required.
    Required,
    /// The same as this TOML value; a test compares it with the reader.
    Value(&'static str),
    /// A default that cannot be written as one value.
    Text(&'static str),
}

/// A kind of table and its keys.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its heading in a document; empty for the top of the document.
    pub header: &'static str,
    /// Its keys.
    pub keys: Vec<KeyDoc>,
}

/// The documentation of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyDoc {
    /// The spelling of the key.
    pub name: &'static str,
    /// The kind of value, with its unit.
    pub takes: String,
    /// The default.
    pub default: Default,
    /// The meaning.
    pub doc: String,
}

/// Every table and key of a scenario.
pub fn sections() -> Vec<Section> {
    let section = |header, keys| Section { header, keys };
    let mut protocol = docs(sctp::KEYS);
    protocol.extend(sctp::rule_docs());
    vec![
        section("", docs(read::KEYS)),
        section("[[node]]", docs(station::NODE_KEYS)),
        section("[[link]]", docs(link::KEYS)),
        section("[link.queue.red]", docs(wire::RED_KEYS)),
        section("[link.queue.codel]", docs(wire::CODEL_KEYS)),
        section("[[change]]", docs(link::CHANGE_KEYS)),
        section("[[channel]]", docs(channel::CHANNEL_KEYS)),
        section("[channel.reception] range", docs(channel::RANGE_KEYS)),
        section("[channel.reception] power", docs(channel::POWER_KEYS)),
        section("[channel.dcf]", docs(channel::DCF_KEYS)),
        section("[[chain]]", docs(station::CHAIN_KEYS)),
        section("[[grid]]", docs(station::GRID_KEYS)),
        section("[[route]]", docs(station::ROUTE_KEYS)),
        section("[[flow]]", docs(flow::KEYS)),
        section("[flow.sctp]", protocol),
        section("[flow.tcp]", docs(tcp::KEYS)),
        section("[flow.mptcp]", mptcp::docs()),
        section("[[traffic]]", docs(cross::KEYS)),
    ]
}

/// One section's keys as a Markdown table.
pub fn markdown(section: &Section) -> String {
    let mut table = String::from("| key | takes | default | meaning |\n|---|---|---|---|\n");
    for key in &section.keys {
        let default = match key.default {
            Default::Required => "required".to_owned(),
            Default::Value(value) => format!("`{value}`"),
            Default::Text(text) => text.to_owned(),
        };
        table += &format!("| `{}` | {} | {default} | {} |\n", key.name, key.takes, key.doc);
    }
    table
}

/// The documentation of each row.
pub fn docs<T>(keys: &[Key<T>]) -> Vec<KeyDoc> {
    let doc = |key: &Key<T>| KeyDoc {
        name: key.name,
        takes: key.takes.to_owned(),
        default: key.default,
        doc: key.doc.to_owned(),
    };
    keys.iter().map(doc).collect()
}

/// Reads the table at `at` into `draft` by `keys`, in the order of the rows. A key without a row is refused.
pub(super) fn fill<T>(draft: &mut T, at: &At<'_>, keys: &[Key<T>]) -> Result<()> {
    let names: Vec<_> = keys.iter().map(|key| key.name).collect();
    refuse_unknown(at, &names)?;
    read_known(draft, at, keys)
}

/// Reads the keys in `keys` and ignores all others.
pub fn read_known<T>(draft: &mut T, at: &At<'_>, keys: &[Key<T>]) -> Result<()> {
    for key in keys {
        match at.get(key.name) {
            Some(value) => (key.read)(draft, &value)?,
            None if key.default == Default::Required => {
                return Err(at.error_below(key.name, "this key is missing").hint(how_to_add(key)));
            }
            None => {}
        }
    }
    Ok(())
}

fn how_to_add<T>(key: &Key<T>) -> String {
    match key.takes {
        "tables" => format!("add a table `[[{}]]`", key.name),
        takes => format!("add `{} = …` ({takes})", key.name),
    }
}

/// Refuses the first entry that is not in `names`.
pub(super) fn refuse_unknown(at: &At<'_>, names: &[&'static str]) -> Result<()> {
    match at.entries()?.iter().find(|entry| !names.contains(&entry.key.as_str())) {
        Some(entry) => Err(with_fix(at.no_such_key(entry), &entry.key, names)),
        None => Ok(()),
    }
}

/// The largest number of keys in a hint.
const MANY: usize = 20;

/// The nearest key of the same table, otherwise the table that has this key.
fn with_fix(error: ScenarioError, key: &str, names: &[&'static str]) -> ScenarioError {
    let elsewhere = || sections().into_iter().find(|s| s.keys.iter().any(|k| k.name == key));
    match (nearest(key, names.iter().copied()), elsewhere()) {
        (Some(name), _) if name.len().abs_diff(key.len()) <= 3 => {
            error.hint(format!("did you mean `{name}`?"))
        }
        (_, Some(section)) if section.header.is_empty() => error.hint("it belongs at the top of the file"),
        (_, Some(section)) => error.hint(format!("it belongs in {}", section.header)),
        _ if names.len() > MANY => {
            let near = three_nearest(key, names).join("`, `");
            error
                .hint(format!("the nearest of {} keys are `{near}`; `anabranch keys` lists all", names.len()))
        }
        _ => error.hint(format!("the keys here are {}", names.join(", "))),
    }
}
