//! What earlier runs wrote into the directories of `--series` and `--figures`. It goes when what takes its place is
//! complete, so that no directory holds results of different runs. What no run wrote stays.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_sim::columns::SERIES;

use crate::place::partial;

/// What a directory is for.
#[derive(Copy, Clone)]
pub(crate) enum Purpose {
    Series,
    Figures,
}

impl Purpose {
    /// The files that earlier runs wrote into this directory: one run in it, or several in subdirectories.
    pub(crate) fn earlier(self, directory: &Path) -> Vec<PathBuf> {
        let runs = entries(directory).into_iter().filter(|path| path.is_dir() && is_run(path));
        let below: Vec<_> = runs.flat_map(|run| self.files(&run)).collect();
        self.files(directory).into_iter().chain(below).collect()
    }

    /// The files that a run wrote into its directory.
    fn files(self, directory: &Path) -> Vec<PathBuf> {
        let files = entries(directory).into_iter().filter(|path| path.is_file());
        match self {
            Purpose::Series if !directory.join(RESULT).is_file() => Vec::new(),
            Purpose::Series => files.filter(|path| is_series(path)).collect(),
            Purpose::Figures => files.filter(|path| is_chart(path)).collect(),
        }
    }

    /// Gives the directories of all runs their names, in place of what earlier runs wrote into `directory`.
    pub(crate) fn replace(self, directory: &Path, runs: &[PathBuf]) -> io::Result<()> {
        for file in self.earlier(directory) {
            fs::remove_file(&file)?;
            // The subdirectory of a run goes with its last file.
            if let Some(run) = file.parent().filter(|parent| *parent != directory) {
                let _ = fs::remove_dir(run);
            }
        }
        runs.iter().try_for_each(|run| complete(run))
    }
}

/// Gives a directory that was written under another name its own. What is there already stays beside its files.
pub(crate) fn complete(directory: &Path) -> io::Result<()> {
    moved(&partial(directory), directory)
}

fn moved(from: &Path, to: &Path) -> io::Result<()> {
    // At once where there is no such directory, or an empty one.
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::rename(entry.path(), to.join(entry.file_name()))?;
    }
    fs::remove_dir(from)
}

/// The result of a run, beside its series.
pub(crate) const RESULT: &str = "result.json";

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// `run-1` and so on.
fn is_run(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    let number = name.and_then(|name| name.strip_prefix("run-"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `NAME.SERIES.csv`, or the result.
fn is_series(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name == RESULT || SERIES.iter().any(|series| name.ends_with(&format!(".{}.csv", series.name)))
}

/// One of the five files of a chart; the others are beside it.
fn is_chart(path: &Path) -> bool {
    const ENDS: [&str; 5] = ["svg", "png", "pdf", "csv", "tex"];
    let is_one = path.extension().is_some_and(|end| ENDS.iter().any(|known| end == *known));
    is_one && ENDS.iter().all(|end| path.with_extension(end).is_file())
}
