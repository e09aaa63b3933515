//! The keys of a `[[claim]]`.

use anabranch_sim::scenario::keys::{Default, Key, KeyDoc, docs};

/// The keys of a `[[claim]]`. Most are read together, once it is known what the claim is about.
pub(super) const KEYS: &[Key<()>] = &[
    key("id", "string", Default::Required, "Its name; `{COLUMN}` makes one for each row."),
    key("source", "string", Default::Required, "Where the paper says so: table, figure or section."),
    key(
        "form",
        "`\"value\"`, `\"ratio\"`, `\"order\"`, `\"sequence\"`, `\"crossing\"`, `\"threshold\"`, `\"means\"`, `\"worse\"`",
        Default::Required,
        "What is claimed: see the forms above.",
    ),
    key("experiment", "experiment", Default::Required, "What is run; `{COLUMN}` stands for a field."),
    key(
        "variant",
        "variant",
        Default::Text("the first"),
        "Under which edits it is judged; `{COLUMN}` stands for a field.",
    ),
    key(
        "beside",
        "boolean",
        Default::Value("true"),
        "Whether the values under the other variants stand beside.",
    ),
    key("set", "array of `\"KEY=VALUE\"`", Default::Value("[]"), "Edits of its own, after the variant's."),
    key("measure", "measure", Default::Text("none"), "What is measured; a sequence needs none."),
    key(
        "over",
        "`\"KEY=A,B\"`",
        Default::Text("none"),
        "The edits that ratio, order, crossing, means and worse compare, as `--vary` takes them.",
    ),
    key(
        "along",
        "array of `\"KEY=A,B\"`",
        Default::Text("none"),
        "Of a ratio or an order: further edits that change along with `over`, each with as many values.",
    ),
    key(
        "like",
        "reference",
        Default::Text("ascending, as listed"),
        "Of an order: it is the order of the values of this reference.",
    ),
    key("marks", "array of marks", Default::Text("none"), "Of a sequence: they come in this order."),
    key("key", "key", Default::Text("none"), "Of a crossing: what is sought, as `--set` addresses it."),
    key("from", "quantity", Default::Text("none"), "Of a crossing: where the search begins."),
    key("to", "quantity", Default::Text("none"), "Of a crossing: where it ends."),
    key("precision", "share", Default::Value("\"0.1 %\""), "Of a crossing: when the bisection ends."),
    key(
        "points",
        "count",
        Default::Value("2"),
        "Of a crossing: at how many values, evenly spaced, the order is looked at first; the last change is bisected.",
    ),
    key(
        "where",
        "table",
        Default::Text("all runs"),
        "Which runs count: those in which measures lie within bounds, the lower one included: `{ loss = [\"1.5 %\", \"2.5 %\"] }`.",
    ),
    key("by", "measure", Default::Text("none"), "Of a threshold: by which measure runs are grouped."),
    key("against", "experiment", Default::Text("none"), "Of a threshold: what `measure` is compared with."),
    key(
        "width",
        "share or number",
        Default::Text("a group is a point of `vary`"),
        "Of a threshold: how wide a group is; groups lie about the multiples of it.",
    ),
    key("least", "count", Default::Value("5"), "Of a threshold: groups of fewer runs do not count."),
    key("factor", "number", Default::Text("none"), "Of `worse`: how many times the least of the others."),
    key(
        "first",
        "count",
        Default::Text("all rows"),
        "Of `means` and `worse`: so many rows of the table are run, unless `reproduce --rows` says how many.",
    ),
    key(
        "rows",
        "file",
        Default::Text("none"),
        "A CSV in the paper's folder: one claim for each of its rows; of `means` and `worse` one claim about all of them.",
    ),
    key("only", "table", Default::Text("all rows"), "Which rows: `{ COLUMN = [CELL, …] }`."),
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
        "The standard errors of published values: `{ ns2 = \"ns2_error\" }`, each a column or a number; or `{ ns2 = { sd = \"sd\", n = \"n\" } }`: then the larger of both standard deviations counts for both samples.",
    ),
    key(
        "within",
        "table",
        Default::Text("none"),
        "How near the value must come: `{ ns2 = \"0.5 %\", paper = [\"1 %\", \"1 ms\"], measured = \"4.2 standard errors\" }`; of several tolerances the widest counts. Standard errors are those of the difference: of the sample and of the published value (`errors`), combined.",
    ),
    key("at_least", "quantity", Default::Text("none"), "The value is at least this."),
    key("at_most", "quantity", Default::Text("none"), "The value is at most this."),
    key("expected", "boolean", Default::Value("true"), "Whether it is expected to hold."),
    key("reason", "string", Default::Text("none"), "Why it is not expected to."),
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

/// The key of a claim that every reference has.
const REFERENCE: Key<()> = key(
    "REFERENCE",
    "column or number, or an array of them",
    Default::Text("none"),
    "What a reference says, under its name (`paper`, `ns2`), in SI units: a value for each that is compared. An empty cell says nothing, `-` that it does not come to it.",
);

/// The documentation of the keys of a claim.
pub(super) fn key_docs() -> Vec<KeyDoc> {
    [docs(KEYS), docs(&[REFERENCE])].concat()
}

/// Whether a claim, or its verdict as JSON, has an entry of this name already.
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
