//! `anabranch new-policy`: what it makes builds, and its tests pass.

mod support;

use std::path::Path;
use std::process::Command;

use support::{anabranch, stderr};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Makes the policy `name` of this kind in `place`, and runs its tests with what this workspace has compiled.
fn made_and_tested(place: &Path, name: &str, kind: &str) {
    let folder = place.join(name).display().to_string();
    let made = anabranch(&["new-policy", name, "--kind", kind, "--folder", &folder, "--source", ROOT]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    // The same versions of the dependencies, so that nothing is downloaded.
    std::fs::copy(Path::new(ROOT).join("Cargo.lock"), place.join(name).join("Cargo.lock")).expect("copied");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("policies");
    let tested = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--quiet"])
        .current_dir(place.join(name))
        .env("CARGO_TARGET_DIR", target)
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&tested.stdout).into_owned() + &stderr(&tested);
    assert!(tested.status.success() && text.contains("2 passed"), "{text}");
}

#[test]
fn routes_and_windows_build_and_are_tested() {
    let place = tempfile::tempdir().expect("a directory");
    made_and_tested(place.path(), "near-by", "route");
    made_and_tested(place.path(), "cautious", "window");
}

#[test]
fn bad_names_and_folders_are_refused() {
    let place = tempfile::tempdir().expect("a directory");
    let folder = place.path().join("x").display().to_string();
    for name in ["Near", "1st", "near_by", "-x", ""] {
        let refused = anabranch(&["new-policy", "--folder", &folder, "--source", ROOT, "--", name]);
        assert_eq!(refused.status.code(), Some(2), "{name}: {}", stderr(&refused));
    }
    let taken = place.path().display().to_string();
    assert_eq!(anabranch(&["new-policy", "near", "--folder", &taken]).status.code(), Some(2));
    assert_eq!(
        anabranch(&["new-policy", "near", "--folder", &folder, "--source", &taken]).status.code(),
        Some(2)
    );
    let outside = anabranch(&["new-policy", "near", "--folder", &folder]);
    assert!(
        outside.status.code() == Some(2) && stderr(&outside).contains("--source DIR"),
        "{}",
        stderr(&outside)
    );
    assert!(!Path::new(&folder).exists());
}
