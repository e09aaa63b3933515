//! `--report` from outside: the data of the page, hostile names, and the page in a browser.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{anabranch, browser, opened, skip, stderr};

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
    let Some(browser) = browser() else {
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

/// Runs a small sweep over `scenario` with a report in `directory`; the page and summary.json.
fn swept(directory: &Path, scenario: &str) -> (String, Value) {
    let place = |name: &str| directory.join(name).display().to_string();
    let text = format!(
        "scenario = {scenario:?}\nseeds = 3\ncompare = \"era\"\n[vary]\n\"link.wifi.loss\" = [\"0.1 %\", \"1 %\"]\n\
         era = [\"rfc4960\", \"rfc9260\"]\n[measure]\ngoodput = \"flows.upload.goodput\"\n"
    );
    std::fs::write(place("sweep.toml"), text).expect("it can be written");
    let output = anabranch(&[
        "sweep",
        &place("sweep.toml"),
        "--out",
        &place("out"),
        "--report",
        &place("page.html"),
        "--json",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let page = std::fs::read_to_string(place("page.html")).expect("the page was written");
    (page, serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

#[test]
fn the_charts_of_a_sweep_show_its_summary() {
    let directory = tempfile::tempdir().expect("a directory");
    let (page, cells) = swept(directory.path(), &example("loss"));
    let figures = figure(&page);
    let (curves, heat, boxes, differences) =
        (&figures[0]["data"], &figures[1]["data"][0], &figures[2], &figures[3]);
    for cell in 0..4 {
        let (loss, era) = (cell / 2, cell % 2);
        let goodput = &cells[cell]["measures"]["goodput"];
        assert_eq!(curves[era]["y"][loss], goodput["mean"]);
        assert_eq!(curves[era]["error_y"]["array"][loss], goodput["ci95"]);
        assert_eq!(heat["z"][loss][era], goodput["mean"]);
        assert_eq!(boxes["data"][cell]["y"].as_array().map(Vec::len), Some(3));
    }
    assert_eq!(curves[0]["x"], serde_json::json!([0.1, 1.0]));
    assert_eq!(differences["data"][0]["y"][1], cells[3]["differences"]["goodput"]["mean"]);
    let command = curves[1]["customdata"][0].as_str().expect("a command");
    assert!(
        command.ends_with("--seed 7 --set 'link.wifi.loss=\"0.1 %\"' --set 'era=\"rfc9260\"'"),
        "{command}"
    );
    let Some(browser) = browser() else {
        return skip("the_charts_of_a_sweep_show_its_summary", "there is no Chromium");
    };
    let dom = shown_by(browser, directory.path());
    let start = &dom[dom.find("<html").expect("the browser shows a page")..];
    let root = &start[..start.find('>').expect("the element ends")];
    assert!(!root.contains("data-error") && root.contains("data-charts=\"4\""), "{root}");
    assert!(root.contains("data-traces=\"8\""), "{root}");
}

#[test]
fn a_hostile_name_of_a_sweep_is_only_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = directory.path().join("<img src=x onerror=alert(1)>.toml");
    std::fs::copy(example("loss"), &scenario).expect("it can be copied");
    let (page, _) = swept(directory.path(), &scenario.display().to_string());
    assert!(!page.contains("<img src=x") && page.contains("&lt;img src=x"));
}

#[test]
fn a_table_of_a_paper_stands_beside_ours() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page.html").display().to_string();
    let claim = "table1/10000000";
    let output =
        anabranch(&["reproduce", "receive-buffer-blocking", "--claim", claim, "--json", "--report", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    let judged: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let claims = judged["claims"].as_array().expect("claims");
    let page = std::fs::read_to_string(&file).expect("the page was written");
    let figures = figure(&page);
    let traces = figures[0]["data"].as_array().expect("traces");
    let shown = traces[0]["x"].as_array().expect("names");
    for (i, id) in shown.iter().enumerate() {
        let claim = claims.iter().find(|claim| claim["id"] == *id).expect("it was judged");
        let said: Vec<&Value> = traces.iter().map(|trace| &trace["y"][i]).collect();
        assert_eq!(said, [&claim["paper"], &claim["ns2"], &claim["anabranch"]]);
    }
    assert!(shown.len() > 1 && page.contains("anabranch reproduce receive-buffer-blocking --claim table1/"));
    assert!(page.contains("<svg") && page.contains("--figure case-study.svg"));
    let Some(browser) = browser() else {
        return skip("a_table_of_a_paper_stands_beside_ours", "there is no Chromium");
    };
    let dom = shown_by(browser, directory.path());
    let start = &dom[dom.find("<html").expect("the browser shows a page")..];
    let root = &start[..start.find('>').expect("the element ends")];
    assert!(!root.contains("data-error") && root.contains("data-charts="), "{root}");
}

/// The page as the browser has changed it.
fn shown_by(browser: &str, directory: &Path) -> String {
    opened(browser, directory, &format!("file://{}", directory.join("page.html").display()), &[])
}
