//! `anabranch advise policy`: which retransmission policy and receive buffer suit a pair of paths.

use std::path::PathBuf;

use anabranch_lab::advice::{PairTask, PolicyAnswer, advise_policy, explain_policy};
use anabranch_lab::command::quoted;
use anabranch_lab::kind::Kind;
use anabranch_lab::report::policy_page;
use comfy_table::Table;
use serde_json::{Value, json};

use super::{read, seconds, watched};
use crate::output::{fail, print, print_json};
use crate::place::{Places, keep, write_whole};
use crate::runtime::Stop;
use crate::{DONE, FAILED, table};

#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// The paths and the transfer: a TOML file (docs/advice.md)
    file: PathBuf,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
    /// Write a page with the map of the boundary and the times by receive buffer to this file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Overwrite the page if it exists
    #[arg(long, requires = "report")]
    force: bool,
    /// End after so many seconds with what is known by then
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value = "50", value_parser = seconds)]
    seconds: f64,
}

const EXAMPLES: &str = "\
Examples:
  anabranch advise policy scenarios/advice/pair.toml
  anabranch advise policy scenarios/advice/pair.toml --report pair.html
  anabranch advise policy scenarios/advice/pair.toml --json --seconds 10

A task names two paths, the primary first, and the transfer:
  [[path]]
  name = \"fast\"
  rate = \"10 Mbit/s\"
  delay = \"50 ms\"
  [[path]]
  ...
  [transfer]
  send = \"10 MB\"
  policies = [\"same\", \"alternate\"]

Ctrl-C, SIGTERM or SIGHUP ends the comparison with what is known by then.

Exit status: 0 there is advice, 1 no transfer was complete, 2 the input was wrong.";

pub(super) fn answer(asked: &Arguments) -> u8 {
    let task = match read(&asked.file, Kind::Policy, PairTask::read) {
        Ok(task) => task,
        Err(status) => return status,
    };
    let places = Places::default().reads(&asked.file).file("--report", asked.report.as_ref());
    if let Err(status) = places.check().and_then(|()| keep(&asked.report, asked.force)) {
        return status;
    }
    let answer =
        watched(&Stop::on_interrupt().asked, Some(asked.seconds), |watch| advise_policy(&task, watch));
    let printed =
        if asked.json { print_json(&as_json(&task, &answer)) } else { print(&as_text(&task, &answer)) };
    if let Some(file) = &asked.report {
        let task_file = quoted(&asked.file.display().to_string());
        let command = format!("anabranch advise policy {task_file} --seconds {}", asked.seconds);
        if let Err(error) = write_whole(file, policy_page(&task, &answer, &command)) {
            return fail(format!("cannot write {}: {error}", file.display()));
        }
    }
    match (printed, answer.advice.is_some()) {
        (DONE, false) => FAILED,
        (printed, _) => printed,
    }
}

fn as_json(task: &PairTask, answer: &PolicyAnswer) -> Value {
    let mut object = json!(answer);
    object["text"] = explain_policy(task, answer).into();
    object
}

fn as_text(task: &PairTask, answer: &PolicyAnswer) -> String {
    format!("{}\n\n{}", explain_policy(task, answer), buffers(task, answer))
}

/// One row a receive buffer; `*` is the advice.
fn buffers(task: &PairTask, answer: &PolicyAnswer) -> String {
    let mut rows = Table::new();
    table::style(&mut rows);
    let names = task.transfer.policies.iter().map(String::as_str);
    rows.set_header(["", "receive buffer"].into_iter().chain(names));
    let advised = answer.advice.as_ref().map(|advice| advice.receive_buffer);
    for row in &answer.buffers {
        let times = row.policies.iter().map(|policy| match (policy.completion, policy.ci95) {
            (Some(time), Some(half)) => format!("{time:.2} ± {half:.2} s"),
            (Some(time), None) => format!("{time:.2} s"),
            (None, _) => "not complete".to_owned(),
        });
        let mark = if advised == Some(row.receive_buffer) { "*" } else { "" };
        rows.add_row([mark.to_owned(), format!("{} B", row.receive_buffer)].into_iter().chain(times));
    }
    table::text(rows)
}
