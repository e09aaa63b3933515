//! Reads the figures of `paper.toml`.

use std::time::Duration;

use super::claim::Form;
use super::mark;
use super::read::{Draft, PaperDraft, fill, named, over};
use super::{Below, CurveFigure, Figure, Paper, Quantity};
use crate::grid::Variation;
use anabranch_sim::scenario::ScenarioError;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::keys::{Default, Key};

/// The figure that is being read.
#[derive(std::default::Default)]
pub(super) struct FigureDraft {
    name: String,
    title: String,
    experiment: usize,
    over: Option<Variation>,
    quantity: Option<Quantity>,
    throughput: Option<Duration>,
    path: Option<String>,
    level: Option<u64>,
    flow: Option<String>,
    modulo: Option<u32>,
    link: String,
    since: usize,
    before: Duration,
    from: Duration,
    after: Duration,
    shown: Vec<usize>,
    experiments: Vec<String>,
}

pub(super) const FIGURE_KEYS: &[Key<Draft<FigureDraft>>] = &[
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
        read: |draft, at| at.string().map(|title| draft.of.title = title.to_owned()),
    },
    Key {
        name: "experiment",
        takes: "experiment",
        default: Default::Required,
        doc: "The experiment that is drawn, under the first variant.",
        read: |draft, at| {
            let names: Vec<_> = draft.of.experiments.clone();
            named(at, "experiment", names.iter().map(String::as_str)).map(|i| draft.of.experiment = i)
        },
    },
    Key {
        name: "over",
        takes: "`\"KEY=A,B\"`",
        default: Default::Required,
        doc: "The edit that differs between the columns, in the form of `--vary`.",
        read: |draft, at| over(at, at.string()?).map(|over| draft.of.over = Some(over)),
    },
    Key {
        name: "link",
        takes: "link, or `\"link a>b\"`",
        default: Default::Required,
        doc: "The link whose drops are shown among the sequence numbers, and whose throughput.",
        read: |draft, at| at.string().map(|link| draft.of.link = link.to_owned()),
    },
    Key {
        name: "quantity",
        takes: super::mark::QUANTITIES,
        default: Default::Text("not a quantity"),
        doc: "The quantity of the lower chart.",
        read: |draft, at| mark::quantity(at).map(|quantity| draft.of.quantity = Some(quantity)),
    },
    Key {
        name: "throughput",
        takes: "duration",
        default: Default::Text("a quantity"),
        doc: "Instead of `quantity`: what `link` carries, of all flows, as the mean of each interval of this length.",
        read: |draft, at| {
            let interval = at.duration()?;
            if interval.is_zero() {
                return Err(at.error("an interval has a length"));
            }
            draft.of.throughput = Some(interval);
            Ok(())
        },
    },
    Key {
        name: "flow",
        takes: "name",
        default: Default::Text("the first"),
        doc: "The flow whose sequence numbers and quantity are drawn.",
        read: |draft, at| at.string().map(|flow| draft.of.flow = Some(flow.to_owned())),
    },
    Key {
        name: "path",
        takes: "path",
        default: Default::Text("none"),
        doc: "The path. A quantity of a path requires it.",
        read: |draft, at| at.string().map(|path| draft.of.path = Some(path.to_owned())),
    },
    Key {
        name: "modulo",
        takes: "count",
        default: Default::Text("none"),
        doc: "Sequence numbers are drawn modulo this number, as points.",
        read: |draft, at| at.count(1..=1 << 30).map(|modulo| draft.of.modulo = Some(modulo)),
    },
    Key {
        name: "level",
        takes: "size",
        default: Default::Text("none"),
        doc: "A level of the quantity that is drawn as a line.",
        read: |draft, at| at.size(0..=u64::MAX).map(|level| draft.of.level = Some(level)),
    },
    Key {
        name: "since",
        takes: "mark",
        default: Default::Required,
        doc: "Times are counted from this mark.",
        read: |draft, at| draft.mark(at).map(|mark| draft.of.since = mark),
    },
    Key {
        name: "before",
        takes: "duration",
        default: Default::Value("\"0 s\""),
        doc: "The start of the chart, before that mark.",
        read: |draft, at| at.duration().map(|before| draft.of.before = before),
    },
    Key {
        name: "from",
        takes: "duration",
        default: Default::Value("\"0 s\""),
        doc: "The start of the chart, after that mark.",
        read: |draft, at| at.duration().map(|from| draft.of.from = from),
    },
    Key {
        name: "after",
        takes: "duration",
        default: Default::Required,
        doc: "The end of the chart, after that mark.",
        read: |draft, at| at.duration().map(|after| draft.of.after = after),
    },
    Key {
        name: "marks",
        takes: "array of marks",
        default: Default::Value("[]"),
        doc: "The marks that are shown.",
        read: |draft, at| {
            let shown = at.array("an array of marks")?;
            draft.of.shown = shown.iter().map(|at| draft.mark(at)).collect::<Result<_>>()?;
            Ok(())
        },
    },
];

/// The most intervals of a throughput that a chart shows.
const MOST_INTERVALS: u128 = 100_000;

/// Rejects times that no chart can have.
fn check_times(at: &At<'_>, of: &FigureDraft) -> Result<()> {
    if of.from > of.after || of.before + of.after == of.from {
        return Err(at.error_below("after", "the chart ends before it begins"));
    }
    let Some(interval) = of.throughput else { return Ok(()) };
    let intervals = (of.before + of.after - of.from).as_nanos() / interval.as_nanos();
    match intervals > MOST_INTERVALS {
        true => {
            let message =
                format!("the chart would have {intervals} intervals; {MOST_INTERVALS} are possible");
            Err(at.error_below("throughput", message).hint("take longer intervals, or a shorter chart"))
        }
        false => Ok(()),
    }
}

/// Reads a figure.
pub(super) fn figure(at: &At<'_>, paper: &PaperDraft) -> Result<Figure> {
    let of = FigureDraft { experiments: paper.experiment_names(), ..FigureDraft::default() };
    let mut draft = Draft::new(of, &paper.mark_names());
    fill(&mut draft, at, FIGURE_KEYS)?;
    let of = draft.of;
    check_times(at, &of)?;
    let Some(over) = of.over else { return Err(at.error("`over` is needed")) };
    let below = match (of.quantity, of.throughput) {
        (Some(quantity), None) => Below::Noted(mark::noted(at, quantity, of.flow.clone(), of.path)?),
        (None, Some(interval)) => Below::Throughput(interval),
        _ => return Err(at.error("a figure has a `quantity` or a `throughput` below")),
    };
    Ok(Figure {
        name: of.name,
        title: of.title,
        experiment: of.experiment,
        over,
        flow: of.flow,
        below,
        level: of.level,
        modulo: of.modulo,
        link: of.link,
        since: of.since,
        before: of.before,
        from: of.from,
        after: of.after,
        marks: of.shown,
    })
}

pub(super) const CURVE_KEYS: &[Key<CurveFigure>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name, which is also the name of the file.",
        read: |curve, at| at.name().map(|name| curve.name = name),
    },
    Key {
        name: "title",
        takes: "string",
        default: Default::Required,
        doc: "The title above the figure.",
        read: |curve, at| at.string().map(|title| title.clone_into(&mut curve.title)),
    },
    Key {
        name: "claim",
        takes: "claim",
        default: Default::Required,
        doc: "The claim about a threshold whose groups of runs are drawn, with the 90 % intervals of their means, beside what they are compared with.",
        read: |curve, at| at.string().map(|claim| claim.clone_into(&mut curve.claim)),
    },
];

/// Reads a curve.
pub(super) fn curve(at: &At<'_>) -> Result<CurveFigure> {
    let mut curve = CurveFigure { name: String::new(), title: String::new(), claim: String::new() };
    fill(&mut curve, at, CURVE_KEYS)?;
    Ok(curve)
}

/// Rejects a curve without a claim about a threshold.
pub(super) fn check_curves(paper: &Paper) -> std::result::Result<(), ScenarioError> {
    for curve in &paper.curves {
        let thresholds = paper.cases.iter().filter(|case| matches!(case.form, Form::Threshold(_)));
        let names: Vec<&str> = thresholds.map(|case| case.id.as_str()).collect();
        if !names.contains(&curve.claim.as_str()) {
            let message = format!("`{}` is no claim about a threshold", curve.claim);
            let error = paper.document.error(&format!("curve.{}.claim", curve.name), message);
            return Err(error.hint(match names.is_empty() {
                true => "the paper has no claim of the form `threshold`".to_owned(),
                false => did_you_mean(&curve.claim, names),
            }));
        }
    }
    Ok(())
}
