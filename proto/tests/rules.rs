//! The sources read as text: each rule is decided in one place and tested, no era or policy is asked for by
//! name, and what is cited from the standard is tested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anabranch_proto::{Mechanisms, Policies, Rules};

struct Source {
    path: PathBuf,
    /// Without the tests in it.
    code: String,
    tests: String,
}

/// Every Rust file below a folder of this crate.
fn sources(folder: &str) -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the crate") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(source(root, &path));
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn source(root: &Path, path: &Path) -> Source {
    let text = std::fs::read_to_string(path).expect("a source");
    let path = path.strip_prefix(root).expect("in the crate").to_owned();
    let all_tests = path.starts_with("tests") || path.ends_with("tests.rs");
    let split = if all_tests { 0 } else { text.find("\n#[cfg(test)]\nmod tests").unwrap_or(text.len()) };
    let (code, tests) = text.split_at(split);
    Source { path, code: code.to_owned(), tests: tests.to_owned() }
}

/// The code without comments and without any space, so that line breaks do not matter.
fn squeezed(code: &str) -> String {
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or(""));
    lines.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

/// How often `code` reads the field of a value called `rules`, or `mechanisms`.
fn reads(code: &str, field: &str) -> usize {
    let table = if Mechanisms::DOCS.iter().any(|(key, _)| *key == field) { "mechanisms" } else { "rules" };
    let read = format!("{table}.{field}");
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '(');
    code.match_indices(&read).filter(|(at, _)| ends(&code[at + read.len()..])).count()
}

fn fields() -> impl Iterator<Item = &'static str> {
    let choices = Rules::CHOICES.iter().chain(Mechanisms::CHOICES).map(|choice| choice.0);
    choices.chain(Rules::NUMBERS.iter().copied())
}

/// Besides the declaration, and the check that a configuration is sound.
fn declares(source: &Source) -> bool {
    ["src/rules.rs", "src/config.rs"].iter().any(|path| source.path == Path::new(path))
}

#[test]
fn each_rule_is_read_in_exactly_one_place() {
    let code: Vec<(PathBuf, String)> = sources("src")
        .iter()
        .filter(|source| !declares(source))
        .map(|source| (source.path.clone(), squeezed(&source.code)))
        .collect();
    for field in fields() {
        let places: Vec<_> = code.iter().filter(|(_, code)| reads(code, field) > 0).collect();
        let count: usize = places.iter().map(|(_, code)| reads(code, field)).sum();
        let names: Vec<_> = places.iter().map(|(path, _)| path).collect();
        println!("{field:22} {names:?}");
        assert_eq!(count, 1, "`{field}` is read in {names:?}");
    }
}

/// A rule that nothing tests may be decided either way.
#[test]
fn each_rule_has_a_test_of_its_name() {
    let tests: String = sources("tests").iter().map(|source| source.tests.as_str()).collect();
    for field in fields() {
        assert!(tests.contains(&format!("fn {field}()")), "no test is called `{field}`");
    }
}

#[test]
fn no_era_or_policy_is_asked_for_by_name() {
    let policies = Policies::default();
    let names = Rules::ERAS.iter().map(|era| era.0);
    let names: Vec<_> = names.chain(policies.route_names()).chain(policies.window_names()).collect();
    for source in sources("src").iter().filter(|source| !declares(source)) {
        let code = squeezed(&source.code);
        for name in &names {
            let literal = format!("\"{name}\"");
            // The table of policies gives names, and asks for none.
            let row = format!("({literal},\"");
            let given = code.matches(&row).count();
            assert_eq!(code.matches(&literal).count(), given, "{literal} in {}", source.path.display());
        }
    }
}

/// The sections cited in a text, by lines of their own: two slashes, `=`, the document and its section.
fn citations(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.trim().strip_prefix(concat!("//", "= ")))
}

/// The citations of code and of tests: where each section is cited.
fn cited() -> [BTreeMap<String, BTreeSet<String>>; 2] {
    let mut tables: [BTreeMap<String, BTreeSet<String>>; 2] = Default::default();
    for source in sources("src").into_iter().chain(sources("tests")) {
        let name = source.path.display().to_string();
        for (table, text) in tables.iter_mut().zip([&source.code, &source.tests]) {
            for section in citations(text) {
                table.entry(section.to_owned()).or_default().insert(name.clone());
            }
        }
    }
    tables
}

#[test]
fn every_cited_section_is_tested() {
    let [code, tests] = cited();
    let files = |of: Option<&BTreeSet<String>>| {
        of.map_or("-".to_owned(), |files| files.iter().cloned().collect::<Vec<_>>().join(" "))
    };
    let all: BTreeSet<&String> = code.keys().chain(tests.keys()).collect();
    for section in all {
        println!(
            "{section}\n    code:  {}\n    tests: {}",
            files(code.get(section)),
            files(tests.get(section))
        );
    }
    let untested: Vec<_> = code.keys().filter(|section| !tests.contains_key(*section)).collect();
    assert!(untested.is_empty(), "cited by code, by no test: {untested:#?}");
}

/// A citation names a document and a place in it, as in `rfc9260#section-6.2.1`.
#[test]
fn citations_have_their_form() {
    for citation in cited().iter().flat_map(BTreeMap::keys) {
        let (document, place) = citation.split_once('#').unwrap_or_default();
        let number = document.strip_prefix("rfc").is_some_and(|n| n.parse::<u16>().is_ok());
        let place = place.strip_prefix("section-").or(place.strip_prefix("appendix-"));
        let exact = place.is_some_and(|place| place.split('.').all(|part| !part.is_empty()));
        assert!(number && exact, "{citation}");
    }
}

/// `make mutants` compares what survives with a list. A row whose function has moved or is gone matches nothing.
#[test]
fn the_list_of_survivors_names_functions_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let Ok(list) = std::fs::read_to_string(root.join("tests/mutants/survivors.csv")) else { return };
    for row in list.lines().filter(|line| line.starts_with("proto/")) {
        let (file, change) = row.split_once(",\"").expect("a file and a change");
        let change = change.split('"').next().unwrap_or_default();
        // "replace + with - in Paths::gone", or "replace Paths::ids -> … with …".
        let place = match change.rsplit_once(" in ") {
            Some((_, place)) => place,
            None => change.trim_start_matches("replace ").split(' ').next().unwrap_or_default(),
        };
        let function = place.rsplit("::").next().unwrap_or_default();
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let is_there =
            [format!("fn {function}("), format!("fn {function}<")].iter().any(|head| text.contains(head));
        assert!(is_there, "{file} has no function `{function}`: {row}");
    }
}
