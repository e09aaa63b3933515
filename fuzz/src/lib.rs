//! What hostile bytes, and hostile peers, may not do to the core: the bodies of the fuzz targets.
//!
//! | target | input | what must hold |
//! |---|---|---|
//! | `packet` | bytes | no panic; what decodes encodes, not longer, and decodes equal; no panic with what ICMP quotes |
//! | `params` | bytes | the same of parameter lists, and of error causes with what they enclose |
//! | `capture` | bytes | no panic; packets hold no more than the file, each explained in one line and as JSON |
//! | `cookie` | changes to a valid COOKIE ECHO | no association but by the cookie as it was given |
//! | `sacks` | SACKs of any kind, and sends | flight, acknowledgements and retransmissions as a set of TSNs says |
//! | `endpoint` | packets, calls, timers | no panic, an end to every drain, bounded memory |
//! | `extensions` | a peer that has agreed on extensions and may restart, and calls | no panic, an end to every drain, bounded memory |
//! | `script` | text | the reader and the runner of packet scripts do not panic |
//! | `scenario` | text | a scenario is refused with its place, or written as TOML and read as the same |
//! | `trace` | text | a recorded trace is refused with its line, or delivers something |
//! | `recording` | text | a recording is repeated, or it is said where it cannot be; times never go back |
//! | `advice` | text | a question to `advise` is refused with its place, or its times can be computed |
//! | `claims` | text | claims and their table are refused with their place, or can be planned |
//! | `journal` | lines | finished runs belong to their sweep, or the journal is refused |
//! | `service` | text | a control message of `serve` is refused, or written and read as the same; a plan of a measurement that is accepted can be carried out |
//! | `storm` | seeds of storms | two honest ends in a network that loses, replays, breaks and mutates: as `proto/tests/storm` says |
//! | `delivery` | what a network does to packets | each message at most once, in order; exactly once when it heals |
//!
//! `make fuzz SECONDS=60` runs all. A structured input is a row of small numbers, read from the front, so that
//! a byte that the fuzzer changes changes one decision. `cargo run --example seeds` writes the first corpora.

pub mod capture;
pub mod chunks;
pub mod codec;
pub mod cookie;
pub mod delivery;
pub mod endpoint;
pub mod extensions;
pub mod input;
pub mod lone;
pub mod memory;
pub mod peer;
pub mod recorded;
pub mod sacks;
pub mod scenario;
pub mod script;
pub mod storm;
pub mod tables;

#[path = "../../proto/tests/storm/config.rs"]
mod config;
#[path = "../../proto/tests/storm/mutate.rs"]
mod mutate;
#[path = "../../proto/tests/support/mod.rs"]
pub mod support;
#[path = "../../proto/tests/storm/world.rs"]
mod world;

/// All endpoints here count their bytes: `endpoint` bounds them.
#[global_allocator]
static MEMORY: memory::Counting = memory::Counting;
