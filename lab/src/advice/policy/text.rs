//! The answer in words.

use super::super::search::Ended;
use super::search::TOLERANCE;
use super::{Edge, PairTask, PolicyAdvice, PolicyAnswer};

/// The advice, its margin, and where it changes.
pub fn explain_policy(task: &PairTask, answer: &PolicyAnswer) -> String {
    let mut text = vec![format!(
        "Asked: {} of user data over `{}`, with `{}` as the alternate path.",
        bytes(task.transfer.send as f64),
        task.paths[0].name,
        task.paths[1].name
    )];
    match answer.ended {
        Ended::Complete => {}
        Ended::Stopped => text.push("The comparison was stopped: this is what was known by then.".to_owned()),
        // Only a search for a failover has a limit of trials.
        Ended::TimeOver | Ended::TrialsOver => text.push(
            "The time for the comparison was over: this is what was known by then. --seconds allows more."
                .to_owned(),
        ),
    }
    match &answer.advice {
        None => text.push("There is no advice: no transfer was complete.".to_owned()),
        Some(advice) => text.extend([advised(advice), edges(answer), model(task, answer)]),
    }
    text.retain(|line| !line.is_empty());
    text.join("\n")
}

fn advised(advice: &PolicyAdvice) -> String {
    format!(
        "Advice: retransmissions by `{}`, and a receive buffer of {}: {:.2} s. {}. A larger buffer is at most 5 % faster.",
        advice.policy,
        bytes(advice.receive_buffer as f64),
        advice.completion,
        beside(advice)
    )
}

/// The next policy, and whether the seeds decide between the two.
fn beside(advice: &PolicyAdvice) -> String {
    let interval = advice.margin_ci95.map_or(String::new(), |half| format!(" ± {:.1}", half * 100.0));
    let next = &advice.next;
    match advice.margin {
        None => format!("`{next}`, the next, did not complete every transfer"),
        Some(margin) if !advice.decided => {
            let seeds = match advice.seeds {
                1 => "One seed does".to_owned(),
                seeds => format!("{seeds} seeds do"),
            };
            let longer = if margin < 0.0 { "less" } else { "longer" };
            let percent = margin.abs() * 100.0;
            format!(
                "{seeds} not decide whether `{next}`, the next, is slower or faster: it takes {percent:.1}{interval} % {longer}"
            )
        }
        Some(margin) if margin.abs() <= TOLERANCE => {
            format!("`{next}` takes as long ({:+.1}{interval} %)", margin * 100.0)
        }
        Some(margin) => format!("`{next}`, the next, takes {:.1}{interval} % longer", margin * 100.0),
    }
}

fn edges(answer: &PolicyAnswer) -> String {
    let near: Vec<String> = answer.edges.iter().filter_map(edge).collect();
    match near.is_empty() {
        true if answer.edges.is_empty() => String::new(),
        true => "No change of a single quantity was found that makes another policy faster by more than 2 %. Losses were changed from 0 to 10 %, other quantities multiplied and divided by up to 16.".to_owned(),
        false => format!("Another policy is faster by more than 2 % if one of these changes alone:\n{}", near.join("\n")),
    }
}

fn edge(edge: &Edge) -> Option<String> {
    let side = |found: &Option<(f64, String)>, word: &str| {
        let (at, policy) = found.as_ref()?;
        Some(format!("`{policy}` when it {word} to {}", shown(*at, edge.quantity.unit)))
    };
    let sides: Vec<_> =
        [side(&edge.below, "falls"), side(&edge.above, "rises")].into_iter().flatten().collect();
    let name = edge.name();
    (!sides.is_empty())
        .then(|| format!("  {name} (now {}): {}", shown(edge.now, edge.quantity.unit), sides.join("; ")))
}

fn model(task: &PairTask, answer: &PolicyAnswer) -> String {
    let rate = task.paths[1].rate as f64;
    let Some(least) = answer.model_least_secondary else {
        return "By equation (8) of the model of receive buffer blocking, retransmissions on the alternate path fill this buffer, whatever the rate of that path.".to_owned();
    };
    format!(
        "By equation (8) of the model of receive buffer blocking, retransmissions fill this buffer if the alternate path has less than {}; `{}` has {}.",
        shown(least, "bit/s"),
        task.paths[1].name,
        shown(rate, "bit/s")
    )
}

impl Edge {
    /// The quantity in words.
    pub fn name(&self) -> String {
        match &self.quantity.path {
            Some(path) => format!("{} of `{path}`", self.quantity.what),
            None => "receive buffer".to_owned(),
        }
    }
}

/// A value with its unit.
pub(crate) fn shown(value: f64, unit: &str) -> String {
    match unit {
        "bit/s" if value >= 1e6 => format!("{} Mbit/s", digits(value / 1e6)),
        "bit/s" => format!("{} kbit/s", digits(value / 1e3)),
        "s" => format!("{} ms", digits(value * 1e3)),
        "B" => bytes(value),
        "1" => format!("{} %", digits(value * 100.0)),
        unit => format!("{value:.0} {unit}"),
    }
}

fn bytes(value: f64) -> String {
    if value >= 1e6 { format!("{} MB", digits(value / 1e6)) } else { format!("{} kB", digits(value / 1e3)) }
}

/// Three digits that count.
fn digits(value: f64) -> String {
    let places = (2.0 - libm::floor(libm::log10(value.abs().max(1e-9)))).clamp(0.0, 6.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_that_is_never_complete_has_no_margin() {
        let mut advice = PolicyAdvice {
            policy: "same".to_owned(),
            receive_buffer: 64_000,
            completion: 1.5,
            next: "alternate".to_owned(),
            margin: None,
            margin_ci95: None,
            seeds: 1,
            decided: true,
        };
        assert!(
            advised(&advice).contains("1.50 s. `alternate`, the next, did not complete every transfer. ")
        );
        advice.margin = Some(0.253);
        assert!(advised(&advice).contains("takes 25.3 % longer"));
        (advice.margin_ci95, advice.seeds, advice.decided) = (Some(0.3), 120, false);
        let text = advised(&advice);
        let wanted = "120 seeds do not decide whether `alternate`, the next, is slower or faster: it takes 25.3 ± 30.0 % longer";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn values_have_three_digits_and_their_unit() {
        for (value, unit, text) in [
            (384e3, "bit/s", "384 kbit/s"),
            (4.864_2e6, "bit/s", "4.86 Mbit/s"),
            (0.05, "s", "50 ms"),
            (64_000.0, "B", "64 kB"),
            (0.003, "1", "0.3 %"),
            (50.0, "packets", "50 packets"),
            (0.0, "1", "0 %"),
        ] {
            assert_eq!(shown(value, unit), text);
        }
    }
}
