//! Packet scripts: whatever the text, there is a verdict.

use anabranch_proto::Config;
use anabranch_script::{BadParameter, Options, run};
use anabranch_sim::scenario;

/// Reads the bytes as a script and runs it.
pub fn script(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = run(text, &Options::new(parameters));
    }
}

fn parameters(assignments: &[String]) -> Result<Config, BadParameter> {
    let read = scenario::protocol("--sctp", assignments);
    read.map_err(|error| BadParameter { key: error.key().to_owned(), message: error.advice() })
}
