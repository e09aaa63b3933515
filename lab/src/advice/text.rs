//! The answer in words.

use super::{Answer, Ended, Judged, Task};

/// The advice, why it is the advice, and how sure it is.
pub fn explain(task: &Task, answer: &Answer) -> String {
    let budget = &task.budget;
    let asked = format!(
        "Asked: new data on another path within {} ms in {} % of outages, and at most {} false failovers in {} days.",
        budget.new_data.as_millis(),
        budget.outages * 100.0,
        budget.false_failovers,
        budget.per.as_secs() as f64 / 86_400.0
    );
    let mut text = vec![asked];
    match answer.ended {
        Ended::Complete => {}
        Ended::Stopped => text.push("The search was stopped: this is the best so far.".to_owned()),
        Ended::TimeOver => text.push(
            "The time for the search was over before every candidate was tried to the end: this is the best so far. --seconds allows more."
                .to_owned(),
        ),
        Ended::TrialsOver => text.push(
            "The outages that the search may try were not enough to try every candidate to the end: this is the best so far. --trials allows more."
                .to_owned(),
        ),
    }
    match &answer.advice {
        None => text.push(none(task, answer)),
        Some(advice) => {
            text.push(trade(advice));
            let round_trip = task.round_trip().as_millis();
            text.push(format!(
                "RTO.Min of {} ms is above the SACK delay of {} ms and the round trip of {round_trip} ms together, so that a delayed SACK is no timeout.",
                advice.parameters.rto_min, advice.parameters.sack_delay
            ));
            text.push(checked(answer.checked.as_ref()));
        }
    }
    text.join("\n")
}

fn none(task: &Task, answer: &Answer) -> String {
    let nearest = answer.front.iter().find(|judged| judged.within.share >= task.budget.outages);
    match (answer.front.is_empty(), nearest) {
        (true, _) if answer.candidates == 0 => "No parameters meet it: a single timeout already takes longer. Allow more time, or shorten the round trip.".to_owned(),
        (true, _) if matches!(answer.ended, Ended::TimeOver | Ended::Stopped) => {
            "No candidate that was tried is fast enough.".to_owned()
        }
        (true, _) | (_, None) => "No parameters meet it: none is fast enough in so many outages. Allow more time, or a smaller share.".to_owned(),
        (_, Some(judged)) => format!(
            "No parameters meet it: the most patient that are fast enough have up to {:.1} false failovers. Allow more time or more false failovers.",
            judged.false_failovers_high
        ),
    }
}

fn trade(advice: &Judged) -> String {
    let errors = advice.parameters.errors();
    let times = if errors == 1 { "one timeout".to_owned() } else { format!("{errors} timeouts in a row") };
    let found = advice.new_data.unwrap_or_default() * 1000.0;
    format!(
        "New data leaves a path after {times}. The classical formula, the sum of the RTO doublings from RTO.Min, says {:.0} ms; in the simulator it was {found:.0} ms at most in the share asked for. The two differ because RTO follows the round trip, and because T3-rtx starts with the last acknowledgement, not with the outage. Fewer errors or a smaller RTO.Min would be faster, and take more losses for outages: here {:.2} false failovers are expected, {:.2} at most (95 %).",
        advice.classical * 1000.0,
        advice.false_failovers,
        advice.false_failovers_high
    )
}

fn checked(checked: Option<&Judged>) -> String {
    let Some(judged) = checked else { return "It was not checked with other seeds.".to_owned() };
    format!(
        "Checked with {} outages that the search has not seen: {:.2} % within the budget (95 % interval {:.2} to {:.2} %), the longest {:.0} ms. {}",
        judged.outages,
        judged.within.share * 100.0,
        judged.within.low * 100.0,
        judged.within.high * 100.0,
        judged.longest.map_or(f64::NAN, |longest| longest * 1000.0),
        if judged.holds { "The budget holds." } else { "The budget does NOT hold: allow more time." }
    )
}
