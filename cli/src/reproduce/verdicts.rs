//! Verdicts as a table for people: one row per claim.

use anabranch_lab::claims::{Cell, Outcome, Paper, Unit};
use comfy_table::{CellAlignment, Table};

use crate::table;

/// One table for each source in the paper, and below it the claims that do not hold, with reasons.
pub(super) fn table(paper: &Paper, outcomes: &[Outcome]) -> String {
    let others: Vec<&str> = paper.variants[1..].iter().map(|variant| variant.name.as_str()).collect();
    let sources = outcomes.chunk_by(|one, next| one.source == next.source);
    let tables =
        sources.map(|outcomes| format!("\n{}\n{}", outcomes[0].source, of_source(paper, outcomes, &others)));
    let reasons = outcomes.iter().filter_map(reason);
    tables.chain(std::iter::once(String::new())).chain(reasons).collect::<Vec<_>>().join("\n")
}

/// The claims of one source. Empty columns are left out.
fn of_source(paper: &Paper, outcomes: &[Outcome], others: &[&str]) -> String {
    let titles = || paper.references.iter().map(|reference| reference.title.clone());
    let mut header = vec!["claim".to_owned()];
    header.extend(titles());
    header.push("Anabranch".to_owned());
    header.extend(titles().map(|title| format!("to {title}")));
    header.extend(others.iter().map(|other| (*other).to_owned()));
    header.push("verdict".to_owned());
    let rows: Vec<Vec<String>> = outcomes.iter().map(|outcome| row(outcome, others)).collect();
    let kept: Vec<usize> = (0..header.len()).filter(|i| rows.iter().any(|row| !row[*i].is_empty())).collect();
    let mut table = Table::new();
    table::style(&mut table);
    table.set_header(kept.iter().map(|i| header[*i].clone()));
    for row in rows {
        table.add_row(kept.iter().map(|i| row[*i].clone()));
    }
    // The columns between the claim and the verdict hold numbers.
    for column in table.column_iter_mut().take(kept.len() - 1).skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table::text(table)
}

/// The number of claims with each verdict.
pub(super) fn summary(outcomes: &[Outcome]) -> String {
    let holding = outcomes.iter().filter(|outcome| outcome.holds).count();
    let surprises: Vec<_> = outcomes.iter().filter(|outcome| !outcome.as_expected()).collect();
    let mut text = format!(
        "{} claims: {holding} hold, {} do not, {} not as expected",
        outcomes.len(),
        outcomes.len() - holding,
        surprises.len()
    );
    if !surprises.is_empty() {
        let ids: Vec<_> = surprises.iter().map(|outcome| outcome.id.as_str()).collect();
        text += &format!(": {}", ids.join(", "));
    }
    text
}

fn row(outcome: &Outcome, others: &[&str]) -> Vec<String> {
    let published = |cells: &[Cell]| shown(outcome, cells.iter().map(|cell| Some(cell.number())));
    let difference = |to| outcome.difference(to).map_or_else(String::new, percent);
    let mut row = vec![outcome.id.clone()];
    row.extend(outcome.published.iter().map(|(_, said)| published(&said.values)));
    // A claim under a variant other than the first has its value in the column of that variant.
    row.push(if is_other(outcome, others) { first(outcome) } else { own(outcome) });
    let references = 0..outcome.published.len();
    row.extend(references.map(|to| if is_other(outcome, others) { String::new() } else { difference(to) }));
    row.extend(others.iter().map(|name| match outcome.beside.iter().find(|(other, _)| other == name) {
        Some((_, values)) => shown(outcome, values.iter().map(|value| Some(*value))),
        None if outcome.variant == *name => own(outcome),
        None => String::new(),
    }));
    row.push(verdict(outcome).to_owned());
    row
}

fn is_other(outcome: &Outcome, others: &[&str]) -> bool {
    others.contains(&outcome.variant.as_str())
}

fn own(outcome: &Outcome) -> String {
    let value = shown(outcome, outcome.values.iter().map(|value| Some(*value)));
    match outcome.samples.as_slice() {
        // Half of the 95 % interval of the mean.
        [sample] if sample.n > 1 && outcome.is_known() => {
            let half = sample.ci95.zip(sample.mean).map(|(half, mean)| beside(half, mean, outcome.unit));
            format!("{value} ± {}", half.unwrap_or_else(|| "unknown".to_owned()))
        }
        _ => value,
    }
}

/// The value under the first variant, which is shown beside a claim under another variant.
fn first(outcome: &Outcome) -> String {
    let values = outcome.beside.first().map(|(_, values)| values.clone()).unwrap_or_default();
    shown(outcome, values.into_iter().map(Some))
}

fn verdict(outcome: &Outcome) -> &'static str {
    match (outcome.holds, outcome.expected) {
        (false, false) if !outcome.is_known() => "HAS NO VALUE",
        (true, true) => "holds",
        (false, false) => "does not, as expected",
        (false, true) => "DOES NOT HOLD",
        (true, false) => "HOLDS, NOT EXPECTED",
    }
}

/// Why a claim does not hold, and remarks on its value.
fn reason(outcome: &Outcome) -> Option<String> {
    let said: Vec<_> = outcome.note.iter().chain(&outcome.reason).cloned().collect();
    (!said.is_empty()).then(|| format!("{}: {}", outcome.id, said.join("; ")))
}

/// Values in the claim's unit. Several values have the signs of their order between them.
fn shown(outcome: &Outcome, values: impl Iterator<Item = Option<Option<f64>>>) -> String {
    let values: Vec<Option<f64>> = values.flatten().collect();
    if outcome.form == "sequence" {
        return outcome.in_order(&values);
    }
    let short =
        |value: &Option<f64>| if values.len() > 2 { brief(*value) } else { number(*value, outcome.unit) };
    let texts: Vec<String> = values.iter().map(short).collect();
    let mut text = String::new();
    for (i, value) in texts.iter().enumerate() {
        if i > 0 {
            text += match values[i - 1].partial_cmp(&values[i]) {
                Some(std::cmp::Ordering::Less) => " < ",
                Some(std::cmp::Ordering::Greater) => " > ",
                _ => " = ",
            };
        }
        text += value;
    }
    let unit = outcome.unit.symbol();
    let no_unit = unit.is_empty() || outcome.unit == Unit::Rate || values.iter().all(Option::is_none);
    if no_unit { text } else { format!("{text} {unit}") }
}

fn number(value: Option<f64>, unit: Unit) -> String {
    value.map_or_else(|| "never".to_owned(), |value| digits(value, value, unit))
}

/// Half of an interval, with the unit and the digits of its mean.
fn beside(half: f64, mean: f64, unit: Unit) -> String {
    let text = digits(half, mean, unit);
    if unit == Unit::Rate { text } else { format!("{text} {}", unit.symbol()).trim_end().to_owned() }
}

/// A value with the digits that a number as large as `size` has.
fn digits(value: f64, size: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => format!("{value:.0}"),
        Unit::Rate if size >= 1e6 => format!("{:.4} Mbit/s", value / 1e6),
        Unit::Rate => format!("{:.2} kbit/s", value / 1e3),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Count => format!("{value:.4}"),
        Unit::Seconds if size >= 1000.0 => format!("{value:.2}"),
        Unit::Seconds if size >= 2.0 || size == 0.0 => format!("{value:.3}"),
        Unit::Seconds => format!("{value:.6}"),
    }
}

/// One of many values: one decimal is enough to see the order.
fn brief(value: Option<f64>) -> String {
    value.map_or_else(|| "never".to_owned(), |value| format!("{value:.1}"))
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent.abs() < 5e-5 {
        return "0 %".to_owned();
    }
    if percent.abs() >= 0.1 { format!("{percent:+.2} %") } else { format!("{percent:+.4} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_an_interval_has_the_digits_of_its_mean() {
        let halves = [
            beside(0.497_819, 19.359, Unit::Seconds),
            beside(464_911.0, 2_336_000.0, Unit::Rate),
            beside(0.5, 14.0, Unit::Count),
            beside(0.000_5, 0.25, Unit::Seconds),
        ];
        assert_eq!(halves, ["0.498 s", "0.4649 Mbit/s", "0.5000", "0.000500 s"]);
    }
}
