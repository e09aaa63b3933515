//! `anabranch advise failover`: which timeouts and thresholds meet a budget.

use std::path::PathBuf;

use anabranch_lab::advice::{Answer, Judged, Task, configurations, explain, search};
use anabranch_lab::kind::Kind;
use comfy_table::Table;
use serde_json::{Value, json};

use super::{random, read, seconds, watched};
use crate::output::{print, print_json};
use crate::runtime::Stop;
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
    /// End after so many seconds with the best so far; a quarter of the time is for its check [default: 50, without
    /// limit with --trials]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = seconds)]
    seconds: Option<f64>,
    /// Try at most so many outages, and check the best with others: the same answer on every machine
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(100..))]
    trials: Option<u64>,
    /// Judge the advice itself: ask random tasks until N have an answer, and check each with unseen seeds. Each has
    /// --trials [default: 2000], or --seconds
    #[arg(long, value_name = "N", allow_negative_numbers = true, conflicts_with = "file", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    random: Option<u64>,
}

/// The time of a search, if nothing limits it.
const SECONDS: f64 = 50.0;
/// The outages of the search for a random task, if nothing limits it.
const TRIALS: u64 = 2_000;

const EXAMPLES: &str = "\
Examples:
  anabranch advise failover scenarios/advice/signalling.toml
  anabranch advise failover scenarios/advice/signalling.toml --json --seconds 20
  anabranch advise failover scenarios/advice/signalling.toml --trials 5000
  anabranch advise failover --random 50

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

Ctrl-C, SIGTERM or SIGHUP ends the search with the best so far.

Exit status: 0 there is advice, 1 no parameters that were tried meet the budget, 2 the input was wrong. Of random tasks: 1 if fewer than 95 %
of the answers hold their budget.";

pub(super) fn answer(asked: &Arguments) -> u8 {
    let stop = Stop::on_interrupt();
    if let Some(wanted) = asked.random {
        let trials = asked.trials.or_else(|| asked.seconds.is_none().then_some(TRIALS));
        return random::answer(
            wanted,
            &random::Each { trials, seconds: asked.seconds, json: asked.json },
            &stop.asked,
        );
    }
    let Some(file) = &asked.file else { return FAILED };
    let task = match read(file, Kind::Failover, Task::read) {
        Ok(task) => task,
        Err(status) => return status,
    };
    let seconds = asked.seconds.or_else(|| asked.trials.is_none().then_some(SECONDS));
    let answer = watched(&stop.asked, seconds, |watch| search(&task, asked.trials, watch));
    let printed =
        if asked.json { print_json(&as_json(&task, &answer)) } else { print(&as_text(&task, &answer)) };
    match (printed, answer.advice.is_some()) {
        (DONE, false) => FAILED,
        (printed, _) => printed,
    }
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
    table::text(rows)
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

pub(super) fn ms(seconds: f64) -> String {
    format!("{:.0} ms", seconds * 1000.0)
}

pub(super) fn within(judged: &Judged) -> String {
    let percent = |share: f64| share * 100.0;
    let [share, low, high] = [judged.within.share, judged.within.low, judged.within.high].map(percent);
    format!("{share:.1} % [{low:.1}, {high:.1}] of {}", judged.outages)
}
