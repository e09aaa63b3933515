//! The results of every scenario in `scenarios/` are, to the last bit, those recorded in `tests/recorded/`. Keys that
//! are new in the results do not matter. `ANABRANCH_BLESS=1` records the results of today: only for a new scenario, or
//! with the reason in the commit message.

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use anabranch_sim::{RunOptions, run};
use serde_json::Value;

#[test]
fn every_scenario_gives_the_recorded_results() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = here.join("tests/recorded");
    for scenario in files(&here.join("../scenarios"), "toml") {
        let name = scenario.file_stem().expect("a name").to_str().expect("UTF-8");
        let record = recorded.join(format!("{name}.json"));
        let result = result(&scenario, name);
        if std::env::var_os("ANABRANCH_BLESS").is_some() {
            fs::write(&record, pretty(&result)).expect("the record can be written");
            continue;
        }
        let text = fs::read_to_string(&record)
            .unwrap_or_else(|_| panic!("{name} has no record: ANABRANCH_BLESS=1 makes it"));
        let keys = serde_json::from_str(&text).expect("a record is JSON");
        assert_eq!(pretty(&restricted(&result, &keys)), text, "{name}: not the recorded results");
    }
    for record in files(&recorded, "json") {
        let scenario = here.join("../scenarios").join(record.file_name().expect("a name"));
        assert!(scenario.with_extension("toml").exists(), "{}: no such scenario", record.display());
    }
}

/// The files in `directory` whose names end with `extension`, sorted.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> =
        entries.filter(|file| file.extension().is_some_and(|end| end == extension)).collect();
    files.sort();
    files
}

fn result(file: &Path, name: &str) -> Value {
    let text = fs::read_to_string(file).expect("a scenario");
    let document =
        Document::parse(&file.display().to_string(), &text).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let scenario =
        document.scenario(name, &Policies::default()).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let result = run(&scenario, RunOptions::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::to_value(&result).expect("results are JSON")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("results are JSON") + "\n"
}

/// `value` without the keys that `keys` does not have.
fn restricted(value: &Value, keys: &Value) -> Value {
    match (value, keys) {
        (Value::Object(value), Value::Object(keys)) => {
            let kept = keys
                .iter()
                .filter_map(|(key, keys)| value.get(key).map(|value| (key.clone(), restricted(value, keys))));
            Value::Object(kept.collect())
        }
        (Value::Array(value), Value::Array(keys)) if value.len() == keys.len() => {
            Value::Array(value.iter().zip(keys).map(|(value, keys)| restricted(value, keys)).collect())
        }
        _ => value.clone(),
    }
}
