//! What carries frames from one node to another.

pub(crate) mod wire;
pub(crate) mod wireless;
