//! The keys of a `[[claim]]`.

use anabranch_sim::scenario::keys::{Default, Key, KeyDoc, docs};

/// The keys of a `[[claim]]`. Most are read together, after the form of the claim is known.
pub(super) const KEYS: &[Key<()>] = &[
    key("id", "string", Default::Required, "The name. With `{COLUMN}` there is one claim for each row."),
    key("source", "string", Default::Required, "The source in the paper: table, figure or section."),
    key(
        "form",
        "`\"value\"`, `\"ratio\"`, `\"order\"`, `\"sequence\"`, `\"crossing\"`, `\"threshold\"`, `\"means\"`, `\"worse\"`",
        Default::Required,
        "The form of the claim; see the forms above.",
    ),
    key("experiment", "experiment", Default::Required, "The experiment. `{COLUMN}` is replaced by a field."),
    key(
        "variant",
        "variant",
        Default::Text("the first"),
        "The variant under which it is judged. `{COLUMN}` is replaced by a field.",
    ),
    key(
        "beside",
        "boolean",
        Default::Value("true"),
        "Whether the values under the other variants are shown too.",
    ),
    key(
        "set",
        "array of `\"KEY=VALUE\"`",
        Default::Value("[]"),
        "Further edits, which follow those of the variant.",
    ),
    key("measure", "measure", Default::Text("none"), "The measure; a sequence needs none."),
    key(
        "over",
        "`\"KEY=A,B\"`",
        Default::Text("none"),
        "The edits that a ratio, an order, a crossing, means or worse compares, in the form of `--vary`.",
    ),
    key(
        "along",
        "array of `\"KEY=A,B\"`",
        Default::Text("none"),
        "For a ratio or an order: further edits that change together with `over`; each has as many values.",
    ),
    key(
        "like",
        "reference",
        Default::Text("ascending, as listed"),
        "For an order: the reference whose values have the expected order.",
    ),
    key(
        "marks",
        "array of marks",
        Default::Text("none"),
        "For a sequence: the marks in their expected order.",
    ),
    key("key", "key", Default::Text("none"), "For a crossing: the key that varies, in the form of `--set`."),
    key(
        "from",
        "quantity",
        Default::Text("none"),
        "For a crossing: the beginning of the interval that is searched.",
    ),
    key("to", "quantity", Default::Text("none"), "For a crossing: the end of the interval."),
    key(
        "precision",
        "share",
        Default::Value("\"0.1 %\""),
        "For a crossing: the relative precision at which the bisection ends.",
    ),
    key(
        "points",
        "count",
        Default::Value("2"),
        "For a crossing: the number of evenly spaced values that are compared first. The last change of order among them is bisected.",
    ),
    key(
        "where",
        "table",
        Default::Text("all runs"),
        "A condition for runs to count: measures lie within these bounds, the lower one included: `{ loss = [\"1.5 %\", \"2.5 %\"] }`.",
    ),
    key("by", "measure", Default::Text("none"), "For a threshold: the measure that groups the runs."),
    key(
        "against",
        "experiment",
        Default::Text("none"),
        "For a threshold: the experiment with which `measure` is compared.",
    ),
    key(
        "width",
        "share or number",
        Default::Text("a group is a point of `vary`"),
        "For a threshold: the width of a group. Groups are centred on its multiples.",
    ),
    key(
        "least",
        "count",
        Default::Value("5"),
        "For a threshold: the smallest number of runs of a group that counts.",
    ),
    key(
        "factor",
        "number",
        Default::Text("none"),
        "For `worse`: how many times the smallest of the other values counts as worse.",
    ),
    key(
        "first",
        "count",
        Default::Text("all rows"),
        "For `means` and `worse`: the number of rows that are run, unless `reproduce --rows` gives another.",
    ),
    key(
        "rows",
        "file",
        Default::Text("none"),
        "A CSV in the paper's folder: one claim for each of its rows; of `means` and `worse` one claim about all of them.",
    ),
    key("only", "table", Default::Text("all rows"), "The rows that are used: `{ COLUMN = [CELL, …] }`."),
    key(
        "each",
        "table",
        Default::Text("none"),
        "Further fields: `{ NAME = [TEXT, …] }`, one claim for each combination.",
    ),
    key(
        "errors",
        "table",
        Default::Text("none"),
        "The standard errors of published values: `{ ns2 = \"ns2_error\" }`, each a column or a number. With `{ ns2 = { sd = \"sd\", n = \"n\" } }` the larger of both standard deviations is used for both samples.",
    ),
    key(
        "within",
        "table",
        Default::Text("none"),
        "The largest deviations from published values: `{ ns2 = \"0.5 %\", paper = [\"1 %\", \"1 ms\"], measured = \"4.2 standard errors\" }`; of several tolerances the widest counts. A standard error is that of the difference; it combines those of the sample and of the published value (`errors`).",
    ),
    key("at_least", "quantity", Default::Text("none"), "The value is at least this."),
    key("at_most", "quantity", Default::Text("none"), "The value is at most this."),
    key("expected", "boolean", Default::Value("true"), "Whether it is expected to hold."),
    key("reason", "string", Default::Text("none"), "The reason, if it is not expected to hold."),
    key(
        "exceptions",
        "table",
        Default::Text("none"),
        "Rows that are not expected to hold: `{ \"ID\" = \"reason\" }`.",
    ),
];

const fn key(name: &'static str, takes: &'static str, default: Default, doc: &'static str) -> Key<()> {
    Key { name, takes, default, doc, read: |(), _| Ok(()) }
}

/// The key for the values of a reference.
const REFERENCE: Key<()> = key(
    "REFERENCE",
    "column or number, or an array of them",
    Default::Text("none"),
    "The values of a reference, under its name (`paper`, `ns2`), in SI units: one for each compared value. An empty cell means that no value was published, `-` that the event does not occur.",
);

/// The documentation of the keys of a claim.
pub(super) fn key_docs() -> Vec<KeyDoc> {
    [docs(KEYS), docs(&[REFERENCE])].concat()
}

/// Whether this name is already a key of a claim or of its verdict in JSON.
pub(super) fn is_taken(name: &str) -> bool {
    const VERDICT: &[&str] = &[
        "unit",
        "of",
        "holds",
        "anabranch",
        "sample",
        "interval",
        "tolerance",
        "note",
        "variant",
        REFERENCE.name,
    ];
    KEYS.iter().any(|key| key.name == name) || VERDICT.contains(&name)
}
