//! Which retransmission policy, and which receive buffer, for a described pair of paths: every combination is run in
//! the simulator. Then one quantity after the other is changed until another policy is faster, and two of them together
//! for a map.

mod margin;
mod read;
mod search;
mod text;

pub(super) use read::{KEYS, PATH_KEYS, TRANSFER_KEYS};
pub use read::{PairPath, PairTask, Transfer};
pub use search::{
    BufferRow, Edge, Map, PolicyAdvice, PolicyAnswer, PolicyTime, Quantity, TOLERANCE, advise_policy,
};
pub use text::explain_policy;
pub(crate) use text::shown;
