//! The journal of a sweep: one line for each finished run, written as it finishes.
//!
//! Every line ends in a checksum. A process that is killed leaves at most one incomplete line, which is cut off. Any
//! other line with a wrong checksum means that the file was damaged. Before a table is written its digest is
//! recorded, so that a table that somebody has changed is noticed and not overwritten.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Sweep, SweepError};

/// The open journal. It is locked, so that two processes cannot write to the same directory.
pub(super) struct Journal {
    directory: PathBuf,
    file: File,
    /// The digests of all tables that were ever written.
    tables: Vec<String>,
    /// The sweep, from the last line that describes it.
    description: Option<String>,
}

/// A finished run of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedRun {
    /// The number of its cell.
    pub cell: usize,
    /// The number of its seed in the cell, from 0.
    pub n: u64,
    /// The value of each measure; NaN if the run has none.
    pub values: Box<[f64]>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

const NAME: &str = "runs.journal";
/// The largest number of bytes of a line that is read. The longest line that a sweep writes is its description, with two
/// documents of 64 MiB in which characters are escaped. Tests have no time for that.
const LONGEST: u64 = if cfg!(test) { 1 << 20 } else { 1 << 29 };
/// The number of hexadecimal digits of a line's checksum.
const CHECK: usize = 8;

impl Journal {
    /// Opens the journal in `directory`, or begins one if the directory is new or empty. `keep` receives every run in
    /// it, and reports a run that does not belong here.
    pub(super) fn open(
        sweep: &Sweep,
        directory: &Path,
        mut keep: impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Result<Journal, SweepError> {
        let path = directory.join(NAME);
        let failed = |error| SweepError::Output { file: path.clone(), error };
        if directory.is_file() {
            return Err(refused(directory, "this is a file, and a sweep is kept in a directory"));
        }
        std::fs::create_dir_all(directory)
            .map_err(|error| SweepError::Output { file: directory.to_owned(), error })?;
        let heading = heading(sweep)?;
        if !path.exists() {
            nothing_else(directory)?;
        }
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path).map_err(failed)?;
        // Of processes that begin at the same moment, the one with the lock goes on.
        locked(file.try_lock(), directory)?;
        let Contents { tables, description, whole } =
            contents(&file, &heading, directory, sweep.measures.len(), &mut keep)?;
        file.set_len(whole).map_err(failed)?;
        if whole == 0 {
            nothing_else(directory)?;
            file.write_all(line(&heading).as_bytes()).map_err(failed)?;
        }
        let mut journal = Journal { directory: directory.to_owned(), file, tables, description };
        journal.check_tables()?;
        journal.describe(sweep)?;
        Ok(journal)
    }

    /// Calls `keep` with every run in the journal of `directory`, in which nothing is changed.
    pub(super) fn read(
        sweep: &Sweep,
        directory: &Path,
        mut keep: impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Result<(), SweepError> {
        let file = existing(directory)?;
        locked(file.try_lock_shared(), directory)?;
        contents(&file, &heading(sweep)?, directory, sweep.measures.len(), &mut keep).map(drop)
    }

    /// Records the description of the sweep, so that [`super::merge`] needs no other file; again when `seeds` or
    /// similar keys change.
    fn describe(&mut self, sweep: &Sweep) -> Result<(), SweepError> {
        let description = sweep.description();
        if self.description.as_ref() == Some(&description) {
            return Ok(());
        }
        self.write(&format!("sweep {description}"))?;
        self.description = Some(description);
        Ok(())
    }

    /// The description of the sweep in the journal of `directory`.
    pub(super) fn description(directory: &Path) -> Result<String, SweepError> {
        let failed = |error| SweepError::Input { file: directory.join(NAME), error };
        let mut reader = BufReader::new(existing(directory)?);
        let (mut line, mut number, mut found) = (Vec::new(), 0, None);
        while read_line(&mut reader, &mut line).map_err(failed)? {
            number += 1;
            let entry = checked(&line).ok_or_else(|| refused(directory, &damaged(number)))?;
            found = entry.strip_prefix("sweep ").map(str::to_owned).or(found);
        }
        let why =
            || format!("`{NAME}` does not describe its sweep; run the sweep in this directory once more");
        found.ok_or_else(|| SweepError::Directory { directory: directory.to_owned(), why: why() })
    }

    /// Keeps a finished run.
    pub(super) fn append(&mut self, run: &FinishedRun) -> Result<(), SweepError> {
        if let Some(why) = &run.failed {
            let why = serde_json::Value::from(why.as_str());
            return self.write(&format!("failed {} {} {why}", run.cell, run.n));
        }
        self.write(&format!("run {} {}{}", run.cell, run.n, words(&run.values)))
    }

    /// Replaces the table `name` of the directory with what `fill` writes, in one step.
    pub(super) fn write_table(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SweepError> {
        let (path, new) = (self.directory.join(name), self.directory.join(format!("{name}.new")));
        let failed = |error| SweepError::Output { file: path.clone(), error };
        let mut file =
            Digesting { file: BufWriter::new(File::create(&new).map_err(failed)?), digest: Sha256::new() };
        fill(&mut file).and_then(|()| file.flush()).map_err(failed)?;
        let digest = format!("{name} {}", hexadecimal(&file.digest.finalize()));
        if !self.tables.contains(&digest) {
            self.write(&format!("table {digest}"))?;
            self.tables.push(digest);
        }
        std::fs::rename(&new, &path).map_err(failed)
    }

    /// Removes the table `name`, which holds nothing any more, if there is one.
    pub(super) fn remove_table(&self, name: &str) -> Result<(), SweepError> {
        let path = self.directory.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(SweepError::Output { file: path, error })
            }
            _ => Ok(()),
        }
    }

    /// Writes a line in one call, so that a killed process leaves at most the beginning of a line.
    fn write(&mut self, entry: &str) -> Result<(), SweepError> {
        let line = line(entry);
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| SweepError::Output { file: self.directory.join(NAME), error })
    }

    /// Existing tables must be as they were written.
    fn check_tables(&self) -> Result<(), SweepError> {
        for name in super::tables::NAMES {
            let path = self.directory.join(name);
            let text = match std::fs::read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SweepError::Output { file: path, error }),
            };
            if !self.tables.contains(&format!("{name} {}", digest(&text))) {
                let why = format!(
                    "`{name}` is not as the sweep wrote it; remove it to have it written again, or choose another directory"
                );
                return Err(SweepError::Directory { directory: self.directory.clone(), why });
            }
        }
        Ok(())
    }
}

/// What a journal has besides its runs.
#[derive(Default)]
struct Contents {
    tables: Vec<String>,
    description: Option<String>,
    /// The bytes of the complete lines; zero if the journal has not begun.
    whole: u64,
}

/// Reads the journal of `directory`, whose first line must be `heading`, and calls `keep` with every run in it.
fn contents(
    file: &File,
    heading: &str,
    directory: &Path,
    measures: usize,
    keep: &mut impl FnMut(FinishedRun) -> Result<(), String>,
) -> Result<Contents, SweepError> {
    let failed = |error| SweepError::Input { file: directory.join(NAME), error };
    let mut contents = Contents::default();
    let mut reader = BufReader::new(file);
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        number += 1;
        let complete = read_line(&mut reader, &mut line).map_err(failed)?;
        let begun = number > 1 || self::line(heading).as_bytes().starts_with(&line);
        if !complete && begun {
            break;
        }
        contents.whole += line.len() as u64;
        let fault = || refused(directory, &damaged(number));
        let entry = checked(&line).ok_or_else(fault)?;
        match number {
            1 => expect(entry, heading).map_err(|why| refused(directory, &why))?,
            _ => contents.take(entry, measures, keep).ok_or_else(fault)?,
        }
    }
    Ok(contents)
}

impl Contents {
    /// Takes a line; `None` if it is damaged.
    fn take(
        &mut self,
        entry: &str,
        measures: usize,
        keep: &mut impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Option<()> {
        match entry.split_once(' ')? {
            ("run", run) => keep(read_run(run)?).ok()?,
            ("failed", run) => keep(read_failed(run, measures)?).ok()?,
            ("sweep", description) => self.description = Some(description.to_owned()),
            ("table", digest) => self.tables.push(digest.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// The journal of a directory that a sweep has written.
fn existing(directory: &Path) -> Result<File, SweepError> {
    let path = directory.join(NAME);
    File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !directory.exists() => {
            SweepError::Input { file: directory.to_owned(), error }
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            refused(directory, "this is not the directory of a sweep (`--out`): it holds no `runs.journal`")
        }
        _ => SweepError::Input { file: path, error },
    })
}

/// The first line of the journal of a sweep.
fn heading(sweep: &Sweep) -> Result<String, SweepError> {
    Ok(format!("anabranch sweep 1 {}", sweep.identity()?))
}

fn refused(directory: &Path, why: &str) -> SweepError {
    SweepError::Directory { directory: directory.to_owned(), why: why.to_owned() }
}

/// Whether the journal could be locked.
fn locked(lock: Result<(), TryLockError>, directory: &Path) -> Result<(), SweepError> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(refused(directory, "another process is writing this sweep")),
        Err(TryLockError::Error(error)) => Err(SweepError::Input { file: directory.join(NAME), error }),
    }
}

/// A sweep begins only in a directory that holds nothing but its journal.
fn nothing_else(directory: &Path) -> Result<(), SweepError> {
    let failed = |error| SweepError::Output { file: directory.join(NAME), error };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != NAME {
            let name = name.to_string_lossy();
            let why = format!("holds `{name}` but no sweep; choose a new or empty directory");
            return Err(SweepError::Directory { directory: directory.to_owned(), why });
        }
    }
    Ok(())
}

/// The first line must belong to this sweep.
fn expect(entry: &str, heading: &str) -> Result<(), String> {
    if entry == heading {
        return Ok(());
    }
    let advice = "choose another directory";
    Err(match entry.starts_with("anabranch sweep ") {
        true => format!(
            "holds another sweep: its scenario, `vary`, `measure` or the program's version differ; {advice}"
        ),
        false => format!("`{NAME}` is not the journal of a sweep; {advice}"),
    })
}

fn damaged(line: usize) -> String {
    format!("`{NAME}` is damaged at line {line}; choose another directory, or remove this one to begin again")
}

/// Reads the next line into `line`; false if it is incomplete, as at the end of the file.
pub(crate) fn read_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    if reader.take(LONGEST).read_until(b'\n', line)? as u64 == LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line is longer than any that is written here",
        ));
    }
    Ok(line.last() == Some(&b'\n'))
}

/// A line with this entry and its checksum.
pub(crate) fn line(entry: &str) -> String {
    format!("{entry} {}\n", &digest(entry.as_bytes())[..CHECK])
}

/// The contents of a complete line, if its checksum is right.
pub(crate) fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (entry, check) = line.rsplit_once(' ')?;
    (digest(entry.as_bytes())[..CHECK] == *check).then_some(entry)
}

fn read_run(text: &str) -> Option<FinishedRun> {
    let mut words = text.split(' ');
    let (cell, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(FinishedRun { cell, n, values: words.map(value).collect::<Option<_>>()?, failed: None })
}

/// The values of a run, each after a space and exact to the bit.
pub(crate) fn words(values: &[f64]) -> String {
    let word = |value: &f64| match value.is_nan() {
        true => " -".to_owned(),
        false => format!(" {:016x}", value.to_bits()),
    };
    values.iter().map(word).collect()
}

/// The value that a word stands for.
pub(crate) fn value(word: &str) -> Option<f64> {
    match word {
        "-" => Some(f64::NAN),
        bits => u64::from_str_radix(bits, 16).ok().map(f64::from_bits),
    }
}

fn read_failed(text: &str, measures: usize) -> Option<FinishedRun> {
    let mut words = text.splitn(3, ' ');
    let (cell, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let failed = Some(serde_json::from_str(words.next()?).ok()?);
    Some(FinishedRun { cell, n, values: vec![f64::NAN; measures].into(), failed })
}

pub(crate) fn digest(text: &[u8]) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file, and the digest of what is written to it.
struct Digesting {
    file: BufWriter<File>,
    digest: Sha256,
}

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn of_those_that_begin_at_one_moment_one_has_the_directory() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        for round in 0..100 {
            let directory = place.path().join(round.to_string());
            let start = Barrier::new(4);
            let open = || {
                start.wait();
                Journal::open(&sweep, &directory, |_| Ok(()))
            };
            let opened: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            assert_eq!(opened.iter().filter(|opened| opened.is_ok()).count(), 1);
            let refused = opened.iter().filter_map(|opened| opened.as_ref().err());
            for error in refused {
                assert!(error.to_string().contains("another process is writing"), "{error}");
            }
        }
    }

    #[test]
    fn a_heading_that_was_not_finished_is_written_again() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join(NAME);
        let open = || Journal::open(&sweep, place.path(), |_| Ok(()));
        open().map(drop).expect("it begins");
        let whole = std::fs::read(&path).expect("the journal");
        for left in [0, 20] {
            std::fs::write(&path, &whole[..left]).expect("it is cut");
            open().map(drop).expect("it begins again");
            assert_eq!(std::fs::read(&path).expect("the journal"), whole);
        }
        std::fs::write(&path, "something else").expect("it is written");
        let error = open().map(drop).expect_err("it is no journal").to_string();
        assert!(error.contains("damaged at line 1"), "{error}");
        std::fs::write(&path, "").expect("it is emptied");
        std::fs::write(place.path().join("runs.csv"), "").expect("a table");
        let error = open().map(drop).expect_err("its tables are there").to_string();
        assert!(error.contains("holds `runs.csv` but no sweep"), "{error}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_line_without_end_is_not_read_to_its_end() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink("/dev/zero", place.path().join(NAME)).expect("a link");
        let opened = Journal::open(&sweep, place.path(), |_| Ok(())).map(drop);
        let read = Journal::read(&sweep, place.path(), |_| Ok(()));
        let begun = tempfile::tempdir().expect("a directory");
        Journal::open(&sweep, begun.path(), |_| Ok(())).map(drop).expect("it begins");
        let journal = OpenOptions::new().write(true).open(begun.path().join(NAME));
        journal.and_then(|journal| journal.set_len(1 << 32)).expect("a sparse file");
        let later = Journal::open(&sweep, begun.path(), |_| Ok(())).map(drop);
        for ended in [later, opened, read, Journal::description(place.path()).map(drop)] {
            let error = ended.expect_err("it is no journal").to_string();
            assert!(error.contains("a line is longer than"), "{error}");
        }
    }

    #[test]
    fn a_damaged_line_is_named_whoever_asks() {
        let sweep = super::super::tests::sweep("");
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join(NAME);
        Journal::open(&sweep, place.path(), |_| Ok(())).map(drop).expect("it begins");
        let mut journal = std::fs::read(&path).expect("the journal");
        let last = journal.len() - 20;
        journal[last] ^= 1;
        std::fs::write(&path, journal).expect("it is damaged");
        let error = Journal::description(place.path()).expect_err("it is damaged").to_string();
        assert!(error.contains("damaged at line 2"), "{error}");
    }
}
