//! Entries of a result, addressed by their names joined with dots: `flows.download.completion`.

use serde_json::Value;

/// The entry of a result at the end of `path`. Items of lists are addressed by their `name`, link directions by "link
/// a>b", radios by "node channel". The error is the first step that does not exist.
pub(crate) fn entry<'v>(result: &'v Value, path: &str) -> Result<&'v Value, String> {
    path.split('.').try_fold(result, |value, step| child(value, step).ok_or_else(|| step.to_owned()))
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
