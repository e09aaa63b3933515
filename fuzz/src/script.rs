//! Packet scripts: whatever the text, there is a verdict.

use anabranch_script::{Options, run};

/// Reads the bytes as a script and runs it.
pub fn script(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = run(text, &Options::default());
    }
}
