//! `anabranch trace`: summarises a recorded link.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_lab::statistics::quantile;
use anabranch_proto::written;
use anabranch_sim::scenario::{self, BadTrace, Trace, text_of};
use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use textplots::{Chart, Plot, Shape};

use crate::output::{print, print_json, refuse};
use crate::place::unread;
use crate::table::rate;

/// The arguments of `anabranch trace`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The trace: delivery opportunities in milliseconds (Mahimahi's format), or CSV with time, rate, delay, loss
    file: PathBuf,
    /// The length of the windows for average rates [default: 100 ms, or the length of a shorter trace]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = scenario::duration)]
    window: Option<Duration>,
    /// The shortest time without delivery that counts as an outage
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "300 ms", value_parser = scenario::duration)]
    outage: Duration,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch trace scenarios/traces/walk.up
  anabranch trace scenarios/traces/cell-edge.csv --window '1 s' --json

A scenario uses a trace as the rate of a link: rate = { trace = \"walk.up\" } (docs/scenario.md).

Exit status: 0 done, 2 the input was wrong, 1 anything else.";

const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// The length of the windows of a trace that is longer.
const WINDOW: Duration = Duration::from_millis(100);

/// The average rates that are kept at once.
const MOST_WINDOWS: u128 = 1_000_000;

/// The largest size of a trace in bytes, as in a scenario. Devices have no end.
const LARGEST: u64 = 256 << 20;

/// The smallest window of a trace that lasts so long, in whole microseconds or seconds.
fn smallest_window(period: Duration) -> String {
    match period.as_nanos().div_ceil(1000 * MOST_WINDOWS) {
        micros @ ..1_000_000 => format!("{micros} us"),
        micros => format!("{} s", micros.div_ceil(1_000_000)),
    }
}

/// Prints the summary and returns the exit status.
pub(crate) fn trace(arguments: &Arguments) -> u8 {
    let file = arguments.file.display();
    let mut bytes = Vec::new();
    let read = File::open(&arguments.file).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    if matches!(read, Ok(size) if size as u64 > LARGEST) {
        return refuse(format!("{file}: a trace has at most {LARGEST} bytes"));
    }
    let text = match read.and_then(|_| text_of(bytes)) {
        Ok(text) => text,
        Err(error) => return refuse(unread(&arguments.file, &error)),
    };
    let trace = match Trace::parse(&text) {
        Ok(trace) => trace,
        Err(BadTrace { line: Some(line), message }) => return refuse(format!("{file}:{line}: {message}")),
        Err(BadTrace { line: None, message }) => return refuse(format!("{file}: {message}")),
    };
    let window = arguments.window.unwrap_or_else(|| WINDOW.min(trace.period()));
    if window.is_zero() || window > trace.period() {
        return refuse(format!(
            "--window must be above 0 and at most {}, the length of the trace",
            written(trace.period())
        ));
    }
    if trace.period().as_nanos().div_ceil(window.as_nanos()) > MOST_WINDOWS {
        return refuse(format!(
            "--window {} gives more than 1,000,000 values; the smallest window of this trace is {}",
            written(window),
            smallest_window(trace.period())
        ));
    }
    let rates = trace.rates(window);
    let mut sorted = rates.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let quantiles = QUANTILES.map(|share| (share, quantile(&sorted, share).unwrap_or_default()));
    let outages = trace.outages(arguments.outage);
    if arguments.json {
        as_json(&trace, &rates, &quantiles, &outages)
    } else {
        as_text(&trace, &rates, &quantiles, &outages, [window, arguments.outage])
    }
}

fn as_json(trace: &Trace, rates: &[f64], quantiles: &[(f64, f64)], outages: &[[Duration; 2]]) -> u8 {
    let quantiles: serde_json::Map<_, _> =
        quantiles.iter().map(|(share, rate)| ((share * 100.0).to_string(), (*rate).into())).collect();
    print_json(&json!({
        "kind": kind(trace),
        "period": trace.period().as_secs_f64(),
        "mean_rate": trace.mean_rate(),
        "quantiles": quantiles,
        "outages": outages.iter().map(|outage| outage.map(|at| at.as_secs_f64())).collect::<Vec<_>>(),
        "rates": rates,
    }))
}

fn kind(trace: &Trace) -> &'static str {
    match trace {
        Trace::Opportunities(_) => "opportunities",
        Trace::Samples { .. } => "samples",
    }
}

fn as_text(
    trace: &Trace,
    rates: &[f64],
    quantiles: &[(f64, f64)],
    outages: &[[Duration; 2]],
    [window, outage]: [Duration; 2],
) -> u8 {
    let contents = match trace {
        Trace::Opportunities(times) => format!("{} delivery opportunities of 1500 bytes", times.len()),
        Trace::Samples { rows, .. } => format!("{} samples", rows.len()),
    };
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN).set_header(["rate over windows", "value"]);
    table.add_row(["mean".to_owned(), rate(trace.mean_rate() as f64)]);
    for (share, value) in quantiles {
        table.add_row([format!("{} % quantile", share * 100.0), rate(*value)]);
    }
    table.column_mut(1).into_iter().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let total: Duration = outages.iter().map(|[from, until]| *until - *from).sum();
    let longest = outages.iter().map(|[from, until]| *until - *from).max().unwrap_or_default();
    let window = window.as_secs_f64();
    let points: Vec<(f32, f32)> =
        rates.iter().enumerate().map(|(i, rate)| ((i as f64 * window) as f32, (rate / 1e6) as f32)).collect();
    let end = trace.period().as_secs_f64() as f32;
    let shape = Shape::Steps(&points);
    let mut chart = Chart::new(140, 40, 0.0, end);
    let chart = chart.lineplot(&shape);
    chart.axis();
    chart.figures();
    print(&format!(
        "{contents}, {:.3} s\n\n{table}\n\noutages of {} and more: {}, together {:.3} s, the longest {:.3} s\n\nrate in Mbit/s over time in seconds\n{chart}",
        trace.period().as_secs_f64(),
        written(outage),
        outages.len(),
        total.as_secs_f64(),
        longest.as_secs_f64(),
    ))
}
