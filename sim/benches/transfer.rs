//! A scenario run once, for `bench/instructions` and whoever profiles the simulator: small to build, and nothing in it
//! but reader, engine and protocol.
//!
//! `transfer FILE [KEY=VALUE]...` runs the scenario of a file with these changes and prints how many chunks of user
//! data its flows sent.

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};

fn main() {
    // `cargo bench` adds options of its own.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let Some(file) = arguments.next() else { return println!("usage: transfer FILE [KEY=VALUE]...") };
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut document =
        Document::parse(&file, &text).unwrap_or_else(|error| panic!("{}", error.render(false)));
    for assignment in arguments {
        document.set("KEY=VALUE", &assignment).unwrap_or_else(|error| panic!("{}", error.render(false)));
    }
    let scenario = document.scenario("transfer", &Policies::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let result = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let paths = result.flows.iter().flat_map(|flow| &flow.paths);
    println!("{}", paths.map(|path| path.chunks).sum::<u64>());
}
