//! Verdicts: whether a claim holds, and the data that are shown for it.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Value, json};

use super::claim::{Bounds, Case, Form, Tolerance};
use super::published::{Cell, Published};
use super::{Curve, Paper, Reference, Unit};
use crate::statistics::Summary;

/// A claim and its verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Its name.
    pub id: String,
    /// The source of the claim in the paper.
    pub source: String,
    /// Its form.
    pub form: &'static str,
    /// What its values are: the name of a measure or key, or what is made of a measure.
    pub quantity: String,
    /// The unit of its values.
    pub unit: Unit,
    /// The variant under which it is judged.
    pub variant: String,
    /// The names of the compared items; empty for a claim about one value.
    pub of: Vec<String>,
    /// The key in which the compared items differ, if they differ in one.
    pub over: Option<String>,
    /// The published values: for each reference one value for each operand.
    pub published: Vec<(Reference, Published)>,
    /// The values from Anabranch, as means over the seeds. `None`: the event did not occur.
    pub values: Vec<Option<f64>>,
    /// The samples of the values, one for each operand. Empty for a search or a model.
    pub samples: Vec<Summary>,
    /// The standard error of the value, if there is only one value and it has several seeds.
    pub error: Option<f64>,
    /// The values under the other variants, by name.
    pub beside: Vec<(String, Vec<Option<f64>>)>,
    /// The tolerances, by reference.
    pub within: Vec<(String, Tolerance)>,
    /// The bounds of the value.
    pub bounds: Bounds,
    /// Whether the claim holds.
    pub holds: bool,
    /// Whether it was expected to hold.
    pub expected: bool,
    /// The reason, if it was not.
    pub reason: Option<String>,
    /// The interval that contains the threshold in 90 % of the resamplings; its upper end may be infinite.
    pub interval: Option<[f64; 2]>,
    /// The curve on which the threshold was searched for.
    pub curve: Option<Curve>,
    /// A remark about the value.
    pub note: Option<String>,
    /// Whether there are runs, and the event occurs in none of them.
    pub never: bool,
}

impl Outcome {
    /// Whether the verdict is the expected one. Where nothing is known, nothing contradicts the claim, so it cannot be
    /// expected not to hold.
    pub fn as_expected(&self) -> bool {
        self.holds == self.expected && (self.expected || self.is_known())
    }

    /// Whether it has every value that is compared, or all runs of a search have one and it found nothing.
    pub fn is_known(&self) -> bool {
        let found = !self.values.is_empty() && self.values.iter().all(Option::is_some);
        found || (self.never && matches!(self.form, "crossing" | "threshold"))
    }

    /// Whether it is about one value and not about an order.
    pub fn is_single(&self) -> bool {
        !matches!(self.form, "order" | "sequence")
    }

    /// The marks of a sequence in the order of these times; marks that never occur stand last, in brackets.
    pub fn in_order(&self, times: &[Option<f64>]) -> String {
        let mut order: Vec<_> = times.iter().zip(&self.of).collect();
        order.sort_by(|(a, _), (b, _)| a.unwrap_or(f64::INFINITY).total_cmp(&b.unwrap_or(f64::INFINITY)));
        let names = order
            .iter()
            .map(|(time, mark)| if time.is_some() { (*mark).clone() } else { format!("({mark})") });
        names.collect::<Vec<_>>().join(" ")
    }

    /// The label of an axis for the values of these claims, which have the unit `unit`: without a unit, what they are.
    pub fn axis<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>, unit: &str) -> String {
        let mut names: Vec<&str> = Vec::new();
        for outcome in outcomes {
            if !names.contains(&outcome.quantity.as_str()) {
                names.push(&outcome.quantity);
            }
        }
        match (&names[..], unit) {
            ([name], "") => (*name).to_owned(),
            ([name], unit) => format!("{name}, {unit}"),
            // An axis has room for two names.
            ([one, two], "") if one.len() + two.len() <= 40 => format!("{one} or {two}"),
            (_, "") => "value".to_owned(),
            (_, unit) => unit.to_owned(),
        }
    }

    /// The relative difference between its only value and the value of reference number `from`.
    pub fn difference(&self, from: usize) -> Option<f64> {
        match (self.values.as_slice(), self.published[from].1.values.as_slice()) {
            ([Some(value)], [Cell::Number(reference)]) if *reference != 0.0 => Some(value / reference - 1.0),
            _ => None,
        }
    }
}

/// The values of a claim under one variant, with a remark.
pub(super) struct VariantValues {
    pub(super) variant: usize,
    pub(super) values: Vec<Option<f64>>,
    pub(super) samples: Vec<Summary>,
    pub(super) error: Option<f64>,
    pub(super) interval: Option<[f64; 2]>,
    pub(super) curve: Option<Curve>,
    pub(super) note: Option<String>,
    /// Whether the event occurs in no run at all, and there are runs.
    pub(super) never: bool,
}

impl VariantValues {
    /// A variant for which nothing was found.
    pub(super) fn none(variant: usize) -> Self {
        VariantValues {
            variant,
            values: Vec::new(),
            samples: Vec::new(),
            error: None,
            interval: None,
            curve: None,
            note: None,
            never: false,
        }
    }
}

/// Judges `case`. `of` holds the names of the compared items; `values` includes those of the case's own variant.
pub(super) fn judge(case: &Case, of: Vec<String>, paper: &Paper, values: &[VariantValues]) -> Outcome {
    let own = values.iter().find(|seen| seen.variant == case.variant);
    let none = VariantValues::none(case.variant);
    let own = own.unwrap_or(&none);
    let variants = &paper.variants;
    let others = values.iter().filter(|seen| seen.variant != case.variant);
    Outcome {
        id: case.id.clone(),
        source: case.source.clone(),
        form: case.form.name(),
        quantity: quantity(&case.form, paper),
        unit: case.unit,
        variant: variants[case.variant].name.clone(),
        of,
        over: if let Form::Order { over, .. } = &case.form { Some(over.key.clone()) } else { None },
        published: paper.references.iter().cloned().zip(case.published.iter().cloned()).collect(),
        holds: holds(case, own),
        values: own.values.clone(),
        samples: own.samples.clone(),
        error: own.error,
        beside: others.map(|seen| (variants[seen.variant].name.clone(), seen.values.clone())).collect(),
        within: case
            .within
            .iter()
            .map(|(to, within)| (paper.references[*to].name.clone(), *within))
            .collect(),
        bounds: case.bounds,
        expected: case.expected,
        reason: case.reason.clone(),
        interval: own.interval,
        curve: own.curve.clone(),
        note: own.note.clone(),
        never: own.never,
    }
}

/// What the values of a claim of this form are.
fn quantity(form: &Form, paper: &Paper) -> String {
    let name = |measure: &usize| &paper.measures[*measure].name;
    match form {
        Form::Value { measure } | Form::Order { measure, .. } => name(measure).clone(),
        Form::Ratio { measure, .. } => format!("ratio of {}", name(measure)),
        Form::Means { measure } => format!("ratio of mean {}", name(measure)),
        Form::Worse { .. } => "share of rows".to_owned(),
        Form::Sequence { .. } => "time".to_owned(),
        Form::Crossing(search) => search.key.clone(),
        Form::Threshold(threshold) => name(&threshold.by).clone(),
    }
}

fn holds(case: &Case, seen: &VariantValues) -> bool {
    let values = &seen.values;
    match &case.form {
        Form::Order { like: Some(like), .. } => same_order(values, &case.published[*like].values),
        Form::Order { like: None, .. } | Form::Sequence { .. } => ascends(values),
        _ => is_near(case, values.first().copied().flatten(), seen),
    }
}

fn ascends(values: &[Option<f64>]) -> bool {
    values.iter().all(Option::is_some) && values.windows(2).all(|pair| pair[0] < pair[1])
}

fn same_order(values: &[Option<f64>], published: &[Cell]) -> bool {
    let published: Vec<_> =
        published.iter().map(|cell| if let Cell::Number(n) = cell { Some(*n) } else { None }).collect();
    let all = values.len() == published.len() && values.iter().chain(&published).all(Option::is_some);
    let pairs = (0..values.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    all && pairs
        .into_iter()
        .all(|(a, b)| values[a].partial_cmp(&values[b]) == published[a].partial_cmp(&published[b]))
}

/// The standard error of the difference of both means. If the other sample is known too, the larger standard deviation
/// is used for both, because the standard deviation of few runs is often far too small.
fn combined_error(case: &Case, seen: &VariantValues, published: &Published) -> f64 {
    // The samples of other forms are not samples of the value that is compared, such as a ratio.
    let is_sampled = matches!(case.form, Form::Value { .. });
    let sample = published.sample.filter(|_| is_sampled);
    let own = seen.samples.first().and_then(|own| Some((own.sd.unwrap_or(0.0), own.n)).filter(|_| own.n > 0));
    match (sample, own) {
        (Some((sd, n)), Some((own_sd, own_n))) => sd.max(own_sd) * (1.0 / n + 1.0 / own_n as f64).sqrt(),
        _ => {
            let [own, theirs] = [seen.error, published.error].map(|error| error.unwrap_or(0.0));
            (own * own + theirs * theirs).sqrt()
        }
    }
}

fn is_near(case: &Case, value: Option<f64>, seen: &VariantValues) -> bool {
    let near = |(reference, tolerance): &(usize, Tolerance)| {
        let said = &case.published[*reference];
        let values = &said.values;
        match (values.first(), value) {
            (Some(Cell::Never), _) => seen.never,
            (Some(Cell::Number(reference)), Some(value)) => {
                // One part in 10^9 allows for rounding: a tolerance of zero requires the same number.
                let combined = combined_error(case, seen, said);
                let allowed = (tolerance.relative * reference.abs())
                    .max(tolerance.absolute)
                    .max(tolerance.standard_errors * combined);
                (value - reference).abs() <= allowed + 1e-9 * reference.abs()
            }
            _ => false,
        }
    };
    let Bounds { at_least, at_most } = case.bounds;
    let bounded = match value {
        Some(value) => {
            at_least.is_none_or(|least| value >= least) && at_most.is_none_or(|most| value <= most)
        }
        None => case.bounds == Bounds::default(),
    };
    bounded && case.within.iter().all(near)
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry("form", self.form)?;
        map.serialize_entry("unit", self.unit.symbol())?;
        map.serialize_entry("variant", &self.variant)?;
        map.serialize_entry("of", &self.of)?;
        map.serialize_entry("holds", &self.holds)?;
        map.serialize_entry("expected", &self.expected)?;
        map.serialize_entry("as_expected", &self.as_expected())?;
        for (reference, published) in &self.published {
            let values = published.values.iter().map(Cell::number);
            map.serialize_entry(&reference.name, &self.shown(values))?;
        }
        map.serialize_entry("anabranch", &self.shown(self.values.iter().copied()))?;
        map.serialize_entry("sample", &self.sample())?;
        let beside =
            self.beside.iter().map(|(name, values)| (name.clone(), self.shown(values.iter().copied())));
        map.serialize_entry("beside", &beside.collect::<serde_json::Map<_, _>>())?;
        map.serialize_entry("tolerance", &self.tolerance())?;
        if let Some(interval) = self.interval {
            map.serialize_entry("interval", &interval)?;
        }
        map.serialize_entry("reason", &self.reason)?;
        map.serialize_entry("note", &self.note)?;
        map.end()
    }
}

impl Outcome {
    /// One value as a number, several as a list; null for a missing value.
    fn shown(&self, values: impl Iterator<Item = Option<f64>>) -> Value {
        let values: Vec<Value> = values.map(Value::from).collect();
        match values.as_slice() {
            [] => Value::Null,
            [one] if self.is_single() => one.clone(),
            _ => Value::Array(values),
        }
    }

    /// The statistics over the seeds: a summary for one value, a list for several, null for a single seed.
    fn sample(&self) -> Value {
        match self.samples.as_slice() {
            samples if samples.iter().all(|sample| sample.n < 2) => Value::Null,
            [one] => json!(one),
            several => json!(several),
        }
    }

    fn tolerance(&self) -> Value {
        let mut tolerance = serde_json::Map::new();
        for (reference, within) in &self.within {
            tolerance.insert(reference.clone(), json!(within));
        }
        let bounds = [("at_least", self.bounds.at_least), ("at_most", self.bounds.at_most)];
        for (name, bound) in bounds.into_iter().filter_map(|(name, bound)| Some((name, bound?))) {
            tolerance.insert(name.to_owned(), bound.into());
        }
        if tolerance.is_empty() { Value::Null } else { Value::Object(tolerance) }
    }
}

impl Cell {
    /// The number, if the cell has one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Number(number) => Some(*number),
            Cell::Never => None,
        }
    }
}
