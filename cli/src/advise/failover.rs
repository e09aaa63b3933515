//! `anabranch advise failover`: which timeouts and thresholds meet a budget.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_lab::advice::{Answer, Ended, Judged, Task, Tried, configurations, explain, search};
use comfy_table::Table;
use serde_json::{Value, json};

use super::{read, seconds, stopped_by_ctrl_c, watched};
use crate::output::{note, print, print_json};
use crate::{DONE, FAILED, table};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Paths, traffic and budget: a TOML file (docs/advice.md)
    #[arg(required_unless_present = "random")]
    file: Option<PathBuf>,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// End after so many seconds with the best so far; a quarter of the time is for its check
    #[arg(long, value_name = "N", default_value = "50", value_parser = seconds)]
    seconds: f64,
    /// Judge the advice itself: ask random tasks until N have an answer, and check each with unseen seeds. --seconds is for each
    #[arg(long, value_name = "N", conflicts_with = "file", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    random: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  anabranch advise failover scenarios/advice/signalling.toml
  anabranch advise failover scenarios/advice/signalling.toml --json --seconds 20
  anabranch advise failover --random 50 --seconds 10

A task names the paths, the primary first, what is sent, and what must hold:
  [[path]]
  name = \"west\"
  rate = \"2 Mbit/s\"
  delay = \"15 ms\"
  loss = \"0.01 %\"
  [[path]]
  ...
  [traffic]
  rate = \"40 kbit/s\"
  message_size = \"200 B\"
  [budget]
  new_data = \"800 ms\"
  outages = \"99 %\"

Ctrl-C ends the search with the best so far.

Exit status: 0 there is advice, 1 no parameters meet the budget, 2 the input was wrong. Of random tasks: 1 if fewer than 95 %
of the answers hold their budget.";

pub(super) fn answer(asked: &Arguments) -> u8 {
    let stop = stopped_by_ctrl_c();
    if let Some(wanted) = asked.random {
        return random(asked, wanted, &stop);
    }
    let Some(file) = &asked.file else { return FAILED };
    let task = match read(file, Task::read) {
        Ok(task) => task,
        Err(status) => return status,
    };
    let answer = watched(&stop, asked.seconds, |watch| search(&task, watch));
    let printed =
        if asked.json { print_json(&as_json(&task, &answer)) } else { print(&as_text(&task, &answer)) };
    match (printed, answer.advice.is_some()) {
        (DONE, false) => FAILED,
        (printed, _) => printed,
    }
}

/// Of the answers this share has to hold.
const HOLD: f64 = 0.95;

/// Asks random tasks until so many have an answer.
fn random(asked: &Arguments, wanted: u64, stop: &AtomicBool) -> u8 {
    let mut tried: Vec<(u64, Tried)> = Vec::new();
    for number in 0.. {
        let answered = tried.iter().filter(|(_, tried)| tried.holds().is_some()).count() as u64;
        if answered >= wanted || stop.load(Ordering::Relaxed) {
            break;
        }
        if number > 0 && !asked.json {
            note(format!("{answered} of {wanted} tasks answered"));
        }
        let one = watched(stop, asked.seconds, |watch| Tried::random(number, watch));
        if !stop.load(Ordering::Relaxed) {
            tried.push((number, one));
        }
    }
    let printed = if asked.json { print_json(&random_json(&tried)) } else { print(&random_text(&tried)) };
    let answers: Vec<bool> = tried.iter().filter_map(|(_, tried)| tried.holds()).collect();
    let held = answers.iter().filter(|held| **held).count() as f64;
    match printed {
        DONE if held < HOLD * answers.len() as f64 || (answers.len() as u64) < wanted => FAILED,
        printed => printed,
    }
}

fn random_json(all: &[(u64, Tried)]) -> Value {
    let one = |(number, tried): &(u64, Tried)| {
        json!({
            "number": number,
            "task": tried.task.text(),
            "advice": tried.answer.advice,
            "checked": tried.answer.checked,
            "ended": tried.answer.ended,
            "formula": tried.formula,
        })
    };
    json!(all.iter().map(one).collect::<Vec<_>>())
}

/// One row a task, and the sums.
fn random_text(all: &[(u64, Tried)]) -> String {
    let mut rows = Table::new();
    table::style(&mut rows);
    rows.set_header([
        "task",
        "budget",
        "advice: RTO.Min, errors",
        "its formula",
        "new data elsewhere",
        "within, unseen seeds",
        "holds",
        "by the formula alone",
        "holds",
    ]);
    let says = |holds: bool| if holds { "yes" } else { "NO" }.to_owned();
    for (number, tried) in all {
        let budget = &tried.task.budget;
        let asked = format!("{} ms in {:.0} %", budget.new_data.as_millis(), budget.outages * 100.0);
        let advised =
            |judged: &Judged| format!("{} ms, {}", judged.parameters.rto_min, judged.parameters.errors());
        let formula = tried.formula.as_ref();
        let (by_formula, formula_holds) = (
            formula.map_or(String::new(), advised),
            formula.map_or(String::new(), |judged| says(judged.holds)),
        );
        let Some(checked) = &tried.answer.checked else {
            let none = ["none", "", "", "", ""].map(str::to_owned);
            rows.add_row(
                [number.to_string(), asked].into_iter().chain(none).chain([by_formula, formula_holds]),
            );
            continue;
        };
        rows.add_row([
            number.to_string(),
            asked,
            advised(checked),
            ms(checked.classical),
            checked.new_data.map_or("longer".to_owned(), ms),
            within(checked),
            says(checked.holds),
            by_formula,
            formula_holds,
        ]);
    }
    format!("{}\n\n{}", rows.trim_fmt(), random_summary(all))
}

fn random_summary(all: &[(u64, Tried)]) -> String {
    let answers: Vec<bool> = all.iter().filter_map(|(_, tried)| tried.holds()).collect();
    let formulas: Vec<bool> =
        all.iter().filter_map(|(_, tried)| Some(tried.formula.as_ref()?.holds)).collect();
    let held = |all: &[bool]| all.iter().filter(|held| **held).count();
    let cut = all.iter().filter(|(_, tried)| tried.answer.ended == Ended::TimeOver).count();
    format!(
        "{} tasks, {} with an answer: {} of {} answers hold their budget on unseen seeds; what the classical formula alone advises holds in {} of {}. In {cut} tasks the time was over before the search.",
        all.len(),
        answers.len(),
        held(&answers),
        answers.len(),
        held(&formulas),
        formulas.len()
    )
}

fn as_json(task: &Task, answer: &Answer) -> Value {
    let advised = answer.advice.as_ref().map(|advice| configurations(&advice.parameters));
    let written: serde_json::Map<_, _> =
        advised.into_iter().flatten().map(|(system, text)| (system.to_owned(), Value::from(text))).collect();
    json!({
        "advice": answer.advice,
        "checked": answer.checked,
        "front": answer.front,
        "candidates": answer.candidates,
        "ended": answer.ended,
        "configurations": written,
        "text": explain(task, answer),
    })
}

fn as_text(task: &Task, answer: &Answer) -> String {
    let mut text = format!("{}\n", explain(task, answer));
    if !answer.front.is_empty() {
        text += &format!(
            "\nOf {} candidates, those that no other beats (the first is the fastest):\n",
            answer.candidates
        );
        text += &front(answer);
    }
    if let Some(advice) = &answer.advice {
        for (system, lines) in configurations(&advice.parameters) {
            text += &format!("\n\n# {system}\n{}", lines.trim_end());
        }
    }
    text
}

/// One row a candidate of the Pareto front; `*` is the advice.
fn front(answer: &Answer) -> String {
    let mut rows = Table::new();
    table::style(&mut rows);
    rows.set_header([
        "",
        "RTO.Min",
        "RTO.Max",
        "errors",
        "SACK delay",
        "HB.interval",
        "formula",
        "new data elsewhere",
        "within the budget",
        "false failovers",
    ]);
    let advised = answer.advice.as_ref().map(|advice| advice.parameters);
    for judged in answer.front.iter().chain(answer.advice.iter().filter(|a| !answer.front.contains(a))) {
        rows.add_row(row(judged, Some(judged.parameters) == advised));
    }
    rows.trim_fmt()
}

fn row(judged: &Judged, advised: bool) -> [String; 10] {
    let p = &judged.parameters;
    let pf = if p.pf_max_retrans.is_some() { "PF" } else { "PMR" };
    [
        if advised { "*" } else { "" }.to_owned(),
        format!("{} ms", p.rto_min),
        format!("{} ms", p.rto_max),
        format!("{} ({pf})", p.errors()),
        format!("{} ms", p.sack_delay),
        format!("{} ms", p.heartbeat_interval),
        ms(judged.classical),
        judged.new_data.map_or("longer".to_owned(), ms),
        within(judged),
        format!("{:.2} [to {:.2}]", judged.false_failovers, judged.false_failovers_high),
    ]
}

fn ms(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1000.0)
}

fn within(judged: &Judged) -> String {
    let percent = |share: f64| share * 100.0;
    let [share, low, high] = [judged.within.share, judged.within.low, judged.within.high].map(percent);
    format!("{share:.1} % [{low:.1}, {high:.1}] of {}", judged.outages)
}
