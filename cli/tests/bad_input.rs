//! Wrong scenarios. Each file of `bad/` says in its first line what is to be told of it: the line, the key, and
//! a part of the message: `# line 5 | link.wifi.rate | has no unit`.

mod support;

use std::path::Path;

use support::{anabranch, documents, stderr};

/// What is wrong with what is told of `file`, if anything.
fn fault(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).expect("the file can be read");
    let expectation = text.lines().next()?.strip_prefix("# line ")?;
    let parts: Vec<_> = expectation.splitn(3, '|').map(str::trim).collect();
    let [line, key, part] = parts[..] else { return Some("its first line is no expectation".to_owned()) };
    let path = file.display().to_string();
    let output = anabranch(&["run", &path, "--json"]);
    let message = stderr(&output);
    let expected = [
        (output.status.code() == Some(2), "exit status 2".to_owned()),
        (output.stdout.is_empty(), "nothing on standard output".to_owned()),
        (message.matches("error: ").count() == 1, "one error".to_owned()),
        (message.contains(&format!("{path}:{line}:")), format!("line {line}")),
        (key.is_empty() || message.contains(&format!("error: {key}: ")), format!("key {key}")),
        (message.contains(part), format!("the words {part}")),
        (!message.contains("panicked"), "no panic".to_owned()),
    ];
    let missing: Vec<_> = expected.into_iter().filter(|(holds, _)| !holds).map(|(_, what)| what).collect();
    (!missing.is_empty()).then(|| format!("{path}: expected {}; got\n{message}", missing.join(", ")))
}

#[test]
fn every_wrong_scenario_is_refused_with_line_and_key() {
    let files = documents("tests/bad");
    assert!(files.len() >= 50, "{} files", files.len());
    let faults: Vec<_> = files.iter().filter_map(|file| fault(file)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn wrong_arguments_are_refused() {
    let good = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/one-path.toml");
    let cases: &[(&[&str], &str)] = &[
        (&["run"], "FILE"),
        (&["run", "nowhere.toml"], "nowhere.toml"),
        (&["run", good, "--set", "seed"], "KEY=VALUE"),
        (&["run", good, "--set", "flow.transfr.send=1 MB"], "did you mean `transfer`"),
        (&["run", good, "--set", "link.wire.rate=10"], "--> --set\n"),
        (&["run", good, "--set", "=1"], "empty"),
        (&["run", good, "--vary", "link.wire.rate"], "KEY=a,b,c"),
        (&["run", good, "--vary", "link.wire.rate=1 Mbit/s,,2 Mbit/s"], "empty value"),
        (&["run", good, "--vary", "link.wire.rate=1 Mbit/s,2 Mbps"], "--> --vary\n"),
        (&["run", good, "--vary", "flow.transfer.sctp.era=rfc9260,rfc1"], "there is no era"),
        (&["run", good, "--set", "flow.transfer.sctp.fairness=1"], "the nearest of"),
        (&["reproduce", "receive-buffer-blocking", "--claim", "tabel1"], "did you mean `table1`?"),
        (&["reproduce", "receive-bufer-blocking"], "did you mean `receive-buffer-blocking`?"),
        (
            &["reproduce", "receive-buffer-blocking", "--claim", "figure 9"],
            "there are `blocking`, `case-study`",
        ),
        (&["run", good, "--seeds", "0"], "--seeds"),
        (&["run", good, "--seed", "-1"], "'-1'"),
        (&["run", good, "--threads", "0"], "--threads"),
        (&["run", good, "--colour"], "--colour"),
    ];
    for (arguments, part) in cases {
        let output = anabranch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_summary_of_a_trace_has_a_limited_number_of_windows() {
    let trace = "tests/bad/traces/decades.csv";
    let output = anabranch(&["trace", trace]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the smallest window of this trace is 1000 s"), "{}", stderr(&output));
    assert!(anabranch(&["trace", trace, "--window", "1000 s", "--json"]).status.success());
}

/// A device has no end, and neither memory nor time for it.
#[test]
fn a_device_is_not_read_without_end() {
    let cases: &[&[&str]] = &[
        &["run", "/dev/zero"],
        &["sweep", "/dev/zero", "--out", "nowhere"],
        &["shell", "/dev/zero", "--at", "s", "--", "true"],
        &["advise", "failover", "/dev/zero"],
        &["lab", "/dev/zero"],
        &["serve", "--key", "/dev/zero"],
    ];
    for arguments in cases {
        let output = anabranch(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("/dev/zero: it has more than 64 MiB"), "{}", stderr(&output));
    }
    let resumed = ["reproduce", "receive-buffer-blocking", "--claim", "case-study", "--resume", "/dev/zero"];
    let output = anabranch(&resumed);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("/dev/zero: is not a regular file"), "{}", stderr(&output));
    let script = anabranch(&["script", "/dev/zero"]);
    let told = String::from_utf8_lossy(&script.stdout).into_owned();
    assert!(script.status.code() == Some(2) && told.contains("it has more than 64 MiB"), "{told}");
}

#[test]
fn a_file_that_is_no_text_is_refused_with_its_line() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("binary.toml").display().to_string();
    std::fs::write(&file, b"seed = 1\n\xff\xfe\n").expect("the file is written");
    let out = directory.path().join("out").display().to_string();
    let commands: [&[&str]; 5] =
        [&["run"], &["sweep", "--out", &out], &["advise", "policy"], &["trace"], &["script"]];
    for command in commands {
        let output = anabranch(&[command, &[&file]].concat());
        assert_eq!(output.status.code(), Some(2));
        let said = [stderr(&output), String::from_utf8_lossy(&output.stdout).into_owned()].concat();
        assert!(said.contains("binary.toml") && said.contains("not text: line 2 is not UTF-8"), "{said}");
    }
}

#[test]
fn a_directory_without_a_sweep_is_not_merged() {
    let directory = tempfile::tempdir().expect("a directory");
    let (empty, none) = (directory.path().display().to_string(), directory.path().join("none"));
    let merged = |part: &str| stderr(&anabranch(&["merge", &none.display().to_string(), part]));
    let told = format!("{empty}: this is not the directory of a sweep (`--out`): it holds no `runs.journal`");
    assert!(merged(&empty).contains(&told), "{}", merged(&empty));
    let gone = merged(&none.display().to_string());
    assert!(gone.contains("none: No such file"), "{gone}");
}
