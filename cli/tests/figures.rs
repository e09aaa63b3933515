//! Figures of publications from outside: what their pictures show, and the data beside them.

mod support;

use support::{anabranch, stderr};
use tempfile::TempDir;

#[test]
fn the_figure_shows_every_mark() {
    let svg = figure("receive-buffer-blocking", "case-study.svg", "1");
    assert!(svg.starts_with("<svg"));
    for text in ["A", "B", "C", "D", "E", "F", "sent again", "alternate: 37.33 s", "same: 18.53 s"] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
}

/// The data of a figure is what its picture shows.
#[test]
fn a_figure_is_written_as_data() {
    let csv = figure("receive-buffer-blocking", "case-study.csv", "1");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0], ["number", "series", "panel", "x", "value", "half"]);
    let last = |series: &str, panel: &str| -> f64 {
        let row = rows.iter().rfind(|row| row[1] == series && row[2] == panel);
        row.unwrap_or_else(|| panic!("{series} in {panel}"))[4].parse().expect("a number")
    };
    let policies = ["alternate: 37.33 s", "same: 18.53 s"];
    // Both send the same 20 MB, in chunks of less than 1,500 bytes.
    let [alternate, same] = policies.map(|policy| last(policy, "the whole transfer"));
    assert!(alternate == same && same > 20e6 / 1500.0, "{alternate} and {same} chunks");
    policies.iter().for_each(|policy| assert!(last("peer's window  kB", policy) > 0.0));
    assert!(rows.iter().any(|row| row[1] == "dropped") && rows.iter().any(|row| row[1] == "sent again"));
    let tex = figure("receive-buffer-blocking", "case-study.tex", "1");
    assert_eq!(tex.matches("\\nextgroupplot[").count(), 5);
    for text in ["{case-study.csv}", "\\addlegendentry{same: 18.53 s}", "extra x tick labels={{A},"] {
        assert!(tex.contains(text), "{text} is not in {tex}");
    }
}

/// A figure of the repository's own publication, with so many seeds.
fn figure(paper: &str, name: &str, seeds: &str) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join(name).display().to_string();
    let paper = format!("{}/../papers/{paper}", env!("CARGO_MANIFEST_DIR"));
    let output = anabranch(&["reproduce", &paper, "--seeds", seeds, "--figure", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    std::fs::read_to_string(file).expect("the figure is written")
}

/// The groups of runs that a threshold is found from, and what they are compared with.
#[test]
fn a_curve_shows_groups_beside_a_band() {
    let svg = figure("retransmission-policy-flaw", "independent-3.svg", "5");
    for text in [
        "loss_1, %",
        "completion, s",
        "45 runs in groups, 90 % intervals",
        "compared with: 5 runs, mean and 90 % interval",
    ] {
        assert!(svg.lines().any(|line| line.trim() == text), "{text} is not in the figure");
    }
    assert!(svg.lines().any(|line| line.trim().starts_with("threshold: ")), "the threshold is marked");
    let csv = figure("retransmission-policy-flaw", "independent-3.csv", "5");
    let rows = |series: &str| csv.lines().filter(|line| line.split(',').nth(1) == Some(series)).count();
    assert_eq!((rows("compared with"), rows("groups")), (2, 9));
}

/// Two columns of forty seconds: no interval is above what the link carries, and some are above zero.
#[test]
fn a_figure_shows_throughput() {
    let svg = figure("satellite-fairness", "figure-5.svg", "1");
    let axis = "satellite router&gt;destination, all flows, kbit/s";
    assert_eq!(svg.lines().filter(|line| line.trim() == axis).count(), 2);
}
