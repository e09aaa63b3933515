//! How an association begins, ends, and what its user is told (RFC 9260 §11.2); what strangers get.

mod buffers;
mod closing;
mod collisions;
mod doubtful;
mod extremes;
mod hostile;
mod many;
mod parameters;
mod replay;
mod restart;
mod sacks;
mod setup;
mod strangers;
#[path = "../support/mod.rs"]
mod support;
mod unknown;
mod windows;
