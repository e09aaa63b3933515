//! Reads the figures of `paper.toml` that need no mark: maps of radios, exchanges between the ends of a flow, and
//! groups of bars.

use std::time::Duration;

use super::claim::{Bounds, Case, Form, experiment_of, lists, measure};
use super::read::{Draft, PaperDraft, edits, fill, named, over};
use super::rows::Table;
use super::text::{self, Fields};
use super::{Bars, ExchangeFigure, MapFigure, Paper, PaperError, Published};
use crate::grid::Variation;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::keys::{Default, Key};

/// The map that is being read.
#[derive(std::default::Default)]
pub(super) struct MapDraft {
    name: String,
    title: String,
    experiment: usize,
    set: Vec<String>,
    around: Vec<String>,
    experiments: Vec<String>,
}

pub(super) const MAP_KEYS: &[Key<MapDraft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name, which is also the name of the file.",
        read: |map, at| at.name().map(|name| map.name = name),
    },
    Key {
        name: "title",
        takes: "string",
        default: Default::Required,
        doc: "The title above the figure.",
        read: |map, at| at.string().map(|title| title.clone_into(&mut map.title)),
    },
    Key {
        name: "experiment",
        takes: "experiment",
        default: Default::Required,
        doc: "The experiment whose radios are drawn at their places, under the first variant.",
        read: |map, at| {
            named(at, "experiment", map.experiments.iter().map(String::as_str)).map(|i| map.experiment = i)
        },
    },
    Key {
        name: "set",
        takes: "array of `\"KEY=VALUE\"`",
        default: Default::Value("[]"),
        doc: "Further edits, which follow those of the variant.",
        read: |map, at| edits(at).map(|set| map.set = set),
    },
    Key {
        name: "around",
        takes: "array of nodes",
        default: Default::Value("[]"),
        doc: "The nodes around which circles show how far frames are read, sensed, and spoil others (`reception = \"range\"`).",
        read: |map, at| {
            map.around = text::strings(at)?.into_iter().map(str::to_owned).collect();
            Ok(())
        },
    },
];

/// Reads a map.
pub(super) fn map(at: &At<'_>, paper: &PaperDraft) -> Result<MapFigure> {
    let experiments = paper.experiment_names();
    let mut draft = MapDraft { experiments, ..MapDraft::default() };
    fill(&mut draft, at, MAP_KEYS)?;
    let MapDraft { name, title, experiment, set, around, .. } = draft;
    Ok(MapFigure { name, title, experiment, set, around })
}

/// The exchange that is being read.
#[derive(std::default::Default)]
pub(super) struct ExchangeDraft {
    name: String,
    title: String,
    experiment: usize,
    over: Option<Variation>,
    along: Vec<Variation>,
    headings: Vec<String>,
    flow: Option<String>,
    from: Duration,
    to: Duration,
    experiments: Vec<String>,
}

pub(super) const EXCHANGE_KEYS: &[Key<Draft<ExchangeDraft>>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name, which is also the name of the file.",
        read: |draft, at| at.name().map(|name| draft.of.name = name),
    },
    Key {
        name: "title",
        takes: "string",
        default: Default::Required,
        doc: "The title above the figure.",
        read: |draft, at| at.string().map(|title| title.clone_into(&mut draft.of.title)),
    },
    Key {
        name: "experiment",
        takes: "experiment",
        default: Default::Required,
        doc: "The experiment that is drawn, under the first variant.",
        read: |draft, at| {
            let names = draft.of.experiments.clone();
            named(at, "experiment", names.iter().map(String::as_str)).map(|i| draft.of.experiment = i)
        },
    },
    Key {
        name: "over",
        takes: "`\"KEY=A,B\"`",
        default: Default::Required,
        doc: "The edit that differs between the charts, which stand one below the other, in the form of `--vary`.",
        read: |draft, at| over(at, at.string()?).map(|over| draft.of.over = Some(over)),
    },
    Key {
        name: "along",
        takes: "array of `\"KEY=A,B\"`",
        default: Default::Value("[]"),
        doc: "Further edits that change together with `over`; each has as many values.",
        read: |draft, at| {
            let read = at.array("an array of edits")?;
            draft.of.along = read.iter().map(|at| over(at, at.string()?)).collect::<Result<_>>()?;
            Ok(())
        },
    },
    Key {
        name: "headings",
        takes: "array of strings",
        default: Default::Text("the values of `over`"),
        doc: "The headings of the charts.",
        read: |draft, at| {
            draft.of.headings = text::strings(at)?.into_iter().map(str::to_owned).collect();
            Ok(())
        },
    },
    Key {
        name: "flow",
        takes: "name",
        default: Default::Text("the first"),
        doc: "The flow whose packets are drawn.",
        read: |draft, at| at.string().map(|flow| draft.of.flow = Some(flow.to_owned())),
    },
    Key {
        name: "from",
        takes: "duration",
        default: Default::Required,
        doc: "The first packet that is drawn leaves at this time of the run or later.",
        read: |draft, at| at.duration().map(|from| draft.of.from = from),
    },
    Key {
        name: "to",
        takes: "duration",
        default: Default::Required,
        doc: "The last packet that is drawn leaves by this time.",
        read: |draft, at| at.duration().map(|to| draft.of.to = to),
    },
];

/// Reads an exchange.
pub(super) fn exchange(at: &At<'_>, paper: &PaperDraft) -> Result<ExchangeFigure> {
    let of = ExchangeDraft { experiments: paper.experiment_names(), ..ExchangeDraft::default() };
    let mut draft = Draft::new(of, &[]);
    fill(&mut draft, at, EXCHANGE_KEYS)?;
    let ExchangeDraft { name, title, experiment, over, along, mut headings, flow, from, to, .. } = draft.of;
    let Some(over) = over else { return Err(at.error("`over` is needed")) };
    if headings.is_empty() {
        headings.clone_from(&over.values);
    }
    if headings.len() != over.values.len() {
        return Err(at.error_below("headings", format!("there are {} charts", over.values.len())));
    }
    if from >= to {
        return Err(at.error_below("to", "this must be after `from`"));
    }
    if along.iter().any(|edit| edit.values.len() != over.values.len()) {
        let message = format!("`over` has {} values, and one of these has not", over.values.len());
        return Err(at.error_below("along", message));
    }
    Ok(ExchangeFigure { name, title, experiment, over, along, headings, flow, between: [from, to] })
}

/// The keys of bars, which are read together once experiments and measures are known.
pub(super) const BARS_KEYS: &[Key<()>] = &[
    key("name", "name", Default::Required, "The name, which is also the name of the file."),
    key("title", "string", Default::Required, "The title above the figure."),
    key(
        "rows",
        "file",
        Default::Required,
        "A CSV in the paper's folder: one group of bars for each of its rows.",
    ),
    key("only", "table", Default::Text("all rows"), "The rows that are used: `{ COLUMN = [CELL, …] }`."),
    key(
        "group",
        "string",
        Default::Required,
        "The name below a group; `{COLUMN}` stands for a cell of its row.",
    ),
    key("experiment", "experiment", Default::Required, "The experiment, under the first variant."),
    key(
        "measure",
        "measure",
        Default::Required,
        "The measure whose mean over the seeds is the height of a bar.",
    ),
    key("series", "tables", Default::Required, "The bars of each group, each a `[[bars.series]]`."),
];

/// The keys of a series of bars.
pub(super) const SERIES_KEYS: &[Key<SeriesDraft>] = &[
    Key {
        name: "name",
        takes: "string",
        default: Default::Required,
        doc: "The name in the legend.",
        read: |series, at| at.string().map(|name| name.clone_into(&mut series.name)),
    },
    Key {
        name: "set",
        takes: "array of `\"KEY=VALUE\"`",
        default: Default::Value("[]"),
        doc: "Edits that follow those of the experiment and the variant; `{COLUMN}` stands for a cell of the row.",
        read: |series, at| edits(at).map(|set| series.set = set),
    },
    Key {
        name: "measure",
        takes: "measure",
        default: Default::Text("that of the bars"),
        doc: "Another measure, of the same unit.",
        read: |_, at| at.string().map(drop),
    },
];

/// The series of bars that is being read.
#[derive(std::default::Default)]
pub(super) struct SeriesDraft {
    name: String,
    set: Vec<String>,
}

const fn key(name: &'static str, takes: &'static str, default: Default, doc: &'static str) -> Key<()> {
    Key { name, takes, default, doc, read: |(), _| Ok(()) }
}

/// The groups of bars of a paper whose experiments and measures are known.
pub(super) fn all_bars(paper: &Paper) -> std::result::Result<Vec<Bars>, PaperError> {
    let Some(tables) = At::root(&paper.document).get("bars") else { return Ok(Vec::new()) };
    tables.tables()?.iter().map(|at| bars(at, paper)).collect()
}

fn bars(at: &At<'_>, paper: &Paper) -> std::result::Result<Bars, PaperError> {
    let needed = |key: &str| at.get(key).ok_or_else(|| at.error_below(key, "this key is missing"));
    let table = Table::read(&paper.folder.join(needed("rows")?.string()?))?;
    let only = at.get("only").map_or(Ok(Vec::new()), |at| lists(&at))?;
    let wrong = |(message, hint): (String, String)| at.error_below("only", message).hint(hint);
    let rows = table.only(&only).map_err(wrong)?;
    if rows.is_empty() {
        return Err(at.error_below("rows", "there is no row, so there are no bars").into());
    }
    let group = needed("group")?;
    let groups: Vec<String> =
        rows.iter().map(|row| text::filled(&group, &row.cells)).collect::<Result<_>>()?;
    let series: Vec<(At<'_>, SeriesDraft)> =
        needed("series")?.tables()?.into_iter().map(series).collect::<Result<_>>()?;
    if series.is_empty() {
        return Err(at.error_below("series", "there must be one series at least").into());
    }
    let none = Fields::new();
    let [experiment, usual] =
        [experiment_of(&needed("experiment")?, &none, paper)?, measure(&needed("measure")?, &none, paper)?];
    let mut found = Bars {
        name: needed("name")?.name()?,
        title: needed("title")?.string()?.to_owned(),
        groups,
        series: series.iter().map(|(_, series)| series.name.clone()).collect(),
        unit: paper.measures[usual].unit,
        cases: Vec::new(),
    };
    for row in &rows {
        for (at, series) in &series {
            let number = found.cases.len();
            found.cases.push(bar(at, series, (experiment, usual), &row.cells, number, paper)?);
        }
    }
    Ok(found)
}

fn series<'d>(at: At<'d>) -> Result<(At<'d>, SeriesDraft)> {
    let mut series = SeriesDraft::default();
    fill(&mut series, &at, SERIES_KEYS)?;
    Ok((at, series))
}

/// The runs of one bar, as a claim that is held against nothing.
fn bar(
    at: &At<'_>,
    series: &SeriesDraft,
    (experiment, usual): (usize, usize),
    cells: &Fields,
    number: usize,
    paper: &Paper,
) -> Result<Case> {
    let fill_all = |texts: &[String]| -> Result<Vec<String>> {
        let refuse = |(message, hint): (String, String)| at.error_below("set", message).hint(hint);
        texts.iter().map(|text| text::fill(text, cells).map_err(refuse)).collect()
    };
    let measure = match at.get("measure") {
        Some(at) => measure(&at, cells, paper)?,
        None => usual,
    };
    let unit = paper.measures[measure].unit;
    if unit != paper.measures[usual].unit {
        return Err(at.error_below("measure", "this has another unit than the measure of the bars"));
    }
    Ok(Case {
        id: number.to_string(),
        source: series.name.clone(),
        form: Form::Value { measure },
        experiment,
        variant: 0,
        beside: false,
        along: Vec::new(),
        edits: [fill_all(&paper.experiments[experiment].set)?, fill_all(&series.set)?],
        pool: Vec::new(),
        rows: 0,
        conditions: Vec::new(),
        unit,
        published: paper.references.iter().map(|_| Published::default()).collect(),
        within: Vec::new(),
        bounds: Bounds::default(),
        expected: true,
        reason: None,
    })
}
