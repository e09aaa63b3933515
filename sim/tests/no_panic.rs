//! Whatever a document says, reading ends in a scenario or in an error that can be shown, and the scenario runs or is
//! refused with an error.

use std::ops::ControlFlow;

use anabranch_proto::{Duration, Policies};
use anabranch_sim::scenario::{Document, Scenario, Start};
use anabranch_sim::{RunOptions, run};
use proptest::prelude::*;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");

/// The scenarios of the repository, to be damaged.
fn documents() -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(SCENARIOS)
        .expect("scenarios/")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "toml"));
    files.iter().map(|file| std::fs::read_to_string(file).expect("a scenario")).collect()
}

/// How long the beginning of a run is that is tried.
const BEGINNING: Duration = Duration::from_millis(50);

/// Runs the first moments of a scenario, and at most 65,536 events.
fn begin(mut scenario: Scenario) {
    let flows =
        scenario.flows.iter().map(|flow| flow.random_start.map_or(flow.start, |[earliest, _]| earliest));
    let traffic = scenario.traffic.iter().map(|traffic| match traffic.start {
        Start::At(start) => start,
        Start::Uniform([earliest, _]) => earliest,
    });
    let first = flows.chain(traffic).min().unwrap_or_default();
    scenario.measure = None;
    scenario.stop = Some(scenario.stop.unwrap_or(Duration::MAX).min(first + BEGINNING));
    let mut stops = |_| ControlFlow::Break(());
    let options = RunOptions { progress: Some(&mut stops), ..RunOptions::default() };
    if let Err(error) = run(&scenario, options) {
        assert!(!error.to_string().is_empty());
    }
}

/// Reads it as the command line would, down to the message, and begins to run it if it is right.
fn try_out(text: &str, assignment: Option<&str>) {
    if let Some(scenario) = read(text, assignment) {
        begin(scenario);
    }
}

/// Reads it as the command line would, down to the message.
fn read(text: &str, assignment: Option<&str>) -> Option<Scenario> {
    let scenario = || {
        let mut document = Document::parse("test.toml", text)?;
        if let Some(assignment) = assignment {
            document.set("--set", assignment)?;
        }
        document.headings();
        document.scenario("test", &Policies::default())
    };
    let error = match scenario() {
        Ok(scenario) => return Some(scenario),
        Err(error) => error,
    };
    assert!(error.line() >= 1 && !error.message().is_empty());
    assert!(error.render(true).len() >= error.render(false).len());
    assert!(error.to_string().contains(error.message()));
    None
}

#[test]
fn every_scenario_of_the_repository_is_right() {
    for text in documents() {
        let document = Document::parse(&format!("{SCENARIOS}/test.toml"), &text).unwrap();
        document
            .scenario("test", &Policies::default())
            .unwrap_or_else(|error| panic!("{}", error.render(false)));
    }
}

#[test]
fn truncated_documents() {
    for text in documents() {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            match text[..end].ends_with('\n') {
                true => try_out(&text[..end], None),
                false => drop(read(&text[..end], None)),
            }
        }
    }
}

#[test]
fn documents_without_one_of_their_lines() {
    for text in documents() {
        let lines: Vec<_> = text.lines().collect();
        for skipped in 0..lines.len() {
            let rest: Vec<_> =
                lines.iter().enumerate().filter(|(i, _)| *i != skipped).map(|(_, line)| *line).collect();
            try_out(&rest.join("\n"), None);
        }
    }
}

/// Pieces that stand for something in a document.
const PIECES: &[&str] = &[
    "\"",
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "#",
    "-",
    "0",
    "99999999999999999999",
    "1e400",
    "nan",
    "-inf",
    "true",
    "1979-05-27",
    "\"\"",
    "[]",
    "{}",
    "\"0 s\"",
    "\"9999999 h\"",
    "\"é ms\"",
    "é",
    "\u{0}",
    "\\u0000",
    "\t",
    "link",
    "flow",
    "name",
    "\"all\"",
    "[flow.sctp]\n",
    "[[link]]\n",
    "[link.x]\n",
    "\"18446744073709551615 B\"",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => proptest::sample::select(PIECES).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[ -~]{0,12}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_documents(
        which in any::<proptest::sample::Index>(),
        damage in prop::collection::vec((any::<proptest::sample::Index>(), 0_usize..8, piece()), 1..4),
    ) {
        let documents = documents();
        let mut text: Vec<char> = documents[which.index(documents.len())].chars().collect();
        for (at, removed, inserted) in damage {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        try_out(&text.into_iter().collect::<String>(), None);
    }

    #[test]
    fn any_assignment(key in "[a-z_.0-9]{0,20}", value in piece(), known in any::<bool>()) {
        let documents = documents();
        let key = if known { "link.wire.rate".to_owned() } else { key };
        for text in &documents {
            try_out(text, Some(&format!("{key}={value}")));
        }
    }

    #[test]
    fn any_text(text in "\\PC{0,60}") {
        try_out(&text, Some(&text));
    }
}
