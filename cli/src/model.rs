//! `anabranch model`: evaluates a published formula with given numbers.

use anabranch_lab::models::{self, Term};
use comfy_table::{CellAlignment, Table, TableComponent, presets};
use serde_json::{Value, json};

use crate::output::{print, print_json, refuse_scenario};

/// The arguments of `anabranch model`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    model: Model,
}

#[derive(clap::Subcommand)]
enum Model {
    /// Model of receive buffer blocking: when do fast retransmissions on a slow alternate path fill the receive
    /// buffer?
    ReceiveBufferBlocking(ReceiveBufferBlocking),
}

/// The inputs, with the units of scenarios.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct ReceiveBufferBlocking {
    /// B1: the bandwidth of the primary path, such as "10 Mbit/s"
    #[arg(long, value_name = "RATE")]
    primary: String,
    /// B2: the bandwidth of the secondary path
    #[arg(long, value_name = "RATE")]
    secondary: String,
    /// A: the receive buffer, such as "1 MB"
    #[arg(long, value_name = "SIZE")]
    receive_buffer: String,
    /// R1: the round-trip time of the primary path with empty queues
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    primary_rtt: String,
    /// R2: the round-trip time of the secondary path with empty queues
    #[arg(long, value_name = "TIME", default_value = "600 ms")]
    secondary_rtt: String,
    /// Q1: the queue of the primary path, as packets of the largest size or as a size
    #[arg(long, value_name = "QUEUE", default_value = "50 packets")]
    queue: String,
    /// The size of the largest packet
    #[arg(long, value_name = "SIZE", default_value = "1500 B")]
    mtu: String,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Example:
  anabranch model receive-buffer-blocking --primary '10 Mbit/s' --secondary '36 kbit/s' --receive-buffer '1 MB'

Equations 1 to 8 of the paper in papers/receive-buffer-blocking; every inequality is taken at its limit.

Exit status: 0 done, 2 the input was wrong, 1 anything else.";

/// Evaluates the model and returns the exit status.
pub(crate) fn model(arguments: &Arguments) -> u8 {
    let Model::ReceiveBufferBlocking(given) = &arguments.model;
    let inputs = [
        ("primary", &given.primary),
        ("secondary", &given.secondary),
        ("receive_buffer", &given.receive_buffer),
        ("primary_rtt", &given.primary_rtt),
        ("secondary_rtt", &given.secondary_rtt),
        ("queue", &given.queue),
        ("mtu", &given.mtu),
    ];
    let edit =
        |(key, value): &(&str, &String)| (format!("--{}", key.replace('_', "-")), format!("{key}={value}"));
    let edits: Vec<_> = inputs.iter().map(edit).collect();
    match models::terms(models::NAMES[0], &edits) {
        Err(error) => refuse_scenario(&error),
        Ok(terms) if given.json => print_json(&object(&inputs, &terms)),
        Ok(terms) => print(&text(&terms)),
    }
}

fn object(inputs: &[(&str, &String)], terms: &[Term]) -> Value {
    let inputs = inputs.iter().map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
    json!({
        "model": models::NAMES[0],
        "inputs": inputs.collect::<serde_json::Map<_, _>>(),
        "results": models::object(terms),
        "terms": terms,
    })
}

fn text(terms: &[Term]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    for line in [TableComponent::HorizontalLines, TableComponent::MiddleIntersections] {
        table.remove_style(line);
    }
    table.set_header(["term", "value", "what it is"]);
    for term in terms {
        let value = term.value.map_or_else(|| "none".to_owned(), |value| number(value, term.unit));
        table.add_row([term.symbol, &value, term.meaning]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!("{}\n{}", table.trim_fmt(), conclusion(terms))
}

/// Whether the secondary path blocks, by equation (1) and by (8), which can differ: (8) takes V1 = B1.
fn conclusion(terms: &[Term]) -> String {
    let value = |name: &str| terms.iter().find(|term| term.name == name).and_then(|term| term.value);
    let (release, fill) = (value("release_time"), value("fill_time"));
    let primary = match value("most_primary") {
        Some(rate) => format!("a primary above {} blocks beside this secondary", number(rate, "bit/s")),
        None => "there is no limit for a primary without a round-trip time".to_owned(),
    };
    let secondary = match value("least_secondary") {
        Some(rate) => format!("a secondary below {} blocks beside this primary", number(rate, "bit/s")),
        None => "a secondary of any rate blocks beside this primary".to_owned(),
    };
    let verdict = match release.zip(fill) {
        Some((release, fill)) if release > fill => {
            "the buffer is full before it is released: the secondary path blocks"
        }
        _ => "the buffer is released before it is full: nothing blocks",
    };
    format!(
        "By equation 1 {verdict}.\nBy equation 8, which lets new data fill the buffer at the full rate of the primary (V1 = B1), {primary}, and {secondary}."
    )
}

fn number(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" if value >= 1e6 => format!("{:.3} Mbit/s", value / 1e6),
        "bit/s" => format!("{:.1} kbit/s", value / 1e3),
        "s" => format!("{value:.3} s"),
        _ => format!("{value:.0} {unit}"),
    }
}
