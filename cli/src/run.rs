//! `anabranch run`: reads a scenario, runs its grid, and prints the results.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anabranch_lab::grid::{self, Point, Variation};
use anabranch_lab::kind::Kind;
use anabranch_lab::report::Format;
use anabranch_proto::{Policies, Time};
use anabranch_sim::capture::Snap;
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, read_text};

use crate::earlier::Purpose;
use crate::kind;
use crate::msc::Between;
use crate::output::{fail, note, print, print_json, refuse, refuse_scenario, warn};
use crate::place::{Places, is_there, keep, unread};
use crate::progress::Progress;
use crate::runtime::on_interrupt;
use crate::simulate::{self, Files, NoResult, Simulated, unwritten};
use crate::table::table;
use crate::watch::watch;
use crate::{DONE, answers, flat, summary, warnings, why};

/// The arguments of `anabranch run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The scenario: a TOML file (docs/scenario.md; `anabranch keys`)
    file: PathBuf,
    /// The random seed [default: the seed in the file]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// Run with N consecutive seeds. The table shows the mean, 95 % interval and standard
    /// deviation
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// With several seeds, print one row per run instead of a summary
    #[arg(long, conflicts_with_all = ["why", "json"])]
    each: bool,
    /// Set a key before the file is read; tables are addressed by their names. The value is read as TOML if possible,
    /// otherwise as a string
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Run with each of these values. If it is given several times, run every combination
    #[arg(long, value_name = "KEY=A,B,…")]
    vary: Vec<Variation>,
    /// Use N threads instead of one per core; the results are the same
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print a JSON list with one object per run, in SI units
    #[arg(long)]
    json: bool,
    /// Write the results to this file as CSV too, one row per run and flow
    #[arg(long, value_name = "FILE", conflicts_with = "why")]
    csv: Option<PathBuf>,
    /// Overwrite existing files, and the series and charts of earlier runs
    #[arg(long)]
    force: bool,
    /// Write series and notes of each run to this directory as CSV; several runs get one subdirectory each
    #[arg(long, value_name = "DIR", conflicts_with = "why")]
    series: Option<PathBuf>,
    /// Write the packets of each run to this file as pcapng, with the reason for each packet; several runs get one
    /// file each, NAME-run-1.pcapng and so on
    #[arg(long, value_name = "FILE", conflicts_with = "why")]
    pcap: Option<PathBuf>,
    /// How much of each packet --pcap writes: `headers` (all but the user data), `full` (tshark needs it to show TSNs),
    /// or a number of bytes
    #[arg(long, value_name = "LENGTH", allow_negative_numbers = true, default_value = "headers", requires = "pcap", value_parser = snap)]
    snaplen: Snap,
    /// Write a page with the charts of each run to this file as HTML; several runs get one file each,
    /// NAME-run-1.html and so on
    #[arg(long, value_name = "FILE", conflicts_with = "why")]
    report: Option<PathBuf>,
    /// Write each chart of the report to this directory as SVG, PNG and PDF, its data as CSV, and a PGFPlots document
    /// that draws the CSV; several runs get one subdirectory each
    #[arg(long, value_name = "DIR", conflicts_with = "why")]
    figures: Option<PathBuf>,
    /// Write the events of each run to this file as qlog (JSON-SEQ; docs/qlog.md lists the event types); several runs
    /// get one file each
    #[arg(long, value_name = "FILE", conflicts_with = "why")]
    qlog: Option<PathBuf>,
    /// Write each run to this file as a trace that ui.perfetto.dev opens: paths and flows as tracks, blocked time as
    /// slices, windows as counters; several runs get one file each
    #[arg(long, value_name = "FILE", conflicts_with = "why")]
    perfetto: Option<PathBuf>,
    /// Draw the packets between the ends of each run's flows as a message sequence chart, as SVG, PNG or PDF by the
    /// file's extension; 250 packets at most
    #[arg(long, value_name = "FILE", value_parser = pictured, conflicts_with = "why")]
    msc: Option<PathBuf>,
    /// The part of the run that --msc shows, for example 6.4s,6.6s
    #[arg(long, value_name = "FROM,TO", allow_hyphen_values = true, requires = "msc")]
    between: Option<Between>,
    /// Show paths, windows and rates on the terminal while the run goes on, in real time; + and - change the speed
    #[arg(long, conflicts_with_all = ["why", "series", "pcap", "report", "figures", "msc", "qlog", "perfetto", "threads"])]
    watch: bool,
    #[command(flatten)]
    asked: why::Asked,
}

const EXAMPLES: &str = "\
Examples:
  anabranch run scenarios/headline.toml
  anabranch run scenarios/headline.toml --vary flow.download.sctp.retransmit=same,alternate
  anabranch run scenarios/loss.toml --set 'link.wifi.loss=2 %' --seeds 10 --json
  anabranch run scenarios/loss.toml --seeds 20 --csv results.csv
  anabranch run scenarios/outage.toml --series out/
  anabranch run scenarios/outage.toml --pcap outage.pcapng
  anabranch run scenarios/outage.toml --report outage.html
  anabranch run scenarios/outage.toml --figures charts/
  anabranch run scenarios/one-path.toml --msc exchange.svg --between 0s,0.3s
  anabranch run scenarios/outage.toml --qlog outage.sqlog --perfetto outage.json
  anabranch run scenarios/outage.toml --watch
  anabranch run scenarios/slow-reader.toml --why
  anabranch run scenarios/outage.toml --why --at 10.5s --packet 1200

A file has its name when it is complete; until then the name ends in .partial.

Exit status: 0 done, 2 the input was wrong, 130 interrupted, 143 ended by SIGTERM, 129 by
SIGHUP (after each, what was finished is printed), 1 anything else.";

/// A file name whose extension selects a picture format.
pub(crate) fn pictured(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match Format::of(&file) {
        Some(_) => Ok(file),
        None => Err("the extension must say which format: .svg, .png or .pdf".to_owned()),
    }
}

/// A seed: any whole number that has room.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// The least that is written of each packet: the headers of IPv4 and TCP, or of IPv4, SCTP and its first chunk.
const LEAST_SNAP: u32 = 40;

/// How much of each packet a capture holds: enough to read its headers.
fn snap(text: &str) -> Result<Snap, String> {
    match text.parse() {
        Ok(Snap::Bytes(bytes)) if bytes < LEAST_SNAP => Err(format!(
            "the headers of a packet need {LEAST_SNAP} bytes; write `headers`, or {LEAST_SNAP} or more"
        )),
        read => read,
    }
}

/// Runs the scenario and returns the exit status.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    let (document, points) = match read(arguments) {
        Ok(read) => read,
        Err(status) => return status,
    };
    if arguments.asked.why {
        return why::explain(&arguments.asked, &points, arguments.json);
    }
    if let Err(status) = check_outputs(arguments, points.len()) {
        return status;
    }
    let (finished, status) = match arguments.watch {
        false => execute(arguments, points),
        true => match watch(&points) {
            Ok(result) => (vec![result], DONE),
            Err(status) => return status,
        },
    };
    if finished.is_empty() && status != DONE {
        return status;
    }
    if arguments.seeds > 1 && summary::seeds_differ_in_nothing(&finished) {
        note("hint: all seeds gave the same results: nothing in this scenario is random");
    }
    let printed =
        if arguments.json { print_json(&finished) } else { print(&report(&document, arguments, &finished)) };
    if let Some(file) = &arguments.csv
        && let Err(error) = flat::write(&finished, file)
    {
        let failed = fail(format!("cannot write {}: {error}", file.display()));
        return if status == DONE { failed } else { status };
    }
    if status == DONE { printed } else { status }
}

/// Refuses places that cannot be written, and existing files unless --force is given.
fn check_outputs(arguments: &Arguments, runs: usize) -> Result<(), u8> {
    let given = files(arguments);
    places(arguments, &files_of(&given, 0, runs)).check()?;
    let of_runs = (0..runs).map(|i| files_of(&given, i, runs));
    let single = |files: Files| [files.pcap, files.report, files.msc, files.qlog, files.perfetto];
    for file in of_runs.clone().flat_map(single).flatten() {
        if arguments.csv.as_ref() == Some(&file) || arguments.file == file {
            let message = "a run would write this file, which is the scenario or that of --csv";
            return Err(refuse(format!("{}: {message}; choose another name", file.display())));
        }
        if !arguments.force && file.exists() {
            return Err(refuse(is_there(&file)));
        }
    }
    let series: Vec<PathBuf> = of_runs.clone().filter_map(|files| files.series).collect();
    let is_foreign = |folder: &&PathBuf| is_filled(folder) && Purpose::Series.earlier(folder).is_empty();
    if let Some(folder) = series.iter().find(is_foreign) {
        let what = "holds files that are no series; choose a new or empty directory";
        return Err(refuse(format!("{} {what}", folder.display())));
    }
    let figures: Vec<PathBuf> = of_runs.filter_map(|files| files.figures).collect();
    // Several runs do not write into the directory itself, but one before may have.
    let series = series.iter().chain(given.series.iter().filter(|_| given.series_after_all));
    let figures = figures.iter().chain(given.figures.iter().filter(|_| given.figures_after_all));
    keep(arguments.csv.iter().chain(series).chain(figures), arguments.force)
}

/// The places of one run, and of all runs together.
fn places(arguments: &Arguments, files: &Files) -> Places {
    Places::default()
        .reads(&arguments.file)
        .directory("--series", files.series.as_ref())
        .directory("--figures", files.figures.as_ref())
        .file("--csv", arguments.csv.as_ref())
        .file("--pcap", files.pcap.as_ref())
        .file("--report", files.report.as_ref())
        .file("--msc", files.msc.as_ref())
        .file("--qlog", files.qlog.as_ref())
        .file("--perfetto", files.perfetto.as_ref())
}

fn is_filled(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// The edited document and the points of its grid, or the exit status of a fault in the input.
fn read(arguments: &Arguments) -> Result<(Arc<Document>, Vec<Point>), u8> {
    let seed = arguments.seed.map(|seed| format!("seed={seed}"));
    set_or_varied(arguments)?;
    let (document, name) = edited(&arguments.file, seed.iter().chain(&arguments.set))?;
    let document = Arc::new(document);
    let points = grid::points(&document, &name, &arguments.vary, arguments.seeds, &Policies::default());
    let points = points.map_err(|error| refuse_scenario(&error))?;
    check(&points)?;
    Ok((document, points))
}

/// Refuses a key that is set and varied too: its variation alone would count.
fn set_or_varied(arguments: &Arguments) -> Result<(), u8> {
    let set = arguments.set.iter().filter_map(|edit| Some((edit.split_once('=')?.0.trim(), "--set")));
    let seed = arguments.seed.map(|_| ("seed", "--seed"));
    let both = |(keys, _): &(&str, &str)| {
        arguments.vary.iter().any(|varied| grid::common_key(&varied.key, keys).is_some())
    };
    match set.chain(seed).find(both) {
        Some((key, option)) => {
            Err(refuse(format!("--vary {key}: {option} gives this key a value too; leave one of them out")))
        }
        None => Ok(()),
    }
}

/// The run of one scenario with these keys set, or the exit status of a fault in the input.
pub(crate) fn read_point(file: &Path, set: &[String]) -> Result<Point, u8> {
    let (document, name) = edited(file, set.iter())?;
    let points = grid::points(&Arc::new(document), &name, &[], 1, &Policies::default());
    Ok(points.map_err(|error| refuse_scenario(&error))?.remove(0))
}

/// The document in `file` with these keys set, and the scenario's name.
pub(crate) fn edited<'a>(
    file: &Path,
    set: impl Iterator<Item = &'a String>,
) -> Result<(Document, String), u8> {
    let shown = file.display().to_string();
    let text = read_text(file).map_err(|error| refuse(unread(file, &error)))?;
    let name = file.file_stem().map_or_else(|| shown.clone(), |stem| stem.to_string_lossy().into_owned());
    let mut document = Document::parse(&shown, &text).map_err(|error| refuse_scenario(&error))?;
    if let Some(other) = Kind::of(&document).filter(|kind| *kind != Kind::Scenario) {
        return Err(refuse(kind::told(other, &shown)));
    }
    for assignment in set {
        document.set("--set", assignment).map_err(|error| refuse_scenario(&error))?;
    }
    Ok((document, name))
}

/// Whether all points can be run; warns once of each harmful setting.
pub(crate) fn check(points: &[Point]) -> Result<(), u8> {
    for point in points {
        simulate::check(point).map_err(|why| tell(&why))?;
    }
    warnings::about(points).iter().for_each(warn);
    Ok(())
}

/// Messages from the runs and the keyboard.
enum Message {
    /// The completed fraction of a run, and its simulated time.
    At(usize, f64, Time),
    Finished(usize, Result<Box<Simulated>, NoResult>),
    AllFinished,
    /// With the exit status for the signal.
    Interrupted(u8),
}

/// Runs all points. Returns the results, in the order of the points, and the exit status.
fn execute(arguments: &Arguments, points: Vec<Point>) -> (Vec<RunResult>, u8) {
    let (sender, receiver) = channel();
    let interrupt = sender.clone();
    // If there is no handler, a signal ends the process at once and nothing is printed.
    on_interrupt(move |status| drop(interrupt.send(Message::Interrupted(status))));
    let mut results = vec![None; points.len()];
    let threads = arguments.threads.map(usize::from);
    let files = files(arguments);
    std::thread::spawn(move || work(&points, threads, &files, &sender));
    let status = collect(&receiver, &mut results);
    (results.into_iter().flatten().collect(), status)
}

/// Runs the points and sends a message about each.
fn work(points: &[Point], threads: Option<usize>, files: &Files, tell: &Sender<Message>) {
    // Dropped at the end, also by a panic, so that the receiver never waits for ever.
    let _end = End(tell);
    let whole = grid::run_all(points, threads, |i, point| {
        let watch = |share, now| drop(tell.send(Message::At(i, share, now)));
        let result = simulate::simulate(point, &files_of(files, i, points.len()), &watch);
        let whole = result.as_ref().is_ok_and(|simulated| simulated.unwritten.is_none());
        // After a signal there is no receiver any more.
        let _ = tell.send(Message::Finished(i, result.map(Box::new)));
        whole
    });
    if whole.into_iter().all(|whole| whole)
        && let Err(why) = replace_earlier(files, points.len())
    {
        let _ = tell.send(Message::Finished(0, Err(NoResult::Other(why))));
    }
}

/// Puts the directories of all runs in the place of what earlier runs wrote.
fn replace_earlier(files: &Files, count: usize) -> Result<(), String> {
    let runs = || (0..count).map(|i| files_of(files, i, count));
    if let Some(directory) = files.series.as_ref().filter(|_| files.series_after_all) {
        let series: Vec<_> = runs().filter_map(|files| files.series).collect();
        let replaced = Purpose::Series.replace(directory, &series);
        replaced.map_err(|error| unwritten("the series", directory, error))?;
    }
    if let Some(directory) = files.figures.as_ref().filter(|_| files.figures_after_all) {
        let figures: Vec<_> = runs().filter_map(|files| files.figures).collect();
        let replaced = Purpose::Figures.replace(directory, &figures);
        replaced.map_err(|error| unwritten("the figures", directory, error))?;
    }
    Ok(())
}

/// The files that were requested.
fn files(arguments: &Arguments) -> Files {
    let is_used = |place: &Option<PathBuf>, purpose: Purpose| {
        place.as_ref().is_some_and(|directory| !purpose.earlier(directory).is_empty())
    };
    Files {
        series: arguments.series.clone(),
        series_after_all: is_used(&arguments.series, Purpose::Series),
        pcap: arguments.pcap.clone(),
        snap: arguments.snaplen,
        report: arguments.report.clone(),
        figures: arguments.figures.clone(),
        figures_after_all: is_used(&arguments.figures, Purpose::Figures),
        msc: arguments.msc.clone(),
        qlog: arguments.qlog.clone(),
        perfetto: arguments.perfetto.clone(),
        between: arguments.between.unwrap_or_default(),
    }
}

/// The files of run `i` of `count`. With several runs, each run has its own files.
fn files_of(files: &Files, i: usize, count: usize) -> Files {
    let digits = count.to_string().len();
    let run = format!("run-{:0digits$}", i + 1);
    let own = |place: &PathBuf, several: &dyn Fn(&Path) -> PathBuf| match count {
        1 => place.clone(),
        _ => several(place),
    };
    // A name need not be UTF-8.
    let numbered = |file: &Path| {
        let mut name = file.file_stem().unwrap_or_default().to_owned();
        name.push(format!("-{run}"));
        if let Some(extension) = file.extension() {
            name.push(".");
            name.push(extension);
        }
        file.with_file_name(name)
    };
    Files {
        series: files.series.as_ref().map(|directory| own(directory, &|directory| directory.join(&run))),
        series_after_all: files.series_after_all,
        pcap: files.pcap.as_ref().map(|file| own(file, &numbered)),
        snap: files.snap,
        report: files.report.as_ref().map(|file| own(file, &numbered)),
        figures: files.figures.as_ref().map(|directory| own(directory, &|directory| directory.join(&run))),
        figures_after_all: files.figures_after_all,
        msc: files.msc.as_ref().map(|file| own(file, &numbered)),
        qlog: files.qlog.as_ref().map(|file| own(file, &numbered)),
        perfetto: files.perfetto.as_ref().map(|file| own(file, &numbered)),
        between: files.between,
    }
}

/// Sends the final message when it is dropped.
struct End<'a>(&'a Sender<Message>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let _ = self.0.send(Message::AllFinished);
    }
}

/// Receives results, and shows progress when they take longer than a second.
fn collect(messages: &Receiver<Message>, results: &mut [Option<RunResult>]) -> u8 {
    const GLANCE: Duration = Duration::from_millis(100);
    let mut progress = Progress::new(results.len());
    let (mut done, mut reached) = (0, Time::ZERO);
    let status = loop {
        progress.show_if_late();
        match messages.recv_timeout(GLANCE) {
            Ok(Message::At(i, share, now)) => {
                reached = now;
                progress.at(i, share);
            }
            Ok(Message::Finished(i, Ok(simulated))) => {
                results[i] = Some(simulated.result);
                done += 1;
                progress.at(i, 1.0);
                if let Some(unwritten) = simulated.unwritten {
                    break fail(unwritten);
                }
            }
            Ok(Message::Finished(_, Err(why))) => break tell(&why),
            Ok(Message::AllFinished) if done == results.len() => break DONE,
            Ok(Message::AllFinished) => break fail("a run ended without a result"),
            Ok(Message::Interrupted(status)) => {
                progress.finish();
                note(interrupted(done, results.len(), reached));
                break status;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break fail("the runs ended without a result"),
        }
    };
    progress.finish();
    status
}

/// How far the runs had come: of many runs how many were finished, of one when it ended.
fn interrupted(done: usize, runs: usize, reached: Time) -> String {
    match runs {
        1 => format!("interrupted: the run had come to {:.3} s of simulated time", reached.as_secs_f64()),
        _ => format!("interrupted: {done} of {runs} runs finished"),
    }
}

fn tell(why: &NoResult) -> u8 {
    match why {
        NoResult::Scenario(error) => refuse_scenario(error),
        NoResult::Other(why) => fail(why),
    }
}

/// The results as text for people.
fn report(document: &Document, arguments: &Arguments, results: &[RunResult]) -> String {
    let headings = document.headings().into_iter().flatten().filter(|text| !text.is_empty());
    let mut parts: Vec<String> = headings.collect();
    let varied: Vec<_> = arguments.vary.iter().map(|variation| variation.key.clone()).collect();
    let each = arguments.each || arguments.seeds == 1;
    parts.push(match each {
        true => table(results, &varied) + &answers::tables(results, &varied),
        false => summary::table(results, &varied),
    });
    parts.join("\n")
}
