//! Finds the papers: in the current directory, or built into the program.

use std::path::{Path, PathBuf};

use anabranch_sim::scenario::error::did_you_mean;
use include_dir::{Dir, include_dir};
use tempfile::TempDir;

use crate::output::{fail, refuse};

/// The directory of the papers below the current directory.
const HERE: &str = "papers";

/// The papers that are built into the program.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/papers");

/// A directory of papers.
pub(crate) enum Shelf {
    Here,
    /// The built-in papers, unpacked while this value lives.
    BuiltIn(TempDir),
}

impl Shelf {
    /// The papers below the current directory; if there are none, the built-in papers.
    pub(crate) fn open() -> Result<Shelf, u8> {
        if Path::new(HERE).is_dir() {
            return Ok(Shelf::Here);
        }
        let unpacked = tempfile::Builder::new().prefix("anabranch-papers-").tempdir();
        let unpacked = unpacked.and_then(|place| BUILT_IN.extract(place.path()).map(|()| place));
        unpacked.map(Shelf::BuiltIn).map_err(|error| fail(format!("the papers cannot be unpacked: {error}")))
    }

    /// Where the built-in papers are unpacked, if they are.
    pub(crate) fn unpacked(&self) -> Option<PathBuf> {
        match self {
            Shelf::Here => None,
            Shelf::BuiltIn(place) => Some(place.path().to_owned()),
        }
    }

    fn place(&self) -> &Path {
        match self {
            Shelf::Here => Path::new(HERE),
            Shelf::BuiltIn(place) => place.path(),
        }
    }

    /// The folder that `paper` names: a folder with this path, otherwise a paper of the shelf.
    pub(crate) fn folder(&self, paper: &Path) -> Result<PathBuf, u8> {
        let own = self.place().join(paper);
        match paper {
            folder if folder.is_dir() => Ok(folder.to_owned()),
            _ if own.is_dir() => Ok(own),
            _ => {
                let known: Vec<_> = self.folders()?.iter().filter_map(|folder| name(folder)).collect();
                let wanted = paper.display().to_string();
                let hint = did_you_mean(&wanted, known.iter().map(String::as_str));
                Err(refuse(format!("there is no paper `{wanted}`; {hint}")))
            }
        }
    }

    /// The folders that hold a paper, sorted.
    pub(crate) fn folders(&self) -> Result<Vec<PathBuf>, u8> {
        let place = self.place();
        let entries =
            std::fs::read_dir(place).map_err(|error| refuse(format!("{}: {error}", place.display())))?;
        let folders = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut folders: Vec<_> = folders.filter(|folder| folder.join("paper.toml").is_file()).collect();
        folders.sort();
        if folders.is_empty() {
            return Err(refuse(format!("{}: there is no paper here", place.display())));
        }
        Ok(folders)
    }
}

fn name(folder: &Path) -> Option<String> {
    folder.file_name().map(|name| name.to_string_lossy().into_owned())
}
