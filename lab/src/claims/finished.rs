//! The finished runs of publications in a file, so that a reproduction that was interrupted goes on where it was.
//!
//! Each line has the key of a run and its values, and ends in a checksum like the lines of a sweep's journal. The key
//! covers the scenario with its seed, the program's version and what is measured. So one file can serve several
//! publications, other claims or more seeds, and a run whose scenario was edited is executed again.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use anabranch_proto::Policies;
use anabranch_sim::scenario::Scenario;

use super::{Mark, Measure};
use crate::sweep::journal::{checked, digest, line, read_line, value, words};

/// The values of a run, by measure.
pub(super) type Values = Vec<Option<f64>>;

/// Finished runs, and the file to which more are added. It is locked, so that two processes cannot write to it.
#[derive(Debug)]
pub struct FinishedRuns {
    path: PathBuf,
    file: File,
    runs: BTreeMap<String, Values>,
}

/// Why a file of finished runs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FinishedRunsError {
    /// It cannot be read or written.
    #[error("cannot write {}: {error}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else, or damaged, or in use.
    #[error("{}: {why}", file.display())]
    Refused {
        /// Which.
        file: PathBuf,
        /// Why it is refused, and what to do.
        why: String,
    },
}

const HEADING: &str = "anabranch finished runs 1";

impl FinishedRuns {
    /// Opens the file at `path`, or begins one if there is none.
    pub fn open(path: &Path) -> Result<Self, FinishedRunsError> {
        let failed = |error| FinishedRunsError::File { file: path.to_owned(), error };
        let refused = |why: String| FinishedRunsError::Refused { file: path.to_owned(), why };
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(failed)?;
        // A device has no end, and cannot be cut.
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(refused("is not a regular file; choose another file".to_owned()));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(refused("another process is writing it".to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let (mut runs, mut whole) = (BTreeMap::new(), 0);
        let mut reader = BufReader::new(file.try_clone().map_err(failed)?);
        let mut text = Vec::new();
        for number in 1.. {
            // A process that was killed leaves at most the beginning of a line, which is cut off.
            match read_line(&mut reader, &mut text) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Err(refused(format!("{error}; choose another file")));
                }
                Err(error) => return Err(failed(error)),
            }
            let entry = checked(&text);
            match (number, entry.and_then(read)) {
                (1, _) if entry == Some(HEADING) => {}
                (1, _) => return Err(refused("does not hold finished runs; choose another file".to_owned())),
                (_, Some((key, values))) => drop(runs.insert(key, values)),
                (_, None) => {
                    return Err(refused(format!("is damaged at line {number}; remove it to begin again")));
                }
            }
            whole += text.len() as u64;
        }
        if whole == 0 && !text.is_empty() && !line(HEADING).as_bytes().starts_with(&text) {
            return Err(refused("does not hold finished runs; choose another file".to_owned()));
        }
        file.set_len(whole).map_err(failed)?;
        if whole == 0 {
            file.write_all(line(HEADING).as_bytes()).map_err(failed)?;
        }
        Ok(FinishedRuns { path: path.to_owned(), file, runs })
    }

    /// The values of the run with this key, if it is finished.
    pub(super) fn values(&self, key: &str) -> Option<&Values> {
        self.runs.get(key)
    }

    /// Adds a finished run. The line is written in one call.
    pub(super) fn add(&self, key: &str, values: &Values) -> Result<(), FinishedRunsError> {
        let values: Vec<f64> = values.iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        (&self.file)
            .write_all(line(&format!("{key}{}", words(&values))).as_bytes())
            .map_err(|error| FinishedRunsError::File { file: self.path.clone(), error })
    }
}

/// The key of a run of `scenario` whose `measures` are wanted; `None` if the scenario cannot be written as text.
pub(super) fn key(scenario: &Scenario, measures: &[Measure], marks: &[Mark]) -> Option<String> {
    let content = scenario.content_key(env!("CARGO_PKG_VERSION"), &Policies::default()).ok()?;
    Some(digest(format!("{content} {measures:?} {marks:?}").as_bytes()))
}

fn read(entry: &str) -> Option<(String, Values)> {
    let mut words = entry.split(' ');
    let key = words.next()?.to_owned();
    let known = |word| value(word).map(|value| (!value.is_nan()).then_some(value));
    Some((key, words.map(known).collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_is_not_read_to_its_end() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("runs");
        File::create(&path).and_then(|file| file.set_len(1 << 30)).expect("a sparse file");
        let error = FinishedRuns::open(&path).expect_err("it holds no runs").to_string();
        assert!(error.contains("a line is longer than"), "{error}");
    }
}
