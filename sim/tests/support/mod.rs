//! Programs that some tests need.

use std::io::Write;
use std::process::Command;

/// Whether ns-2 is here; if not, says that this test is skipped.
#[allow(dead_code, reason = "not every test that shares this module needs ns-2")]
pub(crate) fn has_ns2(test: &str) -> bool {
    has(Command::new("ns").arg("/dev/null"), test)
}

/// Whether tshark is here; if not, says that this test is skipped.
#[allow(dead_code, reason = "not every test that shares this module needs tshark")]
pub(crate) fn has_tshark(test: &str) -> bool {
    has(Command::new("tshark").arg("--version"), test)
}

fn has(program: &mut Command, test: &str) -> bool {
    if program.output().is_ok() {
        return true;
    }
    let skipped = format!("skipped: {test}: there is no {}", program.get_program().display());
    assert!(std::env::var("ANABRANCH_REQUIRE").as_deref() != Ok("all"), "{skipped}");
    // Not `eprintln!`, which is captured while a test passes.
    let _ = writeln!(std::io::stderr(), "{skipped}");
    false
}
