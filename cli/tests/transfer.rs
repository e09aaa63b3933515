//! What a listener needs, and what a refused file costs.

#![allow(clippy::disallowed_methods, reason = "real networks have real clocks")]

#[path = "support/listener.rs"]
mod listener;
mod support;

use std::fs;

use listener::Listener;
use serde_json::Value;
use support::stderr;

/// The directory is created; a file of a name that it has is refused, and then nothing more is sent.
#[test]
fn a_refused_file_stays_here() {
    let place = tempfile::tempdir().expect("a directory");
    let (inbox, file) = (place.path().join("new/inbox"), place.path().join("file"));
    fs::write(&file, vec![7; 20_000_000]).expect("a file");
    let mut listener = Listener::into(&inbox, &[]);
    assert!(inbox.is_dir(), "it was created");
    fs::write(inbox.join("file"), "mine").expect("a file");
    let refused = listener.send(&file, &["--json"]);
    assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
    let told: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!((&told["arrived"], &told["complete"]), (&0.into(), &false.into()), "{told}");
    let line = listener.line();
    assert!(line.contains("not received \"file\", 0 of 20000000 bytes"), "{line}");
    let told = stderr(&listener.send(&file, &[]));
    assert!(told.contains("; 0 of 20000000 bytes had arrived"), "{told}");
    assert_eq!(fs::read_to_string(inbox.join("file")).expect("it is there"), "mine");
}
