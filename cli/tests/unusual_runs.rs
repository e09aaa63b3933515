//! `--report` and `--figures` of runs that are unusual: many flows, no packet, very short frames.

#[path = "support/pages.rs"]
mod pages;
mod support;

use std::fmt::Write as _;
use std::path::Path;

use pages::{figure, root, with_script};
use serde_json::Value;
use support::{anabranch, browser, skip, stderr};

/// The page of a run, with more arguments.
fn page(directory: &Path, scenario: &str, more: &[&str]) -> String {
    let file = directory.join("page.html");
    let place = file.display().to_string();
    let output = anabranch(&[&["run", scenario, "--report", &place, "--force"], more].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    std::fs::read_to_string(file).expect("the page was written")
}

fn example(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// A scenario with so many flows over one link, which begin at this time.
fn flows(directory: &Path, count: usize, start: &str) -> String {
    let mut text = String::from(
        "stop = \"1 s\"\n[[link]]\nname = \"l\"\nbetween = [\"s\", \"r\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n",
    );
    for number in 1..=count {
        let _ = writeln!(
            text,
            "[[flow]]\nname = \"f{number:02}\"\nfrom = \"s\"\nto = \"r\"\nstart = \"{start}\"\nsend = \"3 kB\""
        );
    }
    let file = directory.join("flows.toml");
    std::fs::write(&file, text).expect("it can be written");
    file.display().to_string()
}

/// A trace of the page whose name this is.
fn trace<'t>(figure: &'t Value, name: &str) -> &'t Value {
    let traces = figure["data"].as_array().expect("traces");
    traces.iter().find(|trace| trace["name"] == name).unwrap_or_else(|| panic!("{name} is not drawn"))
}

/// Of many flows a page shows ten at a time, and the reader chooses which.
#[test]
fn many_flows_are_shown_in_groups() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = page(directory.path(), &flows(directory.path(), 12, "0 s"), &[]);
    let titles = |figure: &Value| figure["layout"]["annotations"].as_array().map_or(0, Vec::len);
    assert_eq!(titles(&figure(&page)), 10 * 5);
    for group in
        ["<option value=\"0\">f01 to f10<", "<option value=\"1\">f11 to f12<", "<option value=\"2\">queues"]
    {
        assert!(page.contains(group), "{group}");
    }
    let Some(browser) = browser() else {
        return skip("many_flows_are_shown_in_groups", "there is no Chromium");
    };
    let steps = "
        const choice = document.getElementById('group');
        if (!location.hash) {
          choice.value = '1';
          choice.dispatchEvent(new Event('change'));
        } else {
          state.titles = charts.layout.annotations.map(({ text }) => text).filter((text) => / chunks/.test(text)).join();
        }";
    let root = root(browser, directory.path(), &with_script(&page, steps), &[]);
    assert!(
        root.contains("data-titles=\"f11: chunks,f12: chunks\"") && !root.contains("data-error"),
        "{root}"
    );
}

#[test]
fn a_run_without_packets_has_no_empty_charts() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = page(directory.path(), &flows(directory.path(), 1, "2 s"), &[]);
    assert!(page.contains("No packet was sent") && !page.contains("id=\"charts\""));
}

/// A link has the color of its path, and one of its directions is dotted.
#[test]
fn a_queue_has_the_color_of_its_path() {
    let directory = tempfile::tempdir().expect("a directory");
    let figure = figure(&page(directory.path(), &example("cmt"), &[]));
    for path in ["lte", "wifi"] {
        let color = &trace(&figure, &format!("{path}: cwnd"))["line"]["color"];
        let [data, sacks] = ["phone>server", "server>phone"]
            .map(|way| &trace(&figure, &format!("{path} {way}").replace('>', "&gt;"))["line"]);
        assert_eq!([&data["color"], &sacks["color"]], [color; 2]);
        assert_eq!([&data["dash"], &sacks["dash"]], ["solid", "dot"]);
    }
}

/// Before an association is set up, its data waits for that.
#[test]
fn data_waits_for_the_handshake() {
    let directory = tempfile::tempdir().expect("a directory");
    let figure = figure(&page(directory.path(), &flows(directory.path(), 1, "0 s"), &[]));
    assert_eq!(trace(&figure, "the handshake")["meta"]["kind"], "waiting");
}

/// A frame is much shorter than a pixel of a minute, and is drawn.
#[test]
fn the_shortest_frame_is_seen() {
    let directory = tempfile::tempdir().expect("a directory");
    let scenario = example("multihop");
    let page = page(directory.path(), &scenario, &[]);
    let charts = directory.path().join("charts");
    let output = anabranch(&["run", &scenario, "--figures", &charts.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = std::fs::read_to_string(charts.join("channel-freq2-frames-on-the-air.svg")).expect("the chart");
    assert!(svg.contains("width=\"1\"") && !svg.contains("width=\"0\""));
    let Some(browser) = browser() else { return skip("the_shortest_frame_is_seen", "there is no Chromium") };
    let steps = "
        const pixel = 60 / charts._fullLayout.xaxis._length;
        const frames = charts.data.filter(({ meta }) => meta && meta.kind === 'frames');
        const seen = ({ x }) => x.every((at, i) => i % 3 !== 0 || x[i + 1] - at > pixel / 2);
        state.seen = `${frames.length > 0 && frames.every(seen)}`;";
    let root = root(browser, directory.path(), &with_script(&page, steps), &[]);
    assert!(root.contains("data-seen=\"true\""), "{root}");
}
