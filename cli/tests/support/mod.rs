//! What several of the command line's tests need.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
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

/// The lines that `explain` prints of a capture.
#[allow(dead_code, reason = "not every test that shares this module has a capture")]
pub(crate) fn explain(capture: &Path, arguments: &[&str]) -> Vec<String> {
    let capture = capture.display().to_string();
    let output = anabranch(&[&["explain", &capture], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
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

/// The browser that draws pages, if one is installed.
#[allow(dead_code, reason = "not every test that shares this module has a page")]
pub(crate) fn browser() -> Option<&'static str> {
    let works = |program: &&str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    ["chromium", "chromium-browser"].into_iter().find(works)
}

/// What the browser makes of the page at `url`, as HTML; its profile stands in `directory`.
#[allow(dead_code, reason = "not every test that shares this module has a page")]
pub(crate) fn opened(browser: &str, directory: &Path, url: &str, flags: &[&str]) -> String {
    let output = Command::new("timeout")
        .args([
            "180",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-quic",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--virtual-time-budget=60000", "--dump-dom"])
        .args(flags)
        .arg(url)
        .output()
        .expect("timeout runs");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The names of entries of `printed` that `docs/PAGE.md` does not have as code. Below the entries in `own` there are
/// other names: of paths, quantiles and the like.
#[allow(dead_code, reason = "not every test that shares this module prints JSON")]
pub(crate) fn missing_on(page: &str, own: &[&str], printed: &serde_json::Value) -> Vec<String> {
    let file = format!("{}/../docs/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(file).expect("the page can be read");
    let mut found = BTreeSet::new();
    names(printed, own, &mut found);
    assert!(!found.is_empty(), "{printed}");
    found.into_iter().filter(|name| !text.contains(&format!("`{name}`"))).collect()
}

fn names(value: &serde_json::Value, own: &[&str], found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(entries) => {
            for (name, value) in entries {
                found.insert(name.clone());
                if !own.contains(&name.as_str()) {
                    names(value, own, found);
                }
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| names(value, own, found)),
        _ => {}
    }
}
