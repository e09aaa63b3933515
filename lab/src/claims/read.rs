//! Reads a paper's folder: `paper.toml`, `claims.toml`, and the tables that they name.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::claim::cases;
use super::mark::{self, mark};
use super::measure::measure;
use super::text::strings;
use super::{CurveFigure, ExchangeFigure, Experiment, Figure, MapFigure, Paper, Reference, Runs, Variant};
use super::{figures, pictures};
use crate::grid::{Variation, repeated};
use crate::models;
use anabranch_sim::scenario::at::{At, Result};
use anabranch_sim::scenario::error::did_you_mean;
use anabranch_sim::scenario::keys::{Default, Key, read_known};
use anabranch_sim::scenario::{Document, ScenarioError, read_text};

/// Why a paper's folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PaperError {
    /// A file is missing or unreadable.
    #[error("{}: {error}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// An error in the content of a file.
    #[error(transparent)]
    Text(#[from] ScenarioError),
}

impl Paper {
    /// The publication in `folder`.
    pub fn open(folder: &Path) -> std::result::Result<Paper, PaperError> {
        let document = document(&folder.join("paper.toml"))?;
        // `.` has a name only in its place.
        let place = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let named = folder.file_name().or_else(|| place.file_name());
        let name = named.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let references =
            DEFAULT_REFERENCES.map(|(name, title)| Reference { name: name.into(), title: title.into() });
        let mut draft =
            PaperDraft { folder: folder.to_owned(), references: references.into(), ..PaperDraft::default() };
        fill(&mut draft, &At::root(&document), KEYS)?;
        if let Some(failed) = draft.failed {
            return Err(failed);
        }
        let mut paper = Paper {
            name,
            folder: folder.to_owned(),
            title: draft.title,
            citation: draft.citation,
            variants: draft.variants,
            references: draft.references,
            experiments: draft.experiments,
            marks: draft.marks,
            measures: draft.measures,
            cases: Vec::new(),
            figures: draft.figures,
            curves: draft.curves,
            maps: draft.maps,
            exchanges: draft.exchanges,
            bars: Vec::new(),
            document,
        };
        let claims = self::document(&folder.join("claims.toml"))?;
        paper.cases = cases(&claims, &paper)?;
        figures::check_curves(&paper)?;
        paper.bars = pictures::all_bars(&paper)?;
        Ok(paper)
    }
}

/// The text of a file.
pub(super) fn text_of(file: &Path) -> std::result::Result<String, PaperError> {
    read_text(file).map_err(|error| PaperError::File { file: file.to_owned(), error })
}

fn document(file: &Path) -> std::result::Result<Document, PaperError> {
    Ok(Document::parse(&file.display().to_string(), &text_of(file)?)?)
}

/// Reads the table at `at` into `draft` with `keys`. Rejects unknown keys.
pub(crate) fn fill<T>(draft: &mut T, at: &At<'_>, keys: &[Key<T>]) -> Result<()> {
    let names: Vec<_> = keys.iter().map(|key| key.name).collect();
    match at.entries()?.iter().find(|entry| !names.contains(&entry.key.as_str())) {
        Some(entry) => Err(at.no_such_key(entry).hint(did_you_mean(&entry.key, names.iter().copied()))),
        None => read_known(draft, at, keys),
    }
}

/// The part that is being read, and the marks that it can name.
pub(super) struct Draft<T> {
    pub(super) of: T,
    pub(super) marks: Vec<String>,
}

impl<T> Draft<T> {
    pub(super) fn new(of: T, marks: &[String]) -> Self {
        Draft { of, marks: marks.to_vec() }
    }

    /// The index of the mark named at `at`.
    pub(super) fn mark(&self, at: &At<'_>) -> Result<usize> {
        named(at, "mark", self.marks.iter().map(String::as_str))
    }
}

/// The index of the string at `at` in `names`. `what` says in errors what the names are.
pub(super) fn named<'n>(
    at: &At<'_>,
    what: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<usize> {
    let name = at.string()?;
    names.clone().position(|known| known == name).ok_or_else(|| at.unknown(what, name, names))
}

/// The paper that is being read.
#[derive(std::default::Default)]
pub(super) struct PaperDraft {
    folder: PathBuf,
    title: String,
    citation: String,
    variants: Vec<Variant>,
    references: Vec<Reference>,
    pub(super) experiments: Vec<Experiment>,
    marks: Vec<mark::Mark>,
    measures: Vec<super::Measure>,
    figures: Vec<Figure>,
    curves: Vec<CurveFigure>,
    maps: Vec<MapFigure>,
    exchanges: Vec<ExchangeFigure>,
    /// An error in the file of a scenario.
    failed: Option<PaperError>,
}

impl PaperDraft {
    pub(super) fn mark_names(&self) -> Vec<String> {
        self.marks.iter().map(|mark| mark.name.clone()).collect()
    }

    pub(super) fn experiment_names(&self) -> Vec<String> {
        self.experiments.iter().map(|experiment| experiment.name.clone()).collect()
    }
}

pub(super) const KEYS: &[Key<PaperDraft>] = &[
    Key {
        name: "title",
        takes: "string",
        default: Default::Required,
        doc: "The subject of the paper, in one line.",
        read: |draft, at| at.string().map(|title| draft.title = title.to_owned()),
    },
    Key {
        name: "citation",
        takes: "string",
        default: Default::Required,
        doc: "The authors and the place of publication.",
        read: |draft, at| at.string().map(|citation| draft.citation = citation.trim().to_owned()),
    },
    Key {
        name: "variant",
        takes: "tables",
        default: Default::Required,
        doc: "Sets of edits that apply to all experiments, each a `[[variant]]`. A claim is judged under the first unless it names another; the values under the others are shown beside it.",
        read: |draft, at| {
            draft.variants = each_named(at, read_variant)?;
            match draft.variants.is_empty() {
                true => Err(at.error("there must be one variant at least")),
                false => Ok(()),
            }
        },
    },
    Key {
        name: "reference",
        takes: "tables",
        default: Default::Text("`paper`, and `ns2` with the title `ns-2`"),
        doc: "The sources of published values, each a `[[reference]]`.",
        read: |draft, at| {
            draft.references = each_named(at, read_reference)?;
            Ok(())
        },
    },
    Key {
        name: "experiment",
        takes: "tables",
        default: Default::Required,
        doc: "The experiments, each an `[[experiment]]`.",
        read: |draft, at| {
            let folder = draft.folder.clone();
            let read: Vec<_> = each_named(at, |at| read_experiment(at, &folder))?;
            for experiment in read {
                match experiment {
                    Ok(experiment) => draft.experiments.push(experiment),
                    Err(error) => draft.failed = draft.failed.take().or(Some(error)),
                }
            }
            Ok(())
        },
    },
    Key {
        name: "mark",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Named moments of a run, each a `[[mark]]`.",
        read: |draft, at| {
            let mut names = BTreeSet::new();
            for at in at.tables()? {
                unique(&at, &mut names)?;
                draft.marks.push(mark(&at, &draft.mark_names())?);
            }
            Ok(())
        },
    },
    Key {
        name: "measure",
        takes: "tables",
        default: Default::Required,
        doc: "Named numbers that a run yields, each a `[[measure]]`.",
        read: |draft, at| {
            let marks = draft.mark_names();
            draft.measures = each_named(at, |at| measure(at, &marks))?;
            Ok(())
        },
    },
    Key {
        name: "figure",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Figures that `--figure` draws, of single runs, each a `[[figure]]`.",
        read: |draft, at| {
            draft.figures = each_named(at, |at| figures::figure(at, draft))?;
            Ok(())
        },
    },
    Key {
        name: "curve",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Figures that `--figure` draws, of the groups of runs that a threshold is found from, each a `[[curve]]`.",
        read: |draft, at| {
            draft.curves = each_named(at, figures::curve)?;
            Ok(())
        },
    },
    Key {
        name: "map",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Figures that `--figure` draws, of radios at their places, each a `[[map]]`.",
        read: |draft, at| {
            draft.maps = each_named(at, |at| pictures::map(at, draft))?;
            Ok(())
        },
    },
    Key {
        name: "exchange",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Figures that `--figure` draws, of packets between the ends of a flow, each an `[[exchange]]`.",
        read: |draft, at| {
            draft.exchanges = each_named(at, |at| pictures::exchange(at, draft))?;
            Ok(())
        },
    },
    Key {
        name: "bars",
        takes: "tables",
        default: Default::Text("none"),
        doc: "Figures that `--figure` draws, of a measure in many settings, each a `[[bars]]`.",
        read: |_, at| each_named(at, |at| fill(&mut (), at, pictures::BARS_KEYS)).map(drop),
    },
];

/// Reads the tables of a list, whose names must be unique.
fn each_named<T>(at: &At<'_>, read: impl Fn(&At<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut names = BTreeSet::new();
    let one = |at: &At<'_>| {
        unique(at, &mut names)?;
        read(at)
    };
    at.tables()?.iter().map(one).collect()
}

fn unique(at: &At<'_>, names: &mut BTreeSet<String>) -> Result<()> {
    match at.get("name") {
        Some(name) if !names.insert(name.string()?.to_owned()) => {
            Err(name.error(format!("there is another `{}`", name.string()?)).hint("names are unique"))
        }
        _ => Ok(()),
    }
}

/// The references of a paper that names none.
const DEFAULT_REFERENCES: [(&str, &str); 2] = [("paper", "paper"), ("ns2", "ns-2")];

pub(super) const REFERENCE_KEYS: &[Key<Reference>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name that claims and JSON results use.",
        read: |reference, at| at.name().map(|name| reference.name = name),
    },
    Key {
        name: "title",
        takes: "string",
        default: Default::Text("its name"),
        doc: "The heading of its column.",
        read: |reference, at| at.string().map(|title| reference.title = title.to_owned()),
    },
];

fn read_reference(at: &At<'_>) -> Result<Reference> {
    let mut reference = Reference { name: String::new(), title: String::new() };
    fill(&mut reference, at, REFERENCE_KEYS)?;
    if super::claim_keys::is_taken(&reference.name) {
        let message = format!("`{}` has a meaning of its own in a claim", reference.name);
        return Err(at.error_below("name", message).hint("call it something else"));
    }
    if reference.title.is_empty() {
        reference.title.clone_from(&reference.name);
    }
    Ok(reference)
}

/// The variant or experiment that is being read.
#[derive(std::default::Default)]
pub(super) struct RunDraft {
    name: String,
    scenario: Option<String>,
    model: Option<String>,
    set: Vec<String>,
    vary: Vec<Variation>,
    seeds: u64,
}

const NAME: Key<RunDraft> = Key {
    name: "name",
    takes: "string",
    default: Default::Required,
    doc: "The name.",
    read: |draft, at| at.string().map(|name| draft.name = name.to_owned()),
};

pub(super) const VARIANT_KEYS: &[Key<RunDraft>] = &[
    NAME,
    Key {
        name: "set",
        takes: "array of `\"KEY=VALUE\"`",
        default: Default::Value("[]"),
        doc: "The edits, in the form of `--set`. They follow those of the experiment; models ignore them.",
        read: |draft, at| edits(at).map(|set| draft.set = set),
    },
];

pub(super) const EXPERIMENT_KEYS: &[Key<RunDraft>] = &[
    NAME,
    Key {
        name: "scenario",
        takes: "file",
        default: Default::Text("a model"),
        doc: "The scenario, in the paper's folder.",
        read: |draft, at| at.string().map(|file| draft.scenario = Some(file.to_owned())),
    },
    Key {
        name: "model",
        takes: "model",
        default: Default::Text("a scenario"),
        doc: "A model (`anabranch model`); `set` gives its inputs.",
        read: |draft, at| at.one_of("model", models::NAMES).map(|name| draft.model = Some(name.to_owned())),
    },
    Key {
        name: "set",
        takes: "array of `\"KEY=VALUE\"`",
        default: Default::Value("[]"),
        doc: "Edits, in the form of `--set`. `{COLUMN}` stands for a field of the claim: a cell of its row, or a value of `each`.",
        read: |draft, at| edits(at).map(|set| draft.set = set),
    },
    Key {
        name: "vary",
        takes: "array of `\"KEY=A,B\"`",
        default: Default::Value("[]"),
        doc: "Edits as `--vary` takes them. Every combination is run with every seed, and all the runs are one sample: what a claim says of them can be limited by `where`.",
        read: |draft, at| {
            draft.vary = strings(at)?.into_iter().map(|text| over(at, text)).collect::<Result<_>>()?;
            let keys: Vec<&str> = draft.vary.iter().map(|varied| varied.key.as_str()).collect();
            repeated(&keys).map_or(Ok(()), |(_, key)| {
                Err(at.error(format!("`{key}` is varied twice")).hint("list all its values in one string"))
            })
        },
    },
    Key {
        name: "seeds",
        takes: "count",
        default: Default::Value("1"),
        doc: "The number of seeds, beginning with the scenario's; a measure is the mean over them. `reproduce --seeds` overrides it.",
        read: |draft, at| at.count(1..=1_000_000).map(|seeds| draft.seeds = seeds),
    },
];

/// Reads the edits at `at`.
pub(super) fn edits(at: &At<'_>) -> Result<Vec<String>> {
    let edit = |text: &str| match text.contains('=') {
        true => Ok(text.to_owned()),
        false => Err(at.error(format!("`{text}` is no KEY=VALUE"))),
    };
    strings(at)?.into_iter().map(edit).collect()
}

fn read_variant(at: &At<'_>) -> Result<Variant> {
    let mut draft = RunDraft::default();
    fill(&mut draft, at, VARIANT_KEYS)?;
    Ok(Variant { name: draft.name, set: draft.set })
}

/// Reads an experiment. The outer error is the paper's, the inner one its scenario's.
fn read_experiment(at: &At<'_>, folder: &Path) -> Result<std::result::Result<Experiment, PaperError>> {
    let mut draft = RunDraft { seeds: 1, ..RunDraft::default() };
    fill(&mut draft, at, EXPERIMENT_KEYS)?;
    let RunDraft { name, scenario, model, set, vary, seeds } = draft;
    let runs = match (scenario, model) {
        (Some(file), None) => {
            let name = file.strip_suffix(".toml").unwrap_or(&file).to_owned();
            match self::document(&folder.join(&file)) {
                Ok(document) => Runs::Scenario(name, document),
                Err(PaperError::File { file, error }) => {
                    return Err(at.error_below("scenario", format!("{}: {error}", file.display())));
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        (None, Some(_)) if !vary.is_empty() => {
            return Err(at.error_below("vary", "a model has no sample"));
        }
        (None, Some(model)) => Runs::Model(model),
        _ => return Err(at.error("an experiment has a `scenario` or a `model`")),
    };
    Ok(Ok(Experiment { name, runs, set, vary, seeds }))
}

/// Parses the variation in `text`, which stands at `at`.
pub(super) fn over(at: &At<'_>, text: &str) -> Result<Variation> {
    text.parse().map_err(|error: crate::grid::BadVariation| at.error(error.to_string()))
}

/// Rejects `key` if the keys are missing of which it requires one.
pub(super) fn belongs(at: &At<'_>, key: &str, with: &[&str]) -> Result<()> {
    match at.get(key) {
        Some(value) if with.iter().all(|with| at.get(with).is_none()) => {
            let with: Vec<_> = with.iter().map(|with| format!("`{with}`")).collect();
            Err(value
                .error("this key has no effect here")
                .hint(format!("it goes with {}", with.join(" or "))))
        }
        _ => Ok(()),
    }
}
