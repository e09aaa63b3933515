//! `anabranch advise failover --random`: random tasks, by which the advice itself is judged.

use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_lab::advice::{Ended, Judged, Tried};
use serde_json::{Value, json};

use super::failover::{ms, within};
use super::watched;
use crate::output::{note, print};
use crate::{DONE, FAILED};

/// What each task gets.
pub(super) struct Each {
    /// Outages of its search.
    pub(super) trials: Option<u64>,
    /// Seconds of its search.
    pub(super) seconds: Option<f64>,
    /// Whether to print JSON.
    pub(super) json: bool,
}

/// Of the answers this share has to hold.
const HOLD: f64 = 0.95;

/// Asks random tasks until so many have an answer, and prints each as soon as it is known.
pub(super) fn answer(wanted: u64, each: &Each, stop: &AtomicBool) -> u8 {
    let mut sums = Sums::default();
    let mut printed = if each.json { DONE } else { print(&head()) };
    for number in 0.. {
        if sums.answers.1 >= wanted || stop.load(Ordering::Relaxed) || printed != DONE {
            break;
        }
        let tried = watched(stop, each.seconds, |watch| Tried::random(number, each.trials, watch));
        if stop.load(Ordering::Relaxed) {
            break;
        }
        sums.count(&tried);
        printed = match each.json {
            // An array, one task a line.
            true => print(&format!("{}{}", if number == 0 { "[" } else { "," }, as_json(number, &tried))),
            false => print(&row(number, &tried)),
        };
    }
    if printed == DONE {
        printed = match (each.json, sums.tasks) {
            (true, 0) => print("[]"),
            (true, _) => print("]"),
            (false, _) => print(&format!("\n{}", sums.text())),
        };
    }
    if each.json {
        note(sums.text());
    }
    let (held, answers) = sums.answers;
    match printed {
        DONE if (held as f64) < HOLD * answers as f64 || answers < wanted => FAILED,
        printed => printed,
    }
}

/// What holds, of how many.
#[derive(Default)]
struct Sums {
    tasks: u64,
    answers: (u64, u64),
    formulas: (u64, u64),
    /// Searches that ended before they were complete.
    cut: u64,
}

impl Sums {
    fn count(&mut self, tried: &Tried) {
        let add = |sum: &mut (u64, u64), holds: Option<bool>| {
            *sum = (sum.0 + u64::from(holds == Some(true)), sum.1 + u64::from(holds.is_some()));
        };
        self.tasks += 1;
        add(&mut self.answers, tried.holds());
        add(&mut self.formulas, tried.formula.as_ref().map(|judged| judged.holds));
        self.cut += u64::from(tried.answer.ended != Ended::Complete);
    }

    fn text(&self) -> String {
        let Sums { tasks, answers: (held, answers), formulas: (formula_held, formulas), cut } = self;
        format!(
            "{tasks} tasks, {answers} with an answer: {held} of {answers} answers hold their budget on unseen seeds; what the classical formula alone advises holds in {formula_held} of {formulas}. In {cut} tasks the search ended before every candidate was tried to the end."
        )
    }
}

fn as_json(number: u64, tried: &Tried) -> Value {
    json!({
        "number": number,
        "task": tried.task.text(),
        "advice": tried.answer.advice,
        "checked": tried.answer.checked,
        "ended": tried.answer.ended,
        "formula": tried.formula,
    })
}

/// The columns: a header, and a width. Rows are printed as they come, so no width depends on a later row.
const COLUMNS: [(&str, usize); 9] = [
    ("task", 4),
    ("budget", 17),
    ("RTO.Min, errors", 15),
    ("formula", 8),
    ("new data", 8),
    ("within, unseen seeds", 30),
    ("holds", 5),
    ("by formula alone", 16),
    ("holds", 5),
];

fn head() -> String {
    line(&COLUMNS.map(|(title, _)| title.to_owned()))
}

fn line(cells: &[String; 9]) -> String {
    let padded = cells.iter().zip(COLUMNS).map(|(cell, (_, width))| format!("{cell:width$}"));
    padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

fn row(number: u64, tried: &Tried) -> String {
    let budget = &tried.task.budget;
    let asked = format!("{} ms in {:.0} %", budget.new_data.as_millis(), budget.outages * 100.0);
    let says = |judged: &Judged| if judged.holds { "yes" } else { "NO" }.to_owned();
    let advised =
        |judged: &Judged| format!("{} ms, {}", judged.parameters.rto_min, judged.parameters.errors());
    let [formula, formula_holds] =
        tried.formula.as_ref().map_or_else(Default::default, |judged| [advised(judged), says(judged)]);
    let [parameters, classical, new_data, share, holds] = match &tried.answer.checked {
        None => ["none", "", "", "", ""].map(str::to_owned),
        Some(checked) => [
            advised(checked),
            ms(checked.classical),
            checked.new_data.map_or("longer".to_owned(), ms),
            within(checked),
            says(checked),
        ],
    };
    let task = number.to_string();
    line(&[task, asked, parameters, classical, new_data, share, holds, formula, formula_holds])
}
