//! `anabranch script`: what it prints, and with which status it ends.

use std::path::Path;
use std::process::{Command, Output};

const GOOD: &str = " 0.0 < sctp(tag=7): COOKIE_ACK[flgs=0]\n";
const BAD: &str = " 0.0 < sctp: INIT[flgs=0, tag=1, a_rwnd=1500, os=1, is=1, tsn=1]\n\
                   +0.0 > sctp: ABORT[flgs=T]\n";
const UNREAD: &str = " 0.0 nothing\n";
const SKIPPED: &str = " 0.0 < tcp: 1\n";

fn folder(scripts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in scripts {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a script");
    }
    folder
}

fn script(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.current_dir(folder).arg("script").args(arguments).output().expect("anabranch runs")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

#[test]
fn directories_are_searched_and_sorted() {
    let folder = folder(&[("b/2.pkt", GOOD), ("b/1.pkt", GOOD), ("a.pkt", GOOD), ("note.txt", "no script")]);
    let output = script(folder.path(), &["."]);
    assert_eq!(out(&output), "ok    ./a.pkt\nok    ./b/1.pkt\nok    ./b/2.pkt\n3 scripts: 3 passed\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_failure_says_where_and_what() {
    let folder = folder(&[("bad.pkt", BAD), ("good.pkt", GOOD), ("skipped.pkt", SKIPPED)]);
    let output = script(folder.path(), &["good.pkt", "bad.pkt", "skipped.pkt"]);
    let text = out(&output);
    assert!(text.contains("FAIL  bad.pkt:2 expected sctp: ABORT[flgs=T], got sctp: ABORT[flgs=0]"), "{text}");
    assert!(text.contains("! flgs       expected T                        got 0"), "{text}");
    assert!(text.contains("0.0 < sctp: INIT[flgs=0, tag=1, a_rwnd=1500, os=1, is=1, tsn=1]"), "{text}");
    assert!(text.contains("skip  skipped.pkt:1 packets of tcp is not supported"), "{text}");
    assert!(text.ends_with("3 scripts: 1 passed, 1 failed, 1 skipped\n"), "{text}");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(out(&script(folder.path(), &["good.pkt"])), "ok    good.pkt\n1 script: 1 passed\n");
}

#[test]
fn what_cannot_be_read_ends_with_another_status() {
    let folder = folder(&[("unread.pkt", UNREAD), ("bad.pkt", BAD)]);
    let output = script(folder.path(), &["unread.pkt", "bad.pkt"]);
    assert!(out(&output).contains("ERROR unread.pkt:1"), "{}", out(&output));
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(script(folder.path(), &["missing.pkt"]).status.code(), Some(2));
    assert_eq!(script(folder.path(), &["--set", "platfrom=X", "bad.pkt"]).status.code(), Some(2));
}

#[test]
fn known_failures_are_expected() {
    let folder = folder(&[
        ("bad.pkt", BAD),
        ("good.pkt", GOOD),
        ("known.txt", "# known\nbad.pkt  T is not for INIT\n"),
    ]);
    let output = script(folder.path(), &["bad.pkt", "--xfail", "known.txt"]);
    assert!(out(&output).contains("xfail bad.pkt:2 T is not for INIT"), "{}", out(&output));
    assert_eq!(output.status.code(), Some(0));
    std::fs::write(folder.path().join("known.txt"), "good.pkt it is fixed\n").expect("written");
    let output = script(folder.path(), &["good.pkt", "--xfail", "known.txt"]);
    assert!(out(&output).contains("XPASS good.pkt it is fixed"), "{}", out(&output));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn platforms_open_ifdefs() {
    let text = format!("#ifdef FreeBSD\n{UNREAD}#endif\n{GOOD}");
    let folder = folder(&[("one.pkt", &text)]);
    assert_eq!(script(folder.path(), &["one.pkt"]).status.code(), Some(0));
    assert_eq!(script(folder.path(), &["one.pkt", "--set", "platform=FreeBSD"]).status.code(), Some(2));
    assert_eq!(script(folder.path(), &["one.pkt", "-D", "FreeBSD"]).status.code(), Some(2));
}

#[test]
fn json_has_one_object_a_script() {
    let folder = folder(&[("bad.pkt", BAD), ("good.pkt", GOOD)]);
    let output = script(folder.path(), &["good.pkt", "bad.pkt", "--json"]);
    let reports: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(reports[0], serde_json::json!({ "file": "good.pkt", "verdict": "pass" }));
    assert_eq!(reports[1]["verdict"], "fail");
    assert_eq!(reports[1]["line"], 2);
    assert_eq!(reports[1]["seconds"], 0.0);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn parameters_hold_where_scripts_set_none() {
    let text = " 0.0 socket(..., SOCK_STREAM, IPPROTO_SCTP) = 3\n+0.0 fcntl(3, F_SETFL, O_NONBLOCK) = 0\n\
        +0.0 connect(3, ..., ...) = -1 EINPROGRESS\n\
        +0.0 > sctp: INIT[flgs=0, tag=1, a_rwnd=..., os=9, is=..., tsn=1, ...]\n";
    let folder = folder(&[("one.pkt", text)]);
    assert_eq!(script(folder.path(), &["one.pkt"]).status.code(), Some(1));
    assert_eq!(script(folder.path(), &["one.pkt", "--sctp", "outbound_streams=9"]).status.code(), Some(0));
    let wrong = script(folder.path(), &["one.pkt", "--sctp", "outbound_stream=9"]);
    let said = String::from_utf8_lossy(&wrong.stderr);
    assert!(wrong.status.code() == Some(2) && said.contains("did you mean `outbound_streams`"), "{said}");
}
