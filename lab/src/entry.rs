//! Entries of a result, addressed by their names joined with dots: `flows.download.completion`.

use std::sync::LazyLock;

use anabranch_sim::results::{Latency, OutageResult};
use serde_json::{Value, json};

/// The entry of a result at the end of `path`. Items of lists are addressed by their `name`, link directions by "link
/// a>b", radios by "node channel". The error is the first step that does not exist.
pub(crate) fn entry<'v>(result: &'v Value, path: &str) -> Result<&'v Value, String> {
    let step = |value: &'v Value, step: &str| child(value, step).ok_or_else(|| step.to_owned());
    let Some((above, last)) = path.rsplit_once('.') else { return step(result, path) };
    let table = above.split('.').try_fold(result, step)?;
    step(table, last).or_else(|missing| if is_left_out(above, last) { Ok(&ZERO) } else { Err(missing) })
}

/// Whether a result leaves out this count if it is zero.
fn is_left_out(above: &str, last: &str) -> bool {
    match last {
        "tail_probes" => above.contains(".paths."),
        "size" => above.ends_with(".drops"),
        _ => false,
    }
}

static ZERO: LazyLock<Value> = LazyLock::new(|| json!(0));

/// The shape of a result, from the result of a run that has not begun: with the entries that a run adds only if there
/// is something to say, such as outages.
pub(crate) fn shape(mut begun: Value) -> Value {
    let mut outages = Vec::new();
    for link in each(&mut begun["links"]) {
        let name = link["name"].as_str().unwrap_or_default().to_owned();
        outages.push(json!(OutageResult { name, ..OutageResult::default() }));
        add(&mut link["drops"], "size", json!(0));
    }
    for flow in each(&mut begun["flows"]) {
        add(flow, "missing", json!(0));
        add(flow, "latency", json!(Latency::default()));
        add(flow, "outages", json!(outages));
        each(&mut flow["paths"]).for_each(|path| add(path, "tail_probes", json!(0)));
    }
    begun
}

fn each(list: &mut Value) -> impl Iterator<Item = &mut Value> {
    list.as_array_mut().into_iter().flatten()
}

fn add(table: &mut Value, name: &str, value: Value) {
    if let Some(table) = table.as_object_mut() {
        table.entry(name).or_insert(value);
    }
}

/// The lists of a result, whose items are addressed by name.
const LISTS: [&str; 6] = ["flows", "links", "outages", "paths", "stations", "traffic"];

/// The unit of the entry at the end of `path`, as docs/results.md says; nothing of what is counted, a share or a text.
pub(crate) fn unit(path: &str) -> &'static str {
    let (mut within, mut last) = ("", "");
    let mut steps = path.split('.');
    while let Some(step) = steps.next() {
        (within, last) = (last, step);
        if LISTS.contains(&step) {
            steps.next();
        }
    }
    match (within, last) {
        ("fast" | "timeout", _) | ("latency", "messages") => "",
        ("airtime" | "blocked" | "latency" | "outages", _) => "s",
        (_, "ended" | "first_data" | "completion" | "srtt" | "rto" | "mean_rto" | "blocks") => "s",
        (_, "goodput" | "throughput" | "load") => "bit/s",
        (_, "delivered" | "missing" | "bytes" | "cwnd" | "mean_cwnd" | "ssthresh") => "B",
        (_, "utilisation" | "increase") => "%",
        _ => "",
    }
}

/// Checks `path` against the shape of a result. The error is the missing step and the existing names.
///
/// `shape` is the result of a run that has not begun. Lists and tables that are empty there (the paths of a flow, its
/// retransmissions by path) are filled by the run, so nothing counts as missing below them.
pub(crate) fn missing(shape: &Value, path: &str) -> Option<(String, Vec<String>)> {
    let mut value = shape;
    for step in path.split('.') {
        match child(value, step) {
            Some(found) => value = found,
            None if filled_later(value) => return None,
            None => return Some((step.to_owned(), names(value))),
        }
    }
    None
}

fn filled_later(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Null => true,
        _ => false,
    }
}

fn child<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.iter().find(|item| item_names(item).iter().any(|name| name == step)),
        _ => value.get(step),
    }
}

fn item_names(item: &Value) -> Vec<String> {
    let name = item["name"].as_str().unwrap_or_default();
    let direction = item["direction"].as_str().map(|direction| format!("{name} {direction}"));
    let radio = item["node"].as_str().zip(item["channel"].as_str());
    let radio = radio.map(|(node, channel)| format!("{node} {channel}"));
    direction.into_iter().chain(radio).chain([name.to_owned()]).collect()
}

/// The addresses of the entries of a list or table.
fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(|item| item_names(item).into_iter().next()).collect(),
        Value::Object(entries) => entries.keys().cloned().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_are_found_by_name_and_direction() {
        let result = json!({ "links": [{ "name": "l", "direction": "a>b", "packets": 3 },
                                       { "name": "l", "direction": "b>a", "packets": 4 }] });
        assert_eq!(entry(&result, "links.l b>a.packets"), Ok(&json!(4)));
        assert_eq!(entry(&result, "links.l.packets"), Ok(&json!(3)), "a name alone is the first");
        assert_eq!(entry(&result, "links.m.packets"), Err("m".to_owned()));
    }

    /// The guide says what each entry is. Its sections have a path such as `flows[].paths[]`, its rows the last step.
    #[test]
    fn units_are_those_of_the_guide() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/results.md");
        let guide = std::fs::read_to_string(guide).expect("docs/results.md can be read");
        let guide = guide.split_once("<!-- json -->").expect("the part about JSON").1;
        let (mut section, mut seen) = (String::new(), std::collections::BTreeSet::new());
        for line in guide.lines() {
            if let Some(heading) = line.strip_prefix("### ") {
                section = heading.replace('`', "").replace("[]", ".x");
            }
            let cells: Vec<&str> = line.split(" | ").collect();
            let [name, kind, meaning] = cells[..] else { continue };
            if !kind.starts_with("number") && !kind.starts_with("integer") {
                continue;
            }
            let path = format!("{section}.{}", name.trim_matches(['|', ' ', '`']));
            let said = |word: &str| meaning.to_lowercase().contains(word);
            let expected = match unit(&path) {
                "bit/s" => said("bit/s"),
                "s" => {
                    said("second") || ["blocked", "latency", "airtime"].iter().any(|part| path.contains(part))
                }
                "B" => said("bytes"),
                "%" => ["per cent", "utilisation", "increase"].iter().any(|word| said(word)),
                _ => !said("seconds") && !said("bytes of") && !said("bit/s"),
            };
            assert!(expected, "`{path}` has the unit `{}`: {meaning}", unit(&path));
            seen.insert(unit(&path));
        }
        assert_eq!(seen.len(), 5, "{seen:?}");
        // Items can have names of entries.
        assert_eq!((unit("flows.latency.packets"), unit("flows.f.retransmissions.fast.cwnd")), ("", ""));
    }

    #[test]
    fn counts_that_are_zero_are_left_out() {
        let result = json!({ "flows": [{ "name": "f", "paths": [{ "name": "p" }] }],
                             "links": [{ "name": "l", "direction": "a>b", "drops": { "loss": 1 } }] });
        assert_eq!(entry(&result, "flows.f.paths.p.tail_probes"), Ok(&json!(0)));
        assert_eq!(entry(&result, "links.l.drops.size"), Ok(&json!(0)));
        assert_eq!(entry(&result, "flows.f.size"), Err("size".to_owned()));
    }

    #[test]
    fn what_a_run_adds_is_not_missing() {
        let shape = shape(json!({ "flows": [{ "name": "f", "paths": [{ "name": "p" }] }],
                                  "links": [{ "name": "l", "direction": "a>b", "drops": { "loss": 0 } }] }));
        for path in ["missing", "latency.p99", "outages.l.new_data", "paths.p.tail_probes"] {
            assert_eq!(missing(&shape, &format!("flows.f.{path}")), None, "{path}");
        }
        assert_eq!(missing(&shape, "links.l.drops.size"), None);
        for path in ["latency.p98", "outages.m.new_data", "outages.l.newdata"] {
            assert!(missing(&shape, &format!("flows.f.{path}")).is_some(), "{path}");
        }
    }

    #[test]
    fn what_a_run_fills_is_not_missing() {
        let shape = json!({ "flows": [{ "name": "f", "completion": null, "paths": [], "packets": 0 }] });
        assert_eq!(missing(&shape, "flows.f.completion"), None);
        assert_eq!(missing(&shape, "flows.f.paths.wifi.cwnd"), None);
        let (step, names) = missing(&shape, "flows.f.packet").unwrap();
        assert_eq!((step.as_str(), names.contains(&"packets".to_owned())), ("packet", true));
        assert_eq!(missing(&shape, "flows.g.packets"), Some(("g".to_owned(), vec!["f".to_owned()])));
        assert!(missing(&shape, "flows.f.packets.more").is_some());
    }
}
