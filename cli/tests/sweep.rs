//! `anabranch sweep` from outside: its tables, how it goes on after a kill, and what it refuses.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use support::{anabranch, command, documents, stderr};

/// A sweep of 3 × 2 cells and 40 seeds, of transfers that take milliseconds each.
const SWEEP: &str = r#"
scenario = "scenario.toml"
seeds = 40
until = { time = "99 %" }
compare = "era"
[vary]
"link.wifi.loss" = ["0 %", "1 %", "5 %"]
era = ["rfc4960", "rfc9260"]
[measure]
time = "flows.upload.completion"
lost = "links.wifi s>r.drops.loss"
"#;

const SCENARIO: &str = r#"
seed = 40
[[link]]
name = "wifi"
between = ["s", "r"]
rate = "10 Mbit/s"
delay = "5 ms"
[[flow]]
name = "upload"
from = "s"
to = "r"
send = "100 kB"
"#;

const TABLES: [&str; 3] = ["runs.csv", "summary.csv", "summary.json"];

/// A directory with the sweep in it.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    std::fs::write(place.path().join("sweep.toml"), SWEEP).expect("the sweep is written");
    std::fs::write(place.path().join("scenario.toml"), SCENARIO).expect("the scenario is written");
    place
}

fn arguments(place: &Path, out: &str, threads: &str) -> Vec<String> {
    let path = |name: &str| place.join(name).display().to_string();
    ["sweep", &path("sweep.toml"), "--out", &path(out), "--threads", threads, "--json"]
        .map(str::to_owned)
        .into()
}

fn sweep(place: &Path, out: &str, threads: &str) -> Output {
    let arguments = arguments(place, out, threads);
    anabranch(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The program's own Parquet file says the same as its CSV, also of seeds from 2^63 on.
#[cfg(feature = "parquet")]
#[test]
fn runs_are_written_as_parquet_as_well() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let place = place();
    let seed = format!("seed = {}", i64::MAX - 1);
    std::fs::write(place.path().join("scenario.toml"), SCENARIO.replace("seed = 40", &seed))
        .expect("written");
    assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
    let out = place.path().join("out");
    let file = std::fs::File::open(out.join("runs.parquet")).expect("runs.parquet");
    let reader = SerializedFileReader::new(file).expect("it is Parquet");
    let read: Vec<Vec<(String, String)>> = reader
        .get_row_iter(None)
        .expect("rows")
        .map(|row| row.expect("a row").into_columns())
        .map(|columns| columns.into_iter().map(|(name, value)| (name, plain(&value))).collect())
        .collect();
    let csv = std::fs::read_to_string(out.join("runs.csv")).expect("runs.csv");
    let mut rows = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = rows.next().expect("a header");
    let expected: Vec<Vec<_>> = rows.map(|row| header.iter().cloned().zip(row).collect()).collect();
    assert_eq!(read, expected);
    let bytes = || std::fs::read(out.join("runs.parquet")).expect("runs.parquet");
    let first = bytes();
    assert_eq!(sweep(place.path(), "out", "1").status.code(), Some(0));
    assert_eq!(bytes(), first);
}

#[cfg(feature = "parquet")]
fn plain(field: &parquet::record::Field) -> String {
    use parquet::record::Field;
    match field {
        Field::Str(text) => text.clone(),
        Field::ULong(number) => number.to_string(),
        Field::Double(number) => number.to_string(),
        Field::Null => String::new(),
        other => panic!("{other:?} is in no column"),
    }
}

fn tables(directory: &Path) -> Vec<String> {
    TABLES.iter().map(|name| std::fs::read_to_string(directory.join(name)).expect(name)).collect()
}

#[test]
fn tables_say_what_was_run_on_any_number_of_threads() {
    let place = place();
    let one = sweep(place.path(), "one", "1");
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    let four = sweep(place.path(), "four", "4");
    assert_eq!(one.stdout, four.stdout);
    let [runs, summary, json] = tables(&place.path().join("one")).try_into().expect("three tables");
    assert_eq!(vec![runs.clone(), summary.clone(), json.clone()], tables(&place.path().join("four")));
    assert_eq!(String::from_utf8(one.stdout).unwrap(), json, "--json prints summary.json");
    assert_eq!(runs.lines().next(), Some("link.wifi.loss,era,seed,time,lost"));
    assert!(runs.lines().nth(1).is_some_and(|row| row.starts_with("0 %,rfc4960,40,")), "{runs}");
    let cells: Value = serde_json::from_str(&json).expect("JSON");
    let cells = cells.as_array().expect("a list");
    assert_eq!(cells.len(), 6);
    assert_eq!(cells[5]["varied"], serde_json::json!({ "link.wifi.loss": "5 %", "era": "rfc9260" }));
    // Without losses all seeds give the same, and so few of them do not suffice.
    assert_eq!(cells[0]["measures"]["time"]["n"], 40);
    // The fewest seeds that are judged.
    assert_eq!(cells[5]["measures"]["time"]["n"], 30);
    assert_eq!(cells[0]["measures"]["lost"]["mean"], 0.0);
    for key in ["mean", "sd", "ci90", "ci95"] {
        assert!(cells[5]["measures"]["lost"][key].as_f64() > Some(0.0), "{key}");
    }
    for key in ["5", "50", "95"] {
        assert!(cells[5]["measures"]["lost"]["quantiles"][key].is_f64(), "{key}");
    }
    assert!(cells[0].get("differences").is_none());
    assert_eq!(cells[5]["against"], serde_json::json!({ "era": "rfc4960" }));
    differences_are_of_the_same_seeds(&runs, &cells[5]);
    let n: u64 = cells.iter().map(|cell| cell["measures"]["time"]["n"].as_u64().unwrap()).sum();
    assert_eq!(runs.lines().count() as u64, n + 1);
    assert_eq!(summary.lines().count(), 1 + 6 * 2 + 3 * 2);
}

/// Runs shard `shard` of the sweep into the directory `out`.
fn shard(place: &Path, out: &str, shard: &str) -> Output {
    let arguments = [arguments(place, out, "1"), vec!["--shard".to_owned(), shard.to_owned()]].concat();
    anabranch(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn merge(place: &Path, out: &str, parts: &[&str]) -> Output {
    let path = |name: &&str| place.join(name).display().to_string();
    let directories: Vec<_> = [&[out], parts].concat().iter().map(path).collect();
    anabranch(&[vec!["merge"], directories.iter().map(String::as_str).collect()].concat())
}

#[test]
fn shards_merge_to_the_bytes_of_one_process() {
    let place = place();
    for text in [SWEEP.to_owned(), SWEEP.replace("until =", "# until =")] {
        std::fs::write(place.path().join("sweep.toml"), text).expect("the sweep is written");
        let parts = ["part-1", "part-2", "part-3", "merged", "whole"];
        parts.iter().for_each(|part| drop(std::fs::remove_dir_all(place.path().join(part))));
        assert_eq!(sweep(place.path(), "whole", "2").status.code(), Some(0));
        for (part, number) in [("part-1", "1/3"), ("part-2", "2/3")] {
            let ran = shard(place.path(), part, number);
            assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
            assert!(!place.path().join(part).join("runs.csv").exists());
        }
        let missing = merge(place.path(), "merged", &["part-1", "part-2"]);
        assert_eq!(missing.status.code(), Some(1));
        assert!(stderr(&missing).contains("runs are missing"), "{}", stderr(&missing));
        tables_hold_what_there_is(&place.path().join("merged"), &place.path().join("whole"));
        assert!(String::from_utf8_lossy(&missing.stdout).contains("rfc9260"), "it prints them");
        // Shard 0/3 is shard 3/3.
        assert_eq!(shard(place.path(), "part-3", "0/3").status.code(), Some(0));
        let merged = merge(place.path(), "merged", &["part-1", "part-2", "part-3"]);
        assert_eq!(merged.status.code(), Some(0), "{}", stderr(&merged));
        assert_eq!(tables(&place.path().join("merged")), tables(&place.path().join("whole")));
    }
}

/// The tables of the runs that exist: each row stands in the tables of all runs too, if no interval decides which
/// count.
fn tables_hold_what_there_is(merged: &Path, whole: &Path) {
    let [runs, summary, _] = tables(merged).try_into().expect("three tables");
    let all = std::fs::read_to_string(whole.join("runs.csv")).expect("runs.csv");
    assert!(runs.lines().count() > 1 && runs.lines().count() < all.lines().count(), "{runs}");
    assert_eq!(summary.lines().count(), 1 + 6 * 2 + 3 * 2);
    assert!(
        runs.lines().all(|row| all.lines().any(|other| other == row)),
        "seeds and values belong together: {runs}"
    );
}

#[test]
fn shards_of_another_sweep_and_bad_shards_are_refused() {
    let place = place();
    assert_eq!(shard(place.path(), "part-1", "4/3").status.code(), Some(2));
    assert_eq!(shard(place.path(), "part-1", "1/2").status.code(), Some(0));
    std::fs::write(place.path().join("scenario.toml"), SCENARIO.replace("100 kB", "90 kB")).expect("written");
    assert_eq!(shard(place.path(), "part-2", "2/2").status.code(), Some(0));
    let refused = merge(place.path(), "merged", &["part-1", "part-2"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("holds another sweep"), "{}", stderr(&refused));
    assert_eq!(merge(place.path(), "merged", &["nowhere"]).status.code(), Some(2));
}

fn differences_are_of_the_same_seeds(runs: &str, cell: &Value) {
    let times = |era: &str| -> Vec<f64> {
        let begin = format!("5 %,{era},");
        let rows = runs.lines().filter_map(|row| row.strip_prefix(&begin));
        rows.map(|row| row.split(',').nth(1).unwrap().parse().unwrap()).collect()
    };
    let (new, old) = (times("rfc9260"), times("rfc4960"));
    let mean = new.iter().zip(&old).map(|(new, old)| new - old).sum::<f64>() / new.len() as f64;
    let found = cell["differences"]["time"]["mean"].as_f64().expect("a mean");
    assert!((found - mean).abs() < 1e-12, "{found} is not {mean}");
}

#[test]
fn a_sweep_that_is_killed_goes_on_and_ends_in_the_same_bytes() {
    let place = place();
    assert_eq!(sweep(place.path(), "whole", "2").status.code(), Some(0));
    let whole = tables(&place.path().join("whole"));
    // Killed after more and more of its output: in the set-up, in the runs, and while tables are written.
    let mut kills = 0;
    for i in 0..30 {
        let threads = ["1", "3", "2", "4", "1", "2"][i % 6];
        let arguments = arguments(place.path(), "killed", threads);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut child =
            command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let journal = place.path().join("killed/runs.journal");
        let enough = (i as u64 + 1) * 150;
        while std::fs::metadata(&journal).map_or(0, |file| file.len()) < enough {
            if child.try_wait().expect("it can be asked").is_some() {
                break;
            }
            std::thread::yield_now();
        }
        child.kill().expect("it can be killed");
        let status = child.wait().expect("it has ended");
        kills += u32::from(status.signal() == Some(9));
    }
    assert!(kills >= 20, "{kills} of 30 were killed before their end");
    let last = sweep(place.path(), "killed", "2");
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
    assert_eq!(tables(&place.path().join("killed")), whole);
    assert_eq!(
        sweep(place.path(), "killed", "3").status.code(),
        Some(0),
        "a finished sweep can be asked again"
    );
    assert_eq!(tables(&place.path().join("killed")), whole);
}

#[test]
fn a_line_without_its_end_is_cut_off() {
    let place = place();
    assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
    let whole = tables(&place.path().join("out"));
    let journal = place.path().join("out/runs.journal");
    let bytes = std::fs::read(&journal).expect("the journal");
    for part in [1, 2, 3, 7] {
        std::fs::write(&journal, &bytes[..bytes.len() - bytes.len() / 8 * part]).expect("it is cut");
        TABLES.iter().for_each(|name| drop(std::fs::remove_file(place.path().join("out").join(name))));
        assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
        assert_eq!(tables(&place.path().join("out")), whole);
    }
}

#[test]
fn a_directory_that_is_foreign_or_damaged_is_refused() {
    let place = place();
    assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
    let out = place.path().join("out");
    let refused = |what: &str| {
        let output = sweep(place.path(), "out", "2");
        assert_eq!(output.status.code(), Some(2), "{what}: {}", stderr(&output));
        assert!(stderr(&output).contains(what) && output.stdout.is_empty(), "{what}: {}", stderr(&output));
    };
    let journal = std::fs::read(out.join("runs.journal")).expect("the journal");
    for place in [3, journal.len() / 2, journal.len() - 3] {
        let mut bytes = journal.clone();
        bytes[place] ^= 1;
        std::fs::write(out.join("runs.journal"), &bytes).expect("it is damaged");
        refused("runs.journal");
    }
    std::fs::write(out.join("runs.journal"), &journal).expect("it is whole again");
    let table = std::fs::read(out.join("runs.csv")).expect("the table");
    std::fs::write(out.join("runs.csv"), &table[..table.len() / 2]).expect("it is damaged");
    refused("runs.csv");
    std::fs::write(out.join("runs.csv"), &table).expect("it is whole again");
    std::fs::write(place.path().join("scenario.toml"), SCENARIO.replace("5 ms", "6 ms"))
        .expect("it is changed");
    refused("another sweep");
    std::fs::write(place.path().join("scenario.toml"), SCENARIO).expect("it is as before");
    std::fs::remove_file(out.join("runs.journal")).expect("it is removed");
    refused("no sweep");
    std::fs::remove_dir_all(&out).expect("it is removed");
    std::fs::write(&out, "").expect("a file");
    refused("this is a file");
}

#[test]
fn more_seeds_later_run_only_what_is_missing() {
    let place = place();
    let file = place.path().join("sweep.toml");
    let plain = SWEEP.replace("until = { time = \"99 %\" }", "");
    std::fs::write(&file, plain.replace("seeds = 40", "seeds = 3")).expect("the sweep is written");
    assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
    std::fs::write(&file, plain.replace("seeds = 40", "seeds = 4")).expect("the sweep is written");
    assert_eq!(sweep(place.path(), "out", "2").status.code(), Some(0));
    let journal = std::fs::read_to_string(place.path().join("out/runs.journal")).expect("the journal");
    assert_eq!(journal.lines().filter(|line| line.starts_with("run ")).count(), 6 * 4);
    assert_eq!(tables(&place.path().join("out"))[0].lines().count(), 1 + 6 * 4);
}

#[test]
fn a_signal_ends_it_with_its_status_and_keeps_what_was_finished() {
    use rustix::process::Signal;
    let place = place();
    let endless = SWEEP.replace("until = { time = \"99 %\" }", "").replace("seeds = 40", "seeds = 100000");
    std::fs::write(place.path().join("sweep.toml"), endless).expect("the sweep is written");
    for (out, signal, status) in [("interrupted", Signal::INT, 130), ("ended", Signal::TERM, 143)] {
        let arguments = arguments(place.path(), out, "2");
        let mut child = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let journal = place.path().join(out).join("runs.journal");
        while std::fs::metadata(&journal).map_or(0, |file| file.len()) < 1000 {
            std::thread::yield_now();
        }
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, signal).expect("it gets the signal");
        let output = child.wait_with_output().expect("it has ended");
        assert_eq!(output.status.code(), Some(status), "{}", stderr(&output));
        assert!(stderr(&output).contains("the same command goes on"), "{}", stderr(&output));
        assert!(output.stdout.is_empty() && !place.path().join(out).join("runs.csv").exists());
        let finished = std::fs::read_to_string(&journal).expect("the journal");
        assert!(finished.ends_with('\n') && finished.lines().count() > 5);
    }
}

/// Each file of `bad-sweeps/` says in its first line what is to be told of it, as those of `bad/` do.
#[test]
fn wrong_sweeps_are_refused_with_line_and_key() {
    let out = tempfile::tempdir().expect("a directory");
    let out = out.path().join("out");
    let files = documents("tests/bad-sweeps");
    assert!(files.len() >= 15);
    for file in files {
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        let expectation =
            text.lines().next().and_then(|line| line.strip_prefix("# line ")).expect("an expectation");
        let parts: Vec<_> = expectation.splitn(3, '|').map(str::trim).collect();
        let path = file.display().to_string();
        let output = anabranch(&["sweep", &path, "--out", &out.display().to_string()]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{path}: {message}");
        assert!(message.contains(&format!("{path}:{}:", parts[0])), "{path}: {message}");
        assert!(
            parts[1].is_empty() || message.contains(&format!("error: {}: ", parts[1])),
            "{path}: {message}"
        );
        assert!(message.contains(parts[2]), "{path}: {message}");
        assert!(!out.exists(), "{path}: nothing is begun");
    }
}

/// A sweep of one cell, which is called again with other keys.
fn one_cell(place: &Path, keys: &str, out: &str, more: &[&str]) -> Output {
    let file = place.join("cell.toml").display().to_string();
    let scenario = place.join("scenario.toml").display().to_string();
    std::fs::write(&file, format!("scenario = {scenario:?}\n{keys}")).expect("the sweep is written");
    let out = place.join(out).display().to_string();
    anabranch(&[&["sweep", &file, "--out", &out][..], more].concat())
}

/// Half of the transfers are not complete when the run ends.
#[test]
fn means_of_fewer_runs_than_there_are_say_so() {
    let place = place();
    let stop = SCENARIO.replacen("seed = 40", "seed = 40\nstop = \"0.13 s\"", 1);
    let stop = stop.replace("delay = \"5 ms\"", "delay = \"5 ms\"\nloss = \"2 %\"");
    std::fs::write(place.path().join("scenario.toml"), stop).expect("the scenario is written");
    let keys =
        "seeds = 40\n[measure]\ntime = \"flows.upload.completion\"\ngoodput = \"flows.upload.goodput\"\n";
    let page = place.path().join("page.html").display().to_string();
    let output = one_cell(place.path(), keys, "out", &["--report", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).expect("a table");
    let summary = std::fs::read_to_string(place.path().join("out/summary.json")).expect("summary.json");
    let cells: Value = serde_json::from_str(&summary).expect("JSON");
    let complete = cells[0]["measures"]["time"]["n"].as_u64().expect("a number");
    assert!((5..35).contains(&complete), "{complete} of 40 are complete");
    assert!(
        table.contains("runs") && table.contains("time, s") && table.contains("goodput, bit/s"),
        "{table}"
    );
    assert!(table.contains(&format!("{complete} of 40 runs")), "{table}");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("<th scope=\"col\">goodput, bit/s</th>") && page.contains("<td>40</td>"));
    assert!(page.contains(&format!("{} runs have no time.", 40 - complete)));
    assert!(page.contains(&format!("({complete} of 40 runs)")));
}

/// What a result has only if there is something to say: an outage, latencies, tail probes.
#[test]
fn what_happens_in_an_outage_is_measured() {
    let place = place();
    let outage = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/outage.toml");
    std::fs::copy(outage, place.path().join("scenario.toml")).expect("copied");
    let keys = "seeds = 1\n[measure]\nelsewhere = \"flows.signalling.outages.first.new_data\"\n\
                longest = \"flows.signalling.latency.max\"\nprobes = \"flows.signalling.paths.first.tail_probes\"\n\
                large = \"links.first s>r.drops.size\"\n";
    let output = one_cell(place.path(), keys, "out", &["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let cells: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mean = |measure: &str| cells[0]["measures"][measure]["mean"].as_f64();
    assert!(
        mean("elsewhere") > Some(1.0) && mean("longest") > mean("elsewhere").map(|mean| mean / 2.0),
        "{cells}"
    );
    assert_eq!((mean("probes"), mean("large")), (Some(0.0), Some(0.0)), "{cells}");
}

/// Thirty seeds of which few have a value do not decide that a cell has enough of them.
#[test]
fn a_precision_needs_values() {
    let place = place();
    let lossy = SCENARIO.replace("delay = \"5 ms\"", "delay = \"5 ms\"\nloss = \"2 %\"");
    let stop = lossy.replacen("seed = 40", "seed = 40\nstop = \"0.13 s\"", 1);
    std::fs::write(place.path().join("scenario.toml"), stop).expect("the scenario is written");
    let keys = "seeds = 200\nuntil = { time = \"99 %\" }\n[measure]\ntime = \"flows.upload.completion\"\n";
    assert_eq!(one_cell(place.path(), keys, "out", &[]).status.code(), Some(0));
    let summary = std::fs::read_to_string(place.path().join("out/summary.json")).expect("summary.json");
    let cells: Value = serde_json::from_str(&summary).expect("JSON");
    let runs = std::fs::read_to_string(place.path().join("out/runs.csv")).expect("runs.csv");
    assert_eq!(cells[0]["measures"]["time"]["n"], 30, "{runs}");
    assert!(runs.lines().count() > 31, "{runs}");
}

/// The sweep with the most seeds is that of all parts, whichever is named first; other differences are refused.
#[test]
fn parts_of_other_plans_are_not_mixed_in_silence() {
    let place = place();
    let keys = |seeds: u32, more: &str| {
        format!("seeds = {seeds}\n{more}[measure]\ntime = \"flows.upload.completion\"\n")
    };
    let part = |keys: &str, out: &str, shard: &str| {
        let output = one_cell(place.path(), keys, out, &["--shard", shard]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    };
    part(&keys(4, ""), "few", "1/2");
    part(&keys(20, ""), "many", "2/2");
    // As a shard that was killed leaves it.
    let journal = |part: &str| place.path().join(part).join("runs.journal");
    let killed = [std::fs::read(journal("few")).expect("a journal"), b"run 0 3 40".to_vec()].concat();
    std::fs::write(journal("few"), &killed).expect("written");
    for parts in [["few", "many"], ["many", "few"]] {
        let out = parts.join("-");
        let merged = merge(place.path(), &out, &parts);
        assert_eq!(merged.status.code(), Some(1), "{}", stderr(&merged));
        assert!(stderr(&merged).contains("8 of 20 runs are missing"), "{}", stderr(&merged));
        let runs = std::fs::read_to_string(place.path().join(out).join("runs.csv")).expect("runs.csv");
        assert_eq!(runs.lines().count(), 13, "{runs}");
    }
    assert!(std::fs::read(journal("few")).expect("a journal") == killed, "merge only reads the parts");
    part(&keys(20, "until = { time = \"1 %\" }\n"), "until", "2/2");
    let refused = merge(place.path(), "out", &["many", "until"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("another `until`"), "{}", stderr(&refused));
}

#[test]
fn a_page_or_chart_takes_no_place_that_is_read() {
    let place = place();
    for read in ["scenario.toml", "sweep.toml"] {
        let mut arguments = arguments(place.path(), "out", "1");
        let file = place.path().join(read).display().to_string();
        arguments.extend(["--report".to_owned(), file, "--force".to_owned()]);
        let output = anabranch(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("would overwrite") && stderr(&output).contains(read));
    }
    assert_eq!(std::fs::read_to_string(place.path().join("scenario.toml")).expect("it is there"), SCENARIO);
}

/// The command of the page repeats the run, also of a value that is a table.
#[test]
fn the_command_of_a_cell_can_be_run() {
    let place = place();
    let keys = "seeds = 1\n[vary]\n\"flow.upload.sctp.retransmit\" = [\"same\", { name = \"rtx-lossrate\", window = \"10 s\" }]\n\
                [measure]\ntime = \"flows.upload.completion\"\n";
    let page = place.path().join("page.html").display().to_string();
    let output = one_cell(place.path(), keys, "out", &["--report", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(page).expect("the page");
    let command = page.split("<code>anabranch ").nth(3).and_then(|rest| rest.split("</code>").next());
    let command = command.expect("a command").replace("&quot;", "\"").replace("&#39;", "'");
    let program = env!("CARGO_BIN_EXE_anabranch");
    let ran = std::process::Command::new("sh").args(["-c", &format!("{program} {command} --json")]).output();
    let ran = ran.expect("a shell");
    assert!(ran.status.success(), "{command}: {}", stderr(&ran));
}

/// Without losses all seeds give the same values; what is left of their interval is an error of rounding.
#[test]
fn equal_values_have_seven_digits_and_no_interval() {
    let place = place();
    let page = place.path().join("page.html").display().to_string();
    let keys =
        "seeds = 60\n[measure]\ngoodput = \"flows.upload.goodput\"\ntime = \"flows.upload.completion\"\n";
    let output = one_cell(place.path(), keys, "out", &["--report", &page]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary = std::fs::read_to_string(place.path().join("out/summary.json")).expect("summary.json");
    let cells: Value = serde_json::from_str(&summary).expect("JSON");
    let goodput = cells[0]["measures"]["goodput"]["mean"].as_f64().expect("a mean");
    assert!(goodput.fract() > 0.0, "{goodput}: the summary has all digits");
    let table = String::from_utf8(output.stdout).expect("a table");
    assert!(!table.contains('±') && table.contains(&format!(" {goodput:.0} ")), "{table}");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(
        page.contains(&format!("<td>{goodput:.0}</td><td>0</td>")),
        "the page has the mean, and 0 beside it"
    );
}

#[test]
fn seeds_of_a_sweep_end_where_their_numbers_end() {
    let place = place();
    let last = SCENARIO.replacen("seed = 40", "seed = 18446744073709551614", 1);
    std::fs::write(place.path().join("scenario.toml"), last).expect("the scenario is written");
    let keys = "seeds = 3\n[measure]\ntime = \"flows.upload.completion\"\n";
    let output = one_cell(place.path(), keys, "out", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("seeds: the scenario's seed and the following ones go beyond"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_example_runs() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/sweeps/loss.toml");
    let out = tempfile::tempdir().expect("a directory");
    let output = anabranch(&["sweep", example, "--out", &out.path().display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).expect("a table");
    assert!(table.contains("goodput") && table.contains('±'), "{table}");
}

/// A file that is given to the wrong command is told what it is, and which command takes it.
#[test]
fn a_file_for_another_command_is_told_which_takes_it() {
    let place = place();
    let path = |name: &str| place.path().join(name).display().to_string();
    let (sweep, scenario, out) = (path("sweep.toml"), path("scenario.toml"), path("out"));
    let asked = |name: &str| format!("{}/../scenarios/advice/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let (failover, pair) = (asked("signalling"), asked("pair"));
    for (arguments, part) in [
        (&["run", &sweep][..], "this is the file of a sweep; `anabranch sweep"),
        (&["diff", &sweep], "this is the file of a sweep"),
        (&["sweep", &scenario, "--out", &out], "this is a scenario; `anabranch run"),
        (&["run", &failover], "this asks for a failover; `anabranch advise failover"),
        (&["run", &pair], "this asks for a policy; `anabranch advise policy"),
        (&["sweep", &pair, "--out", &out], "this asks for a policy; `anabranch advise policy"),
        (&["advise", "failover", &pair], "this asks for a policy; `anabranch advise policy"),
        (&["advise", "policy", &failover], "this asks for a failover; `anabranch advise failover"),
        (&["advise", "failover", &scenario], "this is a scenario; `anabranch run"),
        (&["lab", &sweep], "this is the file of a sweep; `anabranch sweep"),
        (&["advise", "policy", &sweep], "this is the file of a sweep; `anabranch sweep"),
    ] {
        let output = anabranch(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
}
