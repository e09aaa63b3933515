//! Advice for operators: which failover parameters meet a budget.
//!
//! [`Task::read`] reads the question, [`search`] tries candidates in the simulator, and [`Answer`] is what it found. The
//! candidates are a grid, cut down by successive halving: the space is small and discrete, each trial is one number with
//! chance in it, and every survivor is a candidate that was tried, so that the answer can be stopped at any time. A general
//! optimiser has no use for any of this.

mod candidate;
mod print;
mod read;
mod search;
mod text;
mod trial;

pub use candidate::Candidate;
pub use print::configurations;
pub use read::{Budget, PathTask, Task, Traffic};
pub use search::{Answer, Judged, Share, Watch, search};
pub use text::explain;
