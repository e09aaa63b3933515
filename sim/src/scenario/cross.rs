//! `[[traffic]]`, and random durations.

use std::time::Duration;

use super::at::{At, Result};
use super::keys::{Default, Key, fill};
use super::units;
use super::{CrossTraffic, Start, Times};

/// The draft of a `[[traffic]]`.
pub(super) struct Draft {
    traffic: CrossTraffic,
    sources: Option<u32>,
    ends: [Option<String>; 2],
}

pub(super) const KEYS: &[Key<Draft>] = &[
    Key {
        name: "name",
        takes: "name",
        default: Default::Required,
        doc: "The name in results; different from the names of flows.",
        read: |draft, at| at.name().map(|name| draft.traffic.name = name),
    },
    Key {
        name: "from",
        takes: "a node's name",
        default: Default::Text("`pairs`"),
        doc: "The sending node, if there is one pair.",
        read: |draft, at| at.string().map(|node| draft.ends[0] = Some(node.to_owned())),
    },
    Key {
        name: "to",
        takes: "a node's name",
        default: Default::Text("`pairs`"),
        doc: "The receiving node, if there is one pair.",
        read: |draft, at| at.string().map(|node| draft.ends[1] = Some(node.to_owned())),
    },
    Key {
        name: "pairs",
        takes: "array of pairs of nodes",
        default: Default::Text("`from` and `to`"),
        doc: "The pairs of sending and receiving nodes: `[[\"x1\", \"y1\"], [\"x2\", \"y2\"]]`.",
        read: |draft, at| pairs(at).map(|pairs| draft.traffic.pairs = pairs),
    },
    Key {
        name: "both_ways",
        takes: "boolean",
        default: Default::Value("false"),
        doc: "Whether the second node of each pair sends the same load to the first.",
        read: |draft, at| at.boolean().map(|both| draft.traffic.both_ways = both),
    },
    Key {
        name: "load",
        takes: "rate",
        default: Default::Required,
        doc: "The load that all sources of this table offer in each direction: the mean over on and off times, IP headers included. It is higher if bursts are so short that rounding makes them longer (`on`); `load` in the results says what was offered.",
        read: |draft, at| at.rate().map(|load| draft.traffic.load = load),
    },
    Key {
        name: "sizes",
        takes: "table of sizes",
        default: Default::Required,
        doc: "The packets' sizes with their IP headers, and the ratio in which sources are divided among them: `{ \"44 B\" = 2, \"576 B\" = 1, \"1500 B\" = 1 }`. All sources have the same packet rate.",
        read: |draft, at| sizes(at).map(|sizes| draft.traffic.sizes = sizes),
    },
    Key {
        name: "sources",
        takes: "count",
        default: Default::Text("the sum of the ratio of `sizes`"),
        doc: "Sources of each pair in each direction; a multiple of that sum.",
        read: |draft, at| at.count(1..=10_000).map(|sources| draft.sources = Some(sources)),
    },
    Key {
        name: "on",
        takes: "times",
        default: Default::Text("always on"),
        doc: "The length of a burst: `\"500 ms\"`, or with this mean `{ exponential = \"500 ms\" }` or `{ pareto = \"500 ms\", shape = 1.5 }`. A burst is a whole number of evenly spaced packets, rounded, at least one.",
        read: |draft, at| times(at).map(|on| draft.traffic.on = on),
    },
    Key {
        name: "off",
        takes: "times",
        default: Default::Text("always on"),
        doc: "The length of the pause between two bursts, in the same form.",
        read: |draft, at| times(at).map(|off| draft.traffic.off = off),
    },
    Key {
        name: "spacing",
        takes: "`\"even\"` or `\"poisson\"`",
        default: Default::Value("\"even\""),
        doc: "How the packets of a source follow each other: evenly, or at random as a Poisson process of the same mean rate. Not with `on` and `off`.",
        read: |draft, at| spacing(at).map(|poisson| draft.traffic.poisson = poisson),
    },
    Key {
        name: "start",
        takes: "duration or `{ uniform = [low, high] }`",
        default: Default::Value("\"0 s\""),
        doc: "When the sources begin, each with an off time; `{ uniform = [\"0 s\", \"1 s\"] }`: drawn for each.",
        read: |draft, at| start(at).map(|start| draft.traffic.start = start),
    },
];

/// Reads a `[[traffic]]`.
pub(super) fn traffic(at: &At<'_>) -> Result<CrossTraffic> {
    let traffic = CrossTraffic {
        name: String::new(),
        pairs: Vec::new(),
        both_ways: false,
        sources: 0,
        load: 0,
        sizes: Vec::new(),
        on: Times::Fixed(Duration::ZERO),
        off: Times::Fixed(Duration::ZERO),
        poisson: false,
        start: Start::At(Duration::ZERO),
    };
    let mut draft = Draft { traffic, sources: None, ends: [None, None] };
    fill(&mut draft, at, KEYS)?;
    let Draft { mut traffic, sources, ends } = draft;
    match (ends, traffic.pairs.is_empty()) {
        ([Some(from), Some(to)], true) => traffic.pairs.push([from, to]),
        ([None, None], false) => {}
        ([None, None], true) => {
            return Err(at.error("this leads nowhere").hint("give `from` and `to`, or `pairs`"));
        }
        ([Some(_), None], true) => return Err(at.error_below("to", "this key is missing")),
        ([None, Some(_)], true) => return Err(at.error_below("from", "this key is missing")),
        (_, false) => {
            let message = "`from` and `to` already say this";
            return Err(at.error_below("pairs", message).hint("give `pairs`, or `from` and `to`"));
        }
    }
    let shares = traffic.sizes.iter().map(|(_, share)| share).sum();
    traffic.sources = sources.unwrap_or(shares);
    if !traffic.sources.is_multiple_of(shares) {
        let message = format!("the ratio of `sizes` does not divide {} sources", traffic.sources);
        return Err(at.error_below("sources", message).hint(format!("a multiple of {shares}")));
    }
    both_times(at)?;
    Ok(traffic)
}

/// On and off times are given together, and not with a Poisson process.
pub(super) fn both_times(at: &At<'_>) -> Result<()> {
    if let (Some(on), Some("poisson")) = (at.get("on"), at.get("spacing").and_then(|at| at.string().ok())) {
        let error = on.error("a Poisson process has no on and off times");
        return Err(error.hint("remove `on` and `off`, or `spacing`"));
    }
    for (given, missing) in [("on", "off"), ("off", "on")] {
        if let (Some(given_at), None) = (at.get(given), at.get(missing)) {
            return Err(given_at.error(format!("`{given}` needs `{missing}`")).hint("give both, or none"));
        }
    }
    Ok(())
}

/// Whether packets form a Poisson process.
pub(super) fn spacing(at: &At<'_>) -> Result<bool> {
    at.one_of("spacing", &["even", "poisson"]).map(|spacing| spacing == "poisson")
}

/// A time, or `{ uniform = [low, high] }`.
pub(super) fn start(at: &At<'_>) -> Result<Start> {
    match uniform(at)? {
        Some(range) => Ok(Start::Uniform(range)),
        None => at.duration().map(Start::At),
    }
}

fn pairs(at: &At<'_>) -> Result<Vec<[String; 2]>> {
    const FORM: &str = "pairs = [[\"x1\", \"y1\"], [\"x2\", \"y2\"]]";
    let mut pairs = Vec::new();
    for item in at.array("an array of pairs of nodes").map_err(|e| e.hint(FORM))? {
        let nodes = item.array("a pair of nodes").map_err(|e| e.hint(FORM))?;
        let [from, to] = nodes.as_slice() else {
            return Err(item.error(format!("a pair has two nodes, found {}", nodes.len())).hint(FORM));
        };
        pairs.push([from.string()?.to_owned(), to.string()?.to_owned()]);
    }
    if pairs.is_empty() { Err(at.error("there is no pair").hint(FORM)) } else { Ok(pairs) }
}

fn sizes(at: &At<'_>) -> Result<Vec<(u32, u32)>> {
    const FORM: &str = "sizes = { \"44 B\" = 2, \"576 B\" = 1, \"1500 B\" = 1 }";
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    for entry in at.entries().map_err(|e| e.hint(FORM))? {
        let refused = |why: String| at.error(why).hint(FORM);
        let size = units::SIZE.read(&entry.key).map_err(|bad| refused(bad.message))?;
        let size = u32::try_from(size).ok().filter(|size| (28..=65_535).contains(size));
        let size = size.ok_or_else(|| refused(format!("`{}` is not from 28 B to 65535 B", entry.key)))?;
        if sizes.iter().any(|(other, _)| *other == size) {
            return Err(refused(format!("{size} B stands here twice")));
        }
        let share = at.get(&entry.key).ok_or_else(|| refused("a size has its share".to_owned()))?;
        sizes.push((size, share.count(1..=1000)?));
    }
    sizes.sort_unstable();
    if sizes.is_empty() { Err(at.error("there is no size").hint(FORM)) } else { Ok(sizes) }
}

/// `"500 ms"`, `{ exponential = "500 ms" }` or `{ pareto = "500 ms", shape = 1.5 }`.
pub(super) fn times(at: &At<'_>) -> Result<Times> {
    const FORM: &str = "\"500 ms\", { exponential = \"500 ms\" }, or { pareto = \"500 ms\", shape = 1.5 }";
    let Ok(entries) = at.entries() else {
        return Ok(Times::Fixed(long_enough(at)?));
    };
    let unknown =
        |entry: &&super::document::Entry| !["exponential", "pareto", "shape"].contains(&&*entry.key);
    if let Some(entry) = entries.iter().find(unknown) {
        return Err(at.no_such_key(entry).hint(FORM));
    }
    match (at.get("exponential"), at.get("pareto"), at.get("shape")) {
        (Some(mean), None, None) => Ok(Times::Exponential(long_enough(&mean)?)),
        (None, Some(mean), Some(shape)) => {
            let mean = long_enough(&mean)?;
            match shape.number() {
                Some(number) if number > 1.0 && number <= 100.0 => Ok(Times::Pareto { mean, shape: number }),
                Some(number) if number > 1.0 => {
                    Err(shape.error("this shape is too large").hint("it must be above 1, at most 100"))
                }
                Some(_) => Err(shape
                    .error("with a shape of 1 or less there is no mean")
                    .hint("it must be above 1; 1.5 is ns-2's")),
                None => Err(shape.error("a shape is a number").hint("shape = 1.5")),
            }
        }
        (None, Some(_), None) => Err(at.error("`shape` is missing").hint(FORM)),
        (Some(_), ..) => Err(at.error("one of `exponential` and `pareto`").hint(FORM)),
        _ => Err(at.error("this says no time").hint(FORM)),
    }
}

fn long_enough(at: &At<'_>) -> Result<Duration> {
    match at.duration()? {
        Duration::ZERO => Err(at.error("this must be longer than zero")),
        duration => Ok(duration),
    }
}

/// The ends of `{ uniform = [low, high] }`, if the value has this form.
pub(super) fn uniform(at: &At<'_>) -> Result<Option<[Duration; 2]>> {
    const FORM: &str = "{ uniform = [\"5 ms\", \"20 ms\"] }";
    let Ok(entries) = at.entries() else { return Ok(None) };
    if let Some(entry) = entries.iter().find(|entry| entry.key != "uniform") {
        return Err(at.no_such_key(entry).hint(FORM));
    }
    let range = at.get("uniform").ok_or_else(|| at.error("`uniform` is missing").hint(FORM))?;
    let ends = range.array("the two ends of a range").map_err(|e| e.hint(FORM))?;
    let [low, high] = ends.as_slice() else {
        return Err(range.error(format!("a range has two ends, found {}", ends.len())).hint(FORM));
    };
    let [low, high] = [low.duration()?, high.duration()?];
    if low > high {
        return Err(range.error("the ends of this range are exchanged").hint("put the lower one first"));
    }
    Ok(Some([low, high]))
}
