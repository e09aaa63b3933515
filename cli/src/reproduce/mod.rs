//! `anabranch reproduce`: runs the experiments of papers and compares the results with the published ones.

mod bars;
mod curve;
mod exchange;
mod figures;
mod map;
mod means;
mod plane;
mod refusals;
mod shelf;
mod transfer;
mod verdicts;

pub(crate) use refusals::refuse_paper;
pub(crate) use shelf::Shelf;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anabranch_lab::claims::{FinishedRuns, FinishedRunsError, Outcome, Paper, Plan, selects};
use anabranch_lab::report::{Format, Reproduced, paper_files, papers_page, picture};
use anabranch_sim::scenario::error::{listed, nearest};
use serde_json::{Value, json};

use means::Means;
use refusals::refuse_plan;
use verdicts::{summary, table};

use crate::output::{fail, note, print, print_json, refuse};
use crate::place::{Places, keep, write_whole};
use crate::progress::Progress;
use crate::runtime::on_interrupt;
use crate::sweep::write_charts;
use crate::{DONE, FAILED};

/// The arguments of `anabranch reproduce`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The paper: a folder, or the name of a paper below papers/ or built into the program [default: all papers]
    paper: Option<PathBuf>,
    /// Judge only this claim, or the claims whose names begin with it and a `/`
    #[arg(long, value_name = "ID")]
    claim: Vec<String>,
    /// Judge only the claims of this variant, and leave out their values under other variants
    #[arg(long, value_name = "NAME", requires = "paper", conflicts_with = "figure")]
    variant: Option<String>,
    /// Print the verdicts as a JSON object in SI units; for several papers, a list of objects
    #[arg(long)]
    json: bool,
    /// Draw the paper's figure into this file instead, by its extension as SVG, PNG or PDF, or its data as CSV, or
    /// as a PGFPlots document (tex) that draws the CSV beside it. If the paper has several
    /// figures, draw the one with the name of the file
    #[arg(long, value_name = "FILE", value_parser = figures::place, conflicts_with_all = ["claim", "json", "report"], requires = "paper")]
    figure: Option<PathBuf>,
    /// Write an HTML page to this file: tables and figures of the paper and of Anabranch together, and every verdict
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Let the page link to this one, a file beside it: the site to which it belongs
    #[arg(long, value_name = "FILE.html", requires = "report", value_parser = beside)]
    home: Option<String>,
    /// Write the charts of the page to this directory as SVG, PNG and PDF, of each paper to one with its name below it.
    /// Charts of tables have their data as CSV, and a PGFPlots document that draws the CSV
    #[arg(long, value_name = "DIR", conflicts_with = "figure")]
    figures: Option<PathBuf>,
    /// Overwrite the page, the charts and the figure if they exist
    #[arg(long)]
    force: bool,
    /// Run every experiment with N seeds instead of its own number
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Run N rows for each claim about all rows of a table together, instead of as many as the claim says
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    rows: Option<u32>,
    /// Use N threads instead of one per core; the results are the same
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Keep every finished run in this file, and do not repeat the runs that it has: after an interruption, the same
    /// command goes on where it was
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  anabranch reproduce
  anabranch reproduce receive-buffer-blocking --claim table1
  anabranch reproduce cmt-over-wireless --variant range --seeds 30 --resume runs.journal
  anabranch reproduce receive-buffer-blocking --claim pairs --rows 1000
  anabranch reproduce receive-buffer-blocking --figure case-study.svg
  anabranch reproduce receive-buffer-blocking --claim table1 --figures charts/
  anabranch reproduce receive-buffer-blocking --report receive-buffer-blocking.html

Ctrl-C, SIGTERM or SIGHUP keeps nothing without --resume FILE. With it the finished runs are in FILE, and the same command goes on from there.

Exit status: 0 every verdict is as expected, 1 some verdict is not, 2 the input was wrong, 130 interrupted,
143 ended by SIGTERM, 129 by SIGHUP.";

/// Reproduces the papers and returns the exit status.
pub(crate) fn reproduce(arguments: &Arguments) -> u8 {
    // Papers that are built into the program stay unpacked until the end.
    let (shelf, papers) = match open(arguments) {
        Ok(opened) => opened,
        Err(status) => return status,
    };
    if let Err(status) = check_outputs(arguments) {
        return status;
    }
    let finished = match arguments.resume.as_deref().map(FinishedRuns::open).transpose() {
        Ok(finished) => finished,
        Err(error @ FinishedRunsError::File { .. }) => return fail(error),
        Err(error @ FinishedRunsError::Refused { .. }) => return refuse(error),
    };
    let threads = arguments.threads.map(usize::from);
    let means = Means { seeds: arguments.seeds, threads, finished: finished.as_ref() };
    tell_if_interrupted(arguments.resume.as_deref(), shelf.unpacked());
    if let (Some(file), [paper]) = (&arguments.figure, papers.as_slice()) {
        return figures::write(paper, means, file);
    }
    let judged = match judge(arguments, &papers, finished.as_ref()) {
        Ok(judged) => judged,
        Err(status) => return status,
    };
    let reported = report(arguments, &judged);
    match write_files(arguments, &judged, means) {
        Ok(()) => reported,
        Err(status) => status,
    }
}

/// At Ctrl-C, SIGTERM or SIGHUP, says what is kept, removes the papers that were unpacked, and ends the program.
fn tell_if_interrupted(resume: Option<&Path>, unpacked: Option<PathBuf>) {
    let kept = match resume {
        Some(file) => {
            format!("the finished runs are kept in {}; the same command goes on from there", file.display())
        }
        None => "nothing is kept without --resume FILE".to_owned(),
    };
    on_interrupt(move |status| {
        note(format!("interrupted: {kept}"));
        // The process ends without dropping the shelf.
        let _ = unpacked.as_ref().map(std::fs::remove_dir_all);
        std::process::exit(i32::from(status));
    });
}

/// Refuses places that cannot be written, and existing pages and charts unless --force is given.
fn check_outputs(arguments: &Arguments) -> Result<(), u8> {
    Places::default()
        .directory("--figures", arguments.figures.as_ref())
        .file("--figure", arguments.figure.as_ref())
        .file("--report", arguments.report.as_ref())
        .file("--resume", arguments.resume.as_ref())
        .check()?;
    keep(arguments.report.iter().chain(&arguments.figures).chain(&arguments.figure), arguments.force)
}

/// Writes the charts and the page; an error is told, and its exit status returned.
fn write_files(arguments: &Arguments, judged: &[Judged<'_>], means: Means<'_>) -> Result<(), u8> {
    if arguments.report.is_none() && arguments.figures.is_none() {
        return Ok(());
    }
    let with = arguments.claim.is_empty().then_some(means);
    let drawn = drawn(judged, with, arguments)?;
    arguments.figures.iter().try_for_each(|directory| write_figures(directory, &drawn))?;
    arguments.report.iter().try_for_each(|file| write_page(file, &drawn, arguments.home.as_deref()))
}

/// A relative link: not one with a scheme.
fn beside(link: &str) -> Result<String, String> {
    match link.contains(':') {
        true => Err("write the place of a file, as seen from the page".to_owned()),
        false => Ok(link.to_owned()),
    }
}

/// Writes the page about all judged claims, with the papers' figures.
fn write_page(file: &Path, drawn: &[Reproduced<'_>], home: Option<&str>) -> Result<(), u8> {
    write_whole(file, papers_page(drawn, home))
        .map_err(|error| fail(format!("cannot write {}: {error}", file.display())))
}

/// Writes the charts of each paper: those of its tables, and its figures.
fn write_figures(directory: &Path, drawn: &[Reproduced<'_>]) -> Result<(), u8> {
    for reproduced in drawn {
        let mut files = paper_files(reproduced).map_err(fail)?;
        for figure in &reproduced.figures {
            for (end, format) in [("svg", Format::Svg), ("png", Format::Png), ("pdf", Format::Pdf)] {
                let name = format!("{}.{end}", figure.name);
                files.push((name, picture(&figure.svg, format).map_err(fail)?));
            }
            files.extend(figure.data().map_err(fail)?);
        }
        write_charts(&directory.join(&reproduced.paper.name), Ok(files))?;
    }
    Ok(())
}

/// The papers with their figures drawn; those of many settings only `with` means.
fn drawn<'a>(
    judged: &'a [Judged<'_>],
    with: Option<Means<'_>>,
    Arguments { seeds, variant, rows, claim: claims, .. }: &'a Arguments,
) -> Result<Vec<Reproduced<'a>>, u8> {
    let drawn = |paper: &Paper, outcomes: &[Outcome]| {
        let mut figures = figures::of_single_runs(paper)?;
        // A curve needs no runs but those of its claim.
        for curve in &paper.curves {
            let outcome = outcomes.iter().find(|outcome| outcome.id == curve.claim);
            figures.extend(outcome.and_then(|outcome| curve::drawn(paper, curve, outcome)).transpose()?);
        }
        if let Some(means) = with {
            let all = paper.bars.iter().map(|figure| bars::run(paper, figure, means));
            figures.extend(all.collect::<Result<Vec<_>, u8>>()?);
        }
        Ok::<_, u8>(figures)
    };
    judged
        .iter()
        .map(|(paper, outcomes)| {
            let figures = drawn(paper, outcomes)?;
            let variant = variant.as_deref();
            Ok(Reproduced { paper, outcomes, figures, seeds: *seeds, variant, rows: *rows, claims })
        })
        .collect()
}

fn open(arguments: &Arguments) -> Result<(Shelf, Vec<Paper>), u8> {
    let shelf = Shelf::open()?;
    let folders = match &arguments.paper {
        Some(paper) => vec![shelf.folder(paper)?],
        None => shelf.folders()?,
    };
    let papers = folders.iter().map(|folder| Paper::open(folder).map_err(|error| refuse_paper(&error)));
    let mut papers = papers.collect::<Result<Vec<Paper>, u8>>()?;
    if let Some(rows) = arguments.rows {
        papers.iter_mut().for_each(|paper| paper.keep_rows(rows as usize));
    }
    if let Some(variant) = &arguments.variant {
        papers.iter_mut().try_for_each(|paper| keep_variant(paper, variant))?;
    }
    Ok((shelf, papers))
}

fn keep_variant(paper: &mut Paper, name: &str) -> Result<(), u8> {
    if paper.keep_variant(name) {
        return Ok(());
    }
    let names = paper.variants.iter().map(|variant| variant.name.as_str());
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there is {}", listed(names)),
    };
    Err(refuse(format!("{} has no variant `{name}`; {hint}", paper.name)))
}

/// A paper and the outcomes of its claims.
type Judged<'p> = (&'p Paper, Vec<Outcome>);

fn judge<'p>(
    arguments: &Arguments,
    papers: &'p [Paper],
    finished: Option<&'p FinishedRuns>,
) -> Result<Vec<Judged<'p>>, u8> {
    let unknown = |name: &&String| !papers.iter().any(|paper| paper.has_claim(name));
    if let Some(name) = arguments.claim.iter().find(unknown) {
        return Err(refuse(no_such_claim(name, papers)));
    }
    let wants = |id: &str| arguments.claim.is_empty() || arguments.claim.iter().any(|name| selects(name, id));
    let plan = |paper: &'p Paper| -> Result<Plan<'p>, u8> {
        let mut plan = Plan::new(paper, arguments.seeds, wants).map_err(|error| refuse_plan(&error))?;
        finished.into_iter().for_each(|finished| plan.resume(finished));
        Ok(plan)
    };
    let plans = papers.iter().map(|paper| Ok((paper, plan(paper)?))).collect::<Result<Vec<_>, u8>>()?;
    let bar = Mutex::new(Progress::new(plans.iter().map(|(_, plan)| plan.size()).sum()));
    let threads = arguments.threads.map(usize::from);
    let mut before = 0;
    let mut judged = Vec::new();
    for (paper, plan) in &plans {
        let done = |done: usize, _: usize| drop(bar.lock().map(|mut bar| bar.done(before + done)));
        let outcomes = plan.run(threads, &done);
        before += plan.size();
        match outcomes {
            Ok(outcomes) => judged.push((*paper, outcomes)),
            Err(error) => {
                take_away(&bar);
                return Err(refuse_plan(&error));
            }
        }
    }
    take_away(&bar);
    Ok(judged)
}

/// The message for an unknown claim: it suggests the nearest names of claims or of groups of claims.
fn no_such_claim(name: &str, papers: &[Paper]) -> String {
    let ids = || papers.iter().flat_map(|paper| &paper.cases).map(|case| case.id.as_str());
    let groups: BTreeSet<&str> = ids().map(|id| id.split('/').next().unwrap_or(id)).collect();
    match nearest(name, groups.iter().copied()).or_else(|| nearest(name, ids())) {
        Some(near) => format!("there is no claim `{name}`; did you mean `{near}`?"),
        None => format!("there is no claim `{name}`; there are {}", listed(groups)),
    }
}

fn take_away(bar: &Mutex<Progress>) {
    drop(bar.lock().map(|bar| bar.finish()));
}

fn report(arguments: &Arguments, judged: &[Judged<'_>]) -> u8 {
    let printed = match arguments.json {
        true => {
            let objects: Vec<_> = judged.iter().map(object).collect();
            match (objects.as_slice(), &arguments.paper) {
                ([object], Some(_)) => print_json(object),
                _ => print_json(&objects),
            }
        }
        false => print(&judged.iter().map(text).collect::<Vec<_>>().join("\n\n")),
    };
    let as_expected = judged.iter().all(|(_, outcomes)| outcomes.iter().all(Outcome::as_expected));
    match printed {
        DONE if !as_expected => FAILED,
        printed => printed,
    }
}

fn object((paper, outcomes): &Judged<'_>) -> Value {
    json!({ "paper": paper.name, "title": paper.title, "claims": outcomes })
}

fn text((paper, outcomes): &Judged<'_>) -> String {
    [paper.title.clone(), paper.citation.clone(), table(paper, outcomes), summary(outcomes)].join("\n")
}
