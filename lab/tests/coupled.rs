//! Coupled windows beside their theory: what of `papers/coupled-windows` one seed can tell.

use std::path::Path;

use anabranch_lab::claims::{Paper, Plan};

/// At a bottleneck each coupled window leaves the other association more than an uncoupled one, and on one path it is
/// the window of RFC 9260. The claims about random losses need more seeds: `anabranch reproduce coupled-windows`.
#[test]
fn coupled_windows_share_a_bottleneck_and_are_standard_alone() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../papers/coupled-windows");
    let paper = Paper::open(&folder).unwrap_or_else(|error| panic!("{error}"));
    let wanted = |id: &str| id.starts_with("bottleneck/") || id.starts_with("alone/");
    let plan = Plan::new(&paper, Some(1), wanted).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.claims(), 15);
    let outcomes = plan.run(None, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    for outcome in outcomes {
        assert!(outcome.holds, "{} at one seed: {:?}", outcome.id, outcome.values);
    }
}
