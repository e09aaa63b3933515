//! Arguments that were accepted although nothing good could come of them, and examples of the help that must work.

mod support;

use std::path::{Path, PathBuf};

use support::{anabranch, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn example(name: &str) -> String {
    format!("{ROOT}/scenarios/{name}.toml")
}

/// The command is refused with this part of a message.
fn refused(arguments: &[&str], part: &str) {
    let output = anabranch(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
    assert!(stderr(&output).contains(part), "{arguments:?}: expected {part}; got {}", stderr(&output));
}

#[test]
fn windows_that_give_too_many_values_are_refused() {
    let trace = format!("{ROOT}/scenarios/traces/walk.up");
    let output = anabranch(&["trace", &trace, "--window", "1ns"]);
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    let (_, window) = message.trim().rsplit_once(" is ").expect("the smallest window");
    let output = anabranch(&["trace", &trace, "--window", window, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{window}: {}", stderr(&output));
}

#[test]
fn a_trace_shorter_than_the_usual_window_has_one_window() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("short.up").display().to_string();
    std::fs::write(&file, "1\n2\n3\n").expect("written");
    let output = anabranch(&["trace", &file, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&summary["rates"], &summary["mean_rate"]), (&serde_json::json!([12e6]), &12_000_000.into()));
    assert_eq!(anabranch(&["trace", &file]).status.code(), Some(0));
    refused(&["trace", &file, "--window", "4 ms"], "--window must be above 0 and at most 3 ms");
}

#[test]
fn a_key_has_one_list_of_values_and_each_once() {
    let loss = example("loss");
    let run = ["run", &loss, "--vary", "link.wifi.loss=1 %,2 %"];
    refused(&[&run[..], &["--vary", "link.wifi.loss=3 %"]].concat(), "two --vary name this key");
    refused(&[&run[..], &["--set", "link.wifi.loss=3 %"]].concat(), "--set gives this key a value too");
    let together = "link.wifi.delay, link.wifi.loss=3 %";
    refused(&[&run[..], &["--vary", together]].concat(), "two --vary name this key");
    refused(&[&run[..], &["--set", together]].concat(), "--set gives this key a value too");
    let both = ["run", &loss, "--vary", "link.wifi.loss,link.wifi.jitter=1 %", "--set", "link.wifi.loss=3 %"];
    refused(&both, "--set gives this key a value too");
    refused(&["run", &loss, "--vary", "era=ns2,ns2"], "this value is listed twice");
    refused(&["run", &loss, "--vary", "era=ns2,\"ns2\""], "this value is listed twice");
    refused(&["run", &loss, "--vary", "seed=1,2", "--seed", "3"], "--seed gives this key a value too");
}

#[test]
fn seeds_end_where_their_numbers_end() {
    let loss = example("loss");
    let last = ["run", &loss, "--seed", "18446744073709551615", "--seeds"];
    refused(&[&last[..], &["3"]].concat(), "3 seeds from here go beyond 18446744073709551615");
    assert_eq!(anabranch(&[&last[..], &["1"]].concat()).status.code(), Some(0));
}

#[test]
fn a_seed_that_is_none_is_told_what_seeds_are() {
    for seed in ["-1", "1.5", "x", "18446744073709551616"] {
        refused(
            &["run", &example("one-path"), "--seed", seed],
            "a seed is a whole number from 0 to 18446744073709551615",
        );
    }
}

#[test]
fn a_capture_has_room_for_headers() {
    let scenario = example("one-path");
    refused(&["run", &scenario, "--pcap", "x", "--snaplen", "0"], "the headers of a packet need 40 bytes");
    refused(&["run", &scenario, "--pcap", "x", "--snaplen", "39"], "the headers of a packet need 40 bytes");
}

#[test]
fn names_that_a_new_policy_cannot_have_are_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let folder = place.path().join("new").display().to_string();
    for (name, why) in [
        ("fn", "keyword"),
        ("self", "keyword"),
        ("async", "keyword"),
        ("same", "is built in"),
        ("reno", "is built in"),
        ("core", "a crate"),
        ("std", "a crate"),
        ("test", "a crate"),
        ("anabranch-proto", "a crate"),
        ("route", "a type"),
        ("box", "keyword"),
        ("path-view", "a type"),
    ] {
        refused(&["new-policy", name, "--folder", &folder, "--source", ROOT], why);
    }
    assert!(!Path::new(&folder).exists());
}

/// An option that would have no effect beside another one is refused.
#[test]
fn options_without_effect_are_refused() {
    let scenario = example("one-path");
    for (arguments, part) in [
        (&["run", &scenario, "--why", "--qlog", "x"][..], "'--qlog <FILE>'"),
        (&["run", &scenario, "--why", "--perfetto", "x"], "'--perfetto <FILE>'"),
        (&["run", &scenario, "--each", "--json"], "'--json'"),
        (&["replay", "x", "--why", "--series", "y"], "'--series <DIR>'"),
        (&["serve", "--max-size-per-source", "1 GB"], "--receive-into <DIR>"),
        (&["send", "x", "--to", "127.0.0.1", "--interval", "2 s"], "--json"),
    ] {
        refused(arguments, part);
    }
}

/// The range is told, not how to pass a value that begins with a minus.
#[test]
fn negative_values_are_refused_for_what_they_are() {
    let (scenario, pair) = (example("one-path"), example("advice/pair"));
    let trace = format!("{ROOT}/scenarios/traces/walk.up");
    for (arguments, part) in [
        (&["run", &scenario, "--seed", "-1"][..], "invalid value '-1' for '--seed <N>'"),
        (&["run", &scenario, "--seeds", "-1"], "invalid value '-1' for '--seeds <N>'"),
        (&["run", &scenario, "--threads", "-1"], "1..=65535"),
        (&["run", &scenario, "--why", "--at", "-5s"], "invalid value '-5s' for '--at <TIME>'"),
        (&["run", &scenario, "--pcap", "x", "--snaplen", "-1"], "write `headers`, `full`"),
        (&["trace", &trace, "--outage", "-1s"], "invalid value '-1s' for '--outage <TIME>'"),
        (&["advise", "policy", &pair, "--seconds", "-3"], "0.1 to 86400"),
        (&["send", &scenario, "--to", "127.0.0.1", "--timeout", "-1"], "this is no time to wait"),
        (&["perf", "--to", "127.0.0.1", "--seconds", "-1"], "more than 0"),
    ] {
        refused(arguments, part);
        let message = stderr(&anabranch(arguments));
        assert!(!message.contains("as a value, use"), "{arguments:?}: {message}");
    }
}

#[test]
fn times_after_the_end_of_a_run_are_told_of() {
    let place = tempfile::tempdir().expect("a directory");
    let scenario = example("one-path");
    let output = anabranch(&["run", &scenario, "--why", "--at", "99999s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("--at: the run lasts from 0 s to "), "{}", stderr(&output));
    assert_eq!(stderr(&anabranch(&["run", &scenario, "--why", "--at", "0.1s"])), "");
    let file = place.path().join("x.svg").display().to_string();
    let output = anabranch(&["run", &scenario, "--msc", &file, "--between", "1000s,2000s"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("shows no packet: the run lasts from 0 s to "), "{}", stderr(&output));
}

#[test]
fn scripts_without_events_and_lists_without_scripts_are_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let path = |name: &str| place.path().join(name).display().to_string();
    std::fs::write(path("empty.pkt"), "").expect("written");
    std::fs::write(path("comment.pkt"), "// nothing\n").expect("written");
    std::fs::write(path("elsewhere.pkt"), "#ifdef FreeBSD\n#endif\n").expect("written");
    for name in ["empty.pkt", "comment.pkt"] {
        let output = anabranch(&["script", &path(name)]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains("the script has no event"), "{text}");
    }
    let skipped = anabranch(&["script", &path("elsewhere.pkt")]);
    assert!(String::from_utf8_lossy(&skipped.stdout).contains("1 skipped"));
    std::fs::write(path("known.txt"), "# known\nempti.pkt it is slow\n").expect("written");
    let message = "known.txt:2: no script given ends in `empti.pkt`";
    refused(&["script", &path("elsewhere.pkt"), "--xfail", &path("known.txt")], message);
}

#[test]
fn a_recording_that_was_cut_off_is_told_of() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("cut").display().to_string();
    std::fs::write(&file, "{\"recording\":1,\"program\":\"0.").expect("written");
    refused(&["replay", &file], "line 1: the recording ends within this line: it was cut off");
}

/// `/dev/zero` is a trace without end.
#[test]
fn a_trace_has_an_end() {
    refused(&["trace", "/dev/zero"], "/dev/zero: a trace has at most 268435456 bytes");
}

/// Times do not go back, nor to where timers never expire, and a line has an end.
#[test]
fn a_forged_recording_is_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let file = place.path().join("forged").display().to_string();
    let head = format!(
        "{{\"recording\":2,\"program\":\"\",\"settings\":[],\"port\":5000,\"mtu\":1500,\"ip_header\":28,\
         \"addresses\":[[\"127.0.0.1:0\",8]],\"seed\":\"{}=\"}}\n",
        "A".repeat(43)
    );
    let line = |at: u64| format!("{{\"at\":{at},\"polls\":1,\"sent\":0,\"call\":\"time\"}}\n");
    for (rest, message) in [
        (line(5) + &line(4), "line 3: this is no recording: its times go back, or leap"),
        (line(u64::MAX), "line 2: this is no recording: its times go back, or leap"),
        ("[".repeat(1 << 20), "line 2: this is no recording: the line is too long"),
        (line(5), "the recording has no end"),
    ] {
        std::fs::write(&file, head.clone() + &rest).expect("written");
        refused(&["replay", &file], message);
    }
}

/// The examples in the help of every command.
fn examples(command: &[&str]) -> Vec<String> {
    let output = anabranch(&[command, &["--help"]].concat());
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(str::to_owned).collect()
}

#[test]
fn files_in_the_examples_of_the_help_are_in_the_repository() {
    let commands = "run diff sweep merge explain reproduce lab script model trace shell serve send replay perf new-policy";
    let mut found = 0;
    let advise = [&["advise", "failover"][..], &["advise", "policy"]];
    for command in commands.split(' ').map(|command| vec![command]).chain(advise.map(<[_]>::to_vec)) {
        for line in examples(&command) {
            let words = line.split([' ', '\'']);
            for file in words
                .filter(|word| ["scenarios/", "tests/", "papers/"].iter().any(|top| word.starts_with(top)))
            {
                found += 1;
                assert!(PathBuf::from(ROOT).join(file).exists(), "{command:?}: {file}");
            }
        }
    }
    assert!(found > 20, "{found} files");
}
