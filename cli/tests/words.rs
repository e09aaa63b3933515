//! Small things that pages and messages say.

mod support;

use std::fs;
use std::net::TcpListener;

use support::{anabranch, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The page that the command writes to the file after its last argument.
fn page(arguments: &[&str]) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("page.html").display().to_string();
    let out = place.path().join("out").display().to_string();
    let out = if arguments[0] == "sweep" { vec!["--out", &out] } else { Vec::new() };
    let output = anabranch(&[arguments, &out, &["--report", &file]].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    fs::read_to_string(file).expect("the page was written")
}

/// What stands before the first chart: scripts have backticks of their own.
fn before_charts(page: &str) -> &str {
    let body = page.find("<h1>").expect("a heading");
    let end = page[body..].find("<h2>").expect("a chart");
    &page[body..body + end]
}

#[test]
fn the_page_of_a_reproduction_repeats_the_claims_asked_for() {
    let paper = format!("{ROOT}/papers/receive-buffer-blocking");
    let page = page(&["reproduce", &paper, "--claim", "case-study"]);
    assert!(page.contains("anabranch reproduce receive-buffer-blocking --claim case-study</code>"));
}

#[test]
fn the_configuration_of_the_program_names_an_option_that_it_has() {
    let task = format!("{ROOT}/scenarios/advice/signalling.toml");
    let output = anabranch(&["advise", "failover", &task]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Anabranch, [flow.sctp], or --set of send and serve"), "{text}");
    for command in ["send", "serve"] {
        let help = String::from_utf8(anabranch(&[command, "--help"]).stdout).expect("text");
        assert!(help.contains("--set <KEY=VALUE>"), "{command}");
    }
}

/// With a small buffer no secondary is fast enough, and without a round-trip time the equation is none for the primary.
