//! Text that the laboratory and the service read: questions to `advise`, publications with their tables, journals,
//! control messages.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anabranch_lab::advice::{PairTask, Task};
use anabranch_lab::claims::{FinishedRuns, Paper, Plan};
use anabranch_lab::sweep::{Sweep, finished_runs, merge};
use anabranch_net::service::echoed;
use anabranch_proto::Policies;
use anabranch_sim::scenario::Document;
use arbitrary::{Result, Unstructured};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// A place for files that goes with the process, in memory where there is one: a case writes up to four.
static PLACE: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory"));

fn place(name: &str) -> PathBuf {
    let place = PLACE.path().join(name);
    fs::create_dir_all(&place).expect("a directory");
    place
}

/// A question is refused with its place, or its times can be computed.
pub fn advice(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Task::read("task.toml", text) {
        Err(error) => assert!(!error.render(false).trim().is_empty()),
        Ok(task) => {
            assert!(task.round_trip() < task.budget.new_data);
            assert!(task.paths.len() >= 2 && !task.gap().is_zero() == task.traffic.rate.is_some());
        }
    }
    match PairTask::read("pair.toml", text) {
        Err(error) => assert!(!error.render(false).trim().is_empty()),
        Ok(task) => assert!(task.paths.len() == 2 && task.transfer.policies.len() >= 2),
    }
}

/// What ends `claims.toml` and begins `table.csv`.
const TABLE: &str = "\n----\n";

/// Claims and the table that they name are refused with their place, or are claims.
pub fn claims(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (claims, table) = text.split_once(TABLE).unwrap_or((text, ""));
    let folder = place("paper");
    let files =
        [("paper.toml", PAPER), ("scenario.toml", SCENARIO), ("claims.toml", claims), ("table.csv", table)];
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
    match Paper::open(&folder) {
        Err(error) => assert!(!error.to_string().trim().is_empty()),
        Ok(paper) => match Plan::new(&paper, Some(1), |_| true) {
            Err(error) => assert!(!error.to_string().trim().is_empty()),
            Ok(plan) => assert_eq!(plan.claims(), paper.cases.len()),
        },
    }
}

const PAPER: &str = "title = 'a'\ncitation = 'b'\n[[variant]]\nname = 'v'\n\
    [[experiment]]\nname = 'e'\nscenario = 'scenario.toml'\nset = ['link.l.delay={delay}']\nseeds = 2\n\
    [[mark]]\nname = 'm'\nevent = { timeout = true }\n\
    [[measure]]\nname = 'time'\nresult = 'flows.f.completion'\nunit = 's'\n";

const SCENARIO: &str = "[[link]]\nname = 'l'\nbetween = ['a', 'b']\nrate = '1 Mbit/s'\n\
    [[flow]]\nname = 'f'\nfrom = 'a'\nto = 'b'\nsend = '1 kB'\n";

/// Lines of a journal, each with its checksum unless it begins with `!`: the runs in it belong to the sweep, or it is
/// refused. The same lines as finished runs of a publication. An input that begins with 0xff, which is no text, is a
/// row of decisions that make such lines.
pub fn journal(bytes: &[u8]) {
    match bytes {
        [0xff, decisions @ ..] => journal_of(&decided(decisions).unwrap_or_default()),
        lines => journal_of(lines),
    }
}

fn journal_of(lines: &[u8]) {
    let ((sweep, identity), folder) = (&*SWEEP, place("sweep"));
    let heading = format!("anabranch sweep 1 {identity}");
    write(&folder.join("runs.journal"), &heading, lines);
    match finished_runs(sweep, &folder) {
        Err(error) => assert!(!error.to_string().trim().is_empty()),
        Ok(runs) => {
            for run in runs {
                assert!(run.cell < sweep.cells() && run.values.len() == sweep.measures.len(), "{run:?}");
            }
        }
    }
    // A journal without a description cannot be merged.
    if lines.starts_with(b"sweep ") {
        let part = place("part");
        write(&part.join("runs.journal"), &heading, lines);
        let out = tempfile::tempdir_in(PLACE.path()).expect("a directory");
        if let Ok((merged, _)) = merge(out.path(), &[part]) {
            assert_eq!(merged.identity().expect("a sweep"), *identity);
        }
    }
    let resumed = PLACE.path().join("finished");
    write(&resumed, "anabranch finished runs 1", lines);
    if let Err(error) = FinishedRuns::open(&resumed) {
        assert!(!error.to_string().trim().is_empty());
    }
}

/// Lines that a journal may have, with numbers as they come. One in sixteen is damaged.
fn decided(bytes: &[u8]) -> Result<Vec<u8>> {
    let (mut from, mut lines) = (Unstructured::new(bytes), Vec::new());
    while !from.is_empty() {
        let odd: u8 = from.arbitrary()?;
        let (cell, n) = (from.arbitrary::<u8>()? % 4, from.arbitrary::<u8>()?);
        let mut words = || -> Result<String> {
            let word = |_| {
                Ok(if from.ratio(1, 4)? {
                    " -".to_owned()
                } else {
                    format!(" {:016x}", from.arbitrary::<u64>()?)
                })
            };
            (0..odd >> 4 & 3).map(word).collect()
        };
        let line = match odd % 8 {
            0..=2 => format!("run {cell} {n}{}", words()?),
            3 => format!("failed {cell} {n} \"why {n}\""),
            4 => format!("table runs.csv {n:064x}"),
            5 => format!("sweep {}", SWEEP.0.description().replace("seeds = 3", &format!("seeds = {n}"))),
            6 => format!("{n:064x}{}", words()?),
            _ => format!("{cell} {n}"),
        };
        lines.extend(if odd >> 4 == 15 { &b"!"[..] } else { b"" });
        lines.extend(line.into_bytes());
        lines.push(b'\n');
    }
    Ok(lines)
}

/// A control message of the service is refused, or written and then read as the same.
pub fn service(bytes: &[u8]) {
    match echoed(bytes) {
        Err(failure) => assert!(!failure.to_string().trim().is_empty()),
        Ok(written) => assert_eq!(echoed(&written).as_deref(), Ok(&written[..])),
    }
}

/// The sweep of the journals, and its identity.
static SWEEP: LazyLock<(Sweep, String)> = LazyLock::new(|| {
    let sweep = sweep();
    let identity = sweep.identity().expect("a sweep");
    (sweep, identity)
});

fn sweep() -> Sweep {
    let file = "scenario = 's.toml'\nseeds = 3\nvary = { 'link.l.delay' = ['1 ms', '2 ms'] }\n\
        measure = { time = 'flows.f.completion' }\n";
    let [file, scenario] = [file, SCENARIO].map(|text| Document::parse("test.toml", text).expect("TOML"));
    Sweep::over(file, scenario, Policies::default()).expect("a sweep")
}

fn write(file: &Path, heading: &str, bytes: &[u8]) {
    let mut text = checked(heading.as_bytes());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        match line {
            [b'!', raw @ ..] => text.extend(raw),
            line => text.extend(checked(line.strip_suffix(b"\n").unwrap_or(line))),
        }
    }
    fs::write(file, text).expect("a file");
}

fn checked(entry: &[u8]) -> Vec<u8> {
    let digest: String = Sha256::digest(entry)[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    [entry, b" ", digest.as_bytes(), b"\n"].concat()
}
