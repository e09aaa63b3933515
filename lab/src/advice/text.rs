//! The answer in words.

use std::time::Duration;

use anabranch_proto::written;

use super::{Answer, Ended, Judged, Task};

/// The advice, why it is the advice, and how sure it is.
pub fn explain(task: &Task, answer: &Answer) -> String {
    let budget = &task.budget;
    let asked = format!(
        "Asked: new data on another path within {} in {} % of outages, and at most {} in {}.",
        written(budget.new_data),
        percent(budget.outages),
        failovers(budget.false_failovers),
        period(budget.per)
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
            text.push(checked(task, answer.checked.as_ref()));
        }
    }
    text.join("\n")
}

fn none(task: &Task, answer: &Answer) -> String {
    if answer.candidates == 0 {
        return "No parameters meet it: a single timeout already takes longer. Allow more time, or shorten the round trip.".to_owned();
    }
    // The front has the fewest false failovers last.
    let nearest = answer.front.iter().rev().find(|judged| judged.within.share >= task.budget.outages);
    let (why, more) = match nearest {
        None => ("none is fast enough in so many outages".to_owned(), "a smaller share"),
        Some(judged) => {
            let most = judged.false_failovers_high;
            let why = format!("the most patient that are fast enough have up to {most:.1} false failovers");
            (why, "more false failovers")
        }
    };
    // A search that was cut short knows nothing of the parameters that it has not tried, or not often.
    match answer.ended {
        Ended::Complete => format!("No parameters meet it: {why}. Allow more time, or {more}."),
        _ => format!("None of the parameters that were tried meets it: {why}."),
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

fn failovers(count: f64) -> String {
    if count == 1.0 { "1 false failover".to_owned() } else { format!("{count} false failovers") }
}

/// A share as per cent, without what the computation adds to its digits.
fn percent(share: f64) -> f64 {
    libm::round(share * 1e8) / 1e6
}

/// Whole days or hours, otherwise as it is.
fn period(time: Duration) -> String {
    let whole = |unit: u64| {
        Some(time.as_secs() / unit)
            .filter(|_| time.subsec_nanos() == 0 && time.as_secs().is_multiple_of(unit))
    };
    match (whole(86_400), whole(3_600)) {
        (Some(1), _) => "a day".to_owned(),
        (Some(days), _) => format!("{days} days"),
        (_, Some(1)) => "an hour".to_owned(),
        (_, Some(hours)) => format!("{hours} hours"),
        _ => written(time),
    }
}

fn checked(task: &Task, checked: Option<&Judged>) -> String {
    let Some(judged) = checked else { return "It was not checked with other seeds.".to_owned() };
    // Trials end at twice the budget.
    let longest = match judged.longest {
        Some(longest) => format!("{:.0} ms", longest * 1000.0),
        None => format!("more than {}", written(2 * task.budget.new_data)),
    };
    format!(
        "Checked with {} outages that the search has not seen: {:.2} % within the budget (95 % interval {:.2} to {:.2} %), the longest {longest}. {}",
        judged.outages,
        judged.within.share * 100.0,
        judged.within.low * 100.0,
        judged.within.high * 100.0,
        verdict(task, judged)
    )
}

/// What the check says of the budget. It decides if the share that was asked for is outside the interval.
fn verdict(task: &Task, judged: &Judged) -> String {
    let (asked, few) = (task.budget.outages, judged.false_failovers_high <= task.budget.false_failovers);
    if judged.within.low >= asked && few {
        return "The budget holds.".to_owned();
    }
    match judged.within.high < asked || !few {
        true => "The budget does NOT hold: allow more time.".to_owned(),
        false => format!("{} outages do not decide whether the budget holds.", judged.outages),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read::tests::SIGNALLING;
    use super::super::{Candidate, Share};
    use super::*;

    #[test]
    fn shares_and_times_have_the_digits_that_were_asked() {
        assert_eq!([0.57, 0.999, 0.9999, 0.5].map(percent), [57.0, 99.9, 99.99, 50.0]);
        let periods =
            [30 * 86_400, 86_400, 7_200, 3_600, 90].map(|seconds| period(Duration::from_secs(seconds)));
        assert_eq!(
            [1.0, 0.5, 2.0].map(failovers),
            ["1 false failover", "0.5 false failovers", "2 false failovers"]
        );
        assert_eq!(periods, ["30 days", "a day", "2 hours", "an hour", "90 s"]);
    }

    /// A candidate with this share of outages within the budget, and so many false failovers at most.
    fn judged(task: &Task, share: f64, high: f64) -> Judged {
        Judged {
            parameters: Candidate::grid(task)[0],
            classical: 0.1,
            new_data: None,
            longest: None,
            within: Share { share, low: 0.4, high: 1.0 },
            outages: 100,
            false_failovers: 0.0,
            false_failovers_high: high,
            holds: false,
        }
    }

    /// Of those that are fast enough, the one with the fewest false failovers says how far the budget is from it.
    #[test]
    fn without_advice_the_nearest_candidate_is_named() {
        let task = Task::read("t", SIGNALLING).expect("a task");
        let front = [(1.0, 96.7), (1.0, 3.5), (0.5, 0.1)].map(|(share, high)| judged(&task, share, high));
        let mut answer = Answer {
            advice: None,
            checked: None,
            front: front.to_vec(),
            candidates: 9,
            ended: Ended::Complete,
        };
        let text = none(&task, &answer);
        assert!(text.starts_with("No parameters meet it") && text.contains("up to 3.5 "), "{text}");
        answer.front.clear();
        assert!(none(&task, &answer).contains("none is fast enough"));
    }

    #[test]
    fn a_check_decides_only_outside_its_interval() {
        let task = Task::read("t", SIGNALLING).expect("a task");
        let says = |low, high, failovers| {
            let mut judged = judged(&task, f64::midpoint(low, high), failovers);
            (judged.within.low, judged.within.high) = (low, high);
            checked(&task, Some(&judged))
        };
        let few = task.budget.false_failovers;
        assert!(says(0.995, 1.0, few).ends_with("The budget holds."));
        assert!(says(0.985, 0.999, few).ends_with("100 outages do not decide whether the budget holds."));
        assert!(says(0.9, 0.98, few).ends_with("does NOT hold: allow more time."));
        assert!(says(0.995, 1.0, 2.0 * few).ends_with("does NOT hold: allow more time."));
    }

    #[test]
    fn an_outage_that_a_trial_does_not_see_the_end_of_has_a_bound() {
        let task = Task::read("t", SIGNALLING).expect("a task");
        let text = checked(&task, Some(&judged(&task, 0.5, 0.1)));
        assert!(text.contains("the longest more than ") && !text.contains("NaN"), "{text}");
    }
}
