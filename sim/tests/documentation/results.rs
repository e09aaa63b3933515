//! `docs/results.md` lists the entries of `--json` and the files of `--series`. Both lists are made from the sources:
//! the documentation of `results.rs`, and the table of series. `ANABRANCH_BLESS=1` writes them anew.

use std::collections::BTreeSet;
use std::path::Path;

use anabranch_proto::Policies;
use anabranch_sim::columns::SERIES;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};
use serde_json::Value;

/// A struct of `results.rs`.
struct Item {
    name: String,
    doc: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    kind: String,
    doc: String,
    /// Left out of the JSON while it has nothing to say.
    optional: bool,
}

/// The structs of `results.rs`, in their order.
fn items() -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (mut doc, mut optional) = (String::new(), false);
    for line in include_str!("../../src/results.rs").lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc = format!("{doc} {text}").trim().to_owned();
        } else if line.starts_with("#[serde(skip_serializing_if") {
            optional = true;
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            let (name, doc) = (name.to_owned(), std::mem::take(&mut doc));
            items.push(Item { name, doc, fields: Vec::new() });
        } else if let Some((name, kind)) = line.strip_prefix("pub ").and_then(|rest| rest.split_once(": ")) {
            let (name, kind) = (name.to_owned(), kind.trim_end_matches(',').to_owned());
            let field =
                Field { name, kind, doc: std::mem::take(&mut doc), optional: std::mem::take(&mut optional) };
            items.last_mut().expect("a field stands in a struct").fields.push(field);
        }
    }
    items
}

/// What stands between the brackets of `outer<inner>`.
fn within<'k>(kind: &'k str, outer: &str) -> Option<&'k str> {
    kind.strip_prefix(outer)?.strip_prefix('<')?.strip_suffix('>')
}

/// A type as JSON has it, with the struct in it if there is one.
fn shape<'k>(kind: &'k str, items: &[Item]) -> (String, Option<&'k str>) {
    if let Some(inner) = within(kind, "Option") {
        let (shape, item) = shape(inner, items);
        return (format!("{shape} or null"), item);
    }
    if let Some(inner) = within(kind, "Vec") {
        let (shape, item) = shape(inner, items);
        return (format!("list of {shape}s"), item);
    }
    let plain = match kind {
        "bool" => "boolean",
        "u64" => "integer",
        "f64" => "number",
        "String" | "&'static str" | "Protocol" => "string",
        "[f64; 2]" => "two numbers",
        "BTreeMap<String, u64>" => "object of integers",
        "BTreeMap<String, serde_json::Value>" => "object",
        _ => {
            assert!(items.iter().any(|item| item.name == kind), "{kind} has no word in JSON");
            return ("object".to_owned(), Some(kind));
        }
    };
    (plain.to_owned(), None)
}

/// One table for each kind of object, from the whole run down; `at` is where it stands.
fn entries(items: &[Item], name: &str, at: &str, done: &mut BTreeSet<String>, text: &mut String) {
    let item = items.iter().find(|item| item.name == name).expect("a struct of results.rs");
    done.insert(name.to_owned());
    let heading = if at.is_empty() { "a run".to_owned() } else { format!("`{at}`") };
    *text +=
        &format!("\n### {heading}\n\n{}\n\n| entry | type | meaning |\n|---|---|---|\n", plain(&item.doc));
    let mut below = Vec::new();
    for field in &item.fields {
        let (shape, inner) = shape(&field.kind, items);
        let shape = if field.optional {
            shape.trim_end_matches(" or null").to_owned() + ", or absent"
        } else {
            shape
        };
        let doc = plain(&field.doc);
        let doc = if field.optional { doc.replace("null if", "absent if") } else { doc };
        *text += &format!("| `{}` | {shape} | {doc} |\n", field.name);
        let many = if field.kind.contains("Vec<") { "[]" } else { "" };
        let path =
            [at, &field.name].iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(".");
        below.extend(inner.map(|inner| (inner.to_owned(), path + many)));
    }
    for (inner, path) in below {
        if !done.contains(&inner) {
            entries(items, &inner, &path, done, text);
        }
    }
}

/// Documentation of the source as a page has it: JSON has null where Rust has `None`.
fn plain(doc: &str) -> String {
    let doc = doc.replace("`None`", "null").replace("[`RunResult::fairness`]", "`fairness`");
    doc.replace('|', "\\|")
}

fn series() -> String {
    let mut text = String::new();
    for kind in SERIES {
        text += &format!("\n`NAME.{}.csv`: {}\n\n| column | meaning |\n|---|---|\n", kind.name, kind.doc);
        text.extend(kind.columns.iter().map(|(name, doc)| format!("| `{name}` | {doc} |\n")));
    }
    text
}

/// The page with this text between the mark `name` and the next end.
fn filled(page: &str, name: &str, text: &str) -> String {
    let mark = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&mark).expect("docs/results.md has the mark");
    let (_, after) = rest.split_once("<!-- end -->").expect("the part ends");
    format!("{before}{mark}{text}\n<!-- end -->{after}")
}

fn page() -> (std::path::PathBuf, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results.md");
    let text = std::fs::read_to_string(&path).expect("docs/results.md can be read");
    (path, text)
}

#[test]
fn the_page_of_results_lists_what_the_sources_have() {
    let (path, page) = page();
    let mut json = String::new();
    entries(&items(), "RunResult", "", &mut BTreeSet::new(), &mut json);
    let fresh = filled(&filled(&page, "json", &json), "series", &series());
    if std::env::var_os("ANABRANCH_BLESS").is_some() {
        std::fs::write(path, fresh).expect("docs/results.md can be written");
        return;
    }
    assert!(page == fresh, "docs/results.md is not what the sources have: ANABRANCH_BLESS=1 writes it anew");
}

/// Every entry that runs print stands in the page: nothing is renamed on the way to JSON.
#[test]
fn the_page_of_results_has_every_entry_of_a_run() {
    let (_, page) = page();
    for name in ["outage", "tcp-beside-sctp", "multihop", "cross-traffic", "constant-rate"] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../scenarios/{name}.toml"));
        let text = std::fs::read_to_string(&file).expect("the scenario can be read");
        let mut document = Document::parse(&file.display().to_string(), &text).expect("the scenario is TOML");
        for edit in ["stop=3 s", "measure=['1 s', '3 s']"] {
            document.set("--set", edit).expect("a run can be cut");
        }
        let scenario = document.scenario(name, &Policies::default()).expect("the scenario is right");
        let result = run(&scenario, RunOptions::default()).expect("it runs");
        present(&serde_json::to_value(result).expect("it is JSON"), &page);
    }
}

fn present(value: &Value, page: &str) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| present(item, page)),
        Value::Object(entries) => {
            for (name, value) in entries {
                assert!(page.contains(&format!("| `{name}` |")), "{name}");
                // The keys below are names of paths and keys of scenarios.
                if !["fast", "timeout", "varied"].contains(&name.as_str()) {
                    present(value, page);
                }
            }
        }
        _ => {}
    }
}
