//! Advice for operators: which failover parameters meet a budget, and which policy suits a pair of paths.
//!
//! [`Task::read`] reads the question about a failover, [`search`] tries candidates in the simulator, and [`Answer`] is
//! what it found. The candidates are a grid, cut down by successive halving: the space is small and discrete, each
//! trial is one number with chance in it, and every survivor is a candidate that was tried, so that the search can be
//! stopped at any time. A general optimiser has no use for any of this. [`advise_policy`] compares policies for a
//! [`PairTask`].

#[macro_use]
mod keys;
mod candidate;
mod policy;
mod print;
mod random;
mod read;
mod search;
mod text;
mod trial;

pub use candidate::Candidate;
pub(crate) use policy::shown;
pub use policy::{
    BufferRow, Edge, Map, PairPath, PairTask, PolicyAdvice, PolicyAnswer, PolicyTime, Quantity, TOLERANCE,
    Transfer, advise_policy, explain_policy,
};
pub use print::configurations;
pub use random::Tried;
pub use read::{Budget, PathTask, Task, Traffic};
pub use search::{Answer, Ended, Judged, Share, Watch, check, search};
pub use text::explain;

use anabranch_sim::scenario::keys::{Section, docs};

/// Every table and key of the questions, for `docs/advice.md`.
pub fn sections() -> Vec<Section> {
    let section = |header, keys| Section { header, keys };
    vec![
        section("failover", docs(read::KEYS)),
        section("failover [[path]]", docs(read::PATH_KEYS)),
        section("failover [traffic]", docs(read::TRAFFIC_KEYS)),
        section("failover [budget]", docs(read::BUDGET_KEYS)),
        section("policy", docs(policy::KEYS)),
        section("policy [[path]]", docs(policy::PATH_KEYS)),
        section("policy [transfer]", docs(policy::TRANSFER_KEYS)),
    ]
}
