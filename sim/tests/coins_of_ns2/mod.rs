//! Policies that toss coins, with coins that fall as in ns-2.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_proto::policy::{Ask, Choice, PathView, PolicySpec, Route};
use anabranch_proto::{Config, Policies};

/// A route that takes, of the paths that it could draw, the one that ns-2 took for the same transmission of the same
/// chunk.
#[derive(Clone, Debug)]
struct CoinsOfNs2 {
    route: Box<dyn Route>,
    /// By TSN: the paths of all transmissions of the chunk, numbered from 1.
    took: Arc<BTreeMap<u32, Vec<u8>>>,
}

/// So many draws find every path that a policy could draw.
const DRAWS: u64 = 6;

impl Route for CoinsOfNs2 {
    fn choose(&self, ask: &Ask, paths: &[PathView]) -> Choice {
        let took = self.took.get(&ask.tsn.0).and_then(|paths| paths.get(ask.transmissions as usize));
        let drawn = |tie| self.route.choose(&Ask { tie, ..*ask }, paths);
        // Paths are in the order of their numbers.
        let as_ns2 = |choice: &Choice| match choice {
            Choice::Send(path) => took.is_some_and(|took| paths[usize::from(*took) - 1].id == *path),
            Choice::Wait => false,
        };
        (0..DRAWS).map(drawn).find(as_ns2).unwrap_or_else(|| drawn(0))
    }
}

/// The policies; the coins of the route `name` fall as `sends` of ns-2 tell: TSNs from 1 and paths, in the order of
/// sending. Our own TSNs count from `first`.
pub(crate) fn with_coins(
    name: &'static str,
    sends: impl IntoIterator<Item = (u32, u8)>,
    first: u32,
) -> Policies {
    let mut took: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    for (tsn, path) in sends {
        took.entry(first.wrapping_add(tsn - 1)).or_default().push(path);
    }
    let (took, built_in) = (Arc::new(took), Policies::default());
    let mut policies = built_in.clone();
    policies.add_route(name, move |spec: &PolicySpec, config: &Config| {
        Ok(Box::new(CoinsOfNs2 { route: built_in.route(spec, config)?, took: took.clone() }))
    });
    policies
}
