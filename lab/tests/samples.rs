//! Claims over several seeds: samples, standard errors, and references that a paper names itself.

use std::path::Path;

use anabranch_lab::claims::{Outcome, Paper, PaperError, Plan};
use anabranch_lab::statistics::Summary;
use serde_json::Value;

const PAPER: &str = r#"
title = "A test"
citation = "Nobody."
[[variant]]
name = "now"
set = []
[[reference]]
name = "table"
title = "Table 9"
[[reference]]
name = "other"
[[experiment]]
name = "lossy"
scenario = "lossy.toml"
seeds = 12
[[experiment]]
name = "once"
scenario = "lossy.toml"
[[experiment]]
name = "slow"
scenario = "lossy.toml"
set = ["link.l.rate=1 Mbit/s"]
seeds = 12
[[measure]]
name = "completion"
result = "flows.f.completion"
unit = "s"
[[measure]]
name = "dropped"
result = "links.l s>r.dropped"
[[measure]]
name = "share"
result = "links.l s>r.dropped"
per = "links.l s>r.packets"
"#;

/// An event that does not occur, and a sample.
const TABLE: &str = "row,seconds,sd,n\n1,-,0.05,10\n";

const SCENARIO: &str = r#"
[[link]]
name = "l"
between = ["s", "r"]
rate = "5 Mbit/s"
delay = "10 ms"
loss = "2 %"
[[flow]]
name = "f"
from = "s"
to = "r"
send = "200 kB"
"#;

fn claim(id: &str, more: &str) -> String {
    format!(
        "[[claim]]\nid = \"{id}\"\nsource = \"Table 9\"\nexperiment = \"lossy\"\nmeasure = \"completion\"\n{more}\n"
    )
}

fn open(folder: &Path, claims: &str) -> Result<Paper, PaperError> {
    for (name, text) in
        [("paper.toml", PAPER), ("lossy.toml", SCENARIO), ("claims.toml", claims), ("table.csv", TABLE)]
    {
        std::fs::write(folder.join(name), text).expect("the file is written");
    }
    Paper::open(folder)
}

fn judged(claims: &str, seeds: Option<u64>, threads: usize) -> Vec<Outcome> {
    let folder = tempfile::tempdir().expect("a directory");
    let paper = open(folder.path(), claims).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(&paper, seeds, |_| true).unwrap_or_else(|error| panic!("{error}"));
    plan.run(Some(threads), &|_, _| {}).unwrap_or_else(|error| panic!("{error}"))
}

fn json(outcome: &Outcome) -> Value {
    serde_json::to_value(outcome).expect("JSON")
}

const VALUE: &str = "form = \"value\"\ntable = 1.0\nother = 2.0\nwithin = { table = \"1 %\" }";

#[test]
fn a_claim_keeps_its_sample() {
    let claims = claim("value", VALUE);
    let outcome = &judged(&claims, None, 2)[0];
    let [sample] = outcome.samples.as_slice() else { panic!("one sample") };
    assert_eq!((sample.n, sample.mean), (12, outcome.values[0]));
    assert!(sample.sd > Some(0.0) && sample.ci95 > sample.ci90);
    assert_eq!(outcome.error, sample.sd.map(|sd| sd / 12_f64.sqrt()));
    let json = json(outcome);
    assert_eq!(
        (&json["table"], &json["other"], &json["sample"]["n"]),
        (&1.0.into(), &2.0.into(), &12.into())
    );
    assert_eq!(outcome, &judged(&claims, None, 1)[0], "the number of threads changes nothing");
    let more = &judged(&claims, Some(20), 2)[0];
    assert_eq!(more.samples[0].n, 20);
    let single = &judged(&claims, Some(1), 2)[0];
    assert_eq!((self::json(single)["sample"].clone(), single.error), (Value::Null, None));
}

#[test]
fn tolerances_count_standard_errors_of_both_sides() {
    let mean = |claims: &str| judged(claims, None, 2)[0].values[0].expect("a value");
    let error = |claims: &str| judged(claims, None, 2)[0].error.expect("an error");
    let plain = claim("value", VALUE);
    let (mean, error) = (mean(&plain), error(&plain));
    let holds = |shift: f64, published: f64| {
        let more = format!(
            "form = \"value\"\ntable = {}\nerrors = {{ table = {published} }}\nwithin = {{ table = \"2 standard errors\" }}",
            mean + shift
        );
        judged(&claim("value", &more), None, 2)[0].holds
    };
    assert!(holds(1.9 * error, 0.0) && !holds(2.1 * error, 0.0));
    let combined = (error * error + 4.0 * error * error).sqrt();
    assert!(holds(1.9 * combined, 2.0 * error) && !holds(2.1 * combined, 2.0 * error));
}

/// The same seeds meet the same losses: what both sides share cancels in a ratio.
#[test]
fn a_ratio_has_the_error_of_its_residuals() {
    let more = "form = \"ratio\"\nover = \"link.l.rate=5 Mbit/s,4.9 Mbit/s\"\nat_least = 0.5";
    let outcome = &judged(&claim("ratio", more), None, 2)[0];
    let [a, b] = outcome.samples.as_slice() else { panic!("two samples") };
    let relative = |sample: &Summary| sample.standard_error().unwrap() / sample.mean.unwrap();
    let (first, second) = (relative(a), relative(b));
    let independent = outcome.values[0].unwrap() * (first * first + second * second).sqrt();
    assert!(outcome.error.unwrap() < independent, "{:?} is not below {independent}", outcome.error);
    assert_eq!(json(outcome)["sample"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let refused = |claims: &str| {
        let folder = tempfile::tempdir().expect("a directory");
        open(folder.path(), claims).expect_err("it is refused").to_string()
    };
    let unknown = refused(&claim("value", "form = \"value\"\npaper = 1.0\nwithin = { paper = \"1 %\" }"));
    assert!(unknown.contains("there is no such key"), "{unknown}");
    let nothing = "form = \"value\"\ntable = 1.0\nwithin = { table = \"2 standard errors\" }";
    let single = refused(&claim("value", nothing).replace("\"lossy\"", "\"once\""));
    assert!(single.contains("no standard errors") && single.contains("`seeds`"), "{single}");
}

/// Verdicts of one claim: whether it holds, whether that was expected, and the remark.
fn verdict(more: &str) -> (bool, bool, String) {
    let outcome = judged(&claim("claim", more), None, 2).remove(0);
    (outcome.holds, outcome.as_expected(), outcome.note.unwrap_or_default())
}

const NEVER: &str =
    "form = \"value\"\nrows = \"table.csv\"\ntable = \"seconds\"\nwithin = { table = \"1 %\" }\n";

#[test]
fn never_means_in_no_run() {
    let (holds, expected, note) = verdict(&format!("{NEVER}set = [\"stop=0.2 s\"]"));
    assert!(holds && expected, "no run ends: {note}");
    let (holds, expected, note) = verdict(&format!("{NEVER}set = [\"stop=0.6 s\"]"));
    assert!(!holds && !expected && note.ends_with(" of 12 runs have no value"), "some runs end: {note}");
    let (holds, _, note) = verdict(&format!("{NEVER}where = {{ share = [0.8, 0.9] }}"));
    assert!(!holds && note == "no run meets the condition `where`", "there is no run: {note}");
}

#[test]
fn what_has_no_value_is_not_expected_to_hold_or_not() {
    let wanted = "form = \"value\"\nat_most = \"0.1 s\"\nexpected = false\nreason = \"it takes longer\"\n";
    assert_eq!(verdict(wanted), (false, true, String::new()));
    let without = judged(&claim("claim", &format!("{wanted}set = [\"stop=0.2 s\"]")), None, 2).remove(0);
    assert!(!without.holds && !without.as_expected());
    assert_eq!(json(&without)["as_expected"], false);
}

#[test]
fn a_quotient_of_nothing_has_no_value() {
    for form in ["ratio", "means\"\nrows = \"table.csv"] {
        let more = format!("form = \"{form}\"\nover = \"link.l.loss=2 %,0 %\"\nat_least = 0.5");
        let claims = claim("claim", &more).replace("\"completion\"", "\"dropped\"");
        let outcome = judged(&claims, None, 2).remove(0);
        assert_eq!((outcome.values, outcome.holds), (vec![None], false));
    }
}

/// A sample of seconds says nothing about the error of a quotient of seconds.
#[test]
fn the_sample_of_one_side_is_not_that_of_the_quotient() {
    let more = "form = \"ratio\"\nover = \"link.l.loss=10 %,0 %\"\nrows = \"table.csv\"\ntable = 1.0\n\
                errors = { table = { sd = \"sd\", n = \"n\" } }\nwithin = { table = \"1 standard errors\" }";
    let outcome = judged(&claim("claim", more), None, 2).remove(0);
    let both = outcome.error.expect("an error").hypot(0.05 / 10_f64.sqrt());
    let off = outcome.values[0].expect("a value") - 1.0;
    assert!(off > both && !outcome.holds, "{off} is more than {both}");
}

#[test]
fn a_threshold_needs_every_run() {
    let more =
        "form = \"threshold\"\nby = \"share\"\nagainst = \"once\"\nleast = 1\nwidth = 0.01\nat_least = 0.0\n";
    let (holds, _, note) = verdict(more);
    assert!(holds && note.starts_with("90 % of the resamplings"), "{note}");
    let (holds, _, note) = verdict(&format!("{more}set = [\"stop=0.6 s\"]"));
    assert!(!holds && note.ends_with(" of 13 runs have no value"), "{note}");
}

#[test]
fn a_threshold_below_the_first_group_is_told() {
    let more =
        "form = \"threshold\"\nby = \"share\"\nagainst = \"once\"\nleast = 1\nwidth = 1\nat_most = 0.1\n";
    let slower = claim("claim", more).replace("\"lossy\"", "\"slow\"");
    let note = judged(&slower, None, 2).remove(0).note.expect("a note");
    assert!(
        note.ends_with("the mean of the first group is larger already, so the threshold is here or lower"),
        "{note}"
    );
}

/// A path that begins at a radio has the name of its channel.
#[test]
fn a_path_over_radios_has_a_window() {
    let scenario = "[[channel]]\nname = 'air'\n[[chain]]\nname = 'n'\nhops = 1\nspacing = '100 m'\nchannels = ['air']\n\
                    [[flow]]\nname = 'f'\nfrom = 'n0'\nto = 'n1'\nsend = '20 kB'\n";
    let paper = "title = 'radios'\ncitation = 'nobody'\n[[variant]]\nname = 'now'\n[[experiment]]\nname = 'lossy'\nscenario = 'radio.toml'\n\
                 [[measure]]\nname = 'completion'\nquantity = 'cwnd'\npath = 'air'\nextreme = 'highest'\n";
    let folder = tempfile::tempdir().expect("a directory");
    let claims = claim("window", "form = \"value\"\nat_least = \"1 B\"");
    for (name, text) in [("paper.toml", paper), ("radio.toml", scenario), ("claims.toml", &claims)] {
        std::fs::write(folder.path().join(name), text).expect("the file is written");
    }
    let paper = Paper::open(folder.path()).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(&paper, None, |_| true).unwrap_or_else(|error| panic!("{error}"));
    let outcomes = plan.run(Some(1), &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcomes[0].holds, "{:?}", outcomes[0].values);
}
