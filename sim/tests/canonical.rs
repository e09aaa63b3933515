//! Scenarios as canonical TOML, both ways, and their content keys.

use std::path::Path;

use anabranch_proto::Policies;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{RunOptions, run};

fn read(text: &str) -> Scenario {
    read_beside("test.toml", text)
}

/// Files that the text names are sought beside `file`.
fn read_beside(file: &str, text: &str) -> Scenario {
    let document = Document::parse(file, text).unwrap_or_else(|error| panic!("{error}"));
    document.scenario("test", &Policies::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn toml(scenario: &Scenario) -> String {
    scenario.to_toml(&Policies::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn key(scenario: &Scenario, version: &str) -> String {
    scenario.content_key(version, &Policies::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_scenario_is_written_and_read_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("scenarios/ is there") {
        let file = entry.expect("the entry can be read").path();
        if file.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        let scenario = read_beside(&file.display().to_string(), &text);
        let text = toml(&scenario);
        let again = read(&text);
        assert_eq!(again, scenario.canonical(), "{}", file.display());
        assert_eq!(toml(&again), text, "{}: canonical text is its own canonical text", file.display());
        count += 1;
    }
    assert!(count > 10);
}

const ONE: &str = "seed = 3\n[[link]]\nname = 'a'\nbetween = ['s', 'r']\nrate = '1 Mbit/s'\nloss = '1.5 %'\n\
    [[link]]\nname = 'b'\nbetween = ['s', 'r']\nrate = '2 Mbit/s'\ndelay = '0.05 s'\n\
    [[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '100 kB'\n";

/// The same in other words.
const OTHER: &str = "title = 'Another text'\n[[flow]]\nname = 'f'\nfrom = 's'\nto = 'r'\nsend = '100000 B'\n\
    sctp = { era = 'rfc9260', rto_min = '1000 ms' }\n\
    [[link]]\nname = 'b'\nbetween = ['s', 'r']\nrate = ['2000 kbit/s', '2 Mbit/s']\ndelay = '50 ms'\n\
    [[link]]\nname = 'a'\nbetween = ['s', 'r']\nrate = '1000 kbit/s'\nloss = '1.50 %'\n";

#[test]
fn the_key_is_that_of_what_is_run() {
    let (one, other) = (read(ONE), read(&format!("seed = 3\n{OTHER}")));
    assert_eq!(toml(&one), toml(&other));
    assert_eq!(key(&one, "1.0"), key(&other, "1.0"));
    let results = [&one, &other].map(|scenario| run(scenario, RunOptions::default()).expect("it runs"));
    assert_eq!(results[0], results[1]);
    assert_eq!(key(&one, "1.0").len(), 64);
    let seed = Scenario { seed: 4, ..one.clone() };
    let wire = Scenario { wire: true, ..one.clone() };
    let named = Scenario { name: "another".to_owned(), ..one.clone() };
    assert_ne!(key(&one, "1.0"), key(&seed, "1.0"));
    assert_ne!(key(&one, "1.0"), key(&wire, "1.0"));
    assert_ne!(key(&one, "1.0"), key(&one, "1.1"));
    assert_eq!(key(&one, "1.0"), key(&named, "1.0"));
}

#[test]
fn what_no_document_says_is_refused() {
    let mut scenario = read(ONE);
    scenario.links[0].name = "a b".to_owned();
    let error = scenario.to_toml(&Policies::default()).expect_err("it is refused").to_string();
    assert!(error.contains("`a b` cannot be a name"), "{error}");
    let mut scenario = read(ONE);
    scenario.seed = u64::MAX;
    assert!(scenario.to_toml(&Policies::default()).is_err());
}
