//! Conditions: only runs in which measures lie within bounds count.

use super::Paper;
use super::text::{Fields, Unit, filled};
use anabranch_sim::scenario::at::{At, Result};

/// A condition for runs: a measure lies within these bounds, the lower one included.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The index of the measure.
    pub measure: usize,
    /// The bounds in the measure's unit.
    pub bounds: [f64; 2],
}

/// Reads the conditions of a claim.
pub(super) fn conditions(at: &At<'_>, fields: &Fields, paper: &Paper) -> Result<Vec<Condition>> {
    let Some(all) = at.get("where") else { return Ok(Vec::new()) };
    let names = || paper.measures.iter().map(|measure| measure.name.as_str());
    let one = |name: &str| {
        let measure =
            names().position(|known| known == name).ok_or_else(|| all.unknown("measure", name, names()))?;
        let at = all.get(name).ok_or_else(|| all.error("this is missing"))?;
        let unit = paper.measures[measure].unit;
        let ends = at.array("the two ends of a range")?;
        match ends.iter().map(|end| level(end, unit, fields)).collect::<Result<Vec<_>>>()?.as_slice() {
            [low, high] if low < high => Ok(Condition { measure, bounds: [*low, *high] }),
            _ => Err(at.error("a range has two ends, the lower one first").hint("[\"1.5 %\", \"2.5 %\"]")),
        }
    };
    all.entries()?.iter().map(|entry| one(&entry.key)).collect()
}

/// A value of a measure: a number, a quantity with unit, or "1.5 %" for a count.
pub(super) fn level(at: &At<'_>, unit: Unit, fields: &Fields) -> Result<f64> {
    if let Some(number) = at.number() {
        return Ok(number);
    }
    let text = filled(at, fields)?;
    let refuse = |(message, hint): (String, String)| at.error(message).hint(hint);
    match text.strip_suffix('%') {
        Some(share) if unit == Unit::Count => unit.read(share).map(|share| share / 100.0).map_err(refuse),
        _ => unit.read(&text).map_err(refuse),
    }
}
