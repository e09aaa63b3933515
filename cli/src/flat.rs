//! Results as CSV: one row per run and flow. Columns have the names of the JSON entries, joined with dots.

use std::io;
use std::path::Path;

use anabranch_sim::results::RunResult;
use serde_json::{Map, Value};

use crate::place::write_whole;

/// Writes `results` to `file`: the keys of `--vary`, the seed, and every entry of a flow that is a number, a text or
/// a boolean. Items of lists (paths, links) are addressed by their names: `paths.wifi.cwnd`. The file has its name only
/// when it is complete.
pub(crate) fn write(results: &[RunResult], file: &Path) -> io::Result<()> {
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    for result in results {
        for flow in &result.flows {
            let mut row: Vec<(String, String)> = Vec::new();
            // With several seeds, a varied one is only the first of them; the column has that of the run.
            let varied = result.varied.iter().filter(|(key, _)| *key != "seed");
            row.extend(varied.map(|(key, value)| (key.clone(), text(value))));
            row.push(("seed".to_owned(), result.seed.to_string()));
            flatten("", &serde_json::to_value(flow)?, &mut row);
            rows.push(row);
        }
    }
    let columns = columns(&rows);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&columns)?;
    for row in &rows {
        let cell = |column: &&str| row.iter().find(|(name, _)| name == column).map_or("", |(_, value)| value);
        writer.write_record(columns.iter().map(cell))?;
    }
    write_whole(file, writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

/// Flows of different transports have different entries. All are columns, in the order of their first appearance. An
/// entry that is an object in some rows and null in the others has no column of its own, only those of its parts.
fn columns(rows: &[Vec<(String, String)>]) -> Vec<&str> {
    let mut columns: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !columns.contains(&name.as_str()) {
            columns.push(name);
        }
    }
    let is_null =
        |column: &str| rows.iter().flatten().all(|(name, value)| name != column || value.is_empty());
    let within =
        |column: &str, other: &str| other.strip_prefix(column).is_some_and(|rest| rest.starts_with('.'));
    let is_object = |column: &str| columns.iter().any(|other| within(column, other)) && is_null(column);
    columns.iter().copied().filter(|column| !is_object(column)).collect()
}

fn flatten(prefix: &str, value: &Value, row: &mut Vec<(String, String)>) {
    let below = |name: &str| if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") };
    match value {
        Value::Object(entries) => entries.iter().for_each(|(name, value)| flatten(&below(name), value, row)),
        Value::Array(items) => {
            for item in items {
                let (Some(name), Value::Object(entries)) = (name(item), item) else { continue };
                let rest = entries.iter().filter(|(key, _)| !["name", "direction"].contains(&key.as_str()));
                let rest: Map<_, _> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
                flatten(&below(&name), &Value::Object(rest), row);
            }
        }
        plain => row.push((prefix.to_owned(), text(plain))),
    }
}

/// The name of a list item in a column. A direction of a link is written "link a>b".
fn name(item: &Value) -> Option<String> {
    let name = item["name"].as_str()?;
    Some(
        item["direction"].as_str().map_or_else(|| name.to_owned(), |direction| format!("{name} {direction}")),
    )
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_entries_are_addressed_by_name() {
        let mut row = Vec::new();
        let flow = json!({ "name": "f", "paths": [{ "name": "wifi", "cwnd": 3, "srtt": null }], "blocked": { "cwnd": 0.5 } });
        flatten("", &flow, &mut row);
        let expected =
            [("blocked.cwnd", "0.5"), ("name", "f"), ("paths.wifi.cwnd", "3"), ("paths.wifi.srtt", "")];
        assert_eq!(row, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn null_instead_of_an_object_is_no_column() {
        let rows = [
            json!({ "name": "tcp", "beats": null, "srtt": null }),
            json!({ "name": "sctp", "beats": { "sent": 3, "answered": null }, "srtt": null }),
        ]
        .map(|flow| {
            let mut row = Vec::new();
            flatten("", &flow, &mut row);
            row
        });
        assert_eq!(columns(&rows), ["name", "srtt", "beats.answered", "beats.sent"]);
    }
}
