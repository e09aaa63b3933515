//! Every crate of the workspace is packed with its licenses.

use std::fs;
use std::path::Path;

#[test]
fn every_crate_has_the_licenses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text =
        |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let manifest = text(&root.join("Cargo.toml"));
    let members = manifest.lines().find(|line| line.starts_with("members = ")).expect("a workspace");
    let folders: Vec<&str> = members.split('"').skip(1).step_by(2).collect();
    assert!(folders.contains(&"proto"), "{members}");
    for folder in folders {
        for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let same = text(&root.join(folder).join(license)) == text(&root.join(license));
            assert!(same, "{folder}/{license} is another text");
        }
    }
}
