//! `anabranch diff`: the first packet at which two runs differ, and why.

use std::path::{Path, PathBuf};

use anabranch_lab::diff::{Parting, Setting, Step, part, settings};
use anabranch_lab::grid::Point;
use anabranch_lab::why::{Answer, Explainer, Question};
use anabranch_proto::Policies;
use anabranch_sim::RunOptions;
use serde_json::json;

use crate::output::{fail, print, print_json, refuse_scenario};
use crate::run::{check, read_point, seed};
use crate::simulate::{NoResult, no_result};
use crate::{DONE, FAILED};

/// The arguments of `anabranch diff`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The scenario of the first run
    a: PathBuf,
    /// The scenario of the second run [default: the scenario of the first run]
    b: Option<PathBuf>,
    /// Set a key in both runs, as `anabranch run --set` does
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Set a key in the first run
    #[arg(long, value_name = "KEY=VALUE")]
    set_a: Vec<String>,
    /// Set a key in the second run
    #[arg(long, value_name = "KEY=VALUE")]
    set_b: Vec<String>,
    /// The seed of the first run, instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed_a: Option<u64>,
    /// The seed of the second run, instead of the file's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    seed_b: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Packets count from 1 as they are sent, at both ends of all flows; `anabranch run … --why --packet N` explains one. TSNs count
from the first of their flow, and tags and cookies are left out, so that runs with different seeds can be compared. For each key
in which the runs differ, the first run is repeated with the second run's value of this key alone, and compared with itself.

Examples:
  anabranch diff scenarios/headline.toml --set-b flow.download.sctp.retransmit=same
  anabranch diff scenarios/loss.toml --seed-b 2
  anabranch diff scenarios/outage.toml --set-b era=rfc4960
  anabranch diff old.toml new.toml --json

Exit status: 0 the runs are the same, 2 the input was wrong, 1 they differ, or anything else.";

/// Compares the runs, prints the result, and returns the exit status.
pub(crate) fn diff(arguments: &Arguments) -> u8 {
    let both = |own: &[String], seed: Option<u64>| {
        let seed = seed.map(|seed| format!("seed={seed}"));
        arguments.set.iter().chain(own).cloned().chain(seed).collect::<Vec<String>>()
    };
    let file = arguments.b.as_deref().unwrap_or(&arguments.a);
    let read = |file: &Path, set: &[String]| read_point(file, set);
    let points = read(&arguments.a, &both(&arguments.set_a, arguments.seed_a))
        .and_then(|a| Ok([a, read(file, &both(&arguments.set_b, arguments.seed_b))?]))
        .and_then(|points| check(&points).map(|()| points));
    let points = match points {
        Ok(points) => points,
        Err(status) => return status,
    };
    match compare(&points, arguments.json) {
        Ok(status) => status,
        Err(NoResult::Scenario(error)) => refuse_scenario(&error),
        Err(NoResult::Other(why)) => fail(why),
    }
}

fn compare(points: &[Point; 2], json: bool) -> Result<u8, NoResult> {
    let [a, b] = points;
    let Some(parting) = part(&a.scenario, &b.scenario).map_err(|error| no_result(a, &error))? else {
        let said = if json {
            print_json(&json!({ "same": true }))
        } else {
            print("The runs are the same, packet by packet.")
        };
        return Ok(said);
    };
    let settings = settings(&a.scenario, &b.scenario, &Policies::default());
    let why = match parting.packet {
        Some(packet) => [explained(a, packet)?, explained(b, packet)?],
        None => [None, None],
    };
    let said = match json {
        true => print_json(&json!({
            "same": false, "packet": parting.packet, "packets": parting.packets, "event": parting.event,
            "why": why, "settings": settings,
        })),
        false => print(&text(&parting, &why, &settings)),
    };
    Ok(if said == DONE { FAILED } else { said })
}

/// Why this run sent the packet, if it sent one.
fn explained(point: &Point, packet: u64) -> Result<Option<Answer>, NoResult> {
    let question = Question { packet: Some(packet), ..Question::default() };
    let mut explainer = Explainer::new(question, &point.scenario);
    let options = RunOptions { observer: Some(&mut explainer), ..RunOptions::default() };
    anabranch_sim::run(&point.scenario, options).map_err(|error| no_result(point, &error))?;
    Ok(explainer.answers().pop())
}

fn text(parting: &Parting, why: &[Option<Answer>; 2], settings: &[Setting]) -> String {
    let mut lines = Vec::new();
    match parting.packet {
        Some(packet) => lines.push(format!("The runs part at packet {packet}.")),
        None => lines.push("All packets are the same; only events differ.".to_owned()),
    }
    lines.extend(pair(&parting.packets).into_iter().filter(|_| parting.packet.is_some()));
    lines.push("The first event that differs:".to_owned());
    lines.extend(pair(&parting.event));
    for (run, answer) in ["A", "B"].iter().zip(why) {
        let said = answer.as_ref().map(Answer::lines).unwrap_or_default();
        lines.extend(
            said.iter()
                .enumerate()
                .map(|(i, line)| if i == 0 { format!("In run {run}: {line}") } else { line.clone() }),
        );
    }
    if !settings.is_empty() {
        lines.push("What is set differently:".to_owned());
        lines.extend(settings.iter().map(|setting| setting_line(setting, parting)));
    }
    lines.join("\n")
}

fn pair(steps: &[Option<Step>; 2]) -> Vec<String> {
    let step = |(run, step): (&&str, &Option<Step>)| match step {
        Some(step) => format!("  {run}  {:.6} s  {}", step.at, step.what),
        None => format!("  {run}  nothing more"),
    };
    ["A", "B"].iter().zip(steps).map(step).collect()
}

fn setting_line(setting: &Setting, parting: &Parting) -> String {
    let value = |value: &Option<serde_json::Value>| {
        value.as_ref().map_or("not given".to_owned(), ToString::to_string)
    };
    let [a, b] = &setting.values;
    let alone = match setting.alone {
        Some(packet) if Some(packet) == parting.packet => "; alone it makes A part at this packet".to_owned(),
        Some(packet) => format!("; alone it makes A part at packet {packet}"),
        // The rules of an era are keys of their own here.
        None if setting.key == "era" => "; the rules that it sets stand below, each by itself".to_owned(),
        None if setting.tried => "; alone it changes no packet of A".to_owned(),
        None => "; it was not tried alone".to_owned(),
    };
    format!("  {}: {} in A, {} in B{alone}", setting.key, value(a), value(b))
}
