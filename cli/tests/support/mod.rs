//! What several of the command line's tests need.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// `anabranch` with these arguments, not started yet.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// What `anabranch` does with these arguments.
#[allow(dead_code, reason = "not every test that shares this module waits for its end")]
pub(crate) fn anabranch(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the binary runs")
}

/// Standard error as text.
#[allow(dead_code, reason = "not every test that shares this module waits for its end")]
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

/// The TOML files of a directory, beside this package or below it, sorted.
#[allow(dead_code, reason = "not every test that shares this module can lack something")]
pub(crate) fn documents(directory: &str) -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(directory);
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("the entry can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

/// Says that the test `name` is not run, and why. With ANABRANCH_REQUIRE=all that is a failure.
#[allow(dead_code, reason = "not every test that shares this module can lack something")]
pub(crate) fn skip(name: &str, why: &str) {
    assert!(std::env::var("ANABRANCH_REQUIRE").as_deref() != Ok("all"), "skipped: {name}: {why}");
    // Not `eprintln!`, which is captured while a test passes.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}
