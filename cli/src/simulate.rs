//! One run: from a point of the grid to its result and its files.

use std::fs::File;
use std::io::{self, BufWriter};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anabranch_lab::command::quoted;
use anabranch_lab::grid::Point;
use anabranch_lab::report::{Described, Format, Recorder, chart_files, page, picture};
use anabranch_proto::{Policies, Time};
use anabranch_sim::capture::{CaptureWriter, Snap};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::ScenarioError;
use anabranch_sim::trace::Observer;
use anabranch_sim::{CsvSeries, PerfettoWriter, Progress, QlogWriter, RunError, RunOptions};

use crate::earlier;
use crate::msc::{Between, Exchange};
use crate::output::warn;
use crate::place::{complete, partial, until_complete, write_whole};

/// Why a run has no result.
pub(crate) enum NoResult {
    /// Its scenario is wrong.
    Scenario(ScenarioError),
    /// Another failure.
    Other(String),
}

/// Checks whether the point can be run; the error says what is wrong with its scenario.
pub(crate) fn check(point: &Point) -> Result<(), NoResult> {
    anabranch_sim::check(&point.scenario, &Policies::default()).map_err(|error| no_result(point, &error))
}

/// The files that a run writes in addition to its result.
#[derive(Default)]
pub(crate) struct Files {
    /// A directory for the series and the result.
    pub(crate) series: Option<PathBuf>,
    /// The directory has the series of an earlier run, which stay until all runs are complete.
    pub(crate) series_after_all: bool,
    /// A file for the packets.
    pub(crate) pcap: Option<PathBuf>,
    /// How much of each packet the file holds.
    pub(crate) snap: Snap,
    /// A file for the page with the charts.
    pub(crate) report: Option<PathBuf>,
    /// A directory for the charts as pictures and data.
    pub(crate) figures: Option<PathBuf>,
    /// The directory has the charts of an earlier run, which stay until all runs are complete.
    pub(crate) figures_after_all: bool,
    /// A file for the message sequence chart.
    pub(crate) msc: Option<PathBuf>,
    /// A file for its events.
    pub(crate) qlog: Option<PathBuf>,
    /// A file for its trace for Perfetto.
    pub(crate) perfetto: Option<PathBuf>,
    /// The part of the run that the chart shows.
    pub(crate) between: Between,
}

/// A run that has come to its end.
pub(crate) struct Simulated {
    pub(crate) result: RunResult,
    /// Why one of its files could not be written.
    pub(crate) unwritten: Option<String>,
}

/// Runs the point and writes its files. Calls `watch` with the completed fraction, 0 to 1, and the simulated time.
pub(crate) fn simulate(
    point: &Point,
    files: &Files,
    watch: &dyn Fn(f64, Time),
) -> Result<Simulated, NoResult> {
    let mut observers = Observers::new(point, files).map_err(NoResult::Other)?;
    let result = run(point, &mut observers, watch)?;
    let unwritten = write_files(point, files, observers, &result).err();
    Ok(Simulated { result, unwritten })
}

/// Completes the files that were written while the run went on, and writes the others.
fn write_files(point: &Point, files: &Files, observers: Observers, result: &RunResult) -> Result<(), String> {
    let Observers { series, pcap, recorder, exchange, qlog, perfetto } = observers;
    if let (Some(directory), Some(series)) = (&files.series, series) {
        finish_series(series, directory, result, files.series_after_all)?;
    }
    finish_traces((qlog, perfetto), files)?;
    if let (Some(file), Some(pcap)) = (&files.pcap, pcap) {
        let finished = pcap.finish().map(drop).and_then(|()| complete(file));
        finished.map_err(|error| unwritten("the capture", file, error))?;
    }
    // The directory of the figures may be that of the report.
    if let (Some(directory), Some(recorder)) = (&files.figures, &recorder) {
        write_figures(directory, result, recorder, files.figures_after_all)?;
    }
    if let (Some(file), Some(recorder)) = (&files.report, &recorder) {
        write_report(point, file, result, recorder)?;
    }
    if let (Some(file), Some(exchange)) = (&files.msc, exchange) {
        write_exchange(point, file, &exchange, result.ended)?;
    }
    Ok(())
}

/// The files that are written while a run goes on, and the records for its charts.
struct Observers {
    series: Option<CsvSeries>,
    pcap: Option<CaptureWriter<BufWriter<File>>>,
    recorder: Option<Recorder>,
    exchange: Option<Exchange>,
    qlog: Option<QlogWriter<BufWriter<File>>>,
    perfetto: Option<PerfettoWriter<BufWriter<File>>>,
}

impl Observers {
    fn new(point: &Point, files: &Files) -> Result<Observers, String> {
        let series = files.series.as_deref().map(|directory| {
            begin_series(directory).map_err(|error| unwritten("the series", directory, error))
        });
        let pcap = files.pcap.as_deref().map(|file| {
            capture(point, file, files.snap).map_err(|error| unwritten("the capture", file, error))
        });
        let drawn = files.report.is_some() || files.figures.is_some();
        let (qlog, perfetto) = traces(point, files)?;
        Ok(Observers {
            series: series.transpose()?,
            pcap: pcap.transpose()?,
            recorder: drawn.then(Recorder::default),
            exchange: files.msc.as_ref().map(|_| exchange(point, files.between)),
            qlog,
            perfetto,
        })
    }

    fn all(&mut self) -> Vec<&mut dyn Observer> {
        fn one<T: Observer>(observer: &mut Option<T>) -> Option<&mut dyn Observer> {
            observer.as_mut().map(|observer| observer as _)
        }
        let Observers { series, pcap, recorder, exchange, qlog, perfetto } = self;
        let all = [one(series), one(pcap), one(recorder), one(exchange), one(qlog), one(perfetto)];
        all.into_iter().flatten().collect()
    }
}

/// The events of a run for other programs.
type Traces = (Option<QlogWriter<BufWriter<File>>>, Option<PerfettoWriter<BufWriter<File>>>);

fn traces(point: &Point, files: &Files) -> Result<Traces, String> {
    let title = title(point);
    let begin = |file: &Option<PathBuf>, what| {
        let begun =
            |file: &PathBuf| File::create(until_complete(file)).map_err(|error| unwritten(what, file, error));
        file.as_ref().map(begun).transpose().map(|file| file.map(BufWriter::new))
    };
    let qlog = begin(&files.qlog, "the qlog")?.map(|out| QlogWriter::new(out, &title));
    let perfetto = begin(&files.perfetto, "the trace")?.map(|out| PerfettoWriter::new(out, &title));
    Ok((qlog, perfetto))
}

fn finish_traces((qlog, perfetto): Traces, files: &Files) -> Result<(), String> {
    if let (Some(file), Some(qlog)) = (&files.qlog, qlog) {
        let finished = qlog.finish().map(drop).and_then(|()| complete(file));
        finished.map_err(|error| unwritten("the qlog", file, error))?;
    }
    if let (Some(file), Some(perfetto)) = (&files.perfetto, perfetto) {
        let finished = perfetto.finish().map(drop).and_then(|()| complete(file));
        finished.map_err(|error| unwritten("the trace", file, error))?;
    }
    Ok(())
}

fn exchange(point: &Point, between: Between) -> Exchange {
    let flows = point.scenario.flows.iter();
    let flows: Vec<_> = flows.map(|flow| (flow.name.clone(), [flow.from.clone(), flow.to.clone()])).collect();
    Exchange::new(between, &flows)
}

/// The name of a run in the files that are made of it.
fn title(point: &Point) -> String {
    format!("{}, era {}, seed {}", point.scenario.name, point.scenario.era, point.scenario.seed)
}

fn write_exchange(point: &Point, file: &Path, exchange: &Exchange, ended: f64) -> Result<(), String> {
    if exchange.is_empty() {
        let shown = file.display();
        warn(format!(
            "{shown} shows no packet: the run lasts from 0 s to {ended:.3} s; choose another --between"
        ));
    }
    let svg = exchange.draw(&title(point)).map_err(|error| format!("cannot draw: {error}"))?;
    let format = Format::of(file).unwrap_or(Format::Svg);
    let drawn = picture(&svg, format).map_err(|error| error.to_string())?;
    write_whole(file, drawn).map_err(|error| unwritten("the sequence chart", file, error))
}

fn write_figures(
    directory: &Path,
    result: &RunResult,
    recorder: &Recorder,
    after_all: bool,
) -> Result<(), String> {
    let failed = |error| unwritten("the figures", directory, error);
    let files = chart_files(result, recorder).map_err(|error| error.to_string())?;
    if !after_all {
        return write_all(directory, files).map_err(failed);
    }
    let partial = partial(directory);
    emptied(&partial).and_then(|()| write_all(&partial, files)).map_err(failed)
}

/// Writes these files, names and contents, into the directory, which is created if necessary. Each has its name when it
/// is complete.
pub(crate) fn write_all(directory: &Path, files: Vec<(String, Vec<u8>)>) -> io::Result<()> {
    std::fs::create_dir_all(directory)?;
    files.into_iter().try_for_each(|(name, contents)| write_whole(&directory.join(name), contents))
}

fn write_report(point: &Point, file: &Path, result: &RunResult, recorder: &Recorder) -> Result<(), String> {
    let [title, description] = point.document.headings();
    let described = Described { title, description, command: command(point) };
    let page = page(&described, result, recorder).map_err(|error| error.to_string())?;
    write_whole(file, page).map_err(|error| unwritten("the report", file, error))
}

/// The command that repeats this point alone.
fn command(point: &Point) -> String {
    let is_seed = |edit: &&str| edit.split_once('=').is_some_and(|(key, _)| key.trim() == "seed");
    let edits = point.document.edits().filter(|edit| !is_seed(edit));
    let set: String = edits.map(|edit| format!(" --set {}", quoted(edit))).collect();
    format!("anabranch run {} --seed {}{set}", quoted(point.document.file()), point.scenario.seed)
}

fn capture(point: &Point, file: &Path, snap: Snap) -> io::Result<CaptureWriter<BufWriter<File>>> {
    let varied = point.varied.iter().map(|(key, value)| format!(", {key}={value}")).collect::<String>();
    let scenario = &point.scenario;
    let comment = format!(
        "scenario {}, era {}, seed {}{varied}; times count from the beginning of the run",
        scenario.name, scenario.era, scenario.seed
    );
    Ok(CaptureWriter::new(BufWriter::new(File::create(until_complete(file))?), &comment).snap(snap))
}

fn finish_series(
    series: CsvSeries,
    directory: &Path,
    result: &RunResult,
    after_all: bool,
) -> Result<(), String> {
    let failed = |error| unwritten("the series", directory, error);
    series.finish().map_err(failed)?;
    let text = serde_json::to_string_pretty(result).map_err(|error| error.to_string())?;
    std::fs::write(partial(directory).join(earlier::RESULT), text + "\n").map_err(failed)?;
    if after_all { Ok(()) } else { earlier::complete(directory).map_err(failed) }
}

/// Begins the series of a run in a temporary directory, which is moved to its place when it is complete. So a run
/// that ends early leaves an existing directory unchanged.
fn begin_series(directory: &Path) -> io::Result<CsvSeries> {
    let partial = partial(directory);
    emptied(&partial)?;
    CsvSeries::new(&partial)
}

/// Removes what a run that ended early has left under this name.
fn emptied(partial: &Path) -> io::Result<()> {
    if partial.exists() { std::fs::remove_dir_all(partial) } else { Ok(()) }
}

pub(crate) fn unwritten(what: &str, place: &Path, error: io::Error) -> String {
    format!("cannot write {what} to {}: {error}", place.display())
}

fn run(point: &Point, observers: &mut Observers, watch: &dyn Fn(f64, Time)) -> Result<RunResult, NoResult> {
    let mut progress = |progress: Progress| {
        watch(share(&progress), progress.now);
        ControlFlow::Continue(())
    };
    let mut all = observers.all();
    let observer: Option<&mut dyn Observer> = match all.len() {
        0 => None,
        1 => Some(&mut *all[0] as _),
        _ => Some(&mut all as _),
    };
    let options = RunOptions { observer, progress: Some(&mut progress), ..RunOptions::default() };
    let result = anabranch_sim::run(&point.scenario, options);
    let result = result.map_err(|error| no_result(point, &error))?;
    Ok(RunResult { varied: point.varied.clone(), ..result })
}

/// The completed fraction: of the bytes or of the time, whichever is larger. Less than 1.
fn share(progress: &Progress) -> f64 {
    let part = |done: u64, all: u64| if all == 0 { 0.0 } else { done as f64 / all as f64 };
    let bytes = progress.expected.map_or(0.0, |all| part(progress.delivered, all));
    let time = progress.stop.map_or(0.0, |stop| part(progress.now.as_nanos(), stop.as_nanos()));
    bytes.max(time).min(0.999)
}

/// Describes what is wrong with the point: its scenario, or another failure.
pub(crate) fn no_result(point: &Point, error: &RunError) -> NoResult {
    match point.document.blame(&point.scenario, error) {
        Some(blamed) => NoResult::Scenario(blamed),
        None => NoResult::Other(error.to_string()),
    }
}
