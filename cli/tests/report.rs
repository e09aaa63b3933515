//! `--report` from outside: the data of the page, hostile names, and the page in a browser.

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{anabranch, skip, stderr};

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a scenario with a report in `directory`; the page and the run's JSON.
fn report(directory: &Path, arguments: &[&str]) -> (String, Value) {
    let file = directory.join("page.html").display().to_string();
    let mut all = vec!["run"];
    all.extend(arguments);
    all.extend(["--json", "--force", "--report", &file]);
    let output = anabranch(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let runs: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    (page, runs[0].clone())
}

/// The figure that the page carries.
fn figure(page: &str) -> Value {
    let begin = r#"<script type="application/json" id="figure">"#;
    let rest = &page[page.find(begin).expect("the page has a figure") + begin.len()..];
    serde_json::from_str(&rest[..rest.find("</script>").expect("it ends")]).expect("it is JSON")
}

/// How many points a trace has: times are doubles in base64.
fn points(trace: &Value) -> usize {
    let text = trace["x"]["bdata"].as_str().expect("a typed array");
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    (text.len() / 4 * 3 - padding) / 8
}

#[test]
fn the_page_has_a_point_for_each_chunk() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, run) = report(directory.path(), &[&example("outage")]);
    let figure = figure(&page);
    let traces = figure["data"].as_array().expect("traces");
    let sent: usize = traces.iter().filter(|trace| trace["meta"]["kind"] == "sent").map(points).sum();
    let paths = run["flows"][0]["paths"].as_array().expect("paths");
    let chunks: u64 = paths.iter().map(|path| path["chunks"].as_u64().expect("a count")).sum();
    assert_eq!(sent as u64, chunks);
    assert!(page.contains("default-src 'none'"), "the page must not load anything");
}

#[test]
fn a_hostile_title_is_only_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let title = "title=\"</script><script>document.documentElement.dataset.hacked=1</script>\"";
    let (page, _) = report(directory.path(), &[&example("one-path"), "--set", title]);
    assert!(!page.contains("<script>document.documentElement"));
    assert!(page.contains("&lt;script&gt;document.documentElement"));
}

#[test]
fn a_browser_draws_every_trace() {
    let Some(browser) = ["chromium", "chromium-browser"].into_iter().find(|name| installed(name)) else {
        return skip("a_browser_draws_every_trace", "there is no Chromium");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (page, _) = report(directory.path(), &[&example("outage"), "--set", "stop=14 s"]);
    let traces = figure(&page)["data"].as_array().map_or(0, Vec::len);
    let dom = shown_by(browser, directory.path());
    let start = &dom[dom.find("<html").expect("the browser shows a page")..];
    let root = &start[..start.find('>').expect("the element ends")];
    assert!(!root.contains("data-error"), "{root}");
    assert!(root.contains(&format!("data-traces=\"{traces}\"")), "{root}");
}

/// The page as the browser has changed it.
fn shown_by(browser: &str, directory: &Path) -> String {
    let output = Command::new("timeout")
        .args([
            "120",
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-first-run",
            "--disable-quic",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .args(["--virtual-time-budget=20000", "--dump-dom"])
        .arg(format!("file://{}", directory.join("page.html").display()))
        .output()
        .expect("timeout runs");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
