//! `anabranch sweep`: runs every cell of a grid with many seeds, and computes statistics.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anabranch_lab::command::quoted;
use anabranch_lab::kind::Kind;
use anabranch_lab::report::{PictureError, sweep_files, sweep_page};
use anabranch_lab::statistics::{self, Summary};
use anabranch_lab::sweep::{self, CellSummary, Executed, Shard, Sweep, SweepError, Watch};
use anabranch_sim::scenario::{Document, read_text};
use comfy_table::Table;

use crate::kind;
use crate::output::{fail, note, print, print_json, refuse, refuse_scenario};
use crate::place::{Places, keep, write_whole};
use crate::progress::Count;
use crate::runtime::Stop;
use crate::simulate::write_all;
use crate::{DONE, table};

/// The arguments of `anabranch sweep`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The sweep: a TOML file (docs/sweeps.md)
    file: PathBuf,
    /// The directory for runs.csv, summary.csv and summary.json. If it holds an interrupted sweep, the sweep resumes
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Use N threads instead of one per core; the tables are the same
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Run only part i of n; `anabranch merge` joins the parts
    #[arg(long, value_name = "i/n")]
    shard: Option<Shard>,
    /// Write a page with curves, heat maps, distributions and paired differences to this file as HTML
    #[arg(long, value_name = "FILE", conflicts_with = "shard")]
    report: Option<PathBuf>,
    /// Write each chart of the page to this directory as SVG, PNG and PDF, its data as CSV, and a PGFPlots document
    /// that draws the CSV
    #[arg(long, value_name = "DIR", conflicts_with = "shard")]
    figures: Option<PathBuf>,
    /// Overwrite the page and the charts if they exist
    #[arg(long)]
    force: bool,
    /// Print summary.json instead of a table; for a shard, print the number of its runs
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch sweep scenarios/sweeps/loss.toml --out results/
  anabranch sweep scenarios/sweeps/loss.toml --out results/ --threads 4 --json
  anabranch sweep scenarios/sweeps/loss.toml --out results/ --report loss.html
  anabranch sweep scenarios/sweeps/loss.toml --out results/ --figures charts/
  anabranch sweep scenarios/sweeps/loss.toml --out part-1/ --shard 1/8    # one of eight processes; see `anabranch merge`

A sweep says which keys of a scenario are varied, with how many seeds, and what is measured:
  scenario = \"../loss.toml\"
  seeds = 100
  [vary]
  \"link.wifi.loss\" = [\"0.1 %\", \"1 %\"]
  [measure]
  goodput = \"flows.download.goodput\"

Ctrl-C, SIGTERM or SIGHUP keeps the finished runs in DIR; the same command goes on from there.

Exit status: 0 done, 2 the input was wrong (also a DIR that holds something else or is damaged), 130 interrupted, 143
ended by SIGTERM, 129 by SIGHUP, 1 anything else.";

/// Runs the sweep and returns the exit status.
pub(crate) fn sweep(arguments: &Arguments) -> u8 {
    let sweep = match Sweep::open(&arguments.file) {
        Ok(sweep) => sweep.shard(arguments.shard),
        Err(error) => return refuse_sweep(&arguments.file, &error),
    };
    if let Err(status) = check_outputs(arguments, &sweep) {
        return status;
    }
    // If there is no handler, a signal ends the process at once; finished runs are in the journal in any case.
    let stop = Stop::on_interrupt();
    let count = Mutex::new(Count::new());
    let progress = |done, all| count.lock().unwrap_or_else(PoisonError::into_inner).at(done, all);
    let watch = Watch { stop: &stop.asked, progress: &progress };
    let executed = sweep::execute(&sweep, &arguments.out, arguments.threads.map(usize::from), &watch);
    count.lock().unwrap_or_else(PoisonError::into_inner).finish();
    let executed = match executed {
        Ok(executed) => executed,
        Err(error) => return tell(&error),
    };
    if !executed.is_complete() {
        note(format!(
            "interrupted: {} of {} runs are kept in {}; the same command goes on from there",
            executed.done,
            executed.all,
            arguments.out.display()
        ));
        return stop.status();
    }
    if arguments.shard.is_some() {
        return shard_done(arguments, &executed);
    }
    let shown = show(&sweep, &executed, &arguments.out, arguments.json);
    match write_files(arguments, &sweep, &executed) {
        Ok(()) => shown,
        Err(status) => status,
    }
}

/// Says what is wrong with the file, or what it is instead of a sweep.
fn refuse_sweep(file: &Path, error: &SweepError) -> u8 {
    let text = read_text(file).unwrap_or_default();
    let kind = Document::parse("", &text).ok().and_then(|document| Kind::of(&document));
    match kind.filter(|kind| *kind != Kind::Sweep && matches!(error, SweepError::Text(_))) {
        Some(other) => refuse(format!(
            "{}, and docs/sweeps.md says what a sweep needs",
            kind::told(other, &file.display().to_string())
        )),
        None => tell(error),
    }
}

fn check_outputs(arguments: &Arguments, sweep: &Sweep) -> Result<(), u8> {
    Places::default()
        .reads(&arguments.file)
        .reads(Path::new(sweep.scenario_file()))
        .makes(&arguments.out)
        .directory("--figures", arguments.figures.as_ref())
        .file("--report", arguments.report.as_ref())
        .check()?;
    keep(arguments.report.iter().chain(&arguments.figures), arguments.force)
}

/// Writes the charts and the page; an error is told, and its exit status returned.
fn write_files(arguments: &Arguments, sweep: &Sweep, executed: &Executed) -> Result<(), u8> {
    if let Some(directory) = &arguments.figures {
        write_charts(directory, sweep_files(sweep, executed))?;
    }
    let Some(file) = &arguments.report else { return Ok(()) };
    let written = write_whole(file, sweep_page(sweep, executed, &command(arguments)));
    written.map_err(|error| fail(format!("cannot write {}: {error}", file.display())))
}

/// Writes charts that were drawn, or tells why not.
pub(crate) fn write_charts(
    directory: &Path,
    drawn: Result<Vec<(String, Vec<u8>)>, PictureError>,
) -> Result<(), u8> {
    let written = write_all(directory, drawn.map_err(fail)?);
    written.map_err(|error| fail(format!("cannot write the figures to {}: {error}", directory.display())))
}

/// The command that repeats the sweep.
fn command(arguments: &Arguments) -> String {
    let quoted = |path: &Path| quoted(&path.display().to_string());
    format!("anabranch sweep {} --out {}", quoted(&arguments.file), quoted(&arguments.out))
}

fn shard_done(arguments: &Arguments, executed: &Executed) -> u8 {
    if arguments.json {
        return print_json(&serde_json::json!({ "runs": executed.done }));
    }
    let out = arguments.out.display();
    let runs = if executed.done == 1 { "1 run is".to_owned() } else { format!("{} runs are", executed.done) };
    note(format!("{runs} in {out}; `anabranch merge OUT DIR…` joins the shards"));
    DONE
}

/// Prints the summaries of a complete sweep.
pub(crate) fn show(sweep: &Sweep, executed: &Executed, out: &Path, json: bool) -> u8 {
    let summaries = sweep::summaries(sweep, executed);
    #[cfg(feature = "parquet")]
    if let Err(error) = crate::parquet::write(sweep, executed, out) {
        return fail(format!("cannot write runs.parquet in {}: {error}", out.display()));
    }
    let printed = if json { print_json(&summaries) } else { print(&table(sweep, executed, &summaries)) };
    if printed == DONE && !json {
        note(format!("runs.csv, summary.csv and summary.json are in {}", out.display()));
    }
    match executed.failed() {
        0 => printed,
        failed => fail(format!("{failed} runs failed; failed.json in {} has them", out.display())),
    }
}

pub(crate) fn tell(error: &SweepError) -> u8 {
    match error {
        SweepError::Text(error) => refuse_scenario(error),
        SweepError::Input { .. } | SweepError::Directory { .. } => refuse(error),
        SweepError::Output { .. } | SweepError::Run(_) => fail(error),
    }
}

/// One row per cell: the mean of each measure and half of its 95 % interval, and the differences if cells are
/// compared.
fn table(sweep: &Sweep, executed: &Executed, summaries: &[CellSummary]) -> String {
    let mut table = Table::new();
    table::style(&mut table);
    let keys = sweep.vary.iter().map(|axis| axis.key.clone());
    let measures = sweep.measures.iter().map(|measure| measure.heading());
    let compared = summaries.iter().any(|summary| summary.differences.is_some());
    let differences = sweep.measures.iter().filter(|_| compared);
    let differences = differences.map(|measure| format!("difference of\n{}", measure.heading()));
    table.set_header(keys.chain(["runs".to_owned()]).chain(measures).chain(differences));
    for (cell, summary) in summaries.iter().enumerate() {
        let varied = sweep.vary.iter().map(|axis| sweep::written(&summary.varied[&axis.key]));
        let runs = executed.counted(cell);
        let means = summary.measures.0.iter().map(|(_, summary)| mean(summary, runs));
        let differences = summary.differences.iter().flat_map(|all| &all.0);
        let differences = differences.map(|(_, summary)| mean(summary, runs));
        table.add_row(varied.chain([runs.to_string()]).chain(means).chain(differences));
    }
    table::text(table)
}

/// "12.3 ± 0.4": the mean and half of the 95 % interval, rounded to the digits that the interval supports, or the mean
/// alone if all values are equal; and of how many runs, if not all `runs` have a value.
fn mean(summary: &Summary, runs: usize) -> String {
    let value = match (summary.mean, summary.ci95) {
        (Some(mean), Some(width)) if statistics::is_spread(mean, width) => {
            statistics::rounded(mean, width).join(" ± ")
        }
        (Some(mean), _) => statistics::shortened(mean),
        (None, _) => "-".to_owned(),
    };
    if summary.n == runs { value } else { format!("{value}\n{} of {runs} runs", summary.n) }
}
