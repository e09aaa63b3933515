//! The extensions: what is agreed, what each does, and what a hostile peer gets out of it; values by hand.

mod addresses;
mod asconf_again;
mod auth;
mod auth_cookie;
mod deferred;
mod ecn;
mod interleaving;
mod negotiation;
mod nr_sack;
mod partial;
mod roaming;
mod streams;
#[path = "../support/mod.rs"]
mod support;
mod timestamps;
mod together;
mod zero_checksum;

use anabranch_proto::{Config, Extensions};
use support::bench::era;

/// RFC 9260 with these extensions.
fn with(extensions: Extensions) -> Config {
    Config { extensions, ..era("rfc9260") }
}
