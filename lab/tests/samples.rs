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
[[measure]]
name = "completion"
result = "flows.f.completion"
unit = "s"
"#;

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
    for (name, text) in [("paper.toml", PAPER), ("lossy.toml", SCENARIO), ("claims.toml", claims)] {
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
