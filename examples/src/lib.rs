//! The programs of this package are its examples: `cargo run -p anabranch-examples --example own_route`.
//!
//! The snippets of the README and of the guides are compiled with the documentation tests of this library.

/// The README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

/// The guide to real networks.
#[cfg(doctest)]
#[doc = include_str!("../../docs/network.md")]
pub struct Network;
