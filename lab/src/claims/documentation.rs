//! The keys of a paper's files, for `docs/papers.md`.

use super::{claim_keys, figures, mark, measure, pictures, read};
use anabranch_sim::scenario::keys::{Section, docs};

/// Every table and key of `paper.toml` and `claims.toml`.
pub fn sections() -> Vec<Section> {
    let section = |header, keys| Section { header, keys };
    vec![
        section("", docs(read::KEYS)),
        section("[[variant]]", docs(read::VARIANT_KEYS)),
        section("[[reference]]", docs(read::REFERENCE_KEYS)),
        section("[[experiment]]", docs(read::EXPERIMENT_KEYS)),
        section("[[mark]]", docs(mark::KEYS)),
        section("event", docs(mark::EVENT_KEYS)),
        section("[[measure]]", docs(measure::KEYS)),
        section("[[figure]]", docs(figures::FIGURE_KEYS)),
        section("[[curve]]", docs(figures::CURVE_KEYS)),
        section("[[map]]", docs(pictures::MAP_KEYS)),
        section("[[exchange]]", docs(pictures::EXCHANGE_KEYS)),
        section("[[bars]]", docs(pictures::BARS_KEYS)),
        section("[[bars.series]]", docs(pictures::SERIES_KEYS)),
        section("[[claim]]", claim_keys::key_docs()),
    ]
}
