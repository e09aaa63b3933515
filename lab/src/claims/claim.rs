//! Claims, read from `claims.toml` and expanded over the rows of their tables.

use std::collections::BTreeSet;

use super::claim_keys::KEYS;
use super::conditions::{Condition, conditions};
use super::crossing::Search;
use super::pool::{self, PoolRow};
use super::published::{Published, errors_have_values, published};
use super::read::{PaperError, edits, fill, named, over};
use super::rows::{Row, Table};
use super::text::{self, Fields, Unit, filled, strings};
use super::threshold::{self, Threshold};
use super::{Paper, Reference};
use crate::grid::Variation;
use anabranch_sim::scenario::Document;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::keys::{Default, Key, read_known};

/// One claim about one value, or about one row of its table.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// Its name.
    pub id: String,
    /// The source of the claim in the paper: table, figure or section.
    pub source: String,
    /// The form of the claim.
    pub form: Form,
    /// The index of its experiment in the paper.
    pub experiment: usize,
    /// The index of its variant.
    pub variant: usize,
    /// Whether the values under the other variants are shown too.
    pub beside: bool,
    /// Edits that change together with those of `over`; each has as many values.
    pub along: Vec<Variation>,
    /// Edits before those of the variant, and edits after them.
    pub edits: [Vec<String>; 2],
    /// For a claim about all rows together: the rows. Otherwise empty.
    pub pool: Vec<PoolRow>,
    /// The number of these rows that are run.
    pub rows: usize,
    /// The conditions that a run must meet to count.
    pub conditions: Vec<Condition>,
    /// The unit of its values.
    pub unit: Unit,
    /// By reference: the published values.
    pub published: Vec<Published>,
    /// The tolerances: the index of the reference, and the largest deviation from its value.
    pub within: Vec<(usize, Tolerance)>,
    /// The bounds of the value.
    pub bounds: Bounds,
    /// Whether the claim is expected to hold.
    pub expected: bool,
    /// The reason, if it is not.
    pub reason: Option<String>,
}

/// The form of a claim. Measures, marks and variants are indices in the paper's lists.
#[derive(Clone, PartialEq, Debug)]
pub enum Form {
    /// A measure has this value.
    Value {
        /// The measure.
        measure: usize,
    },
    /// The value of a measure under the first edit, divided by the value under the second.
    Ratio {
        /// The measure.
        measure: usize,
        /// The edits.
        over: Variation,
    },
    /// A measure is larger under each edit than under the previous one. Or the order is that of a reference.
    Order {
        /// The measure.
        measure: usize,
        /// The edits.
        over: Variation,
        /// The reference with the expected order, if that is not the order of the list.
        like: Option<usize>,
    },
    /// Marks occur one after the other.
    Sequence {
        /// The marks.
        marks: Vec<usize>,
    },
    /// The value of a key at which the order of a measure under two edits changes.
    Crossing(Search),
    /// The value of one measure above which another measure is larger than in a second experiment.
    Threshold(Threshold),
    /// The mean of a measure over all rows under the first edit, divided by that under the second.
    Means {
        /// Which.
        measure: usize,
    },
    /// The share of the rows in which a measure under the first edit is more than `factor` times the least under the
    /// others.
    Worse {
        /// Which.
        measure: usize,
        /// How many times.
        factor: f64,
    },
}

/// The largest deviation of a value from another. The widest of the three counts.
#[derive(Copy, Clone, PartialEq, Debug, serde::Serialize)]
pub struct Tolerance {
    /// As a fraction of the other value.
    pub relative: f64,
    /// In the claim's unit.
    pub absolute: f64,
    /// In standard errors of the difference, which combine those of both values.
    pub standard_errors: f64,
}

/// Bounds, both included.
#[derive(Copy, Clone, PartialEq, Default, Debug, serde::Serialize)]
pub struct Bounds {
    /// The value is at least this.
    pub at_least: Option<f64>,
    /// The value is at most this.
    pub at_most: Option<f64>,
}

/// Every claim of `document`, expanded over its table.
pub(super) fn cases(document: &Document, paper: &Paper) -> std::result::Result<Vec<Case>, PaperError> {
    let root = At::root(document);
    let mut claims = Vec::new();
    fill(&mut claims, &root, &[TOP])?;
    let mut cases = Vec::new();
    let mut ids = BTreeSet::new();
    for at in root.get("claim").map_or(Ok(Vec::new()), |at| at.tables())? {
        let first = cases.len();
        for rows in grouped(&at, expansion(&at, paper)?)? {
            let case = match pool::is_pooled(&at) {
                true => pooled(&at, &rows, paper)?,
                false => case(&at, &rows[0].1, rows[0].0.as_ref(), paper)?,
            };
            if !ids.insert(case.id.clone()) {
                return Err(at.error_below("id", format!("there is another claim `{}`", case.id)).into());
            }
            cases.push(case);
        }
        except(&at, &mut cases[first..])?;
    }
    Ok(cases)
}

/// A row of a claim's table, if it has one, and its fields.
type Expanded = (Option<Row>, Fields);

/// The rows of each claim: one, or of a claim about all rows those with the same fields of `each`.
fn grouped(at: &At<'_>, rows: Vec<Expanded>) -> Result<Vec<Vec<Expanded>>> {
    if !pool::is_pooled(at) {
        return Ok(rows.into_iter().map(|row| vec![row]).collect());
    }
    let names = at.get("each").map_or(Ok(Vec::new()), |at| lists(&at))?;
    let mut groups: Vec<Vec<Expanded>> = Vec::new();
    for row in rows {
        let same = |group: &&mut Vec<Expanded>| names.iter().all(|(name, _)| group[0].1[name] == row.1[name]);
        match groups.iter_mut().find(same) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    Ok(groups)
}

/// A claim about all rows of its table together. What it is called and compared with is the same for all of them.
fn pooled(at: &At<'_>, rows: &[Expanded], paper: &Paper) -> Result<Case> {
    let one = |(number, (_, fields)): (usize, &Expanded)| pool::row(at, number, fields, paper);
    let pool: Vec<PoolRow> = rows.iter().enumerate().map(one).collect::<Result<_>>()?;
    let case = case(at, &rows[0].1, rows[0].0.as_ref(), paper)?;
    // The edits of a row are the row's own.
    Ok(Case { rows: pool::first(at, pool.len())?, pool, edits: [Vec::new(), Vec::new()], ..case })
}

const TOP: Key<Vec<()>> = Key {
    name: "claim",
    takes: "tables",
    default: Default::Required,
    doc: "The claims, each a `[[claim]]`.",
    read: |_, at| at.tables().map(drop),
};

const NO_CLAIM: &str = "leave out the whole `[[claim]]` if it is not wanted";

/// The rows of a claim with the fields of each; one entry without a row if it has no table.
fn expansion(at: &At<'_>, paper: &Paper) -> std::result::Result<Vec<Expanded>, PaperError> {
    let names = || KEYS.iter().map(|key| key.name).chain(paper.references.iter().map(|r| r.name.as_str()));
    if let Some(entry) = at.entries()?.iter().find(|entry| names().all(|name| name != entry.key)) {
        let known: Vec<_> = names().collect();
        return Err(at.no_such_key(entry).hint(did_you_mean(&entry.key, known)).into());
    }
    read_known(&mut (), at, KEYS)?;
    let mut rows: Vec<Expanded> = match at.get("rows") {
        None => vec![(None, Fields::new())],
        Some(file) => {
            let table = Table::read(&paper.folder.join(file.string()?)).map_err(|error| match error {
                PaperError::File { file: name, error } => {
                    PaperError::Text(file.error(format!("{}: {error}", name.display())))
                }
                error => error,
            })?;
            let only = at.get("only").map_or(Ok(Vec::new()), |at| lists(&at))?;
            let wrong = |(message, hint): (String, String)| at.error_below("only", message).hint(hint);
            table.only(&only).map_err(wrong)?.into_iter().map(|row| (Some(row.clone()), row.cells)).collect()
        }
    };
    if let (Some(only), None) = (at.get("only"), at.get("rows")) {
        return Err(only.error("there are no rows to choose from").hint("it goes with `rows`").into());
    }
    if rows.is_empty() {
        let key = if at.get("only").is_some() { "only" } else { "rows" };
        return Err(at.error_below(key, "no row is left, so there is no claim").hint(NO_CLAIM).into());
    }
    for (name, values) in at.get("each").map_or(Ok(Vec::new()), |at| lists(&at))? {
        if values.is_empty() {
            let message = format!("`{name}` has no value, so there is no claim");
            return Err(at.error_below("each", message).hint(NO_CLAIM).into());
        }
        let with = |(row, fields): &Expanded, value: &String| {
            let mut fields = fields.clone();
            fields.insert(name.clone(), value.clone());
            (row.clone(), fields)
        };
        rows = rows.iter().flat_map(|row| values.iter().map(move |value| with(row, value))).collect();
    }
    Ok(rows)
}

/// A table of lists of strings.
pub(super) fn lists(at: &At<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let list = |key: &String| {
        let values = at.get(key).map_or(Ok(Vec::new()), |at| strings(&at))?;
        Ok((key.clone(), values.into_iter().map(str::to_owned).collect()))
    };
    at.entries()?.iter().map(|entry| list(&entry.key)).collect()
}

/// Marks the claims that are expected to fail.
fn except(at: &At<'_>, cases: &mut [Case]) -> Result<()> {
    let Some(exceptions) = at.get("exceptions") else { return Ok(()) };
    for entry in exceptions.entries()? {
        let ids: Vec<_> = cases.iter().map(|case| case.id.clone()).collect();
        let case = cases.iter_mut().find(|case| case.id == entry.key);
        let unknown = || exceptions.unknown("claim", &entry.key, ids.iter().map(String::as_str));
        let case = case.ok_or_else(unknown)?;
        case.expected = false;
        case.reason = exceptions.get(&entry.key).map(|at| reason(&at)).transpose()?;
    }
    Ok(())
}

fn reason(at: &At<'_>) -> Result<String> {
    match at.string()?.trim() {
        "" => Err(at.error("a reason says something")),
        text => Ok(text.to_owned()),
    }
}

/// Builds the claim at `at` with these fields.
fn case(at: &At<'_>, fields: &Fields, row: Option<&Row>, paper: &Paper) -> Result<Case> {
    let needed = |key: &str| at.get(key).ok_or_else(|| at.error_below(key, "this key is missing"));
    let experiment = needed("experiment")?;
    let experiment_number = experiment_of(&experiment, fields, paper)?;
    let (form, unit) = form(at, fields, paper)?;
    let fill_all = |at: &At<'_>, texts: &[String]| -> Result<Vec<String>> {
        let refuse = |(message, hint): (String, String)| at.error(message).hint(hint);
        texts.iter().map(|text| text::fill(text, fields).map_err(refuse)).collect()
    };
    let own = at.get("set").map_or(Ok(Vec::new()), |at| edits(&at).and_then(|set| fill_all(&at, &set)))?;
    errors_have_values(at, &paper.references)?;
    let published = |reference: &Reference| published(at, &reference.name, fields, row);
    let case = Case {
        id: filled(&needed("id")?, fields)?,
        source: filled(&needed("source")?, fields)?,
        experiment: experiment_number,
        conditions: conditions(at, fields, paper)?,
        variant: at.get("variant").map_or(Ok(0), |at| variant_of(&at, fields, paper))?,
        beside: at.get("beside").map_or(Ok(true), |at| at.boolean())?,
        along: along(at, fields, &form)?,
        edits: [fill_all(&experiment, &paper.experiments[experiment_number].set)?, own],
        pool: Vec::new(),
        rows: 0,
        published: paper.references.iter().map(published).collect::<Result<_>>()?,
        within: within(at, unit, fields, &paper.references)?,
        bounds: bounds(at, unit, fields)?,
        expected: at.get("expected").map_or(Ok(true), |at| at.boolean())?,
        reason: at.get("reason").map(|at| reason(&at)).transpose()?,
        form,
        unit,
    };
    check(at, case, paper)
}

/// Rejects a claim that cannot be judged.
fn check(at: &At<'_>, mut case: Case, paper: &Paper) -> Result<Case> {
    match (&case.reason, case.expected) {
        (None, false) => {
            return Err(at.error_below("reason", "a claim that is not expected to hold needs a reason"));
        }
        (Some(_), true) => {
            return Err(at
                .error_below("reason", "this key has no effect here")
                .hint("it goes with `expected = false`"));
        }
        _ => {}
    }
    let reference = |reference: usize| &case.published[reference].values;
    let operands = case.form.operands();
    for (Reference { name, .. }, Published { values, .. }) in paper.references.iter().zip(&case.published) {
        if !values.is_empty() && values.len() != operands {
            let message = format!("expected {operands} of them, found {}", values.len());
            return Err(at.error_below(name, message));
        }
    }
    if case.form.is_pooled() && at.get("rows").is_none() {
        return Err(at.error_below("rows", "a claim about all rows of a table needs one"));
    }
    let single = !matches!(case.form, Form::Order { .. } | Form::Sequence { .. });
    if !single && (!case.within.is_empty() || case.bounds != Bounds::default()) {
        return Err(at.error("the form `order` takes neither tolerances nor bounds"));
    }
    if let Form::Order { like: Some(like), .. } = &case.form
        && reference(*like).is_empty()
    {
        return Err(
            at.error_below("like", "`like` needs published values of this reference, and the claim has none")
        );
    }
    // A row with an empty cell makes no statement about that reference.
    let by_errors = |(to, tolerance): &(usize, Tolerance)| {
        tolerance.standard_errors > 0.0 && case.published[*to].error.is_none()
    };
    if case.within.iter().any(by_errors) && paper.experiments[case.experiment].seeds < 2 {
        let error = at.error_below("within", "there are no standard errors to count in");
        return Err(error.hint("give the experiment `seeds`, or the published values `errors`"));
    }
    let within: Vec<_> = case.within.iter().filter(|(to, _)| !reference(*to).is_empty()).copied().collect();
    if single && within.is_empty() && case.bounds == Bounds::default() {
        return Err(at
            .error(format!("`{}`: there is nothing to compare the measure with", case.id))
            .hint("give a published value and `within`, or `at_least` or `at_most`"));
    }
    case.within = within;
    Ok(case)
}

impl Form {
    /// The name of the form.
    pub fn name(&self) -> &'static str {
        match self {
            Form::Value { .. } => "value",
            Form::Ratio { .. } => "ratio",
            Form::Order { .. } => "order",
            Form::Sequence { .. } => "sequence",
            Form::Crossing(_) => "crossing",
            Form::Threshold(_) => "threshold",
            Form::Means { .. } => "means",
            Form::Worse { .. } => "worse",
        }
    }

    /// The number of values that are compared with published values.
    fn operands(&self) -> usize {
        match self {
            Form::Value { .. }
            | Form::Ratio { .. }
            | Form::Crossing(_)
            | Form::Threshold(_)
            | Form::Means { .. }
            | Form::Worse { .. } => 1,
            Form::Order { over, .. } => over.values.len(),
            Form::Sequence { marks } => marks.len(),
        }
    }
}

/// Keys that only some forms read, with these forms.
const OF_FORMS: &[(&str, &[&str])] = &[
    ("measure", &["value", "ratio", "order", "crossing", "threshold", "means", "worse"]),
    ("where", &["value", "order", "threshold"]),
    ("by", &["threshold"]),
    ("against", &["threshold"]),
    ("width", &["threshold"]),
    ("least", &["threshold"]),
    ("over", &["ratio", "order", "crossing", "means", "worse"]),
    ("factor", &["worse"]),
    ("first", &["means", "worse"]),
    ("like", &["order"]),
    ("along", &["ratio", "order"]),
    ("marks", &["sequence"]),
    ("key", &["crossing"]),
    ("from", &["crossing"]),
    ("to", &["crossing"]),
    ("precision", &["crossing"]),
    ("points", &["crossing"]),
];

/// Keys that are optional in their forms.
const OPTIONAL: &[&str] = &["along", "like", "precision", "points", "where", "width", "least", "first"];

fn form(at: &At<'_>, fields: &Fields, paper: &Paper) -> Result<(Form, Unit)> {
    let form = at.get("form").ok_or_else(|| at.error_below("form", "this key is missing"))?;
    const FORMS: &[&str] =
        &["value", "ratio", "order", "sequence", "crossing", "threshold", "means", "worse"];
    let form = form.one_of("form", FORMS)?;
    for (key, forms) in OF_FORMS {
        match (at.get(key), forms.contains(&form)) {
            (Some(value), false) => {
                return Err(value
                    .error(format!("the form `{form}` does not use this key"))
                    .hint(format!("it is for: {}", forms.join(", "))));
            }
            (None, true) if !OPTIONAL.contains(key) => {
                return Err(at.error_below(key, format!("a {form} needs this key")));
            }
            _ => {}
        }
    }
    let Some(measured) = at.get("measure") else {
        return Ok((Form::Sequence { marks: marks(at, paper)? }, Unit::Seconds));
    };
    let measure = measure(&measured, fields, paper)?;
    let unit = paper.measures[measure].unit;
    if form == "threshold" {
        let (found, unit) = threshold::read(at, measure, fields, paper)?;
        return Ok((Form::Threshold(found), unit));
    }
    let Some(over_at) = at.get("over") else { return Ok((Form::Value { measure }, unit)) };
    let over = over(&over_at, &filled(&over_at, fields)?)?;
    if form == "order" {
        if over.values.len() < 2 {
            return Err(over_at.error("an order has two values at least, found 1"));
        }
        let references = paper.references.iter().map(|reference| reference.name.as_str());
        let like = at.get("like").map(|at| named(&at, "reference", references)).transpose()?;
        return Ok((Form::Order { measure, over, like }, unit));
    }
    if form == "worse" {
        return Ok((pool::worse(at, &over_at, &over, measure)?, Unit::Count));
    }
    if over.values.len() != 2 {
        return Err(over_at.error(format!("a {form} compares two, found {}", over.values.len())));
    }
    if form == "means" {
        return Ok((Form::Means { measure }, Unit::Count));
    }
    if form == "ratio" {
        return Ok((Form::Ratio { measure, over }, Unit::Count));
    }
    let (search, unit) = search(at, measure, over, fields)?;
    Ok((Form::Crossing(search), unit))
}

/// The edits that change together with those of the form.
fn along(at: &At<'_>, fields: &Fields, form: &Form) -> Result<Vec<Variation>> {
    let Some(at) = at.get("along") else { return Ok(Vec::new()) };
    let wanted = match form {
        Form::Ratio { over, .. } | Form::Order { over, .. } => over.values.len(),
        Form::Value { .. }
        | Form::Sequence { .. }
        | Form::Crossing(_)
        | Form::Threshold(_)
        | Form::Means { .. }
        | Form::Worse { .. } => 0,
    };
    let one = |at: &At<'_>| {
        let variation = over(at, &filled(at, fields)?)?;
        match variation.values.len() {
            found if found != wanted => {
                Err(at.error(format!("`over` has {wanted} values, and this has {found}")))
            }
            _ => Ok(variation),
        }
    };
    at.array("an array of edits")?.iter().map(one).collect()
}

pub(super) fn experiment_of(at: &At<'_>, fields: &Fields, paper: &Paper) -> Result<usize> {
    let name = filled(at, fields)?;
    let names = paper.experiments.iter().map(|experiment| experiment.name.as_str());
    names.clone().position(|known| known == name).ok_or_else(|| at.unknown("experiment", &name, names))
}

fn variant_of(at: &At<'_>, fields: &Fields, paper: &Paper) -> Result<usize> {
    let name = filled(at, fields)?;
    let names = paper.variants.iter().map(|variant| variant.name.as_str());
    names.clone().position(|known| known == name).ok_or_else(|| at.unknown("variant", &name, names))
}

pub(super) fn measure(at: &At<'_>, fields: &Fields, paper: &Paper) -> Result<usize> {
    let name = filled(at, fields)?;
    let names = paper.measures.iter().map(|measure| measure.name.as_str());
    names.clone().position(|known| known == name).ok_or_else(|| at.unknown("measure", &name, names))
}

fn marks(at: &At<'_>, paper: &Paper) -> Result<Vec<usize>> {
    let list = at.get("marks").map_or(Ok(Vec::new()), |at| at.array("an array of marks"))?;
    let names = || paper.marks.iter().map(|mark| mark.name.as_str());
    let mark = |at: &At<'_>| {
        let name = at.string()?;
        paper.mark(name).ok_or_else(|| at.unknown("mark", name, names()))
    };
    match list.len() {
        0 | 1 => {
            Err(at.error_below("marks", format!("a sequence has two marks at least, found {}", list.len())))
        }
        _ => list.iter().map(mark).collect(),
    }
}

fn search(at: &At<'_>, measure: usize, over: Variation, fields: &Fields) -> Result<(Search, Unit)> {
    let needed = |key: &str| at.get(key).ok_or_else(|| at.error_below(key, "a crossing needs this key"));
    let quantity = |key: &str| {
        let at = needed(key)?;
        Unit::of(&filled(&at, fields)?).ok_or_else(|| {
            at.error("this is neither a rate, a duration nor a size").hint("write it as \"800 kbit/s\"")
        })
    };
    let ((unit, from), (other, to)) = (quantity("from")?, quantity("to")?);
    if unit != other || from >= to {
        return Err(at.error_below("to", "this must be more than `from`, and of its kind"));
    }
    let precision = match at.get("precision") {
        None => 0.001,
        Some(at) => text::tolerance(&at, Unit::Count, fields)?.relative,
    };
    if precision <= 0.0 {
        return Err(at
            .error_below("precision", "this must be more than nothing")
            .hint("write it as \"0.1 %\""));
    }
    let points = at.get("points").map_or(Ok(2), |at| at.count(2_u32..=10_000))?;
    let key = filled(&needed("key")?, fields)?;
    Ok((Search { measure, over, key, unit, from, to, precision, points }, unit))
}

fn bounds(at: &At<'_>, unit: Unit, fields: &Fields) -> Result<Bounds> {
    let bounds = Bounds {
        at_least: bound(at, "at_least", unit, fields)?,
        at_most: bound(at, "at_most", unit, fields)?,
    };
    match bounds {
        Bounds { at_least: Some(least), at_most: Some(most) } if least > most => {
            Err(at.error_below("at_most", "this is less than `at_least`: no value can be within both"))
        }
        _ => Ok(bounds),
    }
}

fn bound(at: &At<'_>, key: &str, unit: Unit, fields: &Fields) -> Result<Option<f64>> {
    let Some(at) = at.get(key) else { return Ok(None) };
    match at.number() {
        Some(number) if !number.is_finite() => Err(at.error("a bound is finite").hint("leave out the key")),
        Some(number) if unit == Unit::Count => Ok(Some(number)),
        _ => {
            let refuse = |(message, hint): (String, String)| at.error(message).hint(hint);
            unit.read(&filled(&at, fields)?).map(Some).map_err(refuse)
        }
    }
}

fn within(
    at: &At<'_>,
    unit: Unit,
    fields: &Fields,
    references: &[Reference],
) -> Result<Vec<(usize, Tolerance)>> {
    let Some(within) = at.get("within") else { return Ok(Vec::new()) };
    let names = references.iter().map(|reference| reference.name.as_str());
    let one = |key: &str| {
        let reference = names
            .clone()
            .position(|name| name == key)
            .ok_or_else(|| within.unknown("reference", key, names.clone()))?;
        if at.get(key).is_none() {
            return Err(within.error_below(key, format!("the claim has no `{key}` to be near to")));
        }
        let tolerance = within.get(key).ok_or_else(|| within.error("this is missing"))?;
        Ok((reference, text::tolerance(&tolerance, unit, fields)?))
    };
    within.entries()?.iter().map(|entry| one(&entry.key)).collect()
}
