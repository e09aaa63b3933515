//! The folders of `papers/`, and the document about them.

use std::path::{Path, PathBuf};

use anabranch_lab::claims::{Paper, Plan, sections};
use anabranch_lab::{advice, sweep};
use anabranch_proto::rules::Rules;
use anabranch_proto::{Config, Parameters};
use anabranch_sim::scenario::keys::{Section, markdown};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

#[test]
fn every_paper_can_be_read_and_its_runs_planned() {
    let folders = std::fs::read_dir(root("papers")).expect("papers/ is there");
    let mut papers = 0;
    for folder in folders.map(|entry| entry.expect("the entry can be read").path()) {
        let paper = Paper::open(&folder).unwrap_or_else(|error| panic!("{error}"));
        let plan = Plan::new(&paper, None, |_| true).unwrap_or_else(|error| panic!("{error}"));
        assert!(plan.claims() > 0 && plan.size() > 0);
        assert!(folder.join("README.md").is_file(), "{} has a README", paper.name);
        papers += 1;
    }
    assert!(papers > 0);
}

/// A lost segment beside ns-2 and the paper, event by event: runs of six seconds.
#[test]
fn the_timelines_of_a_lost_segment_are_those_of_ns2() {
    let paper = Paper::open(&root("papers/satellite-fairness")).unwrap_or_else(|error| panic!("{error}"));
    let plan =
        Plan::new(&paper, None, |id| id.starts_with("timeline/")).unwrap_or_else(|error| panic!("{error}"));
    let outcomes = plan.run(None, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcomes.len() > 200);
    let missed: Vec<_> =
        outcomes.iter().filter(|outcome| !outcome.holds).map(|outcome| &outcome.id).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// The document with the tables that the reader's rows make.
fn generated(document: &str, sections: &[Section]) -> String {
    let mut parts = document.split("<!-- keys: ");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (header, rest) = part.split_once(" -->\n").expect("a mark ends");
        let (_, rest) = rest.split_once("<!-- end -->").expect("a table ends");
        let section = sections.iter().find(|section| name(section) == header).expect("the section exists");
        text += &format!("<!-- keys: {header} -->\n{}<!-- end -->{rest}", markdown(section));
    }
    text
}

fn name(section: &Section) -> &'static str {
    if section.header.is_empty() { "top" } else { section.header }
}

#[test]
fn the_documents_list_exactly_the_keys_that_are_read() {
    for (file, sections) in [
        ("docs/papers.md", sections()),
        ("docs/sweeps.md", sweep::sections()),
        ("docs/advice.md", advice::sections()),
    ] {
        let document = std::fs::read_to_string(root(file)).expect("the document can be read");
        let fresh = generated(&document, &sections);
        if std::env::var_os("ANABRANCH_BLESS").is_some() {
            std::fs::write(root(file), fresh).expect("the document can be written");
            continue;
        }
        assert!(
            document == fresh,
            "{file} is not what the reader's rows say: ANABRANCH_BLESS=1 writes it anew"
        );
        for section in &sections {
            assert!(
                document.contains(&format!("<!-- keys: {} -->", name(section))),
                "{file}: {}",
                name(section)
            );
        }
    }
}

/// The sweep over single rules is a sweep over all of them: what is in rules.csv is what the eras differ in.
#[test]
fn the_rules_switched_alone_are_all_in_which_the_eras_differ() {
    let text = std::fs::read_to_string(root("papers/receive-buffer-blocking/rules.csv")).expect("rules.csv");
    let rows: Vec<Vec<String>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.trim_matches('\'').to_owned()).collect())
        .collect();
    // The case study of the paper counts four missing reports.
    let ns2 = Rules { missing_reports: 4, ..Rules::NS2 };
    let mut expected: Vec<Vec<String>> = Rules::DOCS
        .iter()
        .map(|(key, _)| {
            [Some((*key).to_owned()), ns2.get(key), Rules::RFC9260.get(key)].into_iter().flatten().collect()
        })
        .filter(|row: &Vec<String>| row[1] != row[2])
        .collect();
    expected.push(["rto_initial", "3 s", "1 s"].map(str::to_owned).to_vec());
    expected.push(["heartbeat_max_burst", "4294967295", "1"].map(str::to_owned).to_vec());
    let sorted = |mut rows: Vec<Vec<String>>| {
        rows.sort();
        rows
    };
    assert_eq!(sorted(rows), sorted(expected));

    // And nothing else differs but the policy of fast retransmissions, which the claims set themselves.
    let (then, now) = (Config::era("ns2").expect("an era"), Config::era("rfc9260").expect("an era"));
    let with_now = Config {
        rules: now.rules,
        fast: now.fast.clone(),
        parameters: Parameters {
            rto_initial: now.rto_initial,
            heartbeat_max_burst: now.heartbeat_max_burst,
            ..then.parameters
        },
        ..then
    };
    assert_eq!(with_now, now);
}
