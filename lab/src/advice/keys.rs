//! The keys that a `[[path]]` has in every question.

use anabranch_sim::scenario::at::{At, Result};

/// The share of packets that a path loses. If it loses more than half of them, an association hardly comes about, and
/// advice would not help.
pub(super) fn loss(at: &At<'_>) -> Result<f64> {
    match at.probability()? {
        loss if loss <= 0.5 => Ok(loss),
        _ => Err(at.error("a path may lose at most 50 %").hint("write it as \"1 %\"".to_owned())),
    }
}

/// The keys of a `[[path]]`: name, rate, delay and jitter, then those of one question.
macro_rules! path_keys {
    ($($own:tt)*) => {
        &[
            Key {
                name: "name",
                takes: "name",
                default: Fallback::Required,
                doc: "Its name.",
                read: |path, at| at.name().map(|name| path.name = name),
            },
            Key {
                name: "rate",
                takes: "rate",
                default: Fallback::Required,
                doc: "Its rate.",
                read: |path, at| at.rate().map(|rate| path.rate = rate),
            },
            Key {
                name: "delay",
                takes: "duration",
                default: Fallback::Required,
                doc: "Its delay, one way.",
                read: |path, at| at.duration().map(|delay| path.delay = delay),
            },
            Key {
                name: "jitter",
                takes: "duration",
                default: Fallback::Value("\"0 ms\""),
                doc: "How much later a packet arrives at most, one way.",
                read: |path, at| at.duration().map(|jitter| path.jitter = jitter),
            },
            $($own)*
        ]
    };
}
