//! `anabranch advise` from outside: both questions, wrong files, and a search that ends early.

mod support;

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;
use support::{anabranch, command, stderr};
use tempfile::tempdir;

const SIGNALLING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/advice/signalling.toml");
const PAIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/advice/pair.toml");

fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("no JSON: {}", stderr(output)))
}

/// Whatever the machine can do in the time: there is an answer, and it says how it ended.
#[test]
fn a_failover_is_answered_in_the_time_allowed() {
    let output = anabranch(&["advise", "failover", SIGNALLING, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = parsed(&output);
    let advice = &answer["advice"]["parameters"];
    let ms = |key: &str| advice[key].as_u64().unwrap_or_else(|| panic!("{key}: {answer}"));
    assert!(ms("rto_min") > ms("sack_delay") + 54, "above the SACK delay and the round trip: {advice}");
    assert!(ms("rto_max") >= ms("rto_min") && ms("heartbeat_interval") > 0 && ms("path_max_retrans") < 20);
    assert!(["complete", "time-over"].contains(&answer["ended"].as_str().expect("why it ended")));
    let configurations = answer["configurations"].as_object().expect("configurations");
    assert_eq!(configurations.len(), 5);
    for (system, text) in configurations {
        assert!(
            text.as_str().is_some_and(|text| text.contains(&ms("rto_min").to_string())),
            "{system}: {text}"
        );
    }
    assert!(answer["text"].as_str().is_some_and(|text| text.contains("classical formula")));
    assert!(answer["front"].as_array().is_some_and(|front| !front.is_empty()));
}

#[test]
fn a_budget_that_nothing_meets_ends_with_status_1() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("hard.toml");
    let text = std::fs::read_to_string(SIGNALLING).expect("the example").replace("800 ms", "90 ms");
    std::fs::write(&file, text).expect("the file is written");
    let output = anabranch(&["advise", "failover", &file.display().to_string()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("No parameters meet it"), "{text}");
}

#[test]
fn a_random_task_is_asked_and_shown_with_its_file() {
    let output = anabranch(&["advise", "failover", "--random", "1", "--trials", "400", "--json"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let tasks = parsed(&output);
    let last = tasks.as_array().and_then(|all| all.last()).expect("a task");
    assert!(last["task"].as_str().is_some_and(|text| text.contains("[[path]]")), "{last}");
    assert!(last["checked"]["outages"].as_u64().is_some_and(|outages| outages > 0), "{last}");
}

/// Small enough for a slow machine: 81 pairs of rates, two policies.
fn small_pair() -> String {
    let text = std::fs::read_to_string(PAIR).expect("the example");
    let text = text
        .replace("10 MB", "300 kB")
        .replace("\"512 kB\", \"1 MB\", \"2 MB\", \"4 MB\"", "\"64 kB\", \"256 kB\"");
    text + "policies = [\"same\", \"alternate\"]\n"
}

#[test]
fn a_policy_is_advised_with_its_margin_boundary_and_map() {
    let directory = tempdir().expect("a directory");
    let [file, page] =
        ["pair.toml", "pair.html"].map(|name| directory.path().join(name).display().to_string());
    std::fs::write(&file, small_pair()).expect("the file is written");
    let arguments = ["advise", "policy", &file, "--json", "--report", &page, "--seconds", "600"];
    let output = anabranch(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let answer = parsed(&output);
    assert_eq!(answer["ended"], "complete");
    assert!(["same", "alternate"].contains(&answer["advice"]["policy"].as_str().expect("a policy")));
    assert!(answer["advice"]["margin"].is_f64() && answer["advice"]["receive_buffer"].is_u64());
    assert_eq!(answer["buffers"].as_array().map(Vec::len), Some(2));
    let edges = answer["edges"].as_array().expect("edges");
    assert_eq!(edges.len(), 9, "four quantities of each path, and the buffer");
    assert!(edges.iter().all(|edge| edge["unit"].is_string() && edge["now"].is_number()), "{edges:?}");
    let rows = answer["map"]["ratio"].as_array().expect("a map");
    assert!(rows.len() == 9 && rows.iter().all(|row| row.as_array().is_some_and(|row| row.len() == 9)));
    let html = std::fs::read_to_string(&page).expect("the page");
    assert!(html.contains("\"heatmap\"") && html.contains("\"contour\""), "the map and its boundary");
    assert!(
        html.contains(r#""ticktext":[""#) && html.contains(" kB\""),
        "the receive buffers stand below the curves"
    );
    let again = anabranch(&arguments);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("--force overwrites it"), "{}", stderr(&again));
}

#[test]
fn a_comparison_without_time_says_so() {
    let output = anabranch(&["advise", "policy", PAIR, "--json", "--seconds", "0.1"]);
    assert_eq!(parsed(&output)["ended"], "time-over", "{}", stderr(&output));
}

/// Ctrl-C, again and again until the program has set up what it does then. It prints what it has.
#[test]
fn ctrl_c_prints_the_best_so_far() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("long.toml");
    let text = std::fs::read_to_string(SIGNALLING).expect("the example").replace("99 %", "99.9 %");
    std::fs::write(&file, text).expect("the file is written");
    let file = file.display().to_string();
    let mut started = command(&["advise", "failover", &file, "--json", "--seconds", "3600"]);
    let child = started.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let id = rustix::process::Pid::from_child(&child);
    // A handler is shown by the kernel: SIGINT, signal 2, among those that are caught.
    let caught = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
        mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
    };
    while !caught() {
        std::thread::yield_now();
    }
    rustix::process::kill_process(id, rustix::process::Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{:?}: {}", output.status, stderr(&output));
    assert_eq!(parsed(&output)["ended"], "stopped");
}

/// Wrong files: the line, the key, a part of the message or of the fix.
const WRONG: &[(&str, &str, u32, &str, &str)] = &[
    ("failover", "[[path]]\nname = \"a\"\n", 1, "rate", "missing"),
    ("failover", "[[path]]\nname = 'a'\nrate = '1 Mbps'\ndelay = '1 ms'\n", 3, "rate", "Mbit/s"),
    ("failover", "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndealy = '1 ms'\n", 4, "dealy", "delay"),
    ("failover", "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndelay = '1 ms'\n", 1, "path", "two paths"),
    ("policy", "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndelay = '1 ms'\n", 1, "path", "two paths"),
    ("policy", "[transfer]\nsend = '10 MB'\n", 1, "path", "missing"),
    ("policy", "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndelay = '1 ms'\nloss = '60 %'\n", 5, "loss", "50 %"),
    ("policy", "[[path]]\nname = 'a'\nrate = '1 Mbit/s'\ndelay = '1 ms'\nqueue = 0\n", 5, "queue", "1 to"),
];

#[test]
fn a_wrong_file_is_refused_with_line_key_and_fix() {
    let directory = tempdir().expect("a directory");
    for (number, (question, text, line, key, part)) in WRONG.iter().enumerate() {
        let file: PathBuf = directory.path().join(format!("wrong-{number}.toml"));
        std::fs::write(&file, text).expect("the file is written");
        let output = anabranch(&["advise", question, &file.display().to_string(), "--json"]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {message}");
        assert!(output.stdout.is_empty(), "nothing on standard output");
        assert!(message.contains(&format!("wrong-{number}.toml:{line}:")), "{text}: line {line}: {message}");
        assert!(message.contains(key) && message.contains(part), "{text}: {key}, {part}: {message}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, part) in [
        (&["advise", "failover"][..], "FILE"),
        (&["advise", "failover", "nowhere.toml"], "nowhere.toml"),
        (&["advise", "failover", SIGNALLING, "--seconds", "0"], "0.1 to 86400"),
        (&["advise", "failover", SIGNALLING, "--random", "3"], "cannot be used with"),
        (&["advise", "policy", PAIR, "--force"], "--report"),
        (&["advise", "polciy", PAIR], "policy"),
    ] {
        let output = anabranch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    for question in ["failover", "policy"] {
        let output = anabranch(&["advise", question, "--help"]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        for part in ["Examples:", "scenarios/advice/", "Exit status:", "--seconds", "Ctrl-C"] {
            assert!(text.contains(part), "{question}: {part}");
        }
    }
}
