//! What carries frames from one node to another.

pub(crate) mod wire;
