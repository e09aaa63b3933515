//! The settings that docs/network.md recommends for a short outage, in the simulator: they do what it says, and no
//! harm while nothing fails.

mod support;

use std::fs;

use serde_json::Value;
use support::{anabranch, stderr};

/// The settings of the recipe, as they stand in the guide.
fn recipe() -> Vec<String> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/network.md");
    let guide = fs::read_to_string(guide).expect("it is there");
    let command =
        guide.split("```").find(|block| block.contains("anabranch send log.tar")).expect("the recipe");
    let words: Vec<&str> = command.split_whitespace().collect();
    let settings = words.windows(2).filter(|pair| pair[0] == "--set").map(|pair| pair[1].to_owned());
    let settings: Vec<String> = settings.collect();
    assert!(settings.iter().any(|setting| setting.starts_with("rto_min=")), "{settings:?}");
    settings
}

/// Two links with a round trip of 20 ms; the first is cut at `cut` seconds for good.
fn run(traffic: &str, cut: Option<f64>, settings: &[String]) -> Value {
    let link = |name: &str, extra: &str| {
        format!(
            "[[link]]\nname = \"{name}\"\nbetween = [\"a\", \"b\"]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n{extra}\n"
        )
    };
    let down = cut.map_or(String::new(), |at| format!("down = [[\"{at} s\", \"1 h\"]]"));
    let flow = format!("[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nudp = true\n{traffic}\n");
    let directory = tempfile::tempdir().expect("a place");
    let file = directory.path().join("recipe.toml");
    let text = format!(
        "stop = \"300 s\"\n{}{}{flow}[flow.sctp]\nprimary = \"first\"\n",
        link("first", &down),
        link("second", "")
    );
    fs::write(&file, text).expect("a file");
    let file = file.display().to_string();
    let mut arguments = vec!["run".to_owned(), file, "--json".to_owned()];
    for setting in settings {
        arguments.extend(["--set".to_owned(), format!("flow.f.sctp.{setting}")]);
    }
    let output = anabranch(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    runs[0]["flows"][0].clone()
}

/// A message a second, and as much as the links carry.
const SPARSE: &str = "rate = \"800 bit/s\"\nmessage_size = \"100 B\"";
const BULK: &str = "send = \"20 MB\"";

#[test]
fn no_timeout_is_spurious() {
    let recipe = recipe();
    for traffic in [SPARSE, BULK] {
        let flow = run(traffic, None, &recipe);
        assert_eq!(flow["timeouts"], 0, "{traffic}: {flow}");
    }
    // That this test can fail: with the peer's usual SACK delay nearly every message is sent twice.
    let mut careless: Vec<String> =
        recipe.into_iter().filter(|setting| !setting.starts_with("sack_delay")).collect();
    careless.extend(["sack_delay=200ms".to_owned(), "rto_min=200ms".to_owned()]);
    let flow = run(SPARSE, None, &careless);
    assert!(flow["timeouts"].as_u64() > Some(250), "{flow}");
}

#[test]
fn an_outage_is_over_within_two_seconds() {
    let recipe = recipe();
    let completion = |cut| run(BULK, cut, &recipe)["completion"].as_f64().expect("it is complete");
    let (whole, cut) = (completion(None), completion(Some(5.0)));
    assert!(cut - whole < 2.0, "{whole} s, with the cut {cut} s");
    let flow = run(SPARSE, Some(100.0), &recipe);
    assert!(flow["delivered"].as_u64() >= Some(297 * 100), "{flow}");
    assert_eq!(flow["paths"][1]["state"], "active", "{flow}");
}
