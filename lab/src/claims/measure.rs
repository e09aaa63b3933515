//! Measures: named numbers of a run, and their computation.

use serde_json::Value;

use super::mark::{self, Event, Moment, events};
use super::read::{Draft, belongs, fill};
use super::record::{Quantity, Recording};
use super::text::Unit;
use super::{Measure, MeasureSource, Noted};
use crate::entry::entry;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default, Key};

impl Measure {
    /// Whether it needs the records of the run in addition to its result.
    pub(super) fn needs_records(&self) -> bool {
        !matches!(self.of, MeasureSource::Result { .. })
    }

    /// Its value in a run; `None` if it has none. `moments` are those of the paper's marks. The error is the first
    /// unknown key in a path into the result.
    pub(super) fn value(
        &self,
        result: &Value,
        recording: &Recording,
        moments: &[Option<Moment>],
    ) -> std::result::Result<Option<f64>, String> {
        let seconds = |moment: Moment| moment.at.as_nanos() as f64 / 1e9;
        Ok(match &self.of {
            MeasureSource::Result { of, minus, per } => {
                let value = sum(result, of)?.zip(sum(result, minus)?).map(|(value, less)| value - less);
                match per.is_empty() {
                    true => value,
                    false => {
                        let by = sum(result, per)?.filter(|by| *by != 0.0);
                        value.zip(by).map(|(value, by)| value / by)
                    }
                }
            }
            MeasureSource::Time { mark, since } => moments[*mark].and_then(|moment| match since {
                None => Some(seconds(moment)),
                // Computed in whole nanoseconds: the difference of two times must not depend on their size.
                Some(since) => {
                    let since = moments[*since]?.at.as_nanos();
                    Some((moment.at.as_nanos() as i128 - i128::from(since)) as f64 / 1e9)
                }
            }),
            MeasureSource::At { quantity, mark } => {
                moments[*mark].and_then(|moment| values(quantity, 0..moment.index + 1, recording).last())
            }
            MeasureSource::Extreme { quantity, highest, between } => range(*between, moments, recording)
                .and_then(|range| {
                    values(quantity, range, recording).reduce(if *highest { f64::max } else { f64::min })
                }),
            MeasureSource::Count { event, between } => range(*between, moments, recording)
                .map(|range| events(event, range, moments, recording).count() as f64),
        })
    }
}

/// The sum of entries of a result; `None` if one of them is not a number.
fn sum(result: &Value, paths: &[String]) -> std::result::Result<Option<f64>, String> {
    let entries = paths.iter().map(|path| entry(result, path));
    let entries: Vec<_> = entries.collect::<std::result::Result<_, _>>()?;
    Ok(entries.iter().map(|entry| entry.as_f64()).sum())
}

fn values(noted: &Noted, range: std::ops::Range<usize>, recording: &Recording) -> impl Iterator<Item = f64> {
    let flow = recording.flow(noted.flow.as_deref());
    let path = noted.path.as_ref().and_then(|path| recording.paths.iter().position(|name| name == path));
    let quantity = noted.quantity;
    recording.entries[range].iter().filter_map(move |entry| recording.value(entry, quantity, flow?, path))
}

/// The entries between two marks; none if one of the marks did not occur.
fn range(
    between: [Option<usize>; 2],
    moments: &[Option<Moment>],
    recording: &Recording,
) -> Option<std::ops::Range<usize>> {
    let start = between[0].map_or(Some(0), |mark| Some(moments[mark]?.index))?;
    let end = between[1].map_or(Some(recording.entries.len()), |mark| Some(moments[mark]?.index + 1))?;
    Some(start..end.max(start))
}

/// The keys of one or several entries of a result.
fn entries(at: &At<'_>) -> Result<Vec<String>> {
    match at.is_array() {
        false => Ok(vec![at.string()?.to_owned()]),
        true => match at.array("an array of keys")? {
            none if none.is_empty() => Err(at.error("there must be one entry at least")),
            some => some.iter().map(|at| at.string().map(str::to_owned)).collect(),
        },
    }
}

/// The measure that is being read.
#[derive(Default)]
pub(super) struct MeasureDraft {
    name: String,
    unit: Option<Unit>,
    result: Option<Vec<String>>,
    minus: Vec<String>,
    per: Vec<String>,
    mark: Option<usize>,
    since: Option<usize>,
    quantity: Option<Quantity>,
    flow: Option<String>,
    path: Option<String>,
    at: Option<usize>,
    extreme: Option<bool>,
    count: Option<Event>,
    from: Option<usize>,
    to: Option<usize>,
}

pub(super) const KEYS: &[Key<Draft<MeasureDraft>>] = &[
    Key {
        name: "name",
        takes: "string",
        default: Default::Required,
        doc: "The name.",
        read: |draft, at| at.string().map(|name| draft.of.name = name.to_owned()),
    },
    Key {
        name: "result",
        takes: "keys, with dots between, or an array of them",
        default: Default::Text("not an entry of the result"),
        doc: "An entry of what `anabranch run --json` prints for the run (`flows.transfer.completion`, `links.primary a>b.dropped`, `stations.a0 air.drops.queue`), or of what a model gives. Of several, the sum.",
        read: |draft, at| entries(at).map(|paths| draft.of.result = Some(paths)),
    },
    Key {
        name: "minus",
        takes: "keys, with dots between, or an array of them",
        default: Default::Text("nothing"),
        doc: "Another entry of the same run's result, which is subtracted from `result`. Of several, the sum.",
        read: |draft, at| entries(at).map(|paths| draft.of.minus = paths),
    },
    Key {
        name: "per",
        takes: "keys, with dots between, or an array of them",
        default: Default::Text("nothing"),
        doc: "Another entry of the same run's result, by which `result` is divided: the goodput of one flow per that of another. Of several, the sum.",
        read: |draft, at| entries(at).map(|paths| draft.of.per = paths),
    },
    Key {
        name: "unit",
        takes: "`\"s\"`, `\"B\"`, `\"bit/s\"`, `\"1\"`",
        default: Default::Value("\"1\""),
        doc: "The unit of `result`; that of the others is known.",
        read: |draft, at| {
            let names: Vec<_> = Unit::NAMES.iter().map(|(name, _)| *name).collect();
            let name = at.one_of("unit", &names)?;
            draft.of.unit = Unit::NAMES.iter().find(|(known, _)| *known == name).map(|(_, unit)| *unit);
            Ok(())
        },
    },
    Key {
        name: "time",
        takes: "mark",
        default: Default::Text("not a time"),
        doc: "The time of this mark.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.mark = Some(mark)),
    },
    Key {
        name: "since",
        takes: "mark",
        default: Default::Text("the beginning of the run"),
        doc: "The mark from which `time` is counted.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.since = Some(mark)),
    },
    Key {
        name: "quantity",
        takes: mark::QUANTITIES,
        default: Default::Text("not a quantity"),
        doc: "A quantity: `at` a mark, or its `extreme`.",
        read: |draft, at| mark::quantity(at).map(|quantity| draft.of.quantity = Some(quantity)),
    },
    Key {
        name: "flow",
        takes: "name",
        default: Default::Text("the first"),
        doc: "The flow whose sender reports the quantity.",
        read: |draft, at| at.name().map(|flow| draft.of.flow = Some(flow)),
    },
    Key {
        name: "path",
        takes: "path",
        default: Default::Text("none"),
        doc: "The path. A quantity of a path requires it.",
        read: |draft, at| at.string().map(|path| draft.of.path = Some(path.to_owned())),
    },
    Key {
        name: "at",
        takes: "mark",
        default: Default::Text("none"),
        doc: "The mark at which `quantity` is read: its last value up to then.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.at = Some(mark)),
    },
    Key {
        name: "extreme",
        takes: "`\"lowest\"`, `\"highest\"`",
        default: Default::Text("none"),
        doc: "Which of the values of `quantity` between `from` and `to`.",
        read: |draft, at| {
            at.one_of("choice", &["lowest", "highest"])
                .map(|which| draft.of.extreme = Some(which == "highest"))
        },
    },
    Key {
        name: "count",
        takes: "event",
        default: Default::Text("not a count"),
        doc: "The number of such events between `from` and `to`, both included.",
        read: |draft, at| mark::event(at, &draft.marks).map(|event| draft.of.count = Some(event)),
    },
    Key {
        name: "from",
        takes: "mark",
        default: Default::Text("the beginning of the run"),
        doc: "The mark at which `extreme` or `count` begins.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.from = Some(mark)),
    },
    Key {
        name: "to",
        takes: "mark",
        default: Default::Text("the end of the run"),
        doc: "The mark at which `extreme` or `count` ends.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.to = Some(mark)),
    },
];

/// Reads a `[[measure]]`.
pub(super) fn measure(at: &At<'_>, marks: &[String]) -> Result<Measure> {
    let mut draft = Draft::new(MeasureDraft::default(), marks);
    fill(&mut draft, at, KEYS)?;
    let (name, of) = (draft.of.name.clone(), draft.of);
    let kinds = [of.result.is_some(), of.mark.is_some(), of.quantity.is_some(), of.count.is_some()];
    if kinds.iter().filter(|given| **given).count() != 1 {
        return Err(at.error("a measure is one of `result`, `time`, `quantity` and `count`"));
    }
    belongs(at, "since", &["time"])?;
    ["unit", "minus", "per"].into_iter().try_for_each(|key| belongs(at, key, &["result"]))?;
    ["at", "extreme", "flow", "path"].into_iter().try_for_each(|key| belongs(at, key, &["quantity"]))?;
    ["from", "to"].into_iter().try_for_each(|key| belongs(at, key, &["extreme", "count"]))?;
    let between = [of.from, of.to];
    let (unit, of) = match (of.result, of.mark, of.quantity, of.count) {
        (Some(entries), ..) => {
            let source = MeasureSource::Result { of: entries, minus: of.minus, per: of.per };
            (of.unit.unwrap_or(Unit::Count), source)
        }
        (_, Some(mark), ..) => (Unit::Seconds, MeasureSource::Time { mark, since: of.since }),
        (_, _, Some(quantity), _) => {
            let unit_of_quantity = quantity.unit();
            let quantity = mark::noted(at, quantity, of.flow, of.path)?;
            let of = match (of.at, of.extreme) {
                (Some(mark), None) => MeasureSource::At { quantity, mark },
                (None, Some(highest)) => MeasureSource::Extreme { quantity, highest, between },
                _ => return Err(at.error("a quantity is read `at` a mark, or at its `extreme`")),
            };
            (unit_of_quantity, of)
        }
        (.., Some(event)) => (Unit::Count, MeasureSource::Count { event, between }),
        _ => return Err(at.error("a measure is one of `result`, `time`, `quantity` and `count`")),
    };
    Ok(Measure { name, unit, of })
}
