//! `anabranch advise`: which parameters meet a budget.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_lab::advice::{Answer, Judged, Task, Watch, configurations, explain, search};
use comfy_table::Table;
use serde_json::json;

use crate::output::{print, print_json, refuse, refuse_scenario};
use crate::progress::Count;
use crate::{DONE, FAILED, table};

/// What `anabranch advise` takes.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Which timeouts and thresholds bring data to another path in time, and rarely for nothing
    Failover(Failover),
}

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
struct Failover {
    /// Paths, traffic and budget: a TOML file (docs/advice.md)
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch advise failover scenarios/advice/signalling.toml
  anabranch advise failover scenarios/advice/signalling.toml --json

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

Exit status: 0 there is advice, 1 no parameters meet the budget, 2 the input was wrong.";

/// Answers the question, and returns the exit status.
pub(crate) fn advise(arguments: &Arguments) -> u8 {
    let Question::Failover(asked) = &arguments.question;
    let name = asked.file.display().to_string();
    let text = match std::fs::read_to_string(&asked.file) {
        Ok(text) => text,
        Err(error) => return refuse(format!("cannot read {name}: {error}")),
    };
    let task = match Task::read(&name, &text) {
        Ok(task) => task,
        Err(error) => return refuse_scenario(&error),
    };
    let answer = searched(&task);
    let printed = if asked.json { as_json(&task, &answer) } else { print(&as_text(&task, &answer)) };
    match (printed, answer.advice.is_some()) {
        (DONE, false) => FAILED,
        (printed, _) => printed,
    }
}

fn searched(task: &Task) -> Answer {
    let stop = Arc::new(AtomicBool::new(false));
    let handler = stop.clone();
    // Without a handler Ctrl-C ends the process without an answer.
    let _ = ctrlc::set_handler(move || handler.store(true, Ordering::Relaxed));
    let count = Mutex::new(Count::new());
    let progress = |done, all| count.lock().unwrap_or_else(PoisonError::into_inner).at(done, all);
    let answer = search(task, &Watch { stop: &stop, progress: &progress });
    count.lock().unwrap_or_else(PoisonError::into_inner).finish();
    answer
}

fn as_json(task: &Task, answer: &Answer) -> u8 {
    let advised = answer.advice.as_ref().map(|advice| configurations(&advice.parameters));
    let written: serde_json::Map<_, _> = advised
        .into_iter()
        .flatten()
        .map(|(system, text)| (system.to_owned(), serde_json::Value::from(text)))
        .collect();
    print_json(&json!({
        "advice": answer.advice,
        "checked": answer.checked,
        "front": answer.front,
        "candidates": answer.candidates,
        "stopped": answer.stopped,
        "configurations": written,
        "text": explain(task, answer),
    }))
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
    let ms = |seconds: f64| format!("{:.0} ms", seconds * 1000.0);
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
        format!(
            "{:.1} % [{:.1}, {:.1}]",
            judged.within.share * 100.0,
            judged.within.low * 100.0,
            judged.within.high * 100.0
        ),
        format!("{:.2} [to {:.2}]", judged.false_failovers, judged.false_failovers_high),
    ]
}
