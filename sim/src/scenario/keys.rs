//! The keys of a scenario. Each key is one row: its name, its kind of value, its default, its meaning, and how it is
//! read. The reader accepts exactly these rows, `docs/scenario.md` lists them, and hints choose from them.

use super::at::{At, Result};
use super::error::{nearest, three_nearest};
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

impl<T> std::fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").field("name", &self.name).finish_non_exhaustive()
    }
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
        Some(entry) => Err(at.no_such_key(entry).hint(fix(at, &entry.key, names))),
        None => Ok(()),
    }
}

/// The largest number of keys in a hint.
const MANY: usize = 20;

/// Keys of the same meaning in different tables.
const SAME: [[&str; 2]; 1] = [["receive_window", "receive_buffer"]];

/// The nearest key of the same table, otherwise the tables that have this key.
fn fix(at: &At<'_>, key: &str, names: &[&'static str]) -> String {
    if let Some(name) = nearest(key, names.iter().copied()).filter(|name| name.len().abs_diff(key.len()) <= 3)
    {
        return format!("did you mean `{name}`?");
    }
    let mut same = SAME.iter().filter(|pair| pair.contains(&key)).flatten();
    if let Some(name) = same.find(|name| names.contains(name)) {
        return format!("here it is called `{name}`");
    }
    let tables = tables_with(key);
    let here = || format!("the keys here are {}", names.join(", "));
    match (tables.is_empty(), names.len() > MANY) {
        (false, true) => elsewhere(at, &tables),
        (false, false) => format!("{}; {}", elsewhere(at, &tables), here()),
        (true, true) => {
            let near = three_nearest(key, names).join("`, `");
            format!("the nearest of {} keys are `{near}`; `anabranch keys` lists all", names.len())
        }
        (true, false) => here(),
    }
}

/// The headings of the tables that have a value `key`. What is an array of tables, as `[[node]]`, is not meant by a
/// value.
fn tables_with(key: &str) -> Vec<&'static str> {
    let has =
        |section: &Section| section.keys.iter().any(|known| known.name == key && known.takes != "tables");
    let found = sections().into_iter().filter(has);
    let mut tables: Vec<_> = found.map(|section| heading(section.header)).collect();
    tables.dedup();
    tables
}

/// The heading of a table without the choice that it is for, as in `[channel.reception] range`.
fn heading(header: &'static str) -> &'static str {
    header.split_once(' ').map_or(header, |(heading, _)| heading)
}

/// Where a key belongs that is not in the table `at`. A flow has the table of its own protocol only.
fn elsewhere(at: &At<'_>, tables: &[&'static str]) -> String {
    const OF_FLOWS: [&str; 3] = ["[flow.sctp]", "[flow.tcp]", "[flow.mptcp]"];
    let own = at.protocol_of_flow().map(|protocol| format!("[flow.{protocol}]"));
    if let Some(own) = own.as_deref() {
        if tables.contains(&own) {
            return format!("it belongs in {own}");
        }
        if tables.iter().all(|table| OF_FLOWS.contains(table)) {
            let verb = if tables.len() == 1 { "has" } else { "have" };
            return format!("only {} {verb} this key", tables.join(" and "));
        }
    }
    let fits = |table: &&str| own.is_none() || !OF_FLOWS.contains(table);
    let place = |table: &str| match table {
        "" => "at the top of the file".to_owned(),
        table => format!("in {table}"),
    };
    let places: Vec<_> = tables.iter().copied().filter(fits).map(place).collect();
    format!("it belongs {}", places.join(" or "))
}

#[cfg(test)]
mod tests {
    use anabranch_proto::Policies;

    use crate::scenario::Document;

    const LINK: &str = "[[link]]\nname = 'l'\nbetween = ['s', 'r']\nrate = '1 Mbit/s'\ndelay = '1 ms'\n";
    const FLOW: &str = "[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '1 MB'\n";

    fn hint(text: &str) -> String {
        let document = Document::parse("test.toml", text).unwrap();
        let error = document.scenario("test", &Policies::default()).unwrap_err();
        error.likely_fix().unwrap_or_default().to_owned()
    }

    /// The hint without the keys of the table.
    fn place(text: &str) -> String {
        hint(text).split("; the keys here are ").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_key_of_another_table_is_sent_to_a_table_that_the_flow_can_have() {
        let flow = |rest: &str| place(&format!("{LINK}{FLOW}{rest}"));
        let only = "only [flow.tcp] has this key";
        assert_eq!(flow("rto_min = '1 s'"), "it belongs in [flow.sctp]");
        assert_eq!(flow("protocol = 'tcp'\nrto_min = '1 s'"), "it belongs in [flow.tcp]");
        assert_eq!(flow("protocol = 'mptcp'\nrto_min = '1 s'"), "it belongs in [flow.mptcp]");
        assert_eq!(flow("protocol = 'mptcp'\nrto_tick = '1 s'"), only);
        assert_eq!(flow("protocol = 'mptcp'\n[flow.mptcp]\nrto_tick = '1 s'"), only);
        let both = "only [flow.sctp] and [flow.mptcp] have this key";
        assert_eq!(flow("protocol = 'tcp'\n[flow.tcp]\nprimary = 'l'"), both);
        assert_eq!(flow("[flow.sctp]\nread = '1 Mbit/s'"), "it belongs in [[flow]]");
    }

    #[test]
    fn a_key_with_another_name_in_this_table_is_named() {
        let flow = |rest: &str| hint(&format!("{LINK}{FLOW}{rest}"));
        let buffer = "here it is called `receive_buffer`";
        assert_eq!(flow("[flow.sctp]\nreceive_window = '1 MB'"), buffer);
        assert_eq!(flow("protocol = 'mptcp'\n[flow.mptcp]\nreceive_window = '1 MB'"), buffer);
        let window = "here it is called `receive_window`";
        assert_eq!(flow("protocol = 'tcp'\n[flow.tcp]\nreceive_buffer = '1 MB'"), window);
    }

    #[test]
    fn a_key_of_several_tables_is_sent_to_all() {
        let link = |rest: &str| place(&format!("{LINK}{rest}\n{FLOW}"));
        assert_eq!(link("start = '1 s'"), "it belongs in [[flow]] or in [[traffic]]");
        assert_eq!(link("decode = '3 m'"), "it belongs in [channel.reception]");
        assert_eq!(place(&format!("message_size = '1 kB'\n{LINK}{FLOW}")), "it belongs in [[flow]]");
        assert_eq!(link("seed = 3"), "it belongs at the top of the file");
        let route = hint(&format!("{LINK}{FLOW}[[route]]\nnode = 's'"));
        assert!(route.starts_with("the keys here are "), "{route}");
        let traffic = hint(&format!("{LINK}{FLOW}[[traffic]]\nname = 't'\nrate = '1 Mbit/s'"));
        assert!(traffic.starts_with("it belongs in [[link]]") && traffic.contains("load, "), "{traffic}");
    }
}
