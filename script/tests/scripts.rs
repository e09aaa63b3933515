//! The scripts in `tests/scripts` pass, and `docs/conformance.md` says which rule each shows.
//! `ANABRANCH_BLESS=1` writes that page anew, and adds rules that only a script names to `rules.csv`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anabranch_proto::Config;
use anabranch_script::{BadParameter, Options, Verdict, run};
use anabranch_sim::scenario;

/// A rule, as `rules.csv` and the first lines of scripts have it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Rule {
    document: String,
    /// The numbers of the section, so that 5.10 comes after 5.9; of an appendix [`APPENDIX`] and its letter.
    section: Vec<u32>,
    level: String,
    text: String,
}

/// Stands before the letter of an appendix: they come after all sections.
const APPENDIX: u32 = u32::MAX;

struct Script {
    name: String,
    rules: Vec<Rule>,
    verdict: Verdict,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn pkt_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of scripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            pkt_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pkt") {
            found.push(path);
        }
    }
}

fn scripts() -> Vec<Script> {
    let folder = root().join("tests/scripts");
    let mut files = Vec::new();
    pkt_files(&folder, &mut files);
    files.sort();
    let script = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).expect("a script");
        let name = file.strip_prefix(&folder).expect("in the folder").display().to_string();
        let lines = text.lines().map_while(|line| line.strip_prefix("// "));
        let rules = lines.filter_map(|line| line.strip_prefix("rule: "));
        let rules = rules.map(|line| header(line).unwrap_or_else(|| panic!("{name}: {line}"))).collect();
        Script { rules, verdict: run(&text, &Options::new(parameters)), name }
    };
    files.iter().map(script).collect()
}

/// The reader that `anabranch script` uses.
fn parameters(assignments: &[String]) -> Result<Config, BadParameter> {
    let read = scenario::protocol("--sctp", assignments);
    read.map_err(|error| BadParameter { key: error.key().to_owned(), message: error.advice() })
}

/// `rfc9260#section-5.1.2 MUST  The rule.`; of a document whose sections are not known, `document MUST  The rule.`
fn header(line: &str) -> Option<Rule> {
    let (place, rest) = line.split_once(' ')?;
    let (level, text) = rest.trim().split_once("  ")?;
    rule(place, level, text)
}

fn rule(place: &str, level: &str, text: &str) -> Option<Rule> {
    let (document, anchor) = place.split_once('#').unwrap_or((place, "whole-"));
    let section = match anchor.split_once('-')? {
        ("whole", "") => Vec::new(),
        ("section", numbers) => numbers.split('.').map(|n| n.parse().ok()).collect::<Option<_>>()?,
        ("appendix", letter) => vec![APPENDIX, letter.parse::<char>().ok()?.into()],
        _ => return None,
    };
    let known = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"].contains(&level);
    (known && text.ends_with('.')).then(|| Rule {
        document: document.to_owned(),
        section,
        level: level.to_owned(),
        text: text.trim().to_owned(),
    })
}

fn place(rule: &Rule) -> String {
    if let [APPENDIX, letter] = rule.section[..] {
        return format!("{}#appendix-{}", rule.document, char::from_u32(letter).expect("a letter"));
    }
    if rule.section.is_empty() {
        return rule.document.clone();
    }
    let section: Vec<_> = rule.section.iter().map(u32::to_string).collect();
    format!("{}#section-{}", rule.document, section.join("."))
}

fn listed() -> Vec<Rule> {
    let mut reader = csv::Reader::from_path(root().join("tests/scripts/rules.csv")).expect("rules.csv");
    let row = |row: Result<csv::StringRecord, _>| {
        let row = row.expect("a row");
        rule(&row[0], &row[1], &row[2]).unwrap_or_else(|| panic!("{row:?}"))
    };
    reader.records().map(row).collect()
}

fn blessing() -> bool {
    std::env::var_os("ANABRANCH_BLESS").is_some()
}

/// The rules of the list and of the scripts, in order.
fn rules(scripts: &[Script]) -> Vec<Rule> {
    let named = scripts.iter().flat_map(|script| script.rules.iter().cloned());
    listed().into_iter().chain(named).collect::<BTreeSet<_>>().into_iter().collect()
}

#[test]
fn every_script_passes() {
    let scripts = scripts();
    for script in &scripts {
        assert_eq!(script.verdict, Verdict::Pass, "tests/scripts/{}", script.name);
        assert!(!script.rules.is_empty(), "{} begins with no `// rule: `", script.name);
    }
    assert!(scripts.len() >= 30, "{} scripts", scripts.len());
}

fn write_list(rules: &[Rule]) {
    let mut writer = csv::Writer::from_path(root().join("tests/scripts/rules.csv")).expect("rules.csv");
    writer.write_record(["section", "level", "rule"]).expect("a row");
    for rule in rules {
        writer.write_record([&place(rule), &rule.level, &rule.text]).expect("a row");
    }
}

fn page(scripts: &[Script]) -> String {
    let rules = rules(scripts);
    let of = |rule: &Rule| scripts.iter().filter(|script| script.rules.contains(rule)).collect::<Vec<_>>();
    let without: Vec<&Rule> = rules.iter().filter(|rule| of(rule).is_empty()).collect();
    let mut page = format!(
        "# Conformance\n\nGenerated from `tests/scripts` by `ANABRANCH_BLESS=1 cargo test -p anabranch-script --test scripts`.\n\
         {} rules, in our own words; {} of them are shown by {} scripts.\n\n\
         | section | level | rule | script | result |\n|---|---|---|---|---|\n",
        rules.len(),
        rules.len() - without.len(),
        scripts.len()
    );
    for rule in &rules {
        for script in of(rule) {
            let result = if script.verdict == Verdict::Pass { "pass" } else { "fail" };
            let link = format!("[{0}](../tests/scripts/{0})", script.name);
            page += &format!("| {} | {} | {} | {link} | {result} |\n", heading(rule), rule.level, rule.text);
        }
    }
    page += "\n## Rules without a script\n\n| section | level | rule |\n|---|---|---|\n";
    for rule in without {
        page += &format!("| {} | {} | {} |\n", heading(rule), rule.level, rule.text);
    }
    page
}

fn heading(rule: &Rule) -> String {
    place(rule).replace("rfc", "RFC ").replace("#section-", " §").replace("#appendix-", " appendix ")
}

/// One test, so that nothing is read while it is written.
#[test]
fn the_list_and_the_page_are_what_the_scripts_say() {
    let path = root().join("docs/conformance.md");
    let scripts = scripts();
    let (all, fresh) = (rules(&scripts), page(&scripts));
    if blessing() {
        write_list(&all);
        std::fs::write(path, fresh).expect("docs/conformance.md can be written");
        return;
    }
    let how = "ANABRANCH_BLESS=1 writes it anew";
    assert!(listed() == all, "rules.csv lacks a rule that a script names, or is not in order: {how}");
    let written = std::fs::read_to_string(path).expect("docs/conformance.md can be read");
    assert!(written == fresh, "docs/conformance.md is old: {how}");
}
