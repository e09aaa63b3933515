//! Claims about all rows of a table together: the mean over them, and in how many of them one edit is worse than the
//! others.

use super::Paper;
use super::claim::{Case, Form, experiment_of};
use super::judge::VariantValues;
use super::plan::{mean, ratio, ratio_error, unknown};
use super::read::{edits, over};
use super::text::{Fields, fill, filled};
use crate::grid::Variation;
use crate::statistics::Summary;
use anabranch_sim::scenario::at::{At, Result};

/// Rows that a note names, at most.
const NAMED: usize = 20;

/// A row of such a claim.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolRow {
    /// What a note calls it: its cell in the column `row`, if there is one, or its number.
    pub name: String,
    /// The edits of the experiment and of the claim.
    pub edits: [Vec<String>; 2],
    /// The edits that are compared.
    pub over: Variation,
}

/// Whether the claim at `at` is about all rows of its table together.
pub(super) fn is_pooled(at: &At<'_>) -> bool {
    at.get("form").is_some_and(|form| matches!(form.string(), Ok("means" | "worse")))
}

impl Form {
    /// Whether it is about all rows of a table together.
    pub(super) fn is_pooled(&self) -> bool {
        matches!(self, Form::Means { .. } | Form::Worse { .. })
    }
}

/// What the claim says of the row with these fields.
pub(super) fn row(at: &At<'_>, number: usize, fields: &Fields, paper: &Paper) -> Result<PoolRow> {
    let needed = |key: &str| at.get(key).ok_or_else(|| at.error_below(key, "this key is missing"));
    let experiment = needed("experiment")?;
    let set = &paper.experiments[experiment_of(&experiment, fields, paper)?].set;
    let fill_all = |at: &At<'_>, texts: &[String]| -> Result<Vec<String>> {
        let refuse = |(message, hint): (String, String)| at.error(message).hint(hint);
        texts.iter().map(|text| fill(text, fields).map_err(refuse)).collect()
    };
    let own = at.get("set").map_or(Ok(Vec::new()), |at| edits(&at).and_then(|set| fill_all(&at, &set)))?;
    let over_at = needed("over")?;
    Ok(PoolRow {
        name: fields.get("row").cloned().unwrap_or_else(|| (number + 1).to_string()),
        edits: [fill_all(&experiment, set)?, own],
        over: over(&over_at, &filled(&over_at, fields)?)?,
    })
}

/// How many of the rows are run, as the claim says.
pub(super) fn first(at: &At<'_>, rows: usize) -> Result<usize> {
    at.get("first").map_or(Ok(rows), |at| Ok((at.count(1..=1_000_000_u32)? as usize).min(rows)))
}

/// Reads the form `worse`.
pub(super) fn worse(at: &At<'_>, over_at: &At<'_>, over: &Variation, measure: usize) -> Result<Form> {
    if over.values.len() < 2 {
        return Err(over_at
            .error("`worse` compares the first value with others, and there is no other")
            .hint("give two values at least"));
    }
    let factor = at.get("factor").ok_or_else(|| at.error_below("factor", "this key is missing"))?;
    match factor.number() {
        Some(number) if number >= 1.0 && number.is_finite() => Ok(Form::Worse { measure, factor: number }),
        _ => Err(factor.error("expected a number from 1 on").hint("1.2 for a fifth more")),
    }
}

/// What the rows say: the values of the measure by row, each with one for every value of `over`.
pub(super) fn seen(case: &Case, variant: usize, rows: &[Vec<Option<f64>>]) -> VariantValues {
    let column = |n: usize| rows.iter().map(|row| row.get(n).copied().flatten()).collect::<Vec<_>>();
    let columns: Vec<Vec<Option<f64>>> = (0..case.pool[0].over.values.len()).map(column).collect();
    let known =
        |values: &Vec<Option<f64>>| Summary::of(&values.iter().flatten().copied().collect::<Vec<_>>());
    let (value, error, note) = match (&case.form, columns.as_slice()) {
        (Form::Worse { factor, .. }, _) => share(case, rows, *factor),
        (_, [first, second]) => (ratio(mean(first), mean(second)), ratio_error(first, second), None),
        _ => (None, None, None),
    };
    let note = note.or_else(|| unknown(columns.iter().flatten()));
    VariantValues {
        variant,
        values: vec![value],
        samples: columns.iter().map(known).collect(),
        error,
        interval: None,
        curve: None,
        note,
        never: columns.iter().flatten().all(Option::is_none),
    }
}

/// The share of the rows in which the first value is more than `factor` times the least of the others, its standard
/// error, and which they are.
fn share(case: &Case, rows: &[Vec<Option<f64>>], factor: f64) -> (Option<f64>, Option<f64>, Option<String>) {
    // A run without a value, such as a transfer that was never complete, is the worst that there is.
    let value = |value: &Option<f64>| value.unwrap_or(f64::INFINITY);
    let without = rows.iter().filter(|row| row.iter().all(Option::is_none)).count();
    if without > 0 {
        let note = format!("{without} of {} rows have no value under any of the edits", rows.len());
        return (None, None, Some(note));
    }
    let times = |row: &Vec<Option<f64>>| {
        let least = row[1..].iter().map(value).fold(f64::INFINITY, f64::min);
        value(&row[0]) / least
    };
    let mut worse: Vec<(f64, &str)> = rows
        .iter()
        .zip(&case.pool)
        .map(|(row, of)| (times(row), of.name.as_str()))
        .filter(|(times, _)| *times > factor)
        .collect();
    worse.sort_by(|a, b| b.0.total_cmp(&a.0));
    let share = worse.len() as f64 / rows.len() as f64;
    let error = (share * (1.0 - share) / rows.len() as f64).sqrt();
    let named: Vec<String> =
        worse.iter().take(NAMED).map(|(times, name)| format!("{name} ({times:.2})")).collect();
    let more = if worse.len() > NAMED { ", …" } else { "" };
    let note = (!worse.is_empty())
        .then(|| format!("{} of {} rows: {}{more}", worse.len(), rows.len(), named.join(", ")));
    (Some(share), Some(error), note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{Bounds, Unit};

    fn case(form: Form, over: &str, rows: usize) -> Case {
        let over: Variation = over.parse().unwrap();
        let row = |n: usize| PoolRow { name: format!("r{n}"), edits: [vec![], vec![]], over: over.clone() };
        Case {
            id: String::new(),
            source: String::new(),
            form,
            experiment: 0,
            variant: 0,
            beside: false,
            along: Vec::new(),
            edits: [vec![], vec![]],
            pool: (0..rows).map(row).collect(),
            rows,
            conditions: Vec::new(),
            unit: Unit::Count,
            published: Vec::new(),
            within: Vec::new(),
            bounds: Bounds::default(),
            expected: true,
            reason: None,
        }
    }

    #[test]
    fn rows_that_are_worse_than_the_best_of_the_others_are_counted_and_named() {
        let rows = vec![
            vec![Some(1.0), Some(1.0), Some(5.0)],
            vec![Some(1.3), Some(2.0), Some(1.0)],
            vec![Some(1.2), Some(1.0), Some(1.0)],
            vec![None, Some(1.0), Some(1.0)],
        ];
        let seen = seen(&case(Form::Worse { measure: 0, factor: 1.2 }, "key=a,b,c", 4), 0, &rows);
        assert_eq!(seen.values, [Some(0.5)]);
        assert_eq!(seen.note.as_deref(), Some("2 of 4 rows: r3 (inf), r1 (1.30)"));
    }

    #[test]
    fn a_row_without_any_value_is_no_row_that_is_as_good() {
        let rows = vec![vec![Some(1.0), Some(1.0)], vec![None, None]];
        let seen = seen(&case(Form::Worse { measure: 0, factor: 1.2 }, "key=a,b", 2), 0, &rows);
        assert_eq!(seen.values, [None]);
        assert_eq!(seen.note.as_deref(), Some("1 of 2 rows have no value under any of the edits"));
    }

    #[test]
    fn means_are_taken_over_the_rows() {
        let rows = vec![vec![Some(1.0), Some(2.0)], vec![Some(5.0), Some(2.0)]];
        let seen = seen(&case(Form::Means { measure: 0 }, "key=a,b", 2), 0, &rows);
        assert_eq!(seen.values, [Some(1.5)]);
    }
}
