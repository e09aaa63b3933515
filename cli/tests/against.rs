//! `anabranch explain --against` from outside.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{anabranch, stderr};

/// A capture of an association of usrsctp.
const FOREIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/captures/usrsctp.pcap");

/// The capture of a run of this example.
fn capture(directory: &Path, example: &str) -> String {
    let file = directory.join(format!("{example}.pcapng")).display().to_string();
    let scenario = format!("{}/../scenarios/{example}.toml", env!("CARGO_MANIFEST_DIR"));
    let output = anabranch(&["run", &scenario, "--pcap", &file]);
    assert!(output.status.success(), "{}", stderr(&output));
    file
}

/// The exit status, standard output and standard error of a comparison.
fn explain(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = anabranch(&[&["explain"], arguments].concat());
    let text = String::from_utf8(output.stdout.clone()).expect("it prints UTF-8");
    (output.status.code(), text, stderr(&output))
}

#[test]
fn our_own_capture_has_no_difference_until_a_setting_does() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = capture(directory.path(), "outage");
    let own = ["--against", "era=rfc9260", "--against", "path_max_retrans=2", "--against"];
    let with = |rto_min, more: &[&str]| explain(&[&[file.as_str()], &own[..], &[rto_min], more].concat());
    let (status, text, _) = with("rto_min=200 ms", &[]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.ends_with("No difference.\n"), "{text}");
    let (status, text, _) = with("rto_min=400 ms", &[]);
    assert_eq!(status, Some(1), "{text}");
    assert!(
        text.contains("RFC 9260 sections 6.3.3 and 7.2.4") && text.contains("with rto_min=200 ms"),
        "{text}"
    );
    let (status, text, _) = with("rto_min=400 ms", &["--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((status, &found["same"], &found["initiates"]), (Some(1), &false.into(), &true.into()));
    assert_eq!(found["differences"][0]["explained"][0]["key"], "rto_min", "{text}");
}

/// The capture does not tell when the user of the slow reader reads. Nothing explains all that CMT does beside one path
/// with another burst. Both differences of the outage are explained.
#[test]
fn what_follows_an_unexplained_difference_is_told_to_depend_on_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let with = |example: &str, set: &str, more: &[&str]| {
        let file = capture(directory.path(), example);
        explain(&[&[file.as_str(), "--against", "era=rfc9260", "--against", set], more].concat()).1
    };
    let told = "compared any further.\n  All that follows may be a consequence of it.\n";
    let text = with("slow-reader", "sack_delay=40 ms", &["--as", "10.0.0.1"]);
    assert!(text.contains("2 differences:") && text.matches(told).count() == 1, "{text}");
    let text = with("cmt", "max_burst=1", &[]);
    let end = "Data, SHUTDOWN and ABORT are not compared any further, nor anything after an ABORT of ours.\n";
    assert!(text.contains("One difference:") && text.ends_with(end), "{text}");
    let text = with("outage", "window=cubic", &[]);
    assert!(text.contains("2 differences:") && !text.contains("consequence"), "{text}");
}

#[test]
fn a_foreign_capture_is_compared_at_both_ends() {
    let (status, text, _) = explain(&[FOREIGN, "--against", "era=rfc9260"]);
    assert_eq!((status, text.lines().last()), (Some(0), Some("No difference.")), "{text}");
    let other = ["--against", "era=rfc9260", "--as", "10.9.0.1"];
    let (status, text, _) = explain(&[&[FOREIGN], &other[..]].concat());
    assert_eq!(status, Some(1));
    assert!(text.contains("which answered the INIT") && text.contains("One difference:"), "{text}");
    assert!(
        text.contains("Doubtful: the capture does not tell whether what is missing has arrived"),
        "{text}"
    );
}

/// All packets of `scenarios/loss.toml` wait for the sender's interface, which loses some of them.
#[test]
fn what_is_assumed_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = capture(directory.path(), "loss");
    let (status, text, said) = explain(&[&file, "--against", "era=rfc9260"]);
    assert_eq!((status, text.lines().last(), said.as_str()), (Some(0), Some("No difference."), ""), "{text}");
    assert!(text.contains("\nAssumed, because the capture does not tell it"), "{text}");
    let (_, text, _) = explain(&[&file, "--against", "era=rfc9260", "--json"]);
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((&found["same"], &found["assumed"]), (&true.into(), &serde_json::json!(["queue"])));
}

#[test]
fn wrong_input_is_refused_with_its_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let whole = capture(directory.path(), "one-path");
    let short = directory.path().join("short.pcapng").display().to_string();
    let bytes = std::fs::read(&whole).expect("the capture");
    std::fs::write(&short, &bytes[..bytes.len() - 5]).expect("a file");
    let other = capture(directory.path(), "mptcp");
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let era = ["--against", "era=rfc9260"];
    let cases: [(&str, &[&str], &str); 8] = [
        (&short, &era, "the file ends within a block"),
        (&other, &era, "no handshake"),
        (text, &era, "this is neither pcapng nor pcap"),
        ("nowhere.pcap", &era, "No such file"),
        (&whole, &["--against", "era=rfc9261"], "did you mean `rfc9260`?"),
        (&whole, &["--against", "rto_mn=1 s"], "did you mean `rto_min`?"),
        (&whole, &["--against", "era=rfc9260", "--as", "192.0.2.9"], "has the address 192.0.2.9"),
        (&whole, &["--as", "192.0.2.9"], "--against"),
    ];
    for (file, arguments, fault) in cases {
        let (status, printed, said) = explain(&[&[file], arguments].concat());
        assert_eq!((status, printed.as_str()), (Some(2), ""), "{file} {arguments:?}: {said}");
        assert!(said.contains(fault), "{file} {arguments:?}: {said}");
    }
}
