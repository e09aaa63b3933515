//! The state of the server: scenarios, publications, and the last runs.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anabranch_lab::claims::Paper;
use anabranch_lab::kind::Kind;
use anabranch_sim::scenario::{Document, read_text};
use include_dir::{Dir, include_dir};
use serde::Serialize;
use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::process::Limits;
use crate::kind;
use crate::output::{fail, refuse, refuse_scenario};
use crate::place::unread;
use crate::reproduce::{Shelf, refuse_paper};

/// The number of runs whose files are kept.
const KEPT: usize = 8;
/// The number of processes that work at the same time.
const AT_ONCE: usize = 2;

/// The scenarios built into the program.
static SCENARIOS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/scenarios");

/// The state that requests share.
pub(super) struct Workshop {
    pub(super) scenarios: Vec<Offered>,
    pub(super) papers: Vec<PaperSummary>,
    pub(super) limits: Limits,
    pub(super) turns: Semaphore,
    runs: Mutex<Runs>,
    /// Holds the folders of the runs and the files that scenarios refer to.
    place: TempDir,
    /// The publications, unpacked while this value lives.
    shelf: Shelf,
}

/// A scenario that can be opened.
#[derive(Serialize)]
pub(super) struct Offered {
    pub(super) name: String,
    title: String,
    text: String,
    /// The publication to which it belongs.
    paper: Option<String>,
}

/// A publication that can be opened.
#[derive(Serialize)]
pub(super) struct PaperSummary {
    pub(super) name: String,
    title: String,
    citation: String,
    /// The first parts of the names of its claims, each with its number of claims.
    pub(super) groups: Vec<(String, usize)>,
}

#[derive(Default)]
struct Runs {
    finished: u64,
    folders: VecDeque<(u64, TempDir)>,
}

impl Workshop {
    /// A workshop with the scenarios in these files, or the exit status of a fault.
    pub(super) fn open(files: &[PathBuf], limits: Limits) -> Result<Workshop, u8> {
        let place = tempfile::Builder::new().prefix("anabranch-lab-").tempdir();
        let place = place.map_err(|error| fail(format!("no temporary directory: {error}")))?;
        let unpacked =
            std::fs::create_dir(place.path().join("traces")).and_then(|()| SCENARIOS.extract(place.path()));
        unpacked.map_err(|error| fail(format!("the scenarios cannot be unpacked: {error}")))?;
        let shelf = Shelf::open()?;
        let mut scenarios = files.iter().map(|file| offered_file(file)).collect::<Result<Vec<_>, u8>>()?;
        scenarios.extend(
            SCENARIOS
                .files()
                .filter_map(|file| offered(file.path(), file.contents_utf8()?.to_owned(), None).ok()),
        );
        let mut papers = Vec::new();
        for folder in shelf.folders()? {
            let paper = Paper::open(&folder).map_err(|error| refuse_paper(&error))?;
            scenarios.extend(scenarios_of(&folder, &paper.name));
            papers.push(PaperSummary::of(&paper));
        }
        let (turns, runs) = (Semaphore::new(AT_ONCE), Mutex::default());
        Ok(Workshop { scenarios, papers, limits, turns, runs, place, shelf })
    }

    /// A folder for a run: it is deleted with this value unless it is kept.
    pub(super) fn scratch(&self) -> std::io::Result<TempDir> {
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(self.place.path())?;
        share(&self.place.path().join("traces"), &folder.path().join("traces"))?;
        Ok(folder)
    }

    /// Keeps the folder of a finished run, and gives the run its number. The folder of the oldest run is deleted once
    /// there are too many. Runs that wait or work are not among them: none is disturbed.
    pub(super) fn keep(&self, folder: TempDir) -> u64 {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.finished += 1;
        let id = runs.finished;
        runs.folders.push_back((id, folder));
        if runs.folders.len() > KEPT {
            runs.folders.pop_front();
        }
        id
    }

    /// The folder of a run, while it is kept.
    pub(super) fn folder(&self, id: u64) -> Option<PathBuf> {
        let runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.folders.iter().find(|(known, _)| *known == id).map(|(_, folder)| folder.path().to_owned())
    }

    /// The folder of a publication, absolute.
    pub(super) fn paper(&self, name: &str) -> Option<PathBuf> {
        let known = self.papers.iter().find(|paper| paper.name == name)?;
        self.shelf.folder(Path::new(&known.name)).ok()?.canonicalize().ok()
    }
}

/// Makes the files of a folder available in another place.
#[cfg(unix)]
fn share(folder: &Path, there: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(folder, there)
}

/// Other systems link folders only for privileged users, so this one is copied; it holds files only.
#[cfg(not(unix))]
fn share(folder: &Path, there: &Path) -> std::io::Result<()> {
    std::fs::create_dir(there)?;
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        std::fs::copy(file.path(), there.join(file.file_name()))?;
    }
    Ok(())
}

impl PaperSummary {
    fn of(paper: &Paper) -> PaperSummary {
        let mut groups: Vec<(String, usize)> = Vec::new();
        for case in &paper.cases {
            let group = case.id.split('/').next().unwrap_or(&case.id);
            match groups.iter_mut().find(|(known, _)| known == group) {
                Some((_, count)) => *count += 1,
                None => groups.push((group.to_owned(), 1)),
            }
        }
        let (name, title, citation) = (paper.name.clone(), paper.title.clone(), paper.citation.clone());
        PaperSummary { name, title, citation, groups }
    }
}

/// The scenario in a file named on the command line; a faulty one is refused at once.
fn offered_file(file: &Path) -> Result<Offered, u8> {
    let (shown, text) =
        (file.display().to_string(), read_text(file).map_err(|error| refuse(unread(file, &error)))?);
    let found = Document::parse(&shown, &text).ok().and_then(|document| Kind::of(&document));
    if let Some(other) = found.filter(|kind| *kind != Kind::Scenario) {
        return Err(refuse(kind::told(other, &shown)));
    }
    offered(file, text, None).map_err(|error| refuse_scenario(&error))
}

fn offered(
    file: &Path,
    text: String,
    paper: Option<&str>,
) -> Result<Offered, anabranch_sim::scenario::ScenarioError> {
    let document = Document::parse(&file.display().to_string(), &text)?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let [title, _] = document.headings();
    let title = title.unwrap_or_else(|| first_sentence(&text));
    Ok(Offered { name, title, text, paper: paper.map(str::to_owned) })
}

/// The first sentence of the comment at the top of a file.
fn first_sentence(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
    let comment = lines.join(" ");
    let end = [". ", "? ", "! "].iter().filter_map(|end| comment.find(end)).min();
    comment[..end.map_or(comment.len(), |end| end + 1)].to_owned()
}

/// The scenarios of a publication: the files in its folder except its description, its claims and its sweeps.
fn scenarios_of(folder: &Path, paper: &str) -> Vec<Offered> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| {
        file.extension().is_some_and(|end| end == "toml")
            && !["paper.toml", "claims.toml"].iter().any(|other| file.ends_with(other))
    });
    files.sort();
    let is_sweep =
        |text: &str| Document::parse("", text).is_ok_and(|document| document.get("scenario").is_some());
    let read = |file: &PathBuf| {
        let text = read_text(file).ok().filter(|text| !is_sweep(text))?;
        offered(file, text, Some(paper)).ok()
    };
    files.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn a_scenario_without_title_is_named_by_its_first_sentence() {
        let cases = [
            (
                "# One link, at 0.5 Mbit/s,\n# and its queue. Try more.\nseed = 7",
                "One link, at 0.5 Mbit/s, and its queue.",
            ),
            ("# Which path? The\n# other.", "Which path?"),
            ("# No full stop\n#\n# More", "No full stop"),
            ("seed = 7 # not at the top. No", ""),
        ];
        cases.iter().for_each(|(text, first)| assert_eq!(first_sentence(text), *first));
    }
}
