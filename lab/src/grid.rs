//! A grid of scenarios: every combination of the varied values, each with several seeds, run on all cores.
//!
//! Results are in the order of the grid, with the first variation slowest and the seeds fastest, whatever the number
//! of threads: each run has its own random numbers and is independent of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_proto::Policies;
use rayon::prelude::*;

use anabranch_sim::scenario::{Document, Scenario, ScenarioError};

/// One axis of a grid: a key, and the values that it takes in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variation {
    /// The key in the spelling of `--set`.
    pub key: String,
    /// The values; read as TOML if possible, otherwise as strings.
    pub values: Vec<String>,
}

impl Variation {
    /// The values as names of items. Where two are equal, those of the first variation in `along` that tells them apart
    /// are added.
    pub(crate) fn distinct(&self, along: &[Variation]) -> Vec<String> {
        let differ = |names: &Vec<String>| (1..names.len()).all(|n| !names[..n].contains(&names[n]));
        let with = |other: &Variation| {
            let pairs = self.values.iter().zip(&other.values);
            pairs.map(|(own, other)| format!("{own}, {other}")).collect::<Vec<String>>()
        };
        let own = std::iter::once(self.values.clone());
        own.chain(along.iter().map(with)).find(differ).unwrap_or_else(|| self.values.clone())
    }
}

/// Why a text is not a [`Variation`].
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadVariation {
    /// There is no `=`.
    #[error("`{0}` is not of the form KEY=a,b,c; for example flow.download.sctp.retransmit=same,alternate")]
    NoKey(String),
    /// A value is empty.
    #[error("`{0}` has an empty value; write a string that is empty as \"\"")]
    Empty(String),
}

impl std::str::FromStr for Variation {
    type Err = BadVariation;

    /// Reads `KEY=a,b,c`. Commas within quotes, brackets and braces do not separate values.
    fn from_str(text: &str) -> Result<Self, BadVariation> {
        let (key, values) = text.split_once('=').ok_or_else(|| BadVariation::NoKey(text.to_owned()))?;
        let values = split_values(values);
        if values.iter().any(String::is_empty) {
            return Err(BadVariation::Empty(text.to_owned()));
        }
        Ok(Variation { key: key.trim().to_owned(), values })
    }
}

fn split_values(text: &str) -> Vec<String> {
    let (mut values, mut value) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0_i32, None);
    for c in text.chars() {
        match c {
            ',' if depth <= 0 && quote.is_none() => {
                values.push(std::mem::take(&mut value));
                continue;
            }
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            '[' | '{' if quote.is_none() => depth += 1,
            ']' | '}' if quote.is_none() => depth -= 1,
            _ => {}
        }
        value.push(c);
    }
    values.push(value);
    values.iter().map(|value| value.trim().to_owned()).collect()
}

/// A key that both name. Each is one key, or several with commas between that get the same value.
pub fn common_key<'k>(some: &'k str, others: &str) -> Option<&'k str> {
    some.split(',').map(str::trim).find(|key| others.split(',').any(|other| other.trim() == *key))
}

/// The first place at which a key stands in `lists` for the second time, and the key.
pub(crate) fn repeated<'k>(lists: &[&'k str]) -> Option<(usize, &'k str)> {
    let before = |place: usize| lists[..place].iter().find_map(|before| common_key(lists[place], before));
    (0..lists.len()).find_map(|place| Some((place, before(place)?)))
}

/// One run of a grid.
#[derive(Clone, Debug)]
pub struct Point {
    /// The scenario.
    pub scenario: Scenario,
    /// The varied keys and their values.
    pub varied: BTreeMap<String, serde_json::Value>,
    /// The document of the scenario, for errors that the run finds in it.
    pub document: Arc<Document>,
}

/// The points of the grid that `vary` spans over `document`, each with `seeds` consecutive seeds (at least one) from
/// its own. All are read before any runs, so that a fault in the last one is reported at once. A key that is varied
/// twice and a value that is listed twice are faults.
pub fn points(
    document: &Arc<Document>,
    name: &str,
    vary: &[Variation],
    seeds: u64,
    policies: &Policies,
) -> Result<Vec<Point>, ScenarioError> {
    let mut points = Vec::new();
    for document in grid(document, vary)? {
        let scenario = document.scenario(name, policies)?;
        let last = seeds.saturating_sub(1);
        if scenario.seed.checked_add(last).is_none() {
            let error = document.error("seed", format!("{seeds} seeds from here go beyond {}", u64::MAX));
            return Err(error.hint("begin with a smaller seed"));
        }
        let value = |v: &Variation| Some((v.key.clone(), document.get(&v.key)?));
        let varied: BTreeMap<_, _> = vary.iter().filter_map(value).collect();
        let point = |scenario: Scenario, n| {
            let scenario = Scenario { seed: scenario.seed + n, ..scenario };
            Point { scenario, varied: varied.clone(), document: document.clone() }
        };
        points.extend((0..last).map(|n| point(scenario.clone(), n)));
        // The last one is no copy: a scenario can be large.
        points.push(point(scenario, last));
    }
    Ok(points)
}

fn grid(document: &Arc<Document>, vary: &[Variation]) -> Result<Vec<Arc<Document>>, ScenarioError> {
    let Some((first, rest)) = vary.split_first() else { return Ok(vec![document.clone()]) };
    let (mut documents, mut seen) = (Vec::new(), BTreeSet::new());
    for value in &first.values {
        let mut document = Document::clone(document);
        document.set("--vary", &format!("{}={value}", first.key))?;
        if let Some(key) = rest.iter().find_map(|other| common_key(&other.key, &first.key)) {
            let error = document.error(key, "two --vary name this key");
            return Err(error.hint("list all its values in one --vary"));
        }
        let read = document.get(&first.key).map_or_else(|| value.clone(), |read| read.to_string());
        if !seen.insert(read) {
            return Err(document.error(&first.key, "this value is listed twice"));
        }
        documents.extend(grid(&Arc::new(document), rest)?);
    }
    Ok(documents)
}

/// Runs every point on `threads` threads (`None`: one per core). Returns the values of `run` in the order of the
/// points. `run` also gets the number of the point.
pub fn run_all<P, R, F>(points: &[P], threads: Option<usize>, run: F) -> Vec<R>
where
    P: Sync,
    R: Send,
    F: Fn(usize, &P) -> R + Sync,
{
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0)).build();
    let all = || points.par_iter().enumerate().with_max_len(1).map(|(i, point)| run(i, point)).collect();
    match pool {
        Ok(pool) => pool.install(all),
        // If no thread can be created, the calling thread does the work.
        Err(_) => points.iter().enumerate().map(|(i, point)| run(i, point)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 5\n[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '1 Mbit/s'\n\
                        [[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nsend = '1 kB'\n";

    fn grid_of(vary: &[&str], seeds: u64) -> Vec<Point> {
        let document = Arc::new(Document::parse("test.toml", TEXT).unwrap());
        let vary: Vec<Variation> = vary.iter().map(|v| v.parse().unwrap()).collect();
        points(&document, "test", &vary, seeds, &Policies::default()).unwrap()
    }

    #[test]
    fn equal_values_are_told_apart_by_another_variation() {
        let [start, same, rate] = ["a=10 min,0.5 s,0.5 s", "b=1,2,2", "c=1,1,3"].map(|v| v.parse().unwrap());
        let start: Variation = start;
        assert_eq!(start.distinct(&[same, rate]), ["10 min, 1", "0.5 s, 1", "0.5 s, 3"]);
        let hops: Variation = "h=4,8".parse().unwrap();
        assert_eq!(hops.distinct(&[start]), ["4", "8"]);
    }

    #[test]
    fn commas_within_quotes_and_brackets_separate_nothing() {
        let values = |text: &str| text.parse::<Variation>().unwrap().values;
        assert_eq!(values("k=a, b,c"), ["a", "b", "c"]);
        assert_eq!(values("k=[1,2],{ a = 1, b = 2 }"), ["[1,2]", "{ a = 1, b = 2 }"]);
        assert_eq!(values("k=\"a,b\",'c,d'"), ["\"a,b\"", "'c,d'"]);
        assert!("k=a,,b".parse::<Variation>().is_err() && "k".parse::<Variation>().is_err());
    }

    #[test]
    fn the_first_variation_is_the_slowest_and_seeds_the_fastest() {
        let points = grid_of(&["link.l.rate=1 Mbit/s,2 Mbit/s", "flow.f.sctp.era=ns2,rfc9260"], 2);
        let rates: Vec<_> = points.iter().map(|p| p.scenario.links[0].rate[0] / 1_000_000).collect();
        let seeds: Vec<_> = points.iter().map(|p| p.scenario.seed).collect();
        assert_eq!(rates, [1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(seeds, [5, 6, 5, 6, 5, 6, 5, 6]);
        assert_eq!(points[2].varied["flow.f.sctp.era"], "rfc9260");
    }

    #[test]
    fn order_is_the_same_on_any_number_of_threads() {
        let points = grid_of(&["seed=1,2,3,4,5,6,7"], 3);
        let run = |threads| run_all(&points, Some(threads), |i, point| (i, point.scenario.seed));
        assert_eq!(run(1), run(4));
    }
}
