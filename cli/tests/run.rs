//! `anabranch run` from outside: what it prints, writes and returns.

mod support;

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use support::{anabranch, command, documents, skip, stderr};

fn json(arguments: &[&str]) -> Value {
    let output = anabranch(&[arguments, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

fn scenario(name: &str) -> String {
    format!("{}/../scenarios/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_scenario_runs_and_says_what_json_promises() {
    let files = documents("../scenarios");
    assert!(files.len() >= 11);
    for file in files {
        let runs = json(&["run", &file.display().to_string()]);
        let run = &runs.as_array().expect("a list")[0];
        for key in ["scenario", "seed", "era", "varied", "ended", "flows", "links"] {
            assert!(!run[key].is_null(), "{}: {key}", file.display());
        }
        assert_eq!(run["scenario"], file.file_stem().unwrap().to_str().unwrap());
        for flow in run["flows"].as_array().expect("flows") {
            flow_is_complete(flow, &file.display().to_string());
        }
        for link in run["links"].as_array().expect("links") {
            let drops = &link["drops"];
            let of = |cause: &str| drops[cause].as_u64().expect("a number");
            assert_eq!(link["dropped"], of("queue") + of("loss") + of("down"));
            assert!(link["direction"].as_str().is_some_and(|d| d.contains('>')) && link["packets"].is_u64());
        }
    }
}

#[test]
fn neither_codec_nor_first_numbers_change_anything() {
    for file in documents("../scenarios") {
        let file = file.display().to_string();
        let plain = json(&["run", &file, "--set", "wire=false"]);
        let mut arguments = vec!["run".to_owned(), file.clone(), "--set".to_owned(), "wire=true".to_owned()];
        let flows = plain[0]["flows"].as_array().expect("flows");
        for flow in flows.iter().filter(|flow| flow["protocol"] == "sctp") {
            let name = flow["name"].as_str().expect("a name");
            for number in ["first_tsn=4294967290", "first_ssn=65530"] {
                arguments.extend(["--set".to_owned(), format!("flow.{name}.sctp.{number}")]);
            }
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        assert_eq!(plain, json(&arguments), "{file}");
    }
}

fn flow_is_complete(flow: &Value, file: &str) {
    let object = flow.as_object().expect("an object");
    for key in ["name", "completion", "delivered", "goodput", "packets", "retransmissions", "blocked"] {
        assert!(object.contains_key(key), "{file}: {key}");
    }
    assert!(flow["delivered"].as_u64() > Some(0), "{file}: nothing was delivered");
    assert!(flow["retransmissions"]["fast"].is_object() && flow["retransmissions"]["timeout"].is_object());
    assert!(flow["blocked"]["peer_window"].is_f64() && flow["blocked"]["cwnd"].is_f64());
}

#[test]
fn a_grid_is_the_same_on_any_number_of_threads() {
    let loss = scenario("loss");
    let grid = ["run", &loss, "--vary", "era=rfc2960,rfc9260", "--seeds", "3"];
    let one = json(&[&grid[..], &["--threads", "1"]].concat());
    let four = json(&[&grid[..], &["--threads", "4"]].concat());
    assert_eq!(one, four);
    let seen: Vec<_> =
        one.as_array().unwrap().iter().map(|run| (run["era"].clone(), run["seed"].clone())).collect();
    let expected = ["rfc2960", "rfc9260"].map(|era| [7, 8, 9].map(|seed| (era.into(), seed.into())));
    assert_eq!(seen, expected.concat());
    assert_eq!(one[3]["varied"]["era"], "rfc9260");
}

#[test]
fn settings_and_seeds_change_what_is_run() {
    let file = scenario("loss");
    let lossless = json(&["run", &file, "--set", "link.wifi.loss=0 %", "--seed", "42"]);
    assert_eq!(
        lossless[0]["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|l| l["drops"]["loss"].as_u64().unwrap())
            .sum::<u64>(),
        0
    );
    assert_eq!(lossless[0]["seed"], 42);
    assert_ne!(json(&["run", &file])[0]["ended"], json(&["run", &file, "--seed", "8"])[0]["ended"]);
}

#[test]
fn the_table_has_one_row_for_each_value() {
    let file = scenario("headline");
    let output = anabranch(&[
        "run",
        &file,
        "--vary",
        "flow.download.sctp.retransmit=same,alternate,timeout-alternate",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "retransmit",
        "goodput",
        "peer's window",
        "\n same ",
        "\n alternate ",
        "\n timeout-alternate ",
        "Mbit/s",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn tables_fit_the_terminal_unless_they_may_be_wide() {
    let longest = |arguments: &[&str]| {
        let run = command(arguments).env("COLUMNS", "80").output().expect("the binary runs");
        let text = String::from_utf8(run.stdout).expect("text");
        let table = text.lines().skip_while(|line| !line.contains("goodput") && !line.contains("blocked"));
        table.map(|line| line.chars().count()).max().expect("a table")
    };
    let file = scenario("outage");
    assert!(longest(&["run", &file]) <= 80);
    assert!(longest(&["run", &file, "--seeds", "2"]) <= 80);
    assert!(longest(&["run", &file, "--wide"]) > 80);
}

#[test]
fn series_of_several_runs_get_a_directory_each() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let file = scenario("listed-loss");
    json(&["run", &file, "--seeds", "2", "--series", &path]);
    for run in ["run-1", "run-2"] {
        let run = directory.path().join(run);
        assert!(run.join("transfer.windows.csv").is_file() && run.join("wire.s-r.drops.csv").is_file());
        let result: Value = serde_json::from_slice(&std::fs::read(run.join("result.json")).unwrap()).unwrap();
        assert_eq!(result["scenario"], "listed-loss");
    }
    json(&["run", &file, "--series", &format!("{path}/single")]);
    assert!(directory.path().join("single/transfer.windows.csv").is_file());
}

#[test]
fn series_below_a_file_are_refused() {
    let file = scenario("listed-loss");
    let output = anabranch(&["run", &file, "--series", &format!("{file}/below-a-file")]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("listed-loss.toml is a file"), "{}", stderr(&output));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let file = scenario("one-path");
    let mut child = command(&["run", &file, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
}

/// The first run is short, the second would take hours. The shell waits for the first and then interrupts.
#[test]
fn an_interrupted_sweep_prints_what_is_finished() {
    let directory = tempfile::tempdir().unwrap();
    let first = directory.path().join("run-1/result.json");
    let (file, series) = (scenario("one-path"), directory.path().display().to_string());
    let amounts = "flow.transfer.send=1 MB,900 TB";
    let arguments = ["run", &file, "--vary", amounts, "--threads", "1", "--series", &series, "--json"];
    let mut child =
        command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let wait =
        format!("for i in $(seq 300); do [ -e {} ] && break; sleep 0.1; done; sleep 0.2", first.display());
    let interrupt = format!("{wait}; kill -INT {}", child.id());
    let interrupted = std::process::Command::new("sh").args(["-c", &interrupt]).status();
    if !interrupted.is_ok_and(|status| status.success()) {
        child.kill().expect("it can be ended");
        child.wait().expect("it ends");
        return skip("an_interrupted_sweep_prints_what_is_finished", "no `sh` that can send a signal");
    }
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted: 1 of 2 runs finished"), "{}", stderr(&output));
    let finished: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    assert_eq!(finished.as_array().map(Vec::len), Some(1));
    assert_eq!(finished[0]["flows"][0]["delivered"], 1_000_000);
}

#[test]
fn lists_are_printed_for_people_and_as_json() {
    for list in ["rules", "policies", "keys"] {
        let text = anabranch(&[list]);
        assert!(text.status.success() && !text.stdout.is_empty());
        let json: Value =
            serde_json::from_slice(&anabranch(&[list, "--json"]).stdout).expect("it prints JSON");
        assert!(!json.is_null());
    }
    let rules: Value = serde_json::from_slice(&anabranch(&["rules", "--json"]).stdout).unwrap();
    let reports = rules.as_array().unwrap().iter().find(|rule| rule["key"] == "missing_reports").unwrap();
    assert_eq!((&reports["eras"]["rfc2960"], &reports["eras"]["ns2"]), (&4.into(), &3.into()));
    let named = |rule: &Value| rule["choices"].as_array().map_or(0, Vec::len);
    let meanings = |rule: &Value| rule["meanings"].as_object().map_or(0, serde_json::Map::len);
    assert!(rules.as_array().unwrap().iter().all(|rule| named(rule) == meanings(rule)), "{rules}");
    let policies: Value = serde_json::from_slice(&anabranch(&["policies", "--json"]).stdout).unwrap();
    let summaries = policies["summaries"].as_object().expect("a line for each policy");
    assert!(summaries.values().all(|line| !line.as_str().unwrap_or_default().is_empty()), "{policies}");
}

#[test]
fn help_has_examples() {
    let help = String::from_utf8(anabranch(&["run", "--help"]).stdout).unwrap();
    assert!(
        help.contains("Examples:") && help.contains("--vary flow.download.sctp.retransmit=same,alternate")
    );
}

#[test]
fn seeds_are_summarised_unless_each_is_asked_for() {
    let loss = scenario("loss");
    let text = |more: &[&str]| {
        let output = anabranch(&[&["run", &loss, "--seeds", "3"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        (String::from_utf8(output.stdout.clone()).expect("a table"), stderr(&output))
    };
    let (summary, hint) = text(&[]);
    assert!(summary.contains("seeds") && summary.contains('±') && summary.contains("sd "), "{summary}");
    assert!(!hint.contains("hint"), "{hint}");
    let (each, _) = text(&["--each"]);
    assert!(!each.contains('±') && each.matches("Mbit/s").count() == 3, "{each}");
    let (_, hint) =
        text(&["--set", "link.wifi.loss=0 %", "--set", "flow.upload.sctp.heartbeat_jitter=false"]);
    assert!(hint.contains("nothing in this scenario is random"), "{hint}");
}

#[test]
fn what_is_there_is_overwritten_only_if_asked() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (csv, series, loss) = (path("results.csv"), path("series"), scenario("loss"));
    let run =
        |more: &[&str]| anabranch(&[&["run", &loss, "--csv", &csv, "--series", &series], more].concat());
    assert_eq!(run(&[]).status.code(), Some(0));
    let table = std::fs::read_to_string(&csv).expect("the CSV");
    assert!(
        table.starts_with("seed,") && table.contains(",goodput,") && table.contains("paths.wifi.cwnd"),
        "{table}"
    );
    assert_eq!(table.lines().count(), 2);
    let refused = run(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--force overwrites it"), "{}", stderr(&refused));
    assert_eq!(run(&["--force"]).status.code(), Some(0));
    std::fs::remove_file(directory.path().join("series/result.json")).expect("it is removed");
    let foreign = run(&["--force"]);
    assert_eq!(foreign.status.code(), Some(2), "a folder that no run wrote is never removed");
    assert!(stderr(&foreign).contains("no series"), "{}", stderr(&foreign));
}

/// However many runs there were before, and whoever else writes into the directory.
#[test]
fn a_directory_holds_the_results_of_one_command() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = scenario("listed-loss");
    let names = |place: &Path| {
        let entries = std::fs::read_dir(place).expect("it is there");
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    for option in ["--series", "--figures"] {
        let place = directory.path().join(option);
        let path = place.display().to_string();
        let run = |more: &[&str]| anabranch(&[&["run", &file, option, &path], more].concat());
        let done = |more: &[&str]| assert_eq!(run(more).status.code(), Some(0), "{option} {more:?}");
        done(&["--seed", "1"]);
        let of_one = names(&place);
        std::fs::write(place.join("notes.csv"), "mine").expect("it is written");
        let unasked = run(&["--vary", "seed=1,2,3"]);
        assert_eq!(unasked.status.code(), Some(2), "{option}");
        assert!(stderr(&unasked).contains("--force overwrites it"), "{}", stderr(&unasked));
        done(&["--vary", "seed=1,2,3", "--force"]);
        assert_eq!(names(&place), ["notes.csv", "run-1", "run-2", "run-3"], "{option}");
        done(&["--vary", "seed=8,9", "--force"]);
        assert_eq!(names(&place), ["notes.csv", "run-1", "run-2"], "{option}");
        assert_eq!(names(&place.join("run-1")), of_one, "{option}");
        done(&["--seed", "1", "--force"]);
        std::fs::remove_file(place.join("notes.csv")).expect("a file of ours stays");
        assert_eq!(names(&place), of_one, "{option}");
    }
}

/// A seed that is varied is the first of `--seeds`; the column has that of the run.
#[test]
fn every_row_of_the_csv_has_the_seed_of_its_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let csv = directory.path().join("results.csv").display().to_string();
    let loss = scenario("loss");
    let short = ["--set", "flow.upload.send=10 kB"];
    let output = anabranch(
        &[&["run", &loss, "--vary", "seed=1,10", "--seeds", "2", "--csv", &csv], &short[..]].concat(),
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = std::fs::read_to_string(&csv).expect("the CSV");
    let seeds: Vec<_> = table.lines().map(|line| line.split(',').next().unwrap_or_default()).collect();
    assert_eq!(seeds, ["seed", "1", "2", "10", "11"]);
}
