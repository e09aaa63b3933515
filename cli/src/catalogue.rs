//! `anabranch rules`, `policies` and `keys`: lists of what can be written in a scenario.

use anabranch_proto::{Config, Mechanisms, Policies, Rules};
use anabranch_sim::scenario::keys::{self, Default};
use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde_json::{Map, Value, json};

use crate::output::{print, print_json};
use crate::screen;

/// The output format of a list.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Format {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch rules
  anabranch policies --json | jq -r '.routes[]'
  anabranch keys --json

Exit status: 0 done, 1 the list could not be written.";

/// Lists every rule with its choices and the choice of each era.
pub(crate) fn rules(format: &Format) -> u8 {
    if format.json {
        let mechanisms = Mechanisms::DOCS.iter().map(mechanism_json);
        return print_json(&Rules::DOCS.iter().map(rule_json).chain(mechanisms).collect::<Vec<_>>());
    }
    let rules: Vec<_> = Rules::DOCS.iter().map(rule_text).collect();
    let mechanisms: Vec<_> = Mechanisms::DOCS.iter().map(mechanism_text).collect();
    print(&format!(
        "{}\nEach is a key of [flow.sctp]. On the right are the eras that select the choice.\n\n\
         Mechanisms, in which the eras do not differ:\n\n{}\n\
         Each is a key of [flow.sctp] too. On the right are the eras in which `cmt` selects the choice. The first choice is the default.",
        rules.join("\n"),
        mechanisms.join("\n")
    ))
}

/// A mechanism and its choices, each with the eras in which `cmt` selects it.
fn mechanism_text((key, doc): &(&str, &str)) -> String {
    let choices =
        Mechanisms::CHOICES.iter().find(|(name, _)| name == key).map_or(&[][..], |(_, names)| names);
    let mut text = format!("{key}: {}\n", doc.trim());
    for choice in choices {
        let eras: Vec<_> =
            with_cmt(key).into_iter().filter(|(_, v)| v == choice).map(|(era, _)| era).collect();
        text += &choice_text(choice, &eras, meaning(Mechanisms::CHOICES, Mechanisms::MEANINGS, key, choice));
    }
    text
}

/// A choice as lines of text: the eras that select it, and its meaning if it is not a number.
fn choice_text(choice: &str, eras: &[&str], meaning: Option<&str>) -> String {
    let line = format!("    {choice:<22} {}", eras.join(", "));
    let meaning = meaning.map(|meaning| format!("        {}\n", meaning.trim())).unwrap_or_default();
    format!("{}\n{meaning}", line.trim_end())
}

/// The texts of each row of a table, by key.
type Rows = [(&'static str, &'static [&'static str])];

/// The meaning of a choice of the row `key`; `None` for a number.
fn meaning(choices: &Rows, meanings: &Rows, key: &str, choice: &str) -> Option<&'static str> {
    let row = choices.iter().position(|(name, _)| *name == key)?;
    let at = choices[row].1.iter().position(|name| *name == choice)?;
    Some(meanings[row].1[at])
}

/// The meaning of each choice of the row `key`, as JSON.
fn meanings_json(choices: &Rows, meanings: &Rows, key: &str) -> Map<String, Value> {
    let names = choices.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, names)| names);
    let pair = |name: &&str| Some(((*name).to_owned(), json!(meaning(choices, meanings, key, name)?.trim())));
    names.iter().filter_map(pair).collect()
}

/// The choice of each era for a rule or a mechanism when `cmt` is on.
fn with_cmt(key: &str) -> Vec<(&'static str, String)> {
    let of_era = |(era, _): &(&'static str, Rules)| {
        let config = Config::era(era)?.with_cmt();
        Some((*era, config.mechanisms.get(key).or_else(|| config.rules.get(key))?))
    };
    Rules::ERAS.iter().filter_map(of_era).collect()
}

/// A rule and its choices, each with the eras that select it.
fn rule_text((key, doc): &(&str, &str)) -> String {
    let choices = Rules::CHOICES.iter().find(|(name, _)| name == key).map(|(_, names)| names.to_vec());
    let in_era = |(era, rules): &(&'static str, Rules)| (*era, rules.get(key).unwrap_or_default());
    let by_era: Vec<_> = Rules::ERAS.iter().map(in_era).collect();
    let mut values: Vec<String> = choices.unwrap_or_default().iter().map(|name| (*name).to_owned()).collect();
    // A number has no list of choices. The values that the eras select are shown instead.
    for (_, value) in &by_era {
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    let mut text = format!("{key}: {}\n", doc.trim());
    let changed: Vec<_> = with_cmt(key).into_iter().filter(|pair| !by_era.contains(pair)).collect();
    for (era, value) in &changed {
        if !values.contains(value) {
            values.push(value.clone());
        }
        text += &format!("    with `cmt`, {era} has {value}\n");
    }
    for value in values {
        let eras: Vec<_> = by_era.iter().filter(|(_, v)| *v == value).map(|(era, _)| *era).collect();
        text += &choice_text(&value, &eras, meaning(Rules::CHOICES, Rules::MEANINGS, key, &value));
    }
    text
}

fn rule_json((key, doc): &(&str, &str)) -> Value {
    let choices = Rules::CHOICES.iter().find(|(name, _)| name == key).map(|(_, names)| *names);
    let era = |(era, rules): &(&str, Rules)| {
        let text = rules.get(key).unwrap_or_default();
        let number = text.parse::<u32>().ok().filter(|_| choices.is_none());
        ((*era).to_owned(), number.map_or(json!(text), |n| json!(n)))
    };
    let eras: Map<String, Value> = Rules::ERAS.iter().map(era).collect();
    let meanings = meanings_json(Rules::CHOICES, Rules::MEANINGS, key);
    json!({ "key": key, "doc": doc.trim(), "choices": choices, "meanings": meanings, "eras": eras, "cmt": cmt_json(key) })
}

fn cmt_json(key: &str) -> Map<String, Value> {
    with_cmt(key).into_iter().map(|(era, value)| (era.to_owned(), json!(value))).collect()
}

fn mechanism_json((key, doc): &(&str, &str)) -> Value {
    let choices = Mechanisms::CHOICES.iter().find(|(name, _)| name == key).map(|(_, names)| *names);
    let default = Mechanisms::default().get(key);
    let meanings = meanings_json(Mechanisms::CHOICES, Mechanisms::MEANINGS, key);
    json!({ "key": key, "doc": doc.trim(), "choices": choices, "meanings": meanings, "default": default, "cmt": cmt_json(key) })
}

/// Lists the policies, grouped by what they decide.
pub(crate) fn policies(format: &Format) -> u8 {
    let policies = Policies::default();
    let (routes, windows): (Vec<_>, Vec<_>) =
        (policies.route_summaries().collect(), policies.window_summaries().collect());
    let names = |rows: &[(&str, &str)]| rows.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
    if format.json {
        let summaries: Map<_, _> =
            routes.iter().chain(&windows).map(|(name, line)| ((*name).to_owned(), json!(line))).collect();
        return print_json(
            &json!({ "routes": names(&routes), "windows": names(&windows), "summaries": summaries }),
        );
    }
    let lines = |rows: &[(&str, &str)]| -> String {
        rows.iter().map(|(name, line)| format!("    {name:<18} {line}\n")).collect()
    };
    print(&format!(
        "routes (keys `new`, `fast`, `timeout`, `retransmit`): the path of new data or of a retransmission\n{}\n\
         windows (key `window`): how many bytes may be in flight on a path\n{}",
        lines(&routes),
        lines(&windows).trim_end()
    ))
}

/// Lists every key of a scenario file, section by section.
pub(crate) fn keys(format: &Format) -> u8 {
    let sections = keys::sections();
    if format.json {
        return print_json(&sections.iter().map(section_json).collect::<Vec<_>>());
    }
    let mut all = String::new();
    for section in &sections {
        let mut table = plain_table();
        table.set_header(["key", "takes", "default", "meaning"]);
        for key in &section.keys {
            table.add_row([key.name, &key.takes, default_text(key.default), &key.doc]);
        }
        let header = if section.header.is_empty() { "top of the file" } else { section.header };
        all += &format!("{header}\n{}\n\n", text(table));
    }
    print(all.trim_end())
}

fn section_json(section: &keys::Section) -> Value {
    let key = |key: &keys::KeyDoc| {
        json!({
            "key": key.name,
            "takes": key.takes,
            "required": key.default == Default::Required,
            "default": default_text(key.default),
            "doc": key.doc,
        })
    };
    json!({ "section": section.header, "keys": section.keys.iter().map(key).collect::<Vec<_>>() })
}

fn default_text(default: Default) -> &'static str {
    match default {
        Default::Required => "required",
        Default::Value(text) | Default::Text(text) => text,
    }
}

/// A table without a frame, as wide as the terminal; in a pipe, 120 columns wide.
fn plain_table() -> Table {
    let mut table = Table::new();
    table
        .load_preset(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(screen::width().unwrap_or(120));
    table
}

/// The table as text. Long cells are wrapped, but keys are not.
fn text(mut table: Table) -> String {
    if let Some(keys) = table.column_mut(0) {
        keys.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.trim_fmt()
}
