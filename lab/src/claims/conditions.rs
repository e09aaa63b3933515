//! Which runs of a sample count: those in which measures lie within bounds.

use super::Paper;
use super::text::{Fields, Unit, filled};
use anabranch_sim::scenario::at::{At, Result};

/// Only runs count in which a measure lies within bounds, the lower one included.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// Which measure, by its number.
    pub measure: usize,
    /// The bounds, in its unit.
    pub bounds: [f64; 2],
}

/// Which runs count.
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

/// A value of a measure: a number, a quantity of its unit, or of a count "1.5 %".
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
