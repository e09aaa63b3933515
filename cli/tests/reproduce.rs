//! `anabranch reproduce` and `anabranch model` from outside: a publication that holds, and papers that are wrong.

mod support;
#[path = "reproduce/wrong.rs"]
mod wrong;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use support::{anabranch, command, stderr};
use tempfile::TempDir;
use wrong::{WRONG, Wrong};

fn publication() -> String {
    format!("{}/../papers/receive-buffer-blocking", env!("CARGO_MANIFEST_DIR"))
}

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

#[test]
fn receive_buffer_blocking_comes_out_as_expected() {
    let output = anabranch(&["reproduce", &publication(), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let paper = parsed(&output);
    assert_eq!(paper["paper"], "receive-buffer-blocking");
    let claims = paper["claims"].as_array().expect("claims");
    let find = |id: &str| claims.iter().find(|claim| claim["id"] == id).unwrap_or_else(|| panic!("{id}"));
    for claim in claims {
        for key in ["id", "source", "holds", "expected", "paper", "ns2", "anabranch", "tolerance", "reason"] {
            assert!(claim.get(key).is_some(), "{}: {key}", claim["id"]);
        }
        assert_eq!(claim["holds"], claim["expected"], "{claim}");
        assert_eq!(claim["expected"] == false, claim["reason"].is_string(), "{claim}");
    }
    let rows: Vec<_> = claims
        .iter()
        .filter(|claim| {
            let id = claim["id"].as_str().unwrap_or_default();
            id.starts_with("table") && id.matches('/').count() == 2 && !id.ends_with("/order")
        })
        .collect();
    assert_eq!(rows.len(), 52, "thirteen rows of two tables, two policies");
    for row in rows {
        let (ours, ns2) =
            (row["anabranch"].as_f64().expect("a number"), row["ns2"].as_f64().expect("a number"));
        assert!((ours / ns2 - 1.0).abs() <= 0.005, "{row}");
        assert!(row["beside"]["rfc9260"].is_f64() && row["paper"].is_f64(), "{row}");
    }
    assert_eq!(find("case-study/alternate/drops-in-burst")["anabranch"], 68.0);
    assert_eq!(find("case-study/alternate/cwnd-after-halving")["anabranch"], 147_522.0);
    assert_eq!(find("case-study/alternate/window-at-F")["anabranch"], 292.0);
    assert!(find("case-study/same/F")["anabranch"].is_null());
    assert_eq!(find("table2/5000000/order")["holds"], false);
    assert_eq!(find("table1/10000000/order")["of"], serde_json::json!(["alternate", "same"]));
}

const SCENARIO: &str = r#"era = "rfc9260"
[[link]]
name = "l"
between = ["a", "b"]
rate = "10 Mbit/s"
delay = "10 ms"
queue = "20 packets"
[[flow]]
name = "f"
from = "a"
to = "b"
send = "1 MB"
"#;

const PAPER: &str = r#"title = "A test"
citation = "Nobody"
[[variant]]
name = "today"
[[experiment]]
name = "one"
scenario = "one.toml"
set = ["link.l.rate={rate} bit/s"]
[[experiment]]
name = "plain"
scenario = "one.toml"
seeds = 3
[[experiment]]
name = "model"
model = "receive-buffer-blocking"
set = ["primary=10 Mbit/s", "secondary=36 kbit/s", "receive_buffer=1 MB"]
[[mark]]
name = "loss"
event = { drop = "l a>b" }
[[mark]]
name = "again"
event = { sent = "missing" }
after = "loss"
[[measure]]
name = "seconds"
result = "flows.f.completion"
unit = "s"
[[measure]]
name = "wait"
time = "again"
since = "loss"
[[measure]]
name = "lost"
count = { drop = "l" }
[[measure]]
name = "cwnd"
quantity = "cwnd"
path = "l"
extreme = "highest"
[[measure]]
name = "threshold"
result = "most_primary"
unit = "bit/s"
"#;

const TABLE: &str = "# a comment\nrate,seconds,ns2\n10000000,0.95,\n5000000,1.8,-\n";

/// Every form once; all hold.
const CLAIMS: &str = r#"
[[claim]]
id = "row/{rate}"
source = "Table 1"
form = "value"
rows = "table.csv"
experiment = "one"
measure = "seconds"
paper = "seconds"
within = { paper = "10 %" }
[[claim]]
id = "lost"
source = "Section 1"
form = "value"
experiment = "plain"
measure = "lost"
at_least = 1
[[claim]]
id = "window"
source = "Section 1"
form = "value"
experiment = "plain"
measure = "cwnd"
at_least = "1 kB"
[[claim]]
id = "marks"
source = "Section 1"
form = "sequence"
experiment = "plain"
marks = ["loss", "again"]
[[claim]]
id = "order"
source = "Section 1"
form = "order"
experiment = "plain"
measure = "seconds"
over = "link.l.rate=20 Mbit/s,10 Mbit/s,5 Mbit/s"
[[claim]]
id = "half"
source = "Section 1"
form = "ratio"
experiment = "plain"
measure = "seconds"
over = "link.l.rate=10 Mbit/s,5 Mbit/s"
paper = 0.5
within = { paper = "10 %" }
[[claim]]
id = "crossing"
source = "Section 1"
form = "crossing"
experiment = "plain"
measure = "seconds"
over = "flow.f.send=1 MB,500 kB"
key = "link.l.rate"
from = "1 Mbit/s"
to = "2 Mbit/s"
at_least = "1 Mbit/s"
expected = false
reason = "less data is always faster"
[[claim]]
id = "model"
source = "Section 1"
form = "value"
experiment = "model"
measure = "threshold"
at_least = "801 kbit/s"
at_most = "802 kbit/s"
"#;

fn folder(paper: &str, claims: &str, table: &str) -> (TempDir, PathBuf) {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("test");
    std::fs::create_dir(&folder).unwrap();
    for (name, text) in
        [("one.toml", SCENARIO), ("paper.toml", paper), ("claims.toml", claims), ("table.csv", table)]
    {
        std::fs::write(folder.join(name), text).unwrap();
    }
    (parent, folder)
}

fn reproduce(folder: &Path, more: &[&str]) -> Output {
    anabranch(&[&["reproduce", &folder.display().to_string()], more].concat())
}

#[test]
fn every_form_of_claim_holds_and_threads_change_nothing() {
    let (_parent, folder) = folder(PAPER, CLAIMS, TABLE);
    let output = reproduce(&folder, &["--json", "--threads", "1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(parsed(&output)["claims"].as_array().map(Vec::len), Some(9));
    assert_eq!(output.stdout, reproduce(&folder, &["--json", "--threads", "3"]).stdout);
    let text = reproduce(&folder, &[]).stdout;
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("9 claims: 8 hold, 1 do not, 0 not as expected"), "{text}");
    assert!(text.contains("crossing: less data is always faster"), "{text}");
    let one = reproduce(&folder, &["--json", "--claim", "row"]);
    assert_eq!(parsed(&one)["claims"].as_array().map(Vec::len), Some(2));
    assert_eq!(reproduce(&folder, &["--claim", "ro"]).status.code(), Some(2));
}

/// The report of a publication: `value` is about a count, which has no unit.
#[test]
fn every_axis_of_a_report_has_a_label_and_backticks_are_code() {
    let value = |id| {
        format!(
            "[[claim]]\nid = '{id}'\nsource = 'The `<b>`'\nform = 'value'\nexperiment = 'plain'\nmeasure = 'lost'\nat_least = 1\n"
        )
    };
    let (parent, folder) = folder(PAPER, &[CLAIMS, &value("one"), &value("two")].concat(), TABLE);
    let file = parent.path().join("page.html");
    let output = reproduce(&folder, &["--report", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = std::fs::read_to_string(file).unwrap();
    let (_, rest) = page.split_once(r#"id="figure">"#).unwrap();
    let figures: Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    let of = |axis| {
        let titles =
            figures.as_array().unwrap().iter().map(|figure| &figure["layout"][axis]["title"]["text"]);
        titles.map(|title| title.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of("yaxis"), ["seconds, s", "lost or ratio of seconds", "bit/s", "seconds, s", "lost"]);
    assert_eq!(of("xaxis"), ["claim", "claim", "claim", "link.l.rate", "claim"]);
    assert!(page.contains("<h2>The <code>&lt;b&gt;</code></h2>"));
}

/// Half of the runs are there, the last of them cut off as by a kill: the same bytes come out, and the same runs are
/// kept.
#[test]
fn an_interrupted_reproduction_goes_on_where_it_was() {
    let (parent, folder) = folder(PAPER, CLAIMS, TABLE);
    let file = parent.path().join("runs.journal");
    let resume = ["--json", "--resume", &file.display().to_string()];
    let whole = reproduce(&folder, &resume);
    assert_eq!(whole.status.code(), Some(0), "{}", stderr(&whole));
    assert_eq!(whole.stdout, reproduce(&folder, &["--json"]).stdout);
    let journal = std::fs::read_to_string(&file).unwrap();
    let sorted = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    assert!(journal.lines().count() > 5, "{journal}");
    std::fs::write(&file, &journal[..journal.len() / 2]).unwrap();
    assert_eq!(whole.stdout, reproduce(&folder, &resume).stdout);
    assert_eq!(sorted(&journal), sorted(&std::fs::read_to_string(&file).unwrap()));

    let kept = |wrong: &str| {
        std::fs::write(&file, wrong).unwrap();
        reproduce(&folder, &resume)
    };
    let damaged = kept(&journal.replacen(" 3", " 4", 2));
    assert_eq!(damaged.status.code(), Some(2));
    assert!(stderr(&damaged).contains("is damaged at line"), "{}", stderr(&damaged));
    let foreign = kept("something else");
    assert_eq!(foreign.status.code(), Some(2));
    assert!(stderr(&foreign).contains("does not hold finished runs"), "{}", stderr(&foreign));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "something else");
}

#[test]
fn a_claim_that_comes_otherwise_than_expected_fails_in_either_direction() {
    let broken = [
        (r#"within = { paper = "10 %" }"#, r#"within = { paper = "0.01 %" }"#),
        ("at_least = 1\n", "at_least = 1000\n"),
        (r#"marks = ["loss", "again"]"#, r#"marks = ["again", "loss"]"#),
        ("=20 Mbit/s,10 Mbit/s,5 Mbit/s", "=5 Mbit/s,10 Mbit/s,20 Mbit/s"),
        ("expected = false\nreason = \"less data is always faster\"\n", ""),
        ("at_least = 1\n", "at_least = 1\nexpected = false\nreason = \"it does hold\"\n"),
    ];
    for (before, after) in broken {
        assert!(CLAIMS.contains(before), "{before}");
        let (_parent, folder) = folder(PAPER, &CLAIMS.replacen(before, after, 1), TABLE);
        let output = reproduce(&folder, &["--json"]);
        assert_eq!(output.status.code(), Some(1), "{after}: {}", stderr(&output));
        let claims = parsed(&output)["claims"].as_array().cloned().unwrap_or_default();
        assert!(claims.iter().any(|claim| claim["holds"] != claim["expected"]), "{after}");
    }
}

#[test]
fn wrong_papers_are_refused_with_their_place() {
    let faults: Vec<_> = WRONG.iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// What is wrong with what is told of a wrong paper, if anything.
fn fault((file, before, after, said): &Wrong) -> Option<String> {
    let texts = [("paper", PAPER), ("claims", CLAIMS), ("table", TABLE)].map(|(name, text)| {
        assert!(name != *file || text.contains(before), "{before} is in {file}");
        if name == *file { text.replacen(before, after, 1) } else { text.to_owned() }
    });
    let (_parent, folder) = folder(&texts[0], &texts[1], &texts[2]);
    let output = reproduce(&folder, &[]);
    let message = stderr(&output);
    let mut missing: Vec<String> =
        said.iter().filter(|part| !message.contains(**part)).map(|part| (*part).to_owned()).collect();
    if output.status.code() != Some(2) {
        missing.push("exit status 2".to_owned());
    }
    if !output.stdout.is_empty() {
        missing.push("nothing on standard output".to_owned());
    }
    (!missing.is_empty()).then(|| format!("{after}: expected {}; got\n{message}", missing.join(", ")))
}

/// The commands that repeat a claim name the paper, also one in the current directory.
#[test]
fn a_paper_in_the_current_directory_has_a_name() {
    let (_parent, folder) = folder(PAPER, CLAIMS, TABLE);
    let output = command(&["reproduce", ".", "--json", "--claim", "model"]).current_dir(&folder).output();
    let paper = parsed(&output.expect("it runs"));
    assert_eq!(paper["paper"].as_str(), folder.file_name().and_then(|name| name.to_str()));
}

#[test]
fn papers_that_are_not_there_are_refused() {
    let output = anabranch(&["reproduce", "no-such-paper"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no-such-paper"), "{}", stderr(&output));
}

fn threshold(secondary: &str) -> f64 {
    let model =
        ["model", "receive-buffer-blocking", "--primary", "10 Mbit/s", "--receive-buffer", "1 MB", "--json"];
    let output = anabranch(&[&model[..], &["--secondary", secondary]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    parsed(&output)["results"]["most_primary"].as_f64().expect("a number")
}

#[test]
fn the_model_gives_the_papers_thresholds_to_three_digits() {
    assert_eq!((threshold("36 kbit/s") / 100.0).round(), 8016.0);
    assert_eq!((threshold("384 kbit/s") / 10_000.0).round(), 486.0);
}

#[test]
fn the_model_shows_every_term_and_refuses_what_it_cannot_read() {
    let model = ["model", "receive-buffer-blocking", "--primary", "10 Mbit/s", "--secondary", "36 kbit/s"];
    let output = anabranch(&[&model[..], &["--receive-buffer", "1 MB"]].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for equation in 1..=8 {
        assert!(text.contains(&format!("({equation})")), "equation {equation} is not in\n{text}");
    }
    for wrong in ["1", "-1 MB", "1 Mbit/s", "0 B"] {
        let output = anabranch(&[&model[..], &[&format!("--receive-buffer={wrong}")]].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains("--receive-buffer"), "{}", stderr(&output));
    }
}

/// An installed program has its papers with it: anywhere, and with the results that it has in the repository.
#[test]
fn papers_are_part_of_the_program() {
    let elsewhere = tempfile::tempdir().unwrap();
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let reproduce = |directory: &std::path::Path| {
        let arguments = ["reproduce", "receive-buffer-blocking", "--claim", "model", "--json"];
        let output = support::command(&arguments).current_dir(directory).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output.stdout
    };
    let json = reproduce(elsewhere.path());
    assert!(json == reproduce(repository.as_ref()) && json.len() > 100, "{}", json.len());
    let unknown = support::command(&["reproduce", "nothing"]).current_dir(&elsewhere).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    let told = stderr(&unknown);
    assert!(told.contains("no paper `nothing`") && told.contains("`receive-buffer-blocking`"), "{told}");
}

#[test]
fn one_wrong_claim_among_others_is_told() {
    let output = anabranch(&["reproduce", &publication(), "--claim", "model", "--claim", "modle"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no claim `modle`; did you mean `model`?"), "{}", stderr(&output));
}
