//! Small texts in claims: fields `{COLUMN}`, quantities, tolerances.

use std::collections::BTreeMap;

use super::claim::Tolerance;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::units::{DURATION, Dimension, RATE, SIZE};

/// The replacements of `{NAME}`: the cells of a row, and the values that a claim lists in `each`.
pub(super) type Fields = BTreeMap<String, String>;

/// The unit of a number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bit/s.
    Rate,
    /// A count, or a ratio.
    Count,
}

impl Unit {
    pub(super) const NAMES: &'static [(&'static str, Unit)] =
        &[("s", Unit::Seconds), ("B", Unit::Bytes), ("bit/s", Unit::Rate), ("1", Unit::Count)];

    /// The unit as written after a number; empty for a count.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Seconds => "s",
            Unit::Bytes => "B",
            Unit::Rate => "bit/s",
            Unit::Count => "",
        }
    }

    /// The dimension that reads such texts, and the number of smallest units in one of this unit.
    fn dimension(self) -> Option<(&'static Dimension, f64)> {
        match self {
            Unit::Seconds => Some((&DURATION, 1e9)),
            Unit::Bytes => Some((&SIZE, 1.0)),
            Unit::Rate => Some((&RATE, 1.0)),
            Unit::Count => None,
        }
    }

    /// Reads `text` as a number in this unit.
    pub(super) fn read(self, text: &str) -> std::result::Result<f64, (String, String)> {
        let Some((dimension, scale)) = self.dimension() else {
            let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
            return number
                .ok_or_else(|| (format!("`{text}` is not a number"), "write it without unit".to_owned()));
        };
        dimension.read(text).map(|n| n as f64 / scale).map_err(|bad| (bad.message, bad.hint))
    }

    /// The unit of the quantity in `text`, and its amount in the smallest unit.
    pub(super) fn of(text: &str) -> Option<(Unit, u64)> {
        let read = |unit: Unit| Some((unit, unit.dimension()?.0.read(text).ok()?));
        [Unit::Rate, Unit::Seconds, Unit::Bytes].into_iter().find_map(read)
    }

    /// Writes an amount of the smallest unit as a scenario would.
    pub(super) fn write(self, amount: u64) -> String {
        let smallest = if self == Unit::Seconds { "ns" } else { self.symbol() };
        format!("{amount} {smallest}").trim_end().to_owned()
    }

    /// Converts an amount of the smallest unit to this unit.
    pub(super) fn whole(self, amount: u64) -> f64 {
        amount as f64 / self.dimension().map_or(1.0, |(_, scale)| scale)
    }
}

/// Replaces every `{NAME}` in `text`. The error is a message and a hint about an unknown name. Braces around anything
/// else belong to TOML and stay.
pub(super) fn fill(text: &str, fields: &Fields) -> std::result::Result<String, (String, String)> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        filled += before;
        match after.split_once('}') {
            Some((name, after)) if is_name(name) => {
                let value = fields.get(name).ok_or_else(|| {
                    let hint = did_you_mean(name, fields.keys().map(String::as_str));
                    (format!("there is no field `{name}`"), hint)
                })?;
                filled += value;
                rest = after;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    Ok(filled + rest)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The string at `at` with its fields replaced.
pub(super) fn filled(at: &At<'_>, fields: &Fields) -> Result<String> {
    fill(at.string()?, fields).map_err(|(message, hint)| at.error(message).hint(hint))
}

/// The strings of the array at `at`, or the single string there.
pub(super) fn strings<'d>(at: &At<'d>) -> Result<Vec<&'d str>> {
    match at.string() {
        Ok(one) => Ok(vec![one]),
        Err(_) => at.array("a string, or an array of strings")?.iter().map(At::string).collect(),
    }
}

/// The tolerance at `at`: `"0.5 %"`, `"1 ms"`, `"4.2 standard errors"`, or an array of these. The widest counts.
pub(super) fn tolerance(at: &At<'_>, unit: Unit, fields: &Fields) -> Result<Tolerance> {
    let mut tolerance = Tolerance { relative: 0.0, absolute: 0.0, standard_errors: 0.0 };
    for text in strings(at)? {
        let refuse = |(message, hint): (String, String)| at.error(message).hint(hint);
        let text = fill(text, fields).map_err(refuse)?;
        let (widest, given) = if let Some(share) = text.trim().strip_suffix('%') {
            (&mut tolerance.relative, Unit::Count.read(share).map_err(refuse)? / 100.0)
        } else if let Some(errors) = text.trim().strip_suffix("standard errors") {
            (&mut tolerance.standard_errors, Unit::Count.read(errors).map_err(refuse)?)
        } else {
            (&mut tolerance.absolute, unit.read(&text).map_err(refuse)?)
        };
        if given < 0.0 {
            return Err(at.error("a tolerance cannot be negative"));
        }
        *widest = widest.max(given);
    }
    Ok(tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::scenario::Document;

    #[test]
    fn fields_are_filled_and_other_braces_stay() {
        let fields = Fields::from([("rate".to_owned(), "5".to_owned())]);
        assert_eq!(fill("r={rate} bit/s", &fields).unwrap(), "r=5 bit/s");
        assert_eq!(fill("w={ name = 'x' }{", &fields).unwrap(), "w={ name = 'x' }{");
        let (message, hint) = fill("{rote}", &fields).unwrap_err();
        assert_eq!((message.as_str(), hint.as_str()), ("there is no field `rote`", "did you mean `rate`?"));
    }

    #[test]
    fn of_several_tolerances_of_a_kind_the_widest_counts() {
        let document = Document::parse("", r#"within = ["5 %", "20 ms", "1 %", "10 ms"]"#).unwrap();
        let at = At::root(&document).get("within").unwrap();
        let read = tolerance(&at, Unit::Seconds, &Fields::new()).unwrap();
        assert_eq!(read, Tolerance { relative: 0.05, absolute: 0.02, standard_errors: 0.0 });
    }

    #[test]
    fn quantities_are_read_in_their_unit() {
        assert_eq!(Unit::Seconds.read("1 ms"), Ok(0.001));
        assert_eq!(Unit::Rate.read("36 kbit/s"), Ok(36_000.0));
        assert_eq!(Unit::Count.read("68"), Ok(68.0));
        assert!(Unit::Bytes.read("1 ms").is_err() && Unit::Count.read("1 ms").is_err());
        assert_eq!(Unit::of("800 kbit/s"), Some((Unit::Rate, 800_000)));
        assert_eq!(Unit::of("50 ms"), Some((Unit::Seconds, 50_000_000)));
        assert_eq!(Unit::Seconds.write(50), "50 ns");
    }
}
