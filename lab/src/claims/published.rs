//! Values of references: numbers, columns of a table, standard errors.

use super::Reference;
use super::rows::Row;
use super::text::{Fields, filled};
use anabranch_sim::scenario::at::{At, Result};

/// The values that a reference states for a claim.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Published {
    /// One value for each compared value, or none.
    pub values: Vec<Cell>,
    /// The standard error of its value, if the value is the mean of a sample.
    pub error: Option<f64>,
    /// The standard deviation and the size of that sample, if known.
    pub sample: Option<(f64, f64)>,
}

/// A published value.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Cell {
    /// A number, in the claim's unit.
    Number(f64),
    /// The event does not occur: `-` in a table.
    Never,
}

/// The values of the reference `name` for the claim at `at`.
pub(super) fn published(at: &At<'_>, name: &str, fields: &Fields, row: Option<&Row>) -> Result<Published> {
    let values = at.get(name).map_or(Ok(Vec::new()), |at| cells(&at, fields, row))?;
    let given = at.get("errors").and_then(|errors| errors.get(name));
    if let Some((sd, n)) = given.as_ref().and_then(|at| at.get("sd").zip(at.get("n"))) {
        let sample = match (cell(&sd, fields, row)?, cell(&n, fields, row)?) {
            (Some(Cell::Number(sd)), Some(Cell::Number(n))) if sd >= 0.0 && n >= 2.0 => Some((sd, n)),
            (None, None) => None,
            _ => {
                let message =
                    "a sample has a standard deviation `sd`, zero or more, and a size `n`, two or more";
                return Err(at.error_below("errors", message).hint("an empty cell for both: not published"));
            }
        };
        let error = sample.map(|(sd, n)| sd / n.sqrt());
        return Ok(Published { values, error, sample });
    }
    let error = match given {
        None => None,
        Some(error) => match cell(&error, fields, row)? {
            Some(Cell::Number(number)) if number >= 0.0 => Some(number),
            Some(_) => return Err(error.error("a standard error is a number, zero or more")),
            None => None,
        },
    };
    Ok(Published { values, error, sample: None })
}

/// Checks that the claim at `at` has a value of each reference whose standard error it states.
pub(super) fn errors_have_values(at: &At<'_>, references: &[Reference]) -> Result<()> {
    let Some(errors) = at.get("errors") else { return Ok(()) };
    for entry in errors.entries()? {
        let known = |reference: &Reference| reference.name == entry.key;
        match errors.get(&entry.key) {
            Some(error) if !references.iter().any(known) => {
                let names = references.iter().map(|reference| reference.name.as_str());
                return Err(error.unknown("reference", &entry.key, names));
            }
            Some(error) if at.get(&entry.key).is_none() => {
                let message = format!("the claim has no `{}` whose standard error this could be", entry.key);
                return Err(error.error(message));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The published values at `at`; empty if a cell is empty.
fn cells(at: &At<'_>, fields: &Fields, row: Option<&Row>) -> Result<Vec<Cell>> {
    let items = if at.is_array() { at.array("an array")? } else { vec![at.clone()] };
    let cells: Vec<Option<Cell>> = items.iter().map(|at| cell(at, fields, row)).collect::<Result<_>>()?;
    Ok(cells.into_iter().collect::<Option<_>>().unwrap_or_default())
}

fn cell(at: &At<'_>, fields: &Fields, row: Option<&Row>) -> Result<Option<Cell>> {
    if let Some(number) = at.number() {
        return match number.is_finite() {
            true => Ok(Some(Cell::Number(number))),
            false => Err(at
                .error("a published value is finite")
                .hint("\"-\" in a table stands for an event that does not occur")),
        };
    }
    let column = filled(at, fields)?;
    let Some(row) = row else {
        return Err(at
            .error("the claim has no table (`rows`) from which this could be taken")
            .hint("give a number, or `rows`"));
    };
    let columns = || row.cells.keys().map(String::as_str);
    let text = row.cells.get(&column).ok_or_else(|| at.unknown("column", &column, columns()))?;
    match text.as_str() {
        "" => Ok(None),
        "-" => Ok(Some(Cell::Never)),
        // Within any tolerance of infinity is everything.
        text => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(Cell::Number(number))),
            _ => Err(row.error(&column, format!("`{text}` is neither a number nor `-`"))),
        },
    }
}
